"""What can be asked about the tuples: sums, means, counts, histograms and any function of a table.

A query is lowered to `Contributions`, what each tuple adds to the answer, which is all that engines
see of it. `Custom`, any function of a joint table, is the one query that is not additive. Queries
cannot be changed after they are made: a query means tomorrow what was proved about it today.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from pdp_calibrate.arrays import FloatArray, damage_refused, plain, read_only
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.contributions import Contributions, as_column
from pdp_calibrate.core.model import (
    Domain,
    Model,
    checked_model,
    field_of,
    from_json_value,
    json_value,
    numeric_domain,
    values_of,
)
from pdp_calibrate.core.table import refuse_too_many_cells
from pdp_calibrate.errors import ModelError, QueryError, UnsupportedQueryError

_K = TypeVar("_K", bound=Hashable)


_V = TypeVar("_V")


class FrozenMapping(Mapping[_K, _V]):
    """A copy of a mapping, read-only; equal to a dict of the same items.

    >>> FrozenMapping({"x1": 2.0}) == {"x1": 2.0}
    True
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[_K, _V]) -> None:
        self._items = MappingProxyType(dict(items))

    def __getitem__(self, key: _K) -> _V:
        return self._items[key]

    def __iter__(self) -> Iterator[_K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(dict(self._items))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMapping, (dict(self._items),)


class TableOfValues(Mapping[tuple[Hashable, ...], float]):
    """What a function of discrete tuples is in every cell, written out once.

    >>> table = TableOfValues(((0, 1), ("a", "b")), np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> table[1, "a"], len(table), table
    (3.0, 4, <table of 4 values>)
    """

    __slots__ = ("_answers", "_domains")

    def __init__(self, domains: tuple[Domain, ...], answers: FloatArray) -> None:
        self._domains = domains
        self._answers = read_only(np.array(answers, dtype=np.float64))

    def over(self, domains: tuple[Domain, ...]) -> FloatArray | None:
        """Return the answers as an array with an axis per domain; None for other domains."""
        return self._answers if domains == self._domains else None

    def __getitem__(self, cell: tuple[Hashable, ...]) -> float:
        try:
            places = [own.index(v) for own, v in zip(self._domains, cell, strict=True)]
        except (TypeError, ValueError):
            raise KeyError(cell) from None
        return float(self._answers[tuple(places)])

    def __iter__(self) -> Iterator[tuple[Hashable, ...]]:
        return itertools.product(*self._domains)

    def __len__(self) -> int:
        return int(self._answers.size)

    def items(self) -> Any:
        """Return the cells and their answers, in order."""
        return dict(zip(self, self._answers.ravel().tolist(), strict=True)).items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TableOfValues) and other._domains == self._domains:
            return np.array_equal(self._answers, other._answers)
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"<table of {len(self)} values>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TableOfValues, (self._domains, np.array(self._answers))


_MOST_ROWS = 2**62


_LARGEST_ANSWER = 1e250  # sums over many rows, and scales for small ε, must stay floats too


class Query(abc.ABC):
    """Base of all queries: frozen, compared by value, and free of data."""

    _kinds: ClassVar[dict[str, type[Query]]] = {}

    def __init_subclass__(cls) -> None:
        Query._kinds[cls.__name__] = cls

    @abc.abstractmethod
    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower the query for one instance of the model out of `rows`."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""

    @property
    def at_a_step(self) -> Query:
        """The query behind one answer: itself, except for one that is asked at each step."""
        return self

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
    found = query.contributions(model, rows=int(rows))
    magnitude = found.magnitude
    if not magnitude <= _LARGEST_ANSWER:
        raise QueryError(
            f"answers may be as large as {magnitude:.3g}, but in floating point the proof holds up"
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


@dataclass(frozen=True, kw_only=True)
class _Added(OverTuples):
    """A query that adds up the values themselves."""

    clamp: bool = False
    """Whether values outside the public range are moved to its nearest end before adding."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        return super().to_dict() | {"clamp": self.clamp}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Query:
        """Undo `to_dict`."""
        return cls(over=stored_over(described), clamp=bool(described.get("clamp", False)))


@dataclass(frozen=True, kw_only=True)
class Sum(_Added):
    """The sum of the values.

    >>> Sum(over=["father", "child"])
    Sum(over=('father', 'child'), clamp=False)
    """

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds its value."""
        del rows  # a sum over many independent rows changes by what one row changes
        weights = dict.fromkeys(selected(self.over, model), 1.0)
        return _linear(model, weights, clamp=self.clamp)


@dataclass(frozen=True, kw_only=True)
class Mean(_Added):
    """The mean of the values, over all tuples in `over` and all rows."""

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds its value divided by the number of values averaged."""
        names = selected(self.over, model)
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
        ``{name: weight}``, tuples left out weighing zero, or one weight per tuple. Copied: what
        is given here may change later, the query does not.
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
        except OverflowError as error:
            raise QueryError("a weight is a whole number too large for any float.") from error
        if not np.all(np.isfinite(numbers)):
            raise QueryError("weights must be finite, got NaN or infinity.")
        if not any(numbers):
            raise QueryError("weights must not all be zero: the answer would be constant.")
        stored = (
            FrozenMapping(dict(zip(weights, numbers, strict=True)))
            if isinstance(weights, Mapping)
            else tuple(numbers)
        )
        object.__setattr__(self, "weights", stored)
        object.__setattr__(self, "clamp", bool(clamp))

    def __hash__(self) -> int:
        return hash((self.weights, self.clamp))

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds its value times its weight."""
        del rows
        if isinstance(self.weights, Mapping):
            selected(tuple(self.weights), model)
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


def _added(weight: float, domain: Domain, name: Hashable, divisor: int) -> FloatArray:
    """Return what each value of one tuple adds."""
    if weight == 0:
        return np.zeros(len(domain))
    try:
        numbers = numeric_domain(domain, name)
    except ModelError as error:
        raise QueryError(f"{error} A sum needs numbers; use Count for categories.") from error
    if weight == divisor == 1:
        return numbers
    with np.errstate(over="ignore"):  # `lower` refuses what is not finite
        return np.asarray(weight * numbers / divisor)


def _linear(
    model: Model, weights: Mapping[Hashable, float], *, divisor: int = 1, clamp: bool
) -> Contributions:
    # Tuples alike share one array, so that thousands of them cost little.
    found: list[tuple[FloatArray, FloatArray, float]] = []
    alike: dict[tuple[int, float, bool], tuple[FloatArray, FloatArray, float]] = {}
    for name, domain, real in zip(model.names, model.domains, model.continuous_tuples, strict=True):
        weight = weights.get(name, 0.0)
        key = id(domain), weight, real
        if key not in alike:
            added = _added(weight, domain, name, divisor)
            error = _rounding(added, weight, domain, divisor, real=real)
            alike[key] = as_column(added), np.array([weight / divisor]), error
        found.append(alike[key])
    values, factors, roundings = zip(*found, strict=True)
    return Contributions(
        values=values,
        weights=factors,
        real=model.is_continuous,
        clamped=clamp,
        roundings=roundings if any(roundings) else (),
    )


def _rounding(
    added: FloatArray, weight: float, domain: Domain, divisor: int, *, real: bool
) -> float:
    """Bound what rounding to floats does to the difference of what two values add.

    A tuple on an interval adds its value times a rounded weight, so also that times its width.
    """
    if weight == divisor == 1 and tuple(added.tolist()) == domain:
        return 0.0  # Python compares whole numbers and floats exactly: nothing was rounded
    if weight == 0 or not np.all(np.isfinite(added)):
        return 0.0
    numbers = [Fraction(cast("float", value)) for value in domain]
    factor = Fraction(weight) / divisor
    floats = map(Fraction, added.tolist())
    errors = [one - factor * value for one, value in zip(floats, numbers, strict=True)]
    bound = max(errors) - min(errors)
    if real:
        bound += abs(Fraction(weight / divisor) - factor) * (max(numbers) - min(numbers))
    return math.nextafter(float(bound), math.inf) if bound else 0.0


def listed_values(said: Any, what: str) -> tuple[Hashable, ...]:
    """Return a collection of hashable values; text and single values are refused."""
    if isinstance(said, str | bytes | Mapping) or not isinstance(said, Iterable):
        raise QueryError(f"{what} must be a collection of values, such as {{1}} or ['yes'].")
    found = tuple(plain(value) for value in said)
    unusable = sorted({type(one).__name__ for one in found if not _has_hash(one)})
    if unusable:
        raise QueryError(
            f"{what} must be hashable, such as numbers and text, got {', '.join(unusable)}."
        )
    return found


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Count(OverTuples):
    """How many of the tuples hold one of the values.

    >>> sorted(Count(values={1, 2}).values)
    [1, 2]
    """

    values: Iterable[Hashable]
    """The values to count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        values = frozenset(listed_values(self.values, "values"))
        if not values:
            raise QueryError("values must name at least one value to count, got none.")
        object.__setattr__(self, "values", values)

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds 1 where its value counts."""
        del rows
        refuse_continuous(model, "Count")
        names = set(selected(self.over, model))
        counted = cast("frozenset[Hashable]", self.values)
        domains = dict(zip(model.names, model.domains, strict=True))
        nowhere = counted.difference(*(domains[name] for name in names))
        if nowhere:
            raise QueryError(f"{len(nowhere)} of the counted values are in no tuple's domain.")

        def added(domain: Domain, *, inside: bool) -> FloatArray:
            return np.array([float(inside and value in counted) for value in domain])

        return Contributions.additive(_each(model, names, added))

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        values = [json_value(value) for value in self.values]
        return super().to_dict() | {"values": sorted(values, key=repr)}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Count:
        """Undo `to_dict`."""
        return cls(values=values_of(described, "values"), over=stored_over(described))


@dataclass(frozen=True, kw_only=True)
class Histogram(OverTuples):
    """How many of the tuples hold each value: one count per category, released together.

    >>> Histogram(categories=["low", "high"]).categories
    ('low', 'high')
    """

    categories: Iterable[Hashable] | None = None
    """The values counted, in order; None for every value that a tuple can take."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categories is None:
            return
        found = listed_values(self.categories, "categories")
        if not found or len(set(found)) != len(found):
            raise QueryError("categories must be at least one value, none of them twice.")
        object.__setattr__(self, "categories", found)

    def of(self, model: Model) -> tuple[Hashable, ...]:
        """Return the categories, in order, as they are for this model."""
        domains = dict(zip(model.names, model.domains, strict=True))
        possible = dict.fromkeys(
            value for name in selected(self.over, model) for value in domains[name]
        )
        if self.categories is None:
            return tuple(possible)
        nowhere = [value for value in self.categories if value not in possible]
        if nowhere:
            raise QueryError(f"{len(nowhere)} of the categories are in no tuple's domain.")
        return tuple(self.categories)

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: a tuple adds 1 to the count of its value."""
        del rows
        refuse_continuous(model, "Histogram")
        names = set(selected(self.over, model))
        categories = self.of(model)

        def added(domain: Domain, *, inside: bool) -> FloatArray:
            return np.array(
                [
                    [float(inside and value == category) for category in categories]
                    for value in domain
                ]
            )

        return Contributions.additive(_each(model, names, added))

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        chosen = None if self.categories is None else [json_value(v) for v in self.categories]
        return super().to_dict() | {"categories": chosen}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Histogram:
        """Undo `to_dict`."""
        every = field_of(described, "categories") is None
        chosen = None if every else values_of(described, "categories")
        return cls(categories=chosen, over=stored_over(described))


def _each(
    model: Model, names: Collection[Hashable], added: Callable[..., FloatArray]
) -> list[FloatArray]:
    """Return what each tuple adds, computed once for equal tuples."""
    alike: dict[tuple[int, bool], FloatArray] = {}
    found = []
    for name, domain in zip(model.names, model.domains, strict=True):
        key = id(domain), name in names
        if key not in alike:
            alike[key] = added(domain, inside=key[1])
        found.append(alike[key])
    return found


@dataclass(frozen=True, kw_only=True)
class Custom(OverTuples):
    """Any real function of the tuples, on a joint table: maximum, median, a threshold.

    A calibration writes the function out as a table of its values, once: that table is what is
    proved, released and stored, whatever the function returns later. A table given here is copied.

    Chains, trees and groups are written out as tables. Sets of distributions that are described by
    bounds (MixingChain, ConditionalBall, SampledTable, Unknown) refuse it, as do Blocks.

    Examples
    --------
    >>> Custom(function=max).over is None
    True
    """

    function: Callable[[tuple[Any, ...]], float] | Mapping[tuple[Hashable, ...], float]
    """Takes one tuple of values in the order of `over`; or the table of its values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.function, Mapping) and not isinstance(self.function, TableOfValues):
            object.__setattr__(self, "function", FrozenMapping(self.function))

    def __hash__(self) -> int:
        return hash((type(self), self.over))  # equal tables may be held in different ways

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: the function's value in every cell, impossible cells included."""
        _check_table(model)
        if rows != 1:
            raise UnsupportedQueryError("Custom answers about one instance, so rows must be 1.")
        axes = [model.names.index(name) for name in selected(self.over, model)]
        small = self._answers(tuple(model.domains[axis] for axis in axes))
        order = sorted(range(len(axes)), key=lambda place: axes[place])
        shape = [len(d) if axis in axes else 1 for axis, d in enumerate(model.domains)]
        full = np.broadcast_to(
            small.transpose(order).reshape(shape), [len(domain) for domain in model.domains]
        )
        return Contributions.tabulated(full)

    def _answers(self, domains: tuple[Domain, ...]) -> FloatArray:
        """Return the answer in every cell, an axis per tuple; a table that is held as it is."""
        held = self.function.over(domains) if isinstance(self.function, TableOfValues) else None
        if held is not None:
            return held
        answers = [self._evaluate(cell) for cell in itertools.product(*domains)]
        return np.array(answers).reshape([len(domain) for domain in domains])

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
        """Return the same query with its function written out as a table of values.

        The function is called once for every cell, and never again.
        """
        _check_table(model)
        domains = dict(zip(model.names, model.domains, strict=True))
        names = selected(self.over, model)
        chosen = tuple(domains[name] for name in names)
        return Custom(function=TableOfValues(chosen, self._answers(chosen)), over=names)

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
        return cls(function=table, over=stored_over(described))


def _check_table(model: Model) -> None:
    """Refuse models whose cells cannot be written out."""
    if isinstance(checked_model(model), Blocks):
        raise UnsupportedQueryError(
            "Custom is not additive, so independent blocks cannot be treated one by one."
            " Use a JointTable over all tuples, or Sum, Count, Mean or Linear."
        )
    refuse_continuous(model, "Custom")
    _refuse_sets(model)
    refuse_too_many_cells([len(domain) for domain in model.domains])


def checked_queries(queries: object) -> list[Query]:
    """Return a list of queries, or raise unless it is one."""
    if isinstance(queries, Sequence) and queries and all(isinstance(q, Query) for q in queries):
        return list(queries)
    raise QueryError("a query such as Sum(), or a list of queries, is needed.")


@dataclass(frozen=True)
class EachStep(Query):
    """One answer at every step of a model without an end, for ever, all with the same noise.

    Parameters
    ----------
    query
        What is asked at a step, about its records alone.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
    >>> cal = pdp.calibrate(chain, pdp.EachStep(pdp.Sum()), epsilon=1.0)
    >>> round(1 / cal.scale, 6)  # the budget of a step that keeps ε = 1 for ever
    0.252445
    """

    query: Query
    """What is asked at a step."""

    def __post_init__(self) -> None:
        if not isinstance(self.query, Query) or isinstance(self.query, EachStep):
            raise QueryError("EachStep asks one query, such as EachStep(Sum()), at every step.")

    @property
    def at_a_step(self) -> Query:
        """What is asked at a step."""
        return self.query

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: what a record adds to the answer of its step."""
        if not model.is_endless:
            raise UnsupportedQueryError(
                "EachStep is asked of a model without an end: give it length=None."
            )
        return replace(self.query.contributions(model, rows=rows), every_step=True)

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        return {"type": "EachStep", "query": self.query.to_dict()}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> EachStep:
        """Undo `to_dict`."""
        return cls(Query.from_dict(field_of(described, "query")))


def frozen(query: Query, model: Model) -> Query:
    """Return a query whose meaning is fixed: a function is replaced by its table of values."""
    if isinstance(query, EachStep):
        return EachStep(frozen(query.query, model))
    return query.tabulate(model) if isinstance(query, Custom) else query


def _refuse_sets(model: Model) -> None:
    """Raise, before anything is evaluated, where no engine bounds a non-additive function."""
    if model.only_additive:
        raise UnsupportedQueryError(
            f"Custom has no bound on {type(model).__name__}, a set of distributions; ask Sum, Mean,"
            " Linear, Count or Histogram, or use a JointTable."
        )
