"""Search all adversaries of a query with one coordinate and any real answers, set by set."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.workers import Clock, run
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    Setting,
    bracket,
    unknown_sets,
)
from pdp_calibrate.families.table.sorted_mixture_kernels import compare_mixtures

_SAME = 4 * UNIT_ROUNDOFF  # of the furthest distance: closer atoms are one


_SMALL_WORK = 1e5  # cells looked at that need no second thread


_TOGETHER = 32  # unknown sets per task


_Case = tuple[float, int, tuple[int, ...]]  # (group bound, target, unknown tuples)


_Result = tuple[float, float, Attack | None]


def search_lines(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else."""
    ranges = [float(part[:, 0].max()) for part in setting.parts]
    spare = 1 + 4 * (len(setting.sizes) + 4) * UNIT_ROUNDOFF

    def movement(target: int, unknown: tuple[int, ...]) -> float:
        if setting.table is not None:
            return setting.furthest
        return sum(ranges[place] for place in (target, *unknown)) * spare

    cases = sorted(
        (
            (movement(target, unknown), target, unknown)
            for target in setting.knowledge.targets
            for unknown in unknown_sets(setting, target)
        ),
        key=lambda case: -case[0],
    )
    if not cases:
        return NOTHING
    shared = np.array([-1.0, math.expm1(min(incumbent, 700.0))])
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
            ratio, bound, attack = result
            found = bracket(math.log1p(max(ratio, 0.0)), bound, error, attack)
        outcome = outcome.or_worse(found)
    return outcome


def _search_sets(setting: Setting, task: list[_Case], shared: FloatArray, clock: Clock) -> _Result:
    """Return the largest ratio − 1, a bound on what was left out, and who attains the ratio."""
    sizes = np.array(setting.sizes, dtype=np.int64)
    strides = np.array(
        [math.prod(setting.sizes[place + 1 :]) for place in range(len(sizes))], dtype=np.int64
    )
    parts = np.zeros((len(sizes), max(setting.sizes)))
    for place, part in enumerate(setting.parts):
        parts[place, : len(part)] = part[:, 0]
    table = np.empty(0) if setting.table is None else setting.table.ravel()
    best: _Result = (-1.0, 0.0, None)
    for bound, target, unknown in task:
        if clock.is_over or math.expm1(min(bound, 700.0)) <= max(shared):
            # Group bounds fall from case to case, so this one covers all that follow.
            return best[0], bound, best[2]
        hidden = np.zeros(len(sizes), dtype=np.bool_)
        hidden[list(unknown)] = True
        ratio, cell, first, second, output = compare_mixtures(
            setting.probabilities.ravel(),
            sizes,
            strides,
            parts,
            table,
            target,
            hidden,
            float(setting.is_near_one),
            setting.tails_only,
            _SAME * setting.furthest,
            shared,
        )
        if ratio > best[0]:
            places = [p for p in range(len(sizes)) if p != target and not hidden[p]]
            values = np.unravel_index(cell, [setting.sizes[p] for p in places]) if places else ()
            known = dict(zip(places, map(int, values), strict=True))
            if setting.table is None:
                output += sum(parts[place, value] for place, value in known.items())
            attack = Attack(
                target=target, known=known, secrets=(first, second), output=np.array([output])
            )
            best = (ratio, best[1], attack)
    return best
