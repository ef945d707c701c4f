"""How far a computed inverse is from the inverse, tightly.

H^½·Ω·H^½ − I has the eigenvalues of Ω·H − I. A plain product would hide a residual of 1e-14 behind
its worst-case rounding error of n²·2^-53; so the factors are cut into slices whose products are
exact in floating point (Ozaki, Ogita, Oishi, Rump: Error-free transformations of matrix
multiplication, Numerical Algorithms 59, 2012), and only tiny remainders are rounded.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models.base import FloatArray


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
        vector = image / max(float(image.max()), np.finfo(np.float64).tiny) + 1e-3
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
