"""Several releases about a network: bounded by elimination, and on trees also by regions."""

from __future__ import annotations

import dataclasses

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Composer, Problem, Releases
from pdp_calibrate.families.network.network import Network
from pdp_calibrate.families.network.regions import Regions
from pdp_calibrate.families.network.search import Preparation, budget_bounds


class NetworkComposer(Composer):
    """Bounds any releases by the plain-DP budget spent on each tuple; on trees also by regions."""

    def is_searchable(self, problem: Problem) -> bool:
        """Whether it is no set: for a set a search finds only elimination's bound, used anyway."""
        return super().is_searchable(problem) and not problem.model.only_additive

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Bound by the budgets of all tuples, each reduced by couplings on the way to a target."""
        del deadline
        bounds = self._bounds(releases)
        return float(bounds[list(releases.problem.knowledge.targets)].max())

    def windows(self, releases: Releases, deadline: float) -> float | None:
        """Search the regions of a tree."""
        problem, network = releases.problem, releases.problem.model
        additive = problem.contributions.table is None and problem.contributions.coordinates == 1
        tree = network.tree if isinstance(network, Network) else None
        if tree is None or not additive:
            return None
        enough = 0.0 if releases.threshold is None else releases.threshold
        regions = Regions(dataclasses.replace(problem, model=tree))
        bounds = regions.bounds(self._bounds(releases), 1.0, enough=enough, deadline=deadline)
        return float(bounds[list(problem.knowledge.targets)].max())

    def _bounds(self, releases: Releases) -> FloatArray:
        problem, network = releases.problem, releases.problem.model
        if not isinstance(network, Network):
            raise TypeError(f"only networks are bounded so, got {network!r}.")
        enough = 0.0 if releases.threshold is None else releases.threshold
        prepared = Preparation(problem, network)
        return budget_bounds(prepared, problem, releases.tuple_budgets, enough=enough)
