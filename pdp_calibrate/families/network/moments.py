"""Exact sums over a network: lower ends of the leakage, draws, and positive association.

Theorem 22 (docs/theory).

In the limits r → ±∞ the density of an output is E[e^{±f/λ} | x_i, x_K] up to a constant: a sum over
the unknown tuples of a product of factors. It is computed along an order of elimination, one
array per front, for every target at once by two passes. Everything is in logarithms.

**Positive association.** Let values be ordered by what they add to the answer, and let every factor
be log-supermodular: all its cross-ratios on two larger and two smaller values are at least 1. For
one adversary and any likelihood g of the answer that an output can have, g·e^{∓f/λ} is monotone, so
by the inequality of Fortuin, Kasteleyn and Ginibre, under the law tilted by e^{±f/λ}, no output
tells more than r = ±∞, and no secrets more than the extreme ones. The limits are exact then.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import (
    MOMENT_CELLS,
    MOMENT_EVENTS,
    MOMENT_NUMBERS,
    MOMENT_REGIONS,
)
from pdp_calibrate.families.network.couplings import Couplings
from pdp_calibrate.families.network.elimination import filled, least_fill
from pdp_calibrate.families.network.fronts import Batch, Run, in_batches
from pdp_calibrate.families.network.network import Network


class Sums:
    """Sums over all values of a network's unknown tuples, the others being fixed.

    Parameters
    ----------
    network
        A network given by its factors.
    fixed
        Tuples, by position, and the values they hold; left out of all sums.
    target
        The only tuple asked about; None if all are.
    """

    def __init__(
        self, network: Network, fixed: Mapping[int, int], target: int | None = None
    ) -> None:
        self.network, self.fixed = network, dict(fixed)
        self.sizes = [len(domain) for domain in network.domains]
        self._parts = [
            part
            for scope, factor in zip(network.scopes, network.factors, strict=True)
            if (part := _sliced(scope, factor, self.fixed)) is not None
        ]
        pairs = {
            (min(pair), max(pair)): 1.0
            for scope, _ in self._parts
            for pair in itertools.combinations(scope, 2)
        }
        graph = Couplings(len(self.sizes), pairs)
        free = [place for place in range(len(self.sizes)) if place not in self.fixed]
        self.order = least_fill(graph, free, last=target)
        self.target = target
        rank = self._rank = {place: number for number, place in enumerate(self.order)}
        self._later = filled([{rank[k] for k in graph.neighbours[place]} for place in self.order])
        self._members = [(number, *later.tolist()) for number, later in enumerate(self._later)]

    @functools.cached_property
    def _own(self) -> list[list[FloatArray]]:
        """The logarithms of the factors of each front, with an axis for each of its members.

        Made only where fronts are affordable: an array has 64 axes at most.
        """
        found: list[list[FloatArray]] = [[] for _ in self.order]
        for scope, logs in self._parts:
            ranks = tuple(self._rank[place] for place in scope)
            axes = sorted(range(len(ranks)), key=ranks.__getitem__)
            front = min(ranks)
            shape = self._shape(ranks, self._members[front])
            found[front].append(logs.transpose(axes).reshape(shape))
        return found

    @functools.cached_property
    def _cells(self) -> list[int]:
        """How many numbers the array of each front holds."""
        return [
            math.prod(self.sizes[self.order[member]] for member in self._members[number])
            for number in range(len(self.order))
        ]

    @property
    def is_affordable(self) -> bool:
        """Whether the arrays of all fronts are small enough."""
        return max(self._cells, default=0) <= MOMENT_CELLS and sum(self._cells) <= MOMENT_NUMBERS

    @functools.cached_property
    def _batches(self) -> list[tuple[Batch, FloatArray]]:
        """Fronts of one kind, children before parents, and the logarithms of their own factors.

        Arrays are by front, by tilt and by the values of the front's members.
        """
        found = []
        for batch in in_batches(self._members, [self.sizes[place] for place in self.order]):
            members = self._members[batch.fronts[0]]
            none = np.zeros((1, *self._shape(members, members)))
            own = [sum(self._own[number], none) for number in batch.fronts]
            found.append((batch, np.stack(own)))
        return found

    @functools.cached_property
    def plain_marginals(self) -> tuple[dict[int, FloatArray], float]:
        """The logarithms of the law itself: `log_marginals` without tilts."""
        found, (error,) = self.log_marginals([np.zeros((1, size)) for size in self.sizes])
        return {place: logs[0] for place, logs in found.items()}, float(error)

    def log_marginals(
        self, tilts: Sequence[FloatArray]
    ) -> tuple[dict[int, FloatArray], FloatArray]:
        """Return log Σ of the law times e^{Σ tilts}, for each value of the tuples asked about.

        Each tuple's logarithms are up to a constant of its own.

        Parameters
        ----------
        tilts
            For each tuple, a row of its values for every tilt of the law: all are computed
            together.

        Returns
        -------
        tuple
            The logarithms by tuple, a row for every tilt, and how far the difference of two of a
            row may be off.
        """
        tables, said, largest = self._upwards(tilts)
        if self.target is not None:
            return {self.target: self._by_place(tables)[self.target]}, self._error(largest)
        heard = [np.zeros_like(logs) for logs in said]
        for number, (batch, own) in reversed(list(enumerate(self._batches))):
            table = self._tilted(batch, own, tilts) + heard[number][:, :, np.newaxis]
            below = [_placed(said, run) for run in batch.runs]
            # The messages of all children but one are a sum of those before it and after it.
            behind, later = list[FloatArray](), np.zeros(())
            for logs in reversed(below):
                behind.append(_running(later, logs[:, ::-1]))
                later = behind[-1][:, -1]
            for run, logs in zip(batch.runs, below, strict=True):
                ahead = _running(table, logs)
                others = ahead[:, :-1] + behind.pop()[:, -2::-1]
                told = _log_sum(others.reshape(-1, *table.shape[1:]), run.away)
                heard[run.batch][run.rows] = told
                table = ahead[:, -1]
            largest = np.maximum(largest, _magnitudes(table))
            tables[number] = _log_sum(table, tuple(range(3, table.ndim)))
        return self._by_place(tables), self._error(largest)

    def _error(self, largest: FloatArray) -> FloatArray:
        """Bound what rounding does to the difference of two logarithms of one tuple."""
        states = max((self.sizes[place] for place in self.order), default=1)
        widest = 1 + max(map(len, self._later), default=0)
        per_front = states * widest + 24 + 6 * largest
        adding = 4 * largest * len(self._parts)
        return np.asarray(8 * UNIT_ROUNDOFF * (len(self.order) * per_front + adding))

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw databases, a row each, of positions in the domains."""
        drawn = np.empty((number, len(self.sizes)))
        for place, value in self.fixed.items():
            drawn[:, place] = value
        tables, *_ = self._upwards([np.zeros((1, size)) for size in self.sizes])
        by_place = self._by_place(tables)
        for front in reversed(range(len(self.order))):
            later = [drawn[:, self.order[member]].astype(np.intp) for member in self._later[front]]
            index: tuple[Any, ...] = (slice(None), *later)
            (table,) = by_place[self.order[front]]
            logs = table[index].T if later else table[np.newaxis]
            shares = np.exp(logs - logs.max(axis=1, keepdims=True))
            levels = np.cumsum(np.broadcast_to(shares, (number, shares.shape[1])), axis=1)
            picks = rng.random(number) * levels[:, -1]
            drawn[:, self.order[front]] = (picks[:, np.newaxis] >= levels[:, :-1]).sum(axis=1)
        return drawn

    def _upwards(
        self, tilts: Sequence[FloatArray]
    ) -> tuple[list[FloatArray], list[FloatArray], FloatArray]:
        """Return, for the fronts of each batch, their arrays and their messages to their parents.

        A message is the array summed over the axis of the front's own tuple. Third, for each tilt,
        the largest magnitude that was rounded.
        """
        tables, said = list[FloatArray](), list[FloatArray]()
        largest = np.zeros(len(tilts[0]))
        for batch, table in self._batches:
            for run in batch.runs:
                logs = _placed(said, run)
                table = table + logs[:, 0] if logs.shape[1] == 1 else _running(table, logs)[:, -1]
            tables.append(self._tilted(batch, table, tilts))
            # A tilt may cancel the messages, so sizes are taken before it too. Messages are not
            # positive, hence sums of some of them are no larger than the sum of all.
            for rounded in (table, tables[-1]):
                largest = np.maximum(largest, _magnitudes(rounded))
            said.append(_log_sum(tables[-1], (2,)))
        return tables, said, largest

    def _by_place(self, arrays: Sequence[FloatArray]) -> dict[int, FloatArray]:
        """Return the arrays of all fronts, by the tuple that each front sums over."""
        return {
            place: array
            for (batch, _), several in zip(self._batches, arrays, strict=True)
            for place, array in zip(self._places(batch), several, strict=True)
        }

    def _places(self, batch: Batch) -> list[int]:
        """Return the tuples that the fronts of a batch sum over."""
        return [self.order[number] for number in batch.fronts]

    def _tilted(self, batch: Batch, table: FloatArray, tilts: Sequence[FloatArray]) -> FloatArray:
        """Add the tilts of the tuples that fronts sum over."""
        own = np.array([tilts[place] for place in self._places(batch)])
        return np.asarray(table + own.reshape(*own.shape, *[1] * (table.ndim - 3)))

    def _shape(self, ranks: Sequence[int], members: Sequence[int]) -> list[int]:
        """Return the shape of an array about some members of a front, over all of them."""
        there = set(ranks)
        return [self.sizes[self.order[member]] if member in there else 1 for member in members]


def _sliced(
    scope: Sequence[int], factor: FloatArray, fixed: Mapping[int, int]
) -> tuple[tuple[int, ...], FloatArray] | None:
    """Return the logarithms of a factor where some of its tuples are fixed; None if all are."""
    free = tuple(place for place in scope if place not in fixed)
    if not free:
        return None
    cells = factor[tuple(fixed.get(place, slice(None)) for place in scope)]
    with np.errstate(divide="ignore"):
        return free, np.log(cells) - math.log(factor.max())


def _placed(said: Sequence[FloatArray], run: Run) -> FloatArray:
    """Return the messages of children, over the members of their parents."""
    return said[run.batch][run.rows].reshape(run.shape)


def _running(start: FloatArray, steps: FloatArray) -> FloatArray:
    """Return a start [front, …] and what it becomes with each further step [front, step, …]."""
    fronts, *rest = np.broadcast(start, steps[:, 0]).shape
    sums = np.empty((fronts, steps.shape[1] + 1, *rest))
    sums[:, 0], sums[:, 1:] = start, steps
    return np.add.accumulate(sums, axis=1)


def _magnitudes(table: FloatArray) -> FloatArray:
    """Return the largest finite magnitude for every tilt."""
    sizes = np.abs(np.where(np.isfinite(table), table, 0.0))
    return np.asarray(sizes.max(axis=(0, *range(2, table.ndim))))


def _log_sum(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return log Σ e^{logs} along axes, for every front and tilt less its largest entry."""
    peak = logs.max(axis=axes, keepdims=True)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    sums = np.exp(logs - safe)
    for axis in axes:  # one after the other, so that every sum is short
        sums = sums.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        found = np.squeeze(np.log(sums) + safe, axis=axes)
    top = found.max(axis=tuple(range(2, found.ndim)), keepdims=True)
    return np.asarray(found - np.where(np.isfinite(top), top, 0.0))


class Limit(NamedTuple):
    """What an adversary learns in a limit r → ±∞."""

    target: int
    """The tuple attacked."""
    secrets: tuple[int, int]
    """The values compared, by position; the one that the output favours comes first."""
    sign: int
    """Whether the output is +∞ or −∞."""
    gain: float
    """The leakage."""
    error: float
    """How far rounding may have moved it."""


def best_limit(
    sums: Sums, contributions: Contributions, scale: float, targets: Sequence[int]
) -> Limit | None:
    """Return the limit with the largest leakage about one of the targets."""
    before, error = sums.plain_marginals
    signs = 1, -1
    values = np.concatenate([array[:, 0] for array in contributions.values])
    ends = list(itertools.accumulate(sums.sizes, initial=0))
    added = values - np.repeat(np.minimum.reduceat(values, ends[:-1]), sums.sizes)
    tilts = np.outer(signs, added) / scale
    after, errors = sums.log_marginals([tilts[:, k:m] for k, m in itertools.pairwise(ends)])
    # By sign, target and value; a target may have fewer values than others.
    shape = len(targets), max(sums.sizes[target] for target in targets)
    plain, tilted = np.full(shape, -np.inf), np.full((len(signs), *shape), -np.inf)
    for row, target in enumerate(targets):
        plain[row, : sums.sizes[target]] = before[target]
        tilted[:, row, : sums.sizes[target]] = after[target]
    possible = np.isfinite(plain)
    with np.errstate(invalid="ignore"):
        told = tilted - plain
    highest, lowest = np.where(possible, told, -np.inf), np.where(possible, told, np.inf)
    gains = highest.max(axis=2) - lowest.min(axis=2)
    which, row = divmod(int(gains.argmax()), len(targets))
    gain = float(gains[which, row])
    if gain <= 0:
        return None  # no two values of a target are possible, or nothing is learned
    # The largest error of any target and sign: the largest true gain may be one of the others.
    off = 2 * (error + float(errors.max()))
    off += 16 * UNIT_ROUNDOFF * float(np.abs(told[:, possible]).max())
    secrets = int(highest[which, row].argmax()), int(lowest[which, row].argmin())
    return Limit(targets[row], secrets, signs[which], gain, off)


Known = dict[int, int]
"""Tuples, by position, and the values that an adversary knows they hold."""


class Moments:
    """Sums over a network, kept from scale to scale.

    Parameters
    ----------
    network
        The network.
    contributions
        What its tuples add to the answer.
    """

    def __init__(self, network: Network, contributions: Contributions) -> None:
        self.network = network
        self._contributions = contributions
        self._positive = all(np.all(factor > 0) for factor in network.factors)
        self._kept: dict[tuple[int | None, tuple[tuple[int, int], ...]], Sums] = {}
        self._regions: dict[int, Known | None] = {}

    @functools.cached_property
    def slack(self) -> float:
        """How far the law is from one that is positively associated; ∞ where it is not so."""
        return association_slack(self.network, self._contributions)

    def given(self, known: Known, target: int | None) -> Sums:
        """Return the sums over all unknown tuples."""
        key = target, tuple(sorted(known.items()))
        if key not in self._kept:
            while len(self._kept) > MOMENT_EVENTS:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = Sums(self.network, known, target)
        return self._kept[key]

    def events(self, knowledge: Knowledge, target: int) -> list[Known]:
        """Return examples of what adversaries of the set may know when they attack a target.

        Either nothing or, where a sum over all tuples takes too long, all outside a region.
        """
        if self.network.influences is not None:
            return []
        if knowledge.known is not None:
            return self._values_of(knowledge.known, target) or []
        if knowledge.fewest == 0 and self.given({}, target).is_affordable:
            return [{}]
        region = self._outside(target)
        if region is None or not knowledge.fewest <= len(region) <= knowledge.most:
            return []
        return [region]

    def everything(self, knowledge: Knowledge) -> list[tuple[Known, tuple[int, ...]]]:
        """Return all that adversaries of a small set may know, with the targets of each.

        Empty where there are too many adversaries or values to know, or sums take too long.
        """
        if knowledge.most == 0 and knowledge.known is None:
            affordable = self.given({}, None).is_affordable
            return [({}, knowledge.targets)] if affordable else []
        if knowledge.known is None:
            return []
        (target,) = knowledge.targets
        events = self._values_of(knowledge.known, target)
        return [] if events is None else [(known, (target,)) for known in events]

    def _values_of(self, known: frozenset[int], target: int) -> list[Known] | None:
        """Return all values of known tuples, so far as they matter to a target; None if too many.

        Tuples that share no factor with the target, or with an unknown tuple connected to it, do
        not matter. Where factors have zeros, some combinations of values are impossible.
        """
        if not known:
            return [{}] if self.given({}, target).is_affordable else None
        if not self._positive:
            return None
        near: set[int] = set()
        together, waiting = {target}, [target]
        holding: dict[int, list[tuple[int, ...]]] = {}
        for scope in self.network.scopes:
            for place in scope:
                holding.setdefault(place, []).append(scope)
        while waiting:
            for scope in holding.get(waiting.pop(), ()):
                near |= known.intersection(scope)
                new = set(scope) - known - together
                together |= new
                waiting += new
        sizes = [range(len(self.network.domains[place])) for place in sorted(near)]
        if math.prod(map(len, sizes)) > MOMENT_EVENTS:
            return None
        rest = dict.fromkeys(sorted(known - near), 0)
        events = [
            rest | dict(zip(sorted(near), values, strict=True))
            for values in itertools.product(*sizes)
        ]
        return events if self.given(events[0], target).is_affordable else None

    def _outside(self, target: int) -> Known | None:
        """Return values for all tuples outside a region, high and low ones in turn."""
        if target not in self._regions:
            self._regions[target] = None
            near = list(self.network.couplings.distances(target))
            for size in MOMENT_REGIONS if self._positive else ():
                inside = set(near[:size])
                known = {
                    place: (place % 2) * (len(domain) - 1)
                    for place, domain in enumerate(self.network.domains)
                    if place not in inside
                }
                if self.given(known, target).is_affordable:
                    self._regions[target] = known
                    break
        return self._regions[target]


def association_slack(network: Network, contributions: Contributions) -> float:
    """Return how far the law is from one that is positively associated; ∞ where it is not so.

    Rounding may hide that a cross-ratio is 1. The logarithm of a law within the slack is exactly
    log-supermodular in the orders of what values add to the answer; tuples that add nothing may
    have their order reversed. The leakage moves by at most four times the slack.
    """
    if network.influences is not None:
        return math.inf
    orders = [np.argsort(array[:, 0], kind="stable") for array in contributions.values]
    free = [bool(np.ptp(array) == 0) for array in contributions.values]
    slack, edges = 0.0, dict[tuple[int, int], tuple[bool, bool]]()
    for scope, factor in zip(network.scopes, network.factors, strict=True):
        if len(scope) == 1:
            continue  # factors of single tuples do not matter; a zero there rules a value out
        if not np.all(factor > 0):
            return math.inf
        logs = np.log(factor)[np.ix_(*(orders[place] for place in scope))]
        unit = 32 * UNIT_ROUNDOFF * float(np.abs(logs).max())
        for first, second in itertools.combinations(range(len(scope)), 2):
            bends = np.diff(np.diff(logs, axis=first), axis=second)
            if bends.size == 0:
                continue
            pair = min(scope[first], scope[second]), max(scope[first], scope[second])
            rises, falls = edges.get(pair, (True, True))
            edges[pair] = rises and bool(bends.min() >= -unit), falls and bool(bends.max() <= unit)
            slack += unit * bends.shape[first] * bends.shape[second]
    return slack if _signs_fit(edges, free) else math.inf


def _signs_fit(edges: Mapping[tuple[int, int], tuple[bool, bool]], free: Sequence[bool]) -> bool:
    """Whether orders of free tuples can be reversed so that every pair rises together."""
    signs = {place: 1 for place, is_free in enumerate(free) if not is_free}
    neighbours: dict[int, list[tuple[int, bool]]] = {}
    for (first, second), (rises, falls) in edges.items():
        if not rises and not falls:
            return False
        if rises != falls:
            neighbours.setdefault(first, []).append((second, rises))
            neighbours.setdefault(second, []).append((first, rises))
    reached = list(signs)
    for start in range(-1, len(free)):
        if start >= 0 and start not in signs:
            signs[start] = 1
            reached.append(start)
        while reached:
            place = reached.pop()
            for other, rises in neighbours.get(place, ()):
                wanted = signs[place] if rises else -signs[place]
                if other not in signs:
                    signs[other] = wanted
                    reached.append(other)
                elif signs[other] != wanted:
                    return False
    return True
