"""Answers that add clamped values of Gaussian tuples.

The closed form of a linear answer is no bound once values are clamped. Instead couple the unknown
tuples under the two secrets: given x_K, moving x_i by δ moves x_u by β_{u·i|K}·δ, its clamped
value by no more than that and by no more than its range. So

    l(i,K) ≤ (1/λ)·( |a_i|·M_i + Σ_u |a_u|·min(M_u, |β_{u·i|K}|·M_i) ),

for secrets inside the public range. It is never above the group bound, and equals the linear
closed form where all terms have one sign and none reaches its cap. Over all K each term is bounded
by the sphere bound of f = x_u with the open tuples other than u.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.errors import PdpError
from pdp_calibrate.families.gaussian.branch_and_bound import BlockSearch, explored
from pdp_calibrate.families.gaussian.instance import (
    Instance,
    checked_tau,
    precision_of,
    search_tau,
    tau_of,
)
from pdp_calibrate.families.gaussian.regression import Regression, found_from
from pdp_calibrate.families.gaussian.search import blocks_of, instance_of


def search_clamped(
    problem: Problem, weights: FloatArray, *, incumbent: float, deadline: float
) -> Bracket:
    """Bound the leakage of a clamped answer for every admitted adversary.

    The lower end is the strongest adversary's, plain DP, where someone admitted knows everyone
    else in the block: then no clamped value but the target's moves. Otherwise it is 0.
    """
    together = np.abs(weights).sum(axis=0, keepdims=True)  # bounds add up over coordinates
    best: Bracket | None = None
    for block in blocks_of(problem):
        instance = instance_of(problem, together, block, functions=len(problem.model.names))
        if instance is None:
            continue
        threshold = max(incumbent, best.upper) if best else incumbent
        bracket = _worst(problem, instance, block, incumbent=threshold, deadline=deadline)
        found = _found(problem, together, instance, block, bracket)
        best = found if best is None else best.or_worse(found)
    if best is None:
        raise PdpError("no adversary of the set attacks a tuple of this model.")
    return best


def coupled(
    instance: Instance, target: int, known: Sequence[int], *, tau: float
) -> tuple[float, float]:
    """Return the bound for one adversary, as computed and rounded up."""
    unknown = [k for k in range(instance.size) if k != target and k not in set(known)]
    weights, factors = np.abs(instance.coordinates[0]), instance.factors
    own = float(weights[target])
    order = [*known, target, *unknown]
    lower = np.linalg.cholesky(instance.covariance[np.ix_(order, order)])
    place = len(known)
    slopes = np.abs(lower[place + 1 :, place]) / lower[place, place]
    ratios = np.linalg.norm(lower[place + 1 :, place + 1 :], axis=1) / lower[place, place]
    multiplier = instance.multipliers[place]
    moves = slopes + multiplier * ratios
    errors = 2 * tau * (1 + multiplier) * np.hypot(slopes, ratios)
    caps = factors[unknown] / factors[target] * (1 + 4 * UNIT_ROUNDOFF)
    value = own + float(weights[unknown] @ np.minimum(caps, moves))
    upper = own + float(weights[unknown] @ np.minimum(caps, moves + errors))
    rounding = 1 + 4 * (instance.size + 4) * UNIT_ROUNDOFF
    return value * float(factors[target]), upper * float(factors[target]) * rounding


def _worst(
    problem: Problem, instance: Instance, block: list[int], *, incumbent: float, deadline: float
) -> BlockSearch:
    named = problem.knowledge.known
    if named is not None or instance.most == 0 or instance.fewest == instance.size - 1:
        tau = checked_tau(tau_of(instance.covariance, 1))
        worst: BlockSearch | None = None
        for target in instance.targets:
            if named is not None:
                known = tuple(k for k, position in enumerate(block) if position in named)
            else:
                others = [k for k in range(instance.size) if k != target]
                known = tuple(others[: instance.fewest])
            value, upper = coupled(instance, target, known, tau=tau)
            if worst is None or upper > worst.upper:
                worst = BlockSearch(upper=upper, best=value, target=target, known=known, visited=1)
        if worst is not None:
            return worst
    precision = precision_of(instance)
    tau = search_tau(instance, precision)
    return _branched(instance, precision, tau=tau, incumbent=incumbent, deadline=deadline)


def _branched(
    instance: Instance, precision: FloatArray, *, tau: float, incumbent: float, deadline: float
) -> BlockSearch:
    from pdp_calibrate.families.gaussian import clamped_kernels

    targets = np.array(instance.targets, dtype=np.int64)
    # Before anything is decided the group bound holds: everyone moves over the whole range.
    together = float(np.abs(instance.coordinates[0]) @ instance.factors) * (1 + 1e-12)
    return explored(
        clamped_kernels.advance,
        instance,
        (
            instance.covariance,
            precision,
            instance.coordinates[0],
            instance.factors,
            targets,
        ),
        keys=np.full(len(targets), together),
        targets=targets,
        tau=tau,
        incumbent=incumbent,
        deadline=deadline,
    )


def _found(
    problem: Problem,
    weights: FloatArray,
    instance: Instance,
    block: list[int],
    bracket: BlockSearch,
) -> Bracket:
    one = np.ones(1)
    nothing = Regression(value=bracket.upper, lower=0.0, signs=one)
    found = found_from(
        problem,
        weights,
        block,
        bracket.target,
        bracket.known,
        nothing,
        upper=bracket.upper,
        attained=False,
    )
    if instance.most < instance.size - 1:
        return found
    floors = np.abs(instance.coordinates[0]) * instance.factors
    target = max(instance.targets, key=lambda place: float(floors[place]))
    floor = float(floors[target]) * (1 - 32 * UNIT_ROUNDOFF)
    sign = np.sign(np.column_stack(problem.contributions.weights or ())[:1, block[target]])
    strongest = Regression(value=floor, lower=floor, signs=np.where(sign == 0, 1.0, sign))
    others = [place for place in range(len(block)) if place != target]
    return found.with_lower(
        found_from(problem, weights, block, target, others, strongest, upper=bracket.upper)
    )
