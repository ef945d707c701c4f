"""δ of two answers with Gaussian noise, the second chosen by the first: sums on a grid.

For every first output somebody stops, or asks a second query at a scale of their choice. Given the
first output both secrets' laws of the second are mixtures again, whose hockey-stick divergence is
summed on a grid; so is that over the first output. Nothing is shared with the library.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tests.oracles.adversaries import possible_cells

Law = dict[tuple[int, ...], float]
"""Probabilities of cells."""

Choice = tuple[np.ndarray, float] | None
"""The second query, as its answer in every cell, and its scale; None to stop."""


def compared_laws(table: np.ndarray) -> Iterator[tuple[Law, Law]]:
    """Yield the laws of the cells under two secrets, for every adversary and ordered pair."""
    for _, _, cells in possible_cells(table):
        laws = []
        for held in cells.values():
            total = math.fsum(table[cell] for cell in held)
            laws.append({cell: float(table[cell]) / total for cell in held})
        yield from itertools.permutations(laws, 2)


def delta_of_worst_choices(
    laws: tuple[Law, Law],
    query: np.ndarray,
    scale: float,
    choices: Sequence[Choice],
    epsilon: float,
    *,
    points: int = 301,
) -> float:
    """Return δ(ε) if, at every first output, whatever tells most is asked next."""
    cells = sorted({*laws[0], *laws[1]})
    p, q = (np.array([law.get(cell, 0.0) for cell in cells]) for law in laws)
    difference = p - math.exp(epsilon) * q
    answers = np.array([query[cell] for cell in cells])
    outputs = _grid(answers, scale, points)
    weighted = difference * _normal((outputs[:, np.newaxis] - answers) / scale) / scale
    best = np.full(len(outputs), -np.inf)
    for choice in choices:
        if choice is None:
            best = np.maximum(best, np.maximum(weighted.sum(axis=1), 0.0))
            continue
        second, deviation = choice
        here = np.array([second[cell] for cell in cells])
        later = _grid(here, deviation, points)
        density = _normal((later - here[:, np.newaxis]) / deviation) / deviation
        told = np.maximum(weighted @ density, 0.0).sum(axis=1) * (later[1] - later[0])
        best = np.maximum(best, told)
    return float(best.sum() * (outputs[1] - outputs[0]))


def _grid(answers: np.ndarray, scale: float, points: int) -> np.ndarray:
    return np.linspace(answers.min() - 9 * scale, answers.max() + 9 * scale, points)


def _normal(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-x * x / 2) / math.sqrt(2 * math.pi))
