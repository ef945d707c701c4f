"""Gaussian tuples, sets of them, groups and series."""
