"""The true answer of a query, computed exactly and handed to the noise, never kept.

Everything is added as fractions of the very floats that the calibration used. A whole-number
answer is exact; a column of real values is summed with one rounding (`math.fsum`) and the total
with another. Messages name a column, never a value.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.estimators.statistics import column_of, contingency, rows_of
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import Domain, FloatArray

Answer = tuple[Fraction, ...]
"""An exact answer: one number, or one per category of a histogram."""


def instance_answer(contributions: Contributions, model: Model, data: Mapping[Any, Any]) -> Answer:
    """Answer for one instance, given as {name: value} of every tuple that enters."""
    names = _entering_names(contributions, model)
    absent = [str(name) for name in names if name not in data]
    if absent:
        raise ModelError(f"the data lack a value for {', '.join(absent)}.")
    return _row_answer(contributions, model, [data[name] for name in names])


def total_answer(contributions: Contributions, model: Model, frame: Any) -> tuple[Answer, int]:
    """Return the answer over all rows of a wide frame, and how many rows there are."""
    names = _entering_names(contributions, model)
    if contributions.table is not None:
        counts = contingency(frame, names)
        return _total(
            [_times(count, _row_answer(contributions, model, row)) for row, count in counts.items()]
        ), counts.total()
    parts: list[Answer] = []
    rows = 0
    for position, name in zip(_entering(contributions, model), names, strict=True):
        if model.continuous_tuples[position]:
            domain = model.domains[position]
            column = clamped(column_of(frame, name), name, domain, clamp=contributions.clamped)
            parts.append(_weighted(math.fsum(column), position, contributions))
            rows = len(column)
        else:
            counts = contingency(frame, [name])
            parts += [
                _times(count, _added_by(value, position, contributions, model))
                for (value,), count in counts.items()
            ]
            rows = counts.total()
    return _total(parts), rows


def row_answers(contributions: Contributions, model: Model, frame: Any) -> list[Answer]:
    """Answer for each row of a wide frame by itself, in order."""
    known: dict[tuple[Hashable, ...], Answer] = {}  # equal rows have equal answers
    answers = []
    for row in rows_of(frame, _entering_names(contributions, model)):
        if row not in known:
            known[row] = _row_answer(contributions, model, row)
        answers.append(known[row])
    return answers


def _row_answer(contributions: Contributions, model: Model, row: Sequence[Hashable]) -> Answer:
    positions = _entering(contributions, model)
    if contributions.table is not None:
        cell = np.zeros(len(model.names), dtype=np.intp)  # elsewhere the table is constant
        cell[positions] = [_place(v, p, model) for v, p in zip(row, positions, strict=True)]
        return _fractions(contributions.table[tuple(cell)])
    return _total(
        [
            _added_by(value, position, contributions, model)
            for value, position in zip(row, positions, strict=True)
        ]
    )


def _added_by(value: Any, position: int, contributions: Contributions, model: Model) -> Answer:
    """Return what one tuple adds when it holds the value."""
    if not model.continuous_tuples[position]:
        return _fractions(contributions.values[position][_place(value, position, model)])
    try:
        number = np.array([float(value)])
    except (TypeError, ValueError) as error:
        raise ModelError(f"a value of {model.names[position]} is not a number.") from error
    name, domain = model.names[position], model.domains[position]
    (inside,) = clamped(number, name, domain, clamp=contributions.clamped)
    return _weighted(float(inside), position, contributions)


def _place(value: Hashable, position: int, model: Model) -> int:
    if value not in model.domains[position]:
        raise ModelError(f"a value of {model.names[position]} is not in the domain of the model.")
    return model.domains[position].index(value)


def clamped(column: FloatArray, name: Hashable, domain: Domain, *, clamp: bool) -> FloatArray:
    """Move values to the nearest end of the public range, or refuse those outside."""
    low, high = (float(cast("float", end)) for end in domain)
    if not np.all(np.isfinite(column)):
        raise ModelError(f"a value of {name} is not a finite number.")
    if clamp:
        return np.clip(column, low, high)
    if np.any((column < low) | (column > high)):
        raise ModelError(
            f"a value of {name} is outside the bounds of the model;"
            " use clamp=True to move such values to the nearest bound."
        )
    return column


def _weighted(amount: float, position: int, contributions: Contributions) -> Answer:
    weights = contributions.weights or ()
    return _times(Fraction(amount), _fractions(weights[position]))


def _fractions(numbers: FloatArray) -> Answer:
    return tuple(Fraction(float(number)) for number in numbers)


def _times(factor: Fraction | int, answer: Answer) -> Answer:
    return tuple(factor * number for number in answer)


def _total(parts: Sequence[Answer]) -> Answer:
    return tuple(sum(numbers, start=Fraction(0)) for numbers in zip(*parts, strict=True))


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


def _entering_names(contributions: Contributions, model: Model) -> list[Hashable]:
    return [model.names[position] for position in _entering(contributions, model)]
