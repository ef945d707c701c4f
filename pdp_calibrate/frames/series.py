"""Series in a long frame: checked, and counted by runs of neighbouring values."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from pdp_calibrate.arrays import FloatArray, plain
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.open import asks_the_engine, collected, how_many, one_row, refuse_words
from pdp_calibrate.frames.order import GROUP, ORDER, VALUE, before, check_times, series_in
from pdp_calibrate.frames.products import refuse_infinite, typical, well_centred

_LONGEST_RUN = 3


_EARLIER = [f"__{lag}__" for lag in range(_LONGEST_RUN)]  # lag 0 is the value itself


@dataclass(frozen=True, kw_only=True)
class OrderedSeries:
    """Series that have been checked; the rows stay in their frame engine."""

    table: nw.LazyFrame[Any] = field(repr=False)
    """The columns ``__group__``, ``__order__`` and ``__value__``."""
    value: str
    """The name of the column of values."""
    kind: nw.dtypes.DType
    """Its type."""
    lengths: Counter[int]
    """How many series there are of each length."""

    @functools.cached_property
    def triples(self) -> Counter[tuple[Hashable, ...]]:
        """How often each run of up to three neighbours occurs; None before the beginning.

        One pass: shorter runs and first values are sums of these.
        """
        return _triples(self)


@asks_the_engine
def ordered_series(
    frame: Any,
    value: str,
    *,
    by: str | None,
    order_by: str | None,
    time_format: str | None = None,
) -> OrderedSeries:
    """Check a long frame of series, which need not be sorted.

    Without `order_by` rows keep their order; its text is read by `time_format`, or as ISO 8601.
    Raises for times that occur twice in a series, and for gaps: steps longer than one and a half
    times the shortest one.
    """
    table, kinds, _, times = series_in(
        frame, value, by=by, order_by=order_by, time_format=time_format
    )
    if order_by is not None:
        check_times(table, times)
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
    """Count how often each run of neighbouring values, of this length, occurs within a series."""
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
