"""The exact engine for exchangeable yes/no groups.

What the known members hold is told by how many of them hold a one. That makes O(m²) mixtures where
a table of the same group has 2^m cells.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pdp_calibrate.engines.additive import witness_at
from pdp_calibrate.engines.groups.cases import Case, GroupSearch
from pdp_calibrate.engines.groups.kernels import (
    DEFICITS,
    DENSITIES,
    LOGS,
    without_members,
    worst_event,
)
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models import BinaryGroup
from pdp_calibrate.models.base import FloatArray

_WIDEST = 600.0  # e^-600 and its products with probabilities are far from underflow


class BinaryGroupSearch(GroupSearch):
    """The search through a yes/no group."""

    def __init__(
        self, problem: Problem, group: BinaryGroup, added: FloatArray, scale: float
    ) -> None:
        super().__init__(problem, added, scale)
        self.step = float(self.added[1] - self.added[0])
        with np.errstate(divide="ignore"):
            log_law = np.log(group.count_probabilities)
        ways = [math.log(math.comb(self.size, ones)) for ones in range(self.size + 1)]
        self.log_weights = without_members(log_law - np.array(ways), len(self.members_out))
        finite = self.log_weights[np.isfinite(self.log_weights)]
        self.log_ways = [
            np.array([math.log(math.comb(inside, ones)) for ones in range(inside + 1)])
            for inside in range(len(self.members_in) + 1)
        ]
        self.largest_log = float(np.abs(finite).max(initial=0.0)) + ways[self.size // 2]

    def evaluated(self, case: Case, target: int, unknown: tuple[int, ...]) -> Found:
        """Go through all values that the known members may hold, by their number of ones."""
        step = abs(self.step) / self.scale
        width = (case.own + case.inside) * step
        known_number = self.size - 1 - case.inside - case.outside
        weights, ways = self.log_weights[case.outside], self.log_ways[case.inside]
        weights, ways = weights - weights.max(), ways - ways.max()
        deepest = -float(weights[np.isfinite(weights)].min() + ways.min())
        form = DEFICITS if width <= 1 else DENSITIES
        if max(width, deepest) > _WIDEST:
            form = LOGS
        else:
            weights, ways = np.exp(weights), np.exp(ways)
        whole, tails = worst_event(weights, ways, case.own, known_number, step, form)
        error = self._error(case, width, form)
        value = max(0.0, whole[0] + error)
        gain, ones, point, secret = tails if self.problem.hidden_noise else whole
        found = Found(value=value, lower=0.0, witness=None, target=target, unknown=unknown)
        if gain == -math.inf:
            return found
        known = [p for p in range(self.size) if p != target and p not in unknown]
        values = {position: int(place < ones) for place, position in enumerate(known)}
        moved = self._moved(target, unknown, point)
        witness = witness_at(self.problem, target, values, (secret, 1 - secret), moved)
        return dataclasses.replace(found, lower=max(0.0, gain - error), witness=witness)

    def _moved(self, target: int, unknown: tuple[int, ...], point: int) -> float:
        """Return what the target and the unknown members add at a point of the lattice."""
        if self.problem.hidden_noise:
            return math.inf if (point > 0) == (self.step > 0) else -math.inf
        values = self.problem.contributions.values
        return math.fsum(values[p][0, 0] for p in (target, *unknown)) + point * self.step

    def _error(self, case: Case, width: float, form: int) -> float:
        """Bound the rounding error of a log-ratio.

        A probability goes through `outside` additions of logs and one normalisation, a density
        through one sweep each way; every rounding is relative to the size of what is rounded.
        """
        law = (4 + 2 * case.outside) * (2 + self.largest_log) + 2 * case.inside
        if form == DEFICITS:
            return 12 * UNIT_ROUNDOFF * width * (law + 8 * case.inside + 24)
        if form == DENSITIES:
            return 4 * UNIT_ROUNDOFF * (law + 8 * case.inside + 4 * width + 24)
        return 4 * UNIT_ROUNDOFF * (law + 6 * (case.inside + 2) * (2 + width + self.largest_log))
