"""The true answer of a query, computed exactly and handed to the noise, never kept.

Sums are added as fractions of the very floats that the calibration used, so a whole-number answer
is exact and any other is off by one rounding at most. Messages name a column, never a value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.estimators.statistics import contingency, rows_of
from pdp_calibrate.models import Model


def instance_answer(
    contributions: Contributions, model: Model, data: Mapping[Any, Any]
) -> Fraction:
    """Answer for one instance, given as {name: value} of every tuple that enters."""
    positions = _entering(contributions, model)
    absent = [str(model.names[p]) for p in positions if model.names[p] not in data]
    if absent:
        raise ModelError(f"the data lack a value for {', '.join(absent)}.")
    values = tuple(data[model.names[position]] for position in positions)
    return _Answers(contributions, model)[values]


def total_answer(contributions: Contributions, model: Model, frame: Any) -> tuple[Fraction, int]:
    """Return the answer over all rows of a wide frame, and how many rows there are."""
    names = [model.names[position] for position in _entering(contributions, model)]
    counts = contingency(frame, names)
    answers = _Answers(contributions, model)
    total = sum((count * answers[row] for row, count in counts.items()), start=Fraction(0))
    return total, counts.total()


def row_answers(contributions: Contributions, model: Model, frame: Any) -> list[Fraction]:
    """Answer for each row of a wide frame by itself, in order."""
    names = [model.names[position] for position in _entering(contributions, model)]
    contingency(frame, names)  # refuses missing columns and values
    answers = _Answers(contributions, model)
    return [answers[row] for row in rows_of(frame, names)]


class _Answers(dict[tuple[Hashable, ...], Fraction]):
    """Answer for one row of the tuples that enter, worked out once for each distinct row."""

    def __init__(self, contributions: Contributions, model: Model) -> None:
        super().__init__()
        self._contributions = contributions
        self._positions = _entering(contributions, model)
        self._names = model.names
        self._indices = [
            {value: index for index, value in enumerate(model.domains[position])}
            for position in self._positions
        ]

    def __missing__(self, row: tuple[Hashable, ...]) -> Fraction:
        places = []
        for position, index, value in zip(self._positions, self._indices, row, strict=True):
            if value not in index:
                raise ModelError(
                    f"a value of {self._names[position]} is not in the domain of the model."
                )
            places.append(index[value])
        answer = self._exact(places)
        self[row] = answer
        return answer

    def _exact(self, places: Sequence[int]) -> Fraction:
        table = self._contributions.table
        if table is not None:
            cell = np.zeros(table.ndim - 1, dtype=np.intp)  # elsewhere the table is constant
            cell[self._positions] = places
            return Fraction(float(table[tuple(cell)][0]))
        values = self._contributions.values
        added = (values[p][place, 0] for p, place in zip(self._positions, places, strict=True))
        return sum((Fraction(float(amount)) for amount in added), start=Fraction(0))


def _entering(contributions: Contributions, model: Model) -> list[int]:
    """Return the positions of the tuples whose values enter the answer."""
    if any(number > 1 for number in model.copies):
        raise UnsupportedQueryError(
            "a wide frame already holds one row per copy: calibrate with the model of one block,"
            " not with Blocks(counts=…)."
        )
    if contributions.table is not None:
        return [int(position) for position in np.flatnonzero(contributions.tuple_ranges())]
    return [position for position, array in enumerate(contributions.values) if np.any(array)]
