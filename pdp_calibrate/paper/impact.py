"""The impact IC of one tuple on another, and its increment ratio IR (paper, Eq. 9–13).

IC_{j,K'}(v, w) = log E[e^{−y_j/λ} | x_i = v, x_K'] − log E[e^{−y_j/λ} | x_i = w, x_K'],

where y_j is what tuple j adds to the answer. It is the logarithm of the ratio of the two output
densities at r → −∞, as far as x_j decides it: one point of all those that an adversary may see.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.checks import checked_scale
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import position_of
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError, PdpError, UnsupportedQueryError


def impacts(
    table: JointTable,
    query: Query,
    *,
    scale: float,
    target: Hashable,
    other: Hashable,
    given: Mapping[Hashable, Hashable] | None = None,
) -> dict[tuple[Hashable, Hashable], float]:
    """Return the set Γ_{ij,K'} at one value of x_K': IC of every ordered pair of secrets.

    Parameters
    ----------
    table
        The joint distribution θ.
    query
        Any additive query; y_j below is what tuple j adds to it.
    scale
        The Laplace scale λ.
    target
        The tuple i that is attacked.
    other
        The tuple j that the adversary no longer knows.
    given
        The values x_K' that the adversary still knows.

    Returns
    -------
    dict
        ``{(v, w): IC}`` for values v, w of the target that both occur together with x_K', v
        standing before w in the order of their contributions (ties in domain order).

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> gamma = impacts(table, pdp.Sum(), scale=1.0, target="x1", other="x2")
    >>> {pair: round(impact, 6) for pair, impact in gamma.items()}
    {(0, 1): 0.185376}
    """
    added = additive_values(table, query)
    checked_scale(scale)
    i, j = position_of(target, table.names), position_of(other, table.names)
    fixed = {position_of(name, table.names): value for name, value in (given or {}).items()}
    if i == j or {i, j} & set(fixed):
        raise ModelError("target, other and the tuples given must all differ.")
    law = table.probabilities
    for axis, value in fixed.items():
        if value not in table.domains[axis]:
            raise ModelError(f"the value given for {table.names[axis]} is not in its domain.")
        law = law.take([table.domains[axis].index(value)], axis=axis)
    law = np.moveaxis(law, (i, j), (0, 1))
    law = law.sum(axis=tuple(range(2, law.ndim)))
    log_means = log_exponential_means(law, added[j] / scale)
    order = np.argsort(added[i], kind="stable")
    return {
        (table.domains[i][m], table.domains[i][n]): float(log_means[m] - log_means[n])
        for m, n in itertools.combinations(order, 2)
        if np.isfinite(log_means[[m, n]]).all()
    }


def increment_ratios(
    table: JointTable,
    query: Query,
    *,
    scale: float,
    target: Hashable,
    other: Hashable,
    given: Mapping[Hashable, Hashable] | None = None,
) -> dict[tuple[Hashable, Hashable], float]:
    """Return IR = IC / (LS_j/λ) for every pair of `impacts`: a number in [−1, 1].

    Where tuple j adds nothing to the answer (LS_j = 0), IC is 0 and so is IR.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[[0, 1], [0, 5]])
    >>> increment_ratios(table, pdp.Sum(), scale=1.0, target="x1", other="x2")
    {(0, 1): 1.0}
    """
    found = impacts(table, query, scale=scale, target=target, other=other, given=given)
    reach = float(np.ptp(additive_values(table, query)[position_of(other, table.names)])) / scale
    return {pair: impact / reach if reach > 0 else 0.0 for pair, impact in found.items()}


def ancestor_leakage(leakage: float, gamma: Iterable[float]) -> tuple[float, float]:
    """Return the paper's leakage of the ancestor and the edge value that gives it (Thm 2).

    The ancestor A(i, K') of A(i, K) knows all that A(i, K) knows but x_j. The paper sets
    l(i, K') = |l(i, K) + IC|, with IC the member of Γ_{ij,K'} that makes this largest. **That is
    not a bound**: the truth may lie above it or below.

    Examples
    --------
    >>> ancestor_leakage(1.0, [-0.5, 0.25])
    (1.25, 0.25)
    """
    members = list(gamma)
    if not members:
        raise PdpError("Γ is empty: no two values of the target occur with what is known.")
    edge = max(members, key=lambda impact: abs(leakage + impact))
    return abs(leakage + edge), edge


def additive_values(table: JointTable, query: Query) -> list[FloatArray]:
    """Lower the query and return what each value of each tuple adds, one array per tuple."""
    if not isinstance(table, JointTable):
        raise ModelError(f"the paper's graph needs a JointTable, got {type(table).__name__}.")
    contributions: Contributions = lower(query, table)
    if contributions.table is not None or contributions.values[0].shape[-1] != 1:
        raise UnsupportedQueryError(
            "the paper's graph is defined for linear queries with one answer:"
            " use Sum, Mean, Linear or Count."
        )
    return [array[:, 0] for array in contributions.values]


def log_exponential_means(laws: FloatArray, exponents: FloatArray) -> FloatArray:
    """Return log E[e^{−exponent}] under each law along the last axis; NaN for a law of mass 0.

    The laws need not be normalised.
    """
    totals = laws.sum(axis=-1, keepdims=True)
    possible = totals > 0
    with np.errstate(divide="ignore"):
        log_laws = np.log(np.where(possible, laws, 1.0) / np.where(possible, totals, 1.0))
    # Summed from the largest term, so that no small scale makes every term underflow.
    log_terms = log_laws - exponents
    peak = log_terms.max(axis=-1, keepdims=True)
    log_means = peak + np.log(np.exp(log_terms - peak).sum(axis=-1, keepdims=True))
    return np.asarray(np.where(possible, log_means, np.nan)[..., 0])
