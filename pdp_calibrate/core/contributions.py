"""What each tuple contributes to a query's answer: all that engines know about the query."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pdp_calibrate.arrays import FloatArray, read_only
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import QueryError

LARGEST_INTEGER = 2.0**53  # up to here every whole number is a float


_MANY_POINTS = 4096  # from here on the L1 diameter is found by trying all patterns of signs
_FEW_NUMBERS = 16  # up to which lists are quicker than arrays


@dataclass(frozen=True, kw_only=True)
class Line:
    """An answer of several numbers that every tuple moves along one line: in truth one number.

    Noise on each of the numbers reveals as much as noise on that one, in units of the length of
    the direction: in L1 for Laplace noise, in L2 for Gaussian noise. Theorem 25 (docs/theory).
    """

    contributions: Contributions
    """What each value adds along the line, as a single number."""
    start: FloatArray
    """The answer where all of these are 0."""
    direction: FloatArray
    """How far each number of the answer moves for 1 along the line."""

    def answer(self, number: float) -> tuple[float, ...]:
        """Return the answer at a place on the line, which may be infinitely far out."""
        with np.errstate(invalid="ignore"):  # 0 · ∞: the answer does not move there
            moved = np.where(self.direction == 0, 0.0, self.direction * number)
        return tuple(map(float, self.start + moved))


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """A lowered query: what each value of each tuple adds to the answer.

    An additive query holds one array per tuple, of shape (domain size, coordinates); a tuple on an
    interval has two rows, for its ends. Any other function holds its value in every cell of the
    joint table and no array per tuple.
    """

    values: tuple[FloatArray, ...]
    """`values[j][v]`: what tuple j adds when it holds its v-th value. Empty if not additive."""
    weights: tuple[FloatArray, ...] | None = None
    """`weights[j]`: the factor of tuple j per coordinate, where the query is linear in values."""
    table: FloatArray | None = None
    """The answer in every cell, shape (domain sizes …, coordinates); None if additive."""
    real: bool = False
    """Whether some tuple takes any value between the two ends that `values` holds."""
    clamped: bool = False
    """Whether values outside the domain are moved to its nearest end before they are added."""
    every_step: bool = False
    """Whether it is answered anew at every step of a model without an end."""
    roundings: tuple[float, ...] = ()
    """`roundings[j]`: how far `values[j]`, being floats, may be from the difference of what two
    values of tuple j add exactly; one number for a table. Empty where nothing was rounded."""
    vectors: tuple[FloatArray, ...] = ()
    """`vectors[j][v]`: every number that tuple j adds, where `values` hold a single number: how far
    the tuple moves all of them together in L1. Empty where `values` hold every number."""

    @property
    def apart(self) -> Contributions:
        """The same contributions with every number listed separately.

        For Laplace noise on one answer, the L1 distance of two values is all that matters. With
        several answers, values far apart in one may be equal in another, and Gaussian noise needs
        distances in L2.
        """
        return replace(self, values=self.vectors, vectors=()) if self.vectors else self

    @classmethod
    def additive(
        cls,
        values: Sequence[FloatArray],
        *,
        weights: Sequence[float] | None = None,
        real: bool = False,
        clamped: bool = False,
        roundings: Sequence[float] = (),
        vectors: Sequence[FloatArray] = (),
    ) -> Contributions:
        """Wrap one array per tuple: one number per value, or a row of numbers."""
        # Equal tuples share one array, so that thousands of them cost little.
        factors = None
        if weights is not None:
            different = {weight: np.array([weight]) for weight in set(weights)}
            factors = tuple(different[weight] for weight in weights)
        columns = {
            key: as_column(array) if array.ndim == 1 else read_only(array)
            for key, array in {id(array): array for array in values}.items()
        }
        return cls(
            values=tuple(columns[id(array)] for array in values),
            weights=factors,
            real=real,
            clamped=clamped,
            roundings=tuple(roundings) if any(roundings) else (),
            vectors=tuple(vectors),
        )

    @classmethod
    def tabulated(cls, table: FloatArray) -> Contributions:
        """Wrap the one-coordinate answer of every cell."""
        return cls(values=(), table=as_column(table))

    @classmethod
    def joined(cls, parts: Sequence[Contributions], units: Sequence[float]) -> Contributions:
        """Stack several answers about the same tuples, each divided by its unit."""
        parts = [part.apart for part in parts]
        if len({part.clamped for part in parts}) > 1:
            raise QueryError("queries released together must all clamp, or none of them.")
        if len({part.every_step for part in parts}) > 1:
            raise QueryError("queries released together must all be of each step, or of one step.")
        if any(part.table is not None for part in parts):
            tables = [part.in_every_cell() for part in parts]
            errors = [
                (part.rounding + part.addition_error) / unit
                for part, unit in zip(parts, units, strict=True)
            ]
            error = _up(sum(errors) + _division_error(tables, units))
            return cls(
                values=(),
                table=_stacked(tables, units),
                every_step=parts[0].every_step,
                roundings=(error,),
            )
        values = list(zip(*(part.values for part in parts), strict=True))
        weights = None
        if all(part.weights is not None for part in parts):
            columns = zip(*(part.weights or () for part in parts), strict=True)
            weights = tuple(_stacked(column, units) for column in columns)
        stacked = tuple(_stacked(column, units) for column in values)
        charged = [(p.roundings, unit) for p, unit in zip(parts, units, strict=True) if p.roundings]
        roundings = tuple(
            _up(sum(own[j] / unit for own, unit in charged) + _division_error(column, units))
            for j, column in enumerate(values)
        )
        return cls(
            values=stacked,
            weights=weights,
            real=any(part.real for part in parts),
            clamped=parts[0].clamped,
            every_step=parts[0].every_step,
            roundings=roundings,
        )

    def line(self, *, euclidean: bool) -> Line | None:
        """Return the one number that the answer is, if all differences of values are parallel.

        None for single numbers and where values differ in two directions. What differs by
        rounding from parallel is charged, as the rounding of the number is.
        """
        if self.table is not None or self.real or self.every_step or self.coordinates == 1:
            return None
        differences = [array - array[0] for array in self.different]
        moved = np.concatenate(differences)
        longest = moved[np.abs(moved).sum(axis=1).argmax()]
        pivot = int(np.abs(longest).argmax())
        if longest[pivot] == 0:
            return None
        # Zero where rows are parallel; exactly zero for whole numbers, whose products are exact.
        crossed = moved * longest[pivot] - moved[:, pivot, np.newaxis] * longest
        apart = np.abs(crossed).sum(axis=1) / abs(longest[pivot])
        allowed = 8 * len(longest) * UNIT_ROUNDOFF * np.abs(moved).sum(axis=1)
        if np.any(apart > allowed):
            return None
        length = float(np.linalg.norm(longest, 2 if euclidean else 1))
        numbers = moved[:, pivot] / longest[pivot] * length
        exact = not apart.any() and np.all(moved == np.floor(moved))
        # Products of whole numbers are exact; a length that is a root has been rounded.
        whole = length == math.floor(length) and np.all(numbers == np.floor(numbers))
        exact = exact and whole and np.all(numbers * longest[pivot] == moved[:, pivot] * length)
        ends = np.cumsum([len(array) for array in differences])[:-1]
        charges = [
            0.0 if exact else 2 * float(off.max()) + 8 * UNIT_ROUNDOFF * float(np.ptp(along))
            for off, along in zip(np.split(apart, ends), np.split(numbers, ends), strict=True)
        ]
        keys = [id(array) for array in self.values]
        place = {id(array): number for number, array in enumerate(self.different)}
        columns = np.split(numbers, ends)
        given = self.roundings or (0.0,) * len(keys)
        return Line(
            contributions=Contributions.additive(
                [columns[place[key]] for key in keys],
                clamped=self.clamped,
                roundings=[
                    _up(own + charges[place[key]]) for own, key in zip(given, keys, strict=True)
                ],
            ),
            start=np.sum([array[0] for array in self.values], axis=0),
            direction=longest / length,
        )

    def in_every_cell(self) -> FloatArray:
        """Write the answer out for every cell of the joint table."""
        if self.table is not None:
            return self.table
        total = np.zeros((*self.sizes, self.coordinates))
        for axis, array in enumerate(self.values):
            shape = [1] * len(self.values)
            shape[axis] = len(array)
            total = total + array.reshape(*shape, -1)
        return total

    @property
    def addition_error(self) -> float:
        """What rounding the sums of `in_every_cell` may do to the difference of two cells."""
        if self.table is not None or self.is_integer:
            return 0.0
        return 2 * len(self.values) * self.coordinates * UNIT_ROUNDOFF * self.magnitude

    @functools.cached_property
    def moves(self) -> FloatArray | None:
        """How the answer moves from the first value of each tuple on, tuple after tuple.

        None unless the answer is one number that adds up over discrete tuples.
        """
        if self.table is not None or self.real or self.coordinates != 1 or self.vectors:
            return None
        return read_only(np.concatenate([array[:, 0] - array[0, 0] for array in self.values]))

    @property
    def coordinates(self) -> int:
        """How many numbers make up the answer."""
        return int((self.values[0] if self.table is None else self.table).shape[-1])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        if self.table is not None:
            return self.table.shape[:-1]
        return tuple(len(array) for array in self.values)

    @property
    def is_integer(self) -> bool:
        """Whether every contribution is a whole number, exactly representable."""
        if self.real:
            return False
        arrays = self.different if self.table is None else (self.table,)
        return all(
            np.all(array == np.floor(array)) and np.all(np.abs(array) < LARGEST_INTEGER)
            for array in arrays
        )

    @property
    def different(self) -> list[FloatArray]:
        """The arrays of `values`, each once."""
        return list({id(array): array for array in self.values}.values())

    @property
    def magnitude(self) -> float:
        """A bound on the absolute answer for one instance, in any coordinate."""
        if self.table is not None:
            return float(np.abs(self.table).max())
        return sum(max(-low, high) for low, high in self._ends)

    @functools.cached_property
    def _ends(self) -> list[tuple[float, float]]:
        """The smallest and the largest number that each tuple adds, in any coordinate."""
        ends = {id(array): _ends_of(array) for array in self.different}
        return [ends[id(array)] for array in self.values]

    def select(self, positions: Sequence[int]) -> Contributions:
        """Keep only the tuples of one independent block; only additive queries split."""
        if self.table is not None:
            raise QueryError("only an additive query splits over independent blocks.")
        weights = self.weights and tuple(self.weights[position] for position in positions)
        values = tuple(self.values[position] for position in positions)
        roundings = tuple(self.roundings[position] for position in positions if self.roundings)
        vectors = tuple(self.vectors[position] for position in positions if self.vectors)
        return replace(self, values=values, weights=weights, roundings=roundings, vectors=vectors)

    @functools.cached_property
    def rounding(self) -> float:
        """How far the difference of two answers may be from that of exact contributions.

        Answers moved by this much leak at most rounding/λ more: half of it for each secret.
        """
        return _up(math.fsum(self.roundings)) if self.roundings else 0.0

    def tuple_ranges(self) -> FloatArray:
        """Largest L1 change of the answer when tuple j alone changes (LS_j), for each j."""
        return self._ranges

    def exact_ranges(self) -> FloatArray:
        """Return bounds on LS_j of exact contributions, before they were rounded to floats."""
        if not self.roundings:
            return self._ranges
        return np.asarray((self._ranges + np.array(self.roundings)) * (1 + 4 * UNIT_ROUNDOFF))

    @functools.cached_property
    def _ranges(self) -> FloatArray:
        if self.table is None and self.coordinates == 1:
            return read_only(np.array([high - low for low, high in self._ends]))
        if self.table is None:
            ranges = {id(array): diameter(array) for array in self.different}
            return read_only(np.array([ranges[id(array)] for array in self.values]))
        table = self.table
        return read_only(
            np.array([_widest(np.moveaxis(table, axis, -2)) for axis in range(len(self.sizes))])
        )

    def total_range(self) -> float:
        """Largest L1 change of the answer when every tuple changes: the group sensitivity."""
        return self._whole_range

    @functools.cached_property
    def _whole_range(self) -> float:
        if self.table is None:
            try:
                return math.fsum(self._ranges.tolist())
            except OverflowError:
                return math.inf
        return diameter(self.table.reshape(-1, self.table.shape[-1]))


def _ends_of(array: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest number."""
    if array.size > _FEW_NUMBERS:
        return float(array.min()), float(array.max())
    numbers = array.ravel().tolist()
    return min(numbers), max(numbers)


def as_column(array: FloatArray) -> FloatArray:
    """Return one number per value as `Contributions` hold it."""
    return read_only(np.add(array, 0.0, dtype=np.float64)[..., np.newaxis])  # no negative zeros


def _stacked(columns: Sequence[FloatArray], units: Sequence[float]) -> FloatArray:
    divided = [column / unit for column, unit in zip(columns, units, strict=True)]
    return read_only(np.concatenate(divided, axis=-1))


def _division_error(columns: Sequence[FloatArray], units: Sequence[float]) -> float:
    """Bound what rounded quotients do to differences; powers of two divide exactly."""
    return sum(
        2 * UNIT_ROUNDOFF * float(np.abs(column).max(axis=tuple(range(column.ndim - 1))).sum()) / u
        for column, u in zip(columns, units, strict=True)
        if math.frexp(u)[0] != 0.5
    )


def _up(bound: float) -> float:
    """Round a sum of a few bounds up; nothing stays nothing."""
    return math.nextafter(bound * (1 + 16 * UNIT_ROUNDOFF), math.inf) if bound else 0.0


def _widest(lines: FloatArray) -> float:
    """Largest L1 distance within any of the lines, shape (…, points, coordinates)."""
    if lines.shape[-1] == 1:
        return float((lines.max(axis=-2) - lines.min(axis=-2)).max())
    return max(
        float(np.abs(lines - lines[..., place : place + 1, :]).sum(axis=-1).max())
        for place in range(lines.shape[-2])
    )


def diameter(points: FloatArray) -> float:
    """Largest L1 distance between two rows; of many rows, rounded up."""
    width = points.shape[-1]
    if width == 1:
        return float(points.max() - points.min())
    if len(points) > max(_MANY_POINTS, 2**width):
        moved = points - points.min(axis=0)
        signs = itertools.product([1.0], *[[1.0, -1.0]] * (width - 1))
        widest = max(float(np.ptp(moved @ np.array(pattern))) for pattern in signs)
        return float(widest * (1 + 4 * width**2 * UNIT_ROUNDOFF))
    return float(max(np.abs(points - point).sum(axis=-1).max() for point in points))
