"""Yes/no groups of one size and of many: beta laws of the rate, and polarised groups.

Polarised groups fit no beta law: there a miss is a scale short by more than 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.learning import Case

BETAS = {"beta(1, 2)": (4, (1.0, 2.0)), "beta(4, 8)": (12, (4.0, 8.0)), "rare": (6, (0.1, 1.0))}
POLARISED = {
    ".05 or .95 (30 %)": (5, (0.05, 0.95), 0.3),
    ".02 or .9 (10 %)": (8, (0.02, 0.9), 0.1),
    ".1 or .9 (50 %)": (4, (0.1, 0.9), 0.5),
}


def _frame(rng: np.random.Generator, sizes: Any, rates: Any) -> pd.DataFrame:
    held = rng.random(int(sizes.sum())) < np.repeat(rates, sizes)
    return pd.DataFrame({"home": np.repeat(np.arange(len(sizes)), sizes), "x": held.astype(int)})


def _case(name: str, truth: Any, units: int, epsilon: float | None, *, many: bool) -> Case:
    size, law = truth.size, truth

    def draw(rng: np.random.Generator) -> pd.DataFrame:
        sizes = rng.integers(1, size + 1, units) if many else np.full(units, size)
        sizes[0] = size
        if law.beta is not None:
            rates = rng.beta(*law.beta, size=units)
        else:
            rates = rng.choice(law.rates, p=law.weights, size=units)
        return _frame(rng, sizes, rates)

    how = "public" if epsilon is None else f"ε = {epsilon:g}"
    sizes = f"1 to {size}" if many else str(size)
    return Case(
        name=f"{name}: {units} × {sizes}, {how}",
        truth=truth,
        estimator=pdp.GroupEstimator(
            groups="home",
            value="x",
            kind="binary",
            epsilon=epsilon,
            source="public" if epsilon is None else "private",
        ),
        draw=draw,
        query=pdp.Sum(),
        fits=100,
        short=0.0 if law.beta is not None else 0.05,
    )


def cases() -> Iterator[Case]:
    """Yield all cases."""
    truths: list[tuple[str, Any]] = [
        (name, pdp.RateGroup(size=size, beta=beta)) for name, (size, beta) in BETAS.items()
    ]
    truths += [
        (name, pdp.RateGroup(size=size, rates=rates, weights=[1 - share, share]))
        for name, (size, rates, share) in POLARISED.items()
    ]
    for name, truth in truths:
        for units in (3, 30, 100, 400, 2000):
            yield _case(name, truth, units, None, many=False)
        yield _case(name, truth, 100, None, many=True)
        for epsilon, units in ((0.5, 400), (1.0, 100), (1.0, 2000), (2.0, 400)):
            yield _case(name, truth, units, epsilon, many=False)
