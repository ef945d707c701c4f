"""Series in a long frame: checked, and counted by runs of neighbouring values."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from pdp_calibrate.arrays import FloatArray, plain
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.counts import MISSING, group_sizes
from pdp_calibrate.frames.open import (
    asks_the_engine,
    collected,
    how_many,
    is_missing,
    one_row,
    refuse_words,
)
from pdp_calibrate.frames.order import GROUP, ORDER, VALUE, before, check_times, series_in

_LONGEST_RUN = 3


_EARLIER = [f"__{lag}__" for lag in range(_LONGEST_RUN)]  # lag 0 is the value itself
_THERE = [f"__there{lag}__" for lag in range(_LONGEST_RUN)]  # whether there is a row so early


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
    positioned: bool
    """Whether rows have times, which series share; otherwise they only have an order."""

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
    gaps: bool = False,
) -> OrderedSeries:
    """Check a long frame of series, which need not be sorted.

    Without `order_by` rows keep their order; its text is read by `time_format`, or as ISO 8601.
    Missing values raise, or with `gaps` count as `MISSING`.
    Raises for times that occur twice in a series, and for gaps: steps longer than one and a half
    times the shortest one.
    """
    table, kinds, _, times = series_in(
        frame, value, by=by, order_by=order_by, time_format=time_format, gaps=gaps
    )
    if order_by is not None:
        check_times(table, times)
    return OrderedSeries(
        table=table,
        value=value,
        kind=kinds[VALUE],
        lengths=group_sizes(frame, by),
        positioned=order_by is not None,
    )


@asks_the_engine
def _triples(series: OrderedSeries) -> Counter[tuple[Hashable, ...]]:
    table = series.table.with_columns(nw.lit(1).alias("__one__"))
    runs = table.select(
        *(before(VALUE, lag).alias(_EARLIER[lag]) for lag in (2, 1)),
        nw.col(VALUE).alias(_EARLIER[0]),
        *(before("__one__", lag).alias(_THERE[lag]) for lag in (2, 1)),
        nw.col("__one__").alias(_THERE[0]),
    )
    counted = collected(runs.group_by(*_EARLIER, *_THERE).agg(nw.len().alias("__count__")))
    columns = []
    for name, there in zip(reversed(_EARLIER), reversed(_THERE), strict=True):
        held = [plain(one) for one in counted[name].to_list()]
        gaps = counted.select(is_missing(name, counted[name].dtype))[name].to_list()
        before_it = counted[there].is_null().to_list()
        columns.append(
            [
                None if earlier else MISSING if gap else one
                for one, gap, earlier in zip(held, gaps, before_it, strict=True)
            ]
        )
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
    """Return the distinct values that are not missing."""
    return list(dict.fromkeys(run[-1] for run in series.triples if run[-1] is not MISSING))


def first_values(series: OrderedSeries) -> Counter[Hashable]:
    """Count the values with which series begin."""
    found: Counter[Hashable] = Counter()
    for run, count in series.triples.items():
        if run[-2] is None:
            found[run[-1]] += count
    return found


@dataclass(frozen=True, kw_only=True)
class NeighbourSums:
    """Sums over consecutive values of a panel, centred by position."""

    apart: float
    """Σ((y' − y)/2)² over neighbours."""
    together: float
    """Σ((y' + y)/2)² over neighbours."""
    squares: float
    """Σ y² over all values."""
    cubes: float
    """Σ y³ over all values."""
    fourths: float
    """Σ y⁴ over all values."""
    panels: Counter[int]
    """How many independent series of each length centring leaves."""
    one_mean: bool
    """Whether there is one series, centred at one mean for all positions."""
    rows: int
    """How many values there are."""
    outside: int
    """How many of them are at an end of the public range, or beyond."""
    lagged: FloatArray
    """Sums of products of y_t, y_{t−1} and y_{t−4}, where all three exist: 3 × 3."""
    lags: int
    """How many such triples there are."""


@asks_the_engine
def ordered_values(series: OrderedSeries) -> FloatArray:
    """Return the values of a single series, in order of time; of public rows."""
    refuse_words(series.value, series.kind)
    held = collected(series.table.select(ORDER, nw.col(VALUE).cast(nw.Float64))).sort(ORDER)
    return np.asarray(held[VALUE].to_numpy(), dtype=np.float64)


_COHORT = ["__size__", "__first__", "__last__"]


@asks_the_engine
def neighbour_sums(series: OrderedSeries, bounds: tuple[float, float]) -> NeighbourSums:
    """Centre values by position among all series that stand at the same positions; add up products.

    Positions are the times, or ranks where rows have no times. Which series stand where is public.
    """
    refuse_words(series.value, series.kind)
    table = series.table.select(GROUP, ORDER, nw.col(VALUE).cast(nw.Float64))
    refuse_infinite_values(table, series.value)
    table = table.with_columns(nw.lit(1).alias("__one__")).with_columns(
        nw.col("__one__").sum().over(GROUP).alias("__size__")
    )
    if series.positioned:
        first, last, place = nw.col(ORDER).min(), nw.col(ORDER).max(), nw.col(ORDER)
        table = table.with_columns(
            first.over(GROUP).alias("__first__"), last.over(GROUP).alias("__last__")
        ).with_columns(place.alias("__place__"))
    else:
        rank = nw.col("__one__").cum_sum().over(GROUP, order_by=ORDER)
        table = table.with_columns(
            nw.lit(0).alias("__first__"), nw.lit(0).alias("__last__"), rank.alias("__place__")
        )
    panels = _panels(table)
    one_mean = sum(series.lengths.values()) == 1
    if one_mean:
        mean = float(one_row(table.select(nw.col(VALUE).mean().alias("mean")))["mean"])
        centred, panels = nw.col(VALUE) - mean, Counter(series.lengths)
    else:
        centred = nw.col(VALUE) - nw.col(VALUE).mean().over(*_COHORT, "__place__")
    low, high = bounds
    cell = nw.col(VALUE)
    table = table.select(
        GROUP,
        ORDER,
        centred.alias(VALUE),
        ((cell <= low) | (cell >= high)).alias("outside"),
    )
    lagged = table.select(
        "outside",
        nw.col(VALUE).alias("y0"),
        before(VALUE, 1).alias("y1"),
        before(VALUE, 4).alias("y4"),
    )
    now, earlier, early = nw.col("y0"), nw.col("y1"), nw.col("y4")
    held = ~early.is_null()
    terms = {"y0": now, "y1": earlier, "y4": early}
    names = list(terms)
    found = one_row(
        lagged.select(
            nw.len().alias("rows"),
            how_many(nw.col("outside")).alias("at_ends"),
            how_many(held).alias("lags"),
            (now * now).sum().alias("squares"),
            (now * now * now).sum().alias("cubes"),
            (now * now * now * now).sum().alias("fourths"),
            ((now - earlier) * (now - earlier) / 4).sum().alias("apart"),
            ((now + earlier) * (now + earlier) / 4).sum().alias("together"),
            *(
                nw.when(held).then(terms[i] * terms[j]).sum().alias(f"{i} {j}")
                for k, i in enumerate(names)
                for j in names[k:]
            ),
        )
    )
    sums = {name: float(number or 0.0) for name, number in found.items()}
    together = sums["together"]
    if one_mean:  # (y' + y)/2 has a mean of its own over the pairs
        ends = one_row(lagged.select((now + earlier).sum().alias("sum")))["sum"]
        pairs = int(sums["rows"]) - 1
        together = max(0.0, together - float(ends or 0.0) ** 2 / 4 / max(1, pairs))
    products = [[sums[f"{min(i, j)} {max(i, j)}"] for j in names] for i in names]
    return NeighbourSums(
        apart=sums["apart"],
        together=together,
        squares=sums["squares"],
        cubes=sums["cubes"],
        fourths=sums["fourths"],
        panels=panels,
        one_mean=one_mean,
        rows=int(sums["rows"]),
        outside=int(sums["at_ends"]),
        lagged=np.array(products),
        lags=int(sums["lags"]),
    )


def _panels(table: nw.LazyFrame[Any]) -> Counter[int]:
    """Return how many independent series of each length are left: H − 1 of H that are alike."""
    cells = table.group_by(*_COHORT, "__place__").agg(nw.len().alias("__count__"))
    cohorts = collected(
        cells.group_by(*_COHORT).agg(
            nw.col("__count__").max().alias("most"), nw.col("__count__").min().alias("least")
        )
    )
    found: Counter[int] = Counter()
    for size, most, least in zip(
        *(cohorts[name].to_list() for name in ("__size__", "most", "least")), strict=True
    ):
        if most != least:
            raise ModelError(
                "series that begin and end together have other times in between: give order_by= a"
                " column that counts positions."
            )
        found[int(size)] += int(most) - 1
    return found


def refuse_infinite_values(table: nw.LazyFrame[Any], value: str) -> None:
    """Raise for values that are not finite; missing ones have been refused before."""
    most = one_row(table.select(nw.col(VALUE).abs().max().alias("most")))["most"]
    if most is None or not math.isfinite(most):
        raise ModelError(f"column {value} has infinite cells; it must be finite.")
