"""What learning the model privately costs: λ against the λ of a fit without noise, on 10,000 units.

Run `python -m tests.benchmarks.private` from the project root. The second part attacks 1,000 fits
on each of two frames that differ in one unit.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading

UNITS = 10_000
FITS = 7
LENGTH = 6


def wide(rng: np.random.Generator) -> pd.DataFrame:
    """Four yes/no columns, each a copy of the first in 7 of 10 rows."""
    first = rng.integers(0, 2, size=UNITS)
    fresh = rng.integers(0, 2, size=(UNITS, 3))
    kept = np.where(rng.random((UNITS, 3)) < 0.7, first[:, np.newaxis], fresh)
    return pd.DataFrame(np.column_stack([first, kept]), columns=list("abcd"))


def reals(rng: np.random.Generator) -> pd.DataFrame:
    """Four columns with correlation 0.4; the bounds are four deviations wide on each side."""
    common = rng.normal(size=(UNITS, 1))
    values = np.sqrt(0.4) * common + np.sqrt(0.6) * rng.normal(size=(UNITS, 4))
    return pd.DataFrame(values.clip(-4, 4), columns=list("abcd"))


def long(rng: np.random.Generator) -> pd.DataFrame:
    """Series of six: a state that stays in 8 of 10 steps, a load with correlation 0.7."""
    states, loads = [rng.integers(0, 2, size=UNITS)], [rng.normal(size=UNITS)]
    for _ in range(LENGTH - 1):
        states.append(np.where(rng.random(UNITS) < 0.8, states[-1], 1 - states[-1]))
        loads.append(0.7 * loads[-1] + np.sqrt(0.51) * rng.normal(size=UNITS))
    return pd.DataFrame(
        {
            "who": np.repeat(np.arange(UNITS), LENGTH),
            "state": np.column_stack(states).ravel(),
            "load": np.column_stack(loads).clip(-4, 4).ravel(),
        }
    )


def cases() -> dict[str, tuple[Any, pd.DataFrame, dict[str, Any], dict[str, Any]]]:
    """Return per family an estimator without noise, its frame, and what epsilon needs beside."""
    rng = np.random.default_rng(0)
    columns, values, series = wide(rng), reals(rng), long(rng)
    stated = {name: [0, 1] for name in "abcd"}
    by: dict[str, Any] = {"by": "who"}
    bounds: dict[str, Any] = {"bounds": (-4, 4)}
    sum_: dict[str, Any] = {"query": pdp.Sum()}
    clamped: dict[str, Any] = {"query": pdp.Sum(clamp=True)}
    return {
        "table, 16 cells": (pdp.TableEstimator(), columns, {"domains": stated}, sum_),
        "tree, 4 columns": (
            pdp.TableEstimator(structure="chow-liu"), columns, {"domains": stated}, sum_),
        "table, confidence 0.95": (
            pdp.TableEstimator(confidence=0.95), columns, {"domains": stated}, sum_),
        "Gaussian, 4 columns": (
            pdp.GaussianEstimator(**bounds, covariance="empirical"), values, {}, clamped),
        "Gaussian, confidence 0.95": (
            pdp.GaussianEstimator(**bounds, confidence=0.95), values, {}, {"query": pdp.Sum()}),
        "groups of 6, yes/no": (
            pdp.GroupEstimator(**by, value="state", kind="binary"), series, {}, sum_),
        "groups of 6, Gaussian": (
            pdp.GroupEstimator(**by, value="load", **bounds), series,
            {"max_group_size": LENGTH}, clamped),
        "chains of 6": (
            pdp.MarkovChainEstimator(**by), series, {"max_length": LENGTH, "states": [0, 1]}, sum_),
        "series of 6": (
            pdp.GaussianSeriesEstimator(**by, **bounds), series, {"max_length": LENGTH}, clamped),
    }  # fmt: skip


def scale_of(estimator: Any, frame: pd.DataFrame, query: pdp.Sum) -> float | None:
    """Fit and calibrate for ε = 1; None where the noise leaves nothing to be said."""
    try:
        model = frame.pdp.fit(estimator).model_
    except pdp.ModelError:
        return None
    if isinstance(model, pdp.Blocks):
        model = model.models[0]
    return float(pdp.calibrate(model, query, epsilon=1.0).scale)


def compared() -> list[str]:
    """Return a line per family: λ without noise, and the ratio to it for each ε."""
    lines = [
        f"{'λ for ε = 1':28s}{'no noise':>9s}"
        + "".join(f"{f'ε = {epsilon:g}':>24s}" for epsilon in (0.1, 1.0, 10.0))
    ]
    for name, (estimator, frame, needed, asked) in cases().items():
        plain = scale_of(estimator.set_params(source="public"), frame, asked["query"])
        assert plain is not None
        line = f"{name:28s}{plain:9.4f}"
        for epsilon in (0.1, 1.0, 10.0):
            private = type(estimator)(**(estimator.get_params() | needed | {"epsilon": epsilon}))
            found = [scale_of(private, frame, asked["query"]) for _ in range(FITS)]
            ratios = [scale / plain for scale in found if scale is not None]
            if len(ratios) < FITS:
                line += f"{f'refused {FITS - len(ratios)} of {FITS}':>24s}"
                continue
            low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
            line += f"{f'{middle:.3f} ({low:.3f}–{high:.3f})':>24s}"
        lines.append(line)
        print(line, flush=True)
    return lines


def attacked() -> list[str]:
    """Return what the strongest event found among 1,000 fits proves, per family."""
    import pytest

    from tests.learning.test_private_learning_audit import (
        EPSILON,
        FITS as AUDITED,
        NEIGHBOURS,
        evidence,
        read_frames_once,
    )

    lines = [
        f"{AUDITED} fits on each of two neighbours, claimed ε = {EPSILON:g}, proved at 99.9 %:"
    ]
    with pytest.MonkeyPatch.context() as patch:
        read_frames_once(patch)
        for kind in NEIGHBOURS:
            lines.append(f"  {kind:10s} at least {max(0.0, evidence(kind)):.3f}")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Print and store both tables."""
    warnings.simplefilter("ignore", pdp.ModelFitWarning)
    begun = time.process_time()
    lines = [
        *heading("private", "numpy", "pandas"),
        f"{UNITS} units; λ(private fit) / λ(without noise): median (10 %–90 %) of {FITS} fits",
        *compared(),
        *attacked(),
        f"{time.process_time() - begun:.0f} CPU seconds",
    ]
    path = Path(__file__).parent / "results" / "private.txt"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
