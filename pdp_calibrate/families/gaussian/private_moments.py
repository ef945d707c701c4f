"""A covariance learned under differential privacy: noisy sums of clipped products.

Each row, clipped and mapped to y ∈ [−1, 1]^n, adds y_j (n numbers) and y_j·y_k for j ≤ k. Replacing
y by y' changes these, with a = y − y' and b = y + y', so that |a_j| + |b_j| ≤ 2, by

    Σ|a_j| + Σ|a_j b_j| + ½ Σ_{j<k} |a_j b_k + b_j a_k|  ≤  A + ½ Σ|a_j b_j| + ½ A·B,

where A = Σ|a_j| and B = Σ|b_j| ≤ 2n − A. As Σ|a_j b_j| ≤ Σ|a_j|(2 − |a_j|) ≤ 2A − A²/n, this is at
most (n+2)·A − (1 + 1/n)·A²/2, whose largest value is Δ = n(n+2)²/(2(n+1)): about half of what
bounding every number separately gives. With y in whole steps of 1/R all sums are whole numbers in
units of 1/R², and Δ·R² is their sensitivity.

**Clipping.** Theorem 36 (docs/theory). The rows that are added up are Y = clip(X), X Gaussian. How
many deviations of X the nearer bound of a column is away is bounded from below by (1 − |E Y|)/sd Y,
so by the noisy moments alone. That bounds what clipping cuts off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
from scipy.special import log_ndtr, ndtr

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.sets import LoewnerBall
from pdp_calibrate.learning.private_sums import noisy_sums, resolution, whole_steps

_FAR = 1.6  # (1 − |E Y|)/sd Y above which the bounds are more than a deviation away
_FARTHEST = 30.0  # deviations: no normal variable is so far from its mean


@dataclass(frozen=True, kw_only=True)
class PrivateMoments:
    """Noisy first two moments of rows in [−1, 1]^n, and how far off they can be."""

    mean: FloatArray
    """The noisy mean."""
    covariance: FloatArray
    """The noisy covariance, divisor N − 1; it may not be positive definite."""
    rows: int
    """N."""
    scale: float
    """The scale of the noise on each mean of values, and of products."""
    step: float
    """How far rounding to whole steps moves a value, at most."""

    def mean_error(self, failure: float) -> float:
        """Bound the error of every mean, on the event on which `row_errors` hold."""
        from scipy.stats import gamma

        size = len(self.mean)
        largest = float(gamma.isf(failure / (size + 2) / size, 1)) * self.scale
        return (largest + (2 * self.step) ** 2 + self.step) * (1 + 1e-9)

    def row_errors(self, failure: float) -> FloatArray:
        """Bound Σ_k |E_jk| for every row j of the error E, except with probability `failure`.

        With m̃ the noisy mean and e its noise, E is the noise on the products less
        m̃eᵀ + em̃ᵀ − eeᵀ. A sum of n absolute noises is at most a Gamma(n) variable times the
        scale (the discrete law lies below an exponential one, plus a step of 1/R²). Rounding a
        value by q moves products, and products of means, by at most 2q + q² each.
        """
        from scipy.stats import gamma

        size, each = len(self.mean), failure / (len(self.mean) + 2)
        grain = (2 * self.step) ** 2

        def at_most(number: int, chance: float) -> float:
            return float(gamma.isf(chance, number)) * self.scale + number * grain

        means, products = np.abs(self.mean), at_most(size, each)
        together, largest = at_most(size, each), at_most(1, each / size)
        moved = products + means * together + largest * (means.sum() + together)
        rounded = 2 * size * (2 * self.step + self.step**2)
        return np.asarray((moved + rounded) * (self.rows / (self.rows - 1)) * (1 + 1e-9))


def sensitivity_of(size: int) -> Fraction:
    """Return Δ = n(n+2)²/(2(n+1)), for rows in [−1, 1]^n."""
    return Fraction(size * (size + 2) ** 2, 2 * (size + 1))


def private_moments(
    matrix: FloatArray,
    bounds: Sequence[tuple[float, float]],
    *,
    epsilon: float,
) -> PrivateMoments:
    """Return the noisy moments of the clipped rows: ε-DP for substituting one row."""
    rows, size = matrix.shape
    delta = sensitivity_of(size)
    steps = resolution(rows, sensitivity=float(delta), epsilon=epsilon)
    whole = whole_steps(matrix, bounds, steps)
    places = np.triu_indices(size)
    products = (whole.T @ whole)[places]
    noisy = noisy_sums(
        np.concatenate([whole.sum(axis=0) * steps, products]),
        sensitivity=math.ceil(delta * steps**2),
        epsilon=epsilon,
    )
    unit = float(steps) ** 2 * rows
    values = noisy.values / unit
    mean = values[:size]
    second = np.zeros((size, size))
    second[places] = values[size:]
    second = second + second.T - np.diag(np.diagonal(second))
    return PrivateMoments(
        mean=mean,
        covariance=(second - np.outer(mean, mean)) * (rows / (rows - 1)),
        rows=rows,
        scale=noisy.scale / unit,
        step=0.5 / steps,
    )


def ball_radius(found: PrivateMoments, *, confidence: float) -> float:
    """Return the radius of a Loewner ball around the noisy covariance that holds the truth.

    Half of the failure probability is for the sample, a quarter for the noise and a quarter for
    clipping. The covariance S of the clipped sample is off by E. With d the noisy variances,
    D^{-1/2}·E·D^{-1/2} has the eigenvalues of D^{-1}·E, none above its largest row sum of absolute
    values; so S lies in the ball of radius τ', that row sum over λ_min of the noisy correlation,
    around the noisy covariance. That of the sample before clipping lies in the ball of radius
    2κ/(1 + κ²) around S, and a multiple of the true covariance in the ball of radius τ around that.
    Balls of radii τ and τ' are together one of (τ + τ')/(1 + ττ'), up to a common factor, which no
    leakage depends on.
    """
    size, failure = len(found.mean), 1 - confidence
    sampled = LoewnerBall.radius_for(
        rows=found.rows, tuples=size, confidence=1 - (1 - confidence) / 2
    )
    variances = np.diagonal(found.covariance)
    noise = math.inf
    if np.all(variances > 0):
        roots = np.sqrt(np.outer(variances, variances))
        smallest = float(np.linalg.eigvalsh(found.covariance / roots)[0])
        if smallest > 0:
            errors = found.row_errors(failure / 4)
            noise = float(np.max(errors / variances)) / smallest * (1 + 1e-6)
    if not noise < 1:
        _refuse(confidence)
    spread = (1 - math.sqrt((1 - sampled) * (1 + sampled))) / sampled  # of deviations
    cut = cut_off(found, failure / 4, noise_failure=failure / 4)
    if not cut < 1 - spread:
        raise ModelError(
            "the bounds cut off too much, as far as the noisy moments show: no covariance could be"
            " ruled out. Bounds a few standard deviations away from the means, or more rows, help."
        )
    least = smallest * (1 - noise) / (1 + noise)  # of the correlation of the clipped sample
    moved = math.sqrt(size / least) * cut / (1 - spread - cut)
    if not moved < 1:
        _refuse(confidence)
    radius = _together(_together(sampled, noise), 2 * moved / (1 + moved**2))
    if not radius < 1 - 1e-9:
        _refuse(confidence)
    return radius * (1 + 1e-9)


def _together(one: float, other: float) -> float:
    return (one + other) / (1 + one * other)


def _refuse(confidence: float) -> NoReturn:
    raise ModelError(
        f"the noise of the estimation is too large for a confidence of {confidence:.4g}: no"
        " covariance could be ruled out. More rows, a larger epsilon or other bounds help."
    )


def cut_off(found: PrivateMoments, failure: float, *, noise_failure: float) -> float:
    """Bound the sample deviation of what clipping cuts off, in deviations of its column.

    Infinite where the bounds may be near. Means and deviations of a sample in [−1, 1] are off by at
    most what Maurer and Pontil's inequalities say (COLT 2009).
    """
    # Three events for each column, the first with two sides: 2/δ is in the logarithm for each.
    rows, chance = found.rows, math.log(12 * len(found.mean) / failure)
    variances = np.diagonal(found.covariance) + found.row_errors(noise_failure)
    deviations = np.sqrt(variances)
    means = np.abs(found.mean) + found.mean_error(noise_failure)
    means = means + deviations * math.sqrt(2 * chance / rows) + 14 * chance / (3 * (rows - 1))
    deviations = deviations + 2 * math.sqrt(2 * chance / (rows - 1))
    away = float(np.min((1 - means) / deviations)) * (1 - 1e-9)
    near = distance_of_bounds(away)
    if near is None:
        return math.inf
    tilts = np.linspace(0.005, 0.495, 99)
    left = 1 - 2 * tilts
    with np.errstate(over="ignore"):
        grown = np.exp(tilts * near**2 / left + log_ndtr(-near / np.sqrt(left))) / np.sqrt(left)
    logs = np.log1p(2 * np.maximum(grown - ndtr(-near), 0.0))
    square = float(np.min((logs + chance / rows) / tilts))
    return math.sqrt(square * rows / (rows - 1)) * (1 + 1e-9)


def distance_of_bounds(away: float) -> float | None:
    """Return how many deviations of X the nearer bound is away at least, given (1 − |E Y|)/sd Y.

    None if it may be less than one.
    """
    if not away > _FAR:
        return None
    from scipy.optimize import brentq  # slow to import

    def short(bound: float) -> float:
        tail, density = float(ndtr(-bound)), math.exp(-(bound**2) / 2) / math.sqrt(2 * math.pi)
        mean = density - bound * tail
        variance = 1 - 2 * (tail + bound * density) + 2 * bound**2 * tail
        return (bound + mean) / math.sqrt(variance) - away

    if short(_FARTHEST) < 0:
        return _FARTHEST
    return max(1.0, float(brentq(short, 1.0, _FARTHEST, xtol=1e-12)) - 1e-9)
