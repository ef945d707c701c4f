"""Leakage over all pairs of laws near given ones, written from the definition alone.

Shares no code with the engine: laws are dictionaries, mass is moved by a linear program or by hand.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from scipy.optimize import linprog

from tests.oracles.adversaries import Admits, every_adversary, everyone

Law = dict[float, float]
Radius = Callable[[float, int], float]
"""From the mass (or count) of an event and the number of possible values to its radius."""


def radius_of_sample(sizes: Sequence[int], confidence: float) -> Radius:
    """Radii from the union bound over all events and sets of values."""
    events = sum(
        size * math.prod(other + 1 for place, other in enumerate(sizes) if place != axis)
        for axis, size in enumerate(sizes)
    )

    def radius(rows: float, values: int) -> float:
        if values == 1:
            return 0.0
        return math.sqrt(math.log((2**values - 2) * events / (1 - confidence)) / (2 * rows))

    return radius


def worst_over_balls(
    masses: np.ndarray,
    parts: Sequence[Sequence[float]],
    scale: float,
    radius: Radius,
    *,
    admits: Admits = everyone,
    program: bool = False,
) -> float:
    """Try every adversary, event, pair of secrets and atom; `parts` are what values add."""
    move = _by_program if program else _by_hand
    worst = 0.0
    for target, known in every_adversary(masses.ndim, admits):
        own = parts[target]
        unknown = [j for j in range(masses.ndim) if j != target and j not in known]
        if not unknown:
            worst = max(worst, (max(own) - min(own)) / scale)
            continue
        possible = sorted(
            {_clean(sum(choice)) for choice in itertools.product(*(parts[j] for j in unknown))}
        )
        for held in itertools.product(*(range(masses.shape[j]) for j in known)):
            event = dict(zip(known, held, strict=True))
            balls = [
                _ball(masses, parts, {**event, target: secret}, possible, radius)
                for secret in range(len(own))
            ]
            outputs = {_clean(value + s) for value in own for s in possible}
            for output in outputs:
                ends = [
                    move(law, reach, [math.exp(-abs(output - value - s) / scale) for s in possible])
                    for value, (law, reach) in zip(own, balls, strict=True)
                ]
                for (_, high), (low, _) in itertools.permutations(ends, 2):
                    worst = max(worst, math.log(high / low))
    return worst


def _ball(
    masses: np.ndarray,
    parts: Sequence[Sequence[float]],
    fixed: dict[int, int],
    possible: list[float],
    radius: Radius,
) -> tuple[list[float], float]:
    """The law of what the other tuples add, given secret and known values, and its radius."""
    law: Law = dict.fromkeys(possible, 0.0)
    unknown = [axis for axis in range(masses.ndim) if axis not in fixed]
    for cell in np.ndindex(masses.shape):
        if all(cell[axis] == place for axis, place in fixed.items()):
            law[_clean(sum(parts[j][cell[j]] for j in unknown))] += float(masses[cell])
    total = math.fsum(law.values())
    if total == 0:
        return [1 / len(law)] * len(law), 1.0
    return [law[s] / total for s in possible], min(1.0, radius(total, len(possible)))


def _by_hand(law: list[float], reach: float, kernel: list[float]) -> tuple[float, float]:
    """Smallest and largest Σ p·k within total variation `reach` of the law."""
    ends = []
    for sign in (1, -1):
        order = sorted(range(len(law)), key=lambda place: sign * kernel[place])
        moved, left = list(law), reach
        for place in reversed(order):  # take from the end that must shrink
            off = min(left, moved[place]) if place != order[0] else 0.0
            moved[place] -= off
            moved[order[0]] += off
            left -= off
        ends.append(math.fsum(p * k for p, k in zip(moved, kernel, strict=True)))
    return ends[0], ends[1]


def _by_program(law: list[float], reach: float, kernel: list[float]) -> tuple[float, float]:
    """The same as a linear program: p = law + up − down, Σ up = Σ down ≤ reach."""
    size = len(law)
    equal = [[1.0] * size + [-1.0] * size]
    below = [[1.0] * size + [0.0] * size]
    below += [
        [-float(k == j) for k in range(size)] + [float(k == j) for k in range(size)]
        for j in range(size)
    ]
    limits = [reach, *law]
    ends = []
    for sign in (1.0, -1.0):
        cost = [sign * k for k in kernel] + [-sign * k for k in kernel]
        found: Any = linprog(cost, A_ub=below, b_ub=limits, A_eq=equal, b_eq=[0.0])
        assert found.status == 0
        ends.append(float(np.dot(law, kernel)) + sign * found.fun)
    return ends[0], ends[1]


def _clean(value: float) -> float:
    return round(value, 9)


def worst_of_pair(
    cells: np.ndarray, parts: Sequence[Sequence[float]], scale: float, radius: float
) -> Any:
    """The same for two tuples in 60 digits, all floats taken as exact."""
    with mpmath.workdps(60):
        worst = mpmath.mpf(0)
        for target in (0, 1):
            masses = cells if target == 0 else cells.T
            own, other = ([mpmath.mpf(value) for value in parts[j]] for j in (target, 1 - target))
            worst = max(worst, (max(own) - min(own)) / scale)
            for output in {value + s for value in own for s in other}:
                ends = []
                for value, row in zip(own, masses, strict=True):
                    total = mpmath.fsum(mpmath.mpf(float(p)) for p in row)
                    law = [mpmath.mpf(float(p)) / total for p in row] if total else None
                    kernel = [mpmath.exp(-abs(output - value - s) / scale) for s in other]
                    ends.append(_exact_ends(law, mpmath.mpf(radius), kernel))
                for (_, high), (low, _) in itertools.permutations(ends, 2):
                    worst = max(worst, mpmath.log(high / low))
        return worst


def _exact_ends(law: list[Any] | None, radius: Any, kernel: list[Any]) -> tuple[Any, Any]:
    if law is None:
        return min(kernel), max(kernel)
    ends = []
    for order in (
        sorted(range(len(law)), key=kernel.__getitem__, reverse=r) for r in (False, True)
    ):
        moved, left = list(law), radius
        for place in reversed(order[1:]):
            off = min(left, moved[place])
            moved[place], moved[order[0]], left = (
                moved[place] - off,
                moved[order[0]] + off,
                left - off,
            )
        ends.append(mpmath.fdot(moved, kernel))
    return ends[0], ends[1]
