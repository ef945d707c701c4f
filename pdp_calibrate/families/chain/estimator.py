"""A Markov chain learned from series in a long frame."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from pdp_calibrate.arrays import FloatArray, checked_positive
from pdp_calibrate.core.model import Domain, Model, checked_domain, model_named
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.chain.limits import (
    certain_diameter,
    drowns_in_noise,
    filled,
    likelihood_diameter,
    noisy_diameter,
    series_interval,
    tells_rows_from_noise,
)
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.chain.sampled import SampledChain
from pdp_calibrate.frames.panels import with_absences
from pdp_calibrate.frames.series import OrderedSeries, first_values, runs, values_in
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
    every
        The length of a step, such as ``"1D"`` or 1, for series with gaps of whole steps; with
        `missing`.
    missing
        ``"absent"``: values that are missing, and with `every` steps without a row, are one more
        state of that name, so that who was absent when is protected too. By default they raise.
        Release about ``estimator.filled(frame)``. First and last times of each series are public.
    states
        The possible states. By default those that occur, which are then treated as public.
    initial
        ``stationary``, or ``estimated`` from the first states of many series.
    confidence
        The probability, over the rows and with `epsilon` the noise, with which the scale of a query
        is at least what the true chain needs; 0.95 by default. For two states the model is then
        every chain whose diameter is at most its upper limit (`MixingChain`), for three or more
        every chain that the counts do not rule out (`SampledChain`). None for the law that fits
        best, whose error nothing covers; not with `epsilon`.
    guarantee
        ``asymptotic`` takes likelihood limits, and the exact law of the number of runs for a single
        series of two states. ``exact`` holds at any number of rows: the same law, or what no
        mixture over all laws rules out, which needs more noise and every transition to have been
        seen. Not with `epsilon`.
    smoothing
        Added to every count, so that no unseen transition counts as impossible; for
        ``confidence=None`` only.
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
    model_ : MixingChain, SampledChain, MarkovChain or Blocks
        The chains; with several series, a block for each length with its count.
    order_test_ : FitTest or None
        Whether one step of memory suffices; a small p-value suggests more. None with `epsilon`,
        because it would read the rows again.

    Notes
    -----
    A state that was never left says nothing about what follows it. From public rows that raises;
    from private ones nothing may depend on a row: a value that is missing or outside `states` is
    not counted, and what was never seen leads to the noise of group privacy. Who has a row at which
    time is public: times that repeat or leave gaps raise. With `epsilon` it is the noisy counts
    that decide, and the number of transitions, which is public, whether they are too few for the
    noise.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"day": range(16), "ill": [0, 0, 1, 1, 1, 0, 0, 0] * 2})
    >>> fitted = MarkovChainEstimator(value="ill", order_by="day", source="public").fit(frame)
    >>> fitted.model_, round(fitted.model_.diameter, 2)
    (MixingChain(2 states, length 16, public), 5.95)
    """

    value: str = "state"
    groups: str | None = None
    order_by: str | None = None
    time_format: str | None = None
    every: str | float | None = None
    missing: Literal["absent"] | None = None
    states: Sequence[Hashable] | None = None
    initial: Literal["stationary", "estimated"] = "stationary"
    smoothing: float = 0.5
    confidence: float | None = CONFIDENCE
    guarantee: Literal["asymptotic", "exact"] = "asymptotic"
    epsilon: float | None = None
    max_length: int | None = None
    source: Source = "private"
    by: str | None = None

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Learn from all series of a long frame."""
        if self.initial not in ("stationary", "estimated"):
            raise ModelError(f"initial must be 'stationary' or 'estimated', got {self.initial!r}.")
        if self.guarantee not in ("asymptotic", "exact"):
            raise ModelError(f"guarantee must be 'asymptotic' or 'exact', got {self.guarantee!r}.")
        sure = confidence_for(self.confidence, epsilon=epsilon)
        checked_positive(self.smoothing, "smoothing")
        longest = self._longest(epsilon)
        if epsilon is not None and self.states is None:
            raise ModelError(
                "with epsilon the public states= are needed; the states that occur are secret."
            )
        if epsilon is not None and self.guarantee == "exact":
            raise ModelError("guarantee='exact' holds for rows without noise: leave epsilon out.")
        frame = self._with_absences(frame)
        series = self._series(frame)
        self.order_test_: FitTest | None = None
        if longest is None or epsilon is None:
            found = self._counted(series)
            self.order_test_ = order_test(runs(series, 3), found.states)
        else:
            found = self._private_counts(frame, longest, epsilon)
        if sure is not None:
            coverage = self._coverage(sure, notes=self._notes(found, series))
            make = self._covering(found, sure, series, must_bound=self._must_bound)
            return self._model_of(make, series.lengths, epsilon, coverage=coverage)
        point, upper = self._point(found), None
        if self._may_test:
            upper = self._covering(found, float(CONFIDENCE), series, must_bound=False)
        coverage = self._coverage(None)
        return self._model_of(point, series.lengths, epsilon, coverage=coverage, upper=upper)

    def filled(self, frame: Any) -> Any:
        """Return the frame with a row for every step, "absent" where there was no value.

        What to release about with ``missing="absent"``: times become numbers of steps.
        """
        _ = self.model_
        return self._with_absences(frame)

    def _with_absences(self, frame: Any) -> Any:
        if self.missing not in (None, _ABSENT):
            raise ModelError(f"missing must be {_ABSENT!r} or None, got {self.missing!r}.")
        if self.missing is None:
            if self.every is not None:
                raise ModelError(
                    "every= lets series have gaps, and a chain needs a state there: give"
                    f" missing={_ABSENT!r}."
                )
            return frame
        if self.order_by is None:
            raise ModelError("missing= needs order_by=, the column of times.")
        return with_absences(
            frame,
            self.value,
            groups=self._unit,
            order_by=self.order_by,
            absent=_ABSENT,
            time_format=self.time_format,
            every=self.every,
        )

    def _times(self) -> dict[str, str | None]:
        # Times of filled series are numbers of steps, not text.
        return super()._times() | ({} if self.missing is None else {"time_format": None})

    def _stated(self, states: Sequence[Hashable]) -> Domain:
        """Return the stated states, and that of absence."""
        absent = [_ABSENT] if self.missing and _ABSENT not in states else []
        return checked_domain([*states, *absent], "the states")

    @property
    def _must_bound(self) -> bool:
        """Whether to raise where nothing is bounded: rows are public, or what decides is noisy."""
        return self._may_test or self.epsilon is not None

    def _counted(self, series: OrderedSeries) -> _Counts:
        """Count transitions and starts; values outside the states raise if rows are public."""
        values = values_in(series)
        states = observed(values)
        if self.states is not None:
            states = self._stated(self.states)
            if self._may_test and not set(values) <= set(states):
                raise ModelError(f"column {self.value} holds a value outside its stated states.")
        first = first_values(series)
        starts = _counted({(k,): n for k, n in first.items()}, states, 1)
        return _Counts(moves=_counted(runs(series, 2), states, 2), starts=starts, states=states)

    def _private_counts(self, frame: Any, longest: int, epsilon: float) -> _Counts:
        """Count transitions, and starts if they are learned, under differential privacy."""
        states = self._stated(self.states or ())
        moves, starts, scale = private_transitions(
            states_of(frame, self.value, states),
            self._units(frame),
            number=len(states),
            with_starts=self.initial == "estimated",
            longest=longest,
            epsilon=epsilon,
        )
        return _Counts(moves=moves, starts=starts, states=states, noise_scale=scale)

    def _covering(
        self, found: _Counts, confidence: float, series: OrderedSeries, *, must_bound: bool
    ) -> Callable[[int], Model]:
        """Return the set of a length that covers the error of the counts."""
        number, exact = len(found.states), self.guarantee == "exact"
        if max(series.lengths) == 1 or number == 1:  # no neighbours to depend on
            return self._mixing(found.states, 0.0)
        if found.noise_scale:
            kept = self.max_length or max(series.lengths)
            steps = sum(n * (min(size, kept) - 1) for size, n in series.lengths.items())
            if drowns_in_noise(steps, number, found.noise_scale):
                raise ModelError(
                    f"{steps} transitions between {number} states are too few for noise of scale"
                    f" {found.noise_scale:.4g} on each count: what is learned would be noise. More"
                    " series, a larger epsilon or a smaller max_length help."
                )
            is_bounded = tells_rows_from_noise(found.moves, found.noise_scale)
        else:
            is_bounded = bool(np.all(found.moves.sum(axis=1) > 0))
        if must_bound and not is_bounded:
            raise ModelError(_NEVER_LEFT)
        if number > 2 and not exact:
            return self._sampled(found, confidence)
        diameter = math.inf
        if found.noise_scale:
            diameter = noisy_diameter(found.moves, found.noise_scale, confidence)
        elif is_bounded:
            diameter = self._diameter(found, confidence, length=max(series.lengths), exact=exact)
        if must_bound and diameter == math.inf:
            raise ModelError(_NOT_BOUNDED)
        return self._mixing(found.states, diameter)

    def _diameter(self, found: _Counts, confidence: float, *, length: int, exact: bool) -> float:
        """Return the upper limit of the diameter of a step; `length` is that of the longest."""
        diameter = math.inf
        # A state that was not counted breaks a series into several.
        is_single = found.starts is not None and found.starts.sum() == 1
        is_single = is_single and found.moves.sum() + 1 == length
        if len(found.states) == 2 and found.starts is not None and is_single:
            low, high = series_interval(found.moves, int(found.starts[1]), confidence)
            diameter = max(high, -low)
        elif exact:
            diameter = certain_diameter(found.moves, confidence)
        if diameter == math.inf and not exact:
            diameter = likelihood_diameter(filled(found.moves), confidence)
        return diameter

    def _mixing(self, states: Domain, diameter: float) -> Callable[[int], Model]:
        make: Any = model_named("MixingChain")

        def of_length(length: int) -> Model:
            mixing: Model = make(
                length=length,
                states=states,
                diameter=min(diameter, _NOTHING_FORGOTTEN),
                provenance=self._provenance,
            )
            return mixing

        return of_length

    def _sampled(self, found: _Counts, confidence: float) -> Callable[[int], Model]:
        def of_length(length: int) -> Model:
            return SampledChain(
                counts=found.moves,
                length=length,
                states=found.states,
                starts=found.starts if self.initial == "estimated" else None,
                confidence=confidence,
                noise_scale=found.noise_scale,
                provenance=self._provenance,
            )

        return of_length

    def _point(self, found: _Counts) -> Callable[[int], Model]:
        """Return the smoothed chain of a length."""
        transition = smoothed_transitions(found.moves, smoothing=self.smoothing)
        initial = None
        if self.initial == "estimated" and found.starts is not None:
            initial = smoothed_law(found.starts, self.smoothing)

        def of_length(length: int) -> Model:
            return MarkovChain(
                transition=transition,
                length=length,
                states=found.states,
                initial=initial,
                provenance=self._provenance,
            )

        return of_length

    def _notes(self, found: _Counts, series: OrderedSeries) -> tuple[str, ...]:
        """Say what the limit assumes; from public facts only."""
        assumed = "The series are assumed to be independent draws of one Markov chain."
        if self.guarantee == "exact":
            return (assumed,)
        single = sum(series.lengths.values()) == 1 and len(found.states) == 2
        kind = "exact where the series bounds it, and otherwise a" if single else "a"
        return (assumed, f"The limit is {kind} likelihood limit, which holds asymptotically.")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counts:
    """What was counted along the series."""

    moves: FloatArray
    """How often each state follows each."""
    starts: FloatArray | None
    """How many series begin in each state; None if that was not counted."""
    states: Domain
    """The states, in the order of rows and columns."""
    noise_scale: float = 0.0
    """The scale of the noise on each count."""


_ABSENT: Final = "absent"


_NOTHING_FORGOTTEN = 1400.0  # a diameter at which a step passes everything on, in floats


_WAYS_OUT = (
    " Merge rare states; leave the dependence open (pdp.Unknown, the noise of group privacy); or"
    " state the chain (pdp.MarkovChain)."
)


_NEVER_LEFT = (
    "some state is never followed by another in these rows, or too rarely to be seen in the noise,"
    " which says nothing about what follows it." + _WAYS_OUT
)


_NOT_BOUNDED = (
    "these rows do not bound how strongly neighbours depend on each other with guarantee='exact':"
    " some transition was never seen, or the series is too short." + _WAYS_OUT
)


def _counted(
    counts: Mapping[tuple[Hashable, ...], int] | Counter[tuple[Hashable, ...]],
    states: Domain,
    axes: int,
) -> FloatArray:
    """Count runs of states; runs that hold any other value are left out."""
    place = {state: index for index, state in enumerate(states)}
    found = np.zeros((len(states),) * axes)
    for run, count in counts.items():
        if all(state in place for state in run):
            found[tuple(place[state] for state in run)] += count
    return found
