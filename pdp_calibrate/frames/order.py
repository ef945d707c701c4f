"""The column that orders rows, and what depends on a row's place in its ordered group.

Text is read as times, since text order is not time order. Places need window functions of the
engine.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import narwhals as nw

from pdp_calibrate.errors import FrameError, ModelError
from pdp_calibrate.frames.counts import counts_in
from pdp_calibrate.frames.open import (
    asks_the_engine,
    check_complete,
    check_roles,
    chosen,
    collected,
    column_name,
    how_many,
    in_memory,
    is_missing,
    kind_name,
    one_row,
    refuse_changed,
    refuse_missing,
    refuse_mixed,
)
from pdp_calibrate.frames.sums import CELLS, ClampedSum, Range, checked_sum, grid_cells

_YEAR = r"[0-9]{4}"


_LEAP_YEAR = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"


_MONTH = _YEAR + r"-(?:0[1-9]|1[0-2])"


_DAY = (  # days that exist: 31 April would be read as 1 May
    rf"(?:{_YEAR}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    rf"|(?:0[13578]|1[02])-31)|{_LEAP_YEAR}-02-29)"
)


_MINUTE = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"


_OFFSET = r"[+-]" + _MINUTE


class _Form(NamedTuple):
    """One way to write a time by ISO 8601; all texts of one form have equal length."""

    pattern: str
    day: bool = True
    clock: bool = False
    seconds: bool = False
    fraction: bool = False
    zone: str = ""


def _forms() -> list[_Form]:
    found = [_Form(_MONTH, day=False), _Form(_DAY)]
    for zone, ending in (("", ""), ("Z", "Z"), ("offset", _OFFSET)):
        for between in ("T", " "):
            start = _DAY + between + _MINUTE
            found += [
                _Form(start + ending, clock=True, zone=zone),
                _Form(start + ":[0-5][0-9]" + ending, clock=True, seconds=True, zone=zone),
                _Form(
                    start + r":[0-5][0-9][.,][0-9]{1,6}" + ending,
                    clock=True,
                    seconds=True,
                    fraction=True,
                    zone=zone,
                ),
            ]
    return found


_FORMS = _forms()


@dataclass(frozen=True, kw_only=True)
class Times:
    """How the column that orders rows is read: found once, for every reading of a frame."""

    column: Hashable
    """Its name."""
    kind: nw.dtypes.DType
    """The type of what it is read as, which sorts in order of time."""
    timed: bool
    """Whether the unit is microseconds; numbers, months and periods have their own units."""
    form: _Form | None = None
    """The form of ISO 8601 text, the same in every row."""
    length: int = 0
    """How long such text is."""
    time_format: str | None = None
    """How text of another form is written."""

    def sortable(self, name: str) -> nw.Expr:
        """Return the cells of a column as what sorts in order of time."""
        held = nw.col(name)
        if self.form is not None:
            example = _example(self.form, self.length)  # missing cells are found when rows are read
            # Missing cells are found before the cast: pandas 2 turns them into the text "None".
            text = nw.when(held.is_null()).then(nw.lit(example)).otherwise(held.cast(nw.String))
            return _number(text, self.form, self.length)
        if self.time_format is not None:
            return held.cast(nw.String).str.to_datetime(format=self.time_format)
        return held.cast(nw.Int64) if self.kind == nw.Int64 else held

    def is_other(self, name: str) -> nw.Expr:
        """Return for each row whether its text has another form than the column had before."""
        text = nw.col(name).cast(nw.String)
        if self.form is None:
            return nw.lit(value=False)
        fits = text.str.contains(f"^{self.form.pattern}$") & (text.str.len_chars() == self.length)
        return ~fits.fill_null(value=False)


def with_times(
    table: nw.LazyFrame[Any],
    column: str,
    kind: nw.dtypes.DType,
    *,
    called: Hashable,
    time_format: str | None,
) -> tuple[nw.LazyFrame[Any], Times]:
    """Return the table with a column that sorts in order of time, and how it was read.

    The parameters are those of `_times_in`.
    """
    times = _times_in(table, column, kind, called=called, time_format=time_format)
    return table.with_columns(times.sortable(column).alias(column)), times


def _times_in(
    table: nw.LazyFrame[Any],
    column: str,
    kind: nw.dtypes.DType,
    *,
    called: Hashable,
    time_format: str | None,
) -> Times:
    """Return how a column is read in order of time.

    Numbers, dates and times stay as they are. Text must be ISO 8601, every row in the same form,
    or follow the `time_format`; that depends on the rows, so the error reveals that much about
    them. The message names the column and the rule, and no value.

    Parameters
    ----------
    table, column, kind
        Rows without missing cells, the column in them that orders, and its type.
    called
        The name of the column in messages.
    time_format
        How text is written, as in `datetime.strptime`: ``%d/%m/%Y``. None for ISO 8601.
    """
    if isinstance(kind, nw.String | nw.Categorical | nw.Enum):
        table = table.select(nw.col(column).cast(nw.String))
        if time_format is None:
            return _iso_times(table, column, called=called)
        parsed = _parsed_kind(table, column, called=called, time_format=time_format)
        return Times(column=called, kind=parsed, timed=True, time_format=time_format)
    if time_format is not None:
        raise ModelError(
            f"time_format says how text is read, and column {called} holds {kind_name(kind)}: leave"
            " it out."
        )
    if _holds_periods(table, column):
        return Times(column=called, kind=nw.Int64(), timed=False)
    if not (kind.is_numeric() or kind.is_temporal() or kind == nw.Boolean):
        raise ModelError(
            f"column {called} orders the rows, so it must hold numbers, dates or times, got"
            f" {kind_name(kind)}; in pandas, convert it with pd.to_datetime."
        )
    return Times(column=called, kind=kind, timed=kind.is_temporal())


@asks_the_engine
def times_of(frame: Any, order_by: Hashable, *, time_format: str | None = None) -> Times:
    """Return how the column that orders rows is read; only values of a text column are checked."""
    table, (name,), schema = chosen(frame, [order_by])
    gaps = table.filter(~is_missing(name, schema[name]))  # these are found when rows are read
    return _times_in(gaps, name, schema[name], called=order_by, time_format=time_format)


def _holds_periods(table: nw.LazyFrame[Any], column: str) -> bool:
    """Whether the column holds periods of pandas, which are numbered one by one."""
    if not table.implementation.is_pandas():
        return False
    return str(table.to_native()[column].dtype).startswith("period")


def _parsed_kind(
    table: nw.LazyFrame[Any], column: str, *, called: object, time_format: str
) -> nw.dtypes.DType:
    """Read text by a format; the frame engine's error is withheld, as it may quote cells."""
    found = None
    try:
        read = table.with_columns(nw.col(column).str.to_datetime(format=time_format))
        kind = read.collect_schema()[column]
        found = one_row(read.select(how_many(nw.col(column).is_null()).alias("unread")))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001, S110 - every engine has errors of its own; raised below
        pass
    if found is None or found["unread"]:
        raise ModelError(
            f"column {called} cannot be read with time_format={time_format!r}: every row must"
            " have a full date in that form, and the engine that holds the rows must know it."
        )
    return kind


def _iso_times(table: nw.LazyFrame[Any], column: str, *, called: Hashable) -> Times:
    """Find the form of ISO 8601 text, which is read as whole numbers: months, or microseconds."""
    text = nw.col(column)
    found = one_row(
        table.select(
            nw.len().alias("rows"),
            text.str.len_chars().min().alias("shortest"),
            text.str.len_chars().max().alias("longest"),
            *(
                how_many(text.str.contains(f"^{form.pattern}$")).alias(f"form{place}")
                for place, form in enumerate(_FORMS)
            ),
        )
    )
    if not found["rows"]:
        refuse_missing(called, 1)
    fitting = [f for place, f in enumerate(_FORMS) if found[f"form{place}"] == found["rows"]]
    if not fitting or found["shortest"] != found["longest"]:
        raise ModelError(
            f"column {called} orders the rows and is text, which does not sort in order of time"
            " unless every row is written by ISO 8601 in one form (2024-01-31, or"
            " 2024-01-31T12:00:00), on days that the calendar has. Say how it is written with"
            " time_format= (--time-format on the command line), such as %d/%m/%Y."
        )
    form, length = fitting[0], int(found["longest"])
    return Times(column=called, kind=nw.Int64(), timed=form.day, form=form, length=length)


def _example(form: _Form, length: int) -> str:
    """Return a text of this form."""
    zone = {"": "", "Z": "Z", "offset": "+00:00"}[form.zone]
    return "2000-01-01T00:00:00.000000"[: length - len(zone)] + zone


def _number(text: nw.Expr, form: _Form, length: int) -> nw.Expr:
    """Return the number that the digits of a text denote, in months or microseconds."""

    def digits(start: int, number: int) -> nw.Expr:
        return text.str.slice(start, number).cast(nw.Int64)

    year, month = digits(0, 4), digits(5, 2)
    if not form.day:
        return year * 12 + month
    # Years that begin in March end with the leap day, so months have fixed beginnings.
    late = (14 - month) // 12
    since, place = year - late, month + late * 12 - 3
    leaps = since // 4 - since // 100 + since // 400
    days = digits(8, 2) + (place * 153 + 2) // 5 + since * 365 + leaps
    if not form.clock:
        return days * _MICROSECONDS["D"]
    minutes = (days * 24 + digits(11, 2)) * 60 + digits(14, 2)
    if form.zone == "offset":
        offset = digits(length - 5, 2) * 60 + digits(length - 2, 2)
        behind = text.str.slice(length - 6, 1) == "-"
        minutes = minutes + nw.when(behind).then(offset).otherwise(offset * -1)
    seconds = minutes * 60 + (digits(17, 2) if form.seconds else 0)
    if not form.fraction:
        return seconds * 1_000_000
    places = length - 20 - {"": 0, "Z": 1, "offset": 6}[form.zone]
    return seconds * 1_000_000 + digits(20, places) * int(10 ** (6 - places))


_MICROSECONDS = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000,
    "D": 86_400_000_000, "W": 604_800_000_000,
}  # fmt: skip


GROUP, ORDER, VALUE = "__group__", "__order__", "__value__"


def ordered(
    frame: Any,
    value: Hashable,
    *,
    by: Hashable | None,
    order_by: Hashable | None,
    time_format: str | None = None,
) -> tuple[nw.LazyFrame[Any], dict[str, nw.dtypes.DType], int]:
    """Return the columns ``__value__``, ``__group__`` and ``__order__``, their types, and N."""
    table, kinds, rows, _ = series_in(
        frame, value, by=by, order_by=order_by, time_format=time_format
    )
    return table, kinds, rows


def series_in(
    frame: Any,
    value: Hashable,
    *,
    by: Hashable | None,
    order_by: Hashable | None,
    time_format: str | None,
    gaps: bool = False,
) -> tuple[nw.LazyFrame[Any], dict[str, nw.dtypes.DType], int, Times]:
    """Return what `ordered` does, and how the times were read.

    Missing values raise, unless `gaps`.

    Without `by` all rows are one group. Without `order_by` rows keep their order, which only a
    frame in memory has. Text is read as times, by `time_format` or ISO 8601.
    """
    check_roles(value, groups=by, order_by=order_by)
    called = order_by
    if order_by is None:
        if time_format is not None:
            raise ModelError("time_format says how the column of order_by= is read: name it.")
        held = in_memory(frame)
        if held is None:
            raise FrameError(
                "the engine of this frame keeps no order of rows: give order_by=, the column that"
                " orders them."
            )
        frame, order_by = held.with_row_index("__row").to_native(), "__row"
    columns = {VALUE: value, ORDER: order_by} | ({} if by is None else {GROUP: by})
    table, names, schema = chosen(frame, list(columns.values()))
    refuse_mixed(frame, by)
    refuse_dask(table)
    rows = check_complete(table, [n for n in names if not gaps or n != column_name(value)], schema)
    renamed = [nw.col(name).alias(new) for new, name in zip(columns, names, strict=True)]
    table = table.select(*renamed, *([nw.lit(0).alias(GROUP)] if by is None else []))
    kinds = {new: schema[name] for new, name in zip(columns, names, strict=True)}
    table, times = with_times(table, ORDER, kinds[ORDER], called=called, time_format=time_format)
    kinds[ORDER] = times.kind
    return table, kinds, rows, times


def refuse_dask(table: nw.LazyFrame[Any]) -> None:
    """Raise for a frame engine without ordered window functions."""
    if table.implementation.is_dask():
        raise FrameError(
            "Dask has no ordered window functions, which this needs: bring the frame into memory"
            " first, or read the same data with DuckDB, polars or Spark."
        )


def before(column: str, steps: int) -> nw.Expr:
    """Return what a column held `steps` earlier in the same group; null at the beginning."""
    return nw.col(column).shift(steps).over(GROUP, order_by=ORDER)


def _ranked(table: nw.LazyFrame[Any], kinds: Mapping[str, nw.dtypes.DType]) -> nw.LazyFrame[Any]:
    """Add ``__size__``, ``__rank__`` from 1, and flags for equal or missing places."""
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

    Both come from the query that adds the values up, not from an earlier one.
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
    frame: Any,
    value: Hashable,
    *,
    by: Hashable | None,
    order_by: Hashable,
    time_format: str | None = None,
) -> tuple[Counter[tuple[int, int, Hashable]], Counter[int]]:
    """Count (size of the group, place in it from 0, value), and groups by size: in one query."""
    table, kinds, rows = ordered(frame, value, by=by, order_by=order_by, time_format=time_format)
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
    time_format: str | None = None,
) -> tuple[dict[tuple[int, int], ClampedSum], Counter[int]]:
    """Add up the values of each (size of the group, place in it from 0), inside their bounds.

    Returns the sums, and how many groups there are of each size, from one query.
    """
    table, kinds, rows = ordered(frame, value, by=by, order_by=order_by, time_format=time_format)
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


_NO_STEP = 2**62  # longer than any


class Steps:
    """The steps between neighbouring times of a group, and what may be wrong with them.

    Columns that the engine adds up, in the query that also adds the values up or in one of its own.
    """

    AGAIN, BETWEEN, SHORTEST, LONGEST = "__twice__", "__between__", "__shortest__", "__longest__"

    ADDED, ENDS = (AGAIN, BETWEEN), (SHORTEST, LONGEST)

    COLUMNS = (*ADDED, *ENDS)

    def __init__(self, times: Times, *, every: str | float | None = None) -> None:
        self._times = times
        self._step = None if every is None else _step(every, times.column, timed=times.timed)

    @property
    def length(self) -> float:
        """The stated length of a step, in units of ``__time__``; 1 if none is stated."""
        return 1.0 if self._step is None else self._step

    def on(self, table: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Add these columns to a table of `GROUP` and `ORDER`, which sorts in order of time."""
        measured = self._times.kind.is_numeric() or self._times.kind.is_temporal()
        number = _as_number(nw.col(ORDER), self._times.kind) if measured else nw.lit(0)
        table = table.with_columns(number.alias("__time__"))
        if self._times.kind.is_float() and table.implementation.is_pandas():
            held = table.to_native()  # pandas has no remainder for floats of Arrow
            plain = held.assign(__time__=held["__time__"].astype("float64"))
            table = nw.from_native(plain).lazy()
        return table.with_columns(*self._columns(measured=measured))

    def _columns(self, *, measured: bool) -> list[nw.Expr]:
        again = (nw.col(ORDER) == before(ORDER, 1)).fill_null(value=False)
        step = nw.col("__time__") - before("__time__", 1) if measured else nw.lit(1)
        between = nw.lit(0)
        if self._step is not None:  # the first row of a group has no step
            between = (step % self._step > 0).fill_null(value=False).cast(nw.Int64)
        return [
            again.cast(nw.Int64).alias(self.AGAIN),
            between.alias(self.BETWEEN),
            step.fill_null(_NO_STEP).alias(self.SHORTEST),
            step.fill_null(0).alias(self.LONGEST),
        ]

    def ends(self) -> list[nw.Expr]:
        """Return how `ENDS` of several rows are combined; `ADDED` are added up."""
        return [nw.col(self.SHORTEST).min(), nw.col(self.LONGEST).max()]

    def check(self, found: Mapping[str, Sequence[Any]]) -> None:
        """Raise for repeated times and for gaps; the message neither counts nor shows them.

        If the length of a step is stated, there may be gaps of whole steps: values that are not in
        the table. Otherwise steps shorter than others are refused as well: neighbours so close are
        correlated more strongly than the stated correlation.
        """
        order_by = self._times.column
        if sum(found[self.AGAIN]):
            raise ModelError(
                f"column {order_by} has two equal times within a series. Local times repeat an hour"
                " when clocks are set back: write them in UTC or with their offset. Other rows of"
                " one time must become one, by a rule that does not depend on their values."
            )
        if min(found[self.SHORTEST]) == 0:  # 0 is a multiple of every step
            raise ModelError(
                f"column {order_by} has times within a series that are too close to be told apart;"
                " keep one row for each."
            )
        if max(found[self.LONGEST]) == math.inf:  # engines differ on its remainder
            raise ModelError(
                f"column {order_by} has times that are infinitely far apart: every time must be a"
                " finite number."
            )
        if sum(found[self.BETWEEN]):
            raise ModelError(
                f"column {order_by} has times that are not a whole number of steps apart: give a"
                " shorter step with every=."
            )
        if self._step is None and max(found[self.LONGEST]) > 1.5 * min(found[self.SHORTEST]):
            raise ModelError(
                f"column {order_by} has gaps (steps longer than 1.5 times the shortest one), across"
                " which the next value is not one step away. Fill the gaps (of states:"
                " MarkovChainEstimator(missing='absent', every=...)), or split the series; a stated"
                " correlation also takes the length of a step, every= (--every)."
            )


def check_times(
    table: nw.LazyFrame[Any], times: Times, *, every: str | float | None = None
) -> None:
    """Raise for repeated times and for gaps of a table of `GROUP` and `ORDER`, read as times."""
    steps = Steps(times, every=every)
    found = one_row(
        steps.on(table.select(GROUP, ORDER)).select(
            *(nw.col(one).sum() for one in steps.ADDED), *steps.ends()
        )
    )
    steps.check({name: [one] for name, one in found.items()})


@asks_the_engine
def check_series(
    frame: Any,
    value: Hashable,
    *,
    by: Hashable | None,
    order_by: Hashable,
    time_format: str | None = None,
    every: str | float | None = None,
) -> None:
    """Refuse times that no series of a model has: repeated ones, gaps, unknown forms of text.

    `every` says how long a step is: ``1D``, ``15min``, ``2h``, ``1W``, or, where the column counts
    in units of its own (numbers, months, periods), how many of them. Then there may be gaps.
    """
    table, _, _, times = series_in(frame, value, by=by, order_by=order_by, time_format=time_format)
    check_times(table, times, every=every)


def _step(every: str | float, order_by: Hashable, *, timed: bool) -> float:
    """Return the length of a step in the unit of the column."""
    if timed:
        found = re.fullmatch(rf"([1-9][0-9]*)?({'|'.join(_MICROSECONDS)})", str(every))
        if found is None:
            raise ModelError(
                f"column {order_by} holds times: every= must be a length such as '1D', '15min' or"
                f" '2h', with one of {', '.join(_MICROSECONDS)}; got {every!r}."
            )
        return int(found[1] or 1) * _MICROSECONDS[found[2]]
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < math.inf:
        raise ModelError(
            f"column {order_by} has its own unit: every= must be the number of units in a step,"
            f" such as every=1; got {every!r}."
        )
    return every


def _as_number(time: nw.Expr, kind: nw.dtypes.DType) -> nw.Expr:
    """Return times as numbers, from calendar fields: engines differ in almost all else.

    Missing dates and times become some number; they are found when rows are read.
    """

    def whole(part: nw.Expr) -> nw.Expr:
        return part.fill_null(0).cast(nw.Int64)

    if kind.is_integer() and kind not in (nw.UInt64, nw.Int128, nw.UInt128):
        return time.cast(nw.Int64)  # floats do not hold all microseconds of our era
    if kind.is_numeric():
        return time.cast(nw.Float64)
    if kind == nw.Duration:
        return whole(time.dt.total_microseconds())
    if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
        time = time.dt.convert_time_zone("UTC")
    seconds = nw.lit(0)
    if kind != nw.Time:
        last = whole(time.dt.year()) - 1
        leaps = last // 4 - last // 100 + last // 400
        seconds = (365 * last + leaps + whole(time.dt.ordinal_day())) * 86400
    if kind == nw.Date:
        return seconds * 1_000_000
    clock = whole(time.dt.hour()) * 3600 + whole(time.dt.minute()) * 60
    seconds = seconds + clock + whole(time.dt.second())
    return seconds * 1_000_000 + whole(time.dt.microsecond())
