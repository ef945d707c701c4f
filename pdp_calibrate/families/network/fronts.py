"""The fronts of an elimination in batches: those alike are worked out together.

A front is a tuple and whoever, later in the order, is coupled with it when its turn comes: its
members. Its parent is the front of the next among them, which hears what it says about the others.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.core.tuning import MOMENT_TOGETHER


class Run(NamedTuple):
    """Children of the fronts of a batch, equally many of each, who are alike themselves."""

    batch: int
    """The batch that they are in."""
    rows: npt.NDArray[np.intp]
    """Their rows there, those of the first front first."""
    shape: tuple[int, ...]
    """What they say, as an array [front, child, tilt, …] over the members of the fronts."""
    away: tuple[int, ...]
    """The axes of an array [child, tilt, …] about whose members they say nothing."""


class Batch(NamedTuple):
    """Fronts that are alike but for the numbers in them."""

    fronts: tuple[int, ...]
    """Their numbers in the order of elimination."""
    runs: tuple[Run, ...]
    """Those below them."""


class _Alike(NamedTuple):
    """Children of one front who are alike."""

    batch: int
    shared: tuple[int, ...]
    rows: tuple[int, ...]


def in_batches(members: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[Batch]:
    """Put fronts together whose arrays have one shape, and whose children are alike in turn.

    Parameters
    ----------
    members
        Of every front, by their numbers in the order, itself first.
    sizes
        How many values each tuple has, in the same order.

    Returns
    -------
    list
        Every batch after those below it, and none with arrays much larger than those of single
        fronts may be.

    Examples
    --------
    >>> star = in_batches([(0, 3), (1, 3), (2, 3), (3,)], [2, 2, 2, 2])
    >>> [batch.fronts for batch in star]
    [(0, 1, 2), (3,)]
    """
    below: list[list[_Alike]] = [[] for _ in members]
    counts, batches = Counter[object](), dict[object, list[tuple[int, list[_Alike]]]]()
    numbers: dict[object, int] = {}
    for number, front in enumerate(members):
        shape = tuple(sizes[member] for member in front)
        most = max(1, MOMENT_TOGETHER // math.prod(shape))
        children = _together(below[number], most)
        kind = shape, tuple((batch, shared, len(rows)) for batch, shared, rows in children)
        # A batch has room for so many fronts, then there is another one of its kind.
        room = max(1, most // max((len(run.rows) for run in children), default=1))
        key = kind, counts[kind] // room
        alike = batches.setdefault(key, [])
        batch = numbers.setdefault(key, len(numbers))
        if len(front) > 1:
            parent = members[front[1]]
            shared = tuple(axis for axis, member in enumerate(parent) if member in front)
            below[front[1]].append(_Alike(batch, shared, (len(alike),)))
        alike.append((number, children))
        counts[kind] += 1
    return [_batch(alike, members, sizes) for alike in batches.values()]


def _together(children: list[_Alike], most: int) -> list[_Alike]:
    """Put children of one front together who are alike, at most so many."""
    found = []
    for (batch, shared), those in itertools.groupby(sorted(children), lambda child: child[:2]):
        rows = tuple(row for child in those for row in child.rows)
        found += [_Alike(batch, shared, rows[k : k + most]) for k in range(0, len(rows), most)]
    return found


def _batch(
    alike: Sequence[tuple[int, Sequence[_Alike]]],
    members: Sequence[Sequence[int]],
    sizes: Sequence[int],
) -> Batch:
    """Return fronts of one kind, each with its children, as a batch."""
    fronts, children = zip(*alike, strict=True)
    front = members[fronts[0]]
    runs = []
    for those in zip(*children, strict=True):
        batch, shared, _ = those[0]
        rows = np.array([one.rows for one in those], dtype=np.intp)
        # Where they say nothing about a member, the array has one entry for all its values.
        shape = [sizes[member] if axis in shared else 1 for axis, member in enumerate(front)]
        away = tuple(axis for axis in range(2, 2 + len(front)) if axis - 2 not in shared)
        runs.append(Run(batch, rows.ravel(), (*rows.shape, -1, *shape), away))
    return Batch(fronts, tuple(runs))
