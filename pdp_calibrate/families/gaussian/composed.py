"""Several releases about Gaussian tuples, groups and series: their costs add up.

Theorem 10 (docs/theory).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Composer, Problem, Releases, worst
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.core.tuning import SIGNED_ANSWERS
from pdp_calibrate.families.gaussian.blocks import components


class ShiftComposer(Composer):
    """For models where another secret shifts every unknown tuple by a fixed amount.

    Then each answer costs its exact leakage, and a mechanism costs ε₀ for every tuple moved.
    """

    def shifted(self, releases: Releases, deadline: float) -> float | None:
        """Add up the costs of all answers and mechanisms."""
        if releases.budgets is not None:
            return None
        total = self.moved_tuples(releases.problem) * releases.dp_epsilon
        for part in self.parts(releases.problem):
            # Later scales depend on the sample: what is worst does too, and so must not be fixed.
            follows = dataclasses.replace(part.measure, more_follows=True)
            part = dataclasses.replace(part, measure=follows)
            found, _ = worst([part], 1.0, deadline=deadline)
            total = (total + found.upper) * ROUND_UP if total else found.upper
        return total

    def moved_tuples(self, problem: Problem) -> int:
        """Return how many tuples can differ: the unknown ones that depend on the target."""
        unknown = super().moved_tuples(problem)
        if problem.knowledge.known is not None:
            return unknown
        return min(unknown, self.largest_component(problem.model))

    def largest_component(self, model: Model) -> int:
        """Return the size of the largest set of tuples that depend on each other."""
        return max(map(len, components(model)))

    def parts(self, problem: Problem) -> list[Problem]:
        """Return problems whose costs add up to no less than those of this one."""
        return few_directions(problem)


def few_directions(leaf: Problem) -> list[Problem]:
    """Split an answer of many coordinates; the cost of a shift may be bounded part by part."""
    contributions = leaf.contributions
    weights = contributions.weights
    if weights is None or contributions.coordinates <= SIGNED_ANSWERS:
        return [leaf]
    columns = np.column_stack(weights)  # coordinates × tuples
    groups = _parallel(columns)
    chunks = [groups[k : k + SIGNED_ANSWERS] for k in range(0, len(groups), SIGNED_ANSWERS)]
    return [_of_coordinates(leaf, [chunk for group in some for chunk in group]) for some in chunks]


def _parallel(columns: FloatArray) -> list[list[int]]:
    """Group coordinates whose weights are multiples of each other."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for place, row in enumerate(columns):
        peak = row[int(np.abs(row).argmax())]
        key = tuple((row / peak).round(12)) if peak else ()
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def _of_coordinates(leaf: Problem, chosen: Sequence[int]) -> Problem:
    contributions = leaf.contributions
    weights = contributions.weights
    return dataclasses.replace(
        leaf,
        contributions=dataclasses.replace(
            contributions,
            values=tuple(array[:, list(chosen)] for array in contributions.values),
            weights=weights and tuple(array[list(chosen)] for array in weights),
        ),
    )
