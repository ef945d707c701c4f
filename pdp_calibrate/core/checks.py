"""Numbers as they are given: what they must satisfy."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pdp_calibrate.errors import ModelError, PdpError


def check_number(value: object, what: str, *, error: type[PdpError] = ModelError) -> None:
    """Raise unless the value is a number; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise error(f"{what} must be a number, got {type(value).__name__}.")
    try:
        float(value)
    except OverflowError:
        raise error(f"{what} is a whole number too large for any float.") from None


def checked_positive(value: Any, what: str, *, error: type[PdpError] = ModelError) -> float:
    """Return a positive, finite number, or raise."""
    check_number(value, what, error=error)
    if not 0 < value < math.inf:
        raise error(f"{what} must be positive and finite, got {value}.")
    return float(value)


def checked_epsilon(epsilon: object) -> float:
    """Return ε as a float, or raise unless it is positive and finite."""
    return checked_positive(epsilon, "epsilon", error=PdpError)


def checked_share(value: Any, what: str, *, error: type[PdpError] = ModelError) -> float:
    """Return a number strictly between 0 and 1, or raise."""
    check_number(value, what, error=error)
    if not 0 < value < 1:
        raise error(f"{what} must lie strictly between 0 and 1, got {value}.")
    return float(value)


def checked_scale(scale: object) -> float:
    """Return the scale, or raise unless it is a positive finite number."""
    return checked_positive(scale, "scale", error=PdpError)


def checked_scales(scale: object, number: int) -> list[float]:
    """Return one scale per query; a single number stands for all of them."""
    found = list(scale) if isinstance(scale, Sequence | np.ndarray) else [scale] * number
    if len(found) != number:
        raise PdpError(f"scale must be one number per query ({number}), got {len(found)}.")
    return [checked_scale(one) for one in found]


def deadline_after(time_limit: float | None) -> float:
    """Turn a duration in seconds into a value of `time.monotonic()`."""
    if time_limit is None:
        return float("inf")
    if not time_limit >= 0:
        raise PdpError(f"time_limit must be zero or more seconds, got {time_limit}.")
    check_number(time_limit, "time_limit", error=PdpError)
    return time.monotonic() + time_limit
