"""A bound on what any adversary learns about a tuple, from the odds of its values alone.

Fix the target i and two secrets v, w. A cell c of all other tuples has odds x = p(v, c)/p(w, c)
and adds f(c) to the answer. An adversary's knowledge of the others, exact or soft, gives weights to
the cells, and the worst weights need only two cells (`two_cell_bound`): the log-ratio is at most

    LS_i/λ + max over cells a, b of  log(x_a/x_b) ⊗ |f(a) − f(b)|/λ,

for the densities of one secret in two cells differ by a factor of at most e^{|f(a) − f(b)|/λ}, and
a ⊗ b is `core.contraction.contracted`. A cell that excludes one secret has odds 0 or ∞, and ∞ ⊗ b
is b: as if each of the two cells allowed one secret only. A cell that excludes both has no weight.

Only the largest log(x_a/x_b) at each distance matters, and it does not depend on the scale: one
pass over the table serves a whole calibration. Nothing here depends on the number of outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contraction import contracted
from pdp_calibrate.core.contributions import diameter
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import ODDS_ANSWERS, ODDS_DISTANCES
from pdp_calibrate.families.table.cells import Cells
from pdp_calibrate.families.table.setting import Setting, combined

# Logarithms of probabilities are within ±745, and so are their roundings in units of the last
# place; a difference of two differences holds four of them.
_LOG_ERROR = 4 * 746 * UNIT_ROUNDOFF


@dataclass(frozen=True, kw_only=True, eq=False)
class OddsBound:
    """Per target, how far the log-odds of two secrets lie apart, by the distance of the answers."""

    distances: FloatArray
    """Ascending, in the units of the answer, rounded up."""
    apart: FloatArray
    """The largest difference of log-odds at each distance, rounded up; at least 0."""
    own: float
    """How far the target alone moves the answer."""

    @classmethod
    def of(cls, cells: Cells, target: int) -> OddsBound:
        """Take the pass over the table; only for additive queries."""
        merging = _Merging.of([part for j, part in enumerate(cells.parts) if j != target])
        with np.errstate(divide="ignore"):
            secrets = np.log(np.moveaxis(cells.probabilities, target, 0))
        secrets = secrets.reshape(cells.sizes[target], -1)
        largest = np.zeros(len(merging.distances))
        with np.errstate(invalid="ignore"):  # −inf − (−inf): a cell that excludes both secrets
            for first in range(len(secrets)):
                for second in range(first):
                    odds = secrets[first] - secrets[second]
                    most, least = merging.extremes(odds)
                    np.maximum(largest, merging.by_distance(most, least), out=largest)
        return cls(
            distances=merging.distances,
            apart=largest + _LOG_ERROR,
            own=diameter(cells.parts[target]),
        )

    def at(self, scale: float) -> float:
        """Return the bound on the leakage about the target at a scale, rounding included."""
        mixed = max(
            contracted(float(apart), float(distance) / scale * (1 + 4 * UNIT_ROUNDOFF))
            for apart, distance in zip(self.apart, self.distances, strict=True)
        )
        return (self.own / scale + mixed) * (1 + 64 * UNIT_ROUNDOFF)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Merging:
    """How cells of some tuples that add the same to the answer are merged."""

    sizes: tuple[int, ...]
    steps: tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], ...]
    """Per tuple, the order of (sums so far, its values), and where each new sum begins there."""
    distances: FloatArray
    """Of two sums, ascending, rounded up."""
    pairs: npt.NDArray[np.intp]
    """Pairs of sums by their distance."""
    begins: npt.NDArray[np.intp]
    """Where the pairs of each distance begin."""

    @classmethod
    def of(cls, parts: list[FloatArray]) -> _Merging:
        sums = np.zeros((1, parts[0].shape[-1] if parts else 1))
        steps = []
        for part in parts:
            added = (sums[:, np.newaxis] + part).reshape(-1, part.shape[-1])
            if len(sums) > ODDS_ANSWERS:
                sums, inverse = added[:1], np.zeros(len(added), dtype=np.intp)
            else:
                sums, inverse = np.unique(added, axis=0, return_inverse=True)
            order = np.argsort(inverse.ravel(), kind="stable")
            steps.append((order, np.searchsorted(inverse.ravel()[order], np.arange(len(sums)))))
        furthest = sum(diameter(part) for part in parts)
        apart = np.full((1, 1), furthest)
        if 1 < len(sums) <= ODDS_ANSWERS:
            apart = np.zeros((len(sums), len(sums)))
            for column in sums.T:
                apart += np.abs(column[:, np.newaxis] - column)
        # Each sum has n roundings; no distance exceeds the furthest one.
        apart = np.minimum(apart * (1 + 4 * (len(parts) + 8) * UNIT_ROUNDOFF), furthest)
        distances = np.unique(apart)
        if len(distances) > ODDS_DISTANCES:
            distances = np.linspace(0, furthest, ODDS_DISTANCES + 1)
        place = np.minimum(np.searchsorted(distances, apart.ravel()), len(distances) - 1)
        pairs = np.argsort(place, kind="stable")
        found, begins = np.unique(place[pairs], return_index=True)
        return cls(
            sizes=tuple(map(len, parts)),
            steps=tuple(steps),
            distances=distances[found],
            pairs=pairs,
            begins=begins,
        )

    def extremes(self, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest and smallest number among the cells of each sum; NaN if none has."""
        found = []
        for combine in (np.fmax, np.fmin):
            rows = odds.reshape(1, -1)
            for size, (order, starts) in zip(self.sizes, self.steps, strict=True):
                rows = rows.reshape(len(rows) * size, -1)
                rows = combined(rows, order, starts, combine)
            found.append(rows.ravel())
        return found[0], found[1]

    def by_distance(self, most: FloatArray, least: FloatArray) -> FloatArray:
        """Return the largest most[a] − least[b] over the pairs of sums at each distance."""
        apart = (most[:, np.newaxis] - least).ravel()[self.pairs]
        # NaN: no cell, or both cells exclude the same secret, and there is nothing to compare.
        return np.asarray(np.fmax.reduceat(np.where(np.isnan(apart), 0.0, apart), self.begins))


def odds_bound(setting: Setting, target: int) -> float:
    """Bound the leakage about a target by all adversaries; infinite for a query not additive.

    If coordinates have several scales, the smallest is used: its bound holds for all.
    """
    if not setting.is_additive:
        return math.inf
    cells = setting.prepared.cells
    if target not in cells.kept_odds:
        cells.kept_odds[target] = OddsBound.of(cells, target)
    return cells.kept_odds[target].at(float(np.min(setting.scale)))
