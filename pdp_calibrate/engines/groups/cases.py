"""The walk through the adversaries of an exchangeable group.

Members are alike, so an adversary is told by a few numbers: is the target inside the query, and how
many unknown members are inside and outside of it.
"""

from __future__ import annotations

import abc
import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.engines.additive import ROUND_UP, nobody, plain_dp
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class Case:
    """Adversaries who differ only in which members they name."""

    own: int
    """Whether the target is inside the query (1) or outside (0)."""
    inside: int
    """How many unknown members are inside."""
    outside: int
    """How many unknown members are outside."""


def equal_values(problem: Problem) -> FloatArray | None:
    """Return what the values add for each member, from zero; None if weights differ."""
    contributions = problem.contributions
    if contributions.table is not None or contributions.values[0].shape[-1] != 1:
        return None
    values = np.array(contributions.values)[:, :, 0]
    added = values - values.min(axis=1, keepdims=True)
    inside = added[np.any(added > 0, axis=1)]
    return None if len(inside) and np.any(inside != inside[0]) else added


class GroupSearch(abc.ABC):
    """One search: what it looks through, and how one case of it is judged."""

    def __init__(self, problem: Problem, added: FloatArray, scale: float) -> None:
        self.problem, self.scale, self.size = problem, scale, len(added)
        reach = added.max(axis=1)
        self.members_in = [int(p) for p in np.flatnonzero(reach)]
        self.members_out = [int(p) for p in np.flatnonzero(reach == 0)]
        self.added: FloatArray = added[self.members_in[0] if self.members_in else 0]

    @abc.abstractmethod
    def evaluated(self, case: Case, target: int, unknown: tuple[int, ...]) -> Found:
        """Find the worst of a case, somebody being unknown or hidden in noise."""

    def run(self, incumbent: float, deadline: float) -> Found:
        """Go through all cases, those who see the answer move furthest first."""
        best = nobody(self.problem)
        for case in sorted(self._cases(), key=lambda case: -(case.own + case.inside)):
            reach = (case.own + case.inside) * float(self.added.max())
            bound = reach / self.scale * ROUND_UP
            if bound <= max(incumbent, best.value) or time.monotonic() > deadline:
                # Bounds fall from case to case, so this one covers all that follow.
                return dataclasses.replace(best, value=max(best.value, bound))
            target, unknown = self._members(case)
            if unknown or self.problem.hidden_noise:
                found = self.evaluated(case, target, unknown)
            else:
                others = dict.fromkeys(range(self.size), 0)
                found = plain_dp(self.problem, target, self.scale, others)
            best = best.or_worse(found)
        return best

    def _cases(self) -> Iterator[Case]:
        knowledge = self.problem.knowledge
        if knowledge.known is not None:
            target, unknown = self._named(knowledge.known)
            inside = len(set(unknown) & set(self.members_in))
            own = int(target in self.members_in)
            yield Case(own=own, inside=inside, outside=len(unknown) - inside)
            return
        for own in (0, 1):
            if not (self.members_in if own else self.members_out):
                continue
            for inside in range(len(self.members_in) - own + 1):
                for outside in range(len(self.members_out) - (1 - own) + 1):
                    if knowledge.fewest <= self.size - 1 - inside - outside <= knowledge.most:
                        yield Case(own=own, inside=inside, outside=outside)

    def _named(self, known: frozenset[int]) -> tuple[int, tuple[int, ...]]:
        (target,) = self.problem.knowledge.targets
        return target, tuple(p for p in range(self.size) if p != target and p not in known)

    def _members(self, case: Case) -> tuple[int, tuple[int, ...]]:
        """Name a target and unknown members that fit the case."""
        if self.problem.knowledge.known is not None:
            return self._named(self.problem.knowledge.known)
        target = (self.members_in if case.own else self.members_out)[0]
        inside = [p for p in self.members_in if p != target][: case.inside]
        outside = [p for p in self.members_out if p != target][: case.outside]
        return target, tuple(sorted(inside + outside))
