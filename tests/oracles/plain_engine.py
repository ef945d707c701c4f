"""The first, slow engine for joint tables: every target, known set, value and atom, in log space.

Of the library it uses the types of a problem and of what a search returns, and nothing that
computes.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.table import JointTable

_Secrets = tuple[int, int]
UNIT_ROUNDOFF = 2.0**-53
_CHUNK = 2**20  # numbers held at once while densities are evaluated
_ROUND_UP = 1 + 8 * UNIT_ROUNDOFF  # covers a difference and a quotient of floats
_ROUND_DOWN = 1 - 8 * UNIT_ROUNDOFF


class Events(NamedTuple):
    """What one target and one unknown set leave to be known: the laws of the sum, by (x_K, x_i).

    `laws` and `possible` are indexed by x_K and x_i, `atoms` too unless all x_K share them;
    `additions` bounds the rounded operations behind each number.
    """

    known: tuple[int, ...]
    laws: FloatArray
    possible: npt.NDArray[np.bool_]
    atoms: FloatArray
    additions: int


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = np.inf
) -> Bracket:
    """Find the worst adversary of a joint table.

    Parameters
    ----------
    problem
        Table, contributions and adversaries.
    scale
        The Laplace scale λ.
    incumbent
        Adversaries who cannot leak more than this need not be distinguished.
    deadline
        Value of `time.monotonic()` after which the rest counts with its group bound.
    """
    ranges = problem.contributions.tuple_ranges() / scale
    group = problem.contributions.total_range() / scale
    additive = problem.contributions.table is None
    # Whoever knows x_K sees the answer move by no more than the target and all unknowns can.
    cases = sorted(
        (
            (float(ranges[[target, *unknown]].sum()) if additive else group, target, unknown)
            for target in problem.knowledge.targets
            for unknown in problem.knowledge.unknown_sets(target)
        ),
        key=lambda case: -case[0],
    )
    _, target, unknown = cases[0]
    best = Bracket(upper=0.0, lower=0.0, witness=None, target=target, unknown=unknown)
    for movement, target, unknown in cases:
        bound = movement * (1 + 2 * len(ranges) * UNIT_ROUNDOFF) * _ROUND_UP
        if bound <= max(incumbent, best.upper) or time.monotonic() > deadline:
            # Bounds fall from case to case, so this one covers all that follow.
            return dataclasses.replace(best, upper=max(best.upper, bound))
        if unknown or problem.hidden_noise:
            best = best.or_worse(_mixtures(problem, target, unknown, scale))
        else:
            best = best.or_worse(_strongest(problem, target, scale))
    return best


def _strongest(problem: Problem, target: int, scale: float) -> Bracket:
    """Knowing everyone else, the output tells x_i as plain DP says: LS_i/λ, whatever θ is."""
    contributions = problem.contributions
    others = [position for position in range(len(contributions.sizes)) if position != target]
    if contributions.table is None:
        likely = _table(problem).probabilities.sum(axis=target)
        cell = np.unravel_index(np.argmax(likely), likely.shape)
        answers = contributions.values[target]
        start = answers.min(axis=0)
    else:
        by_target = np.moveaxis(contributions.table, target, -2)
        moves = np.abs(by_target[..., np.newaxis, :, :] - by_target[..., np.newaxis, :])
        spreads = moves.sum(axis=-1).max(axis=(-2, -1))
        cell = np.unravel_index(np.argmax(spreads), spreads.shape)
        answers = by_target[cell]
        start = contributions.table.min(axis=tuple(range(len(contributions.sizes))))
    distances = np.abs(answers[:, np.newaxis] - answers).sum(axis=-1)
    pair = np.unravel_index(np.argmax(distances), distances.shape)
    secrets = int(pair[0]), int(pair[1])
    leak = float(distances[pair]) / scale
    known = dict(zip(others, map(int, cell), strict=True))
    return Bracket(
        upper=leak * _ROUND_UP,
        lower=leak * _ROUND_DOWN,
        witness=_witness(problem, target, known, secrets, answers[secrets[0]] - start),
        target=target,
        unknown=(),
    )


def _mixtures(problem: Problem, target: int, unknown: tuple[int, ...], scale: float) -> Bracket:
    """Compare the mixtures of every pair of secrets, for every x_K, at every atom."""
    best = Bracket(upper=0.0, lower=0.0, witness=None, target=target, unknown=unknown)
    events = conditional_laws(problem, target, unknown)
    for first, piece, outputs, is_tail in _pieces(events, scale):
        log_density, error = _log_densities(piece, outputs, scale)
        possible = piece.possible[:, :, np.newaxis]
        highest = np.where(possible, log_density, -np.inf)
        lowest = np.where(possible, log_density, np.inf)
        gain = highest.max(axis=1) - lowest.min(axis=1)
        gain[piece.possible.sum(axis=1) < 2] = -np.inf  # one possible secret: nothing to compare
        value = max(0.0, float(gain.max()) + error)
        if problem.hidden_noise:
            gain = np.where(is_tail, gain, -np.inf)
        if value <= best.upper and gain.max() - error <= best.lower:
            continue
        event, place = np.unravel_index(np.argmax(gain), gain.shape)
        witness = None
        if gain[event, place] > -np.inf:
            known = _known_values(events, first + int(event), problem.contributions.sizes)
            secrets = int(highest[event, :, place].argmax()), int(lowest[event, :, place].argmin())
            moved = outputs[event % len(outputs), place] * scale
            if problem.hidden_noise:
                moved = np.where(moved > events.atoms.min(axis=(0, 1, 2)), np.inf, -np.inf)
            witness = _witness(problem, target, known, secrets, moved)
        lower = max(0.0, float(gain[event, place]) - error)
        here = dataclasses.replace(best, upper=value, lower=lower, witness=witness)
        best = best.or_worse(here)
    return best


def _log_densities(events: Events, outputs: FloatArray, scale: float) -> tuple[FloatArray, float]:
    """Return log Σ law·e^{−distance} at every output, and how far two of them may be off."""
    atoms = events.atoms[:, :, np.newaxis] / scale
    distances = np.abs(outputs[:, np.newaxis, :, np.newaxis] - atoms).sum(axis=-1)
    widest, laws = float(distances.max()), events.laws[:, :, np.newaxis]
    unit = (events.additions + events.laws.shape[-1] + 12) * UNIT_ROUNDOFF
    if widest <= 1:  # what a density lacks to 1 keeps the digits of tiny leakages
        return np.log1p((laws * np.expm1(-distances)).sum(axis=-1)), 10 * unit * widest
    with np.errstate(divide="ignore"):
        logs = np.log(laws) - distances
    rarest = -float(np.log(laws[laws > 0].min()))
    error = 4 * unit * (1 + widest) + 16 * UNIT_ROUNDOFF * (1 + widest + rarest)
    return np.asarray(logsumexp(logs, axis=-1)), error


def conditional_laws(problem: Problem, target: int, unknown: tuple[int, ...]) -> Events:
    """Condition the table on (x_i, x_K), for all their values at once."""
    table, contributions = _table(problem), problem.contributions
    axes = range(len(table.names))
    known = tuple(axis for axis in axes if axis != target and axis not in unknown)
    secrets = len(table.domains[target])
    order = (*known, target, *unknown)
    cells = int(np.prod([len(table.domains[axis]) for axis in unknown], dtype=np.int64))
    masses = table.probabilities.transpose(order).reshape(-1, secrets, cells)
    if contributions.table is None:
        own = _from_zero(contributions.values[target])
        added = np.zeros((1, own.shape[-1]))
        for axis in unknown:
            steps = added[:, np.newaxis] + _from_zero(contributions.values[axis])
            added = steps.reshape(-1, own.shape[-1])
        masses, added = _merged(masses, added)
        atoms = own[np.newaxis, :, np.newaxis] + added
    else:
        answers = contributions.table - contributions.table.min(axis=tuple(axes))
        atoms = answers.transpose(*order, len(axes)).reshape(*masses.shape, -1)
    totals = masses.sum(axis=-1)
    possible = totals > 0
    laws = np.where(possible[..., np.newaxis], masses, 1.0)
    laws = laws / np.where(possible, totals, masses.shape[-1])[..., np.newaxis]
    additions = 2 * cells + 2 * len(axes)
    return Events(known=known, laws=laws, possible=possible, atoms=atoms, additions=additions)


def _merged(masses: FloatArray, added: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Add up the masses of unknown values that give the same answer."""
    distinct, inverse = np.unique(added, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    starts = np.searchsorted(inverse.ravel()[order], np.arange(len(distinct)))
    return np.add.reduceat(masses[..., order], starts, axis=-1), distinct


def _pieces(
    events: Events, scale: float
) -> Iterator[tuple[int, Events, FloatArray, npt.NDArray[np.bool_]]]:
    """Cut events and outputs into pieces whose densities fit in memory.

    Yields the position of the first event, the events, the outputs in units of the scale, and
    which of these lie beyond every atom but one.
    """
    shared = len(events.atoms) == 1
    everywhere = _grid(events.atoms / scale)
    number = everywhere.shape[1]
    ends = everywhere.min(axis=1, keepdims=True), everywhere.max(axis=1, keepdims=True)
    is_tail = np.all((everywhere == ends[0]) | (everywhere == ends[1]), axis=(0, 2))
    width = max(1, min(number, _CHUNK // events.laws[0].size))
    step = max(1, _CHUNK // (events.laws[0].size * width))
    for first in range(0, len(events.laws), step):
        rows = slice(first, first + step)
        piece = events._replace(
            laws=events.laws[rows],
            possible=events.possible[rows],
            atoms=events.atoms if shared else events.atoms[rows],
        )
        outputs = everywhere if shared else everywhere[rows]
        for start in range(0, number, width):
            columns = slice(start, start + width)
            yield first, piece, outputs[:, columns], is_tail[columns]


def _grid(atoms: FloatArray) -> FloatArray:
    """Return the product grid of the coordinates of the atoms, for each event."""
    flat = atoms.reshape(len(atoms), -1, atoms.shape[-1])
    if flat.shape[-1] == 1:
        return np.unique(flat, axis=1) if len(flat) == 1 else np.sort(flat, axis=1)
    if len(flat) == 1:
        axes = [np.unique(column) for column in flat[0].T]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(1, -1, len(axes))
    places = np.indices((flat.shape[1],) * flat.shape[2]).reshape(flat.shape[2], -1)
    ordered = np.sort(flat, axis=1)
    return np.stack([ordered[:, place, k] for k, place in enumerate(places)], axis=-1)


def _known_values(events: Events, event: int, sizes: tuple[int, ...]) -> dict[int, int]:
    """Return position → index of the value, for the event's place in the product of domains."""
    shape = [sizes[position] for position in events.known]
    values = np.unravel_index(event, shape) if shape else ()
    return dict(zip(events.known, map(int, values), strict=True))


def _witness(
    problem: Problem, target: int, known: dict[int, int], secrets: _Secrets, moved: FloatArray
) -> Witness:
    """Translate positions into names and values, and the output back into the user's units."""
    contributions, domains = problem.contributions, problem.model.domains
    if contributions.table is None:
        start = sum(
            array[known[position]] if position in known else array.min(axis=0)
            for position, array in enumerate(contributions.values)
        )
    else:
        start = contributions.table.min(axis=tuple(range(len(contributions.sizes))))
    output = tuple(map(float, start + moved))
    return Witness(
        target=problem.names[target],
        known={problem.names[position]: domains[position][v] for position, v in known.items()},
        secrets=(domains[target][secrets[0]], domains[target][secrets[1]]),
        output=output[0] if len(output) == 1 else output,
        model=problem.model,
        index=problem.index,
    )


def _table(problem: Problem) -> JointTable:
    if not isinstance(problem.model, JointTable):
        raise TypeError(f"the table engine searches joint tables, got {problem.model!r}.")
    return problem.model


def _from_zero(values: FloatArray) -> FloatArray:
    """Shift a tuple's contributions to start at zero, so that sums keep the digits of the range."""
    return np.asarray(values - values.min(axis=0))
