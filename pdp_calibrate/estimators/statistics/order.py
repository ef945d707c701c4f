"""Places inside ordered groups: what needs a window function of the engine."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import narwhals as nw

from pdp_calibrate.errors import FrameError, ModelError
from pdp_calibrate.estimators.statistics.counts import counts_in
from pdp_calibrate.estimators.statistics.exact_sums import (
    CELLS,
    ClampedSum,
    Range,
    checked_sum,
    grid_cells,
)
from pdp_calibrate.estimators.statistics.frames import (
    asks_the_engine,
    check_complete,
    check_roles,
    chosen,
    collected,
    in_memory,
    is_missing,
    refuse_changed,
)

GROUP, ORDER, VALUE = "__group__", "__order__", "__value__"


def ordered(
    frame: Any, value: Hashable, *, by: Hashable | None, order_by: Hashable | None
) -> tuple[nw.LazyFrame[Any], dict[str, nw.dtypes.DType], int]:
    """Return the columns ``__value__``, ``__group__`` and ``__order__``, their types, and N.

    Without `by` all rows are one group. Without `order_by` rows stand in their order, which only a
    frame in memory has.
    """
    check_roles(value, by=by, order_by=order_by)
    if order_by is None:
        held = in_memory(frame)
        if held is None:
            raise FrameError(
                "this frame is computed by an engine that keeps no order of rows: name the column"
                " that orders them with order_by=."
            )
        frame, order_by = held.with_row_index("__row__").to_native(), "__row__"
    columns = {VALUE: value, ORDER: order_by} | ({} if by is None else {GROUP: by})
    table, names, schema = chosen(frame, list(columns.values()))
    if table.implementation.is_dask():
        raise FrameError(
            "Dask has no window functions that follow an order, which this needs: bring it into"
            " memory first, or read the same data with DuckDB, polars or Spark."
        )
    rows = check_complete(table, names, schema)
    renamed = [nw.col(name).alias(new) for new, name in zip(columns, names, strict=True)]
    table = table.select(*renamed, *([nw.lit(0).alias(GROUP)] if by is None else []))
    return table, {new: schema[name] for new, name in zip(columns, names, strict=True)}, rows


def before(column: str, steps: int) -> nw.Expr:
    """Return what a column held so many steps earlier in the same group; null at the beginning."""
    return nw.col(column).shift(steps).over(GROUP, order_by=ORDER)


def _ranked(table: nw.LazyFrame[Any], kinds: Mapping[str, nw.dtypes.DType]) -> nw.LazyFrame[Any]:
    """Add ``__size__`` and ``__rank__``, from 1, and what may be wrong with a row's place."""
    gaps = [is_missing(name, kinds[name]) for name in (GROUP, ORDER) if name in kinds]
    return table.with_columns(nw.lit(1).alias("__one__")).with_columns(
        nw.col("__one__").sum().over(GROUP).alias("__size__"),
        # Not cum_count, which forgets the order on pandas frames (narwhals 2.28).
        nw.col("__one__").cum_sum().over(GROUP, order_by=ORDER).alias("__rank__"),
        (nw.col(ORDER) == before(ORDER, 1))
        .fill_null(value=False)
        .cast(nw.Int64)
        .alias("__again__"),
        functools.reduce(operator.or_, gaps).cast(nw.Int64).alias("__gap__"),
    )


def _sizes(counted: nw.DataFrame[Any], order_by: Hashable, *, rows: int) -> Counter[int]:
    """Check rows counted by size and rank; return how many groups there are of each size.

    Both are from the query that adds the values up, whatever an earlier one has seen.
    """
    if sum(counted["__again__"].to_list()):
        raise ModelError(f"column {order_by} has two equal entries in one group.")
    numbers = counted["__count__"].to_list()
    refuse_changed(rows, sum(numbers))
    refuse_changed(0, sum(counted["__gap__"].to_list()))  # there were none before
    sizes: Counter[int] = Counter()
    for size, rank, number in zip(
        counted["__size__"].to_list(), counted["__rank__"].to_list(), numbers, strict=True
    ):
        sizes[int(size)] += int(number) * (rank == 1)
    return sizes


@asks_the_engine
def contingency_by_rank(
    frame: Any, value: Hashable, *, by: Hashable | None, order_by: Hashable
) -> tuple[Counter[tuple[int, int, Hashable]], Counter[int]]:
    """Count (size of the group, place in it from 0, value), and groups by size: in one query."""
    table, kinds, rows = ordered(frame, value, by=by, order_by=order_by)
    names = ["__size__", "__rank__", VALUE]
    counted = _counted(_ranked(table, kinds), names, [])
    sizes = _sizes(counted, order_by, rows=rows)
    whole = dict.fromkeys(names[:2], nw.Int64())
    found = counts_in(counted, whole | {VALUE: kinds[VALUE]})
    return Counter(
        {
            (int(cast("int", size)), int(cast("int", rank)) - 1, held): count
            for (size, rank, held), count in found.items()
        }
    ), sizes


@asks_the_engine
def clamped_sums_by_rank(
    frame: Any,
    value: Hashable,
    bounds: Range,
    *,
    by: Hashable | None,
    order_by: Hashable,
    clamp: bool,
) -> tuple[dict[tuple[int, int], ClampedSum], Counter[int]]:
    """Add up the values of each (size of the group, place in it from 0), inside their bounds.

    Returns the sums, and how many groups there are of each size, from one query.
    """
    table, kinds, rows = ordered(frame, value, by=by, order_by=order_by)
    cells = grid_cells(VALUE, kinds[VALUE], bounds, rows=rows, place=0)
    keys = ["__size__", "__rank__"]
    ranked = _ranked(table, kinds).select(*keys, "__again__", "__gap__", *cells)
    counted = _counted(ranked, keys, [f"{what}0" for what in CELLS])
    sizes = _sizes(counted, order_by, rows=rows)
    sums = {}
    for row in counted.iter_rows(named=True):
        place = int(row["__size__"]), int(row["__rank__"]) - 1
        sums[place] = checked_sum(row, value, bounds, rows=rows, place=0, clamp=clamp)
    return sums, sizes


def _counted(
    ranked: nw.LazyFrame[Any], keys: Sequence[str], added: Sequence[str]
) -> nw.DataFrame[Any]:
    """Count the rows of each key, and add columns up."""
    names = ["__again__", "__gap__", *added]
    counted = ranked.group_by(*keys).agg(
        nw.len().alias("__count__"), *(nw.col(name).sum() for name in names)
    )
    numbers = [*(key for key in keys if key != VALUE), "__count__", *names]
    kept = [key for key in keys if key == VALUE]
    return collected(counted.select(*kept, *(nw.col(one).cast(nw.Int64) for one in numbers)))
