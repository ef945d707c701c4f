"""One budget for many releases."""
