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

import dataclasses
import functools
import math

import numpy as np

from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.couplings import furthest_quantiles, joint_range, one_number, output_side
from pdp_calibrate.core.finite_noise import FiniteSearch, VectorBound
from pdp_calibrate.core.model import ANY_TABLE
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF, lengths
from pdp_calibrate.core.table import WrittenOut
from pdp_calibrate.core.tuning import COUPLED_MEMBERS
from pdp_calibrate.families.exchangeable.laws import (
    BinaryLaws,
    Case,
    CategoryLaws,
    GroupLaws,
    equal_values,
)
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup
from pdp_calibrate.families.exchangeable.search import strongest_of

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
            source: GroupLaws
            if isinstance(group, BinaryGroup):
                source = BinaryLaws(inner, group, added)
            else:
                source = CategoryLaws(inner, group, added)
            strongest = None
            if problem.admits_strongest:
                strongest = functools.partial(strongest_of, inner)
            whole = None if _is_coupled(group) else joint_range(inner.contributions)
            return FiniteSearch(inner, source, strongest=strongest, rounding=rounding, move=whole)
        if ANY_TABLE.admits(list(map(len, group.domains))):
            return WrittenOut.of(problem, group.to_table())
    if isinstance(group, BinaryGroup) and problem.measure.data_counts:
        return VectorBound(problem, binary_move(problem, group))
    return VectorBound(problem)


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
    search, most = BinaryLaws(inner, group, added), 0
    knowledge = problem.knowledge
    for unknown in range(group.size - 1 - knowledge.most, group.size - knowledge.fewest):
        case = Case(own=0, inside=unknown, outside=0)
        laws, _, possible = search.laws(case)
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
