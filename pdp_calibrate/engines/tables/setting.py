"""A table and a query in units of the noise: what every search over tables works on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pdp_calibrate.adversaries import Knowledge
from pdp_calibrate.contributions import diameter
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.table import JointTable

LARGEST_EXPONENT = 660.0  # e^±660 is far from overflow and from the subnormal numbers
NEAR_ONE = 1.0  # ranges up to this many scales: keep density − 1 rather than density


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is attacked, with answers divided by the scale of their coordinate."""

    probabilities: FloatArray
    """The joint table, one axis per tuple."""
    parts: tuple[FloatArray, ...]
    """`parts[j][v]`: what value v of tuple j adds, from zero, in units of the scale; () if not
    additive."""
    table: FloatArray | None
    """The answer in every cell, from zero, in units of the scale; None if additive."""
    knowledge: Knowledge
    """The adversaries."""
    counts_strongest: bool
    """Whether θ matters also to those who know everyone else here (but not all there is)."""
    tails_only: bool = False
    """Whether only the limits r → ±∞ count."""
    cache: dict[str, Any] = field(default_factory=dict, repr=False)
    """Facts about the table worked out once."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        return self.probabilities.shape

    @cached_property
    def coordinates(self) -> int:
        """Number of output coordinates."""
        return int((self.parts[0] if self.table is None else self.table).shape[-1])

    @cached_property
    def answers(self) -> FloatArray:
        """The answer in every cell, shape (cells, coordinates), in units of the scale."""
        if self.table is not None:
            return self.table.reshape(-1, self.coordinates)
        sums = np.zeros((1, self.coordinates))
        for part in self.parts:
            sums = (sums[:, np.newaxis] + part).reshape(-1, self.coordinates)
        return sums

    @cached_property
    def furthest(self) -> float:
        """A bound on the distance (L1, in scales) of two answers; the group bound."""
        if self.table is None:
            spread = sum(float(part.max(axis=0).sum()) for part in self.parts)
        else:
            spread = float(self.table.reshape(-1, self.coordinates).max(axis=0).sum())
        return spread * (1 + 2 * (len(self.sizes) + self.coordinates + 2) * UNIT_ROUNDOFF)

    @property
    def is_near_one(self) -> bool:
        """Whether all densities lie so close together that their distance from 1 is kept."""
        return self.furthest <= NEAR_ONE

    @cached_property
    def fits_linear_space(self) -> bool:
        """Whether no mass, kernel or ratio of densities can underflow or overflow."""
        rarest = self.probabilities[self.probabilities > 0].min()
        return bool(self.furthest - np.log(rarest) <= LARGEST_EXPONENT)

    def rounding_error(self, additions: int) -> float:
        """Bound the error of a log-ratio of two densities computed with so many additions.

        A density is Σ p·k over a mass Σ p, all terms of one sign: each sum is right to `additions`
        relative roundings, each kernel k = e^{−d} to those of d, which are relative to the furthest
        distance. Kept as density − 1 = Σ p·(e^{−d} − 1)/Σ p, all errors shrink with d itself.
        """
        roundings = 2 * additions + len(self.sizes) + self.coordinates + 24
        size = 3 * self.furthest if self.is_near_one else 1 + self.furthest
        return 4 * roundings * UNIT_ROUNDOFF * size


def setting_of(problem: Problem, scale: float | FloatArray) -> Setting:
    """Divide the query by the noise; every tuple's part starts at zero to keep its digits."""
    if not isinstance(problem.model, JointTable):
        raise TypeError(f"the table engine searches joint tables, got {problem.model!r}.")
    contributions = problem.contributions
    table = contributions.table
    if table is not None:
        table = (table - table.reshape(-1, table.shape[-1]).min(axis=0)) / scale
    return Setting(
        probabilities=problem.model.probabilities,
        parts=tuple((part - part.min(axis=0)) / scale for part in contributions.values),
        table=table,
        knowledge=problem.knowledge,
        counts_strongest=problem.hidden_noise or problem.knowledge.incomplete,
    )


def unknown_sets(setting: Setting, target: int) -> Iterator[tuple[int, ...]]:
    """Yield the admitted sets of unknown tuples, without the empty one unless θ counts for it.

    Knowing everyone else, the output tells LS_i/λ whatever the table is: searched elsewhere.
    """
    for unknown in setting.knowledge.unknown_sets(target):
        if unknown or setting.counts_strongest:
            yield unknown


def group_bound(setting: Setting, moving: tuple[int, ...]) -> float:
    """Bound the leakage by how far these tuples together can move the answer, in scales."""
    if setting.table is not None:
        return setting.furthest
    spread = sum(diameter(setting.parts[place]) for place in moving)
    return spread * (1 + 4 * (len(setting.sizes) + setting.coordinates + 4) * UNIT_ROUNDOFF)
