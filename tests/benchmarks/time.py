"""CPU time of chains and groups, in units of one 3000×3000 float64 matrix product.

Run from the project's folder:

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/time.py

CPU time (`time.process_time`) of the whole process, imports and compilation warm; the yardstick is
the best of three products on the same machine in the same process.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from scipy import stats

import pdp_calibrate as pdp


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def yardstick() -> float:
    """CPU seconds of one matrix product, the best of three."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 3000, 3000))
    return min(cpu_seconds(lambda: left @ right) for _ in range(3))


def binary_chain(up: float, stay: float, length: int) -> pdp.MarkovChain:
    """Two states, stationary."""
    return pdp.MarkovChain(transition=[[1 - up, up], [1 - stay, stay]], length=length)


def four_states(length: int, memory: float) -> pdp.MarkovChain:
    """Four states that stay with some probability and else jump by random laws."""
    laws = np.random.default_rng(0).dirichlet(np.full(4, 2.0), size=4)
    transition = memory * np.eye(4) + (1 - memory) * laws
    return pdp.MarkovChain(transition=transition, length=length, states=[0, 1, 2, 3])


def beta_binomial(size: int) -> pdp.BinaryGroup:
    """A group whose members share a rate drawn from a beta law."""
    law = stats.betabinom.pmf(np.arange(size + 1), size, 2, 3)
    return pdp.BinaryGroup(count_probabilities=law / law.sum())


CASES: list[tuple[str, float, pdp.MarkovChain | pdp.BinaryGroup]] = [
    ("two states .1/.9, T = 100", 2, binary_chain(0.1, 0.9, 100)),
    ("two states .2/.5, T = 100", 2, binary_chain(0.2, 0.5, 100)),
    ("two states .8/.2, T = 100", 2, binary_chain(0.8, 0.2, 100)),
    ("two states .1/.9, T = 10,000", 4, binary_chain(0.1, 0.9, 10_000)),
    ("two states .05/.95, T = 10,000", 4, binary_chain(0.05, 0.95, 10_000)),
    ("two states .8/.2, T = 10,000", 4, binary_chain(0.8, 0.2, 10_000)),
    ("four states, memory .6, T = 1000", 10, four_states(1000, 0.6)),
    ("four states, memory .8, T = 1000", 10, four_states(1000, 0.8)),
    ("binary group of 200", 1, beta_binomial(200)),
]


def main() -> None:
    """Print a table of CPU times and ratios."""
    for warm in (binary_chain(0.1, 0.9, 20), binary_chain(0.1, 0.9, 210), beta_binomial(100)):
        pdp.calibrate(warm, pdp.Sum())
        pdp.calibrate(warm, pdp.Sum(), epsilon=10.0)
    unit = yardstick()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    print("OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/time.py")
    print(f"2026-11-16, Python {platform.python_version()}, {versions}, {platform.machine()}")
    print(f"yardstick: {unit:.2f} CPU seconds for one 3000x3000 float64 product\n")
    print(f"{'calibrate, all adversaries':36s}{'scale':>10s}{'seconds':>10s}{'ratio':>8s}{'≤':>5s}")
    for name, limit, model in CASES:
        found: list[pdp.Calibration] = []
        seconds = cpu_seconds(lambda: found.append(pdp.calibrate(model, pdp.Sum())))  # noqa: B023
        scale = found[0].scale
        print(f"{name:36s}{scale:10.4f}{seconds:10.3f}{seconds / unit:8.2f}{limit:5g}")


if __name__ == "__main__":
    main()
