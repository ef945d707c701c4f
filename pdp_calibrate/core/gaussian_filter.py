"""Several releases with Gaussian noise, chosen one after the other, within one μ.

What a further release adds depends on everything released before, and on the past only through the
queries and scales chosen. So with μ fixed beforehand, refusing whatever would push the joint μ of
all releases past it keeps the whole transcript μ-GDP, however the analyst chooses (a filter). What
was reached is no claim: the budget is. The joint μ is an engine's answer to all releases together.
Never add up each release's own μ²: one answer may tell what blurs another.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pdp_calibrate.arrays import checked_positive
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bracket, Engine, Problem, split
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import BudgetExceededError, PdpError


class GaussianFilter:
    """Admits releases as long as nobody's joint μ exceeds the budget.

    Parameters
    ----------
    model
        The distribution of the tuples, or a set of them.
    engine
        Makes the engine for Gaussian noise of a problem.
    mu
        The budget, fixed before the first release.
    adversaries
        Who may attack; everyone by default.
    """

    def __init__(
        self,
        model: Model,
        *,
        engine: Callable[[Problem], Engine],
        mu: float,
        adversaries: Adversaries | None = None,
    ) -> None:
        self._model, self._engine = model, engine
        self.mu = checked_positive(mu, "mu", error=PdpError)
        self._adversaries = Adversaries.all() if adversaries is None else adversaries
        self._parts: list[Contributions] = []
        self._scales: list[float] = []
        self._spent = 0.0

    @property
    def spent(self) -> float:
        """How much of the budget is used: the joint μ of what was admitted, rounded up."""
        return self._spent

    def joint(
        self, query: Query, *, scale: float, rows: int = 1, deadline: float = math.inf
    ) -> Bracket:
        """Bracket the joint μ of everything admitted and one more release, recording nothing."""
        return self._joint(
            [*self._parts, lower(query, self._model, rows=rows)],
            [*self._scales, checked_positive(scale, "scale", error=PdpError)],
            deadline,
        )

    def admit(
        self, query: Query, *, scale: float, rows: int = 1, deadline: float = math.inf
    ) -> Bracket:
        """Record one more release, or refuse it before anything is drawn.

        Raises
        ------
        BudgetExceededError
            If the joint μ could exceed the budget; then nothing is recorded.
        """
        found = self.joint(query, scale=scale, rows=rows, deadline=deadline)
        if not found.upper <= self.mu:
            raise BudgetExceededError(
                f"this release would bring the joint mu to {found.upper:.6g}, above the budget of"
                f" {self.mu:.6g}. Raise its scale."
            )
        self._parts.append(lower(query, self._model, rows=rows))
        self._scales.append(float(scale))
        self._spent = found.upper
        return found

    def _joint(self, parts: list[Contributions], scales: list[float], deadline: float) -> Bracket:
        best: Bracket | None = None
        contributions = Contributions.joined(parts, scales)
        for problem in split(self._model, contributions, self._adversaries, expand=False):
            incumbent = best.upper if best else 0.0
            # Shifted by its rounding, an answer in units of the noise shifts mu by as much.
            cost = problem.contributions.rounding
            found = self._engine(problem).bracket(
                1.0, incumbent=max(0.0, incumbent - cost), deadline=deadline
            )
            found = found.widened(cost + 2 * UNIT_ROUNDOFF * found.upper if cost else 0.0)
            best = found if best is None else best.or_worse(found)
        if best is None:
            raise PdpError("no adversary of the set attacks any tuple of the model.")
        return best
