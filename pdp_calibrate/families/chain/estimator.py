"""A Markov chain learned from series in a long frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pdp_calibrate.arrays import FloatArray, checked_positive
from pdp_calibrate.core.model import Domain, Model, checked_domain
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.frames.series import first_values, runs, values_in
from pdp_calibrate.learning.base import (
    CONFIDENCE,
    FitTest,
    SeriesEstimator,
    Source,
    confidence_for,
)
from pdp_calibrate.learning.private_groups import private_transitions
from pdp_calibrate.learning.private_sums import states_of
from pdp_calibrate.learning.smoothing import observed, smoothed_law


def smoothed_transitions(counts: FloatArray, *, smoothing: float) -> FloatArray:
    """Turn counts of neighbouring states into transition laws (count + smoothing) / total.

    A transition never seen is rare, not impossible, so smoothing must be positive.
    """
    checked_positive(smoothing, "smoothing")
    smoothed = counts + smoothing
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def order_test(triples: Mapping[tuple[Hashable, ...], int], states: Domain) -> FitTest:
    """Test whether the state before the last adds to the prediction of the next one.

    Likelihood-ratio test of order 1 against order 2: G = 2 Σ n_abc·log(n_abc·n_·b· / (n_ab·n_·bc)).
    """
    counts = _counted(triples, states, 3)
    before, after = counts.sum(axis=2), counts.sum(axis=0)  # n_ab·, n_·bc
    middle = counts.sum(axis=(0, 2))
    expected = before[:, :, np.newaxis] * after / np.maximum(middle, 1)[np.newaxis, :, np.newaxis]
    seen = counts > 0
    statistic = 2 * float(np.sum(counts[seen] * np.log(counts[seen] / expected[seen])))
    free = ((before > 0).sum(axis=0) - 1) * ((after > 0).sum(axis=1) - 1)
    return FitTest(statistic=max(0.0, statistic), degrees=int(free[middle > 0].sum()))


@dataclass(kw_only=True, eq=False, repr=False)
class MarkovChainEstimator(SeriesEstimator):
    """Learn a Markov chain from one series, or from many independent ones.

    Parameters
    ----------
    value
        The column that holds the state.
    groups
        The column that names the series; None for a single one.
    order_by
        The column of times; by default rows count in the order they stand, which needs a frame in
        memory. Times may come unsorted, but neither twice in a series nor with gaps.
    time_format
        How times are written where they are text, as in `datetime.strptime`: ``%d/%m/%Y``. By
        default text must be ISO 8601, every row in one form; other text is refused, which reveals
        that much about the column.
    states
        The possible states. By default those that occur, which are then treated as public.
    initial
        ``stationary``, or ``estimated`` from the first states of many series.
    smoothing
        Added to every count, so that no unseen transition counts as impossible.
    confidence
        No band is known for a chain yet: an omitted confidence gives one law, marked as open, and
        a number raises.
    epsilon
        Learn under ε-differential privacy for substituting one whole series, which needs `groups`,
        `states` and `max_length`; how many series there are, and their lengths, are public.
        Discrete Laplace noise of scale 2(max_length − 1)/ε on every count of transitions, and
        2/ε more if the start is estimated.
    max_length
        The public limit on what one series contributes with `epsilon`: of each
        series the first `max_length` states are counted. The model keeps the lengths as they are.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not.
    by
        Another name for `groups`.

    Attributes
    ----------
    model_ : MarkovChain or Blocks
        The chain; with several series, a block for each length with its count.
    order_test_ : FitTest or None
        Whether one step of memory suffices; a small p-value suggests more. None with `epsilon`,
        because it would read the rows again.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"day": range(8), "ill": [0, 0, 1, 1, 1, 0, 0, 0]})
    >>> MarkovChainEstimator(value="ill", order_by="day", source="public").fit(frame).model_
    MarkovChain(2 states, length 8, public)
    """

    value: str = "state"
    groups: str | None = None
    order_by: str | None = None
    time_format: str | None = None
    states: Sequence[Hashable] | None = None
    initial: Literal["stationary", "estimated"] = "stationary"
    smoothing: float = 0.5
    confidence: float | None = CONFIDENCE
    epsilon: float | None = None
    max_length: int | None = None
    source: Source = "private"
    by: str | None = None

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Learn from all series of a long frame."""
        if self.initial not in ("stationary", "estimated"):
            raise ModelError(f"initial must be 'stationary' or 'estimated', got {self.initial!r}.")
        confidence_for(self.confidence, epsilon=epsilon, no_band="no band is known for a chain.")
        longest = self._longest(epsilon)
        if epsilon is not None and self.states is None:
            raise ModelError(
                "with epsilon the public states= are needed; the states that occur are secret."
            )
        series = self._series(frame)
        values = values_in(series)
        states = observed(values)
        if self.states is not None:
            states = checked_domain(self.states, "the states")
            if not set(values) <= set(states):
                raise ModelError(f"column {self.value} holds a value outside its stated states.")
        starts: FloatArray | None = None
        if longest is None or epsilon is None:
            moves = _counted(runs(series, 2), states, 2)
            if self.initial == "estimated":
                starts = _counted({(k,): n for k, n in first_values(series).items()}, states, 1)
        else:
            moves, starts = private_transitions(
                states_of(frame, self.value, states),
                self._units(frame),
                number=len(states),
                with_starts=self.initial == "estimated",
                longest=longest,
                epsilon=epsilon,
            )
        transition = smoothed_transitions(moves, smoothing=self.smoothing)
        initial = None if starts is None else smoothed_law(starts, self.smoothing)
        self.order_test_ = None if epsilon is not None else order_test(runs(series, 3), states)
        law: dict[str, Any] = {"transition": transition, "states": states, "initial": initial}
        return self._model_along(MarkovChain, series, epsilon, **law)


def _counted(
    counts: Mapping[tuple[Hashable, ...], int] | Counter[tuple[Hashable, ...]],
    states: Domain,
    axes: int,
) -> FloatArray:
    place = {state: index for index, state in enumerate(states)}
    found = np.zeros((len(states),) * axes)
    for run, count in counts.items():
        found[tuple(place[state] for state in run)] += count
    return found
