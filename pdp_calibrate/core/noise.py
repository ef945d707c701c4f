"""Laplace and Gaussian noise, drawn by OpenDP: the only module that calls it.

Whole numbers get the discrete Laplace, P(z) ∝ e^{−|z|/λ} on the integers; other answers the same
kernel on a very fine grid, rounded to a float afterwards, which is post-processing. Both are exact
samplers, so λ means what the calibration proved for it. Rounding an answer *before* the noise is
not post-processing; `summation_error` says how far a float sum may be off, and the calibration adds
the cost of that.

Gaussian noise is P(z) ∝ e^{−z²/2σ²} on the finest grid that floats have, drawn exactly, and the
result rounded to a float; `gaussian_dp.drawn_excess` bounds what the grid changes. Whole numbers
never get integer Gaussian noise: its δ is up to 2.3 times that of the formula.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import PdpError, did_you_mean

Noise = Literal["laplace", "gaussian"]
"""What is added to an answer."""


def checked_noise(noise: object) -> Noise:
    """Return the kind of noise, or raise unless it is one."""
    for known in get_args(Noise):
        if noise == known:
            return known  # type: ignore[no-any-return]
    raise PdpError(
        f"noise must be 'laplace' or 'gaussian', got {noise!r}"
        f"{did_you_mean(str(noise), get_args(Noise))}"
    )


def _mechanism(scale: float, noise: Noise = "laplace", **kind: Any) -> Any:
    """Return OpenDP's mechanism for vectors of a kind of number.

    Loaded by the first release, and not through `opendp.prelude`, which brings scikit-learn and
    polars with it: a second or two.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(**kind))
    if noise == "gaussian":
        return make_gaussian(domain, l2_distance(T=kind["T"]), scale=float(scale))
    return make_laplace(domain, l1_distance(T=kind["T"]), scale=float(scale))


@functools.lru_cache(maxsize=64)
def _integer_mechanism(scale: float) -> Any:
    return _mechanism(scale, T="i64")


def add_laplace_to_integers(answers: Sequence[int], scale: float) -> list[int]:
    """Add independent discrete Laplace noise to whole numbers."""
    mechanism = _integer_mechanism(float(scale))
    return [int(noisy) for noisy in mechanism([int(answer) for answer in answers])]


def add_laplace_to_floats(answers: Sequence[float], scale: float) -> list[float]:
    """Add independent Laplace noise to real numbers."""
    mechanism = _mechanism(scale, T="f64", nan=False)
    return [float(noisy) for noisy in mechanism([float(answer) for answer in answers])]


def add_gaussian_to_floats(answers: Sequence[float], scale: float) -> list[float]:
    """Add independent Gaussian noise to real numbers."""
    mechanism = _mechanism(scale, "gaussian", T="f64", nan=False)
    return [float(noisy) for noisy in mechanism([float(answer) for answer in answers])]


def _normal_half_width(alpha: float) -> float:
    """Return h with P(|z| > h) ≤ alpha for a standard normal z, rounded up."""
    from scipy.special import ndtri  # slow to import, and rarely needed

    return -float(ndtri(alpha / 2)) * (1 + 1e-12)


def half_width(scale: float, alpha: float, *, integer: bool, noise: Noise = "laplace") -> float:
    """Return the smallest h with P(|noise| > h) ≤ alpha, of the law that is drawn."""
    if noise == "gaussian":
        reach = scale * _normal_half_width(alpha)
        # Rounded noise exceeds a whole number h only beyond h + 1/2.
        return float(max(0, math.ceil(reach - 0.5))) if integer else reach
    if not integer:
        return scale * math.log(1 / alpha)
    # P(|z| > k) = 2·a^{k+1}/(1+a) with a = e^{−1/λ}
    log_tail = math.log(alpha) + math.log1p(math.exp(-1 / scale)) - math.log(2)
    return float(max(0, math.ceil(-scale * log_tail - 1 - 1e-12)))


def variance_of(noise: Noise, scale: float, *, integer: bool) -> float:
    """Return the variance of the noise that is drawn."""
    if noise == "gaussian":
        return scale * scale
    if not integer:
        return 2 * scale * scale
    # 2a/(1−a)² with a = e^{−1/λ}
    return 1 / (2 * math.sinh(min(0.5 / scale, 300.0)) ** 2)


def summation_error(magnitude: float) -> float:
    """Bound how far a released sum of at most this magnitude is from the exact one.

    One unit of roundoff for the total, made a float before noise is added. Half of one for the
    grid on which real values are added up, see `covered_grid`. The rest covers the rounding of
    the magnitude itself.
    """
    return 2 * magnitude * UNIT_ROUNDOFF


def covered_grid(magnitude: float) -> float:
    """Return the part of `summation_error` that is set aside for sums on a grid.

    Only the grid steps of one independent instance matter: the sum on the grid is exactly a sum of
    functions of single values, so the other instances only add noise.
    """
    return magnitude * UNIT_ROUNDOFF / 2
