"""Answers on a grid: every value that the query can take, and the outputs worth comparing.

The ratio of two mixtures is largest at an atom (in several coordinates: on the product grid of the
atoms' coordinates), so the values that the answer can take are all the outputs there are to try.
Sums that differ only by rounding are one value; the little they are moved is charged to the error.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.table.setting import Setting

_SAME = 256 * UNIT_ROUNDOFF  # of the furthest distance: closer values are one value


_LARGEST_LEVELS = 4096  # values per coordinate


_LARGEST_KERNEL = 2**24  # numbers in the kernel matrix


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The answers of all cells as indices, and the kernel of every answer at every output."""

    answers: npt.NDArray[np.int32]
    """Per cell of the flat table, the row of `kernel`."""
    outputs: FloatArray
    """Shape (outputs, coordinates), ascending if there is one coordinate."""
    kernel: FloatArray
    """e^{−distance} or, near one, e^{−distance} − 1; shape (answers, outputs)."""
    moved: float
    """By how much (L1) an answer was moved at most to be on the grid."""


def grid_of(setting: Setting) -> Grid | None:
    """Put the answers on a grid; None if it is too large."""
    levels = [_levels(setting, coordinate) for coordinate in range(setting.coordinates)]
    fine = [values for values in levels if values is not None]
    if len(fine) < len(levels):
        return None
    places = [
        _nearest(values, setting.answers[:, coordinate]) for coordinate, values in enumerate(fine)
    ]
    moved = sum(
        float(np.abs(values[place] - setting.answers[:, coordinate]).max())
        for coordinate, (values, place) in enumerate(zip(fine, places, strict=True))
    )
    combined = np.ravel_multi_index(places, [len(values) for values in fine])
    distinct, answers = np.unique(combined, return_inverse=True)
    ends = [values[[0, -1]] if setting.tails_only else values for values in fine]
    number = int(np.prod([len(values) for values in ends], dtype=np.float64))
    if number * len(distinct) > _LARGEST_KERNEL:
        return None
    outputs = np.array(list(itertools.product(*ends)))
    indices = np.unravel_index(distinct, [len(values) for values in fine])
    distance = sum(
        np.abs(values[index][:, np.newaxis] - outputs[:, coordinate])
        for coordinate, (values, index) in enumerate(zip(fine, indices, strict=True))
    )
    kernel = np.expm1(-distance) if setting.is_near_one else np.exp(-distance)
    return Grid(
        answers=answers.astype(np.int32).ravel(), outputs=outputs, kernel=kernel, moved=moved
    )


def _levels(setting: Setting, coordinate: int) -> FloatArray | None:
    """Return the distinct values of one coordinate, or None if there are too many."""
    same = _SAME * setting.furthest
    if setting.table is not None:
        return _merged(setting.table[..., coordinate].ravel(), same)
    values: FloatArray | None = np.zeros(1)
    for part in setting.parts:
        if values is not None:
            values = _merged(np.add.outer(values, part[:, coordinate]).ravel(), same)
    return values


def _merged(values: FloatArray, same: float) -> FloatArray | None:
    """Sort and keep the first of every run of values closer than `same` to their neighbour."""
    values = np.unique(values)
    values = values[np.concatenate([[True], np.diff(values) > same])]
    return values if len(values) <= _LARGEST_LEVELS else None


def _nearest(values: FloatArray, wanted: FloatArray) -> npt.NDArray[np.intp]:
    if len(values) == 1:
        return np.zeros(len(wanted), dtype=np.intp)
    after = np.clip(np.searchsorted(values, wanted), 1, len(values) - 1)
    return after - (wanted - values[after - 1] < values[after] - wanted)
