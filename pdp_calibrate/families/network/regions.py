"""The regions of a tree: a target and the unknown tuples connected with it by unknown tuples.

**Branches.** A tuple of a branch is either known to hold some value, which cuts off all tuples
behind it, or unknown; then the views of its own branches are combined in every way. A view of a
branch is the joint probability of the known values in it and of the sum over its unknown tuples,
given each value of the tuple that the branch is attached to.

Branches that repeat in a tree (equal kernels, contributions and branches behind) are one object,
so that each is computed once, and the order of equal branches at one tuple does not matter.

Views end at a horizon. There the last tuple, b, is taken as known, whatever its value, at a price:
a bound on what this leaves out. Let the leakage of all outputs about any one tuple be at most a,
whatever else is known. The likelihood of the outputs differs between two values of x_b by a factor
of at most e^a, and the law of x_b given the target averages it; so its leakage about the target is
at most a contracted along the path from b. The prices of several such tuples add up where their
paths meet, and are contracted together from there on. This requires that every x_b is possible
whatever else holds, which is so if the edge to b has no zeros; otherwise b is *exposed* and has no
price.

**Regions.** Given what is known, only the unknown tuples connected with the target matter: the
rest of the answer does not depend on the secret, and only adds noise. All releases of one query
with scales λ_m together have a likelihood g of the region's sum whose logarithm changes by at most
Σ_m 1/λ_m per unit. So they leak at most as much as the worst such g (`core.line_program`), region
by region. A single release with all of that budget has such a likelihood too.

Regions reach as far from the target as the work allows; beyond, there is a price (`Branch`).
Targets with equal surroundings are computed once.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contraction import contracted
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.mixtures import LARGEST_EXPONENT, Lattice, lattice_of
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import (
    NEGLIGIBLE,
    REGION_EDGES,
    REGION_LATTICE,
    REGION_NUMBERS,
    REGION_REACH,
    REGION_TUPLES,
    WORTHWHILE,
)
from pdp_calibrate.core.workers import load_kernels, lower_largest
from pdp_calibrate.families.network.tree import MarkovTree

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Views:
    """All views of a tuple and its branches."""

    laws: FloatArray
    """Probabilities [view, value of the tuple, sum]."""
    joins: tuple[tuple[Branch, IntArray, IntArray], ...]
    """For each branch in turn: which view so far and which view of it make each new view."""

    def prices(self, most: float) -> FloatArray:
        """Return how much, in nats, tuples beyond the horizon may add to each unexposed view."""
        return self._added_up(lambda branch: branch.prices(most))

    @functools.cached_property
    def seen(self) -> FloatArray:
        """How many tuples each view is about, the last known ones included."""
        return 1 + self._added_up(lambda branch: branch.seen)

    @functools.cached_property
    def masses(self) -> FloatArray:
        """The probability of each view, given each value of the tuple."""
        return np.asarray(self.laws.sum(axis=2))

    @functools.cached_property
    def exposed(self) -> npt.NDArray[np.bool_]:
        """Which views have an exposed tuple at the horizon."""
        return np.asarray(self._added_up(lambda branch: branch.exposed) > 0)

    def _added_up(self, of_branch: Callable[[Branch], FloatArray]) -> FloatArray:
        total = np.zeros(1)
        for branch, before, added in self.joins:
            total = total[before] + of_branch(branch)[added]
        return total


class Edge:
    """A tuple as seen from the neighbour it is attached to, whatever lies behind it.

    Parameters
    ----------
    kernel
        P(tuple | neighbour).
    points
        What each value of the tuple adds to the sum, in steps from zero.
    diameter
        Of the kernel, in Hilbert's metric.
    may_know, may_not
        Whether adversaries may know the tuple, and whether they may not.
    """

    def __init__(
        self,
        kernel: FloatArray,
        points: IntArray,
        diameter: float,
        *,
        may_know: bool,
        may_not: bool,
    ) -> None:
        self.kernel, self.points, self.diameter = kernel, points, diameter
        self.may_know, self.may_not = may_know, may_not
        self.highest = int(points.max())
        self.log_rarest = math.log(float(kernel[kernel > 0].min()))
        self.known: FloatArray = kernel[:, np.any(kernel > 0, axis=0)].T
        """Probabilities of each value [value, value of the neighbour]."""
        self.known_at_target: FloatArray = np.unique(self.known > 0, axis=0).astype(np.float64)
        """The same where the neighbour is the target itself: a known value then tells nothing more,
        and values differ only in the secrets that they rule out."""


class Branch:
    """A tuple and all that lies behind it, seen from the neighbour it is attached to.

    Parameters
    ----------
    edge
        The tuple and its neighbour.
    behind
        Further branches, equal ones side by side; None at the horizon.
    at_target
        Whether the neighbour is the target itself.
    """

    def __init__(
        self, edge: Edge, behind: tuple[Branch, ...] | None, *, at_target: bool = False
    ) -> None:
        self.kernel, self.points, self.diameter = edge.kernel, edge.points, edge.diameter
        self.may_not = edge.may_not and behind is not None
        self.is_far = edge.may_not and behind is None
        self.known = edge.known_at_target if at_target else edge.known
        if not (edge.may_know or self.is_far):
            self.known = self.known[:0]
        self.behind: tuple[Branch, ...] = behind if behind and edge.may_not else ()
        self.highest: int = edge.highest + sum(branch.highest for branch in self.behind)
        self.log_rarest: float = edge.log_rarest + sum(other.log_rarest for other in self.behind)
        self.highest_price: float = contracted(
            edge.diameter,
            math.inf if self.is_far else sum(other.highest_price for other in self.behind),
        )
        """The highest price of what lies beyond the horizon, whatever is learned about it."""
        self._priced: tuple[float, FloatArray] = (-1.0, np.zeros(0))

    @functools.cached_property
    def count(self) -> int:
        """How many views there are at most."""
        return len(self.known) + (ways(self.behind) if self.may_not else 0)

    @functools.cached_property
    def numbers(self) -> float:
        """How many probabilities all its views, and those of branches behind it, have at most."""
        own = float(self.count) * len(self.kernel) * (self.highest + 1)
        return own + sum(branch.numbers for branch in set(self.behind))

    @functools.cached_property
    def inner(self) -> Views | None:
        """All views of the tuple itself, where it may be unknown."""
        return combined(self.points, self.behind) if self.may_not else None

    @functools.cached_property
    def laws(self) -> FloatArray:
        """Probabilities [view, value of the neighbour, sum]; views of the known tuple first."""
        known = self.known[:, :, np.newaxis]
        if self.inner is None:
            return known
        unknown = np.matmul(self.kernel, self.inner.laws)
        known = np.pad(known, ((0, 0), (0, 0), (0, unknown.shape[2] - 1)))
        return np.concatenate([known, unknown])

    @functools.cached_property
    def seen(self) -> FloatArray:
        """How many tuples each view is about."""
        inner = np.zeros(0) if self.inner is None else self.inner.seen
        return np.concatenate([np.ones(len(self.known)), inner])

    @functools.cached_property
    def exposed(self) -> FloatArray:
        """How many exposed tuples each view has at the horizon."""
        inner = np.zeros(0) if self.inner is None else self.inner.exposed
        here = float(self.is_far and math.isinf(self.diameter))
        return np.concatenate([np.full(len(self.known), here), inner])

    def prices(self, most: float) -> FloatArray:
        """Return the price of each view, if the leakage about any tuple is at most `most`."""
        if self._priced[0] != most:
            inner = np.zeros(0) if self.inner is None else self.inner.prices(most)
            distinct, which = np.unique(inner, return_inverse=True)
            carried = np.array([contracted(self.diameter, float(price)) for price in distinct])
            far = contracted(self.diameter, most) if self.is_far else 0.0
            prices = np.concatenate([np.full(len(self.known), far), carried[which]])
            self._priced = most, prices
        return self._priced[1]


def combined(points: IntArray, branches: Sequence[Branch]) -> Views:
    """Return all views of a tuple together with its branches; equal branches side by side."""
    laws = np.zeros((1, len(points), int(points.max()) + 1))
    laws[0, np.arange(len(points)), points] = 1.0
    last, joins = np.zeros(1, dtype=np.int64), []
    for place, branch in enumerate(branches):
        is_again = place > 0 and branch is branches[place - 1]
        begins = last if is_again else np.zeros_like(last)
        before = np.repeat(np.arange(len(laws)), len(branch.laws) - begins)
        last = np.concatenate([np.arange(begin, len(branch.laws)) for begin in begins])
        laws = _convolved(laws[before], branch.laws[last])
        possible = np.any(laws > 0, axis=(1, 2))
        laws, last = laws[possible], last[possible]
        joins.append((branch, before[possible], last))
    return Views(laws, tuple(joins))


def ways(branches: Iterable[Branch]) -> int:
    """Count the views of several branches: multisets of views where branches are equal."""
    number = 1
    for branch, equal in itertools.groupby(branches):
        times = sum(1 for _ in equal)
        number *= math.comb(branch.count + times - 1, times)
    return number


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Add independent sums, view by view and value by value."""
    longer, shorter = (one, other) if one.shape[2] >= other.shape[2] else (other, one)
    size = longer.shape[2]
    found = np.zeros((*longer.shape[:2], size + shorter.shape[2] - 1))
    np.multiply(longer, shorter[:, :, :1], out=found[:, :, :size])
    moved = np.empty_like(longer)
    for step in range(1, shorter.shape[2]):
        np.multiply(longer, shorter[:, :, step : step + 1], out=moved)
        found[:, :, step : step + size] += moved
    return found


_Ends = tuple[int, int]  # (outer tuple, its neighbour on the way to a target)


class _Surroundings(NamedTuple):
    """The surroundings of a target; targets with equal surroundings leak the same."""

    points: bytes
    possible: bytes
    branches: tuple[Branch, ...]


class Regions:
    """All regions of a tree, prepared for noise of any scale.

    Parameters
    ----------
    problem
        A tree, a query of one number and the adversaries. How many tuples they may know does not
        matter here, only whether they may know any.
    """

    def __init__(self, problem: Problem) -> None:
        tree = problem.model
        if not isinstance(tree, MarkovTree):
            raise TypeError(f"only Markov trees have regions, got {tree!r}.")
        self.tree, self.knowledge, self.links = tree, problem.knowledge, tree.links
        self.lattice = _lattice(problem.contributions)
        points = self.lattice.points  # rows may be longer than their domains
        self.points = [row[: len(domain)] for row, domain in zip(points, tree.domains, strict=True)]
        self._states, self._highest_point = max(map(len, tree.domains)), int(points.max())
        self._alone = np.zeros(len(tree.names))
        if self.knowledge.admits_strongest and not problem.hidden_noise:
            # An adversary who knows all others compares all secrets, impossible ones too.
            self._alone = problem.contributions.tuple_ranges()
        self._edges: dict[object, Edge] = {}
        self._interned: dict[tuple[Edge, tuple[Branch, ...] | None, bool], Branch] = {}
        self._serials: dict[Branch, int] = {}
        self._views: dict[_Surroundings, Views] = {}
        self.around: dict[int, _Surroundings] = self._as_far_as_affordable()

    def bounds(
        self, highest: FloatArray, scale: float, *, enough: float = 0.0, deadline: float = math.inf
    ) -> FloatArray:
        """Lower given bounds on the leakage about each tuple to those of its regions.

        Parameters
        ----------
        highest
            A bound on the leakage about each tuple that is known already.
        scale
            The scale λ, or 1/Σ_m 1/λ_m for repeats.
        enough
            Bounds below this need not be lowered.
        deadline
            Value of `time.monotonic()` after which no further target is taken up.
        """
        knowledge = self.knowledge
        bounds, before = self._lowered(highest, scale, enough, deadline), highest
        everyone = knowledge.admits_strongest and len(knowledge.targets) == knowledge.total
        while everyone and enough < bounds.max() < WORTHWHILE * before.max():
            # With lower bounds about tuples beyond the horizon, prices are lower too.
            bounds, before = self._lowered(bounds, scale, enough, deadline), bounds
        return bounds

    def _lowered(
        self, bounds: FloatArray, scale: float, enough: float, deadline: float
    ) -> FloatArray:
        """Lower the bounds once; about tuples beyond the horizon at most `bounds.max()` leaks."""
        lattice = self.lattice
        step, moved = lattice.step / scale, 2 * float(lattice.errors.max()) / scale
        alone = self._alone / scale * ROUND_UP
        found, most = np.array(bounds), float(bounds.max())
        seen: dict[_Surroundings, float] = {}

        def lowered(target: int) -> float:
            surroundings = self.around[target]
            if surroundings not in seen:
                seen[surroundings] = self.bound(target, step, moved, most)
            return max(seen[surroundings], float(alone[target]))

        lower_largest(
            found, self.around, lowered, enough=enough, is_over=lambda: time.monotonic() > deadline
        )
        return found

    def bound(self, target: int, step: float, moved: float, most: float) -> float:
        """Bound the leakage about one target; ∞ where nothing can be said.

        Parameters
        ----------
        target
            Its position.
        step
            How many nats one step of the sum is worth.
        moved
            How much, in nats, rounding a tuple's contributions to steps may change the leakage.
        most
            Bound on the leakage about any tuple, whatever else is known.
        """
        tree, surroundings = self.tree, self.around[target]
        branches = surroundings.branches
        highest = int(self.points[target].max()) + sum(branch.highest for branch in branches)
        deepest = -math.fsum(branch.log_rarest for branch in branches)
        if not step * highest + deepest <= LARGEST_EXPONENT:
            return math.inf
        if surroundings not in self._views:
            views = combined(self.points[target], branches)
            views.laws[:, ~tree.supports[target]] = 0.0
            self._views[surroundings] = views
        views = self._views[surroundings]
        seen, prices = views.seen, views.prices(most)
        if views.exposed.any() or math.isinf(prices.max()):
            return math.inf
        # All terms are positive, so every operation adds a unit. Each tuple is multiplied with an
        # edge, which may be reversed, and added up; merging sums adds up the shorter one.
        per_tuple = 5 * self._states + 8 + 2 * self.links.drift
        merging = (2 + np.log2(seen)) * self._highest_point
        units = 4 * UNIT_ROUNDOFF * seen * (per_tuple + merging)
        # A price is a sum with a term per tuple at most; contraction does not enlarge its rounding.
        prices = prices * (1 + 4 * UNIT_ROUNDOFF * seen) + moved * seen
        tiny = 1e-310 * math.exp(deepest)
        kernels = load_kernels("pdp_calibrate.core.line_program_kernels")
        widest = float(kernels.widest_of(views.laws, views.masses, prices, step, units, tiny))
        return max(0.0, widest) * ROUND_UP

    def _as_far_as_affordable(self) -> dict[int, _Surroundings]:
        """Let views reach one step further from every target while the work allows."""
        neighbours, targets = self.links.neighbours, self.knowledge.targets
        pairs = sum(len(near) ** 2 for near in neighbours)
        found: dict[int, _Surroundings] = {}
        if pairs > REGION_EDGES or not self.links.is_accurate:
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

        for _ in range(min(REGION_REACH, int(REGION_EDGES // max(1, pairs)))):
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
            different = set(around.values())
            if around == found or sum(map(self._numbers, different)) > REGION_NUMBERS:
                break
            found = around
            prices = (sum(branch.highest_price for branch in one.branches) for one in different)
            if max(prices, default=0.0) <= NEGLIGIBLE:
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
        """Count the probabilities needed for all views around a target."""
        branches = surroundings.branches
        highest = int(np.frombuffer(surroundings.points, dtype=np.int64).max())
        highest += sum(branch.highest for branch in branches)
        own = ways(branches) * len(surroundings.possible) * (highest + 1)
        return own + sum(branch.numbers for branch in set(branches))


def _lattice(contributions: Contributions) -> Lattice:
    values = [array[:, 0] - array[:, 0].min() for array in contributions.values]
    added = np.zeros((len(values), max(map(len, values))))
    for row, value in zip(added, values, strict=True):
        row[: len(value)] = value
    return lattice_of(added, min(len(values), REGION_TUPLES), REGION_LATTICE)
