"""The smallest scale at which a falling leakage curve is low enough."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from scipy.optimize import brentq

from pdp_calibrate.errors import CalibrationError

_TOLERANCE = 1e-13  # of the logarithm of the scale
_MAXIMAL_STEPS = 200


def smallest_scale(
    curve: Callable[[float], float], target: float, *, low: float, high: float
) -> float:
    """Return a scale with curve(scale) ≤ target, within 1e-12 relative of the smallest one.

    Parameters
    ----------
    curve
        Leakage as a function of the scale: non-increasing, possibly with jumps.
    target
        What it must not exceed.
    low
        A scale below which there is no need to look; returned if it is already good enough.
    high
        A scale believed to be good enough; doubled until it is.

    Returns
    -------
    float
        Evaluated at exactly this scale, the curve was at or below the target: the root of a
        solver lands on the wrong side half the time, so the answer is stepped up and checked.

    Examples
    --------
    >>> round(smallest_scale(lambda scale: 3 / scale, 1.5, low=0.1, high=1.0), 9)
    2.0
    """

    @functools.cache
    def excess(log_scale: float) -> float:
        value = curve(math.exp(log_scale))
        if math.isnan(value):
            raise CalibrationError("the leakage is not a number: no scale can be certified.")
        # A curve may lie on the target for a while: no zeros, so that the solver seeks its edge.
        return value - target if value > target else min(value - target, -1e-16 * target)

    if curve(low) <= target:
        return low
    start, end = math.log(low), math.log(max(high, low))
    for _ in range(_MAXIMAL_STEPS):
        if excess(end) < 0:
            break
        start, end = end, end + math.log(2)
    else:
        raise CalibrationError(f"the leakage stays above {target} up to scale {math.exp(end):.3g}.")
    root = float(brentq(excess, start, end, xtol=_TOLERANCE, rtol=4 * _TOLERANCE))
    step = _TOLERANCE
    for _ in range(_MAXIMAL_STEPS):
        if excess(root) < 0:
            return math.exp(root)
        root, step = root + step, 2 * step
    raise CalibrationError(f"no scale near {math.exp(root):.6g} keeps the leakage at {target}.")
