"""What the rows of groups add up to, and how large the groups are, from one query.

A scale is proved for groups of certain sizes. Where others write to the table, the sizes that one
query sees say nothing about the rows that the next one adds up. So both come out of the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
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

_EVERYONE, _ROWS, _GAP = "__everyone__", "__count__", "__gap__"


_SIZE, _INSIDE = "__size__", "__inside__"


@dataclass(frozen=True, kw_only=True)
class Part:
    """What the rows of a part hold in one column."""

    column: Hashable
    """Which column."""
    sizes: Counter[int] = field(default_factory=Counter)
    """How many groups have so many of their rows in this part."""
    counts: Counter[Hashable] = field(default_factory=Counter)
    """How often each value occurs, where values were counted."""
    sum: ClampedSum | None = None
    """The sum of the values inside their bounds, where they were added up."""


@dataclass(frozen=True, kw_only=True)
class Grouped:
    """One reading of the column of values of a long frame."""

    parts: dict[Hashable, Part]
    """What each part holds, by the value of the column that tells parts apart."""
    sizes: Counter[int]
    """How many groups have so many rows in the whole frame."""
    crosses: bool
    """Whether some group has rows in two parts."""

    @property
    def whole(self) -> Part:
        """What the frame holds, where it was read as one part."""
        (part,) = self.parts.values()
        return part


@asks_the_engine
def read_groups(
    frame: Any,
    value: Hashable,
    *,
    by: Hashable | None,
    per: Hashable | None = None,
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
        The column that tells groups apart; None if all rows are one group.
    per
        The column that tells parts apart; None if all rows are one part.
    bounds
        Add the values up inside these bounds; count them if None.
    clamp
        Whether to move values outside to the nearest end, or to refuse them.
    """
    named = [column for column in (value, by, per) if column is not None]
    table, names, schema = chosen(frame, named)
    column, group = names[0], _EVERYONE if by is None else names[1]
    parts = [] if per is None else [names[-1]]
    if by is None:
        table = table.with_columns(nw.lit(0).alias(_EVERYONE))
    if bounds is None:
        refuse_lists(frame, column, schema[column])
        small = _collected(table, schema, group=group, parts=parts, values=[column], added=[])
    else:
        rows = rows_in(frame)
        refuse_empty(rows)
        cells = grid_cells(column, schema[column], bounds, rows=rows, place=0)
        table = table.select(*dict.fromkeys([group, *parts]), *cells)
        added = [f"{what}0" for what in CELLS]
        small = _collected(table, schema, group=group, parts=parts, values=[], added=added)
    held: dict[str, list[Any]] = {one: small[one].to_list() for one in small.columns}
    refuse_missing(by, sum(n for n, gap in zip(held[_ROWS], held[_GAP], strict=True) if gap))
    keys = list(dict.fromkeys([*parts, *([column] if bounds is None else [])]))
    counts_in(small, {key: schema[key] for key in keys} or {_SIZE: nw.Int64()})  # refuses gaps
    labels = [plain(label) for label in held[parts[0]]] if parts else [None] * len(small)
    found = {}
    for label in dict.fromkeys(labels):
        own = [place for place, other in enumerate(labels) if other == label]
        counts: Counter[Hashable] = Counter()
        for place in own if bounds is None else ():
            counts[plain(held[column][place])] += int(held[_ROWS][place])
        total = None
        if bounds is not None:
            sums = {one: sum(int(held[one][place]) for place in own) for one in added}
            total = checked_sum(sums, value, bounds, rows=rows, place=0, clamp=clamp)
        found[label] = Part(
            column=value, sizes=_groups(held, _INSIDE, own), counts=counts, sum=total
        )
    if bounds is not None:
        refuse_changed(rows, sum(held[_ROWS]))
    return Grouped(
        parts=found,
        sizes=_groups(held, _SIZE, range(len(small))),
        crosses=held[_SIZE] != held[_INSIDE],
    )


def _collected(
    table: nw.LazyFrame[Any],
    schema: Mapping[str, nw.dtypes.DType],
    *,
    group: str,
    parts: list[str],
    values: list[str],
    added: list[str],
) -> nw.DataFrame[Any]:
    """Count rows, and add columns up, by part, value, size of the group and its rows in the part.

    Groups come first, and their sizes are sums over what was counted: one query, one reading.
    """
    found = table.group_by(*dict.fromkeys([group, *parts, *values])).agg(
        nw.len().alias(_ROWS), *(nw.col(one).sum() for one in added)
    )
    gap = is_missing(group, schema[group]) if group in schema else nw.lit(value=False)
    found = found.with_columns(nw.col(one).cast(nw.Int64) for one in (_ROWS, *added))

    def rows_within(*whole: str) -> nw.Expr:
        """Add up the rows of a group; a window is needed only where it is in several rows here."""
        split = {group, *parts, *values} - set(whole)
        return nw.col(_ROWS).sum().over(*dict.fromkeys(whole)) if split else nw.col(_ROWS)

    found = found.with_columns(
        rows_within(group).alias(_SIZE), gap.cast(nw.Int64).alias(_GAP)
    ).with_columns((rows_within(group, *parts) if parts else nw.col(_SIZE)).alias(_INSIDE))
    keys = list(dict.fromkeys([*parts, *values]))
    found = found.group_by(_SIZE, _INSIDE, _GAP, *keys).agg(
        nw.col(one).sum() for one in (_ROWS, *added)
    )
    # Engines may widen sums, and hand wider numbers over as floats.
    numbers = (_SIZE, _INSIDE, _GAP, _ROWS, *added)
    return collected(found.select(*keys, *(nw.col(one).cast(nw.Int64) for one in numbers)))


def _groups(held: Mapping[str, list[Any]], what: str, places: Iterable[int]) -> Counter[int]:
    """Return how many groups there are of each size, from their rows together."""
    rows: Counter[int] = Counter()
    for place in places:
        rows[int(held[what][place])] += int(held[_ROWS][place])
    return Counter({size: number // size for size, number in rows.items()})
