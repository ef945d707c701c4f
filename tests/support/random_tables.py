"""Random tables, queries and adversaries of every kind, for tests that compare two engines."""

import dataclasses
import math

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import Problem, split
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.core.table import JointTable


def random_problem(seed: int) -> tuple[Problem, float]:
    """Two to four tuples of two to four values, any query, any adversaries, and a scale."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    sizes = [int(number) for number in rng.integers(2, 5, size=size)]
    table = JointTable(probabilities=_cells(rng, sizes), domains=_domains(rng, sizes))
    (problem,) = split(table, lower(_query(rng, size), table), _adversaries(rng, size))
    hidden = bool(rng.random() < 0.2)
    return dataclasses.replace(problem, hidden_noise=hidden), float(10 ** rng.uniform(-2, 3))


def _cells(rng: np.random.Generator, sizes: list[int]) -> FloatArray:
    cells = rng.dirichlet(np.full(math.prod(sizes), rng.choice([0.2, 1.0, 5.0]))).reshape(sizes)
    zeros = rng.choice([0.0, 0.3, 0.8], p=[0.6, 0.35, 0.05])
    cells[(rng.random(cells.shape) < zeros) | (cells < 1e-200)] = 0.0
    if not cells.any():
        cells.flat[0] = 1.0
    return np.asarray(cells / cells.sum())


def _domains(rng: np.random.Generator, sizes: list[int]) -> list[list[float]]:
    if rng.random() < 0.5:
        return [list(map(float, range(size))) for size in sizes]
    return [sorted(rng.normal(size=size).round(6).tolist()) for size in sizes]


def curved(values: tuple[float, ...]) -> float:
    """A query that no sum over the tuples can express."""
    return 1.3 * max(values) - values[0] * values[-1]


def _query(rng: np.random.Generator, size: int) -> Query:
    names = [f"x{place + 1}" for place in range(size)]
    over = [name for name in names if rng.random() < 0.7] or names[:1]
    return [
        pdp.Sum(),
        pdp.Mean(),
        pdp.Sum(over=over),
        pdp.Linear(weights=rng.normal(size=size).tolist()),
        pdp.Custom(function=curved),
    ][int(rng.integers(5))]


def _adversaries(rng: np.random.Generator, size: int) -> Adversaries:
    target = int(rng.integers(size))
    known = [f"x{k + 1}" for k in range(size) if k != target and rng.random() < 0.5]
    fewest = int(rng.integers(size))
    return [
        Adversaries.all(),
        Adversaries.weakest(),
        Adversaries.strongest(),
        Adversaries.knowing(at_least=fewest, at_most=int(rng.integers(fewest, size))),
        Adversaries.exactly(f"x{target + 1}", known=known),
    ][int(rng.integers(5))]


def additive_problem(
    cells: FloatArray, values: list[FloatArray], adversaries: Adversaries | None = None
) -> Problem:
    """One table and what each value adds, one row per value and one column per coordinate."""
    table = JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    contributions = Contributions(values=tuple(values))
    (problem,) = split(table, contributions, adversaries or Adversaries.all())
    # As it stands, though all coordinates may be one number: engines are tested on vectors too.
    return dataclasses.replace(problem, contributions=contributions, line=None)


def binary_cells(size: int, kind: str, *, seed: int) -> FloatArray:
    """A larger binary table: without structure, with mild couplings, or with zeros."""
    rng = np.random.default_rng(seed)
    if kind == "coupled":
        spins = 2.0 * np.indices((2,) * size).reshape(size, -1) - 1
        couplings = np.triu(rng.uniform(-0.2, 0.2, (size, size)), 1)
        cells = np.exp((spins * (couplings @ spins)).sum(axis=0) + rng.uniform(-1, 1, size) @ spins)
    else:
        cells = rng.dirichlet(np.full(2**size, 2.0))
        if kind == "zeros":
            cells[rng.random(cells.size) < 0.5] = 0.0
    return np.asarray((cells / cells.sum()).reshape((2,) * size))
