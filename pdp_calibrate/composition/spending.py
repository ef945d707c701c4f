"""What was released about one draw of the data, added up as far as adding up is right."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF, rounded_up
from pdp_calibrate.core.tuning import JOINED_NUMBERS, KEPT_SPENDING

_SUMS = ("rounding", "dp_epsilon", "draw_epsilon")


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyAnswers:
    """What was released about one draw with Gaussian noise."""

    parts: tuple[Contributions, ...] = ()
    """The lowered queries, each once: σ^-2 of repeated answers add up."""
    precisions: tuple[float, ...] = ()
    """Σ σ^-2 of each, rounded up."""
    rounding: float = 0.0
    """Σ (2r/σ)² over all answers, r how far each may be off before its noise."""
    outside: float = 0.0
    """Σ μ² of other mechanisms, for substituting one tuple."""
    choices: int = 0
    """How often somebody chose what to release, having seen what came before."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing."""
        return not self.parts and not self.outside

    @property
    def scale(self) -> float:
        """The scale of one answer that differs from Gaussian noise, as drawn, as much as all do."""
        return math.inf if not self.precisions else 1 / math.sqrt(math.fsum(self.precisions))

    def plus(self, part: Contributions, scale: float, *, rounding: float) -> NoisyAnswers:
        """Return the same after one more answer; whoever adds it counts the choice."""
        added = (1 / scale) ** 2 * (1 + 8 * UNIT_ROUNDOFF)
        off = (2 * rounding / scale) ** 2 * (1 + 8 * UNIT_ROUNDOFF)
        precisions = dict(zip(map(id, self.parts), self.precisions, strict=True))
        precisions[id(part)] = (precisions.get(id(part), 0.0) + added) * ROUND_UP
        parts = self.parts if id(part) in set(map(id, self.parts)) else (*self.parts, part)
        return dataclasses.replace(
            self,
            parts=parts,
            precisions=tuple(precisions.values()),
            rounding=(self.rounding + off) * ROUND_UP,
        )

    def plus_mechanism(self, mu: float) -> NoisyAnswers:
        """Return the same after one more mechanism of this μ for substituting one tuple."""
        outside = (self.outside + mu * mu) * (1 + 8 * UNIT_ROUNDOFF)
        return dataclasses.replace(self, outside=outside, choices=self.choices + 1)

    def chosen(self) -> NoisyAnswers:
        """Return the same after one more choice."""
        return dataclasses.replace(self, choices=self.choices + 1)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Everything released about one draw of the data."""

    parts: tuple[Contributions, ...] = ()
    """The lowered queries; a query released twice is the same object twice."""
    scales: tuple[float, ...] = ()
    """The Laplace scale of each."""
    rounding: float = 0.0
    """What the rounding of the answers before the noise costs, in nats."""
    dp_epsilon: float = 0.0
    """The plain-DP budgets (substitution) of all other mechanisms, added up."""
    draw_epsilon: float = 0.0
    """The budgets of mechanisms that are differentially private in the whole draw, added up.

    Whatever stores a spending must store this too.
    """
    budgets: FloatArray | None = None
    """Per tuple, how far it alone can move the likelihood of all answers: Σ_m LS_j(f_m)/λ_m."""
    only_budgets: bool = False
    """Whether there were too many answers to keep `parts`, and `budgets` stand for all of them."""
    noisy: NoisyAnswers = field(default_factory=NoisyAnswers)
    """What was released with Gaussian noise."""
    later: Spending | None = None
    """What was released with a pure ε once there was Gaussian noise, and may depend on it."""

    def plus(
        self, part: Contributions, scale: float, *, ranges: FloatArray, rounding: float
    ) -> Spending:
        """Return the spending after one more answer; `ranges` are its exact LS_j."""
        if not self.noisy.is_empty:
            after = (self.later or Spending()).plus(part, scale, ranges=ranges, rounding=rounding)
            return dataclasses.replace(self, later=after)
        added = ranges / scale * ROUND_UP
        parts, scales = (*self.parts, part), (*self.scales, scale)
        distinct = {id(one): one.coordinates * len(one.values) for one in parts}
        many = self.only_budgets or (not part.real and sum(distinct.values()) > KEPT_SPENDING)
        return dataclasses.replace(
            self,
            parts=() if many else parts,
            scales=() if many else scales,
            rounding=(self.rounding * ROUND_UP) + 2 * rounding / scale,
            budgets=added if self.budgets is None else (self.budgets + added) * ROUND_UP,
            only_budgets=many,
        )

    def plus_mechanism(self, dp_epsilon: float) -> Spending:
        """Return the spending after one more mechanism of this plain-DP budget."""
        if not self.noisy.is_empty:
            after = (self.later or Spending()).plus_mechanism(dp_epsilon)
            return dataclasses.replace(self, later=after)
        total = (self.dp_epsilon + dp_epsilon) * (ROUND_UP if self.dp_epsilon else 1.0)
        return dataclasses.replace(self, dp_epsilon=total)

    def plus_learning(self, epsilon: float) -> Spending:
        """Return the spending after a mechanism that is ε-DP for substituting the whole draw."""
        total = (self.draw_epsilon + epsilon) * (ROUND_UP if self.draw_epsilon else 1.0)
        return dataclasses.replace(self, draw_epsilon=total)

    def in_one(self) -> Spending:
        """Return the same without a difference between earlier and later."""
        later = self.later
        if later is None:
            return self
        budgets = [one for one in (self.budgets, later.budgets) if one is not None]
        return dataclasses.replace(
            self,
            parts=self.parts + later.parts,
            scales=self.scales + later.scales,
            rounding=(self.rounding + later.rounding) * ROUND_UP,
            dp_epsilon=(self.dp_epsilon + later.dp_epsilon) * ROUND_UP,
            budgets=np.asarray(sum(budgets) * ROUND_UP) if budgets else None,
            later=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe for JSON what stands for too many answers."""
        budgets = [] if self.budgets is None else self.budgets.tolist()
        return {"budgets": budgets} | {key: getattr(self, key) for key in _SUMS}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Spending:
        """Undo `to_dict`."""
        numbers = np.array(described["budgets"], dtype=np.float64)
        sums: dict[str, Any] = {key: float(described[key]) for key in _SUMS}
        smallest = min(*numbers, *sums.values())
        if numbers.ndim != 1 or not np.all(np.isfinite(numbers)) or not smallest >= 0:
            raise ValueError("budgets must be numbers, zero or more.")
        return cls(budgets=numbers, only_budgets=True, **sums)

    def merged(self) -> tuple[Spending, float]:
        """Return the same with repeated queries as one, of the scale at which its costs are equal.

        The costs |f − f'|/λ_m of one query add up, so for every bound that uses only costs it
        counts as if released once with scale 1/Σ 1/λ_m. So does a multiple of it, such as the mean
        beside the sum, or the count of all others; the second number is what it costs in nats that
        they are so only up to rounding.
        """
        rates: dict[int, list[float]] = {}
        for part, scale in zip(self.parts, self.scales, strict=True):
            rates.setdefault(id(part), []).append(1 / scale)
        distinct = {id(part): part for part in self.parts}
        if len(self.parts) <= 1:
            return self, 0.0
        kept: dict[int | bytes, tuple[Contributions, list[float]]] = {}
        moved = 0.0
        for part in distinct.values():
            first, totals = kept.setdefault(_direction(part), (part, []))
            factor, error = _multiple(part, first)
            totals += [factor * rate for rate in rates[id(part)]]
            moved += 2 * error * math.fsum(rates[id(part)])
        scales = tuple(
            1 / one[0] if len(one) == 1 else 1 / (math.fsum(one) * ROUND_UP)
            for _, one in kept.values()
        )
        parts = tuple(part for part, _ in kept.values())
        return dataclasses.replace(self, parts=parts, scales=scales), rounded_up(
            moved, 4 + len(distinct)
        )

    def joined(self, model: Model) -> Contributions:
        """Return one answer in units of the noise."""
        if not self.parts:
            return nothing_about(model)
        parts = self.parts
        if not model.is_continuous:  # on discrete tuples clamping does nothing
            parts = tuple(dataclasses.replace(part, clamped=False) for part in parts)
        return Contributions.joined(parts, self.scales)

    def is_small(self, model: Model) -> bool:
        """Whether all answers together can be looked at, rather than their budgets alone."""
        if self.only_budgets:
            return False
        numbers = sum(part.coordinates for part in self.parts) * len(model.names)
        return numbers <= JOINED_NUMBERS

    def tuple_budgets(self, model: Model) -> FloatArray:
        """Return `budgets`, worked out if they were not given."""
        if self.budgets is not None:
            return self.budgets
        total = np.zeros(len(model.names))
        for part, scale in zip(self.parts, self.scales, strict=True):
            total += part.exact_ranges() / scale
        return np.asarray(rounded_up(total, 2 * len(self.parts)))


def _direction(part: Contributions) -> int | bytes:
    """Return what answers share that are, up to rounding, multiples of each other."""
    moves = part.moves
    peak = 0.0 if moves is None else float(moves[int(np.abs(moves).argmax())])
    if moves is None or not peak:
        return id(part)
    return (np.round(moves / peak, 12) + 0.0).tobytes()  # no negative zeros


def _multiple(part: Contributions, first: Contributions) -> tuple[float, float]:
    """Return the factor between two answers, and how far they are from multiples at most."""
    if part is first or part.moves is None or first.moves is None:
        return 1.0, 0.0
    place = int(np.abs(first.moves).argmax())
    factor = float(part.moves[place] / first.moves[place])
    apart = np.abs(part.moves - factor * first.moves)
    starts = np.cumsum([0, *part.sizes[:-1]])
    error = float(np.maximum.reduceat(apart, starts).sum())
    error += part.rounding / 2  # the costs of `first` hold for it alone
    size = part.magnitude + first.magnitude
    return abs(factor), (error + 16 * UNIT_ROUNDOFF * size * max(1.0, abs(factor))) * ROUND_UP


def nothing_about(model: Model) -> Contributions:
    """Return the answer to which no tuple adds anything."""
    return _nothing(tuple(len(domain) for domain in model.domains), model.is_continuous)


@functools.lru_cache(maxsize=8)
def _nothing(sizes: tuple[int, ...], continuous: bool) -> Contributions:  # noqa: FBT001
    zeros = [np.zeros(size) for size in sizes]
    weights = [0.0] * len(zeros) if continuous else None
    return Contributions.additive(zeros, weights=weights, real=continuous)
