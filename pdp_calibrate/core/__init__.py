"""The nouns, and what every search shares."""
