"""Several releases about trees and mixing chains, which forget."""

from __future__ import annotations

from pdp_calibrate.core.composer import Composer, Releases
from pdp_calibrate.core.contraction import birkhoff_bounds
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.families.network.contraction import tree_bounds
from pdp_calibrate.families.network.mixing_chain import MixingChain
from pdp_calibrate.families.network.regions import Regions
from pdp_calibrate.families.network.tree import MarkovTree


class MixingComposer(Composer):
    """Bounds any releases by the plain-DP budget spent on each tuple, as on a known chain."""

    def is_searchable(self, problem: Problem) -> bool:
        """No: what a search finds is Birkhoff's bound, taken anyway."""
        del problem
        return False

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Let the chain forget what other tuples told."""
        del deadline
        chain, targets = releases.problem.model, releases.problem.knowledge.targets
        if not isinstance(chain, MixingChain):
            return None
        return float(birkhoff_bounds(releases.tuple_budgets, chain.diameter)[list(targets)].max())


class TreeComposer(Composer):
    """Bounds any releases by the plain-DP budget spent on each tuple, or through regions."""

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Let the tree forget what other tuples told."""
        del deadline
        tree, knowledge = releases.problem.model, releases.problem.knowledge
        if not isinstance(tree, MarkovTree):
            return None
        bounds = tree_bounds(tree, releases.tuple_budgets, knowledge)
        return float(bounds[list(knowledge.targets)].max())

    def windows(self, releases: Releases, deadline: float) -> float | None:
        """Look through the regions of the tree."""
        problem, tree = releases.problem, releases.problem.model
        additive = problem.contributions.table is None and problem.contributions.coordinates == 1
        if not isinstance(tree, MarkovTree) or not additive:
            return None
        enough = 0.0 if releases.threshold is None else releases.threshold
        bounds = tree_bounds(tree, releases.tuple_budgets, problem.knowledge)
        bounds = Regions(problem).bounds(bounds, 1.0, enough=enough, deadline=deadline)
        return float(bounds[list(problem.knowledge.targets)].max())
