"""Checks of given arrays, numbers and descriptions; read-only copies, digests."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import ModelError, PdpError

FloatArray = npt.NDArray[np.float64]

_T = TypeVar("_T")


def digest_of(*parts: object) -> str:
    """Hash the parts (arrays by their bytes, the rest by `repr`) into one hexadecimal digest."""
    hasher = hashlib.sha256()
    for part in parts:
        content = part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
        hasher.update(str(len(content)).encode() + b":" + content)
    return hasher.hexdigest()


def frozen_array(values: npt.ArrayLike, what: str) -> FloatArray:
    """Copy into a read-only array of finite floats."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} must be an array of numbers.") from error
    except OverflowError as error:
        raise ModelError(f"{what} holds a whole number too large for any float.") from error
    if not np.isfinite(array).all():
        raise ModelError(f"{what} must be finite, got NaN or infinity.")
    return read_only(array)


def read_only(array: FloatArray) -> FloatArray:
    """Return the array itself, closed to changes."""
    array.setflags(write=False)
    return array


def plain(value: Hashable) -> Hashable:
    """Turn a numpy scalar into the Python object it stands for."""
    return cast("Hashable", value.item()) if isinstance(value, np.generic) else value


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
    check_number(time_limit, "time_limit", error=PdpError)
    if not time_limit >= 0:
        raise PdpError(f"time_limit must be zero or more seconds, got {time_limit}.")
    return time.monotonic() + time_limit


def named_groups(groups: _T | None, by: _T | None) -> _T | None:
    """Return the column that names the group: `groups`, or `by`, its other name."""
    if groups is not None and by is not None:
        raise PdpError("groups= and by= name the same column: give one of them.")
    return by if groups is None else groups


@contextlib.contextmanager
def damage_refused(what: str, *, kind: type[PdpError] = PdpError) -> Iterator[None]:
    """Say that a description read from outside is damaged, whichever way it breaks the reader.

    Examples
    --------
    >>> with damage_refused("the list"):
    ...     float("one")
    Traceback (most recent call last):
    pdp_calibrate.errors.PdpError: the list is damaged: a field is not what it should be.
    """
    try:
        yield
    except PdpError:
        raise
    except (
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,  # a whole number past every float
        RecursionError,  # brackets in brackets
    ) as error:
        raise kind(f"{what} is damaged: a field is not what it should be.") from error
