"""The column that orders rows: text is read as times, since text order is not time order."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.statistics.frames import how_many, kind_name, one_row

_MONTH = r"[0-9]{4}-(?:0[1-9]|1[0-2])"
_DAY = _MONTH + r"-(?:0[1-9]|[12][0-9]|3[01])"
_MINUTE = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET = r"[+-]" + _MINUTE


class _Form(NamedTuple):
    """One way to write a time by ISO 8601; all its texts are of one length."""

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


def with_times(
    table: nw.LazyFrame[Any],
    column: str,
    kind: nw.dtypes.DType,
    *,
    called: object,
    time_format: str | None,
) -> tuple[nw.LazyFrame[Any], nw.dtypes.DType]:
    """Return the table with a column that sorts in order of time, and the type of that column.

    Numbers, dates and times stay as they are. Text must be ISO 8601, every row in the same form,
    or follow the `time_format`; whether it does is decided by the rows, so the error tells that
    much about them. The message names the column and the rule, and no value.

    Parameters
    ----------
    table, column, kind
        Rows without missing cells, the column in them that orders, and its type.
    called
        What the column is called in messages.
    time_format
        How text is written, as in `datetime.strptime`: ``%d/%m/%Y``. None for ISO 8601.
    """
    if isinstance(kind, nw.String | nw.Categorical | nw.Enum):
        table = table.with_columns(nw.col(column).cast(nw.String))
        if time_format is not None:
            return _parsed(table, column, called=called, time_format=time_format)
        return _read_as_iso(table, column, called=called), nw.Int64()
    if time_format is not None:
        raise ModelError(
            f"time_format says how text is read, and column {called} holds {kind_name(kind)}: leave"
            " it out."
        )
    if _holds_periods(table, column):
        return table.with_columns(nw.col(column).cast(nw.Int64)), nw.Int64()
    if not (kind.is_numeric() or kind.is_temporal() or kind == nw.Boolean):
        raise ModelError(
            f"column {called} orders the rows, so it must hold numbers, dates or times, got"
            f" {kind_name(kind)}; in pandas, convert it with pd.to_datetime."
        )
    return table, kind


def _holds_periods(table: nw.LazyFrame[Any], column: str) -> bool:
    """Whether the column holds periods of pandas, which are numbered one by one."""
    if not table.implementation.is_pandas():
        return False
    return str(table.to_native()[column].dtype).startswith("period")


def _parsed(
    table: nw.LazyFrame[Any], column: str, *, called: object, time_format: str
) -> tuple[nw.LazyFrame[Any], nw.dtypes.DType]:
    """Read text by a format; what the engine says of text that does not fit may hold cells."""
    found = None
    try:
        read = table.with_columns(nw.col(column).str.to_datetime(format=time_format))
        found = one_row(read.select(how_many(nw.col(column).is_null()).alias("unread")))
        kind = read.collect_schema()[column]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001, S110 - every engine has errors of its own; raised below
        pass
    if found is None or found["unread"]:
        raise ModelError(
            f"column {called} cannot be read with time_format={time_format!r}: every row must"
            " have a full date in that form, and the engine that holds the rows must know it."
        )
    return read, kind


def _read_as_iso(table: nw.LazyFrame[Any], column: str, *, called: object) -> nw.LazyFrame[Any]:
    """Turn ISO 8601 text into whole numbers: months, days, or microseconds."""
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
    fitting = [f for place, f in enumerate(_FORMS) if found[f"form{place}"] == found["rows"]]
    if not fitting or found["shortest"] != found["longest"]:
        raise ModelError(
            f"column {called} orders the rows and is text, which does not sort in order of time"
            " unless every row is written by ISO 8601 in one form (2024-01-31, or"
            " 2024-01-31T12:00:00). Say how it is written with time_format= (--time-format on the"
            " command line), such as %d/%m/%Y."
        )
    return table.with_columns(_number(column, fitting[0], int(found["longest"])).alias(column))


def _number(column: str, form: _Form, length: int) -> nw.Expr:
    """Return what the digits of a text say, in months, days or microseconds."""

    def digits(start: int, number: int) -> nw.Expr:
        return nw.col(column).str.slice(start, number).cast(nw.Int64)

    year, month = digits(0, 4), digits(5, 2)
    if not form.day:
        return year * 12 + month
    # Years that begin in March end with the leap day, so months have fixed beginnings.
    late = (14 - month) // 12
    since, place = year - late, month + late * 12 - 3
    leaps = since // 4 - since // 100 + since // 400
    days = digits(8, 2) + (place * 153 + 2) // 5 + since * 365 + leaps
    if not form.clock:
        return days
    minutes = (days * 24 + digits(11, 2)) * 60 + digits(14, 2)
    if form.zone == "offset":
        offset = digits(length - 5, 2) * 60 + digits(length - 2, 2)
        behind = nw.col(column).str.slice(length - 6, 1) == "-"
        minutes = minutes + nw.when(behind).then(offset).otherwise(offset * -1)
    seconds = minutes * 60 + (digits(17, 2) if form.seconds else 0)
    if not form.fraction:
        return seconds * 1_000_000
    places = length - 20 - {"": 0, "Z": 1, "offset": 6}[form.zone]
    return seconds * 1_000_000 + digits(20, places) * int(10 ** (6 - places))
