"""The worst adversary of a Markov tree.

Small trees are searched as joint tables. Of others there is a bracket. Above: Birkhoff's bound
(`contraction`) or the regions around a target (`regions`), whichever is lower. Below: plain DP and
the limits r → ±∞.

**The limits.** There the density is E[e^{±f/λ} | x_i, x_K], in which the branches at x_i are
factors. A branch is left unknown where that helps, and else cut off by knowing the neighbour. Two
passes, one towards the root and one away from it, weigh every branch at every tuple.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.plain_dp import WrittenOut, as_one, nobody, plain_dp
from pdp_calibrate.core.problem import Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.table import ANY_TABLE
from pdp_calibrate.core.tuning import TREE_ARRAYS
from pdp_calibrate.families.network.contraction import tree_bounds
from pdp_calibrate.families.network.regions import Regions
from pdp_calibrate.families.network.tree import MarkovTree


class Preparation:
    """What searches need to know whoever the adversaries are, worked out when first needed."""

    def __init__(self, problem: Problem, tree: MarkovTree) -> None:
        self.problem, self.tree = problem, tree

    @functools.cached_property
    def written(self) -> WrittenOut:
        """The problem as one about a joint table."""
        return WrittenOut.of(self.problem, self.tree.to_table())

    @functools.cached_property
    def layers(self) -> _Layers | None:
        """The tree in arrays; None where they were too large, or edges cannot be turned round."""
        states = max(map(len, self.tree.domains))
        if len(self.tree.names) * states**2 > TREE_ARRAYS or not self.tree.links.is_accurate:
            return None
        return _Layers(self.tree, self.problem.contributions)

    @functools.cached_property
    def course(self) -> dict[int, int]:
        """Possible values of all tuples, by position."""
        tree, course = self.tree, dict[int, int]()
        for place in tree.order:
            parent, kernel = tree.parents[place], tree.kernels[place]
            course[place] = int((kernel if parent is None else kernel[course[parent]]).argmax())
        return course


class TreeEngine(Engine):
    """Searches the joint table of a small tree; brackets a large one.

    Exact where the joint table has at most 2²² cells, within the time allowed. Beyond, a bracket:
    Birkhoff's bound or regions above, plain DP and the limits r → ±∞ below.

    Parameters
    ----------
    problem
        The tree, what its tuples add, and who attacks them.
    prepared
        What an engine for the same tree and answers has prepared.
    """

    def __init__(self, problem: Problem, *, prepared: Preparation | None = None) -> None:
        tree, contributions = problem.model, problem.contributions
        if not isinstance(tree, MarkovTree):
            raise TypeError(f"this engine searches Markov trees, got {tree!r}.")
        self.problem, self.tree = problem, tree
        self.prepared = Preparation(problem, tree) if prepared is None else prepared
        self._in_table = contributions.table is not None or _fits_a_table(tree)
        self._about_some: tuple[tuple[int, ...], WrittenOut] | None = None

    def against(self, problem: Problem) -> TreeEngine:
        """Return an engine for the same tree and answers; see `core.problem.Sharing`."""
        return TreeEngine(problem, prepared=self.prepared)

    @functools.cached_property
    def _written(self) -> WrittenOut:
        return self.prepared.written.against(self.problem)

    @functools.cached_property
    def _regions(self) -> Regions | None:
        """The regions of the answer, or of the number that all its coordinates repeat."""
        if self.problem.contributions.coordinates == 1:
            return Regions(self.problem)
        once = as_one(self.problem.contributions)
        if once is None:
            return None
        return Regions(dataclasses.replace(self.problem, contributions=once))

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        contributions, knowledge = self.problem.contributions, self.problem.knowledge
        if contributions.table is not None:
            return self._written.search(scale, limits)
        bounds = tree_bounds(self.tree, contributions.tuple_ranges() / scale, knowledge)
        best = self._plain(scale)
        if best is not None and best.upper >= bounds[list(knowledge.targets)].max():
            return best
        # Whoever cannot leak more than this need not be told apart.
        if best is not None:
            limits = limits.above(best.upper)
        find = self._searched if self._in_table else self._between
        return find(scale, bounds, best, limits)

    def _plain(self, scale: float) -> Bracket | None:
        """Return what those who know everyone else learn, where there are any."""
        knowledge, contributions = self.problem.knowledge, self.problem.contributions
        if not knowledge.admits_strongest or self.problem.hidden_noise:
            return None
        if contributions.coordinates > 1:
            return None
        ranges = contributions.tuple_ranges()
        widest = max(knowledge.targets, key=lambda position: ranges[position])
        return plain_dp(self.problem, widest, scale, self.prepared.course)

    def _between(
        self, scale: float, bounds: FloatArray, best: Bracket | None, limits: Limits
    ) -> Bracket:
        """Return the best bound there is, and the best limit below it."""
        contributions, targets = self.problem.contributions, self.problem.knowledge.targets
        times = contributions.coordinates
        if self._regions is not None:
            lowered = self._regions.bounds(
                bounds, scale / times, enough=limits.incumbent, deadline=limits.deadline
            )
            if times > 1:
                # Steps divided by a rounded scale: a few units of how far the answer reaches.
                rounding = 8 * UNIT_ROUNDOFF * contributions.magnitude * times / scale
                lowered = np.minimum(bounds, (lowered + rounding) * ROUND_UP)
            bounds = lowered
        target = max(targets, key=lambda position: bounds[position])
        bound = self._bound(bounds, target)
        if times > 1:
            return bound
        found = self._attained(scale)
        found = found if best is None else best.with_lower(found)
        return bound.with_lower(found)

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
            table = self._written_about(open_targets)
            searched = table.search(scale, limits)
            highest = self._bound(bounds, max(open_targets, key=lambda t: bounds[t]))
            searched = searched if searched.upper <= highest.upper else highest.with_lower(searched)
            found = searched if found is None else found.or_worse(searched)
        return nobody(self.problem) if found is None else found

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
        """Return the bound about one target, as if everyone were unknown who may be."""
        known = self.problem.knowledge.known or frozenset()
        places = range(len(self.problem.names))
        return Bracket(
            upper=float(bounds[target]),
            lower=0.0,
            witness=None,
            target=target,
            unknown=tuple(p for p in places if p != target and p not in known),
        )

    def _attained(self, scale: float) -> Bracket:
        """Return the best limit r → ±∞, over all targets, that was found."""
        best, layers = nobody(self.problem), self.prepared.layers
        if self.problem.knowledge.known is not None or layers is None:
            return best
        for sign in (1, -1):
            limit = _limit(self.problem, layers, scale, sign)
            if limit is not None and limit.lower > best.lower:
                best = limit
        return best


def _fits_a_table(tree: MarkovTree) -> bool:
    return ANY_TABLE.admits(list(map(len, tree.domains)), tree.log_rarest())


class _Layers:
    """A tree in arrays, domains filled up with impossible values; its tuples by their depth."""

    def __init__(self, tree: MarkovTree, contributions: Contributions) -> None:
        links, size = tree.links, len(tree.names)
        states = max(map(len, tree.domains))
        self.tree = tree
        self.added = np.zeros((size, states))
        for place, array in enumerate(contributions.values):
            self.added[place, : len(array)] = array[:, 0] - array[:, 0].min()
        self.parents = np.array([-1 if parent is None else parent for parent in tree.parents])
        downwards, upwards = np.zeros((2, size, states, states))
        self.possible = np.zeros((size, states), dtype=np.bool_)
        depths = np.zeros(size, dtype=np.int64)
        for place in tree.order:
            own, parent = len(tree.domains[place]), tree.parents[place]
            self.possible[place, :own] = tree.supports[place]
            if parent is not None:
                above = len(tree.domains[parent])
                downwards[place, :above, :own] = links.kernel(place, parent)
                upwards[place, :own, :above] = links.kernel(parent, place)
                depths[place] = depths[parent] + 1
        with np.errstate(divide="ignore"):
            self.downwards, self.upwards = np.log(downwards), np.log(upwards)
        order = np.argsort(depths, kind="stable")[1:]
        self.layers = np.split(order, np.flatnonzero(np.diff(depths[order])) + 1)


class _Messages(NamedTuple):
    """What branches say, in logarithms up to a constant."""

    upwards: FloatArray
    """log E[e^{±f/λ} over the tuple and all below it | its parent], per value of the parent."""
    downwards: FloatArray
    """log E[e^{±f/λ} over all else | the tuple], per value of the tuple."""
    per_step: float
    """Bound on the rounded operations of one message, in units."""


def _messages(layers: _Layers, tilts: FloatArray) -> _Messages:
    parents = layers.parents
    upwards, downwards = np.zeros_like(tilts), np.zeros_like(tilts)
    below, largest = np.array(tilts), 0.0
    for layer in reversed(layers.layers):
        upwards[layer], size = _log_means(layers.downwards[layer], below[layer])
        np.add.at(below, parents[layer], upwards[layer])
        largest = max(largest, size)
    whole = below
    for layer in layers.layers:
        others = whole[parents[layer]] - upwards[layer]
        downwards[layer], size = _log_means(layers.upwards[layer], others)
        whole[layer] += downwards[layer]
        largest = max(largest, size)
    most = 1 + int(np.bincount(parents[parents >= 0], minlength=1).max())
    # What one branch says is also worked out from what all branches say, in as many roundings.
    return _Messages(upwards, downwards, tilts.shape[1] + 12 + (4 + most) * largest)


def _log_means(log_kernels: FloatArray, logs: FloatArray) -> tuple[FloatArray, float]:
    """Return log Σ_w P(w|v)·e^{logs_w}, at most 0, and the largest size of a term."""
    terms = log_kernels + logs[:, np.newaxis, :]
    peaks = terms.max(axis=2)
    possible = np.isfinite(peaks)
    peaks[~possible] = 0.0
    sums = np.exp(terms - peaks[:, :, np.newaxis]).sum(axis=2)
    found = np.where(possible, peaks + np.log(np.where(possible, sums, 1.0)), -np.inf)
    highest = found.max(axis=1, keepdims=True)
    found = np.where(possible, found - highest, 0.0)
    return found, float(np.abs(terms[np.isfinite(terms)]).max(initial=0.0))


def _limit(problem: Problem, layers: _Layers, scale: float, sign: int) -> Bracket | None:
    """Compare two secrets at r → ±∞, each branch unknown or cut off, whichever tells more."""
    knowledge, tree = problem.knowledge, layers.tree
    links, tilts = tree.links, sign * layers.added / scale
    messages = _messages(layers, tilts)
    target, one, other = _most_promising(layers, tilts, messages, knowledge.targets)
    gain, cut = float(tilts[target, one] - tilts[target, other]), dict[int, int]()
    for neighbour in links.neighbours[target]:
        is_above = tree.parents[target] == neighbour
        said = messages.downwards[target] if is_above else messages.upwards[neighbour]
        step, kernel = float(said[one] - said[other]), links.kernel(neighbour, target)
        shared = (kernel[one] > 0) & (kernel[other] > 0)
        if step < 0 and len(cut) < knowledge.most and shared.any():
            cut[neighbour] = int((kernel[one] * shared).argmax())
        else:
            gain += step
    if one == other or len(cut) < knowledge.fewest:
        return None
    error = 8 * UNIT_ROUNDOFF * ((len(tree.names) + 4) * messages.per_step + abs(gain))
    domains = tree.domains
    return Bracket(
        upper=0.0,
        lower=max(0.0, gain - error),
        witness=Witness(
            target=problem.names[target],
            known={problem.names[place]: domains[place][value] for place, value in cut.items()},
            secrets=(domains[target][one], domains[target][other]),
            output=sign * math.inf,
            model=tree,
            index=problem.index,
        ),
        target=target,
        unknown=(),
    )


def _most_promising(
    layers: _Layers, tilts: FloatArray, messages: _Messages, targets: tuple[int, ...]
) -> tuple[int, int, int]:
    """Return the target and secrets that tell most, if every branch may be cut off."""

    def apart(logs: FloatArray) -> npt.NDArray[np.float64]:
        return np.asarray(logs[:, :, np.newaxis] - logs[:, np.newaxis, :])

    gains = apart(tilts) + np.maximum(apart(messages.downwards), 0.0)
    children = np.flatnonzero(layers.parents >= 0)
    said = np.maximum(apart(messages.upwards[children]), 0.0)
    np.add.at(gains, layers.parents[children], said)
    possible = layers.possible[:, :, np.newaxis] & layers.possible[:, np.newaxis, :]
    possible[np.setdiff1d(np.arange(len(gains)), targets)] = False
    best = np.where(possible, gains, -np.inf).argmax()
    target, one, other = map(int, np.unravel_index(best, gains.shape))
    return target, one, other
