"""Joint tables and sets of tables."""
