"""Reference for Gaussian noise: the gain of precision, one adversary after the other.

Written from the definition and sharing nothing with the package. Everything is read off the joint
covariance of the tuples and the noisy answers by solving linear equations; δ is an integral over
the answer of how far one density exceeds e^ε times the other.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from tests.oracles.adversaries import Admits, every_adversary, everyone
from tests.oracles.gaussian import Matrix


def joint(covariance: Matrix, rows: Matrix, deviations: Sequence[float]) -> Matrix:
    """Covariance of the tuples and of the answers with their noise."""
    cross = rows @ covariance
    noisy = cross @ rows.T + np.diag(np.square(deviations))
    return np.block([[covariance, cross.T], [cross, noisy]])


def left_over(matrix: Matrix, place: int, given: Sequence[int]) -> float:
    """Variance of one coordinate given others."""
    if not given:
        return float(matrix[place, place])
    cross = matrix[np.ix_(given, [place])]
    return float(
        matrix[place, place]
        - (cross.T @ np.linalg.solve(matrix[np.ix_(given, given)], cross))[0, 0]
    )


def gain(
    covariance: Matrix,
    rows: Matrix,
    deviations: Sequence[float],
    target: int,
    known: Sequence[int],
    after: int = 0,
) -> float:
    """How much the target's precision grows by the answers, given the first `after` of them."""
    whole = joint(covariance, rows, deviations)
    size = len(covariance)
    answers = list(range(size, size + len(rows)))
    before = left_over(whole, target, [*known, *answers[:after]])
    behind = left_over(whole, target, [*known, *answers])
    return 1 / behind - 1 / before


def worst(
    covariance: Matrix,
    rows: Matrix,
    deviations: Sequence[float],
    widths: Sequence[float],
    admits: Admits = everyone,
) -> tuple[float, int, tuple[int, ...]]:
    """Return the largest μ² with its target and known set."""
    return max(
        (widths[target] ** 2 * gain(covariance, rows, deviations, target, known), target, known)
        for target, known in every_adversary(len(covariance), admits)
    )


def gain_mpmath(
    covariance: Matrix,
    rows: Matrix,
    deviations: Sequence[float],
    target: int,
    known: Sequence[int],
    digits: int = 50,
) -> Any:
    """The gain in many digits, inputs taken as exact."""
    with mpmath.workdps(digits):
        sigma, weights = mpmath.matrix(covariance.tolist()), mpmath.matrix(rows.tolist())
        cross = weights * sigma
        noisy = cross * weights.T
        for place, deviation in enumerate(deviations):
            noisy[place, place] += mpmath.mpf(deviation) ** 2
        size, number = len(covariance), len(rows)
        whole = mpmath.zeros(size + number)
        for r, c in itertools.product(range(size + number), repeat=2):
            if r < size and c < size:
                whole[r, c] = sigma[r, c]
            elif r >= size and c >= size:
                whole[r, c] = noisy[r - size, c - size]
            else:
                whole[r, c] = cross[max(r, c) - size, min(r, c)]

        def left(given: list[int]) -> Any:
            if not given:
                return whole[target, target]
            inner = mpmath.matrix([[whole[r, c] for c in given] for r in given])
            side = mpmath.matrix([whole[r, target] for r in given])
            solution = mpmath.lu_solve(inner, side)
            return whole[target, target] - mpmath.fsum(
                a * b for a, b in zip(side, solution, strict=True)
            )

        before = left(list(known))
        return 1 / left([*known, *range(size, size + number)]) - 1 / before


def level_mpmath(
    covariance: Matrix,
    rows: Matrix,
    deviations: Sequence[float],
    target: int,
    known: Sequence[int],
    width: float,
) -> Any:
    """μ of one adversary in 50 digits, the width of the target's range taken as exact."""
    with mpmath.workdps(50):
        found = gain_mpmath(covariance, rows, deviations, target, known)
        return mpmath.sqrt(found) * mpmath.mpf(float(width))


def delta_by_quadrature(
    covariance: Matrix,
    weights: Matrix,
    deviation: float,
    target: int,
    known: Sequence[int],
    width: float,
    epsilon: float,
) -> float:
    """δ of one answer for two secrets `width` apart, known values at their means.

    The answer given (x_i, x_K) is normal: its mean by regression, its variance what is left over.
    """
    whole = joint(covariance, weights[np.newaxis], [deviation])
    given = [target, *known]
    inner = whole[np.ix_(given, given)]
    coefficients = np.linalg.solve(inner, whole[np.ix_(given, [len(covariance)])])[:, 0]
    spread = math.sqrt(left_over(whole, len(covariance), given))
    shift = abs(float(coefficients[0])) * width
    grid = np.linspace(-40, 40, 80_001) * spread + shift / 2
    step = grid[1] - grid[0]
    unit = 1 / (spread * math.sqrt(2 * math.pi))
    one = unit * np.exp(-(((grid - shift) / spread) ** 2) / 2)
    other = unit * np.exp(-((grid / spread) ** 2) / 2)
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * step)
