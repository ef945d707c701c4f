"""What every query has: lowering, JSON, and the tuples it goes over."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import QueryError, UnsupportedQueryError, damage_refused
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import checked_model, field_of, json_value, plain, values_of

_MOST_ROWS = 2**62
_LARGEST_ANSWER = 1e250  # sums over many rows, and scales for small ε, must stay floats too


class Query(abc.ABC):
    """Base of all queries: frozen, compared by value, silent about data."""

    _kinds: ClassVar[dict[str, type[Query]]] = {}

    def __init_subclass__(cls) -> None:
        Query._kinds[cls.__name__] = cls

    @abc.abstractmethod
    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower the query for one instance of the model out of `rows`."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""

    @classmethod
    @abc.abstractmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Query:
        """Undo `to_dict`."""

    @staticmethod
    @damage_refused("the description of a query", kind=QueryError)
    def from_dict(described: Mapping[str, Any]) -> Query:
        """Rebuild a query from its JSON description."""
        kind = field_of(described, "type")
        if kind not in Query._kinds:
            raise QueryError(f"unknown type of query {kind!r}.")
        return Query._kinds[kind].from_parameters(described)


@dataclass(frozen=True, kw_only=True)
class OverTuples(Query):
    """A query that takes the same function of every tuple it goes over."""

    over: Iterable[Hashable] | None = None
    """The tuples that enter the answer, None for all. Everyone else can still be attacked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", checked_over(self.over))

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        over = None if self.over is None else [json_value(name) for name in self.over]
        return {"type": type(self).__name__, "over": over}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Query:
        """Undo `to_dict`."""
        return cls(over=stored_over(described))


def lower(query: Query, model: Model, *, rows: int = 1) -> Contributions:
    """Turn a query into what each value of each tuple adds to the answer.

    Parameters
    ----------
    query
        What is asked.
    model
        Whose names and domains the query refers to.
    rows
        Number of independent instances answered together; only a mean depends on it.
    """
    checked_model(model)
    if not isinstance(query, Query):
        raise QueryError(f"a query such as Sum() is needed, got {type(query).__name__}.")
    if not hasattr(rows, "__index__") or int(rows) < 1:
        raise QueryError(f"rows must be a positive whole number, got {rows!r}.")
    if int(rows) > _MOST_ROWS:
        raise QueryError(f"rows must be at most {_MOST_ROWS:,}.")
    with np.errstate(over="ignore"):
        found = query.contributions(model, rows=int(rows))
        magnitude = found.magnitude
    if not magnitude <= _LARGEST_ANSWER:
        raise QueryError(
            f"answers may be as large as {magnitude:.3g}, and floating point carries the proof up"
            f" to {_LARGEST_ANSWER:.3g} only: change the unit of the values, or narrow their range."
        )
    return found


def refuse_continuous(model: Model, kind: str) -> None:
    """Raise where a query needs discrete tuples."""
    if model.is_continuous:
        raise UnsupportedQueryError(
            f"{kind} needs discrete tuples; a continuous model answers Sum, Mean and Linear."
        )


def selected(over: Iterable[Hashable] | None, model: Model) -> tuple[Hashable, ...]:
    """Return the names that a query goes over, or raise with the names there are."""
    if over is None:
        return model.names
    chosen = tuple(over)
    there = set(model.names)
    unknown = [str(name) for name in chosen if name not in there]
    if unknown:
        known = ", ".join(map(str, model.names[:12]))
        raise QueryError(f"the model has no tuple {', '.join(unknown)}; it has {known}.")
    return chosen


def checked_over(over: Iterable[Hashable] | None) -> tuple[Hashable, ...] | None:
    """Return the names as a tuple; a single text is one name."""
    if over is None:
        return None
    chosen = (over,) if isinstance(over, str) else tuple(plain(name) for name in over)
    if not chosen:
        raise QueryError("over must name at least one tuple, got none; leave it out for all.")
    if len(set(chosen)) != len(chosen):
        raise QueryError("over must not name a tuple twice.")
    return chosen


def stored_over(described: Mapping[str, Any]) -> list[Hashable] | None:
    """Read the names of a JSON object."""
    return None if field_of(described, "over") is None else values_of(described, "over")
