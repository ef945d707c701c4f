"""Mappings that nobody can change: a query means tomorrow what was proved about it today."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from pdp_calibrate.models.base import Domain, FloatArray, read_only

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
