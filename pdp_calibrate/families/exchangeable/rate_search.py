"""The search through a yes/no group whose members share a rate; see `rates`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.families.exchangeable.laws import equal_values
from pdp_calibrate.families.exchangeable.rates import RateGroup
from pdp_calibrate.families.exchangeable.search import GroupEngine

_WIDEST = 300.0  # 1/λ above which e^{1/λ} times a quotient might overflow
_LARGEST_ERROR = 1e-6  # of the leakage: beyond, the general search is used


class RateEngine(GroupEngine):
    """Compares what is known in O(m²) where all members are asked about, at r = ±∞.

    Answers about some members only, named adversaries and vectors are searched like those about any
    other yes/no group.
    """

    def __init__(self, problem: Problem, *, base: Engine | None = None) -> None:
        """Prepare the search; `base` is not used."""
        del base
        group = problem.model
        if not isinstance(group, RateGroup):
            raise TypeError(f"this engine searches groups that share a rate, got {group!r}.")
        self.group = group
        self.problem = problem
        added = equal_values(problem)
        self._step = 0.0 if added is None else abs(float(added[1] - added[0]))
        everyone = problem.knowledge
        reach = problem.contributions.tuple_ranges()
        steps = np.log(group.steps)
        # Each step rounds a quotient by at most 8 units, and so does each of the m first ones; an
        # error in q is one in V, and sums of positive terms pass on no more than their largest.
        first = 4 * UNIT_ROUNDOFF * (4 + float(np.abs(group.log_weights).max()))
        size = group.size
        self._error = 4 * size * (first + 8 * UNIT_ROUNDOFF * size)
        self._is_quick = (
            added is not None
            and everyone.known is None
            and len(everyone.targets) == size
            and bool(reach.min() > 0)
            and bool(np.isfinite(steps).all())
            and float(np.abs(steps).max()) < _WIDEST
            and self._error < _LARGEST_ERROR
        )
        self._plain: FloatArray | None = None
        self._general: GroupEngine | None = None

    def against(self, problem: Problem) -> GroupEngine:
        """Return an engine for the same group against the adversaries of `problem`."""
        return RateEngine(problem)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        step = self._step / scale
        if not self._is_quick or not step < _WIDEST:
            if self._general is None:
                self._general = GroupEngine(self.problem)
            return self._general.search(scale, limits)
        knowledge, size = self.problem.knowledge, self.group.size
        worst = _worst_known(self.group.steps, step, knowledge.fewest, knowledge.most)
        target = knowledge.targets[0]
        value = step + worst.gain
        unknown = tuple(range(1, size - worst.known))
        error = self._error + 8 * UNIT_ROUNDOFF * (1 + value)
        if worst.known == size - 1 and not self.problem.hidden_noise:
            return self.problem.plain_dp(target, scale, dict.fromkeys(range(size), 0))
        witness = self.problem.witness_at(
            target,
            {size - 1 - place: int(place < worst.ones) for place in range(worst.known)},
            (1, 0) if worst.sign > 0 else (0, 1),
            math.copysign(math.inf, worst.sign * self._sign),
        )
        return Bracket(
            upper=(value + error) * ROUND_UP,
            lower=max(0.0, value - error),
            witness=witness,
            target=target,
            unknown=unknown,
        )

    @property
    def _sign(self) -> float:
        """Whether ones add more than zeros (1) or less (−1)."""
        values = self.problem.contributions.values[0][:, 0]
        return math.copysign(1.0, float(values[1] - values[0]))


class _Known(NamedTuple):
    """What the worst adversary knows, and what they gain beyond their own target."""

    gain: float
    known: int
    ones: int
    sign: int


def _worst_known(steps: FloatArray, step: float, fewest: int, most: int) -> _Known:
    """Return the largest |log q_y(k, t) − log q_1(k, t)| over fewest ≤ k ≤ most and t ≤ k."""
    rising, falling = math.exp(step), math.exp(-step)
    plain, up, down = steps, steps, steps  # k = m − 1: nobody else is unknown
    best = _Known(0.0, len(steps) - 1, 0, 1) if most == len(steps) - 1 else _Known(-1.0, 0, 0, 1)
    for known in range(len(steps) - 2, fewest - 1, -1):
        plain = plain[:-1] * ((1 + plain[1:]) / (1 + plain[:-1]))
        up = up[:-1] * ((1 + rising * up[1:]) / (1 + rising * up[:-1]))
        down = down[:-1] * ((1 + falling * down[1:]) / (1 + falling * down[:-1]))
        if known > most:
            continue
        for quotients, sign in ((up / plain, 1), (plain / down, -1)):
            ones = int(quotients.argmax())
            gain = math.log(quotients[ones])
            if gain > best.gain:
                best = _Known(gain, known, ones, sign)
    return best._replace(gain=max(0.0, best.gain))
