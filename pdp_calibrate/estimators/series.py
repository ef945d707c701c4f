"""Series in a long frame: sorted, checked, and counted by runs of neighbouring values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import narwhals as nw
import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.statistics import complete_rows
from pdp_calibrate.models.base import plain


def ordered_series(
    frame: Any, value: str, *, by: str | None, order_by: str | None
) -> tuple[list[Hashable], nw.DataFrame[Any]]:
    """Sort a long frame into series, one after the other.

    Returns the values in order, and a frame with the columns ``__series__`` (a number per series)
    and ``__value__``. Rows keep their order where there is no `order_by`. Raises for times that
    occur twice in a series, and for gaps: steps longer than one and a half times the usual one.
    """
    names = [value, *([by] if by else []), *([order_by] if order_by else [])]
    chosen, _ = complete_rows(frame, names)
    rows = chosen.with_row_index("__row__")
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
