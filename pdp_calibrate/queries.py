"""What is asked of the data: linear queries, and any function of a table.

Every query is *lowered* before anything else happens: `lower()` turns it into `Contributions`,
the amount that each value of each tuple adds to the answer. Engines see only those.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import ModelError, QueryError, UnsupportedQueryError
from pdp_calibrate.models import Blocks, Model
from pdp_calibrate.models.base import FloatArray, field_of, from_json_value, json_value, plain
from pdp_calibrate.models.table import numeric_domain, refuse_too_many_cells


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
    def from_dict(described: Mapping[str, Any]) -> Query:
        """Rebuild a query from its JSON description."""
        kind = field_of(described, "type")
        if kind not in Query._kinds:
            raise QueryError(f"unknown type of query {kind!r}.")
        return Query._kinds[kind].from_parameters(described)


@dataclass(frozen=True, kw_only=True)
class _Over(Query):
    """A query that takes the same function of every tuple it goes over."""

    over: Iterable[Hashable] | None = None
    """The tuples that enter the answer, None for all. Everyone else can still be attacked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", _checked_over(self.over))

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        over = None if self.over is None else [json_value(name) for name in self.over]
        return {"type": type(self).__name__, "over": over}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Query:
        """Undo `to_dict`."""
        return cls(over=_stored_over(described))


@dataclass(frozen=True, kw_only=True)
class _Added(_Over):
    """A query that adds up the values themselves."""

    clamp: bool = False
    """Whether values outside the public range are moved to its nearest end before adding."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        return super().to_dict() | {"clamp": self.clamp}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Query:
        """Undo `to_dict`."""
        return cls(over=_stored_over(described), clamp=bool(described.get("clamp", False)))


@dataclass(frozen=True, kw_only=True)
class Sum(_Added):
    """The sum of the values.

    >>> Sum(over=["father", "child"])
    Sum(over=('father', 'child'), clamp=False)
    """

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds its value."""
        del rows  # a sum over many independent rows changes by what one row changes
        weights = dict.fromkeys(_selected(self.over, model), 1.0)
        return _linear(model, weights, clamp=self.clamp)


@dataclass(frozen=True, kw_only=True)
class Mean(_Added):
    """The mean of the values, over all tuples in `over` and all rows."""

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds its value divided by the number of values averaged."""
        names = _selected(self.over, model)
        copies = dict(zip(model.names, model.copies, strict=True))
        number = rows * sum(copies[name] for name in names)
        weights = dict.fromkeys(names, 1.0)
        return _linear(model, weights, divisor=number, clamp=self.clamp)


@dataclass(frozen=True, kw_only=True)
class Linear(Query):
    """A weighted sum of the values.

    Parameters
    ----------
    weights
        ``{name: weight}``, tuples left out weighing zero, or one weight per tuple.
    clamp
        Whether values outside the public range are moved to its nearest end before adding.

    Examples
    --------
    >>> Linear(weights={"income": 1, "debt": -0.5})
    Linear(weights={'income': 1.0, 'debt': -0.5}, clamp=False)
    """

    weights: Mapping[Hashable, float] | tuple[float, ...]
    """The weight of each tuple, by name or by position."""
    clamp: bool
    """Whether values outside the public range are moved to its nearest end before adding."""

    def __init__(
        self, *, weights: Mapping[Hashable, float] | Iterable[float], clamp: bool = False
    ) -> None:
        given = weights.values() if isinstance(weights, Mapping) else weights
        try:
            numbers = [float(weight) for weight in given]
        except (TypeError, ValueError) as error:
            raise QueryError("weights must be numbers.") from error
        if not np.all(np.isfinite(numbers)):
            raise QueryError("weights must be finite, got NaN or infinity.")
        if not any(numbers):
            raise QueryError("weights must not all be zero: the answer would be constant.")
        named = isinstance(weights, Mapping)
        stored = dict(zip(weights, numbers, strict=True)) if named else tuple(numbers)
        object.__setattr__(self, "weights", stored)
        object.__setattr__(self, "clamp", bool(clamp))

    def __hash__(self) -> int:
        return hash(tuple(self.weights.items()) if isinstance(self.weights, dict) else self.weights)

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds its value times its weight."""
        del rows
        if isinstance(self.weights, Mapping):
            _selected(tuple(self.weights), model)
            return _linear(model, self.weights, clamp=self.clamp)
        if len(self.weights) != len(model.names):
            raise QueryError(
                f"weights must be one per tuple ({len(model.names)}), got {len(self.weights)}."
            )
        weights = dict(zip(model.names, self.weights, strict=True))
        return _linear(model, weights, clamp=self.clamp)

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        described = {"type": "Linear", "clamp": self.clamp}
        if isinstance(self.weights, Mapping):
            pairs = [[json_value(name), weight] for name, weight in self.weights.items()]
            return described | {"weights": pairs, "by": "name"}
        return described | {"weights": list(self.weights), "by": "position"}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Linear:
        """Undo `to_dict`."""
        weights = field_of(described, "weights")
        clamp = bool(described.get("clamp", False))
        if field_of(described, "by") == "name":
            named = {from_json_value(name): weight for name, weight in weights}
            return cls(weights=named, clamp=clamp)
        return cls(weights=weights, clamp=clamp)


@dataclass(frozen=True, kw_only=True)
class Count(_Over):
    """How many of the tuples hold one of the values.

    >>> sorted(Count(values={1, 2}).values)
    [1, 2]
    """

    values: Iterable[Hashable]
    """The values that count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise QueryError("values must be a collection of values, such as {1} or ['yes'].")
        values = frozenset(plain(value) for value in self.values)
        if not values:
            raise QueryError("values must name at least one value to count, got none.")
        object.__setattr__(self, "values", values)

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds 1 where its value counts."""
        del rows
        _refuse_continuous(model, "Count")
        names = set(_selected(self.over, model))
        counted = cast("frozenset[Hashable]", self.values)
        domains = dict(zip(model.names, model.domains, strict=True))
        nowhere = counted.difference(*(domains[name] for name in names))
        if nowhere:
            raise QueryError(f"{len(nowhere)} of the counted values are in no tuple's domain.")
        return Contributions.additive(
            [
                np.array([float(name in names and value in counted) for value in domain])
                for name, domain in domains.items()
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        values = [json_value(value) for value in self.values]
        return super().to_dict() | {"values": sorted(values, key=repr)}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Count:
        """Undo `to_dict`."""
        values = [from_json_value(value) for value in field_of(described, "values")]
        return cls(values=values, over=_stored_over(described))


@dataclass(frozen=True, kw_only=True)
class Custom(_Over):
    """Any real function of the tuples, on a joint table: maximum, median, a threshold.

    Examples
    --------
    >>> Custom(function=max).over is None
    True
    """

    function: Callable[[tuple[Any, ...]], float] | Mapping[tuple[Hashable, ...], float]
    """Takes one tuple of values in the order of `over`; or the table of its values."""

    def __hash__(self) -> int:
        return hash((self.over, id(self.function)))

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: the function's value in every cell, impossible cells included."""
        if isinstance(model, Blocks):
            raise UnsupportedQueryError(
                "Custom is not additive, so independent blocks cannot be treated one by one."
                " Use a JointTable over all tuples, or Sum, Count, Mean or Linear."
            )
        if rows != 1:
            raise UnsupportedQueryError("Custom answers about one instance, so rows must be 1.")
        _refuse_continuous(model, "Custom")
        axes = [model.names.index(name) for name in _selected(self.over, model)]
        refuse_too_many_cells([len(domain) for domain in model.domains])
        chosen = [model.domains[axis] for axis in axes]
        answers = [self._evaluate(cell) for cell in itertools.product(*chosen)]
        small = np.array(answers).reshape([len(domain) for domain in chosen])
        order = sorted(range(len(axes)), key=lambda place: axes[place])
        shape = [len(d) if axis in axes else 1 for axis, d in enumerate(model.domains)]
        full = np.broadcast_to(
            small.transpose(order).reshape(shape), [len(domain) for domain in model.domains]
        )
        return Contributions.tabulated(full)

    def _evaluate(self, cell: tuple[Hashable, ...]) -> float:
        try:
            answer = (
                self.function[cell] if isinstance(self.function, Mapping) else self.function(cell)
            )
            number = float(answer)
        except (TypeError, ValueError, KeyError, ArithmeticError) as error:
            raise QueryError(
                "function must return a number for every cell of the table."
            ) from error
        if not np.isfinite(number):
            raise QueryError("function must be finite on every cell of the table.")
        return number

    def tabulate(self, model: Model) -> Custom:
        """Return the same query with its function written out as a table of values."""
        domains = dict(zip(model.names, model.domains, strict=True))
        names = _selected(self.over, model)
        cells = itertools.product(*(domains[name] for name in names))
        return Custom(function={cell: self._evaluate(cell) for cell in cells}, over=names)

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON; only a tabulated function can be stored."""
        if not isinstance(self.function, Mapping):
            raise QueryError("a Custom query is stored as its table: call tabulate(model) first.")
        table = [[json_value(cell), answer] for cell, answer in self.function.items()]
        return super().to_dict() | {"table": table}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Custom:
        """Undo `to_dict`."""
        table = {
            cast("tuple[Hashable, ...]", from_json_value(cell)): float(answer)
            for cell, answer in field_of(described, "table")
        }
        return cls(function=table, over=_stored_over(described))


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
    if not isinstance(query, Query):
        raise QueryError(f"a query such as Sum() is needed, got {type(query).__name__}.")
    if not hasattr(rows, "__index__") or int(rows) < 1:
        raise QueryError(f"rows must be a positive whole number, got {rows!r}.")
    return query.contributions(model, rows=int(rows))


def _linear(
    model: Model, weights: Mapping[Hashable, float], *, divisor: int = 1, clamp: bool
) -> Contributions:
    factors = [weights.get(name, 0.0) / divisor for name in model.names]
    values: list[FloatArray] = []
    for name, domain in zip(model.names, model.domains, strict=True):
        weight = weights.get(name, 0.0)
        if weight == 0:
            values.append(np.zeros(len(domain)))
            continue
        try:
            values.append(weight * numeric_domain(domain, name) / divisor)
        except ModelError as error:
            raise QueryError(f"{error} A sum needs numbers; use Count for categories.") from error
    return Contributions.additive(values, weights=factors, clamped=clamp)


def _refuse_continuous(model: Model, kind: str) -> None:
    if model.is_continuous:
        raise UnsupportedQueryError(
            f"{kind} needs discrete tuples; a continuous model answers Sum, Mean and Linear."
        )


def _selected(over: Iterable[Hashable] | None, model: Model) -> tuple[Hashable, ...]:
    if over is None:
        return model.names
    chosen = tuple(over)
    unknown = [str(name) for name in chosen if name not in model.names]
    if unknown:
        known = ", ".join(map(str, model.names[:12]))
        raise QueryError(f"the model has no tuple {', '.join(unknown)}; it has {known}.")
    return chosen


def _checked_over(over: Iterable[Hashable] | None) -> tuple[Hashable, ...] | None:
    if over is None:
        return None
    chosen = (over,) if isinstance(over, str) else tuple(plain(name) for name in over)
    if not chosen:
        raise QueryError("over must name at least one tuple, got none; leave it out for all.")
    if len(set(chosen)) != len(chosen):
        raise QueryError("over must not name a tuple twice.")
    return chosen


def _stored_over(described: Mapping[str, Any]) -> list[Hashable] | None:
    over = field_of(described, "over")
    return None if over is None else [from_json_value(name) for name in over]
