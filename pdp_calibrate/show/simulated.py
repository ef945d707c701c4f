"""An honest picture of an answer before there is one: noise beside simulated people.

Nothing is read of the data: every person simulated here has a value drawn evenly from those that
are possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.core.query import Count, Histogram, Mean, Sum
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.show.words import number

_DRAWS = 24
_MOST_ANSWERS = 12


@dataclass(frozen=True, kw_only=True)
class SimulatedAnswers:
    """Answers about simulated people, and what noise makes of them."""

    labels: tuple[str, ...]
    """What each is called."""
    answers: tuple[float, ...]
    """The answers without noise."""
    noisy: tuple[tuple[float, ...], ...]
    """For each, what several releases would say."""
    half_width: float
    """Within which 95 % of them lie."""
    likely: float
    """Within which half of them lie."""
    people: int
    """How many people are simulated."""
    asked: str = ""
    """Which of several questions it answers, as text."""


def simulated_answers(
    calibration: AnyCalibration, *, people: int, seed: int = 0, place: int = 0, asked: str = ""
) -> SimulatedAnswers | None:
    """Simulate people, their answer, and releases of it; None where there is no such picture.

    Parameters
    ----------
    calibration
        Whose noise.
    people
        How many values enter the answer.
    seed
        Which people and which noise: the same picture every time.
    place
        Which of several questions.
    asked
        That question as text, where there are several.
    """
    if calibration.noise != "laplace":
        return None
    rng = np.random.default_rng(seed)
    found = _answers(calibration, place, people, rng)
    if found is None or not 1 <= len(found) <= _MOST_ANSWERS:
        return None
    half_width, likely = (calibration.known_half_widths(alpha=one)[place] for one in (0.05, 0.5))
    if half_width is None or likely is None:
        return None
    scale = half_width / math.log(20)  # of the answer: that of a mean may be of the sum behind it
    noisy = {label: truth + rng.laplace(0.0, scale, _DRAWS) for label, truth in found.items()}
    if calibration.contributions[place].is_integer:
        noisy = {label: np.rint(draws) for label, draws in noisy.items()}
    return SimulatedAnswers(
        labels=tuple(found),
        answers=tuple(found.values()),
        noisy=tuple(tuple(draws.tolist()) for draws in noisy.values()),
        half_width=half_width,
        likely=likely,
        people=people,
        asked=asked,
    )


def _answers(
    calibration: AnyCalibration, place: int, people: int, rng: np.random.Generator
) -> dict[str, float] | None:
    query = calibration.queries[place]
    domain: Any = calibration.model.domains[0]
    if isinstance(query, RowQuery):
        return _of_rows(query, people, rng)
    if isinstance(query, Sum | Mean):
        values = (
            rng.uniform(domain[0], domain[1], people)
            if calibration.model.is_continuous
            else rng.choice(np.asarray(domain, dtype=float), people)
        )
        total = float(values.sum())
        return {"mean": total / people} if isinstance(query, Mean) else {"sum": total}
    if isinstance(query, Count | Histogram):
        held = rng.multinomial(people, [1 / len(domain)] * len(domain))
        counts = dict(zip(domain, held.tolist(), strict=True))
        if isinstance(query, Histogram):
            shown = query.categories or tuple(domain)
            return {number(one): float(counts.get(one, 0)) for one in shown}
        return {"count": float(sum(counts.get(value, 0) for value in query.values))}
    return None


def _of_rows(query: RowQuery, people: int, rng: np.random.Generator) -> dict[str, float] | None:
    if query.is_ratio:
        return None  # the noise is that of a sum and a count behind it
    labels = [", ".join(map(number, cell)) or query.kind for cell in query.cells()]
    counted = people // (2 if query.where else 1)  # of a condition half of them, as an example
    parts = rng.multinomial(counted, [1 / len(labels)] * len(labels)).tolist()
    if query.kind == "count":
        return dict(zip(labels, map(float, parts), strict=True))
    low, high = query.bounds or (0.0, 1.0)
    sums = [float(rng.uniform(low, high, part).sum()) for part in parts]
    if query.kind == "mean":
        sums = [total / max(part, 1) for total, part in zip(sums, parts, strict=True)]
    return dict(zip(labels, sums, strict=True))
