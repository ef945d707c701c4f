"""The leakage of a network, bounded by summing out one tuple after the other.

Theorem 22 (docs/theory).

Let a change of tuple j alone change the log-likelihood of everything released by at most ε_j, its
budget, and let j be coupled with tuple k by D_jk (`couplings`). Summed over j, the law couples the
others by

    D_kl + D_jk ⊗ D_jl      and with budgets      ε_k + D_jk ⊗ ε_j

at most, where ⊗ is that of `core.contraction`. When only the target i is left, ε_i bounds what any
adversary learns about it, whatever tuples they know, exactly or as independent hints, and whatever
the mechanism is: budgets of several releases add up.

*Proof.* Let y ∈ {0, 1} switch the likelihood on: the factor p(r|x)^y. Summing out j, the
cross-ratio of (k, l) becomes log E_q[ρ_v] − log E_q'[ρ_v'] with q, q' the laws of x_j given v or
v', and ρ the ratio of the law at two values of x_l (for l = y, the likelihood). Pointwise
ρ_v ≤ e^{D_kl}·ρ_v'; the rest compares two laws that differ by a factor h = q/q' of log-range at
most D_jk on a function ρ of log-range at most D_jl. E[ρh]/(E[ρ]·E[h]) is largest where both take
two values on one event, which gives e^{D_jk ⊗ D_jl}. Hints about single tuples cancel from every
cross-ratio, and to know a tuple is to drop it, which only lowers the result. ∎

**Orders.** Any order is sound; tuples far from the target go first. The couplings do not depend on
the budgets, so an order is compiled once into a `Program`, which is then applied to any budgets.

**All targets at once.** An order makes a tree of fronts: front j is tuple j and the tuples coupled
with it when it is summed out. Take an edge of that tree. If all tuples on one side of it are summed
out, except those that its two fronts share, couplings and budgets of the shared ones are left for
the other side. Two passes, up and down, give these for both directions of every edge; then all
others in a target's own front are summed out.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contraction import contracted, contractions
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import (
    COMPILED_NETWORK,
    ELIMINATION_EACH,
    ELIMINATION_REFINED,
    ELIMINATION_WORK,
    FRONT_PAIRS,
    NEIGHBOURHOOD,
)
from pdp_calibrate.core.workers import load_kernels, lower_largest
from pdp_calibrate.families.network.couplings import Couplings

IntArray = npt.NDArray[np.int64]

_SUM = 1 + 4 * UNIT_ROUNDOFF  # covers an addition


class Program:
    """How budgets become bounds: each step adds strength ⊗ one number to another number."""

    def __init__(self) -> None:
        self._slots = 0
        self._steps: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._inputs: list[tuple[int, int]] = []
        self._outputs: dict[int, int] = {}
        self._compact: tuple[IntArray, IntArray, FloatArray] | None = None

    def new(self, number: int) -> IntArray:
        """Return places for further numbers, which are zero."""
        self._slots += number
        return np.arange(self._slots - number, self._slots)

    def start_with(self, slot: int, place: int) -> None:
        """Let a number begin with the budget of a tuple."""
        self._inputs.append((slot, place))

    def end_with(self, slot: int, place: int) -> None:
        """Let a number be the bound about a tuple."""
        self._outputs[place] = slot

    def add(self, sources: IntArray, destinations: IntArray, strengths: FloatArray) -> None:
        """Add strength ⊗ source to each destination; all of the source if strength is infinite."""
        passing = strengths > 0
        self._steps.append((sources[passing], destinations[passing], strengths[passing]))

    @property
    def places(self) -> Iterable[int]:
        """The tuples that it bounds the leakage about."""
        return self._outputs

    def bounds(self, budgets: FloatArray, *, compiled: bool = False) -> dict[int, float]:
        """Pass the budgets of all tuples through, rounding up; by compiled code if many."""
        if self._compact is None:
            parts = zip(*self._steps, strict=True) if self._steps else ()
            joined = [np.concatenate(part) for part in parts]
            empty = np.zeros(0, dtype=np.int64)
            self._compact = (
                (joined[0], joined[1], joined[2]) if joined else (empty, empty, np.zeros(0))
            )
            self._steps = []
        sources, destinations, strengths = self._compact
        values = np.zeros(self._slots)
        for slot, place in self._inputs:
            values[slot] = budgets[place]
        if compiled:
            kernels = load_kernels("pdp_calibrate.families.network.elimination_kernels")
            kernels.passed_through(values, sources, destinations, strengths)
        else:
            numbers = values.tolist()
            steps = zip(sources.tolist(), destinations.tolist(), strengths.tolist(), strict=True)
            for source, destination, strength in steps:
                added = contracted(strength, numbers[source])
                numbers[destination] = (numbers[destination] + added) * _SUM
            values = np.array(numbers)
        return {place: float(values[slot]) for place, slot in self._outputs.items()}


class _Front(NamedTuple):
    """Some tuples, in the order in which they are summed out, with their couplings and budgets."""

    members: IntArray
    """Their positions in the order."""
    strengths: FloatArray
    """How strongly every two of them are coupled; zero on the diagonal."""
    slots: IntArray
    """Where their budgets stand in the program."""


class _TimeIsUp(Exception):  # noqa: N818 (nothing went wrong)
    """The deadline has passed before a program was complete."""


class _Fronts:
    """All fronts of one order.

    Parameters
    ----------
    couplings
        The network.
    order
        The tuples that take part, in the order in which they are summed out; every tuple coupled
        with one of them must be among them.
    deadline
        When to give up, by raising `_TimeIsUp`, between one tuple and the next.
    """

    def __init__(
        self, couplings: Couplings, order: Sequence[int], *, deadline: float = math.inf
    ) -> None:
        self.order, self._size, self._deadline = order, couplings.size, deadline
        self.program = Program()
        rank = {place: number for number, place in enumerate(order)}
        neighbours = couplings.neighbours
        self._own: list[dict[int, float]] = [
            {rank[other]: d for other, d in neighbours[place].items() if rank[other] > rank[place]}
            for place in order
        ]
        self.later = filled([{rank[k] for k in neighbours[place]} for place in order])
        self.children: list[list[int]] = [[] for _ in order]
        self.roots: list[int] = []
        for number, later in enumerate(self.later):
            (self.children[later[0]] if len(later) else self.roots).append(number)

    @property
    def work(self) -> float:
        """How many pairs of couplings the pass upwards combines."""
        return float(sum(len(later) ** 2 for later in self.later))

    @property
    def work_about_each(self) -> float:
        """The same until every target is left alone in its own front."""
        return float(sum(len(later) ** 3 / 3 for later in self.later)) + self.work

    def own(self, number: int) -> _Front:
        """Return a front with its first tuple's own budget and couplings alone."""
        members = np.concatenate([[number], self.later[number]])
        strengths = np.zeros((len(members), len(members)))
        coupled = self._own[number]
        places = np.searchsorted(members, np.fromiter(coupled, np.int64, len(coupled)))
        strengths[0, places] = strengths[places, 0] = list(coupled.values())
        slots = self.program.new(len(members))
        self.program.start_with(int(slots[0]), self.order[number])
        return _Front(members, strengths, slots)

    def together(self, front: _Front, others: Iterable[_Front]) -> _Front:
        """Return a new front that also includes what others leave to some of its tuples."""
        strengths, slots = front.strengths.copy(), self.program.new(len(front.members))
        self._passed_on(front.slots, slots)
        for other in others:
            places = np.searchsorted(front.members, other.members)
            block = np.ix_(places, places)
            strengths[block] = (strengths[block] + other.strengths) * _SUM
            self._passed_on(other.slots, slots[places])
        return _Front(front.members, strengths, slots)

    def summed_out(self, front: _Front, place: int) -> _Front:
        """Sum out one of the tuples of a front; the given front must not be used again."""
        kept = np.arange(len(front.members)) != place
        coupled = front.strengths[place, kept]
        strengths = front.strengths[np.ix_(kept, kept)]
        strengths = (strengths + contractions(coupled[:, np.newaxis], coupled)) * _SUM
        np.fill_diagonal(strengths, 0.0)
        sources = np.full(len(coupled), front.slots[place])
        self.program.add(sources, front.slots[kept], coupled)
        return _Front(front.members[kept], strengths, front.slots[kept])

    def left_alone(self, front: _Front, number: int) -> None:
        """Sum out all others of a front, the most weakly coupled first; the rest is the bound."""
        while len(front.members) > 1:
            place = int(np.searchsorted(front.members, number))
            others = np.flatnonzero(np.arange(len(front.members)) != place)
            away = int(others[front.strengths[place, others].argmin()])
            front = self.summed_out(front, away)
        self.program.end_with(int(front.slots[0]), self.order[number])

    def _in_time(self, numbers: Iterable[int]) -> Iterator[int]:
        """Return the numbers of tuples until the deadline passes."""
        for number in numbers:
            if time.monotonic() > self._deadline:
                raise _TimeIsUp
            yield number

    def upwards(self, number: int, below: Sequence[_Front]) -> _Front:
        """Return what a front leaves to the one above it."""
        return self.summed_out(self.together(self.own(number), below), 0)

    def last(self) -> Program:
        """Sum all tuples out but the last one."""
        number = len(self.order) - 1
        waiting = self._up_to(number)
        self.left_alone(self.together(self.own(number), waiting.get(number, [])), number)
        return self.program

    def rest(self, number: int) -> tuple[Couplings, Program]:
        """Sum the first tuples out; return how the others are coupled then, and their budgets."""
        strengths: dict[tuple[int, int], float] = {}

        def add(first: int, second: int, strength: float) -> None:
            pair = min(first, second), max(first, second)
            strengths[pair] = (strengths.get(pair, 0.0) + strength) * _SUM

        waiting = self._up_to(number)
        slots = self.program.new(len(self.order) - number)
        for left in self._in_time(range(number, len(self.order))):
            place = self.order[left]
            self.program.start_with(int(slots[left - number]), place)
            self.program.end_with(int(slots[left - number]), place)
            for other, strength in self._own[left].items():
                add(place, self.order[other], strength)
            for said in waiting.get(left, []):
                self._passed_on(said.slots, slots[said.members - number])
                members = [self.order[member] for member in said.members.tolist()]
                for one, first in enumerate(members):
                    for other in range(one + 1, len(members)):
                        add(first, members[other], float(said.strengths[one, other]))
        return Couplings(self._size, strengths), self.program

    def _up_to(self, number: int) -> dict[int, list[_Front]]:
        """Sum out the first tuples; return what they leave, by the first tuple it is left to."""
        waiting: dict[int, list[_Front]] = {}
        for done in self._in_time(range(number)):
            said = self.upwards(done, waiting.pop(done, []))
            if len(said.members):
                waiting.setdefault(int(said.members[0]), []).append(said)
        return waiting

    def each(self, targets: frozenset[int]) -> Program:
        """Sum out all but the target, for every target, by two passes along the tree of fronts."""
        said: dict[int, _Front] = {}
        for number in self._in_time(range(len(self.order))):
            said[number] = self.upwards(number, [said[child] for child in self.children[number]])
        wanted = self._above(targets)
        heard: dict[int, _Front] = {}  # what all tuples that are not below a front leave to it
        for number in self._in_time(reversed(range(len(self.order)))):
            if not wanted[number]:
                continue
            front = self.own(number)
            if number in heard:
                front = self.together(front, [heard.pop(number)])
            children = self.children[number]
            # What all children but one leave is a sum of those before it and those after it.
            behind = [self._nothing(front)]
            for child in reversed(children):
                behind.append(self.together(behind[-1], [said[child]]))
            for child in children:
                behind.pop()
                if wanted[child]:
                    heard[child] = self._down_to(child, self.together(front, [behind[-1]]))
                front = self.together(front, [said[child]])
            if self.order[number] in targets:
                self.left_alone(front, number)
        return self.program

    def _above(self, targets: frozenset[int]) -> list[bool]:
        """Return which fronts are on the way to a target."""
        wanted = [place in targets for place in self.order]
        for number, children in enumerate(self.children):
            wanted[number] = wanted[number] or any(wanted[child] for child in children)
        return wanted

    def _nothing(self, front: _Front) -> _Front:
        size = len(front.members)
        return _Front(front.members, np.zeros((size, size)), self.program.new(size))

    def _down_to(self, child: int, front: _Front) -> _Front:
        """Sum out the tuples that a front does not share with one below it."""
        shared = set(self.later[child].tolist())
        for member in front.members.tolist():
            if member not in shared:
                front = self.summed_out(front, int(np.searchsorted(front.members, member)))
        return front

    def _passed_on(self, sources: IntArray, destinations: IntArray) -> None:
        self.program.add(sources, destinations, np.full(len(sources), math.inf))


def filled(later: list[set[int]]) -> list[IntArray]:
    """Return the later tuples of the order that each is coupled with when it is summed out."""
    found = []
    for number, near in enumerate(later):
        near = {other for other in near if other > number}
        found.append(np.array(sorted(near), dtype=np.int64))
        if near:
            # The next one among them is coupled with all the others from now on.
            later[min(near)] |= near
    return found


def farthest_first(couplings: Couplings, target: int) -> list[int]:
    """Order the component of a target by how far its tuples are away, the farthest first."""
    distances = couplings.distances(target)
    return sorted(distances, key=lambda place: (-distances[place], place))


def least_fill(
    couplings: Couplings, places: Iterable[int], *, last: int | None = None
) -> list[int]:
    """Order tuples so that summing each of them out makes few new couplings."""
    near = {place: set(couplings.neighbours[place]) for place in places}

    def cost(place: int) -> tuple[int, int]:
        around = near[place]
        missing = sum(len(around) - 1 - len(near[other] & around) for other in around)
        return missing, len(around)

    costs = {place: cost(place) for place in near if place != last}
    waiting = [(found, place) for place, found in costs.items()]
    heapq.heapify(waiting)
    order: list[int] = []
    while waiting:
        found, place = heapq.heappop(waiting)
        if costs.get(place) != found:
            continue  # it was pushed again since, with another cost
        order.append(place)
        around = near.pop(place)
        del costs[place]
        for other in around:
            near[other] |= around
            near[other] -= {other, place}
        affected = set(around)
        if found[0]:
            for other in around:
                affected |= near[other]
        for other in affected - {last}:
            now = cost(other)
            if now != costs[other]:
                costs[other] = now
                heapq.heappush(waiting, (now, other))
    return order if last is None else [*order, last]


class _Neighbourhood(NamedTuple):
    """What is left around some tuple once all tuples far away are summed out."""

    couplings: Couplings
    """How those left are coupled."""
    program: Program
    """What passes budgets on to them."""
    inner: frozenset[int]
    """The tuples so far inside that an order of their own can be found within what is left."""


class Elimination:
    """Bounds on the leakage about the tuples of a network, for any budgets.

    All targets are bounded at once by two passes. The largest of these bounds are lowered by an
    order for each target, farthest first; targets close to each other share the far part of it.

    Parameters
    ----------
    couplings
        The network, without what is known.
    """

    def __init__(self, couplings: Couplings) -> None:
        self.couplings = couplings
        self._all: list[Program] = []
        self._waiting = [one for one in reversed(couplings.components) if len(one) > 1]
        self._refined: dict[int, tuple[_Neighbourhood | None, Program] | None] = {}
        self._around: dict[int, _Neighbourhood] = {}
        self._work_left = ELIMINATION_REFINED

    def bounds(
        self,
        budgets: FloatArray,
        targets: Sequence[int],
        *,
        enough: float = 0.0,
        deadline: float = math.inf,
    ) -> FloatArray:
        """Bound the leakage about every target, whatever adversaries know.

        Parameters
        ----------
        budgets
            ε_j of every tuple.
        targets
            The tuples that bounds are needed for.
        enough
            Bounds below this need not be lowered.
        deadline
            When to stop lowering bounds.

        Returns
        -------
        numpy.ndarray
            One bound per tuple; those of tuples that are no targets may be coarse.
        """
        budgets = np.asarray(budgets, dtype=np.float64)
        if self.couplings.is_forest:
            return self.couplings.forest_bounds(budgets)
        found = self.couplings.merged_bounds(budgets)
        if len(targets) > 1 or self._refinement(targets[0], deadline) is None:
            for program in self._passes(deadline):
                for place, bound in program.bounds(budgets, compiled=self._compiled).items():
                    found[place] = min(found[place], bound)
        self._refine(found, budgets, targets, enough, deadline)
        return found

    @property
    def _compiled(self) -> bool:
        return self.couplings.size > COMPILED_NETWORK

    def _passes(self, deadline: float) -> list[Program]:
        """Return the programs of all targets at once, component by component, as time allows."""
        while self._waiting and time.monotonic() <= deadline:
            together = self._waiting[-1]
            order = least_fill(self.couplings, together)
            fronts = _Fronts(self.couplings, order, deadline=deadline)
            if fronts.work_about_each <= ELIMINATION_EACH:
                try:
                    self._all.append(fronts.each(frozenset(together)))
                except _TimeIsUp:
                    break
            self._waiting.pop()
        return self._all

    def _refine(
        self,
        found: FloatArray,
        budgets: FloatArray,
        targets: Sequence[int],
        enough: float,
        deadline: float,
    ) -> None:
        """Lower the largest bounds, one by one, until the largest of all is as low as it gets."""
        passed: dict[int, FloatArray] = {}

        def lowered(target: int) -> float | None:
            refined = self._refinement(target, deadline)
            if refined is None:
                return None
            around, program = refined
            given = budgets
            if around is not None:
                if id(around) not in passed:
                    left = around.program.bounds(budgets, compiled=self._compiled)
                    passed[id(around)] = np.zeros(len(budgets))
                    passed[id(around)][list(left)] = list(left.values())
                given = passed[id(around)]
            return program.bounds(given, compiled=self._compiled)[target]

        lower_largest(
            found, targets, lowered, enough=enough, is_over=lambda: time.monotonic() > deadline
        )

    def _refinement(
        self, target: int, deadline: float
    ) -> tuple[_Neighbourhood | None, Program] | None:
        """Return the program of one target; None where it would take too much work or time."""
        if target not in self._refined:
            found, work_left = None, self._work_left
            if work_left > 0:
                try:
                    found = self._farthest_first(target, deadline)
                except _TimeIsUp:
                    self._work_left = work_left  # a later call may have more time
                    return None
            self._refined[target] = found
        return self._refined[target]

    def _farthest_first(
        self, target: int, deadline: float
    ) -> tuple[_Neighbourhood | None, Program] | None:
        order = farthest_first(self.couplings, target)
        around: _Neighbourhood | None = None
        couplings = self.couplings
        if len(order) > 2 * NEIGHBOURHOOD:
            around = self._around.get(target) or self._neighbourhood(target, order, deadline)
            if around is None:
                return None
            couplings = around.couplings
            left = set(around.program.places)
            order = [place for place in order if place in left]
        fronts = _Fronts(couplings, order, deadline=deadline)
        if not self._is_affordable(fronts):
            return None
        return around, fronts.last()

    def _neighbourhood(
        self, center: int, order: Sequence[int], deadline: float
    ) -> _Neighbourhood | None:
        """Sum out all tuples except this many nearest to the center."""
        distances = self.couplings.distances(center)
        last = sorted(distances.values())[NEIGHBOURHOOD - 1]
        fronts = _Fronts(self.couplings, order, deadline=deadline)
        if not self._is_affordable(fronts):
            return None
        far = sum(1 for place in order if distances[place] > last)
        couplings, program = fronts.rest(far)
        inner = frozenset(place for place in order if 2 * distances[place] <= last)
        found = _Neighbourhood(couplings, program, inner)
        for place in inner:
            self._around.setdefault(place, found)
        return found

    def _is_affordable(self, fronts: _Fronts) -> bool:
        work = fronts.work + FRONT_PAIRS * len(fronts.order)
        self._work_left -= work
        return work <= ELIMINATION_WORK
