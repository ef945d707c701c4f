"""A Markov chain learned from series in a long frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.series import (
    first_values,
    ordered_series,
    runs,
    series_lengths,
    values_in,
)
from pdp_calibrate.models import Blocks, MarkovChain
from pdp_calibrate.models.base import Domain, FloatArray, checked_domain


@dataclass(frozen=True, kw_only=True)
class FitTest:
    """A test of a model's assumption: a small p-value speaks against the model."""

    statistic: float
    """The test statistic, near `degrees` if the assumption holds."""
    degrees: int
    """Its degrees of freedom; 0 if the data cannot tell."""

    @property
    def p_value(self) -> float:
        """Probability of a statistic at least as large, if the assumption holds (asymptotic)."""
        return float(stats.chi2.sf(self.statistic, self.degrees)) if self.degrees else 1.0


def smoothed_transitions(
    pairs: Mapping[tuple[Hashable, ...], int], states: Domain, *, smoothing: float
) -> FloatArray:
    """Turn counts of neighbouring states into transition laws (count + smoothing) / total.

    A transition never seen is rare, not impossible, so smoothing must be positive.
    """
    if not 0 < smoothing < float("inf"):
        raise ModelError(f"smoothing must be positive and finite, got {smoothing}.")
    counts = _counted(pairs, states, 2) + smoothing
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


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


class MarkovChainEstimator(BaseEstimator):
    """Learn a Markov chain from one series, or from many independent ones.

    Parameters
    ----------
    value
        The column that holds the state.
    by
        The column that tells series apart; None for a single one.
    order_by
        The column of times; by default rows count in the order they stand, which needs a frame in
        memory. Times may come unsorted, but neither twice in a series nor with gaps.
    states
        The possible states. By default those that occur, which are then treated as public.
    initial
        ``stationary``, or ``estimated`` from the first states of many series.
    smoothing
        Added to every count, so that no unseen transition counts as impossible.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not.

    Attributes
    ----------
    model_ : MarkovChain or Blocks
        The chain; with series of several lengths, a block for each length with its count.
    order_test_ : FitTest
        Whether one step of memory suffices; a small p-value speaks for more.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"day": range(8), "ill": [0, 0, 1, 1, 1, 0, 0, 0]})
    >>> MarkovChainEstimator(value="ill", order_by="day", source="public").fit(frame).model_
    MarkovChain(2 states, length 8, public)
    """

    def __init__(
        self,
        *,
        value: str = "state",
        by: str | None = None,
        order_by: str | None = None,
        states: Sequence[Hashable] | None = None,
        initial: Literal["stationary", "estimated"] = "stationary",
        smoothing: float = 0.5,
        source: Literal["private", "public"] = "private",
    ) -> None:
        self.value = value
        self.by = by
        self.order_by = order_by
        self.states = states
        self.initial = initial
        self.smoothing = smoothing
        self.source = source

    def fit(self, frame: Any, y: None = None) -> MarkovChainEstimator:
        """Learn from all series of a long frame."""
        del y
        checked_source(self.source)
        if self.initial not in ("stationary", "estimated"):
            raise ModelError(f"initial must be 'stationary' or 'estimated', got {self.initial!r}.")
        series = ordered_series(frame, self.value, by=self.by, order_by=self.order_by)
        values = values_in(series)
        states = observed(values)
        if self.states is not None:
            states = checked_domain(self.states, "the states")
            if not set(values) <= set(states):
                raise ModelError(f"column {self.value} holds a value outside its stated states.")
        transition = smoothed_transitions(runs(series, 2), states, smoothing=self.smoothing)
        initial = None
        if self.initial == "estimated":
            starts = _counted({(k,): n for k, n in first_values(series).items()}, states, 1)
            initial = (starts + self.smoothing) / (starts + self.smoothing).sum()
        lengths = sorted(series_lengths(series).items())
        chains = [
            MarkovChain(
                transition=transition,
                length=length,
                states=states,
                initial=initial,
                provenance=self.source,
            )
            for length, _ in lengths
        ]
        self.order_test_ = order_test(runs(series, 3), states)
        self.model_: MarkovChain | Blocks = chains[0]
        if len(chains) > 1:
            self.model_ = Blocks(models=chains, counts=[count for _, count in lengths])
        return self


def checked_source(source: str) -> None:
    """Raise unless the source is private or public."""
    if source not in ("private", "public"):
        raise ModelError(f"source must be 'private' or 'public', got {source!r}.")


def observed(values: Iterable[Hashable]) -> Domain:
    """Sort the distinct values; values that do not compare are sorted as text."""
    distinct = set(values)
    try:
        return tuple(sorted(distinct))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(distinct, key=repr))


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
