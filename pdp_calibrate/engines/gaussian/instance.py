"""One block of correlated Gaussian tuples in units that floating point likes.

Every tuple is rescaled by a power of two, which is exact, until all variances lie in [1, 4). No
cut-off is absolute, so data in units of 1e-8, or in mixed units, are treated alike.

Floating point. Cholesky factors and Schur complements of a symmetric positive definite H are the
exact ones of H + F with |F_ij| ≤ (n+1)u·√(H_ii·H_jj) to first order (Higham, Accuracy and
Stability, Thm 10.3). With λ the smallest eigenvalue of the correlation matrix, −τH ⪯ F ⪯ τH for
τ = n(n+1)u/λ. So every computed conditional moment is the exact one of a covariance that lies
within a factor 1 ± τ of the true one, and coefficients move as in an uncertain covariance:
|δβ| ≤ τ/√(1−τ²)·√(Var(f|x_i,x_K)/Var(x_i|x_K)). `tau` is four times that, for the products with
the weights and the eigenvalue itself.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from pdp_calibrate.engines.gaussian.inverse import distance
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.errors import ModelError, PdpError, UnsupportedQueryError
from pdp_calibrate.models.base import FloatArray

MAXIMAL_COORDINATES = 12  # 2^11 sign patterns
_LARGEST_TAU = 1e-3


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Covariance, weights and admitted sizes of one block, rescaled."""

    covariance: FloatArray
    """H, variances in [1, 4)."""
    coordinates: FloatArray
    """Weights over scale, one row per answer: the leakage of A(i,K) is Σ_m |β_m|·factors[i]."""
    factors: FloatArray
    """M_i in the units of H, rounded up, times what the weights were divided by."""
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

    @property
    def is_certain(self) -> bool:
        """Whether the covariance is one matrix, not a set."""
        return not self.multipliers.any()

    def signs(self) -> FloatArray:
        """Return the sign patterns of the coordinates, one row each, up to a common sign."""
        tails = itertools.product((1.0, -1.0), repeat=len(self.coordinates) - 1)
        return np.array([(1.0, *tail) for tail in tails])

    def functions(self) -> FloatArray:
        """Return one row of weights per sign pattern: Σ_m |β_m| is the largest |β| among them."""
        return np.asarray(self.signs() @ self.coordinates)


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
    """Add up answers whose weights are multiples of each other, and refuse too many others."""
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
    """Invert the covariance; `inverse.distance` says how well."""
    factor = np.linalg.cholesky(instance.covariance)
    inverse_factor = solve_triangular(factor, np.eye(instance.size), lower=True)
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
    correlation = matrix / np.outer(deviations, deviations)
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
