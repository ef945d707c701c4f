"""Networks at random, small and hostile; what contraction alone says of trees."""

from __future__ import annotations

import itertools

import numpy as np

from pdp_calibrate.families.network.elimination import Elimination


def contraction_bounds(network, budgets, knowledge):
    """Bound every target by the budgets of single tuples, and nothing else."""
    couplings = network.couplings.without(knowledge.known or frozenset())
    return Elimination(couplings).bounds(np.asarray(budgets, dtype=float), knowledge.targets)


def ising_factors(edges, strength):
    """Return factors e^{J s_k s_l}, s = ±1, of values 0 and 1."""
    alike = np.exp(strength * np.array([[1, -1], [-1, 1]]))
    return [(edge, alike) for edge in edges]


def grid_edges(rows, columns):
    """Return the edges of a grid whose places are numbered row by row."""
    places = np.arange(rows * columns).reshape(rows, columns)
    along = zip(places[:, :-1].ravel(), places[:, 1:].ravel(), strict=True)
    across = zip(places[:-1].ravel(), places[1:].ravel(), strict=True)
    return [(int(one), int(other)) for one, other in itertools.chain(along, across)]
