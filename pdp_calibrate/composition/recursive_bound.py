"""A bound on every adversary of a table at once, one unknown tuple after the other.

Let h(x_i, x_j) be the likelihood averaged over all unknown tuples but x_j. Then

    E[g | x_i] = Σ_{x_j} P(x_j | x_i)·h(x_i, x_j) ≤ e^A · Σ_{x_j} P(x_j | x_i)·h(x_i', x_j),

with A what x_i leaks once x_j is known too, and h(x_i', ·) varies by no more than what x_j leaks
once x_i' is known. Both have one unknown tuple fewer, so bounds on small unknown sets carry over to
large ones; the tuple that gives the smallest bound is chosen. The law given an impossible event may
be chosen freely, and the group bound holds for any choice.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.lipschitz import spread_bounds
from pdp_calibrate.core.rounding import rounded_up

Case = tuple[int, tuple[int, ...]]
"""A target and the unknown tuples, in ascending order."""


def peeled_bounds(
    probabilities: FloatArray, answers: FloatArray, dp_epsilon: float
) -> dict[Case, FloatArray]:
    """Bound every adversary by recursion on the number of unknown tuples.

    Parameters
    ----------
    probabilities
        The joint table.
    answers
        The answer in every cell in units of the noise, with an axis of coordinates behind.
    dp_epsilon
        The plain-DP budget of whatever else was released.

    Returns
    -------
    dict
        For each target and unknown set a certified bound for every value of the known tuples (in
        ascending order) and every two secrets; 0 where a secret cannot occur.

    Examples
    --------
    >>> pair = np.array([[0.375, 0.125], [0.125, 0.375]])
    >>> bounds = peeled_bounds(pair, np.zeros((2, 2, 1)), np.log(3.0))
    >>> round(float(bounds[0, (1,)].max()), 6)
    1.609438
    """
    tuples = probabilities.ndim
    found: dict[Case, FloatArray] = {}
    for size in range(tuples):
        for target in range(tuples):
            others = [place for place in range(tuples) if place != target]
            for unknown in combinations(others, size):
                case = target, unknown
                found[case] = _peel(probabilities, answers, dp_epsilon, case, found)
    return {case: np.where(_possible(probabilities, case), b, 0.0) for case, b in found.items()}


def _peel(
    probabilities: FloatArray,
    answers: FloatArray,
    dp_epsilon: float,
    case: Case,
    found: dict[Case, FloatArray],
) -> FloatArray:
    target, unknown = case
    group = _group(answers, case, dp_epsilon)
    if not unknown:
        return group
    known = [place for place in range(probabilities.ndim) if place not in (target, *unknown)]
    best = group
    for place in unknown:
        rest = tuple(other for other in unknown if other != place)
        masses = probabilities.sum(axis=rest)
        left = sorted([*known, target, place])
        masses = masses.transpose([left.index(axis) for axis in (*known, target, place)])
        totals = masses.sum(axis=-1, keepdims=True)
        laws = masses / np.where(totals > 0, totals, 1.0)
        one, other = laws[..., :, np.newaxis, :], laws[..., np.newaxis, :, :]
        counts = (one > 0) | (other > 0)
        about_target = np.moveaxis(found[target, rest], sorted([*known, place]).index(place), -1)
        about_place = np.moveaxis(found[place, rest], sorted([*known, target]).index(target), -3)
        varies = np.where(
            counts[..., :, np.newaxis] & counts[..., np.newaxis, :],
            about_place[..., np.newaxis, :, :, :],
            0.0,
        ).max(axis=(-2, -1))
        moved = spread_bounds(
            np.broadcast_to(one, counts.shape),
            np.broadcast_to(other, counts.shape),
            varies,
            additions=2 * math.prod(probabilities.shape[other] for other in unknown) + 8,
        )
        own = np.where(one > 0, about_target, 0.0).max(axis=-1)
        best = np.minimum(best, rounded_up(own + moved, 7))
    return np.where(_possible(probabilities, case), best, group)


def _possible(probabilities: FloatArray, case: Case) -> npt.NDArray[np.bool_]:
    """Whether both secrets can occur with what is known; knowing everyone else, all count."""
    target, unknown = case
    masses = probabilities.sum(axis=unknown) if unknown else np.ones_like(probabilities)
    left = [place for place in range(probabilities.ndim) if place not in unknown]
    likely = np.moveaxis(masses, left.index(target), -1) > 0
    return np.asarray(likely[..., :, np.newaxis] & likely[..., np.newaxis, :])


def _group(answers: FloatArray, case: Case, dp_epsilon: float) -> FloatArray:
    """Return how far target and unknown tuples can move the likelihood, whatever their law."""
    target, unknown = case
    left = [place for place in range(answers.ndim - 1) if place not in unknown]
    where = left.index(target)
    # Between two boxes of answers the L1 distance is largest at opposite corners.
    low = np.moveaxis(answers.min(axis=unknown) if unknown else answers, where, -2)
    high = np.moveaxis(answers.max(axis=unknown) if unknown else answers, where, -2)
    apart = np.maximum(
        high[..., :, np.newaxis, :] - low[..., np.newaxis, :, :],
        high[..., np.newaxis, :, :] - low[..., :, np.newaxis, :],
    ).sum(axis=-1)
    differ = dp_epsilon * (len(unknown) + 1 - np.eye(apart.shape[-1]) * (not unknown))
    return np.asarray(rounded_up(apart + differ, 7))
