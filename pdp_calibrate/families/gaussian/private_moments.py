"""A covariance learned under differential privacy: noisy sums of clipped products.

Each row, clipped and mapped to y ∈ [−1, 1]^n, adds y_j (n numbers) and y_j·y_k for j ≤ k. Replacing
y by y' changes these, with a = y − y' and b = y + y', so that |a_j| + |b_j| ≤ 2, by

    Σ|a_j| + Σ|a_j b_j| + ½ Σ_{j<k} |a_j b_k + b_j a_k|  ≤  A + ½ Σ|a_j b_j| + ½ A·B,

where A = Σ|a_j| and B = Σ|b_j| ≤ 2n − A. As Σ|a_j b_j| ≤ Σ|a_j|(2 − |a_j|) ≤ 2A − A²/n, this is at
most (n+2)·A − (1 + 1/n)·A²/2, whose largest value is Δ = n(n+2)²/(2(n+1)): about half of what
bounding every number separately gives. With y in whole steps of 1/R all sums are whole numbers in
units of 1/R², and Δ·R² is their sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.sets import LoewnerBall
from pdp_calibrate.learning.private_sums import noisy_sums, resolution, whole_steps


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

    Half of the failure probability is for the sample, half for the noise. The sample covariance S
    is off by E. With d the noisy variances, D^{-1/2}·E·D^{-1/2} has the eigenvalues of D^{-1}·E,
    none above its largest row sum of absolute values; so S lies in the ball of radius τ', that row
    sum over λ_min of the noisy correlation, around the noisy covariance. A multiple of the true
    covariance lies in the ball of radius τ around S. Then (1−τ)(1−τ') and (1+τ)(1+τ') times the
    noisy covariance enclose it; up to a common factor, which no leakage depends on, that is the
    ball of radius (τ + τ')/(1 + ττ').
    """
    size = len(found.mean)
    sampled = LoewnerBall.radius_for(
        rows=found.rows, tuples=size, confidence=1 - (1 - confidence) / 2
    )
    variances = np.diagonal(found.covariance)
    noise = math.inf
    if np.all(variances > 0):
        roots = np.sqrt(np.outer(variances, variances))
        smallest = float(np.linalg.eigvalsh(found.covariance / roots)[0])
        if smallest > 0:
            errors = found.row_errors((1 - confidence) / 2)
            noise = float(np.max(errors / variances)) / smallest * (1 + 1e-6)
    radius = (sampled + noise) / (1 + sampled * noise) if noise < 1 else math.inf
    if not radius < 1 - 1e-9:
        raise ModelError(
            f"the noise of the estimation is too large for a confidence of {confidence:.4g}: no"
            " covariance could be ruled out. More rows, a larger epsilon or narrower bounds help."
        )
    return radius * (1 + 1e-9)
