"""Whoever knows everyone else: the output tells x_i as plain differential privacy says.

The exact engine for joint tables: every target, every known set, every value, every output.

Answers on a grid (counts, histograms, whole numbers) go through a compiled branch and bound over
what the adversary knows (`tree`), many binary tuples through all hidden sets (`hiding`); arbitrary
real answers through sorted mixtures (`recursion`); ranges too wide for linear floating point
through log space (`logspace`). All four are exact. Vectors with too many outputs get a bracket
(`vectors`). Its ends include every rounding error.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table.grid import grid_of
from pdp_calibrate.families.table.hidden_sets import search_hidden, steps_of
from pdp_calibrate.families.table.independence import (
    Split,
    group_problem,
    independent_groups,
    put_back,
)
from pdp_calibrate.families.table.joint_outputs import search_vectors
from pdp_calibrate.families.table.logspace import log_work, search_logspace
from pdp_calibrate.families.table.setting import NOTHING, Attack, Outcome, Setting, setting_of
from pdp_calibrate.families.table.sorted_mixtures import search_lines
from pdp_calibrate.families.table.tree_search import prepared, search_branches, work_of
from pdp_calibrate.families.table.varying import search_varying


def search_strongest(setting: Setting) -> Outcome:
    """Return LS_i/λ of the worst target, over the full product of domains, whatever θ is."""
    outcome = NOTHING
    for target in setting.knowledge.targets:
        outcome = outcome.or_worse(_attack(setting, target))
    return outcome


def _attack(setting: Setting, target: int) -> Outcome:
    others = [place for place in range(len(setting.sizes)) if place != target]
    if setting.table is None:
        likely = setting.probabilities.sum(axis=target)
        cell = np.unravel_index(int(np.argmax(likely)), likely.shape)
        answers = setting.parts[target][np.newaxis]
    else:
        answers = np.moveaxis(setting.table, target, -2)
        cell = ()
    distance, event, secrets = _furthest(answers.reshape(-1, *answers.shape[-2:]))
    if distance < 0:
        return NOTHING
    if setting.table is not None:
        cell = np.unravel_index(event, answers.shape[:-2])
    known = dict(zip(others, map(int, cell), strict=True))
    output = answers.reshape(-1, *answers.shape[-2:])[event, secrets[0]]
    if setting.table is None:
        for place, value in known.items():
            output = output + setting.parts[place][value]
    rounding = (8 + 2 * setting.coordinates) * UNIT_ROUNDOFF
    return Outcome(
        upper=distance * (1 + rounding),
        lower=distance * (1 - rounding),
        attack=Attack(target=target, known=known, secrets=secrets, output=output),
    )


def _furthest(answers: FloatArray) -> tuple[float, int, tuple[int, int]]:
    """Return the largest L1 distance of two secrets' answers, the event and the secrets."""
    best = (-1.0, 0, (0, 0))
    for first in range(answers.shape[1]):
        for second in range(first):
            distances = np.abs(answers[:, first] - answers[:, second]).sum(axis=-1)
            event = int(np.argmax(distances))
            if distances[event] > best[0]:
                best = (float(distances[event]), event, (first, second))
    return best


_LARGEST_GRID_WORK = 3e11  # numbers, minutes: vectors with more outputs get a bracket instead


_LARGE_SET = (
    1024  # cells from which sorted mixtures compare one set per target sooner than the tree
)


_LARGEST_LOG_WORK = 1e9  # pairs of atom and output, each an exponential


def search(
    problem: Problem,
    scale: float | FloatArray,
    *,
    incumbent: float = 0.0,
    enough: float = np.inf,
    deadline: float = np.inf,
) -> Bracket:
    """Find the worst adversary of a joint table.

    Parameters
    ----------
    problem
        Table, contributions and adversaries.
    scale
        The Laplace scale λ, or one per output coordinate.
    incumbent
        Adversaries who cannot leak more than this need not be told apart.
    enough
        A long search may stop, with a wide bracket, once somebody is found to leak more than this.
    deadline
        Value of `time.monotonic()` after which the rest counts with a bound.
    """
    return search_varying(
        problem, lambda varying: _search_table(varying, scale, incumbent, enough, deadline)
    )


def _search_table(
    problem: Problem,
    scale: float | FloatArray,
    incumbent: float,
    enough: float,
    deadline: float,
) -> Bracket:
    """Search a table whose tuples have two or more values each."""
    setting = setting_of(problem, scale)
    split = independent_groups(setting)
    if split is not None:
        return _search_groups(problem, setting, split, scale, incumbent, enough, deadline)
    clock = Clock(deadline, enough=enough)
    outcome = NOTHING
    admits_strongest = setting.knowledge.admits_strongest
    if admits_strongest and not problem.hidden_noise:
        outcome = search_strongest(setting)
    threshold = max(incumbent, outcome.lower)
    outcome = outcome.or_worse(_search(problem, setting, scale, threshold, clock))
    found = _found(problem, setting, scale, outcome)
    if not problem.hidden_noise:
        return found
    # Only in the tails does the dropped noise cancel: they give the lower end.
    tails = dataclasses.replace(setting, tails_only=True)
    attained = _found(problem, setting, scale, _search(problem, tails, scale, 0.0, clock))
    return dataclasses.replace(found, lower=attained.lower, witness=attained.witness)


def _search_groups(
    problem: Problem,
    setting: Setting,
    split: Split,
    scale: float | FloatArray,
    incumbent: float,
    enough: float,
    deadline: float,
) -> Bracket:
    """Search each independent group alone, each with the worst so far as its incumbent."""
    worst: Bracket | None = None
    for group in split.groups:
        part = group_problem(problem, setting, group)
        if part.knowledge.targets:
            threshold = max(incumbent, worst.lower) if worst else incumbent
            found = search(part, scale, incumbent=threshold, enough=enough, deadline=deadline)
            found = put_back(found, problem, setting, group, split.error)
            worst = found if worst is None else worst.or_worse(found)
    if worst is None:
        raise ValueError("no adversary of the problem attacks any tuple.")
    return worst


def _search(
    problem: Problem,
    setting: Setting,
    scale: float | FloatArray,
    incumbent: float,
    clock: Clock,
) -> Outcome:
    """Search everyone but those who know everyone else, by the means that suit the answers."""
    one_set = setting.knowledge.known is not None or setting.knowledge.most == 0
    is_line = setting.coordinates == 1 and setting.fits_linear_space
    if one_set and is_line and setting.probabilities.size > _LARGE_SET:
        return search_lines(setting, incumbent, clock)
    grid = grid_of(setting) if setting.fits_linear_space else None
    if setting.coordinates > 1:
        if grid is not None and work_of(setting, grid) <= _LARGEST_GRID_WORK:
            return search_branches(setting, grid, incumbent, clock)
        exact = setting.tails_only or log_work(setting) <= _LARGEST_LOG_WORK
        search = search_logspace if exact else search_vectors
        return search(problem, setting, scale, incumbent, clock)
    if not setting.fits_linear_space:
        return search_logspace(problem, setting, scale, incumbent, clock)
    if grid is None or work_of(setting, grid) > _line_work(setting):
        return search_lines(setting, incumbent, clock)
    steps = steps_of(setting)
    if steps is not None:
        shared, error = prepared(setting, grid, incumbent, clock)
        outcome = search_hidden(shared, steps, incumbent, error)
        if outcome.attack is not None or outcome.upper <= incumbent:
            return outcome
    return search_branches(setting, grid, incumbent, clock)


def _line_work(setting: Setting) -> float:
    """Estimate the work of sorted mixtures, in the units of the tree's."""
    others = len(setting.sizes) - 1
    knowledge = setting.knowledge
    sets = 1.0
    if knowledge.known is None:
        sizes = range(knowledge.fewest, knowledge.most + 1)
        sets = float(sum(math.comb(others, size) for size in sizes))
    secrets = sum(setting.sizes[target] for target in knowledge.targets)
    sorting = 8.0 if setting.table is None else 64.0
    return sorting * sets * secrets * setting.probabilities.size


def _found(
    problem: Problem, setting: Setting, scale: float | FloatArray, outcome: Outcome
) -> Bracket:
    """Translate positions into names and values, and the output back into the user's units."""
    attack = outcome.attack
    if attack is None:
        target = setting.knowledge.targets[0]
        unknown = next(iter(setting.knowledge.unknown_sets(target)))
        return Bracket(upper=outcome.upper, lower=0.0, witness=None, target=target, unknown=unknown)
    places = range(len(setting.sizes))
    unknown = tuple(p for p in places if p != attack.target and p not in attack.known)
    return Bracket(
        upper=outcome.upper,
        lower=outcome.lower,
        witness=_witness(problem, attack, scale),
        target=attack.target,
        unknown=unknown,
    )


def _witness(problem: Problem, attack: Attack, scale: float | FloatArray) -> Witness:
    contributions, domains, names = problem.contributions, problem.model.domains, problem.names
    if contributions.table is None:
        start = sum(part.min(axis=0) for part in contributions.values)
    else:
        start = contributions.table.reshape(-1, contributions.table.shape[-1]).min(axis=0)
    output = start + attack.output * scale
    if problem.hidden_noise:
        output = np.where(attack.output > 0, np.inf, -np.inf)
    return Witness(
        target=names[attack.target],
        known={names[place]: domains[place][value] for place, value in attack.known.items()},
        secrets=(
            domains[attack.target][attack.secrets[0]],
            domains[attack.target][attack.secrets[1]],
        ),
        output=float(output[0]) if len(output) == 1 else tuple(map(float, output)),
        model=problem.model,
        index=problem.index,
    )


class TableEngine:
    """Searches one problem at many scales."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Find the worst adversary at one scale; see `core.family.Engine`."""
        return search(self.problem, scale, incumbent=incumbent, enough=enough, deadline=deadline)
