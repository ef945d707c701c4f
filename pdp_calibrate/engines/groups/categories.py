"""The exact engine for exchangeable groups with several categories.

As for yes/no groups, an adversary is told by numbers: is the target inside the query, how many
unknown members are inside and outside, and the counts t of the categories among the known. Then
P(counts s of the unknown | v, t) ∝ w(t + s + e_v)·(number of assignments with counts s), where w
is the probability of one assignment.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator

import numpy as np

from pdp_calibrate.engines.additive import (
    ROUND_UP,
    group_bound,
    nobody,
    plain_dp,
    search_table,
    witness_at,
)
from pdp_calibrate.engines.laplace import log_densities
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.models import CategoryGroup
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.groups import compositions, log_ways
from pdp_calibrate.models.table import MAXIMAL_CELLS

_CHUNK = 2**20  # numbers held at once while densities are evaluated
_Case = tuple[int, int, int]
"""Whether the target is inside the query, unknown members inside, unknown members outside."""


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of an exchangeable group; see `engines.tables.search`."""
    group = problem.model
    if not isinstance(group, CategoryGroup):
        raise TypeError(f"this engine searches groups with categories, got {group!r}.")
    added = _equal_values(problem)
    if added is None:
        if len(group.categories) ** group.size > MAXIMAL_CELLS:
            raise UnsupportedQueryError(
                "members of a group too large for a joint table must all weigh the same, or"
                " nothing, and be asked one number. Use Sum, Mean or Count, with over= for a part."
            )
        joint = group.to_table()
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    return _Search(problem, group, added, scale).run(incumbent, deadline)


def _equal_values(problem: Problem) -> FloatArray | None:
    """Return what the categories add for each member, from zero; None if weights differ."""
    contributions = problem.contributions
    if contributions.table is not None or contributions.values[0].shape[-1] != 1:
        return None
    added = np.array([array[:, 0] - array[:, 0].min() for array in contributions.values])
    inside = added[np.any(added > 0, axis=1)]
    return None if len(inside) and np.any(inside != inside[0]) else added


class _Weights:
    """log w of a group of some size, looked up by counts."""

    def __init__(self, size: int, categories: int, logs: FloatArray) -> None:
        self.size = size
        self.counts = np.array(list(compositions(size, categories)), dtype=np.int64)
        self._radix = (size + 1) ** np.arange(categories - 1, -1, -1, dtype=np.int64)
        self._codes = self.counts @ self._radix
        self.logs = logs

    def __getitem__(self, counts: np.ndarray) -> FloatArray:
        return np.asarray(self.logs[np.searchsorted(self._codes, counts @ self._radix)])

    def without_one(self) -> _Weights:
        """Sum one member out: add up the ways to fill it."""
        categories = self.counts.shape[1]
        smaller = np.array(list(compositions(self.size - 1, categories)), dtype=np.int64)
        filled = smaller[:, np.newaxis] + np.eye(categories, dtype=np.int64)
        return _Weights(self.size - 1, categories, np.logaddexp.reduce(self[filled], axis=1))


class _Search:
    """One search: what it looks through, and the worst so far."""

    def __init__(
        self, problem: Problem, group: CategoryGroup, added: FloatArray, scale: float
    ) -> None:
        self.problem, self.scale, self.size = problem, scale, group.size
        self.members_in = [int(p) for p in np.flatnonzero(added.max(axis=1))]
        self.members_out = [p for p in range(group.size) if p not in self.members_in]
        self.added = added[self.members_in[0]] if self.members_in else added[0]
        self.categories = len(group.categories)
        ways = [log_ways(counts) for counts in compositions(group.size, self.categories)]
        with np.errstate(divide="ignore"):
            logs = np.log(group.count_probabilities) - np.array(ways)
        self.weights = [_Weights(group.size, self.categories, logs)]
        for _ in range(min(len(self.members_out), group.size - 1)):
            self.weights.append(self.weights[-1].without_one())
        self.largest_log = float(np.abs(logs[np.isfinite(logs)]).max()) + max(ways)

    def run(self, incumbent: float, deadline: float) -> Found:
        best = nobody(self.problem)
        for case in sorted(self._cases(), key=lambda case: -(case[0] + case[1])):
            bound = (case[0] + case[1]) * float(self.added.max()) / self.scale * ROUND_UP
            if bound <= max(incumbent, best.value) or time.monotonic() > deadline:
                # Bounds fall from case to case, so this one covers all that follow.
                bound = min(bound, group_bound(self.problem, self.scale))
                return dataclasses.replace(best, value=max(best.value, bound))
            best = best.or_worse(self._evaluated(case))
        return best

    def _cases(self) -> Iterator[_Case]:
        knowledge = self.problem.knowledge
        if knowledge.known is not None:
            target, unknown = self._named()
            inside = sum(member in self.members_in for member in unknown)
            yield int(target in self.members_in), inside, len(unknown) - inside
            return
        for own in (0, 1):
            if not (self.members_in if own else self.members_out):
                continue
            for inside in range(len(self.members_in) - own + 1):
                for outside in range(len(self.members_out) - (1 - own) + 1):
                    if knowledge.fewest <= self.size - 1 - inside - outside <= knowledge.most:
                        yield own, inside, outside

    def _named(self) -> tuple[int, tuple[int, ...]]:
        knowledge = self.problem.knowledge
        (target,), known = knowledge.targets, knowledge.known or frozenset()
        return target, tuple(p for p in range(self.size) if p != target and p not in known)

    def _members(self, case: _Case) -> tuple[int, tuple[int, ...]]:
        """Name a target and unknown members that fit the case."""
        if self.problem.knowledge.known is not None:
            return self._named()
        own, inside, outside = case
        target = (self.members_in if own else self.members_out)[0]
        chosen = [p for p in self.members_in if p != target][:inside]
        chosen += [p for p in self.members_out if p != target][:outside]
        return target, tuple(sorted(chosen))

    def _evaluated(self, case: _Case) -> Found:
        target, unknown = self._members(case)
        if not unknown and not self.problem.hidden_noise:
            return plain_dp(self.problem, target, self.scale, dict.fromkeys(range(self.size), 0))
        own, inside, outside = case
        ways = np.array([log_ways(counts) for counts in compositions(inside, self.categories)])
        counts = np.array(list(compositions(inside, self.categories)), dtype=np.int64)
        sums, inverse = np.unique(counts @ self.added, return_inverse=True)
        atoms = (own * self.added[:, np.newaxis] + sums)[np.newaxis, :, :, np.newaxis]
        outputs = np.unique(atoms)
        weights = self.weights[outside]
        known_counts = np.array(
            list(compositions(weights.size - 1 - inside, self.categories)), dtype=np.int64
        )
        places = counts + np.eye(self.categories, dtype=np.int64)[:, np.newaxis]
        chunk = max(1, _CHUNK // (self.categories * max(len(counts), len(sums) * len(outputs))))
        found = Found(value=0.0, lower=0.0, witness=None, target=target, unknown=unknown)
        for first in range(0, len(known_counts), chunk):
            events = known_counts[first : first + chunk]
            logs = weights[places + events[:, np.newaxis, np.newaxis]] + ways
            peaks = logs.max(axis=2)
            possible = peaks > -np.inf
            shares = np.exp(logs - np.where(possible, peaks, 0.0)[..., np.newaxis])
            laws = np.zeros((*peaks.shape, len(sums)))
            for place, column in enumerate(inverse.ravel()):
                laws[..., column] += shares[..., place]
            totals = laws.sum(axis=2, keepdims=True)
            laws = np.divide(laws, totals, out=np.full_like(laws, 1 / len(sums)), where=totals > 0)
            log_density, error = log_densities(
                laws,
                atoms / self.scale,
                outputs[np.newaxis, :, np.newaxis] / self.scale,
                additions=len(counts) + math.ceil((6 + 2 * outside) * (2 + self.largest_log)),
            )
            here = self._compared(found, events, possible, log_density, error, outputs)
            found = found.or_worse(here)
        return found

    def _compared(
        self,
        found: Found,
        events: np.ndarray,
        possible: np.ndarray,
        log_density: FloatArray,
        error: float,
        outputs: FloatArray,
    ) -> Found:
        """Take the worst pair of secrets, over all events and outputs."""
        highest = np.where(possible[..., np.newaxis], log_density, -np.inf)
        lowest = np.where(possible[..., np.newaxis], log_density, np.inf)
        gain = highest.max(axis=1) - lowest.min(axis=1)
        gain[possible.sum(axis=1) < 2] = -np.inf  # one secret only: nothing to tell apart
        value = max(0.0, float(gain.max()) + error)
        if self.problem.hidden_noise:
            gain[:, 1:-1] = -np.inf
        event, place = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[event, place] == -np.inf:
            return dataclasses.replace(found, value=value, lower=0.0, witness=None)
        secrets = int(highest[event, :, place].argmax()), int(lowest[event, :, place].argmin())
        held = [category for category, n in enumerate(events[event]) for _ in range(n)]
        hidden = {found.target, *found.unknown}
        known = [position for position in range(self.size) if position not in hidden]
        moved = float(outputs[place])
        if self.problem.hidden_noise:
            moved = math.inf if place else -math.inf
        values = self.problem.contributions.values
        start = math.fsum(values[position][:, 0].min() for position in hidden)
        witness = witness_at(
            self.problem,
            found.target,
            dict(zip(known, held, strict=True)),
            secrets,
            start + moved,
        )
        lower = max(0.0, float(gain[event, place]) - error)
        return dataclasses.replace(found, value=value, lower=lower, witness=witness)
