"""Questions about rows, evaluated by the frame engine that holds them: conditions, parts, sums.

What a scale is proved for (how many rows of each group count by public columns) and what is
released come from one query, as everywhere: others may be writing to the table. Whether reading
raises depends on types and on public columns; the one exception is missing cells of a column for
which no rule was given.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import math
import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import narwhals as nw
import numpy as np

from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.open import (
    asks_the_engine,
    chosen,
    collected,
    column_name,
    described,
    is_missing,
    is_object,
    kind_name,
    refuse_changed,
    refuse_empty,
    refuse_missing,
    refuse_mixed,
    refuse_words,
    rows_in,
    with_places,
)
from pdp_calibrate.frames.order import GROUP, ORDER, Steps, Times, refuse_dask
from pdp_calibrate.frames.sums import grid_exponent, real_values, unsigned

_GROUP, _ROWS, _SIZE, _COUNTED = GROUP, "__rows__", "__size__", "__counted__"


_OPEN, _PART, _UNITS = "__open__", "__part__", "__units__"


_PRIME = 2**31 - 1  # so that products fit 64 bits


_NOWHERE = object()
"""In the place of a label that no cell of a type can equal."""


_NOBODY, _UNKNOWN, _AGAIN = "__nobody__", "__unknown__", "__again__"


_UNTIMED, _OTHER = "__untimed__", "__other__"


@dataclass(frozen=True, kw_only=True)
class PublicRows:
    """What public columns say about the rows of a question."""

    sizes: Counter[int]
    """How many groups there are, by their number of rows."""
    counted: Counter[tuple[int, int]]
    """The same by their number of rows and of those that count by public columns."""
    parts: tuple[int, ...]
    """How many rows each part has; empty where a secret decides."""

    @property
    def most(self) -> int:
        """The most rows of one group that count.

        Times `RowQuery.reach`, over λ, it bounds what a release leaks about a whole household.
        """
        return max(number for _, number in self.counted)


@dataclass(frozen=True, kw_only=True)
class RowsRead:
    """One reading of the rows: what is public, and what is not."""

    public: PublicRows
    """What public columns say."""
    rows: tuple[int, ...] = field(repr=False)
    """How many rows are in each part. Secret."""
    totals: tuple[Fraction, ...] = field(repr=False)
    """What their values add up to. Secret."""
    step: Fraction
    """How far each value may be from exact: its grid step; 0 where rows are counted."""


def public_rows(frame: Any, query: RowQuery, *, groups: Hashable | None) -> PublicRows:
    """Read what public columns say; no secret cell is touched.

    Parameters
    ----------
    frame
        One row per person or reading.
    query
        What is asked.
    groups
        The column that names the group; None if all rows are one group, or each is independent.
    """
    return _read(frame, query, groups=groups, secret=False, rows=None, times=None).public


def read_rows(
    frame: Any,
    query: RowQuery,
    *,
    groups: Hashable | None,
    rows: int | None = None,
    times: Times | None = None,
) -> RowsRead:
    """Read the exact answer, and what public columns say, in one query.

    The grid of real values depends on the number of rows. If that is known, rows are not counted
    first: the one query checks that the number still holds.

    Parameters
    ----------
    frame, query, groups
        As in `public_rows`.
    rows
        How many rows there are, where that is known.
    times
        How the times of a series are read, which the same query checks: none twice in a group, no
        gaps but those that the query allows. None where the rows of a group have no order.
    """
    return _read(frame, query, groups=groups, secret=True, rows=rows, times=times)


@asks_the_engine
def _read(
    frame: Any,
    query: RowQuery,
    *,
    groups: Hashable | None,
    secret: bool,
    rows: int | None,
    times: Times | None,
) -> RowsRead:
    if rows is None:
        rows = rows_in(frame)
    refuse_empty(rows)
    steps = None if times is None else Steps(times, every=query.every)
    table = _prepared(
        frame, query, groups=groups, secret=secret, rows=rows, times=times, steps=steps
    )
    small = _collected(table, grouped=not query.independent, steps=steps)
    held: dict[str, list[int]] = {name: small[name].to_list() for name in small.columns}
    numbers = held[_ROWS]
    refuse_changed(rows, sum(numbers))
    refuse_missing(groups, sum(held[_NOBODY]))
    if times is not None and steps is not None:
        refuse_missing(times.column, sum(held[_UNTIMED]))
        refuse_changed(0, sum(held[_OTHER]))  # all text had one form when it was first read
        steps.check(held)
    if sum(held[_AGAIN]):
        raise ModelError(
            f"column {query.keep_by} has two equal entries in one group, so it does not say which"
            " rows count."
        )
    if sum(held[_UNKNOWN]):
        silent = ", ".join(name for name in query.columns if name not in query.missing)
        raise ModelError(
            f"a column among {silent} has missing values, and no rule was given for them: state"
            " what they mean with missing=, ideally before looking at the data."
        )
    groups_of: Counter[tuple[int, int]] = Counter()
    inside, units = Counter[int](), Counter[int]()
    for size, counting, part, number, added in zip(
        held[_SIZE], held[_COUNTED], held[_PART], numbers, held[_UNITS], strict=True
    ):
        groups_of[int(size), int(counting)] += int(number)
        inside[int(part)] += int(number)
        units[int(part)] += int(added)
    counted = Counter({key: number // key[0] for key, number in groups_of.items()})
    sizes: Counter[int] = Counter()
    for (size, _), number in counted.items():
        sizes[size] += number
    step = Fraction(0)
    if query.bounds is not None:
        step = Fraction(2) ** -grid_exponent(query.value, query.bounds, rows)
    parts = tuple(inside[part] for part in range(1, query.parts + 1))
    return RowsRead(
        public=PublicRows(sizes=sizes, counted=counted, parts=parts if _decided(query) else ()),
        rows=parts,
        totals=tuple(units[part] * step for part in range(1, query.parts + 1)),
        step=step,
    )


def _decided(query: RowQuery) -> bool:
    """Whether public columns decide which rows are in which part."""
    return not (query.moves or query.leaves)


def _prepared(
    frame: Any,
    query: RowQuery,
    *,
    groups: Hashable | None,
    secret: bool,
    rows: int,
    times: Times | None,
    steps: Steps | None,
) -> nw.LazyFrame[Any]:
    """Return for each row its group, whether it counts, its part from 1 (0: none) and its value."""
    order_by = None if times is None else times.column
    roles = [name for name in (groups, query.keep_by, order_by) if name is not None]
    described(frame, [*query.columns, *roles])  # all of them must exist
    for name in [*roles, *query.public]:
        refuse_mixed(frame, name)
    objects = [name for name in query.columns if is_object(frame, name)]
    columns = [
        *((one, one.values) for one in query.where),
        *zip(query.by, query.labels, strict=True),
    ]
    places = {
        name: {label: place for place, label in enumerate(_stated(columns, name), start=1)}
        for name in {*objects} - {*map(column_name, roles)}
    }
    table, _, types = chosen(with_places(frame, places), [*query.columns, *roles])
    schema = {**types, **dict.fromkeys(objects, nw.Object())}
    read = [name for name in query.columns if secret or name not in query.secret]
    named = None if groups is None else column_name(groups)
    group = nw.lit(0) if named is None else nw.col(named)
    nobody = nw.lit(0) if named is None else _flag(is_missing(named, schema[named]))
    table = table.with_columns(group.alias(_GROUP), nobody.alias(_NOBODY))
    table = _kept(table, query, schema)
    measured: list[str] = []
    if times is not None and steps is not None:
        table = _timed(table, times, steps, schema)
        measured = [_UNTIMED, _OTHER, *steps.COLUMNS]
    unknown = [_flag(is_missing(name, schema[name])) for name in read if name not in query.missing]
    found: dict[str, nw.Expr] = {}  # which value of each condition a row has; 0 if none
    for place, (column, labels) in enumerate(columns):
        if column.name in read:
            own = places.get(column.name, {})
            codes = _codes(column.name, schema[column.name], labels, query, places=own)
            found[f"__code{place}__"] = codes
    units, present = nw.lit(0), nw.lit(1)
    if query.value in read and secret:
        units, present = _units(query, schema[str(query.value)], rows=rows)
    table = table.select(
        _GROUP,
        _NOBODY,
        _AGAIN,
        *measured,
        "__kept__",
        units.cast(nw.Int64).alias(_UNITS),
        present.cast(nw.Int64).alias("__present__"),
        functools.reduce(operator.add, unknown, nw.lit(0)).cast(nw.Int64).alias(_UNKNOWN),
        *(codes.alias(name) for name, codes in found.items()),
    )
    met: dict[bool, list[nw.Expr]] = {True: [nw.col("__kept__")], False: [nw.col("__present__")]}
    for place, (column, _) in enumerate(columns):
        if column.name in read:
            met[column.name not in query.secret].append(_flag(nw.col(f"__code{place}__") > 0))
    inside = functools.reduce(operator.mul, [*met[True], *met[False]])
    part = nw.lit(0)
    for place, (_, labels) in enumerate(columns):
        if place >= len(query.where) and f"__code{place}__" in found:
            part = part * len(labels) + (nw.col(f"__code{place}__") - 1)
    return table.select(
        _GROUP,
        _NOBODY,
        _AGAIN,
        *measured,
        _UNKNOWN,
        _UNITS,
        functools.reduce(operator.mul, met[True]).cast(nw.Int64).alias(_OPEN),
        (inside * (part + 1)).cast(nw.Int64).alias(_PART),
    )


def _flag(condition: nw.Expr) -> nw.Expr:
    """Return 1 where a condition holds, and 0 where it does not or is undefined."""
    return condition.fill_null(value=False).cast(nw.Int64)


def _timed(
    table: nw.LazyFrame[Any],
    times: Times,
    steps: Steps,
    schema: Mapping[str, nw.dtypes.DType],
) -> nw.LazyFrame[Any]:
    """Add the steps between the times of each group, and what else may be wrong with them."""
    refuse_dask(table)
    name = column_name(times.column)
    table = table.with_columns(
        times.sortable(name).alias(ORDER),
        _flag(is_missing(name, schema[name])).alias(_UNTIMED),
        _flag(times.is_other(name)).alias(_OTHER),
    )
    return steps.on(table)


def _kept(
    table: nw.LazyFrame[Any], query: RowQuery, schema: Mapping[str, nw.dtypes.DType]
) -> nw.LazyFrame[Any]:
    """Add ``__kept__``: whether a row is among the first of its group, by a public column."""
    if query.keep_by is None:
        return table.with_columns(nw.lit(1).alias("__kept__"), nw.lit(0).alias(_AGAIN))
    refuse_dask(table)
    name, key = query.keep_by, "__key__"
    order = nw.col(name) if query.seed is None else _hashed(name, schema[name], query.seed)
    table = table.with_columns(order.alias(key))
    again = nw.col(key) == nw.col(key).shift(1).over(_GROUP, order_by=key)
    gap = _flag(is_missing(name, schema[name]))
    table = table.with_columns(nw.lit(1).alias("__one__")).with_columns(
        # Not cum_count, which forgets the order on pandas frames (narwhals 2.28).
        nw.col("__one__").cum_sum().over(_GROUP, order_by=key).alias("__rank__"),
        (_flag(again) + gap).alias(_AGAIN),
    )
    return table.with_columns(_flag(nw.col("__rank__") <= query.most).alias("__kept__"))


def _hashed(name: str, kind: nw.dtypes.DType, seed: int) -> nw.Expr:
    """Return a·key + b modulo a prime, with a and b from the seed: all engines compute the same."""
    if not kind.is_integer():
        raise ModelError(
            f"a seed needs whole numbers to choose by, and column {name} holds {kind_name(kind)}."
        )
    key = (nw.col(name).cast(nw.Int64) % _PRIME + _PRIME) % _PRIME  # engines differ below zero
    return (key * (seed % (_PRIME - 1) + 1) + seed // _PRIME % _PRIME) % _PRIME


def _stated(columns: Iterable[tuple[Column, Iterable[Hashable]]], name: str) -> Iterator[Hashable]:
    """Return the values stated for a column, each once."""
    stated = (label for column, labels in columns if column.name == name for label in labels)
    return (label for label in dict.fromkeys(stated) if label is not None)


def _codes(
    name: str,
    kind: nw.dtypes.DType,
    labels: Iterable[Hashable],
    query: RowQuery,
    *,
    places: Mapping[Hashable, int],
) -> nw.Expr:
    """Return for each row the place of its value among the labels, from 1; 0 for any other.

    Of an object column `places` are its cells, as `with_places` returns them.
    """
    held, texts = nw.col(name), isinstance(kind, nw.Categorical | nw.Enum)
    if texts:
        held = held.cast(nw.String)
    missing, rule = _flag(is_missing(name, kind)), query.missing.get(name)
    found, seen = [], set()
    for place, label in enumerate(labels, start=1):
        if label is None:
            found.append(missing * place)
            continue
        compared = places[label] if places else _comparable(label, name, kind)
        if compared in seen and compared is not _NOWHERE:
            raise ModelError(f"two of the values stated for column {name} are the same in it.")
        seen.add(compared)
        equal = _holds(held, compared, kind) * (1 - missing)
        if rule not in (None, "zero", "category") and rule == label:
            equal = equal + missing
        found.append(equal * place)
    while len(found) > 1:  # in pairs: engines do not accept a thousand nested sums
        pairs = itertools.zip_longest(found[::2], found[1::2])
        found = [one if other is None else one + other for one, other in pairs]
    return found[0]


def _holds(held: nw.Expr, label: Any, kind: nw.dtypes.DType) -> nw.Expr:
    """Return 1 where a column holds a label, as `_comparable` returns it, else 0."""
    if label is _NOWHERE:
        return nw.lit(0)
    # Arrow compares unsigned numbers with signed ones only while they fit both types: its error
    # would reveal that a secret does not.
    return _flag(held == (unsigned(label) if kind == nw.UInt64 else label))


def _comparable(label: Hashable, name: str, kind: nw.dtypes.DType) -> Any:
    """Return what a column of this type holds for a label, or raise by the types alone.

    `_NOWHERE` for a number that no cell of this type can be. Engines would compare numbers of
    different types in different ways, and some fail for some cells.
    """
    found: Any = None
    if isinstance(kind, nw.Categorical | nw.Enum):
        return str(label)
    if kind == nw.Object:  # its cells are compared as Python compares them
        return label
    if kind == nw.Boolean:
        if isinstance(label, int | float) and label in (0, 1):
            found = bool(label)
    elif kind.is_numeric():
        if isinstance(label, int | float | Decimal):  # and so bool
            found = _number_in(label, kind)
    elif kind == nw.String:
        found = label if isinstance(label, str) else None
    elif isinstance(kind, nw.Date | nw.Datetime):
        found = _time_in(label, kind)
    else:
        found = label
    if found is None:
        raise ModelError(f"column {name} holds {kind_name(kind)}, and {label!r} is none of that.")
    return found


def _number_in(label: float | Decimal, kind: nw.dtypes.DType) -> Any:
    """Return the number of this type that a label is, or `_NOWHERE`."""
    if kind.is_float():
        size = np.float32 if kind == nw.Float32 else np.float64
        try:
            with np.errstate(over="ignore"):  # 2^53 + 1 is 2^53 there
                found = float(size(float(label)))
        except OverflowError:
            return _NOWHERE
        return found if math.isfinite(found) or found == label else _NOWHERE
    if not isinstance(label, int) and not math.isfinite(label):
        return _NOWHERE
    if isinstance(kind, nw.Decimal):
        exact = Decimal(repr(label)) if isinstance(label, float) else Decimal(label)
        places = -cast("int", exact.normalize().as_tuple().exponent)
        fits = places <= kind.scale and exact.adjusted() < kind.precision - kind.scale
        return exact if fits or not exact else _NOWHERE
    return int(label) if label == int(label) and _fits(int(label), kind) else _NOWHERE


def _fits(number: int, kind: nw.dtypes.DType) -> bool:
    """Whether a type of whole numbers holds a number."""
    bits = int("".join(filter(str.isdigit, kind_name(kind))))
    if kind.is_signed_integer():
        return bool(-(2 ** (bits - 1)) <= number < 2 ** (bits - 1))
    return bool(0 <= number < 2**bits)


def _time_in(label: Hashable, kind: nw.dtypes.DType) -> Any:
    """Return the day or time that a label is, which may be ISO 8601 text; None if it is none."""
    found: Any = label
    if isinstance(label, str):
        try:
            found = dt.datetime.fromisoformat(label)
        except ValueError:
            return None
    elif type(label) is dt.date:
        found = dt.datetime.combine(label, dt.time())
    if not isinstance(found, dt.datetime):
        return None
    if isinstance(kind, nw.Date):
        whole = found.tzinfo is None and found.time() == dt.time()
        return found.date() if whole else None
    zoned = isinstance(kind, nw.Datetime) and kind.time_zone is not None
    return found if zoned == (found.tzinfo is not None) else None


def _units(query: RowQuery, kind: nw.dtypes.DType, *, rows: int) -> tuple[nw.Expr, nw.Expr]:
    """Return the whole number that each value adds on its grid, and whether it counts at all."""
    name, bounds = str(query.value), query.bounds or (0.0, 0.0)
    refuse_words(name, kind)
    missing, rule = is_missing(name, kind), query.missing.get(name)
    instead = bounds[0] if rule in (None, "zero") else float(rule)  # type: ignore[arg-type]
    value = real_values(name, kind, bounds)
    inside = nw.when(~missing).then(value).otherwise(nw.lit(instead)).clip(*bounds)
    units = (inside * 2.0 ** grid_exponent(name, bounds, rows)).floor().cast(nw.Int64)
    return units, (1 - _flag(missing)) if rule == "zero" else nw.lit(1)


def _collected(
    table: nw.LazyFrame[Any], *, grouped: bool, steps: Steps | None
) -> nw.DataFrame[Any]:
    """Count rows and add values up by part, size of the group and its rows that count."""
    keys, added = [_OPEN, _PART], [_UNITS, _UNKNOWN, _AGAIN, _NOBODY]
    ends: list[str] = []
    if steps is not None:
        added += [_UNTIMED, _OTHER, *steps.ADDED]
        ends = [*steps.ENDS]
    sums = [nw.col(one).sum() for one in added] + ([] if steps is None else steps.ends())
    if grouped:
        found = table.group_by(_GROUP, *keys).agg(nw.len().alias(_ROWS), *sums)
        found = found.with_columns(nw.col(one).cast(nw.Int64) for one in (_ROWS, *added))
        found = found.with_columns((nw.col(_ROWS) * nw.col(_OPEN)).alias(_COUNTED))
        found = found.with_columns(
            nw.col(_ROWS).sum().over(_GROUP).alias(_SIZE),
            nw.col(_COUNTED).sum().over(_GROUP).alias(_COUNTED),
        )
        found = found.group_by(_SIZE, _COUNTED, *keys).agg(nw.col(_ROWS).sum(), *sums)
    else:
        found = table.group_by(*keys).agg(nw.len().alias(_ROWS), *sums)
        found = found.with_columns(nw.lit(1).alias(_SIZE), nw.col(_OPEN).alias(_COUNTED))
    # Engines may widen sums, and return wider numbers as floats.
    numbers = (_PART, _SIZE, _COUNTED, _ROWS, *added)
    return collected(found.select(*(nw.col(one).cast(nw.Int64) for one in numbers), *ends))
