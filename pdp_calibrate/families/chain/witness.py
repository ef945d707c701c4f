"""Where a window stands on the chain, and the witness who looks through it."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from pdp_calibrate.core.adversary import Knowledge, Witness
from pdp_calibrate.core.mixtures import DEFICITS, LOGS
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.families.chain.setup import Setup
from pdp_calibrate.families.chain.walk import Walk
from pdp_calibrate.families.chain.windows import Side


class Place(NamedTuple):
    """A target and the nearest known tuples around it."""

    target: int
    low: int
    """Position of the known tuple on the left, −1 if there is none."""
    high: int
    """Position of the known tuple on the right, the length of the chain if there is none."""

    @classmethod
    def nearest(cls, length: int, target: int, known: Collection[int]) -> Place:
        """Find the window that an adversary looks through."""
        low, high = target - 1, target + 1
        while low >= 0 and low not in known:
            low -= 1
        while high < length and high not in known:
            high += 1
        return cls(target, low, high)

    @classmethod
    def of(
        cls, setup: Setup, knowledge: Knowledge, target: int | None, left: Side, right: Side
    ) -> Place:
        """Put a window on the chain; sides out of reach are open, or just long enough."""
        last = setup.length - 1
        place = _target(setup, left, right) if target is None else target
        low = place - left.distance if left.kind == "known" else -1
        high = place + right.distance if right.kind == "known" else last + 1
        if knowledge.fewest > last - (high - low - 2):
            low = max(low, place - left.distance - 1) if left.kind == "far" else low
            high = min(high, place + right.distance + 1) if right.kind == "far" else high
        return cls(place, low, high)

    @property
    def inside(self) -> int:
        """How many unknown tuples the window has."""
        return self.high - self.low - 2

    def sides(self, length: int, reach: int) -> tuple[Side, Side]:
        """Return both sides; those longer than the reach are walked as far as it goes."""
        left = Side("none", self.target) if self.low < 0 else Side("known", self.target - self.low)
        right = Side("known", self.high - self.target)
        if self.high == length:
            right = Side("none", length - 1 - self.target)
        return _within(left, reach), _within(right, reach)

    def unknown(self, length: int, most: int) -> tuple[int, ...]:
        """Name the unknown tuples: the window's, and the remotest ones if few may be known."""
        outside = [p for p in range(length) if p <= self.low or p >= self.high]
        outside.sort(key=lambda p: max(self.low - p, p - self.high))
        remote = set(outside[most:])
        inside = (p for p in range(self.low + 1, self.high) if p != self.target)
        return tuple(sorted([*inside, *remote]))

    def witness(
        self,
        problem: Problem,
        setup: Setup,
        ends: tuple[int, int],
        secrets: tuple[int, int],
        moved: float,
        unknown: tuple[int, ...],
    ) -> Witness:
        """Describe the adversary; tuples known outside the window follow a possible course."""
        course = _course_around(setup, self, ends)
        hidden = {self.target, *unknown}
        states, values = setup.chain.states, problem.contributions.values
        known = [position for position in range(setup.length) if position not in hidden]
        output = moved
        if math.isfinite(moved):
            output += math.fsum(values[p][course[p], 0] for p in known)
            output += math.fsum(setup.lowest[list(hidden)])
        return Witness(
            target=problem.names[self.target],
            known={problem.names[p]: states[course[p]] for p in known},
            secrets=(states[secrets[0]], states[secrets[1]]),
            output=output,
            model=problem.model,
            index=problem.index,
        )


def witness_in(
    problem: Problem,
    walk: Walk,
    place: Place,
    sides: tuple[Side, Side],
    unknown: tuple[int, ...],
    *,
    hidden: bool,
) -> Witness:
    """Find secrets and output in the window that attains the lower end."""
    left, right = sides
    if left == Side("none", 0):
        rows, masses = walk.at_start()
    else:
        for distance, here, all_masses in walk.lefts(left.distance):
            if distance < left.distance:
                continue
            if left.kind == "none":
                rows, masses = walk.from_start(distance, here, all_masses)
            else:
                rows, masses = here[left.value], all_masses[left.value]
    rows, masses = walk.whole_window(rows, masses, right)
    secrets, point = _largest_gap(rows, masses, walk.noise.form, ends_only=hidden)
    moved = float(point) * walk.noise.step * walk.scale
    if hidden:
        moved = math.inf if point else -math.inf
    known = left.value, right.value
    return place.witness(problem, walk.setup, known, secrets, moved, unknown)


def _largest_gap(
    rows: np.ndarray, masses: np.ndarray, form: int, *, ends_only: bool
) -> tuple[tuple[int, int], int]:
    with np.errstate(divide="ignore", invalid="ignore"):
        if form == LOGS:
            logs = rows - masses[:, np.newaxis]
            possible = masses > -np.inf
        else:
            shares = rows / masses[:, np.newaxis]
            logs = np.log1p(-shares) if form == DEFICITS else np.log(shares)
            possible = masses > 0
    highest = np.where(possible[:, np.newaxis], logs, -np.inf)
    lowest = np.where(possible[:, np.newaxis], logs, np.inf)
    gains = highest.max(axis=0) - lowest.min(axis=0)
    if ends_only:
        gains[1:-1] = -np.inf
    point = int(gains.argmax())
    first, second = int(highest[:, point].argmax()), int(lowest[:, point].argmin())
    if first == second:  # nothing to tell apart: any two secrets will do
        first, second = np.flatnonzero(possible)[:2].tolist()
    return (first, second), point


def likely_course(setup: Setup) -> dict[int, int]:
    """Return a possible course of the whole chain, by position."""
    state = int(setup.start.argmax())
    following = setup.kernel.argmax(axis=1)
    course = {0: state}
    for position in range(1, setup.length):
        state = int(following[state])
        course[position] = state
    return course


def _course_around(setup: Setup, place: Place, ends: tuple[int, int]) -> dict[int, int]:
    """Continue the states at both ends of a window outwards, by possible steps."""
    course: dict[int, int] = {}
    if place.low >= 0:
        state = course[place.low] = ends[0]
        before = setup.kernel.argmax(axis=0)
        always = bool(setup.support[0].all())
        for position in range(place.low - 1, -1, -1):
            if always:
                state = int(before[state])
            else:
                state = int((setup.kernel[:, state] * setup.support[position]).argmax())
            course[position] = state
    if place.high < setup.length:
        state = course[place.high] = ends[1]
        following = setup.kernel.argmax(axis=1).tolist()
        for position in range(place.high + 1, setup.length):
            state = course[position] = following[state]
    return course


def _within(side: Side, reach: int) -> Side:
    return side if side.distance <= reach else Side("far", reach)


def _target(setup: Setup, left: Side, right: Side) -> int:
    """Choose a target from which the window's sides fit on the chain."""
    last = setup.length - 1
    if left.kind == "none":
        return left.distance
    if right.kind == "none":
        return last - right.distance
    if left.kind == "known":
        return int(setup.first[left.value]) + left.distance
    return last - right.distance if right.kind == "known" else setup.length // 2
