"""What a family's first use of compiled code costs: fresh processes with an empty cache.

Run by hand: ``python -m tests.benchmarks.first_compilation [words of a name]``. In a process of its
own every case does its work twice; the CPU time of the first turn less that of the second is what
was imported and compiled, 4 seconds at most. Writes `results/first_compilation.txt`.

With ``--one NAME`` it does that for one case in this process and prints both times, and which
functions numba compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep
from tests.benchmarks.histograms import TEN
from tests.support.networks import grid_edges, grid_precision, ising_factors, regular_tree

MOST = 4.0  # CPU seconds
NOISE = {"noise": "gaussian", "delta": 1e-6}
Work = Callable[[], object]
"""What a case does, twice."""


def table(size: int, values: int = 2, *, seed: int = 0) -> pdp.JointTable:
    """A table of correlated columns."""
    cells = np.random.default_rng(seed).dirichlet(np.full(values**size, 0.7))
    return pdp.JointTable(
        probabilities=cells.reshape([values] * size), domains=[list(range(values))] * size
    )


def gaussian(size: int) -> pdp.Gaussian:
    """Real numbers of which no two are correlated alike."""
    factors = np.random.default_rng(size).normal(size=(size, 3))
    return pdp.Gaussian(covariance=np.eye(size) + factors @ factors.T, bounds=(0, 1))


def group(size: int) -> pdp.BinaryGroup:
    """Yes or no, more alike than a coin."""
    law = np.linspace(1, 2, size + 1)
    return pdp.BinaryGroup(count_probabilities=law / law.sum())


def chain(length: int | None, states: int = 2) -> pdp.MarkovChain:
    """States that stay with probability 0.8."""
    stay = np.full((states, states), 0.2 / (states - 1))
    np.fill_diagonal(stay, 0.8)
    return pdp.MarkovChain(transition=stay, length=length, states=list(range(states)))


def grid(side: int) -> pdp.Network:
    """Neighbours on a grid that are alike."""
    return pdp.Network(
        factors=ising_factors(grid_edges(side, side), 0.1),
        domains={place: [0, 1] for place in range(side**2)},
    )


def gaussian_grid(side: int) -> pdp.GaussianNetwork:
    """Real numbers on a grid, neighbours alike."""
    return pdp.GaussianNetwork(precision=grid_precision(side, side), bounds=(0, 1))


def sampled_table() -> pdp.SampledTable:
    """Counts of public rows."""
    counts = np.random.default_rng(3).integers(50, 300, [2] * 4)
    return pdp.SampledTable(counts=counts, domains=[[0, 1]] * 4)


def calibrated(model: Callable[[], object], query: object | None = None, **options: object) -> Work:
    """Return what calibrates a new model."""
    asked = pdp.Sum() if query is None else query
    return lambda: pdp.calibrate(model(), asked, **options)


def ten_items(kind: str) -> Work:
    """Return what bounds the leakage of a histogram of ten items of five values."""
    return lambda: pdp.leakage(
        pdp.JointTable(probabilities=TEN[kind](), domains=[list(range(5))] * 10),
        pdp.Histogram(),
        scale=4.0,
    )


def released(model: Callable[[], pdp.Model], **options: object) -> Work:
    """Return what releases two sums about a new model through one ledger."""

    def work() -> None:
        one = model()
        ledger = pdp.Ledger(one, epsilon=1.0, draw="the same", **options)
        data = dict.fromkeys(one.names, 0)
        for _ in range(2):
            ledger.release(pdp.Sum(), data, epsilon=0.3)

    return work


CASES: dict[str, Work] = {
    "16 binary columns": calibrated(lambda: table(16)),
    "17 binary columns": calibrated(lambda: table(17)),
    "12 binary columns": calibrated(lambda: table(12)),
    "12 binary columns, histogram": calibrated(lambda: table(12), pdp.Histogram()),
    "8 columns of 3, histogram": calibrated(lambda: table(8, 3), pdp.Histogram()),
    "8 columns of 3": calibrated(lambda: table(8, 3)),
    "10 columns of 5, histogram": ten_items("ordered, correlation 0.1"),
    "10 columns of 5 in classes, histogram": ten_items("classes"),
    "10 columns of 5 without structure, histogram": ten_items("perturbed by 50 %"),
    "6 binary columns, Gaussian noise": calibrated(lambda: table(6), **NOISE),
    "10 binary columns, Gaussian noise": calibrated(lambda: table(10), **NOISE),
    "Gaussian of 30": calibrated(lambda: gaussian(30)),
    "Gaussian of 30, clamped": calibrated(lambda: gaussian(30), pdp.Sum(clamp=True)),
    "Gaussian of 30, Gaussian noise": calibrated(lambda: gaussian(30), **NOISE),
    "Gaussian of 60": calibrated(lambda: gaussian(60)),
    "ModelSet of 2 tables of 12": calibrated(
        lambda: pdp.ModelSet(models=[table(12, seed=seed) for seed in (1, 2)])
    ),
    "LoewnerBall of 30": calibrated(lambda: pdp.LoewnerBall(center=gaussian(30), radius=0.1)),
    "ConditionalBall of 8": calibrated(lambda: pdp.ConditionalBall(center=table(8), radius=0.02)),
    "SampledTable of 4": calibrated(sampled_table),
    "group of 100": calibrated(lambda: group(100)),
    "group of 300": calibrated(lambda: group(300)),
    "group of 100, Gaussian noise": calibrated(lambda: group(100), **NOISE),
    "chain of 300": calibrated(lambda: chain(300)),
    "chain of 1,000": calibrated(lambda: chain(1000)),
    "chain of 300, three states": calibrated(lambda: chain(300, 3)),
    "chain of 300, three states, histogram": calibrated(lambda: chain(300, 3), pdp.Histogram()),
    "chain of 100, Gaussian noise": calibrated(lambda: chain(100), **NOISE),
    "grid of 5×5": calibrated(lambda: grid(5)),
    "grid of 25×25": calibrated(lambda: grid(25)),
    "grid of 5×5, Gaussian noise": calibrated(lambda: grid(5), **NOISE),
    "tree of 100": calibrated(lambda: regular_tree(100, 2, 0.8)),
    "tree of 1,000": calibrated(lambda: regular_tree(1000, 2, 0.45)),
    "mixing chain of 365": calibrated(
        lambda: pdp.MixingChain(length=365, states=[0, 1], diameter=2.5)
    ),
    "GaussianNetwork of 5×5": calibrated(lambda: gaussian_grid(5)),
    "GaussianNetwork of 30×30": calibrated(lambda: gaussian_grid(30)),
    "GaussianNetwork of 30×30, Gaussian noise": calibrated(lambda: gaussian_grid(30), **NOISE),
    "GaussianSeries of 100": calibrated(
        lambda: pdp.GaussianSeries(length=100, correlation=0.6, bounds=(0, 1))
    ),
    "chain without end": calibrated(lambda: chain(None), pdp.EachStep(pdp.Sum())),
    "mixing chain without end": calibrated(
        lambda: pdp.MixingChain(length=None, states=[0, 1], diameter=2.5), pdp.EachStep(pdp.Sum())
    ),
}
LEDGERS: dict[str, Callable[[], pdp.Model]] = {
    "table of 10": lambda: table(10),
    "Gaussian of 30": lambda: gaussian(30),
    "group of 100": lambda: group(100),
    "chain of 300": lambda: chain(300),
    "chain of 300, three states": lambda: chain(300, 3),
    "grid of 5×5": lambda: grid(5),
    "tree of 100": lambda: regular_tree(100, 2, 0.8),
    "mixing chain of 365": lambda: pdp.MixingChain(length=365, states=[0, 1], diameter=2.5),
    "GaussianNetwork of 5×5": lambda: gaussian_grid(5),
    "SampledTable of 4": sampled_table,
}
CASES |= {f"two releases in a ledger, {name}": released(model) for name, model in LEDGERS.items()}
CASES["audit, chain of 300"] = lambda: pdp.audit(pdp.calibrate(chain(300), pdp.Sum()), draws=1000)
CASES["audit, 12 binary columns"] = lambda: pdp.audit(
    pdp.calibrate(table(12), pdp.Sum()), draws=1000
)
CASES["audit, Gaussian of 30"] = lambda: pdp.audit(
    pdp.calibrate(gaussian(30), pdp.Sum()), draws=1000
)


def one(name: str) -> None:
    """Work twice in this process; print both times, and what was compiled."""
    from numba.core import event

    compiled: list[tuple[float, str]] = []

    class Clock(event.Listener):
        def __init__(self) -> None:
            self.begun: list[float] = []

        def on_start(self, _event: event.Event) -> None:
            self.begun.append(time.process_time())

        def on_end(self, done: event.Event) -> None:
            begun = self.begun.pop()
            if not self.begun:
                called = done.data["dispatcher"].py_func.__name__
                compiled.append((time.process_time() - begun, called))

    event.register("numba:compile", Clock())
    times = []
    for _ in range(2):
        begun = time.process_time()
        CASES[name]()
        times.append(time.process_time() - begun)
    functions = ", ".join(f"{called} {took:.2f}" for took, called in compiled if took >= 0.05)
    print(times[0], times[1], functions, sep="\t")


def measured(name: str) -> tuple[float, float, str]:
    """Return both times of a case in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "tests.benchmarks.first_compilation", "--one", name],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    first, second, functions = done.stdout.rstrip("\n").split("\t")
    return float(first), float(second), functions


def main() -> None:
    """Measure every case; print and store the table."""
    asked = [name for name in CASES if all(word in name for word in sys.argv[1:])]
    lines = [
        *heading("first_compilation", "numpy", "numba"),
        "CPU seconds of the first turn less those of the second; each in a fresh process, no cache",
    ]
    for name in asked:
        first, second, functions = measured(name)
        took = first - second
        kept = "kept" if took <= MOST else "MISSED"
        lines.append(f"{name:54}{took:5.2f}   wanted <= {MOST:g}: {kept}   {functions}".rstrip())
        print(lines[-1], flush=True)
    if len(asked) == len(CASES):
        keep("first_compilation", lines)


if __name__ == "__main__":
    one(sys.argv[2]) if sys.argv[1:2] == ["--one"] else main()
