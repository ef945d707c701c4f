"""The conditional laws of a set of tables: centres, and how far around them anything may be."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.engines.table_sets.reachable import Indices, Reachable
from pdp_calibrate.models import ConditionalBall, JointTable, Model, SampledTable
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.sampling import noise_reach, sampling_radius

ANY_LAW = 2.0
"""A radius beyond 1: all mass may move, whatever rounding does."""


@dataclass(frozen=True, kw_only=True)
class Balls:
    """What adversaries with one target and one set of unknown tuples may believe."""

    known: tuple[int, ...]
    """Positions of the known tuples."""
    values: FloatArray
    """What the unknown tuples can add, shape (values, coordinates)."""
    of_cells: Indices
    """For each cell of the unknown tuples, the place of its value."""
    laws: FloatArray
    """The centres, shape (values of x_K, values of x_i, values)."""
    radii: FloatArray
    """How far each law may be off, shape (values of x_K, values of x_i)."""
    additions: int
    """Bound on the rounded operations behind each law."""


@functools.lru_cache(maxsize=4)
def center_of(model: Model) -> JointTable:
    """Return the table in the middle, for its size and as the start of a witness."""
    if isinstance(model, ConditionalBall):
        return model.center
    if not isinstance(model, SampledTable):
        raise TypeError(f"this engine searches sets of tables, got {model!r}.")
    cells = np.maximum(model.counts, 0).astype(np.float64)
    if not cells.any():
        cells = np.ones(cells.shape)
    return JointTable(
        probabilities=cells / cells.sum(),
        domains=model.domains,
        names=model.names,
        provenance=model.provenance,
    ).marked_like(model)


def balls_of(model: Model, reachable: Reachable, target: int, unknown: tuple[int, ...]) -> Balls:
    """Condition on (x_i, x_K), for all their values at once; no event is left out."""
    counted = isinstance(model, SampledTable)
    table = model.counts if isinstance(model, SampledTable) else center_of(model).probabilities
    axes = range(table.ndim)
    known = tuple(axis for axis in axes if axis != target and axis not in unknown)
    cells = math.prod(table.shape[axis] for axis in unknown)
    masses = table.transpose(*known, target, *unknown).reshape(-1, table.shape[target], cells)
    values, of_cells = reachable.values(unknown), reachable.of_cells(unknown)
    order = np.argsort(of_cells, kind="stable")
    starts = np.searchsorted(of_cells[order], np.arange(len(values)))
    sums = np.add.reduceat(masses[..., order], starts, axis=-1).astype(np.float64)
    if isinstance(model, SampledTable):
        radii = _sampled_radii(model, sums, cells)
    else:
        stated = model.radius if isinstance(model, ConditionalBall) else 1.0
        radii = np.where(sums.sum(axis=-1) > 0, stated, ANY_LAW)
    sums = np.maximum(sums, 0.0)
    totals = sums.sum(axis=-1, keepdims=True)
    laws = np.where(totals > 0, sums, 1.0) / np.where(totals > 0, totals, len(values))
    return Balls(
        known=known,
        values=values,
        of_cells=of_cells,
        laws=laws,
        radii=np.where(radii >= 1, ANY_LAW, radii),
        additions=4 if counted else 2 * cells + 4,
    )


def _sampled_radii(model: SampledTable, sums: FloatArray, cells: int) -> FloatArray:
    """Return the radius of each event from the rows that match it; see `models.sampling`."""
    values, rows = sums.shape[-1], sums.sum(axis=-1)
    log_odds = math.log(model.events) - math.log(1 - model.confidence)
    if model.noise_scale == 0 or values == 1:
        return sampling_radius(rows, values, log_odds)
    log_odds += math.log(2)  # half of the failures for the sample, half for the noise
    reach = noise_reach(model.noise_scale, cells, values, log_odds)
    kept = np.maximum(sums, 0.0).sum(axis=-1)
    with np.errstate(divide="ignore"):
        moved = reach / kept * (1 + 1e-12)
    return np.asarray(moved + sampling_radius(rows - reach, values, log_odds))
