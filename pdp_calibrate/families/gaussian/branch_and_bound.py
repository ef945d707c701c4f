"""The worst adversary of one block, by local search and best-first branch and bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.tuning import (
    BATCH_SHARE,
    BATCH_WORK,
    BATCHES,
    CLIMBS,
    COMPILED_CALL_WORK,
    OPEN_BYTES,
    UNCOMPILED_WORK,
    VISITED_AT_MOST,
)
from pdp_calibrate.core.workers import progress as showing
from pdp_calibrate.families.gaussian.instance import Instance, Worst
from pdp_calibrate.families.gaussian.nodes import (
    ASIDE,
    BEST,
    CLOSED,
    NEAR,
    OPENED,
    OWNER,
    VISITED,
    Batch,
    ClampedNodes,
    Frontier,
    LinearNodes,
    Nodes,
    Places,
    Search,
    States,
    Verdicts,
)
from pdp_calibrate.families.gaussian.regression import regression
from pdp_calibrate.families.gaussian.sphere import KNOWN, OPEN, UNKNOWN

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


TOLERANCE = 2e-10  # bounds this close to the best value are closed: still exact to 1e-9
_GAIN = 1 + 1e-12  # smaller gains are rounding and could make a climb go in circles


@dataclass(frozen=True, kw_only=True)
class BlockSearch(Worst):
    """What a search of one block has found when it ends."""

    best: float
    """Rounded leakage of this adversary; evaluate it anew before use."""
    visited: int
    """Number of nodes expanded."""


def branch_and_bound(
    instance: Instance, precision: FloatArray, *, tau: float, incumbent: float, deadline: float
) -> BlockSearch:
    """Search all targets and sign patterns of one block against one best value.

    Adversaries who cannot learn more than `incumbent` are not distinguished. At the deadline (a
    value of `time.monotonic()`), or at the limit on memory or nodes, the bracket stays certified:
    its upper end is the largest bound among all nodes closed or still open.
    """
    nodes = LinearNodes(instance, precision, tau=tau)
    search = _Search(nodes, instance, incumbent)
    climbed = 0
    for visited, work, attacks in CLIMBS:  # most small searches end before a climb would
        search.expand(deadline, at_most=min(visited, int(work / instance.size**3)))
        if search.open.top > search.limit:
            search.start_at(*_climbed(nodes, climbed, attacks, search.limit, deadline))
        climbed = attacks
    return search.finished(deadline)


def branch_and_bound_clamped(
    instance: Instance, precision: FloatArray, *, tau: float, incumbent: float, deadline: float
) -> BlockSearch:
    """Search all targets of one block of a clamped answer; see `branch_and_bound`."""
    nodes = ClampedNodes(instance, precision, tau=tau)
    return explored(nodes, instance, incumbent=incumbent, deadline=deadline)


def explored(
    nodes: Nodes,
    instance: Instance,
    *,
    incumbent: float,
    deadline: float,
    start: tuple[float, int, States] | None = None,
) -> BlockSearch:
    """Search nodes of any kind, from the value, the attack and the state of a known set."""
    search = _Search(nodes, instance, incumbent)
    if start is not None:
        search.start_at(*start)
    return search.finished(deadline)


class _Open:
    """Open nodes: `keys[:count]` are their bounds, `slots[:count]` where the rest is stored.

    Slots from `count` on are free.
    """

    def __init__(self, keys: FloatArray, owners: Places, states: States) -> None:
        self.keys, self.owners, self.states = keys, owners, states
        self.count = len(keys)
        self.slots = np.arange(self.count)
        self._is_heap = False

    @property
    def top(self) -> float:
        """The largest bound, −∞ for none."""
        if self._is_heap and self.count:
            return float(self.keys[0])
        return float(self.keys[: self.count].max(initial=-np.inf))

    def reserve(self, more: int) -> None:
        """Make space for this many more nodes."""
        before = len(self.keys)
        if self.count + more > before:
            places = max(self.count + more, 2 * before)
            self.slots = np.concatenate([self.slots, np.arange(before, places)])
            self.keys = _longer(self.keys, places)
            self.owners = _longer(self.owners, places)
            self.states = _longer(self.states, places)

    def push(self, keys: FloatArray, owners: Places, states: States) -> None:
        """Add nodes."""
        self.reserve(len(keys))
        before, self.count = self.count, self.count + len(keys)
        slots = self.slots[before : self.count]
        self.keys[before : self.count] = keys
        self.owners[slots], self.states[slots] = owners, states
        # Nodes that nearly tie with the best value belong at the end: mostly nothing has to move.
        places = np.arange(max(before, 1), self.count)
        parents = self.keys[(places - 1) // 2]
        self._is_heap = self._is_heap and bool(np.all(parents >= self.keys[places]))

    def take(self, number: int) -> tuple[FloatArray, Places, States]:
        """Remove and return the nodes with the largest bounds."""
        before, self.count = self.count, max(0, self.count - number)
        if self.count:
            self._arrange(np.argpartition(self.keys[:before], self.count))
        slots = self.slots[self.count : before]
        return self.keys[self.count : before].copy(), self.owners[slots], self.states[slots]

    def make_heap(self) -> None:
        """Arrange the nodes as compiled code keeps them."""
        if not self._is_heap:
            self._arrange(np.argsort(-self.keys[: self.count]))  # sorted downwards: a heap
            self._is_heap = True

    def _arrange(self, order: Places) -> None:
        self.keys[: len(order)] = self.keys[order]
        self.slots[: len(order)] = self.slots[order]
        self._is_heap = False


def _longer(array: _Array, places: int) -> _Array:
    """Return the array with this many rows, the new ones not filled in."""
    found = np.empty((places, *array.shape[1:]), dtype=array.dtype)
    found[: len(array)] = array
    return cast("_Array", found)


class _Search:
    """The open nodes, and what is known about the closed ones.

    Invariant: no adversary learns more than the larger of the closed bound and the largest bound
    of an open node.
    """

    def __init__(self, nodes: Nodes, instance: Instance, incumbent: float) -> None:
        self.nodes, self.instance, self.incumbent = nodes, instance, incumbent
        self.best, self.owner = 0.0, 0
        self.state = _any_state(instance, int(nodes.targets[0]))
        self.closed = 0.0
        self.visited = 0
        number = len(nodes.keys)
        undecided = np.full((number, instance.size), OPEN, dtype=np.uint8)
        # A bound that is not a number bounds nothing.
        keys = np.where(np.isnan(nodes.keys), np.inf, nodes.keys)
        self.open = _Open(keys, np.arange(number), undecided)

    @property
    def limit(self) -> float:
        """Nodes with bounds up to this do not matter."""
        return max(self.incumbent, self.best * (1 + TOLERANCE))

    def start_at(self, value: float, owner: int, state: States) -> None:
        """Take over the value, the attack and the state of a known set, if it leaks more."""
        if value > self.best:
            self.best, self.owner, self.state = value, owner, state

    def expand(self, deadline: float, *, at_most: int) -> None:
        """Expand nodes until no open one matters, or until a limit on time, memory or nodes."""
        with showing("searching adversaries") as show:
            while (
                self.open.top > self.limit
                and time.monotonic() <= deadline
                and 2 * self.open.states.nbytes <= OPEN_BYTES
                and self.visited < at_most
            ):
                search = self.nodes.search_after(self.visited)
                if search is None:
                    self._expand_batch()
                else:
                    self._expand_singly(search, at_most)
                show(self.visited)

    def finished(self, deadline: float) -> BlockSearch:
        """Expand nodes, and return what is known then."""
        self.expand(deadline, at_most=VISITED_AT_MOST)
        target = int(self.nodes.targets[self.owner])
        known = np.flatnonzero(self.state == KNOWN).tolist()
        return BlockSearch(
            upper=max(self.closed, self.open.top),
            best=float(self.best),
            target=target,
            known=tuple(k for k in known if k != target),
            visited=self.visited,
        )

    def _expand_singly(self, search: Search, at_most: int) -> None:
        """Expand nodes one by one, always the one with the largest bound."""
        work = COMPILED_CALL_WORK if self.nodes.is_compiled(self.visited) else UNCOMPILED_WORK
        number = max(8, min(BATCHES[1], int(work / self.instance.size**3)))
        number = min(number, at_most - self.visited)
        self.open.make_heap()
        self.open.reserve(number + 1)
        reached, counts = np.empty(2), np.zeros(4, dtype=np.int64)
        reached[CLOSED], reached[BEST] = self.closed, self.best
        counts[OPENED], counts[VISITED], counts[OWNER] = self.open.count, self.visited, self.owner
        owners = np.empty(number, dtype=np.int64)
        states = np.empty((number, self.instance.size), dtype=np.uint8)
        frontier = Frontier(
            self.open.keys, self.open.slots, self.open.owners, self.open.states,
            reached, counts, self.state, np.empty(number), owners, states,
        )  # fmt: skip
        with np.errstate(all="ignore"):  # as compiled code: 0/0 is NaN, and bounds nothing
            search(frontier, self.incumbent, TOLERANCE, number)
        self.closed, self.best = float(reached[CLOSED]), float(reached[BEST])
        self.visited, self.owner = int(counts[VISITED]), int(counts[OWNER])
        self.open.count = int(counts[OPENED])
        ties = int(counts[ASIDE])
        if ties:
            owners, states = owners[:ties], states[:ties]
            known, opened = np.sum(states == KNOWN, axis=1), np.sum(states == OPEN, axis=1)
            steady = self.nodes.steady(Batch(owners, states, known, opened))
            keys = np.fmin(frontier.aside_keys[:ties], steady)
            matters = keys > self.limit
            self._close(keys[~matters])
            self.open.push(keys[matters], ~owners[matters], states[matters])

    def _expand_batch(self) -> None:
        """Judge the nodes with the largest bounds; close them or push two children of each.

        A bound that is NaN carries no information: then `fmin` keeps the one the node had before.
        """
        fewest, most = self.instance.fewest, self.instance.most
        number = max(BATCHES[0], self.open.count // BATCH_SHARE)
        at_most = min(BATCHES[1], max(4, int(BATCH_WORK / self.instance.size**3)))
        keys, batch = self._taken(min(number, at_most))
        found = self.nodes.judge(batch)  # type: ignore[attr-defined]
        later = batch.known + batch.opened
        # The largest and the smallest known set of a node are candidates if they are admitted.
        self._keep_best(np.where(later <= most, found.largest, 0.0), batch, KNOWN)
        self._keep_best(np.where(batch.known >= fewest, found.smallest, 0.0), batch, UNKNOWN)
        limit = self.limit
        is_leaf = (batch.opened == 0) | (later == fewest)
        keys = np.fmin(keys, np.where(is_leaf, found.upper, found.bound))
        near = ~is_leaf & (keys > limit) & (keys <= limit * NEAR)
        if near.any():
            steady = self.nodes.steady(Batch(*(part[near] for part in batch)))
            keys[near] = np.fmin(keys[near], steady)
        matters = ~is_leaf & (keys > limit)
        self._close(keys[~matters])
        if matters.any():
            self._branch(
                keys[matters],
                Batch(*(part[matters] for part in batch)),
                Verdicts(*(part[matters] for part in found)),
                limit,
            )

    def _taken(self, number: int) -> tuple[FloatArray, Batch]:
        """Take the nodes with the largest bounds off the open ones."""
        keys, owners, states = self.open.take(number)
        self.visited += len(keys)
        states[np.arange(len(keys)), self.nodes.targets[owners]] = UNKNOWN
        known = np.sum(states == KNOWN, axis=1)
        # Where no more tuples may be known, the open ones are unknown.
        full = known == self.instance.most
        states[full[:, np.newaxis] & (states == OPEN)] = UNKNOWN
        return keys, Batch(owners, states, known, np.sum(states == OPEN, axis=1))

    def _keep_best(self, values: FloatArray, batch: Batch, decision: int) -> None:
        """Remember a value above the best one, attained where all open tuples are decided alike."""
        place = int(np.argmax(values))
        if values[place] > self.best:
            self.best, self.owner = float(values[place]), int(batch.owners[place])
            state = batch.states[place]
            self.state = np.where(state == OPEN, np.uint8(decision), state)

    def _close(self, bounds: FloatArray) -> None:
        if len(bounds):
            self.closed = max(self.closed, float(bounds.max()))

    def _branch(self, keys: FloatArray, batch: Batch, found: Verdicts, limit: float) -> None:
        """Push what is left of each node, with the most promising open tuple decided both ways."""
        fewest, most = self.instance.fewest, self.instance.most
        states, known, opened = batch.states.copy(), batch.known.copy(), batch.opened.copy()
        # Decisions that no admitted adversary allows count as closed.
        if_known = np.where((known + 1 > most)[:, np.newaxis], 0.0, found.if_known)
        if_unknown = np.where((known + opened - 1 < fewest)[:, np.newaxis], 0.0, found.if_unknown)
        is_open = states == OPEN
        order = np.where(is_open, found.order, np.inf)
        branch = np.argmin(order, axis=1)
        rows = np.arange(len(keys))
        # Where only one of the two decisions can beat the limit, it is taken at once.
        is_open[rows, branch] = False
        for place in np.flatnonzero(
            np.any(is_open & (np.minimum(if_known, if_unknown) <= limit), axis=0)
        ):
            still = is_open[:, place]
            forget = still & (if_known[:, place] <= limit) & (known + opened > fewest)
            learn = still & ~forget & (if_unknown[:, place] <= limit) & (known < most)
            self._close(np.fmin(keys, if_known[:, place])[forget])
            self._close(np.fmin(keys, if_unknown[:, place])[learn])
            states[forget, place] = UNKNOWN
            states[learn, place] = KNOWN
            known += learn
            opened -= forget | learn
        for decision, after, admitted in (
            (KNOWN, if_known, known + 1 <= most),
            (UNKNOWN, if_unknown, known + opened - 1 >= fewest),
        ):
            bounds = np.fmin(keys, after[rows, branch])
            matters = admitted & (bounds > limit)
            self._close(bounds[admitted & ~matters])
            states[rows, branch] = decision
            self.open.push(bounds[matters], batch.owners[matters], states[matters])


def _any_state(instance: Instance, target: int) -> States:
    """Return the state of some admitted known set."""
    state = np.full(instance.size, UNKNOWN, dtype=np.uint8)
    state[[k for k in range(instance.size) if k != target][: instance.fewest]] = KNOWN
    return state


def _climbed(
    nodes: LinearNodes, first: int, last: int, incumbent: float, deadline: float
) -> tuple[float, int, States]:
    """Climb from both ends for attacks from the first to the last; return value, attack and state.

    Attacks are in the order of falling bounds, so that the first are the most promising.
    """
    promising = first + np.flatnonzero(nodes.keys[first:last] > incumbent)
    best, owner = 0.0, 0
    best_state = _any_state(nodes.instance, int(nodes.targets[0]))
    if len(promising) and time.monotonic() <= deadline:
        everyone = np.arange(2 * len(promising)) % 2 == 1
        attacks = promising.repeat(2)
        values, states = climb(nodes, attacks, everyone)
        place = int(values.argmax())
        if values[place] > best:
            best, owner, best_state = float(values[place]), int(attacks[place]), states[place]
    target = int(nodes.targets[owner])
    known = [k for k in np.flatnonzero(best_state == KNOWN).tolist() if k != target]
    # A climb accumulates rounding; too large a value would close nodes that beat the true one.
    evaluated = regression(nodes.instance, target, known, tau=nodes.tau)
    return min(best, evaluated.value), owner, best_state


def climb(
    nodes: LinearNodes, attacks: Places, everyone: npt.NDArray[np.bool_]
) -> tuple[FloatArray, States]:
    """Flip known tuples while the leakage grows, from nobody or everybody known.

    At first all flips that gain are made together, as many as are admitted, which leaves few steps
    to take one at a time. All climbs take their steps together. Returns the value that each has
    reached, rounded (evaluate the set again before using it), and the state of its last set.
    """
    instance, size = nodes.instance, nodes.instance.size
    fewest, most, multipliers = instance.fewest, instance.most, instance.multipliers
    targets, which = nodes.targets[attacks], nodes.which[attacks]
    tableaus = np.empty((len(attacks), size + 1, size + 1))
    nobody = ~everyone
    # With everyone known the target is known too at first, and leaves in a first sweep.
    tableaus[everyone, :size, :size] = -nodes.precision
    tableaus[everyone, size, :size] = nodes.functions[which[everyone]]
    tableaus[everyone, size, size] = 0.0
    tableaus[nobody, :size, :size] = instance.covariance
    tableaus[nobody, size, :size] = nodes.products[which[nobody]]
    tableaus[nobody, size, size] = nodes.totals[which[nobody]]
    tableaus[:, :size, size] = tableaus[:, size, :size]
    tableaus[everyone] = swept(tableaus[everyone], targets[everyone])
    outside = np.broadcast_to(nobody[:, np.newaxis], (len(attacks), size)).copy()
    outside[np.arange(len(attacks)), targets] = True
    known = np.where(everyone, size - 1, 0)
    values, climbing = np.zeros(len(attacks)), np.arange(len(attacks))
    for step in range(8 * size + 8):
        # The climbs that still go on: moments of target and answer given the known tuples.
        rows, target, number = np.arange(len(climbing)), targets[climbing], known[climbing]
        enters = outside[climbing]
        pivots = tableaus.diagonal(axis1=1, axis2=2)[:, :size]
        mine, answer = tableaus[rows, target], tableaus[:, size]
        variance, cross, spread = mine[rows, target], mine[:, size], answer[:, size]
        inside = (fewest <= number) & (number <= most)
        here = _value_of(variance, cross)
        if not instance.is_certain:
            here += _share_of(variance, cross, spread, multipliers[number])
        values[climbing] = np.where(inside, here, values[climbing])
        # The value after each flip that is allowed.
        allowed = np.where(enters, (number < most)[:, np.newaxis], (number > fewest)[:, np.newaxis])
        allowed &= pivots != 0
        allowed[rows, target] = False
        divisors = np.where(allowed, pivots, 1.0)
        part = mine[:, :size] / divisors
        variances = variance[:, np.newaxis] - part * mine[:, :size]
        crosses = cross[:, np.newaxis] - part * answer[:, :size]
        reached = _value_of(variances, crosses)
        if not instance.is_certain:
            larger = multipliers[np.minimum(number + 1, size - 1), np.newaxis]
            smaller = multipliers[np.maximum(number - 1, 0), np.newaxis]
            spreads = spread[:, np.newaxis] - answer[:, :size] ** 2 / divisors
            reached += _share_of(variances, crosses, spreads, np.where(enters, larger, smaller))
        reached[~allowed] = -1.0
        if step == 0:
            admitted = np.where(everyone, number - fewest, most - number)[:, np.newaxis]
            places = np.argsort(np.argsort(-reached, axis=1), axis=1)
            flips = (reached > here[:, np.newaxis] * _GAIN) & (places < admitted)
            known += np.where(everyone, -1, 1) * flips.sum(axis=1)
            outside ^= flips
            tableaus = swept_together(tableaus, flips)
            continue
        moves = reached.argmax(axis=1)
        gained = reached[rows, moves]
        goes_on = (gained >= 0) & ~(inside & (gained <= here * _GAIN))
        if not goes_on.any():
            break
        if not goes_on.all():
            climbing, moves, tableaus = climbing[goes_on], moves[goes_on], tableaus[goes_on]
        known[climbing] += np.where(outside[climbing, moves], 1, -1)
        outside[climbing, moves] ^= True
        tableaus = swept(tableaus, moves)
    states = np.where(outside, np.uint8(UNKNOWN), np.uint8(KNOWN))
    return values * instance.factors[targets], states


def swept(tableaus: FloatArray, places: Places) -> FloatArray:
    """Move one tuple of each tableau into or out of the known set; a second sweep undoes the first.

    With K known a tableau holds conditional covariances outside K, regression coefficients
    between K and the rest, and minus the precision inside K.
    """
    here = np.arange(len(tableaus))
    row = tableaus[here, places]
    pivots = row[here, places]
    scaled = row / pivots[:, np.newaxis]
    found = tableaus - row[:, :, np.newaxis] * scaled[:, np.newaxis]
    line = np.where(pivots[:, np.newaxis] > 0, scaled, -scaled)
    found[here, places] = line
    found[here, :, places] = line
    found[here, places, places] = -1 / pivots
    return np.asarray(found)


def swept_together(tableaus: FloatArray, chosen: npt.NDArray[np.bool_]) -> FloatArray:
    """Move all chosen tuples of each tableau into the known set, or all of them out of it.

    The same as one `swept` after the other, with a block in place of a pivot. The block is
    definite: covariances too close to singular for that in floating point are refused.
    """
    found = tableaus.copy()
    for tableau, flipped in zip(found, chosen, strict=True):
        places = np.flatnonzero(flipped)
        if not len(places):
            continue
        rows = tableau[places]  # and, since a tableau is symmetric, its columns
        inverse = np.linalg.inv(rows[:, places])
        scaled = inverse @ rows
        tableau -= rows.T @ scaled
        lines = scaled if inverse.trace() > 0 else -scaled
        lines[:, places] = -inverse
        tableau[places] = lines
        tableau[:, places] = lines.T
    return found


def _value_of(variance: FloatArray, cross: FloatArray) -> FloatArray:
    """Return leakages of known sets in units of the target's factor; 0 without a variance."""
    return np.divide(np.abs(cross), variance, out=np.zeros_like(cross), where=variance > 0)


def _share_of(
    variance: FloatArray, cross: FloatArray, spread: FloatArray, multiplier: FloatArray
) -> FloatArray:
    """Return what an uncertain covariance adds to these leakages."""
    positive = np.where(variance > 0, variance, np.inf)
    left = np.maximum(spread - cross * cross / positive, 0.0)
    return np.asarray(multiplier * np.sqrt(left / positive))
