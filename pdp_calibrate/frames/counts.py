"""How often each combination of values occurs, and how large groups are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import plain
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.open import (
    asks_the_engine,
    check_complete,
    chosen,
    collected,
    described,
    in_memory,
    is_missing,
    is_number,
    one_row,
    refuse_empty,
    refuse_missing,
    refuse_mixed,
    rows_in,
)

Key = tuple[Hashable, ...]


_COUNTED_BY_PLACE = (
    *(nw.Int8, nw.Int16, nw.Int32, nw.Int64),
    *(nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64),
)  # numpy has no wider ones
_SPARSE = 4  # keys are counted in an array if their range is at most this many times the rows


MISSING: Final = type("Missing", (), {"__repr__": lambda _: "missing"})()
"""A cell that is missing, in counts of private rows: no value, and no state."""


_CELLS_AT_ONCE = 4096  # combinations of values that an engine returns at most, to count columns


@asks_the_engine
def contingency(frame: Any, columns: Sequence[Hashable], *, gaps: bool = False) -> Counter[Key]:
    """Count how often each combination of values occurs in the columns. One pass.

    Missing cells raise, or with `gaps` count as `MISSING`.
    """
    table, names, schema = chosen(frame, columns)
    for name in names:
        refuse_lists(frame, name, schema[name])
    counted = collected(table.group_by(*names).agg(nw.len().alias("__count__")))
    return counts_in(counted, {name: schema[name] for name in names}, gaps=gaps)


@asks_the_engine
def values_held(frame: Any, column: Hashable, *, gaps: bool) -> set[Hashable]:
    """Return the values that occur in a public column; missing ones are refused unless `gaps`."""
    refuse_mixed(frame, column)
    if not gaps:
        return {value for (value,) in contingency(frame, [column])}
    table, (name,), schema = chosen(frame, [column])
    refuse_lists(frame, name, schema[name])
    held = table.filter(~is_missing(name, schema[name])).group_by(name).agg(nw.len().alias("n"))
    return {plain(value) for value in collected(held)[name].to_list()}


def refuse_lists(frame: Any, name: str, kind: nw.dtypes.DType) -> None:
    """Raise unless the values of a column are hashable."""
    if kind.is_nested() or _holds_lists(frame, name, kind):
        raise ModelError(
            f"column {name} must hold values that can be counted, such as numbers or text."
        )


def _holds_lists(frame: Any, name: str, kind: nw.dtypes.DType) -> bool:
    """Whether a column of objects in memory has some that are not hashable."""
    table = in_memory(frame) if kind == nw.Object else None
    return table is not None and not all(
        isinstance(value, Hashable) for value in table[name].to_list()
    )


def counts_in(
    counted: nw.DataFrame[Any], kinds: dict[str, nw.dtypes.DType], *, gaps: bool = False
) -> Counter[Key]:
    """Read a small frame of keys and their ``__count__``; refuse missing and mixed keys.

    With `gaps` neither is refused, and a missing key is `MISSING`.
    """
    counts = [int(count) for count in counted["__count__"].to_list()]
    refuse_empty(sum(counts))
    keys: list[list[Hashable]] = []
    for name, kind in kinds.items():
        column = counted[name]
        missing = column.is_null().to_list()
        if column.dtype.is_float():
            not_numbers = column.is_nan().fill_null(value=True).to_list()
            missing = [one or other for one, other in zip(missing, not_numbers, strict=True)]
        if not gaps:
            refuse_missing(name, sum(n for n, gap in zip(counts, missing, strict=True) if gap))
        values = [
            MISSING if gap else plain(value)
            for value, gap in zip(column.to_list(), missing, strict=True)
        ]
        if not gaps and is_number(kind) and any(isinstance(value, str) for value in values):
            raise ModelError(f"column {name} is said to hold {kind}, but some parts hold text.")
        keys.append(values)
    found: Counter[Key] = Counter()
    for key, count in zip(zip(*keys, strict=True), counts, strict=True):
        found[key] += count
    return found


def counts_by_column(
    frame: Any, columns: Sequence[Hashable], sizes: Sequence[int]
) -> list[Counter[Hashable]]:
    """Count the values of each column by itself; in one pass where that keeps the result small.

    `sizes` says how many values each column can have.
    """
    if math.prod(sizes) > _CELLS_AT_ONCE:
        return [
            Counter({value: count for (value,), count in contingency(frame, [one]).items()})
            for one in columns
        ]
    found: list[Counter[Hashable]] = [Counter() for _ in columns]
    for row, count in contingency(frame, columns).items():
        for place, value in enumerate(row):
            found[place][value] += count
    return found


@asks_the_engine
def group_sizes(frame: Any, by: Hashable | None) -> Counter[int]:
    """Count how many groups there are of each size. One pass."""
    if by is None:
        number = rows_in(frame)
        refuse_empty(number)
        return Counter({number: 1})
    held = in_memory(frame)
    if held is not None:
        _, (name,), schema = described(frame, [by])
        refuse_mixed(frame, by)
        near = _near_numbers(held[name], schema[name])
        if near is not None:
            groups = np.bincount(np.bincount(near)).tolist()
            return Counter({size: number for size, number in enumerate(groups) if size and number})
    table, (name,), schema = chosen(frame, [by])
    sizes = table.group_by(name).agg(nw.len().alias("__size__"))
    counted = (
        sizes.select("__size__", is_missing(name, schema[name]).alias("__gap__"))
        .group_by("__size__", "__gap__")
        .agg(nw.len().alias("__count__"))
    )
    rows = collected(counted.select("__size__", "__gap__", "__count__")).rows()
    refuse_empty(len(rows))
    refuse_missing(name, sum(size * count for size, gap, count in rows if gap))
    return Counter({int(size): int(count) for size, _, count in rows})


def _near_numbers(column: nw.Series[Any], kind: nw.dtypes.DType) -> npt.NDArray[np.int64] | None:
    """Return keys of groups as whole numbers from zero on; None if most numbers were unused."""
    if kind not in _COUNTED_BY_PLACE or not len(column) or column.null_count():
        return None
    keys = column.to_numpy()
    least, most = int(keys.min()), int(keys.max())
    if most - least > _SPARSE * len(keys):
        return None
    if not 0 <= least <= most <= _SPARSE * len(keys):
        # Signed keys are widened first, as a difference may overflow; large unsigned ones would
        # not fit a signed type before the subtraction.
        wide = keys if keys.dtype == np.uint64 else keys.astype(np.int64)
        keys = wide - wide.dtype.type(least)
    return keys.astype(np.int64, copy=False)


@asks_the_engine
def group_totals(frame: Any, by: str, value: str) -> Counter[tuple[int, int]]:
    """Count the groups with each size and number of ones, from a long frame of zeros and ones."""
    table, _, schema = chosen(frame, [by, value])
    refuse_mixed(frame, by)
    gap = is_missing(value, schema[value])
    if not is_number(schema[value]):
        check_complete(table, [by, value], schema)
        raise ModelError(f"column {value} must hold only 0 and 1.")
    number = nw.col(value).cast(nw.Float64)
    groups = (
        table.select(
            by,
            number.alias("__ones__"),
            gap.cast(nw.Int64).alias("__gaps__"),
            (~((number == 0) | (number == 1))).cast(nw.Int64).alias("__others__"),
        )
        .group_by(by)
        .agg(
            nw.len().alias("__size__"),
            nw.col("__ones__").sum(),
            nw.col("__gaps__").sum(),
            nw.col("__others__").sum(),
        )
    )
    nobody = is_missing(by, schema[by]).cast(nw.Int64) * nw.col("__size__")
    counted = (
        groups.with_columns(nobody.alias("__nobody__"))
        .group_by("__size__", "__ones__")
        .agg(
            nw.len().alias("__count__"),
            nw.col("__nobody__").sum(),
            nw.col("__gaps__").sum(),
            nw.col("__others__").sum(),
        )
    )
    names = ["__size__", "__ones__", "__count__", "__nobody__", "__gaps__", "__others__"]
    rows = collected(counted.select(*names)).rows()
    refuse_empty(len(rows))
    refuse_missing(by, sum(row[3] for row in rows))
    refuse_missing(value, sum(row[4] for row in rows))
    if any(row[5] for row in rows):
        raise ModelError(f"column {value} must hold only 0 and 1.")
    return Counter({(int(size), int(ones)): int(count) for size, ones, count, *_ in rows})


@asks_the_engine
def role_patterns(
    frame: Any, by: str, value: str, role: str
) -> tuple[list[Hashable], Counter[tuple[int, ...]], list[int]]:
    """Describe groups whose members play roles and hold zeros or ones.

    Returns the roles; how many groups have each pattern (number of ones, then members of each
    role); and how many ones each role holds.
    """
    by_role = contingency(frame, [role, value])
    roles = sorted({key[0] for key in by_role}, key=repr)
    ones = [by_role.get((one, 1), 0) for one in roles]
    table, _, _ = chosen(frame, [by, value, role])
    names = ["__ones__", *(f"__role{place}__" for place in range(len(roles)))]
    members = (
        (nw.col(role) == one).cast(nw.Int64).alias(name)
        for one, name in zip(roles, names[1:], strict=True)
    )
    groups = (
        table.select(by, nw.col(value).cast(nw.Int64).alias(names[0]), *members)
        .group_by(by)
        .agg(*(nw.col(name).sum() for name in names))
    )
    counted = groups.group_by(*names).agg(nw.len().alias("__count__"))
    rows = collected(counted.select(*names, "__count__")).rows()
    patterns = Counter({tuple(int(n) for n in row[:-1]): int(row[-1]) for row in rows})
    return roles, patterns, ones


@asks_the_engine
def refuse_repeated(frame: Any, person: str, by: str) -> None:
    """Raise if a person is in two groups, or twice in one."""
    table, names, schema = chosen(frame, [person, by])
    for name in names:
        refuse_mixed(frame, name)
    rows = check_complete(table, names, schema)
    pairs = table.group_by(person, by).agg(nw.len().alias("__rows__"))
    persons = pairs.group_by(person).agg(nw.len().alias("__groups__"))
    found = one_row(persons.select(nw.len().alias("persons"), nw.col("__groups__").sum()))
    if found["__groups__"] > found["persons"]:
        raise ModelError(
            f"column {person} puts a person into several groups of column {by}; everyone may belong"
            " to only one. Join such groups first."
        )
    if found["__groups__"] < rows:
        raise ModelError(f"column {person} names a person more than once within a group.")
