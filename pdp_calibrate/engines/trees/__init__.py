"""Engine for Markov trees: the joint table where there is one, else contraction and regions."""

from pdp_calibrate.engines.trees.search import search

__all__ = ["search"]
