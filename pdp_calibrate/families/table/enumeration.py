"""Every adversary evaluated, nobody cut off: vectorised, without compiled code.

Of a small table all events (x_i, x_K) are evaluated in one matrix product: laws of the answer times
kernels e^{−distance} (`search_events`). Vectors of answers and single adversaries go set by set
(`search_sets`): the product grid around one set of unknown tuples is far smaller than that of the
whole answer. Where probabilities times e^{−distance} could underflow (a noise scale far below the
range of the answer, cells of probability 1e-300) densities are taken in log space.
"""

from __future__ import annotations

import itertools
import math
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
    Grid,
    Outcome,
    Setting,
    bracket,
    group_bound,
)

_CHUNK = 2**20  # numbers held at once while densities are evaluated


def search_events(setting: Setting, grid: Grid) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else.

    For a table with few events: every law of the answer meets every output.
    """
    admitted = setting.prepared.admitted
    if not len(admitted.rows):
        return NOTHING
    densities = admitted.laws @ grid.kernel
    one, best, event, output = float(setting.is_near_one), -1.0, 0, 0
    step = max(1, _CHUNK // (8 * admitted.rows.shape[1] * densities.shape[1]))
    for start in range(0, len(admitted.rows), step):
        rows = admitted.rows[start : start + step].T
        most = least = densities[rows[0]]
        for row in rows[1:]:
            here = densities[row]
            most, least = np.maximum(most, here), np.minimum(least, here)
        ratio = (most - least) / (one + least)  # minus one
        place = int(ratio.argmax())
        if ratio.flat[place] > best:
            best = float(ratio.flat[place])
            event, output = divmod(place, ratio.shape[1])
            event += start
    secrets = admitted.secrets[event]
    here = densities[admitted.rows[event], output]
    first = int(here.argmax())
    others = np.where(secrets == secrets[first], np.inf, here)
    sizes, target = setting.sizes, int(admitted.targets[event])
    values = np.unravel_index(int(admitted.places[event]), [size + 1 for size in sizes])
    attack = Attack(
        target=target,
        known={p: int(v) for p, v in enumerate(values) if p != target and v < sizes[p]},
        secrets=(int(secrets[first]), int(secrets[others.argmin()])),
        output=grid.outputs[output],
    )
    additions = sum(sizes) + len(sizes) + admitted.laws.shape[1]
    error = setting.rounding_error(additions) + 2 * grid.moved
    return bracket(math.log1p(best), 0.0, error, attack)


def search_sets(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return the worst of all adversaries but those who know everyone else, set by set."""
    kernels: dict[bytes, FloatArray] = {}
    return best_first(
        (
            (group_bound(setting, (target, *unknown)), (target, unknown))
            for target, unknown in setting.prepared.cases()
        ),
        lambda _, case: judged_set(setting, setting.prepared.laws(*case), case[0], kernels),
        start=NOTHING,
        unjudged=lambda bound, _: Outcome(upper=bound, lower=0.0, attack=None),
        cutoff=lambda outcome: max(incumbent, outcome.lower),
        is_over=lambda: clock.is_over,
        what="comparing adversaries",
    )


def judged_set(
    setting: Setting, events: Events, target: int, kernels: dict[bytes, FloatArray]
) -> Outcome:
    """Compare the mixtures of every pair of secrets, for every x_K, at every output."""
    outcome = NOTHING
    linear = setting.is_additive and setting.fits_linear_space
    pieces = _linear_pieces(setting, events, kernels) if linear else _log_pieces(setting, events)
    for first, possible, densities, gain, error, outputs in pieces:
        gain[possible.sum(axis=1) < 2] = -np.inf  # one secret only: nothing to tell apart
        event, place = divmod(int(gain.argmax()), gain.shape[1])
        best = float(gain[event, place])
        if best - error <= outcome.lower and best + error <= outcome.upper:
            continue
        attack = None
        if best > -np.inf:
            here = np.where(possible[event], densities[event, :, place], -np.inf)
            secret = int(here.argmax())
            here = np.where(possible[event], densities[event, :, place], np.inf)
            here[secret] = np.inf
            sizes = [setting.sizes[position] for position in events.known]
            values = np.unravel_index(first + event, sizes) if sizes else ()
            known = dict(zip(events.known, map(int, values), strict=True))
            output = outputs[event % len(outputs), place]
            if setting.is_additive:
                for position, value in known.items():
                    output = output + setting.parts[position][value]
            secrets = secret, int(here.argmin())
            attack = Attack(target=target, known=known, secrets=secrets, output=output)
        outcome = outcome.or_worse(bracket(best, 0.0, error, attack))
    return outcome


_Piece = tuple[int, npt.NDArray[np.bool_], FloatArray, FloatArray, float, FloatArray]
"""First event, possible secrets, (log-)densities by event, secret and output, the largest log-ratio
by event and output, its error, and the outputs in scales."""


def _linear_pieces(
    setting: Setting, events: Events, kernels: dict[bytes, FloatArray]
) -> Iterator[_Piece]:
    """Evaluate an additive query by matrix products: the same atoms for every event."""
    atoms, laws = events.on_all_atoms
    atoms = atoms / setting.scale
    outputs = product_grid(atoms, tails_only=setting.tails_only)
    kernel = _kernel(setting, atoms, kernels)
    secrets = events.laws.shape[1]
    error = setting.rounding_error(events.additions + len(atoms))
    one = float(setting.is_near_one)
    width = min(len(outputs), max(1, _CHUNK // secrets))
    step = max(1, _CHUNK // (secrets * width))
    for first, start in itertools.product(range(0, len(laws), step), range(0, len(outputs), width)):
        rows, columns = slice(first, first + step), slice(start, start + width)
        densities = (laws[rows].reshape(-1, len(atoms)) @ kernel[:, columns]).reshape(
            -1, secrets, kernel[:, columns].shape[1]
        )
        highest, lowest = densities.max(axis=1), densities.min(axis=1)
        gain = np.log1p((highest - lowest) / (one + lowest))
        yield first, events.possible[rows], densities, gain, error, outputs[np.newaxis, columns]


def _kernel(setting: Setting, atoms: FloatArray, kernels: dict[bytes, FloatArray]) -> FloatArray:
    """Return e^{−distance} of atoms and outputs, near one e^{−distance} − 1.

    Coordinate by coordinate along the product grid, where e^{−distance} is a product. It is kept,
    for sets of equal size share it, and they follow each other in order of their bounds.
    """
    key = atoms.tobytes()
    if key not in kernels:
        near_one = setting.is_near_one
        kernel = np.zeros((len(atoms), 1)) if near_one else np.ones((len(atoms), 1))
        columns = _columns(atoms, tails_only=setting.tails_only)
        for own, column in zip(atoms.T, columns, strict=True):
            apart = np.abs(own[:, np.newaxis] - column)[:, np.newaxis]
            before = kernel[:, :, np.newaxis]
            kernel = before + apart if near_one else before * np.exp(-apart)
            kernel = kernel.reshape(len(atoms), -1)
        kernels.clear()
        kernels[key] = np.expm1(-kernel) if near_one else kernel
    return kernels[key]


def _log_pieces(setting: Setting, events: Events) -> Iterator[_Piece]:
    """Evaluate in log space, events and outputs cut into pieces whose densities fit in memory."""
    atoms = events.atoms / setting.scale
    everywhere = _outputs(atoms, tails_only=setting.tails_only)
    number = everywhere.shape[1]
    per_event = events.laws[0].size * atoms.shape[-1]
    width = max(1, min(number, _CHUNK // per_event))
    step = max(1, _CHUNK // (per_event * width))
    shared = len(atoms) == 1
    for first, start in itertools.product(
        range(0, len(events.laws), step), range(0, number, width)
    ):
        rows = slice(first, first + step)
        possible = events.possible[rows]
        outputs = (everywhere if shared else everywhere[rows])[:, start : start + width]
        densities, error = log_densities(
            events.laws[rows],
            atoms if shared else atoms[rows],
            outputs,
            additions=events.additions,
        )
        hidden = ~possible[:, :, np.newaxis]
        highest = np.where(hidden, -np.inf, densities).max(axis=1)
        gain = highest - np.where(hidden, np.inf, densities).min(axis=1)
        yield first, possible, densities, gain, error, outputs


def _columns(atoms: FloatArray, *, tails_only: bool) -> list[FloatArray]:
    """Return what each coordinate of the atoms can be, or just the ends."""
    columns = [np.unique(column) for column in atoms.T]
    return [column[[0, -1]] for column in columns] if tails_only else columns


def product_grid(atoms: FloatArray, *, tails_only: bool) -> FloatArray:
    """Return the product grid of the atoms' coordinates, or just its corners."""
    columns = _columns(atoms, tails_only=tails_only)
    return np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, len(columns))


def _outputs(atoms: FloatArray, *, tails_only: bool) -> FloatArray:
    """Return the product grid of the atoms' coordinates, per event; or just its corners."""
    if len(atoms) == 1:
        everywhere = atoms.reshape(-1, atoms.shape[-1])
        return product_grid(everywhere, tails_only=tails_only)[np.newaxis]
    values = np.sort(atoms.reshape(len(atoms), -1, atoms.shape[-1]), axis=1)
    if tails_only:
        values = values[:, [0, -1]]
    if atoms.shape[-1] == 1:
        return values
    grids = [list(itertools.product(*event.T)) for event in values]
    return np.array(grids)
