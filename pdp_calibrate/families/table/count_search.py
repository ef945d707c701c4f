"""Large tables and vectors of counts: everybody screened, the worst evaluated.

`ThresholdBound` screens out whoever cannot leak more than what is known to leak. Who ignores one
tuple or two is screened first, in rounds between which the worst are evaluated, so that more is
known to leak; then all others. Whoever is left is evaluated: first a bound on a smaller grid (the
target itself changes densities by at most e^LS), then the leakage itself.

Upper end: the largest bound or value that is left. Lower end: the largest leakage evaluated. Both
in single precision, and charged for it; the worst event again in double precision, with the output
that proves it. The work is limited by counting it, so that a result does not depend on the machine;
bounds that were not reached stay.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import DENSITIES, rounding_error
from pdp_calibrate.core.workers import Clock, run
from pdp_calibrate.families.table.count_grid import (
    WIDEST,
    CountGrid,
    CountLaws,
    steps_of,
)
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    Setting,
    bracket,
    group_bound,
)
from pdp_calibrate.families.table.threshold_bound import (
    MOST_SECRETS,
    Case,
    ThresholdBound,
    are_two,
    two_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_TIGHT = 1e-4  # of the leakage found: closer bounds are not sought
_WORK = 6e10  # to bound and to evaluate adversaries, about a nanosecond each
_SHARE = 0.8  # of the work that is left, until the last tuple may be unknown
_FIRST_POINTS = 1e5  # of the grids of those who are evaluated first
_FIRST = 32  # … and the most of them
_HALVINGS = 2  # of the tuples, while somebody who leaks much is sought
_ROUNDS = 3  # of changing what is known of each tuple
_LANES = 128  # events evaluated together
_EACH = 3e3  # work for an event, however small
_TWO = 0.4  # of the work for an event, if two secrets only are left
_COMPARED = 120.0  # work for two secrets of an event that are compared
_MASS = 2.0  # work for a mass of the counts that everybody is screened by
_ROUNDS_OF_SCREENING = (
    0.01,
    0.03,
    0.1,
    0.2,
    0.4,
    0.7,
    1.0,
)  # of those who ignore equally many tuples, all in the end
_POINT, _CELL = 6.0, 2.5  # work for an event at a point of the grid, and for a cell of its law
_COUNTED = 2.0  # work for a mass, where they are counted for everybody
_KEPT = 16  # sets of unknown tuples whose places on the grid are remembered
_MOST_POINTS = 2e6  # of a grid
_MOST_CASES = 6e4  # target and unknown tuples: each is a few numpy calls


_Counted = tuple[npt.NDArray[np.intp], FloatArray]
"""Vectors of counts, and their masses."""


def can_search(setting: Setting) -> bool:
    """Return whether everybody can be bounded here, and whoever seems worst evaluated.

    The gate is work and the range of floats: a dense grid of `levels ** coordinates` outputs, in
    single precision. Nothing depends on how many values a tuple has but the bits of `Some`.
    """
    if setting.tails_only or not setting.fits_linear_space or len(setting.sizes) < 2:
        return False
    if not setting.is_additive or max(setting.sizes) > MOST_SECRETS:
        return False
    levels, coordinates = len(setting.sizes) + 1, setting.coordinates
    width = coordinates * levels * float(np.max(np.concatenate(setting.parts)))
    cases = len(setting.sizes) * 2.0 ** (len(setting.sizes) - 1)
    small = float(levels) ** coordinates <= _MOST_POINTS and width <= WIDEST
    return small and cases <= _MOST_CASES and _bins(setting) is not None


def search_counts(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return a bracket for all adversaries but those who know everyone else."""
    caps = {
        Case(target, unknown): group_bound(setting, (target, *unknown))
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
    left = search.screen_all(ThresholdBound(setting, search.bins, clock), caps)
    if search.leaks > clock.enough:
        left = widest
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
        self._worst: tuple[Case, int] | None = None  # who
        self._left = _WORK
        self._cells = np.ascontiguousarray(setting.probabilities).reshape(-1).view()
        self._cells.setflags(write=False)  # as the counts of `CountLaws` are
        self._strides = _strides(setting.sizes, ())
        self._count_laws = CountLaws(setting.probabilities, bins, setting.coordinates)
        self._kept_corners: dict[tuple[int, frozenset[tuple[int, int]]], float] = {}
        self._places_of = functools.lru_cache(maxsize=_KEPT)(self._grid_places)

    @property
    def _cutoff(self) -> float:
        """Up to which bound nobody is evaluated."""
        return max(self.incumbent, self.leaks * (1 + _TIGHT))

    def screen_all(self, bound: ThresholdBound, caps: dict[Case, float]) -> float:
        """Return an upper end from the threshold bound, evaluating whoever it leaves.

        Those who ignore one tuple, then two, then all others: what is found to leak screens the
        next, and of the last, sets of tuples share what was counted.
        """
        most = len(self.setting.sizes) - 1
        for turn in ([0], [1], [2], [*range(3, most + 1)]):
            cases = [case for case in caps if len(case.unknown) in turn]
            self._screen(bound, {case: caps[case] for case in cases})
            for number in turn:
                self.lower_bounds(bound, _with(number, cases))
            if self.leaks > self.clock.enough:
                break
        return _upper(bound, caps)

    def _screen(self, bound: ThresholdBound, caps: dict[Case, float]) -> None:
        """Find who may leak more than what is known to leak, in a few rounds.

        After each the worst are evaluated, so that the next screens out more.
        """
        cases = sorted(
            (case for case in caps if bound.largest(case) == math.inf),
            key=lambda case: case.unknown[::-1],
        )
        begun = 0
        for share in _ROUNDS_OF_SCREENING:
            end = math.ceil(share * len(cases))
            some = {c for c in cases[begun:end] if c.unknown and caps[c] > self._cutoff}
            for case in cases[begun:end]:
                if case not in some:
                    bound.settle(case, caps[case])
            self._left -= _COMPARED * bound.screen(some, self._cutoff) + _MASS * bound.work(some)
            self._try_worst(bound, sorted(some))
            begun = end

    def _try_worst(self, bound: ThresholdBound, cases: list[Case]) -> None:
        """Evaluate those with the largest bounds, so that more is known to leak."""
        for unknown in sorted({len(case.unknown) for case in cases}):
            grid = CountGrid.of(self.setting.coordinates, unknown + 1)
            some = [case for case in cases if len(case.unknown) == unknown]
            above = [bound.above(case, self._cutoff) for case in some]
            bounds = np.concatenate([left.log_bounds for left in above])
            most = max(1, min(_FIRST, int(_FIRST_POINTS / grid.points)))
            if not len(bounds):
                continue
            least = float(np.partition(bounds, -most)[-most]) if len(bounds) > most else 0.0
            for case, left in zip(some, above, strict=True):
                worst = left.events[left.log_bounds >= least][:most]  # bounds may be all alike
                most -= len(worst)
                if len(worst) and not self.clock.is_over:
                    self._note(case, worst, self._values(case, worst, grid) - grid.error)

    def lower_bounds(self, bound: ThresholdBound, cases: list[Case]) -> None:
        """Evaluate who of these cases seems worst, and lower the bounds to what they leak.

        All cases ignore equally many tuples.
        """
        falling = self._above(bound, cases)
        if not falling:
            return
        self._try_worst(bound, falling)
        unknown, coordinates = len(cases[0].unknown), self.setting.coordinates
        falling = self._above(bound, falling)
        # The others counted alone, then the target too; neighbouring sets share counts.
        falling.sort(key=lambda case: case.unknown)
        sets = [list(some) for _, some in itertools.groupby(falling, lambda case: case.unknown)]
        grid = CountGrid.of(coordinates, unknown)
        cutoff, shared = self._affordable(bound, falling, grid, self._cutoff)
        alone = functools.partial(self._judge_alone, bound, grid, cutoff, shared=shared)
        run(sets, alone, self.clock, what="comparing adversaries", small=False)
        grid = CountGrid.of(coordinates, unknown + 1)
        falling = self._above(bound, falling)
        cutoff, shared = self._affordable(bound, falling, grid, cutoff)
        judge = functools.partial(self._judge, bound, grid, cutoff, shared=shared)
        found = run(falling, judge, self.clock, what="comparing adversaries", small=False)
        for case, judged in zip(falling, found, strict=True):
            if judged is not None:
                self._note(case, judged[0], judged[1] - grid.error)

    def _above(self, bound: ThresholdBound, cases: Iterable[Case]) -> list[Case]:
        """Return the cases with events that are not settled."""
        return [case for case in cases if len(bound.above(case, self._cutoff).events)]

    def _affordable(
        self, bound: ThresholdBound, cases: list[Case], grid: CountGrid, cutoff: float
    ) -> tuple[float, bool]:
        """Return above which bound, from the cutoff on, a share of the work serves everybody.

        And whether they share the counts of the unknown tuples. That work is counted as done.
        """
        if not cases:
            return cutoff, False
        left_over = [bound.above(case, cutoff) for case in cases]
        above = np.concatenate([some.log_bounds for some in left_over])
        each, cells = self._work(cases[0], grid)
        if grid.levels == len(cases[0].unknown) + 1:  # then only two secrets may be left
            two = sum(int(np.sum(are_two(some.secrets))) for some in left_over)
            each *= 1 - (1 - _TWO) * two / max(1, len(above))
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

    def _judge_alone(
        self,
        bound: ThresholdBound,
        grid: CountGrid,
        cutoff: float,
        cases: list[Case],
        *,
        shared: bool,
    ) -> None:
        """Lower the bounds above a cutoff by counting the unknown tuples, the same in all cases.

        Who was screened out but for two secrets is not compared for the others.
        """
        above = [(case, bound.above(case, cutoff)) for case in cases]
        unknown, most = cases[0].unknown, max(self.setting.sizes)
        counted = self._count_laws.of(unknown) if shared else None
        for only_two in (True, False):
            some, bases = [], []
            for case, left in above:
                at = np.flatnonzero(are_two(left.secrets) == only_two)
                secrets = (
                    two_secrets(left.secrets[at]) if only_two else np.arange(most)[:, np.newaxis]
                )
                secrets = np.minimum(secrets, self.setting.sizes[case.target] - 1)
                some.append((case, left.events[at]))
                bases.append(
                    self._bases(case, left.events[at], secrets, shared=counted is not None)
                )
            values = self._ratios(
                unknown, np.concatenate(bases, axis=1), np.zeros(most, dtype=np.intp), grid, counted
            )
            for case, events in some:
                own = self.setting.diameters[case.target] + grid.error
                bound.lower(case, events, values[: len(events)] + own)
                values = values[len(events) :]

    def _judge(
        self, bound: ThresholdBound, grid: CountGrid, cutoff: float, case: Case, *, shared: bool
    ) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Evaluate the events of a case above a cutoff, and lower their bounds."""
        events = bound.above(case, cutoff).events
        counted = self._count_laws.of(case.unknown) if shared and len(events) else None
        values = self._values(case, events, grid, counted)
        bound.lower(case, events, values + grid.error)
        return events, values

    def _note(self, case: Case, events: npt.NDArray[np.intp], leaks: FloatArray) -> None:
        """Remember who leaks most."""
        leaks = np.where(np.isfinite(leaks), leaks, 0.0)
        if len(events) and leaks.max() > self.leaks:
            self.leaks, self._worst = float(leaks.max()), (case, int(events[leaks.argmax()]))

    def evaluate_worst(self) -> None:
        """Evaluate whoever was found to leak most in double precision."""
        if self._worst is not None:
            self._evaluate(*self._worst)

    def _work(self, case: Case, grid: CountGrid) -> tuple[float, float]:
        """Return what it takes to evaluate one of many events, and to gather its law."""
        sizes = self.setting.sizes
        cells = math.prod(sizes[place] for place in (case.target, *case.unknown))
        return _EACH + _POINT * grid.points * sizes[case.target] / 5, _CELL * cells

    def _count_work(self, cases: list[Case]) -> float:
        """Return what it takes to count the unknown tuples of all cases."""
        return _COUNTED * self._count_laws.work({case.unknown for case in cases})

    def _values(
        self,
        case: Case,
        events: npt.NDArray[np.intp],
        grid: CountGrid,
        counted: _Counted | None = None,
    ) -> FloatArray:
        """Return the largest log-ratio of two secrets' densities on the grid, for each event.

        From the cells, or from the counts of the unknown tuples, as `CountLaws` gives them.
        """
        size = self.setting.sizes[case.target]
        own = np.zeros(size, dtype=np.intp)
        if grid.levels > len(case.unknown) + 1:
            own = steps_of(self.bins[case.target], grid.levels, self.setting.coordinates)
        secrets = np.arange(size)[:, np.newaxis]
        bases = self._bases(case, events, secrets, shared=counted is not None)
        return self._ratios(case.unknown, bases, own, grid, counted)

    def _bases(
        self,
        case: Case,
        events: npt.NDArray[np.intp],
        secrets: npt.NDArray[np.intp],
        *,
        shared: bool,
    ) -> npt.NDArray[np.int64]:
        """Return where the masses of events begin, in a row for each secret."""
        sizes, known = self.setting.sizes, self._known(case)
        strides = _strides(sizes, case.unknown if shared else ())
        bases = np.zeros(len(events), dtype=np.int64)
        if known:
            values = np.unravel_index(events, [sizes[place] for place in known])
            for place, value in zip(known, values, strict=True):
                bases += value * strides[place]
        return bases + strides[case.target] * secrets

    def _ratios(
        self,
        unknown: tuple[int, ...],
        bases: npt.NDArray[np.int64],
        own: npt.NDArray[np.intp],
        grid: CountGrid,
        counted: _Counted | None,
    ) -> FloatArray:
        """Return the largest log-ratios of events whose masses begin there, in time.

        Infinite for those who are not reached. The target moves each secret's counts by its own.
        """
        secrets, events = bases.shape
        found = np.full(events, math.inf)
        if not events:
            return found
        masses = self._masses(unknown, grid, counted)
        lanes = _LANES * max(self.setting.sizes) // secrets
        for start in range(0, events, lanes):
            if self.clock.is_over:
                break
            laws = grid.laws(*masses, bases[:, start : start + lanes], own[:secrets])
            ratios = grid.worst_log_ratios(laws, self._unit)
            found[start : start + lanes] = ratios[: events - start]
        return found

    def _masses(
        self, unknown: tuple[int, ...], grid: CountGrid, counted: _Counted | None
    ) -> tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[np.intp]]:
        """Return all masses, how far those of an event stand apart, and where they count."""
        sizes, coordinates = self.setting.sizes, self.setting.coordinates
        if counted is not None:
            vectors, masses = counted
            places = vectors @ steps_of(np.arange(coordinates), grid.levels, coordinates)
            return masses.reshape(-1), masses.shape[1] * np.arange(len(vectors)), places
        offsets = np.zeros(1, dtype=np.int64)
        for place in unknown:
            steps = self._strides[place] * np.arange(sizes[place])
            offsets = np.add.outer(offsets, steps).ravel()
        return self._cells, offsets, self._places_of(unknown, grid.levels)

    def try_corners(self, admitted: Collection[Case]) -> None:
        """Compare adversaries at outputs beyond all counts, and evaluate the worst of them.

        At such an output every value of every tuple has a factor of its own, e^{±unit}, and the
        density is a sum of products. The tuples are halved a few times; for all who attack a tuple
        of one half and know tuples of that half only, one matrix product sums out the other.
        """
        setting = self.setting
        factors = self._corners
        rng, places = np.random.default_rng(0), np.arange(len(setting.sizes))
        starts: list[tuple[Case, int]] = []
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
        self, case: Case, event: int, admitted: Collection[Case]
    ) -> tuple[Case, int]:
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
                    if changed == given or Case(target, tuple(unknown)) not in admitted:
                        continue
                    if self.clock.is_over:
                        break
                    found = self._at_corners(target, changed)
                    if found > best:
                        best, given = found, changed
            if best <= before:
                break
        unknown = (p for p in range(len(sizes)) if p != target and p not in given)
        case = Case(target, tuple(unknown))
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
        admitted: Collection[Case],
    ) -> list[tuple[Case, int]]:
        """Return who of one half leaks most at a corner; nobody if nobody is admitted."""
        sizes = [self.setting.sizes[place] for place in side]
        summed = summed.reshape(*sizes, -1)
        for axis, place in enumerate(side):  # one more value: unknown
            moved = np.moveaxis(summed, axis, -2)
            unknown = (moved * factors[place]).sum(axis=-2, keepdims=True)
            summed = np.moveaxis(np.concatenate([moved, unknown], axis=-2), -2, axis)
        best, worst = 0.0, []
        all_flags = list(itertools.product((False, True), repeat=len(side)))
        for target, flags in itertools.product(range(len(side)), all_flags):
            hidden = [place for axis, place in enumerate(side) if flags[axis] and axis != target]
            case = Case(side[target], tuple(sorted([*others, *hidden])))
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

    def _event(self, case: Case, given: dict[int, int]) -> int:
        """Return the place of what is known in the order of their product."""
        known = self._known(case)
        sizes = [self.setting.sizes[place] for place in known]
        return int(np.ravel_multi_index([given[place] for place in known], sizes)) if known else 0

    def _known(self, case: Case) -> tuple[int, ...]:
        places = range(len(self.setting.sizes))
        return tuple(p for p in places if p != case.target and p not in case.unknown)

    def _evaluate(self, case: Case, event: int) -> Outcome:
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


def _with(number: int, cases: Iterable[Case]) -> list[Case]:
    """Return the cases with a number of unknown tuples."""
    return [case for case in cases if len(case.unknown) == number]


def _upper(bound: ThresholdBound, caps: dict[Case, float]) -> float:
    """Return what nobody exceeds."""
    return max(min(cap, bound.largest(case)) for case, cap in caps.items())


def _by_cell(before: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the factors of cells, one tuple more; by cell and corner."""
    return (before[:, np.newaxis] * factors).reshape(-1, factors.shape[1])


@functools.lru_cache(maxsize=_KEPT)
def _strides(sizes: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    """Return how far apart a tuple's values stand in a table without those that are gone."""
    left = [1 if place in gone else size for place, size in enumerate(sizes)]
    return tuple(math.prod(left[place + 1 :]) for place in range(len(sizes)))


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
