"""The worst adversary of one block, by local search and best-first branch and bound."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.workers import progress as showing
from pdp_calibrate.families.gaussian.instance import Instance
from pdp_calibrate.families.gaussian.nodes import (
    Batch,
    ClampedNodes,
    LinearNodes,
    Nodes,
    Places,
    States,
    Verdicts,
)
from pdp_calibrate.families.gaussian.regression import regression
from pdp_calibrate.families.gaussian.sphere import KNOWN, OPEN, UNKNOWN

TOLERANCE = 2e-10  # bounds this close to the best value are closed: still exact to 1e-9
VISITED_AT_MOST = 2_000_000  # without a deadline the search ends here, with a certified bracket
_MEMORY = 2**29  # bytes for open nodes
_BATCHES = (64, 4096)  # fewest and most nodes judged together
_BATCH_SHARE = 16  # of all open nodes one in so many is judged at a time
_BATCH_WORK = 4e8  # nodes × tuples³ of one batch
_NEAR = 1 + 1e-4  # nodes so close to the best value are bounded a second time, more carefully
_CLIMBS = 16
_CLIMBING_WORK = 5e8  # climbs × tuples³
_CLIMBS_TOGETHER = 8
_GAIN = 1 + 1e-12  # smaller gains are rounding and could make a climb go in circles


@dataclass(frozen=True, kw_only=True)
class BlockSearch:
    """What a search of one block knows when it ends."""

    upper: float
    """No admitted adversary leaks more."""
    best: float
    """Rounded leakage of the adversary below; evaluate it anew before use."""
    target: int
    """The tuple attacked by the worst adversary found."""
    known: tuple[int, ...]
    """What this adversary knows."""
    visited: int
    """Number of nodes expanded."""


def branch_and_bound(
    instance: Instance, precision: FloatArray, *, tau: float, incumbent: float, deadline: float
) -> BlockSearch:
    """Search all targets and sign patterns of one block against one best value.

    Adversaries who cannot leak more than `incumbent` are not told apart. At the deadline (a value
    of `time.monotonic()`), or when memory or patience end, the bracket stays certified: its upper
    end is the largest bound among all nodes closed or still open.
    """
    nodes = LinearNodes(instance, precision, tau=tau)
    start = _climbed(nodes, incumbent, deadline)
    return explored(nodes, instance, incumbent=incumbent, deadline=deadline, start=start)


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
        search.best, search.owner, search.state = start
    return search.finished(deadline)


class _Open:
    """Open nodes in no order, the first `count` rows of growing arrays."""

    def __init__(self, keys: FloatArray, owners: Places, states: States) -> None:
        self.keys, self.owners, self.states = keys, owners, states
        self.count = len(keys)

    @property
    def top(self) -> float:
        """The largest bound, −∞ for none."""
        return float(self.keys[: self.count].max(initial=-np.inf))

    def push(self, keys: FloatArray, owners: Places, states: States) -> None:
        """Add nodes."""
        before, self.count = self.count, self.count + len(keys)
        while self.count > len(self.keys):
            self.keys = np.concatenate([self.keys, self.keys])
            self.owners = np.concatenate([self.owners, self.owners])
            self.states = np.concatenate([self.states, self.states])
        added = slice(before, self.count)
        self.keys[added], self.owners[added], self.states[added] = keys, owners, states

    def take(self, number: int) -> tuple[FloatArray, Places, States]:
        """Remove and return the nodes with the largest bounds."""
        rest = max(0, self.count - number)
        order = np.argpartition(self.keys[: self.count], rest) if rest else np.arange(self.count)
        chosen = order[rest:]
        taken = self.keys[chosen], self.owners[chosen], self.states[chosen]
        # The last rows that stay fill the holes further up.
        holes = chosen[chosen < rest]
        movers = order[:rest][order[:rest] >= rest]
        for array in (self.keys, self.owners, self.states):
            array[holes] = array[movers]
        self.count = rest
        return taken


class _Search:
    """The open nodes, and what is known about the closed ones.

    Whatever happens, no adversary leaks more than the larger of the closed bound and the largest
    bound of an open node.
    """

    def __init__(self, nodes: Nodes, instance: Instance, incumbent: float) -> None:
        self.nodes, self.instance, self.incumbent = nodes, instance, incumbent
        self.best, self.owner = 0.0, 0
        self.state = _any_state(instance, int(nodes.targets[0]))
        self.closed = 0.0
        self.visited = 0
        number = len(nodes.keys)
        undecided = np.full((number, instance.size), OPEN, dtype=np.uint8)
        self.open = _Open(nodes.keys.copy(), np.arange(number), undecided)

    @property
    def limit(self) -> float:
        """Nodes with bounds up to this do not matter."""
        return max(self.incumbent, self.best * (1 + TOLERANCE))

    def finished(self, deadline: float) -> BlockSearch:
        """Expand nodes until none that matters is open, or time, memory or patience end."""
        most = min(_BATCHES[1], max(4, int(_BATCH_WORK / self.instance.size**3)))
        with showing("searching adversaries") as show:
            while (
                not self.open.top <= self.limit  # a bound that is not a number stays open
                and time.monotonic() <= deadline
                and 2 * self.open.states.nbytes <= _MEMORY
                and self.visited <= VISITED_AT_MOST
            ):
                self._expand(min(most, max(_BATCHES[0], self.open.count // _BATCH_SHARE)))
                show(self.visited)
        target = int(self.nodes.targets[self.owner])
        known = np.flatnonzero(self.state == KNOWN).tolist()
        return BlockSearch(
            upper=float(np.maximum(self.closed, self.open.top)),
            best=float(self.best),
            target=target,
            known=tuple(k for k in known if k != target),
            visited=self.visited,
        )

    def _expand(self, number: int) -> None:
        """Judge the nodes with the largest bounds; close them or push two children of each."""
        fewest, most = self.instance.fewest, self.instance.most
        keys, batch = self._taken(number)
        found = self.nodes.judge(batch)
        later = batch.known + batch.opened
        # The largest and the smallest known set of a node are candidates if they are admitted.
        self._keep_best(np.where(later <= most, found.largest, 0.0), batch, KNOWN)
        self._keep_best(np.where(batch.known >= fewest, found.smallest, 0.0), batch, UNKNOWN)
        limit = self.limit
        is_leaf = (batch.opened == 0) | (later == fewest)
        keys = np.minimum(keys, np.where(is_leaf, found.upper, found.bound))
        near = ~is_leaf & (keys > limit) & (keys <= limit * _NEAR)
        if near.any():
            steady = self.nodes.steady(Batch(*(part[near] for part in batch)))
            keys[near] = np.minimum(keys[near], steady)
        matters = ~is_leaf & ~(keys <= limit)
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
        # Where nobody else may be known, the open ones are unknown.
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
        # Decisions that nobody admitted can take count as closed.
        if_known = np.where((known + 1 > most)[:, np.newaxis], 0.0, found.if_known)
        if_unknown = np.where((known + opened - 1 < fewest)[:, np.newaxis], 0.0, found.if_unknown)
        is_open = states == OPEN
        order = np.where(is_open, found.order, np.inf)
        branch = np.argmin(order, axis=1)
        rows = np.arange(len(keys))
        # Decisions that only one way can beat are taken at once.
        is_open[rows, branch] = False
        for place in np.flatnonzero(
            np.any(is_open & (np.minimum(if_known, if_unknown) <= limit), axis=0)
        ):
            still = is_open[:, place]
            forget = still & (if_known[:, place] <= limit) & (known + opened > fewest)
            learn = still & ~forget & (if_unknown[:, place] <= limit) & (known < most)
            self._close(np.minimum(keys, if_known[:, place])[forget])
            self._close(np.minimum(keys, if_unknown[:, place])[learn])
            states[forget, place] = UNKNOWN
            states[learn, place] = KNOWN
            known += learn
            opened -= forget | learn
        for decision, after, admitted in (
            (KNOWN, if_known, known + 1 <= most),
            (UNKNOWN, if_unknown, known + opened - 1 >= fewest),
        ):
            bounds = np.minimum(keys, after[rows, branch])
            matters = admitted & ~(bounds <= limit)
            self._close(bounds[admitted & ~matters])
            states[rows, branch] = decision
            self.open.push(bounds[matters], batch.owners[matters], states[matters])


def _any_state(instance: Instance, target: int) -> States:
    """Return the state of some admitted known set."""
    state = np.full(instance.size, UNKNOWN, dtype=np.uint8)
    state[[k for k in range(instance.size) if k != target][: instance.fewest]] = KNOWN
    return state


def _climbed(nodes: LinearNodes, incumbent: float, deadline: float) -> tuple[float, int, States]:
    """Climb from both ends for the most promising attacks; return value, attack and state."""
    instance = nodes.instance
    best, owner = 0.0, 0
    best_state = _any_state(instance, int(nodes.targets[0]))
    climbs = max(1, min(_CLIMBS, int(_CLIMBING_WORK / instance.size**3), len(nodes.keys)))
    for first in range(0, climbs, _CLIMBS_TOGETHER):
        if nodes.keys[first] <= max(best, incumbent) or time.monotonic() > deadline:
            break
        attacks = np.repeat(np.arange(first, min(first + _CLIMBS_TOGETHER, climbs)), 2)
        values, states = climb(nodes, attacks, np.arange(len(attacks)) % 2 == 1)
        place = int(np.argmax(values))
        if values[place] > best:
            best, owner, best_state = float(values[place]), int(attacks[place]), states[place]
    target = int(nodes.targets[owner])
    known = [k for k in np.flatnonzero(best_state == KNOWN).tolist() if k != target]
    # A climb loses digits on its way; a value too large would close nodes that beat the true one.
    evaluated = regression(instance, target, known, tau=nodes.tau)
    return min(best, evaluated.value), owner, best_state


def climb(
    nodes: LinearNodes, attacks: Places, from_everyone: npt.NDArray[np.bool_]
) -> tuple[FloatArray, States]:
    """Flip one known tuple at a time while the leakage grows, from nobody or everybody known.

    Returns the values reached, rounded: evaluate the sets anew; and the states at the best sets.
    """
    instance, size = nodes.instance, nodes.instance.size
    targets, which = nodes.targets[attacks], nodes.which[attacks]
    tableaus = np.empty((len(attacks), size + 1, size + 1))
    tableaus[:, :size, :size] = instance.covariance
    tableaus[:, size, :size] = tableaus[:, :size, size] = nodes.products[which]
    tableaus[:, size, size] = nodes.totals[which]
    states = np.full((len(attacks), size), UNKNOWN, dtype=np.uint8)
    # Everybody known: sweep all in, once for each function, and the target out again.
    unique, first, place_of = np.unique(which, return_index=True, return_inverse=True)
    everyone = tableaus[first]
    for place in range(size):
        everyone = swept(everyone, np.full(len(unique), place))
    moved = np.flatnonzero(from_everyone)
    tableaus[moved] = swept(everyone[place_of[moved]], targets[moved])
    states[moved] = KNOWN
    states[moved, targets[moved]] = UNKNOWN
    factors, values = instance.factors[targets], np.zeros(len(attacks))
    active = np.arange(len(attacks))
    for _ in range(8 * size + 8):
        known = np.sum(states[active] == KNOWN, axis=1)
        inside = (instance.fewest <= known) & (known <= instance.most)
        here = _values(tableaus[active], targets[active], instance.multipliers[known])
        values[active] = np.where(inside, here, values[active])
        moves, reached = _best_flips(instance, tableaus[active], targets[active], states[active])
        goes_on = (reached >= 0) & ~(inside & (reached <= here * _GAIN))
        active, moves = active[goes_on], moves[goes_on]
        if not len(active):
            break
        states[active, moves] = np.where(states[active, moves] == KNOWN, UNKNOWN, KNOWN)
        tableaus[active] = swept(tableaus[active], moves)
    return values * factors, states


def swept(tableaus: FloatArray, places: Places) -> FloatArray:
    """Move one tuple of each tableau into or out of the known set; a second sweep undoes the first.

    With K known a tableau holds conditional covariances outside K, regression coefficients
    between K and the rest, and minus the precision inside K.
    """
    each = np.arange(len(places))
    row = tableaus[each, places]
    pivot = row[each, places][:, np.newaxis]
    found = tableaus - row[:, :, np.newaxis] * (row / pivot)[:, np.newaxis, :]
    found[each, places] = found[each, :, places] = np.sign(pivot) * row / pivot
    found[each, places, places] = -1 / pivot[:, 0]
    return found


def _values(tableaus: FloatArray, targets: Places, multipliers: FloatArray) -> FloatArray:
    """Return the leakage of each tableau's known set in units of its target's factor."""
    each = np.arange(len(targets))
    return _value_of(
        tableaus[each, targets, targets], tableaus[each, targets, -1], tableaus[:, -1, -1],
        multipliers,
    )  # fmt: skip


def _value_of(
    variance: FloatArray, cross: FloatArray, spread: FloatArray, multiplier: FloatArray
) -> FloatArray:
    positive = np.where(variance > 0, variance, 1.0)
    left = np.maximum(spread - cross * cross / positive, 0.0)
    found = np.abs(cross) / positive + multiplier * np.sqrt(left / positive)
    return np.where(variance > 0, found, 0.0)


def _best_flips(
    instance: Instance, tableaus: FloatArray, targets: Places, states: States
) -> tuple[Places, FloatArray]:
    """Return the flip of each tableau that leaves the largest value, and that value, or −1."""
    each = np.arange(len(targets))
    size = instance.size
    enters = states != KNOWN
    known = np.sum(~enters, axis=1)[:, np.newaxis]
    allowed = np.where(enters, known < instance.most, known > instance.fewest)
    pivots = np.einsum("bkk->bk", tableaus)[:, :size]
    allowed &= pivots != 0
    allowed[each, targets] = False
    pivots = np.where(allowed, pivots, 1.0)
    mine, answer = tableaus[each, targets], tableaus[:, size, :size]
    part = mine[:, :size] / pivots
    after = np.clip(np.where(enters, known + 1, known - 1), 0, size - 1)
    values = _value_of(
        mine[each, targets][:, np.newaxis] - part * mine[:, :size],
        mine[:, size:] - part * answer,
        tableaus[:, size, size:] - answer**2 / pivots,
        instance.multipliers[after],
    )
    values = np.where(allowed, values, -1.0)
    moves = np.argmax(values, axis=1)
    return moves, values[each, moves]
