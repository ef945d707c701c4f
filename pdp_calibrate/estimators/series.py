"""Series in a long frame: checked, and counted by runs of neighbouring values."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.statistics import group_sizes
from pdp_calibrate.estimators.statistics.frames import (
    asks_the_engine,
    collected,
    how_many,
    one_row,
    refuse_words,
)
from pdp_calibrate.estimators.statistics.order import GROUP, ORDER, VALUE, before, ordered
from pdp_calibrate.estimators.statistics.products import refuse_infinite, typical, well_centred
from pdp_calibrate.models.base import FloatArray, plain

_LONGEST_RUN = 3
_EARLIER = [f"__{lag}__" for lag in range(_LONGEST_RUN)]  # lag 0 is the value itself


@dataclass(frozen=True, kw_only=True)
class OrderedSeries:
    """Series that have been checked; the rows stay in their engine."""

    table: nw.LazyFrame[Any] = field(repr=False)
    """The columns ``__group__``, ``__order__`` and ``__value__``."""
    value: str
    """What the column of values is called."""
    kind: nw.dtypes.DType
    """Its type."""
    lengths: Counter[int]
    """How many series there are of each length."""

    @functools.cached_property
    def triples(self) -> Counter[tuple[Hashable, ...]]:
        """How often each run of up to three neighbours ends somewhere; None before the beginning.

        One pass: shorter runs and first values are sums of these.
        """
        return _triples(self)


@asks_the_engine
def ordered_series(
    frame: Any, value: str, *, by: str | None, order_by: str | None
) -> OrderedSeries:
    """Check a long frame of series, which need not be sorted.

    Rows keep their order where there is no `order_by`. Raises for times that occur twice in a
    series, and for gaps: steps longer than one and a half times the usual one.
    """
    table, kinds, _ = ordered(frame, value, by=by, order_by=order_by)
    if order_by is not None:
        _check_times(table, order_by, kinds[ORDER])
    return OrderedSeries(
        table=table, value=value, kind=kinds[VALUE], lengths=group_sizes(frame, by)
    )


@asks_the_engine
def _triples(series: OrderedSeries) -> Counter[tuple[Hashable, ...]]:
    runs = series.table.select(*(before(VALUE, lag).alias(_EARLIER[lag]) for lag in (2, 1)), VALUE)
    runs = runs.select(*_EARLIER[:0:-1], nw.col(VALUE).alias(_EARLIER[0]))
    counted = collected(runs.group_by(*reversed(_EARLIER)).agg(nw.len().alias("__count__")))
    columns = []
    for name in reversed(_EARLIER):
        held, absent = counted[name].to_list(), counted[name].is_null().to_list()
        columns.append([None if gap else plain(one) for one, gap in zip(held, absent, strict=True)])
    found: Counter[tuple[Hashable, ...]] = Counter()
    for run, count in zip(zip(*columns, strict=True), counted["__count__"].to_list(), strict=True):
        found[run] += int(count)
    return found


def runs(series: OrderedSeries, length: int) -> Counter[tuple[Hashable, ...]]:
    """Count how often each run of so many neighbouring values occurs within a series."""
    found: Counter[tuple[Hashable, ...]] = Counter()
    for run, count in series.triples.items():
        if run[-length] is not None:
            found[run[-length:]] += count
    return found


def values_in(series: OrderedSeries) -> list[Hashable]:
    """Return the distinct values."""
    return list(dict.fromkeys(run[-1] for run in series.triples))


def first_values(series: OrderedSeries) -> Counter[Hashable]:
    """Count the values with which series begin."""
    found: Counter[Hashable] = Counter()
    for run, count in series.triples.items():
        if run[-2] is None:
            found[run[-1]] += count
    return found


@dataclass(frozen=True, kw_only=True)
class NeighbourProducts:
    """Sums over consecutive values, centred at the mean of all."""

    pairs: int
    """How many pairs of neighbours there are."""
    product: float
    """Σ x_t·x_{t+1}."""
    spread: float
    """(Σ x_t² + Σ x_{t+1}²)/2 over the same pairs; 0 if it is only rounding."""
    variance: float
    """The mean of x_t² over all values."""


@asks_the_engine
def neighbour_products(series: OrderedSeries) -> NeighbourProducts:
    """Multiply each value with the one before. One pass."""
    refuse_words(series.value, series.kind)
    table = series.table.select(GROUP, ORDER, nw.col(VALUE).cast(nw.Float64))
    kept: dict[str, float] = {}

    def summed(centre: FloatArray) -> tuple[int, FloatArray, FloatArray]:
        moved = table.select(GROUP, ORDER, (nw.col(VALUE) - float(centre[0])).alias(VALUE))
        pairs = moved.select(
            nw.col(VALUE).alias("later"), before(VALUE, 1).alias("earlier")
        ).with_columns(nw.when(~nw.col("earlier").is_null()).then(nw.col("later")).alias("next"))
        one, other, every = nw.col("earlier"), nw.col("next"), nw.col("later")
        found = one_row(
            pairs.select(
                nw.len().alias("rows"),
                how_many(~one.is_null()).alias("pairs"),
                every.sum().alias("sum"),
                (every * every).sum().alias("squares"),
                (one.sum() + other.sum()).alias("ends"),
                (one * other).sum().alias("product"),
                ((one * one).sum() + (other * other).sum()).alias("end_squares"),
            )
        )
        refuse_infinite(table, [VALUE], np.array([found["squares"]]), [series.value])
        kept.update({name: float(number or 0.0) for name, number in found.items()})
        rows, shift = int(found["rows"]), found["sum"] / found["rows"]
        return rows, np.array([shift]), np.array([[found["squares"] - rows * shift**2]])

    rows, mean, squares = well_centred(summed, typical(table, [VALUE]))
    shift, pairs = kept["sum"] / rows, kept["pairs"]
    spread = (kept["end_squares"] - 2 * shift * kept["ends"] + 2 * pairs * shift**2) / 2
    rounding = rows * (16 * 2.0**-53 * float(mean[0])) ** 2
    return NeighbourProducts(
        pairs=int(pairs),
        product=kept["product"] - shift * kept["ends"] + pairs * shift**2,
        spread=spread if spread > rounding else 0.0,
        variance=float(squares[0, 0]) / rows,
    )


def _check_times(table: nw.LazyFrame[Any], order_by: str, kind: nw.dtypes.DType) -> None:
    """Raise for repeated times and for gaps; the message counts them and shows none."""
    again = (nw.col(ORDER) == before(ORDER, 1)).fill_null(value=False)
    sums = [nw.col("again").sum()]
    columns = [again.cast(nw.Int64).alias("again")]
    if kind.is_numeric() or kind.is_temporal():
        table = table.with_columns(_as_number(kind).alias("__time__"))
        columns.append((nw.col("__time__") - before("__time__", 1)).alias("step"))
        sums += [nw.col("step").median().alias("usual"), nw.col("step").max().alias("longest")]
    steps = table.select(*columns)
    found = one_row(steps.select(*sums))
    if found["again"]:
        raise ModelError(
            f"column {order_by} repeats a time within a series; keep one row for each."
        )
    usual, longest = found.get("usual"), found.get("longest")
    if usual is None or longest is None or not longest > 1.5 * usual:
        return
    raise ModelError(
        f"column {order_by} has gaps (steps longer than 1.5 times the usual one),"
        " across which the next state is not one transition away. Fill them, or split the series."
    )


def _as_number(kind: nw.dtypes.DType) -> nw.Expr:
    """Return times as numbers; engines agree on calendar fields, on little else."""
    time = nw.col(ORDER)
    if kind.is_numeric():
        return time.cast(nw.Float64)
    if kind == nw.Duration:
        return time.dt.total_microseconds().cast(nw.Int64)
    if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
        time = time.dt.convert_time_zone("UTC")
    seconds = nw.lit(0)
    if kind != nw.Time:
        last = time.dt.year().cast(nw.Int64) - 1
        leaps = last // 4 - last // 100 + last // 400
        seconds = (365 * last + leaps + time.dt.ordinal_day().cast(nw.Int64)) * 86400
    if kind == nw.Date:
        return seconds
    clock = time.dt.hour().cast(nw.Int64) * 3600 + time.dt.minute().cast(nw.Int64) * 60
    seconds = seconds + clock + time.dt.second().cast(nw.Int64)
    return seconds * 1_000_000 + time.dt.microsecond().cast(nw.Int64)
