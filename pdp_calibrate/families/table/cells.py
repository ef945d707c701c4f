"""A joint table and the answer in its cells: what depends on neither adversaries nor scales.

Answers on a grid (counts, histograms, whole numbers): the ratio of two mixtures is largest at an
atom (in several coordinates: on the product grid of the atoms' coordinates), so only the values
that the answer can take need be tried as outputs. Sums that differ only by rounding become one
value, and the error includes how far that moves them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.core.tuning import DRAWN_DATABASES, KEPT_NUMBERS, MOST_LEVELS, MOST_SUMS

if TYPE_CHECKING:
    from pdp_calibrate.families.table.odds_bound import OddsBound
    from pdp_calibrate.families.table.setting import Events

_SAME = 256 * UNIT_ROUNDOFF  # values closer than this, times a coordinate's range, become one


_FACTORS = 1e-13  # largest relative error at which a table counts as a product


_SMALLEST = 1e-290  # products below this may have lost digits to underflow


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """The answers of all cells as indices into the values that each coordinate can take."""

    values: tuple[FloatArray, ...]
    """Per coordinate, ascending, from the smallest answer."""
    answers: npt.NDArray[np.int32]
    """Per cell of the flat table, the number of its answer."""
    distinct: tuple[npt.NDArray[np.intp], ...]
    """Per coordinate, the index into its values of every answer that occurs."""
    moved: FloatArray
    """Per coordinate, by how much an answer was moved at most to be on the grid."""

    @classmethod
    def of(cls, cells: Cells) -> Levels | None:
        """Put the answers on a grid; None if it is too large."""
        values = cells.values
        if values is None:
            return None
        answers = cells.answers
        places = [_nearest(column, answers[:, c]) for c, column in enumerate(values)]
        moved = [
            np.abs(column[place] - answers[:, c]).max()
            for c, (column, place) in enumerate(zip(values, places, strict=True))
        ]
        shape = [len(column) for column in values]
        combined, numbers = np.unique(np.ravel_multi_index(places, shape), return_inverse=True)
        return cls(
            values=values,
            answers=numbers.astype(np.int32).ravel(),
            distinct=np.unravel_index(combined, shape),
            moved=np.array(moved),
        )

    @cached_property
    def outputs(self) -> FloatArray:
        """The product grid, shape (outputs, coordinates); ascending in one coordinate."""
        return np.array(list(itertools.product(*self.values)))

    @cached_property
    def corners(self) -> FloatArray:
        """The outputs that stand for the limits r → ±∞."""
        return np.array(list(itertools.product(*(column[[0, -1]] for column in self.values))))

    @cached_property
    def _distances(self) -> FloatArray:
        return self._apart(self.outputs, 1.0)

    def distances(self, scale: float | FloatArray, *, tails_only: bool) -> FloatArray:
        """Return the distance of every answer from every output in scales; one row per answer."""
        if tails_only or isinstance(scale, np.ndarray) or self.numbers > KEPT_NUMBERS:
            return self._apart(self.corners if tails_only else self.outputs, scale)
        return np.asarray(self._distances / scale)

    def _apart(self, outputs: FloatArray, scale: float | FloatArray) -> FloatArray:
        scales = np.broadcast_to(scale, len(self.values))
        apart = np.zeros((len(self.distinct[0]), len(outputs)))
        for c, (column, index) in enumerate(zip(self.values, self.distinct, strict=True)):
            apart += np.abs(column[index][:, np.newaxis] - outputs[:, c]) / scales[c]
        return apart

    @cached_property
    def numbers(self) -> int:
        """How many pairs of an answer and an output there are."""
        return len(self.distinct[0]) * math.prod(len(column) for column in self.values)


@dataclass(frozen=True, kw_only=True, eq=False)
class EventLaws:
    """The law of the answer given what is known, for everything that can be known of the tuples.

    One row per event: every tuple has one of its values or is unknown, written as its domain size.
    The row of an event is its place in the table of shape (size + 1, …).
    """

    laws: FloatArray
    """P(answer | event), shape (events, answers); meaningless for events that cannot occur."""
    possible: npt.NDArray[np.bool_]
    """Whether the event can occur."""

    @classmethod
    def of(cls, cells: Cells, levels: Levels) -> EventLaws:
        """Add up cells along every axis: at most Σ sizes additions behind each number."""
        sizes, answers = cells.sizes, len(levels.distinct[0])
        masses = np.zeros((cells.events, answers))
        places = np.arange(cells.events).reshape([size + 1 for size in sizes])
        inside = tuple(slice(size) for size in sizes)
        masses[places[inside].ravel(), levels.answers] = cells.probabilities.ravel()
        # From the last axis to the first. The last entry of a finished axis stands for "unknown";
        # the axes before it have only the values so far.
        for axis in reversed(range(len(sizes))):
            table = masses.reshape(*places.shape[: axis + 1], -1)
            *values, unknown = np.moveaxis(table[inside[:axis]], axis, 0)
            unknown += values[0]
            for more in values[1:]:
                unknown += more
        totals = masses.sum(axis=1)
        possible = totals > 0
        laws = np.divide(masses, np.where(possible, totals, 1.0)[:, np.newaxis], out=masses)
        return cls(laws=laws, possible=possible)


@dataclass(frozen=True, kw_only=True)
class Factors:
    """The groups of tuples into which a table factors."""

    groups: tuple[tuple[int, ...], ...]
    """Their positions; none if the table does not factor."""
    error: float
    """Bound on the change of any log-ratio by treating the table as their product."""

    @classmethod
    def of(cls, probabilities: FloatArray) -> Factors:
        """Look for independent groups."""
        together = cls(groups=(), error=0.0)
        size = probabilities.ndim
        apart: dict[int, tuple[int, ...]] = {place: (place,) for place in range(size)}  # in groups
        for (first, second), pair in pair_tables(probabilities).items():
            if second in apart[first]:  # linked through others
                continue
            product = np.outer(pair.sum(axis=1), pair.sum(axis=0))
            if np.any(np.abs(pair - product) > _FACTORS * product):
                joined = tuple(sorted(apart[first] + apart[second]))
                apart |= dict.fromkeys(joined, joined)
                if len(joined) == size:
                    return together
        groups = tuple(dict.fromkeys(apart.values()))
        # Pairwise independence is not independence: compare the whole product, cell by cell. What
        # is possible in each group must be possible together, and no product may underflow.
        product, possible = np.ones(()), np.ones((), dtype=np.bool_)
        for group in groups:
            law = marginal(probabilities, group)
            product = np.multiply.outer(product, law)
            possible = np.logical_and.outer(possible, law > 0)
        cells = probabilities.transpose([place for group in groups for place in group])
        if np.any((cells > 0) != possible) or np.any(product[possible] < _SMALLEST):
            return together
        off = np.abs(cells - product)
        if np.any(off > _FACTORS * product):
            return together
        with np.errstate(invalid="ignore"):
            relative = float(np.nanmax(off / product))
        return cls(groups=groups, error=5 * (relative + 4 * size * UNIT_ROUNDOFF))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """A joint table and the answer in its cells: what depends on neither adversaries nor scales.

    What only some searches need is computed when the first of them runs, and then kept.
    """

    probabilities: FloatArray
    """The joint table, one axis per tuple."""
    parts: tuple[FloatArray, ...]
    """`parts[j][v]`: what value v of tuple j adds, from zero to keep its digits; () if not
    additive."""
    table: FloatArray | None
    """The answer in every cell, from zero; None if additive."""
    kept_laws: dict[tuple[int, tuple[int, ...]], Events] = field(default_factory=dict)
    """Conditional laws by target and unknown tuples, as far as they are kept."""
    widest: dict[int, tuple[float, int, tuple[int, int]]] = field(default_factory=dict)
    """By target, the largest distance of two secrets' answers, where, and of which secrets."""
    kept_odds: dict[int, OddsBound] = field(default_factory=dict)
    """By target, how far odds lie apart, where that was asked for."""
    _kept_sums: dict[tuple[int, ...], FloatArray | None] = field(default_factory=dict)
    _likeliest_others: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: JointTable, contributions: Contributions) -> Cells:
        """Take a table and let its answers start at zero."""
        table = contributions.table
        if table is not None:
            table = table - table.reshape(-1, table.shape[-1]).min(axis=0)
        return cls(
            probabilities=model.probabilities,
            parts=tuple(part - part.min(axis=0) for part in contributions.values),
            table=table,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        return self.probabilities.shape

    @cached_property
    def coordinates(self) -> int:
        """Number of output coordinates."""
        return int((self.parts[0] if self.table is None else self.table).shape[-1])

    @cached_property
    def reaches(self) -> FloatArray:
        """The most that each tuple of an additive query adds to its one coordinate."""
        return np.array([part.max() for part in self.parts])

    @cached_property
    def spread(self) -> FloatArray:
        """The largest answer, per coordinate."""
        if self.table is not None:
            return np.asarray(self.table.reshape(-1, self.coordinates).max(axis=0))
        return np.asarray(np.sum([part.max(axis=0) for part in self.parts], axis=0))

    @cached_property
    def answers(self) -> FloatArray:
        """The answer in every cell, shape (cells, coordinates)."""
        if self.table is not None:
            return self.table.reshape(-1, self.coordinates)
        sums = np.zeros((1, self.coordinates))
        for part in self.parts:
            sums = (sums[:, np.newaxis] + part).reshape(-1, self.coordinates)
        return sums

    @cached_property
    def values(self) -> tuple[FloatArray, ...] | None:
        """The values that each coordinate of the answer can take; None if there are too many."""
        found = []
        for coordinate in range(self.coordinates):
            same = _SAME * float(self.spread[coordinate])
            if self.table is not None:
                values = _merged_values(self.table[..., coordinate].ravel(), same)
            else:
                values = np.zeros(1)
                for part in self.parts:
                    if values is not None:
                        sums = np.add.outer(values, part[:, coordinate])
                        values = _merged_values(sums.ravel(), same)
            if values is None:
                return None
            found.append(values)
        return tuple(found)

    @cached_property
    def outputs(self) -> float:
        """How many outputs there are to try; infinite if there are too many values."""
        return math.inf if self.values is None else math.prod(map(float, map(len, self.values)))

    @cached_property
    def levels(self) -> Levels | None:
        """The answers on a grid, or None if it is too large."""
        return Levels.of(self)

    @cached_property
    def events(self) -> int:
        """How many events there are: every tuple has one of its values, or is unknown."""
        return math.prod(size + 1 for size in self.sizes)

    @cached_property
    def event_laws(self) -> EventLaws:
        """The laws of all events; only for a table with few of them and answers on a grid."""
        if self.levels is None:
            raise ValueError("the answers lie on no grid.")
        return EventLaws.of(self, self.levels)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """For each tuple of an additive query, the first tuple that adds the same."""
        first: dict[bytes, int] = {}
        return tuple(first.setdefault(part.tobytes(), j) for j, part in enumerate(self.parts))

    def spans(self, kinds: tuple[int, ...]) -> tuple[float, float]:
        """Return how many sums tuples of these kinds have, and how large their product grid is."""
        sums = self._sums(kinds)
        if sums is None:
            return math.inf, math.inf
        return len(sums), math.prod(float(len(np.unique(column))) for column in sums.T)

    def _sums(self, kinds: tuple[int, ...]) -> FloatArray | None:
        """Return the distinct sums of tuples of these kinds; None if there are too many."""
        if kinds not in self._kept_sums:
            before = self._sums(kinds[:-1]) if kinds else None
            found: FloatArray | None = np.zeros((1, self.coordinates))
            if kinds and before is None:
                found = None
            elif before is not None:
                part = self.parts[kinds[-1]]
                sums = (before[:, np.newaxis] + part).reshape(-1, self.coordinates)
                found = np.unique(sums, axis=0) if len(sums) <= MOST_SUMS else None
            self._kept_sums[kinds] = found
        return self._kept_sums[kinds]

    @cached_property
    def factors(self) -> Factors:
        """The independent groups of tuples."""
        return Factors.of(self.probabilities)

    @cached_property
    def log_rarest(self) -> float:
        """Logarithm of the smallest positive probability of a cell."""
        smallest = float(self.probabilities.min())
        if smallest <= 0:
            smallest = float(self.probabilities[self.probabilities > 0].min())
        return float(np.log(smallest))

    @cached_property
    def likeliest(self) -> tuple[int, ...]:
        """The values of the likeliest cell."""
        found = np.unravel_index(int(np.argmax(self.probabilities)), self.sizes)
        return tuple(map(int, found))

    def likeliest_others(self, target: int) -> tuple[int, ...]:
        """Return the likeliest values of all tuples but one together."""
        if target not in self._likeliest_others:
            likely = self.probabilities.sum(axis=target)
            cell = np.unravel_index(int(np.argmax(likely)), likely.shape)
            self._likeliest_others[target] = tuple(map(int, cell))
        return self._likeliest_others[target]

    @cached_property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """For each tuple, the other tuples, most influential first.

        The bound on a branch of the tree is tight when the undecided tuples tell little about the
        target, so those that tell most are decided first. Only speed depends on this order.
        """
        influence = _influence(self.probabilities)
        places = range(len(self.sizes))
        return tuple(
            tuple(
                sorted(
                    (place for place in places if place != target),
                    key=lambda place: (-influence[target, place], place),
                )
            )
            for target in places
        )

    @cached_property
    def flipped(self) -> tuple[bool, ...]:
        """For each of several binary tuples, whether its first value adds more."""
        return tuple(bool(part[1, 0] < part[0, 0]) for part in self.parts)

    @cached_property
    def bits(self) -> FloatArray:
        """A binary table, flat: tuple j is bit j of the index, and bit 1 adds at least as much."""
        cells = np.flip(self.probabilities, tuple(np.flatnonzero(self.flipped)))
        return np.ascontiguousarray(cells.transpose(range(cells.ndim)[::-1])).ravel()


def _merged_values(values: FloatArray, same: float) -> FloatArray | None:
    """Sort and keep the first of every run of values closer than `same` to their neighbour."""
    values = np.unique(values)
    values = values[np.concatenate([[True], np.diff(values) > same])]
    return values if len(values) <= MOST_LEVELS else None


def _nearest(values: FloatArray, wanted: FloatArray) -> npt.NDArray[np.intp]:
    if len(values) == 1:
        return np.zeros(len(wanted), dtype=np.intp)
    after = np.clip(np.searchsorted(values, wanted), 1, len(values) - 1)
    return after - (wanted - values[after - 1] < values[after] - wanted)


def _influence(probabilities: FloatArray) -> FloatArray:
    """Return by how many nats one tuple changes the odds of another, given all the rest.

    The mean over some databases drawn from the table, the same ones in every run.
    """
    cells, sizes = probabilities.ravel(), probabilities.shape
    steps = np.array([int(np.prod(sizes[place + 1 :])) for place in range(len(sizes))])
    drawn = _drawn(probabilities, np.random.default_rng(0).random(DRAWN_DATABASES))
    places = np.array(np.unravel_index(drawn, sizes))
    influence = np.zeros((len(sizes), len(sizes)))
    for first in range(len(sizes)):
        for second in range(first):
            start = drawn - places[first] * steps[first] - places[second] * steps[second]
            own, other = (np.arange(sizes[p]) * steps[p] for p in (first, second))
            block = cells[start[:, np.newaxis, np.newaxis] + own[:, np.newaxis] + other]
            found = float(np.mean(_interaction(block)))
            influence[first, second] = influence[second, first] = found
    return influence


def _drawn(probabilities: FloatArray, shares: FloatArray) -> npt.NDArray[np.intp]:
    """Return the cells up to which the probabilities add up to these shares of the total.

    First the values of half of the tuples are found, then those of the others: adding a large table
    up along an axis takes a fraction of the time of a running sum over it.
    """
    half = probabilities.ndim // 2
    table = probabilities.reshape(math.prod(probabilities.shape[:half]), -1)
    totals = np.cumsum(table.sum(axis=1))
    wanted = shares * totals[-1]
    rows = np.minimum(np.searchsorted(totals, wanted), len(totals) - 1)
    rest = wanted - np.concatenate([[0.0], totals])[rows]
    within = np.sum(np.cumsum(table[rows], axis=1) < rest[:, np.newaxis], axis=1)
    found: npt.NDArray[np.intp] = rows * table.shape[1] + np.minimum(within, table.shape[1] - 1)
    return found


def _interaction(blocks: FloatArray) -> FloatArray:
    """Return the largest log-odds interaction of each block; zeros count as very small numbers."""
    logs = np.log(blocks + 1e-9 * blocks.max(axis=(1, 2), keepdims=True))
    logs = logs - logs.mean(axis=1, keepdims=True)
    logs = logs - logs.mean(axis=2, keepdims=True)
    return np.asarray(np.abs(logs).max(axis=(1, 2)))


def marginal(probabilities: FloatArray, group: tuple[int, ...]) -> FloatArray:
    """Sum over all tuples outside the group."""
    others = tuple(place for place in range(probabilities.ndim) if place not in group)
    return np.asarray(probabilities.sum(axis=others))


def pair_tables(probabilities: FloatArray) -> dict[tuple[int, int], FloatArray]:
    """Return the joint law of every pair of tuples."""
    pairs: dict[tuple[int, int], FloatArray] = {}
    _add_pairs(probabilities, list(range(probabilities.ndim)), pairs)
    return pairs


def _add_pairs(
    table: FloatArray, places: list[int], pairs: dict[tuple[int, int], FloatArray]
) -> None:
    """Halve the tuples: pairs across come from one matrix product, pairs within by recursion."""
    if len(places) < 2:
        return
    middle = len(places) // 2
    left, right = places[:middle], places[middle:]
    rows = int(np.prod(table.shape[:middle]))
    matrix = table.reshape(rows, -1)
    left_marks, right_marks = _indicators(table.shape[:middle]), _indicators(table.shape[middle:])
    crossed = left_marks.T @ (matrix @ right_marks)
    start = 0
    for i, place in enumerate(left):
        stop = start + table.shape[i]
        other_start = 0
        for j, other in enumerate(right):
            other_stop = other_start + table.shape[middle + j]
            block = crossed[start:stop, other_start:other_stop]
            pairs[place, other], pairs[other, place] = block, block.T
            other_start = other_stop
        start = stop
    _add_pairs(matrix.sum(axis=1).reshape(table.shape[:middle]), left, pairs)
    _add_pairs(matrix.sum(axis=0).reshape(table.shape[middle:]), right, pairs)


def _indicators(shape: tuple[int, ...]) -> FloatArray:
    """One column per (tuple, value), one row per cell: 1 where the cell has the value."""
    places = np.indices(shape).reshape(len(shape), -1)
    return np.concatenate(
        [
            place[:, np.newaxis] == np.arange(size)
            for place, size in zip(places, shape, strict=True)
        ],
        axis=1,
    ).astype(np.float64)
