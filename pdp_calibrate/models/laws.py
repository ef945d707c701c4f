"""Probability laws given as arrays: what they must satisfy, and names that are numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import FloatArray, checked_names, frozen_array

_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_MOST_TUPLES = 10**9  # every tuple has a name in memory


def checked_laws(values: npt.ArrayLike, what: str) -> FloatArray:
    """Return a read-only array whose last axis is a probability law, or raise."""
    laws = frozen_array(values, what)
    check_probabilities(laws, what)
    if laws.ndim == 0 or laws.shape[-1] == 0:
        raise ModelError(f"{what} must be a list of probabilities, got a single number or none.")
    totals = np.atleast_1d(laws.sum(axis=-1))
    furthest = totals.flat[np.abs(totals - 1).argmax()]
    if abs(furthest - 1) > 1e-9:
        rows = "each row of " if laws.ndim > 1 else ""
        raise ModelError(f"{rows}{what} must sum to 1, got {furthest}.")
    return laws


def check_probabilities(values: FloatArray, what: str) -> None:
    """Raise for numbers that are negative, or too small to be told from zero."""
    if np.any(values < 0):
        raise ModelError(f"{what} must not be negative, got {values.min()}.")
    if np.any((values > 0) & (values < _SMALLEST_NORMAL)):
        # Below the normal range a float keeps too few digits to certify a ratio.
        raise ModelError(f"{what} must be 0 or at least {_SMALLEST_NORMAL:.2g}.")


def checked_size(size: object, what: str) -> int:
    """Return a positive whole number, or raise."""
    if isinstance(size, bool) or not hasattr(size, "__index__") or int(size) < 1:
        raise ModelError(f"{what} must be a positive whole number, got {size!r}.")
    if int(size) > _MOST_TUPLES:
        raise ModelError(f"{what} must be at most {_MOST_TUPLES:,}.")
    return int(size)


def numbered_names(names: Iterable[Hashable] | None, size: int) -> tuple[Hashable, ...]:
    """Return the names, by default the positions 0 … size − 1."""
    return tuple(range(size)) if names is None else checked_names(names, size)
