"""The budget of a ledger: a pure ε, or an (ε, δ) that is divided before anything is released.

With δ = 0 everything is counted by the joint ε of all releases. With δ > 0 the budget is divided
beforehand between two filters, and a release that would exceed either is refused before its noise
is drawn:

- μ, for answers with Gaussian noise. What one of them adds depends on the past only through the
  queries and scales chosen, so if the joint μ of all of them stays within a μ fixed beforehand, the
  whole transcript is μ-GDP, however they are chosen. The level reached is not a claim: the budget
  is.
- E, for everything with a pure ε: Laplace noise and outside mechanisms. Their part of any ratio of
  likelihoods is at most e^E, so δ(ε) ≤ δ_μ(ε − E).

E and μ are fixed before the first release: dividing ε again after seeing outputs would let the
analyst choose the worse division for each sequence of outputs. Where E is allowed, what adversaries
do not know does not count as noise, because the other answers reveal it in ways that no covariance
describes.

Learning the model under ε_0-DP in whole draws multiplies ratios by e^{ε_0} at most and the
probabilities of every learned model by as much: δ(ε) ≤ e^{ε_0}·δ_μ(ε − E − ε_0).

**Repeats of one query.** Answers about finitely many values have a δ that is known exactly and may
be far smaller than that of μ, but only for one query: with several, each sequence of outputs could
use up the δ that was proved for one. So δ is divided as well. On sequences that repeat the first
query and ask no other, the exact δ of all repeats stays within its share; on all others μ stays
within the rest (Theorem 21 (docs/theory)). The first release is not chosen from outputs, so it
fixes the shares: if it needs more than the share of repeats, or asks several queries at once, it
gets all of δ.

The rounding of answers before their noise has its own trace of μ. The first choice is not adaptive,
so it may use the trace too.

A budget of ρ is a filter for zCDP: outside mechanisms that are ρ_0-zCDP and not Gaussian count as
well, and the ε reported at δ is the one that every ρ-zCDP mechanism keeps.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.arrays import (
    check_number,
    checked_epsilon,
    checked_positive,
    checked_share,
)
from pdp_calibrate.composition.joint import NoisyAnswers
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.model import Model, field_of
from pdp_calibrate.core.noise import Noise, checked_noise
from pdp_calibrate.errors import LedgerError, PdpError

_REPORTED_DELTA = 1e-6  # at which ε is reported where μ or ρ was asked for

_FOR_ROUNDING = 1e-6  # of μ: the trace that is left for rounding

_ROUNDED = 1e-12  # of what is left of a budget

_FOR_REPEATS = 0.5  # of δ: halving it costs either kind of course 3 to 4 % of noise


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What everything released about a draw may leak."""

    epsilon: float
    """The ε that nobody exceeds."""
    delta: float = 0.0
    """The δ that goes with it; 0 for a ledger of pure ε."""
    pure: float | None = None
    """The part of ε for Laplace noise and mechanisms; None where only Gaussian noise is drawn."""
    mu: float | None = None
    """The μ that was asked for in place of ε."""
    rho: float | None = None
    """The ρ of zCDP that was asked for in place of ε."""
    noise: Noise = "laplace"
    """The default noise of releases."""
    repeats: float = 0.0
    """The share of δ for releases that only repeat the first query; the rest is for all others."""

    @classmethod
    def of(
        cls,
        *,
        epsilon: float | None,
        delta: float | None,
        pure: float | None,
        mu: float | None,
        rho: float | None,
        noise: object,
    ) -> Allowance:
        """Check what was asked for."""
        kind: Noise = "laplace" if noise == "laplace" else checked_noise(noise)
        if (epsilon is not None) + (mu is not None) + (rho is not None) > 1:
            raise PdpError("a ledger has one budget: give one of epsilon=, mu= and rho=.")
        share = 0.0 if delta is None else checked_share(delta, "delta", error=PdpError)
        if mu is None and rho is None:
            level = checked_epsilon(2.0 if epsilon is None else epsilon)
            if share == 0 and (kind == "gaussian" or pure is not None):
                raise PdpError(
                    "a ledger with Gaussian noise needs delta= as well as epsilon=, far below one"
                    " over the number of people; or mu= or rho= in place of both."
                )
        else:
            share = share or _REPORTED_DELTA
            level = math.inf
            mu = None if mu is None else checked_positive(mu, "mu", error=PdpError)
            rho = None if rho is None else checked_positive(rho, "rho", error=PdpError)
        beside = None if pure is None else _checked_pure(pure)
        found = cls(epsilon=level, delta=share, pure=beside, mu=mu, rho=rho, noise=kind)
        if math.isinf(level):
            strength = found.limit(0.0)
            level = found.epsilon_of(strength * (1 + _ROUNDED), 0.0, math.inf) + (beside or 0.0)
            level *= 1 + _ROUNDED
            if not 0 < level < math.inf:
                raise PdpError(
                    f"this budget keeps epsilon = {level:g} at delta = {share:g}: choose another"
                    " delta."
                )
            found = cls(epsilon=level, delta=share, pure=beside, mu=mu, rho=rho, noise=kind)
        if found.takes_gaussian and not found.limit(0.0) > 0:
            raise PdpError(
                f"nothing of epsilon = {found.epsilon:.6g} is left for Gaussian noise beside pure ="
                f" {pure}."
            )
        return found

    @property
    def takes_gaussian(self) -> bool:
        """Whether there is a δ, without which Gaussian noise keeps no ε."""
        return self.delta > 0

    @property
    def data_counts(self) -> bool:
        """Whether what adversaries do not know counts as noise."""
        return self.pure is None

    def about(self, model: Model, repeats: float | None = None) -> Allowance:
        """Divide δ, for a model of finitely many values, between repeats of one query and others.

        For other models μ is exact, or nothing is gained: Gaussian values, and any dependence.
        """
        gains = self.takes_gaussian and (self.pure, self.mu, self.rho) == (None, None, None)
        gains &= not (any(model.continuous_tuples) or model.is_endless)
        gains &= not model.covers_any_dependence
        if repeats is None:
            return dataclasses.replace(self, repeats=_FOR_REPEATS if gains else 0.0)
        share = _checked_repeats(repeats)
        if share and not gains:
            raise PdpError(
                "repeats= divides the delta of a ledger of Gaussian noise alone, about finitely"
                " many values whose law is modelled: leave it out."
            )
        return dataclasses.replace(self, repeats=share)

    def check_takes(self, noise: str) -> None:
        """Refuse noise that the ledger was not begun for."""
        if noise == "gaussian" and not self.takes_gaussian:
            raise LedgerError(
                "this ledger has a budget of pure epsilon, which Gaussian noise never keeps: begin"
                " one with delta= as well."
            )
        if noise != "gaussian" and self.takes_gaussian and self.pure is None:
            raise LedgerError(
                "this ledger is for Gaussian noise alone, and counts unknown data as noise: begin"
                " one with pure=, the part of epsilon for Laplace noise and other mechanisms."
            )

    @functools.lru_cache(maxsize=16)  # noqa: B019 - budgets are few, frozen and small
    def limit(self, learned: float, share: float = 1.0) -> float:
        """Return the μ of the filter, if the model was learned from the draw with this ε.

        `share` is the part of δ that it may use.
        """
        if self.rho is not None:
            return gaussian_dp.mu_of_rho(self.rho)
        if self.mu is not None:
            return self.mu
        left = self.epsilon - (self.pure or 0.0) - learned
        left = left - self.epsilon * _ROUNDED if left < self.epsilon else left
        delta = self.delta_after(learned, share)
        return gaussian_dp.mu_for_drawn(left, delta) if left > 0 and delta > 0 else 0.0

    def delta_after(self, learned: float, share: float = 1.0) -> float:
        """Return a share of δ, less what learning the model takes of it, rounded down."""
        delta = self.delta * share
        return delta if learned == 0 else delta * math.exp(-learned) * (1 - _ROUNDED)

    def epsilon_of(self, mu: float, learned: float, scale: float, of_delta: float = 1.0) -> float:
        """Return the ε that answers of this μ keep at a share of δ, as drawn, rounded up."""
        share = self.delta_after(learned, of_delta)
        scales = [scale] if math.isfinite(scale) else []
        if self.rho is None:
            return gaussian_dp.epsilon_of_drawn(mu, share, scales)
        epsilon = gaussian_dp.epsilon_of_rho(gaussian_dp.rho_of(mu), gaussian_dp.law_delta(share))
        if scales and math.isfinite(epsilon):
            gaussian_dp.check_drawn(epsilon, share, scales)
        return epsilon

    def spent(
        self,
        pure: float,
        mu: float,
        answers: NoisyAnswers,
        learned: float,
        share: float = 1.0,
    ) -> float:
        """Return how much of ε is used: above ε if, and only if, a filter is exceeded.

        Parameters
        ----------
        pure
            The joint ε of Laplace noise and mechanisms, learning included.
        mu
            The joint μ of Gaussian noise.
        answers
            What has Gaussian noise.
        learned
            The ε of learning the model from this draw.
        share
            The part of δ that is for Gaussian noise by its μ.
        """
        if not self.takes_gaussian:
            return pure
        allowed = learned if self.pure is None else self.pure + learned * (1 + _ROUNDED)
        limit = self.limit(learned, share)
        off = math.sqrt(answers.rounding) * (1 + _ROUNDED)
        traced = limit * _FOR_ROUNDING
        within = mu <= limit - traced and off <= traced
        within |= answers.choices <= 1 and _next(mu + off) <= limit
        own = self.epsilon_of(mu + off, learned, answers.scale, share) if mu + off else 0.0
        if pure > allowed:
            return max(pure + self.epsilon - allowed, _next(self.epsilon))
        if not within:
            return max(own + allowed, _next(self.epsilon))
        return min(pure + own, self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Describe the budget for JSON; a pure one is its ε alone, as in version 1."""
        described: dict[str, Any] = {"epsilon": self.epsilon}
        if not self.takes_gaussian:
            return described
        asked = {name: getattr(self, name) for name in ("pure", "mu", "rho")}
        given = {name: value for name, value in asked.items() if value is not None}
        given |= {"repeats": self.repeats} if self.repeats else {}
        return described | {"delta": self.delta, "default_noise": self.noise, **given}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Allowance:
        """Undo `to_dict`."""
        epsilon = checked_epsilon(field_of(described, "epsilon"))
        if "delta" not in described:
            return cls(epsilon=epsilon)
        asked = {name: described[name] for name in ("mu", "rho") if name in described}
        for name, value in asked.items():
            checked_positive(value, name, error=LedgerError)
        pure = described.get("pure")
        return cls(
            epsilon=epsilon,
            delta=checked_share(described["delta"], "delta", error=LedgerError),
            pure=None if pure is None else _checked_pure(pure),
            noise=checked_noise(field_of(described, "default_noise")),
            repeats=_checked_repeats(described.get("repeats", 0.0)),  # older ledgers have none
            **asked,
        )


def _checked_pure(pure: float) -> float:
    return 0.0 if pure == 0 else checked_positive(pure, "pure", error=PdpError)


def _checked_repeats(share: object) -> float:
    check_number(share, "repeats", error=PdpError)
    if not 0 <= float(share) <= 1:  # type: ignore[arg-type]  # a number
        raise PdpError(f"repeats must be a share of delta, from 0 to 1, got {share!r}.")
    return float(share)  # type: ignore[arg-type]


def _next(value: float) -> float:
    return math.nextafter(value, math.inf)
