"""The answer to the one question: how much the worst adversary learns."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.checks import check_number, checked_share
from pdp_calibrate.core.noise import Noise, checked_noise
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import PdpError


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


Unit = Literal["epsilon", "mu", "rho"]
"""What a leakage is measured in."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What noise is added, and what the leakage is measured in."""

    noise: Noise = "laplace"
    """Laplace noise leaks a pure ε, Gaussian noise a μ."""
    unit: Unit = "epsilon"
    """μ is told as it is, as ρ = μ²/2 of zCDP, or as the ε of (ε, δ)."""
    delta: float = 0.0
    """The δ beside ε, for Gaussian noise."""

    @classmethod
    def of(cls, noise: object, *, unit: object = None, delta: object = None) -> Measure:
        """Check what was asked for: μ by default, and ε where a δ is given."""
        kind = checked_noise(noise)
        if kind == "laplace":
            if unit not in (None, "epsilon") or delta is not None:
                raise PdpError(
                    "Laplace noise leaks a pure epsilon: delta= and unit= need noise='gaussian'."
                )
            return cls()
        chosen = unit or ("mu" if delta is None else "epsilon")
        for known in get_args(Unit):
            if chosen == known:
                if (delta is None) == (known == "epsilon"):
                    raise PdpError("unit='epsilon' needs a delta, and no other unit takes one.")
                share = 0.0 if delta is None else checked_share(delta, "delta", error=PdpError)
                return cls(noise=kind, unit=known, delta=share)
        raise PdpError(f"unit must be 'epsilon', 'mu' or 'rho', got {unit!r}.")

    def leakage(
        self, found: Bracket, scale: float | tuple[float, ...], witness: Witness | None
    ) -> Leakage:
        """Say what a search found in this unit."""
        told = Leakage(value=found.upper, lower=found.lower, scale=scale, witness=witness)
        if self.noise == "laplace":
            return told
        scales = scale if isinstance(scale, tuple) else (scale,)
        value, lower = {
            "mu": lambda: (found.upper, found.lower),
            "rho": lambda: (gaussian_dp.rho_of(found.upper), _rho_below(found.lower)),
            "epsilon": lambda: (
                gaussian_dp.epsilon_of_drawn(found.upper, self.delta, scales),
                gaussian_dp.epsilon_attained(found.lower, self.delta),
            ),
        }[self.unit]()
        return dataclasses.replace(
            told, value=value, lower=min(lower, value), measure=self, mu=found.upper
        )


def _rho_below(mu: float) -> float:
    return max(0.0, math.nextafter(mu * mu / 2 * (1 - 4 * UNIT_ROUNDOFF), 0.0))


LAPLACE = Measure()
"""Laplace noise, told as a pure ε."""


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """Worst-case leakage at one scale: a certified bracket and who attains its lower end."""

    value: float
    """Certified upper bound on the leakage, in floating point too: decide with this one."""
    lower: float
    """Certified lower bound, attained by the witness."""
    scale: float | tuple[float, ...]
    """The scale it holds for, λ of Laplace noise or σ of Gaussian; one per query for a list."""
    witness: Witness | None
    """Adversary, secrets and output that attain `lower`; None if nobody has two secrets."""
    measure: Measure = LAPLACE
    """What noise it is about, and what `value` and `lower` are measured in."""
    mu: float | None = None
    """For Gaussian noise, the μ that nobody exceeds, whatever the unit; None for Laplace noise."""

    @property
    def unit(self) -> Unit:
        """What `value` and `lower` are: ``epsilon``, ``mu`` or ``rho``."""
        return self.measure.unit

    def epsilon(self, delta: float) -> float:
        """Return an ε for which the release is (ε, δ)-private, rounded up.

        Pure ε of Laplace noise holds at any δ; Gaussian noise has none at δ = 0: infinity. It is a
        claim about noise as it is drawn. A claim of μ or ρ is about Gaussian noise rounded to the
        grid that floats lie on, which nobody can tell from what is drawn.
        """
        check_number(delta, "delta", error=PdpError)
        if not 0 <= delta < 1:
            raise PdpError(f"delta must be at least 0 and below 1, got {delta}.")
        if self.mu is None:
            return self.value
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        return gaussian_dp.epsilon_of_drawn(self.mu, float(delta), scales)

    @property
    def exact(self) -> bool:
        """Whether `value` and `lower` agree to 1e-9 relative (or to 1e-11, near zero)."""
        return self.value - self.lower <= max(1e-9 * self.value, 1e-11)

    def to_dict(self) -> dict[str, Any]:
        """Describe the bracket for JSON."""
        witness = None if self.witness is None else self.witness.to_dict()
        described = {"value": self.value, "lower": self.lower, "witness": witness}
        if self.mu is None:
            return described
        delta = {"delta": self.measure.delta} if self.unit == "epsilon" else {}
        return described | {"unit": self.unit, "mu": self.mu, **delta}

    @property
    def bracket(self) -> str:
        """The value, or both ends where they differ."""
        return f"{self.value:.6g}" if self.exact else f"{self.lower:.6g} … {self.value:.6g}"

    @property
    def _in_unit(self) -> str:
        if self.mu is None:
            return ""
        return (
            f" epsilon, delta {self.measure.delta:g},"
            if self.unit == "epsilon"
            else f" {self.unit}"
        )

    @property
    def _at(self) -> str:
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        return ", ".join(f"{scale:.6g}" for scale in scales)

    def __repr__(self) -> str:
        return f"Leakage({self.bracket}{self._in_unit} at scale {self._at}, {self.witness})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("leakage", f"{self.bracket}{self._in_unit}"),
            ("at scale σ" if self.mu is not None else "at scale λ", self._at),
        ]
        witness = self.witness
        if witness is not None and witness.model.provenance != "private":
            rows += [
                ("worst adversary attacks", witness.target),
                ("and knows", f"{len(witness.known)} other entries"),
                ("telling apart", " and ".join(map(str, witness.secrets))),
            ]
        return card("Leakage", rows)
