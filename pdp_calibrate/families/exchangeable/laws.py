"""The laws of the answer that adversaries of an exchangeable group compare, for any noise.

Theorem 6 (docs/theory).

Members are exchangeable, so an adversary is described by three numbers: whether the target is
inside the query, and how many unknown members are inside and outside of it.

In a yes/no group, all that matters about the known members is how many of them hold a one. That
makes O(m²) mixtures, while a table of the same group has 2^m cells.

With several categories, what matters is the counts t of the categories among the known members.
Then P(counts s of the unknown | v, t) ∝ w(t + s + e_v)·(number of assignments with counts s), where
w is the probability of one assignment.
"""

from __future__ import annotations

import abc
import copy
import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.finite_noise import Case as Listed, Mixtures, Named
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import CHUNK_NUMBERS
from pdp_calibrate.families.exchangeable.model import (
    BinaryGroup,
    CategoryGroup,
    Counts,
    compositions,
    log_ways,
)


class Case(NamedTuple):
    """Adversaries who differ only in which members they know and attack."""

    own: int
    """Whether the target is inside the query (1) or outside (0)."""
    inside: int
    """How many unknown members are inside."""
    outside: int
    """How many unknown members are outside."""


def equal_values(problem: Problem) -> FloatArray | None:
    """Return what values contribute, from zero, for every member who does; None if they differ."""
    contributions = problem.contributions
    if contributions.table is not None or contributions.coordinates != 1:
        return None
    added: list[FloatArray] = [array[:, 0] - array.min() for array in contributions.different]
    inside = [values for values in added if values.any()] or added
    return inside[0] if all(np.array_equal(values, inside[0]) for values in inside[1:]) else None


class GroupLaws(abc.ABC):
    """The cases of a group, and the laws that each of them compares.

    Of everything prepared here, only `problem` and `numbered` depend on the adversaries.
    """

    def __init__(self, problem: Problem, added: FloatArray) -> None:
        reach = problem.contributions.tuple_ranges().tolist()
        self.problem, self.size, self.added = problem, len(reach), added
        self.members_in = [place for place, furthest in enumerate(reach) if furthest]
        self.members_out = [place for place, furthest in enumerate(reach) if not furthest]
        self.most = max(reach)
        self.numbered = list(self._cases())

    def against(self, problem: Problem) -> Self:
        """Return the same search against other adversaries."""
        other = copy.copy(self)
        other.problem = problem
        other.numbered = list(other._cases())  # noqa: SLF001, its own class
        return other

    def cases(self) -> Iterator[Listed]:
        """List all adversaries except those who know everyone else."""
        for case in self.numbered:
            target, unknown = self.members(case)
            if unknown or self.problem.hidden_noise:
                move = (case.own + case.inside) * self.most * ROUND_UP
                yield Listed(move, target, unknown, functools.partial(self.mixtures, case))

    @abc.abstractmethod
    def mixtures(self, case: Case) -> Iterator[Mixtures]:
        """List the mixtures of one case."""

    def _name(
        self, case: Case, held: FloatArray, event: int, secrets: tuple[int, int], output: float
    ) -> Named:
        """Build a witness; `held` is how many known members hold each value, by event."""
        target, unknown = self.members(case)
        hidden = {target, *unknown}
        known = [position for position in range(self.size) if position not in hidden]
        values = [value for value, number in enumerate(held[event]) for _ in range(int(number))]
        fixed = dict(zip(known, values, strict=True))
        added = self.problem.contributions.values
        seen = math.fsum(added[place][:, 0].min() for place in hidden) + output
        if self.problem.hidden_noise:
            seen = math.inf if output > 0 else -math.inf
        witness = self.problem.witness_at(target, fixed, secrets, seen)
        return Named(witness, target, unknown)

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

    def members(self, case: Case) -> tuple[int, tuple[int, ...]]:
        """Name a target and unknown members that fit the case."""
        if self.problem.knowledge.known is not None:
            return self._named(self.problem.knowledge.known)
        target = (self.members_in if case.own else self.members_out)[0]
        inside = [p for p in self.members_in if p != target][: case.inside]
        outside = [p for p in self.members_out if p != target][: case.outside]
        return target, tuple(sorted(inside + outside))


def log_choices(size: int) -> FloatArray:
    """Return log C(size, s) for s = 0 … size."""
    half = [math.log(math.comb(size, ones)) for ones in range(size // 2 + 1)]
    return np.array(half + (half[(size - 1) // 2 :: -1] if size else []))


class BinaryLaws(GroupLaws):
    """The laws of a yes/no group."""

    def __init__(self, problem: Problem, group: BinaryGroup, added: FloatArray) -> None:
        super().__init__(problem, added)
        self.step = float(self.added[1] - self.added[0])
        ways = log_choices(self.size)
        self.log_weights = without_members(group.log_law - ways, len(self.members_out))
        sizes = np.abs(self.log_weights)
        largest = float(sizes.max())
        if largest == math.inf:
            largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
        self.largest_log = largest + float(ways[self.size // 2])

    def laws(self, case: Case) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        """Return the laws of the number of ones among unknown members inside, and which can occur.

        The axes are the number of ones among the known members, the secret, and that number; the
        second result holds the logarithms.
        """
        known = self.size - 1 - case.inside - case.outside
        ones, secret = np.ogrid[: known + 1, :2]
        places = (ones + secret)[..., np.newaxis] + np.arange(case.inside + 1)
        logs = self.log_weights[case.outside][places] + log_choices(case.inside)
        peaks = logs.max(axis=2)
        possible = peaks > -np.inf
        logs = logs - np.where(possible, peaks, 0.0)[..., np.newaxis]
        shares = np.exp(logs)
        totals = shares.sum(axis=2, keepdims=True)
        totals = np.where(totals > 0, totals, 1.0)
        return shares / totals, logs - np.log(totals), possible

    def law_error(self, case: Case) -> float:
        """Bound the relative error of these laws."""
        operations = (6 + 2 * case.outside) * (2 + self.largest_log) + 3 * case.inside + 8
        return 4 * UNIT_ROUNDOFF * operations

    def mixtures(self, case: Case) -> Iterator[Mixtures]:
        """List them by the number of ones among the known."""
        laws, logs, possible = self.laws(case)
        known = len(laws) - 1
        step, size = abs(self.step), case.inside + case.own
        shifted = np.zeros((*laws.shape[:2], size + 1))
        log_laws = np.full_like(shifted, -np.inf)
        for secret in range(2):
            there = slice(case.own * secret, case.own * secret + case.inside + 1)
            shifted[:, secret, there], log_laws[:, secret, there] = laws[:, secret], logs[:, secret]
        if self.step < 0:  # ones contribute 0, zeros contribute the step
            shifted, log_laws = shifted[:, :, ::-1], log_laws[:, :, ::-1]
        ones = np.arange(known + 1.0)
        yield Mixtures(
            atoms=np.arange(size + 1, dtype=np.float64) * step,
            laws=shifted,
            log_laws=log_laws,
            possible=possible,
            adversary=functools.partial(self._name, case, np.stack([known - ones, ones], axis=1)),
            error=self.law_error(case),
            moved=2 * (size + 2) * UNIT_ROUNDOFF * step * size,
        )


def without_members(log_weights: FloatArray, members: int) -> FloatArray:
    """Return log w of the group after summing out 0, 1, … of its members.

    Summing one member out adds its two possible values: w'(c) = w(c) + w(c + 1).
    """
    reduced = np.full((members + 1, len(log_weights)), -np.inf)
    reduced[0] = log_weights
    for gone in range(1, members + 1):
        left = len(log_weights) - gone
        before = reduced[gone - 1]
        reduced[gone, :left] = np.logaddexp(before[:left], before[1 : left + 1])
    return reduced


_DEEPEST = -600.0  # logarithms above this are far from underflow


class _Weights:
    """log w of a group of some size, looked up by counts."""

    def __init__(self, size: int, listed: Sequence[Counts], logs: FloatArray) -> None:
        """Take one logarithm for each of the counts listed, in the order of `compositions`."""
        self.size, self.categories, self.logs = size, len(listed[0]), logs
        self._radix = (size + 1) ** np.arange(self.categories - 1, -1, -1, dtype=np.int64)
        self._codes = np.array(listed, dtype=np.int64) @ self._radix

    def __getitem__(self, counts: np.ndarray) -> FloatArray:
        return np.asarray(self.logs[np.searchsorted(self._codes, counts @ self._radix)])

    def without_one(self) -> _Weights:
        """Sum one member out: add up over its values."""
        smaller = list(compositions(self.size - 1, self.categories))
        counts = np.array(smaller, dtype=np.int64)
        filled = counts[:, np.newaxis] + np.eye(self.categories, dtype=np.int64)
        return _Weights(self.size - 1, smaller, np.logaddexp.reduce(self[filled], axis=1))


class _Unknown(NamedTuple):
    """All values that some unknown members inside the query may hold together."""

    counts: npt.NDArray[np.int64]
    """How many of them hold each category, shape (possibilities, categories)."""
    ways: FloatArray
    """The logarithm of the number of assignments with these counts."""
    sums: FloatArray
    """The different sums of their contributions."""
    of_counts: list[int]
    """For each of the counts, the position of its sum."""

    @classmethod
    def members(cls, number: int, added: FloatArray) -> _Unknown:
        """List what this many members may hold; `added` is what each category contributes."""
        listed = list(compositions(number, len(added)))
        counts = np.array(listed, dtype=np.int64)
        totals = (counts @ added).tolist()
        sums = sorted(set(totals))
        places = {total: place for place, total in enumerate(sums)}
        ways = np.array([log_ways(counts) for counts in listed])
        return cls(counts, ways, np.array(sums), [places[total] for total in totals])


class CategoryLaws(GroupLaws):
    """The laws of a group with categories."""

    def __init__(self, problem: Problem, group: CategoryGroup, added: FloatArray) -> None:
        super().__init__(problem, added)
        self.categories = len(group.categories)
        listed = list(compositions(group.size, self.categories))
        ways = [log_ways(counts) for counts in listed]
        with np.errstate(divide="ignore"):
            logs = np.log(group.count_probabilities) - np.array(ways)
        self.weights = [_Weights(group.size, listed, logs)]
        for _ in range(min(len(self.members_out), group.size - 1)):
            self.weights.append(self.weights[-1].without_one())
        self.largest_log = float(np.abs(logs[np.isfinite(logs)]).max()) + max(ways)
        self._unknown: dict[int, _Unknown] = {}

    def atoms(self, case: Case) -> FloatArray:
        """Return the sums of target and unknown members, by secret, in the order of the laws."""
        return np.asarray(case.own * self.added[:, np.newaxis] + self._unknown_of(case).sums)

    def additions(self, case: Case) -> int:
        """Bound the rounded operations behind a law."""
        logs = math.ceil((6 + 2 * case.outside) * (2 + self.largest_log))
        return len(self._unknown_of(case).counts) + logs

    def _unknown_of(self, case: Case) -> _Unknown:
        if case.inside not in self._unknown:
            self._unknown[case.inside] = _Unknown.members(case.inside, self.added)
        return self._unknown[case.inside]

    def mixtures(self, case: Case) -> Iterator[Mixtures]:
        """List them by the counts of the categories among the known, some at a time."""
        own = self.atoms(case)
        atoms, columns = np.unique(own, return_inverse=True)
        columns = columns.reshape(own.shape)
        counts, ways, sums, of_counts = self._unknown_of(case)
        weights = self.weights[case.outside]
        chunk = max(1, CHUNK_NUMBERS // (self.categories * max(len(counts), len(atoms))))
        known_counts = np.array(
            list(compositions(weights.size - 1 - case.inside, self.categories)), dtype=np.int64
        )
        places = counts + np.eye(self.categories, dtype=np.int64)[:, np.newaxis]
        for first in range(0, len(known_counts), chunk):
            events = known_counts[first : first + chunk]
            logs = weights[places + events[:, np.newaxis, np.newaxis]] + ways
            peaks = logs.max(axis=2)
            possible = peaks > -np.inf
            logs = logs - np.where(possible, peaks, 0.0)[..., np.newaxis]
            laws, log_laws = _laws_of_sums(logs, of_counts, len(sums))
            joined = np.zeros((*laws.shape[:2], len(atoms)))
            joined_logs = None if log_laws is None else np.full_like(joined, -np.inf)
            for secret, there in enumerate(columns):
                joined[:, secret, there] = laws[:, secret]
                if joined_logs is not None and log_laws is not None:
                    joined_logs[:, secret, there] = log_laws[:, secret]
            yield Mixtures(
                atoms=atoms,
                laws=joined,
                log_laws=joined_logs,
                possible=possible,
                adversary=functools.partial(self._name, case, events.astype(np.float64)),
                error=4 * UNIT_ROUNDOFF * (self.additions(case) + 8),
                moved=4 * (self.size + 2) * UNIT_ROUNDOFF * float(atoms[-1] - atoms[0]),
            )


def _laws_of_sums(
    logs: FloatArray, of_counts: list[int], number: int
) -> tuple[FloatArray, FloatArray | None]:
    """Add up the shares of counts with the same sum, and divide by their total.

    `logs` holds the logarithms of the shares, at most 0. Where some are too small for a float, the
    logarithms of the laws are returned as well.
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
