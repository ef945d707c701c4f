"""Vectors of answers whose grid of outputs is too large to visit: a certified bracket.

Upper end: the Lipschitz bound of each event and pair of secrets, the worst first; who is not
reached counts with the group bound. Lower end: coordinate ascent over the output. All in log space.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.lipschitz import lipschitz_bound
from pdp_calibrate.core.mixtures import log_densities
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Events,
    Outcome,
    Setting,
    bracket,
    group_bound,
)

_LARGEST_PROGRAM = 4096  # pairs of atoms in one linear program


_PROGRAMS = 400  # solved before the rest keeps its group bound


_ROUNDS = 20  # of coordinate ascent


_STARTS = 3


_TIGHT = 1e-9


@dataclass(frozen=True, order=True)
class _Open:
    """Somebody not fully judged yet; sorted by falling bound."""

    minus_bound: float
    count: int
    target: int
    unknown: tuple[int, ...]
    event: int | None = None
    """Position of x_K in the product of domains; None for all of them."""
    secrets: tuple[int, int] = (0, 0)


def search_vectors(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return a bracket for all adversaries but those who know everyone else."""
    counter = itertools.count()
    queue = [
        _Open(-group_bound(setting, (target, *unknown)), next(counter), target, unknown)
        for target, unknown in setting.prepared.cases()
    ]
    heapq.heapify(queue)
    outcome = NOTHING
    judged = 0.0  # the largest bound of those who are settled
    programs = 0
    while queue:
        worst = heapq.heappop(queue)
        bound = -worst.minus_bound
        enough = max(incumbent, outcome.lower * (1 + _TIGHT))
        if bound <= enough or clock.is_over or programs >= _PROGRAMS:
            judged = max(judged, bound)
            break
        events = setting.prepared.laws(worst.target, worst.unknown)
        if worst.event is None:
            for event in range(len(events.laws)):
                for found, item in _pairs(setting, events, worst, event, counter):
                    outcome = outcome.or_worse(found)
                    heapq.heappush(queue, item)
            continue
        tighter = _program(setting, events, worst.event, worst.secrets)
        programs += 1
        judged = max(judged, min(bound, tighter))
    return Outcome(upper=max(judged, outcome.lower), lower=outcome.lower, attack=outcome.attack)


def _pairs(
    setting: Setting,
    events: Events,
    parent: _Open,
    event: int,
    counter: Iterator[int],
) -> Iterator[tuple[Outcome, _Open]]:
    """Attack each ordered pair of secrets of one event, and say what is left to prove."""
    atoms = events.atoms[event % len(events.atoms)] / setting.scale
    for first, second in itertools.permutations(np.flatnonzero(events.possible[event]), 2):
        laws = events.laws[event][[first, second]]
        gain, error, output = _ascend(laws, atoms[[first, second]], events.additions)
        known = _known(setting, events, event)
        if setting.is_additive:
            for place, value in known.items():
                output = output + setting.parts[place][value]
        attack = Attack(
            target=parent.target, known=known, secrets=(int(first), int(second)), output=output
        )
        found = bracket(gain, 0.0, error, attack)
        reach = np.abs(atoms[first][laws[0] > 0][:, np.newaxis] - atoms[second][laws[1] > 0]).sum(
            axis=-1
        )
        # Moving the furthest mass is enough to turn one law into the other.
        bound = min(-parent.minus_bound, float(reach.max()) * (1 + 1e-12) + 1e-300)
        yield (
            Outcome(upper=0.0, lower=found.lower, attack=found.attack),
            _Open(
                -bound,
                next(counter),
                parent.target,
                parent.unknown,
                event,
                (int(first), int(second)),
            ),
        )


def _ascend(laws: FloatArray, atoms: FloatArray, additions: int) -> tuple[float, float, FloatArray]:
    """Climb over the outputs, one coordinate at a time, from the most telling atoms."""
    everywhere = atoms.reshape(-1, atoms.shape[-1])
    columns = [np.unique(column) for column in everywhere.T]

    def gains(outputs: FloatArray) -> tuple[FloatArray, float]:
        log_density, error = log_densities(
            laws[np.newaxis], atoms[np.newaxis], outputs[np.newaxis], additions=additions
        )
        return log_density[0, 0] - log_density[0, 1], error

    start, error = gains(everywhere)
    best, best_output = -np.inf, everywhere[0]
    for place in np.argsort(-start)[:_STARTS]:
        output, gain = everywhere[place].copy(), float(start[place])
        for _ in range(_ROUNDS):
            before = gain
            for coordinate, column in enumerate(columns):
                line = np.repeat(output[np.newaxis], len(column), axis=0)
                line[:, coordinate] = column
                along, here = gains(line)
                error = max(error, here)
                if along.max() > gain:
                    gain, output = float(along.max()), line[int(along.argmax())]
            if gain <= before:
                break
        if gain > best:
            best, best_output = gain, output
    return best, error, best_output


def _program(setting: Setting, events: Events, event: int, secrets: tuple[int, int]) -> float:
    """Return the Lipschitz bound of one event and pair of secrets."""
    atoms = events.atoms[event % len(events.atoms)] / setting.scale
    first, second = (events.laws[event][secret] for secret in secrets)
    if np.count_nonzero(first) * np.count_nonzero(second) > _LARGEST_PROGRAM:
        return np.inf
    costs = np.abs(atoms[secrets[0]][:, np.newaxis] - atoms[secrets[1]]).sum(axis=-1)
    # The laws and atoms themselves carry a few roundings.
    rounding = 1e-15 * events.additions * (1 + float(costs.max()))
    return lipschitz_bound(first, second, costs) + rounding


def _known(setting: Setting, events: Events, event: int) -> dict[int, int]:
    sizes = [setting.sizes[place] for place in events.known]
    values = np.unravel_index(event, sizes) if sizes else ()
    return dict(zip(events.known, map(int, values), strict=True))
