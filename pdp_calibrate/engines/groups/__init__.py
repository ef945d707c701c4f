"""Engines for exchangeable groups: who is known and unknown matters only by number."""

from __future__ import annotations

import math

from pdp_calibrate.engines.groups import binary, categories
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models import BinaryGroup


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of an exchangeable group; see `engines.tables.search`."""
    if isinstance(problem.model, BinaryGroup):
        return binary.search(problem, scale, incumbent=incumbent, deadline=deadline)
    return categories.search(problem, scale, incumbent=incumbent, deadline=deadline)


__all__ = ["search"]
