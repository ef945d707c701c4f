"""What engines of structured families share: plain DP, answers that repeat, tables, witnesses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import Bracket, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP
from pdp_calibrate.core.table import JointTable


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


def as_one(contributions: Contributions) -> Contributions | None:
    """Return the one number that every coordinate of an answer repeats; None if they differ.

    Whatever the k coordinates say at scale λ, a likelihood that changes as slowly along that number
    says at scale λ/k: it is one release with all of the budget.
    """
    if any(np.any(array != array[:, :1]) for array in contributions.values):
        return None
    columns = {id(array): array[:, 0] for array in contributions.values}
    return Contributions.additive([columns[id(array)] for array in contributions.values])


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


class WrittenOut:
    """A problem about a model that is small enough to be searched as a joint table.

    Parameters
    ----------
    problem
        The problem about the model itself.
    about_table
        The same problem about its joint table.
    """

    def __init__(self, problem: Problem, about_table: Problem) -> None:
        self.problem, self.about_table = problem, about_table

    @classmethod
    def of(cls, problem: Problem, joint: JointTable) -> WrittenOut:
        """Write a problem out; `joint` is its model as a table."""
        return cls(problem, dataclasses.replace(problem, model=joint))

    def against(self, problem: Problem) -> WrittenOut:
        """Return the same against the adversaries of `problem`."""
        if problem is self.problem:
            return self
        return WrittenOut(problem, self.about_table.against(problem.knowledge))

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Search the table; the witness is about the model itself."""
        engine = self.about_table.engine
        found = engine.bracket(
            scale,
            incumbent=limits.incumbent,
            deadline=limits.deadline,
            rounding=limits.rounding,
        )
        if found.witness is None:
            return found
        witness = dataclasses.replace(found.witness, model=self.problem.model)
        return dataclasses.replace(found, witness=witness)
