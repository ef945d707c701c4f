"""Which outputs give a secret away, and how much counting them proves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import PdpError, printable

Score = Callable[[FloatArray], FloatArray]
"""A number for each row of outputs."""


_CANDIDATES = 200  # thresholds tried


@dataclass(frozen=True, kw_only=True)
class Category:
    """A score that is 1 for outputs of one kind, and 0 for all others."""

    place: int
    """The column of kinds."""
    code: int
    """The kind in it."""

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Return 0 or 1 for each row of outputs."""
        return np.asarray(outputs[:, self.place] == self.code, dtype=np.float64)


def column(place: int) -> Score:
    """Return the score that is one number of an output."""
    return functools.partial(_column, place=place)


def _column(outputs: FloatArray, *, place: int) -> FloatArray:
    return outputs[:, place]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A set of outputs: those whose score lies on one side of a threshold.

    Outputs without that score (NaN, or of another length) belong to no such set; that itself is
    another event.
    """

    words: str
    """What the score is."""
    threshold: float
    """Where the event begins."""
    above: bool
    """Whether it lies above the threshold, or below."""
    score: Score = field(repr=False)
    """A number for each row of outputs."""

    def contains(self, outputs: FloatArray) -> npt.NDArray[np.bool_]:
        """Return for each row of outputs whether it belongs to the event."""
        scores = self.score(outputs)
        return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)

    def __str__(self) -> str:
        if isinstance(self.score, Category):
            words = self.words if self.above else f"it is not so that {self.words}"
        else:
            end = "least" if self.above else "most"
            words = f"{self.words} is at {end} {self.threshold:.6g}"
        return printable(words)


def best_event(
    scores: Sequence[tuple[str, Score]],
    outputs: Sequence[FloatArray],
    failure: float,
    *,
    draws: int,
    delta: float = 0.0,
) -> tuple[Event, bool]:
    """Choose the event that should prove most in these draws; and whether secrets are swapped.

    Among hundreds of rare events one looks good by chance and then disappoints. So no event is
    credited with more draws than a sixth of the outputs on which it was chosen.
    """
    number = min(draws, *(len(some) // 6 for some in outputs))
    best: tuple[float, Event, bool] | None = None
    for words, score in scores:
        scored = [score(some) for some in outputs]
        found = [some[~np.isnan(some)] for some in scored]
        if not sum(map(len, found)):
            continue
        for sign in (1.0, -1.0):
            one, other = (np.sort(sign * some) for some in found)
            levels = np.quantile(np.concatenate([one, other]), _levels(), method="higher")
            hits = [
                (len(some) - np.searchsorted(some, levels)) * (number / len(every))
                for some, every in zip((one, other), scored, strict=True)
            ]
            for turned in (False, True):
                first, second = hits[::-1] if turned else hits
                values = log_ratio_at_least([first, second], [number, number], failure, delta)
                place = int(np.argmax(values))
                if best is None or values[place] > best[0]:
                    level = sign * float(levels[place])
                    event = Event(words=words, threshold=level, above=sign > 0, score=score)
                    best = float(values[place]), event, turned
    if best is None:
        raise PdpError("the mechanism returned no numbers.")
    return best[1], best[2]


def proved_by(
    chosen: tuple[Event, bool], outputs: Sequence[FloatArray], failure: float, delta: float = 0.0
) -> float:
    """Return what an event, chosen as by `best_event`, would prove with these outputs."""
    event, turned = chosen
    hits = [int(event.contains(some).sum()) for some in outputs]
    draws = [len(some) for some in outputs]
    if turned:
        hits, draws = hits[::-1], draws[::-1]
    return float(log_ratio_at_least(hits, draws, failure, delta))


def _levels() -> FloatArray:
    """Quantiles tried: many in the tail, where likelihood ratios are large."""
    return np.concatenate(
        [np.linspace(0, 0.9, _CANDIDATES // 2), 1 - np.geomspace(0.1, 1e-4, _CANDIDATES // 2)]
    )


def log_ratio_at_least(
    hits: Sequence[Any], draws: Sequence[int], failure: float, delta: float = 0.0
) -> Any:
    """Return the Clopper–Pearson bound on log (p − δ)/q, each side failing with this probability.

    A mechanism that is (ε, δ)-private has p ≤ e^ε·q + δ for every event.
    """
    from scipy.stats import beta  # slow to import, and for audits alone

    first, second = (np.asarray(number, dtype=np.float64) for number in hits)
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(first > 0, beta.ppf(failure, first, draws[0] - first + 1), 0.0)
        most = np.where(
            second < draws[1], beta.ppf(1 - failure, second + 1, draws[1] - second), 1.0
        )
        logs = np.log(np.maximum(least - delta, 0.0)) - np.log(most)
    return float(logs) if logs.ndim == 0 else logs
