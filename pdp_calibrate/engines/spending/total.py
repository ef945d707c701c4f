"""What was released about one draw of the data, added up as far as adding up is right."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import FloatArray

ROUND_UP = 1 + 16 * UNIT_ROUNDOFF
_LARGEST_JOINED = 20_000  # numbers: tuples times answers


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

    def plus(
        self, part: Contributions, scale: float, *, ranges: FloatArray, rounding: float
    ) -> Spending:
        """Return the spending after one more answer; `ranges` are its LS_j."""
        added = ranges / scale * ROUND_UP
        return dataclasses.replace(
            self,
            parts=(*self.parts, part),
            scales=(*self.scales, scale),
            rounding=(self.rounding * ROUND_UP) + 2 * rounding / scale,
            budgets=added if self.budgets is None else (self.budgets + added) * ROUND_UP,
        )

    def plus_mechanism(self, dp_epsilon: float) -> Spending:
        """Return the spending after one more mechanism of this plain-DP budget."""
        total = (self.dp_epsilon + dp_epsilon) * (ROUND_UP if self.dp_epsilon else 1.0)
        return dataclasses.replace(self, dp_epsilon=total)

    def plus_learning(self, epsilon: float) -> Spending:
        """Return the spending after a mechanism that is ε-DP for substituting the whole draw."""
        total = (self.draw_epsilon + epsilon) * (ROUND_UP if self.draw_epsilon else 1.0)
        return dataclasses.replace(self, draw_epsilon=total)

    def merged(self) -> Spending:
        """Return the same with repeated queries as one, of the scale at which its costs are equal.

        The costs |f − f'|/λ_m of one query add up, so for every bound that uses only costs it
        counts as if released once with scale 1/Σ 1/λ_m.
        """
        totals: dict[int, list[float]] = {}
        for part, scale in zip(self.parts, self.scales, strict=True):
            totals.setdefault(id(part), []).append(1 / scale)
        if len(totals) == len(self.parts):
            return self
        distinct = {id(part): part for part in self.parts}
        scales = tuple(
            1 / one[0] if len(one) == 1 else 1 / (math.fsum(one) * ROUND_UP)
            for one in totals.values()
        )
        return dataclasses.replace(self, parts=tuple(distinct.values()), scales=scales)

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
        numbers = sum(part.coordinates for part in self.parts) * len(model.names)
        return numbers <= _LARGEST_JOINED

    def tuple_budgets(self, model: Model) -> FloatArray:
        """Return `budgets`, worked out if they were not given."""
        if self.budgets is not None:
            return self.budgets
        total = np.zeros(len(model.names))
        for part, scale in zip(self.parts, self.scales, strict=True):
            total += part.tuple_ranges() / scale
        return total * ROUND_UP


def nothing_about(model: Model) -> Contributions:
    """Return the answer to which no tuple adds anything."""
    return _nothing(tuple(len(domain) for domain in model.domains), model.is_continuous)


@functools.lru_cache(maxsize=8)
def _nothing(sizes: tuple[int, ...], continuous: bool) -> Contributions:  # noqa: FBT001
    zeros = [np.zeros(size) for size in sizes]
    weights = [0.0] * len(zeros) if continuous else None
    return Contributions.additive(zeros, weights=weights, real=continuous)
