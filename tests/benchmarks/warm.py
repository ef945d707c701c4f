"""CPU time of warm calls, to compare two versions of the library on one machine.

    python -m tests.benchmarks.warm before.txt
    python -m tests.benchmarks.warm after.txt
    python -m tests.benchmarks.warm before.txt after.txt

Every call is made until it has taken 0.05 CPU seconds, the best of three such rounds counts. Before
the first measurement the families are used until compiled code is loaded. Only public names are
used, so an earlier version can run it from its own folder, as with `record.py`.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp

LEAST = 0.05
WARMING = 10.0  # CPU seconds; a family loads compiled code when NumPy took four of them
SYMMETRIC = [[0.9, 0.1], [0.2, 0.8]]


def sample_model(size: int, seed: int) -> pdp.Gaussian:
    """The sample covariance of independent rows: small random correlations everywhere."""
    sample = np.random.default_rng(seed).normal(size=(4 * size, size))
    return pdp.Gaussian(covariance=np.cov(sample.T), bounds=(-3, 3))


def models() -> Iterator[tuple[str, Callable[[], object]]]:
    """A name, and what makes a new model: nothing is kept from call to call."""
    rng = np.random.default_rng(1)
    for size in (5, 20, 40, 60):
        yield f"Gaussian of {size}", lambda size=size: sample_model(size, 0)
    for length in (3, 10, 20, 50, 100, 300):
        yield (
            f"chain of {length}",
            lambda length=length: pdp.MarkovChain(transition=SYMMETRIC, length=length),
        )
    for size in (2, 3, 5, 8, 10):
        cells = rng.dirichlet(np.ones(2**size)).reshape((2,) * size)
        yield (
            f"table of {size}",
            lambda cells=cells: pdp.JointTable(probabilities=cells, domains=[[0, 1]] * cells.ndim),
        )
    for size in (3, 10, 100):
        law = rng.dirichlet(np.ones(size + 1))
        yield f"group of {size}", lambda law=law: pdp.BinaryGroup(count_probabilities=law)
    yield (
        "series of 100",
        lambda: pdp.GaussianSeries(length=100, correlation=0.6, bounds=(0, 2)),
    )


def timed(call: Callable[[], object]) -> float:
    """CPU seconds of one call, the best of three rounds."""
    call()
    best = math.inf
    for _ in range(3):
        begun, number = time.process_time(), 0
        while time.process_time() - begun < LEAST:
            call()
            number += 1
        best = min(best, (time.process_time() - begun) / number)
    return best


def record(path: Path) -> None:
    """Measure every call and write it down."""
    warnings.simplefilter("ignore")
    law = np.random.default_rng(0).dirichlet(np.ones(31))
    for model in (
        sample_model(24, 0),
        pdp.MarkovChain(transition=SYMMETRIC, length=100),
        pdp.BinaryGroup(count_probabilities=law),
    ):
        begun = time.process_time()
        while time.process_time() - begun < WARMING:
            pdp.calibrate(model, pdp.Sum())
    lines = []
    for name, make in models():
        for what, call in (
            ("calibrate", lambda make=make: pdp.calibrate(make(), pdp.Sum())),
            ("leakage", lambda make=make: pdp.leakage(make(), pdp.Sum(), scale=3.0)),
        ):
            lines.append(f"{what} {name} | {1e3 * timed(call):.3f}")
            path.write_text("\n".join(lines) + "\n")


def compare(before: Path, after: Path) -> None:
    """Print both times in milliseconds, and the ratio."""
    old, new = (
        {name: float(milliseconds) for name, milliseconds in map(parted, path.open())}
        for path in (before, after)
    )
    ratios: dict[str, list[float]] = {}
    for name, milliseconds in new.items():
        ratio = milliseconds / old[name]
        ratios.setdefault(name.split()[0], []).append(ratio)
        print(f"{name:28s}{old[name]:10.2f} ms{milliseconds:10.2f} ms{ratio:8.2f}")
    for what, found in ratios.items():
        print(f"{what}: geometric mean {math.exp(np.mean(np.log(found))):.2f}")


def parted(line: str) -> tuple[str, str]:
    """Name and number of one line."""
    name, milliseconds = line.strip().split(" | ")
    return name, milliseconds


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[1:]]
    record(*paths) if len(paths) == 1 else compare(*paths)
