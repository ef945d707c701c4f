"""Gaussian noise on Gaussian series without an end: the steady state of the smoother.

Theorem 23 (docs/theory).

With noise N(0, σ²) on a·x_t at every step, μ² = M²·(1/Var(x_t | all) − 1/Var(x_t)) =
M²·(a²/σ² + 2I), I being the precision that arrives from one side. Nobody learns more than μ, and an
adversary who knows no record learns exactly that. Where the variance is not stated, or values are
clamped, the series itself does not count as noise: μ² = (Ma/σ)²·(1+φ²)/(1−φ²).
"""

from __future__ import annotations

import dataclasses
import math
from typing import cast

from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP, UNIT_ROUNDOFF, lengths
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.stream.memory import Memory, Shifting, Smoothing
from pdp_calibrate.families.stream.search import Correlated, is_attained


def noise_memory(model: Correlated, *, clamped: bool) -> Memory:
    """Return how the steps of a series pass leakage on under Gaussian noise."""
    low, high = model.ends
    if clamped or model.variance is None or low < high:
        return Shifting(model.strength**2 * (1 + 4 * UNIT_ROUNDOFF))
    return Smoothing(low, model.variance)


class StreamNoiseEngine(Engine):
    """Bounds μ for an answer at one step or at every step."""

    def __init__(self, problem: Problem) -> None:
        contributions = problem.contributions
        if contributions.weights is None:
            raise UnsupportedQueryError("a Gaussian model answers Sum, Mean and Linear.")
        model = cast("Correlated", problem.model)
        self.problem = problem
        self.memory = noise_memory(model, clamped=contributions.clamped)
        self._width = (model.bounds[1] - model.bounds[0]) * ROUND_UP
        self._weight = float(lengths(contributions.weights[0])) * ROUND_UP
        # How much rounding may have changed the contributions, in units of the range.
        self._rounding = contributions.rounding / self._width if self._width else 0.0

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bound all adversaries at once; see `core.problem.Engine`."""
        del limits
        weight = (self._weight + self._rounding) / scale * ROUND_UP
        told = weight * weight * ROUND_UP
        if self.problem.contributions.every_step:
            told = self.memory.for_ever(told)
        upper = self._width * math.sqrt(told) * ROUND_UP
        found = dataclasses.replace(self.problem.nobody(), upper=upper)
        if self.problem.contributions.rounding or not is_attained(self.problem):
            return found
        return dataclasses.replace(
            found,
            lower=upper * ROUND_DOWN * (1 - 1e-12),
            witness=self.problem.witness_at(0, {}, (0, 1), -math.inf),
        )
