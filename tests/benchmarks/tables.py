"""CPU time of the table engine, as a ratio to one 3000×3000 matrix product on the same machine.

Run `python -m tests.benchmarks.tables [name …]` from the project root. Imports, compilation and
the start of threads are warm; CPU time counts both threads.
"""

from __future__ import annotations

import hashlib
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import scipy

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import Problem, split
from pdp_calibrate.core.table import JointTable
from tests.support.table_searches import search


def yardstick() -> float:
    """CPU seconds of one float64 3000×3000 matrix product, best of three."""
    matrix = np.random.default_rng(0).random((3000, 3000))
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        matrix @ matrix
        seconds.append(time.process_time() - begun)
    return min(seconds)


def free_cores() -> float:
    """CPU seconds per wall second that two threads get beside other work on the machine."""
    wall, cpu = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda _: hashlib.sha256(bytes(2**29)).digest(), range(2)))
    return (time.process_time() - cpu) / (time.monotonic() - wall)


def problem_of(probabilities: FloatArray, values: list[FloatArray]) -> Problem:
    """One table, one additive query, all adversaries."""
    domains = [range(size) for size in probabilities.shape]
    table = JointTable(probabilities=probabilities / probabilities.sum(), domains=domains)
    columns = tuple(array if array.ndim == 2 else array[:, np.newaxis] for array in values)
    (problem,) = split(table, Contributions(values=columns), Adversaries.all())
    return problem


def binary(probabilities: FloatArray) -> Problem:
    """The sum of binary tuples."""
    return problem_of(probabilities, [np.array([0.0, 1.0])] * probabilities.ndim)


def ising(size: int, strength: float, *, seed: int, sign: float = 0.0) -> FloatArray:
    """Pairwise couplings up to `strength`, of random sign, or all of the sign given."""
    rng = np.random.default_rng(seed)
    spins = 2.0 * np.indices((2,) * size, dtype=np.int8).reshape(size, -1) - 1
    couplings = np.triu(rng.uniform(-strength, strength, (size, size)), 1)
    if sign:
        couplings = sign * np.abs(couplings)
    energy = rng.uniform(-0.3, 0.3, size) @ spins
    for first in range(size):
        energy += spins[first] * (couplings[first] @ spins)
    weights = np.exp(energy - energy.max())
    return np.asarray((weights / weights.sum()).reshape((2,) * size))


def dirichlet(size: int, *, seed: int) -> FloatArray:
    """A table without any structure."""
    cells = np.random.default_rng(seed).dirichlet(np.ones(2**size))
    return np.asarray(cells.reshape((2,) * size))


def real_weights(size: int, *, seed: int) -> Problem:
    """A weighted sum of binary tuples: all sums differ."""
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, size)
    return problem_of(dirichlet(size, seed=seed), [np.array([0.0, weight]) for weight in weights])


def histogram(size: int, categories: int, *, seed: int) -> Problem:
    """Counts of all categories at once."""
    cells = np.random.default_rng(seed).dirichlet(np.ones(categories**size))
    return problem_of(cells.reshape((categories,) * size), [np.eye(categories)] * size)


Case = tuple[str, Callable[[], Problem], float, float]


def twenty(coupling: float, *, seed: int, scale: float = 1.0, more: str = "") -> Case:
    """Twenty binary tuples with random couplings."""
    described = f"20 binary, couplings ≤ {coupling}{more}"
    return described, lambda: binary(ising(20, coupling, seed=seed)), scale, 60.0


CASES: dict[str, Case] = {
    # name: (description, problem, scale, ratio allowed)
    "dirichlet": ("15 binary, random Dirichlet", lambda: binary(dirichlet(15, seed=1)), 1.0, 8.0),
    "negative": (
        "15 binary, negatively correlated",
        lambda: binary(ising(15, 0.15, seed=1, sign=-1.0)),
        1.0,
        8.0,
    ),
    "mixed": ("15 binary, mixed signs", lambda: binary(ising(15, 0.2, seed=1)), 1.0, 8.0),
    "positive": (
        "15 binary, positively correlated",
        lambda: binary(ising(15, 0.15, seed=1, sign=1.0)),
        1.0,
        2.0,
    ),
    "real": ("12 binary, real weights", lambda: real_weights(12, seed=1), 1.0, 8.0),
    "histogram": ("6 tuples × 4 categories", lambda: histogram(6, 4, seed=1), 1.0, 8.0),
    "twenty": twenty(0.1, seed=1),
    "twenty-second": twenty(0.1, seed=2, more=", seed 2"),
    "twenty-wide": twenty(0.1, seed=1, scale=2.0, more=", λ = 2"),
    "twenty-weak": twenty(0.05, seed=3),
    "twenty-strong": twenty(0.2, seed=2),
    "twenty-stronger": twenty(0.3, seed=4),
}


def measure(name: str, unit: float) -> str:
    """Run one case and describe it in a line."""
    what, build, scale, allowed = CASES[name]
    problem = build()
    wall, cpu = time.monotonic(), time.process_time()
    # Long cases are stopped by the wall clock, about when the CPU time allowed is used up.
    deadline = math.inf if allowed < 60 else wall + 58 * unit / free_cores()
    found: Bracket = search(problem, scale, deadline=deadline)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    gap = (found.upper - found.lower) / found.upper
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{what:36s} ratio {cpu / unit:7.2f} (allowed {allowed:g})  cpu {cpu:7.2f} s"
        f"  wall {wall:7.2f} s  leakage {found.lower:.6f} … {found.upper:.6f}  gap {gap:.1e}"
        f"  peak {memory:.2f} GiB"
    )


def main() -> None:
    """Print versions, the yardstick and one line per case."""
    names = sys.argv[1:] or list(CASES)
    search(binary(dirichlet(8, seed=0)), 1.0)
    search(binary(dirichlet(13, seed=0)), 1.0)
    search(real_weights(4, seed=0), 1.0)
    search(histogram(3, 3, seed=0), 1.0)
    for name in names:
        unit = yardstick()  # measured beside each case: other work on the machine disturbs both
        print(f"{measure(name, unit)}  unit {unit:.2f} s", flush=True)
    print(
        f"python {sys.version.split()[0]}, numpy {np.__version__}, scipy {scipy.__version__},"
        f" numba {numba.__version__}, {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
