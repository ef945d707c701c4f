"""Search all adversaries of a table whose answers lie on a grid, one branch after the other."""

from __future__ import annotations

import math
import threading

import numpy as np

from pdp_calibrate.engines.tables.branch import (
    Branch,
    BranchSearch,
    branch_group_bound,
    branches_of,
    filled,
    known_limits,
    permissions,
)
from pdp_calibrate.engines.tables.climb import climb
from pdp_calibrate.engines.tables.grid import Grid
from pdp_calibrate.engines.tables.onepass import target_bound
from pdp_calibrate.engines.tables.outcome import NOTHING, Attack, Outcome, bracket
from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.engines.tables.tree import VECTOR, explore
from pdp_calibrate.engines.tables.workers import Clock, run
from pdp_calibrate.models.base import FloatArray

_SMALL_WORK = 1e6  # outputs × leaves × secrets that need no second thread
_LONG_WORK = 1e9  # … that deserve a good start
_HUGE_WORK = 3e10  # … that deserve coarse passes before the deadline
_COARSE_GAPS = (0.0526, 0.0)  # five per cent of the value, then exact


def work_of(setting: Setting, grid: Grid) -> float:
    """Estimate how many numbers the search looks at if nothing can be cut."""
    sizes, knowledge = setting.sizes, setting.knowledge
    total = 0.0
    for target in knowledge.targets:
        others = [size for place, size in enumerate(sizes) if place != target]
        leaves = math.prod(size + 1.0 for size in others)
        if knowledge.known is not None or knowledge.most == 0:
            leaves = 2.0 * math.prod(others)
        total += leaves * sizes[target]
    return total * len(grid.outputs)


def prepared(
    setting: Setting, grid: Grid, incumbent: float, clock: Clock
) -> tuple[BranchSearch, float]:
    """Return what all branches share, and the rounding error of every log-ratio."""
    pad = -len(grid.outputs) % VECTOR
    search = BranchSearch(
        setting,
        grid,
        np.ascontiguousarray(np.pad(grid.kernel, ((0, 0), (0, pad)), mode="edge")),
        np.pad(grid.outputs, ((0, pad), (0, 0)), mode="edge"),
        np.array([-1.0, math.expm1(min(incumbent, 700.0))]),
        clock,
        threading.local(),
        {},
    )
    additions = sum(setting.sizes) + len(setting.sizes)
    return search, setting.rounding_error(additions) + 2 * grid.moved


def search_branches(setting: Setting, grid: Grid, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else."""
    search, error = prepared(setting, grid, incumbent, clock)
    branches = [
        branch for target in setting.knowledge.targets for branch in branches_of(search, target)
    ]
    if not branches:
        return NOTHING
    work = work_of(setting, grid)
    outcome = climb(search, error) if work > _LONG_WORK else NOTHING
    if work > _SMALL_WORK and setting.coordinates == 1:
        for target in setting.knowledge.targets:
            search.ceilings[target] = target_bound(setting, grid, target) + error
    gaps = _COARSE_GAPS if work > _HUGE_WORK and clock.deadline < math.inf else (0.0,)
    upper = math.inf
    for gap in gaps:
        found = _pass(search, branches, gap, error, small=work < _SMALL_WORK)
        outcome = outcome.or_worse(found)
        # Later passes cut what cannot beat an attack found before; that attack counts as well.
        attained = 0.0 if outcome.attack is None else outcome.lower + 3 * error
        upper = min(upper, max(found.upper, attained))
        if clock.is_over:
            break
    return Outcome(upper=upper, lower=outcome.lower, attack=outcome.attack)


def _pass(
    search: BranchSearch, branches: list[Branch], gap: float, error: float, *, small: bool
) -> Outcome:
    results = run(
        branches,
        lambda branch: _search_branch(search, branch, gap),
        search.clock,
        what="comparing adversaries",
        small=small,
    )
    outcome = NOTHING
    for branch, result in zip(branches, results, strict=True):
        if result is None:
            ceiling = search.ceilings.get(branch.target, math.inf)
            upper = min(branch_group_bound(search.setting, branch), ceiling)
            found = Outcome(upper=upper, lower=0.0, attack=None)
        else:
            ratio, bound, attack = result
            found = bracket(math.log1p(max(ratio, 0.0)), math.log1p(max(bound, 0.0)), error, attack)
        outcome = outcome.or_worse(found)
    return outcome


def _search_branch(
    search: BranchSearch, branch: Branch, gap: float
) -> tuple[float, float, Attack | None]:
    """Return the largest ratio − 1 found, the largest bound on the rest, and who attains it."""
    setting = search.setting
    ceiling = math.expm1(min(search.ceilings.get(branch.target, 700.0), 700.0))
    if ceiling <= max(search.shared):
        return -1.0, ceiling, None
    sizes, target = setting.sizes, branch.target
    data = filled(search, branch)
    open_sizes = np.array([sizes[place] for place in branch.opened], dtype=np.int64)
    known = {place: value for place, value in branch.decided if value < sizes[place]}
    parts, floor, ceiling = _answers_left(setting, branch, known)
    marks = _marks(setting, branch)
    may_know, may_hide = permissions(setting, branch.opened)
    choices = np.zeros(len(open_sizes), dtype=np.int64)
    fewest, most = known_limits(setting)
    ratio, output, first, second, bound = explore(
        data,
        open_sizes,
        sizes[target],
        float(setting.is_near_one),
        search.outputs[:, 0].copy(),
        parts,
        marks,
        floor,
        ceiling,
        may_know,
        may_hide,
        fewest - len(known),
        most - len(known),
        search.shared,
        search.clock.stop,
        gap,
        _habits(search),
        choices,
    )
    if ratio < 0:
        return ratio, bound, None
    chosen = {
        place: int(choice)
        for place, choice in zip(branch.opened, choices, strict=True)
        if choice < sizes[place]
    }
    attack = Attack(
        target=target,
        known=known | chosen,
        secrets=(int(first), int(second)),
        output=search.outputs[output],
    )
    return ratio, bound, attack


def _habits(search: BranchSearch) -> FloatArray:
    """Return what this thread has learned about the worth of bounds."""
    habits: FloatArray | None = getattr(search.rooms, "habits", None)
    if habits is None:
        habits = np.zeros((4, len(search.setting.sizes)))
        search.rooms.habits = habits
    return habits


def _answers_left(
    setting: Setting, branch: Branch, known: dict[int, int]
) -> tuple[FloatArray, float, float]:
    """Return what known open tuples add, and the ends of the answers that can occur.

    Only where there is one coordinate and the query is additive; else nothing is narrowed.
    """
    largest = max((setting.sizes[place] for place in branch.opened), default=1)
    parts = np.zeros((len(branch.opened), largest))
    if setting.table is not None or setting.coordinates > 1:
        return parts, -np.inf, np.inf
    for level, place in enumerate(branch.opened):
        parts[level, : setting.sizes[place]] = setting.parts[place][:, 0]
    floor = sum(float(setting.parts[place][value, 0]) for place, value in known.items())
    rest = sum(float(part[:, 0].max()) for j, part in enumerate(setting.parts) if j not in known)
    return parts, floor, floor + rest


def _marks(setting: Setting, branch: Branch) -> FloatArray:
    """Return one number per open tuple and value such that equal sums mean similar answers."""
    marks = np.zeros((len(branch.opened), max(setting.sizes)))
    weights = 1.0 / np.arange(1.0, setting.coordinates + 1)
    for level, place in enumerate(branch.opened):
        if setting.table is None:
            effect = setting.parts[place] @ weights
        else:
            others = tuple(axis for axis in range(len(setting.sizes)) if axis != place)
            effect = setting.table.mean(axis=others) @ weights
        marks[level, : setting.sizes[place]] = effect - effect.min()
    return marks
