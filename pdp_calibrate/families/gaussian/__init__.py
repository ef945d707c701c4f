"""Gaussian tuples, sets of such models, groups, series and networks."""
