"""What estimators and releases need to know of a frame: counts, mostly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import plain


def columns_of(frame: Any) -> list[str]:
    """Return the names of the columns of any frame that narwhals understands."""
    return list(_frame(frame).collect_schema().names())


def contingency(frame: Any, columns: Sequence[Hashable]) -> Counter[tuple[Hashable, ...]]:
    """Count how often each combination of values occurs in the columns.

    Raises `ModelError` for a column that is not there, an empty frame, and missing values; the
    message names the column and how many cells are missing, never a value.
    """
    names = [cast("str", column) for column in columns]
    chosen = complete_rows(frame, columns)
    counted = chosen.group_by(*names).agg(nw.len().alias("__count__"))
    return Counter(
        {
            tuple(plain(value) for value in row[:-1]): int(row[-1])
            for row in counted.select(*names, "__count__").iter_rows()
        }
    )


def complete_rows(frame: Any, columns: Sequence[Hashable]) -> nw.DataFrame[Any]:
    """Return the columns of a frame; raise if one is not there, empty, or has missing values."""
    table = _frame(frame)
    names = [cast("str", column) for column in columns]
    absent = [str(name) for name in names if name not in table.columns]
    if absent:
        raise ModelError(f"the frame has no column {', '.join(absent)}.")
    chosen = table.select(*dict.fromkeys(names))
    if len(chosen) == 0:
        raise ModelError("the frame must have at least one row, got none.")
    for name in names:
        column = chosen[name]
        absent_cells = column.is_null()
        if column.dtype.is_float():
            absent_cells = absent_cells | column.is_nan().fill_null(value=True)
        missing = int(absent_cells.sum())
        if missing:
            raise ModelError(
                f"column {name} has {missing} missing values; drop or recode them first."
            )
    return chosen


def group_totals(frame: Any, by: str, value: str) -> Counter[tuple[int, int]]:
    """Count the groups with each size and number of ones, from a long frame of zeros and ones."""
    rows = complete_rows(frame, [by, value])
    if not (rows[value].dtype.is_numeric() or rows[value].dtype == nw.Boolean):
        raise ModelError(f"column {value} must hold only 0 and 1.")
    rows = rows.with_columns(nw.col(value).cast(nw.Float64).alias("__value__"))
    if not ((rows["__value__"] == 0) | (rows["__value__"] == 1)).all():
        raise ModelError(f"column {value} must hold only 0 and 1.")
    groups = rows.group_by(by).agg(
        nw.len().alias("__size__"), nw.col("__value__").sum().alias("__ones__")
    )
    counted = groups.group_by("__size__", "__ones__").agg(nw.len().alias("__count__"))
    chosen = counted.select("__size__", "__ones__", "__count__").iter_rows()
    return Counter({(int(size), int(ones)): int(count) for size, ones, count in chosen})


def refuse_repeated(frame: Any, person: str, by: str) -> None:
    """Raise if a person stands in two groups, or twice in one."""
    rows = complete_rows(frame, [person, by])
    pairs = rows.unique(subset=[person, by])
    several = len(pairs) - pairs[person].n_unique()
    if several:
        raise ModelError(
            f"{several} of the entries in column {person} put a person into a further group of"
            f" column {by}; everyone may belong to one only. Join such groups first."
        )
    if len(pairs) < len(rows):
        raise ModelError(
            f"column {person} names {len(rows) - len(pairs)} persons more than once within a group."
        )


def ordered_series(
    frame: Any, value: str, *, by: str | None, order_by: str | None
) -> tuple[list[Hashable], nw.DataFrame[Any]]:
    """Sort a long frame into series, one after the other.

    Returns the values in order, and a frame with the columns ``__series__`` (a number per series)
    and ``__value__``. Rows keep their order where there is no `order_by`. Raises for times that
    occur twice in a series, and for gaps: steps longer than one and a half times the usual one.
    """
    names = [value, *([by] if by else []), *([order_by] if order_by else [])]
    rows = complete_rows(frame, names).with_row_index("__row__")
    rows = rows.with_columns(nw.col(value).alias("__value__"))
    keys = [*([by] if by else []), *([order_by] if order_by else []), "__row__"]
    rows = rows.sort(*keys)
    same = nw.lit(value=True)
    if by is not None:
        same = nw.col(by) == nw.col(by).shift(1)
    rows = rows.with_columns(same.fill_null(value=False).alias("__same__"))
    rows = rows.with_columns((~nw.col("__same__")).cast(nw.Int64).cum_sum().alias("__series__"))
    if by is None:
        rows = rows.with_columns(
            nw.lit(1).alias("__series__"), (nw.col("__row__") >= 0).alias("__same__")
        )
    if order_by is not None:
        _check_times(rows, order_by)
    values = [plain(one) for one in rows["__value__"].unique().to_list()]
    return values, rows.select("__series__", "__value__")


def runs(series: nw.DataFrame[Any], length: int) -> Counter[tuple[Hashable, ...]]:
    """Count how often each run of so many neighbouring values occurs within a series."""
    names = [f"__{lag}__" for lag in range(length)]
    whole = nw.col("__series__") == nw.col("__series__").shift(length - 1)
    shifted = [
        nw.col("__value__").shift(length - 1 - lag).alias(name) for lag, name in enumerate(names)
    ]
    rows = series.with_columns(*shifted, whole.fill_null(value=False).alias("__whole__"))
    rows = rows.filter(nw.col("__whole__")) if length > 1 else rows
    counted = rows.group_by(*names).agg(nw.len().alias("__count__"))
    return Counter(
        {
            tuple(plain(one) for one in row[:-1]): int(row[-1])
            for row in counted.select(*names, "__count__").iter_rows()
        }
    )


def series_lengths(series: nw.DataFrame[Any]) -> Counter[int]:
    """Count the series of each length."""
    lengths = series.group_by("__series__").agg(nw.len().alias("__length__"))
    return Counter(int(length) for length in lengths["__length__"].to_list())


def first_values(series: nw.DataFrame[Any]) -> Counter[Hashable]:
    """Count the values with which series begin."""
    begins = (nw.col("__series__") != nw.col("__series__").shift(1)).fill_null(value=True)
    rows = series.with_columns(begins.alias("__begins__")).filter(nw.col("__begins__"))
    return Counter(plain(one) for one in rows["__value__"].to_list())


def _check_times(rows: nw.DataFrame[Any], order_by: str) -> None:
    """Raise for repeated times and for gaps; the message counts them and shows none."""
    times = rows[order_by]
    inside = rows["__same__"].to_numpy().astype(np.bool_)
    inside[0] = False
    before = times.shift(1)
    repeated = int((times == before).fill_null(value=False).to_numpy()[inside].sum())
    if repeated:
        raise ModelError(
            f"column {order_by} repeats {repeated} times within a series; keep one row for each."
        )
    if not (times.dtype.is_numeric() or times.dtype.is_temporal()) or not inside.any():
        return
    numbers = times.to_numpy()
    numbers = numbers.astype(np.int64 if times.dtype.is_temporal() else np.float64)
    steps = np.diff(numbers.astype(np.float64))[inside[1:]]
    gaps = int(np.sum(steps > 1.5 * np.median(steps)))
    if gaps:
        raise ModelError(
            f"column {order_by} has {gaps} gaps (steps longer than 1.5 times the usual one), across"
            " which the next state is not one transition away. Fill them, or split the series."
        )


def rows_of(frame: Any, columns: Sequence[Hashable]) -> Iterator[tuple[Hashable, ...]]:
    """Yield the rows of the columns, in order; for releases row by row only."""
    for row in _frame(frame).select(*(cast("str", column) for column in columns)).iter_rows():
        yield tuple(plain(value) for value in row)


def _frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise ModelError(f"a DataFrame is needed, got {type(frame).__name__}.") from error
