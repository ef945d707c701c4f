"""What engines of structured families share: plain DP, the group bound, and witnesses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import JointTable

ROUND_UP = 1 + 8 * UNIT_ROUNDOFF  # covers a difference and a quotient of floats


ROUND_DOWN = 1 - 8 * UNIT_ROUNDOFF


def nobody(problem: Problem) -> Bracket:
    """Return the search that has found nothing yet, or nobody with two secrets."""
    target = problem.knowledge.targets[0]
    return Bracket(upper=0.0, lower=0.0, witness=None, target=target, unknown=())


def plain_dp(problem: Problem, target: int, scale: float, others: Mapping[int, int]) -> Bracket:
    """Knowing everyone else, the output tells x_i as plain DP says: LS_i/λ, whatever θ is.

    Nobody has two secrets about a tuple of one value.
    """
    answers = problem.contributions.values[target][:, 0]
    if len(answers) < 2:
        return dataclasses.replace(nobody(problem), target=target)
    secrets = int(answers.argmax()), int(answers.argmin())
    if secrets[0] == secrets[1]:  # all add the same
        secrets = 0, 1
    leak = float(answers.max() - answers.min()) / scale
    known = {position: value for position, value in others.items() if position != target}
    return Bracket(
        upper=leak * ROUND_UP,
        lower=leak * ROUND_DOWN,
        witness=witness_at(problem, target, known, secrets, answers.max()),
        target=target,
        unknown=(),
    )


def group_bound(problem: Problem, scale: float, positions: Sequence[int] | None = None) -> float:
    """Return Σ LS_j/λ, rounded up: nobody sees the answer move further than these tuples can."""
    ranges = problem.contributions.tuple_ranges()
    chosen = ranges if positions is None else ranges[list(positions)]
    return math.fsum(chosen) / scale * ROUND_UP


def as_one(contributions: Contributions, scale: float) -> tuple[Contributions, float] | None:
    """Return answers that are all the same number as one, released with all of the budget.

    In the unit of the noise, and with what their rounding may cost in nats; None if they differ.
    """
    if any(np.any(array != array[:, :1]) for array in contributions.values):
        return None
    times = contributions.coordinates / scale
    columns = {id(array): array[:, 0] * times for array in contributions.values}
    found = Contributions.additive([columns[id(array)] for array in contributions.values])
    return found, 8 * UNIT_ROUNDOFF * found.magnitude


def witness_at(
    problem: Problem,
    target: int,
    known: Mapping[int, int],
    secrets: tuple[int, int],
    moved: float,
) -> Witness:
    """Translate positions and indices into names and values.

    `moved` is what target and unknown tuples add to the answer; ±inf for a limit.
    """
    values, domains = problem.contributions.values, problem.model.domains
    fixed = math.fsum(values[position][value, 0] for position, value in known.items())
    return Witness(
        target=problem.names[target],
        known={problem.names[position]: domains[position][v] for position, v in known.items()},
        secrets=(domains[target][secrets[0]], domains[target][secrets[1]]),
        output=float(fixed + moved),
        model=problem.model,
        index=problem.index,
    )


def search_table(
    problem: Problem, joint: JointTable, scale: float, *, incumbent: float, deadline: float
) -> Bracket:
    """Search the same problem written out as a joint table."""
    written = dataclasses.replace(problem, model=joint)
    found = written.engine.bracket(scale, incumbent=incumbent, deadline=deadline)
    if found.witness is None:
        return found
    witness = dataclasses.replace(found.witness, model=problem.model)
    return dataclasses.replace(found, witness=witness)
