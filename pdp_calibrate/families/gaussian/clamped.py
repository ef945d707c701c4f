"""Answers that add clamped values of Gaussian tuples.

Theorem 15 (docs/theory).

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
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.gaussian.blocks import Block
from pdp_calibrate.families.gaussian.branch_and_bound import BlockSearch, branch_and_bound_clamped
from pdp_calibrate.families.gaussian.instance import Instance, arranged
from pdp_calibrate.families.gaussian.regression import Regression, found_from


def bracket_clamped(
    problem: Problem, weights: FloatArray, block: Block, *, incumbent: float, deadline: float
) -> Bracket:
    """Bound the leakage of a clamped answer for every admitted adversary of one block.

    The lower end is that of the strongest adversary (plain DP), where an admitted adversary knows
    all other tuples of the block: then only the target's clamped value moves. Otherwise it is 0.
    """
    found = _worst(block, incumbent=incumbent, deadline=deadline)
    return _found(problem, weights, block, found)


def coupled(
    instance: Instance, target: int, known: Sequence[int], *, tau: float
) -> tuple[float, float]:
    """Return the bound for one adversary, as computed and rounded up."""
    unknown = [k for k in range(instance.size) if k != target and k not in set(known)]
    weights, factors = np.abs(instance.coordinates[0]), instance.factors
    own = float(weights[target])
    order = [*known, target, *unknown]
    lower = np.linalg.cholesky(arranged(instance.covariance, order))
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


def _worst(block: Block, *, incumbent: float, deadline: float) -> BlockSearch:
    instance = block.instance
    if block.known is None and instance.most > 0 and instance.fewest < instance.size - 1:
        return branch_and_bound_clamped(
            instance,
            block.precision,
            tau=block.search_tau,
            incumbent=incumbent,
            deadline=deadline,
        )
    found = []
    for target in instance.targets:
        others = tuple(k for k in range(instance.size) if k != target)
        known = others[: instance.fewest] if block.known is None else block.known
        value, upper = coupled(instance, target, known, tau=block.tau)
        found.append(BlockSearch(upper=upper, best=value, target=target, known=known, visited=1))
    return max(found, key=lambda one: one.upper)


def _found(
    problem: Problem,
    weights: FloatArray,
    block: Block,
    bracket: BlockSearch,
) -> Bracket:
    instance, positions = block.instance, block.positions
    one = np.ones(1)
    nothing = Regression(value=bracket.upper, lower=0.0, signs=one)
    found = found_from(
        problem,
        weights,
        positions,
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
    sign = np.sign(np.column_stack(problem.contributions.weights or ())[:1, positions[target]])
    strongest = Regression(value=floor, lower=floor, signs=np.where(sign == 0, 1.0, sign))
    others = [place for place in range(instance.size) if place != target]
    return found.with_lower(
        found_from(problem, weights, positions, target, others, strongest, upper=bracket.upper)
    )
