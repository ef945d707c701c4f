"""Compiled code for long programs of elimination."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from pdp_calibrate.core.contraction import CONTRACTED, TINY
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

_SUM = 1 + 4 * UNIT_ROUNDOFF


@numba.njit(cache=True)
def passed_through(
    values: npt.NDArray[np.float64],
    sources: npt.NDArray[np.int64],
    destinations: npt.NDArray[np.int64],
    strengths: npt.NDArray[np.float64],
) -> None:
    """Add strength ⊗ one number to another, step by step; as `core.contraction.contracted`."""
    for step in range(len(strengths)):
        # a ⊗ b is 0 where one of the two is 0, and the other one where one is infinite: the
        # smaller of the two, `low`, both times.
        one, other = strengths[step], values[sources[step]]
        low, high = min(one, other), max(one, other)
        added = low
        if low > 0 and not math.isinf(high):
            # 4·artanh(tanh(a/4)·tanh(b/4)) while the product is far from 1, and beyond that the
            # same by logarithms, in which nothing cancels: both numbers are at least 2.1 there.
            product = math.tanh(low / 4) * math.tanh(high / 4)
            if product < 0.5:
                image = 4 * math.atanh(product)
            else:
                image = low + 2 * math.log1p(math.exp(-(high + low) / 2))
                image -= 2 * math.log1p(math.exp((low - high) / 2))
            # Rounded up by more than its few operations, and never above the smaller of the two.
            added = min(low, image * CONTRACTED + TINY)
        # All terms are not negative, so that each sum is rounded up by its own rounding alone.
        destination = destinations[step]
        values[destination] = (values[destination] + added) * _SUM
