"""CPU time that searches take past their `time_limit`, over all families, scales and both noises.

    python -m tests.benchmarks.deadlines [families]

writes `results/deadlines.txt`, about all families if none is named. A timer reads the CPU time of
the process when the limit is over; what it has used in the end counts as past it, on all threads
together. A search that takes 20 seconds more is given up. Every case runs once before with no time
at all, for compiled code.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from tests.benchmarks.heading import heading, keep
from tests.support.networks import grid_edges, grid_precision, ising_factors, regular_tree

LIMIT = 0.2
GIVEN_UP = 20
SCALES = (1e-50, 1e-14, 1e-3, 0.3, 3.0, 1e3, 1e14, 1e50)
NOISES: dict[str, dict[str, Any]] = {
    "Laplace": {},
    "at one delta": {"noise": "gaussian", "delta": 1e-6},
    "at a rare delta": {"noise": "gaussian", "delta": 1e-20},
    "at every delta": {"noise": "gaussian"},
}


def _table(shape: tuple[int, ...]) -> pdp.JointTable:
    cells = np.random.default_rng(1).dirichlet(np.ones(int(np.prod(shape)))).reshape(shape)
    return pdp.JointTable(probabilities=cells, domains=[list(range(size)) for size in shape])


def _covariance(size: int) -> np.ndarray:
    root = np.random.default_rng(2).normal(size=(size, size + 3))
    return np.asarray(root @ root.T)


def models() -> dict[str, Callable[[], Model]]:
    """Return models whose full search takes a while, in every family."""
    dense = pdp.Gaussian(covariance=_covariance(40), bounds=(0, 1))
    alike = np.random.default_rng(3)
    return {
        "JointTable 2^2": lambda: _table((2, 2)),
        "JointTable 2^4": lambda: _table((2,) * 4),
        "JointTable 2^11": lambda: _table((2,) * 11),
        "JointTable 3^7": lambda: _table((3,) * 7),
        "JointTable 12^3": lambda: _table((12,) * 3),
        "ModelSet": lambda: pdp.ModelSet(models=[_table((2,) * 8)] * 5),
        "ConditionalBall": lambda: pdp.ConditionalBall(center=_table((3,) * 5), radius=0.1),
        "SampledTable": lambda: pdp.SampledTable(
            counts=np.rint(1e4 * _table((2,) * 7).probabilities).astype(int),
            domains=[[0, 1]] * 7,
            confidence=0.9,
        ),
        "BinaryGroup 200": lambda: pdp.BinaryGroup(
            count_probabilities=alike.dirichlet(np.ones(201))
        ),
        "CategoryGroup": lambda: pdp.CategoryGroup(
            size=9, categories=[0, 1, 5], count_probabilities=alike.dirichlet(np.ones(55))
        ),
        "MarkovChain 30": lambda: pdp.MarkovChain(
            transition=[[0.8, 0.2], [0.3, 0.7]], length=30, states=[0, 1]
        ),
        "MarkovChain 500": lambda: pdp.MarkovChain(
            transition=alike.dirichlet(np.ones(4), size=4), length=500, states=[0, 1, 2, 7]
        ),
        "MarkovTree 200": lambda: regular_tree(200, 3, 0.9),
        "Network 12x12": lambda: pdp.Network(
            factors=ising_factors(grid_edges(12, 12), 0.3),
            domains={place: [0, 1] for place in range(144)},
        ),
        "Network 52x52": lambda: pdp.Network(
            factors=ising_factors(grid_edges(52, 52), 0.3),
            domains={place: [0, 1] for place in range(52**2)},
        ),
        "Gaussian 40": lambda: dense,
        "LoewnerBall 40": lambda: pdp.LoewnerBall(center=dense, radius=0.1),
        "GaussianGroup": lambda: pdp.GaussianGroup(
            size=60, correlation=(-0.01, 0.4), bounds=(0, 1), variance=1.0
        ),
        "GaussianSeries": lambda: pdp.GaussianSeries(
            length=300, correlation=-0.6, bounds=(0, 1), variance=1.0
        ),
        "GaussianNetwork": lambda: pdp.GaussianNetwork(
            precision=grid_precision(20, 20, -0.1), bounds=(0, 1)
        ),
        "Unknown": lambda: pdp.Unknown(size=30, domain=[0, 1, 4]),
        "Blocks": lambda: pdp.Blocks(models=[_table((2,) * 8), _table((3,) * 5)], counts=[2, 9]),
        "Gaussian blocks": lambda: pdp.Blocks(models=[dense, dense], counts=[2, 2]),
    }


def queries(model: Model) -> dict[str, Any]:
    """Return a sum of different weights, two answers, and for discrete tuples a histogram."""
    weights = (1 + np.arange(len(model.names)) % 7).astype(float).tolist()
    asked: dict[str, Any] = {
        "sum": pdp.Linear(weights=weights),
        "list": [pdp.Sum(), pdp.Linear(weights=weights)],
    }
    return asked if model.is_continuous else asked | {"histogram": pdp.Histogram()}


class GivenUp(Exception):  # noqa: N818 (a result, not an error)
    """The search did not come back."""


def past(call: Callable[[], object]) -> float:
    """Return the CPU time that a call takes after the limit."""
    at_the_limit: list[float] = []
    timer = threading.Timer(LIMIT, lambda: at_the_limit.append(time.process_time()))
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP)
    timer.start()
    try:
        call()
    except pdp.PdpError:
        pass
    except GivenUp:
        return float(GIVEN_UP)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        timer.cancel()
    return time.process_time() - at_the_limit[0] if at_the_limit else 0.0


def _give_up(_signal: int, _frame: object) -> None:
    raise GivenUp


def leakage_and_calibrate(model: Model, query: Any, options: dict[str, Any]) -> tuple[float, float]:
    """Return the largest CPU time past the limit of both, over scales and over levels."""

    def leakage(scale: float, limit: float) -> object:
        scales: Any = [scale] * 2 if isinstance(query, list) else scale
        return pdp.leakage(model, query, scale=scales, time_limit=limit, **options)

    def calibrate(level: dict[str, float]) -> object:
        return pdp.calibrate(model, query, time_limit=LIMIT, **level, **options)

    past(lambda: leakage(1.0, 0.0))
    levels: list[dict[str, float]] = [{"epsilon": 1.0}, {"epsilon": 1e-9}]
    if options and "delta" not in options:
        levels = [{"mu": 0.5}]
    return (
        max(past(functools.partial(leakage, scale, LIMIT)) for scale in SCALES),
        max(past(functools.partial(calibrate, level)) for level in levels),
    )


def main() -> None:
    lines = heading("deadlines", "pdp-calibrate", "numpy", "numba")
    lines += ["", f"CPU seconds past time_limit = {LIMIT}: leakage at the worst of the scales"]
    lines += [", ".join(f"{scale:g}" for scale in SCALES) + "; calibrate at epsilon 1 and 1e-9."]
    lines += ["Two numbers each: leakage, calibrate.", ""]
    lines += [f"{'':18}{'asked':>10}" + "".join(f"{noise:>24}" for noise in NOISES)]
    made = models()
    for name in sys.argv[1:] or made:
        model = made[name]()
        for kind, query in queries(model).items():
            found = [leakage_and_calibrate(model, query, options) for options in NOISES.values()]
            row = [f"{one:12.2f}" for pair in found for one in pair]
            lines.append(f"{name:18}{kind:>10}" + "".join(row))
            keep("deadlines", lines)


if __name__ == "__main__":
    main()
