"""The true answer of a query, computed exactly and passed to the noise, never kept.

Everything is added as exact fractions of the same floats that the calibration used: counts of whole
rows, and sums of real values on a grid of whole numbers. Both are computed by the frame engine (the
library that holds the frame) and do not depend on order or partitions. The only roundings are those
of single values to the grid, and of the total to a float. Messages name a column, never a value.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Domain, Model
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.frames.columns import refuse_discrete_columns
from pdp_calibrate.frames.counts import contingency, counts_by_column
from pdp_calibrate.frames.open import column_name, refuse_changed, rows_of
from pdp_calibrate.frames.sums import ClampedSum, clamped_sums

Answer = tuple[Fraction, ...]
"""An exact answer: one number, or one per category of a histogram."""


Sizes = tuple[tuple[int, int], ...]
"""Pairs of the size of a group and how many there are; a row of a wide frame is a group."""


@dataclass(frozen=True, kw_only=True)
class FrameAnswer:
    """The answer about a frame, and the public facts it is checked against."""

    answer: Answer
    """One number per coordinate."""
    instances: int
    """How many independent rows, or groups, it is about."""
    values: int
    """How many values were added up: per tuple of a wide frame, or in a long frame."""
    grid: Fraction = Fraction(0)
    """How far the answer about *one* instance may be from exact: its values' grid steps."""
    sizes: Sizes | None = None
    """How many rows, or groups of each size, the frame has; None for a single instance."""


def instance_answer(contributions: Contributions, model: Model, data: Any) -> Answer:
    """Answer for one instance: a mapping or series of values by the name of their tuple."""
    labels = list(data.keys())  # those of a Series may repeat
    if len(set(labels)) < len(labels):
        raise ModelError("the data give two values under one name.")
    names = _entering_names(contributions, model)
    absent = [str(name) for name in names if name not in data]
    if absent:
        raise ModelError(f"the data lack a value for {', '.join(absent)}.")
    return _row_answer(contributions, model, [data[name] for name in names])


def total_answer(contributions: Contributions, model: Model, frame: Any) -> FrameAnswer:
    """Return the answer over all rows of a wide frame."""
    names: list[Hashable] = [column_name(n) for n in _entering_names(contributions, model)]
    _check_types(contributions, model, frame)
    if contributions.table is not None:
        joint = contingency(frame, names)
        rows = [times(n, _row_answer(contributions, model, row)) for row, n in joint.items()]
        number = joint.total()
        return FrameAnswer(
            answer=added(rows), instances=number, values=number, sizes=wide_sizes(model, number)
        )
    parts: list[Answer] = []
    places = dict(zip(_entering(contributions, model), names, strict=True))
    counted = {p: name for p, name in places.items() if not model.continuous_tuples[p]}
    number, grid = 0, Fraction(0)
    if counted:
        sizes = [len(model.domains[position]) for position in counted]
        columns = counts_by_column(frame, list(counted.values()), sizes)
        number = columns[0].total()
        for position, counts in zip(counted, columns, strict=True):
            refuse_changed(number, counts.total())
            parts += [
                times(count, _added_by(value, position, contributions, model))
                for value, count in counts.items()
            ]
    ranges = {name: bounds_of(model.domains[p]) for p, name in places.items() if p not in counted}
    if ranges:
        sums, rows_summed = clamped_sums(frame, ranges, clamp=contributions.clamped)
        if counted:
            refuse_changed(number, rows_summed)
        number = rows_summed
        for position, name in places.items():
            if name in sums:
                parts.append(weighted(sums[name].total, position, contributions))
                grid += grid_of(sums[name], position, contributions)
    return FrameAnswer(
        answer=added(parts),
        instances=number,
        values=number,
        grid=grid,
        sizes=wide_sizes(model, number),
    )


def wide_sizes(model: Model, rows: int) -> Sizes:
    """Return the size of a wide frame: every row is a group with all tuples of the model."""
    return ((len(model.names), rows),)


def bounds_of(domain: Domain) -> tuple[float, float]:
    """Return the two ends of a continuous domain."""
    low, high = (float(cast("float", end)) for end in domain)
    return low, high


def grid_of(found: ClampedSum, position: int, contributions: Contributions) -> Fraction:
    """Bound the error of what one tuple adds: its weight times the grid step."""
    return max(abs(number) for number in weighted(found.step, position, contributions))


def row_answers(contributions: Contributions, model: Model, frame: Any) -> list[Answer]:
    """Answer for each row of a wide frame by itself, in order."""
    _check_types(contributions, model, frame)
    known: dict[tuple[Hashable, ...], Answer] = {}  # equal rows have equal answers
    answers = []
    for row in rows_of(frame, _entering_names(contributions, model)):
        if row not in known:
            known[row] = _row_answer(contributions, model, row)
        answers.append(known[row])
    return answers


def _check_types(contributions: Contributions, model: Model, frame: Any) -> None:
    """Refuse columns of discrete type that the model calls Gaussian."""
    flags, positions = model.gaussian_tuples, _entering(contributions, model)
    refuse_discrete_columns(frame, [model.names[place] for place in positions if flags[place]])


def _row_answer(contributions: Contributions, model: Model, row: Sequence[Hashable]) -> Answer:
    positions = _entering(contributions, model)
    if contributions.table is not None:
        cell = np.zeros(len(model.names), dtype=np.intp)  # elsewhere the table is constant
        cell[positions] = [_place(v, p, model) for v, p in zip(row, positions, strict=True)]
        return fractions_of(contributions.table[tuple(cell)])
    return added(
        [
            _added_by(value, position, contributions, model)
            for value, position in zip(row, positions, strict=True)
        ]
    )


def _added_by(value: Any, position: int, contributions: Contributions, model: Model) -> Answer:
    """Return what one tuple adds when it holds the value."""
    if not model.continuous_tuples[position]:
        return fractions_of(contributions.values[position][_place(value, position, model)])
    name, (low, high) = model.names[position], bounds_of(model.domains[position])
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"a value of {name} is not a number.") from None
    if not math.isfinite(number):
        raise ModelError(f"a value of {name} is not a finite number.")
    if not (contributions.clamped or low <= number <= high):
        raise ModelError(
            f"a value of {name} is outside the bounds of the model;"
            " use clamp=True to move such values to the nearest bound."
        )
    return weighted(Fraction(min(max(number, low), high)), position, contributions)


def _place(value: Hashable, position: int, model: Model) -> int:
    if value not in model.domains[position]:
        raise ModelError(f"a value of {model.names[position]} is not in the domain of the model.")
    return model.domains[position].index(value)


def weighted(amount: Fraction, position: int, contributions: Contributions) -> Answer:
    """Multiply an amount by the weights of a tuple."""
    weights = contributions.weights or ()
    return times(amount, fractions_of(weights[position]))


def fractions_of(numbers: FloatArray) -> Answer:
    """Return floats as the fractions they are."""
    return tuple(Fraction(float(number)) for number in numbers)


def times(factor: Fraction | int, answer: Answer) -> Answer:
    """Multiply every coordinate."""
    return tuple(factor * number for number in answer)


def added(parts: Sequence[Answer]) -> Answer:
    """Add up answers, coordinate by coordinate."""
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
