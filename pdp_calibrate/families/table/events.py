"""Cases and events of adversaries against a table, and what a bound on them can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pdp_calibrate.arrays import FloatArray

Events = npt.NDArray[np.intp]
"""Places of what is known in the order of their product."""


class Case(NamedTuple):
    """All who attack a target and ignore some tuples."""

    target: int
    unknown: tuple[int, ...]


class Some(NamedTuple):
    """Some events of a case, in order."""

    events: Events
    log_bounds: FloatArray
    secrets: npt.NDArray[np.int32]
    """Which two or more secrets may be so far apart, bit by bit; others are settled."""


class Bound(Protocol):
    """Bounds on the events of many cases."""

    def above(self, case: Case, cutoff: float) -> Some:
        """Return the events whose bounds are above a cutoff."""

    def lower(self, case: Case, events: Events, log_bounds: FloatArray) -> None:
        """Take over smaller bounds on some events and the secrets that were left of them."""

    def largest(self, case: Case) -> float:
        """Return the largest bound of any event, infinite for a case that was not reached."""


def every_secret(size: int) -> int:
    """Return the bits of all secrets."""
    return (1 << size) - 1


def are_two(secrets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return where two bits are set."""
    without_last = secrets & (secrets - 1)
    return np.asarray((without_last > 0) & (without_last & (without_last - 1) == 0))


def two_secrets(secrets: npt.NDArray[np.int32]) -> Events:
    """Return which two bits are set, in two rows."""
    powers = np.array([secrets & -secrets, secrets & (secrets - 1)])
    return np.asarray(np.log2(powers), dtype=np.intp)
