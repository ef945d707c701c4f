"""Engine for Gaussian tuples: regression coefficients, and which known set makes them largest."""

from pdp_calibrate.engines.gaussian.search import search

__all__ = ["search"]
