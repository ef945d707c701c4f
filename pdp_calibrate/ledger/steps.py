"""Names of steps: whole numbers, or the periods of a calendar."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pandas as pd

from pdp_calibrate.errors import LedgerError

_WRITTEN = re.compile(r"\d{4}(-\d{2}(-\d{2})?|Q[1-4])?(/\d{4}-\d{2}-\d{2})?")  # by `step_name`

_LENGTHS = re.compile(r"([1-9]\d{0,5})?([DdWwMQYhH]|min|s|W-[A-Z]{3}|[QY]-[A-Z]{3})")

_MOST = 2**62  # so that differences of steps stay whole numbers everywhere


def checked_every(every: object) -> str | None:
    """Return how long a step is, as pandas writes it (``D``, ``W``, ``M``, ``30D``); None if none.

    Examples
    --------
    >>> checked_every("d"), checked_every("30D")
    ('D', '30D')
    """
    if every is None:
        return None
    found = _LENGTHS.fullmatch(every) if isinstance(every, str) else None
    if found is not None:
        number, unit = found[1] or "1", {"d": "D", "w": "W", "H": "h"}.get(found[2], found[2])
        return str(pd.Period("2000-01-01", freq=f"{int(number)}{unit}").freqstr)
    raise LedgerError(
        f"every must be the length of a step, such as 'D', 'W', 'M' or '30D', got {every!r}."
    )


def step_number(step: object, every: str | None) -> int:
    """Return the number of a step, counted from 1970 where steps are periods.

    Examples
    --------
    >>> step_number(7, None), step_number("2026-11-17", "D") - step_number("2026-11-16", "D")
    (7, 1)
    """
    if every is None:
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise LedgerError(
                f"a step must be a whole number, got {step!r}; for dates, start the ledger with"
                " every=, such as every='D'."
            )
        number = int(step)
    else:
        period = _period(step, every)
        number = int(period.ordinal) // int(getattr(period.freq, "n", 1))
    if not -_MOST < number < _MOST:
        raise LedgerError("a step must be a whole number below 2^62.")
    return number


def step_name(step: object, every: str | None) -> int | str:
    """Return the name of a step in a ledger: its number, or the first day of its period.

    Examples
    --------
    >>> step_name("2026-11-17T08:30", "D"), step_name(7, None)
    ('2026-11-17', 7)
    """
    return name_of(step_number(step, every), every)


def name_of(number: int, every: str | None) -> int | str:
    """Return the name of a step in a ledger, from its number."""
    return number if every is None else str(period_of(number, every))


def period_of(number: int, every: str) -> pd.Period:
    """Undo `step_number` where steps are periods."""
    freq = pd.Period("2000-01-01", freq=every).freq
    length = int(getattr(freq, "n", 1))
    return pd.Period(ordinal=number * length, freq=every)


def _period(step: object, every: str) -> pd.Period:
    """Return the period that a date, a time, a Period or ISO 8601 text lies in."""
    if isinstance(step, pd.Period):
        moment: Any = step.start_time
        if step.freqstr != every:
            raise LedgerError(f"a step of this ledger is {every}, and this period {step.freqstr}.")
    elif isinstance(step, str):
        try:
            moment = dt.datetime.fromisoformat(step)
        except ValueError as error:
            if not _WRITTEN.fullmatch(step):
                raise LedgerError(
                    f"a step must be a date in ISO 8601, such as 2026-11-17, got {step!r}."
                ) from error
            moment = _first_day(step, every)
    else:
        moment = step
    if not isinstance(moment, dt.date):
        raise LedgerError(
            f"a step must be a date, a Period or ISO 8601 text, got {type(step).__name__}."
        )
    if getattr(moment, "tzinfo", None) is not None:
        raise LedgerError("a step is named by local time: leave the time zone out.")
    try:
        return pd.Period(moment, freq=every)
    except (ValueError, TypeError, OverflowError) as error:
        raise LedgerError(f"a step cannot lie at {step!r}.") from error


def _first_day(step: str, every: str) -> dt.datetime:
    """Return when a period from a ledger begins."""
    try:
        found: dt.datetime = pd.Period(step, freq=every).start_time
    except (ValueError, TypeError) as error:
        raise LedgerError(f"a step cannot be named {step!r} where it is {every}.") from error
    return found
