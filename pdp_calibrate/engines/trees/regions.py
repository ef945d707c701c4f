"""The regions of a tree in which an adversary knows nobody, each around one target.

Given what is known, only the unknown tuples in one piece with the target matter: the rest of the
answer does not depend on the secret, and blurs it. All releases of one query with scales λ_m
together have a likelihood g of the region's sum whose logarithm changes by at most Σ_m 1/λ_m per
unit. So they leak at most what the worst such g tells (`chains.lines`), region by region. A single
release with all of that budget has such a likelihood too.

Regions reach as far from the target as the work allows; what lies beyond has its price
(`branches`). Trees that look alike around many targets are looked at once.
"""

from __future__ import annotations

import functools
import math
import time
from typing import NamedTuple

import numpy as np

from pdp_calibrate.adversaries import Knowledge
from pdp_calibrate.contributions import Contributions
from pdp_calibrate.engines.additive import ROUND_UP
from pdp_calibrate.engines.chains.lattice import Lattice, lattice_of
from pdp_calibrate.engines.chains.lines import widest_of
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.trees.branches import Branch, Edge, IntArray, Looks, combined, ways
from pdp_calibrate.engines.trees.links import links_of
from pdp_calibrate.models import MarkovTree
from pdp_calibrate.models.base import FloatArray

_Ends = tuple[int, int]  # (outer tuple, its neighbour on the way to a target)
_NUMBERS = 4e6  # probabilities that all looks together may have
_EDGES = 1e6  # pairs of neighbouring edges that may be gone through
_FURTHEST = 100  # steps from a target
_LARGEST = 200  # tuples of a region for which a lattice is made
_STEPS = 512  # of a sum whose contributions must be rounded to a lattice
_DEEPEST = 600.0  # logarithms up to here are far from underflow, products included
_NEGLIGIBLE = 1e-12  # nats for which nobody looks further
_WORTHWHILE = 0.99  # of a bound: from here on another round


def region_bounds(
    problem: Problem,
    highest: FloatArray,
    scale: float,
    *,
    enough: float = 0.0,
    deadline: float = math.inf,
) -> FloatArray:
    """Lower given bounds on the leakage about each tuple to those of its regions.

    Parameters
    ----------
    problem
        A tree and a query of one number.
    highest
        What is known to bound the leakage about each tuple.
    scale
        The scale λ, or 1/Σ_m 1/λ_m for repeats.
    enough
        Bounds below this need not be lowered.
    deadline
        Value of `time.monotonic()` after which no further target is looked at.
    """
    tree, knowledge = problem.model, problem.knowledge
    if not isinstance(tree, MarkovTree):
        raise TypeError(f"only Markov trees have regions, got {tree!r}.")
    lattice = _lattice(problem.contributions)
    regions = _regions(tree, lattice.points.tobytes(), knowledge)
    step, moved = lattice.step / scale, 2 * float(lattice.errors.max()) / scale
    alone = np.zeros(len(highest))
    if knowledge.admits_strongest and not problem.hidden_noise:
        # Who knows everyone else compares all secrets, impossible ones too.
        alone = problem.contributions.tuple_ranges() / scale * ROUND_UP

    def lowered(bounds: FloatArray) -> FloatArray:
        found, worst = np.array(bounds), enough
        seen: dict[_Surroundings, float] = {}
        for target in sorted(regions.around, key=lambda place: -bounds[place]):
            if bounds[target] <= worst or time.monotonic() > deadline:
                break  # bounds fall from target to target
            surroundings = regions.around[target]
            if surroundings not in seen:
                told = regions.bound(target, step, moved, float(bounds.max()))
                seen[surroundings] = told
            found[target] = min(bounds[target], max(seen[surroundings], alone[target]))
            worst = max(worst, float(found[target]))
        return found

    bounds, before = lowered(highest), highest
    everyone = knowledge.admits_strongest and len(knowledge.targets) == knowledge.total
    while everyone and enough < bounds.max() < _WORTHWHILE * before.max():
        # Whatever lies beyond the horizon tells less, too, of any tuple.
        bounds, before = lowered(bounds), bounds
    return bounds


def _lattice(contributions: Contributions) -> Lattice:
    values = [array[:, 0] - array[:, 0].min() for array in contributions.values]
    added = np.zeros((len(values), max(map(len, values))))
    for row, value in zip(added, values, strict=True):
        row[: len(value)] = value
    return lattice_of(added, min(len(values), _LARGEST), _STEPS)


@functools.lru_cache(maxsize=4)
def _regions(tree: MarkovTree, points: bytes, knowledge: Knowledge) -> Regions:
    numbers = np.frombuffer(points, dtype=np.int64)
    return Regions(tree, numbers.reshape(len(tree.names), -1), knowledge)


class _Surroundings(NamedTuple):
    """What a target sees; targets that see the same leak the same."""

    points: bytes
    possible: bytes
    branches: tuple[Branch, ...]


class Regions:
    """All regions of a tree, prepared for noise of any scale.

    Parameters
    ----------
    tree
        The model.
    points
        What each value of each tuple adds to the sum, in steps from zero; rows may be longer.
    knowledge
        The adversaries. How many they may know is not looked at, only whether they may know any.
    """

    def __init__(self, tree: MarkovTree, points: IntArray, knowledge: Knowledge) -> None:
        self.tree, self.knowledge, self.links = tree, knowledge, links_of(tree)
        self.points = [row[: len(domain)] for row, domain in zip(points, tree.domains, strict=True)]
        self._states, self._highest_point = max(map(len, tree.domains)), int(points.max())
        self._edges: dict[object, Edge] = {}
        self._interned: dict[tuple[Edge, tuple[Branch, ...] | None, bool], Branch] = {}
        self._serials: dict[Branch, int] = {}
        self._looks: dict[_Surroundings, Looks] = {}
        self.around: dict[int, _Surroundings] = self._as_far_as_affordable()

    def bound(self, target: int, step: float, moved: float, most: float) -> float:
        """Bound the leakage about one target; ∞ where there is no saying.

        Parameters
        ----------
        target
            Its position.
        step
            How many nats one step of the sum is worth.
        moved
            What it may cost in nats that a tuple's contributions were rounded to steps.
        most
            Bound on what is told of any tuple, whatever else is known.
        """
        tree, surroundings = self.tree, self.around[target]
        branches = surroundings.branches
        highest = int(self.points[target].max()) + sum(branch.highest for branch in branches)
        deepest = -math.fsum(branch.log_rarest for branch in branches)
        if not step * highest + deepest <= _DEEPEST:
            return math.inf
        if surroundings not in self._looks:
            looks = combined(self.points[target], branches)
            looks.laws[:, ~tree.supports[target]] = 0.0
            self._looks[surroundings] = looks
        looks = self._looks[surroundings]
        seen, prices = looks.seen, looks.prices(most)
        if looks.exposed.any() or math.isinf(prices.max()):
            return math.inf
        # All terms are positive, so every operation adds a unit. Each tuple is multiplied with an
        # edge, which may be turned round, and added up; merging sums adds up the shorter one.
        per_tuple = 5 * self._states + 8 + 2 * self.links.drift
        merging = (2 + np.log2(seen)) * self._highest_point
        units = 4 * UNIT_ROUNDOFF * seen * (per_tuple + merging)
        # A price is a sum with a term per tuple at most; contraction does not enlarge its rounding.
        prices = prices * (1 + 4 * UNIT_ROUNDOFF * seen) + moved * seen
        tiny = 1e-310 * math.exp(deepest)
        told = float(widest_of(looks.laws, looks.laws.sum(axis=2), prices, step, units, tiny))
        return max(0.0, told) * ROUND_UP

    def _as_far_as_affordable(self) -> dict[int, _Surroundings]:
        """Look one step further from every target while the work allows."""
        neighbours, targets = self.links.neighbours, self.knowledge.targets
        pairs = sum(len(near) ** 2 for near in neighbours)
        found: dict[int, _Surroundings] = {}
        if pairs > _EDGES or not self.links.is_accurate:
            return found
        behind = {
            (place, nearer): [(other, place) for other in neighbours[place] if other != nearer]
            for nearer, near in enumerate(neighbours)
            for place in near
        }
        edges = {ends: self._edge(*ends) for ends in behind}
        beyond: dict[_Ends, Branch] | None = None

        def branch(ends: _Ends, *, at_target: bool) -> Branch:
            further: tuple[Branch, ...] | None = None
            if beyond is not None:
                further = self._side_by_side([beyond[other] for other in behind[ends]])
            elif not behind[ends]:
                further = ()
            return self._branch(edges[ends], further, at_target=at_target)

        for _ in range(min(_FURTHEST, int(_EDGES // max(1, pairs)))):
            around = {
                target: _Surroundings(
                    self.points[target].tobytes(),
                    self.tree.supports[target].tobytes(),
                    self._side_by_side(
                        [branch((place, target), at_target=True) for place in neighbours[target]]
                    ),
                )
                for target in targets
            }
            views = set(around.values())
            if around == found or sum(map(self._numbers, views)) > _NUMBERS:
                break
            found = around
            prices = (sum(branch.highest_price for branch in view.branches) for view in views)
            if max(prices, default=0.0) <= _NEGLIGIBLE:
                break
            beyond = {ends: branch(ends, at_target=False) for ends in behind}
        return found

    def _edge(self, place: int, nearer: int) -> Edge:
        """Return the edge from `nearer` to a tuple, one object for all that are equal."""
        knowledge, known = self.knowledge, self.knowledge.known
        kernel, points = self.links.kernel(place, nearer), self.points[place]
        diameter = self.links.diameter(place, nearer)
        may_know = knowledge.most > 0 if known is None else place in known
        may_not = knowledge.fewest < knowledge.total - 1 if known is None else place not in known
        key = kernel.tobytes(), points.tobytes(), diameter, may_know, may_not
        if key not in self._edges:
            self._edges[key] = Edge(kernel, points, diameter, may_know=may_know, may_not=may_not)
        return self._edges[key]

    def _branch(self, edge: Edge, behind: tuple[Branch, ...] | None, *, at_target: bool) -> Branch:
        key = edge, behind, at_target
        if key not in self._interned:
            branch = Branch(edge, behind, at_target=at_target)
            self._interned[key] = branch
            self._serials[branch] = len(self._serials)
        return self._interned[key]

    def _side_by_side(self, branches: list[Branch]) -> tuple[Branch, ...]:
        if len(branches) > 1:
            branches.sort(key=self._serials.__getitem__)
        return tuple(branches)

    def _numbers(self, surroundings: _Surroundings) -> float:
        """Count the probabilities needed to look around a target."""
        branches = surroundings.branches
        highest = int(np.frombuffer(surroundings.points, dtype=np.int64).max())
        highest += sum(branch.highest for branch in branches)
        own = ways(branches) * len(surroundings.possible) * (highest + 1)
        return own + sum(branch.numbers for branch in set(branches))
