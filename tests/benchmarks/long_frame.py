"""Five million rows in two million households: fit, calibrate and release against one group-by.

Run `python -m tests.benchmarks.long_frame` from the project root. CPU time; imports are warm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep

HOUSEHOLDS = 2_000_000
ROWS = 5_000_000


def survey() -> pd.DataFrame:
    """Sizes 1 to 4, correlation 0.3 inside a household, rows shuffled."""
    rng = np.random.default_rng(0)
    sizes = 1 + rng.binomial(3, (ROWS / HOUSEHOLDS - 1) / 3, size=HOUSEHOLDS)
    keys = np.repeat(np.arange(HOUSEHOLDS), sizes)
    common = np.repeat(rng.normal(size=HOUSEHOLDS), sizes)
    income = 50 + 10 * (np.sqrt(0.3) * common + np.sqrt(0.7) * rng.normal(size=len(keys)))
    order = rng.permutation(len(keys))
    return pd.DataFrame({"household": keys[order], "income": income[order]})


def group_by(frame: pd.DataFrame) -> Any:
    """Compute what the fit needs and no more: size, sum and sum of squares of every household."""
    squared = frame.assign(square=frame["income"] ** 2)
    return squared.groupby("household").agg(
        size=("income", "size"), sum=("income", "sum"), squares=("square", "sum")
    )


def whole_job(frame: pd.DataFrame) -> Any:
    """Fit, calibrate, release."""
    estimator = pdp.GroupEstimator(value="income", bounds=(0, 100), source="public")
    model = frame.pdp.fit(estimator).model_
    cal = pdp.calibrate(model, pdp.Mean(clamp=True), epsilon=1.0)
    return cal.release(frame, value="income", by="household")


def seconds(job: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> float:
    """CPU seconds, best of three."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        job(frame)
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    """Print and store the ratio."""
    frame = survey()
    whole_job(frame[frame["household"] < 1000])  # imports and compilation
    yardstick, ours = seconds(group_by, frame), seconds(whole_job, frame)
    lines = [
        *heading("long_frame", "pandas", "numpy"),
        f"{len(frame)} rows, {HOUSEHOLDS} households",
        (
            f"group-by: {yardstick:.2f} CPU seconds; fit + calibrate + release: {ours:.2f};"
            f" ratio {ours / yardstick:.2f} (at most 3)"
        ),
    ]
    keep("long_frame", lines)


if __name__ == "__main__":
    main()
