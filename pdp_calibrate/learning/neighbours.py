"""How much consecutive values have in common: exact limits for the correlation of neighbours.

Theorem 33 (docs/theory).

A panel of Gaussian series with correlation φ is centred at the mean of every position, separately
for all series that stand at the same positions. Of H such series H − 1 independent ones are left,
without a mean. With A = Σ((y' − y)/2)² and B = Σ((y' + y)/2)² over neighbours, the limits are the φ
at which P(A ≥ r·B) and P(A ≤ r·B) reach the probability of a miss, r being the ratio observed.

The law of Q = A − r·B follows from its characteristic function, a product of determinants. The
precision Ω of a series and the matrix D of Q are tridiagonal, so Ω − 2iuD is eliminated row by row.
Its real part is positive definite, and so is that of what elimination leaves: every pivot has a
positive real part, and the sum of their principal logarithms is the logarithm of the determinant.
Inside a series all rows are alike, and the pivots p_t have a closed form: with the roots λ₁, λ₂ of
λ² − mλ + o² = 0 and w_t = (p_t − λ₁)/(p_t − λ₂), each step multiplies w by λ₂/λ₁, and
p_t = λ₁(1 − w_{t+1})/(1 − w_t), whose product telescopes. So the length of a series costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import ModelError

_ACCURATE = 1e-9  # the most that halving the step may change a probability
_NEGLIGIBLE = 36.0  # the integral is cut off where the integrand falls below e^−36
_LARGEST = 1 - 1e-9  # a correlation so close to 1 is that of group privacy
ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """What the rows of a panel say about the correlation of neighbours."""

    apart: float
    """A = Σ((y' − y)/2)², centred by position."""
    together: float
    """B = Σ((y' + y)/2)², centred by position."""
    panels: Mapping[int, int]
    """How many independent series of each length are left after centring."""
    one_mean: bool = False
    """Whether there is a single series, centred at one mean for all positions."""

    @property
    def correlation(self) -> float:
        """The estimate (B − A)/(B + A)."""
        return (self.together - self.apart) / (self.together + self.apart)

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return limits of φ, each of which fails with probability at most 1 − confidence.

        No more than one of them matters: the leakage grows with the size of φ on each side of 0.
        """
        miss = 1 - confidence
        if self.apart <= 0:
            return _LARGEST, _LARGEST
        if self.together <= 0:
            return -_LARGEST, -_LARGEST
        ratio, middle = self.apart / self.together, math.atanh(self.correlation)

        def larger(z: float) -> float:
            return self._at_least(math.tanh(z), ratio) - miss

        def smaller(z: float) -> float:
            return 1 - self._at_least(math.tanh(z), ratio) - miss

        return _crossing(smaller, middle, -1.0), _crossing(larger, middle, 1.0)

    def _at_least(self, phi: float, ratio: float) -> float:
        return ratio_probability(self.panels, phi, ratio, one_mean=self.one_mean)


def _crossing(above: Callable[[float], float], start: float, direction: float) -> float:
    """Return the φ farthest from the estimate at which a probability is not too small.

    The search goes outwards from the estimate, in z = atanh φ, and returns the outer end of the
    interval in which the probability crosses the level.
    """
    inner, step = start, 0.125
    end = math.atanh(_LARGEST)
    while above(inner) < 0:  # far from the estimate only in very small samples
        inner -= direction * step
        if abs(inner) > end:
            return math.copysign(_LARGEST, direction)
    outer = inner
    while True:
        outer += direction * step
        if direction * outer >= end:
            return direction * _LARGEST
        if above(outer) < 0:
            break
        inner, step = outer, 1.5 * step
    for _ in range(32):
        middle = (inner + outer) / 2
        if above(middle) < 0:
            outer = middle
        else:
            inner = middle
    return math.tanh(outer)


def ratio_probability(
    panels: Mapping[int, int], phi: float, ratio: float, *, one_mean: bool = False
) -> float:
    """Return P(A ≥ ratio·B) for these numbers of series of each length.

    Examples
    --------
    >>> round(ratio_probability({5: 20}, 0.8, 1 / 9), 4)  # φ̂ is 0.8 at this ratio
    0.5667
    """
    pairs = sum(number * (length - 1) for length, number in panels.items())
    # E|Q| is at most this; below e^−36 of its inverse the integrand vanishes.
    size = pairs * (1 / (1 + phi) + ratio / (1 - phi)) / 2
    start = -_NEGLIGIBLE - math.log(size)
    end = -math.log(size)
    while (
        _log_characteristic(panels, phi, ratio, np.exp([end]), one_mean=one_mean).real[0]
        > -_NEGLIGIBLE
    ):
        end += 1.0
    before = math.inf
    for points in 2 ** np.arange(9, 17):
        s, step = np.linspace(start, end, points, retstep=True)
        log = _log_characteristic(panels, phi, ratio, np.exp(s), one_mean=one_mean)
        total = float((np.sin(log.imag) * np.exp(log.real)).sum() * step)
        if abs(total - before) < _ACCURATE:
            return min(1.0, max(0.0, 0.5 + total / math.pi))
        before = total
    raise ModelError("the law of the correlation of neighbours could not be computed.")


def _log_characteristic(
    panels: Mapping[int, int],
    phi: float,
    ratio: float,
    u: npt.NDArray[np.float64],
    *,
    one_mean: bool,
) -> ComplexArray:
    """Return log E[exp(iu(A − ratio·B))], continuous in u."""
    found = np.zeros(len(u), dtype=np.complex128)
    for length, number in panels.items():
        if number:
            found += number * _of_one(length, phi, ratio, u, one_mean=one_mean)
    return found


def _of_one(
    length: int, phi: float, ratio: float, u: npt.NDArray[np.float64], *, one_mean: bool
) -> ComplexArray:
    """Return the logarithm of the characteristic function of one series."""
    turn, n = 2j * u, length - 1
    # Ω has 1 at the ends, 1 + φ² inside and −φ beside; D has (1 − r)/4, (1 − r)/2 and −(1 + r)/4.
    inside = 1 + phi**2 - turn * (1 - ratio) / 2
    beside = -phi + turn * (1 + ratio) / 4
    rows = (1 - phi) ** 2 + turn * ratio  # inside + 2·beside, the sum of a row
    left = (1 - phi) * (1 + phi)
    # λ₁ − λ₂, with the sign that makes λ₁ the larger one; factored, nothing cancels near φ = ±1.
    root = np.sqrt(rows * ((1 + phi) ** 2 - turn))
    root = np.where((root * np.conj(inside)).real < 0, -root, root)
    larger = (inside + root) / 2
    smaller = beside**2 / larger
    share = smaller / larger
    first = (left - root) / (left + root)  # w_1, as end − λ₁ = (1 − φ² − root)/2
    after = first * share**n
    # The product of the first n pivots, and the last one, whose row is an end again.
    logs = n * np.log(larger) + np.log(1 - after) - np.log(2 * root / (left + root))
    last = (left + root) / 2 + smaller * first * share ** (n - 1) * (root / larger) / (1 - after)
    found = -(logs + np.log(last) - math.log(left)) / 2
    if one_mean:
        # B is the smallest Σ((y' + y)/2 − m)²: a Gaussian integral over m borders the matrix by
        # 2iur·v, v = (½, 1, …, 1, ½). The Schur complement of 2iurn in it has no negative real
        # part, for that of the bordered matrix is not negative; here it is divided by 2iurn.
        corner = 2 * (1 + np.exp(n * np.log(-beside) - logs)) / last  # (e₁ + e_L)'M⁻¹(e₁ + e_L)
        ends = turn * ratio / n * left / rows * (1 - left * corner / 4)
        complement = ((1 - phi) ** 2 + ends) / rows
        found = found - (np.log(complement * turn) - np.log(turn)) / 2
    return np.asarray(found)
