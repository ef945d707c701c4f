"""What a person can ask for, and what runs it."""
