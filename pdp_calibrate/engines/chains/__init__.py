"""Engine for Markov chains: windows between known tuples, walked by dynamic programming."""

from pdp_calibrate.engines.chains.search import search

__all__ = ["search"]
