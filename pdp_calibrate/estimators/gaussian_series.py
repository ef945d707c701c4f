"""A Gaussian series learned from a long frame: how much a value depends on the one before."""

from __future__ import annotations

from typing import Any, Literal

from sklearn.base import BaseEstimator

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.markov import checked_source
from pdp_calibrate.estimators.series import (
    OrderedSeries,
    neighbour_products,
    ordered_series,
    series_lengths,
)
from pdp_calibrate.models import Blocks, GaussianSeries


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
    return found.product / found.spread, found.variance


class GaussianSeriesEstimator(BaseEstimator):
    """Learn a stationary Gaussian series, or many independent ones, from a long frame.

    Parameters
    ----------
    value
        The column of values.
    by
        The column that tells series apart; None if there is one.
    order_by
        The column of times: no two equal in a series and, if numbers or dates, without gaps.
        None takes the rows as they come, which needs a frame in memory.
    bounds
        The public range of the values.
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
        value: str,
        by: str | None = None,
        order_by: str | None = None,
        bounds: tuple[float, float],
        source: Literal["private", "public"] = "private",
    ) -> None:
        self.value = value
        self.by = by
        self.order_by = order_by
        self.bounds = bounds
        self.source = source

    def fit(self, frame: Any, y: None = None) -> GaussianSeriesEstimator:
        """Learn from a row per point in time."""
        del y
        checked_source(self.source)
        series = ordered_series(frame, self.value, by=self.by, order_by=self.order_by)
        phi, variance = neighbour_correlation(series, self.value)
        sizes = series_lengths(series)
        self.correlation_ = phi
        kinds = [
            GaussianSeries(
                length=size,
                correlation=phi,
                bounds=self.bounds,
                variance=variance,
                provenance=self.source,
            )
            for size in sorted(sizes)
        ]
        counts = [sizes[size] for size in sorted(sizes)]
        self.model_ = kinds[0] if counts == [1] else Blocks(models=kinds, counts=counts)
        return self
