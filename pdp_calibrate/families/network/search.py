"""The worst adversary of a network: one engine for networks, trees and chains that forget.

Theorem 18 (docs/theory).

A small network is searched as a joint table. Others get a bracket. Upper end: elimination
(`elimination`), which needs only how strongly tuples are coupled; on trees also the regions around
a target (`regions`), which take signs into account. Lower end: plain DP; the limits r → ±∞ where
sums over the network are affordable (`moments`, on trees `limits`); a small neighbourhood of the
target with everyone around it known; for a set of laws, one of its members.

**Positive association.** Let the values of every tuple be ordered by what they add to the answer,
and let every factor be log-supermodular in that order. Then for one adversary the worst output is
r = ±∞ and the worst secrets are the extreme ones, so the limits are exact. This applies to sets of
adversaries all of whom were tried, with everything they may know.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Mapping

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.table import WrittenOut
from pdp_calibrate.core.tuning import MEMBER_TUPLES
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.families.network.elimination import Elimination
from pdp_calibrate.families.network.limits import Layers
from pdp_calibrate.families.network.moments import Limit, Moments, best_limit
from pdp_calibrate.families.network.network import Network
from pdp_calibrate.families.network.regions import Regions

_LARGEST = 2.0**1010  # sum of budgets: what is made of them is still a float


class Preparation:
    """What searches need that does not depend on the adversaries, computed when first needed."""

    def __init__(self, problem: Problem, network: Network) -> None:
        self.problem, self.network = problem, network
        self._eliminations: dict[frozenset[int], Elimination] = {}

    @functools.cached_property
    def written(self) -> WrittenOut:
        """The problem as one about a joint table."""
        return WrittenOut.of(self.problem, self.network.to_table())

    @functools.cached_property
    def member(self) -> Problem | None:
        """The problem about one law of a set."""
        member = self.network.member(self.problem.contributions)
        return None if member is None else dataclasses.replace(self.problem, model=member)

    @functools.cached_property
    def layers(self) -> Layers | None:
        """The tree in arrays, where it is one."""
        tree = self.network.tree
        return None if tree is None else Layers.of(tree, self.problem.contributions)

    @functools.cached_property
    def moments(self) -> Moments:
        """Exact sums over the network."""
        return Moments(self.network, self.problem.contributions)

    def elimination(self, known: frozenset[int]) -> Elimination:
        """Return the elimination of all tuples but the known ones."""
        if known not in self._eliminations:
            kept = {frozenset[int]()} & self._eliminations.keys()
            self._eliminations = {key: self._eliminations[key] for key in kept}
            couplings = self.network.couplings.without(known)
            self._eliminations[known] = Elimination(couplings)
        return self._eliminations[known]


class NetworkEngine(Engine):
    """Searches the joint table of a small network; brackets a large one, or a set of laws.

    Exact where the joint table has at most 2²² cells, within the time allowed, and where tuples are
    positively associated and few adversaries are asked about. Beyond, a bracket.
    """

    def __init__(self, problem: Problem, *, prepared: Preparation | None = None) -> None:
        """Prepare the search; `prepared` is what does not depend on the adversaries."""
        network, contributions = problem.model, problem.contributions
        if not isinstance(network, Network):
            raise TypeError(f"this engine searches networks, got {network!r}.")
        if contributions.table is not None and network.only_additive:
            raise UnsupportedQueryError(
                "Custom has no bound on a set of laws; ask Sum, Mean, Linear, Count or Histogram."
            )
        self.problem, self.network = problem, network
        self.prepared = Preparation(problem, network) if prepared is None else prepared
        self._in_table = contributions.table is not None or network.fits_a_table
        self._about_some: tuple[tuple[int, ...], WrittenOut] | None = None

    def against(self, problem: Problem) -> NetworkEngine:
        """Return an engine for the same network and answers; see `core.problem.Engine`."""
        return NetworkEngine(problem, prepared=self.prepared)

    def bounds_at_once(self, scale: float, *, beyond: int) -> FloatArray | None:
        """Bound what is learned about each tuple by elimination; see `core.problem.Engine`."""
        if self._in_table and len(self.network.names) <= beyond:
            return None
        budgets = self.problem.contributions.tuple_ranges() / scale
        return budget_bounds(self.prepared, self.problem, budgets)

    @functools.cached_property
    def _written(self) -> WrittenOut:
        return self.prepared.written.against(self.problem)

    @functools.cached_property
    def _regions(self) -> Regions | None:
        """The regions of an answer that is one number."""
        tree = self.network.tree
        if tree is None or self.problem.contributions.coordinates > 1:
            return None
        return Regions(dataclasses.replace(self.problem, model=tree))

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        contributions, knowledge = self.problem.contributions, self.problem.knowledge
        if contributions.table is not None:
            return self._in_cells(self._written, scale, limits)
        best = self._plain(scale)
        if best is not None and knowledge.fewest == knowledge.total - 1:
            return best
        with np.errstate(over="ignore"):  # then refused
            budgets = contributions.tuple_ranges() / scale
        bounds = budget_bounds(
            self.prepared,
            self.problem,
            budgets,
            enough=limits.incumbent,
            deadline=limits.deadline,
        )
        if best is not None and best.upper >= bounds[list(knowledge.targets)].max():
            return best
        # Adversaries who cannot learn more than this need not be distinguished.
        if best is not None:
            limits = limits.above(best.upper)
        late = time.monotonic() > limits.deadline  # sums over a large network take a while
        associated = None if self._in_table or late else self._associated(scale)
        if associated is not None:
            return associated
        find = self._searched if self._in_table else self._between
        return find(scale, bounds, best, limits)

    def _plain(self, scale: float) -> Bracket | None:
        """Return what adversaries who know all others learn; None if there are none."""
        knowledge, contributions = self.problem.knowledge, self.problem.contributions
        if not knowledge.admits_strongest or self.problem.hidden_noise:
            return None
        if contributions.coordinates > 1:
            return None
        ranges = contributions.tuple_ranges()
        widest = max(knowledge.targets, key=lambda position: ranges[position])
        return self.problem.plain_dp(widest, scale, self.network.course)

    def _between(
        self, scale: float, bounds: FloatArray, best: Bracket | None, limits: Limits
    ) -> Bracket:
        """Return the best bound there is, and the best lower end."""
        contributions, targets = self.problem.contributions, self.problem.knowledge.targets
        if self._regions is not None:
            bounds = self._regions.bounds(
                bounds, scale, enough=limits.incumbent, deadline=limits.deadline
            )
        target = max(targets, key=lambda position: bounds[position])
        bound = self._bound(bounds, target)
        if contributions.coordinates > 1:
            return bound
        found = self._attained(scale, target, bound.upper, limits)
        return bound.with_lower(found if best is None else best.with_lower(found))

    def _attained(self, scale: float, target: int, upper: float, limits: Limits) -> Bracket:
        """Return the best lower end there is."""
        best, member = self.problem.nobody(), self.prepared.member
        if member is not None:
            if upper <= limits.incumbent or len(self.problem.names) > MEMBER_TUPLES:
                return best
            about = member.against(self.problem.knowledge)
            return about.engine.bracket(scale, deadline=limits.deadline)
        if self.prepared.layers is not None:
            return self.prepared.layers.best_limit(self.problem, scale)
        return self._limits(scale, target, limits)

    def _limits(self, scale: float, target: int, limits: Limits) -> Bracket:
        """Return the leakage about a target in the limits r → ±∞."""
        knowledge, best = self.problem.knowledge, self.problem.nobody()
        if time.monotonic() > limits.deadline:
            return best
        for known in self.prepared.moments.events(knowledge, target):
            if time.monotonic() > limits.deadline:
                break
            sums = self.prepared.moments.given(known, target)
            limit = best_limit(sums, self.problem.contributions, scale, [target])
            if limit is not None and limit.gain - limit.error > best.lower:
                best = self._witnessed(limit, known)
        return best

    def _witnessed(self, limit: Limit, known: Mapping[int, int]) -> Bracket:
        return Bracket(
            upper=0.0,
            lower=max(0.0, limit.gain - limit.error),
            witness=self.problem.witness_at(
                limit.target, known, limit.secrets, limit.sign * math.inf
            ),
            target=limit.target,
            unknown=(),
        )

    def _associated(self, scale: float) -> Bracket | None:
        """Return what each of a few adversaries learns, exactly; None where that is not known."""
        moments, knowledge = self.prepared.moments, self.problem.knowledge
        are_few = knowledge.known is not None or knowledge.most == 0
        if self.problem.contributions.coordinates > 1 or not are_few:
            return None
        if not math.isfinite(moments.slack):
            return None
        found: Bracket | None = None
        for known, targets in moments.everything(knowledge):
            sums = moments.given(known, targets[0] if len(targets) == 1 else None)
            limit = best_limit(sums, self.problem.contributions, scale, targets)
            if limit is None:
                continue
            unknown = (p for p in sums.order if p != limit.target)
            upper = (max(0.0, limit.gain) + limit.error + 8 * moments.slack) * ROUND_UP
            one = dataclasses.replace(
                self._witnessed(limit, known), upper=upper, unknown=tuple(sorted(unknown))
            )
            found = one if found is None else found.or_worse(one)
        return found

    def _searched(
        self, scale: float, bounds: FloatArray, best: Bracket | None, limits: Limits
    ) -> Bracket:
        """Search the joint table, about those targets only that could leak more than others."""
        targets, least = self.problem.knowledge.targets, limits.incumbent
        open_targets = tuple(t for t in targets if bounds[t] > least)
        closed = [t for t in targets if bounds[t] <= least]
        found = best
        if closed:
            covered = self._bound(bounds, max(closed, key=lambda position: bounds[position]))
            found = covered if found is None else found.or_worse(covered)
        if open_targets:
            searched = self._in_cells(self._written_about(open_targets), scale, limits)
            highest = self._bound(bounds, max(open_targets, key=lambda t: bounds[t]))
            searched = searched if searched.upper <= highest.upper else highest.with_lower(searched)
            found = searched if found is None else found.or_worse(searched)
        return self.problem.nobody() if found is None else found

    def _in_cells(self, written: WrittenOut, scale: float, limits: Limits) -> Bracket:
        """Search a table, whose cells are products of as many factors, rounded."""
        units = 4 * UNIT_ROUNDOFF * (2 * len(self.network.factors) + 4)
        return written.search(scale, limits).widened(units)

    def _written_about(self, targets: tuple[int, ...]) -> WrittenOut:
        """Return the problem about some targets only; scales that follow each other share them."""
        knowledge = self.problem.knowledge
        if targets == knowledge.targets:
            return self._written
        if self._about_some is None or self._about_some[0] != targets:
            some = dataclasses.replace(
                self.problem, knowledge=dataclasses.replace(knowledge, targets=targets)
            )
            self._about_some = targets, self._written.against(some)
        return self._about_some[1]

    def _bound(self, bounds: FloatArray, target: int) -> Bracket:
        """Return the bound about one target, with as many unknown tuples as are admitted."""
        knowledge, size = self.problem.knowledge, len(self.problem.names)
        others = [place for place in range(size) if place != target]
        if knowledge.known is not None:
            others = [place for place in others if place not in knowledge.known]
        elif knowledge.fewest:
            near = {place: rank for rank, place in enumerate(self._nearest(target))}
            others.sort(key=lambda place: near.get(place, size))
            others = others[: max(0, knowledge.total - 1 - knowledge.fewest)]
        return Bracket(
            upper=float(bounds[target]),
            lower=0.0,
            witness=None,
            target=target,
            unknown=tuple(sorted(others)),
        )

    def _nearest(self, target: int) -> list[int]:
        return list(self.network.couplings.distances(target))


def budget_bounds(
    prepared: Preparation,
    problem: Problem,
    budgets: FloatArray,
    *,
    enough: float = 0.0,
    deadline: float = math.inf,
) -> FloatArray:
    """Bound the leakage about every tuple by the budgets spent on each.

    Parameters
    ----------
    prepared
        What is known of the network.
    problem
        Who attacks.
    budgets
        ε_j of every tuple: Σ_m LS_j(f_m)/λ_m, and the plain-DP budgets of other mechanisms.
    enough
        Bounds below this need not be lowered.
    deadline
        When to stop lowering them.
    """
    knowledge = problem.knowledge
    if not budgets.max(initial=0.0) < _LARGEST / len(budgets):
        raise PdpError("the leakage is too large for a floating-point number; raise the scale.")
    budgets = np.asarray(budgets * ROUND_UP)  # they are quotients of differences
    if knowledge.fewest == knowledge.total - 1:
        return budgets
    elimination = prepared.elimination(knowledge.known or frozenset())
    bounds = elimination.bounds(budgets, knowledge.targets, enough=enough, deadline=deadline)
    if knowledge.known is None and knowledge.fewest > 0:
        # Known tuples do not move.
        moving = math.fsum(np.sort(budgets)[::-1][: knowledge.total - 1 - knowledge.fewest])
        bounds = np.minimum(bounds, (budgets + moving) * ROUND_UP)
    return bounds
