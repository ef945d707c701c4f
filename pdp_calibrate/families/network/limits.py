"""What an adversary learns from the answer about a tree in the limits r → ±∞: a lower end.

There the density is E[e^{±f/λ} | x_i, x_K], a product with one factor for each branch at x_i. A
branch is left unknown where that raises the leakage; otherwise the adversary knows the neighbour,
which cuts the branch off. Two passes, one towards the root and one away from it, give the factors
of all branches at every tuple.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import TREE_ARRAYS
from pdp_calibrate.families.network.tree import MarkovTree


class Layers:
    """A tree in arrays, domains filled up with impossible values; its tuples by their depth."""

    @classmethod
    def of(cls, tree: MarkovTree, contributions: Contributions) -> Layers | None:
        """Return the tree in arrays; None if it is too large, or its edges cannot be reversed."""
        states = max(map(len, tree.domains))
        if len(tree.names) * states**2 > TREE_ARRAYS or not tree.links.is_accurate:
            return None
        return cls(tree, contributions)

    def best_limit(self, problem: Problem, scale: float) -> Bracket:
        """Return the best limit r → ±∞, over all targets, that was found."""
        best = problem.nobody()
        if problem.knowledge.known is not None:
            return best
        for sign in (1, -1):
            limit = _limit(problem, self, scale, sign)
            if limit is not None and limit.lower > best.lower:
                best = limit
        return best

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
    """The messages of branches, in logarithms up to a constant."""

    upwards: FloatArray
    """log E[e^{±f/λ} over the tuple and all below it | its parent], per value of the parent."""
    downwards: FloatArray
    """log E[e^{±f/λ} over all else | the tuple], per value of the tuple."""
    per_step: float
    """Bound on the rounded operations of one message, in units."""


def _messages(layers: Layers, tilts: FloatArray) -> _Messages:
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
    # Messages downwards subtract one branch from the sum of all: as many more roundings.
    return _Messages(upwards, downwards, tilts.shape[1] + 12 + (4 + most) * largest)


def _log_means(log_kernels: FloatArray, logs: FloatArray) -> tuple[FloatArray, float]:
    """Return log Σ_w P(w|v)·e^{logs_w}, less the largest of them, and the largest |term|."""
    terms = log_kernels + logs[:, np.newaxis, :]
    peaks = terms.max(axis=2)
    possible = np.isfinite(peaks)
    peaks[~possible] = 0.0
    sums = np.exp(terms - peaks[:, :, np.newaxis]).sum(axis=2)
    found = np.where(possible, peaks + np.log(np.where(possible, sums, 1.0)), -np.inf)
    highest = found.max(axis=1, keepdims=True)
    found = np.where(possible, found - highest, 0.0)
    return found, float(np.abs(terms[np.isfinite(terms)]).max(initial=0.0))


def _limit(problem: Problem, layers: Layers, scale: float, sign: int) -> Bracket | None:
    """Compare two secrets at r → ±∞, each branch unknown or cut off, whichever leaks more."""
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
    return Bracket(
        upper=0.0,
        lower=max(0.0, gain - error),
        witness=problem.witness(target, cut, (one, other), sign * math.inf),
        target=target,
        unknown=(),
    )


def _most_promising(
    layers: Layers, tilts: FloatArray, messages: _Messages, targets: tuple[int, ...]
) -> tuple[int, int, int]:
    """Return the target and secrets with the largest leakage, if every branch may be cut off."""

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
