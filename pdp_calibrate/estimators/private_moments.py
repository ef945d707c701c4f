"""A covariance learned under differential privacy: noisy sums of clipped products.

Each row, clipped and mapped to y ∈ [−1, 1]^n, adds y_j (n numbers) and y_j·y_k for j ≤ k. Replacing
y by y' changes these, with a = y − y' and b = y + y', so that |a_j| + |b_j| ≤ 2, by

    Σ|a_j| + Σ|a_j b_j| + ½ Σ_{j<k} |a_j b_k + b_j a_k|  ≤  A + ½ Σ|a_j b_j| + ½ A·B,

where A = Σ|a_j| and B = Σ|b_j| ≤ 2n − A. As Σ|a_j b_j| ≤ Σ|a_j|(2 − |a_j|) ≤ 2A − A²/n, this is at
most (n+2)·A − (1 + 1/n)·A²/2, whose largest value is Δ = n(n+2)²/(2(n+1)): about half of what
bounding every number by itself gives. With y in whole steps of 1/R all sums are whole in units of
1/R² and Δ·R² is their sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.private import noisy_sums, resolution, whole_steps
from pdp_calibrate.models import LoewnerBall
from pdp_calibrate.models.base import FloatArray

_SMALLEST_RATIO = 1e-9  # of eigenvalues: far above rounding, far below any noise


@dataclass(frozen=True, kw_only=True)
class PrivateMoments:
    """Noisy first two moments of rows in [−1, 1]^n, and how far off they can be."""

    mean: FloatArray
    """The noisy mean."""
    covariance: FloatArray
    """The noisy covariance, divisor N − 1; perhaps not positive definite."""
    rows: int
    """N."""
    spread: float
    """Standard deviation of the noise on an entry of the covariance, about."""
    step: float
    """How far rounding to whole steps moves a value, at most."""
    widest: float
    """What no noise term on a mean of products exceeds, but with probability `failure`."""

    def repaired(self) -> tuple[FloatArray, bool]:
        """Return a positive definite covariance, and whether anything was changed.

        Eigenvalues below the noise say nothing: they are raised to its level. None exceeds n, for
        no variance of a value in [−1, 1] exceeds 1.
        """
        size = len(self.mean)
        values, axes = np.linalg.eigh(self.covariance)
        highest = float(np.clip(values[-1], 0.0, size))
        floor = min(float(size), max(self.spread, _SMALLEST_RATIO * highest, 1e-300))
        if values[0] >= floor and values[-1] <= size:
            return self.covariance, False
        kept = np.clip(values, floor, float(size))
        repaired = (axes * kept) @ axes.T
        return repaired / 2 + repaired.T / 2, True

    def error(self) -> FloatArray:
        """Bound each entry's distance from the covariance of the rows, but with the failure.

        With m̃ the noisy mean and t the widest noise, |S̃/N − S/N| ≤ t, and m̃m̃ᵀ − mmᵀ is at most
        t(|m̃_j| + |m̃_k|) + t². Rounding a value by q moves products, and products of means, by at
        most 2q + q² each.
        """
        t, q = self.widest, self.step
        means = np.abs(self.mean)
        moved = t + t * np.add.outer(means, means) + t * t + 2 * (2 * q + q * q)
        return np.asarray(moved * (self.rows / (self.rows - 1)) * (1 + 1e-9))


def sensitivity_of(size: int) -> Fraction:
    """Return Δ = n(n+2)²/(2(n+1)), for rows in [−1, 1]^n."""
    return Fraction(size * (size + 2) ** 2, 2 * (size + 1))


def private_moments(
    matrix: FloatArray,
    bounds: Sequence[tuple[float, float]],
    *,
    epsilon: float,
    failure: float = 0.5,
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
    widened = rows / (rows - 1)
    return PrivateMoments(
        mean=mean,
        covariance=(second - np.outer(mean, mean)) * widened,
        rows=rows,
        spread=math.sqrt(2) * noisy.scale / unit * widened,
        step=0.5 / steps,
        widest=noisy.widest(failure) / unit,
    )


def ball_radius(found: PrivateMoments, *, confidence: float) -> float:
    """Return the radius of a Loewner ball around the noisy covariance that holds the truth.

    Half of the failure probability is for the sample, half for the noise. The sample covariance S
    is off by E with |E_jk| ≤ e_jk; scaled by the noisy variances d, ‖E‖ ≤ ‖e_jk/√(d_j d_k)‖_F, so
    S lies in the ball of radius τ' = ‖E‖/λ_min around the noisy one. A multiple of the true
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
            noise = float(np.linalg.norm(found.error() / roots)) / smallest * (1 + 1e-6)
    radius = (sampled + noise) / (1 + sampled * noise) if noise < 1 else math.inf
    if not radius < 1 - 1e-9:
        raise ModelError(
            f"the noise of the estimation is too large for a confidence of {confidence:.4g}: no"
            " covariance could be ruled out. More rows, a larger epsilon or narrower bounds help;"
            " without confidence the fit says nothing about its error."
        )
    return radius * (1 + 1e-9)
