"""Several releases about an exchangeable yes/no group: only the number of ones matters."""

from __future__ import annotations

import math

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.line_program import line_bounds
from pdp_calibrate.core.problem import Composer, Problem, Releases
from pdp_calibrate.core.rounding import rounded_up
from pdp_calibrate.core.tuning import COMPOSED_MEMBERS, COUPLED_MEMBERS
from pdp_calibrate.families.exchangeable.gaussian_noise import members_moved
from pdp_calibrate.families.exchangeable.model import BinaryGroup


class BinaryComposer(Composer):
    """Bounds releases about a yes/no group along the line of its counts."""

    def counted(self, releases: Releases, deadline: float) -> float | None:
        """Bound by counting: only the number of members who hold 1 matters."""
        del deadline
        problem = releases.problem
        if not isinstance(problem.model, BinaryGroup):
            return None
        found = group_of_two_values(
            problem.model,
            float(releases.tuple_budgets.max()),
            problem.knowledge,
            by_count=releases.dp_epsilon == 0 and releases.is_alike,
        )
        if found is not None and releases.is_alike:
            return found
        coupled = coupled_budgets(problem, problem.model, releases.tuple_budgets)
        known = [bound for bound in (found, coupled) if bound is not None]
        return min(known) if known else None

    def is_counted_exactly(self, releases: Releases) -> bool:
        """Whether all releases are about the count alone, or none of them is an answer."""
        answers = releases.problem.contributions.total_range()
        only_one = releases.dp_epsilon == 0 or not answers
        small = len(releases.problem.model.names) <= COMPOSED_MEMBERS
        return releases.is_alike and only_one and small


def coupled_budgets(problem: Problem, group: BinaryGroup, budgets: FloatArray) -> float | None:
    """Bound releases of any kind by one coupling; None for too large a group.

    Some coupling of the group's laws under both values of x_i changes x_i and at most h other
    members (`gaussian_noise.members_moved`), so a likelihood changes by no more than the budget of
    x_i and the h largest others: ε_0·(1 + h) for a black box of budget ε_0.
    """
    if group.size > COUPLED_MEMBERS:
        return None
    moved = members_moved(problem, group)
    worst = 0.0
    for target in problem.knowledge.targets:
        others = np.sort(np.delete(budgets, target))[::-1][:moved]
        worst = max(worst, float(budgets[target]) + math.fsum(others))
    return rounded_up(worst, 4)


def group_of_two_values(
    group: BinaryGroup, step: float, knowledge: Knowledge, *, by_count: bool
) -> float | None:
    """Bound releases about an exchangeable yes/no group; None for too large a group.

    Exchangeable laws do not distinguish members, and averaging a likelihood over all orders of the
    unknown members makes it change no faster than before: so it is enough to consider likelihoods
    of the number of ones, along a line. Given x_i = v and t ones among k known members,
    P(s more ones) ∝ W(v+t+s)/C(m, v+t+s)·C(m−1−k, s).

    Parameters
    ----------
    group
        The law of the count.
    step
        How far one member alone can move the likelihood, in nats.
    knowledge
        The adversaries.
    by_count
        Whether the likelihood depends on the total number of ones alone.
    """
    size = group.size
    if size > COMPOSED_MEMBERS:
        return None
    log_masses = group.log_law - [math.log(math.comb(size, ones)) for ones in range(size + 1)]
    worst = step if knowledge.most == size - 1 else 0.0
    for known in range(knowledge.fewest, min(knowledge.most, size - 2) + 1):
        worst = max(worst, _with_known(log_masses, size, known, step, by_count=by_count))
    return rounded_up(worst, 7)


def _with_known(
    log_masses: FloatArray, size: int, known: int, step: float, *, by_count: bool
) -> float:
    """Bound adversaries who know a given number of members, whatever values these have."""
    unknown = size - 1 - known
    ways = np.array([math.log(math.comb(unknown, ones)) for ones in range(unknown + 1)])
    ones = np.arange(known + 1)[:, np.newaxis] + np.arange(unknown + 1)
    laws = []
    for value in (0, 1):
        logs = log_masses[ones + value] + ways
        peak = logs.max(axis=1, keepdims=True)
        masses = np.exp(logs - np.where(np.isfinite(peak), peak, 0.0))
        laws.append(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))
    possible = (laws[0].sum(axis=1) > 0.5) & (laws[1].sum(axis=1) > 0.5)
    if not possible.any():
        return 0.0
    none, one = laws[0][possible], laws[1][possible]
    own = step
    if by_count:  # x_i itself moves along the same line
        none, one, own = np.pad(none, ((0, 0), (0, 1))), np.pad(one, ((0, 0), (1, 0))), 0.0
    steps = np.full(none.shape[1] - 1, step)
    # Logarithms of size up to some hundreds err by as many roundings.
    additions = 2000 + 4 * size
    both = [line_bounds(*pair, steps, additions=additions) for pair in ((none, one), (one, none))]
    return own + float(np.max(both))
