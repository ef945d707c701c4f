"""Gaussian series and groups: public and private fits, with truths at the edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.learning import Case

Values = npt.NDArray[np.float64]
BOUNDS = (-100.0, 100.0)
QUERY = pdp.Sum(clamp=True)


def series(
    rng: np.random.Generator,
    units: int,
    length: int,
    phi: float,
    *,
    trend: float = 0.0,
    levels: float = 0.0,
    attrition: float = 0.0,
    clamp: float | None = None,
) -> pd.DataFrame:
    """Draw AR(1) series of variance 1.

    `trend` is added per position, `levels` is the standard deviation of a level of each unit that
    is known to the adversary, `attrition` the probability of leaving before each further position.
    """
    drawn = rng.normal(size=(units, length))
    for t in range(1, length):
        drawn[:, t] = phi * drawn[:, t - 1] + np.sqrt(1 - phi**2) * drawn[:, t]
    drawn += levels * rng.normal(size=(units, 1))
    if clamp is not None:
        drawn = drawn.clip(-clamp, clamp)
    drawn += trend * np.arange(length)
    frame = pd.DataFrame(
        {
            "unit": np.repeat(np.arange(units), length),
            "time": np.tile(np.arange(length), units),
            "x": drawn.ravel(),
        }
    )
    if not attrition:
        return frame
    stay = rng.geometric(attrition, size=units) + 1
    stay[0] = length  # the model of the longest is compared
    return frame[frame["time"] < stay[frame["unit"]]]


def groups(
    rng: np.random.Generator,
    units: int,
    size: int,
    rho: float,
    *,
    trend: float = 0.0,
    sizes: tuple[int, ...] | None = None,
    clamp: float | None = None,
) -> pd.DataFrame:
    """Draw exchangeable groups of variance 1, with a mean for each role."""
    drawn = np.sqrt(rho) * rng.normal(size=(units, 1))
    drawn = drawn + np.sqrt(1 - rho) * rng.normal(size=(units, size))
    if clamp is not None:
        drawn = drawn.clip(-clamp, clamp)
    drawn += trend * np.arange(size)
    frame = pd.DataFrame(
        {
            "unit": np.repeat(np.arange(units), size),
            "role": np.tile(np.arange(size), units),
            "x": drawn.ravel(),
        }
    )
    if sizes is None:
        return frame
    held = rng.choice(sizes, size=units)
    held[0] = size
    return frame[frame["role"] < held[frame["unit"]]]


def cases() -> Iterator[Case]:
    """Yield the cases of series; those of groups are a section of their own."""
    edges = (
        ("a trend of .6 sd a position", {"trend": 0.6}),
        ("clamped at ±.7 sd", {"clamp": 0.7}),
        ("attrition of 10 % a position", {"attrition": 0.1}),
        ("known levels of 1 sd", {"levels": 1.0}),
    )
    for epsilon in (1.0, None, 0.5, 2.0):
        how = "public" if epsilon is None else f"ε = {epsilon:g}"
        shapes = ((3, 3, 0.5), (20, 5, 0.8), (100, 16, 0.95))
        if epsilon is not None:
            shapes = ((30, 16, 0.8), (300, 16, 0.8), (300, 16, 0.95))
        for units, length, phi in shapes if epsilon in (None, 1.0) else shapes[1:2]:
            yield _case(
                f"series {units} × {length}, φ = {phi:g}, {how}", units, length, phi, epsilon
            )
        for words, given in edges if epsilon in (None, 1.0) else ():
            if epsilon is None and "levels" in given:
                continue  # the test on lag 4 warns
            yield _case(f"series 300 × 16, φ = .8, {words}, {how}", 300, 16, 0.8, epsilon, **given)


def _case(
    name: str, units: int, length: int, phi: float, epsilon: float | None, **given: float
) -> Case:
    bounds = (-0.7, 0.7) if "clamp" in given and epsilon is None else BOUNDS
    return Case(
        name=name,
        truth=pdp.GaussianSeries(length=length, correlation=phi, bounds=bounds),
        estimator=pdp.GaussianSeriesEstimator(
            value="x",
            groups="unit",
            order_by="time",
            bounds=bounds,
            epsilon=epsilon,
            source="public" if epsilon is None else "private",
        ),
        draw=lambda rng: series(rng, units, length, phi, **given),
        query=QUERY,
    )


def group_cases() -> Iterator[Case]:
    """Yield the cases of groups."""
    edges = (
        ("roles .6 sd apart", {"trend": 0.6}),
        ("sizes 2 to 4", {"sizes": (2, 3, 4)}),
        ("clamped at ±.7 sd", {"clamp": 0.7}),
    )
    for epsilon in (1.0, None, 0.5, 2.0):
        how = "public" if epsilon is None else f"ε = {epsilon:g}"
        shapes = ((3, 3, 0.5), (30, 4, 0.5), (2000, 2, 0.3))
        if epsilon is not None:
            shapes = ((300, 4, 0.5), (300, 4, 0.95), (2000, 2, 0.3))
        for units, size, rho in shapes if epsilon in (None, 1.0) else shapes[:1]:
            yield _of_groups(
                f"groups {units} × {size}, ρ = {rho:g}, {how}", units, size, rho, epsilon
            )
        for words, given in edges if epsilon in (None, 1.0) else ():
            yield _of_groups(
                f"groups 300 × 4, ρ = .5, {words}, {how}", 300, 4, 0.5, epsilon, **given
            )


def _of_groups(
    name: str, units: int, size: int, rho: float, epsilon: float | None, **given: object
) -> Case:
    bounds = (-0.7, 0.7) if "clamp" in given and epsilon is None else BOUNDS
    return Case(
        name=name,
        truth=pdp.GaussianGroup(size=size, correlation=rho, bounds=bounds),
        estimator=pdp.GroupEstimator(
            value="x",
            groups="unit",
            role="role",
            bounds=bounds,
            epsilon=epsilon,
            source="public" if epsilon is None else "private",
        ),
        draw=lambda rng: groups(rng, units, size, rho, **given),  # type: ignore[arg-type]
        query=QUERY,
    )
