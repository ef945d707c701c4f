"""How far a released answer may be off, in the unit of the answer: the only place that decides it.

The noise of most answers is in their own unit. A mean of rows is made from noisy numbers of another
unit. Over public numbers of rows it is a noisy sum over each of them. Over a secret number it is a
quotient of two noisy numbers, S = m·n + X over N = n + Y: m is the mean, counted from the middle of
the public range in half widths of it, n the number of rows, X and Y are independent noise of one
law. It is moved into [−1, 1], and N < 1 counts as 1.

*After* a release, S − m·N = X − m·Y at the true m, whatever n is, and the law of that is known. So
the m with P(|X − m·Y| ≥ |S − m·N|) ≥ α are a region that holds the true one with probability 1 − α
(Fieller 1954). Its ends are found by bisection: with N above the quantile q(1) of |X − Y|, the
bounds S − m·N ± q(|m|) fall with m, since q rises more slowly than that. With a smaller N nothing
is known but the declared range. An S outside [−N, N] counts as the nearer end, which only adds to
the region.

*Before* a release somebody has to say about how many rows count. For t = m + h < 1 and N ≥ 1 the
quotient exceeds t if X − t·Y > h·n, which has half the probability P(|X − t·Y| > h·n); what N < 1
changes is added up over the quantiles of Y. The half-width is the smallest h that the quotient
exceeds with probability at most α, whatever m is. That is most likely where t is just below 1: for
means elsewhere it covers more than 1 − α.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from pdp_calibrate.arrays import FloatArray, checked_positive
from pdp_calibrate.core import noise as drawn
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.numbers import ordinary
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import PdpError, QueryError

_HALVINGS = 60
_QUANTILES = 64  # of the noise on the count, where that may be below 1
_NEGLIGIBLE = 1e-15
_ENDLESS = 1e9  # times the number of rows: noise of which a mean shows nothing but its range


def is_over_secret_count(query: Query) -> bool:
    """Whether an answer is a mean over a secret number of rows: a quotient of two noisy numbers."""
    asked = query.at_a_step
    return isinstance(asked, RowQuery) and asked.is_ratio


def unit_of_scale(query: Query) -> str:
    """Say in which unit the scale of the noise is: that of what the noise is added to."""
    asked = query.at_a_step
    if not isinstance(asked, RowQuery) or asked.kind != "mean":
        return "units of the answer"
    if not asked.is_ratio:
        return "units of the sum behind the mean"
    half = ordinary(float(asked.half))
    return f"rows of the count, and {half} units of the sum, behind the mean"


def checked_count(count: object) -> float:
    """Return about how many rows are expected to count, or raise."""
    found = checked_positive(count, "count", error=QueryError)
    if found < 1:
        raise QueryError(f"count is about how many rows count: at least 1, got {count!r}.")
    return found


def count_for(queries: Iterable[Query], count: object) -> float | None:
    """Return the count that was said, if any; refuse one that no accuracy depends on."""
    if count is None:
        return None
    if not any(map(is_over_secret_count, queries)):
        raise QueryError(
            "count= is for a mean over a secret number of rows: the accuracy of other answers does"
            f" not depend on it, got {count!r}."
        )
    return checked_count(count)


def half_width(
    query: Query,
    part: Contributions,
    scale: float,
    *,
    alpha: float,
    noise: Noise,
    count: float | None = None,
) -> float:
    """Return the smallest h that the error of an answer exceeds with probability at most alpha.

    Parameters
    ----------
    query
        What is answered. Of several numbers, h is that of the one that may be furthest off; of a
        mean over public numbers of rows, the one over fewest.
    part
        The query, lowered.
    scale
        That of the noise.
    alpha
        The probability.
    noise
        Its law.
    count
        For a mean over a secret number of rows, about how many there are, in the part with fewest.

    Raises
    ------
    QueryError
        For such a mean without a count: whatever the data are.
    """
    width = drawn.half_width(scale, alpha, integer=part.is_integer, noise=noise)
    asked = query.at_a_step
    if not isinstance(asked, RowQuery) or asked.kind != "mean":
        return width
    if not asked.is_ratio:
        return width / min((number for number in asked.sizes or () if number), default=1)
    if count is None:
        raise QueryError(
            "how far a mean over a secret number of rows may be off depends on that number: say"
            " about how many rows are expected to count, with count= (--count)."
        )
    return float(asked.half) * _quotient_error(count, scale, alpha, noise)


def scale_within(
    query: Query,
    part: Contributions,
    wanted: float,
    *,
    alpha: float,
    noise: Noise,
    count: float | None = None,
) -> float:
    """Return the largest scale at which `half_width` is at most what is wanted."""
    rows = count if is_over_secret_count(query) else None

    def is_within(scale: float) -> bool:
        if rows is not None:  # without the search for its half-width
            share = wanted / float(cast("RowQuery", query.at_a_step).half)
            low_counts = _low_counts(rows / scale, 1 / scale, noise)
            return _exceeded(share, rows / scale, 1 / scale, low_counts, noise) <= alpha
        return half_width(query, part, scale, alpha=alpha, noise=noise, count=count) <= wanted

    if rows is not None and is_within(_ENDLESS * rows):
        raise PdpError(
            f"any noise keeps the mean within {wanted}, as it stays in its public range: choose a"
            " smaller half_width."
        )
    low = high = wanted
    while not is_within(low):
        low /= 2
        if low == 0:
            raise PdpError(f"no noise that a float can hold stays within {wanted}.")
    while is_within(high):
        high *= 2
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    while half_width(query, part, low, alpha=alpha, noise=noise, count=count) > wanted:
        low *= 1 - 1e-12  # the last digit of a quotient's half-width
    return low


def mean_intervals(
    query: RowQuery, noisy: Sequence[float], scale: float, *, alpha: float, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of an interval for the mean of every part, from the noisy numbers behind it.

    Each contains the mean without noise with probability at least 1 − alpha, and the noisy one.
    """
    lowest, highest = query.bounds or (0.0, 0.0)
    numbers = np.asarray(noisy, dtype=float)
    if not query.is_ratio:
        width = drawn.half_width(scale, alpha, integer=False, noise=noise)
        sizes = np.asarray(query.sizes or (1,) * query.parts, dtype=float)
        counted = np.maximum(sizes, 1)
        known = sizes > 0
        return (
            np.where(known, (numbers - width) / counted, lowest),
            np.where(known, (numbers + width) / counted, highest),
        )
    sums, counts = numbers[: query.parts] / scale, numbers[query.parts :] / scale
    middle, half = float(query.middle), float(query.half)
    low, high = (
        np.clip(
            middle + half * side * _upper_ends(side * sums, counts, alpha, noise), lowest, highest
        )
        for side in (-1.0, 1.0)
    )
    values = np.array(query.values(noisy))  # outside only where N < 1 counted as 1
    return np.minimum(low, values), np.maximum(high, values)


def _upper_ends(sums: FloatArray, counts: FloatArray, alpha: float, noise: Noise) -> FloatArray:
    """Return the upper end of the region of each quotient; of sums and counts in units of noise."""
    tail = _TAILS[noise]
    sums = np.clip(sums, -np.abs(counts), np.abs(counts))
    # N above q(1): more than q(1) is as likely as alpha at most, and less noise is likelier.
    usable = (counts > 0) & (tail(np.maximum(counts, 0.0), np.ones_like(counts)) < alpha)
    counts = np.where(usable, counts, 1.0)
    low, high = np.where(usable, sums / counts, 1.0), np.ones_like(sums)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = tail(np.abs(sums - middle * counts), np.abs(middle)) >= alpha
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(usable, high, 1.0)


def _quotient_error(count: float, scale: float, alpha: float, noise: Noise) -> float:
    """Return the half-width of a mean over about `count` rows, in half widths of its range."""
    rows, one = count / scale, 1 / scale
    nodes = _low_counts(rows, one, noise)
    within = 2.0
    while _exceeded(within / 2, rows, one, nodes, noise) <= alpha:
        within /= 2
    low, high = within / 2, within
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        exceeds = _exceeded(middle, rows, one, nodes, noise) > alpha
        low, high = (middle, high) if exceeds else (low, middle)
    return high


def _low_counts(rows: float, one: float, noise: Noise) -> tuple[float, FloatArray, FloatArray]:
    """Return the probability that N < 1, and the noise on the count then: quantiles and shares."""
    likely = _below(one - rows, noise)
    if likely <= _NEGLIGIBLE:
        return 0.0, np.zeros(0), np.zeros(0)
    places, shares = np.polynomial.legendre.leggauss(_QUANTILES)
    return likely, _quantile(likely * (places + 1) / 2, noise), shares / 2


def _exceeded(
    within: float,
    rows: float,
    one: float,
    low_counts: tuple[float, FloatArray, FloatArray],
    noise: Noise,
) -> float:
    """Return the probability that the error exceeds `within`, for the mean where it is largest."""
    if within >= 2:
        return 0.0  # both are in [−1, 1]
    means = np.append(np.linspace(0.0, 1.0, 9), abs(1 - within))
    upper, lower = (
        np.where(
            signed + within <= 1 + _NEGLIGIBLE,
            _above(signed, within, rows, one, low_counts, noise),
            0.0,
        )
        for signed in (means, -means)
    )
    return float((upper + lower).max())


def _above(
    means: FloatArray,
    within: float,
    rows: float,
    one: float,
    low_counts: tuple[float, FloatArray, FloatArray],
    noise: Noise,
) -> FloatArray:
    """Return the probability that the quotient exceeds the mean by more than `within`."""
    tail, ends = _TAILS[noise], np.minimum(means + within, 1.0)
    found = tail(np.full_like(means, within * rows), np.abs(ends)) / 2
    likely, quantiles, shares = low_counts
    if likely:
        as_one = _beyond(ends * one - means * rows, noise)
        as_it_is = _beyond(within * rows + np.multiply.outer(ends, quantiles), noise) @ shares
        found = found + likely * (as_one - as_it_is)
    return found


def _laplace_tail(reach: FloatArray, share: FloatArray) -> FloatArray:
    """Return P(|X + a·Y| > x) of two Laplace variables, for 0 ≤ a ≤ 1 and x ≥ 0.

    That is (e^−x − a²·e^−x/a)/(1 − a²), and (1 + x/2)·e^−x at a = 1; e^−x taken out, nothing
    cancels.
    """
    a = np.clip(share, 1e-300, 1.0)
    gap = (1 - a) * (1 + a)
    with np.errstate(over="ignore"):
        other = -np.expm1(2 * np.log(a) - reach * (1 - a) / a)
    factor = np.divide(other, gap, out=1 + reach / 2, where=gap > 1e-9)
    return np.asarray(np.exp(-reach) * factor)


def _normal_tail(reach: FloatArray, share: FloatArray) -> FloatArray:
    from scipy.special import ndtr  # slow to import, and rarely needed

    return np.asarray(2 * ndtr(-reach / np.hypot(1.0, share)))


_TAILS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "laplace": _laplace_tail,
    "gaussian": _normal_tail,
}
"""P(|X + a·Y| > x) for two independent variables of each noise, of scale 1."""


def _beyond(values: NDArray[np.float64], noise: Noise) -> FloatArray:
    """Return P(X > x)."""
    halves = _TAILS[noise](np.abs(values), np.zeros_like(values)) / 2
    return np.where(values >= 0, halves, 1 - halves)


def _below(value: float, noise: Noise) -> float:
    """Return P(X < x)."""
    return float(_beyond(np.array([-value]), noise)[0])


def _quantile(shares: FloatArray, noise: Noise) -> FloatArray:
    """Return x with P(X < x) as given."""
    if noise == "gaussian":
        from scipy.special import ndtri

        return np.asarray(ndtri(shares))
    near = np.minimum(shares, 1 - shares)
    return np.asarray(np.copysign(np.log(2 * near), shares - 0.5))
