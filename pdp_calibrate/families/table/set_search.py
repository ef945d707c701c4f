"""The engine for sets of tables: one target and one set of unknown tuples after the other.

The witness of the bound comes with a table in which the two worst laws hold.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, rounding_error
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF, rounded_up
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.core.tuning import (
    SET_CASES,
    SET_DISTANCES,
    SET_OUTPUTS,
    SET_STEPS,
    SET_STEPS_BETWEEN_CHECKS,
)
from pdp_calibrate.core.workers import Clock, best_first
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.table.search import climbs, search_strongest
from pdp_calibrate.families.table.set_kernels import LOST, moved_in, moved_out, worst_pair
from pdp_calibrate.families.table.set_laws import (
    ANY_LAW,
    Balls,
    ConditionalLaws,
    Indices,
    Reachable,
    by_distance,
    center_of,
    outputs_between,
    varying_in,
)
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    PreparedTable,
    Setting,
    group_bound,
    no_secrets,
    setting_of,
)

_RARE = 1e-3  # probability given to an event that the centre does not have


def found_by(problem: Problem, around: _Search, outcome: Outcome) -> Bracket:
    """Translate positions into names and values, and the output into the user's units."""
    setting, attack = around.setting, outcome.attack
    if attack is None:
        target = setting.knowledge.targets[0]
        unknown = next(iter(setting.knowledge.unknown_sets(target)))
        return Bracket(upper=outcome.upper, lower=0.0, witness=None, target=target, unknown=unknown)
    target, known = attack.target, attack.known
    unknown = tuple(p for p in range(len(setting.sizes)) if p != target and p not in known)
    member = around.center
    start = sum(part.min(axis=0) for part in problem.contributions.values)
    output = start + attack.output * around.scale
    if unknown:  # the attack's output leaves out what the known tuples add
        member = _member(around, attack, unknown)
        for place, value in known.items():
            output = output + around.reachable.parts[place][value]
    if problem.hidden_noise:
        output = np.where(attack.output > 0, np.inf, -np.inf)
    seen = float(output[0]) if len(output) == 1 else tuple(map(float, output))
    named = problem.witness(target, known, attack.secrets, seen)
    witness = dataclasses.replace(named, model=member)
    return Bracket(
        upper=outcome.upper, lower=outcome.lower, witness=witness, target=target, unknown=unknown
    )


def _member(around: _Search, attack: Attack, unknown: tuple[int, ...]) -> JointTable:
    balls = around.laws.balls(attack.target, unknown)
    own = around.reachable.parts[attack.target] / around.scale
    order, _ = by_distance(attack.output[np.newaxis], own, balls.values / around.scale)
    held = [attack.known[place] for place in balls.known]
    sizes = [around.setting.sizes[place] for place in balls.known]
    event = int(np.ravel_multi_index(held, sizes)) if held else 0
    # The output matters only by the order of the values' distances from it, equal at most scales.
    which = attack.target, unknown, event, attack.secrets, order.tobytes()
    if which not in around.members:
        around.members[which] = member_with(around.center, balls, attack, event, order[0])
    return around.members[which]


def member_with(
    center: JointTable, balls: Balls, attack: Attack, event: int, order: Indices
) -> JointTable:
    """Replace the laws given the two secrets by the worst ones; all else stays as it is.

    The probability of each event is the centre's, so that the attacker learns from this table
    exactly what the bound says. Its other conditional laws may lie outside their own balls.
    """
    table = np.array(center.probabilities)
    axes = range(table.ndim)
    unknown = [axis for axis in axes if axis != attack.target and axis not in attack.known]
    for secret, move in zip(attack.secrets, (moved_in, moved_out), strict=True):
        radius = balls.radii[event, secret]
        law = _moved(balls.laws[event, secret], radius, order[secret], move)
        place = tuple(
            secret if axis == attack.target else attack.known.get(axis, slice(None))
            for axis in axes
        )
        cells = table[place].reshape(-1)
        table[place] = _spread(cells, law, balls).reshape([table.shape[axis] for axis in unknown])
    table[table < np.finfo(np.float64).tiny] = 0.0
    return JointTable(
        probabilities=table / math.fsum(table.ravel()),
        domains=center.domains,
        names=center.names,
        provenance=center.provenance,
    ).marked_like(center)


def _moved(law: FloatArray, radius: float, order: Indices, move: Callable[..., None]) -> FloatArray:
    """Return the worst law, in the order of the values."""
    ranked, found = np.empty(len(law)), np.empty(len(law))
    move(law, radius, order, ranked)
    found[order] = ranked
    return found


def _spread(cells: FloatArray, law: FloatArray, balls: Balls) -> FloatArray:
    """Give every value its probability, divided among its cells as in the centre, or evenly."""
    total = cells.sum()
    held = np.bincount(balls.of_cells, weights=cells, minlength=len(law))
    alike = np.bincount(balls.of_cells, minlength=len(law))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(
            held[balls.of_cells] > 0,
            cells / held[balls.of_cells],
            1.0 / alike[balls.of_cells],
        )
    return np.asarray(share * law[balls.of_cells] * (total if total > 0 else _RARE))


@dataclass(frozen=True, kw_only=True)
class _Search:
    """What stays the same for all adversaries."""

    laws: ConditionalLaws
    center: JointTable
    setting: Setting
    scale: float
    clock: Clock
    members: dict[Hashable, JointTable]
    """The members of the set that attain attacks at this and other scales."""
    tails_only: bool = False

    @property
    def reachable(self) -> Reachable:
        """The values that the unknown part of the answer can take."""
        return self.laws.reachable


def _search(around: _Search, incumbent: float) -> Outcome:
    """Judge all adversaries except those who know all others, from the largest group bound down."""
    setting, prepared = around.setting, around.setting.prepared
    ranges = [group_bound(setting, (place,)) for place in range(len(setting.sizes))]
    if around.clock.is_over or _cases(prepared) > SET_CASES:
        return Outcome(upper=_largest_group(setting, ranges), lower=0.0, attack=None)
    return best_first(
        (
            (math.fsum([ranges[target], *(ranges[place] for place in unknown)]), (target, unknown))
            for target, unknown in prepared.cases()
        ),
        lambda bound, case: _judge(around, *case, bound),
        start=NOTHING,
        unjudged=lambda bound, _: Outcome(upper=bound, lower=0.0, attack=None),
        cutoff=lambda outcome: max(incumbent, outcome.lower),
        is_over=lambda: around.clock.is_over,
        what="comparing adversaries",
    )


def _judge(around: _Search, target: int, unknown: tuple[int, ...], bound: float) -> Outcome:
    """Return the bracket of one target and one set of unknown tuples."""
    reachable, scale = around.reachable, around.scale
    own, values = reachable.parts[target] / scale, reachable.values(unknown) / scale
    outputs = outputs_between(own, values, tails_only=around.tails_only)
    if outputs is None:
        return Outcome(upper=bound, lower=0.0, attack=None)
    balls = around.laws.balls(target, unknown)
    roundings = balls.additions + len(values) + 16
    wider = np.where(balls.radii < 1, rounded_up(balls.radii, 4 * roundings), ANY_LAW)
    near = around.setting.is_near_one
    best = (-np.inf, 0, 0, 0, 0)
    there: tuple[Indices, FloatArray] | None = None
    per_output = len(own) * len(values)
    step = max(1, SET_DISTANCES // per_output)
    for begin in range(0, len(outputs), step):
        order, distances = by_distance(outputs[begin : begin + step], own, values)
        block = max(1, SET_STEPS_BETWEEN_CHECKS // (len(order) * per_output))
        for start in range(0, len(wider), block):
            if around.clock.is_over:
                return Outcome(upper=bound, lower=0.0, attack=None)
            laws, radii = balls.laws[start : start + block], wider[start : start + block]
            gain, event, output, *secrets = worst_pair(
                laws, radii, order, distances, near, LOST, 0.0
            )
            if gain > best[0]:
                best = (gain, start + event, begin + output, *secrets)
                there = order[output : output + 1], distances[output : output + 1]
    gain, event, output, first, second = best
    error = _error(around, roundings)
    attack = Attack(
        target=target,
        known=_known(around.setting, balls, event),
        secrets=(int(first), int(second)),
        output=outputs[output],
    )
    lower = 0.0 if there is None else _attained(balls, event, *there, near=near) - error
    return Outcome(
        upper=min(bound, math.nextafter(max(gain, 0.0) + error, math.inf)),
        lower=max(0.0, math.nextafter(lower, -math.inf)),
        attack=attack,
    )


def _attained(
    balls: Balls, event: int, order: Indices, distances: FloatArray, *, near: bool
) -> float:
    """Return the log-ratio at one output, with laws certainly inside their balls."""
    roundings = balls.additions + len(balls.values) + 16
    radii = balls.radii[event : event + 1]
    narrower = np.where(radii < 1, radii * (1 - 8 * roundings * UNIT_ROUNDOFF), ANY_LAW)
    laws = balls.laws[event : event + 1]
    gain = worst_pair(laws, narrower, order, distances, near, 0.0, LOST)[0]
    return float(gain)


def _error(around: _Search, roundings: int) -> float:
    """Bound the error of a log-ratio: roundings of laws and kernels, and merged atoms.

    A mass that is left after mass was taken away is right to a few roundings of itself or of the
    mass taken away; the radius includes the latter. All else is a sum of positive terms.
    """
    setting = around.setting
    operations = 2 * (roundings + len(setting.sizes) + setting.coordinates)
    error = rounding_error(
        DEFICITS if setting.is_near_one else DENSITIES,
        width=setting.furthest,
        operations=operations,
        distance_operations=operations,
    )
    return error + 4 * around.reachable.shift / around.scale


def _known(setting: Setting, balls: Balls, event: int) -> dict[int, int]:
    sizes = [setting.sizes[place] for place in balls.known]
    values = np.unravel_index(event, sizes) if sizes else ()
    return dict(zip(balls.known, map(int, values), strict=True))


def _cases(prepared: PreparedTable) -> int:
    """Count the pairs of a target and a set of unknown tuples."""
    knowledge, others = prepared.knowledge, len(prepared.sizes) - 1
    if knowledge.known is not None:
        return 1
    sizes = range(knowledge.fewest, knowledge.most + 1)
    return len(knowledge.targets) * sum(math.comb(others, size) for size in sizes)


def _largest_group(setting: Setting, ranges: list[float]) -> float:
    """Bound all adversaries by how far all tuples that one may not know can move the answer."""
    knowledge = setting.knowledge
    if knowledge.known is not None:
        return math.fsum(r for place, r in enumerate(ranges) if place not in knowledge.known)
    return math.fsum(sorted(ranges)[knowledge.fewest :])


def _is_too_large(prepared: PreparedTable, reachable: Reachable) -> bool:
    """Return whether comparing all conditional laws would take hours."""
    if _cases(prepared) > SET_CASES:
        return True
    steps = 0.0
    for target, unknown in prepared.cases():
        values = reachable.values(unknown)
        events = prepared.cells.probabilities.size / math.prod(prepared.sizes[p] for p in unknown)
        levels = prepared.sizes[target] * len(values)
        if prepared.cells.coordinates > 1:
            levels = math.prod(len(np.unique(column)) + 1 for column in values.T)
            levels = 0 if levels > SET_OUTPUTS else levels
        steps += events * len(values) * levels
        if steps > SET_STEPS:
            return True
    return False


class TableSetEngine(Engine):
    """Searches the adversaries of one set of tables, at many scales.

    Prepared once: tuples of one value are left out, and the centre, what can be reached and whether
    the set is too large to search are computed. No event is impossible in all members, so the
    leakage to adversaries who know all others here is that of plain differential privacy, whether
    tuples were left out or not.
    """

    def __init__(self, problem: Problem) -> None:
        self.climbs = climbs(problem)
        self._whole = problem
        self._varying = varying_in(problem)
        if self._varying is None:
            return
        inner = self._varying.problem
        knowledge = dataclasses.replace(inner.knowledge, incomplete=False)
        self._problem = dataclasses.replace(inner, knowledge=knowledge)
        self._center = center_of(inner.model)
        self._prepared = PreparedTable.of(dataclasses.replace(self._problem, model=self._center))
        self._laws = ConditionalLaws(inner.model, Reachable(inner.contributions))
        self._members: dict[Hashable, JointTable] = {}

    @functools.cached_property
    def _too_large(self) -> bool:
        """Whether a search without a time limit is refused; counted when one is first asked for."""
        return _is_too_large(self._prepared, self._laws.reachable)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary and pair of laws at one scale; see `core.problem.Engine`."""
        if self._varying is None:
            return no_secrets(self._whole)
        if not math.isfinite(limits.deadline) and self._too_large:
            raise ModelError(
                "this set of tables has too many conditional laws to compare all of them. Use fewer"
                " columns or values, restrict the adversaries, or pass time_limit= for a larger,"
                " still certified bound."
            )
        setting = setting_of(self._prepared, scale)
        around = _Search(
            laws=self._laws,
            center=self._center,
            setting=setting,
            scale=scale,
            clock=Clock(limits.deadline),
            members=self._members,
        )
        outcome = NOTHING
        if setting.knowledge.admits_strongest and not self._problem.hidden_noise:
            outcome = search_strongest(setting)
        outcome = outcome.or_worse(_search(around, max(limits.incumbent, outcome.lower)))
        if self._problem.hidden_noise:
            # The noise that was left out cancels only in the tails: these give the lower end.
            tails = _search(dataclasses.replace(around, tails_only=True), 0.0)
            outcome = Outcome(upper=outcome.upper, lower=tails.lower, attack=tails.attack)
        return self._varying.put_back(found_by(self._problem, around, outcome))
