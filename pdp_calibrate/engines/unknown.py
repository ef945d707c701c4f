"""The engine for groups of which nothing is known: Θ holds every distribution.

Whoever does not know the tuples U sees the answer move by at most Σ_{j ∈ U ∪ {i}} LS_j, and some θ
attains it: let x_i decide whether all of them stand at their largest or at their smallest. Far
out, r → ±∞, the log-ratio is then exactly Σ LS_j/λ, other independent noise or not.
"""

from __future__ import annotations

import math

import numpy as np

from pdp_calibrate.engines.additive import ROUND_DOWN, ROUND_UP, witness_at
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.errors import UnsupportedQueryError


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Return the group bound of the adversary who knows least; see `engines.tables.search`."""
    del incumbent, deadline
    contributions = problem.contributions
    if contributions.table is not None:
        raise UnsupportedQueryError(
            "Custom needs a JointTable; on Unknown use Sum, Mean, Count or Linear."
        )
    ranges = contributions.tuple_ranges()
    target, unknown = _least_knowing(problem, ranges)
    moving = [target, *unknown]
    leak = math.fsum(ranges[moving]) / scale
    # Several coordinates add up only if all tuples can move the same way.
    several = contributions.values[0].shape[-1] > 1
    alike = all(
        np.array_equal(contributions.values[p], contributions.values[target]) for p in moving
    )
    lower = leak if not several or alike else max(ranges[moving]) / scale
    answers = contributions.values[target][:, 0]
    known = {p: 0 for p in range(problem.knowledge.total) if p not in set(moving)}
    secrets = int(answers.argmax()), int(answers.argmin())
    if secrets[0] == secrets[1]:
        secrets = (0, len(answers) - 1)
    return Found(
        value=leak * ROUND_UP,
        lower=lower * ROUND_DOWN,
        witness=witness_at(problem, target, known, secrets, math.inf),
        target=target,
        unknown=unknown,
    )


def _least_knowing(problem: Problem, ranges: np.ndarray) -> tuple[int, tuple[int, ...]]:
    """Name the adversary for whom most of the answer stays open."""
    knowledge = problem.knowledge
    positions = range(knowledge.total)
    if knowledge.known is not None:
        (target,) = knowledge.targets
        known = knowledge.known
        return target, tuple(p for p in positions if p != target and p not in known)
    order = np.argsort(ranges, kind="stable")
    target, *unknown = order[knowledge.fewest :][::-1]
    return int(target), tuple(sorted(int(p) for p in unknown))
