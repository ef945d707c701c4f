"""CPU time of warm calls, compared with an earlier version of the library in one run.

    git worktree add --detach EARLIER da6183d
    python -m tests.benchmarks.warm EARLIER results/warm.txt

Two processes, one per version, answer the same calls in turn: every call is made until it has taken
0.04 CPU seconds, and the best of four such rounds counts, so a busy moment hits both. Before the
first measurement the families are used until compiled code is loaded. Every call meets a model that
is new to it. Version 0.1.0 keeps what it prepared for trees and for sets of tables, and finds it
again by value: these get other names at every call. Only public names are used, so the earlier
version runs from its own folder; what it does not have is left out.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

import pdp_calibrate as pdp

LEAST = 0.04
ROUNDS = 4
WARMING = 10.0  # CPU seconds; a family loads compiled code when NumPy took up to four of them
SYMMETRIC = [[0.9, 0.1], [0.2, 0.8]]

Maker = Callable[[], Any]

_numbers = itertools.count()


def sample_model(size: int, seed: int) -> pdp.Gaussian:
    """The sample covariance of independent rows: small random correlations everywhere."""
    sample = np.random.default_rng(seed).normal(size=(4 * size, size))
    return pdp.Gaussian(covariance=np.cov(sample.T), bounds=(-3, 3))


def table_of(cells: Any, names: list[str] | None = None) -> pdp.JointTable:
    """A table of binary tuples."""
    return pdp.JointTable(probabilities=cells, domains=[[0, 1]] * cells.ndim, names=names)


def new_names(size: int) -> list[str]:
    """Names that no model had before."""
    number = next(_numbers)
    return [f"{number}.{place}" for place in range(size)]


def tree_of(size: int) -> pdp.MarkovTree:
    """A binary tree in which every tuple has two children."""
    return pdp.MarkovTree(
        domains=[[0, 1]] * size,
        parents=[None, *((place - 1) // 2 for place in range(1, size))],
        tables=[[0.5, 0.5], *(SYMMETRIC for _ in range(size - 1))],
        names=new_names(size),
    )


def models() -> Iterator[tuple[str, Maker, Any]]:
    """A name, what makes a new model, and a query: nothing is kept from call to call."""
    rng, one = np.random.default_rng(1), pdp.Sum()
    for size in (5, 20, 40, 60):
        yield f"Gaussian of {size}", lambda size=size: sample_model(size, 0), one
    for length in (3, 10, 20, 50, 100, 300):
        yield (
            f"chain of {length}",
            lambda length=length: pdp.MarkovChain(transition=SYMMETRIC, length=length),
            one,
        )
    for size in (2, 3, 5, 8, 10):
        cells = rng.dirichlet(np.ones(2**size)).reshape((2,) * size)
        yield f"table of {size}", lambda cells=cells: table_of(cells), one
    for size in (3, 10, 100):
        law = rng.dirichlet(np.ones(size + 1))
        yield f"group of {size}", lambda law=law: pdp.BinaryGroup(count_probabilities=law), one
    yield (
        "series of 100",
        lambda: pdp.GaussianSeries(length=100, correlation=0.6, bounds=(0, 2)),
        one,
    )
    for size in (5, 20):
        yield f"clamped Gaussian of {size}", lambda size=size: sample_model(size, 0), clamped()
    yield (
        "Gaussian group of 5",
        lambda: pdp.GaussianGroup(size=5, correlation=(-0.1, 0.4), bounds=(0, 3)),
        one,
    )
    yield (
        "Loewner ball of 5",
        lambda: pdp.LoewnerBall(center=sample_model(5, 0), radius=0.3),
        one,
    )
    pair, three = rng.dirichlet(np.ones(4)).reshape(2, 2), rng.dirichlet(np.ones(27))
    third = three.reshape(3, 3, 3)

    def categories() -> pdp.JointTable:
        return pdp.JointTable(probabilities=third, domains=[[0, 1, 2]] * 3)

    yield "histogram of 3", categories, pdp.Histogram()
    yield "list about 3", categories, [pdp.Sum(), pdp.Count(values={0})]
    yield "maximum of 3", categories, pdp.Custom(function=max)
    law = rng.dirichlet(np.ones(10))
    yield (
        "categories of 3",
        lambda: pdp.CategoryGroup(size=3, categories=[0, 1, 3], count_probabilities=law),
        one,
    )
    yield (
        "ball of 2",
        lambda: pdp.ConditionalBall(center=table_of(pair, new_names(2)), radius=0.2),
        one,
    )
    counts = rng.multinomial(500, pair.ravel()).reshape(2, 2)
    yield (
        "sample of 2",
        lambda: pdp.SampledTable(
            counts=counts, domains=[[0, 1]] * 2, confidence=0.9, names=new_names(2)
        ),
        one,
    )
    yield "any dependence of 4", lambda: pdp.Unknown(size=4, domain=[0, 1, 4]), one
    yield "blocks", lambda: pdp.Blocks(models=[table_of(pair), categories()], counts=[3, 1]), one
    other = rng.dirichlet(np.ones(4)).reshape(2, 2)
    yield "set of two", lambda: pdp.ModelSet(models=[table_of(pair), table_of(other)]), one
    for size in (7, 31):
        yield f"tree of {size}", lambda size=size: tree_of(size), one
    yield "mixing chain", lambda: pdp.MixingChain(length=12, states=[0, 1], diameter=1.0), one


def clamped() -> Any:
    """A mean of values held within their bounds."""
    return pdp.Mean(clamp=True)


def calls() -> dict[str, Callable[[], object]]:
    """What is measured."""
    found: dict[str, Callable[[], object]] = {}
    for name, make, query in models():
        scale: Any = [3.0] * len(query) if isinstance(query, list) else 3.0
        found[f"calibrate {name}"] = lambda make=make, query=query: pdp.calibrate(make(), query)
        found[f"leakage {name}"] = lambda make=make, query=query, scale=scale: pdp.leakage(
            make(), query, scale=scale
        )
    return found


def timed(call: Callable[[], object]) -> float:
    """CPU seconds of one call, over a round of them."""
    begun, number = time.process_time(), 0
    while time.process_time() - begun < LEAST:
        call()
        number += 1
    return (time.process_time() - begun) / number


def answer() -> None:
    """Measure what standard input names, one round per line."""
    warnings.simplefilter("ignore")
    known = calls()
    for model in (
        sample_model(24, 0),
        pdp.MarkovChain(transition=SYMMETRIC, length=100),
        pdp.BinaryGroup(count_probabilities=np.random.default_rng(0).dirichlet(np.ones(31))),
        table_of(np.random.default_rng(0).dirichlet(np.ones(2**10)).reshape((2,) * 10)),
    ):
        begun = time.process_time()
        while time.process_time() - begun < WARMING:
            pdp.calibrate(model, pdp.Sum())
            pdp.leakage(model, pdp.Sum(), scale=3.0)
    for line in sys.stdin:
        print(timed(known[line.strip()]), flush=True)


def begun_in(folder: Path) -> subprocess.Popen[str]:
    """Start a process that answers with the library of this folder."""
    path = os.pathsep.join([str(folder), str(folder / "integrations")])
    return subprocess.Popen(  # noqa: S603, this file itself
        [sys.executable, "-P", __file__, "--answer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
    )


def compare(earlier: Path, path: Path | None, wanted: list[str]) -> None:
    """Print both times in milliseconds, and the ratio."""
    both = [begun_in(earlier), begun_in(Path(__file__).parents[2])]
    lines: list[str] = []
    ratios: dict[str, list[float]] = {}
    for name in calls():
        if wanted and not any(part in name for part in wanted):
            continue
        best = [math.inf, math.inf]
        for _ in range(ROUNDS + 1):  # the first one warms
            for turn, process in enumerate(both):
                cast(IO[str], process.stdin).write(f"{name}\n")
                cast(IO[str], process.stdin).flush()
                best[turn] = min(best[turn], float(cast(IO[str], process.stdout).readline()))
        old, new = best
        ratios.setdefault(name.split()[0], []).append(new / old)
        lines.append(f"{name:32s}{1e3 * old:10.2f} ms{1e3 * new:10.2f} ms{new / old:8.2f}")
        print(lines[-1], flush=True)
    for what, found in ratios.items():
        lines.append(f"{what}: geometric mean {math.exp(np.mean(np.log(found))):.3f}")
        print(lines[-1])
    for process in both:
        process.communicate()
    if path is not None:
        path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        answer()
    else:
        compare(
            Path(sys.argv[1]).resolve(),
            Path(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] != "-" else None,
            sys.argv[3:],
        )
