"""Several releases about a network: bounded by elimination."""

from __future__ import annotations

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Composer, Problem, Releases
from pdp_calibrate.families.network.network import Network
from pdp_calibrate.families.network.search import Preparation, budget_bounds


class NetworkComposer(Composer):
    """Bounds any releases by the plain-DP budget spent on each tuple."""

    def is_searchable(self, problem: Problem) -> bool:
        """Whether it is no set: for a set a search finds only elimination's bound, used anyway."""
        return super().is_searchable(problem) and not problem.model.only_additive

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Bound by the budgets of all tuples, each reduced by couplings on the way to a target."""
        del deadline
        bounds = self._bounds(releases)
        return float(bounds[list(releases.problem.knowledge.targets)].max())

    def _bounds(self, releases: Releases) -> FloatArray:
        problem, network = releases.problem, releases.problem.model
        if not isinstance(network, Network):
            raise TypeError(f"only networks are bounded so, got {network!r}.")
        enough = 0.0 if releases.threshold is None else releases.threshold
        prepared = Preparation(problem, network)
        return budget_bounds(prepared, problem, releases.tuple_budgets, enough=enough)
