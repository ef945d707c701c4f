"""Birkhoff's bound on a tree: what passes an edge is contracted.

Let tuple j alone move the log-likelihood of everything released by at most ε_j. Seen from tuple i,
a neighbour k and all that lies behind it can say no more about x_i than L(a_k), where
a_k = ε_k + Σ L(a_l) over the neighbours l behind k, and L is the contraction of the edge between
them (`chains.mixing`). The sum at i bounds every adversary. Two passes give it for every tuple:
one towards the root, one away from it. Known tuples say nothing and let nothing through.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pdp_calibrate.adversaries import Knowledge
from pdp_calibrate.engines.chains.mixing import contracted
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.trees.links import links_of
from pdp_calibrate.models import MarkovTree
from pdp_calibrate.models.base import FloatArray

_SUM = 1 + 4 * UNIT_ROUNDOFF  # covers an addition


def tree_bounds(tree: MarkovTree, budgets: FloatArray, knowledge: Knowledge) -> FloatArray:
    """Bound the leakage about every tuple, for every adversary, in linear time.

    Parameters
    ----------
    tree
        The model.
    budgets
        ε_j of every tuple: Σ_m LS_j(f_m)/λ_m, and the plain-DP budgets of other mechanisms.
    knowledge
        The adversaries; where only one is meant, what lies behind known tuples does not count.
    """
    known: Collection[int] = knowledge.known or ()
    links, parents = links_of(tree).diameters, tree.parents
    totals = np.array(budgets, dtype=np.float64)
    upwards = np.zeros(len(totals))
    for place in reversed(tree.order):
        parent = parents[place]
        if parent is not None and place not in known:
            upwards[place] = contracted(links[place], float(totals[place]))
            totals[parent] = (totals[parent] + upwards[place]) * _SUM
    for place in tree.order:
        parent = parents[place]
        if parent is not None and parent not in known:
            total = float(totals[parent])
            # A difference of sums of up to n terms is off by as many roundings of the sum.
            others = total - upwards[place] + 8 * UNIT_ROUNDOFF * total
            totals[place] = (totals[place] + contracted(links[place], others)) * _SUM
    return totals
