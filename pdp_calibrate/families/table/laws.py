"""The laws of the answer that adversaries of a table compare, set by set."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pdp_calibrate.core.finite_noise import Case, Mixtures, Named
from pdp_calibrate.core.laplace_mixtures import densities_of, worst_of
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.table.setting import NOTHING, Attack, Outcome, Setting, bracket

if TYPE_CHECKING:
    from pdp_calibrate.arrays import FloatArray
    from pdp_calibrate.families.table.setting import Events, PreparedTable


class TableLaws:
    """Lists the laws of one table, for every target and every set of unknown tuples."""

    def __init__(self, prepared: PreparedTable, error: float = 0.0) -> None:
        """Prepare the listing; `error` is the relative error of the table's probabilities."""
        self._prepared, self._error = prepared, error
        cells = prepared.cells
        self._spread = float(cells.spread.sum())
        self._rounding = 2 * (len(cells.sizes) + 2) * UNIT_ROUNDOFF * self._spread

    def cases(self) -> Iterator[Case]:
        """List all adversaries but those who know all others."""
        for target, unknown in self._prepared.cases():
            listed = functools.partial(self.mixtures, target, unknown)
            yield Case(self._spread, target, unknown, listed)

    def mixtures(self, target: int, unknown: tuple[int, ...]) -> Iterator[Mixtures]:
        """Yield the laws of one set of unknown tuples, given all values of the others."""
        events = self._prepared.laws(target, unknown)
        shared = len(events.atoms) == 1
        for first in range(1 if shared else len(events.laws)):
            own = events if shared else _only(events, first)
            atoms, laws = own.on_all_atoms
            yield Mixtures(
                atoms=atoms[:, 0] if atoms.shape[1] == 1 else atoms,
                laws=laws,
                possible=own.possible,
                adversary=functools.partial(self._at_event, target, events.known, first),
                error=self._error + 4 * (events.additions + 4) * UNIT_ROUNDOFF,
                moved=self._rounding,
            )

    def _at_event(
        self,
        target: int,
        places: tuple[int, ...],
        first: int,
        event: int,
        secrets: tuple[int, int],
        output: Any,
    ) -> Named:
        sizes = [self._prepared.sizes[place] for place in places]
        values = np.unravel_index(first + event, sizes) if sizes else ()
        known = dict(zip(places, map(int, values), strict=True))
        return self._named(target, known, secrets, output)

    def _named(
        self, target: int, known: dict[int, int], secrets: tuple[int, int], output: Any
    ) -> Named:
        """Name who knows some values; an output is measured from the smallest sum of the others."""
        problem, parts = self._prepared.problem, self._prepared.cells.parts
        places = range(len(self._prepared.sizes))
        unknown = tuple(p for p in places if p != target and p not in known)
        seen = np.atleast_1d(output)
        if problem.hidden_noise:
            seen = np.where(seen > 0, np.inf, -np.inf)
        if np.isfinite(seen).all():
            seen = seen + _start(problem.contributions)
            for place, value in known.items() if parts else ():
                seen = seen + parts[place][value]
        shown = float(seen[0]) if len(seen) == 1 else tuple(map(float, seen))
        return Named(problem.witness(target, known, secrets, shown), target, unknown)


def _start(contributions: Any) -> FloatArray:
    """Return the smallest answer of all, from which atoms are measured."""
    if contributions.table is None:
        return np.asarray(sum(part.min(axis=0) for part in contributions.values))
    return np.asarray(contributions.table.reshape(-1, contributions.table.shape[-1]).min(axis=0))


def _only(events: Events, place: int) -> Events:
    """Return one event alone, whose atoms no other shares."""
    here = slice(place, place + 1)
    return dataclasses.replace(
        events, laws=events.laws[here], possible=events.possible[here], atoms=events.atoms[here]
    )


def far_out(setting: Setting, target: int, unknown: tuple[int, ...]) -> Outcome:
    """Compare all events of one set of an additive query at outputs beyond all answers."""
    prepared, found = setting.prepared, NOTHING
    events = prepared.laws(target, unknown)
    atoms, laws = events.on_all_atoms
    mixtures = Mixtures(
        atoms=atoms,
        laws=laws,
        possible=events.possible,
        adversary=lambda *_: Named(None, target, unknown),
        error=4 * (events.additions + 4) * UNIT_ROUNDOFF,
    )
    for part in densities_of(mixtures, setting.scale, corners=True):
        gain, error, event, secrets, output = worst_of(mixtures, part)
        if gain > -np.inf:
            sizes = [prepared.sizes[place] for place in events.known]
            values = np.unravel_index(event, sizes) if sizes else ()
            known = dict(zip(events.known, map(int, values), strict=True))
            place = np.atleast_1d(output) / setting.scale
            place = place + sum(setting.parts[one][value] for one, value in known.items())
            attack = Attack(target=target, known=known, secrets=secrets, output=place)
            found = found.or_worse(bracket(gain, 0.0, error, attack))
    return found
