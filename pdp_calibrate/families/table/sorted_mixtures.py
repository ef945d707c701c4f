"""Search all adversaries of a query with one coordinate and any real answers, set by set."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import KEPT_NUMBERS, SORTED_SMALL_WORK, SORTED_TOGETHER
from pdp_calibrate.core.workers import Clock, best_first, run
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    Setting,
    bracket,
)
from pdp_calibrate.families.table.sorted_mixture_kernels import compare_mixtures, space_to_compare

_SAME = 4 * UNIT_ROUNDOFF  # atoms closer than this, times the furthest distance, become one


_Indices = npt.NDArray[np.int64]


_Case = tuple[float, int, tuple[int, ...]]  # (group bound, target, unknown tuples)


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """What is known about some of the sets."""

    lower: float = -1.0
    """The largest ratio − 1 of two densities that was found."""
    bound: float = 0.0
    """A bound on the log-ratios that were left out."""
    attack: Attack | None = None
    """The adversary who attains the ratio."""

    def or_worse(self, other: _Compared) -> _Compared:
        """Return the larger ratio together with the larger bound."""
        one, two = (other, self) if other.lower > self.lower else (self, other)
        return one if one.bound >= two.bound else dataclasses.replace(one, bound=two.bound)


def search_lines(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries except those who know everyone else."""
    ranges = [float(part[:, 0].max()) for part in setting.parts]
    spare = 1 + 4 * (len(setting.sizes) + 4) * UNIT_ROUNDOFF

    def movement(target: int, unknown: tuple[int, ...]) -> float:
        if not setting.is_additive:
            return setting.furthest
        return sum(ranges[place] for place in (target, *unknown)) * spare

    cases = sorted(
        (
            (movement(target, unknown), target, unknown)
            for target, unknown in setting.prepared.cases()
        ),
        key=lambda case: -case[0],
    )
    if not cases:
        return NOTHING
    shared, kept = np.array([-1.0, _ratio(incumbent)]), _Kept(setting)
    remaining = iter(cases)
    tasks = list(iter(lambda: list(islice(remaining, SORTED_TOGETHER)), []))
    work = setting.probabilities.size * len(cases)
    results = run(
        tasks,
        lambda task: _search_sets(setting, task, shared, kept, clock),
        clock,
        what="comparing adversaries",
        small=work < SORTED_SMALL_WORK,
    )
    sizes = setting.sizes
    atoms = max(
        sizes[target] * math.prod(map(sizes.__getitem__, unknown)) for _, target, unknown in cases
    )
    error = setting.rounding_error(2 * atoms) + 2 * _SAME * setting.furthest
    outcome = NOTHING
    for task, result in zip(tasks, results, strict=True):
        if result is None:
            found = Outcome(upper=task[0][0], lower=0.0, attack=None)
        else:
            ratio = math.log1p(max(result.lower, 0.0))
            found = bracket(ratio, result.bound, error, result.attack)
        outcome = outcome.or_worse(found)
    return outcome


def _search_sets(
    setting: Setting, task: list[_Case], shared: FloatArray, kept: _Kept, clock: Clock
) -> _Compared:
    """Compare the mixtures of some sets; `shared` holds the largest ratio of all threads."""
    return best_first(
        ((_ratio(case[0]), case) for case in task),
        lambda _, case: _compared(setting, shared, kept, *case[1:]),
        start=_Compared(),
        unjudged=lambda _, case: _Compared(bound=case[0]),
        cutoff=lambda _: max(shared),
        is_over=lambda: clock.is_over,
    )


def _ratio(bound: float) -> float:
    """Turn a bound on a log-ratio into one on the ratio − 1; all very large ones become equal."""
    return math.expm1(min(bound, 700.0))


@dataclass(frozen=True, kw_only=True)
class _Atoms:
    """The cells of one target and one set of unknown tuples, and what they answer."""

    own: _Indices
    """The offset of each secret in the flat table; add those of `hidden` and `known` for a cell."""
    hidden: _Indices
    known: _Indices
    group: _Indices
    """Per hidden value, its atom among those of one secret."""
    places: FloatArray
    """The atoms of all secrets; one row for all known cells, or one for each."""

    @classmethod
    def of(cls, kept: _Kept, target: int, unknown: tuple[int, ...]) -> _Atoms:
        setting, places = kept.setting, range(len(kept.setting.sizes))
        others = tuple(p for p in places if p != target and p not in unknown)
        own, hidden, known = map(kept.offsets, ((target,), unknown, others))
        if setting.table is not None:
            at = known[:, np.newaxis] + np.add.outer(own, hidden).ravel()
            return cls(
                own=own,
                hidden=hidden,
                known=known,
                group=np.arange(len(hidden)),
                places=setting.table.ravel()[at],
            )
        group, values = kept.merged(unknown)
        atoms = np.add.outer(setting.parts[target][:, 0], values).ravel()
        return cls(own=own, hidden=hidden, known=known, group=group, places=atoms[np.newaxis])


class _Kept:
    """What sets of tuples have at one scale, for any target; kept while there is memory."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._offsets: dict[tuple[int, ...], _Indices] = {(): np.zeros(1, dtype=np.int64)}
        self._merged: dict[tuple[int, ...], tuple[_Indices, FloatArray]] = {}
        self._numbers = 0

    def offsets(self, chosen: tuple[int, ...]) -> _Indices:
        """Return where the cells of these tuples stand in the flat table, last tuple fastest."""
        found = self._offsets.get(chosen)
        if found is None:
            *before, place = chosen
            size, step = self.setting.sizes[place], math.prod(self.setting.sizes[place + 1 :])
            found = np.add.outer(self.offsets(tuple(before)), step * np.arange(size)).ravel()
            if self._has_memory(len(found)):
                self._offsets[chosen] = found
        return found

    def merged(self, unknown: tuple[int, ...]) -> tuple[_Indices, FloatArray]:
        """Return which value each sum of these tuples is, and the values, ascending."""
        found = self._merged.get(unknown)
        if found is None:
            sums = np.zeros(1)
            for place in unknown:
                sums = np.add.outer(sums, self.setting.parts[place][:, 0]).ravel()
            found = _merged(sums, _SAME * self.setting.furthest)
            if self._has_memory(2 * len(sums)):
                self._merged[unknown] = found
        return found

    def _has_memory(self, numbers: int) -> bool:
        self._numbers += numbers
        return self._numbers <= KEPT_NUMBERS


def _merged(sums: FloatArray, same: float) -> tuple[_Indices, FloatArray]:
    """Return which value each sum is, and the values, ascending; close sums are one value."""
    order = np.argsort(sums)
    ascending = sums[order]
    begins = np.ones(len(sums), dtype=np.bool_)
    np.greater(ascending[1:] - ascending[:-1], same, out=begins[1:])
    number, values = np.cumsum(begins) - 1, ascending[begins]
    if np.any(ascending - values[number] > same):  # a long run of close values: divide it
        kept: list[float] = []
        for place, value in enumerate(ascending.tolist()):
            if not kept or value - kept[-1] > same:
                kept.append(value)
            number[place] = len(kept) - 1
        values = np.array(kept)
    group = np.empty(len(sums), dtype=np.int64)
    group[order] = number
    return group, values


def _compared(
    setting: Setting, shared: FloatArray, kept: _Kept, target: int, unknown: tuple[int, ...]
) -> _Compared:
    """Compare the mixtures of one target and one set of unknown tuples."""
    atoms = _Atoms.of(kept, target, unknown)
    order, ascending = np.argsort(atoms.places, axis=1), np.sort(atoms.places, axis=1)
    gaps = np.zeros(order.shape)
    np.subtract(ascending[:, 1:], ascending[:, :-1], out=gaps[:, 1:])
    secrets, rows = setting.sizes[target], len(order)
    ratio, cell, first, second, step = compare_mixtures(
        setting.probabilities.ravel(),
        atoms.own,
        atoms.hidden,
        atoms.known,
        atoms.group,
        order,
        np.exp(-gaps),
        -np.expm1(-gaps) if setting.is_near_one else np.zeros(gaps.shape),
        float(setting.is_near_one),
        setting.tails_only,
        shared,
        *space_to_compare(
            secrets,
            order.shape[1],
            order.shape[1] // secrets,
            len(atoms.known) if setting.table is None else 1,
        ),
    )
    if ratio <= -1.0:
        return _Compared()
    places = [p for p in range(len(setting.sizes)) if p != target and p not in unknown]
    values = np.unravel_index(cell, [setting.sizes[p] for p in places]) if places else ()
    known = dict(zip(places, map(int, values), strict=True))
    row = cell if rows > 1 else 0
    output = atoms.places[row, order[row, step]]
    if setting.is_additive:
        output += sum(setting.parts[place][value, 0] for place, value in known.items())
    attack = Attack(target=target, known=known, secrets=(first, second), output=np.array([output]))
    return _Compared(lower=ratio, attack=attack)
