"""Large tables and vectors of answers: everybody bounded by `ChainedBound`, the worst evaluated.

For queries that count (histograms). Everybody is capped first: by the group bound, and where the
table is a mixture of few `LatentClasses`, by what these allow. If few are left above what is known
to leak, they are evaluated, and that is all. Else the adversaries are taken by the number of tuples
that they ignore, fewest first. `ChainedBound` bounds all of one number; whoever may leak more than
what is known to leak is evaluated, the largest bounds first, and the values take the place of the
bounds, so that the bounds for one more unknown tuple start from them. Upper end: the largest bound
or value that is left. Lower end: the largest leakage evaluated.

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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import DENSITIES, rounding_error
from pdp_calibrate.core.workers import Clock, load_kernels, run
from pdp_calibrate.families.table.chained_bound import ChainedBound, is_chained
from pdp_calibrate.families.table.count_grid import (
    SCALED,
    WIDEST,
    CountGrid,
    CountLaws,
    steps_of,
)
from pdp_calibrate.families.table.latent_classes import class_bounds
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
_WORK = 5.75e9  # to bound and to evaluate adversaries, about a nanosecond each
_SHARE = 0.8  # of the work that is left, until the last tuple may be unknown
_FIRST_POINTS = 1e5  # of the grids of those who are evaluated first, one for each case
_FIRST = 16  # … and the most of them
_HALVINGS = 2  # of the tuples, while somebody who leaks much is sought
_ROUNDS = 3  # of changing what is known of each tuple
_LANES, _FEWEST_LANES = 64, 4  # events evaluated together
_EACH = 3e3  # work for an event, however small
_STEP = 80.0  # work for an event that is bounded, from one tuple
_POINT, _CELL = 6.0, 2.5  # work for an event at a point of the grid, and for a cell of its law
_COUNTED = 2.0  # work for a mass, where they are counted for everybody
_KEPT = 16  # sets of unknown tuples whose places on the grid are remembered
_MOST_POINTS = 2e6  # of a grid


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
    small = float(levels) ** coordinates <= _MOST_POINTS and width <= WIDEST
    return small and _bins(setting) is not None


def search_chained(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return a bracket for all adversaries but those who know everyone else."""
    caps = {
        _Case(target, unknown): group_bound(setting, (target, *unknown))
        for target, unknown in setting.prepared.cases()
    }
    if not caps:
        return NOTHING
    search = _Search(setting, incumbent, clock)
    widest = max(caps.values())
    if widest > incumbent:
        search.try_corners(caps.keys())
    if widest <= incumbent or search.attained.lower > clock.enough:
        return search.attained.or_worse(Outcome(upper=widest, lower=0.0, attack=None))
    classes = setting.prepared.cells.latent_classes
    if classes is not None:
        learned = class_bounds(setting, classes, search.bins)
        caps = {case: min(cap, learned.get(case, cap)) for case, cap in caps.items()}
    bound = ChainedBound(setting, clock)
    numbers = range(1, len(setting.sizes))
    # Where few may leak more than what is known to leak, the few are evaluated, and nobody else
    # need be bounded: those with most unknown tuples first, for they are fewest and leak most.
    few = search.are_few(bound, caps)
    if not few:
        search.reserve(sum(map(bound.work, numbers)))
    left = max((cap for case, cap in caps.items() if not case.unknown), default=0.0)
    for number in reversed(numbers) if few else numbers:
        cases = [case for case in caps if len(case.unknown) == number]
        if few:
            search.cap_bounds(bound, {case: caps[case] for case in cases})
        else:
            bound.prove(number)
        search.lower_bounds(bound, cases)
        left = max([left, *(min(caps[case], bound.largest(*case)) for case in cases)])
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
        self._cells = np.ascontiguousarray(setting.probabilities).reshape(-1).view()
        self._cells.setflags(write=False)  # as the counts of `CountLaws` are
        self._strides = _strides(setting.sizes, ())
        self._count_laws = CountLaws(setting.probabilities, bins, setting.coordinates)
        self._kernels = load_kernels("pdp_calibrate.families.table.chained_kernels")
        self._kept_corners: dict[tuple[int, frozenset[tuple[int, int]]], float] = {}
        self._places_of = functools.lru_cache(maxsize=_KEPT)(self._grid_places)

    def _cutoff(self, unknown: int) -> float:
        """Return up to which bound those who ignore this number of tuples are not evaluated.

        Lower for small numbers: few are spared there, and the next bounds start from these.
        """
        tight = _TIGHT * (0.6 + 0.4 * unknown / (len(self.setting.sizes) - 1))
        return max(self.incumbent, self.leaks * (1 + tight))

    def are_few(self, bound: ChainedBound, caps: dict[_Case, float]) -> bool:
        """Return whether the work allows to evaluate everybody whose cap is not low enough."""
        work = 0.0
        above = [case for case, cap in caps.items() if cap > self._cutoff(len(case.unknown))]
        for number in range(1, len(self.setting.sizes)):
            grid = CountGrid.of(self.setting.coordinates, number)
            some = [case for case in above if len(case.unknown) == number]
            gathered = 0.0
            for case in some:
                each, cells = self._work(case, grid)
                work += each * bound.events(*case)
                gathered += cells * bound.events(*case)
            work += min(gathered, self._count_work(some))
        return work <= self._left * _SHARE

    def cap_bounds(self, bound: ChainedBound, caps: dict[_Case, float]) -> None:
        """Start from the caps that are not low enough."""
        for case, cap in caps.items():
            if cap > self._cutoff(len(case.unknown)):
                bound.assume(*case, cap)

    def reserve(self, steps: float) -> None:
        """Count the work of bounding events as done: so many, each from one tuple."""
        self._left -= _STEP * steps

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
        grid = CountGrid.of(coordinates, unknown + 1)
        for case in falling[: max(1, min(_FIRST, int(_FIRST_POINTS / grid.points)))]:
            if largest[case] > self._cutoff(unknown) and not self.clock.is_over:
                event = np.array([bound.worst(*case)])
                self._note(case, event, self._values(case, event, grid) - grid.error)
        self._climb(grid)
        # The others counted alone, then the target too; neighbouring sets share counts.
        falling.sort(key=lambda case: case.unknown)
        cutoff = 0.0
        for tuples in (unknown, unknown + 1):
            grid = CountGrid.of(coordinates, tuples)
            cutoff = max(cutoff, self._cutoff(unknown))
            cutoff, shared = self._affordable(bound, falling, grid, cutoff)
            judge = functools.partial(self._judge, bound, grid, cutoff, shared=shared)
            found = run(falling, judge, self.clock, what="comparing adversaries", small=False)
            if tuples > unknown:
                for case, judged in zip(falling, found, strict=True):
                    if judged is not None:
                        self._note(case, judged[0], judged[1] - grid.error)

    def _climb(self, grid: CountGrid) -> None:
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
        self, bound: ChainedBound, cases: list[_Case], grid: CountGrid, cutoff: float
    ) -> tuple[float, bool]:
        """Return above which bound, from the cutoff on, a share of the work serves everybody.

        And whether they share the counts of the unknown tuples. That work is counted as done.
        """
        above = np.concatenate([bound.above(*case, cutoff)[0] for case in cases])
        each, cells = self._work(cases[0], grid)
        whole = self._count_work(cases)
        is_last = len(cases[0].unknown) == len(self.setting.sizes) - 1
        left = max(0.0, self._left * (1.0 if is_last else _SHARE))
        shared = whole < min(left, cells * len(above))
        each, left = (each, left - whole) if shared else (each + cells, left)
        most = int(left / each)
        self._left -= each * min(most, len(above)) + (whole if shared else 0.0)
        if len(above) <= most:
            return cutoff, shared
        return float(np.partition(above, len(above) - most - 1)[len(above) - most - 1]), shared

    def _judge(
        self, bound: ChainedBound, grid: CountGrid, cutoff: float, case: _Case, *, shared: bool
    ) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Evaluate the events of a case above a cutoff, and lower their bounds."""
        _, events = bound.above(*case, cutoff)
        values = np.zeros(len(events))
        counted = self._count_laws.of(case.unknown) if shared and len(events) else None
        own = self.setting.diameters[case.target] if grid.levels == len(case.unknown) + 1 else 0.0
        for start in range(0, len(events), _LANES):
            if self.clock.is_over:
                return events[:start], values[:start]
            some = slice(start, start + _LANES)
            values[some] = self._values(case, events[some], grid, counted) + own
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

    def _work(self, case: _Case, grid: CountGrid) -> tuple[float, float]:
        """Return what it takes to evaluate one of many events, and to gather its law."""
        sizes = self.setting.sizes
        cells = math.prod(sizes[place] for place in (case.target, *case.unknown))
        return _EACH + _POINT * grid.points * sizes[case.target] / 5, _CELL * cells

    def _count_work(self, cases: list[_Case]) -> float:
        """Return what it takes to count the unknown tuples of all cases."""
        return _COUNTED * self._count_laws.work({case.unknown for case in cases})

    def _values(
        self,
        case: _Case,
        events: npt.NDArray[np.intp],
        grid: CountGrid,
        counted: tuple[npt.NDArray[np.intp], FloatArray] | None = None,
    ) -> FloatArray:
        """Return the largest log-ratio of two secrets' densities on the grid, for each event.

        From the cells, or from the counts of the unknown tuples, as `CountLaws` gives them.
        """
        setting, (target, unknown) = self.setting, case
        known, sizes = self._known(case), setting.sizes
        if counted is None:
            cells, strides, offsets = self._cells, self._strides, np.zeros(1, dtype=np.int64)
            for place in unknown:
                steps = strides[place] * np.arange(sizes[place])
                offsets = np.add.outer(offsets, steps).ravel()
            places = self._places_of(unknown, grid.levels)
        else:
            vectors, masses = counted
            cells, strides = masses.reshape(-1), _strides(sizes, unknown)
            offsets, every = (
                masses.shape[1] * np.arange(len(vectors)),
                np.arange(setting.coordinates),
            )
            places = vectors @ steps_of(every, grid.levels, setting.coordinates)
        bases = np.zeros(len(events), dtype=np.int64)
        if known:
            values = np.unravel_index(events, [sizes[place] for place in known])
            for place, value in zip(known, values, strict=True):
                bases += value * strides[place]
        own = np.zeros(sizes[target], dtype=np.intp)
        if grid.levels > len(unknown) + 1:
            own = steps_of(self.bins[target], grid.levels, setting.coordinates)
        lanes = -(-len(events) // _FEWEST_LANES) * _FEWEST_LANES
        laws = np.empty((grid.masses, sizes[target], lanes), dtype=np.float32)
        self._kernels.gather_laws(
            cells,
            bases,
            strides[target] * np.arange(sizes[target]),
            offsets,
            places,
            own,
            grid.masses_at,
            SCALED,
            laws,
        )
        return grid.worst_log_ratios(laws, self._unit)[: len(events)]

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
        for worst in {self._climb_corners(*start, admitted) for start in starts}:
            self._evaluate(*worst)

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
        """Return the largest ratio at a corner, not rounded in any way; kept, for climbs meet."""
        key = target, frozenset(given.items())
        if key not in self._kept_corners:
            self._kept_corners[key] = self._compared_at_corners(target, given)
        return self._kept_corners[key]

    def _compared_at_corners(self, target: int, given: dict[int, int]) -> float:
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
        own = steps_of(self.bins[target], levels, coordinates)
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
            steps = steps_of(self.bins[place], levels, self.setting.coordinates)
            places = np.add.outer(places, steps).ravel()
        return places


def _by_cell(before: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the factors of cells, one tuple more; by cell and corner."""
    return (before[:, np.newaxis] * factors).reshape(-1, factors.shape[1])


def _strides(sizes: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    """Return how far apart a tuple's values stand in a table without those that are gone."""
    left = [1 if place in gone else size for place, size in enumerate(sizes)]
    return tuple(math.prod(left[place + 1 :]) for place in range(len(sizes)))


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
