"""Engines for exchangeable groups: who is known and unknown matters only by number."""

from __future__ import annotations

import math

from pdp_calibrate.engines.additive import nobody, search_table
from pdp_calibrate.engines.groups.binary import BinaryGroupSearch
from pdp_calibrate.engines.groups.cases import GroupSearch, equal_values
from pdp_calibrate.engines.groups.categories import CategoryGroupSearch
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.models import BinaryGroup, CategoryGroup
from pdp_calibrate.models.table import MAXIMAL_CELLS


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of an exchangeable group; see `engines.tables.search`."""
    group = problem.model
    if not isinstance(group, BinaryGroup | CategoryGroup):
        raise TypeError(f"this engine searches exchangeable groups, got {group!r}.")
    if len(group.domains[0]) == 1:
        return nobody(problem)
    added = equal_values(problem)
    if added is None:
        if len(group.domains[0]) ** group.size > MAXIMAL_CELLS:
            raise UnsupportedQueryError(
                "members of a group too large for a joint table must all weigh the same, or"
                " nothing, and be asked one number. Use Sum, Mean or Count, with over= for a part."
            )
        joint = group.to_table()
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    walk: GroupSearch
    if isinstance(group, BinaryGroup):
        walk = BinaryGroupSearch(problem, group, added, scale)
    else:
        walk = CategoryGroupSearch(problem, group, added, scale)
    return walk.run(incumbent, deadline)


__all__ = ["search"]
