"""Which outputs give a secret away, and how much counting them proves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from pdp_calibrate.errors import PdpError
from pdp_calibrate.models.base import FloatArray

Score = Callable[[FloatArray], FloatArray]
"""A number for each row of outputs."""
_CANDIDATES = 200  # thresholds tried


@dataclass(frozen=True, kw_only=True)
class Event:
    """A set of outputs: those whose score lies on one side of a threshold."""

    words: str
    """What the score is."""
    threshold: float
    """Where the event begins."""
    above: bool
    """Whether it lies above the threshold, or below."""
    score: Score = field(repr=False)
    """A number for each row of outputs."""

    def contains(self, outputs: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell for each row of outputs whether it belongs to the event."""
        scores = self.score(outputs)
        return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)

    def __str__(self) -> str:
        return f"{self.words} is at {'least' if self.above else 'most'} {self.threshold:.6g}"


def best_event(
    scores: Sequence[tuple[str, Score]],
    outputs: Sequence[FloatArray],
    failure: float,
    *,
    draws: int,
) -> tuple[Event, bool]:
    """Choose the event that should prove most in so many draws; and whether secrets are swapped.

    Of hundreds of rare events one looks good by luck and disappoints. So no event is credited with
    more draws than a sixth of the outputs on which it was chosen.
    """
    number = min(draws, *(len(some) // 6 for some in outputs))
    best: tuple[float, Event, bool] | None = None
    for words, score in scores:
        found = [score(some) for some in outputs]
        for sign in (1.0, -1.0):
            one, other = (np.sort(sign * some) for some in found)
            levels = np.quantile(np.concatenate([one, other]), _levels(), method="higher")
            hits = [
                (len(some) - np.searchsorted(some, levels)) * (number / len(some))
                for some in (one, other)
            ]
            for turned in (False, True):
                first, second = hits[::-1] if turned else hits
                values = log_ratio_at_least([first, second], [number, number], failure)
                place = int(np.argmax(values))
                if best is None or values[place] > best[0]:
                    level = sign * float(levels[place])
                    event = Event(words=words, threshold=level, above=sign > 0, score=score)
                    best = float(values[place]), event, turned
    if best is None:
        raise PdpError("the mechanism returned no numbers.")
    return best[1], best[2]


def _levels() -> FloatArray:
    """Quantiles tried: many in the tail, where likelihood ratios are large."""
    return np.concatenate(
        [np.linspace(0, 0.9, _CANDIDATES // 2), 1 - np.geomspace(0.1, 1e-4, _CANDIDATES // 2)]
    )


def log_ratio_at_least(hits: Sequence[Any], draws: Sequence[int], failure: float) -> Any:
    """Return the Clopper–Pearson bound on log p/q, each side failing with this probability."""
    first, second = (np.asarray(number, dtype=np.float64) for number in hits)
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(first > 0, beta.ppf(failure, first, draws[0] - first + 1), 0.0)
        most = np.where(
            second < draws[1], beta.ppf(1 - failure, second + 1, draws[1] - second), 1.0
        )
        logs = np.log(least) - np.log(most)
    return float(logs) if logs.ndim == 0 else logs
