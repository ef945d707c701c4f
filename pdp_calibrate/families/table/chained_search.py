"""Large tables and vectors of answers: everybody bounded by `ChainedBound`, the worst evaluated.

For queries that count (histograms). The adversaries are taken by the number of tuples that they
ignore, fewest first. `ChainedBound` bounds all of one number; whoever may leak more than what is
known to leak is evaluated, the largest bounds first, and the values take the place of the bounds,
so that the bounds for one more unknown tuple start from them. Upper end: the largest bound or value
that is left. Lower end: the largest leakage evaluated.

The law of the counts given what is known, blurred along each coordinate, gives the density of every
output of the product grid. Evaluated first is a bound on a smaller grid: the target itself changes
the densities by at most e^LS, so that only the others are counted. Then, where that does not
suffice, the leakage itself, target included. Both in single precision, 64 events at a time, and
charged for it; the worst event again in double precision, with the output that proves it.

Before all that, somebody who leaks much is sought among those for whom the worst output lies
beyond all counts, for the more is known to leak, the fewer are left. The work is limited by
counting it, so that a result does not depend on the machine; bounds that were not reached stay.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import DENSITIES, rounding_error
from pdp_calibrate.core.workers import Clock, load_kernels, run
from pdp_calibrate.families.table.chained_bound import ChainedBound, is_chained
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    Setting,
    bracket,
    group_bound,
)

if TYPE_CHECKING:
    from collections.abc import Collection

_TIGHT = 0.0095  # of the leakage found: closer bounds are not sought, if everybody is unknown
_WORK = 1.55e9  # to evaluate adversaries, about a nanosecond each
_SHARE = 0.8  # of the work that is left, until the last tuple may be unknown
_FIRST_POINTS = 1e5  # of the grids of those who are evaluated first, one for each case
_FIRST = 16  # … and the most of them
_HALVINGS = 2  # of the tuples, while somebody who leaks much is sought
_ROUNDS = 3  # of changing what is known of each tuple
_LANES, _FEWEST_LANES = 64, 16  # events evaluated together
_EACH = 3e3  # work for an event, however small
_POINT, _CELL = 6.0, 2.5  # work for an event at a point of the grid, and for a cell of its law
_KEPT = 16  # sets of unknown tuples whose places on the grid are remembered
_MOST_POINTS = 2e6  # of a grid
_SCALED = 2.0**60  # what a law sums to: densities then exceed e^−58, for the grids allowed
_WIDEST = 100.0  # a grid, in scales, for that
_SINGLE = 2.0**-24  # unit roundoff


class _Case(NamedTuple):
    """All who attack a target and ignore some tuples."""

    target: int
    unknown: tuple[int, ...]


def can_search(setting: Setting) -> bool:
    """Return whether everybody can be bounded here, and whoever seems worst evaluated."""
    if setting.tails_only or not setting.fits_linear_space or not is_chained(setting):
        return False
    levels, coordinates = len(setting.sizes) + 1, setting.coordinates
    width = coordinates * levels * float(np.max(np.concatenate(setting.parts)))
    small = float(levels) ** coordinates <= _MOST_POINTS and width <= _WIDEST
    return small and _bins(setting) is not None


def search_chained(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return a bracket for all adversaries but those who know everyone else."""
    groups = {
        _Case(target, unknown): group_bound(setting, (target, *unknown))
        for target, unknown in setting.prepared.cases()
    }
    if not groups:
        return NOTHING
    search = _Search(setting, incumbent, clock)
    widest = max(groups.values())
    if widest > incumbent:
        search.try_corners(groups.keys())
    if widest <= incumbent or search.attained.lower > clock.enough:
        return search.attained.or_worse(Outcome(upper=widest, lower=0.0, attack=None))
    bound = ChainedBound(setting, setting.prepared.cells.marginals, clock)
    left = 0.0
    for number in range(1, len(setting.sizes)):
        bound.prove(number)
        cases = [case for case in groups if len(case.unknown) == number]
        search.lower_bounds(bound, cases)
        left = max([left, *(min(groups[case], bound.largest(*case)) for case in cases)])
        if search.leaks > clock.enough:
            left = widest
            break
    search.evaluate_worst()
    return search.attained.or_worse(Outcome(upper=left, lower=0.0, attack=None))


class _Search:
    """What was found so far, and the work done for it."""

    def __init__(self, setting: Setting, incumbent: float, clock: Clock) -> None:
        bins = _bins(setting)
        if bins is None:
            raise ValueError("only counts are evaluated at every output.")
        self.setting, self.incumbent, self.clock, self.bins = setting, incumbent, clock, bins
        self.attained = NOTHING
        self.leaks = 0.0  # what somebody leaks, right to single precision and rounded down
        self._worst: tuple[_Case, int] | None = None  # who
        self._left = _WORK
        self._cells = np.ascontiguousarray(setting.probabilities).reshape(-1)
        self._strides = tuple(
            stride // setting.probabilities.itemsize
            for stride in np.ascontiguousarray(setting.probabilities).strides
        )
        self._kernels = load_kernels("pdp_calibrate.families.table.chained_kernels")
        self._places_of = functools.lru_cache(maxsize=_KEPT)(self._grid_places)

    def _cutoff(self, unknown: int) -> float:
        """Return up to which bound those who ignore this number of tuples are not evaluated.

        Lower for small numbers: few are spared there, and the next bounds start from these.
        """
        tight = _TIGHT * (0.6 + 0.4 * unknown / (len(self.setting.sizes) - 1))
        return max(self.incumbent, self.leaks * (1 + tight))

    def lower_bounds(self, bound: ChainedBound, cases: list[_Case]) -> None:
        """Evaluate who of these cases seems worst, and lower the bounds to what they leak.

        All cases ignore equally many tuples.
        """
        largest = {case: bound.largest(*case) for case in cases}
        unknown, coordinates = len(cases[0].unknown) if cases else 0, self.setting.coordinates
        falling = sorted(cases, key=lambda case: -largest[case])
        falling = [case for case in falling if self._cutoff(unknown) < largest[case] < math.inf]
        if not falling:
            return
        # One of each case, so that more is known to leak.
        grid = _Grid.of(coordinates, unknown + 1)
        for case in falling[: max(1, min(_FIRST, int(_FIRST_POINTS / grid.points)))]:
            if largest[case] > self._cutoff(unknown) and not self.clock.is_over:
                event = np.array([bound.worst(*case)])
                self._note(case, event, self._values(case, event, grid) - grid.error)
        self._climb(grid)
        # The others counted alone, then the target too.
        cutoff = 0.0
        for tuples in (unknown, unknown + 1):
            grid = _Grid.of(coordinates, tuples)
            cutoff = self._affordable(bound, falling, grid, max(cutoff, self._cutoff(unknown)))
            judge = functools.partial(self._judge, bound, grid, cutoff)
            found = run(falling, judge, self.clock, what="comparing adversaries", small=False)
            if tuples > unknown:
                for case, judged in zip(falling, found, strict=True):
                    if judged is not None:
                        self._note(case, judged[0], judged[1] - grid.error)

    def _climb(self, grid: _Grid) -> None:
        """While that leaks more, change what the worst of this grid knows of one tuple."""
        for _ in range(_ROUNDS):
            before = self.leaks
            if self._worst is None or len(self._worst[0].unknown) + 2 != grid.levels:
                return
            case, event = self._worst
            sizes = [self.setting.sizes[place] for place in self._known(case)]
            if not sizes or self.clock.is_over:
                return
            values = np.array(np.unravel_index(event, sizes))
            changed = [
                np.where(np.arange(len(sizes)) == place, value, values)
                for place, size in enumerate(sizes)
                for value in range(size)
                if value != values[place]
            ]
            events = np.ravel_multi_index(np.array(changed).T, sizes)
            self._note(case, events, self._values(case, events, grid) - grid.error)
            if self.leaks <= before:
                return

    def _affordable(
        self, bound: ChainedBound, cases: list[_Case], grid: _Grid, cutoff: float
    ) -> float:
        """Return above which bound, from the cutoff on, a share of the work serves everybody.

        That work is counted as done.
        """
        each = self._work(cases[0], grid)
        is_last = len(cases[0].unknown) == len(self.setting.sizes) - 1
        most = int(self._left * (1.0 if is_last else _SHARE) / each)
        above = np.concatenate([bound.above(*case, cutoff)[0] for case in cases])
        self._left -= each * min(most, len(above))
        if len(above) <= most:
            return cutoff
        return float(np.partition(above, len(above) - most - 1)[len(above) - most - 1])

    def _judge(
        self, bound: ChainedBound, grid: _Grid, cutoff: float, case: _Case
    ) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Evaluate the events of a case above a cutoff, and lower their bounds."""
        _, events = bound.above(*case, cutoff)
        values = np.zeros(len(events))
        own = self.setting.diameters[case.target] if grid.levels == len(case.unknown) + 1 else 0.0
        for start in range(0, len(events), _LANES):
            if self.clock.is_over:
                return events[:start], values[:start]
            some = slice(start, start + _LANES)
            values[some] = self._values(case, events[some], grid) + own
            bound.lower(*case, events[some], values[some] + grid.error)
        return events, values

    def _note(self, case: _Case, events: npt.NDArray[np.intp], leaks: FloatArray) -> None:
        """Remember who leaks most."""
        if len(events) and leaks.max() > self.leaks:
            self.leaks, self._worst = float(leaks.max()), (case, int(events[leaks.argmax()]))

    def evaluate_worst(self) -> None:
        """Evaluate whoever was found to leak most in double precision."""
        if self._worst is not None:
            self._evaluate(*self._worst)

    def _work(self, case: _Case, grid: _Grid) -> float:
        """Return what it takes to evaluate one of many events."""
        sizes = self.setting.sizes
        cells = math.prod(sizes[place] for place in (case.target, *case.unknown))
        return _EACH + _POINT * grid.points * sizes[case.target] / 5 + _CELL * cells

    def _values(self, case: _Case, events: npt.NDArray[np.intp], grid: _Grid) -> FloatArray:
        """Return the largest log-ratio of two secrets' densities on the grid, for each event."""
        setting, (target, unknown) = self.setting, case
        known, sizes = self._known(case), setting.sizes
        bases = np.zeros(len(events), dtype=np.int64)
        if known:
            values = np.unravel_index(events, [sizes[place] for place in known])
            for place, value in zip(known, values, strict=True):
                bases += value * self._strides[place]
        offsets = np.zeros(1, dtype=np.int64)
        for place in unknown:
            steps = self._strides[place] * np.arange(sizes[place])
            offsets = np.add.outer(offsets, steps).ravel()
        places = self._places_of(unknown, grid.levels)
        own = np.zeros(sizes[target], dtype=np.intp)
        if grid.levels > len(unknown) + 1:
            own = _steps(self.bins[target], grid.levels, setting.coordinates)
        lanes = -(-len(events) // _FEWEST_LANES) * _FEWEST_LANES
        laws = np.empty((grid.masses, sizes[target], lanes), dtype=np.float32)
        self._kernels.gather_laws(
            self._cells,
            bases,
            self._strides[target] * np.arange(sizes[target]),
            offsets,
            places,
            own,
            grid.masses_at,
            _SCALED,
            laws,
        )
        width = lanes * sizes[target]
        best = np.empty(lanes, dtype=np.float32)
        self._kernels.worst_ratios(
            laws,
            np.exp(-self._unit).astype(np.float32),
            grid.lengths,
            grid.begins,
            grid.starts * width,
            np.empty(int(grid.starts[-1]) * width, dtype=np.float32),
            best,
        )
        return np.log(best[: len(events)].astype(np.float64))

    def try_corners(self, admitted: Collection[_Case]) -> None:
        """Compare adversaries at outputs beyond all counts, and evaluate the worst of them.

        At such an output every value of every tuple has a factor of its own, e^{±unit}, and the
        density is a sum of products. The tuples are halved a few times; for all who attack a tuple
        of one half and know tuples of that half only, one matrix product sums out the other.
        """
        setting = self.setting
        factors = self._corners
        rng, places = np.random.default_rng(0), np.arange(len(setting.sizes))
        starts: list[tuple[_Case, int]] = []
        for _ in range(_HALVINGS):
            half = len(places) // 2
            sides = tuple(map(int, places[:half])), tuple(map(int, places[half:]))
            cells = setting.probabilities.transpose(*sides[0], *sides[1])
            cells = cells.reshape(math.prod(setting.sizes[place] for place in sides[0]), -1)
            for side, others, table in ((*sides, cells), (*sides[::-1], cells.T)):
                if not side or self.clock.is_over:
                    continue
                summed = table @ functools.reduce(_by_cell, [factors[place] for place in others])
                starts += self._worst_corner(side, others, summed, factors, admitted)
            places = rng.permutation(places)
        for start in starts:
            self._evaluate(*self._climb_corners(*start, admitted))

    def _climb_corners(
        self, case: _Case, event: int, admitted: Collection[_Case]
    ) -> tuple[_Case, int]:
        """While that leaks more at a corner, change what is known of one tuple."""
        sizes, target = self.setting.sizes, case.target
        known = self._known(case)
        values = np.unravel_index(event, [sizes[place] for place in known]) if known else ()
        given = dict(zip(known, map(int, values), strict=True))
        best = self._at_corners(target, given)
        for _ in range(_ROUNDS):
            before = best
            for place in self.setting.prepared.cells.orders[target]:
                for value in (*range(sizes[place]), None):
                    changed = {p: v for p, v in given.items() if p != place}
                    if value is not None:
                        changed[place] = value
                    unknown = (p for p in range(len(sizes)) if p != target and p not in changed)
                    if changed == given or _Case(target, tuple(unknown)) not in admitted:
                        continue
                    if self.clock.is_over:
                        break
                    found = self._at_corners(target, changed)
                    if found > best:
                        best, given = found, changed
            if best <= before:
                break
        unknown = (p for p in range(len(sizes)) if p != target and p not in given)
        case = _Case(target, tuple(unknown))
        return case, self._event(case, given)

    def _at_corners(self, target: int, given: dict[int, int]) -> float:
        """Return the largest ratio at a corner, not rounded in any way."""
        sizes = self.setting.sizes
        index = tuple(given.get(place, slice(None)) for place in range(len(sizes)))
        left = [place for place in range(len(sizes)) if place not in given]
        masses = np.moveaxis(self.setting.probabilities[index], left.index(target), 0)
        unknown = [place for place in left if place != target]
        ones = np.ones((1, self._corners[0].shape[1]))
        half = len(unknown) // 2
        front, back = (
            functools.reduce(_by_cell, [self._corners[place] for place in some], ones)
            for some in (unknown[:half], unknown[half:])
        )
        summed = masses.reshape(sizes[target] * len(front), len(back)) @ back
        summed = (summed.reshape(sizes[target], len(front), -1) * front).sum(axis=1)
        possible = summed[:, 0] > 0
        if possible.sum() < 2:
            return 0.0
        secrets = summed[possible] / summed[possible, :1] * self._corners[target][possible]
        return float((secrets.max(axis=0) / secrets.min(axis=0))[1:].max())

    def _worst_corner(
        self,
        side: tuple[int, ...],
        others: tuple[int, ...],
        summed: FloatArray,
        factors: list[FloatArray],
        admitted: Collection[_Case],
    ) -> list[tuple[_Case, int]]:
        """Return who of one half leaks most at a corner; nobody if nobody is admitted."""
        sizes = [self.setting.sizes[place] for place in side]
        summed = summed.reshape(*sizes, -1)
        for axis, place in enumerate(side):  # one more value: unknown
            moved = np.moveaxis(summed, axis, -2)
            unknown = (moved * factors[place]).sum(axis=-2, keepdims=True)
            summed = np.moveaxis(np.concatenate([moved, unknown], axis=-2), -2, axis)
        best, worst = 0.0, []
        for target, flags in itertools.product(range(len(side)), _flags(len(side))):
            hidden = [place for axis, place in enumerate(side) if flags[axis] and axis != target]
            case = _Case(side[target], tuple(sorted([*others, *hidden])))
            if flags[target] or case not in admitted:
                continue
            index = tuple(
                size if flag else slice(size) for size, flag in zip(sizes, flags, strict=True)
            )
            axis = sum(not flag for flag in flags[:target])
            here = np.moveaxis(summed[index], axis, 0)
            with np.errstate(invalid="ignore", divide="ignore"):  # a secret without mass is none
                secrets = np.moveaxis(here[..., 1:] / here[..., :1], 0, -2)
                secrets = secrets * factors[side[target]][:, 1:]
                ratios = np.fmax.reduce(secrets, axis=-2) / np.fmin.reduce(secrets, axis=-2)
            ratios = np.nan_to_num(ratios, nan=1.0).max(axis=-1)
            if ratios.max() > best:
                best = float(ratios.max())
                values = np.unravel_index(int(ratios.argmax()), ratios.shape)
                known = [p for p, flag in zip(side, flags, strict=True) if not flag]
                known.remove(case.target)
                given = dict(zip(known, map(int, values), strict=True))
                worst = [(case, self._event(case, given))]
        return worst

    def _event(self, case: _Case, given: dict[int, int]) -> int:
        """Return the place of what is known in the order of their product."""
        known = self._known(case)
        sizes = [self.setting.sizes[place] for place in known]
        return int(np.ravel_multi_index([given[place] for place in known], sizes)) if known else 0

    def _known(self, case: _Case) -> tuple[int, ...]:
        places = range(len(self.setting.sizes))
        return tuple(p for p in places if p != case.target and p not in case.unknown)

    def _evaluate(self, case: _Case, event: int) -> Outcome:
        """Compare the densities of all secrets at every output, given the values of an event."""
        setting, (target, unknown) = self.setting, case
        known, sizes = self._known(case), setting.sizes
        values = np.unravel_index(event, [sizes[place] for place in known]) if known else ()
        given = dict(zip(known, map(int, values), strict=True))
        index = tuple(given.get(place, slice(None)) for place in range(len(sizes)))
        left = [place for place in range(len(sizes)) if place not in given]
        masses = np.moveaxis(setting.probabilities[index], left.index(target), 0)
        masses = masses.reshape(sizes[target], -1)
        totals = masses.sum(axis=1)
        possible = np.flatnonzero(totals > 0)
        levels, coordinates = len(unknown) + 2, setting.coordinates
        size = levels**coordinates
        if len(possible) < 2:
            return NOTHING
        places = self._places_of(unknown, levels)
        own = _steps(self.bins[target], levels, coordinates)
        grids = np.stack(
            [
                np.bincount(
                    places + own[secret], weights=masses[secret] / totals[secret], minlength=size
                )
                for secret in possible
            ]
        )
        apart = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
        for unit in self._unit:  # the first coordinate goes last each time: all once, all in place
            grids = grids.reshape(len(possible), levels, -1).transpose(0, 2, 1) @ np.exp(
                -unit * apart
            )
        grids = grids.reshape(len(possible), size)
        ratios = grids.max(axis=0) / grids.min(axis=0)
        output = int(ratios.argmax())
        operations = 2.0 * masses.shape[1] + 8.0 * coordinates * levels + 8
        error = rounding_error(
            DENSITIES,
            width=float(self._unit.max()) * levels * coordinates,
            operations=operations,
            distance_operations=8.0,
        )
        counts = np.array(np.unravel_index(output, (levels,) * coordinates), dtype=np.float64)
        place = counts * self._unit
        for other, value in given.items():
            place = place + setting.parts[other][value]
        attack = Attack(
            target=target,
            known=given,
            secrets=(
                int(possible[grids[:, output].argmax()]),
                int(possible[grids[:, output].argmin()]),
            ),
            output=place,
        )
        found = bracket(math.log(float(ratios[output])), 0.0, error, attack)
        self.attained = self.attained.or_worse(found)
        self.leaks = max(self.leaks, found.lower)
        return found

    @functools.cached_property
    def _corners(self) -> list[FloatArray]:
        """The factor of each value of each tuple at each corner; before them, none: all are 1."""
        signs = np.array(list(itertools.product((-1, 1), repeat=self.setting.coordinates)))
        signs[0] = 0  # below all counts is as good as beyond all of them
        steps = np.concatenate([signs * self._unit, np.zeros((len(signs), 1))], axis=1)
        return [np.exp(steps[:, bins].T) for bins in self.bins]

    @functools.cached_property
    def _unit(self) -> FloatArray:
        """What one more in a bin adds to each coordinate, in scales."""
        parts = np.concatenate(self.setting.parts)
        return np.asarray(parts.max(axis=0))

    def _grid_places(self, unknown: tuple[int, ...], levels: int) -> npt.NDArray[np.intp]:
        """Return where each cell of the unknown tuples stands on the grid of counts."""
        places = np.zeros(1, dtype=np.intp)
        for place in unknown:
            steps = _steps(self.bins[place], levels, self.setting.coordinates)
            places = np.add.outer(places, steps).ravel()
        return places


@dataclass(frozen=True, kw_only=True, eq=False)
class _Grid:
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
    def of(cls, coordinates: int, tuples: int) -> _Grid:
        levels = tuples + 1
        lengths: list[int] = []
        begins, starts = [0], [0]
        for before in range(1, coordinates + 1):
            lines = [levels - sum(counts) for counts in _counts(coordinates - before, tuples)]
            lengths += lines
            begins.append(len(lengths))
            starts.append(starts[-1] + levels * len(lines) + 1)
        vectors = np.array(list(_counts(coordinates, tuples)), dtype=np.intp)
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


def _counts(coordinates: int, tuples: int) -> list[tuple[int, ...]]:
    """Return all vectors of counts whose sum is at most a number, the first counting fastest."""
    if coordinates == 0:
        return [()]
    return [
        (count, *others)
        for others in _counts(coordinates - 1, tuples)
        for count in range(tuples - sum(others) + 1)
    ]


def _by_cell(before: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the factors of cells, one tuple more; by cell and corner."""
    return (before[:, np.newaxis] * factors).reshape(-1, factors.shape[1])


def _flags(number: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((False, True), repeat=number))


def _bins(setting: Setting) -> tuple[npt.NDArray[np.intp], ...] | None:
    """Return the coordinate that each value of each tuple counts in, −1 for none.

    None if the query is not one that counts: a value adds the same one number in every tuple, to
    one coordinate or none.
    """
    parts = setting.prepared.cells.parts
    added = np.concatenate(parts)
    unit = float(added.max())
    if not np.all((added == 0) | (added == unit)) or np.any((added > 0).sum(axis=1) > 1):
        return None
    return tuple(np.where(part.any(axis=1), part.argmax(axis=1), -1) for part in parts)


def _steps(bins: npt.NDArray[np.intp], levels: int, coordinates: int) -> npt.NDArray[np.intp]:
    """Return how far each value moves along the flat grid."""
    strides = levels ** np.arange(coordinates - 1, -1, -1)
    return np.asarray(np.where(bins >= 0, strides[bins], 0), dtype=np.intp)
