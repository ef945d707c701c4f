"""All values that the unknown part of an answer can take, seen in the data or not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.models.base import FloatArray

_SAME = 2.0**-48  # of the range of the answer: closer sums are one value
MOST_OUTPUTS = 100_000
"""Outputs of one adversary that are looked at one by one."""

Indices = npt.NDArray[np.intp]


class Reachable:
    """The distinct sums over sets of unknown tuples, each worked out once.

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
    """Merge sums closer than `same`; return the values that are left and who went where."""
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
    if math.prod(map(len, columns)) > MOST_OUTPUTS:
        return None
    grid = np.meshgrid(*columns, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)


def by_distance(
    outputs: FloatArray, own: FloatArray, values: FloatArray
) -> tuple[Indices, FloatArray]:
    """Sort the values by their distance from each output, for each secret."""
    atoms = own[:, np.newaxis] + values
    distances = np.abs(outputs[:, np.newaxis, np.newaxis] - atoms).sum(axis=-1)
    order = np.argsort(distances, axis=-1)
    return order, np.take_along_axis(distances, order, axis=-1)
