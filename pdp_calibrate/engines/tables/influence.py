"""Which tuples say most about a target: the order in which the tree decides them.

The bound on a branch is tight when the tuples still open say little about the target, so those that
say most are decided first. Only speed depends on it.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.models.base import FloatArray

_DATABASES = 64  # drawn to see how tuples depend on each other


def order_by_influence(setting: Setting, target: int) -> list[int]:
    """Return the other tuples, most influential first."""
    influence = setting.cache.get("influence")
    if influence is None:
        influence = setting.cache["influence"] = _influence(setting)
    others = [place for place in range(len(setting.sizes)) if place != target]
    return sorted(others, key=lambda place: (-influence[target, place], place))


def _influence(setting: Setting) -> FloatArray:
    """Return by how many nats one tuple moves the odds of another, given all the rest.

    Averaged over some databases drawn from the table; always the same ones.
    """
    cells, sizes = setting.probabilities.ravel(), setting.sizes
    steps = np.array([int(np.prod(sizes[place + 1 :])) for place in range(len(sizes))])
    total = np.cumsum(cells)
    draws = np.random.default_rng(0).random(_DATABASES) * total[-1]
    drawn = np.minimum(np.searchsorted(total, draws), len(cells) - 1)
    places = np.array(np.unravel_index(drawn, sizes))
    influence = np.zeros((len(sizes), len(sizes)))
    for first in range(len(sizes)):
        for second in range(first):
            start = drawn - places[first] * steps[first] - places[second] * steps[second]
            own, other = (np.arange(sizes[p]) * steps[p] for p in (first, second))
            block = cells[start[:, np.newaxis, np.newaxis] + own[:, np.newaxis] + other]
            found = float(np.mean(_interaction(block)))
            influence[first, second] = influence[second, first] = found
    return influence


def _interaction(blocks: FloatArray) -> FloatArray:
    """Return the largest log-odds interaction of each block, zeros counting as very rare."""
    logs = np.log(blocks + 1e-9 * blocks.max(axis=(1, 2), keepdims=True))
    logs = logs - logs.mean(axis=1, keepdims=True)
    logs = logs - logs.mean(axis=2, keepdims=True)
    return np.asarray(np.abs(logs).max(axis=(1, 2)))


def pair_tables(setting: Setting) -> dict[tuple[int, int], FloatArray]:
    """Return the joint law of every pair of tuples."""
    cached = setting.cache.get("pairs")
    if cached is None:
        cached = {}
        _add_pairs(setting.probabilities, list(range(len(setting.sizes))), cached)
        setting.cache["pairs"] = cached
    return cached


def _add_pairs(
    table: FloatArray, places: list[int], pairs: dict[tuple[int, int], FloatArray]
) -> None:
    """Halve the tuples: pairs across come from one matrix product, pairs within by recursion."""
    if len(places) < 2:
        return
    middle = len(places) // 2
    left, right = places[:middle], places[middle:]
    rows = int(np.prod(table.shape[:middle]))
    matrix = table.reshape(rows, -1)
    left_marks, right_marks = _indicators(table.shape[:middle]), _indicators(table.shape[middle:])
    crossed = left_marks.T @ (matrix @ right_marks)
    start = 0
    for i, place in enumerate(left):
        stop = start + table.shape[i]
        other_start = 0
        for j, other in enumerate(right):
            other_stop = other_start + table.shape[middle + j]
            block = crossed[start:stop, other_start:other_stop]
            pairs[place, other], pairs[other, place] = block, block.T
            other_start = other_stop
        start = stop
    _add_pairs(matrix.sum(axis=1).reshape(table.shape[:middle]), left, pairs)
    _add_pairs(matrix.sum(axis=0).reshape(table.shape[middle:]), right, pairs)


def _indicators(shape: tuple[int, ...]) -> FloatArray:
    """One column per (tuple, value), one row per cell: 1 where the cell has the value."""
    places = np.indices(shape).reshape(len(shape), -1)
    return np.concatenate(
        [
            place[:, np.newaxis] == np.arange(size)
            for place, size in zip(places, shape, strict=True)
        ],
        axis=1,
    ).astype(np.float64)
