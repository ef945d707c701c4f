"""A closed form that only uses how far the likelihood can vary in all."""

from __future__ import annotations

import numpy as np

from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models.base import FloatArray

_LARGEST = 600.0  # e^600 is far from overflow


def spread_bounds(
    first: FloatArray, second: FloatArray, spread: FloatArray | float, *, additions: int
) -> FloatArray:
    """Bound log max P·g/Q·g over all g ≥ 0 whose logarithm varies by at most `spread`.

    The best such g takes two values, the larger one where P/Q is largest, so one sort finds

        max over A of (1 + (e^D − 1)·P(A)) / (1 + (e^D − 1)·Q(A)).

    Parameters
    ----------
    first, second
        The laws P and Q on common atoms, shape (…, atoms).
    spread
        D for each pair of laws, shape (…) or one for all.
    additions
        Bound on the rounded operations behind each probability.

    Returns
    -------
    FloatArray
        One bound per pair, never above D, rounding included.

    Examples
    --------
    >>> p, q = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    >>> spread_bounds(p, q, np.log(3.0), additions=2).round(6).tolist()
    [0.510826]
    """
    wide = np.broadcast_to(np.asarray(spread, dtype=np.float64), first.shape[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(first > 0, first / second, -1.0)
    order = np.argsort(-ratios, axis=-1, kind="stable")
    hits = np.cumsum(np.take_along_axis(first, order, axis=-1), axis=-1)
    alarms = np.cumsum(np.take_along_axis(second, order, axis=-1), axis=-1)
    factor = np.expm1(np.minimum(wide, _LARGEST))[..., np.newaxis]
    logs = np.log1p(factor * hits) - np.log1p(factor * alarms)
    found = np.maximum(logs.max(axis=-1), 0.0)
    # A likelihood of any shape is bounded by the largest P/Q, so a cut at e^600 loses nothing
    # but the case in which D itself is larger still.
    cut = np.where(wide > _LARGEST, wide - _LARGEST, 0.0)
    roundings = 8 * (first.shape[-1] + additions + 16) * UNIT_ROUNDOFF
    return np.asarray(np.minimum((found + cut) * (1 + roundings) + roundings, wide))
