"""Several releases about a Markov chain, which forgets."""

from __future__ import annotations

from pdp_calibrate.core.composer import Composer, Releases
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.chain.search import repeated_bound


class ChainComposer(Composer):
    """Bounds any releases by the plain-DP budget spent on each tuple, or through windows.

    A step of the chain shrinks what a likelihood says about its end, by Birkhoff's theorem. One
    pass along the chain bounds every adversary, whatever is known of whom.
    """

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Let the chain forget what other tuples told."""
        del deadline
        chain, targets = releases.problem.model, releases.problem.knowledge.targets
        if not isinstance(chain, MarkovChain):
            return None
        diameter = float(diameters(chain.kernel, 1)[0][1])
        return float(birkhoff_bounds(releases.tuple_budgets, diameter)[list(targets)].max())

    def windows(self, releases: Releases, deadline: float) -> float | None:
        """Look through the windows of the chain."""
        enough = 0.0 if releases.threshold is None else releases.threshold
        return repeated_bound(releases.problem, incumbent=enough, deadline=deadline)
