"""Mixtures of Laplace densities of one scale, compared at their atoms.

Given x_i and x_K, the released answer has density Σ_s P(f = s | x_i, x_K)·e^{−|r−s|/λ}/2λ. Between
neighbouring atoms s of two such mixtures both are A·e^{r/λ} + B·e^{−r/λ}, so their ratio is a
monotone (Möbius) function of e^{2r/λ}; beyond the outermost atoms it is constant. Hence the
supremum over all outputs r is the maximum over the atoms: exact, no grid, no tolerance. In several
coordinates with independent noise it is the maximum over the product grid of the atoms'
coordinates. The discrete Laplace on integer atoms has the same ratios.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF


def log_densities(
    laws: FloatArray,
    atoms: FloatArray,
    outputs: FloatArray,
    *,
    additions: int,
    log_laws: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Return log Σ_m law_m·e^{−|output − atom_m|₁} and a bound on its rounding error.

    Parameters
    ----------
    laws
        Probabilities of the atoms, shape (events, secrets, atoms).
    atoms
        Their places in units of the scale, shape (events or 1, secrets, atoms, coordinates).
    outputs
        Where to evaluate, in the same units, shape (events or 1, outputs, coordinates).
    additions
        Bound on the number of rounded operations behind each law and each atom.
    log_laws
        The logarithms of the laws, where some probabilities are too small for a float.

    Returns
    -------
    tuple
        Array of shape (events, secrets, outputs), without the constant −log 2λ that cancels in
        every ratio, and the largest absolute error of the *difference* of two of its entries.
    """
    here = outputs[:, np.newaxis, np.newaxis]
    distances = np.abs(here - atoms[..., np.newaxis, :]).sum(axis=-1)
    furthest = float(distances.max())
    count, coordinates = atoms.shape[-2:]
    roundings = additions + count + coordinates + 16
    if furthest <= 1:
        # Σ p·e^{−d} = 1 + Σ p·(e^{−d} − 1): every term is accurate relative to d, so a leakage of
        # 1e-6 keeps ten digits where 1 − e^{−d} would keep only some.
        change = (laws[..., np.newaxis] * np.expm1(-distances)).sum(axis=2)
        return np.log1p(change), 12 * UNIT_ROUNDOFF * furthest * roundings
    if log_laws is None:
        with np.errstate(divide="ignore"):
            log_laws = np.log(laws)
    log_terms = log_laws[..., np.newaxis] - distances
    peak = log_terms.max(axis=2)
    log_density = peak + np.log(np.exp(log_terms - peak[:, :, np.newaxis]).sum(axis=2))
    largest_log = float(-np.min(log_laws, where=np.isfinite(log_laws), initial=0.0))
    error = roundings * (1 + furthest) + 4 * largest_log
    return log_density, 4 * UNIT_ROUNDOFF * error
