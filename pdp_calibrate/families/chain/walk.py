"""Walking windows at one scale: densities on the left of a target, then all right ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.lattice import Lattice
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.chain.kernels import DEFICITS, DENSITIES, LAWS, LOGS, advance, run_right
from pdp_calibrate.families.chain.setup import Setup
from pdp_calibrate.families.chain.windows import Ends, Side

IntArray = npt.NDArray[np.int64]


_DEEPEST = 600.0  # logarithms up to here are far from underflow, products included


class Walk:
    """Windows around one target (or around all of them, where every tuple adds the same).

    With `laws`, the law of each window's sum is walked instead of the density of the noisy sum.
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
        self.step = lattice.step / scale
        width = total * self.step
        deepest = -2 * float(setup.log_rarest[min(max(left, right), len(setup.log_rarest) - 1)])
        deepest -= float(setup.log_start[np.isfinite(setup.log_start)].min())
        self.form = DEFICITS if width <= 1 else DENSITIES
        if not width + deepest <= _DEEPEST:
            self.form = LOGS
        self.is_deep = self.form == LOGS
        self.tiny = 1e-310 * float(np.exp(min(deepest, _DEEPEST)))
        if laws:
            self.form = LAWS
        gaps = np.arange(total + 1) * self.step
        self.decay = np.where(gaps > 0, 0.0, 1.0) if laws else np.exp(-gaps)
        self.lack = -np.expm1(-gaps) if self.form == DEFICITS else np.zeros(total + 1)
        # Copies, because compiled code tells read-only arrays and other layouts apart.
        self.matrix = np.array(setup.log_kernel if self.form == LOGS else setup.kernel)
        self.start = np.array(setup.log_start if self.form == LOGS else setup.start)
        states = setup.states
        self.buffers = np.empty((2, states, states, total + 1))
        self.shifted = np.empty((states, total + 1))
        self.error = self._rounding(left + right, width)
        moved = 2 * lattice.errors / scale  # what rounding a tuple's contributions may cost
        before = np.full(left, moved[0]) if target is None else moved[max(place - left, 0) : place]
        after = np.full(right, moved[0]) if target is None else moved[place + 1 :][:right]
        self.left_costs = moved[place] + np.concatenate([[0.0], np.cumsum(before[::-1])])
        self.right_costs = np.concatenate([[0.0], np.cumsum(after)])

    def _rounding(self, steps: int, width: float) -> float:
        """Bound the rounding error of a log-ratio.

        A density is a sum of products of non-negative numbers, so every operation adds at most a
        few units of relative error; deficits are accurate relative to the width.
        """
        states = self.setup.states
        operations = (states + 4) * (steps + 2) + states**3 + 24
        self.unit = 4 * UNIT_ROUNDOFF * operations
        if self.form == LAWS:
            return 0.0  # every comparison of laws includes its own
        if self.form == DEFICITS:
            return 16 * UNIT_ROUNDOFF * width * operations
        if self.form == DENSITIES:
            return 8 * UNIT_ROUNDOFF * (operations + 4 * width)
        rare = self.setup.largest_log * (steps + 2)
        return 8 * UNIT_ROUNDOFF * (operations + (steps + 2) * 4 * (width + rare))

    def lefts(self, most: int) -> Iterator[tuple[int, FloatArray, FloatArray, int]]:
        """Yield distance, densities [secret, state, point], masses and size, from 1 to `most`."""
        states = self.setup.states
        here, size = np.zeros((states, states, self.buffers.shape[3])), len(self.own_kernel()[0])
        masses = np.array(self.matrix.T, order="C")  # [secret, state]
        kernel = self.own_kernel()
        for v in range(states):
            for w in range(states):
                here[v, w, :size] = self._weighted(kernel[v], self.matrix[w, v])
        there, new_masses = np.empty_like(here), np.empty_like(masses)
        for distance in range(1, most + 1):
            yield distance, here, masses, size
            if distance == most:
                return
            points = self.left[distance - 1]
            for v in range(states):
                new_size = self._advance(
                    here[v], masses[v], size, points, self.matrix, there[v], new_masses[v]
                )
            here, there, masses, new_masses, size = there, here, new_masses, masses, new_size

    def from_start(
        self, distance: int, here: FloatArray, masses: FloatArray, size: int
    ) -> tuple[FloatArray, FloatArray, int]:
        """Close the left side at the start of the chain, `distance` ≥ 1 tuples away."""
        states = self.setup.states
        found, totals = np.empty((states, 1, here.shape[2])), np.empty((states, 1))
        new_size = size
        for v in range(states):
            new_size = self._advance(
                here[v], masses[v], size, self.left[distance - 1], self.start[np.newaxis],
                found[v], totals[v],
            )  # fmt: skip
        return found[:, 0], totals[:, 0], new_size

    def at_start(self) -> tuple[FloatArray, FloatArray, int]:
        """Return the left side of a target that is the first tuple."""
        kernel = self.own_kernel()
        size = kernel.shape[1]
        rows = np.zeros((len(kernel), self.buffers.shape[3]))
        for v in range(len(kernel)):
            rows[v, :size] = self._weighted(kernel[v], self.start[v])
        return rows, np.array(self.start), size

    def own_kernel(self) -> FloatArray:
        """Return the noise around what the target itself adds, one row per secret."""
        size = int(self.own.max()) + 1
        gaps = np.abs(np.arange(size) - self.own[:, np.newaxis])
        if self.form == LOGS:
            return np.asarray(-gaps * self.step)
        return np.asarray((self.lack if self.form == DEFICITS else self.decay)[gaps])

    def right_ends(
        self,
        rows: FloatArray,
        masses: FloatArray,
        size: int,
        inside: int,
        ends: Ends,
        prune_cost: FloatArray,
        threshold: float,
    ) -> tuple[tuple[float, int, bool], tuple[float, int, bool, int], float]:
        """Walk to the right and compare secrets at all ends that count.

        `inside` is the number of unknown tuples on the left.
        """
        steps = np.arange(len(ends.known_up))
        last = len(self.right_costs) - 1
        none_cost = self.left_costs[inside] + self.right_costs[np.minimum(steps, last)]
        known_cost = self.left_costs[inside] + self.right_costs[np.clip(steps - 1, 0, last)]
        found: tuple[tuple[float, int, bool], tuple[float, int, bool, int], float] = run_right(
            np.ascontiguousarray(rows), np.ascontiguousarray(masses), size, self.right,
            self.matrix, self.step, self.unit, self.tiny, self.decay, self.lack, self.form,
            ends.known_up + known_cost, ends.known_low, ends.none_up + none_cost, ends.none_low,
            known_cost, none_cost, prune_cost + known_cost, threshold, self.buffers, self.shifted,
        )  # fmt: skip
        return found

    def advance_right(
        self, rows: FloatArray, masses: FloatArray, size: int, right: Side
    ) -> tuple[FloatArray, FloatArray, int]:
        """Return the densities of one whole window, one row per secret, in the walk's form."""
        states = self.setup.states
        here = np.zeros((states, states, rows.shape[1]))
        for v in range(states):
            for u in range(states):
                here[v, u, :size] = self._weighted(rows[v, :size], self.matrix[v, u])
        ends = np.array([self._weighted(masses[v], self.matrix[v]) for v in range(states)])
        backwards = np.ascontiguousarray(self.matrix.T)
        for points in self.right[: right.distance - (right.kind != "none")]:
            there, new_ends = np.zeros_like(here), np.empty_like(ends)
            for v in range(states):
                new_size = self._advance(
                    here[v], ends[v], size, points, backwards, there[v], new_ends[v]
                )
            here, ends, size = there, new_ends, new_size
        if right.kind != "none":
            return here[:, right.value], ends[:, right.value], size
        if self.form == LOGS:
            return np.logaddexp.reduce(here, axis=1), np.logaddexp.reduce(ends, axis=1), size
        return here.sum(axis=1), ends.sum(axis=1), size

    def _weighted(self, row: FloatArray, weight: FloatArray | float) -> FloatArray:
        return np.asarray(row + weight if self.form == LOGS else row * weight)

    def _advance(
        self,
        source: FloatArray,
        masses: FloatArray,
        size: int,
        points: IntArray,
        matrix: FloatArray,
        out: FloatArray,
        new_masses: FloatArray,
    ) -> int:
        return int(
            advance(
                source, masses, size, points, np.ascontiguousarray(matrix), self.step, self.decay,
                self.lack, self.form, self.shifted, out, new_masses,
            )
        )  # fmt: skip
