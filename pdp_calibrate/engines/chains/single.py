"""One adversary along a chain: one window, and the limits r → ±∞ where it is long."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from pdp_calibrate.engines.additive import plain_dp
from pdp_calibrate.engines.chains.around import Outcome
from pdp_calibrate.engines.chains.kernels import NOT, TAILS, WHOLE, tilted_walk
from pdp_calibrate.engines.chains.placing import Place, likely_course, witness_in
from pdp_calibrate.engines.chains.setup import Setup
from pdp_calibrate.engines.chains.walk import Walk
from pdp_calibrate.engines.chains.windows import Ends, Side
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models.base import FloatArray


class Tail(NamedTuple):
    """The limit of a log-ratio far out, and who attains it."""

    gain: float
    known: tuple[int, int]
    secrets: tuple[int, int]
    sign: int


def search_one(problem: Problem, setup: Setup, scale: float) -> Found:
    """Evaluate the only adversary of a problem."""
    knowledge = problem.knowledge
    (target,), known = knowledge.targets, knowledge.known or frozenset()
    place = Place.nearest(setup.length, target, known)
    unknown = tuple(p for p in range(setup.length) if p != target and p not in known)
    if not unknown and not problem.hidden_noise:
        return plain_dp(problem, target, scale, likely_course(setup))
    hidden = problem.hidden_noise or len(unknown) > place.inside
    reach = setup.reach(scale)
    left, right = place.sides(setup.length, reach)
    walk = Walk(
        setup, setup.lattice(reach), scale, target=target, left=left.distance, right=right.distance
    )
    outcome = one_window(walk, place, left, right, code=TAILS if hidden else WHOLE)
    value = max(0.0, outcome.upper + walk.error)
    found = Found(value=value, lower=0.0, witness=None, target=target, unknown=unknown)
    if "far" in (left.kind, right.kind):
        value = min(value, float(setup.bounds(scale)[target]))
        return with_tail(problem, setup, scale, place, dataclasses.replace(found, value=value))
    if outcome.lower == -np.inf:
        return found
    lower = max(0.0, outcome.lower - walk.error)
    witness = witness_in(problem, walk, place, outcome.lower_sides, unknown, hidden=hidden)
    return dataclasses.replace(found, lower=lower, witness=witness)


def one_window(walk: Walk, place: Place, left: Side, right: Side, code: int) -> Outcome:
    """Compare the secrets in one window, for all values of its ends."""
    setup, outcome = walk.setup, Outcome()
    cost = sum(setup.diameters[side.distance] for side in (left, right) if side.kind == "far")
    steps = right.distance + 1 + (right.kind == "none")
    up, low = np.full(steps, -np.inf), np.full(steps, NOT)
    nothing = np.zeros(steps, dtype=np.bool_)
    up[right.distance], low[right.distance] = cost, code
    none = right.kind == "none"
    blank_up, blank_low = np.full(steps, -np.inf), np.full(steps, NOT)
    ends = Ends(
        known_up=blank_up if none else up,
        known_low=blank_low if none else low,
        none_up=up if none else blank_up,
        none_low=low if none else blank_low,
        left_far=nothing,
        left_far_none=nothing,
        right_far=nothing,
    )

    def visit(side: Side, rows: FloatArray, masses: FloatArray, size: int) -> None:
        (upper, _, _), (lower, _, _, end), _ = walk.right_ends(
            rows, masses, size, side.inside, ends, np.full(steps, np.inf), np.inf
        )
        outcome.upper = max(outcome.upper, upper)
        if lower > outcome.lower:
            outcome.lower, outcome.lower_sides = lower, (side, right._replace(value=end))

    if left == Side("none", 0):
        visit(left, *walk.at_start())
        return outcome
    for distance, here, masses, size in walk.lefts(left.distance):
        if distance < left.distance:
            continue
        if left.kind == "none":
            visit(left, *walk.from_start(distance, here, masses, size))
            continue
        for state in np.flatnonzero(setup.support[place.target - distance]):
            side = left._replace(value=int(state))
            visit(side, here[:, state], masses[:, state], size)
    return outcome


def with_tail(problem: Problem, setup: Setup, scale: float, place: Place, found: Found) -> Found:
    """Take the limit r → ±∞ as lower end, which costs one pass along any window."""
    tail = _tail(setup, scale, place)
    if tail is None:
        return found
    per_step = setup.states + 12 + 4 * (setup.largest_log + float(setup.ranges.max()) / scale)
    error = 8 * UNIT_ROUNDOFF * (place.inside + 4) * per_step + 8 * UNIT_ROUNDOFF * abs(tail.gain)
    lower = max(0.0, tail.gain - error)
    if lower <= found.lower:
        return found
    witness = place.witness(
        problem, setup, tail.known, tail.secrets, tail.sign * math.inf, found.unknown
    )
    return dataclasses.replace(found, lower=lower, witness=witness)


def _tail(setup: Setup, scale: float, place: Place) -> Tail | None:
    """Return the larger of the limits r → +∞ and r → −∞.

    There the density is E[e^{±f/λ} | x_i, x_K], in which left and right side are factors.
    """
    best: Tail | None = None
    flat = [_factors(setup, place, None, left=side) for side in (True, False)]
    for sign in (1, -1):
        tilts = sign * setup.added / scale
        total = tilts[place.target][:, np.newaxis] - tilts[place.target]
        choices = []
        for side, weights in zip((True, False), flat, strict=True):
            with np.errstate(invalid="ignore"):  # −inf − −inf marks what cannot happen
                gains = _factors(setup, place, tilts, left=side) - weights
                apart = gains[:, :, np.newaxis] - gains[:, np.newaxis, :]
            apart = np.where(np.isnan(apart), -np.inf, apart)
            total = total + apart.max(axis=0)
            choices.append(apart.argmax(axis=0))
        first, second = np.unravel_index(int(total.argmax()), total.shape)
        gain = float(total[first, second])
        if gain > -np.inf and (best is None or gain > best.gain):
            ends = int(choices[0][first, second]), int(choices[1][first, second])
            best = Tail(gain, ends, (int(first), int(second)), sign)
    return best


def _factors(setup: Setup, place: Place, tilts: FloatArray | None, *, left: bool) -> FloatArray:
    """Return the log-weight of one side for each value of its end and each secret."""
    rows = slice(place.low + 1, place.target) if left else slice(place.target + 1, place.high)
    inner = np.zeros_like(setup.added[rows]) if tilts is None else tilts[rows]
    inner = np.ascontiguousarray(inner if left else inner[::-1])
    kernel = setup.log_kernel
    if left and place.low < 0:
        starts = [setup.log_start]
    elif left:
        impossible = np.full(len(kernel), -np.inf)
        starts = [
            row if here else impossible
            for row, here in zip(kernel, setup.support[place.low], strict=True)
        ]
    else:
        starts = [np.zeros(len(kernel))] if place.high == setup.length else list(kernel.T)
    return np.array([tilted_walk(np.array(start), inner, left, kernel) for start in starts])
