"""How leakage about one step passes on to the next: the arithmetic of streams.

Theorem 23 (docs/theory).

Let the amount a_t of a step be the leakage of its releases about its own record. All steps up to t
together leak F_t = a_t + c(F_{t−1}) about step t, those from t on leak B_t = a_t + c(B_{t+1}), and
the total about record t is a_t + c(F_{t−1}) + c(B_{t+1}). Only c, what one step passes on to the
next, depends on the model:

- **Chains of Hilbert diameter D.** Amounts are plain-DP budgets, and c(a) = a ⊗ D, Birkhoff's
  contraction: it holds for every start, every set of known records, noisy knowledge of single
  records, and any mechanism, adaptive ones too. With budget ε₀ at each step for ever,
  sinh(ε/4) = e^{D/2}·sinh(ε₀/4). With two symmetric states that is attained, by an adversary with
  noisy knowledge of every record.
- **Gaussian series of correlation φ, Laplace noise.** A record moves its neighbour k steps away by
  φ^k of its own move, and what an adversary knows can only reduce that: c(a) = |φ|·a, and for ever
  exactly ε₀·(1+|φ|)/(1−|φ|). Clamped values move by no more.
- **Gaussian series, Gaussian noise.** Amounts are precisions, the leakage is μ²/M², and
  c(a) = φ²/((1−φ²)τ² + 1/a) with τ² the variance, the step of a Kalman smoother. Where the variance
  is not stated or values are clamped, it counts as 0.

c is non-decreasing, c(0) = 0, and c(a) ≤ a; all numbers are rounded up.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

from pdp_calibrate.core.contraction import contracted
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF

_BELOW = 1 - 1e-12  # so that sums of exactly this budget, rounded up, still keep ε

_SAFE = 1 + 64 * UNIT_ROUNDOFF


class Memory(abc.ABC):
    """What one step passes on to the next, and what a budget at every step adds up to."""

    @abc.abstractmethod
    def carried(self, amount: float, steps: int = 1) -> float:
        """Return what remains of an amount after a number of steps, rounded up."""

    @abc.abstractmethod
    def for_ever(self, amount: float) -> float:
        """Return the leakage about any step if every step has this amount, rounded up."""

    @abc.abstractmethod
    def fading(self, share: float) -> int:
        """Return after how many steps at most this share of any amount remains."""

    def one_sided(self, amount: float) -> float:
        """Return the leakage about the first step, or the last, if every step has this amount."""
        return (self.for_ever(amount) + amount) / 2 * ROUND_UP


@dataclass(frozen=True)
class Contracting(Memory):
    """Chains whose every step has a Hilbert diameter of at most D."""

    diameter: float
    """D, finite."""

    def carried(self, amount: float, steps: int = 1) -> float:
        """Return a ⊗ D; over several steps tanh(D/4) is multiplied."""
        if amount == 0 or self.diameter == 0:
            return 0.0
        return contracted(self._after(steps), amount)

    def _after(self, steps: int) -> float:
        """Return the diameter of several steps together, rounded up."""
        if steps == 1:
            return self.diameter
        log_product = steps * self._log_factor * (1 - 16 * UNIT_ROUNDOFF)
        product = math.exp(log_product)
        # log(1 − product), in the form that is accurate on each side of ½.
        missing = math.log1p(-product) if product < 0.5 else math.log(-math.expm1(log_product))
        found = 2 * (math.log1p(product) - missing)
        return min(self.diameter, found * _SAFE + 1e-300)

    @property
    def _log_factor(self) -> float:
        """Log tanh(D/4), below 0 and accurate for large D too."""
        if self.diameter < 1:
            return math.log(math.tanh(self.diameter / 4))
        return math.log1p(-2 / (math.exp(min(self.diameter / 2, 700.0)) + 1))

    def for_ever(self, amount: float) -> float:
        """Solve sinh(ε/4) = e^{D/2}·sinh(ε₀/4); never above ε₀ + 2D."""
        if amount == 0 or self.diameter == 0:
            return amount
        safe = 1 + (64 + 4 * self.diameter) * UNIT_ROUNDOFF  # e^{D/2} errs by D/2 roundoffs
        simple = (amount + 2 * self.diameter) * ROUND_UP
        if self.diameter / 2 + amount / 4 > 600:
            return simple
        image = math.exp(self.diameter / 2) * math.sinh(amount / 4)
        return max(amount, min(4 * math.asinh(image) * safe, simple))

    def budget(self, epsilon: float) -> float:
        """Return the largest amount at every step that leaks at most ε for ever, rounded down.

        It is 0 where no positive float suffices.
        """
        if self.diameter == 0:
            return epsilon
        # e^{−D/2}·sinh(ε/4), by logarithms where that overflows
        quarter = epsilon / 4
        log_sine = quarter + math.log(-math.expm1(-2 * quarter)) - math.log(2)
        image = log_sine - self.diameter / 2
        found = 4 * (math.asinh(math.exp(image)) if image < 600 else image + math.log(2)) * _BELOW
        while self.for_ever(found) > epsilon:
            found *= _BELOW
        return found

    def fading(self, share: float) -> int:
        """Use that after k steps at most tanh(D/4)^k of an amount remains."""
        if self.diameter == 0:
            return 1
        return max(1, math.ceil(math.log(share) / self._log_factor))


@dataclass(frozen=True)
class Shifting(Memory):
    """Gaussian series under Laplace noise, or of unknown variance."""

    factor: float
    """|φ|; for precisions φ²."""

    def carried(self, amount: float, steps: int = 1) -> float:
        """Multiply by the factor, once for each step."""
        return float(amount * self.factor**steps * (ROUND_UP if steps == 1 else 1 + 1e-14))

    def for_ever(self, amount: float) -> float:
        """Add up both sides of a geometric series."""
        if self.factor == 0 or amount == 0:
            return amount
        if self.factor >= 1:
            return math.inf
        # 1 − |φ| is exact for |φ| ≥ ½, and errs by at most half an ulp below.
        return amount * ((1 + self.factor) / (1 - self.factor)) * _SAFE

    def fading(self, share: float) -> int:
        """Use that after k steps factor^k of an amount remains."""
        return 1 if self.factor == 0 else max(1, math.ceil(math.log(share) / math.log(self.factor)))


@dataclass(frozen=True)
class Smoothing(Memory):
    """Gaussian series of a stated variance under Gaussian noise: amounts are precisions."""

    correlation: float
    """φ."""
    variance: float
    """τ², above 0."""

    @property
    def _own(self) -> float:
        """The variance of a step given the one before, rounded down."""
        return (1 - self.correlation) * (1 + self.correlation) * self.variance * (2 - _SAFE)

    def carried(self, amount: float, steps: int = 1) -> float:
        """Return φ²/((1−φ²)τ² + 1/a); over k steps with φ^k in place of φ."""
        if amount == 0 or self.correlation == 0:
            return 0.0
        if steps == 1:
            return self.correlation**2 / (self._own + 1 / amount) * _SAFE
        power = abs(self.correlation) ** steps
        own = (1 - power) * (1 + power) * self.variance
        return float(power**2 * (1 + 1e-13) / (own * (1 - 1e-13) + 1 / amount))

    def for_ever(self, amount: float) -> float:
        """Return the steady state of the smoother: 1/σ² + 2I with I = c(1/σ² + I).

        With s = φ², v = (1−φ²)τ² and a = 1/σ²: v·I² + (v·a + 1 − s)·I − s·a = 0, whose positive
        root is taken in the form that does not cancel.
        """
        if amount == 0 or self.correlation == 0:
            return amount
        square, own = self.correlation**2, self._own
        middle = own * amount + (1 - self.correlation) * (1 + self.correlation)
        root = math.sqrt(middle * middle + 4 * own * square * amount)
        return (amount + 4 * square * amount / (middle + root)) * _SAFE

    def fading(self, share: float) -> int:
        """Use that after k steps at most φ^2k of an amount remains."""
        if self.correlation == 0:
            return 1
        return max(1, math.ceil(math.log(share) / (2 * math.log(abs(self.correlation)))))
