"""The answer to the one question: how much the worst adversary learns."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.cards import card


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """What a search knows when it ends: the only result of a search."""

    upper: float
    """Upper end: nobody in the problem leaks more."""
    lower: float
    """Lower end, attained by the witness."""
    witness: Witness | None
    """Who attains the lower end."""
    target: int
    """The tuple attacked by the adversary behind `upper`."""
    unknown: tuple[int, ...]
    """The tuples that this adversary does not know."""

    def with_lower(self, other: Bracket) -> Bracket:
        """Take the other's lower end if it is better."""
        if self.witness is not None and self.lower >= other.lower:
            return self
        return dataclasses.replace(self, lower=other.lower, witness=other.witness)

    def plus(self, cost: float) -> Bracket:
        """Add a cost to the upper end, rounded up."""
        if cost == 0:
            return self
        return dataclasses.replace(self, upper=math.nextafter(self.upper + cost, math.inf))

    def widened(self, cost: float) -> Bracket:
        """Move both ends outwards by a cost, the upper one rounded up."""
        lower = max(0.0, math.nextafter(self.lower - cost, -math.inf)) if cost else self.lower
        return dataclasses.replace(self.plus(cost), lower=lower)

    def at_most(self, bound: float) -> Bracket:
        """Lower the upper end to another certified bound."""
        return self if self.upper <= bound else dataclasses.replace(self, upper=bound)

    def or_worse(self, other: Bracket) -> Bracket:
        """Return the larger upper end together with the larger lower end."""
        if self.upper >= other.upper:
            return self.with_lower(other)
        return other.with_lower(self)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A certified upper bound on a leakage, and the argument it rests on."""

    value: float
    """Nobody learns more, rounding included."""
    method: str
    """``exact``, ``windows``, ``dual``, ``birkhoff``, ``shift``, ``group``, ``whole`` (learning the
    model, which is private in whole draws) or ``nothing``."""

    def or_worse(self, other: Bound) -> Bound:
        """Return the larger of two bounds on different adversaries."""
        return self if self.value >= other.value else other

    def or_better(self, other: Bound) -> Bound:
        """Return the smaller of two bounds on the same adversaries."""
        return self if self.value <= other.value else other


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """Worst-case leakage at one scale: a certified bracket and who attains its lower end."""

    value: float
    """Certified upper bound on the leakage, in floating point too: decide with this one."""
    lower: float
    """Certified lower bound, attained by the witness."""
    scale: float | tuple[float, ...]
    """The Laplace scale λ it holds for; one per query for a joint release."""
    witness: Witness | None
    """Adversary, secrets and output that attain `lower`; None if nobody has two secrets."""

    @classmethod
    def at(cls, scale: float, found: Bracket) -> Leakage:
        """Say what a search about one query found at a scale."""
        return cls(value=found.upper, lower=found.lower, scale=scale, witness=found.witness)

    @property
    def exact(self) -> bool:
        """Whether `value` and `lower` agree to 1e-9 relative (or to 1e-11, near zero)."""
        return self.value - self.lower <= max(1e-9 * self.value, 1e-11)

    def to_dict(self) -> dict[str, Any]:
        """Describe the bracket for JSON."""
        witness = None if self.witness is None else self.witness.to_dict()
        return {"value": self.value, "lower": self.lower, "witness": witness}

    @property
    def bracket(self) -> str:
        """The value, or both ends where they differ."""
        return f"{self.value:.6g}" if self.exact else f"{self.lower:.6g} … {self.value:.6g}"

    @property
    def _at(self) -> str:
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        return ", ".join(f"{scale:.6g}" for scale in scales)

    def __repr__(self) -> str:
        return f"Leakage({self.bracket} at scale {self._at}, {self.witness})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("leakage", self.bracket), ("at scale λ", self._at)]
        witness = self.witness
        if witness is not None and witness.model.provenance != "private":
            rows += [
                ("worst adversary attacks", witness.target),
                ("and knows", f"{len(witness.known)} other entries"),
                ("telling apart", " and ".join(map(str, witness.secrets))),
            ]
        return card("Leakage", rows)
