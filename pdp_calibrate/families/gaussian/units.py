"""Leakages of Gaussian models are proportional to 1/λ: one search serves every scale.

Weights enter a leakage as a_j/λ, and everything a search compares (coefficients, bands, caps of
clamped values) is proportional to them. So the search runs once, with weights in units of a power
of two, which changes no digit, and each scale costs one division, rounded outwards.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Bracket
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import PdpError

_LEAST_EXPONENT = -1021  # of normal floats


@dataclass(frozen=True, kw_only=True)
class Units:
    """The unit in which leakages are measured: 2^exponent over the scale."""

    exponent: int
    """The exponent of that power of two."""

    @classmethod
    def of(cls, weights: FloatArray, sizes: FloatArray) -> Units:
        """Choose units in which the largest weight·size is about one and no weight is lost."""
        used = weights != 0
        if not used.any():
            return cls(exponent=0)
        exponents = np.frexp(weights)[1]
        largest = (exponents + np.frexp(sizes)[1])[used].max()
        return cls(exponent=int(min(largest, exponents[used].min() - _LEAST_EXPONENT)))

    def weights(self, weights: FloatArray) -> FloatArray:
        """Return the weights in these units, exactly."""
        return np.asarray(np.ldexp(weights, -self.exponent))

    def threshold(self, leak: float, scale: float) -> float:
        """Return a leakage at this scale in these units, rounded down."""
        if not math.isfinite(leak):
            return leak
        above, below = self._one_at(scale)
        return _rounded(leak, (below, above), -math.inf)

    def at(self, scale: float, found: Bracket) -> Bracket:
        """Convert a bracket in these units to a scale: upper end rounded up, lower end down."""
        if not math.isfinite(found.upper):  # no bound was found
            return found
        one = self._one_at(scale)
        upper = _rounded(found.upper, one, math.inf)
        if math.isinf(upper):
            raise PdpError(
                "the leakage is too large for a floating-point number: it overflows at scale"
                f" {scale:.3g}. Raise the scale."
            )
        lower = _rounded(found.lower, one, -math.inf)
        return dataclasses.replace(found, upper=upper, lower=lower)

    def weight(self, width: float, scale: float) -> float:
        """Return what a unit weight adds at a scale when its value moves by `width`."""
        return float(Fraction(width) * Fraction(*self._one_at(scale)))

    def _one_at(self, scale: float) -> tuple[int, int]:
        """Return 2^exponent over the scale as an exact quotient."""
        above, below = scale.as_integer_ratio()
        return below << max(self.exponent, 0), above << max(-self.exponent, 0)


def _rounded(leak: float, unit: tuple[int, int], towards: float) -> float:
    """Return leak·unit if it is exactly a float, else the next float in this direction."""
    above, below = leak.as_integer_ratio()
    above, below = above * unit[0], below * unit[1]
    try:
        nearest = above / below
    except OverflowError:
        return math.inf if towards > 0 else math.nextafter(math.inf, 0.0)
    numerator, denominator = nearest.as_integer_ratio()
    excess = numerator * below - above * denominator
    wrong = excess < 0 if towards > 0 else excess > 0
    return math.nextafter(nearest, towards) if wrong else nearest


Search = Callable[[float, float], Bracket]
"""Searches with an incumbent and a deadline, in units of its own."""


@dataclass(kw_only=True)
class Remembered:
    """The result of a search, kept until a narrower one is asked for."""

    search: Search
    """The search itself."""
    _found: Bracket | None = None
    _incumbent: float = 0.0
    """Adversaries who learn less than this were not distinguished."""
    _finished: bool = False
    """Whether the search ended before its deadline."""

    def bracket(self, incumbent: float, deadline: float) -> Bracket:
        """Return the bracket found before if it is narrow enough; otherwise search again."""
        before = self._found
        if before is not None:
            as_narrow = self._finished and incumbent >= self._incumbent
            if as_narrow or time.monotonic() > deadline:
                return before
        least = incumbent * (1 - 16 * UNIT_ROUNDOFF)  # it is rounded differently at each scale
        found = self.search(least, deadline)
        self._finished = time.monotonic() <= deadline
        # If somebody learns more than the incumbent, it only saved work and hid nobody who matters.
        self._incumbent = 0.0 if found.lower >= least else least
        if before is not None:
            found = found.at_most(before.upper).with_lower(before)
        self._found = found
        return found
