"""Walking windows at one scale: densities on the left of a target, then all right ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.lattice import Lattice
from pdp_calibrate.core.mixtures import DEFICITS, LARGEST_EXPONENT, LOGS, form_of, rounding_error
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import TOGETHER_NUMBERS
from pdp_calibrate.core.workers import load_kernels
from pdp_calibrate.families.chain.setup import Setup
from pdp_calibrate.families.chain.steps import (
    LAWS,
    Evaluation,
    IntArray,
    Left,
    Noise,
    Right,
    advance,
    compare,
    first_right,
    mixed,
    run_right,
    weighted,
)
from pdp_calibrate.families.chain.windows import Ends, Side


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
        else:
            self.left = points[max(place - left, 0) : place][::-1]
            self.right = points[place + 1 : place + 1 + right]
            window = slice(max(place - left, 0), place + 1 + right)
            total = int(points[window].max(axis=1).sum())
        step = lattice.step / scale
        width = total * step
        deepest = -2 * float(setup.log_rarest[min(max(left, right), len(setup.log_rarest) - 1)])
        deepest -= float(setup.log_start[np.isfinite(setup.log_start)].min())
        form = form_of(width, deepest)
        self.is_deep = form == LOGS
        self.tiny = 1e-310 * math.exp(min(deepest, LARGEST_EXPONENT))
        form = LAWS if laws else form
        gaps = np.arange(total + 1) * step
        self.noise = Noise(
            step=step,
            decay=np.where(gaps > 0, 0.0, 1.0) if laws else np.exp(-gaps),
            lack=-np.expm1(-gaps) if form == DEFICITS else np.zeros(total + 1),
            form=form,
        )
        # Copies, because compiled code tells read-only arrays and other layouts apart.
        self.matrix = np.array(setup.log_kernel if form == LOGS else setup.kernel)
        self.start = np.array(setup.log_start if form == LOGS else setup.start)
        self.error = self._rounding(left + right, width)
        moved = 2 * lattice.errors / scale  # what rounding a tuple's contributions may cost
        before = np.full(left, moved[0]) if target is None else moved[max(place - left, 0) : place]
        after = np.full(right, moved[0]) if target is None else moved[place + 1 :][:right]
        self.left_costs = moved[place] + np.concatenate([[0.0], np.cumsum(before[::-1])])
        self.right_costs = np.concatenate([[0.0], np.cumsum(after)])
        self.together = max(1, TOGETHER_NUMBERS // (setup.states**2 * (total + 1)))
        self.evaluation = Evaluation(advance, compare)
        if laws or compiled:
            self.evaluation = self._compiled()

    def _compiled(self) -> Evaluation:
        """Return compiled steps; both take one array of walks side by side."""
        kernels = load_kernels("pdp_calibrate.families.chain.kernels")
        form, step, unit, tiny = self.noise.form, self.noise.step, self.unit, self.tiny

        def advanced(
            source: FloatArray,
            masses: FloatArray,
            points: IntArray,
            matrix: FloatArray,
            noise: Noise,
        ) -> tuple[FloatArray, FloatArray]:
            states, *sides, size = source.shape
            there, moved = kernels.advance(
                source.reshape(states, -1, size), masses.reshape(states, -1),
                points, np.ascontiguousarray(matrix), *noise,
            )  # fmt: skip
            return there.reshape(len(matrix), *sides, -1), moved.reshape(len(matrix), *sides)

        def compared(
            here: FloatArray, masses: FloatArray, _form: int
        ) -> tuple[FloatArray, FloatArray]:
            here, masses = np.ascontiguousarray(here), np.ascontiguousarray(masses)
            if form != LAWS:
                found: tuple[FloatArray, FloatArray] = kernels.compare_densities(here, masses, form)
                return found
            whole = kernels.compare_laws(here, masses, step, unit, tiny)
            return whole, np.full(whole.shape, -np.inf)

        return Evaluation(advanced, compared)

    def _rounding(self, steps: int, width: float) -> float:
        """Bound the rounding error of a log-ratio.

        A step rounds a term twice in the shift, once by its weight and once per state; in
        logarithms, four of its results are logarithms as large as those of all steps together.
        """
        setup = self.setup
        operations = (setup.states + 4) * (steps + 2) + setup.states**3 + 24
        self.unit = 4 * UNIT_ROUNDOFF * operations
        if self.noise.form == LAWS:
            return 0.0  # every comparison of laws includes its own
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
                here, masses = advance(here, masses, points, self.matrix, self.noise)

    def from_start(
        self, distance: int, here: FloatArray, masses: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Close the left side at the start of the chain, `distance` ≥ 1 tuples away."""
        points, start = self.left[distance - 1], self.start[np.newaxis]
        rows, totals = advance(here, masses, points, start, self.noise)
        return rows[0], totals[0]

    def at_start(self) -> tuple[FloatArray, FloatArray]:
        """Return the left side of a target that is the first tuple."""
        rows = weighted(self._own_kernel(), self.start[:, np.newaxis], self.noise.form)
        return rows, np.array(self.start)

    def _own_kernel(self) -> FloatArray:
        """Return the noise around what the target itself adds, one row per secret."""
        gaps = np.abs(np.arange(int(self.own.max()) + 1) - self.own[:, np.newaxis])
        if self.noise.form == LOGS:
            return np.asarray(-gaps * self.noise.step)
        return np.asarray(
            (self.noise.lack if self.noise.form == DEFICITS else self.noise.decay)[gaps]
        )

    def begun(
        self,
        rows: FloatArray,
        masses: FloatArray,
        inside: int,
        ends: Ends,
        prune_cost: FloatArray,
    ) -> Left:
        """Return a left part with what its right ends count for, costs of rounding included.

        `inside` is the number of unknown tuples on the left.
        """
        steps = np.arange(len(ends.known_up))
        last = len(self.right_costs) - 1
        none_cost = self.left_costs[inside] + self.right_costs[np.minimum(steps, last)]
        known_cost = self.left_costs[inside] + self.right_costs[np.clip(steps - 1, 0, last)]
        return Left(
            rows=rows,
            masses=masses,
            known_up=ends.known_up + known_cost,
            none_up=ends.none_up + none_cost,
            known_low=ends.known_low,
            none_low=ends.none_low,
            known_cost=known_cost,
            none_cost=none_cost,
            prune_cost=prune_cost + known_cost,
        )

    def right_ends(self, lefts: Sequence[Left], threshold: float) -> list[Right]:
        """Walk to the right and compare secrets at all ends that count.

        Windows that cannot leak more than the threshold need not be told apart.
        """
        return run_right(lefts, self.right, self.matrix, self.noise, threshold, self.evaluation)

    def whole_window(
        self, rows: FloatArray, masses: FloatArray, right: Side
    ) -> tuple[FloatArray, FloatArray]:
        """Return the densities of one whole window, one row per secret, in the walk's form."""
        form, backwards = self.noise.form, self.matrix.T
        here, ends = first_right(rows, masses, self.matrix, form)
        for points in self.right[: right.distance - (right.kind != "none")]:
            here, ends = advance(here, ends, points, backwards, self.noise)
        if right.kind != "none":
            return here[right.value], ends[right.value]
        flat = (np.zeros if form == LOGS else np.ones)((1, len(ends)))
        return mixed(here, flat, form)[0], mixed(ends, flat, form)[0]
