"""Search all adversaries of a table whose answers lie on a grid: branch and bound over knowledge.

The tree is cut into branches whose first nodes fit in memory. A long search gets a good starting
point by climbing, because a larger known leakage cuts off more branches; and one pass over the
table bounds all adversaries of one target. Before anything is decided, the density of a cell
depends on the cell only through its answer, so among cells with equal answers only the two with
extreme odds matter to the two-cell bound. That leaves a node of the tree with few cells, which
`branch_bound` bounds.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.tuning import (
    BRANCH_NUMBERS,
    CLIMBED_CELLS,
    COARSE_GAPS,
    TREE_BOUNDED_WORK,
    TREE_HUGE_WORK,
    TREE_LONG_WORK,
    TREE_SMALL_WORK,
)
from pdp_calibrate.core.workers import Clock, run
from pdp_calibrate.families.table.setting import NOTHING, Attack, Grid, Outcome, Setting, bracket
from pdp_calibrate.families.table.tree_kernels import (
    VECTOR,
    explore,
    fill_node,
    leaf_ratio,
    space_to_explore,
)
from pdp_calibrate.families.table.two_cell_bound import MOST_BUCKETS, branch_bound, workspace

_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One target, and what has been decided about some of the other tuples."""

    target: int
    decided: tuple[tuple[int, int], ...]
    """(tuple, position of its known value, or its domain size if unknown)."""
    opened: tuple[int, ...]
    """The tuples still to be decided, most influential first."""


@dataclass(frozen=True)
class BranchSearch:
    """What all branches share."""

    setting: Setting
    grid: Grid
    kernel: FloatArray
    outputs: FloatArray
    shared: FloatArray
    clock: Clock
    per_thread: threading.local
    has_bounds: bool
    """Whether there is so much to compare that computing bounds saves time."""
    ceilings: dict[int, float]
    """Bounds on all adversaries of one target, where they save more than their pass costs."""


def branches_of(search: BranchSearch, target: int) -> Iterator[Branch]:
    """Cut a target's tree until each first node fits in memory."""
    setting = search.setting
    fewest, most = setting.prepared.known_limits
    if fewest > most:
        return
    sizes = setting.sizes
    others = setting.prepared.cells.orders[target]
    width = sizes[target] * (search.kernel.shape[1] + 1)
    cut = 0
    while cut < len(others) and width * math.prod(sizes[p] for p in others[cut:]) > BRANCH_NUMBERS:
        cut += 1
    may_know, may_hide = setting.prepared.permissions(others[:cut])
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
                opened=others[cut:],
            )


def filled(search: BranchSearch, branch: Branch) -> FloatArray:
    """Return this thread's work space, with the branch's node in front."""
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
    needed = _cells_of_all_levels(setting, branch) * len(own) * (search.kernel.shape[1] + 1)
    data: FloatArray | None = getattr(search.per_thread, "data", None)
    if data is None or len(data) < needed:
        data = np.empty(needed)
        search.per_thread.data = data
    fill_node(
        setting.probabilities.ravel(), search.grid.answers, search.kernel, opened, hidden, own, data
    )
    return data


def _cells_of_all_levels(setting: Setting, branch: Branch) -> int:
    """Count the cells that `explore` writes: one node per number of tuples still open."""
    sizes = [setting.sizes[place] for place in branch.opened]
    return sum(math.prod(sizes[level:]) for level in range(len(sizes) + 1))


def branch_group_bound(setting: Setting, branch: Branch) -> float:
    """Bound a branch by how far its target and all its possible unknowns move the answer."""
    if not setting.is_additive:
        return setting.furthest
    known = {place for place, value in branch.decided if value < setting.sizes[place]}
    fixed = sum(float(setting.parts[place].max(axis=0).sum()) for place in known)
    return setting.furthest - fixed * (1 - 1e-12)


def _strides(sizes: tuple[int, ...]) -> _Indices:
    return np.array([math.prod(sizes[place + 1 :]) for place in range(len(sizes))], dtype=np.int64)


def _offsets(offsets: _Indices, step: np.int64, size: int) -> _Indices:
    return (offsets[:, np.newaxis] + step * np.arange(size, dtype=np.int64)).ravel()


def target_bound(setting: Setting, grid: Grid, target: int) -> float:
    """Return an upper bound on the leakage of all who attack this target, before rounding."""
    cells = np.moveaxis(setting.probabilities, target, 0).reshape(setting.sizes[target], -1)
    answers = np.moveaxis(grid.answers.reshape(setting.sizes), target, 0).reshape(cells.shape)
    worst = 0.0
    for first in range(len(cells)):
        for second in range(first):
            pair = [first, second]
            worst = max(worst, _pair_bound(setting, grid, cells[pair], answers[pair]))
    return math.log1p(worst)


def _pair_bound(
    setting: Setting, grid: Grid, masses: FloatArray, answers: npt.NDArray[np.int32]
) -> float:
    """Bound the ratio − 1 of two secrets; masses and answers have one row per secret."""
    both = answers[0] * np.int64(len(grid.kernel)) + answers[1]
    keys, group = np.unique(both, return_inverse=True)
    rows = np.divmod(keys, len(grid.kernel))
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = masses[0] / masses[1]
    # Per group the extreme odds, as masses (v, w); NaN marks cells where neither secret occurs.
    chosen = [np.fmax.reduceat, np.fmin.reduceat]
    order = np.argsort(group.ravel(), kind="stable")
    starts = np.searchsorted(group.ravel()[order], np.arange(len(keys)))
    extremes = [reduce(odds[order], starts) for reduce in chosen]
    node, buckets = [], []
    for odd in extremes:
        mass_w = np.where(np.isinf(odd), 0.0, 1.0)
        mass_v = np.where(np.isinf(odd), 1.0, odd)
        usable = ~np.isnan(odd)
        pair = np.stack([mass_v, mass_w], axis=1)[usable]
        kernel = np.stack([grid.kernel[row[usable]] for row in rows], axis=1)
        node.append(np.concatenate([pair[..., np.newaxis] * kernel, pair[..., np.newaxis]], axis=2))
        place = rows[1][usable] / max(1, len(grid.kernel) - 1)
        buckets.append(np.round(place * (MOST_BUCKETS - 1)).astype(np.int64))
    cells = np.concatenate(node)
    number = grid.kernel.shape[1]
    result = np.zeros(number)
    if len(cells):
        branch_bound(
            cells.ravel(),
            0,
            np.concatenate(buckets),
            2,
            number + 1,
            0,
            number,
            float(setting.is_near_one),
            -1.0,
            workspace(number),
            result,
        )
    return float(result.max())


def climb(search: BranchSearch, error: float) -> Outcome:
    """Find a good start: begin with all tuples known, and change one at a time while it helps."""
    outcome = NOTHING
    setting = search.setting
    fewest, most = setting.prepared.known_limits
    likely = setting.prepared.cells.likeliest
    for target in setting.knowledge.targets:
        others = setting.prepared.cells.orders[target]
        may_know, may_hide = setting.prepared.permissions(others)
        chosen = {
            place: likely[place] if knowable else setting.sizes[place]
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
                if not allowed or known > most or hidden > CLIMBED_CELLS or search.clock.is_over:
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


def _leaf(search: BranchSearch, target: int, chosen: dict[int, int]) -> tuple[float, int, int, int]:
    branch = Branch(target=target, decided=tuple(chosen.items()), opened=())
    data = filled(search, branch)
    secrets, width = search.setting.sizes[target], search.kernel.shape[1] + 1
    found: tuple[float, int, int, int] = leaf_ratio(
        data, 0, secrets, width, float(search.setting.is_near_one)
    )
    return found


def branch_search(
    setting: Setting, grid: Grid, incumbent: float, clock: Clock
) -> tuple[BranchSearch, float]:
    """Return what all branches share, and the rounding error of every log-ratio."""
    number = len(grid.outputs)
    padded = np.minimum(np.arange(number + -number % VECTOR), number - 1)  # the last one again
    search = BranchSearch(
        setting,
        grid,
        np.ascontiguousarray(np.take(grid.kernel, padded, axis=1)),
        np.take(grid.outputs, padded, axis=0),
        np.array([-1.0, math.expm1(min(incumbent, 700.0))]),
        clock,
        threading.local(),
        setting.prepared.leaves * number > TREE_BOUNDED_WORK,
        {},
    )
    additions = sum(setting.sizes) + len(setting.sizes)
    return search, setting.rounding_error(additions) + 2 * grid.moved


def search_branches(setting: Setting, grid: Grid, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries except those who know everyone else."""
    search, error = branch_search(setting, grid, incumbent, clock)
    branches = [
        branch for target in setting.knowledge.targets for branch in branches_of(search, target)
    ]
    if not branches:
        return NOTHING
    work = setting.prepared.leaves * len(grid.outputs)
    outcome = climb(search, error) if work > TREE_LONG_WORK else NOTHING
    if search.has_bounds and setting.coordinates == 1:
        for target in setting.knowledge.targets:
            search.ceilings[target] = target_bound(setting, grid, target) + error
    gaps = COARSE_GAPS if work > TREE_HUGE_WORK and clock.deadline < math.inf else (0.0,)
    upper = math.inf
    for gap in gaps:
        found = _pass(search, branches, gap, error, small=work < TREE_SMALL_WORK)
        outcome = outcome.or_worse(found)
        # Later passes cut off what cannot exceed an attack found before; so keep that attack.
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
    """Return the largest ratio − 1 found, the largest bound on the rest, and the adversary."""
    setting = search.setting
    ceiling = math.expm1(min(search.ceilings.get(branch.target, 700.0), 700.0))
    if ceiling <= max(search.shared):
        return -1.0, ceiling, None
    sizes, target = setting.sizes, branch.target
    data = filled(search, branch)
    open_sizes = np.array([sizes[place] for place in branch.opened], dtype=np.int64)
    known = {place: value for place, value in branch.decided if value < sizes[place]}
    parts, floor, ceiling = _answers_left(setting, branch, known)
    may_know, may_hide = setting.prepared.permissions(branch.opened)
    choices = np.zeros(len(open_sizes), dtype=np.int64)
    fewest, most = setting.prepared.known_limits
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
        _habits(search),
        workspace(len(search.outputs)) if search.has_bounds else None,
        _buckets(setting, branch) if search.has_bounds else None,
        *space_to_explore(open_sizes, sizes[target], len(search.outputs), parts, may_know),
        choices,
    )
    if bound == math.inf:  # time was up
        bound = math.expm1(min(branch_group_bound(setting, branch), 700.0))
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
    """Return this thread's statistics of how much bounds have saved."""
    habits: FloatArray | None = getattr(search.per_thread, "habits", None)
    if habits is None:
        habits = np.zeros((4, len(search.setting.sizes)))
        search.per_thread.habits = habits
    return habits


def _answers_left(
    setting: Setting, branch: Branch, known: dict[int, int]
) -> tuple[FloatArray, float, float]:
    """Return what known open tuples add, and the ends of the answers that can occur.

    Only where there is one coordinate and the query is additive; else nothing is narrowed.
    """
    largest = max((setting.sizes[place] for place in branch.opened), default=1)
    parts = np.zeros((len(branch.opened), largest))
    if not setting.is_additive or setting.coordinates > 1:
        return parts, -np.inf, np.inf
    for level, place in enumerate(branch.opened):
        parts[level, : setting.sizes[place]] = setting.parts[place][:, 0]
    # Always a float: an integer 0 would have `explore` compiled once more.
    floor = sum((float(setting.parts[place][value, 0]) for place, value in known.items()), 0.0)
    rest = sum(float(part[:, 0].max()) for j, part in enumerate(setting.parts) if j not in known)
    return parts, floor, floor + rest


def _buckets(setting: Setting, branch: Branch) -> _Indices:
    """Return the bucket of every cell, one level after the other: similar answers share a bucket.

    Each open tuple marks its values by what they add; cells with similar sums go together.
    """
    weights = 1.0 / np.arange(1.0, setting.coordinates + 1)
    sums, widest = np.zeros(1), 0.0
    buckets = [np.zeros(1, dtype=np.int64)]
    for place in reversed(branch.opened):
        if setting.table is None:
            effect = setting.parts[place] @ weights
        else:
            others = tuple(axis for axis in range(len(setting.sizes)) if axis != place)
            effect = setting.table.mean(axis=others) @ weights
        marks = effect - effect.min()
        sums = np.add.outer(marks, sums).ravel()
        widest += float(marks.max())
        share = sums / widest if widest > 0 else np.zeros(len(sums))
        buckets.append((share * (MOST_BUCKETS - 1) + 0.5).astype(np.int64))
    return np.concatenate(buckets[::-1])
