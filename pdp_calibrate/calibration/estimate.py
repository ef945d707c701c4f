"""From noisy answers about the steps of a stream to better estimates."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from pdp_calibrate.arrays import FloatArray, checked_positive, checked_share
from pdp_calibrate.core.noise import variance_of
from pdp_calibrate.errors import ModelError, PdpError, QueryError, UnsupportedQueryError
from pdp_calibrate.families.stream.search import Correlated
from pdp_calibrate.families.stream.smoothing import (
    Smoothed,
    count_kernel,
    series_smoother,
    smooth_chain,
)

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyRelease

_MOST_RECORDS = 400  # whose number is smoothed as a chain of its own


def estimated(
    release: AnyRelease,
    others: Iterable[AnyRelease],
    *,
    alpha: float,
    variance: float | None,
) -> pd.DataFrame:
    """Smooth a release together with others about the same stream; see `Release.estimate`."""
    found = sorted([release, *others], key=_number)
    _check_alike(found)
    share = checked_share(alpha, "alpha", error=PdpError)
    numbers = [_number(one) for one in found]
    if len(set(numbers)) < len(numbers):
        raise PdpError("estimate takes one release about each step.")
    gaps = [later - earlier for earlier, later in itertools.pairwise(numbers)]
    first = release.calibration
    smooth = _smooth_series if first.model.is_continuous else _smooth_counts
    smoothed = smooth(found, gaps, share, variance)
    steps = [one.moment.step for one in found if one.moment is not None]
    columns = {"value": smoothed.values, "low": smoothed.low, "high": smoothed.high}
    return pd.DataFrame(columns, index=pd.Index(steps, name="step"))


def _number(release: AnyRelease) -> int:
    """Return when a release was made, as a number of steps."""
    if release.moment is None:
        raise UnsupportedQueryError(
            "estimate smooths answers about the steps of a model without an end (length=None)."
        )
    return release.moment.number


def _check_alike(releases: list[AnyRelease]) -> None:
    first = releases[0]
    for one in releases:
        cal = one.calibration
        if cal.model != first.calibration.model or len(cal.queries) != 1:
            raise PdpError("estimate takes releases of one query about one model.")
        if cal.queries[0].at_a_step != first.calibration.queries[0].at_a_step:
            raise PdpError("estimate takes releases of one query about one model.")
        if cal.noise != first.calibration.noise or cal.rows != first.calibration.rows:
            raise PdpError("estimate takes releases of one kind of noise about as many records.")
        if _records(one) != _records(first):
            raise PdpError("estimate takes releases about as many records each.")
        if cal.contributions[0].coordinates != 1 or cal.contributions[0].table is not None:
            raise QueryError("estimate smooths single numbers: sums, means and counts.")


def _records(release: AnyRelease) -> int:
    """Return how many people the answer is about: the number of rows is public."""
    return 1 if release.sizes is None else sum(number for _, number in release.sizes)


def _noise_variances(releases: list[AnyRelease]) -> FloatArray:
    return np.array(
        [
            variance_of(
                one.calibration.noise,
                one.calibration.scales[0],
                integer=one.calibration.contributions[0].is_integer,
            )
            for one in releases
        ]
    )


def _smooth_series(
    releases: list[AnyRelease], gaps: list[int], alpha: float, variance: float | None
) -> Smoothed:
    first = releases[0].calibration
    series = cast("Correlated", first.model)
    stated = series.variance if variance is None else variance
    if stated is None:
        raise ModelError(
            "smoothing a Gaussian series needs the variance of a record: give variance=, or state"
            " it in the model."
        )
    low, high = series.ends
    if low < high:
        raise ModelError(
            f"smoothing needs one correlation of neighbours, got the range {(low, high)}."
        )
    weights = first.contributions[0].weights
    weight = 0.0 if weights is None else float(weights[0][0])
    record = checked_positive(stated, "variance", error=PdpError)
    smoother = series_smoother(
        gaps,
        correlation=low,
        variance=weight**2 * _records(releases[0]) * record,
        noise=_noise_variances(releases),
        laplace=first.noise == "laplace",
        alpha=alpha,
    )
    return Smoothed.by(smoother, np.array([float(one.value) for one in releases]))


def _smooth_counts(
    releases: list[AnyRelease], gaps: list[int], alpha: float, variance: float | None
) -> Smoothed:
    if variance is not None:
        raise PdpError("variance= is about Gaussian series.")
    first = releases[0].calibration
    law: Any = getattr(first.model, "kernel", None)
    records = _records(releases[0])
    added = first.contributions[0].values[0][:, 0]
    if law is None or (records > 1 and len(added) != 2) or records > _MOST_RECORDS:
        raise UnsupportedQueryError(
            "counts are smoothed about a MarkovChain, of one record, or of two states and up to"
            f" {_MOST_RECORDS} records."
        )
    stationary = np.full(len(law), 1 / len(law)) @ np.linalg.matrix_power(law, 2**12)
    if len(added) == 2:
        truth = records * added[0] + np.arange(records + 1) * (added[1] - added[0])
        start = count_kernel(float(stationary[1]), float(stationary[1]), records)[0]

        def kernel(gap: int) -> FloatArray:
            several = np.linalg.matrix_power(law, gap)
            return count_kernel(float(several[1, 1]), float(several[0, 1]), records)
    else:
        truth, start = added, stationary

        def kernel(gap: int) -> FloatArray:
            return np.asarray(np.linalg.matrix_power(law, gap))

    answers = np.array([float(one.value) for one in releases])
    scales = np.array([one.calibration.scales[0] for one in releases])
    order = np.argsort(truth, kind="stable")
    apart = np.abs(answers[:, np.newaxis] - truth[order]) / scales[:, np.newaxis]
    return smooth_chain(
        lambda gap: kernel(gap)[np.ix_(order, order)],
        start[order],
        truth[order],
        [min(gap, 2**20) for gap in gaps],
        -apart,
        alpha=alpha,
    )
