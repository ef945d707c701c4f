"""Queries written as text, for command lines and plan files.

::

    query   =  "sum" | "mean"  "(" [columns] ")"        every tuple where no column is named
            |  "count"         "(" [[columns] "=" values] ")"
            |  "histogram"     "(" [columns] ["=" values] ")"
            |  "linear"        "(" ["+" | "-"] term { ("+" | "-") term } ")"
    columns =  column { "," column }
    values  =  value  { "," value }
    term    =  [number "*"] column
    column  =  word | number | quoted
    value   =  number | "true" | "false" | word | quoted

A word is made of letters, digits, ``_`` and ``.``; anything else is quoted with ``"``, ``'`` or a
backtick, and a quote inside is written twice. A number among values is a number, unless quoted.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Never, get_args

from pdp_calibrate.errors import QueryError, did_you_mean

Kind = Literal["sum", "mean", "count", "histogram", "linear"]


_KINDS: tuple[Kind, ...] = get_args(Kind)


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.]))
    | (?P<word>[\w.]+)
    | (?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`)
    | (?P<sign>[(),=*+-])
    )""",
    re.VERBOSE,
)


_LONGEST_NUMBER = 1000  # Python reads no whole number of more than 4300 digits


class QuerySyntaxError(QueryError):
    """A query written as text does not follow the grammar."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"{problem} at character {position + 1} of {text!r}.")
        self.problem = problem
        self.text = text
        self.position = position

    @property
    def picture(self) -> str:
        """The text, and below it a caret at the first wrong character."""
        return f"{self.text}\n{' ' * self.position}^"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A query as it was written, before the tuples are known."""

    kind: Kind
    """The statistic."""
    columns: tuple[Hashable, ...] | None = None
    """The columns named, None for every tuple."""
    values: Iterable[Hashable] | None = None
    """For a count, the values that count; for a histogram, the categories."""
    weights: tuple[float, ...] | None = None
    """For a weighted sum, one weight per column."""
    text: str = field(default="", compare=False)
    """The question as it was written."""

    def named(self, names: Sequence[Hashable]) -> tuple[Hashable, ...] | None:
        """Return the columns under the names of a model's tuples; unknown ones stay as written."""
        if self.columns is None:
            return None
        called = {str(name): name for name in names} | {name: name for name in names}
        return tuple(called.get(column, column) for column in self.columns)


def parse_query(text: str) -> Question:
    """Read a query such as ``mean(income)``.

    Raises
    ------
    QuerySyntaxError
        With the position of the error.

    Examples
    --------
    >>> parse_query("count(mother, child = 1, 2)").values
    (1, 2)
    >>> parse_query("linear(2*income - debt)").weights
    (2.0, -1.0)
    >>> parse_query("mean('net income'")
    Traceback (most recent call last):
    pdp_calibrate.jobs.grammar.QuerySyntaxError: expected ',' or ')' at character 18 of ...
    """
    if not isinstance(text, str):
        raise QueryError(f"a question is text, such as 'mean(income)', got {type(text).__name__}.")
    return _Reader(text).question()


def checked_conditions(said: Any, what: str) -> dict[Any, Any]:
    """Return which values of columns count, by column; anything else, such as a mask, is refused.

    Parameters
    ----------
    said
        What was said.
    what
        The name of the argument, for messages.
    """
    if isinstance(said, Mapping | None) or (isinstance(said, list | tuple) and not said):
        return dict(said or {})
    raise QueryError(
        f"{what} says which values of columns count, such as {{'sick': True}}, got"
        f" {type(said).__name__}. Rows are chosen by their values, not by a mask: make it a column"
        " of the table, such as {'adult': True}."
    )


def conditions_of(conditions: Any, options: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the conditions of a count and of where= together; a column has one of them."""
    counted = checked_conditions(conditions, "a count of rows")
    where = checked_conditions(options.get("where"), "where")
    if set(counted) & set(where):
        raise QueryError("where= has a condition on a column that is counted already.")
    return counted | where


def parse_values(text: str) -> tuple[Hashable, ...]:
    """Read a list of values such as ``0, 1, 'two'``."""
    return _Reader(text).values()


@dataclass(frozen=True)
class _Token:
    what: str  # number, word, quoted, sign or end
    text: str
    at: int


class _Reader:
    """Reads tokens one after the other; one token of look-ahead is enough."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def question(self) -> Question:
        kind = self._kind()
        self._sign("(")
        if kind == "linear":
            columns, weights = self._terms()
            found = Question(text=self._text, kind=kind, columns=columns, weights=weights)
        else:
            found = self._listed(kind)
        if self._peek.what != "end":
            self._fail("expected the end of the query")
        return found

    def _kind(self) -> Kind:
        for kind in _KINDS:
            if self._peek.what == "word" and self._peek.text.lower() == kind:
                self._take()
                return kind
        meant = did_you_mean(self._peek.text.lower(), _KINDS)
        return self._fail(f"expected one of {', '.join(_KINDS)}{meant}")

    def _listed(self, kind: Kind) -> Question:
        columns: list[str] = []
        if not self._sees("=", ")"):
            columns.append(self._column())
            while self._sees(","):
                self._take()
                columns.append(self._column())
        chosen = tuple(columns) or None
        if kind in ("sum", "mean"):
            self._sign(")", or_else="',' or ")
            return Question(text=self._text, kind=kind, columns=chosen)
        if self._sees(")") and (kind == "histogram" or chosen is None):
            self._take()
            return Question(text=self._text, kind=kind, columns=chosen)
        if not self._sees("="):
            hint = "'=' and the values to count" if kind == "count" else "',', '=' or ')'"
            self._fail(f"expected {hint}")
        self._take()
        values = self._values()
        self._sign(")", or_else="',' or ")
        return Question(text=self._text, kind=kind, columns=chosen, values=values)

    def values(self) -> tuple[Hashable, ...]:
        found = self._values()
        if self._peek.what != "end":
            self._fail("expected ','")
        return found

    def _values(self) -> tuple[Hashable, ...]:
        values = [self._value()]
        while self._sees(","):
            self._take()
            values.append(self._value())
        return tuple(values)

    def _terms(self) -> tuple[tuple[str, ...], tuple[float, ...]]:
        weights: dict[str, float] = {}
        sign = self._plus_or_minus() if self._sees("+", "-") else 1.0
        while True:
            start = self._peek.at
            weight = 1.0
            if self._peek.what == "number":
                weight = float(self._take().text)
                self._sign("*")
            column = self._column()
            if column in weights:
                self._fail(f"{column!r} has a weight already", at=start)
            weights[column] = sign * weight
            if self._sees(")"):
                self._take()
                return tuple(weights), tuple(weights.values())
            if not self._sees("+", "-"):
                self._fail("expected '+', '-' or ')'")
            sign = self._plus_or_minus()

    def _plus_or_minus(self) -> float:
        return 1.0 if self._take().text == "+" else -1.0

    def _column(self) -> str:
        if self._peek.what in ("word", "number"):
            return self._take().text
        if self._peek.what == "quoted":
            return _unquoted(self._take().text)
        return self._fail("expected the name of a column")

    def _value(self) -> Hashable:
        sign = self._take().text if self._sees("+", "-") else ""
        if self._peek.what == "number":
            if len(self._peek.text) > _LONGEST_NUMBER:
                self._fail(f"a number has at most {_LONGEST_NUMBER} characters")
            text = sign + self._take().text
            return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
        if sign:
            self._fail("expected a number")
        if self._peek.what == "word":
            text = self._take().text
            return {"true": True, "false": False}.get(text.lower(), text)
        if self._peek.what == "quoted":
            return _unquoted(self._take().text)
        return self._fail("expected a value")

    def _split(self) -> Iterable[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise QuerySyntaxError("unexpected character or open quote", self._text, at)
            what = found.lastgroup or ""
            yield _Token(what, found[what], found.start(what))
            at = found.end()
        yield _Token("end", "", end)

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek
        self._next += 1
        return token

    def _sees(self, *signs: str) -> bool:
        return self._peek.what == "sign" and self._peek.text in signs

    def _sign(self, sign: str, *, or_else: str = "") -> None:
        if not self._sees(sign):
            self._fail(f"expected {or_else}{sign!r}")
        self._take()

    def _fail(self, problem: str, *, at: int | None = None) -> Never:
        raise QuerySyntaxError(problem, self._text, self._peek.at if at is None else at)


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)
