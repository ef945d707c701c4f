"""Walking windows at one scale: densities on the left of a target, then all right ends.

`Place` is where a window stands on the chain; `witness_in` names the adversary who sees it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge, Witness
from pdp_calibrate.core.mixtures import (
    DEFICITS,
    LARGEST_EXPONENT,
    LOGS,
    Lattice,
    form_of,
    rounding_error,
)
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import TOGETHER_AT_MOST, TOGETHER_NUMBERS, TOGETHER_SIDES
from pdp_calibrate.core.workers import load_kernels
from pdp_calibrate.families.chain.windows import (
    LAWS,
    Ends,
    Evaluation,
    IntArray,
    Left,
    Noise,
    Right,
    Setup,
    Side,
    Step,
    advance,
    compare,
    first_right,
    run_right,
    summed_out,
    walk,
    weighted,
)

KERNELS = "pdp_calibrate.families.chain.kernels"


class Walk:
    """Windows around one target (or around all of them, where every tuple adds the same).

    With `laws`, the law of each window's sum is walked instead of the density of the noisy sum.
    Densities are indexed [state at the end, secret, point].
    """

    def __init__(
        self,
        setup: Setup,
        lattice: Lattice,
        scale: float,
        *,
        target: int | None,
        left: int,
        right: int,
        laws: bool = False,
        compiled: bool = False,
    ) -> None:
        self.setup, self.scale = setup, scale
        place = 0 if target is None else target
        points = lattice.points
        self.own = points[place]
        if target is None:
            self.left, self.right = np.tile(points[0], (left, 1)), np.tile(points[0], (right, 1))
            total = int(self.own.max()) * (min(left + right, setup.length) + 1)
            # Beside a longer left part, a shorter one is continued by its tail to the same length.
            longest = int(self.own.max()) * (left + right + 1)
        else:
            self.left = points[max(place - left, 0) : place][::-1]
            self.right = points[place + 1 : place + 1 + right]
            window = slice(max(place - left, 0), place + 1 + right)
            longest = total = int(points[window].max(axis=1).sum())
        step = lattice.step / scale
        width = total * step
        deepest = -2 * float(setup.log_rarest[min(max(left, right), len(setup.log_rarest) - 1)])
        deepest -= float(setup.log_start[np.isfinite(setup.log_start)].min())
        widest = width if laws else longest * step  # laws, without noise, have no tail
        form = LOGS if form_of(widest, deepest) == LOGS else form_of(width, deepest)
        self.is_deep = form == LOGS
        self.tiny = 1e-310 * math.exp(min(deepest, LARGEST_EXPONENT))
        form = LAWS if laws else form
        gaps = np.arange(total + 1) * step
        decay = np.asarray(-gaps if form == LOGS else np.exp(-gaps), dtype=float)
        if laws:  # no noise
            decay = np.where(gaps > 0, 0.0, 1.0)
        self.noise = Noise(
            step=step,
            decay=decay,
            lack=-np.expm1(-gaps) if form == DEFICITS else np.zeros(total + 1),
            form=form,
        )
        # Copies, because compiled code tells read-only arrays and other layouts apart.
        self.matrix = np.array(setup.log_kernel if form == LOGS else setup.kernel)
        self.start = np.array(setup.log_start if form == LOGS else setup.start)
        self.error = self._rounding(left + right, width)
        moved = 2 * lattice.errors / scale  # how much rounding contributions may change a leakage
        before = np.full(left, moved[0]) if target is None else moved[max(place - left, 0) : place]
        after = np.full(right, moved[0]) if target is None else moved[place + 1 :][:right]
        self.left_costs = moved[place] + np.concatenate([[0.0], np.cumsum(before[::-1])])
        ahead = np.concatenate([[0.0], np.cumsum(after)])
        # By the number of tuples walked: the last one is unknown, or known and not counted.
        self.right_costs = np.append(ahead, ahead[-1])
        self.known_costs = np.concatenate([[0.0], ahead])
        each = setup.states**2 * (total + 1)
        few = min(TOGETHER_SIDES, TOGETHER_AT_MOST // each)
        self.together = max(1, few, TOGETHER_NUMBERS // each)
        self._is_compiled = compiled

    @functools.cached_property
    def evaluation(self) -> Evaluation:
        """How densities are computed, loaded when the first window is walked to its right end."""
        return self._compiled() if self._is_compiled else Evaluation(advance, walk, compare)

    def _compiled(self) -> Evaluation:
        """Return compiled steps; both take one array of walks side by side."""
        kernels = load_kernels(KERNELS)

        def stepping(kernel: Callable[..., tuple[FloatArray, FloatArray]]) -> Step:
            def stepped(
                source: FloatArray,
                masses: FloatArray,
                points: IntArray,
                matrix: FloatArray,
                noise: Noise,
            ) -> tuple[FloatArray, FloatArray]:
                states, *sides, size = source.shape
                there, moved = kernel(
                    np.ascontiguousarray(source).reshape(states, -1, size),
                    np.ascontiguousarray(masses).reshape(states, -1),
                    np.ascontiguousarray(points), np.ascontiguousarray(matrix), *noise,
                )  # fmt: skip
                return there.reshape(len(matrix), *sides, -1), moved.reshape(len(matrix), *sides)

            return stepped

        def compared(
            here: FloatArray, masses: FloatArray, form: int
        ) -> tuple[FloatArray, FloatArray]:
            here, masses = np.ascontiguousarray(here), np.ascontiguousarray(masses)
            ratios: tuple[FloatArray, FloatArray] = kernels.compare_densities(here, masses, form)
            return ratios

        return Evaluation(stepping(kernels.advance), stepping(kernels.walk), compared)

    def _rounding(self, steps: int, width: float) -> float:
        """Bound the rounding error of a log-ratio.

        A step rounds a term twice in the shift, once by its weight and once per state; in
        logarithms, four of its results are logarithms as large as those of all steps together.
        """
        setup = self.setup
        operations = (setup.states + 4) * (steps + 2) + setup.states**3 + 24
        self.unit = 4 * UNIT_ROUNDOFF * operations
        if self.noise.form == LAWS:
            return 0.0  # laws are compared elsewhere, rounding included
        return rounding_error(
            self.noise.form,
            width=width,
            operations=operations,
            distance_operations=4,
            log_operations=4 * (steps + 2),
            depth=setup.largest_log * (steps + 2),
        )

    def lefts(self, most: int) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Yield distance, densities [state, secret, point] and masses, from 1 to `most`."""
        form, kernel = self.noise.form, self._own_kernel()
        here = weighted(kernel, self.matrix[..., np.newaxis], form)
        masses = np.array(self.matrix)
        for distance in range(1, most + 1):
            yield distance, here, masses
            if distance < most:
                points = self.left[distance - 1]
                here, masses = self.evaluation.advance(
                    here, masses, points, self.matrix, self.noise
                )

    def from_start(
        self, distance: int, here: FloatArray, masses: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Close the left side at the start of the chain, `distance` ≥ 1 tuples away."""
        points, start = self.left[distance - 1], self.start[np.newaxis]
        rows, totals = self.evaluation.advance(here, masses, points, start, self.noise)
        return rows[0], totals[0]

    def at_start(self) -> tuple[FloatArray, FloatArray]:
        """Return the left side of a target that is the first tuple."""
        rows = weighted(self._own_kernel(), self.start[:, np.newaxis], self.noise.form)
        return rows, np.array(self.start)

    def _own_kernel(self) -> FloatArray:
        """Return the noise around what the target itself adds, one row per secret."""
        gaps = np.abs(np.arange(int(self.own.max()) + 1) - self.own[:, np.newaxis])
        kernel = self.noise.lack if self.noise.form == DEFICITS else self.noise.decay
        return np.asarray(kernel[gaps])

    def begun(self, rows: FloatArray, masses: FloatArray, inside: int, ends: Ends) -> Left:
        """Return a left part with `inside` unknown tuples, and how its right ends are counted."""
        return Left(rows, masses, float(self.left_costs[inside]), ends)

    def right_ends(self, lefts: Sequence[Left], threshold: float) -> list[Right]:
        """Walk to the right and compare secrets at all ends that count.

        Windows that cannot leak more than the threshold need not be distinguished.
        """
        costs = self.known_costs, self.right_costs
        return run_right(
            lefts, self.right, costs, self.matrix, self.noise, threshold, self.evaluation
        )

    def left_part(self, left: Side) -> tuple[FloatArray, FloatArray]:
        """Return densities and masses of a left side; if its end is known, one row per state."""
        if left.distance == 0:
            return self.at_start()
        _, here, masses = next(self.lefts(1))
        here, masses = self.evaluation.walk(
            here, masses, self.left[: left.distance - 1], self.matrix, self.noise
        )
        if left.kind == "none":
            return self.from_start(left.distance, here, masses)
        return here, masses

    def left_sides(self, place: Place, left: Side) -> tuple[list[Side], FloatArray, FloatArray]:
        """Return every value that the left end of a window can have, with densities and masses.

        They are indexed [secret, side, point], as `whole_windows` takes them.
        """
        rows, masses = self.left_part(left)
        if left.kind == "none":
            return [left], rows[:, np.newaxis], masses[:, np.newaxis]
        states = np.flatnonzero(self.setup.support[place.target - left.distance]).tolist()
        sides = [left._replace(value=state) for state in states]
        return sides, rows[states].swapaxes(0, 1), masses[states].T

    def whole_windows(
        self, rows: FloatArray, masses: FloatArray, right: Side
    ) -> tuple[FloatArray, FloatArray]:
        """Return the densities of whole windows, per state of the right end, in the walk's form.

        `rows` is indexed [secret, left side, point]. Where the right side is open to the end of
        the chain, one state stands for all of them.
        """
        form, backwards = self.noise.form, self.matrix.T
        here, ends = first_right(rows, masses, self.matrix, form)
        points = self.right[: right.distance - (right.kind != "none")]
        here, ends = self.evaluation.walk(here, ends, points, backwards, self.noise)
        if right.kind != "none":
            return here, ends
        return summed_out(here, form), summed_out(ends, form)


class Place(NamedTuple):
    """A target and the nearest known tuples around it."""

    target: int
    low: int
    """Position of the known tuple on the left, −1 if there is none."""
    high: int
    """Position of the known tuple on the right, the length of the chain if there is none."""

    @classmethod
    def nearest(cls, length: int, target: int, known: Collection[int]) -> Place:
        """Find the window of an adversary: the nearest known tuple on each side."""
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
        """Describe the adversary; tuples known outside the window hold some possible states."""
        course = course_around(setup, self, ends)
        hidden = {self.target, *unknown}
        values = problem.contributions.values
        known = [position for position in range(setup.length) if position not in hidden]
        output = moved
        if math.isfinite(moved):
            output += math.fsum(values[p][course[p], 0] for p in known)
            output += math.fsum(setup.lowest[list(hidden)])
        return problem.witness(self.target, {p: course[p] for p in known}, secrets, output)


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
    rows, masses = walk.left_part(left)
    if left.kind == "known":
        rows, masses = rows[left.value], masses[left.value]
    rows, masses = walk.whole_windows(rows[:, np.newaxis], masses[:, np.newaxis], right)
    end = 0 if right.kind == "none" else right.value
    window = rows[end, :, 0], masses[end, :, 0]
    return witness_of(problem, walk, place, sides, window, unknown, hidden=hidden)


def witness_of(
    problem: Problem,
    walk: Walk,
    place: Place,
    sides: tuple[Side, Side],
    window: tuple[FloatArray, FloatArray],
    unknown: tuple[int, ...],
    *,
    hidden: bool,
) -> Witness:
    """Find secrets and output, given the densities of a window and its masses, per secret."""
    secrets, point = _largest_gap(*window, walk.noise.form, ends_only=hidden)
    moved = float(point) * walk.noise.step * walk.scale
    if hidden:
        moved = math.inf if point else -math.inf
    known = sides[0].value, sides[1].value
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
    if first == second:  # nothing to compare: any two secrets will do
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


def course_around(setup: Setup, place: Place, ends: tuple[int, int]) -> dict[int, int]:
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
