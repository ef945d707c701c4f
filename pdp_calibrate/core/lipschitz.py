"""How well any slowly changing likelihood can distinguish two priors.

Theorem 13 (docs/theory).

Whatever is released, its likelihood g(k) given database (or atom) k obeys g_k ≤ e^{c_kl}·g_l, where
c_kl is the distance of the answers in units of the noise, or ε times the Hamming distance for any
ε-DP mechanism, whatever is inside. So an output favours prior P over prior Q by at most

    log max { P·g : Q·g = 1, g_k ≤ e^{c_kl}·g_l, g ≥ 0 }
        ≤ log max over l of  Σ_k π_kl·e^{c_kl} / Q_l     for every π ≥ 0 with row sums P:

P·g = Σ_kl π_kl·g_k ≤ Σ_l g_l·Σ_k π_kl·e^{c_kl}. The best π is a linear program; whatever the solver
returns is only a proposal, clipped, given the right row sums and evaluated here in log space, so a
bad solution costs tightness, never soundness. Solving for g instead would fail on the unsafe side.

`lipschitz_bound` is for any costs, `spread_bounds` a closed form that only uses how far the
likelihood can vary overall. Costs along a line need no solver: see `core.line_program`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import TRANSPORT_DUST, TRANSPORT_REACH, TRANSPORT_SIGHT

_NEARLY_DEAREST = 1e-6  # relative difference of two prices that may be the solver's tolerance
_RIDGE = 1e-12  # keeps singular systems of equations solvable
_REFINEMENTS = 3
_BALANCED = 300  # rows and columns together: beyond, balancing would take longer than solving
_HIGHEST = 690.0  # logarithms of prices that are far from overflow


def lipschitz_bound(
    numerator: FloatArray,
    denominator: FloatArray,
    costs: FloatArray,
    *,
    ceiling: float | None = None,
) -> float:
    """Return a certified upper bound on how well two priors can be distinguished, in nats.

    Parameters
    ----------
    numerator, denominator
        Probability vectors P and Q, over databases or atoms k and l.
    costs
        c_kl ≥ 0 in nats, shape (len(P), len(Q)). Symmetry and triangle inequality are not needed.
    ceiling
        An upper bound that is already certified; it replaces W∞, which is slower.

    Returns
    -------
    float
        At most the W∞ distance of P and Q in the cost c, which is at most its largest entry; at
        most the ceiling, if one is given.

    Examples
    --------
    Two people who always agree: their databases 00 and 11 lie two changes apart.

    >>> apart = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> round(lipschitz_bound(np.array([1.0, 0.0]), np.array([0.0, 1.0]), apart), 9)
    2.0
    """
    rows, columns = np.flatnonzero(numerator > 0), np.flatnonzero(denominator > 0)
    supply, demand = numerator[rows], denominator[columns]
    cost = np.asarray(costs, dtype=np.float64)[np.ix_(rows, columns)]
    if ceiling is None:
        needed, coupling = _bottleneck(supply, demand, cost)
        best = _certified(coupling, supply, demand, cost)
    else:
        needed = best = ceiling
    # A solver sees prices e^{c − level} only within some thirty nats of the level: halve the range
    # of levels until the optimum must be among them, then solve once more around the best so far.
    low, high = 0.0, needed
    while high - low > TRANSPORT_SIGHT:
        level = (low + high) / 2
        if not low < level < high:  # neighbouring floats: costs too large to resolve nats
            break
        found = _solved(supply, demand, cost, level)
        best = min(best, found)
        low, high = (low, min(level, best)) if found <= level + 1 else (level, min(high, best))
    plan = proposed_plan(supply, demand, cost, high)
    if plan is None:
        return best
    best = min(best, _certified(plan, supply, demand, cost))
    if sum(cost.shape) > _BALANCED:
        return best
    return min(best, _certified(_balanced(plan, supply, demand, cost), supply, demand, cost))


def _solved(supply: FloatArray, demand: FloatArray, cost: FloatArray, level: float) -> float:
    """Return the certified value of the solver's proposal around this level."""
    proposal = proposed_plan(supply, demand, cost, level)
    return np.inf if proposal is None else _certified(proposal, supply, demand, cost)


def _balanced(
    plan: FloatArray, supply: FloatArray, demand: FloatArray, cost: FloatArray
) -> FloatArray:
    """Return nearly the same plan, in which the highest prices of all l agree to the last digits.

    A solver stops where they agree to some 1e-12, and the largest of them is the bound. The masses
    that are moved are scaled, by the smallest relative changes that preserve the row sums.
    """
    moved = plan.sum(axis=1, keepdims=True)
    if not moved.min() > 0:  # the solver lost a row
        return plan
    shares = plan / moved
    log_prices = np.log(supply)[:, np.newaxis] + cost - np.log(demand)
    rows, columns = np.nonzero(shares > TRANSPORT_DUST)
    share, log_price = shares[rows, columns], log_prices[rows, columns]
    paid = share * np.exp(log_price - log_price.max())
    for_each = np.bincount(columns, weights=paid, minlength=len(demand))
    paid /= for_each.max()
    dearest = np.flatnonzero(for_each > (1 - _NEARLY_DEAREST) * for_each.max())
    place = np.full(len(demand), len(dearest))
    place[dearest] = np.arange(len(dearest))
    moves, lines = np.arange(len(rows)), len(supply) + len(dearest)
    system = np.zeros((lines + 1, len(rows) + 1))  # the last line, for all other l, is not used
    system[rows, moves] = share
    system[len(supply) + place[columns], moves] = paid
    system = system[:-1]
    system[len(supply) :, -1] = -1.0  # the price that they have in common
    wanted = np.concatenate([np.ones(len(supply)), np.zeros(len(dearest))])
    factors = np.ones(len(rows) + 1)
    # With the ridge the system has a solution even if a plan can be balanced in several ways.
    inverse = np.linalg.inv(system @ system.T + _RIDGE * np.eye(lines))
    for _ in range(_REFINEMENTS):
        factors += system.T @ (inverse @ (wanted - system @ factors))
    balanced = np.zeros(plan.shape)
    balanced[rows, columns] = share * np.maximum(factors[:-1], 0.0)
    return balanced


def _certified(
    coupling: FloatArray, supply: FloatArray, demand: FloatArray, cost: FloatArray
) -> float:
    """Evaluate a proposal: clip, renormalise, log max_l Σ_k π_kl·e^{c_kl}/Q_l, rounded up."""
    peaks = coupling.max(axis=1)
    coupling = np.where(coupling > TRANSPORT_DUST * peaks[:, np.newaxis], coupling, 0.0)
    coupling[peaks <= 0] = demand  # rows that the solver lost are distributed like Q
    # Shares of rows, in logarithms: times the rarest rows they might underflow.
    coupling /= coupling.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_terms = np.log(coupling) + np.log(supply)[:, np.newaxis] + cost
        peaks = log_terms.max(axis=0)
        peaks[np.isneginf(peaks)] = 0.0  # nothing is moved there
        log_ratios = peaks + np.log(np.exp(log_terms - peaks).sum(axis=0)) - np.log(demand)
    largest = float(np.max(log_ratios))
    # Each logarithm and exponent errs by a few roundings of its own size, each sum by one per term;
    # nothing cancels except in the final difference.
    rarest = min(float(demand.min()), float(supply.min()))
    size = 1 + float(cost.max()) - 2 * math.log(rarest)
    return max(0.0, largest) + 8 * (sum(cost.shape) + 8) * UNIT_ROUNDOFF * size


def _bottleneck(
    supply: FloatArray, demand: FloatArray, cost: FloatArray
) -> tuple[float, FloatArray]:
    """Return the smallest cost that suffices to move P onto Q, and such a plan."""
    levels = np.unique(cost)
    low, high = 0, len(levels) - 1
    plan = np.outer(supply, demand) / demand.sum()
    while low < high:
        middle = (low + high) // 2
        found = _plan_within(supply, demand, cost <= levels[middle])
        if found is None:
            low = middle + 1
        else:
            high, plan = middle, found
    return float(levels[low]), plan


def _plan_within(
    supply: FloatArray, demand: FloatArray, allowed: npt.NDArray[np.bool_]
) -> FloatArray | None:
    """Move P onto Q along allowed pairs only, by maximum flow; None if that is impossible."""
    if not (allowed.any(axis=1).all() and allowed.any(axis=0).all()):
        return None
    from_row, to_column = np.nonzero(allowed)
    result = scipy.optimize.linprog(
        -np.ones(len(from_row)),
        A_ub=_incidence(from_row, to_column, allowed.shape),
        b_ub=np.concatenate([supply, demand]),
        method="highs",
    )
    # A plan that misses some mass is completed by the caller at full price: never unsound.
    if result.x is None or result.x.sum() < supply.sum() * (1 - 1e-9):
        return None
    plan = np.zeros(allowed.shape)
    plan[from_row, to_column] = result.x
    return plan


def proposed_plan(
    supply: FloatArray, demand: FloatArray, cost: FloatArray, level: float
) -> FloatArray | None:
    """Ask the solver for the best π, with prices in units of e^level so that they fit in floats."""
    affordable = cost <= level + TRANSPORT_REACH
    if not affordable.any(axis=1).all():
        return None
    from_row, to_column = np.nonzero(affordable)
    number, (rows, columns) = len(from_row), cost.shape
    relative, wanted = cost[from_row, to_column] - level, demand[to_column]
    log_prices = relative - np.log(wanted)
    if log_prices.max() > _HIGHEST:
        return None
    # A quotient errs by two roundings, the exponential of a logarithm by as many as that is large;
    # it is needed where the numerator alone would underflow.
    prices = np.exp(relative) / wanted if relative.min() > -_HIGHEST else np.exp(log_prices)
    moves = np.arange(number)
    total = np.full(columns, number)  # the last variable: the largest price paid for any l
    limit: Any = scipy.sparse.csr_array(
        (
            np.concatenate([prices, -np.ones(columns)]),
            (
                np.concatenate([to_column, np.arange(columns)]),
                np.concatenate([moves, total]),
            ),
        ),
        shape=(columns, number + 1),
    )
    sums: Any = scipy.sparse.csr_array(
        (np.ones(number), (from_row, moves)), shape=(rows, number + 1)
    )
    result = scipy.optimize.linprog(
        np.concatenate([np.zeros(number), [1.0]]),
        A_ub=limit,
        b_ub=np.zeros(columns),
        A_eq=sums,
        b_eq=supply,
        method="highs",
    )
    if result.x is None:
        return None
    plan = np.zeros(cost.shape)
    plan[from_row, to_column] = result.x[:-1]
    return plan


def _incidence(
    from_row: npt.NDArray[np.intp], to_column: npt.NDArray[np.intp], shape: tuple[int, ...]
) -> Any:  # the solver takes sparse matrices, but its type stubs do not say so
    number = np.arange(len(from_row))
    ends = np.concatenate([from_row, shape[0] + to_column])
    ones = np.ones(2 * len(from_row))
    return scipy.sparse.csr_array(
        (ones, (ends, np.concatenate([number, number]))), shape=(sum(shape), len(from_row))
    )


_LARGEST = 600.0  # e^600 is far from overflow


def spread_bounds(
    first: FloatArray, second: FloatArray, spread: FloatArray | float, *, additions: int
) -> FloatArray:
    """Bound log max P·g/Q·g over all g ≥ 0 whose logarithm varies by at most `spread`.

    The best such g takes two values, the larger one where P/Q is largest, so one sort finds

        max over A of (1 + (e^D − 1)·P(A)) / (1 + (e^D − 1)·Q(A)).

    Parameters
    ----------
    first, second
        The laws P and Q on common atoms, shape (…, atoms).
    spread
        D for each pair of laws, shape (…) or one for all.
    additions
        Bound on the rounded operations behind each probability.

    Returns
    -------
    FloatArray
        One bound per pair, never above D, rounding included.

    Examples
    --------
    >>> p, q = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    >>> spread_bounds(p, q, np.log(3.0), additions=2).round(6).tolist()
    [0.510826]
    """
    wide = np.broadcast_to(np.asarray(spread, dtype=np.float64), first.shape[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(first > 0, first / second, -1.0)
    order = np.argsort(-ratios, axis=-1, kind="stable")
    hits = np.cumsum(np.take_along_axis(first, order, axis=-1), axis=-1)
    alarms = np.cumsum(np.take_along_axis(second, order, axis=-1), axis=-1)
    factor = np.expm1(np.minimum(wide, _LARGEST))[..., np.newaxis]
    logs = np.log1p(factor * hits) - np.log1p(factor * alarms)
    found = np.maximum(logs.max(axis=-1), 0.0)
    # A likelihood of any shape is bounded by the largest P/Q, so a cut at e^600 loses nothing
    # but the case in which D itself is larger still.
    cut = np.where(wide > _LARGEST, wide - _LARGEST, 0.0)
    roundings = 8 * (first.shape[-1] + additions + 16) * UNIT_ROUNDOFF
    return np.asarray(np.minimum((found + cut) * (1 + roundings) + roundings, wide))
