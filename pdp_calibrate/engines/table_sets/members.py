"""Who attains the bound: names, values, and a table in which the two worst laws hold."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pdp_calibrate.adversaries import Witness
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.engines.table_sets.balls import Balls, balls_of, center_of
from pdp_calibrate.engines.table_sets.kernels import moved_in, moved_out
from pdp_calibrate.engines.table_sets.reachable import Indices, Reachable, by_distance
from pdp_calibrate.engines.tables.outcome import Attack, Outcome
from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.models import JointTable
from pdp_calibrate.models.base import FloatArray

_RARE = 1e-3  # probability given to an event that the centre does not have


def found_by(
    problem: Problem, setting: Setting, reachable: Reachable, scale: float, outcome: Outcome
) -> Found:
    """Translate positions into names and values, and the output into the user's units."""
    attack = outcome.attack
    if attack is None:
        target = setting.knowledge.targets[0]
        unknown = next(iter(setting.knowledge.unknown_sets(target)))
        return Found(value=outcome.upper, lower=0.0, witness=None, target=target, unknown=unknown)
    target, known = attack.target, attack.known
    unknown = tuple(p for p in range(len(setting.sizes)) if p != target and p not in known)
    values, domains, names = problem.contributions.values, problem.model.domains, problem.names
    member = center_of(problem.model)
    start = sum(part.min(axis=0) for part in values)
    output = start + attack.output * scale
    if unknown:  # the attack's output leaves out what the known tuples add
        member = _member(problem, setting, reachable, scale, attack, unknown)
        for place, value in known.items():
            output = output + reachable.parts[place][value]
    if problem.hidden_noise:
        output = np.where(attack.output > 0, np.inf, -np.inf)
    first, second = attack.secrets
    witness = Witness(
        target=names[target],
        known={names[place]: domains[place][value] for place, value in known.items()},
        secrets=(domains[target][first], domains[target][second]),
        output=float(output[0]) if len(output) == 1 else tuple(map(float, output)),
        model=member,
        index=problem.index,
    )
    return Found(
        value=outcome.upper, lower=outcome.lower, witness=witness, target=target, unknown=unknown
    )


def _member(
    problem: Problem,
    setting: Setting,
    reachable: Reachable,
    scale: float,
    attack: Attack,
    unknown: tuple[int, ...],
) -> JointTable:
    balls = balls_of(problem.model, reachable, attack.target, unknown)
    own, values = reachable.parts[attack.target] / scale, balls.values / scale
    order, _ = by_distance(attack.output[np.newaxis], own, values)
    held = [attack.known[place] for place in balls.known]
    sizes = [setting.sizes[place] for place in balls.known]
    event = int(np.ravel_multi_index(held, sizes)) if held else 0
    return member_with(center_of(problem.model), balls, attack, event, order[0])


def member_with(
    center: JointTable, balls: Balls, attack: Attack, event: int, order: Indices
) -> JointTable:
    """Replace the laws given the two secrets by the worst ones; all else stays as it is.

    The probability of each event is the centre's, so the table leaks to the attacker just what the
    bound says. Its other conditional laws may lie outside their own balls.
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
    """Give every value its probability, among its cells as the centre does or evenly."""
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
