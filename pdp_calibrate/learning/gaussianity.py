"""Whether public rows look Gaussian: a test of their skewness and kurtosis, and its warning.

Types that cannot be Gaussian are refused before that: see `frames.columns`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy.stats import chi2, norm

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelFitWarning
from pdp_calibrate.frames.open import asks_the_engine, chosen, how_many, one_row
from pdp_calibrate.learning.moments import Moments, moments_of

_FEWEST_ROWS = 50
"""The effective number of independent rows below which nothing is tested."""


@dataclass(frozen=True, kw_only=True)
class Powers:
    """Sums of powers of centred values of one column."""

    rows: int
    """How many values there are."""
    squares: float
    """Σ y²."""
    cubes: float
    """Σ y³."""
    fourths: float
    """Σ y⁴."""

    @classmethod
    def of(cls, values: FloatArray) -> Powers:
        """Add up the powers of centred values."""
        squares = values * values
        return cls(
            rows=len(values),
            squares=float(squares.sum()),
            cubes=float((squares * values).sum()),
            fourths=float((squares * squares).sum()),
        )

    def is_plainly_wrong(self, repeats: tuple[float, float]) -> bool:
        """Whether their skewness or kurtosis rejects a Gaussian law beyond doubt; see `_doubt`."""
        rows = self.rows
        if rows / max(repeats) < _FEWEST_ROWS or not self.squares > 0:
            return False
        variance = self.squares / rows
        skewness = (self.cubes / rows) ** 2 / variance**3
        score = (self.fourths / rows / variance**2 - 3) / np.sqrt(24 / rows * repeats[1])
        tails = chi2.sf(rows * skewness / 6 / repeats[0], 1), 2 * norm.sf(abs(score))
        return bool(min(tails) < _PLAINLY_WRONG)


UNTESTED = Powers(rows=0, squares=0.0, cubes=0.0, fourths=0.0)
"""For values many of which are clipped: all that counts is whether there are two of them."""


def warn_of_groups(
    frame: Any,
    value: str,
    *,
    correlation: float,
    sizes: Counter[int],
    stacklevel: int,
    powers: Powers | None = None,
) -> None:
    """Warn if grouped values are plainly not Gaussian, given the correlation inside groups.

    Where they were centred by role, the powers are those of centred values.
    """
    rows = sum(size * number for size, number in sizes.items())
    others = sum(size**2 * number for size, number in sizes.items()) / rows - 1
    repeats = 1 + others * abs(correlation) ** 3, 1 + others * correlation**4
    doubt = _doubt(frame, value, repeats, powers)
    _warn(doubt, instead="kind='binary'", stacklevel=stacklevel)


def warn_of_series(
    frame: Any, value: str, *, correlation: float, powers: Powers, stacklevel: int
) -> None:
    """Warn if centred values are plainly not Gaussian, given the correlation of neighbours."""
    cubed, fourth = abs(correlation) ** 3, correlation**4
    repeats = (1 + cubed) / (1 - cubed), (1 + fourth) / (1 - fourth)
    doubt = _doubt(frame, value, repeats, powers)
    _warn(doubt, instead="MarkovChainEstimator", stacklevel=stacklevel)


@asks_the_engine
def _doubt(
    frame: Any, value: str, repeats: tuple[float, float], powers: Powers | None
) -> str | None:
    """Return why the values are plainly not Gaussian: only two of them, or their shape; or None.

    For a Gaussian sequence with correlations ρ_ij the variances of skewness and kurtosis grow by
    the factors Σ ρ_ij³/N and Σ ρ_ij⁴/N (Lomnicki, Metrika 4, 1961), which are the `repeats`.
    """
    table, (name,), _ = chosen(frame, [value])
    cell = nw.col(name)
    ends = one_row(table.select(cell.min().alias("low"), cell.max().alias("high")))
    at_ends = how_many((cell == ends["low"]) | (cell == ends["high"])).alias("at_ends")
    found = one_row(table.select(nw.len().alias("rows"), at_ends))
    if found["rows"] > 3 and found["at_ends"] == found["rows"]:
        return f"column {value} holds only two values, so it is not Gaussian"
    if powers is not None:
        wrong = powers.is_plainly_wrong(repeats)
        return f"the values of column {value} are plainly not Gaussian" if wrong else None
    if found["rows"] / max(repeats) < _FEWEST_ROWS:
        return None
    tested = normality(moments_of(table.to_native()), repeats=repeats)
    if tested is None or not tested.is_plainly_wrong:
        return None
    return f"the values of column {value} are plainly not Gaussian"


def _warn(doubt: str | None, *, instead: str, stacklevel: int) -> None:
    if doubt is not None:
        warnings.warn(
            f"{doubt}. The leakage reported is that of Gaussian values with this correlation; for"
            " the true law the privacy guarantee is not proven. For two values, or codes, use"
            f" {instead}; otherwise transform the values, or allow any dependence (pdp.Unknown).",
            ModelFitWarning,
            stacklevel=stacklevel + 3,
        )


_PLAINLY_WRONG = 1e-6  # p-value below which the rows are called plainly not Gaussian


@dataclass(frozen=True, kw_only=True)
class Normality:
    """Mardia's measures of how far rows are from Gaussian, and tests of them."""

    skewness: float | None
    """Mardia's multivariate skewness, 0 for a Gaussian; None where its sum over all triples of
    columns is too long: past 40 columns (12 outside memory), or 10⁹ products."""
    kurtosis: float
    """Mardia's multivariate kurtosis, n(n+2) for a Gaussian with n columns."""
    skewness_p: float | None
    """p-value of the skewness."""
    kurtosis_p: float
    """p-value of the kurtosis, two-sided."""
    skewest: Hashable
    """The column with the largest skewness."""
    heaviest: Hashable
    """The column with the largest excess kurtosis, in absolute value."""

    @property
    def is_plainly_wrong(self) -> bool:
        """Whether either test rejects beyond doubt."""
        return min(self.kurtosis_p, 1.0 if self.skewness_p is None else self.skewness_p) < (
            _PLAINLY_WRONG
        )


def normality(moments: Moments, *, repeats: tuple[float, float] = (1.0, 1.0)) -> Normality | None:
    """Test the rows for a Gaussian law (Mardia, Biometrika 57, 1970).

    None with too few rows, or where columns are linearly dependent. Where rows of a single column
    are correlated, `repeats` holds the factors by which that multiplies the variances of skewness
    and kurtosis.
    """
    size, rows = len(moments.names), moments.rows
    if rows < max(20, 3 * size):
        return None
    shape = moments.shape
    if shape.white_lengths is None:
        return None
    kurtosis = shape.white_lengths / rows
    expected = size * (size + 2)
    score = (kurtosis - expected) / np.sqrt(8 * expected / rows * repeats[1])
    skewness = skewness_p = None
    if shape.white_triples is not None:
        skewness = shape.white_triples / rows**2
        freedom = size * (size + 1) * (size + 2) / 6
        skewness_p = float(chi2.sf(rows * skewness / 6 / repeats[0], freedom))
    return Normality(
        skewness=skewness,
        kurtosis=kurtosis,
        skewness_p=skewness_p,
        kurtosis_p=float(2 * norm.sf(abs(score))),
        skewest=moments.names[int(np.argmax(np.abs(shape.cubes)))],
        heaviest=moments.names[int(np.argmax(np.abs(shape.fourths / rows - 3)))],
    )
