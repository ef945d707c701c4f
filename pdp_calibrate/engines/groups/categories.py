"""The exact engine for exchangeable groups with several categories.

What the known members hold is told by the counts t of the categories among them. Then
P(counts s of the unknown | v, t) ∝ w(t + s + e_v)·(number of assignments with counts s), where w
is the probability of one assignment.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pdp_calibrate.engines.additive import witness_at
from pdp_calibrate.engines.groups.cases import Case, GroupSearch
from pdp_calibrate.engines.laplace import log_densities
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models import CategoryGroup
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.groups import compositions, log_ways

_CHUNK = 2**20  # numbers held at once while densities are evaluated
_DEEPEST = -600.0  # logarithms from here on are far from underflow


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


class CategoryGroupSearch(GroupSearch):
    """The search through a group with categories."""

    def __init__(
        self, problem: Problem, group: CategoryGroup, added: FloatArray, scale: float
    ) -> None:
        super().__init__(problem, added, scale)
        self.categories = len(group.categories)
        ways = [log_ways(counts) for counts in compositions(group.size, self.categories)]
        with np.errstate(divide="ignore"):
            logs = np.log(group.count_probabilities) - np.array(ways)
        self.weights = [_Weights(group.size, self.categories, logs)]
        for _ in range(min(len(self.members_out), group.size - 1)):
            self.weights.append(self.weights[-1].without_one())
        self.largest_log = float(np.abs(logs[np.isfinite(logs)]).max()) + max(ways)

    def evaluated(self, case: Case, target: int, unknown: tuple[int, ...]) -> Found:
        """Go through all values that the known members may hold, by their counts."""
        own, inside, outside = case.own, case.inside, case.outside
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
            logs = logs - np.where(possible, peaks, 0.0)[..., np.newaxis]
            laws, log_laws = _laws_of_sums(logs, inverse.ravel(), len(sums))
            log_density, error = log_densities(
                laws,
                atoms / self.scale,
                outputs[np.newaxis, :, np.newaxis] / self.scale,
                additions=len(counts) + math.ceil((6 + 2 * outside) * (2 + self.largest_log)),
                log_laws=log_laws,
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


def _laws_of_sums(
    logs: FloatArray, of_counts: np.ndarray, number: int
) -> tuple[FloatArray, FloatArray | None]:
    """Add up the shares of counts with the same sum, and divide by their total.

    `logs` holds the logarithms of the shares, at most 0. Where some are too small for a float, the
    logarithms of the laws come as well.
    """
    laws = np.zeros((*logs.shape[:2], number))
    shares = np.exp(logs)
    for place, column in enumerate(of_counts):
        laws[..., column] += shares[..., place]
    totals = laws.sum(axis=2, keepdims=True)
    possible = totals > 0
    laws = np.divide(laws, totals, out=np.full_like(laws, 1 / number), where=possible)
    if np.min(logs, where=np.isfinite(logs), initial=0.0) >= _DEEPEST:
        return laws, None
    log_laws = np.full_like(laws, -np.inf)
    for place, column in enumerate(of_counts):
        log_laws[..., column] = np.logaddexp(log_laws[..., column], logs[..., place])
    log_laws -= np.log(np.where(possible, totals, 1.0))
    return laws, np.where(possible, log_laws, -math.log(number))
