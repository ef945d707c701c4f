"""Chains of two and three states: public and private fits, rare states, few and many series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.learning import Case

LAWS = {
    ".8/.2": [[0.8, 0.2], [0.2, 0.8]],
    "rare, .98/.4": [[0.98, 0.02], [0.4, 0.6]],
    "alternating, .3/.7": [[0.3, 0.7], [0.7, 0.3]],
    "three": [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]],
    "three, rare": [[0.94, 0.05, 0.01], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]],
}


def series(rng: np.random.Generator, law: npt.NDArray[Any], units: int, length: int) -> Any:
    """Draw stationary chains, in a long frame."""
    start = np.linalg.matrix_power(law, 2000)[0]
    states = np.empty((units, length), dtype=int)
    states[:, 0] = rng.choice(len(law), size=units, p=start / start.sum())
    levels = np.cumsum(law, axis=1)[:, :-1]
    for t in range(1, length):
        states[:, t] = (rng.random((units, 1)) > levels[states[:, t - 1]]).sum(axis=1)
    return pd.DataFrame(
        {
            "unit": np.repeat(np.arange(units), length),
            "time": np.tile(np.arange(length), units),
            "state": states.ravel(),
        }
    )


def _case(name: str, units: int, length: int, epsilon: float | None, fits: int) -> Case:
    law = np.array(LAWS[name])
    how = "public" if epsilon is None else f"ε = {epsilon:g}"
    return Case(
        name=f"{name}: {units} × {length}, {how}",
        truth=pdp.MarkovChain(transition=law, length=length, states=range(len(law))),
        estimator=pdp.MarkovChainEstimator(
            groups="unit",
            order_by="time",
            states=range(len(law)),
            epsilon=epsilon,
            max_length=None if epsilon is None else length,
            source="public" if epsilon is None else "private",
        ),
        draw=lambda rng: series(rng, law, units, length),
        query=pdp.Sum(),
        fits=fits,
    )


def cases() -> Iterator[Case]:
    """Yield all cases."""
    for name in LAWS:
        fits = 200 if len(LAWS[name]) == 2 else 60
        for units, length in ((3, 60), (30, 16), (300, 16), (2000, 8)):
            yield _case(name, units, length, None, fits)
        for epsilon in (0.5, 1.0, 2.0):
            for units in (300, 2000):
                yield _case(name, units, 8, epsilon, fits)
    for length in (200, 1000):
        yield _case(".8/.2", 1, length, None, 60)
    yield _case("three", 1, 200, None, 20)
