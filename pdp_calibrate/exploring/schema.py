"""The columns of a table as the user types them: kinds, ranges, possible values; never a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdp_calibrate.errors import PdpError, QueryError
from pdp_calibrate.jobs.advise import TYPES
from pdp_calibrate.jobs.grammar import parse_values

KINDS = {
    "number": "number",
    "whole number": "whole number",
    "yes/no": "yes/no",
    "text": "categories",
    "time": "time",
}
"""The kinds of columns as `advise` calls them, and what the page calls them."""

MOST_COLUMNS = 1000
"""How many columns the page lists."""

MOST_PEOPLE = 1_000_000
"""The most placeholder rows for a table that is not opened."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """The description of one column, as typed."""

    name: str
    """Its name."""
    kind: str = "number"
    """One of `KINDS`."""
    low: str = ""
    """The lowest possible value, for numbers."""
    high: str = ""
    """The highest possible value, for numbers."""
    values: str = ""
    """The possible values, for anything else."""

    @property
    def is_number(self) -> bool:
        """Whether it can be added up."""
        return self.kind in ("number", "whole number")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The public range; None where none was typed."""
        if not self.is_number or not (self.low and self.high):
            return None
        low = number_in(self.low, f"the lowest value of {self.name}")
        high = number_in(self.high, f"the highest value of {self.name}")
        if low >= high:
            raise QueryError(f"the lowest value of {self.name} must lie below its highest.")
        return low, high

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """The possible values; None where none were typed."""
        if self.kind in ("number", "time") or not self.values:
            return None
        return tuple(parse_values(self.values))


def columns_from(text: str) -> tuple[Column, ...]:
    """Read the columns that the page sends, in JSON.

    Examples
    --------
    >>> columns_from('[{"name": "income", "kind": "number", "low": "0", "high": "9"}]')[0].bounds
    (0.0, 9.0)
    """
    columns = tuple(Column(**{"name": ""} | one) for one in _records(text))
    names = [column.name for column in columns]
    for column in columns:
        if not column.name:
            raise QueryError("every column in step 1 needs a name.")
        if column.kind not in KINDS:
            raise QueryError(
                f"the kind of {column.name} must be one of {', '.join(KINDS)}, got {column.kind!r}."
            )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise QueryError(f"two columns are called {twice}.")
    if not columns:
        raise QueryError("type the names of the table's columns in step 1.")
    return columns


def _records(text: str) -> list[dict[str, str]]:
    return records_from(text, Column.__dataclass_fields__, "columns")


def records_from(text: str, known: Iterable[str], called: str) -> list[dict[str, str]]:
    """Read a JSON list of objects whose fields are all known and hold text."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise QueryError(f"the {called} of the form must be a list in JSON.") from None
    fine = isinstance(found, list) and all(
        isinstance(one, dict)
        and set(one) <= set(known)
        and all(isinstance(value, str) for value in one.values())
        for one in found
    )
    if not fine or len(found) > MOST_COLUMNS:
        raise QueryError(f"the {called} of the form must be a list of at most {MOST_COLUMNS}.")
    records: list[dict[str, str]] = found
    return records


def as_json(records: Iterable[Any]) -> str:
    """Write columns or questions as the page keeps them."""
    return json.dumps([asdict(one) for one in records], ensure_ascii=False)


def number_in(text: str, what: str) -> float:
    """Return a number that was typed."""
    try:
        found = float(text)
    except ValueError:
        raise PdpError(f"{what} must be a number, got {text[:40]!r}.") from None
    if not math.isfinite(found):
        raise PdpError(f"{what} must be finite.")
    return found


def whole_in(text: str, what: str) -> int:
    """Return a whole number above 0 that was typed."""
    found = number_in(text, what)
    if found != int(found) or found < 1:
        raise PdpError(f"{what} must be a whole number above 0, got {text[:40]!r}.")
    return int(found)


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Placeholder rows for a table that is not opened: all alike, and about nobody."""

    columns: tuple[Column, ...]
    """The columns of the table."""
    people: int
    """How many rows."""
    groups: str = ""
    """The column that names the group."""
    order_by: str = ""
    """The column of times."""
    size: int = 1
    """How many rows a group has."""

    def __post_init__(self) -> None:
        if self.people > MOST_PEOPLE:
            raise QueryError(
                f"the number of people must be at most {MOST_PEOPLE:,}, got {self.people:,}: open a"
                " file instead."
            )

    def frame(self) -> pd.DataFrame:
        """Make the rows."""
        row = np.arange(self.people)
        cells: dict[str, Any] = {column.name: _filling(column) for column in self.columns}
        if self.groups in cells:
            cells[self.groups] = row // self.size
        if self.order_by in cells:
            cells[self.order_by] = row % self.size if self.groups else row
        return pd.DataFrame(cells, index=row)

    def code(self) -> str:
        """Return the Python that makes the same rows."""
        cells = {column.name: repr(_filling(column)) for column in self.columns}
        every = f"for row in range({self.people})"
        if self.groups in cells:
            cells[self.groups] = f"[row // {self.size} {every}]"
        if self.order_by in cells:
            cells[self.order_by] = f"[row{f' % {self.size}' if self.groups else ''} {every}]"
        inside = "".join(f"        {name!r}: {cell},\n" for name, cell in cells.items())
        return (
            "# Placeholder rows about nobody: read your own rows here instead.\n"
            f"people = pd.DataFrame(\n    {{\n{inside}    }},\n    index=range({self.people}),\n)"
        )


def _filling(column: Column) -> Any:
    """Return one possible value, of the right type."""
    domain = column.domain
    return TYPES[column.kind]() if domain is None else domain[0]
