"""Columns of any frame as numbers, and their first two moments."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What a Gaussian model needs of the rows."""

    names: tuple[Hashable, ...]
    """The columns."""
    mean: FloatArray
    """The mean of each column."""
    deviation: FloatArray
    """The standard deviation of each column, divisor N − 1."""
    standardised: FloatArray
    """The rows, each column centred and divided by its deviation."""

    @property
    def rows(self) -> int:
        """N."""
        return len(self.standardised)

    @property
    def covariance(self) -> FloatArray:
        """The sample covariance, divisor N − 1."""
        return self.in_units(self.standardised.T @ self.standardised / (self.rows - 1))

    def in_units(self, correlation: FloatArray) -> FloatArray:
        """Scale a covariance of the standardised columns back to the units of the frame."""
        return np.asarray(correlation * np.outer(self.deviation, self.deviation))


def moments_of(frame: Any) -> Moments:
    """Read all columns of a frame; two passes, so that large means cost no digits.

    Raises `ModelError` naming the column for missing, infinite or non-numeric cells and for a
    column that does not vary. No cell value enters a message.
    """
    names, matrix = matrix_of(frame)
    if len(matrix) < 2:
        raise ModelError(f"at least 2 rows are needed to estimate a covariance, got {len(matrix)}.")
    mean = matrix.mean(axis=0)
    centred = matrix - mean
    drift = centred.mean(axis=0)  # what the first pass lost to rounding
    centred -= drift
    deviation = np.sqrt(np.einsum("kj,kj->j", centred, centred) / (len(matrix) - 1))
    for name, spread in zip(names, deviation, strict=True):
        if not spread > 0:
            raise ModelError(f"column {name} does not vary; leave it out.")
    return Moments(
        names=names, mean=mean + drift, deviation=deviation, standardised=centred / deviation
    )


def matrix_of(frame: Any) -> tuple[tuple[Hashable, ...], FloatArray]:
    """Return the column names and the rows as floats, whatever library the frame is of."""
    try:
        columns: Any = nw.from_native(frame)
    except TypeError as error:
        raise ModelError(f"a DataFrame is needed, got {type(frame).__name__}.") from error
    if isinstance(columns, nw.LazyFrame):
        columns = columns.collect()
    if not columns.columns:
        raise ModelError("the frame must have at least one column, got none.")
    arrays = []
    for name in columns.columns:
        series = columns[name]
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            raise ModelError(f"column {name} must hold numbers, got {series.dtype}.")
        missing = int(series.is_null().sum())
        cells = np.asarray(series.drop_nulls().to_numpy(), dtype=np.float64)
        missing += int(np.isnan(cells).sum())
        if missing:
            raise ModelError(
                f"column {name} has {missing} missing cells; drop or fill them first, in a way"
                " that does not depend on other people's rows."
            )
        if not np.all(np.isfinite(cells)):
            raise ModelError(f"column {name} has infinite cells.")
        arrays.append(cells)
    return tuple(columns.columns), np.column_stack(arrays)
