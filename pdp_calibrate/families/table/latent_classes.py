"""Tables that are mixtures of a few product laws: classes within which tuples are independent.

    p(x) = Σ_c s_c·Π_j p_j(x_j | c)

Such classes are looked for in the table alone, and the mixture found is compared with every cell:
the largest |log p/p̂| is kept, and the bound includes it. So how they are found needs no proof.

Theorem 25 (docs/theory): an adversary who does not know U learns about target i at most

    LS_i/λ + max over classes c, c' of  D_i(c, c') ⊗ B_U(c, c'),

where D_i is the range of the log-odds of the two classes over the target's values, and B_U the
range, over all outputs, of the log-ratio of the densities of the unknown tuples' answer given the
classes. If cells are off by e^{±ρ}, a density given a secret changes by e^{±2ρ}, and the bound by
4ρ.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contraction import contracted
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.table.count_grid import SCALED, CountGrid, count_vectors, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pdp_calibrate.families.table.setting import Setting

_MOST_CLASSES = 8
_LARGEST_ERROR = 2.0**-14  # of a cell's logarithm; beyond it, the classes are not used
_FRONT = 3  # tuples of the first group and of the last one, at most
_NO_CLASS = (1e-11, 1e-6)  # singular values this much below the first one; in single precision
_NOTHING = 1e-12  # probabilities of this size are rounding
_RAREST = 1e-280  # rarer cells may have lost digits to underflow
_ROWS = 128  # of the table, compared together
_LANES = 64  # sets of unknown tuples evaluated together
_LOG_ERROR = 1e-12  # of a difference of four logarithms


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentClasses:
    """A mixture of product laws, and how far the cells of a table are from it."""

    laws: tuple[FloatArray, ...]
    """For each tuple P(value | class), shape (classes, values); they need not sum to one."""
    error: float
    """The largest |log p/p̂| of any cell, rounding included."""

    @classmethod
    def of(cls, probabilities: FloatArray) -> LatentClasses | None:
        """Find the classes; None if there are none, or more than a few."""
        if probabilities.ndim < 3:
            return None
        for shares, laws in _decomposed(probabilities):
            error = _largest_error(probabilities, shares, laws)
            if error <= _LARGEST_ERROR:
                return cls(laws=laws, error=error)
        return None

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of classes."""
        return list(itertools.combinations(range(len(self.laws[0])), 2))

    def odds_apart(self, target: int) -> list[float]:
        """Return for each pair of classes how far their log-odds lie apart over the values."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.laws[target])
        found = []
        for one, other in self.pairs:
            possible = (logs[one] > -math.inf) | (logs[other] > -math.inf)
            apart = float(np.ptp(logs[one, possible] - logs[other, possible]))
            found.append(apart + _LOG_ERROR if apart < math.inf else math.inf)  # ∞ − ∞ is ∞ too
        return found


def class_bounds(
    setting: Setting, classes: LatentClasses, bins: tuple[npt.NDArray[np.intp], ...]
) -> dict[tuple[int, tuple[int, ...]], float]:
    """Bound the leakage about each target, for each set of unknown tuples (Theorem 25)."""
    places = range(len(setting.sizes))
    odds = [classes.odds_apart(target) for target in places]
    found = {}
    for unknown, apart in _densities_apart(setting, classes, bins):
        for target in places:
            if target not in unknown:
                learned = max(map(contracted, odds[target], apart), default=0.0)
                bound = (setting.diameters[target] + learned) * (1 + 64 * UNIT_ROUNDOFF)
                found[target, unknown] = bound + 4 * classes.error
    return found


def _densities_apart(
    setting: Setting, classes: LatentClasses, bins: tuple[npt.NDArray[np.intp], ...]
) -> list[tuple[tuple[int, ...], FloatArray]]:
    """Return for each set of tuples how far the log-densities of the classes lie apart, by pair.

    The worst of all outputs on the grid of the counts of these tuples.
    """
    places, coordinates = range(len(setting.sizes)), setting.coordinates
    unit = np.asarray(np.concatenate(setting.parts).max(axis=0))
    laws = [law / law.sum(axis=1, keepdims=True) for law in classes.laws]
    pairs = np.array(classes.pairs, dtype=np.intp).reshape(-1, 2)
    counts: dict[tuple[int, ...], FloatArray] = {(): np.ones((len(laws[0]), 1))}
    found: list[tuple[tuple[int, ...], FloatArray]] = []
    for number in range(1, len(places)):
        grid = CountGrid.of(coordinates, number)
        moves = _moves(coordinates, number)
        sets = list(itertools.combinations(places, number))
        for unknown in sets:
            before, last = counts[unknown[:-1]], unknown[-1]
            here = np.zeros((len(before), grid.masses))
            for value, bin_ in enumerate(bins[last]):
                here[:, moves[bin_]] += before * laws[last][:, value, np.newaxis]
            counts[unknown] = here
        # A lane for each set and pair of classes; the classes take the place of the secrets.
        both = SCALED * np.stack([counts[unknown][pairs] for unknown in sets])
        lanes = both.astype(np.float32).reshape(-1, 2, grid.masses).transpose(2, 1, 0)
        apart = [
            grid.worst_log_ratios(np.ascontiguousarray(lanes[..., start : start + _LANES]), unit)
            for start in range(0, lanes.shape[-1], _LANES)
        ]
        by_pair = np.concatenate([*apart, np.zeros(0)]).reshape(len(sets), len(pairs)) + grid.error
        found += zip(sets, by_pair, strict=True)
    return found


def _moves(coordinates: int, tuples: int) -> list[npt.NDArray[np.intp]]:
    """Return the place of each vector of counts after one more tuple, by its bin; last: no bin."""
    before = np.array(count_vectors(coordinates, tuples - 1), dtype=np.intp)
    grid = CountGrid.of(coordinates, tuples)
    flat = before @ steps_of(np.arange(coordinates), grid.levels, coordinates)
    joined = steps_of(np.array([*range(coordinates), -1]), grid.levels, coordinates)
    return [np.asarray(grid.masses_at[flat + step], dtype=np.intp) for step in joined]


def _decomposed(probabilities: FloatArray) -> Iterator[tuple[FloatArray, tuple[FloatArray, ...]]]:
    """Yield shares and laws of few classes that a table may consist of.

    Tuples in three groups, front, middle and back. Summed over the middle, once with weights w, the
    table is A·diag(s)·Bᵀ and A·diag(s·E[w | c])·Bᵀ: the columns of A, the laws of the front group
    given the classes, are the eigenvectors of the one times the inverse of the other.
    """
    sizes, front = probabilities.shape, min(_FRONT, (probabilities.ndim - 1) // 2)
    middle, back = sizes[front : len(sizes) - front], sizes[len(sizes) - front :]
    table = probabilities.reshape(math.prod(sizes[:front]), math.prod(middle), -1)
    rng = np.random.default_rng(0)
    weights = np.ones(1)
    for size in middle:
        weights = np.multiply.outer(weights, rng.random(size)).ravel()
    plain, weighed = table.sum(axis=1), np.tensordot(table, weights, axes=(1, 0))
    left, singular, right = np.linalg.svd(plain, full_matrices=False)
    ranks = {int((singular > least * singular[0]).sum()) for least in _NO_CLASS}
    for rank in sorted(ranks, reverse=True):
        if rank > _MOST_CLASSES:
            continue
        inverse = right[:rank].T / singular[:rank]
        vectors = np.linalg.eig(left[:, :rank].T @ weighed @ inverse)[1].real
        columns = left[:, :rank] @ vectors
        totals = columns.sum(axis=0)
        if not np.all(np.abs(totals) > _NOTHING):
            continue
        columns = columns / totals
        # Given the laws of the front group, those of all others solve linear equations.
        inverse = np.linalg.pinv(columns)
        shares = (inverse @ plain).sum(axis=1)
        if shares.min() <= _NOTHING:
            continue
        laws = [_law(columns.T, sizes[:front], place) for place in range(front)]
        for group, masses in ((middle, table.sum(axis=2)), (back, plain)):
            given = inverse @ masses / shares[:, np.newaxis]
            laws += [_law(given, group, place) for place in range(len(group))]
        yield shares, tuple(laws)


def _law(joint: FloatArray, sizes: tuple[int, ...], place: int) -> FloatArray:
    """Return the laws of one tuple of a group; probabilities that are only rounding become 0."""
    others = tuple(1 + other for other in range(len(sizes)) if other != place)
    law = joint.reshape(len(joint), *sizes).sum(axis=others)
    return np.where(law > _NOTHING, law, 0.0)


def _largest_error(
    probabilities: FloatArray, shares: FloatArray, laws: tuple[FloatArray, ...]
) -> float:
    """Return the largest |log p/p̂| of any cell; infinite if it is more than log 2."""
    half = len(laws) // 2
    before, after = (functools.reduce(_by_cell, some) for some in (laws[:half], laws[half:]))
    before = (before * shares[:, np.newaxis]).T
    cells = probabilities.reshape(len(before), -1)
    most, least = 1.0, 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        for start in range(0, len(before), _ROWS):
            here = cells[start : start + _ROWS]
            if np.any((here > 0) & (here < _RAREST)):
                return math.inf
            # NaN where both are zero: such a cell agrees.
            quotients = here / (before[start : start + _ROWS] @ after)
            most = max(most, float(np.fmax.reduce(quotients, axis=None)))
            least = min(least, float(np.fmin.reduce(quotients, axis=None)))
            if least < 0.5 or most > 2:  # no mixture, or a zero in only one of the two
                return math.inf
    roundings = 2 * (len(laws) + len(shares) + 4)
    return max(math.log(most), -math.log(least)) + roundings * UNIT_ROUNDOFF


def _by_cell(before: FloatArray, law: FloatArray) -> FloatArray:
    """Return the laws of cells, one tuple more; by class and cell."""
    return (before[:, :, np.newaxis] * law[:, np.newaxis]).reshape(len(law), -1)
