"""CPU time of the Gaussian engine, in units of one 3000×3000 float64 matrix product.

Run from the project's folder:

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/gaussian.py

CPU time (`time.process_time`) of the whole process, imports and compilation warm; the yardstick is
the best of three products on the same machine in the same process. A time limit counts wall
seconds, so where a gap is certified within a limit the CPU time it took is printed. One BLAS
thread: on a shared machine a second one burns CPU time while it waits.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeVar

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.gaussian.blocks import instance_of
from pdp_calibrate.families.gaussian.branch_and_bound import branch_and_bound
from pdp_calibrate.families.gaussian.instance import Instance, precision_of, search_tau
from pdp_calibrate.families.gaussian.nodes import LinearNodes

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of the call, and what it returned."""
    begun = time.process_time()
    answer = work()
    return time.process_time() - begun, answer


def yardstick() -> float:
    """CPU seconds of one matrix product, the best of three."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 3000, 3000))
    return min(timed(lambda: left @ right)[0] for _ in range(3))


def sample_model(size: int, rows: int, seed: int) -> pdp.Gaussian:
    """The sample covariance of independent rows: small random correlations everywhere."""
    sample = np.random.default_rng(seed).normal(size=(rows, size))
    return pdp.Gaussian(covariance=np.cov(sample.T), bounds=(-3, 3))


def factor_model(size: int, factors: int, seed: int) -> pdp.Gaussian:
    """Strong common factors: each explains as much of a tuple as the noise of its own."""
    loadings = np.random.default_rng(seed).normal(size=(size, factors))
    return pdp.Gaussian(covariance=loadings @ loadings.T + np.eye(size), bounds=(-3, 3))


def instance(model: pdp.Gaussian) -> Instance:
    """The search problem of a sum."""
    contributions = lower(pdp.Sum(), model)
    (problem,) = split(model, contributions, Adversaries.all())
    weights = np.column_stack(contributions.weights or ())
    found = instance_of(problem, weights, list(range(len(model.names))))
    if found is None:
        raise RuntimeError("a sum over everyone has targets.")
    return found


def nodes_of(model: pdp.Gaussian, limit: float) -> int:
    """How many nodes the search visits."""
    problem = instance(model)
    precision = precision_of(problem)
    tau = search_tau(problem, precision)
    deadline = time.monotonic() + limit
    return branch_and_bound(problem, precision, tau=tau, incumbent=0.0, deadline=deadline).visited


def report(name: str, model: pdp.Gaussian, unit: float, goal: str, limit: float = 600.0) -> None:
    """Print one line: CPU time, gap, and nodes against the number of known sets."""
    seconds, leak = timed(lambda: pdp.leakage(model, pdp.Sum(), time_limit=limit))
    gap = leak.value / leak.lower - 1
    nodes = nodes_of(model, limit)
    size = len(model.names)
    print(
        f"{name:<34}{seconds / unit:8.3f}   {goal:<22} gap {gap:8.1e}"
        f"  {'exact' if leak.exact else 'bracket':<8}"
        f"{nodes:>9} nodes of {size}·2^{size - 1}"
    )


def root_only(model: pdp.Gaussian) -> float:
    """The bound for every target at once, nothing branched."""
    problem = instance(model)
    precision = precision_of(problem)
    nodes = LinearNodes(problem, precision, tau=search_tau(problem, precision))
    return float(nodes.keys.max())


def main() -> None:
    """Print all lines."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    print("Gaussian engine, CPU time over one 3000x3000 float64 product (best of three)")
    print("date 2026-11-16; python " + platform.python_version() + "; " + packages)
    print("command: OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/gaussian.py")
    small = sample_model(8, 40, 0)
    pdp.leakage(small, pdp.Sum())  # compiles
    nodes_of(small, 1.0)
    root_only(small)
    unit = yardstick()
    print(f"yardstick: {unit:.3f} CPU seconds\n")
    for seed in range(3):
        report(f"n=20 (80 rows), seed {seed}", sample_model(20, 80, seed), unit, "exact <= 0.2")
    for seed in range(3):
        report(f"n=60 (240 rows), seed {seed}", sample_model(60, 240, seed), unit, "exact <= 4")
    for seed in range(10):
        report(
            f"n=100 (400 rows), seed {seed}", sample_model(100, 400, seed), unit,
            "gap <= 2 % in <= 10", 8 * unit,
        )  # fmt: skip
    for seed in range(3):
        report(
            f"n=60, six factors, seed {seed}", factor_model(60, 6, seed), unit,
            "gap <= 5 % in <= 10", 8 * unit,
        )  # fmt: skip
    places = np.arange(1000)
    chain = pdp.Gaussian(covariance=0.9 ** np.abs(places[:, np.newaxis] - places), bounds=(-3, 3))
    seconds, leak = timed(lambda: pdp.leakage(chain, pdp.Sum()))
    print(
        f"{'n=1000, AR(1), by signs':<34}{seconds / unit:8.3f}   {'certified <= 2':<22}"
        f" gap {leak.value / leak.lower - 1:8.1e}  {'exact' if leak.exact else 'bracket':<8}"
        "        0 nodes of 1000·2^999"
    )
    wide = sample_model(300, 1200, 0)
    seconds, bound = timed(lambda: root_only(wide))
    attained = pdp.leakage(wide, pdp.Sum(), time_limit=2.0).lower
    print(
        f"{'n=300 (1200 rows), root bound':<34}{seconds / unit:8.3f}   {'<= 2':<22}"
        f" gap {bound / attained - 1:8.1e}  bracket         0 nodes of 300·2^299"
    )


if __name__ == "__main__":
    main()
