"""The exact engine for joint tables: every target, every known set, every value, every output.

Answers on a grid (counts, histograms, whole numbers) go through a compiled branch and bound over
what the adversary knows (`tree_search`), many binary tuples through all hidden sets
(`hidden_sets`); arbitrary real answers through sorted mixtures (`sorted_mixtures`); ranges too wide
for linear floating point through log space. All are exact. Vectors with too many outputs get a
bracket (`count_search` for counts, `joint_outputs`). Its ends include every rounding error.

The leakage to an adversary who knows all other tuples is that of plain differential privacy.

In small tables every adversary is evaluated, vectorised, without compiled code: all events
(x_i, x_K) in one matrix product, laws of the answer times kernels e^{−distance}
(`search_events`). Vectors of answers and single adversaries go set by set
(`search_sets`): the product grid around one set of unknown tuples is far smaller than that of the
whole answer. Where probabilities times e^{−distance} could underflow (a noise scale far below the
range of the answer, cells of probability 1e-300) densities are taken in log space.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, rounding_error
from pdp_calibrate.core.model import MAXIMAL_CELLS
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import (
    CHUNK_NUMBERS,
    CLIMBED_TUPLES,
    FEW_DENSITIES,
    FEW_LAWS,
    FEW_SETS,
    GRID_WORK,
    LARGE_SET,
    LOG_WORK,
    SET_WORK,
    UNCLIMBED_CELLS,
)
from pdp_calibrate.core.workers import (
    Clock,
    announce_compiling,
)
from pdp_calibrate.families.table.cells import Cells
from pdp_calibrate.families.table.setting import (
    NOTHING,
    AdmittedEvents,
    Attack,
    Grid,
    Outcome,
    PreparedTable,
    Setting,
    Varying,
    bracket,
    grid_of,
    independent_groups,
    no_secrets,
    setting_of,
)


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
    if target not in cells.widest:  # one scale divides all distances by the same number
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


def _search(setting: Setting, incumbent: float, clock: Clock) -> Outcome | Bracket:
    """Search everyone except those who know everyone else, by the method that suits the answers.

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
    few = setting.prepared.leaves * outputs <= FEW_DENSITIES
    return few and cells.events * answers <= FEW_LAWS


def _search_wide_range(setting: Setting, incumbent: float, clock: Clock) -> Outcome | Bracket:
    """Search in log space what linear floating point cannot hold."""
    exact = setting.tails_only or setting.prepared.log_work <= LOG_WORK
    if setting.coordinates == 1 or exact:
        return search_sets(setting, incumbent, clock)
    from pdp_calibrate.families.table.joint_outputs import search_vectors

    return search_vectors(setting, incumbent, clock)


def _search_vectors(setting: Setting, incumbent: float, clock: Clock) -> Outcome | Bracket:
    """Search answers of several coordinates."""
    prepared = setting.prepared
    tree_work = prepared.leaves * prepared.cells.outputs
    if prepared.set_work <= min(tree_work, SET_WORK):
        return search_sets(setting, incumbent, clock)
    grid = grid_of(setting) if tree_work <= GRID_WORK else None
    if grid is not None:
        announce_compiling()
        from pdp_calibrate.families.table.tree_search import search_branches

        return search_branches(setting, grid, incumbent, clock)
    if setting.prepared.log_work > LOG_WORK:
        from pdp_calibrate.families.table.count_search import can_search, search_counts

        if can_search(setting):
            return search_counts(setting, incumbent, clock)
    return _search_wide_range(setting, incumbent, clock)


def _search_line(setting: Setting, incumbent: float, clock: Clock) -> Outcome | Bracket:
    """Search answers that are one number."""
    prepared, knowledge = setting.prepared, setting.knowledge
    one_set = knowledge.known is not None or knowledge.most == 0
    if one_set and prepared.set_work <= FEW_SETS:
        return search_sets(setting, incumbent, clock)
    announce_compiling()
    from pdp_calibrate.families.table.sorted_mixtures import search_lines

    if one_set and setting.probabilities.size > LARGE_SET:
        return search_lines(setting, incumbent, clock)
    outputs = 2.0 if setting.tails_only else prepared.cells.outputs
    by_tree = prepared.leaves * outputs <= prepared.line_work
    grid = grid_of(setting) if by_tree else None
    if grid is None:
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
    contributions = problem.contributions
    if contributions.table is None:
        start = sum(part.min(axis=0) for part in contributions.values)
    else:
        start = contributions.table.reshape(-1, contributions.table.shape[-1]).min(axis=0)
    output = start + attack.output * setting.scale
    if problem.hidden_noise:
        output = np.where(attack.output > 0, np.inf, -np.inf)
    seen = float(output[0]) if len(output) == 1 else tuple(map(float, output))
    return problem.witness(attack.target, attack.known, attack.secrets, seen)


def climbs(problem: Problem) -> bool:
    """Return whether calibration should try the neighbours of an adversary one by one."""
    cells = math.prod(map(len, problem.model.domains))
    if not UNCLIMBED_CELLS < cells <= MAXIMAL_CELLS:
        return False
    return problem.knowledge.known is None and problem.knowledge.total <= CLIMBED_TUPLES


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
        """Return an engine for other adversaries that reuses the prepared table."""
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
        others = _search(setting, threshold, clock)
        if isinstance(others, Bracket):  # set by set: named already, hidden noise included
            return others if outcome is NOTHING else _found(setting, outcome).or_worse(others)
        found = _found(setting, outcome.or_worse(others))
        if not hidden_noise:
            return found
        # The noise that was left out cancels only in the tails: these give the lower end.
        tails = dataclasses.replace(setting, tails_only=True)
        far = _search(tails, 0.0, clock)
        attained = far if isinstance(far, Bracket) else _found(setting, far)
        return dataclasses.replace(found, lower=attained.lower, witness=attained.witness)


def search_events(setting: Setting, grid: Grid) -> Outcome:
    """Return the worst of all adversaries except those who know everyone else.

    For a table with few events: every law of the answer is evaluated at every output.
    """
    prepared, one = setting.prepared, float(setting.is_near_one)
    if prepared.admits_everyone:
        densities = prepared.cells.event_laws.laws @ grid.kernel
        best, target, place, output = _worst_of_everyone(densities, setting.sizes, one)
        secrets = np.arange(setting.sizes[target])
        step = math.prod(size + 1 for size in setting.sizes[target + 1 :])
        here = densities[place + step * secrets, output]
    else:
        admitted = prepared.admitted
        if not len(admitted.rows):
            return NOTHING
        densities = admitted.laws @ grid.kernel
        best, event, output = _worst_of_admitted(densities, admitted, one)
        target, place = int(admitted.targets[event]), int(admitted.places[event])
        secrets, here = admitted.secrets[event], densities[admitted.rows[event], output]
    first = int(here.argmax())
    others = np.where(secrets == secrets[first], np.inf, here)
    sizes = setting.sizes
    values = np.unravel_index(place, [size + 1 for size in sizes])
    attack = Attack(
        target=target,
        known={p: int(v) for p, v in enumerate(values) if p != target and v < sizes[p]},
        secrets=(int(secrets[first]), int(secrets[others.argmin()])),
        output=grid.outputs[output],
    )
    additions = sum(sizes) + len(sizes) + len(grid.kernel)
    error = _rounding_error(setting, additions) + 2 * grid.moved
    return bracket(math.log1p(best), 0.0, error, attack)


def _rounding_error(setting: Setting, additions: int) -> float:
    """Bound the error of a log-ratio of two densities, sums of products of laws and kernels.

    Like `Setting.rounding_error`, which allows for kernels computed in many steps. Here a kernel
    belongs to the distance of two stored answers, which has only these roundings: an answer adds up
    one part per tuple, each from zero, over the scale; then come a difference and a sum over
    coordinates. The outputs are stored answers too, so the rounded answers form an exact mixture,
    which is compared at all its atoms.
    """
    return rounding_error(
        DEFICITS if setting.is_near_one else DENSITIES,
        width=setting.furthest,
        operations=2 * additions + len(setting.sizes) + setting.coordinates + 24,
        distance_operations=len(setting.sizes) + setting.coordinates + 8,
    )


def _worst_of_everyone(
    densities: FloatArray, sizes: tuple[int, ...], one: float
) -> tuple[float, int, int, int]:
    """Compare the secrets of every target, where every adversary is admitted.

    `densities` has a row per event, at its place in the table of shape (size + 1, …): the secrets
    of a target stand side by side along its axis. Returns the largest ratio minus one, the target,
    the place of the event with its first value, and the output.
    """
    shape, outputs = [size + 1 for size in sizes], densities.shape[1]
    somebody = np.ones(shape, dtype=np.bool_)  # whether any tuple is unknown
    somebody[tuple(slice(size) for size in sizes)] = False
    best, found = -1.0, (0, 0, 0)
    space = np.empty((2, densities.size // min(shape)))  # fresh memory for every target is slow
    for target, size in enumerate(sizes):
        before, after = math.prod(shape[:target]), math.prod(shape[target + 1 :])
        secrets = densities.reshape(before, size + 1, after, outputs)
        most, least = space[:, : before * after * outputs].reshape(2, before, after, outputs)
        np.maximum(secrets[:, 0], secrets[:, 1], out=most)
        np.minimum(secrets[:, 0], secrets[:, 1], out=least)
        for value in range(2, size):
            np.maximum(most, secrets[:, value], out=most)
            np.minimum(least, secrets[:, value], out=least)
        most -= least
        least += one
        ratio = np.divide(most, least, out=most)  # minus one
        ratio[~somebody.reshape(before, size + 1, after)[:, 0]] = -1.0
        largest = int(ratio.argmax())
        if ratio.flat[largest] > best:
            best = float(ratio.flat[largest])
            event, output = divmod(largest, outputs)
            start, rest = divmod(event, after)
            found = target, start * (size + 1) * after + rest, output
    return best, *found


def _worst_of_admitted(
    densities: FloatArray, admitted: AdmittedEvents, one: float
) -> tuple[float, int, int]:
    """Compare the secrets of every admitted event; return the ratio minus one, event and output."""
    best, event, output = -1.0, 0, 0
    step = max(1, CHUNK_NUMBERS // (8 * admitted.rows.shape[1] * densities.shape[1]))
    for start in range(0, len(admitted.rows), step):
        rows = admitted.rows[start : start + step].T
        least = densities.take(rows[0], axis=0)
        most = least.copy()
        for row in rows[1:]:
            here = densities.take(row, axis=0)
            np.maximum(most, here, out=most)
            np.minimum(least, here, out=least)
        most -= least
        least += one
        ratio = np.divide(most, least, out=most)  # minus one
        place = int(ratio.argmax())
        if ratio.flat[place] > best:
            best = float(ratio.flat[place])
            event, output = divmod(place, ratio.shape[1])
            event += start
    return best, event, output


def search_sets(setting: Setting, incumbent: float, clock: Clock) -> Bracket:
    """Return the worst of all adversaries except those who know everyone else, set by set."""
    prepared = setting.prepared
    limits = Limits(incumbent=incumbent, enough=clock.enough, deadline=clock.deadline)
    return prepared.by_sets.search(setting.scale, limits)
