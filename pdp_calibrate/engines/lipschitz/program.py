"""The Lipschitz program in its dual form: every plan of transport is a proof.

By duality the largest P·g/Q·g over e^c-Lipschitz g is the smallest t for which P can be carried to
the atoms of Q so that no atom l receives more than t·Q_l, each unit from k counted e^{c(k,l)}-fold:

    P·g = Σ_kl π_kl g_k ≤ Σ_l g_l Σ_k π_kl e^{c(k,l)} ≤ max_l (Σ_k π_kl e^{c(k,l)} / Q_l) · Q·g.

So any π ≥ 0 with row sums P is a certificate, and the solver is trusted with nothing: its plan is
clipped, its rows are made to sum to one, and the maximum is evaluated in log space. (The primal
has no such safety: solved in floating point it can come out below the truth.)
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.special import logsumexp

from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models.base import FloatArray

LARGEST_PROGRAM = 2**16  # cells of the plan
_USELESS = np.log(1e8)  # a unit that weighs so much more than the answer carries nothing


def certified_bound(
    first: FloatArray, second: FloatArray, costs: FloatArray, *, additions: int = 0
) -> float:
    """Return a certified upper bound on log max {P·g : Q·g = 1, g_k ≤ e^{c_kl} g_l, g ≥ 0}.

    Parameters
    ----------
    first, second
        The laws P and Q of the database under the two secrets; each sums to 1.
    costs
        c_kl in nats, from atom k of P to atom l of Q, at least 0; inf where nothing is known.
    additions
        Bound on the rounded operations behind each probability and cost.

    Returns
    -------
    float
        Above the optimum by no more than the tolerance of the solver (about 1e-7), never below;
        never above the largest cost between the two laws.

    Examples
    --------
    Randomised response about one of two persons who agree with probability 0.75.

    >>> law = np.array([0.75, 0.25])
    >>> hamming = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> round(certified_bound(law, law[::-1], hamming * np.log(3.0)), 6)
    1.609438
    """
    here, there = np.flatnonzero(first > 0), np.flatnonzero(second > 0)
    kept = costs[np.ix_(here, there)]
    log_first, log_second = np.log(first[here]), np.log(second[there])
    largest = float(kept.max())
    sizes = float(np.abs(log_first).max() + np.abs(log_second).max())
    error = 8 * UNIT_ROUNDOFF * (additions + len(here) + len(there) + 16) * (1 + largest + sizes)
    group = largest + error
    if kept.size > LARGEST_PROGRAM or not np.isfinite(group):
        return group
    plan = transport(log_first, log_second, kept)
    return float(min(group, coupling_value(plan, log_first, log_second, kept) + error))


def coupling_value(
    plan: FloatArray, log_first: FloatArray, log_second: FloatArray, costs: FloatArray
) -> float:
    """Return log max_l Σ_k P_k ρ_kl e^{c_kl}/Q_l for a plan ρ whose rows sum to 1."""
    with np.errstate(divide="ignore"):
        log_plan = np.log(plan)
    loads = logsumexp(log_plan + log_first[:, np.newaxis] + costs, axis=0)
    return float(np.max(loads - log_second))


def transport(log_first: FloatArray, log_second: FloatArray, costs: FloatArray) -> FloatArray:
    """Return a good plan: where each atom of P goes, rows summing to 1.

    Columns that weigh 1e8 times the answer are left out, and all are measured in units of the
    answer that the plan of least cost gives, so that the solver sees numbers near 1.
    """
    nearest = np.zeros_like(costs)
    nearest[np.arange(len(costs)), costs.argmin(axis=1)] = 1.0
    independent = np.broadcast_to(np.exp(log_second - logsumexp(log_second)), costs.shape)
    plans = [nearest, independent]
    values = [coupling_value(plan, log_first, log_second, costs) for plan in plans]
    log_weights = log_first[:, np.newaxis] + costs - log_second - min(values)
    usable = (log_weights <= _USELESS) | (nearest > 0)
    rows, columns = np.nonzero(usable)
    number = len(rows)
    variables = np.arange(number)
    weights = np.exp(np.minimum(log_weights[rows, columns], 300.0))
    loads = csr_array(
        (
            np.concatenate([weights, -np.ones(len(log_second))]),
            (
                np.concatenate([columns, np.arange(len(log_second))]),
                np.concatenate([variables, np.full(len(log_second), number)]),
            ),
        ),
        shape=(len(log_second), number + 1),
    )
    sums = csr_array((np.ones(number), (rows, variables)), shape=(len(costs), number + 1))
    objective = np.zeros(number + 1)
    objective[-1] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a poor plan is still a proof
        solved = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
            objective,
            A_ub=loads,
            b_ub=np.zeros(len(log_second)),
            A_eq=sums,
            b_eq=np.ones(len(costs)),
            method="highs",
        )
    if solved.x is not None:
        plan = np.zeros_like(costs)
        plan[rows, columns] = np.maximum(solved.x[:-1], 0.0)
        plan = np.where(plan.sum(axis=1, keepdims=True) > 0.5, plan, nearest)
        plans.append(plan / plan.sum(axis=1, keepdims=True))
        values.append(coupling_value(plans[-1], log_first, log_second, costs))
    return np.asarray(plans[int(np.argmin(values))])
