"""The exact engine for joint tables: every target, every known set, every value, every output.

Answers on a grid (counts, histograms, whole numbers) go through a compiled branch and bound over
what the adversary knows (`tree_search`), many binary tuples through all hidden sets
(`hidden_sets`); arbitrary real answers through sorted mixtures (`sorted_mixtures`); ranges too wide
for linear floating point through log space (`logspace`). All four are exact. Vectors with too many
outputs get a bracket (`joint_outputs`). Its ends include every rounding error.

Whoever knows everyone else learns from the output what plain differential privacy says.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.problem import Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.table import MAXIMAL_CELLS
from pdp_calibrate.core.workers import Clock, announce_compiling
from pdp_calibrate.families.table.cells import Cells
from pdp_calibrate.families.table.enumeration import search_events, search_sets
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    PreparedTable,
    Setting,
    grid_of,
    setting_of,
)
from pdp_calibrate.families.table.smaller import Varying, independent_groups, no_secrets


def search_strongest(setting: Setting) -> Outcome:
    """Return LS_i/λ of the worst target, over the full product of domains, whatever θ is."""
    widest = {target: _widest(setting, target) for target in setting.knowledge.targets}
    target = max(widest, key=lambda place: widest[place][0])
    distance, event, secrets = widest[target]
    if distance < 0:
        return NOTHING
    others = [place for place in range(len(setting.sizes)) if place != target]
    if setting.table is None:
        cell = setting.prepared.cells.likeliest_others(target)
        output = setting.parts[target][secrets[0]]
        for place, value in zip(others, cell, strict=True):
            output = output + setting.parts[place][value]
    else:
        answers = np.moveaxis(setting.table, target, -2)
        cell = tuple(map(int, np.unravel_index(event, answers.shape[:-2])))
        output = answers[cell][secrets[0]]
    rounding = (10 + 2 * setting.coordinates) * UNIT_ROUNDOFF
    return Outcome(
        upper=distance * (1 + rounding),
        lower=distance * (1 - rounding),
        attack=Attack(
            target=target,
            known=dict(zip(others, cell, strict=True)),
            secrets=secrets,
            output=output,
        ),
    )


def _widest(setting: Setting, target: int) -> tuple[float, int, tuple[int, int]]:
    """Return the largest distance of two secrets' answers in scales, the event and the secrets."""
    if isinstance(setting.scale, np.ndarray):
        return _furthest(_by_secret(setting.parts, setting.table, target))
    cells = setting.prepared.cells
    if target not in cells.widest:  # one scale divides all distances alike
        cells.widest[target] = _furthest(_by_secret(cells.parts, cells.table, target))
    distance, event, secrets = cells.widest[target]
    return distance / setting.scale, event, secrets


def _by_secret(parts: tuple[FloatArray, ...], table: FloatArray | None, target: int) -> FloatArray:
    """Return the answers by event, secret and coordinate; one event stands for all in a sum."""
    if table is None:
        return parts[target][np.newaxis]
    answers = np.moveaxis(table, target, -2)
    return answers.reshape(-1, *answers.shape[-2:])


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


_FEW_DENSITIES = 2e7  # compared at once sooner than compiled code is loaded


_FEW_LAWS = 2**22  # numbers in the laws of all events


_FEW_SETS = 1e8  # densities compared set by set, some tenths of a second


_LARGEST_GRID_WORK = 3e11  # numbers, minutes: vectors with more outputs get a bracket instead


_LARGEST_SET_WORK = 2e10  # densities compared set by set


_LARGE_SET = (
    1024  # cells from which sorted mixtures compare one set per target sooner than the tree
)


_CLIMBED_TUPLES = 20  # up to here the neighbours of an adversary are few beside all adversaries


_LARGEST_LOG_WORK = 1e9  # pairs of atom and output, each an exponential


def _search(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Search everyone but those who know everyone else, by the means that suit the answers.

    Compiled code is loaded only where it is chosen.
    """
    if not setting.fits_linear_space:
        return _search_wide_range(setting, incumbent, clock)
    if _has_few_events(setting):
        grid = grid_of(setting)
        if grid is not None:
            return search_events(setting, grid)
    if setting.coordinates > 1:
        return _search_vectors(setting, incumbent, clock)
    return _search_line(setting, incumbent, clock)


def _has_few_events(setting: Setting) -> bool:
    """Whether all events of the admitted adversaries are evaluated at once."""
    cells = setting.prepared.cells
    answers = min(cells.outputs, cells.probabilities.size)
    outputs = 2.0**cells.coordinates if setting.tails_only else cells.outputs
    few = setting.prepared.leaves * outputs <= _FEW_DENSITIES
    return few and cells.events * answers <= _FEW_LAWS


def _search_wide_range(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Search in log space what linear floating point cannot hold."""
    exact = setting.tails_only or setting.prepared.log_work <= _LARGEST_LOG_WORK
    if setting.coordinates == 1 or exact:
        return search_sets(setting, incumbent, clock)
    from pdp_calibrate.families.table.joint_outputs import search_vectors

    return search_vectors(setting, incumbent, clock)


def _search_vectors(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Search answers of several coordinates."""
    prepared = setting.prepared
    tree_work = prepared.leaves * prepared.cells.outputs
    if prepared.set_work <= min(tree_work, _LARGEST_SET_WORK):
        return search_sets(setting, incumbent, clock)
    grid = grid_of(setting) if tree_work <= _LARGEST_GRID_WORK else None
    if grid is not None:
        announce_compiling()
        from pdp_calibrate.families.table.tree_search import search_branches

        return search_branches(setting, grid, incumbent, clock)
    return _search_wide_range(setting, incumbent, clock)


def _search_line(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Search answers that are one number."""
    prepared, knowledge = setting.prepared, setting.knowledge
    one_set = knowledge.known is not None or knowledge.most == 0
    if one_set and prepared.set_work <= _FEW_SETS:
        return search_sets(setting, incumbent, clock)
    announce_compiling()
    from pdp_calibrate.families.table.sorted_mixtures import search_lines

    if one_set and setting.probabilities.size > _LARGE_SET:
        return search_lines(setting, incumbent, clock)
    grid = grid_of(setting)
    if grid is None or prepared.leaves * len(grid.outputs) > prepared.line_work:
        return search_lines(setting, incumbent, clock)
    from pdp_calibrate.families.table.hidden_sets import search_hidden, steps_of
    from pdp_calibrate.families.table.tree_search import branch_search, search_branches

    steps = steps_of(setting)
    if steps is not None:
        shared, error = branch_search(setting, grid, incumbent, clock)
        outcome = search_hidden(shared, steps, incumbent, error)
        if outcome.attack is not None or outcome.upper <= incumbent:
            return outcome
    return search_branches(setting, grid, incumbent, clock)


def _found(setting: Setting, outcome: Outcome) -> Bracket:
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
        witness=_witness(setting, attack),
        target=attack.target,
        unknown=unknown,
    )


def _witness(setting: Setting, attack: Attack) -> Witness:
    problem = setting.prepared.problem
    contributions, domains, names = problem.contributions, problem.model.domains, problem.names
    if contributions.table is None:
        start = sum(part.min(axis=0) for part in contributions.values)
    else:
        start = contributions.table.reshape(-1, contributions.table.shape[-1]).min(axis=0)
    output = start + attack.output * setting.scale
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


def climbs(problem: Problem) -> bool:
    """Return whether calibration should try the neighbours of an adversary one by one."""
    cells = math.prod(map(len, problem.model.domains))
    few = problem.knowledge.total <= _CLIMBED_TUPLES and cells <= MAXIMAL_CELLS
    return problem.knowledge.known is None and few


class TableEngine(Engine):
    """Searches the adversaries of one joint table, at many scales.

    Prepared once: tuples of one value are left out, independent groups become engines of their
    own, and what is left is put into the form that searches work on.
    """

    def __init__(self, problem: Problem, *, like: tuple[Varying, Cells] | None = None) -> None:
        self.climbs = climbs(problem)
        self._problem = problem
        smaller, cells = like or (None, None)
        self._varying = Varying.of(problem, like=smaller)
        if self._varying is None:
            return
        self._prepared = PreparedTable.of(self._varying.problem, cells)
        self._groups = [
            (group, TableEngine(group.problem)) for group in independent_groups(self._prepared)
        ]

    def against(self, problem: Problem) -> TableEngine:
        """Return an engine for other adversaries that takes over the table as it was prepared."""
        if self._varying is None:
            return TableEngine(problem)
        return TableEngine(problem, like=(self._varying, self._prepared.cells))

    def search(self, scale: float | FloatArray, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale, or at one per output coordinate.

        The rest is as `core.problem.Engine` says.
        """
        if self._varying is None:
            return no_secrets(self._problem)
        search = self._worst_group if self._groups else self._worst_adversary
        return self._varying.put_back(search(scale, limits))

    def _worst_group(self, scale: float | FloatArray, limits: Limits) -> Bracket:
        """Search each independent group alone, each with the worst so far as its incumbent."""
        worst: Bracket | None = None
        for group, engine in self._groups:
            found = group.put_back(
                engine.search(scale, limits.above(worst.lower) if worst else limits)
            )
            worst = found if worst is None else worst.or_worse(found)
        if worst is None:
            raise ValueError("no adversary of the problem attacks any tuple.")
        return worst

    def _worst_adversary(self, scale: float | FloatArray, limits: Limits) -> Bracket:
        """Search all adversaries of a table that is no product."""
        setting = setting_of(self._prepared, scale)
        clock = Clock(limits.deadline, enough=limits.enough)
        hidden_noise = self._problem.hidden_noise
        outcome = NOTHING
        if setting.knowledge.admits_strongest and not hidden_noise:
            outcome = search_strongest(setting)
        threshold = max(limits.incumbent, outcome.lower)
        found = _found(setting, outcome.or_worse(_search(setting, threshold, clock)))
        if not hidden_noise:
            return found
        # Only in the tails does the dropped noise cancel: they give the lower end.
        tails = dataclasses.replace(setting, tails_only=True)
        attained = _found(setting, _search(tails, 0.0, clock))
        return dataclasses.replace(found, lower=attained.lower, witness=attained.witness)
