"""The paper's own way to compute leakage on tables, reproduced and judged: **not sound**.

Theorem 3 (docs/theory).

Li, Ren, Yang and Yang, "Impact of Prior Knowledge and Data Correlation on Privacy Leakage: A
Unified Analysis" (arXiv 1906.02606), Section V. Equations are numbered as they come out of the
paper's source. The impact IC and the ratio IR (Eq. 9–13), the weighted hierarchical graph,
Theorem 2, the chain rule (Thm 5), Algorithms 1 and 2 and Corollary 1 are here under their names,
so that a reader can follow the paper, and so that its numbers stand beside the exact ones. No
scale that protects anybody may come from here: `pdp_calibrate.leakage` is exact.

Why it is not a bound. Leakage is a supremum over all outputs r and over both orders of two
secrets. Theorem 2 replaces it by ``|l + IC|``, where l is already a supremum, taken at *some*
output, and IC considers r → −∞ only and pairs x_i < x_i' only. Correlation can move the worst
output into the middle, or to r → +∞. The smallest value over several paths is then taken as if each
path gave an upper bound, which makes it lower still.

Counterexample: x_1 is a fair coin; x_1 = 0 gives x_2 = 0, x_1 = 1 gives x_2 = ±1 with equal
chance; the sum is released with scale 1. Knowing nothing, the adversary learns most at r = 2.

>>> import pdp_calibrate as pdp
>>> from pdp_calibrate import paper
>>> table = pdp.JointTable(
...     probabilities=[[0, 0.5, 0], [0.25, 0, 0.25]], domains=[[0, 1], [-1, 0, 1]]
... )
>>> print(f"{paper.chain_rule(paper.graph(table, pdp.Sum(), 1.0), 'x1', unknown=['x2']).value:.4f}")
0.5662
>>> weakest = pdp.Adversaries.exactly("x1")
>>> print(f"{pdp.leakage(table, pdp.Sum(), scale=1.0, adversaries=weakest).value:.4f}")
1.4338
"""

from pdp_calibrate.paper.graph import WeightedHierarchicalGraph, graph
from pdp_calibrate.paper.impact import ancestor_leakage, impacts, increment_ratios
from pdp_calibrate.paper.scale import unsound_chain_rule_scale
from pdp_calibrate.paper.search import (
    Path,
    Search,
    chain_rule,
    fast_search,
    full_space_search,
    special_case,
)

__all__ = [
    "Path",
    "Search",
    "WeightedHierarchicalGraph",
    "ancestor_leakage",
    "chain_rule",
    "fast_search",
    "full_space_search",
    "graph",
    "impacts",
    "increment_ratios",
    "special_case",
    "unsound_chain_rule_scale",
]
