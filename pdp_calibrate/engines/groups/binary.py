"""The exact engine for exchangeable yes/no groups.

Members are alike, so an adversary is told by a few numbers: is the target inside the query, how
many unknown members are inside and outside of it, how many of the known members hold a one. That
makes O(m²) mixtures where a table of the same group has 2^m cells.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.engines.additive import ROUND_UP, nobody, plain_dp, search_table, witness_at
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
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.models import BinaryGroup
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.table import MAXIMAL_CELLS

_WIDEST = 600.0  # e^-600 and its products with probabilities are far from underflow


@dataclass(frozen=True, kw_only=True)
class _Case:
    """Adversaries who differ only in which members they name."""

    own: int
    """Whether the target is inside the query (1) or outside (0)."""
    inside: int
    """How many unknown members are inside."""
    outside: int
    """How many unknown members are outside."""


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of an exchangeable group; see `engines.tables.search`."""
    group = problem.model
    if not isinstance(group, BinaryGroup):
        raise TypeError(f"this engine searches binary groups, got {group!r}.")
    steps = _equal_steps(problem)
    if steps is None:
        if 2**group.size > MAXIMAL_CELLS:
            raise UnsupportedQueryError(
                "members of a group of more than 22 must all weigh the same, or nothing, and be"
                " asked one number. Use Sum, Mean or Count, with over= for a part of the group."
            )
        joint = group.to_table()
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    return _Search(problem, group, steps, scale).run(incumbent, deadline)


def _equal_steps(problem: Problem) -> FloatArray | None:
    """Return f(1) − f(0) of every member, or None if they differ where they are not zero."""
    contributions = problem.contributions
    if contributions.table is not None or contributions.values[0].shape[-1] != 1:
        return None
    steps = np.array([array[1, 0] - array[0, 0] for array in contributions.values])
    inside = steps[steps != 0]
    return None if len(inside) and np.any(inside != inside[0]) else steps


class _Search:
    """One search: what it looks through, and the worst so far."""

    def __init__(
        self, problem: Problem, group: BinaryGroup, steps: FloatArray, scale: float
    ) -> None:
        self.problem = problem
        self.scale = scale
        self.members_in = [int(p) for p in np.flatnonzero(steps)]
        self.members_out = [int(p) for p in np.flatnonzero(steps == 0)]
        self.step = float(steps[self.members_in[0]]) if self.members_in else 0.0
        self.size = group.size
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

    def run(self, incumbent: float, deadline: float) -> Found:
        best = nobody(self.problem)
        cases = sorted(self._cases(), key=lambda case: -(case.own + case.inside))
        for case in cases:
            bound = (case.own + case.inside) * abs(self.step) / self.scale * ROUND_UP
            if bound <= max(incumbent, best.value) or time.monotonic() > deadline:
                # Bounds fall from case to case, so this one covers all that follow.
                return dataclasses.replace(best, value=max(best.value, bound))
            best = best.or_worse(self._evaluated(case))
        return best

    def _cases(self) -> Iterator[_Case]:
        knowledge = self.problem.knowledge
        if knowledge.known is not None:
            (target,) = knowledge.targets
            unknown = set(range(self.size)) - knowledge.known - {target}
            yield _Case(
                own=int(target in self.members_in),
                inside=len(unknown & set(self.members_in)),
                outside=len(unknown & set(self.members_out)),
            )
            return
        for own in (0, 1):
            if not (self.members_in if own else self.members_out):
                continue
            for inside in range(len(self.members_in) - own + 1):
                for outside in range(len(self.members_out) - (1 - own) + 1):
                    known = self.size - 1 - inside - outside
                    if knowledge.fewest <= known <= knowledge.most:
                        yield _Case(own=own, inside=inside, outside=outside)

    def _members(self, case: _Case) -> tuple[int, tuple[int, ...]]:
        """Name a target and unknown members that fit the case."""
        if self.problem.knowledge.known is not None:
            (target,) = self.problem.knowledge.targets
            known = self.problem.knowledge.known
            return target, tuple(p for p in range(self.size) if p != target and p not in known)
        target = (self.members_in if case.own else self.members_out)[0]
        inside = [p for p in self.members_in if p != target][: case.inside]
        outside = [p for p in self.members_out if p != target][: case.outside]
        return target, tuple(sorted(inside + outside))

    def _evaluated(self, case: _Case) -> Found:
        target, unknown = self._members(case)
        if not unknown and not self.problem.hidden_noise:
            return plain_dp(self.problem, target, self.scale, dict.fromkeys(range(self.size), 0))
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

    def _error(self, case: _Case, width: float, form: int) -> float:
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
