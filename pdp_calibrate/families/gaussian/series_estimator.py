"""A Gaussian series learned from a long frame: how much a value depends on the one before."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError, ModelFitWarning
from pdp_calibrate.families.gaussian.alike import GaussianSeries
from pdp_calibrate.frames.columns import SERIES
from pdp_calibrate.frames.recoded import within_reach
from pdp_calibrate.frames.series import (
    NeighbourSums,
    OrderedSeries,
    neighbour_sums,
    ordered_values,
)
from pdp_calibrate.learning.base import CONFIDENCE, SeriesEstimator, Source, confidence_for
from pdp_calibrate.learning.gaussianity import UNTESTED, Powers, warn_of_series
from pdp_calibrate.learning.neighbours import Neighbours
from pdp_calibrate.learning.private_sums import brought_into_memory, numbers_of
from pdp_calibrate.learning.signs import (
    AT_AN_END,
    LARGEST,
    SignShares,
    checked_lowest,
    lowest_note,
    sign_shares,
)

_ONE_SERIES = "The mean of the series does not change over time: a single series cannot show it."


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianSeriesEstimator(SeriesEstimator):
    """Learn a stationary Gaussian series, or many independent ones, from a long frame.

    Values are centred by position, among all series that stand at the same positions: a trend that
    they share says nothing about how a value depends on the one before.

    Parameters
    ----------
    value
        The column of values: numbers, jointly Gaussian. Booleans and text are refused. Of public
        rows a warning says when they are plainly not Gaussian, or when series differ in level.
    groups
        The column that names the series; None if there is one.
    order_by
        The column of times: no two equal in a series and, if numbers or dates, without gaps.
        Equal times are one position. None takes the rows as they come, which needs a frame in
        memory; then the first rows of all series of a length are one position, and so on.
    bounds
        The public range of the values.
    confidence
        Make the correlation a range that holds the true one with this probability, over the sample
        and with `epsilon` over the noise too. None gives the estimate, a point; not with `epsilon`.
    lowest
        The smallest correlation that is assumed possible where only an upper limit can be learned:
        of private rows, and of public ones with many values at an end of the range. None assumes
        nothing, which clamped answers pay for.
    epsilon
        Learn under ε-differential privacy for substituting one whole series, which needs `groups`;
        how many series there are, and where they stand, is public. Series are compared in pairs,
        and noise goes on the sum of the shares of steps at which the sign of their difference
        changes, which no series moves by more than 1. Values beyond the bounds count as their ends.
    max_length
        The public limit on what one series contributes to a private fit: its first values. All of
        them by default; the noise does not depend on it.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not. Of private
        rows no value is refused for what it is: one that is missing, not finite or more than a
        million widths of the bounds away counts as their middle, which nothing covers. Who has a
        row at which time is public: times that repeat or leave gaps raise.
    time_format, by
        As for `MarkovChainEstimator`.

    Attributes
    ----------
    correlation_ : float
        The estimated correlation of neighbours.
    model_ : GaussianSeries or Blocks
        The series; with several of them, a block for each length with its count.

    Examples
    --------
    >>> import pandas as pd
    >>> loads = pd.DataFrame({"hour": range(6), "load": [1.0, 2.0, 2.5, 2.0, 1.0, 0.5]})
    >>> estimator = GaussianSeriesEstimator(value="load", order_by="hour", bounds=(0, 5))
    >>> estimator.set_params(source="public", confidence=None).fit(loads).model_
    GaussianSeries(6 tuples, public)
    >>> round(estimator.correlation_, 2)
    0.39
    """

    value: str
    groups: str | None = None
    order_by: str | None = None
    time_format: str | None = None
    bounds: tuple[float, float] | None = None
    confidence: float | None = CONFIDENCE
    lowest: float | None = 0.0
    epsilon: float | None = None
    max_length: int | None = None
    source: Source = "private"
    by: str | None = None

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Learn from a row per point in time."""
        what = "a Gaussian series"
        bounds = self._checked_bounds(frame, self.bounds, what=what, instead=SERIES)
        sure = confidence_for(self.confidence, epsilon=epsilon)
        checked_lowest(self.lowest)
        longest = self._longest_used(epsilon)
        if not self._may_test:
            frame = within_reach(frame, {self.value: bounds})
        series = self._series(frame)
        if self._may_test:
            found = neighbour_sums(series, bounds)
            if found.outside <= AT_AN_END * found.rows:
                return self._by_moments(frame, series, found, bounds, sure)
            warn_of_series(frame, self.value, correlation=0.0, powers=UNTESTED, stacklevel=2)
        elif sure is None:
            found = neighbour_sums(series, bounds)
            return self._by_moments(frame, series, found, bounds, sure)
        return self._by_signs(frame, series, bounds, sure, longest)

    def _by_moments(
        self,
        frame: Any,
        series: OrderedSeries,
        found: NeighbourSums,
        bounds: tuple[float, float],
        sure: float | None,
    ) -> Model:
        """Learn from sums of squares, whose law is known exactly."""
        free = sum(found.panels.values())
        if found.rows < 3:
            raise ModelError("a correlation of neighbours needs at least two pairs of neighbours.")
        if not sum(number * (length - 1) for length, number in found.panels.items()):
            raise ModelError(
                "no two series stand at the same positions, so that a common trend cannot be told"
                " from correlation: give order_by= a column of positions that many series share,"
                " such as the number of the visit."
            )
        exact = Neighbours(
            apart=found.apart,
            together=found.together,
            panels=found.panels,
            one_mean=found.one_mean,
        )
        if self._may_test:
            if not found.squares > 0:
                raise ModelError(f"column {self.value} does not vary.")
            if not min(found.apart, found.together) > 0 or not abs(exact.correlation) < 1 - 1e-12:
                raise ModelError(
                    f"in column {self.value} each value determines the next: no noise can hide one"
                    " of them."
                )
            powers = Powers(
                rows=found.rows, squares=found.squares, cubes=found.cubes, fourths=found.fourths
            )
            warn_of_series(
                frame, self.value, correlation=exact.correlation, powers=powers, stacklevel=3
            )
            _warn_of_levels(found, exact.correlation, self.value)
        phi = exact.correlation if found.apart + found.together > 0 else LARGEST
        self.correlation_ = min(max(phi, -LARGEST), LARGEST)
        share = 1.0 if found.one_mean else free / sum(series.lengths.values())
        variance = found.squares / found.rows / share
        notes = (_ONE_SERIES,) if found.one_mean else ()
        if sure is not None:
            return self._model(series, exact.limits(sure), bounds, None, sure, notes)
        around = exact.limits(CONFIDENCE) if self._may_test else None
        return self._model(series, around, bounds, variance, None, notes)

    def _by_signs(
        self,
        frame: Any,
        series: OrderedSeries,
        bounds: tuple[float, float],
        sure: float | None,
        longest: int | None,
    ) -> Model:
        """Learn an upper limit from signs of differences between series."""
        shares = self._shares(frame, series, bounds, longest)
        self.correlation_ = shares.correlation
        low = -LARGEST if self.lowest is None else self.lowest
        limits = low, max(shares.limit(CONFIDENCE if sure is None else sure), low)
        return self._model(series, limits, bounds, None, sure, (lowest_note(self.lowest),))

    def _model(
        self,
        series: OrderedSeries,
        limits: tuple[float, float] | None,
        bounds: tuple[float, float],
        variance: float | None,
        sure: float | None,
        notes: tuple[str, ...],
    ) -> Model:
        """Return the set between the limits, or a point that knows this set."""

        def between(length: int) -> Model:
            low, high = limits or (0.0, 0.0)
            return GaussianSeries(
                length=length,
                correlation=(low, high),
                bounds=bounds,
                provenance=self._provenance,
            )

        def point(length: int) -> Model:
            return GaussianSeries(
                length=length,
                correlation=self.correlation_,
                bounds=bounds,
                variance=variance if variance and variance > 0 else None,
                provenance=self._provenance,
            )

        coverage = self._coverage(sure, notes=notes)
        if sure is not None:
            return self._model_of(between, series.lengths, self.epsilon, coverage=coverage)
        upper = None if limits is None else between
        return self._model_of(point, series.lengths, self.epsilon, coverage=coverage, upper=upper)

    def _shares(
        self,
        frame: Any,
        series: OrderedSeries,
        bounds: tuple[float, float],
        longest: int | None,
    ) -> SignShares:
        """Compare series in pairs at equal times, or at equal ranks where there are none."""
        if self._unit is None and self._may_test:
            alone = ordered_values(series)
            return SignShares.of_one(np.clip(alone, *bounds))
        if self._unit is None:
            raise ModelError(
                "private rows need groups=, the column that names the series: from one series"
                " alone nothing is learned that covers clipping. confidence=None gives a point."
            )
        if self._may_test:
            frame = brought_into_memory(frame, [self.value, self._unit, self.order_by])
        units = self._units(frame)
        values = np.clip(numbers_of(frame, [self.value])[1][:, 0][units.order], *bounds)
        kept = np.ones(len(values), dtype=np.bool_)
        if longest is not None:
            kept = units.places < longest
        positions = units.positions if series.positioned else units.places
        return sign_shares(
            values[kept],
            units.numbers[kept],
            positions[kept],
            along=True,
            epsilon=self.epsilon,
        )

    def _longest_used(self, epsilon: float | None) -> int | None:
        """Return how much of a series a private fit uses; None for all of it."""
        if epsilon is None or self.max_length is None:
            if epsilon is not None and self._unit is None:
                self._refuse_single()
            return None
        return self._longest(epsilon)


_LEVELS = 0.05  # the least excess of the correlation over four steps that is worth a warning


def _warn_of_levels(found: NeighbourSums, correlation: float, value: str) -> None:
    """Warn where values four steps apart are plainly more alike than neighbours explain.

    In a series with one correlation of neighbours, the value four steps before adds nothing to the
    prediction from the one before; where units differ in level, it does.
    """
    ((now, with_one, with_four), (_, one, between), (_, _, four)) = found.lagged.tolist()
    if found.lags < 20 or min(now, one, four) <= 0:
        return
    free = found.lags - 2
    rest = four - between**2 / one
    if rest <= 1e-9 * four:
        return
    slope = (with_four - with_one * between / one) / rest
    left = now - with_one**2 / one - slope**2 * rest
    excess = with_four / math.sqrt(now * four) - correlation**4
    if left <= 0 or excess < _LEVELS:
        return
    if stdtr(free, -slope / math.sqrt(left / free / rest)) < 1e-3:
        warnings.warn(
            f"series of column {value} differ in level: over four steps they are more alike than"
            f" neighbours explain ({excess + correlation**4:.3g} for {correlation**4:.3g})."
            " Whoever does not know the level of a unit learns more from it than this model says."
            " Learn from series in columns (GaussianEstimator), or state a model with levels.",
            ModelFitWarning,
            stacklevel=6,
        )
