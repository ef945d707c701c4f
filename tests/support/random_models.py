"""Random tables and queries, together with the plain Python function that the oracle gets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.query import Query


@dataclass(frozen=True)
class Case:
    """One model and query, and the same as raw material for the oracle."""

    table: pdp.JointTable
    query: Query
    function: Callable[[tuple[Any, ...]], float]

    @property
    def probabilities(self) -> FloatArray:
        return self.table.probabilities

    @property
    def domains(self) -> tuple[tuple[Hashable, ...], ...]:
        return self.table.domains


def random_table(
    rng: np.random.Generator, *, tuples: tuple[int, int] = (2, 4), values: tuple[int, int] = (2, 4)
) -> pdp.JointTable:
    """Random sizes, real values of any sign, some cells impossible."""
    sizes = [
        int(rng.integers(*values, endpoint=True))
        for _ in range(rng.integers(*tuples, endpoint=True))
    ]
    cells = rng.dirichlet(np.full(int(np.prod(sizes)), rng.choice([0.2, 1.0, 5.0]))).reshape(sizes)
    cells = np.where(rng.random(sizes) < rng.choice([0.0, 0.0, 0.3]), 0.0, cells)
    cells[cells < 1e-12] = 0.0
    if cells.sum() == 0:
        cells = np.ones(sizes)
    lattice = rng.random() < 0.5
    domains = [
        rng.choice(np.arange(-3, 6), size, replace=False).tolist() if lattice
        else (rng.normal(scale=2, size=size).round(3) + 1e-5 * np.arange(size)).tolist()
        for size in sizes
    ]  # fmt: skip
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


def random_case(rng: np.random.Generator, **sizes: tuple[int, int]) -> Case:
    """Pair a random table with a random query of one of the kinds."""
    table = random_table(rng, **sizes)
    n = len(table.names)
    kind = rng.choice(["sum", "over", "linear", "mean", "count", "custom"])
    chosen = sorted(rng.choice(n, size=int(rng.integers(1, n, endpoint=True)), replace=False))
    names = [table.names[position] for position in chosen]
    if kind == "sum":
        return Case(table, pdp.Sum(), lambda x: sum(x))
    if kind == "over":
        return Case(table, pdp.Sum(over=names), lambda x: sum(x[p] for p in chosen))
    if kind == "mean":
        return Case(table, pdp.Mean(over=names), lambda x: sum(x[p] for p in chosen) / len(chosen))
    if kind == "linear":
        weights = rng.normal(size=n).round(2) * (rng.random(n) < 0.7)
        weights[rng.integers(n)] = 1.5
        query = pdp.Linear(weights=weights.tolist())
        return Case(
            table, query, lambda x: float(sum(w * v for w, v in zip(weights, x, strict=True)))
        )
    if kind == "count":
        counted = {table.domains[p][0] for p in chosen}
        query = pdp.Count(values=counted, over=names)
        return Case(table, query, lambda x: float(sum(x[p] in counted for p in chosen)))
    function = [max, min, lambda v: float(sum(v) > 1), lambda v: sum(v) ** 2][rng.integers(4)]
    if len({function(cell) for cell in product(*(table.domains[p] for p in chosen))}) == 1:
        function = max
    query = pdp.Custom(function=function, over=names)
    return Case(table, query, lambda x: float(function(tuple(x[p] for p in chosen))))


Admits = Callable[[int, frozenset[int]], bool]


def adversary_kinds(
    rng: np.random.Generator, names: tuple[Hashable, ...]
) -> Iterator[tuple[pdp.Adversaries, Admits]]:
    """Yield each of the five kinds, and the same as a predicate for the oracle."""
    n = len(names)
    yield pdp.Adversaries.all(), lambda i, known: True  # noqa: ARG005
    yield pdp.Adversaries.weakest(), lambda i, known: not known  # noqa: ARG005
    yield pdp.Adversaries.strongest(), lambda i, known: len(known) == n - 1  # noqa: ARG005
    low = int(rng.integers(0, n))
    high = int(rng.integers(low, n))
    yield (
        pdp.Adversaries.knowing(at_least=low, at_most=high),
        lambda i, known: low <= len(known) <= high,  # noqa: ARG005
    )
    target = int(rng.integers(n))
    chosen = frozenset(p for p in range(n) if p != target and rng.random() < 0.5)
    yield (
        pdp.Adversaries.exactly(names[target], known=[names[p] for p in sorted(chosen)]),
        lambda i, known: i == target and known == chosen,
    )
