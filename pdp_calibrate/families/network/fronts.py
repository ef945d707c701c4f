"""The fronts of an elimination in batches: fronts of the same kind are computed together.

When a tuple is eliminated, its front is the tuple and those later in the order that are coupled
with it by then: the members of the front. The result is an array over these later members. It is
the front's message to its parent, the front of the first of them.
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
    """Children of the fronts of a batch, all of one kind, the same number for each front."""

    batch: int
    """The batch of the children."""
    rows: npt.NDArray[np.intp]
    """Their rows in that batch, the children of the first front first."""
    shape: tuple[int, ...]
    """The shape of their messages: [front, child, tilt, …] over the members of the fronts."""
    away: tuple[int, ...]
    """The axes of an array [child, tilt, …] on whose members the messages do not depend."""


class Batch(NamedTuple):
    """Fronts of one kind: they differ only in the numbers of their arrays."""

    fronts: tuple[int, ...]
    """Their numbers in the order of elimination."""
    runs: tuple[Run, ...]
    """Their children."""


class _Alike(NamedTuple):
    """Children of one front that are of one kind."""

    batch: int
    shared: tuple[int, ...]
    rows: tuple[int, ...]


def in_batches(members: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[Batch]:
    """Group fronts whose arrays have one shape and whose children are of the same kinds.

    Parameters
    ----------
    members
        The members of every front, by their numbers in the order; the front's own tuple is first.
    sizes
        How many values each tuple has, in the same order.

    Returns
    -------
    list
        Every batch after those of its children; no batch has arrays of more than `MOMENT_TOGETHER`
        numbers, unless a single front has.

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
        # A batch takes at most this many fronts; further ones of the kind go to another batch.
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
    """Group the children of one front that are of one kind, at most `most` in a group."""
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
        # Where messages do not depend on a member, the array has one entry for all its values.
        shape = [sizes[member] if axis in shared else 1 for axis, member in enumerate(front)]
        away = tuple(axis for axis in range(2, 2 + len(front)) if axis - 2 not in shared)
        runs.append(Run(batch, rows.ravel(), (*rows.shape, -1, *shape), away))
    return Batch(fronts, tuple(runs))
