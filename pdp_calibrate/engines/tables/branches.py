"""Search all adversaries of a table whose answers lie on a grid, one branch after the other."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.engines.tables.grid import Grid
from pdp_calibrate.engines.tables.influence import order_by_influence
from pdp_calibrate.engines.tables.outcome import NOTHING, Attack, Outcome, bracket
from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.engines.tables.sweep import leaf_ratio
from pdp_calibrate.engines.tables.tree import VECTOR, explore, fill_node
from pdp_calibrate.engines.tables.workers import Clock, run
from pdp_calibrate.models.base import FloatArray

_NODE_NUMBERS = 2**22  # floats in the first node of a branch; larger branches are cut further
_SMALL_WORK = 1e6  # outputs × leaves × secrets that need no second thread
_LONG_WORK = 1e9  # … that deserve a coarse pass before the deadline, and a good start
_LARGEST_START = 2**14  # hidden cells while climbing to a good start
_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One target, and what is decided already about some of the others."""

    target: int
    decided: tuple[tuple[int, int], ...]
    """(tuple, position of its known value, or its domain size if unknown)."""
    opened: tuple[int, ...]
    """The tuples still to be decided, most influential first."""


@dataclass(frozen=True)
class _Search:
    """What all branches share."""

    setting: Setting
    grid: Grid
    kernel: FloatArray
    outputs: FloatArray
    shared: FloatArray
    clock: Clock
    rooms: threading.local


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


def search_branches(setting: Setting, grid: Grid, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else."""
    pad = -len(grid.outputs) % VECTOR
    search = _Search(
        setting,
        grid,
        np.ascontiguousarray(np.pad(grid.kernel, ((0, 0), (0, pad)), mode="edge")),
        np.pad(grid.outputs, ((0, pad), (0, 0)), mode="edge"),
        np.array([-1.0, math.expm1(min(incumbent, 700.0))]),
        clock,
        threading.local(),
    )
    branches = [
        branch for target in setting.knowledge.targets for branch in _branches(search, target)
    ]
    if not branches:
        return NOTHING
    work = work_of(setting, grid)
    additions = sum(setting.sizes) + len(setting.sizes)
    error = setting.rounding_error(additions) + 2 * grid.moved
    outcome = NOTHING
    if work > _LONG_WORK:
        outcome = _climb(search, error)
    gaps = (0.05, 0.0) if work > _LONG_WORK and clock.deadline < math.inf else (0.0,)
    upper = math.inf
    for gap in gaps:
        found = _pass(search, branches, gap, error, small=work < _SMALL_WORK)
        upper = min(upper, max(found.upper, outcome.upper))
        outcome = outcome.or_worse(found)
        if clock.is_over:
            break
    return Outcome(upper=upper, lower=outcome.lower, attack=outcome.attack)


def _pass(
    search: _Search, branches: list[Branch], gap: float, error: float, *, small: bool
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
            found = Outcome(upper=_group_bound(search.setting, branch), lower=0.0, attack=None)
        else:
            ratio, bound, attack = result
            found = bracket(math.log1p(max(ratio, 0.0)), math.log1p(max(bound, 0.0)), error, attack)
        outcome = outcome.or_worse(found)
    return outcome


def _search_branch(
    search: _Search, branch: Branch, gap: float
) -> tuple[float, float, Attack | None]:
    """Return the largest ratio − 1 found, the largest bound on the rest, and who attains it."""
    setting = search.setting
    sizes, target = setting.sizes, branch.target
    data = _filled(search, branch)
    open_sizes = np.array([sizes[place] for place in branch.opened], dtype=np.int64)
    known = {place: value for place, value in branch.decided if value < sizes[place]}
    parts, floor, ceiling = _answers_left(setting, branch, known)
    may_know, may_hide = _permissions(setting, branch.opened)
    choices = np.zeros(len(open_sizes), dtype=np.int64)
    fewest, most = _limits(setting)
    ratio, output, first, second, bound = explore(
        data,
        open_sizes,
        sizes[target],
        float(setting.is_near_one),
        search.outputs[:, 0].copy(),
        parts,
        floor,
        ceiling,
        may_know,
        may_hide,
        fewest - len(known),
        most - len(known),
        search.shared,
        search.clock.stop,
        gap,
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


def _filled(search: _Search, branch: Branch) -> FloatArray:
    """Return this thread's room, with the branch's node in front."""
    setting = search.setting
    steps = _strides(setting.sizes)
    base = np.zeros(1, dtype=np.int64)
    hidden = base
    for place, value in branch.decided:
        if value < setting.sizes[place]:
            base = base + value * steps[place]
        else:
            hidden = _offsets(hidden, steps[place], setting.sizes[place])
    opened = base
    for place in branch.opened:
        opened = _offsets(opened, steps[place], setting.sizes[place])
    own = np.arange(setting.sizes[branch.target], dtype=np.int64) * steps[branch.target]
    needed = 2 * len(opened) * len(own) * (search.kernel.shape[1] + 1)
    data: FloatArray | None = getattr(search.rooms, "data", None)
    if data is None or len(data) < needed:
        data = np.empty(needed)
        search.rooms.data = data
    fill_node(
        setting.probabilities.ravel(), search.grid.answers, search.kernel, opened, hidden, own, data
    )
    return data


def _branches(search: _Search, target: int) -> Iterator[Branch]:
    """Cut a target's tree until each first node fits in memory."""
    setting = search.setting
    fewest, most = _limits(setting)
    if fewest > most:
        return
    sizes = setting.sizes
    others = order_by_influence(setting, target)
    width = sizes[target] * (search.kernel.shape[1] + 1)
    cut = 0
    while cut < len(others) and width * math.prod(sizes[p] for p in others[cut:]) > _NODE_NUMBERS:
        cut += 1
    may_know, may_hide = _permissions(setting, others[:cut])
    options = [
        [value for value in range(sizes[place]) if knowable] + [sizes[place]] * bool(hideable)
        for place, knowable, hideable in zip(others[:cut], may_know, may_hide, strict=True)
    ]
    for values in itertools.product(*options):
        known = sum(value < sizes[place] for place, value in zip(others, values, strict=False))
        if known <= most and known + len(others) - cut >= fewest:
            yield Branch(
                target=target,
                decided=tuple(zip(others[:cut], values, strict=True)),
                opened=tuple(others[cut:]),
            )


def _limits(setting: Setting) -> tuple[int, int]:
    """Fewest and most tuples known; knowing everyone else is searched elsewhere."""
    knowledge = setting.knowledge
    everyone = len(setting.sizes) - 1
    most = knowledge.most if setting.counts_strongest else min(knowledge.most, everyone - 1)
    return knowledge.fewest, most


def _permissions(
    setting: Setting, places: tuple[int, ...] | list[int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    named = setting.knowledge.known
    may_know = np.array([named is None or place in named for place in places], dtype=np.bool_)
    may_hide = np.array([named is None or place not in named for place in places], dtype=np.bool_)
    return may_know, may_hide


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


def _group_bound(setting: Setting, branch: Branch) -> float:
    """Bound a branch by how far its target and all its possible unknowns move the answer."""
    if setting.table is not None:
        return setting.furthest
    known = {place for place, value in branch.decided if value < setting.sizes[place]}
    fixed = sum(float(setting.parts[place].max(axis=0).sum()) for place in known)
    return setting.furthest - fixed * (1 - 1e-12)


def _climb(search: _Search, error: float) -> Outcome:
    """Find a good start: from everyone known, change one tuple at a time while it helps."""
    outcome = NOTHING
    setting = search.setting
    fewest, most = _limits(setting)
    likely = np.unravel_index(int(np.argmax(setting.probabilities)), setting.sizes)
    for target in setting.knowledge.targets:
        others = order_by_influence(setting, target)
        may_know, may_hide = _permissions(setting, others)
        chosen = {
            place: int(likely[place]) if knowable else setting.sizes[place]
            for place, knowable in zip(others, may_know, strict=True)
        }
        best = _leaf(search, target, chosen)
        for place in [*others, *others]:
            for value in range(setting.sizes[place] + 1):
                changed = chosen | {place: value}
                known = sum(v < setting.sizes[p] for p, v in changed.items())
                hidden = math.prod(
                    setting.sizes[p] for p, v in changed.items() if v == setting.sizes[p]
                )
                index = others.index(place)
                allowed = may_know[index] if value < setting.sizes[place] else may_hide[index]
                if not allowed or known > most or hidden > _LARGEST_START or search.clock.is_over:
                    continue
                found = _leaf(search, target, changed)
                if found[0] > best[0]:
                    best, chosen = found, changed
        known = sum(v < setting.sizes[p] for p, v in chosen.items())
        if best[0] > search.shared[0] and fewest <= known <= most:
            search.shared[0] = best[0]
            attack = Attack(
                target=target,
                known={p: v for p, v in chosen.items() if v < setting.sizes[p]},
                secrets=(best[2], best[3]),
                output=search.outputs[best[1]],
            )
            outcome = outcome.or_worse(bracket(math.log1p(best[0]), 0.0, error, attack))
    return outcome


def _leaf(search: _Search, target: int, chosen: dict[int, int]) -> tuple[float, int, int, int]:
    branch = Branch(target=target, decided=tuple(chosen.items()), opened=())
    data = _filled(search, branch)
    secrets, width = search.setting.sizes[target], search.kernel.shape[1] + 1
    found: tuple[float, int, int, int] = leaf_ratio(
        data, 0, secrets, width, float(search.setting.is_near_one)
    )
    return found


def _strides(sizes: tuple[int, ...]) -> _Indices:
    return np.array([math.prod(sizes[place + 1 :]) for place in range(len(sizes))], dtype=np.int64)


def _offsets(offsets: _Indices, step: np.int64, size: int) -> _Indices:
    return (offsets[:, np.newaxis] + step * np.arange(size, dtype=np.int64)).ravel()
