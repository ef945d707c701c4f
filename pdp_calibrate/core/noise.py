"""Laplace noise, drawn by OpenDP: the only module that calls it.

Whole numbers get the discrete Laplace, P(z) ∝ e^{−|z|/λ} on the integers; other answers the same
kernel on a very fine grid, rounded to a float afterwards, which is post-processing. Both are exact
samplers, so λ means what the calibration proved for it. Rounding an answer *before* the noise is
not post-processing; `summation_error` says how far a float sum may be off, and the calibration
charges for it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from scipy.optimize import brentq

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF


@functools.cache
def _opendp() -> Any:
    import opendp.prelude as dp  # 3 s to import, so not before the first release

    dp.enable_features("contrib")
    return dp


@functools.lru_cache(maxsize=64)
def _integer_mechanism(scale: float) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)


def add_laplace_to_integers(answers: Sequence[int], scale: float) -> list[int]:
    """Add independent discrete Laplace noise to whole numbers."""
    mechanism = _integer_mechanism(float(scale))
    return [int(noisy) for noisy in mechanism([int(answer) for answer in answers])]


def add_laplace_to_floats(answers: Sequence[float], scale: float) -> list[float]:
    """Add independent Laplace noise to real numbers."""
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="f64"), scale=float(scale))
    return [float(noisy) for noisy in mechanism([float(answer) for answer in answers])]


def half_width(scale: float, alpha: float, *, integer: bool) -> float:
    """Return the smallest h with P(|noise| > h) ≤ alpha, of the law that is drawn."""
    if not integer:
        return scale * math.log(1 / alpha)
    # P(|z| > k) = 2·a^{k+1}/(1+a) with a = e^{−1/λ}
    log_tail = math.log(alpha) + math.log1p(math.exp(-1 / scale)) - math.log(2)
    return float(max(0, math.ceil(-scale * log_tail - 1 - 1e-12)))


def scale_for_half_width(width: float, alpha: float, *, integer: bool) -> float:
    """Return the largest scale whose `half_width` does not exceed the width."""
    if not integer:
        scale = width / math.log(1 / alpha)
    else:
        steps = math.floor(width) + 1

        def log_tail_excess(scale: float) -> float:
            return math.log(2) - steps / scale - math.log1p(math.exp(-1 / scale)) - math.log(alpha)

        high = 1.0
        while log_tail_excess(high) < 0:
            high *= 2
        scale = float(brentq(log_tail_excess, 1e-3, high, xtol=1e-12))
    while half_width(scale, alpha, integer=integer) > width:
        scale *= 1 - 1e-12
    return scale


def summation_error(magnitude: float) -> float:
    """Bound how far a released sum of at most this magnitude is from the exact one.

    One unit of roundoff for the total, made a float before noise is added. Half of one for the
    grid on which real values are added up, see `covered_grid`. The rest is room for the rounding of
    the magnitude itself.
    """
    return 2 * magnitude * UNIT_ROUNDOFF


def covered_grid(magnitude: float) -> float:
    """Return the part of `summation_error` that is set aside for sums on a grid.

    What counts are the grid steps of one independent instance: the sum is exactly one of functions
    of single values, so other instances are only more noise.
    """
    return magnitude * UNIT_ROUNDOFF / 2
