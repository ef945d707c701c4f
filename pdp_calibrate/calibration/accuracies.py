"""How far the answers of a calibration, or of a release, may be off: each by `core.accuracy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pdp_calibrate.arrays import checked_share
from pdp_calibrate.calibration.release import by_part
from pdp_calibrate.core.accuracy import (
    count_for,
    half_width,
    is_over_secret_count,
    mean_intervals,
)
from pdp_calibrate.core.numbers import ordinary, width
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import PdpError

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease


def half_widths(
    calibration: AnyCalibration, *, alpha: float, count: float | None
) -> tuple[float, ...]:
    """Return how far each answer may be off, except with probability alpha."""
    checked_share(alpha, "alpha", error=PdpError)
    expected = calibration.count if count is None else count_for(calibration.queries, count)
    places = range(len(calibration.queries))
    return tuple(_half_width(calibration, place, alpha, expected) for place in places)


def _half_width(
    calibration: AnyCalibration, place: int, alpha: float, count: float | None
) -> float:
    return half_width(
        calibration.queries[place],
        calibration.contributions[place],
        calibration.scales[place],
        alpha=alpha,
        noise=calibration.noise,
        count=count,
    )


def known_half_widths(calibration: AnyCalibration, *, alpha: float) -> tuple[float | None, ...]:
    """Return the same, with None where it depends on a number of rows that nobody said."""
    return tuple(
        None
        if calibration.count is None and is_over_secret_count(query)
        else _half_width(calibration, place, alpha, calibration.count)
        for place, query in enumerate(calibration.queries)
    )


def half_widths_in_words(
    calibration: AnyCalibration, *, alpha: float, then: str
) -> tuple[str, ...]:
    """Write how far each answer may be off, as every card, page and command shows it."""
    return tuple(
        _without_count(calibration, place, alpha, then)
        if known is None
        else f"±{width(known)}{then}"
        for place, known in enumerate(known_half_widths(calibration, alpha=alpha))
    )


def _without_count(calibration: AnyCalibration, place: int, alpha: float, then: str) -> str:
    """Say what is known of the accuracy of a mean over a secret number of rows."""
    query, rows = calibration.queries[place].at_a_step, sum(calibration.model.copies)
    if isinstance(query, RowQuery) and query.parts > 1:
        return "known once count= says about how many rows count in the smallest part"
    best = width(_half_width(calibration, place, alpha, rows))
    return (
        f"±{best}{then} if all {ordinary(rows)} rows count, and more if fewer do: count= says about"
        " how many"
    )


def intervals(release: AnyRelease, *, alpha: float) -> tuple[tuple[Any, Any], ...]:
    """Return bounds for each answer that miss it with probability alpha at most."""
    checked_share(alpha, "alpha", error=PdpError)
    calibration = release.calibration
    found: list[tuple[Any, Any]] = []
    for place, (query, value) in enumerate(zip(calibration.queries, release.values, strict=True)):
        if isinstance(query, RowQuery) and query.kind == "mean":
            ends = mean_intervals(
                query,
                release.noisy[place],
                calibration.scales[place],
                alpha=alpha,
                noise=calibration.noise,
            )
            low, high = (by_part(one.tolist(), query) for one in ends)
            found.append((low, high))
            continue
        reach = _half_width(calibration, place, alpha, None)
        half = int(reach) if calibration.contributions[place].is_integer else reach
        found.append((value - half, value + half))
    return tuple(found)


def half_widths_of_release(release: AnyRelease, *, alpha: float) -> tuple[float, ...]:
    """Return how far each answer may be off; of a quotient, as its own noisy count says."""
    calibration = release.calibration
    return tuple(
        float(np.max(reach))
        if is_over_secret_count(query)
        else _half_width(calibration, place, alpha, None)
        for place, (query, reach) in enumerate(
            zip(calibration.queries, reaches(release, alpha=alpha), strict=True)
        )
    )


def reaches(release: AnyRelease, *, alpha: float) -> tuple[Any, ...]:
    """Return how far each number of each answer may be off, in the shape of the answer."""
    return tuple(
        np.maximum(value - low, high - value) if is_over_secret_count(query) else (high - low) / 2
        for query, value, (low, high) in zip(
            release.calibration.queries,
            release.values,
            release.intervals(alpha=alpha),
            strict=True,
        )
    )
