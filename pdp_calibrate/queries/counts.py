"""Queries that count: how many tuples hold certain values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import QueryError
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import (
    Domain,
    FloatArray,
    field_of,
    json_value,
    plain,
    values_of,
)
from pdp_calibrate.queries.base import OverTuples, refuse_continuous, selected, stored_over


@dataclass(frozen=True, kw_only=True)
class Count(OverTuples):
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
        if isinstance(self.categories, str):
            raise QueryError("categories must be a list of values, such as ['yes', 'no'].")
        found = tuple(plain(value) for value in self.categories)
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
    """Return what each tuple adds, worked out once for tuples that are alike."""
    alike: dict[tuple[int, bool], FloatArray] = {}
    found = []
    for name, domain in zip(model.names, model.domains, strict=True):
        key = id(domain), name in names
        if key not in alike:
            alike[key] = added(domain, inside=key[1])
        found.append(alike[key])
    return found
