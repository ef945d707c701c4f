"""Whole numbers in place of contributions, so that sums along a chain fall on a lattice.

If every contribution is a multiple of one step, the sum over a window is too and paths are counted
exactly. Otherwise contributions are rounded to the best step that the work allows; moving every
atom by at most e changes a density by a factor of at most e^{e/λ}, so the bracket widens by 2e/λ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.tuning import LATTICE_PARTS, LATTICE_VALUES

IntArray = npt.NDArray[np.int64]


_ROUNDING = 1e-12  # relative error that counts as a lattice written in floats


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Contributions in units of a step."""

    step: float
    """The step, in the query's units."""
    points: IntArray
    """Contributions in steps, from zero, shape (tuples, states)."""
    errors: FloatArray
    """How far the contributions of each tuple were moved at most."""


def lattice_of(added: FloatArray, window: int, largest: int) -> Lattice:
    """Return the coarsest exact lattice, or the best one with sums of at most `largest` steps.

    Parameters
    ----------
    added
        Contributions from zero, shape (tuples, states).
    window
        How many tuples are summed at most.
    largest
        How many steps such a sum may have if contributions must be rounded.
    """
    values = np.unique(added[added > 0])
    if len(values) == 0:
        return Lattice(
            step=1.0, points=np.zeros(added.shape, dtype=np.int64), errors=np.zeros(len(added))
        )
    total = float(np.sort(added.max(axis=1))[-window:].sum())
    step = _common_step(values)
    exact = step is not None and total / step <= 8 * largest
    if step is None or not exact:
        step = _best_step(values, total, largest)
    points = np.rint(added / step).astype(np.int64)
    errors = np.abs(added - points * step).max(axis=1)
    if not exact:  # then products and differences above were rounded themselves
        errors = errors + 4 * np.finfo(np.float64).eps * added.max(axis=1)
    return Lattice(step=step, points=points, errors=errors)


def _common_step(values: FloatArray) -> float | None:
    """Return the largest float of which all values are exact multiples."""
    if len(values) > LATTICE_VALUES:
        return None
    ratios = [float(value).as_integer_ratio() for value in values]
    denominator = math.lcm(*(below for _, below in ratios))
    divisor = math.gcd(*(above * (denominator // below) for above, below in ratios))
    try:
        step = divisor / denominator
    except OverflowError:
        return None
    points = np.rint(values / step) if step > 0 else np.array([np.inf])
    return step if np.all(points < 2**40) and np.all(points * step == values) else None


def _best_step(values: FloatArray, total: float, largest: int) -> float:
    """Return the step that moves the values least, among parts of the smallest and the largest."""
    parts = np.arange(1, LATTICE_PARTS + 1)
    steps = np.unique(np.concatenate([values[0] / parts, values[-1] / parts]))[::-1]
    steps = steps[total / steps <= largest]
    if len(steps) == 0:
        return total / largest
    chosen = values if len(values) <= 512 else values[:: len(values) // 512 + 1]
    moved = np.array([np.abs(chosen - np.rint(chosen / step) * step).max() for step in steps])
    good = np.flatnonzero(moved <= _ROUNDING * values[0])
    return float(steps[good[0]] if len(good) else steps[moved.argmin()])
