"""A Gaussian series learned from a long frame: how much a value depends on the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.alike import GaussianSeries
from pdp_calibrate.frames.columns import SERIES
from pdp_calibrate.frames.series import OrderedSeries, neighbour_products
from pdp_calibrate.learning.base import CONFIDENCE, SeriesEstimator, Source
from pdp_calibrate.learning.gaussianity import warn_of_series
from pdp_calibrate.learning.private_groups import private_neighbours
from pdp_calibrate.learning.private_sums import numbers_of


def neighbour_correlation(series: OrderedSeries, value: str) -> tuple[float, float]:
    """Estimate the correlation of consecutive values, and their variance, over all series.

    Values are centred at their overall mean; Σ x_t·x_{t+1} over consecutive pairs is divided by the
    average of Σ x_t² and Σ x_{t+1}² over the same pairs, which keeps the estimate within ±1.
    """
    found = neighbour_products(series)
    if found.pairs < 2:
        raise ModelError("a correlation of neighbours needs at least two pairs of neighbours.")
    if not found.spread > 0:
        raise ModelError(f"column {value} does not vary.")
    correlation = found.product / found.spread
    if not abs(correlation) < 1 - 1e-12:
        raise ModelError(
            f"in column {value} each value determines the next: no noise can hide one of them."
        )
    return correlation, found.variance


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianSeriesEstimator(SeriesEstimator):
    """Learn a stationary Gaussian series, or many independent ones, from a long frame.

    Parameters
    ----------
    value
        The column of values: numbers, jointly Gaussian. Booleans and text are refused, and a
        warning says when rows are plainly not Gaussian (with `epsilon` rows are not tested).
    groups
        The column that names the series; None if there is one.
    order_by
        The column of times: no two equal in a series and, if numbers or dates, without gaps.
        None takes the rows as they come, which needs a frame in memory.
    bounds
        The public range of the values.
    epsilon
        Learn under ε-differential privacy for substituting one whole series, which needs `groups`
        and `max_length`; how many series there are, and their lengths, are public. Values are
        clipped to their bounds; noise that grows with `max_length` goes on sums over neighbours.
    time_format, max_length, source, by
        As for `MarkovChainEstimator`.

    Attributes
    ----------
    correlation_ : float
        The estimated correlation of neighbours. Its error is not accounted for.
    model_ : GaussianSeries or Blocks
        The series; with several of them, a block for each length with its count.

    Examples
    --------
    >>> import pandas as pd
    >>> loads = pd.DataFrame({"hour": range(6), "load": [1.0, 2.0, 2.5, 2.0, 1.0, 0.5]})
    >>> GaussianSeriesEstimator(value="load", order_by="hour", bounds=(0, 5)).fit(loads).model_
    GaussianSeries(6 tuples, private)
    """

    value: str = "load"
    groups: str | None = None
    order_by: str | None = None
    time_format: str | None = None
    bounds: tuple[float, float] | None = None
    confidence: float | None = CONFIDENCE
    epsilon: float | None = None
    max_length: int | None = None
    source: Source = "private"
    by: str | None = None

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Learn from a row per point in time."""
        what = "a Gaussian series"
        bounds = self._checked_bounds(frame, self.bounds, what=what, instead=SERIES)
        longest = self._longest(epsilon)
        series = self._series(frame)
        if epsilon is None or longest is None:
            phi, variance = neighbour_correlation(series, self.value)
            warn_of_series(frame, self.value, correlation=phi, stacklevel=2)
        else:
            phi, variance = private_neighbours(
                numbers_of(frame, [self.value])[1][:, 0],
                self._units(frame),
                bounds=bounds,
                longest=longest,
                epsilon=epsilon,
            )
        self.correlation_ = phi
        law: dict[str, Any] = {"correlation": phi, "bounds": bounds, "variance": variance}
        return self._model_along(GaussianSeries, series, epsilon, **law)
