"""Answers of many coordinates about Gaussian tuples, part by part."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.models.base import FloatArray

_MOST_DIRECTIONS = 12  # answers that a Gaussian engine weighs together


def few_directions(leaf: Problem) -> list[Problem]:
    """Split an answer of many coordinates; a shift's costs may be bounded part by part."""
    contributions = leaf.contributions
    weights = contributions.weights
    if weights is None or contributions.coordinates <= _MOST_DIRECTIONS:
        return [leaf]
    columns = np.column_stack(weights)  # coordinates × tuples
    groups = _parallel(columns)
    chunks = [groups[k : k + _MOST_DIRECTIONS] for k in range(0, len(groups), _MOST_DIRECTIONS)]
    if len(chunks) > 1 and type(leaf.model).__name__ == "SampledGaussian":
        raise UnsupportedQueryError("bands of a sample hold for one list of queries at a time.")
    return [_of_coordinates(leaf, [chunk for group in some for chunk in group]) for some in chunks]


def _parallel(columns: FloatArray) -> list[list[int]]:
    """Group coordinates whose weights are multiples of each other."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for place, row in enumerate(columns):
        peak = row[int(np.abs(row).argmax())]
        key = tuple((row / peak).round(12)) if peak else ()
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def _of_coordinates(leaf: Problem, chosen: Sequence[int]) -> Problem:
    contributions = leaf.contributions
    weights = contributions.weights
    return dataclasses.replace(
        leaf,
        contributions=dataclasses.replace(
            contributions,
            values=tuple(array[:, list(chosen)] for array in contributions.values),
            weights=weights and tuple(array[list(chosen)] for array in weights),
        ),
    )
