"""Queries that add up the values: sum, mean, weighted sum."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import ModelError, QueryError
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import Domain, FloatArray, field_of, from_json_value, json_value
from pdp_calibrate.models.table import numeric_domain
from pdp_calibrate.queries.base import OverTuples, Query, selected, stored_over
from pdp_calibrate.queries.frozen import FrozenMapping


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
        with np.errstate(over="ignore"):  # `lower` refuses what is not finite
            return np.asarray(weight * numeric_domain(domain, name) / divisor)
    except ModelError as error:
        raise QueryError(f"{error} A sum needs numbers; use Count for categories.") from error


def _linear(
    model: Model, weights: Mapping[Hashable, float], *, divisor: int = 1, clamp: bool
) -> Contributions:
    factors = [weights.get(name, 0.0) / divisor for name in model.names]
    values: list[FloatArray] = []
    roundings: list[float] = []
    alike: dict[tuple[int, float, bool], tuple[FloatArray, float]] = {}
    for name, domain, real in zip(model.names, model.domains, model.continuous_tuples, strict=True):
        weight = weights.get(name, 0.0)
        key = id(domain), weight, real
        if key not in alike:
            added = _added(weight, domain, name, divisor)
            alike[key] = added, _rounding(added, weight, domain, divisor, real=real)
        values.append(alike[key][0])
        roundings.append(alike[key][1])
    return Contributions.additive(
        values,
        weights=factors,
        real=model.is_continuous,
        clamped=clamp,
        roundings=roundings,
    )


def _rounding(
    added: FloatArray, weight: float, domain: Domain, divisor: int, *, real: bool
) -> float:
    """Bound what rounding to floats does to the difference of what two values add.

    A tuple on an interval adds its value times a rounded weight, so also that times its width.
    """
    if weight == 0 or not np.all(np.isfinite(added)):
        return 0.0
    numbers = [Fraction(cast("float", value)) for value in domain]
    factor = Fraction(weight) / divisor
    errors = [
        Fraction(one) - factor * value for one, value in zip(added.tolist(), numbers, strict=True)
    ]
    bound = max(errors) - min(errors)
    if real:
        bound += abs(Fraction(weight / divisor) - factor) * (max(numbers) - min(numbers))
    return math.nextafter(float(bound), math.inf) if bound else 0.0
