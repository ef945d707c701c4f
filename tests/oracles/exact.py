"""Brute force that cannot underflow: laws and answers are fractions, densities are logarithms.

Written from the definition and sharing nothing with the package. What is possible is decided by
the fractions; a first pass compares logarithms of floats, and `recomputed` evaluates the worst case
it found once more in 60 digits, so that a verdict never hangs on the oracle's own rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

Cell = tuple[int, ...]
Law = Mapping[Cell, Fraction]
"""The probability of every possible cell; impossible ones are left out."""
Answers = Mapping[Cell, tuple[Fraction, ...]]
Admits = Callable[[int, frozenset[int]], bool]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Worst:
    """A leakage in floating point, and where it was found."""

    value: float
    target: int = 0
    known: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    secrets: tuple[int, int] = (0, 0)
    output: tuple[Fraction, ...] = ()


def log_of(number: Fraction) -> float:
    """The logarithm of a positive fraction of any size."""
    shift = number.numerator.bit_length() - number.denominator.bit_length()
    return math.log(float(number / Fraction(2) ** shift)) + shift * math.log(2)


def worst_leakage(
    law: Law, sizes: Sequence[int], answers: Answers, scales: Sequence[float], admits: Admits
) -> Worst:
    """Try every adversary, known value, pair of secrets and point of the grid of answers."""
    logs = _logs(law, sizes)
    levels = _levels(answers)
    places = _places(answers, sizes)
    grid = list(itertools.product(*levels))
    points = np.array([[float(r - one[0]) for r, one in zip(p, levels, strict=True)] for p in grid])
    best = Worst(0.0)
    for target, known, unknown in adversaries(len(sizes), admits):
        believed = logs if unknown else np.zeros(tuple(sizes))
        shape = [_size(sizes, known), sizes[target], _size(sizes, unknown)]
        order = (*known, target, *unknown)
        masses = believed.transpose(order).reshape(shape)
        atoms = places.transpose((*order, len(sizes))).reshape((*shape, -1))
        far = np.zeros((len(points), *shape))
        for axis, scale in enumerate(scales):
            column = points[:, axis].reshape(-1, 1, 1, 1)
            far += np.abs(column - atoms[np.newaxis, ..., axis]) / scale
        totals = _log_sums(masses)
        possible = totals > -np.inf
        densities = _log_sums(masses - far) - np.where(possible, totals, 0.0)
        high = np.where(possible, densities, -np.inf)
        low = np.where(possible, densities, np.inf)
        gains = np.where(possible.sum(axis=-1) > 1, high.max(axis=-1) - low.min(axis=-1), -np.inf)
        place = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[place] > best.value:
            held = np.unravel_index(int(place[1]), [sizes[k] for k in known]) if known else ()
            best = Worst(
                float(gains[place]),
                target,
                known,
                tuple(int(h) for h in held),
                (int(high[place].argmax()), int(low[place].argmin())),
                grid[place[0]],
            )
    return best


def recomputed(
    law: Law, sizes: Sequence[int], answers: Answers, scales: Sequence[float], where: Worst
) -> Any:
    """The log-ratio at one place in 60 digits: the leakage is at least this."""
    fixed = dict(zip(where.known, where.held, strict=True))
    everyone_known = len(fixed) == len(sizes) - 1
    with mpmath.workdps(60):
        sums = [[mpmath.mpf(0), mpmath.mpf(0)], [mpmath.mpf(0), mpmath.mpf(0)]]
        cells = itertools.product(*map(range, sizes)) if everyone_known else iter(law)
        for cell in cells:
            if any(cell[axis] != value for axis, value in fixed.items()):
                continue
            mass = mpmath.mpf(1) if everyone_known else _mpf(law[cell])
            far = sum(
                abs(_mpf(r - a)) / mpmath.mpf(scale)
                for r, a, scale in zip(where.output, answers[cell], scales, strict=True)
            )
            for side, secret in enumerate(where.secrets):
                if cell[where.target] == secret:
                    sums[side][0] += mass
                    sums[side][1] += mass * mpmath.exp(-far)
        (p_mass, p), (q_mass, q) = sums
        return mpmath.log(p / p_mass) - mpmath.log(q / q_mass)


def private_mechanisms(
    law: Law,
    sizes: Sequence[int],
    dp_epsilon: float,
    admits: Admits,
    *,
    answers: Answers | None = None,
    scales: Sequence[float] = (),
) -> float:
    """Leakage of many ε₀-DP mechanisms beside the answers: a lower bound on the worst one.

    Given two secrets, a mechanism that speaks for the first multiplies the likelihood by e^{ε₀};
    over the unknown tuples its likelihood is e^{−ε₀·d(u, S)}, d the Hamming distance to a set S of
    those that the first secret makes likely, for every threshold of "likely".
    """
    outputs: list[tuple[Fraction, ...]] = [()]
    if answers is not None:
        levels = _levels(answers)
        corners = itertools.product(*((one[0], one[-1]) for one in levels))
        outputs = list(itertools.islice(corners, 8))  # any outputs give a lower bound
    best = 0.0
    for target, known, unknown in adversaries(len(sizes), admits):
        others = list(itertools.product(*(range(sizes[j]) for j in unknown)))
        apart = np.array([[sum(a != b for a, b in zip(u, v, strict=True)) for v in others]
                          for u in others])  # fmt: skip
        for held in itertools.product(*(range(sizes[j]) for j in known)):
            for output in outputs:
                rows = []
                for secret in range(sizes[target]):
                    cells = [
                        _cell(len(sizes), known, held, target, secret, unknown, values)
                        for values in others
                    ]
                    # Conditional probabilities as fractions: logarithms of rare cells lose digits.
                    masses = [
                        law.get(cell, Fraction(0)) if unknown else Fraction(1) for cell in cells
                    ]
                    total = sum(masses)
                    if total:
                        logs = [log_of(mass / total) if mass else -math.inf for mass in masses]
                        far = [_far(output, answers, cell, scales) for cell in cells]
                        rows.append((np.array(logs), np.array(far)))
                for (p, p_far), (q, q_far) in itertools.permutations(rows, 2):
                    best = max(
                        best, dp_epsilon + _most_told(p - p_far, q - q_far, apart, dp_epsilon)
                    )
    return best


def _far(
    output: tuple[Fraction, ...], answers: Answers | None, cell: Cell, scales: Sequence[float]
) -> float:
    """How far the answer of a cell is from the output, in units of the noise."""
    if answers is None:
        return 0.0
    return sum(float(abs(r - a)) / s for r, a, s in zip(output, answers[cell], scales, strict=True))


def _most_told(p: Array, q: Array, apart: npt.NDArray[Any], dp_epsilon: float) -> float:
    """Largest log-ratio over sets S of the unknown tuples likeliest under p."""
    with np.errstate(invalid="ignore"):
        ratios = np.where(p == -np.inf, -np.inf, np.where(q == -np.inf, np.inf, p - q))
    best = float(_log_sums(p) - _log_sums(q))
    for threshold in set(ratios.tolist()):
        chosen = ratios >= threshold
        likelihood = -dp_epsilon * apart[:, chosen].min(axis=1)
        best = max(best, float(_log_sums(p + likelihood) - _log_sums(q + likelihood)))
    return best


def adversaries(size: int, admits: Admits) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """All admitted (target, known, unknown)."""
    return [
        (target, known, tuple(j for j in range(size) if j != target and j not in known))
        for target in range(size)
        for number in range(size)
        for known in itertools.combinations([j for j in range(size) if j != target], number)
        if admits(target, frozenset(known))
    ]


def _cell(
    size: int,
    known: Sequence[int],
    held: Sequence[int],
    target: int,
    secret: int,
    unknown: Sequence[int],
    values: Sequence[int],
) -> Cell:
    cell = [0] * size
    for axis, value in zip((*known, target, *unknown), (*held, secret, *values), strict=True):
        cell[axis] = value
    return tuple(cell)


def _logs(law: Law, sizes: Sequence[int]) -> Array:
    logs = np.full(tuple(sizes), -np.inf)
    for cell, mass in law.items():
        logs[cell] = log_of(mass)
    return logs


def _levels(answers: Answers) -> list[list[Fraction]]:
    return [sorted(set(column)) for column in zip(*answers.values(), strict=True)]


def _places(answers: Answers, sizes: Sequence[int]) -> Array:
    """The answers from their smallest on: exact differences, rounded once."""
    levels = _levels(answers)
    places = np.empty((*sizes, len(levels)))
    for cell, answer in answers.items():
        places[cell] = [float(a - one[0]) for a, one in zip(answer, levels, strict=True)]
    return places


def _size(sizes: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(sizes[axis] for axis in axes)


def _log_sums(logs: Array) -> Array:
    peak = logs.max(axis=-1)
    safe = np.where(peak > -np.inf, peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - safe[..., np.newaxis]).sum(axis=-1)) + safe)


def _mpf(number: Fraction) -> Any:
    return mpmath.mpf(number.numerator) / mpmath.mpf(number.denominator)
