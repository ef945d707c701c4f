"""A Gaussian series learned from a long frame: how much a value depends on the one before."""

from __future__ import annotations

from typing import Any

from pdp_calibrate.core.model import checked_bounds
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.alike import GaussianSeries
from pdp_calibrate.frames.columns import SERIES, kind_of, refuse_discrete
from pdp_calibrate.frames.series import OrderedSeries, neighbour_products, ordered_series
from pdp_calibrate.learning.base import (
    FrameEstimator,
    Source,
    checked_budget,
    checked_longest,
    checked_source,
    one_or_blocks,
)
from pdp_calibrate.learning.gaussianity import warn_of_series
from pdp_calibrate.learning.private_groups import private_neighbours
from pdp_calibrate.learning.private_sums import numbers_of, units_of


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
            f"in column {value} each value fixes the next one: no noise can hide one of them."
        )
    return correlation, found.variance


class GaussianSeriesEstimator(FrameEstimator):
    """Learn a stationary Gaussian series, or many independent ones, from a long frame.

    Parameters
    ----------
    value
        The column of values: numbers, jointly Gaussian. Booleans and text are refused, and rows
        that are plainly not Gaussian warned of (with `epsilon` rows are not tested).
    by
        The column that tells series apart; None if there is one.
    order_by
        The column of times: no two equal in a series and, if numbers or dates, without gaps.
        None takes the rows as they come, which needs a frame in memory.
    time_format
        How times are written where they are text, as in `datetime.strptime`: ``%d/%m/%Y``. By
        default text must be ISO 8601, every row in one form; other text is refused, which tells
        that much about the column.
    bounds
        The public range of the values.
    epsilon
        Learn under ε-differential privacy for substituting one whole series, which needs `by` and
        `max_length`; how many series there are, and their lengths, are public. Values are clipped
        to their bounds, and noise that grows with `max_length` goes on sums over neighbours.
    max_length
        The public limit on what one series contributes with `epsilon`: only its first so many
        values are counted. The model keeps the lengths as they are.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not.

    Attributes
    ----------
    correlation_ : float
        The estimated correlation of neighbours. No account is taken of its error.
    model_ : GaussianSeries or Blocks
        The learned model; `Blocks` with counts where there are several series.

    Examples
    --------
    >>> import pandas as pd
    >>> loads = pd.DataFrame({"hour": range(6), "load": [1.0, 2.0, 2.5, 2.0, 1.0, 0.5]})
    >>> GaussianSeriesEstimator(value="load", order_by="hour", bounds=(0, 5)).fit(loads).model_
    GaussianSeries(6 tuples, private)
    """

    def __init__(
        self,
        *,
        value: str = "load",
        by: str | None = None,
        order_by: str | None = None,
        time_format: str | None = None,
        bounds: tuple[float, float] | None = None,
        epsilon: float | None = None,
        max_length: int | None = None,
        source: Source = "private",
    ) -> None:
        self.value = value
        self.by = by
        self.order_by = order_by
        self.time_format = time_format
        self.bounds = bounds
        self.epsilon = epsilon
        self.max_length = max_length
        self.source = source

    def fit(self, frame: Any, y: None = None) -> GaussianSeriesEstimator:
        """Learn from a row per point in time."""
        del y
        checked_source(self.source)
        kind = kind_of(frame, self.value)
        if self.bounds is None:
            remedy = "" if kind.is_float() else " For states use MarkovChainEstimator instead."
            raise ModelError(
                f"a Gaussian series needs the public range of its values: bounds=.{remedy}"
            )
        refuse_discrete(self.value, kind, instead=SERIES)
        bounds = checked_bounds(self.bounds, 1)[0]
        epsilon = checked_budget(self.epsilon)
        longest = checked_longest(epsilon, by=self.by, max_length=self.max_length)
        times = {"order_by": self.order_by, "time_format": self.time_format}
        series = ordered_series(frame, self.value, by=self.by, **times)
        if epsilon is None or longest is None:
            phi, variance = neighbour_correlation(series, self.value)
            warn_of_series(frame, self.value, correlation=phi, stacklevel=1)
        else:
            phi, variance = private_neighbours(
                numbers_of(frame, [self.value])[1][:, 0],
                units_of(frame, by=self.by, **times),
                bounds=bounds,
                longest=longest,
                epsilon=epsilon,
            )
        lengths = sorted(series.lengths.items())
        self.correlation_ = phi
        kinds = [
            GaussianSeries(
                length=length,
                correlation=phi,
                bounds=bounds,
                variance=variance,
                provenance=self._provenance,
            )
            for length, _ in lengths
        ]
        counts = [count for _, count in lengths]
        self.model_ = one_or_blocks(kinds, counts, epsilon, alone=counts == [1])
        return self
