"""The slow, careful search: densities in log space, for ranges that linear space cannot hold.

Used where probabilities times e^{−distance/λ} could underflow: a noise scale far below the range of
the answer, or cells of probability 1e-300. Every event is evaluated through `log_densities`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.best_first import best_first
from pdp_calibrate.core.mixtures import log_densities
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Events,
    Outcome,
    Setting,
    bracket,
    conditional_laws,
    group_bound,
)

_CHUNK = 2**20  # numbers held at once while densities are evaluated


def search_logspace(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else."""
    return best_first(
        (
            (group_bound(setting, (target, *unknown)), (target, unknown))
            for target, unknown in setting.prepared.cases()
        ),
        lambda _, case: _mixtures(setting, *case),
        start=NOTHING,
        unjudged=lambda bound, _: Outcome(upper=bound, lower=0.0, attack=None),
        cutoff=lambda outcome: max(incumbent, outcome.lower),
        is_over=lambda: clock.is_over,
        what="comparing adversaries",
    )


def _mixtures(setting: Setting, target: int, unknown: tuple[int, ...]) -> Outcome:
    """Compare the mixtures of every pair of secrets, for every x_K, at every output."""
    outcome = NOTHING
    events = conditional_laws(setting.prepared.problem, target, unknown)
    for first, laws, possible, atoms, outputs in _pieces(events, setting):
        log_density, error = log_densities(laws, atoms, outputs, additions=events.additions)
        highest = np.where(possible[:, :, np.newaxis], log_density, -np.inf)
        lowest = np.where(possible[:, :, np.newaxis], log_density, np.inf)
        gain = highest.max(axis=1) - lowest.min(axis=1)
        gain[possible.sum(axis=1) < 2] = -np.inf  # one secret only: nothing to tell apart
        event, place = np.unravel_index(np.argmax(gain), gain.shape)
        best = float(gain[event, place])
        if best - error <= outcome.lower and best + error <= outcome.upper:
            continue
        attack = None
        if best > -np.inf:
            sizes = [setting.sizes[position] for position in events.known]
            values = np.unravel_index(first + int(event), sizes) if sizes else ()
            known = dict(zip(events.known, map(int, values), strict=True))
            output = outputs[event % len(outputs), place]
            for position, value in known.items():
                if setting.table is None:
                    output = output + setting.parts[position][value]
            order = np.argsort(-highest[event, :, place]), np.argsort(lowest[event, :, place])
            secrets = int(order[0][0]), int(order[1][order[1] != order[0][0]][0])
            attack = Attack(target=target, known=known, secrets=secrets, output=output)
        outcome = outcome.or_worse(bracket(best, 0.0, error, attack))
    return outcome


_Piece = tuple[int, FloatArray, npt.NDArray[np.bool_], FloatArray, FloatArray]


def _pieces(events: Events, setting: Setting) -> Iterator[_Piece]:
    """Cut events and outputs into pieces whose densities fit in memory.

    Yields the position of the first event, laws, possible secrets, atoms and outputs, the last two
    in units of the scale.
    """
    atoms = events.atoms / setting.scale
    everywhere = _outputs(atoms, tails_only=setting.tails_only)
    number = everywhere.shape[1]
    per_event = events.laws[0].size * atoms.shape[-1]
    width = max(1, min(number, _CHUNK // per_event))
    step = max(1, _CHUNK // (per_event * width))
    shared = len(atoms) == 1
    for first in range(0, len(events.laws), step):
        rows = slice(first, first + step)
        for start in range(0, number, width):
            yield (
                first,
                events.laws[rows],
                events.possible[rows],
                atoms if shared else atoms[rows],
                (everywhere if shared else everywhere[rows])[:, start : start + width],
            )


def _outputs(atoms: FloatArray, *, tails_only: bool) -> FloatArray:
    """Return the product grid of the atoms' coordinates, per event; or just its corners."""
    values = np.sort(atoms.reshape(len(atoms), -1, atoms.shape[-1]), axis=1)
    if tails_only:
        values = values[:, [0, -1]]
    elif len(values) == 1:
        columns = [np.unique(column) for column in values[0].T]
        return np.array(list(itertools.product(*columns)))[np.newaxis]
    if atoms.shape[-1] == 1:
        return values
    grids = [list(itertools.product(*event.T)) for event in values]
    return np.array(grids)
