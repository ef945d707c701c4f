"""A noise scale from the paper's chain rule: for comparison only."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from pdp_calibrate.arrays import checked_positive
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import CalibrationError, PdpError, PrivacyLeakWarning
from pdp_calibrate.paper.graph import graph
from pdp_calibrate.paper.search import fast_search, full_space_search

_GRID = 65  # scales tried before bisection: the curve need not fall everywhere


_TOLERANCE = 1e-12


def unsound_chain_rule_scale(
    table: JointTable,
    query: Query,
    *,
    epsilon: float,
    search: Literal["full", "fast"] = "full",
) -> float:
    """Return the smallest scale at which the *paper's* leakage is at most ε, and warn.

    The release at this scale may leak more than ε (on the wheeze answers of 537 children, 1.16
    for a promised 1). It exists to compare with the paper; `calibrate` gives the scale that
    holds.

    Parameters
    ----------
    table
        The joint distribution θ.
    query
        Any additive query.
    epsilon
        What the paper's leakage shall not exceed.
    search
        Which algorithm evaluates it: ``"full"`` (Algorithm 1) or ``"fast"`` (Algorithm 2).

    Returns
    -------
    float
        A scale where the paper's value was evaluated and is at most ε. The paper's value lies
        between GS/λ and Σ LS_j/λ, so the scale is sought between GS/ε and Σ LS_j/ε: first on a
        geometric grid from below, because nothing says that the curve falls everywhere, then by
        bisection below the first scale that passes.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", pdp.PrivacyLeakWarning)
    ...     scale = unsound_chain_rule_scale(table, pdp.Sum(), epsilon=1.0)
    >>> round(scale, 4)
    1.1894
    """
    checked_positive(epsilon, "epsilon", error=PdpError)
    if search not in ("full", "fast"):
        raise PdpError(f"search must be 'full' or 'fast', got {search!r}.")
    warnings.warn(
        "the paper's chain rule is not a bound: the scale it gives may leak more than epsilon."
        " Use calibrate() for data that matter.",
        PrivacyLeakWarning,
        stacklevel=2,
    )
    evaluate = full_space_search if search == "full" else fast_search

    def passes(scale: float) -> bool:
        return evaluate(graph(table, query, scale)).value <= epsilon

    reach = graph(table, query, 1.0).first_layer
    if reach.max() == 0:
        raise CalibrationError("the answer does not depend on any tuple: no noise is needed.")
    # One rounding step upwards at each end: GS/(GS/ε) may come out one bit above ε.
    lowest, highest = (float(end) / epsilon * (1 + 1e-14) for end in (reach.max(), reach.sum()))
    grid = np.unique(np.geomspace(lowest, highest, _GRID))
    passing = next((place for place, scale in enumerate(grid) if passes(float(scale))), None)
    if passing is None:
        raise CalibrationError("the paper's value exceeds epsilon at the group scale.")
    if passing == 0:
        return float(grid[0])
    below, above = float(grid[passing - 1]), float(grid[passing])
    while above - below > _TOLERANCE * above:
        middle = (below + above) / 2
        below, above = (below, middle) if passes(middle) else (middle, above)
    return above
