"""How far a coupling moves a sum along a long chain, one side of the target at a time.

Given the target's state, the left side is independent of the right side. So both may be coupled
separately: the answer moves by as much as the target itself adds, plus W∞ of each side
(`core.couplings`), whatever adversaries know. A side is known at some distance or open to the end
of the chain, so there are as many sides as steps, while there are as many windows as pairs of
steps. For one side the laws of the sum, given the target's state and the state at its end, are
summed over all paths as logarithms: W∞ compares quantiles down to the rarest path.

The bound holds at every δ. It is larger than that of a coupling of whole windows, whose quantiles
need not move furthest on both sides at once. Shifts keep their sign, so that a side that moves
against the target lowers the bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.couplings import quantile_shifts
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import SIDE_STEPS
from pdp_calibrate.families.chain.windows import IntArray, Setup


def move_by_sides(setup: Setup) -> float | None:
    """Bound how far a coupling moves the sum over a chain; None if there are too many sides.

    The bound is for all targets, and for all adversaries, whatever they know.
    """
    lattice = setup.lattice(setup.length - 1)
    tops = lattice.points.max(axis=1)
    targets = 1 if setup.homogeneous else setup.length
    if targets * setup.length * float(tops.sum() + 1) * setup.states**3 > SIDE_STEPS:
        return None
    sides = _Sides(setup, lattice.points)
    furthest = 0.0
    if setup.homogeneous:
        # The target may stand anywhere, so the start of the chain may be at any distance.
        left = sides.furthest(itertools.chain(sides.known(0, backwards=True), sides.from_start()))
        right = sides.furthest(sides.known(0, backwards=False))
        furthest = sides.together(0, left, right)
    else:
        for target in range(setup.length):
            left = sides.furthest(
                itertools.chain(sides.known(target, backwards=True), sides.from_start(target))
            )
            right = sides.furthest(sides.known(target, backwards=False))
            furthest = max(furthest, sides.together(target, left, right))
    off = 2 * float(lattice.errors.sum())
    moved = min(furthest * lattice.step + off, float(setup.ranges.sum()))
    return moved * (1 + 8 * UNIT_ROUNDOFF * (setup.length + 4)) * ROUND_UP


class _Sides:
    """The laws of what lies on one side of a target."""

    def __init__(self, setup: Setup, points: IntArray) -> None:
        self._setup, self._points = setup, points
        self._pairs = list(itertools.permutations(range(setup.states), 2))
        steps = (setup.states + 2) * (setup.length + 2)
        depth = setup.largest_log * (setup.length + 1) + 1
        self._error = 4 * UNIT_ROUNDOFF * steps * depth

    def known(self, target: int, *, backwards: bool) -> Iterator[FloatArray]:
        """Yield laws given the state at a known end, further and further away.

        They are indexed [state at the end, state of the target, sum]; on the right, the law of a
        side that is open to the end of the chain follows each.
        """
        setup, same = self._setup, self._setup.homogeneous
        kernel = setup.log_kernel if backwards else setup.log_kernel.T
        here = np.array(kernel)[:, :, np.newaxis]  # [end, target, sum]
        most = setup.length - 1 if same else (target if backwards else setup.length - 1 - target)
        for distance in range(1, most + 1):
            yield here
            place = 0 if same else (target - distance if backwards else target + distance)
            if not backwards:
                yield _mixed(self._added(here, place), np.zeros((1, setup.states)))
            if distance < most:
                here = _mixed(self._added(here, place), kernel)

    def from_start(self, target: int | None = None) -> Iterator[FloatArray]:
        """Yield the law of a left side that reaches the start of the chain, at any distance."""
        start = self._setup.log_start[np.newaxis]
        for distance, here in enumerate(self.known(target or 0, backwards=True), start=1):
            if target is None or distance == target:
                place = 0 if target is None else target - distance
                yield _mixed(self._added(here, place), start)

    def _added(self, here: FloatArray, place: int) -> FloatArray:
        """Add the tuple at the end to the sum."""
        points = self._points[place]
        states, secrets, size = here.shape
        there = np.full((states, secrets, size + int(points.max())), -np.inf)
        for state, by in enumerate(points.tolist()):
            there[state, :, by : by + size] = here[state]
        return there

    def furthest(self, laws: Iterator[FloatArray]) -> FloatArray:
        """Return the largest shifts of all laws, up and down, for all pairs of states."""
        states = self._setup.states
        shifts = np.zeros((2, states, states))
        for here in laws:
            masses = np.logaddexp.reduce(here, axis=2)
            for first, second in self._pairs:
                ends = np.flatnonzero((masses[:, [first, second]] > -np.inf).all(axis=1))
                if len(ends) and here.shape[2] > 1:
                    own = [
                        here[ends, state] - masses[ends, state, np.newaxis]
                        for state in (first, second)
                    ]
                    atoms = np.arange(here.shape[2], dtype=np.float64)
                    found = quantile_shifts(atoms, own[0], own[1], error=self._error)
                    now = shifts[:, first, second]
                    shifts[:, first, second] = np.maximum(now, [part.max() for part in found])
        return shifts

    def together(self, target: int, left: FloatArray, right: FloatArray) -> float:
        """Add up what the target and both sides move, at worst."""
        own = self._points[target].astype(np.float64)
        moved = own - own[:, np.newaxis]  # [first, second]
        up, down = moved + left[0] + right[0], -moved + left[1] + right[1]
        return float(max(up.max(), down.max()))


def _mixed(rows: FloatArray, kernel: FloatArray) -> FloatArray:
    """Return log Σ_old e^{kernel[new, old] + rows[old]} for every new state."""
    found = [
        np.logaddexp.reduce(rows + weights[:, np.newaxis, np.newaxis], axis=0) for weights in kernel
    ]
    return np.stack(found)
