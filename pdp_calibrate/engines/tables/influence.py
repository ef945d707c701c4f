"""Which tuples say most about a target: the order in which the tree decides them.

The bound on a branch is tight when the tuples still open say little about the target, so those that
say most are decided first. Only speed depends on it.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.models.base import FloatArray


def order_by_influence(setting: Setting, target: int) -> list[int]:
    """Return the other tuples, most influential first."""
    pairs = pair_tables(setting)
    others = [place for place in range(len(setting.sizes)) if place != target]
    return sorted(others, key=lambda place: -_association(pairs[target, place]))


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


def _association(pair: FloatArray) -> float:
    """Return the average log-odds by which one tuple's value changes the other's law."""
    smoothed = pair + 1e-9 * pair.max()
    logs = np.log(smoothed)
    interaction = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    return float(np.abs(interaction).max())
