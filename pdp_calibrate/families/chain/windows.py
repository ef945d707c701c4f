"""Which windows an adversary can look through, and what their leakage counts for.

Given what is known, only the nearest known tuple on each side of the target matters. A window has
a left and a right side. Each is *known* at some distance, or *none* (everything up to the end of
the chain is unknown); *far* stands for all sides longer than the reach of the search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.families.chain.setup import Setup
from pdp_calibrate.families.chain.steps import NOT, TAILS, WHOLE

IntArray = npt.NDArray[np.int64]


Kind = Literal["known", "none", "far"]


class Side(NamedTuple):
    """One side of a window."""

    kind: Kind
    """Ended by a known tuple, by the end of the chain, or somewhere out of reach."""
    distance: int
    """Distance of the known tuple, or number of unknown tuples."""
    value: int = 0
    """The state of the known tuple."""

    @property
    def inside(self) -> int:
        """How many unknown tuples it has."""
        return self.distance - 1 if self.kind == "known" else self.distance


@dataclass(frozen=True, kw_only=True)
class Ends:
    """What the right ends of one left side count for; see `steps.Left`."""

    known_up: FloatArray
    known_low: IntArray
    none_up: FloatArray
    none_low: IntArray
    left_far: npt.NDArray[np.bool_]
    """Where a known right end stands for a left side out of reach."""
    left_far_none: npt.NDArray[np.bool_]
    """The same where the right side is open."""
    right_far: npt.NDArray[np.bool_]
    """Where a known right end stands for right sides out of reach."""

    @property
    def used(self) -> bool:
        """Whether any window counts at all."""
        return len(self.known_up) > 1


class Rules:
    """Which windows the adversaries of a problem admit."""

    def __init__(
        self, setup: Setup, knowledge: Knowledge, *, hidden: bool, target: int | None, reach: int
    ) -> None:
        self.setup, self.knowledge, self.hidden = setup, knowledge, hidden
        self.target = target
        self.reach = reach
        last = setup.length - 1
        self.most_left = min(reach, last if target is None else target)
        self.most_right = min(reach, last if target is None else last - target)
        self.truncated = reach < last

    @property
    def may_prune(self) -> bool:
        """Whether a smaller window is admitted wherever a larger one is."""
        return self.knowledge.most >= 2 or self.knowledge.most == self.setup.length - 1

    def none_left(self, distance: int) -> bool:
        """Whether so many unknown tuples may reach from the target to the start of the chain."""
        return self.target is None or self.target == distance

    def possible(self, distance: int) -> list[int]:
        """Return the states that a tuple so far to the left can be known to have."""
        setup = self.setup
        if self.target is None:
            return [int(w) for w in np.flatnonzero(setup.first < setup.length - distance)]
        return [int(w) for w in np.flatnonzero(setup.support[self.target - distance])]

    def ends(self, left: Side) -> Ends:
        """Work out what every right end counts for."""
        steps = self.most_right + 2
        distance = np.arange(steps)
        known, none = self._feasible(left, distance)
        inside = left.inside + distance - 1
        ends = int(left.kind == "known")
        known_low = np.where(known, self._codes(inside, ends + 1), NOT)
        none_low = np.where(none, self._codes(inside + 1, ends), NOT)
        known_up = np.where(known_low > NOT, 0.0, -np.inf)
        none_up = np.where(none_low > NOT, 0.0, -np.inf)
        left_far = left_far_none = right_far = np.zeros(steps, dtype=np.bool_)
        if self.truncated:
            left_far, left_far_none, right_far = self._beyond(left, distance)
            cost_left = self.setup.diameters[left.distance] if left.kind == "known" else 0.0
            cost_right = self.setup.diameters[self.most_right]
            known_up = np.where(left_far, cost_left, known_up)
            none_up = np.where(left_far_none, cost_left, none_up)
            both = right_far & self._far_left(left, distance + 1)
            known_up = np.where(right_far, np.maximum(known_up, cost_right), known_up)
            known_up = np.where(both, cost_left + cost_right, known_up)
            left_far = (left_far & ~right_far) | both
        used = np.flatnonzero((known_up > -np.inf) | (known_low > NOT))
        open_ends = np.flatnonzero((none_up > -np.inf) | (none_low > NOT))
        stop = 1 + max(used[-1] if len(used) else 0, open_ends[-1] + 1 if len(open_ends) else 0)
        return Ends(
            known_up=known_up[:stop],
            known_low=known_low[:stop],
            none_up=none_up[:stop],
            none_low=none_low[:stop],
            left_far=left_far[:stop],
            left_far_none=left_far_none[:stop],
            right_far=right_far[:stop],
        )

    def _feasible(
        self, left: Side, distance: IntArray
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return at which distances a right end may be known, and where the chain may end."""
        setup, last = self.setup, self.setup.length - 1
        within = (distance >= 1) & (distance <= self.most_right)
        if self.target is not None:
            behind = last - self.target
            return within & (distance <= behind), (distance == behind) & (behind <= self.reach)
        if left.kind == "none":
            return (
                within & (left.distance + distance <= last),
                (left.distance + distance == last) & (distance <= self.reach),
            )
        begins = last - distance - left.distance  # where the known tuple stands
        none = (begins >= 0) & (distance <= self.reach)
        none &= setup.support[np.maximum(begins, 0), left.value]
        return within & (setup.first[left.value] <= begins), none

    def _codes(self, inside: IntArray, ends: int) -> IntArray:
        """Return NOT, TAILS or WHOLE for windows with so many unknown tuples and known ends.

        Unknown tuples outside a window blur the answer further. They are dropped for the upper
        end; the tails, from which they cancel, serve the lower end.
        """
        knowledge = self.knowledge
        outside = self.setup.length - 1 - inside
        admitted = (max(ends, knowledge.fewest) <= outside) & (
            max(ends, knowledge.fewest) <= knowledge.most
        )
        whole = admitted & (outside <= knowledge.most) & (not self.hidden)
        return np.where(whole, WHOLE, np.where(admitted, TAILS, NOT)).astype(np.int64)

    def _far_left(self, left: Side, right: IntArray) -> npt.NDArray[np.bool_]:
        """Return where windows may exist that reach further left; `right` is how far they go."""
        last = self.setup.length - 1
        if left.kind != "known" or left.distance < self.reach:
            return np.zeros(len(right), dtype=np.bool_)
        fits = (
            left.distance + 1 + right <= last
            if self.target is None
            else np.full(len(right), self.target > self.reach)
        )
        return fits & (self.knowledge.fewest <= last - (left.distance + right - 1))

    def _beyond(self, left: Side, distance: IntArray) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return where windows stand for larger ones: further left (known, open), further right."""
        last, most = self.setup.length - 1, self.knowledge.most
        known, none = self._feasible(left._replace(value=int(self.setup.first.argmin())), distance)
        left_known = self._far_left(left, distance) & known & (most >= 1)
        left_none = self._far_left(left, distance) & none
        fits = (
            left.distance + self.reach + 1 <= last
            if self.target is None
            else last - self.target > self.reach
        )
        ends = int(left.kind == "known")
        allowed = (ends <= most) & (self.knowledge.fewest <= last - (left.inside + self.reach))
        far_both = self._far_left(left, distance + 1)
        right = (distance == self.reach) & fits & (allowed | far_both)
        return left_known, left_none, right
