"""Rounding of floating-point numbers towards privacy: the constants every certified bound uses.

One rounded operation returns its exact result times 1 + δ with |δ| ≤ u, the unit roundoff. A chain
of k of them stays within a factor (1 + u)^k ≤ 1 + 2·k·u for every k that can occur, so a bound that
multiplies by 1 + 2·k·u covers k operations, the multiplication itself included in k.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", float, npt.NDArray[np.float64])

UNIT_ROUNDOFF = 2.0**-53
"""u: half the distance from 1 to the next float."""

ROUND_UP = 1 + 8 * UNIT_ROUNDOFF
"""Covers up to four rounded operations on numbers that are not negative, this product included."""

ROUND_DOWN = 1 - 8 * UNIT_ROUNDOFF
"""The same for a lower end."""


def rounded_up(value: _Number, operations: int) -> _Number:
    """Return an upper bound on a number that is not negative, after a number of rounded operations.

    Examples
    --------
    >>> rounded_up(0.1 + 0.7, 1) >= 0.8 > 0.1 + 0.7
    True
    """
    return value * (1 + 2 * (operations + 1) * UNIT_ROUNDOFF)


def sum_rounded_up(first: float, second: float) -> float:
    """Return the sum of two floats, or the next float above where it was rounded down.

    Examples
    --------
    >>> sum_rounded_up(1.0, 2.0)
    3.0
    >>> sum_rounded_up(1.0, 1e-30) > 1.0
    True
    """
    total = first + second
    exact = Fraction(first) + Fraction(second)
    return total if Fraction(total) >= exact else math.nextafter(total, math.inf)


def lengths(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the L2 length of every row, whatever its unit: no square overflows or vanishes.

    All are rounded as if the longest had a length of about 1.

    Examples
    --------
    >>> [float(lengths(np.array([3.0, 4.0]) * unit) / unit) for unit in (1.0, 2.0**-1000, 2.0**800)]
    [5.0, 5.0, 5.0]
    """
    exponent = np.frexp(np.abs(rows).max(initial=0.0))[1]
    near_one = np.ldexp(rows, -exponent)
    return np.asarray(np.ldexp(np.sqrt((near_one * near_one).sum(axis=-1)), exponent))
