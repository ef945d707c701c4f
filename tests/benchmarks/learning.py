"""Whether releases calibrated on learned models keep their promise under the truth.

Run `python -m tests.benchmarks.learning [section …] [--seed N] [--lines 3,7-12] [--fits N]` from
the project root; lines of another run are added to the result. For each estimator, truth, number of
units H and ε of the fit, many frames are drawn from the truth and learned from. A
release is calibrated to 1 on each model; what its scale leaks under the truth is more than 1 in the
share reported as misses (5 % are allowed at .95). Beside it: the median of the scale over that of
the truth itself. Sections are modules `learning_<section>` with a function `cases`, which yields
`Case`s.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from tests.benchmarks.heading import RESULTS, heading, keep

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


def lines_of(cases: Iterator[Case], args: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each case; the frames of a line depend on the seed and the line alone."""
    yield f"{'case':64s}{'fits':>6s}{'refused':>9s}{'misses':>8s}{'scale/truth':>13s}"
    wanted = None if args.lines is None else set(_numbers(args.lines))
    for place, drawn in enumerate(cases):
        if wanted is not None and place not in wanted:
            continue
        case = drawn if args.fits is None else dataclasses.replace(drawn, fits=args.fits)
        found = outcome(case, np.random.default_rng([args.seed, place]))
        share = found.missed / max(1, found.fits - found.refused)
        yield (f"{case.name:64s}{found.fits:6d}{found.refused:9d}{share:8.3f}{found.ratio:13.3f}")


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers in such a list: 3,7-12."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def main() -> None:
    """Run the sections named, all by default, and keep a result for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", help="the numbers of the lines to run, from 0: 3,7-12")
    parser.add_argument("--fits", type=int, help="frames to draw for each line")
    args = parser.parse_args()
    for section in args.sections or SECTIONS:
        module = importlib.import_module(f"tests.benchmarks.learning_{section}")
        started, found = time.process_time(), [*heading("learning", "numpy", "scipy", "opendp"), ""]
        kept = RESULTS / f"learning_{section}.txt"
        if args.lines is not None and kept.exists():
            found = [*kept.read_text(encoding="utf-8").splitlines(), "", *found]
        for line in lines_of(module.cases(), args):
            found.append(line)
            spent = f"{time.process_time() - started:.0f} CPU seconds"
            keep(f"learning_{section}", [*found, spent])  # a campaign that is stopped is kept


if __name__ == "__main__":
    main()
