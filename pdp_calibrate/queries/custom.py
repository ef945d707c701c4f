"""Any function of a table: the one query that is not additive."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import QueryError, UnsupportedQueryError
from pdp_calibrate.models import (
    Blocks,
    ConditionalBall,
    MixingChain,
    Model,
    ModelSet,
    SampledTable,
    Unknown,
)
from pdp_calibrate.models.base import (
    Domain,
    FloatArray,
    checked_model,
    field_of,
    from_json_value,
    json_value,
)
from pdp_calibrate.models.table import refuse_too_many_cells
from pdp_calibrate.queries.base import OverTuples, Query, refuse_continuous, selected, stored_over
from pdp_calibrate.queries.frozen import FrozenMapping, TableOfValues


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


def frozen(query: Query, model: Model) -> Query:
    """Return a query that can only ever mean one thing: a function as its table of values."""
    return query.tabulate(model) if isinstance(query, Custom) else query


def _refuse_sets(model: Model) -> None:
    """Raise, before anything is evaluated, where no engine bounds a function that does not add."""
    if isinstance(model, ModelSet):
        for member in model.models:
            _refuse_sets(member)
    if isinstance(model, ConditionalBall | SampledTable | MixingChain | Unknown):
        raise UnsupportedQueryError(
            f"Custom has no bound on {type(model).__name__}, a set of distributions; ask Sum, Mean,"
            " Linear, Count or Histogram, or use a JointTable."
        )
