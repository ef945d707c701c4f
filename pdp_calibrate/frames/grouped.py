"""The sums over the rows of groups, and the sizes of the groups, from one query.

A scale is proved for groups of certain sizes. If others write to the table, the sizes that one
query sees say nothing about the rows that the next one adds up. So both come from the same query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from pdp_calibrate.arrays import plain
from pdp_calibrate.frames.counts import counts_in, refuse_lists
from pdp_calibrate.frames.open import (
    asks_the_engine,
    chosen,
    collected,
    is_missing,
    refuse_changed,
    refuse_empty,
    refuse_missing,
    rows_in,
)
from pdp_calibrate.frames.sums import CELLS, ClampedSum, Range, checked_sum, grid_cells

_EVERYONE, _ROWS, _GAP, _SIZE = "__everyone__", "__count__", "__gap__", "__size__"


@dataclass(frozen=True, kw_only=True)
class Grouped:
    """One reading of the column of values of a long frame."""

    column: Hashable
    """Which column."""
    sizes: Counter[int]
    """How many groups there are of each size."""
    counts: Counter[Hashable] = field(default_factory=Counter)
    """How often each value occurs, where values were counted."""
    sum: ClampedSum | None = None
    """The sum of the values inside their bounds, where they were added up."""


@asks_the_engine
def read_groups(
    frame: Any,
    value: Hashable,
    *,
    by: Hashable | None,
    bounds: Range | None = None,
    clamp: bool = False,
) -> Grouped:
    """Count the values of groups, or add them up, and count the rows of groups: in one query.

    Parameters
    ----------
    frame
        One row per value.
    value
        The column of values.
    by
        The column that names the group; None if all rows are one group.
    bounds
        Add the values up inside these bounds; count them if None.
    clamp
        Whether to move values outside to the nearest end, or to refuse them.
    """
    named = [column for column in (value, by) if column is not None]
    table, names, schema = chosen(frame, named)
    column, group = names[0], _EVERYONE if by is None else names[1]
    if by is None:
        table = table.with_columns(nw.lit(0).alias(_EVERYONE))
    if bounds is None:
        refuse_lists(frame, column, schema[column])
        small = _collected(table, schema, group=group, values=[column], added=[])
    else:
        rows = rows_in(frame)
        refuse_empty(rows)
        cells = grid_cells(column, schema[column], bounds, rows=rows, place=0)
        added = [f"{what}0" for what in CELLS]
        small = _collected(table.select(group, *cells), schema, group=group, values=[], added=added)
    held: dict[str, list[Any]] = {one: small[one].to_list() for one in small.columns}
    refuse_missing(by, sum(n for n, gap in zip(held[_ROWS], held[_GAP], strict=True) if gap))
    counts_in(small, {column: schema[column]} if bounds is None else {_SIZE: nw.Int64()})  # no gaps
    sizes = _groups(held)
    if bounds is None:
        counts: Counter[Hashable] = Counter()
        for held_value, number in zip(held[column], held[_ROWS], strict=True):
            counts[plain(held_value)] += int(number)
        return Grouped(column=value, sizes=sizes, counts=counts)
    sums = {one: sum(map(int, held[one])) for one in added}
    total = checked_sum(sums, value, bounds, rows=rows, place=0, clamp=clamp)
    refuse_changed(rows, sum(held[_ROWS]))
    return Grouped(column=value, sizes=sizes, sum=total)


def _collected(
    table: nw.LazyFrame[Any],
    schema: Mapping[str, nw.dtypes.DType],
    *,
    group: str,
    values: list[str],
    added: list[str],
) -> nw.DataFrame[Any]:
    """Count rows, and add columns up, by value and size of the group.

    Groups come first, and their sizes are sums over what was counted: one query, one reading.
    """
    found = table.group_by(*dict.fromkeys([group, *values])).agg(
        nw.len().alias(_ROWS), *(nw.col(one).sum() for one in added)
    )
    gap = is_missing(group, schema[group]) if group in schema else nw.lit(value=False)
    found = found.with_columns(nw.col(one).cast(nw.Int64) for one in (_ROWS, *added))
    # A window is needed only where a group is in several rows here.
    size = nw.col(_ROWS).sum().over(group) if {*values} - {group} else nw.col(_ROWS)
    found = found.with_columns(size.alias(_SIZE), gap.cast(nw.Int64).alias(_GAP))
    found = found.group_by(_SIZE, _GAP, *values).agg(nw.col(one).sum() for one in (_ROWS, *added))
    # Engines may widen sums, and hand wider numbers over as floats.
    numbers = (_SIZE, _GAP, _ROWS, *added)
    return collected(found.select(*values, *(nw.col(one).cast(nw.Int64) for one in numbers)))


def _groups(held: Mapping[str, list[Any]]) -> Counter[int]:
    """Return how many groups there are of each size, from their rows together."""
    rows: Counter[int] = Counter()
    for size, number in zip(held[_SIZE], held[_ROWS], strict=True):
        rows[int(size)] += int(number)
    return Counter({size: number // size for size, number in rows.items()})
