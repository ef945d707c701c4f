"""The one best-first loop, on cases whose bounds and values are made up."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from pdp_calibrate.core.workers import best_first, lower_largest
from pdp_calibrate.errors import CalibrationError


@dataclass(frozen=True)
class Found:
    upper: float
    lower: float
    who: str | None = None

    def or_worse(self, other: Found) -> Found:
        one = self if self.lower >= other.lower else other
        return Found(max(self.upper, other.upper), one.lower, one.who)


VALUES = {"a": 0.5, "b": 2.0, "c": 1.5, "d": 0.1}
BOUNDS = {"a": 3.0, "b": 2.5, "c": 1.9, "d": 0.2}
NOBODY = Found(0.0, 0.0)


class Cases:
    """Judges cases by the list, and remembers which."""

    def __init__(self, values=VALUES, bounds=BOUNDS, *, width=0.0):
        self.values, self.bounds, self.width = values, bounds, width
        self.judged: list[str] = []

    def judge(self, bound, case):
        assert bound == self.bounds[case]
        self.judged.append(case)
        return Found(self.values[case] + self.width, self.values[case], case)

    def search(self, *, incumbent=0.0, enough=math.inf, is_over=lambda: False, order=None):
        return best_first(
            [(self.bounds[case], case) for case in order or self.bounds],
            self.judge,
            start=NOBODY,
            unjudged=lambda bound, _: Found(bound, 0.0),
            cutoff=lambda found: max(incumbent, found.lower),
            is_over=is_over,
            enough=enough,
        )


@pytest.mark.parametrize("order", list(itertools.permutations(BOUNDS)))
def test_the_largest_bounds_are_judged_first_whatever_the_order(order):
    cases = Cases()
    assert cases.search(order=order) == Found(2.0, 2.0, "b")
    assert cases.judged == ["a", "b"]  # c and d are bounded by less than b leaks


@pytest.mark.parametrize("incumbent", [0.0, 0.15, 1.0, 1.9, 1.95, 2.0, 2.5, 2.7, 3.0, 9.0])
@pytest.mark.parametrize("width", [0.0, 0.3])
def test_the_upper_end_is_never_below_the_truth_nor_above_what_is_needed(incumbent, width):
    cases = Cases(width=width)
    found = cases.search(incumbent=incumbent)
    assert found.upper >= max(VALUES.values())
    assert found.upper <= max(incumbent, max(VALUES.values()) + width)
    if found.who is not None:
        assert found.lower == VALUES[found.who]


def test_when_time_is_up_the_next_bound_covers_the_rest():
    for patience, upper in enumerate([3.0, 2.5, 2.0]):
        cases = Cases()
        found = cases.search(is_over=lambda cases=cases, p=patience: len(cases.judged) >= p)
        assert len(cases.judged) == patience
        assert found.upper == upper


def test_whoever_leaks_enough_ends_the_search_and_the_next_bound_covers_the_rest():
    cases = Cases()
    assert cases.search(enough=0.4) == Found(2.5, 0.5, "a")
    assert cases.judged == ["a"]
    cases = Cases()
    assert cases.search(enough=0.5) == Found(2.0, 2.0, "b")  # a leaks just enough, not more


def test_the_start_counts_and_no_cases_leave_it_as_it_is():
    start = Found(1.2, 1.1, "before")
    arguments = {
        "unjudged": lambda bound, _: Found(bound, 0.0),
        "cutoff": lambda found: found.lower,
        "is_over": lambda: False,
    }
    assert best_first([], pytest.fail, start=start, **arguments) is start
    found = best_first([(1.05, "x")], pytest.fail, start=start, **arguments)
    assert found == start


def test_a_bound_that_is_not_a_number_covers_nobody():
    with pytest.raises(CalibrationError, match="not a number"):
        Cases(bounds=BOUNDS | {"c": math.nan}).search()


PARTS = {"a": [(2.8, "a1"), (0.4, "a2")], "a1": [(2.2, "a11")]}
PART_VALUES = VALUES | {"a": 0.0, "a1": 0.0, "a11": 1.0, "a2": 0.3}


@pytest.mark.parametrize("patience", [0, 1, 2, 3, 9])
def test_what_a_case_falls_into_is_judged_in_its_turn_and_never_forgotten(patience):
    judged = []

    def judge(_bound, case):
        judged.append(case)
        return NOBODY if case in PARTS else Found(PART_VALUES[case], PART_VALUES[case], case)

    found = best_first(
        [(bound, case) for case, bound in BOUNDS.items()],
        judge,
        start=NOBODY,
        unjudged=lambda bound, _: Found(bound, 0.0),
        cutoff=lambda found: found.lower,
        is_over=lambda: len(judged) >= patience,
        parts=lambda case: PARTS.get(case, []),
    )
    assert judged == ["a", "a1", "b", "a11"][:patience]
    assert found.upper == {0: 3.0, 1: 2.8, 2: 2.5, 3: 2.2}.get(patience, 2.0)
    with pytest.raises(CalibrationError, match="not a number"):
        best_first(
            [(3.0, "a")],
            judge,
            start=NOBODY,
            unjudged=lambda bound, _: Found(bound, 0.0),
            cutoff=lambda found: found.lower,
            is_over=lambda: False,
            parts=lambda _: [(math.nan, "b")],
        )


@pytest.mark.parametrize(
    ("enough", "asked", "left"),
    [(0.0, [1, 3], [1.0, 2.0, 2.0, 2.5]), (3.5, [1], [1.0, 2.0, 2.0, 3.0]), (9.0, [], None)],
)
def test_the_largest_bounds_are_lowered_first_and_no_more_of_them_than_matter(enough, asked, left):
    before = np.array([1.0, 4.0, 2.0, 3.0])
    bounds, seen = before.copy(), []

    def lowered(place):
        seen.append(place)
        return {1: 2.0, 3: 2.5}[place]

    lower_largest(bounds, range(4), lowered, enough=enough)
    assert seen == asked
    assert bounds.tolist() == (before.tolist() if left is None else left)


def test_bounds_never_rise_and_whoever_gives_up_ends_the_search():
    bounds, seen = np.array([5.0, 4.0, 3.0]), []

    def lowered(place):
        seen.append(place)
        return None if place == 1 else 1.0 if place == 0 else 9.0

    lower_largest(bounds, [0, 1, 2], lowered)
    assert seen == [0, 1]
    assert bounds.tolist() == [1.0, 4.0, 3.0]
    lower_largest(bounds, [2], lambda _: 9.0)
    assert bounds.tolist() == [1.0, 4.0, 3.0]
    lower_largest(bounds, [1, 2], lambda _: 0.0, is_over=lambda: True)
    assert bounds.tolist() == [1.0, 4.0, 3.0]
