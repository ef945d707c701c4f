"""Vectors of answers whose grid of outputs is too large to visit: a certified bracket.

Upper end: the Lipschitz bound of each event and pair of secrets, the largest bound first; those not
reached in time keep the group bound or the odds bound, whichever is smaller. Lower end: coordinate
ascent over the output, in log space; for sets too large for that, only extreme outputs.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.lipschitz import lipschitz_bound
from pdp_calibrate.core.mixtures import log_densities
from pdp_calibrate.core.tuning import (
    VECTOR_FAR_WORK,
    VECTOR_PROGRAM,
    VECTOR_PROGRAMS,
    VECTOR_ROUNDS,
    VECTOR_SET,
    VECTOR_STARTS,
    VECTOR_WORK,
)
from pdp_calibrate.core.workers import Clock, best_first
from pdp_calibrate.families.table.laws import far_out
from pdp_calibrate.families.table.odds_bound import odds_bound
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Events,
    Outcome,
    Setting,
    bracket,
    group_bound,
)

_TIGHT = 1e-9  # bounds this close to what is known to leak are not lowered further


class _Case(NamedTuple):
    """A case to be judged: all events of one set, or two secrets given one event."""

    target: int
    unknown: tuple[int, ...]
    event: int | None = None
    """Position of x_K in the product of domains; None for all of them."""
    secrets: tuple[int, int] = (0, 0)


def search_vectors(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return a bracket for all adversaries except those who know everyone else."""
    search = _Search(setting, clock)
    found = best_first(
        search.next_set(),
        search.judge,
        start=NOTHING,
        unjudged=lambda bound, _: Outcome(upper=bound, lower=0.0, attack=None),
        cutoff=lambda found: max(incumbent, found.lower * (1 + _TIGHT)),
        is_over=lambda: clock.is_over or search.is_over,
        parts=lambda _: search.parts,
    )
    if search.is_too_large:
        left = (case for _, case in _by_falling_bound(setting) if case not in search.opened)
        found = found.or_worse(_from_afar(setting, left, clock))
    return Outcome(upper=max(found.upper, found.lower), lower=found.lower, attack=found.attack)


def _by_falling_bound(setting: Setting) -> Iterator[tuple[float, _Case]]:
    """Yield every set, the largest bound first: the smaller of its group and odds bounds.

    The sets of a target are listed by their number of tuples, and those of one number only after
    the larger ones have been judged, because there may be millions in all.
    """
    targets = setting.knowledge.targets
    ceilings = [odds_bound(setting, target) for target in targets]
    # Entries: minus a bound; places of target and set, which break ties; the set or the sets left.
    falling: list[tuple[float, int, int, Any]] = [
        (-math.inf, place, 0, itertools.groupby(setting.prepared.unknown_sets(target), key=len))
        for place, target in enumerate(targets)
    ]
    while falling:
        minus_bound, place, order, found = heapq.heappop(falling)
        if isinstance(found, _Case):
            yield -minus_bound, found
            continue
        for _, sets in itertools.islice(found, 1):
            cases = [_Case(targets[place], unknown) for unknown in sets]
            bounds = [
                min(group_bound(setting, (case.target, *case.unknown)), ceilings[place])
                for case in cases
            ]
            for number, (bound, case) in enumerate(zip(bounds, cases, strict=True), order):
                heapq.heappush(falling, (-bound, place, number, case))
            # A set of fewer tuples is part of one of these, so their bounds cover it.
            heapq.heappush(falling, (-max(bounds), place, order + len(cases), found))


class _Search:
    """What has been done so far, and the parts that the last case was divided into."""

    def __init__(self, setting: Setting, clock: Clock) -> None:
        self.setting, self._clock = setting, clock
        self._sets = _by_falling_bound(setting)
        self.opened: set[_Case] = set()
        self.parts: list[tuple[float, _Case]] = []
        self.is_too_large = False
        self._programs, self._spent = 0, 0.0

    @property
    def is_over(self) -> bool:
        """Whether the work allowed is done."""
        return self.is_too_large or self._programs >= VECTOR_PROGRAMS

    def next_set(self) -> list[tuple[float, _Case]]:
        """Return the set with the largest bound of those not yet judged, which covers them all."""
        return list(itertools.islice(self._sets, 1))

    def judge(self, bound: float, case: _Case) -> Outcome:
        """Attack all events of a set, or bound the leakage between two secrets given one event.

        After a set the next one is listed: there may be millions, and time for a few only.
        """
        self.parts = []
        events = self.setting.prepared.laws(case.target, case.unknown)
        if case.event is not None:
            self._programs += 1
            tighter = _program(self.setting, events, case.event, case.secrets)
            return Outcome(upper=min(bound, tighter), lower=0.0, attack=None)
        self.parts += self.next_set()
        number, secrets, atoms = events.laws.shape
        cost = 4.0 * number * secrets * (secrets - 1) * atoms**2
        too_large = atoms**2 > VECTOR_PROGRAM and cost > VECTOR_SET
        if too_large or self._spent + cost > VECTOR_WORK:
            self.is_too_large = True  # judging the others cannot lower the upper end
            return Outcome(upper=bound, lower=0.0, attack=None)
        self._spent += cost
        self.opened.add(case)
        outcome = NOTHING
        for event in range(number):
            if self._clock.is_over:
                self.parts.append((bound, case))  # for the events that were not attacked
                break
            for found, part in _pairs(self.setting, events, bound, case, event):
                outcome = outcome.or_worse(found)
                self.parts.append(part)
        return outcome


def _from_afar(setting: Setting, cases: Iterable[_Case], clock: Clock) -> Outcome:
    """Attack sets too large to be judged: far outputs first, then ascent from the best of them."""
    if not setting.fits_linear_space or not setting.is_additive:
        return NOTHING
    outcome, spent = NOTHING, 0.0
    for case in cases:
        if clock.is_over:
            break
        spent += setting.probabilities.size
        if spent > VECTOR_FAR_WORK:
            break
        outcome = outcome.or_worse(far_out(setting, case.target, case.unknown))
    attack = outcome.attack
    if attack is not None:
        outcome = outcome.or_worse(_improved(setting, attack))
    return Outcome(upper=0.0, lower=outcome.lower, attack=outcome.attack)


def _improved(setting: Setting, attack: Attack) -> Outcome:
    """Climb from the output of one attack, for its event and its secrets."""
    places = range(len(setting.sizes))
    unknown = tuple(p for p in places if p != attack.target and p not in attack.known)
    events = setting.prepared.laws(attack.target, unknown)
    sizes = [setting.sizes[place] for place in events.known]
    values = [attack.known[place] for place in events.known]
    event = int(np.ravel_multi_index(values, sizes)) if sizes else 0
    secrets = list(attack.secrets)
    atoms = events.atoms[event % len(events.atoms)] / setting.scale
    moved = sum(setting.parts[place][value] for place, value in attack.known.items())
    gain, error, output = _ascend(
        events.laws[event][secrets],
        atoms[secrets],
        events.additions,
        starts=(attack.output - moved)[np.newaxis],
    )
    output = output + moved
    return bracket(gain, 0.0, error, dataclasses.replace(attack, output=output))


def _pairs(
    setting: Setting, events: Events, parent_bound: float, parent: _Case, event: int
) -> Iterator[tuple[Outcome, tuple[float, _Case]]]:
    """Attack each ordered pair of secrets of one event, and return what is left to prove."""
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
        # One law is turned into the other by moving no mass further than this.
        bound = min(parent_bound, float(reach.max()) * (1 + 1e-12) + 1e-300)
        part = parent._replace(event=event, secrets=(int(first), int(second)))
        yield Outcome(upper=0.0, lower=found.lower, attack=found.attack), (bound, part)


def _ascend(
    laws: FloatArray, atoms: FloatArray, additions: int, *, starts: FloatArray | None = None
) -> tuple[float, float, FloatArray]:
    """Climb over the outputs, one coordinate at a time, from the most telling starts or atoms."""
    everywhere = atoms.reshape(-1, atoms.shape[-1])
    columns = [np.unique(column) for column in everywhere.T]

    def gains(outputs: FloatArray) -> tuple[FloatArray, float]:
        log_density, error = log_densities(
            laws[np.newaxis], atoms[np.newaxis], outputs[np.newaxis], additions=additions
        )
        return log_density[0, 0] - log_density[0, 1], error

    everywhere = everywhere if starts is None else starts
    start, error = gains(everywhere)
    best, best_output = -np.inf, everywhere[0]
    for place in np.argsort(-start)[:VECTOR_STARTS]:
        output, gain = everywhere[place].copy(), float(start[place])
        for _ in range(VECTOR_ROUNDS):
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
    if np.count_nonzero(first) * np.count_nonzero(second) > VECTOR_PROGRAM:
        return np.inf
    costs = np.abs(atoms[secrets[0]][:, np.newaxis] - atoms[secrets[1]]).sum(axis=-1)
    # The laws and atoms themselves are rounded a few times.
    rounding = 1e-15 * events.additions * (1 + float(costs.max()))
    return lipschitz_bound(first, second, costs) + rounding


def _known(setting: Setting, events: Events, event: int) -> dict[int, int]:
    sizes = [setting.sizes[place] for place in events.known]
    values = np.unravel_index(event, sizes) if sizes else ()
    return dict(zip(events.known, map(int, values), strict=True))
