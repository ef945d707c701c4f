"""The conditional laws of a set of tables: their centres, and how far from these a law may be.

Theorem 14 (docs/theory).

`Reachable` lists all values that the unknown part of an answer can take, seen in the data or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.core.tuning import KEPT_LAWS, SET_OUTPUTS
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.table.sampling_radius import noise_reach, sampling_radius
from pdp_calibrate.families.table.sets import ConditionalBall, SampledTable
from pdp_calibrate.families.table.setting import Varying

_SAME = 2.0**-48  # sums closer than this, times the range of the answer, become one value


def varying_in(problem: Problem) -> Varying | None:
    """Leave out tuples that cannot vary, as `Varying.of` does; refuse queries without a bound."""
    if problem.contributions.table is not None:
        raise UnsupportedQueryError(
            "Custom has no bound on a set of tables; ask Sum, Mean, Linear, Count or Histogram, or"
            " use a ModelSet of joint tables."
        )
    return Varying.of(problem)


Indices = npt.NDArray[np.intp]


class Reachable:
    """The distinct sums over sets of unknown tuples, each computed once.

    Which sums count as one does not depend on the noise, so radii do not either. Taking two close
    values for one is sound: the bound on the distance of a counted law holds for any grouping of
    its values, and moving an atom by δ changes no log-density by more than δ/λ (`shift`).
    """

    def __init__(self, contributions: Contributions) -> None:
        self.parts = [part - part.min(axis=0) for part in contributions.values]
        self.width = contributions.coordinates
        reach = sum(float(part.max(axis=0).sum()) for part in self.parts)
        self._same = _SAME * reach
        self._steps: dict[tuple[int, ...], tuple[FloatArray, Indices]] = {}

    @property
    def shift(self) -> float:
        """A bound on how far merging moves an atom, in the units of the answer."""
        return 2 * self._same * self.width * len(self.parts)

    def values(self, unknown: tuple[int, ...]) -> FloatArray:
        """Return the distinct sums, measured from the smallest; shape (values, coordinates)."""
        return self._step(unknown)[0] if unknown else np.zeros((1, self.width))

    def of_cells(self, unknown: tuple[int, ...]) -> Indices:
        """Return for each cell of the unknown tuples, last one fastest, the place of its sum."""
        if not unknown:
            return np.zeros(1, dtype=np.intp)
        before = self.of_cells(unknown[:-1])
        size = len(self.parts[unknown[-1]])
        pairs = before[:, np.newaxis] * size + np.arange(size)
        return np.asarray(self._step(unknown)[1][pairs.ravel()])

    def _step(self, unknown: tuple[int, ...]) -> tuple[FloatArray, Indices]:
        """Return the sums of a set, and how they follow from those of the set without its last."""
        if unknown not in self._steps:
            before = self.values(unknown[:-1])
            sums = before[:, np.newaxis] + self.parts[unknown[-1]]
            self._steps[unknown] = _distinct(sums.reshape(-1, self.width), self._same)
        return self._steps[unknown]


def _distinct(sums: FloatArray, same: float) -> tuple[FloatArray, Indices]:
    """Merge sums closer than `same`; return the values that are left and the place of each sum."""
    if sums.shape[1] == 1:
        order = np.argsort(sums[:, 0], kind="stable")
        line = sums[order, 0]
        starts = np.concatenate([[True], np.diff(line) > same])
        group = np.empty(len(line), dtype=np.intp)
        group[order] = np.cumsum(starts) - 1
        return line[starts][:, np.newaxis], group
    keys = np.round(sums / same) if same > 0 else sums
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return sums[first], group.ravel()


def outputs_between(own: FloatArray, values: FloatArray, *, tails_only: bool) -> FloatArray | None:
    """Return every place where a ratio can be largest; None if there are too many to list.

    Whatever the two laws are, their atoms are sums of a value of the target and one of the unknown
    tuples, and the ratio of two mixtures is largest at an atom (at a point of the product grid of
    the atoms' coordinates, if the answer has several).
    """
    atoms = (own[:, np.newaxis] + values).reshape(-1, own.shape[1])
    columns = [np.unique(column) for column in atoms.T]
    if tails_only:
        columns = [column[[0, -1]] for column in columns]
    if math.prod(map(len, columns)) > SET_OUTPUTS:
        return None
    if len(columns) == 1:
        return columns[0][:, np.newaxis]
    grid = np.meshgrid(*columns, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)


def by_distance(
    outputs: FloatArray, own: FloatArray, values: FloatArray
) -> tuple[Indices, FloatArray]:
    """Sort the values by their distance from each output, for each secret."""
    atoms = own[:, np.newaxis] + values
    distances = np.abs(outputs[:, np.newaxis, np.newaxis] - atoms).sum(axis=-1)
    return np.argsort(distances, axis=-1), np.sort(distances, axis=-1)


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


def center_of(model: Model) -> JointTable:
    """Return the central table, for its size and as the start of a witness."""
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


class ConditionalLaws:
    """The conditional laws of a set of tables, each computed once while they are not too many."""

    def __init__(self, model: Model, reachable: Reachable) -> None:
        self.model, self.reachable = model, reachable
        self._kept: dict[tuple[int, tuple[int, ...]], Balls] = {}
        self._left = KEPT_LAWS

    def balls(self, target: int, unknown: tuple[int, ...]) -> Balls:
        """Return what adversaries with this target and these unknown tuples may believe."""
        found = self._kept.get((target, unknown))
        if found is None:
            found = balls_of(self.model, self.reachable, target, unknown)
            if found.laws.size <= self._left:
                self._left -= found.laws.size
                self._kept[target, unknown] = found
        return found


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
        laws=np.ascontiguousarray(laws),  # numba would compile again for every other layout
        radii=np.ascontiguousarray(np.where(radii >= 1, ANY_LAW, radii)),
        additions=4 if counted else 2 * cells + 4,
    )


def _sampled_radii(model: SampledTable, sums: FloatArray, cells: int) -> FloatArray:
    """Return the radius of each event from the rows that match it; see `sampling_radius`."""
    values, rows = sums.shape[-1], sums.sum(axis=-1)
    log_odds = math.log(model.events) - math.log(1 - model.confidence)
    if model.noise_scale == 0 or values == 1:
        return sampling_radius(rows, values, log_odds)
    log_odds += math.log(2)  # half of the failure probability for the sample, half for the noise
    reach = noise_reach(model.noise_scale, cells, values, log_odds)
    kept = np.maximum(sums, 0.0).sum(axis=-1)
    with np.errstate(divide="ignore"):
        moved = reach / kept * (1 + 1e-12)
    return np.asarray(moved + sampling_radius(rows - reach, values, log_odds))
