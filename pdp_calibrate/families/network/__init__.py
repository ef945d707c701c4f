"""Trees, and chains of which only the contraction is known."""
