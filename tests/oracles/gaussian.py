"""Reference for Gaussian leakage: plain regressions for one adversary after the other.

Written from the definition and sharing nothing with the package. Floats go through a generic
least-squares solver on a matrix square root; mpmath solves the normal equations in 40 digits.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from tests.oracles.adversaries import Admits, every_adversary, everyone

Matrix = npt.NDArray[np.float64]


def coefficient(
    covariance: Matrix, weights: Matrix, target: int, known: Sequence[int]
) -> tuple[float, float]:
    """Coefficient of x_i in the regression of f on (x_i, x_K), and √(Var(f|i,K)/Var(i|K))."""
    return _coefficient(_as_vectors(covariance), weights, target, known)


def leakages(
    covariance: Matrix,
    weights: Matrix,
    widths: Matrix,
    scales: Sequence[float],
    multiplier: Callable[[int], float] = lambda _known: 0.0,
) -> dict[tuple[int, tuple[int, ...]], float]:
    """The leakage of every adversary; `weights` has one row per answer."""
    vectors = _as_vectors(covariance)
    patterns = [(1.0, *tail) for tail in itertools.product((1.0, -1.0), repeat=len(weights) - 1)]
    functions = [
        sum(sign / scale * row for sign, scale, row in zip(pattern, scales, weights, strict=True))
        for pattern in patterns
    ]
    found = {}
    for target, known in every_adversary(len(covariance), everyone):
        leak = 0.0
        for function in functions:
            extra = multiplier(len(known))
            slope, ratio = _coefficient(
                vectors, np.asarray(function), target, known, with_ratio=extra != 0
            )
            leak = max(leak, abs(slope) + extra * ratio)
        found[target, known] = leak * float(widths[target])
    return found


def clamped_bound(
    covariance: Matrix,
    weights: Matrix,
    widths: Matrix,
    target: int,
    known: Sequence[int],
    multiplier: Callable[[int], float] = lambda _known: 0.0,
) -> float:
    """|a_i|·M_i + Σ_u |a_u|·min(M_u, |β_ui|·M_i), each β from a regression of its own."""
    total = abs(weights[target]) * widths[target]
    for other in range(len(weights)):
        if other != target and other not in known:
            unit = np.eye(len(weights))[other]
            slope, ratio = coefficient(covariance, unit, target, known)
            moved = (abs(slope) + multiplier(len(known)) * ratio) * widths[target]
            total += abs(weights[other]) * min(widths[other], moved)
    return float(total)


def clamped_supremum(
    covariance: Matrix, weights: Matrix, width: float, target: int, known: Sequence[int]
) -> float:
    """Clamped answers under any means and any common variance: some follow, the others stand still.

    As the variance tends to 0 every unknown u is where its regression puts it, or at an end of its
    range if its mean lies far outside: all choices of who follows, over several answers' weights
    (answers × tuples, over their scales).
    """
    size = len(covariance)
    unknown = [other for other in range(size) if other != target and other not in known]
    moves = {
        u: coefficient(covariance, np.eye(size)[u], target, known)[0] * weights[:, u]
        for u in unknown
    }
    return width * max(
        float(np.abs(weights[:, target] + sum(moves[u] for u in follow)).sum())
        for count in range(len(unknown) + 1)
        for follow in itertools.combinations(unknown, count)
    )


@dataclass(frozen=True, kw_only=True)
class ClampedSum:
    """A sum of clamped values with noise of scale 1, for one adversary and what is known."""

    mean: Matrix
    covariance: Matrix
    bounds: tuple[float, float]
    weights: Matrix
    target: int
    known: Mapping[int, float]

    def log_ratios(self, outputs: Matrix, secrets: tuple[float, float]) -> Matrix:
        """log p(r | first secret, x_K) / p(r | second, x_K), by quadrature.

        The unknown are integrated out on a grid of standard normal coordinates.
        """
        points, masses = np.zeros((1, 0)), np.ones(1)
        grid = np.linspace(-6, 6, 61 if len(self._unknown) < 3 else 15)
        for _ in self._unknown:
            column = np.tile(grid, len(points))[:, None]
            points = np.hstack([np.repeat(points, len(grid), axis=0), column])
            masses = np.repeat(masses, len(grid)) * np.exp(-(column[:, 0] ** 2) / 2)
        first, second = (
            np.logaddexp.reduce(
                np.log(masses) - np.abs(outputs[:, None] - self._answers(secret, points)), axis=1
            )
            for secret in secrets
        )
        return np.asarray(first - second)

    def tail(self, secrets: tuple[float, float]) -> tuple[float, float]:
        """log E[e^{−S} | first] − log E[e^{−S} | second] of the sum S, and how exact that is.

        For up to three unknown tuples, on a grid of standard normal coordinates.
        """
        rest = len(self._unknown)
        number, close = {0: (1, 1e-7), 1: (20001, 1e-6), 2: (301, 1e-3), 3: (49, 0.1)}[rest]
        axes = np.meshgrid(*[np.linspace(-8, 8, number)] * rest, indexing="ij")
        points = np.stack([axis.ravel() for axis in axes], axis=1) if rest else np.zeros((1, 0))
        masses = -(points**2).sum(axis=1) / 2
        first, second = (
            float(np.logaddexp.reduce(masses - self._answers(secret, points))) for secret in secrets
        )
        return first - second, close

    @property
    def _unknown(self) -> list[int]:
        return [k for k in range(len(self.mean)) if k != self.target and k not in self.known]

    def _answers(self, secret: float, points: Matrix) -> Matrix:
        """The sum at standard normal coordinates of the unknown, given secret and known values."""
        given, rest = [self.target, *self.known], self._unknown
        held = np.array([secret, *self.known.values()])
        across = self.covariance[np.ix_(given, rest)]
        gain = np.linalg.solve(self.covariance[np.ix_(given, given)], across).T
        left = self.covariance[np.ix_(rest, rest)] - gain @ across
        centre = self.mean[rest] + gain @ (held - self.mean[given])
        others = centre + points @ np.linalg.cholesky(left).T if rest else points
        known = self.weights[given] @ np.clip(held, *self.bounds)
        return np.asarray(known + np.clip(others, *self.bounds) @ self.weights[rest])


def _as_vectors(covariance: Matrix) -> tuple[Matrix, Matrix]:
    """Tuples as columns of length 1 with the right angles, and their standard deviations."""
    deviations = np.sqrt(np.diagonal(covariance))
    correlation = covariance / deviations / deviations[:, np.newaxis]
    values, vectors = np.linalg.eigh(correlation)
    return np.sqrt(values)[:, np.newaxis] * vectors.T, deviations


def _coefficient(
    vectors: tuple[Matrix, Matrix],
    weights: Matrix,
    target: int,
    known: Sequence[int],
    *,
    with_ratio: bool = True,
) -> tuple[float, float]:
    draws, deviations = vectors
    answer = draws @ (weights * deviations)
    columns = [target, *known]
    solution, *_ = np.linalg.lstsq(draws[:, columns], answer, rcond=None)
    unit = float(deviations[target])
    slope = float(solution[0]) / unit
    if not with_ratio:
        return slope, 0.0
    rest = answer - draws[:, columns] @ solution
    own = draws[:, target]
    if known:
        others, *_ = np.linalg.lstsq(draws[:, columns[1:]], own, rcond=None)
        own = own - draws[:, columns[1:]] @ others
    spread = 0.0 if len(columns) == len(weights) else float(np.linalg.norm(rest))
    return slope, spread / float(np.linalg.norm(own)) / unit


def coefficient_mpmath(
    covariance: Matrix, weights: Matrix, target: int, known: Sequence[int]
) -> Any:
    """The coefficient from the normal equations, inputs taken as exact."""
    columns = [target, *known]
    size = len(weights)
    left = mpmath.matrix([[mpmath.mpf(covariance[r, c]) for c in columns] for r in columns])
    right = mpmath.matrix(
        [
            mpmath.fsum(mpmath.mpf(covariance[r, c]) * mpmath.mpf(weights[c]) for c in range(size))
            for r in columns
        ]
    )
    return mpmath.lu_solve(left, right)[0]


def worst_leakage_mpmath(
    covariance: Matrix,
    weights: Matrix,
    widths: Matrix,
    scale: float,
    admits: Admits = everyone,
    digits: int = 40,
) -> Any:
    """Largest leakage in 40 digits, for one answer."""
    with mpmath.workdps(digits):
        return max(
            abs(coefficient_mpmath(covariance, weights, target, known))
            * mpmath.mpf(widths[target])
            / mpmath.mpf(scale)
            for target, known in every_adversary(len(covariance), admits)
        )


def release_density(
    covariance: Matrix,
    weights: Matrix,
    scale: float,
    target: int,
    known: Sequence[int],
    secret: float,
    outputs: Matrix,
) -> Matrix:
    """Density of f + Laplace given x_i = secret and x_K = 0 (mean zero), by quadrature.

    Used with moderate numbers only: a trapezoid rule over the Gaussian, 40001 points.
    """
    columns = [target, *known]
    rest = [k for k in range(len(weights)) if k not in columns]
    given = np.array([secret] + [0.0] * len(known))
    inner = np.linalg.inv(covariance[np.ix_(columns, columns)])
    mean = float(weights[columns] @ given)
    spread = 0.0
    if rest:
        cross = covariance[np.ix_(rest, columns)] @ inner
        left = covariance[np.ix_(rest, rest)] - cross @ covariance[np.ix_(columns, rest)]
        mean += float(weights[rest] @ cross @ given)
        spread = math.sqrt(float(weights[rest] @ left @ weights[rest]))
    if spread == 0.0:
        return np.asarray(np.exp(-np.abs(outputs - mean) / scale) / (2 * scale))
    grid = np.linspace(-14, 14, 40001)
    mass = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi) * (grid[1] - grid[0])
    places = mean + spread * grid
    kernel = np.exp(-np.abs(outputs[:, np.newaxis] - places) / scale) / (2 * scale)
    return np.asarray(kernel @ mass)


def leakages_by_precision(
    precision: Matrix, weights: Matrix, widths: Matrix
) -> dict[tuple[int, tuple[int, ...]], float]:
    """The leakage of every adversary from the precision: |a_i − Ω_iU·Ω_UU⁻¹·a_U| added up.

    `weights` has one row per answer, over its scale. Given x_i and x_K, the mean of x_U moves with
    x_i by −Ω_UU⁻¹Ω_Ui.
    """
    size = len(precision)
    units = np.sqrt(np.diagonal(precision))  # mixed units cost a solver its digits
    precision = precision / units / units[:, np.newaxis]
    weights, widths = weights / units, widths * units
    found = {}
    for target, known in every_adversary(size, everyone):
        unknown = [k for k in range(size) if k != target and k not in known]
        slopes = weights[:, target].copy()
        if unknown:
            moved = np.linalg.solve(precision[np.ix_(unknown, unknown)], precision[unknown, target])
            slopes -= weights[:, unknown] @ moved
        found[target, known] = float(np.abs(slopes).sum() * widths[target])
    return found
