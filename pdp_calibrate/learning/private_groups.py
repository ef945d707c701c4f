"""Groups and series learned under differential privacy; the unit is a whole group or series.

**Groups of real values.** With y ∈ [−1, 1] for each of m' ≤ m members and s their sum, a group adds
s, b = s²/m' and w = Σy² − s²/m', with b, w ≥ 0 and b + w ≤ m'. Let |s₁| ≥ |s₂|, so b₁ ≥ b₂. Then
|b₁−b₂| = b₁ − b₂, |w₁−w₂| ≤ max(w₁, w₂) ≤ m' − b₂ and |s₁−s₂| ≤ |s₁| + |s₂|: together at most
m' + u + m' + m' − 2u²/m' with u = |s₂|, never above 25/8·m'. Rounding b down to whole steps adds
at most 2 steps.

**Yes/no groups.** A group adds 1 to one count, whatever its size: replacing it changes two counts
by 1.

**Series of real values.** A pair of neighbours adds α = (y+y')/2, α² and δ² = ((y−y')/2)², where
|α| + |δ| ≤ 1. With |α₁| ≥ |α₂| = u the three change by at most 1 + u, 1 − u² and (1−u)²: together
3 − u ≤ 3. A series of at most L values has L − 1 pairs: 3(L−1).

**Chains.** A series of at most L states has L − 1 transitions: 2(L−1), and 2 more for its start.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.products import GroupMoments
from pdp_calibrate.learning.intraclass import Intraclass, intraclass_of
from pdp_calibrate.learning.private_sums import (
    IntArray,
    Units,
    nearest_with_sum,
    noisy_sums,
    numbers_of,
    refuse_outside,
    resolution,
    units_of,
    whole_steps,
)


def private_totals(
    totals: Mapping[tuple[int, int], int], *, epsilon: float
) -> dict[tuple[int, int], float]:
    """Return noisy, repaired counts of groups by (size, ones), for every number of ones."""
    numbers: Counter[int] = Counter()
    for (size, _), count in totals.items():
        numbers[size] += count
    cells = [(size, ones) for size in sorted(numbers) for ones in range(size + 1)]
    counts = [totals.get(cell, 0) for cell in cells]
    noisy = noisy_sums(counts, sensitivity=2, epsilon=epsilon).values
    repaired: dict[tuple[int, int], float] = {}
    for size in sorted(numbers):
        own = [place for place, cell in enumerate(cells) if cell[0] == size]
        nearest = nearest_with_sum(noisy[own], numbers[size])
        repaired |= {cells[place]: float(count) for place, count in zip(own, nearest, strict=True)}
    return repaired


@dataclass(frozen=True, kw_only=True)
class PrivateGroups:
    """Noisy sums of squares of grouped values in [−1, 1]."""

    sizes: Counter[int]
    """How many groups there are of each size; public."""
    total: float
    """The noisy sum of all values."""
    between: float
    """Noisy Σ s²/m over groups."""
    within: float
    """Noisy Σ (value − mean of its group)²."""
    spread: float
    """Approximate standard deviation of the noise on each of them."""
    widest: float
    """A bound on every noise term, except with the failure probability."""
    rounding: float
    """The most that rounding to whole steps changes in each sum of squares."""

    @property
    def rows(self) -> int:
        """The number of values."""
        return sum(size * number for size, number in self.sizes.items())

    def moments(self) -> GroupMoments:
        """Return possible sums of squares; the one within groups is at least the noise."""
        between = self.between - self.total**2 / self.rows
        floor = min(self.spread, float(self.rows))
        return GroupMoments(
            sizes=self.sizes,
            between=float(np.clip(between, 0.0, self.rows)),
            within=float(np.clip(self.within, floor, self.rows)),
        )

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return a range for the correlation that covers the sample and the noise together.

        Half of the failure probability is spent on each.
        """
        t = self.widest + self.rounding
        between = self.between - self.total**2 / self.rows
        off = t + (2 * abs(self.total) * self.widest + self.widest**2) / self.rows + self.rounding
        lowest, highest = max(0.0, between - off), between + off
        if not self.within - t > 0 or not highest > 0:
            raise ModelError(
                f"the noise of the estimation is too large for a confidence of {confidence:.4g}:"
                " any correlation up to 1 is possible. More groups, a larger epsilon or narrower"
                " bounds help."
            )
        sample = 1 - (1 - confidence) / 2
        low = intraclass_of(
            GroupMoments(sizes=self.sizes, between=lowest, within=self.within + t)
        ).interval(sample)[0]
        high = intraclass_of(
            GroupMoments(sizes=self.sizes, between=highest, within=self.within - t)
        ).interval(sample)[1]
        return low - 1e-9, min(high + 1e-9, 1 - 1e-9)


def private_groups(
    frame: Any,
    *,
    value: Hashable,
    by: Hashable,
    bounds: tuple[float, float],
    largest: int,
    epsilon: float,
    confidence: float | None,
) -> PrivateGroups:
    """Return the noisy sums of squares of a grouped column, clipped to its bounds."""
    _, values = numbers_of(frame, [value])
    units = units_of(frame, by=by)
    sizes = units.sizes
    numbers = np.bincount(sizes).tolist()
    alike = Counter({size: number for size, number in enumerate(numbers) if number})
    refuse_larger(alike, largest)
    if confidence is not None:
        refuse_outside(values, [bounds], [value])
    # The square of a group's sum must fit as well: at most (m·R)² with m ≤ N members.
    steps = resolution(
        len(values) * min(largest, len(values)),
        sensitivity=25 / 8 * largest + 1,
        epsilon=epsilon,
    )
    whole = whole_steps(values[units.order], [bounds], steps)[:, 0]
    sums, squares = (np.add.reduceat(one, units.begins) for one in (whole, whole * whole))
    between = sums * sums // sizes
    noisy = noisy_sums(
        [int(sums.sum()) * steps, int(between.sum()), int((squares - between).sum())],
        sensitivity=-(-25 * largest * steps**2 // 8) + 2,
        epsilon=epsilon,
    )
    unit, moved = float(steps) ** 2, 0.5 / steps
    total, groups, members = (noisy.values / unit).tolist()
    return PrivateGroups(
        sizes=alike,
        total=total,
        between=groups,
        within=members,
        spread=math.sqrt(2) * noisy.scale / unit,
        widest=noisy.widest(0.5 if confidence is None else (1 - confidence) / 2) / unit,
        rounding=2 * len(values) * (2 * moved + moved**2) + len(sizes) / unit,
    )


def refuse_larger(sizes: Mapping[int, int], largest: int | None) -> None:
    """Raise if a group is larger than the public limit; sizes are public."""
    if largest is not None and max(sizes) > largest:
        raise ModelError(
            f"groups may have at most max_group_size={largest} rows, got one of {max(sizes)}."
            " Raise the limit, or split or leave out larger groups."
        )


def private_intraclass(
    found: PrivateGroups, *, bounds: tuple[float, float], value: Hashable
) -> Intraclass:
    """Return the analysis of variance of noisy sums, in the units of the column."""
    half = bounds[1] / 2 - bounds[0] / 2
    own = found.moments()
    scaled = GroupMoments(
        sizes=own.sizes, between=own.between * half**2, within=own.within * half**2
    )
    return intraclass_of(scaled, value)


def private_neighbours(
    values: FloatArray,
    series: Units,
    *,
    bounds: tuple[float, float],
    longest: int,
    epsilon: float,
) -> tuple[float, float]:
    """Return a noisy correlation of neighbours in series, and the variance.

    Only the first values of each series are used, up to the limit.
    """
    follows = followed(series, longest)
    pairs = int(follows.sum())
    if pairs < 2:
        raise ModelError("a correlation of neighbours needs at least two pairs of neighbours.")
    delta = 3 * (longest - 1)
    steps = resolution(4 * pairs, sensitivity=4 * delta, epsilon=epsilon)
    whole = whole_steps(values[series.order, np.newaxis], [bounds], steps)[:, 0]
    sums, gaps = (whole[:-1] + whole[1:])[follows], (whole[:-1] - whole[1:])[follows]
    noisy = noisy_sums(
        [int(sums.sum()) * 2 * steps, int(sums @ sums), int(gaps @ gaps)],
        sensitivity=4 * delta * steps**2,
        epsilon=epsilon,
    )
    unit = 4 * float(steps) ** 2
    total, together, apart = (noisy.values / unit).tolist()
    floor = min(math.sqrt(2) * noisy.scale / unit, float(pairs))
    together = float(np.clip(together - total**2 / pairs, floor, pairs))
    apart = float(np.clip(apart, floor, pairs))
    half = bounds[1] / 2 - bounds[0] / 2
    correlation = (together - apart) / (together + apart)
    return correlation, (together + apart) / pairs * half**2


def private_transitions(
    states: IntArray,
    series: Units,
    *,
    number: int,
    with_starts: bool,
    longest: int,
    epsilon: float,
) -> tuple[FloatArray, FloatArray | None, float]:
    """Return noisy counts of transitions and, if they are learned, of starts; and the noise scale.

    Only the first states of each series are used, up to the limit. `states` are numbered from 0;
    negative ones are none of the stated states, and are not counted.
    """
    ordered = states[series.order]
    before, after = ordered[:-1], ordered[1:]
    follows = followed(series, longest) & (before >= 0) & (after >= 0)
    pairs = np.zeros((number, number), dtype=np.int64)
    np.add.at(pairs, (before[follows], after[follows]), 1)
    first = ordered[series.begins]
    starts = np.bincount(first[first >= 0], minlength=number) if with_starts else None
    counts = pairs.ravel() if starts is None else np.concatenate([pairs.ravel(), starts])
    sensitivity = 2 * (longest - 1) + (0 if starts is None else 2)
    noisy = noisy_sums(counts, sensitivity=sensitivity, epsilon=epsilon)
    values = noisy.values.astype(np.float64)
    moves = values[: pairs.size].reshape(pairs.shape)
    return moves, None if starts is None else values[pairs.size :], noisy.scale


def followed(series: Units, longest: int) -> npt.NDArray[np.bool_]:
    """Return for each row but the last whether the next one follows it within the limit."""
    return np.asarray((np.diff(series.numbers) == 0) & (series.places[1:] < longest))
