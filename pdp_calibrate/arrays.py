"""What every model has: named tuples, a provenance, equality by value."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import cast

import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import ModelError

FloatArray = npt.NDArray[np.float64]


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
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{what} must be finite, got NaN or infinity.")
    return read_only(array)


def read_only(array: FloatArray) -> FloatArray:
    """Return the array itself, closed to changes."""
    array.setflags(write=False)
    return array


def plain(value: Hashable) -> Hashable:
    """Turn a numpy scalar into the Python object it stands for."""
    return cast("Hashable", value.item()) if isinstance(value, np.generic) else value
