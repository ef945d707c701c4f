"""Where the tree is cut into branches, and how the first node of a branch is filled."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.engines.tables.grid import Grid
from pdp_calibrate.engines.tables.influence import order_by_influence
from pdp_calibrate.engines.tables.nodes import fill_node
from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.engines.tables.workers import Clock
from pdp_calibrate.models.base import FloatArray

_NODE_NUMBERS = 2**22  # floats in the first node of a branch; larger branches are cut further
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
class BranchSearch:
    """What all branches share."""

    setting: Setting
    grid: Grid
    kernel: FloatArray
    outputs: FloatArray
    shared: FloatArray
    clock: Clock
    rooms: threading.local
    ceilings: dict[int, float]
    """Bounds on all who attack one target, where they are worth the pass over the table."""


def branches_of(search: BranchSearch, target: int) -> Iterator[Branch]:
    """Cut a target's tree until each first node fits in memory."""
    setting = search.setting
    fewest, most = known_limits(setting)
    if fewest > most:
        return
    sizes = setting.sizes
    others = order_by_influence(setting, target)
    width = sizes[target] * (search.kernel.shape[1] + 1)
    cut = 0
    while cut < len(others) and width * math.prod(sizes[p] for p in others[cut:]) > _NODE_NUMBERS:
        cut += 1
    may_know, may_hide = permissions(setting, others[:cut])
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


def filled(search: BranchSearch, branch: Branch) -> FloatArray:
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
    needed = _cells_of_all_levels(setting, branch) * len(own) * (search.kernel.shape[1] + 1)
    data: FloatArray | None = getattr(search.rooms, "data", None)
    if data is None or len(data) < needed:
        data = np.empty(needed)
        search.rooms.data = data
    fill_node(
        setting.probabilities.ravel(), search.grid.answers, search.kernel, opened, hidden, own, data
    )
    return data


def _cells_of_all_levels(setting: Setting, branch: Branch) -> int:
    """Count the cells that `explore` writes: one node per number of tuples still open."""
    sizes = [setting.sizes[place] for place in branch.opened]
    return sum(math.prod(sizes[level:]) for level in range(len(sizes) + 1))


def known_limits(setting: Setting) -> tuple[int, int]:
    """Fewest and most tuples known; knowing everyone else is searched elsewhere."""
    knowledge = setting.knowledge
    everyone = len(setting.sizes) - 1
    most = knowledge.most if setting.counts_strongest else min(knowledge.most, everyone - 1)
    return knowledge.fewest, most


def permissions(
    setting: Setting, places: Sequence[int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return, per tuple, whether it may be known, and whether it may be unknown."""
    named = setting.knowledge.known
    may_know = np.array([named is None or place in named for place in places], dtype=np.bool_)
    may_hide = np.array([named is None or place not in named for place in places], dtype=np.bool_)
    return may_know, may_hide


def branch_group_bound(setting: Setting, branch: Branch) -> float:
    """Bound a branch by how far its target and all its possible unknowns move the answer."""
    if setting.table is not None:
        return setting.furthest
    known = {place for place, value in branch.decided if value < setting.sizes[place]}
    fixed = sum(float(setting.parts[place].max(axis=0).sum()) for place in known)
    return setting.furthest - fixed * (1 - 1e-12)


def _strides(sizes: tuple[int, ...]) -> _Indices:
    return np.array([math.prod(sizes[place + 1 :]) for place in range(len(sizes))], dtype=np.int64)


def _offsets(offsets: _Indices, step: np.int64, size: int) -> _Indices:
    return (offsets[:, np.newaxis] + step * np.arange(size, dtype=np.int64)).ravel()
