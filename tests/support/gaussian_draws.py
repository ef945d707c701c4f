"""Random Gaussian problems for the tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.query import Linear, Query, lower
from pdp_calibrate.families.gaussian.model import Gaussian


class Draw(NamedTuple):
    model: Gaussian
    weights: np.ndarray
    query: Linear
    scale: float


def draw(seed: int, *, largest: int = 10, exponents: int = 6, smallest: int = 1) -> Draw:
    """Random covariance, weights (zeros included), ranges and units."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(smallest, largest + 1))
    if size > 8 and smallest < 5 and rng.random() < 0.7:
        size -= 4  # large ones are slow to check one by one
    rows = int(size * rng.choice([1.5, 3, 10])) + 2
    sample = rng.normal(size=(rows, size))
    if rng.random() < 0.3:
        sample += rng.normal(size=(rows, 1)) * rng.choice([0.5, 2.0])
    covariance = np.cov(sample.T).reshape(size, size)
    if size > 3 and rng.random() < 0.2:  # two independent blocks
        cut = int(rng.integers(1, size))
        covariance[:cut, cut:] = covariance[cut:, :cut] = 0.0
    units = 10.0 ** rng.integers(-exponents, exponents + 1, size=size)
    weights = rng.normal(size=size) * (rng.random(size) > 0.3) / units
    if not weights.any():
        weights[0] = 1 / units[0]
    widths = rng.uniform(0.1, 4.0, size=size) * units
    starts = rng.normal(size=size) * units
    model = Gaussian(
        covariance=covariance * np.outer(units, units),
        bounds=[(float(lo), float(lo + width)) for lo, width in zip(starts, widths, strict=True)],
    )
    return Draw(model, weights, Linear(weights=weights), float(rng.uniform(0.1, 10.0)))


def joint_search(
    model: Model,
    queries: Sequence[Query],
    scales: Sequence[float],
    *,
    adversaries: Adversaries | None = None,
    clamped: bool = False,
) -> Bracket:
    """Search several answers released together, each with its own scale."""
    parts = [lower(query, model) for query in queries]
    columns = zip(*(part.weights or () for part in parts), strict=True)
    values = zip(*(part.values for part in parts), strict=True)
    everyone = adversaries or Adversaries.all()
    problem = Problem(
        model=model,
        contributions=Contributions(
            values=tuple(np.concatenate(column, axis=-1) for column in values),
            weights=tuple(np.concatenate(column) / scales for column in columns),
            clamped=clamped,
        ),
        knowledge=everyone.resolve(model),
        names=model.names,
    )
    return problem.engine.bracket(1.0)
