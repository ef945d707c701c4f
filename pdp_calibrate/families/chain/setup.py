"""What a search along a chain needs to know, worked out once per chain and query.

An engine makes it, and lends it to the engines of other adversaries of the same problem.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.lattice import Lattice, lattice_of
from pdp_calibrate.core.tuning import (
    CHAIN_STEPS,
    COMPILED_CHAIN_STEPS,
    FORGETFUL,
    FORGOTTEN,
    FULL_LENGTH,
    LATTICE_STEPS,
    LONGEST_SIDE,
    TRUNCATION,
)
from pdp_calibrate.families.chain.model import MarkovChain


class Setup:
    """A chain and what its tuples add, prepared for searches at many scales."""

    def __init__(self, chain: MarkovChain, contributions: Contributions) -> None:
        self.chain = chain
        self.length, self.states = chain.length, len(chain.states)
        self.kernel, self.start = chain.kernel, chain.start
        self.log_start = chain.log_start
        with np.errstate(divide="ignore"):
            self.log_kernel = np.log(self.kernel)
        values = np.concatenate(contributions.values, axis=1).T  # (tuples, states)
        self.lowest = values.min(axis=1)
        self.added: FloatArray = values - self.lowest[:, np.newaxis]
        self.ranges: FloatArray = self.added.max(axis=1)
        self.homogeneous = bool(np.all(self.added == self.added[0]))
        sides = min(self.length - 1, LONGEST_SIDE)
        self.diameters, self.log_rarest = diameters(self.kernel, max(1, sides))
        self.support = _support(self.kernel, np.isfinite(self.log_start), self.length)
        self._lattices: dict[int, Lattice] = {}
        self._reaches: dict[float, int] = {}

    @functools.cached_property
    def largest_log(self) -> float:
        """The largest size of a logarithm of a probability of the model."""
        logs = np.append(self.log_kernel, self.log_start)
        return float(np.abs(logs[np.isfinite(logs)]).max())

    @functools.cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """When each state becomes possible; the length of the chain if never."""
        ever = self.support.any(axis=0)
        return np.where(ever, self.support.argmax(axis=0), self.length)

    def view(self, target: int, reach: int) -> object:
        """Return what a target sees within reach; targets that see the same leak the same."""
        inner = reach < target < self.length - 1 - reach
        if not inner or not self.support.all():
            return target
        return self.added[target - reach : target + reach + 1].tobytes()

    def bounds(self, scale: float) -> FloatArray:
        """Return the Birkhoff bound on the leakage about each tuple."""
        return birkhoff_bounds(self.ranges / scale, float(self.diameters[1]))

    def reach(self, scale: float) -> int:
        """Return how far windows are walked on each side of the target."""
        if self.length <= FULL_LENGTH:
            return self.length - 1
        # Steps by powers of ten, so that solving for a scale sees a curve without jumps.
        size = min(1.0, float(self.ranges.max()) / scale)
        decade = math.floor(math.log10(size)) if size > 0 else 0
        tolerance = max(TRUNCATION * 10.0**decade, 1e-11)
        if tolerance not in self._reaches:
            enough = np.flatnonzero(self.diameters <= tolerance)
            wanted = int(enough[0]) if len(enough) else len(self.diameters) - 1
            self._reaches[tolerance] = min(wanted, self._affordable())
        return self._reaches[tolerance]

    def lattice(self, reach: int) -> Lattice:
        """Return the lattice on which sums within reach are counted."""
        if reach not in self._lattices:
            # Windows much longer than the chain's memory are rarely walked: see `around`.
            forgotten = np.flatnonzero(self.diameters <= FORGOTTEN)
            usual = min(reach, int(forgotten[0])) if len(forgotten) else reach
            largest = int(np.clip(LATTICE_STEPS / self._runs(usual), 512, 2**15))
            window = min(self.length, 2 * usual + 1)
            self._lattices[reach] = lattice_of(self.added, window, largest)
        return self._lattices[reach]

    def is_large(self, reach: int) -> bool:
        """Whether a search is worth compiled code, by the elementary steps it may take."""
        tops = np.sort(self.lattice(reach).points.max(axis=1))[-2 * reach - 1 :]
        return self._runs(reach) * float(tops.sum() + 1) > COMPILED_CHAIN_STEPS

    def _runs(self, reach: int) -> float:
        """Estimate the work of one search, per lattice point."""
        per_point = self.states * (self.states**2 + 5 * (self.states + 1))
        targets = 1 if self.homogeneous else self.length
        return targets * (self.states + 1) * per_point * max(1, reach) ** 2

    def _affordable(self) -> int:
        """Return the reach that keeps one search within the work allowed, at least 16."""
        work = CHAIN_STEPS if self.diameters[-1] < math.inf else FORGETFUL * CHAIN_STEPS
        reach = 16
        while reach < len(self.diameters) - 1 and self._runs(reach) * 2 * reach <= work:
            reach += max(1, reach // 8)
        return min(reach, len(self.diameters) - 1)


def _support(
    kernel: FloatArray, first: npt.NDArray[np.bool_], length: int
) -> npt.NDArray[np.bool_]:
    """Return which states are possible at which time."""
    links = kernel > 0
    support = np.empty((length, len(first)), dtype=np.bool_)
    support[0] = first
    for time in range(1, length):
        support[time] = links[support[time - 1]].any(axis=0)
        if np.array_equal(support[time], support[time - 1]):
            support[time:] = support[time]
            break
    return support
