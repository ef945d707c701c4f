"""Counts or sums of the values of groups, and the sizes of the groups, from one query.

A scale is proved for groups of certain sizes. If other programs write to the table, the sizes that
one query sees need not be those of the rows that the next query adds up. So one query returns both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import narwhals as nw

from pdp_calibrate.arrays import plain
from pdp_calibrate.frames.counts import contingency, counts_in, group_sizes, refuse_lists
from pdp_calibrate.frames.open import (
    asks_the_engine,
    chosen,
    collected,
    described,
    in_memory,
    is_missing,
    refuse_changed,
    refuse_empty,
    refuse_missing,
    rows_in,
)
from pdp_calibrate.frames.sums import (
    ClampedSum,
    Range,
    checked_sum,
    clamped_sums,
    grid_cells,
)

_EVERYONE, _ROWS, _GAP, _SIZE = "__everyone__", "__count__", "__gap__", "__size__"


# What may be wrong with a value, as one number: `checked_sum` reports the first of missing,
# infinite and outside, so the largest number of all rows is enough.
_WRONG = "__wrong__"
_FLAGS = {"outside0": 1, "infinite0": 2, "missing0": 4}
_FEW = 8  # values that get a column each
_TOTALS = {"units0": nw.col("units0").sum(), _WRONG: nw.col(_WRONG).max()}


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
    domain: Sequence[Hashable] = (),
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
    domain
        The values that may occur. Where they are counted one by one, all others count as None.
    """
    if in_memory(frame) is not None:
        return _read_in_memory(frame, value, by=by, bounds=bounds, clamp=clamp)
    named = [column for column in (value, by) if column is not None]
    table, names, schema = chosen(frame, named)
    column, group = names[0], _EVERYONE if by is None else names[1]
    if by is None:
        table = table.with_columns(nw.lit(0).alias(_EVERYONE))
    if bounds is None and _is_short(domain, schema[column]):
        return _read_short(table, schema, value, by=by, names=(column, group), domain=domain)
    if bounds is None:
        refuse_lists(frame, column, schema[column])
        small = _collected(table, schema, group=group, values=[column], totals={})
    else:
        rows = rows_in(frame)
        refuse_empty(rows)
        cells = grid_cells(column, schema[column], bounds, rows=rows, place=0)
        packed = table.select(group, *cells).select(group, "units0", _wrong())
        small = _collected(packed, schema, group=group, values=[], totals=_TOTALS)
    held: dict[str, list[Any]] = {one: small[one].to_list() for one in small.columns}
    refuse_missing(by, sum(n for n, gap in zip(held[_ROWS], held[_GAP], strict=True) if gap))
    counts_in(small, {column: schema[column]} if bounds is None else {_SIZE: nw.Int64()})  # checks
    sizes = _groups(held)
    if bounds is None:
        counts: Counter[Hashable] = Counter()
        for held_value, number in zip(held[column], held[_ROWS], strict=True):
            counts[plain(held_value)] += int(number)
        return Grouped(column=value, sizes=sizes, counts=counts)
    worst = max(map(int, held[_WRONG]))
    found: dict[str, Any] = {flag: worst >= place for flag, place in _FLAGS.items()}
    found["units0"] = sum(map(int, held["units0"]))
    total = checked_sum(found, value, bounds, rows=rows, place=0, clamp=clamp)
    refuse_changed(rows, sum(held[_ROWS]))
    return Grouped(column=value, sizes=sizes, sum=total)


def _wrong() -> nw.Expr:
    """Return what is wrong with the value of each row; flags may be null where the value is."""
    return nw.sum_horizontal(*(nw.col(one) * place for one, place in _FLAGS.items())).alias(_WRONG)


def _is_short(domain: Sequence[Hashable], kind: nw.dtypes.DType) -> bool:
    """Whether a column holds whole numbers, and only a few stated ones may occur.

    Engines differ in how they compare anything else: floats of several widths, text of categories.
    """
    return (
        0 < len(domain) <= _FEW
        and kind in (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16)
        and all(isinstance(one, int) and abs(one) < 2**31 for one in domain)
    )


def _read_short(
    table: nw.LazyFrame[Any],
    schema: Mapping[str, nw.dtypes.DType],
    value: Hashable,
    *,
    by: Hashable | None,
    names: tuple[str, str],
    domain: Sequence[Hashable],
) -> Grouped:
    """Count a few values, with a column for each: pairs of group and value would be many more."""
    column, group = names
    held_names = [f"__held{place}__" for place in range(len(domain))]
    number = nw.col(column)
    if schema[column] == nw.Boolean:  # no other cast: text in some partition equals no number
        number = number.cast(nw.Int64)
    cells = [
        (number == nw.lit(int(cast("int", one)))).fill_null(value=False).cast(nw.Int64).alias(name)
        for one, name in zip(domain, held_names, strict=True)
    ]
    gap = is_missing(column, schema[column]).cast(nw.Int64).alias(_WRONG)
    totals = {name: nw.col(name).sum() for name in held_names} | {_WRONG: nw.col(_WRONG).max()}
    small = _collected(
        table.select(group, *cells, gap), schema, group=group, values=[], totals=totals
    )
    held: dict[str, list[Any]] = {one: small[one].to_list() for one in small.columns}
    refuse_empty(len(held[_ROWS]))
    refuse_missing(by, sum(n for n, gap in zip(held[_ROWS], held[_GAP], strict=True) if gap))
    refuse_missing(value, any(held[_WRONG]))
    counts: Counter[Hashable] = Counter(
        {one: sum(map(int, held[name])) for one, name in zip(domain, held_names, strict=True)}
    )
    counts[None] = sum(map(int, held[_ROWS])) - counts.total()
    return Grouped(column=value, sizes=_groups(held), counts=+counts)


def _read_in_memory(
    frame: Any, value: Hashable, *, by: Hashable | None, bounds: Range | None, clamp: bool
) -> Grouped:
    """Read one column after the other: no other program writes to a frame in memory."""
    described(frame, [value])  # refuses a column that does not exist, before any is read
    sizes = group_sizes(frame, by)
    if bounds is None:
        counts = Counter({one: n for (one,), n in contingency(frame, [value]).items()})
        refuse_changed(_rows(sizes), counts.total())
        return Grouped(column=value, sizes=sizes, counts=counts)
    sums, rows = clamped_sums(frame, {value: bounds}, clamp=clamp)
    refuse_changed(_rows(sizes), rows)
    return Grouped(column=value, sizes=sizes, sum=sums[value])


def _rows(sizes: Counter[int]) -> int:
    """Return how many rows groups of these sizes have together."""
    return sum(size * number for size, number in sizes.items())


def _collected(
    table: nw.LazyFrame[Any],
    schema: Mapping[str, nw.dtypes.DType],
    *,
    group: str,
    values: list[str],
    totals: Mapping[str, nw.Expr],
) -> nw.DataFrame[Any]:
    """Count rows, and add up totals, by value and size of the group.

    Rows are counted by group first, and sizes are sums of these counts: one query reads once.
    """
    found = table.group_by(*dict.fromkeys([group, *values])).agg(
        nw.len().alias(_ROWS), *totals.values()
    )
    gap = is_missing(group, schema[group]) if group in schema else nw.lit(value=False)
    found = found.with_columns(nw.col(one).cast(nw.Int64) for one in (_ROWS, *totals))
    # A window function is needed only where a group has several rows here, one for each value.
    size = nw.col(_ROWS).sum().over(group) if {*values} - {group} else nw.col(_ROWS)
    found = found.with_columns(size.alias(_SIZE), gap.cast(nw.Int64).alias(_GAP))
    found = found.group_by(_SIZE, _GAP, *values).agg(nw.col(_ROWS).sum(), *totals.values())
    # Engines may widen sums, and return wider numbers as floats.
    numbers = (_SIZE, _GAP, _ROWS, *totals)
    return collected(found.select(*values, *(nw.col(one).cast(nw.Int64) for one in numbers)))


def _groups(held: Mapping[str, list[Any]]) -> Counter[int]:
    """Return how many groups there are of each size, from the number of rows in groups of it."""
    rows: Counter[int] = Counter()
    for size, number in zip(held[_SIZE], held[_ROWS], strict=True):
        rows[int(size)] += int(number)
    return Counter({size: number // size for size, number in rows.items()})
