"""Who attains a leakage, in the user's names and units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pdp_calibrate.adversaries import Witness
from pdp_calibrate.engines.gaussian.bands import multipliers_of
from pdp_calibrate.engines.gaussian.regression import Regression
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.errors import ModelError
from pdp_calibrate.models import Gaussian, LoewnerBall, Model, SampledGaussian
from pdp_calibrate.models.base import FloatArray


def center_of(model: Model) -> Gaussian:
    """Return the Gaussian itself, or the one in the middle of a set."""
    if isinstance(model, LoewnerBall | SampledGaussian):
        return model.center
    if not isinstance(model, Gaussian):
        raise TypeError(f"the Gaussian engine searches Gaussian models, got {model!r}.")
    return model


def found_from(
    problem: Problem,
    weights: FloatArray,
    block: Sequence[int],
    target: int,
    known: Sequence[int],
    regression: Regression,
    *,
    upper: float,
    attained: bool = True,
) -> Found:
    """Describe what a search of one block found there, in positions of the whole problem."""
    target = block[target]
    everyone = filled(problem, block, [block[place] for place in known])
    return Found(
        value=upper,
        lower=min(regression.lower, upper),
        witness=witness_of(problem, weights, target, everyone, regression) if attained else None,
        target=target,
        unknown=tuple(
            k for k in range(problem.knowledge.total) if k != target and k not in everyone
        ),
    )


def filled(problem: Problem, block: Sequence[int], known: Sequence[int]) -> set[int]:
    """Add tuples of other blocks until as many are known as the adversaries must know.

    They are independent of the block searched, so knowing them changes no ratio.
    """
    if problem.knowledge.known is not None:
        return set(problem.knowledge.known)
    everyone = set(known)
    outside = [position for position in range(problem.knowledge.total) if position not in block]
    everyone.update(outside[: max(0, problem.knowledge.fewest - len(everyone))])
    return everyone


def witness_of(
    problem: Problem,
    weights: FloatArray,
    target: int,
    known: set[int],
    regression: Regression,
) -> Witness:
    """Name the adversary; the ratio is a limit, for outputs far below or far above.

    A large positive coefficient makes small answers speak for the lower end of the range.
    """
    center = center_of(problem.model)
    order = sorted(known)
    return Witness(
        target=problem.names[target],
        known={problem.names[k]: float(center.mean[k]) for k in order},
        secrets=center.bounds[target],
        output=-math.inf if regression.signs[0] > 0 else math.inf,
        model=_worst_member(problem.model, regression.signs, weights, target, order),
        index=problem.index,
    )


def _worst_member(
    model: Model, signs: FloatArray, weights: FloatArray, target: int, known: list[int]
) -> Model:
    """Return the Gaussian of a set under which this adversary learns most.

    In whitened coordinates of e, the residual of x_i given x_K, and y, the residual of f given
    both, add τ·[[−τ, ±√(1−τ²)], [±√(1−τ²), τ]] to the identity; nothing else changes.
    """
    if isinstance(model, Gaussian):
        return model
    center = center_of(model)
    slope = multipliers_of(model, functions=2 ** (len(weights) - 1))[len(known)]
    covariance = center.covariance
    order = [*known, target, *(k for k in range(len(covariance)) if k != target and k not in known)]
    lower = np.linalg.cholesky(covariance[np.ix_(order, order)])
    place = len(known)
    answers = lower.T @ (signs @ weights)[order]
    spread = float(np.linalg.norm(answers[place + 1 :]))
    if slope == 0 or spread == 0:
        return center
    tau = slope / math.hypot(1.0, slope)
    sign = math.copysign(math.sqrt((1 - tau) * (1 + tau)), answers[place])
    first = lower[:, place]
    second = lower[:, place + 1 :] @ (answers[place + 1 :] / spread)
    cross = np.outer(first, second)
    change = (
        -tau * np.outer(first, first) + sign * (cross + cross.T) + tau * np.outer(second, second)
    )
    moved = np.empty_like(covariance)
    moved[np.ix_(order, order)] = covariance[np.ix_(order, order)] + tau * change
    try:
        return Gaussian(
            covariance=moved,
            bounds=center.bounds,
            mean=center.mean,
            names=center.names,
            provenance=model.provenance,
        )
    except ModelError:  # a radius next to 1 makes the worst member singular
        return center
