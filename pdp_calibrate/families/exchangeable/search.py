"""The exact engine for exchangeable groups with Laplace noise: see `laws`."""

from __future__ import annotations

import functools

from pdp_calibrate.core.laplace_mixtures import LaplaceSearch
from pdp_calibrate.core.model import ANY_TABLE
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.table import WrittenOut
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.exchangeable.laws import (
    BinaryLaws,
    CategoryLaws,
    GroupLaws,
    equal_values,
)
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup


class GroupEngine(Engine):
    """Searches an exchangeable group by its cases, or as a table where its members differ."""

    def __init__(self, problem: Problem, *, laws: GroupLaws | WrittenOut | None = None) -> None:
        """Prepare the search; `laws` are those for other adversaries, whose work is reused."""
        group = problem.model
        if not isinstance(group, BinaryGroup | CategoryGroup):
            raise TypeError(f"this engine searches exchangeable groups, got {group!r}.")
        self.problem, self._laws = problem, laws
        self._search: LaplaceSearch | WrittenOut | None = None
        if len(group.domains[0]) > 1:  # otherwise there are no two secrets to compare
            found = laws_of(problem, group) if laws is None else laws.against(problem)
            self._laws = found
            self._search = found if isinstance(found, WrittenOut) else _search_of(problem, found)

    def against(self, problem: Problem) -> GroupEngine:
        """Return an engine for the same group and answers; see `core.problem.Engine`."""
        return GroupEngine(problem, laws=self._laws)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        return self.problem.nobody() if self._search is None else self._search.search(scale, limits)


def _search_of(problem: Problem, laws: GroupLaws) -> LaplaceSearch:
    strongest = None
    if problem.admits_strongest:
        strongest = functools.partial(strongest_of, problem)
    return LaplaceSearch(problem, laws, strongest=strongest)


def strongest_of(problem: Problem, scale: float) -> Bracket:
    """Evaluate who knows everyone else: an answer moves by what the target contributes."""
    ranges = problem.contributions.tuple_ranges()
    target = max(problem.knowledge.targets, key=lambda place: float(ranges[place]))
    return problem.plain_dp(target, scale, dict.fromkeys(range(len(ranges)), 0))


def laws_of(problem: Problem, group: BinaryGroup | CategoryGroup) -> GroupLaws | WrittenOut:
    """Prepare the laws by cases if all members inside the query contribute the same."""
    added = equal_values(problem)
    if added is not None:
        if isinstance(group, BinaryGroup):
            return BinaryLaws(problem, group, added)
        return CategoryLaws(problem, group, added)
    if not ANY_TABLE.admits(list(map(len, group.domains))):
        raise UnsupportedQueryError(
            "in a group too large for a joint table, all members of a query must have the same"
            " weight, and the answer must be one number. Use Sum, Mean or Count, with over= for"
            " some of the members."
        )
    return WrittenOut.of(problem, group.to_table())
