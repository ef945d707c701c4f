"""What a family says of several releases about one block of its tuples.

Some bounds hold for every model: all unknown tuples move at once, or the model is written out as a
table. Others use what is special about a family. A family that has some names its composer in the
class attribute `composer` of its model, as it names its engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.errors import UnsupportedQueryError


@dataclass(frozen=True, kw_only=True)
class Releases:
    """What was released about one block."""

    problem: Problem
    """Contributions in units of the noise, repeated queries as one; nothing if too many."""
    separate: Problem | None
    """The same with every release for itself, where a search may be tried."""
    budgets: FloatArray | None
    """Per tuple, where the contributions are too many; else they follow from these."""
    dp_epsilon: float
    """The plain-DP budget of whatever else was released."""
    threshold: float | None = None
    """If given, only whether the bound exceeds this matters."""

    @property
    def tuple_budgets(self) -> FloatArray:
        """How far each tuple alone can move the likelihood."""
        ranges = self.budgets
        if ranges is None:
            ranges = self.problem.contributions.tuple_ranges()
        return np.asarray((ranges + self.dp_epsilon) * ROUND_UP)

    @property
    def is_alike(self) -> bool:
        """Whether every tuple adds the same to the answers."""
        values = self.problem.contributions.values
        same = bool(values) and all(np.array_equal(one, values[0]) for one in values)
        return same and self.budgets is None


class Composer:
    """What can be said of any family; bounds that only some families have are None here."""

    def is_searchable(self, problem: Problem) -> bool:
        """Whether an exact search of the joint answer is within reach."""
        return problem.contributions.coordinates == 1

    def is_bounded(self, problem: Problem) -> bool:
        """Whether tuples move the answers by no more than their ranges say."""
        return not problem.model.is_continuous or problem.contributions.clamped

    def moved_tuples(self, problem: Problem) -> int:
        """Return how many tuples can differ between two databases of one adversary."""
        known = problem.knowledge.known
        return problem.knowledge.total - (problem.knowledge.fewest if known is None else len(known))

    def shifted(self, releases: Releases, deadline: float) -> float | None:
        """Bound everything where all unknown tuples move by a fixed shift: nothing is smaller."""
        del releases, deadline
        return None

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Bound everything by the budgets of single tuples, which others forget step by step."""
        del releases, deadline
        return None

    def windows(self, releases: Releases, deadline: float) -> float | None:
        """Search the neighbourhoods of the targets, where all releases are of one query."""
        del releases, deadline
        return None

    def counted(self, releases: Releases, deadline: float) -> float | None:
        """Bound by counting: it only matters how many tuples hold each value."""
        del releases, deadline
        return None

    def for_ever(self, model: Model, dp_epsilon: float) -> float:
        """Bound what this budget at every step tells about any, where the model has no end."""
        del dp_epsilon
        raise UnsupportedQueryError(f"{model!r} has an end.")

    def budget_for_ever(self, model: Model, epsilon: float) -> float | None:
        """Return the budget per step that keeps ε for ever; None where the model has an end."""
        del model, epsilon
        return None

    def is_counted_exactly(self, releases: Releases) -> bool:
        """Whether the dual program of the family's table is the same as `counted`."""
        del releases
        return False


def composer_of(model: Model) -> Composer:
    """Return what the model's family says of several releases."""
    found = model.composer
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = cast("type[Composer]", getattr(import_module(module), name))
    return Composer() if found is None else found()
