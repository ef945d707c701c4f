"""The exact law of F = MSB/MSW for Gaussian groups of any sizes and any common correlation.

Let groups of n members have variance σ² and correlation ρ between members. Then the sum of squares
within is σ²(1−ρ)·χ² with N − k degrees of freedom, and independent of it the sum of squares between
is a quadratic form in the group means: with b_i = √n_i·mean_i, of variance σ²(1 + (n_i−1)ρ), it is
b·(I − u·uᵀ)·b, u_i = √(n_i/N). Its eigenvalues are 1 + (n−1)ρ, once less often than there are
groups of n members, and those of a matrix with a row per size. So P(F ≤ f) is the probability that
a weighted sum of χ² variables is negative, which Imhof's integral gives (Biometrika 48, 1961). It
falls as ρ grows; where it equals the tail probability stand the limits of an exact interval, for
sizes that differ as for equal ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import FloatArray

_ACCURATE = 1e-9  # what halving the step may change
_NEGLIGIBLE = 36.0  # e^−36 of the integrand is left out at either end


def ratio_probability(sizes: Mapping[int, int], correlation: float, ratio: float) -> float:
    """Return P(MSB/MSW ≤ ratio) for so many groups of each size.

    Examples
    --------
    >>> round(ratio_probability({2: 30, 5: 10}, 0.3, 2.0), 4)
    0.4007
    """
    groups = sum(sizes.values())
    rows = sum(size * number for size, number in sizes.items())
    weights, degrees = _between(sizes, correlation)
    against = ratio * (groups - 1) / (rows - groups) * (1 - correlation)
    return _negative(np.append(weights, -against), np.append(degrees, rows - groups))


def _between(sizes: Mapping[int, int], correlation: float) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of the sum of squares between groups, and how often they occur."""
    distinct = sorted(sizes)
    own = np.array([1 + (size - 1) * correlation for size in distinct])
    members = np.array([size * sizes[size] for size in distinct], dtype=np.float64)
    along = np.sqrt(members / members.sum())
    centred = np.eye(len(distinct)) - np.outer(along, along)
    shared = np.linalg.eigvalsh(centred * own @ centred)[1:]  # the first is zero: the grand mean
    weights = np.concatenate([own, shared])
    degrees = np.concatenate([[sizes[size] - 1 for size in distinct], np.ones(len(shared))])
    return weights, degrees


def _negative(weights: FloatArray, degrees: FloatArray) -> float:
    """Return P(Σ w_j·χ²_{h_j} ≤ 0) by Imhof's integral ∫ sin θ(u) / (u·ρ(u)) du.

    In s = log u the integrand is analytic and vanishes at both ends, so the trapezoidal rule
    converges faster than any power of its step; steps are halved until nothing changes.
    """
    weights = weights / math.sqrt(float(degrees @ weights**2))
    end = 0.0
    while float(degrees @ np.log1p((weights * math.exp(end)) ** 2)) / 4 < _NEGLIGIBLE:
        end += 1.0
    before = math.inf
    for points in 2 ** np.arange(9, 17):
        s, step = np.linspace(-_NEGLIGIBLE, end, points, retstep=True)
        scaled = np.exp(s)[:, np.newaxis] * weights
        angle = np.arctan(scaled) @ degrees / 2
        total = float((np.sin(angle) * np.exp(-np.log1p(scaled**2) @ degrees / 4)).sum() * step)
        if abs(total - before) < _ACCURATE:
            return min(1.0, max(0.0, 0.5 - total / math.pi))
        before = total
    raise ModelError("the law of the correlation inside these groups could not be computed.")
