"""Gaussian noise on exchangeable groups: an exact search over numbers of known members.

**Different queries about a yes/no group.** Let h be the largest W∞ between the laws of the number
of ones among unknown members, under both values of the target, over everything that may be known.
Given their number every assignment is equally likely, so some coupling changes the target and at
most h other members, drawn at random among those who can change. No answer then moves further than
the target moves it plus the h other members who move it most. One coupling serves all queries, so
any number of them is covered together, including queries chosen adaptively.

If further queries may follow, this coupling has to be used from the first answer on. For the total
number of ones it is the coupling of equal quantiles, which moves this answer by no more than W∞;
another answer has a different best coupling, so such an answer is counted by h.

Groups of more than a few hundred members have too many laws to compare, and in some groups a count
is too rare to be represented beside the others in floating point: then quantiles down to it are not
known, and the range of the whole answer is used at every δ.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Iterator

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.couplings import furthest_quantiles, joint_range, one_number, output_side
from pdp_calibrate.core.finite_noise import (
    Case as Listed,
    FiniteSearch,
    Mixtures,
    Named,
    VectorBound,
)
from pdp_calibrate.core.model import ANY_TABLE
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF, lengths
from pdp_calibrate.core.table import WrittenOut
from pdp_calibrate.core.tuning import COUPLED_MEMBERS
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup
from pdp_calibrate.families.exchangeable.search import (
    BinaryGroupSearch,
    Case,
    CategoryGroupSearch,
    equal_values,
)

_DEEPEST = 690.0  # nats between the likeliest and the rarest count that floats can represent


class GroupNoiseEngine(Engine):
    """Searches an exchangeable group by its cases, or as a table where its members differ."""

    charges_rounding = True

    def __init__(self, problem: Problem) -> None:
        group = problem.model
        if not isinstance(group, BinaryGroup | CategoryGroup):
            raise TypeError(f"this engine searches exchangeable groups, got {group!r}.")
        self.problem = problem
        self._search: FiniteSearch | WrittenOut | VectorBound | None = None
        if len(group.domains[0]) > 1:  # otherwise there are no two secrets to compare
            self._search = _search_of(problem, group)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        if self._search is None:
            return self.problem.nobody()
        return output_side(self._search.search(scale, limits), self.problem)


def _search_of(
    problem: Problem, group: BinaryGroup | CategoryGroup
) -> FiniteSearch | WrittenOut | VectorBound:
    """Prepare the search by cases if all members inside the query contribute the same."""
    once, measure = one_number(problem.contributions), problem.measure
    if (
        isinstance(group, BinaryGroup)
        and measure.more_follows
        and measure.data_counts
        and not _is_about_everyone(problem)
    ):
        return VectorBound(problem, binary_move(problem, group))
    if once is not None:
        inner, rounding = dataclasses.replace(problem, contributions=once[0]), once[1]
        added = equal_values(inner)
        if added is not None:
            source: _BinaryMixtures | _CategoryMixtures
            if isinstance(group, BinaryGroup):
                source = _BinaryMixtures(inner, BinaryGroupSearch(inner, group, added))
            else:
                source = _CategoryMixtures(inner, CategoryGroupSearch(inner, group, added))
            strongest = None
            if problem.admits_strongest:
                strongest = functools.partial(_strongest, inner)
            whole = None if _is_coupled(group) else joint_range(inner.contributions)
            return FiniteSearch(inner, source, strongest=strongest, rounding=rounding, move=whole)
        if ANY_TABLE.admits(list(map(len, group.domains))):
            return WrittenOut.of(problem, group.to_table())
    if isinstance(group, BinaryGroup) and problem.measure.data_counts:
        return VectorBound(problem, binary_move(problem, group))
    return VectorBound(problem)


def _strongest(problem: Problem, scale: float) -> Bracket:
    """Evaluate who knows everyone else: an answer moves by what the target contributes."""
    ranges = problem.contributions.tuple_ranges()
    target = max(problem.knowledge.targets, key=lambda place: float(ranges[place]))
    return problem.plain_dp(target, scale, dict.fromkeys(range(len(ranges)), 0))


def _is_about_everyone(problem: Problem) -> bool:
    """Whether all members contribute the same to every answer."""
    contributions = problem.contributions
    first = contributions.values[0]
    return contributions.table is None and all(
        array is first or np.array_equal(array, first) for array in contributions.values
    )


def _is_coupled(group: BinaryGroup | CategoryGroup) -> bool:
    """Whether its laws are few enough to compare, and all their terms fit into floats."""
    masses = group.count_probabilities
    rarest = float(masses[masses > 0].min())
    depth = 2 * group.size * math.log(len(group.domains[0])) - math.log(rarest)
    return group.size <= COUPLED_MEMBERS and depth < _DEEPEST


def members_moved(problem: Problem, group: BinaryGroup) -> int:
    """Return h: the most members that a coupling changes besides the target."""
    if not _is_coupled(group):
        return group.size - 1
    counted = Contributions.additive([np.array([0.0, 1.0])] * group.size)
    inner = dataclasses.replace(problem, contributions=counted)
    added = equal_values(inner)
    if added is None:
        raise TypeError("every member contributes the same to a count.")
    search, most = BinaryGroupSearch(inner, group, added), 0
    knowledge = problem.knowledge
    for unknown in range(group.size - 1 - knowledge.most, group.size - knowledge.fewest):
        case = Case(own=0, inside=unknown, outside=0)
        laws, possible = search.laws(case)
        both = possible.all(axis=1)
        if both.any():
            atoms, error = np.arange(unknown + 1.0), search.law_error(case)
            found = furthest_quantiles(atoms, laws[both, 0], laws[both, 1], error=error)
            most = max(most, round(float(found.max())))
    return most


def binary_move(problem: Problem, group: BinaryGroup) -> float:
    """Return how far one coupling moves all answers in L2, rounded up."""
    contributions = problem.contributions
    if contributions.table is not None:
        return joint_range(contributions)
    moved = members_moved(problem, group)
    moves = np.array([np.ptp(array, axis=0) for array in contributions.values])
    largest = 0.0
    for target in problem.knowledge.targets:
        others = np.sort(np.delete(moves, target, axis=0), axis=0)[::-1][:moved]
        largest = max(largest, float(lengths(moves[target] + others.sum(axis=0))))
    rounding = 1 + 4 * (moved + contributions.coordinates + 4) * UNIT_ROUNDOFF
    return min(joint_range(contributions), largest * rounding)


class _GroupMixtures(abc.ABC):
    """What the mixtures of both kinds of groups share."""

    def __init__(self, problem: Problem, search: BinaryGroupSearch | CategoryGroupSearch) -> None:
        self._problem, self._group = problem, search
        self._most = float(search.added.max())

    def cases(self) -> Iterator[Listed]:
        """List all adversaries except those who know everyone else."""
        for case in self._group.cases:
            target, unknown = self._group.members(case)
            if unknown or self._problem.hidden_noise:
                move = (case.own + case.inside) * self._most * ROUND_UP
                yield Listed(move, target, unknown, functools.partial(self.mixtures, case))

    @abc.abstractmethod
    def mixtures(self, case: Case) -> Iterator[Mixtures]:
        """List the mixtures of one case."""

    def _named(
        self, case: Case, held: FloatArray, event: int, secrets: tuple[int, int], output: float
    ) -> Named:
        """Build a witness; `held` is how many known members hold each value, by event."""
        target, unknown = self._group.members(case)
        hidden = {target, *unknown}
        known = [position for position in range(self._group.size) if position not in hidden]
        values = [value for value, number in enumerate(held[event]) for _ in range(int(number))]
        fixed = dict(zip(known, values, strict=True))
        return Named(self._problem.witness_at(target, fixed, secrets, output), target, unknown)


class _BinaryMixtures(_GroupMixtures):
    """The mixtures of a yes/no group."""

    def __init__(self, problem: Problem, search: BinaryGroupSearch) -> None:
        super().__init__(problem, search)
        self._binary = search

    def mixtures(self, case: Case) -> Iterator[Mixtures]:
        """List them by the number of ones among the known."""
        laws, possible = self._binary.laws(case)
        known = len(laws) - 1
        step, size = abs(self._binary.step), case.inside + case.own
        shifted = np.zeros((*laws.shape[:2], size + 1))
        for secret in range(2):
            start = case.own * secret
            shifted[:, secret, start : start + case.inside + 1] = laws[:, secret]
        if self._binary.step < 0:  # ones contribute 0, zeros contribute the step
            shifted = shifted[:, :, ::-1]
        ones = np.arange(known + 1.0)
        yield Mixtures(
            atoms=np.arange(size + 1, dtype=np.float64) * step,
            laws=shifted,
            possible=possible,
            adversary=functools.partial(self._named, case, np.stack([known - ones, ones], axis=1)),
            error=self._binary.law_error(case),
            moved=2 * (size + 2) * UNIT_ROUNDOFF * step * size,
        )


class _CategoryMixtures(_GroupMixtures):
    """The mixtures of a group with categories."""

    def __init__(self, problem: Problem, search: CategoryGroupSearch) -> None:
        super().__init__(problem, search)
        self._categories = search

    def mixtures(self, case: Case) -> Iterator[Mixtures]:
        """List them by the counts of the categories among the known."""
        search = self._categories
        own = search.atoms(case)
        atoms, places = np.unique(own, return_inverse=True)
        places = places.reshape(own.shape)
        for events, possible, laws, _ in search.laws(case, len(atoms)):
            joined = np.zeros((*laws.shape[:2], len(atoms)))
            for secret, columns in enumerate(places):
                joined[:, secret, columns] = laws[:, secret]
            yield Mixtures(
                atoms=atoms,
                laws=joined,
                possible=possible,
                adversary=functools.partial(self._named, case, events.astype(np.float64)),
                error=4 * UNIT_ROUNDOFF * (search.additions(case) + 8),
                moved=4 * (search.size + 2) * UNIT_ROUNDOFF * float(atoms[-1] - atoms[0]),
            )
