"""Search all adversaries of a table of binary tuples whose answers are whole steps, set by set."""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.tuning import (
    COMPARED_SET_TUPLES,
    HIDDEN_SET_PARTS,
    HIDDEN_SET_TUPLES,
    WHOLE_HIDDEN_TUPLES,
)
from pdp_calibrate.core.workers import run
from pdp_calibrate.families.table.hidden_set_kernels import (
    explore_hidden,
    first_intervals,
    space_to_explore,
)
from pdp_calibrate.families.table.setting import NOTHING, Attack, Outcome, Setting, bracket
from pdp_calibrate.families.table.tree_search import BranchSearch, target_bound

_DIVISORS = (1, 2, 3, 4, 5, 6)  # of the smallest weight, tried as steps


_SAME = 1e-13  # answers may be moved by this much, times the furthest distance


_MOST_STEPS = 64


# Within these distances, in scales, no number in single precision underflows or overflows.
_FURTHEST, _HEAVIEST = 40.0, 10.0


_LEAST_RATIO = 1 + 1e-5  # single precision does not distinguish less from 1


@dataclass(frozen=True, kw_only=True)
class Steps:
    """A table of binary tuples, each adding a whole number of steps or nothing."""

    cells: FloatArray
    """Flat; tuple j is bit j of the index, and bit 1 adds at least as much as bit 0."""
    flipped: tuple[bool, ...]
    """Per tuple, whether bit 1 is the first value."""
    weights: npt.NDArray[np.int64]
    """What each tuple adds, in steps."""
    step: float
    """In units of the scale."""
    moved: float
    """By how much an answer was moved at most."""


@dataclass(frozen=True)
class _Part:
    """The result for one part of the sets."""

    ratio: float
    found: npt.NDArray[np.int64]
    complete: bool


def steps_of(setting: Setting) -> Steps | None:
    """Put the answers on steps; None if this search does not suit the table."""
    number, prepared = len(setting.sizes), setting.prepared
    if not setting.is_additive or setting.coordinates > 1 or set(setting.sizes) != {2}:
        return None
    if setting.knowledge.known is not None or prepared.counts_strongest or setting.tails_only:
        return None
    if number < HIDDEN_SET_TUPLES or setting.is_near_one or setting.furthest > _FURTHEST:
        return None
    moves = np.array([part[1, 0] - part[0, 0] for part in setting.parts])
    sizes = np.abs(moves)
    if sizes.max() > _HEAVIEST:
        return None
    for divisor in _DIVISORS:
        step = float(sizes[sizes > 0].min()) / divisor
        weights = np.rint(sizes / step).astype(np.int64)
        moved = float(np.abs(sizes - weights * step).sum())
        if moved <= _SAME * setting.furthest:
            break
    else:
        return None
    if weights.sum() > _MOST_STEPS:
        return None
    return Steps(
        cells=prepared.cells.bits,
        flipped=prepared.cells.flipped,
        weights=weights,
        step=step,
        moved=moved,
    )


def search_hidden(search: BranchSearch, steps: Steps, incumbent: float, error: float) -> Outcome:
    """Return the worst of all adversaries except those who know everyone else."""
    setting = search.setting
    error += 2 * steps.moved
    outcome = NOTHING
    # Adversaries that are cut off must stay below the incumbent, rounding included; no leakage
    # exceeds the furthest distance, however large the incumbent is.
    least = min(incumbent, setting.furthest) - 2 * error
    bar = max(least, math.log(_LEAST_RATIO))
    # An incumbent above what is enough is a bound, nobody's leakage: then everyone is visited.
    enough = math.inf if bar > search.clock.enough else search.clock.enough
    shared = np.array([math.exp(bar), math.exp(min(enough, 700.0))])
    parts = _run(search, steps, shared)
    for part in parts:
        if part is not None and part.ratio > 0:
            attack = _attack(steps, part.found)
            outcome = outcome.or_worse(bracket(math.log(part.ratio), 0.0, error, attack))
    upper = max(outcome.upper, math.nextafter(math.log(shared[0]) + error, math.inf))
    if shared[0] > shared[1]:
        upper = max(upper, setting.furthest)
    elif not all(part is not None and part.complete for part in parts):
        for target in setting.knowledge.targets:
            ceiling = target_bound(setting, search.grid, target) + error
            upper = max(upper, min(setting.furthest, ceiling))
    return Outcome(upper=upper, lower=outcome.lower, attack=outcome.attack)


def _run(search: BranchSearch, steps: Steps, shared: FloatArray) -> list[_Part | None]:
    """Visit all sets, in parts, on all cores."""
    setting, number = search.setting, len(steps.weights)
    least_known, most_known = setting.prepared.known_limits
    targets = np.array([place in setting.knowledge.targets for place in range(number)])
    first = _intervals(steps) if number > COMPARED_SET_TUPLES else None
    per_thread = threading.local()

    def visit(chosen: int) -> _Part:
        if not hasattr(per_thread, "nodes"):
            copied = None if first is None else tuple(array.copy() for array in first)
            per_thread.intervals = copied
            per_thread.nodes = np.empty(_numbers_needed(steps))
            per_thread.scaled = np.zeros(len(per_thread.nodes) // 2 + 64, dtype=np.float32)
            per_thread.space = space_to_explore(number)
        found = np.zeros(5, dtype=np.int64)
        ratio, complete = explore_hidden(
            steps.cells,
            steps.weights,
            steps.step,
            prefix,
            chosen,
            targets,
            number - 1 - most_known,
            number - 1 - least_known,
            shared,
            search.clock.stop,
            per_thread.intervals,
            per_thread.nodes,
            per_thread.scaled,
            *per_thread.space,
            found,
        )
        return _Part(ratio, found, complete)

    small = number <= WHOLE_HIDDEN_TUPLES
    prefix = 0 if small else min(HIDDEN_SET_PARTS, number - WHOLE_HIDDEN_TUPLES + 1)
    # The largest parts, in which the fewest tuples are hidden, come first.
    parts = sorted(range(1 << prefix), key=lambda chosen: chosen.bit_count())
    return run(parts, visit, search.clock, what="comparing adversaries", small=small)


def _intervals(steps: Steps) -> tuple[FloatArray, ...] | None:
    """Return the intervals that bound adversaries from pairs of tuples; None if useless."""
    number, positions = len(steps.weights), int(steps.weights.sum()) + 1
    shapes = (number + 1, 2, number), (number + 1, 2, number, number)
    found = *(np.empty(shape) for shape in shapes), np.empty((*shapes[0], positions))
    return found if first_intervals(steps.cells, steps.weights, steps.step, *found) else None


def _numbers_needed(steps: Steps) -> int:
    """Return how many numbers all nodes on one path of the tree take together."""
    added = np.concatenate([[0], np.cumsum(np.sort(steps.weights)[::-1])])
    number = len(steps.weights)
    return sum((int(most) + 2) << (number - level) for level, most in enumerate(added))


def _attack(steps: Steps, found: npt.NDArray[np.int64]) -> Attack:
    """Translate the bits of a node back into values of the table."""
    hidden, target, place, position, upwards = map(int, found)
    places = itertools.count()
    bits = {j: place >> next(places) & 1 for j in range(len(steps.weights)) if not hidden >> j & 1}
    known = {j: bit for j, bit in bits.items() if j != target}
    output = position + sum(int(steps.weights[j]) * bit for j, bit in known.items())
    secrets = (1, 0) if upwards else (0, 1)
    return Attack(
        target=target,
        known={j: bit ^ steps.flipped[j] for j, bit in known.items()},
        secrets=(secrets[0] ^ steps.flipped[target], secrets[1] ^ steps.flipped[target]),
        output=np.array([output * steps.step]),
    )
