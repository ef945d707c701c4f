"""When knowing nobody is worst: a certificate for any number of tuples in O(n³).

Theorem 8 (docs/theory).

Let Ω be the inverse covariance. If signs s_j ∈ {±1} exist with s_j = sign(a_j) wherever a_j ≠ 0
and s_i·s_j·Ω_ij ≤ 0 for all i ≠ j, then K = ∅ is worst for every target. In the coordinates s_j·x_j
all partial correlations given everyone else are non-negative; that survives leaving tuples out, so
in Cochran's formula β_i(K∖j) = β_i(K) + β_j(K)·δ_ji every term is non-negative and removing a tuple
from K never lowers the coefficient. Tuples of weight zero have a free sign but must not be dropped:
they carry correlation between the others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.gaussian.instance import Instance, distance

_NEGLIGIBLE = 1e-6  # entries of Ω this small, relative to the diagonal, may be rounding errors


def certified_upper(instance: Instance, precision: FloatArray) -> float | None:
    """Return an upper end for all known sets if knowing nobody is certified worst, else None.

    Each coordinate of the answer must have its own certificate: the sum over coordinates is then
    largest at K = ∅ too. Entries of Ω with the wrong sign that may be rounding errors are set to
    zero; the certificate then holds for a covariance within 1 ± τ of the given one, which is
    charged twice (there and back) as |δβ| ≤ τ/√(1−τ²)·√(Var(f)/Var(x_i|all)).
    """
    deviations = np.sqrt(np.diagonal(precision))
    partial = precision / np.outer(deviations, deviations)
    total_charge = np.zeros(instance.size)
    values = np.zeros(instance.size)
    for weights in instance.coordinates:
        signs = signs_for(partial, weights)
        if signs is None:
            return None
        wrong = np.outer(signs, signs) * partial > 0
        wrong[np.diag_indices(instance.size)] = False
        altered = np.where(wrong, 0.0, precision)
        tau = distance(instance.covariance, altered)
        if not tau <= 1e-3:
            return None
        spread = float(weights @ instance.covariance @ weights)
        charge = 2.01 * tau * np.sqrt(spread * np.diagonal(altered) * (1 + 2 * tau))
        total_charge += charge
        values += np.abs(instance.covariance @ weights) / np.diagonal(instance.covariance)
    targets = list(instance.targets)
    # In the s-coordinates no term of Cov(f, x_i) is negative: its sum errs by n roundings.
    rounding = 1 + 4 * (instance.size + 2) * UNIT_ROUNDOFF
    return float(((values + total_charge) * instance.factors)[targets].max()) * rounding


def signs_for(partial: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Colour the tuples with signs such that every sizeable s_i·s_j·Ω_ij is ≤ 0, or return None.

    A negative entry asks for equal signs, a positive one for different signs.
    """
    size = len(weights)
    sizeable = np.abs(partial) > _NEGLIGIBLE
    sizeable[np.diag_indices(size)] = False
    signs: npt.NDArray[np.float64] = np.sign(weights)
    waiting = [k for k in range(size) if signs[k]]
    reached = signs != 0
    for start in range(size + 1):
        while waiting:
            here = waiting.pop()
            neighbours = np.flatnonzero(sizeable[here])
            wanted = -np.sign(partial[here, neighbours]) * signs[here]
            fresh = ~reached[neighbours]
            if np.any(signs[neighbours[~fresh]] != wanted[~fresh]):
                return None
            signs[neighbours[fresh]] = wanted[fresh]
            reached[neighbours[fresh]] = True
            waiting += neighbours[fresh].tolist()
        if start < size and not reached[start]:
            signs[start], reached[start] = 1.0, True
            waiting.append(start)
    return signs
