"""The leakage of one adversary: a regression coefficient.

Given x_K, the pair (x_i, f) is Gaussian and p(r | x_i, x_K) is one density shifted by β·x_i, with
β the coefficient of x_i in the regression of f on (x_i, x_K). Laplace tails make log p fall by at
most 1/λ per unit, a slope attained as r → ±∞, so l(i,K) = |β|·M_i/λ (Li, Ren, Yang, Yang,
arXiv 1906.02606, Thm 6, there for a plain sum). Several answers with independent noise shift
together: their leakages at one (i,K) add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.engines.gaussian.instance import Instance
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class Regression:
    """The leakage of one adversary and what it was computed from."""

    value: float
    """Upper end."""
    lower: float
    """Lower end."""
    signs: FloatArray
    """Sign of the coefficient in each coordinate, in the worst pattern."""


def regression(instance: Instance, target: int, known: Sequence[int], *, tau: float) -> Regression:
    """Evaluate one adversary of a block, with its rounding error.

    One Cholesky factor L in the order K, i, U gives everything without cancellation: in the
    orthonormal coordinates y = Lᵀa the coefficient is y_i/L_ii, and Var(f|x_i,x_K) = Σ_U y².
    """
    unknown = [k for k in range(instance.size) if k != target and k not in set(known)]
    functions = instance.functions()
    factor = float(instance.factors[target])
    if not unknown:
        # Knowing everyone else, f moves by its own weight whatever the covariance is.
        slopes, ratios, margin = functions[:, target], np.zeros(len(functions)), 0.0
    else:
        order = [*known, target, *unknown]
        lower = np.linalg.cholesky(instance.covariance[np.ix_(order, order)])
        place = len(known)
        answers = functions[:, order[place:]] @ lower[place:, place:]
        slopes = answers[:, 0] / lower[place, place]
        ratios = np.linalg.norm(answers[:, 1:], axis=1) / lower[place, place]
        margin = 2 * tau
    multiplier = instance.multipliers[len(known)]
    values = np.abs(slopes) + multiplier * ratios
    # Weights added up over answers err relative to the patterns in which nothing cancels.
    size = np.hypot(slopes, ratios).max()
    errors = margin * (1 + multiplier) * size + 16 * UNIT_ROUNDOFF * values.max()
    worst = int(values.argmax())
    coordinates = np.sign(slopes[worst]) or 1.0
    signs = coordinates * instance.signs()[worst]
    return Regression(
        value=float(((values + errors) * factor).max()),
        lower=max(0.0, float(((values - errors) * factor).max()) * (1 - 32 * UNIT_ROUNDOFF)),
        signs=signs,
    )


def nobody_known(instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Return value and error for every target of an adversary who knows nothing: O(n²).

    For a sum this is the paper's Cor. 2: |1 + Σ_{j≠i} Cov(x_i, x_j)/Var(x_i)|·M_i/λ. No matrix is
    factored, so the error is that of one sum of n products.
    """
    covariance = instance.covariance
    functions = instance.functions()
    products = functions @ covariance
    sizes = np.abs(instance.coordinates).sum(axis=0) @ np.abs(covariance)
    variances = np.diagonal(covariance)
    steps = 2 * (instance.size + len(instance.coordinates) + 4) * UNIT_ROUNDOFF
    slopes, errors = np.abs(products) / variances, steps * sizes / variances
    multiplier = instance.multipliers[0]
    if multiplier:
        totals = np.einsum("mj,mj->m", functions, products)[:, np.newaxis]
        slack = 4 * steps * float(np.abs(instance.coordinates).sum(axis=0) @ sizes)
        left = totals / variances - slopes**2
        slack = slack / variances + 2 * slopes * errors + errors**2
        ratios = np.sqrt(np.maximum(left, 0.0))
        slopes = slopes + multiplier * ratios
        errors = errors + multiplier * (np.sqrt(np.maximum(left, 0.0) + slack) - ratios)
    values = slopes.max(axis=0) * instance.factors
    return values, (slopes + errors).max(axis=0) * instance.factors - values
