"""Gaussian noise on Gaussian networks: how far the answers are shifted, over σ.

An answer that a secret shifts by Δ is Δ/σ-GDP, whatever further noise it has, and several answers
shifted together by Δ_m are √Σ(Δ_m/σ_m)²-GDP. The engine for Laplace noise bounds every Δ. The noise
that unknown tuples add is ignored, which is the sound direction; an adversary who knows everyone
else attains the bound. The model of `GaussianNetwork.to_gaussian` counts that noise as well.
"""

from __future__ import annotations

from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.gaussian.gaussian_noise import Shifts


class NetworkNoiseEngine(Engine):
    """Bounds all adversaries of a Gaussian network at any scale σ; it brackets μ.

    Parameters
    ----------
    problem
        Model, answers and adversaries.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.contributions.weights is None:
            raise UnsupportedQueryError("a continuous model answers Sum, Mean and Linear only.")
        self._shifts = Shifts(problem)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bracket the largest μ at one scale; see `core.problem.Engine`."""
        return self._shifts.search(scale, deadline=limits.deadline)
