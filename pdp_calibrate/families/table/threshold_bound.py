"""How much anybody learns about a tuple, from how far two laws of counts lie apart.

Theorem 26 (docs/theory): let h be the density of an output as the unknown tuples alone decide it.
It changes by a factor of e^c at most, c the sum of their LS/λ, and by e^d within a group of counts
that differ by one tuple. If P and Q are the laws of the counts of the unknown tuples given two
secrets, then for every t ≥ 1

    X(P, t·Q) ≤ 0   implies   E_P[h] ≤ t·E_Q[h],   where   X(A, B) = Σ_g max(y_g, e^(d−c)·y_g),
    y_g = Σ_g(A − B)⁺ − e^−d·Σ_g(B − A)⁺   of group g,

and whoever knows the rest learns at most LS/λ of the target and log t. So one number t, from what
is known to leak, screens everybody: those who pass need no further look. For the others
t + e^c·X(P, t·Q) takes the place of t. X is called the excess of A over B.

Two screens, the cheaper first. X(P, s·R) + X(s·R, t·Q) ≤ 0 suffices too, for any law R, so that
each law is compared with one law in the middle, once for all targets and secrets; only where that
does not suffice are the laws of two secrets compared.

The laws are in single precision, and what is compared is charged for it. They are compared by
absolute differences: a mass that is too small for such floats changes nothing, unless it is all
that a secret has; then the secret counts as apart from the others.
"""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.core.workers import Clock, load_kernels, run
from pdp_calibrate.families.table.count_grid import (
    Bins,
    CountLaws,
    Neighbours,
    Singles,
    all_count,
)
from pdp_calibrate.families.table.setting import Setting, group_bound

if TYPE_CHECKING:
    from collections.abc import Collection

    from pdp_calibrate.arrays import FloatArray

_SCALED = 2.0**60  # what all masses together are multiplied by
_LEAST_MASS = np.float32(1e-12)  # of those, for all that a secret has
_LARGEST = 1e6  # t: times _SCALED / _LEAST_MASS it is a number of single precision
_MIDDLE = 0.35  # s = t^0.35: that leaves fewest pairs, where nearly independent tuples were tried
_SAMPLE = 200  # laws that the middle is the mean of
_ROOM = 2**17  # pairs of laws that are expected to be compared for a case
_SINGLE = 2.0**-24  # unit roundoff


MOST_SECRETS = 31
"""Values of a tuple: a bit of an int32 for each."""


Events = npt.NDArray[np.intp]
"""Places of what is known in the order of their product."""


class Case(NamedTuple):
    """All who attack a target and ignore some tuples."""

    target: int
    unknown: tuple[int, ...]


class Some(NamedTuple):
    """Some events of a case, in order."""

    events: Events
    log_bounds: FloatArray
    secrets: npt.NDArray[np.int32]
    """Which two or more secrets may be so far apart, bit by bit; others are settled."""


_NOBODY = Some(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0, dtype=np.int32))


class _Screen(NamedTuple):
    """How laws of so many tuples are screened."""

    t: np.float32
    near: np.float32
    """e^−d."""
    far: np.float32
    """e^(d−c)."""
    groups: Neighbours
    c: float
    error: float
    """Of an excess, or of both about the middle."""

    @property
    def most(self) -> float:
        """Return the largest excess that passes."""
        return -self.error

    @classmethod
    def of(cls, log_t: float, c: float, d: float, added: int, groups: Neighbours) -> _Screen:
        """Prepare it; `added` is how many values the unknown tuples have together."""
        t = _rounded_down(math.exp(min(log_t, math.log(_LARGEST))))
        near = _rounded_down(math.exp(-min(d, c)) * (1 - 1e-15))
        far = _rounded_down(math.exp(-c) / float(near) * (1 - 1e-15))
        # Counting a tuple of k values out adds up to k masses (count_kernels.count_out), and a law
        # divides by the sum of all; sums of a group, and of all groups, hold no more. What is added
        # or subtracted is positive, and at most 9t + 3 for both about the middle together.
        roundings = 2 * (added + 2 * len(groups.rows)) + 64
        return cls(t, near, far, groups, c, (9 * float(t) + 3) * roundings * _SINGLE)

    def excess(self, one: Singles, other: Singles) -> Singles:
        """Return that of laws over others, raised, whose masses stand in the order of groups."""
        begins = self.groups.begins[:-1]
        above = np.add.reduceat(np.maximum(one - other, 0), begins)
        below = np.add.reduceat(np.maximum(other - one, 0), begins)
        left = above - self.near * below
        return np.asarray(np.maximum(left, self.far * left).sum(axis=0))

    def log_bounds(self, excess: Singles) -> FloatArray:
        """Return what t is at most for laws with an excess."""
        beyond = np.maximum(excess.astype(np.float64) + self.error, 0.0)
        return np.asarray(np.log(float(self.t) + math.exp(self.c) * (1 + 1e-15) * beyond))


class ThresholdBound:
    """Who may leak more than a cutoff, and how much at most; everybody else is screened out."""

    def __init__(self, setting: Setting, bins: Bins, clock: Clock) -> None:
        self._setting, self._clock = setting, clock
        # Rounded up by more than sums of them are rounded by.
        self._own = [group_bound(setting, (place,)) for place in range(len(setting.sizes))]
        self._left: dict[Case, Some] = {}  # who was not screened out
        self._rest: dict[Case, float] = {}  # a bound for all others of the case
        self._bins, self._all_count = bins, all_count(bins)
        unit = float(max(part.max() for part in setting.parts))
        # Two counts of a group differ by one in two bins at most.
        self._near = min(2, setting.coordinates) * unit * (1 + 1e-15)

    @functools.cached_property
    def _counts(self) -> CountLaws[Singles]:
        setting = self._setting
        table = np.empty(setting.sizes, dtype=np.float32)
        np.multiply(setting.probabilities, _SCALED, out=table, casting="same_kind")  # in doubles
        return CountLaws(table, self._bins, setting.coordinates)

    def settle(self, case: Case, log_bound: float) -> None:
        """Take over a bound for all events of a case, none of which matters any more."""
        self._left[case], self._rest[case] = _NOBODY, log_bound

    def events(self, case: Case) -> int:
        """Count the events of a case."""
        places = enumerate(self._setting.sizes)
        return math.prod(
            size for place, size in places if place not in (case.target, *case.unknown)
        )

    def work(self, cases: Collection[Case]) -> float:
        """Return how many masses are counted to screen some cases."""
        return sum(map(self._counts.size, {case.unknown for case in cases}))

    def screen(self, cases: Collection[Case], cutoff: float) -> int:
        """Find whoever may leak more than a cutoff; return for how many secrets were compared."""
        _ = self._counts  # before the threads ask for them
        targets: dict[tuple[int, ...], list[int]] = {}
        for case in cases:
            targets.setdefault(case.unknown, []).append(case.target)
        # In this order, sets share what was counted of their last tuples.
        sets = sorted(targets, key=lambda unknown: unknown[::-1])
        work = functools.partial(self._screen_set, targets, cutoff)
        found = run(sets, work, self._clock, what="bounding adversaries", small=False)
        return sum(compared for compared in found if compared is not None)

    def above(self, case: Case, cutoff: float) -> Some:
        """Return the events whose bounds are above a cutoff."""
        left = self._left.get(case, _NOBODY)
        some = left.log_bounds > cutoff
        return Some(left.events[some], left.log_bounds[some], left.secrets[some])

    def lower(self, case: Case, events: Events, log_bounds: FloatArray) -> None:
        """Take over smaller bounds on some events and the secrets that were left of them."""
        left = self._left[case]
        at = np.searchsorted(left.events, events)
        left.log_bounds[at] = np.minimum(left.log_bounds[at], log_bounds)

    def largest(self, case: Case) -> float:
        """Return the largest bound of any event, infinite for a case that was not reached."""
        if case not in self._rest:
            return math.inf
        return float(self._left[case].log_bounds.max(initial=self._rest[case]))

    def _screen_set(
        self, targets: dict[tuple[int, ...], list[int]], cutoff: float, unknown: tuple[int, ...]
    ) -> int:
        """Screen everybody who ignores these tuples."""
        others = sum(self._own[place] for place in unknown)
        if others == 0:  # then nothing is learned but from the target itself
            for target in targets[unknown]:
                self.settle(Case(target, unknown), self._own[target])
            return 0
        sizes = self._setting.sizes
        left = [size for place, size in enumerate(sizes) if place not in unknown]
        tail, compared = math.prod(left[-2:]), 0
        with self._counts.lent(unknown[::-1]) as masses:
            for own in {self._own[target] for target in targets[unknown]}:
                screen = self._screen_of(unknown, own, cutoff)
                apart = self._from_middle(masses, screen, tail)
                for target in targets[unknown]:
                    if self._own[target] == own:
                        case = Case(target, unknown)
                        compared += self._screen_case(case, masses, screen, apart, own + others)
        return compared

    def _screen_of(self, unknown: tuple[int, ...], own: float, cutoff: float) -> _Screen:
        """Return how laws of the counts of some tuples are screened, for targets alike."""
        coordinates, number = self._setting.coordinates, len(unknown)
        groups = Neighbours.of(coordinates, number, exactly=self._all_count)
        others = sum(self._own[place] for place in unknown)
        added = sum(self._setting.sizes[place] for place in unknown)
        return _Screen.of(max(cutoff - own, 0.0), others, self._near, added, groups)

    def _from_middle(self, masses: Singles, screen: _Screen, tail: int) -> _Apart:
        """Compare every law with one in the middle."""
        some = masses[:, :: -(-masses.shape[1] // _SAMPLE)].astype(np.float64)
        totals = some.sum(axis=0)
        mean = (some[:, totals > 0] / totals[totals > 0]).sum(axis=1)
        law = np.full(len(masses), 1 / len(masses)) if mean.sum() == 0 else mean / mean.sum()
        law = (law * float(screen.t) ** _MIDDLE).astype(np.float32)
        found = np.empty((2, masses.shape[1]), dtype=np.float32)
        shares = np.add.reduceat(law[screen.groups.rows], screen.groups.begins[:-1])
        _kernels().compare_with(
            masses,
            law,
            *screen.groups,
            shares,
            screen.t,
            screen.near,
            screen.far,
            _LEAST_MASS,
            _room(),
            *found,
        )
        return _Apart(found, tail)

    def _screen_case(
        self, case: Case, masses: Singles, screen: _Screen, apart: _Apart, group: float
    ) -> int:
        """Screen the events of a case, whose laws are so far from the middle."""
        sizes = self._setting.sizes
        left = [place for place in range(len(sizes)) if place not in case.unknown]
        at, size = left.index(case.target), sizes[case.target]
        after = math.prod(sizes[place] for place in left[at + 1 :])
        columns, own = apart.far(size, after, screen.most), self._own[case.target]
        log_t = math.log(float(screen.t))
        if not columns.size:
            self.settle(case, (own + log_t) * (1 + 1e-15))
            return 0
        found = np.empty(columns.shape[1], dtype=np.float32)
        if len(found):
            _kernels().compare_laws(
                masses,
                columns,
                *screen.groups,
                screen.t,
                screen.near,
                screen.far,
                _LEAST_MASS,
                _room(),
                np.empty((2, len(masses), _kernels().LANES), dtype=np.float32),
                found,
            )
        ones, others = columns[:, found > screen.most].astype(np.int64)
        found = found[found > screen.most]
        # Of all pairs of secrets of an event, the largest sum, and a bit for every secret.
        events = ones // (size * after) * after + ones % after
        bits = (1 << ones // after % size) | (1 << others // after % size)
        begins = np.flatnonzero(np.diff(events, prepend=-1))
        if len(begins):
            found, bits = np.maximum.reduceat(found, begins), np.bitwise_or.reduceat(bits, begins)
        log_bounds = np.minimum(own + screen.log_bounds(found), group)
        order = np.argsort(events[begins])
        self._left[case] = Some(
            events[begins][order], log_bounds[order], bits[order].astype(np.int32)
        )
        self._rest[case] = (own + log_t) * (1 + 1e-15)
        return len(columns[0])


class _Apart:
    """How far every law is above the middle, and how far below it."""

    def __init__(self, found: Singles, tail: int) -> None:
        self._found, self._tail = found, tail

    @functools.cached_property
    def _turned(self) -> Singles:
        """The same with the last two tuples, of so many values, before all others."""
        turned = self._found.reshape(2, -1, self._tail).swapaxes(1, 2)
        return np.ascontiguousarray(turned).reshape(2, -1)

    def far(self, size: int, after: int, most: float) -> npt.NDArray[np.uint32]:
        """Return all pairs of columns, `after` apart, for secrets that may be far apart.

        Pairs about the same event stand together.
        """
        # Events are taken together if they stand side by side.
        rest = self._found.shape[1] // self._tail
        is_turned = size * after <= self._tail < rest
        found, after = (self._turned, after * rest) if is_turned else (self._found, after)
        room = _ROOM
        while True:
            columns = np.empty((2, room), dtype=np.uint32)
            number = _kernels().far_apart(found, size, after, np.float32(most), _room(), *columns)
            if number <= room:
                break
            room = number
        columns = np.ascontiguousarray(columns[:, :number])
        return columns % rest * self._tail + columns // rest if is_turned else columns


def _rounded_down(number: float) -> np.float32:
    single = np.float32(number)
    return single if single <= number else np.nextafter(single, np.float32(0))


def _kernels() -> ModuleType:
    return load_kernels("pdp_calibrate.families.table.threshold_kernels")


def _room() -> Singles:
    """Return what a kernel works in."""
    kernels = _kernels()
    return np.empty((kernels.ROOM, kernels.LANES), dtype=np.float32)


def are_two(secrets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return where two bits are set."""
    without_last = secrets & (secrets - 1)
    return np.asarray((without_last > 0) & (without_last & (without_last - 1) == 0))


def two_secrets(secrets: npt.NDArray[np.int32]) -> Events:
    """Return which two bits are set, in two rows."""
    powers = np.array([secrets & -secrets, secrets & (secrets - 1)])
    return np.asarray(np.log2(powers), dtype=np.intp)
