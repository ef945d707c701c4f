"""The counts of some tuples in a few bins, and all outputs at which their laws are compared.

A law of the counts, blurred along each coordinate, gives the density of every output of the product
grid; between these outputs no quotient of two densities is larger (Theorem 1, docs/theory).
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.workers import load_kernels

Singles = npt.NDArray[np.float32]
_Masses = TypeVar("_Masses", FloatArray, npt.NDArray[np.float32])
Bins = tuple[npt.NDArray[np.intp], ...]
"""The coordinate that each value of each tuple counts in, −1 for none."""

SCALED = 2.0**60
"""What a law sums to: densities then exceed e^−58, for grids up to `WIDEST`."""

WIDEST = 100.0
"""A grid, in scales, for that."""

_SINGLE = 2.0**-24  # unit roundoff
_FEWEST_LANES = 4  # events are evaluated in multiples of so many


@dataclass(frozen=True, kw_only=True, eq=False)
class CountGrid:
    """The counts of some tuples, and the outputs that they are compared at."""

    levels: int
    """What each coordinate can be: from 0 to the number of tuples."""
    points: float
    """How many outputs the product grid has."""
    masses: int
    """How many vectors of counts there are: they sum to the number of tuples at most."""
    masses_at: npt.NDArray[np.int32]
    """Which of them stands at each point of the grid; −1 for none."""
    lengths: npt.NDArray[np.int64]
    """Masses on each line along the first coordinate, then on each along the second, …"""
    begins: npt.NDArray[np.int64]
    """Where the lines of each coordinate begin."""
    starts: npt.NDArray[np.int64]
    """Where the blurred lines of each coordinate are kept, in rows."""
    error: float
    """Of a log-ratio of two densities in single precision."""

    @classmethod
    @functools.cache
    def of(cls, coordinates: int, tuples: int) -> CountGrid:
        """Lay out the grid of so many tuples."""
        levels = tuples + 1
        lengths: list[int] = []
        begins, starts = [0], [0]
        for before in range(1, coordinates + 1):
            lines = [levels - sum(counts) for counts in count_vectors(coordinates - before, tuples)]
            lengths += lines
            begins.append(len(lengths))
            starts.append(starts[-1] + levels * len(lines) + 1)
        vectors = np.array(list(count_vectors(coordinates, tuples)), dtype=np.intp)
        masses_at = np.full(levels**coordinates, -1, dtype=np.int32)
        masses_at[vectors @ levels ** np.arange(coordinates - 1, -1, -1)] = np.arange(len(vectors))
        # A density holds at most 6 roundings for each step along each coordinate, those of the
        # factor included; twice that for what is too small for single precision.
        roundings = 2 * coordinates * (6 * levels + 8) + 16
        return cls(
            levels=levels,
            points=float(levels) ** coordinates,
            masses=len(vectors),
            masses_at=masses_at,
            lengths=np.array(lengths),
            begins=np.array(begins),
            starts=np.array(starts),
            error=2 * roundings * _SINGLE,
        )

    def laws(
        self,
        cells: FloatArray,
        offsets: npt.NDArray[np.int64],
        places: npt.NDArray[np.intp],
        bases: npt.NDArray[np.int64],
        own: npt.NDArray[np.intp],
    ) -> Singles:
        """Return the law of the counts given each secret of some events, as [place, v, e].

        The masses of secret v of event e are cells[bases[v, e] + offsets], and count at places[·],
        moved by own[v]. A secret without mass repeats one that has some, and events that fill up
        the lanes the first event: neither adds a quotient.
        """
        secrets, events = bases.shape
        lanes = -(-events // _FEWEST_LANES) * _FEWEST_LANES
        laws = np.empty((self.masses, secrets, lanes), dtype=np.float32)
        sums, totals = np.empty((self.masses, events)), np.empty(bases.shape)
        _kernels().gather_laws(
            cells,
            np.ascontiguousarray(bases),
            offsets,
            places,
            own,
            self.masses_at,
            SCALED,
            sums,
            totals,
            laws,
        )
        v, event = np.nonzero(totals == 0)
        if len(v):
            laws[:, v, event] = laws[:, totals.argmax(axis=0)[event], event]
        laws[:, :, events:] = laws[:, :, :1]
        return laws

    def worst_log_ratios(self, laws: Singles, unit: FloatArray) -> FloatArray:
        """Return the largest log-ratio of two secrets' densities at any output, for each event.

        laws[place, v, e]: the law of the counts given secret v of event e, summing to `SCALED`.
        The unit: what one more in a bin adds to each coordinate, in scales.
        """
        _, secrets, lanes = laws.shape
        width = secrets * lanes
        work = np.empty(laws.size + int(self.starts[-1]) * width, dtype=np.float32)
        work[: laws.size] = laws.reshape(-1)
        best = np.empty((3, lanes), dtype=np.float32)
        _kernels().worst_ratios(
            work,
            width,
            np.exp(-unit).astype(np.float32),
            self.lengths,
            self.begins,
            laws.size + self.starts * width,
            np.zeros(len(unit), dtype=np.int64),
            best,
        )
        return np.asarray(np.log(best[0].astype(np.float64)))


class Neighbours(NamedTuple):
    """Vectors of counts in groups, each of which one tuple more leads to from one vector."""

    rows: npt.NDArray[np.intp]
    """All of them, group by group."""
    begins: npt.NDArray[np.intp]
    """Where each group begins, and where the last one ends."""

    @classmethod
    @functools.cache
    def of(cls, coordinates: int, tuples: int, *, exactly: bool) -> Neighbours:
        """Put what tuples can count to into groups, each as large as is left for a vector."""
        vectors = reached(coordinates, tuples, exactly=exactly)
        left = {tuple(map(int, vector)): row for row, vector in enumerate(vectors)}
        groups: list[list[int]] = []
        for vector in tuple(left):
            if vector in left:
                largest = max(
                    _neighbourhoods(vector), key=lambda some: sum(v in left for v in some)
                )
                groups.append([left.pop(other) for other in largest if other in left])
        return cls(
            np.array([row for group in groups for row in group], dtype=np.intp),
            np.cumsum([0, *map(len, groups)], dtype=np.intp),
        )


def _neighbourhoods(vector: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Yield what one tuple more leads to from each vector that leads to this one."""
    for before in ([*vector[:at], n - 1, *vector[at + 1 :]] for at, n in enumerate(vector) if n):
        yield [
            tuple(before),
            *((*before[:at], n + 1, *before[at + 1 :]) for at, n in enumerate(before)),
        ]
    yield [vector]


@dataclass(eq=False)
class _Counted(Generic[_Masses]):
    """A set of tuples that was counted."""

    unknown: tuple[int, ...]
    masses: _Masses
    users: int = 1
    """Who was given the masses and has not given them back; at first who counted them."""


class CountLaws(Generic[_Masses]):
    """The table with tuples replaced by their counts, from one set of tuples to the next.

    A set's masses come from those of the set without its last tuple: sets that are asked for in
    order share what they begin with.
    """

    def __init__(self, probabilities: _Masses, bins: Bins, coordinates: int) -> None:
        self._sizes = probabilities.shape
        self._bins = bins
        self._coordinates = coordinates
        self._all_count = all_count(bins)
        self._table: _Masses = np.ascontiguousarray(probabilities).reshape(1, -1).view()
        self._table.setflags(write=False)
        self._moves = functools.cache(self._moves_of)
        self._lock = threading.Lock()  # two threads at once would do the same twice
        self._kept: list[_Counted[_Masses]] = []
        self._spare: dict[tuple[int, ...], list[_Masses]] = {}  # arrays that nobody uses, by shape
        self._spared = threading.Lock()

    def of(self, unknown: tuple[int, ...]) -> tuple[npt.NDArray[np.intp], _Masses]:
        """Return the vectors of counts, and for each the masses, the others' values in a row."""
        masses = self._taken(unknown).masses if unknown else self._table
        return self._vectors(len(unknown)), masses

    @contextlib.contextmanager
    def lent(self, unknown: tuple[int, ...]) -> Iterator[_Masses]:
        """Lend the masses: the array serves other sets later, for new memory takes long."""
        counted = self._taken(unknown)
        try:
            yield counted.masses
        finally:
            self._give_back(counted)

    def _taken(self, unknown: tuple[int, ...]) -> _Counted[_Masses]:
        with self._lock:
            while self._kept and self._kept[-1].unknown != unknown[: len(self._kept)]:
                self._give_back(self._kept.pop())
            for number in range(len(self._kept), len(unknown)):
                before = self._kept[-1].masses if self._kept else self._table
                begun = unknown[: number + 1]
                self._kept.append(_Counted(begun, self._counted(before, begun)))
            with self._spared:
                self._kept[-1].users += 1
            return self._kept[-1]

    def _give_back(self, counted: _Counted[_Masses]) -> None:
        """Let the array be used again if that was its last user; the list of kept sets is one."""
        with self._spared:
            counted.users -= 1
            if not counted.users:
                self._spare.setdefault(counted.masses.shape, []).append(counted.masses)

    def work(self, sets: Collection[tuple[int, ...]]) -> float:
        """Return how many masses are added for all of some sets."""
        begun = {unknown[:number] for unknown in sets for number in range(1, len(unknown) + 1)}
        return sum(self.size(unknown[:-1]) for unknown in begun)

    def size(self, unknown: tuple[int, ...]) -> float:
        """Return how many masses there are once some tuples are counted."""
        left = math.prod(n for place, n in enumerate(self._sizes) if place not in unknown)
        return float(left * len(self._vectors(len(unknown))))

    def _counted(self, masses: _Masses, unknown: tuple[int, ...]) -> _Masses:
        """Count the last of some tuples, the others being counted already."""
        *gone, last = unknown
        left = [place for place in range(len(self._sizes)) if place not in gone]
        at = left.index(last)
        before = math.prod(self._sizes[place] for place in left[:at])
        after = math.prod(self._sizes[place] for place in left[at + 1 :])
        moves = self._moves(len(unknown), last)
        joined = self._vectors(len(unknown))
        found = self._zeros((len(joined), before * after))
        _kernels().count_out(masses, (before, self._sizes[last], after), moves, found)
        found.setflags(write=False)  # as the table is: kernels are compiled for one of the two
        return found

    def _zeros(self, shape: tuple[int, ...]) -> _Masses:
        """Return zeros, in an array that served before if there is one."""
        with self._spared:
            spare = self._spare.get(shape)
            found = spare.pop() if spare else None
        if found is None:
            return np.zeros(shape, dtype=self._table.dtype)
        found.setflags(write=True)
        found.fill(0)
        return found

    def _moves_of(self, number: int, last: int) -> npt.NDArray[np.intp]:
        """Return where each value of the last of some tuples moves each vector of counts."""
        vectors, joined = self._vectors(number - 1), self._vectors(number)
        levels = number + 1
        places = np.full(levels**self._coordinates, -1)
        places[self._flat(joined, levels)] = np.arange(len(joined))
        steps = steps_of(self._bins[last], levels, self._coordinates)
        return np.stack([places[self._flat(vectors, levels) + step] for step in steps])

    def _flat(self, vectors: npt.NDArray[np.intp], levels: int) -> npt.NDArray[np.intp]:
        return vectors @ steps_of(np.arange(self._coordinates), levels, self._coordinates)

    def _vectors(self, tuples: int) -> npt.NDArray[np.intp]:
        return reached(self._coordinates, tuples, exactly=self._all_count)


@functools.cache
def reached(coordinates: int, tuples: int, *, exactly: bool) -> npt.NDArray[np.intp]:
    """Return what a number of tuples can count to; exactly: every one of them counts somewhere."""
    vectors = count_vectors(coordinates, tuples)
    found = np.array(vectors, dtype=np.intp).reshape(len(vectors), coordinates)
    return found[found.sum(axis=1) == tuples] if exactly else found


def all_count(bins: Bins) -> bool:
    """Return whether every value counts somewhere."""
    return all(bool(np.all(places >= 0)) for places in bins)


def count_vectors(coordinates: int, tuples: int) -> list[tuple[int, ...]]:
    """Return all vectors of counts whose sum is at most a number, the first counting fastest."""
    if coordinates == 0:
        return [()]
    return [
        (count, *others)
        for others in count_vectors(coordinates - 1, tuples)
        for count in range(tuples - sum(others) + 1)
    ]


def steps_of(bins: npt.NDArray[np.intp], levels: int, coordinates: int) -> npt.NDArray[np.intp]:
    """Return how far each value moves along the flat grid."""
    strides = levels ** np.arange(coordinates - 1, -1, -1)
    return np.asarray(np.where(bins >= 0, strides[bins], 0), dtype=np.intp)


def _kernels() -> ModuleType:
    return load_kernels("pdp_calibrate.families.table.count_kernels")
