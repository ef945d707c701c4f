"""Sums of real values that do not depend on the order of addition.

Floats added in another order, or in other partitions, round differently; how differently depends
on values that are secret. So a value x inside its public bounds is written as the whole number
floor(x·2^k), and the frame engine adds up whole numbers, exactly, in any order. k depends on public
facts alone: it is as large as the bounds and the number of rows allow in 64 bits. Every value is
off by less than 2^−k, its grid step.

The sum so computed is *exactly* a sum of functions of single values. The rows of independent people
therefore stay independent, and only the steps of one group of correlated values count against the
guarantee, never those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.open import (
    asks_the_engine,
    chosen,
    described,
    in_memory,
    is_missing,
    one_row,
    refuse_changed,
    refuse_empty,
    refuse_missing,
    refuse_words,
    rows_in,
)

_BITS = 62  # of the 63 that a whole number has beside its sign


_LARGEST_EXPONENT = 1000  # 2^1000 is still a float


_AT_ONCE = 16_384  # values: 128 kB, which stay near the processor until they are added


_WIDE, _EXACT = (nw.Int64, nw.UInt64), 2**53  # floats hold all whole numbers up to that
_HALF, _BEYOND_SIGNED = 2**32, 2**63


Range = tuple[float, float]


CELLS = ("units", "missing", "infinite", "outside")
"""What is added up for a column of real values: whole numbers, and what is wrong with values."""


@dataclass(frozen=True, kw_only=True)
class ClampedSum:
    """The sum of one column inside its bounds."""

    total: Fraction
    """Σ floor(x·2^k)·2^−k, exactly."""
    step: Fraction
    """2^−k: each value counts as its true amount, rounded down by less than this step."""


def grid_exponent(name: Hashable, bounds: Range, rows: int) -> int:
    """Return the largest k for which all sums of values in the bounds, times 2^k, fit 62 bits."""
    largest = max(abs(bounds[0]), abs(bounds[1]))
    exponent = _BITS - math.frexp(largest)[1] - (rows - 1).bit_length() if largest else 0
    if exponent > _LARGEST_EXPONENT:
        raise ModelError(f"the bounds of {name} are too close to zero for floats: change the unit.")
    return exponent


@asks_the_engine
def clamped_sums(
    frame: Any, ranges: Mapping[Hashable, Range], *, clamp: bool
) -> tuple[dict[Hashable, ClampedSum], int]:
    """Add up columns inside their bounds; return the sums and the number of rows.

    Parameters
    ----------
    frame
        Any frame.
    ranges
        The public bounds of each column.
    clamp
        Whether to move values outside to the nearest end, or to refuse them.
    """
    held = in_memory(frame)
    if held is not None:
        _, names, schema = described(frame, list(ranges))
        refuse_empty(len(held))
        return {
            column: sum_in_memory(held[name], schema[name], ranges[column], clamp=clamp)
            for column, name in zip(ranges, names, strict=True)
        }, len(held)
    table, names, schema = chosen(frame, list(ranges))
    rows = rows_in(frame)
    refuse_empty(rows)
    cells = [
        cell
        for place, (column, name) in enumerate(zip(ranges, names, strict=True))
        for cell in grid_cells(name, schema[name], ranges[column], rows=rows, place=place)
    ]
    summed = one_row(table.select(*cells).select(nw.len().alias("rows"), *cell_sums(len(names))))
    refuse_changed(rows, summed["rows"])
    return {
        column: checked_sum(summed, column, bounds, rows=rows, place=place, clamp=clamp)
        for place, (column, bounds) in enumerate(ranges.items())
    }, rows


def sum_in_memory(
    column: nw.Series[Any], kind: nw.dtypes.DType, bounds: Range, *, clamp: bool
) -> ClampedSum:
    """Add up a column that lies in memory, in pieces that fit a processor's cache.

    The whole numbers are those of `grid_cells`, and so is their sum, to the last bit.
    """
    refuse_words(column.name, kind)
    refuse_far(column.name, kind, bounds)
    rows, (low, high) = len(column), bounds
    values = _floats(column, kind)
    factor = 2.0 ** grid_exponent(column.name, bounds, rows)
    least, most, units = math.inf, -math.inf, 0
    inside = np.empty(min(rows, _AT_ONCE))
    with np.errstate(invalid="ignore"):  # NaN is cast to some whole number, and refused below
        for start in range(0, rows, _AT_ONCE):
            part = values[start : start + _AT_ONCE]
            # Both become NaN if any value is NaN.
            least, most = np.minimum(least, part.min()), np.maximum(most, part.max())
            piece = inside[: len(part)]
            np.clip(part, low, high, out=piece)
            np.multiply(piece, factor, out=piece)
            np.floor(piece, out=piece)
            units += int(piece.astype(np.int64).sum())
    found = {
        "missing0": math.isnan(least),
        "infinite0": not (math.isfinite(least) and math.isfinite(most)),
        "outside0": least < low or most > high,
        "units0": units,
    }
    return checked_sum(found, column.name, bounds, rows=rows, place=0, clamp=clamp)


def _floats(column: nw.Series[Any], kind: nw.dtypes.DType) -> npt.NDArray[np.float64]:
    """Return a column that lies in memory as floats; nulls become NaN: missing, either way."""
    if kind in _WIDE:  # Arrow does not cast those beyond 2^53: see `real_values`
        return column.to_numpy().astype(np.float64)
    return cast("npt.NDArray[np.float64]", column.cast(nw.Float64).to_numpy())


def unsigned(number: int) -> nw.Expr:
    """Return a whole number as an unsigned constant, of parts that Arrow can make too."""
    third, rest = divmod(number, 3)
    return nw.lit(third, nw.UInt64) * nw.lit(3, nw.UInt64) + nw.lit(rest, nw.UInt64)


def refuse_far(name: str, kind: nw.dtypes.DType, bounds: Range) -> None:
    """Refuse bounds of unsigned numbers beyond 2^63: not every engine can compute there."""
    if kind == nw.UInt64 and bounds[1] >= _BEYOND_SIGNED:
        raise ModelError(f"column {name} holds UInt64: its bounds must lie below 2^63.")


def real_values(name: str, kind: nw.dtypes.DType, bounds: Range) -> nw.Expr:
    """Return the values of a column as floats; values outside the bounds stay outside.

    Arrow does not cast whole numbers beyond 2^53, and its error would reveal that a secret is so
    large. If the bounds are narrower, such numbers are moved to ±2^53, still outside the bounds;
    otherwise their upper and lower digits are cast, and added with one rounding.
    """
    refuse_far(name, kind, bounds)
    value = nw.col(name)
    if kind in _WIDE and max(map(abs, bounds)) < _EXACT:
        if kind == nw.UInt64:  # compared as what they are: signed numbers do not hold them all
            value = value.clip(None, nw.lit(_EXACT, nw.UInt64))
        else:
            value = value.clip(-_EXACT, _EXACT)
    elif kind in _WIDE:
        if kind == nw.UInt64:
            value = value.clip(None, nw.lit(_BEYOND_SIGNED - 1, nw.UInt64)).cast(nw.Int64)
        upper = value // _HALF
        lower = value - upper * _HALF
        return upper.cast(nw.Float64) * float(_HALF) + lower.cast(nw.Float64)
    return value.cast(nw.Float64)


def grid_cells(
    name: str, kind: nw.dtypes.DType, bounds: Range, *, rows: int, place: int
) -> Sequence[nw.Expr]:
    """Return for each row the whole number it adds, and what may be wrong with its value."""
    refuse_words(name, kind)
    low, high = bounds
    missing, value = is_missing(name, kind), real_values(name, kind, bounds)
    finite = value.is_finite()
    # Missing and infinite values are refused later; here they are replaced so that the cast works.
    inside = nw.when(finite).then(value).otherwise(nw.lit(low)).clip(low, high)
    units = (inside * 2.0 ** grid_exponent(name, bounds, rows)).floor()
    outside = (value < low) | (value > high)
    return (
        units.cast(nw.Int64).alias(f"units{place}"),
        missing.cast(nw.Int64).alias(f"missing{place}"),
        (~finite).cast(nw.Int64).alias(f"infinite{place}"),
        outside.cast(nw.Int64).alias(f"outside{place}"),
    )


def cell_sums(columns: int) -> list[nw.Expr]:
    """Return the expressions that add the cells up."""
    return [
        # Engines may widen the sum, and return wider numbers as floats.
        nw.col(f"{what}{place}").sum().cast(nw.Int64)
        for place in range(columns)
        for what in CELLS
    ]


def checked_sum(
    summed: Mapping[str, Any], name: Hashable, bounds: Range, *, rows: int, place: int, clamp: bool
) -> ClampedSum:
    """Read one column's sum; refuse missing, infinite and, unless clamped, outlying values."""
    refuse_missing(name, summed[f"missing{place}"])
    if summed[f"infinite{place}"]:
        raise ModelError(f"a value of {name} is not a finite number.")
    if summed[f"outside{place}"] and not clamp:
        raise ModelError(
            f"a value of {name} is outside the bounds of the model;"
            " use clamp=True to move such values to the nearest bound."
        )
    step = Fraction(2) ** -grid_exponent(name, bounds, rows)
    return ClampedSum(total=int(summed[f"units{place}"]) * step, step=step)
