"""One pass over the table bounds everybody who attacks one target, before any search.

Before anything is decided, the density of a cell depends on the cell only through its answer, so
among cells with equal answers only the two with extreme odds matter to the two-cell bound. What is
left is a node of the tree with few cells, and `branch_bound` does the rest.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pdp_calibrate.engines.tables.bound import MOST_BUCKETS, branch_bound, workspace
from pdp_calibrate.engines.tables.grid import Grid
from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.models.base import FloatArray


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
