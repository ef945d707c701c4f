"""What a search over part of the adversaries found, before it gets names and units."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pdp_calibrate.models.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One adversary at work, in positions of the table and units of the noise."""

    target: int
    """The tuple attacked."""
    known: dict[int, int]
    """Position of a known tuple → position of its value."""
    secrets: tuple[int, int]
    """The value that the output speaks for, and the one it speaks against."""
    output: FloatArray
    """Where, measured from the smallest answer of all, in each coordinate."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A certified bracket and the attack that attains its lower end."""

    upper: float
    lower: float
    attack: Attack | None

    def or_worse(self, other: Outcome) -> Outcome:
        """Return the larger upper end together with the larger lower end."""
        better = self.attack is not None and (other.attack is None or self.lower >= other.lower)
        one = self if better else other
        return Outcome(upper=max(self.upper, other.upper), lower=one.lower, attack=one.attack)


NOTHING = Outcome(upper=0.0, lower=0.0, attack=None)


def bracket(log_ratio: float, bound: float, error: float, attack: Attack | None) -> Outcome:
    """Wrap a computed log-ratio, right to `error`, and a computed bound on all others."""
    if attack is None and bound <= 0:
        return NOTHING
    return Outcome(
        upper=math.nextafter(max(log_ratio, bound, 0.0) + error, math.inf),
        lower=0.0 if attack is None else max(0.0, math.nextafter(log_ratio - error, -math.inf)),
        attack=attack,
    )
