"""Joint laws for tables with few rows per cell.

Why these: docs/theory/learning.md. With ten rows a cell or more the counts themselves are the
law, one row spread evenly over all cells beside them. With fewer, no band excludes independence and
no band excludes group privacy, so two laws that err in different directions are kept, and the worse
of the two decides: one shrinks the counts towards independent columns, the other keeps what the
pairs of columns show and nothing beyond.

Everything here is a function of counts (of cells, or of pairs of columns) that may be noisy, and of
public numbers; it is post-processing of either.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError, ModelFitWarning
from pdp_calibrate.learning.private_sums import IntArray, nearest_with_sum

DENSE = 10.0
"""Rows per cell from which the counts themselves are the law."""

FEWEST = 0.3
"""Rows per cell below which a table says too little: a warning."""

WARNED, REFUSED = 0.3, 1.0
"""How large the noise on a cell of two columns may be, relative to its rows on average."""

MILDNESS, FEW_ROWS = 0.5, 40.0
"""How much of the weight of least error is taken: see `towards_independence`."""

RIDGE = 1.0
"""The penalty of a coupling of two columns, see `pairwise_law`."""


def laws_of(
    counts: IntArray | FloatArray, *, rows: int, noise_scale: float = 0.0
) -> list[FloatArray]:
    """Return the law of a table with many rows a cell, or two laws that err differently.

    Parameters
    ----------
    counts
        Of each cell; noisy, with `noise_scale`.
    rows
        N, public: what the counts add up to before the noise.
    noise_scale
        The scale of discrete Laplace noise on each count.
    """
    deviation = math.sqrt(2) * noise_scale
    if rows < FEWEST * counts.size:
        warnings.warn(
            f"{rows} rows say little about a table of {counts.size} cells: with fewer than"
            f" {FEWEST:g} rows a cell the law is mostly an assumption. Leave columns out, join"
            " values, or give confidence=.",
            ModelFitWarning,
            stacklevel=6,
        )
    nearest = nearest_with_sum(counts, rows) if noise_scale else np.asarray(counts, np.float64)
    if rows >= DENSE * counts.size * max(1.0, deviation) or sum(n > 1 for n in counts.shape) < 2:
        return [evenly_smoothed(nearest)]

    def shown(*kept: int) -> FloatArray:
        others = tuple(axis for axis in range(counts.ndim) if axis not in kept)
        total = np.asarray(counts.sum(axis=others), dtype=np.float64)
        return nearest_with_sum(total, rows) if noise_scale else total

    singles = [shown(axis) for axis in range(counts.ndim)]
    pairs = {pair: shown(*pair) for pair in itertools.combinations(range(counts.ndim), 2)}
    return [
        towards_independence(
            np.asarray(counts, dtype=np.float64), singles, rows=rows, noise_variance=deviation**2
        ),
        pairwise_law(pairs, counts.shape, rows=rows),
    ]


def check_noise(rows: int, sizes: Sequence[int], epsilon: float) -> None:
    """Warn or refuse where noise on cells drowns what pairs of columns show: public numbers only.

    A pair of columns adds up noisy cells, so its noise is the smaller the more cells there are per
    row. What counts is its standard deviation relative to the rows of a cell of the pair.
    """
    cells = math.prod(sizes)
    largest = max((a * b for a, b in itertools.combinations(sizes, 2)), default=1)
    deviation = math.sqrt(2) * 2 / epsilon * math.sqrt(cells / largest)
    share = deviation * largest / max(1, rows)
    if share > REFUSED:
        raise ModelError(
            f"with epsilon = {epsilon:.4g} the noise on {cells} cells is {share:.2g} of what"
            f" {rows} rows put into a cell of two columns (at most {REFUSED:g}): what is learned"
            " would be noise. Learn from more rows, with a larger epsilon or fewer columns, or give"
            " confidence=."
        )
    if share > WARNED:
        warnings.warn(
            f"the noise on {cells} cells is {share:.2g} of what {rows} rows put into a cell of two"
            " columns: the law is uncertain. More rows, a larger epsilon or fewer columns help.",
            ModelFitWarning,
            stacklevel=6,
        )


def evenly_smoothed(counts: FloatArray) -> FloatArray:
    """Add one row, spread evenly over all cells, and return the law."""
    cells = counts + 1 / counts.size
    return np.asarray(cells / cells.sum())


def independent_law(singles: Sequence[FloatArray]) -> FloatArray:
    """Return the law of independent columns with these counts of each."""
    return functools.reduce(
        np.multiply.outer, [np.asarray(one / one.sum(), dtype=np.float64) for one in singles]
    )


def towards_independence(
    counts: FloatArray, singles: Sequence[FloatArray], *, rows: int, noise_variance: float = 0.0
) -> FloatArray:
    """Return the counts shrunk towards independent columns, with one row spread evenly.

    With p the relative counts and t the law of independent columns, (1−w)·p + w·t has the smallest
    expected squared error about at w = (Σ Var p)/Σ(t−p)²; Σ Var p is estimated by
    (1 − Σp²)/(N−1), plus what noise adds (James and Stein; Hausser and Strimmer, JMLR 10, 2009).
    The smallest error is not the aim: too independent is unsafe, too dependent is not. So half of
    that weight is taken, and less of few rows: `MILDNESS`·N/(N + `FEW_ROWS`).

    Parameters
    ----------
    counts
        Of each cell, noisy or not.
    singles
        Of each value of each column.
    rows
        N, public.
    noise_variance
        Of the noise on each count.
    """
    law, apart = counts / rows, independent_law(singles)
    noise = counts.size * noise_variance / rows**2
    spread = max(0.0, 1 - (float(np.sum(law**2)) - noise)) / max(1, rows - 1) + noise
    distance = float(np.sum((apart - law) ** 2))
    weight = 1.0 if spread >= distance else spread / distance
    weight *= MILDNESS * rows / (rows + FEW_ROWS)
    mixed = (1 - weight) * law + weight * apart
    if noise_variance:
        mixed = nearest_with_sum(mixed, 1.0)
    return evenly_smoothed(np.asarray(mixed * rows))


def pairwise_law(
    pairs: Mapping[tuple[int, int], FloatArray],
    sizes: Sequence[int],
    *,
    rows: float,
    ridge: float = RIDGE,
) -> FloatArray:
    """Return the law log p = const + Σ_i a_i(x_i) + Σ_{i<j} c_ij(x_i, x_j) that fits the pairs.

    It maximises the likelihood less ridge/2·Σ_ij (mean of c_ij² over the cells of the pair), which
    renaming values or columns does not change. The likelihood depends on the counts of pairs only.
    One row spread evenly over all cells, before and after, keeps everything possible.

    Parameters
    ----------
    pairs
        Counts of every two columns (i, j), i < j; of one column (i, i): the diagonal.
    sizes
        How many values each column has.
    rows
        What the counts of each pair add up to.
    ridge
        The penalty.
    """
    law = _PairFit(pairs, sizes, rows=rows, ridge=ridge).law()
    return evenly_smoothed(law * rows)  # products of small shares would underflow


class _PairFit:
    """The penalised likelihood of a law of pairs.

    Columns are split into two halves of about as many cells, so the table is a matrix of cells of
    the first half × cells of the second: couplings across the halves, and counts of pairs across
    them, are then products of matrices; those within a half need that half's cells only.
    """

    def __init__(
        self,
        pairs: Mapping[tuple[int, int], FloatArray],
        sizes: Sequence[int],
        *,
        rows: float,
        ridge: float,
    ) -> None:
        self.sizes = list(sizes)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(int)
        width = int(self.starts[-1])
        totals = np.cumsum(np.log(self.sizes))
        self.cut = 1 + int(np.argmin(np.abs(totals[:-1] - totals[-1] / 2)))
        self.split = int(self.starts[self.cut])
        self.left, self.right = (
            _indicators(self.sizes[: self.cut]),
            _indicators(self.sizes[self.cut :]),
        )
        # G: wanted counts of all pairs of values (the diagonal blocks hold those of one column),
        # and the weight of each coupling in the penalty; couplings stand above the diagonal.
        wanted, weights = np.zeros((width, width)), np.zeros((width, width))
        for (i, j), counts in pairs.items():
            place = slice(*self.starts[i : i + 2]), slice(*self.starts[j : j + 2])
            cells = self.sizes[i] * self.sizes[j]
            wanted[place] = counts + 1 / cells
            weights[place] = ridge / cells
        self.total = rows + 1.0
        self.singles = np.zeros(width)
        for i in range(len(self.sizes)):
            own = slice(*self.starts[i : i + 2])
            found = []
            for j in range(len(self.sizes)):
                other = slice(*self.starts[j : j + 2])
                if i < j:
                    found.append(wanted[own, other].sum(axis=1))
                elif j < i:
                    found.append(wanted[other, own].sum(axis=0))
            self.singles[own] = np.mean(found, axis=0)
        self.upper = np.flatnonzero(weights.ravel())
        self.wanted, self.weights = wanted.ravel()[self.upper], weights.ravel()[self.upper]
        self.width = width

    def law(self) -> FloatArray:
        """Maximise, from independent columns on."""
        from scipy.optimize import minimize

        start = np.concatenate([np.log(self.singles), np.zeros(len(self.upper))])
        found = minimize(
            self._lost,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-7, "maxcor": 20},
        )
        _, gradient = self._lost(found.x)
        if not float(np.abs(gradient).max()) <= 1e-4:
            raise ModelError(
                "the law of pairs of columns did not converge. State fewer values, leave columns"
                " out, or give smoothing=."
            )
        table, _ = self._table(found.x)
        return np.asarray(table.reshape(self.sizes))

    def _table(self, parameters: FloatArray) -> tuple[FloatArray, float]:
        """Return the law, halves as rows and columns, and the logarithm of its constant."""
        alone, flat = parameters[: self.width], np.zeros(self.width**2)
        flat[self.upper] = parameters[self.width :]
        square = flat.reshape(self.width, self.width)
        here, there = slice(None, self.split), slice(self.split, None)

        def within(half: FloatArray, part: slice) -> FloatArray:
            return np.asarray(
                half @ alone[part] + np.sum((half @ square[part, part]) * half, axis=1)
            )

        logs = self.left @ square[here, there] @ self.right.T
        logs += within(self.left, here)[:, np.newaxis] + within(self.right, there)
        peak = float(logs.max())
        np.exp(logs - peak, out=logs)
        whole = float(logs.sum())
        logs /= whole
        return logs, peak + math.log(whole)

    def _lost(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the penalised log-likelihood, per row, and its gradient."""
        table, constant = self._table(parameters)
        couplings = parameters[self.width :]
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        expected = np.zeros((self.width, self.width))
        here, there = slice(None, self.split), slice(self.split, None)
        expected[here, here] = self.left.T @ (self.left * rows[:, np.newaxis])
        expected[there, there] = self.right.T @ (self.right * columns[:, np.newaxis])
        expected[here, there] = self.left.T @ table @ self.right
        alone = np.concatenate([rows @ self.left, columns @ self.right])
        value = (
            constant * self.total
            - float(self.singles @ parameters[: self.width])
            - float(self.wanted @ couplings)
            + float(self.weights @ couplings**2) / 2
        )
        gradient = np.concatenate(
            [
                alone * self.total - self.singles,
                expected.ravel()[self.upper] * self.total - self.wanted + self.weights * couplings,
            ]
        )
        return value / self.total, gradient / self.total


def _indicators(sizes: Sequence[int]) -> FloatArray:
    """Return one row per cell of these columns, one column per value of each."""
    places = np.array(list(itertools.product(*map(range, sizes))))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    found = np.zeros((len(places), int(sum(sizes))))
    found[np.arange(len(places))[:, np.newaxis], places + starts] = 1.0
    return found
