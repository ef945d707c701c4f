"""All windows around one target, or around every target of a chain that looks alike everywhere."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.engines.chains.walk import Walk
from pdp_calibrate.engines.chains.windows import Rules, Side
from pdp_calibrate.models.base import FloatArray

_NOWHERE = Side("none", 0)


@dataclass(kw_only=True)
class Outcome:
    """What the windows walked so far say, before rounding."""

    upper: float = -np.inf
    """No window that was walked, or stands out of reach, leaks more."""
    upper_sides: tuple[Side, Side] = (_NOWHERE, _NOWHERE)
    """The window behind it."""
    lower: float = -np.inf
    """Some window leaks at least this."""
    lower_sides: tuple[Side, Side] = (_NOWHERE, _NOWHERE)
    """That window."""
    pruned: float = -np.inf
    """No window that was left out leaks more; never above what it was compared with."""
    finished: bool = True
    """Whether time sufficed."""


def walk_around(walk: Walk, rules: Rules, threshold: float, deadline: float) -> Outcome:
    """Compare the secrets in every window that the rules admit.

    Windows that cannot leak more than the threshold, or than the worst so far, are left out.
    """
    outcome = Outcome()
    diameters = walk.setup.diameters

    def visit(left: Side, rows: FloatArray, masses: FloatArray, size: int) -> float:
        ends = rules.ends(left)
        if not ends.used:
            return -np.inf
        costs = np.full(len(ends.known_up), np.inf)
        if rules.may_prune:
            ahead = np.flatnonzero(ends.known_up > -np.inf)
            costs[ahead] = diameters[ahead]
            if np.any(ends.left_far) or np.any(ends.left_far_none):
                costs[ahead] += diameters[left.distance]
        (upper, at, known), (lower, low_at, low_known, end), bound = walk.right_ends(
            rows, masses, size, left.inside, ends, costs, max(threshold, outcome.upper)
        )
        if upper > outcome.upper:
            far_left = bool(ends.left_far[at] if known else ends.left_far_none[at])
            far_right = bool(known and ends.right_far[at])
            outcome.upper = upper
            outcome.upper_sides = (
                left._replace(kind="far") if far_left else left,
                Side("far" if far_right else "known" if known else "none", at),
            )
        if lower > outcome.lower:
            outcome.lower = lower
            outcome.lower_sides = left, Side("known" if low_known else "none", low_at, end)
        if bound > upper:
            outcome.pruned = max(outcome.pruned, bound)
        return bound

    if rules.none_left(0):
        visit(_NOWHERE, *walk.at_start())
    for distance, here, masses, size in walk.lefts(rules.most_left):
        if time.monotonic() > deadline:
            outcome.finished = False
            break
        bound = -np.inf
        for state in rules.possible(distance):
            left = Side("known", distance, state)
            bound = max(bound, visit(left, here[:, state], masses[:, state], size))
        if rules.none_left(distance):
            visit(Side("none", distance), *walk.from_start(distance, here, masses, size))
        if rules.may_prune and diameters[distance] < np.inf:
            rest = bound + diameters[distance]
            if rest <= max(threshold, outcome.upper):
                outcome.pruned = max(outcome.pruned, rest)
                break
    return outcome
