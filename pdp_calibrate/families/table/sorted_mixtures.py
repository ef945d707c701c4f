"""Search all adversaries of a query with one coordinate and any real answers, set by set."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.best_first import best_first
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.workers import Clock, run
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    Setting,
    bracket,
)
from pdp_calibrate.families.table.sorted_mixture_kernels import compare_mixtures

_SAME = 4 * UNIT_ROUNDOFF  # of the furthest distance: closer atoms are one


_SMALL_WORK = 1e5  # cells compared that need no second thread


_TOGETHER = 32  # unknown sets per task


_Case = tuple[float, int, tuple[int, ...]]  # (group bound, target, unknown tuples)


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """What is known about some of the sets."""

    lower: float = -1.0
    """The largest ratio − 1 of two densities that was found."""
    bound: float = 0.0
    """A bound on the log-ratios that were left out."""
    attack: Attack | None = None
    """Who attains the ratio."""

    def or_worse(self, other: _Compared) -> _Compared:
        """Return the larger ratio together with the larger bound."""
        one = other if other.lower > self.lower else self
        return dataclasses.replace(one, bound=max(self.bound, other.bound))


def search_lines(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else."""
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
    shared = np.array([-1.0, _ratio(incumbent)])
    remaining = iter(cases)
    tasks = list(iter(lambda: list(islice(remaining, _TOGETHER)), []))
    work = setting.probabilities.size * len(cases)
    results = run(
        tasks,
        lambda task: _search_sets(setting, task, shared, clock),
        clock,
        what="comparing adversaries",
        small=work < _SMALL_WORK,
    )
    atoms = max(
        setting.sizes[target] * math.prod(setting.sizes[place] for place in unknown)
        for _, target, unknown in cases
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
    setting: Setting, task: list[_Case], shared: FloatArray, clock: Clock
) -> _Compared:
    """Compare the mixtures of some sets; `shared` holds the largest ratio of all threads."""
    flat = _Flat.of(setting)
    return best_first(
        ((_ratio(case[0]), case) for case in task),
        lambda _, case: _compared(setting, flat, shared, *case[1:]),
        start=_Compared(),
        unjudged=lambda _, case: _Compared(bound=case[0]),
        cutoff=lambda _: max(shared),
        is_over=lambda: clock.is_over,
    )


def _ratio(bound: float) -> float:
    """Turn a bound on a log-ratio into one on the ratio − 1; large ones are one."""
    return math.expm1(min(bound, 700.0))


@dataclass(frozen=True, kw_only=True)
class _Flat:
    """A setting in the arrays that compiled code reads."""

    sizes: npt.NDArray[np.int64]
    strides: npt.NDArray[np.int64]
    parts: FloatArray
    """What each value of each tuple adds, shape (tuples, values); 0 where there is no value."""
    table: FloatArray
    """The answers of all cells; empty if the query is additive."""

    @classmethod
    def of(cls, setting: Setting) -> _Flat:
        sizes = setting.sizes
        parts = np.zeros((len(sizes), max(sizes)))
        for place, part in enumerate(setting.parts):
            parts[place, : len(part)] = part[:, 0]
        strides = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
        return cls(
            sizes=np.array(sizes, dtype=np.int64),
            strides=np.array(strides, dtype=np.int64),
            parts=parts,
            table=np.empty(0) if setting.table is None else setting.table.ravel(),
        )


def _compared(
    setting: Setting, flat: _Flat, shared: FloatArray, target: int, unknown: tuple[int, ...]
) -> _Compared:
    """Compare the mixtures of one target and one set of unknown tuples."""
    hidden = np.zeros(len(flat.sizes), dtype=np.bool_)
    hidden[list(unknown)] = True
    ratio, cell, first, second, output = compare_mixtures(
        setting.probabilities.ravel(),
        flat.sizes,
        flat.strides,
        flat.parts,
        flat.table,
        target,
        hidden,
        float(setting.is_near_one),
        setting.tails_only,
        _SAME * setting.furthest,
        shared,
    )
    if ratio <= -1.0:
        return _Compared()
    places = [p for p in range(len(flat.sizes)) if p != target and not hidden[p]]
    values = np.unravel_index(cell, [setting.sizes[p] for p in places]) if places else ()
    known = dict(zip(places, map(int, values), strict=True))
    if setting.is_additive:
        output += sum(flat.parts[place, value] for place, value in known.items())
    attack = Attack(target=target, known=known, secrets=(first, second), output=np.array([output]))
    return _Compared(lower=ratio, attack=attack)
