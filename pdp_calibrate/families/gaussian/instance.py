"""One block of correlated Gaussian tuples, rescaled, and the rounding error of its moments.

**A computed inverse.** H^½·Ω·H^½ − I has the eigenvalues of Ω·H − I. A plain product would hide a
residual of 1e-14 behind its worst-case rounding error of n²·2^-53; so the factors are cut into
slices whose products are exact in floating point (Ozaki, Ogita, Oishi, Rump: Error-free
transformations of matrix multiplication, Numerical Algorithms 59, 2012), and only tiny remainders
are rounded.

**Units.** Every tuple is rescaled by a power of two, which is exact, until all variances lie in [1,
4). No cut-off is absolute, so data in units of 1e-8, or in mixed units, is treated the same way.

**Moments.** Cholesky factors and Schur complements of a symmetric positive definite H are the
exact ones of H + F with |F_ij| ≤ (n+1)u·√(H_ii·H_jj) to first order (Higham, Accuracy and
Stability, Thm 10.3). With λ the smallest eigenvalue of the correlation matrix, −τH ⪯ F ⪯ τH for
τ = n(n+1)u/λ. So every computed conditional moment is the exact one of a covariance that lies
within a factor 1 ± τ of the true one, and coefficients move as in an uncertain covariance:
|δβ| ≤ τ/√(1−τ²)·√(Var(f|x_i,x_K)/Var(x_i|x_K)). `tau` is four times that, for the products with
the weights and the eigenvalue itself.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtri

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import ModelError, PdpError, UnsupportedQueryError


def distance(covariance: FloatArray, precision: FloatArray) -> float:
    """Bound τ with (1−τ)·H ⪯ Ω⁻¹ ⪯ (1+τ)·H for symmetric H, Ω; infinity if there is none below 1.

    The spectral radius of a matrix is at most that of its absolute values, and for a non-negative
    B it is at most max (Bx)_i/x_i for any x > 0 (Collatz, Wielandt).
    """
    residual, error = product_minus_identity(precision, covariance)
    bounded = np.abs(residual) + error
    vector = np.ones(len(bounded))
    radius = np.inf
    for _ in range(6):
        image = bounded @ vector
        radius = min(radius, float((image / vector).max()))
        vector = image / max(float(image.max()), _TINY) + 1e-3
    radius *= 1 + 4 * len(bounded) * UNIT_ROUNDOFF
    return radius / (1 - radius) if radius < 0.5 else np.inf


def product_minus_identity(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return left·right − I for square matrices and a bound on the error of each entry."""
    size = len(left)
    bits = int((53 - np.ceil(np.log2(size + 1))) // 2)
    rows = _powers(left, axis=1)
    columns = _powers(right, axis=0)
    left_high, left_rest = _cut(left, rows, bits)
    left_middle, left_low = _cut(left_rest, rows * 2.0**-bits, bits)
    right_high, right_rest = _cut(right, columns, bits)
    right_middle, _ = _cut(right_rest, columns * 2.0**-bits, bits)
    # Sums of `size` products of whole numbers below 2^bits stay below 2^53: these are exact.
    parts = [
        left_high @ right_high - np.eye(size),
        left_high @ right_middle,
        left_middle @ right_high,
    ]
    remainder = left_high @ (right_rest - right_middle) + left_middle @ right_rest
    remainder += left_low @ right
    residual = parts[0] + (parts[1] + parts[2] + remainder)
    largest = sum(np.abs(part) for part in parts) + np.abs(remainder)
    tiny = 8 * size * (size + 2) * 2.0 ** (-2 * bits) * UNIT_ROUNDOFF
    return residual, 8 * UNIT_ROUNDOFF * largest + tiny * rows * columns


def _powers(matrix: FloatArray, *, axis: int) -> FloatArray:
    """Return a power of two above every entry of each row (axis 1) or column (axis 0)."""
    return np.asarray(np.ldexp(1.0, np.frexp(np.abs(matrix).max(axis=axis, keepdims=True))[1]))


def _cut(matrix: FloatArray, powers: FloatArray, bits: int) -> tuple[FloatArray, FloatArray]:
    """Split off the leading bits below `powers`; the rest is exact."""
    units = powers * 2.0**-bits
    high = np.rint(matrix / units) * units
    return high, matrix - high


_TINY = float(np.finfo(np.float64).tiny)


MAXIMAL_COORDINATES = 12  # 2^11 sign patterns


_LARGEST_TAU = 1e-3


@dataclass(frozen=True, kw_only=True)
class Worst:
    """The worst adversary found in one block, by positions in it."""

    upper: float
    """No admitted adversary of the block leaks more."""
    target: int
    """The tuple attacked."""
    known: tuple[int, ...]
    """The tuples known."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Covariance, weights and admitted sizes of one block, rescaled."""

    covariance: FloatArray
    """H, variances in [1, 4)."""
    coordinates: FloatArray
    """Weights over scale, one row per answer: the leakage of A(i,K) is Σ_m |β_m|·factors[i]."""
    factors: FloatArray
    """M_i in the units of H, rounded up, times the factor by which the weights were divided."""
    multipliers: FloatArray
    """An uncertain covariance adds multipliers[|K|]·√(Var(f|x_i,x_K)/Var(x_i|x_K)) to |β|."""
    targets: tuple[int, ...]
    """Positions that may be attacked."""
    fewest: int
    """Fewest positions known."""
    most: int
    """Most positions known."""

    @property
    def size(self) -> int:
        """Number of tuples."""
        return len(self.covariance)

    @functools.cached_property
    def is_certain(self) -> bool:
        """Whether the covariance is one matrix, not a set."""
        return not self.multipliers.any()

    @functools.cached_property
    def signs(self) -> FloatArray:
        """The sign patterns of the coordinates, one row each, up to a common sign."""
        tails = itertools.product((1.0, -1.0), repeat=len(self.coordinates) - 1)
        return np.array([(1.0, *tail) for tail in tails])

    @functools.cached_property
    def functions(self) -> FloatArray:
        """One row of weights per sign pattern: Σ_m |β_m| is the largest |β| among them."""
        return self.signs @ self.coordinates if len(self.coordinates) > 1 else self.coordinates


def arranged(matrix: FloatArray, places: Sequence[int]) -> FloatArray:
    """Return the rows and columns of these places, in their order."""
    return matrix[places][:, places]


def rescaled(
    covariance: FloatArray, weights: FloatArray, widths: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return covariance, weights (answers × tuples) and factors in near-unit coordinates."""
    exponents = np.frexp(np.sqrt(np.diagonal(covariance)))[1] - 1
    unit = np.ldexp(np.ldexp(covariance, -exponents), -exponents[:, np.newaxis])
    scaled = np.ldexp(weights, exponents)
    largest = int(np.frexp(np.abs(scaled).max())[1])
    with np.errstate(over="ignore"):
        factors = np.ldexp(widths * (1 + 8 * UNIT_ROUNDOFF), largest - exponents)
    if not np.all(np.isfinite(factors)):
        raise PdpError("the leakage is too large for a floating-point number; raise the scale.")
    return unit, np.ldexp(scaled, -largest), factors


def merged(weights: FloatArray) -> FloatArray:
    """Merge answers whose weights are multiples of each other; refuse too many different ones."""
    directions: list[FloatArray] = []
    sizes: list[float] = []
    for row in weights:
        peak = float(np.abs(row).max())
        if peak == 0:
            continue
        unit = row / peak
        for place, other in enumerate(directions):
            sign = np.sign(unit @ other)
            if np.all(np.abs(unit - sign * other) <= 4 * UNIT_ROUNDOFF * np.abs(other)):
                sizes[place] += peak
                break
        else:
            directions.append(unit)
            sizes.append(peak)
    if len(directions) > MAXIMAL_COORDINATES:
        raise UnsupportedQueryError(
            f"at most {MAXIMAL_COORDINATES} different answers can be weighed together on a Gaussian"
            f" model, got {len(directions)}. Ask fewer queries at once."
        )
    if not directions:
        return np.zeros((1, weights.shape[1]))
    return np.array(sizes)[:, np.newaxis] * np.array(directions)


def precision_of(instance: Instance) -> FloatArray:
    """Invert the covariance; `distance` bounds the error."""
    inverse_factor, _ = dtrtri(np.linalg.cholesky(instance.covariance), lower=1)
    inverse = inverse_factor.T @ inverse_factor
    return np.asarray(inverse / 2 + inverse.T / 2)


def search_tau(instance: Instance, precision: FloatArray) -> float:
    """Return τ for conditional moments that come from the covariance or from the precision."""
    answers = len(instance.coordinates)
    tau = max(tau_of(instance.covariance, answers), tau_of(precision, answers))
    return checked_tau(tau + distance(instance.covariance, precision))


def tau_of(matrix: FloatArray, answers: int) -> float:
    """Bound the relative error of every Schur complement of a positive definite matrix."""
    size = len(matrix)
    deviations = np.sqrt(np.diagonal(matrix))
    correlation = matrix / (deviations[:, np.newaxis] * deviations)
    smallest = float(np.linalg.eigvalsh(correlation)[0]) - 8 * size**1.5 * UNIT_ROUNDOFF
    if smallest <= 0:
        return float("inf")
    operations = 4 * size * (size + 2) + 4 * (answers**2 - 1)
    return float(operations * UNIT_ROUNDOFF / smallest)


def checked_tau(tau: float) -> float:
    """Refuse a covariance so close to singular that nothing can be certified."""
    if not tau <= _LARGEST_TAU:
        raise ModelError(
            "the covariance is too close to singular to certify a leakage in floating point"
            f" (relative error {tau:.2g}, at most {_LARGEST_TAU:g} allowed). Shrink it towards its"
            " diagonal, or leave out a tuple that others nearly determine."
        )
    return tau
