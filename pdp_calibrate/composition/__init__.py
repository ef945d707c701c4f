"""What several releases leak together."""
