"""The limits r → ±∞ on a tree, for the lower end of the bracket.

There the density is E[e^{±f/λ} | x_i, x_K], in which the branches at x_i are factors. A branch is
left unknown where that helps, and else cut off by knowing the neighbour. Two passes, one towards
the root and one away from it, weigh every branch at every tuple.

The worst adversary of a Markov tree.

Above: Birkhoff's bound (`contraction`) or the regions around a target (`regions`), whichever is
lower. Below: plain DP and the limits r → ±∞ (`limits`).
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
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.plain_dp import ROUND_UP, as_one, nobody, plain_dp, search_table
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import LOG_SMALLEST, MAXIMAL_CELLS, MAXIMAL_TUPLES, JointTable
from pdp_calibrate.families.network.contraction import links_of, tree_bounds
from pdp_calibrate.families.network.regions import region_bounds
from pdp_calibrate.families.network.tree import MarkovTree

_LARGEST = 2**22  # numbers in the arrays of one pass


def attained(problem: Problem, tree: MarkovTree, scale: float) -> Bracket:
    """Return the best limit r → ±∞, over all targets, that was found.

    None where probabilities underflow: edges cannot be turned round there.
    """
    best = nobody(problem)
    states = max(map(len, tree.domains))
    if problem.knowledge.known is not None or len(tree.names) * states**2 > _LARGEST:
        return best
    if not links_of(tree).is_accurate:
        return best
    for sign in (1, -1):
        limit = _limit(problem, tree, scale, sign)
        if limit is not None and limit.lower > best.lower:
            best = limit
    return best


class _Layers:
    """A tree in arrays, domains filled up with impossible values; its tuples by their depth."""

    def __init__(self, tree: MarkovTree) -> None:
        links, size = links_of(tree), len(tree.names)
        states = max(map(len, tree.domains))
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


@functools.lru_cache(maxsize=4)
def _layers_of(tree: MarkovTree) -> _Layers:
    return _Layers(tree)


class _Messages(NamedTuple):
    """What branches say, in logarithms up to a constant."""

    upwards: FloatArray
    """log E[e^{±f/λ} over the tuple and all below it | its parent], per value of the parent."""
    downwards: FloatArray
    """log E[e^{±f/λ} over all else | the tuple], per value of the tuple."""
    per_step: float
    """Bound on the rounded operations of one message, in units."""


def _messages(tree: MarkovTree, tilts: FloatArray) -> _Messages:
    layers = _layers_of(tree)
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
    # What one branch says is also told from what all branches say, in up to as many roundings.
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


def _limit(problem: Problem, tree: MarkovTree, scale: float, sign: int) -> Bracket | None:
    """Compare two secrets at r → ±∞, each branch unknown or cut off, whichever tells more."""
    knowledge, layers = problem.knowledge, _layers_of(tree)
    tilts = np.zeros(layers.possible.shape)
    for place, array in enumerate(problem.contributions.values):
        tilts[place, : len(array)] = sign * (array[:, 0] - array[:, 0].min()) / scale
    messages = _messages(tree, tilts)
    target, one, other = _most_promising(tree, tilts, messages, knowledge.targets)
    links = links_of(tree)
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
    tree: MarkovTree, tilts: FloatArray, messages: _Messages, targets: tuple[int, ...]
) -> tuple[int, int, int]:
    """Return the target and secrets that tell most, if every branch may be cut off."""
    layers = _layers_of(tree)

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


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Bracket:
    """Find the worst adversary of a tree; see `engines.tables.search`.

    Exact where the joint table has at most 2²² cells, within the time allowed. Beyond, a bracket:
    Birkhoff's bound or regions above, plain DP and the limits r → ±∞ below.
    """
    tree, contributions = problem.model, problem.contributions
    if not isinstance(tree, MarkovTree):
        raise TypeError(f"this engine searches Markov trees, got {tree!r}.")
    joint = _table(tree) if _fits_a_table(tree) or contributions.table is not None else None
    if contributions.table is not None and joint is not None:
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    bounds = tree_bounds(tree, contributions.tuple_ranges() / scale, problem.knowledge)
    best = _plain(problem, tree, scale)
    if best is not None and best.upper >= bounds[list(problem.knowledge.targets)].max():
        return best
    if joint is None:
        return _between(problem, tree, scale, bounds, best, incumbent, deadline)
    return _in_table(problem, joint, scale, bounds, best, incumbent, deadline)


def _between(
    problem: Problem,
    tree: MarkovTree,
    scale: float,
    bounds: FloatArray,
    best: Bracket | None,
    incumbent: float,
    deadline: float,
) -> Bracket:
    """Return the best bound there is, and the best limit below it."""
    contributions, targets = problem.contributions, problem.knowledge.targets
    enough = incumbent if best is None else max(incumbent, best.upper)
    if contributions.coordinates == 1:
        bounds = region_bounds(problem, bounds, scale, enough=enough, deadline=deadline)
    elif (together := as_one(contributions, scale)) is not None:
        once, rounding = together
        repeated = dataclasses.replace(problem, contributions=once)
        regions = region_bounds(repeated, bounds, 1.0, enough=enough, deadline=deadline)
        bounds = np.minimum(bounds, (regions + rounding) * ROUND_UP)
    target = max(targets, key=lambda position: bounds[position])
    bound = _bound(problem, bounds, target)
    if contributions.coordinates > 1:
        return bound
    found = attained(problem, tree, scale)
    found = found if best is None else best.with_lower(found)
    return bound.with_lower(found)


def _in_table(
    problem: Problem,
    joint: JointTable,
    scale: float,
    bounds: FloatArray,
    best: Bracket | None,
    incumbent: float,
    deadline: float,
) -> Bracket:
    """Search the joint table, about those targets only that could be worse than what is known."""
    knowledge = problem.knowledge
    enough = incumbent if best is None else max(incumbent, best.upper)
    open_targets = tuple(t for t in knowledge.targets if bounds[t] > enough)
    closed = [t for t in knowledge.targets if bounds[t] <= enough]
    found = best
    if closed:
        covered = _bound(problem, bounds, max(closed, key=lambda position: bounds[position]))
        found = covered if found is None else found.or_worse(covered)
    if open_targets:
        some = dataclasses.replace(
            problem, knowledge=dataclasses.replace(knowledge, targets=open_targets)
        )
        searched = search_table(some, joint, scale, incumbent=enough, deadline=deadline)
        highest = _bound(problem, bounds, max(open_targets, key=lambda t: bounds[t]))
        searched = searched if searched.upper <= highest.upper else highest.with_lower(searched)
        found = searched if found is None else found.or_worse(searched)
    return nobody(problem) if found is None else found


def _bound(problem: Problem, bounds: FloatArray, target: int) -> Bracket:
    """Return the bound about one target, as if everyone were unknown who may be."""
    known = problem.knowledge.known or frozenset()
    places = range(len(problem.names))
    return Bracket(
        upper=float(bounds[target]),
        lower=0.0,
        witness=None,
        target=target,
        unknown=tuple(p for p in places if p != target and p not in known),
    )


def _plain(problem: Problem, tree: MarkovTree, scale: float) -> Bracket | None:
    """Return what those who know everyone else learn, where there are any."""
    knowledge = problem.knowledge
    if not knowledge.admits_strongest or problem.hidden_noise:
        return None
    if problem.contributions.coordinates > 1:
        return None
    ranges = problem.contributions.tuple_ranges()
    widest = max(knowledge.targets, key=lambda position: ranges[position])
    return plain_dp(problem, widest, scale, _likely_course(tree))


@functools.lru_cache(maxsize=2)
def _table(tree: MarkovTree) -> JointTable:
    return tree.to_table()


def _fits_a_table(tree: MarkovTree) -> bool:
    cells = math.prod(len(domain) for domain in tree.domains[:MAXIMAL_TUPLES])
    small = len(tree.names) <= MAXIMAL_TUPLES and cells <= MAXIMAL_CELLS
    return small and tree.log_rarest() > LOG_SMALLEST


def _likely_course(tree: MarkovTree) -> dict[int, int]:
    """Return possible values of all tuples, by position."""
    course: dict[int, int] = {}
    for place in tree.order:
        parent, kernel = tree.parents[place], tree.kernels[place]
        course[place] = int((kernel if parent is None else kernel[course[parent]]).argmax())
    return course


class TreeEngine:
    """Searches one problem at many scales."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Find the worst adversary at one scale; see `core.family.Engine`."""
        del enough
        return search(self.problem, scale, incumbent=incumbent, deadline=deadline)
