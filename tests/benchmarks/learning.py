"""Whether releases calibrated on learned models keep their promise under the truth.

Run `python -m tests.benchmarks.learning [section …]` from the project root. For each estimator,
truth, number of units H and ε of the fit, many frames are drawn from the truth and learned from. A
release is calibrated to 1 on each model; what its scale leaks under the truth is more than 1 in the
share reported as misses (5 % are allowed at .95). Beside it: the median of the scale over that of
the truth itself. Sections are modules `learning_<section>` with a function `cases`, which yields
`Case`s.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from tests.benchmarks.heading import heading, keep

SECTIONS = ("alike", "groups", "chains", "yes_no")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of the result: frames from one truth, learned from in one way."""

    name: str
    """What it is about."""
    truth: Model
    """The model of a unit from which rows are drawn."""
    estimator: Any
    """What learns from them."""
    draw: Callable[[np.random.Generator], Any]
    """Draws one frame."""
    query: Query
    """What is released about a unit."""
    fits: int = 100
    """How many frames are drawn."""
    short: float = 0.0
    """How much too small a scale may be, as a share of what is needed, before it is a miss."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of a case."""

    missed: int
    """How many releases leak more than 1 under the truth."""
    refused: int
    """How many fits were refused."""
    ratio: float
    """The median of the scale over that of the truth."""
    fits: int
    """How many fits there were."""


def outcome(case: Case, rng: np.random.Generator) -> Found:
    """Learn, calibrate to 1, and compare with the scale that the truth needs.

    A scale leaks more than 1 under the truth where it is below the one that the truth needs, which
    is found to a millionth.
    """
    needed = pdp.calibrate(case.truth, case.query, epsilon=1.0).scale
    missed, refused, ratios = 0, 0, []
    for _ in range(case.fits):
        frame = case.draw(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = case.estimator.fit(frame).model_
            except pdp.ModelError:
                refused += 1
                continue
            size = len(case.truth.names)
            alone = next(one for one in (model, *model.inner_models) if len(one.names) == size)
            scale = pdp.calibrate(alone, case.query, epsilon=1.0).scale
        missed += scale * (1 + case.short) < needed * (1 - 2e-6)
        ratios.append(scale / needed)
    ratio = float(np.median(ratios)) if ratios else float("nan")
    return Found(missed=missed, refused=refused, ratio=ratio, fits=case.fits)


def lines_of(cases: Iterator[Case], rng: np.random.Generator) -> Iterator[str]:
    """Yield a line for each case."""
    yield f"{'case':64s}{'fits':>6s}{'refused':>9s}{'misses':>8s}{'scale/truth':>13s}"
    for case in cases:
        found = outcome(case, rng)
        share = found.missed / max(1, found.fits - found.refused)
        yield (f"{case.name:64s}{found.fits:6d}{found.refused:9d}{share:8.3f}{found.ratio:13.3f}")


def main(sections: list[str]) -> None:
    """Run the sections named, all by default, and keep a result for each."""
    for section in sections or SECTIONS:
        module = importlib.import_module(f"tests.benchmarks.learning_{section}")
        started, found = time.process_time(), [*heading("learning", "numpy", "scipy", "opendp"), ""]
        for line in lines_of(module.cases(), np.random.default_rng(0)):
            found.append(line)
            spent = f"{time.process_time() - started:.0f} CPU seconds"
            keep(f"learning_{section}", [*found, spent])  # a campaign that is stopped is kept


if __name__ == "__main__":
    main(sys.argv[1:])
