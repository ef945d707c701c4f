"""Two secrets of a yes/no group compared, for every number of ones among the known members.

The number s of ones among u unknown members is an atom of the answer. Given the secret v of the
target and t ones among the known members, P(s | v, t) ∝ w(v + t + s)·C(u, s), where w(c) is the
probability of one assignment with c ones. Forms and rounding are those of `core.mixtures`; in the
form LOGS, weights and ways are logarithms too.

`worst_event` compares all events at once, in NumPy. `kernels.worst_event` does the same in compiled
code, one event at a time, from the same `law`, `sweep` and `excess`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import LOGS, excess, log_ratio, sweep

_LOWEST = -1.7e308


class Worst(NamedTuple):
    """The largest log-ratio among some events and outputs, and where it is attained."""

    gain: float
    """The log-ratio; −inf where no event has two secrets."""
    ones: int
    """How many of the known members hold a one."""
    point: int
    """The lattice point of the output."""
    secret: int
    """The value that the output favours."""


def law(weights: Any, ways: Any, start: Any, shift: int, form: int, out: Any) -> Any:
    """Write the law of the lattice points to `out`; return which events can happen.

    `start` is the number of ones among target and known members: a number, or one per event.
    """
    size = len(ways)
    out[:] = -np.inf if form == LOGS else 0.0
    if form == LOGS:
        # The largest logarithm is factored out before exponentials are added; for an impossible
        # event it is replaced by the lowest float, so that −inf − (−inf) never occurs.
        peak = weights[start] + ways[0]
        for s in range(size):
            out[s + shift] = weights[start + s] + ways[s]
            peak = np.maximum(peak, out[s + shift])
        possible = peak > -np.inf
        peak = np.maximum(peak, _LOWEST)
        total = peak * 0.0
        for s in range(size):
            total = total + np.exp(out[s + shift] - peak)
        moved = peak + np.log(total + (total == 0.0))
        for s in range(size):
            out[s + shift] = out[s + shift] - moved
        return possible
    # Masses, divided by their sum; the caller ensures that no possible one underflows.
    total = weights[start] * 0.0
    for s in range(size):
        out[s + shift] = weights[start + s] * ways[s]
        total = total + out[s + shift]
    divisor = total + (total == 0.0)
    for s in range(size):
        out[s + shift] = out[s + shift] / divisor
    return total > 0.0


def worst_event(
    weights: FloatArray, ways: FloatArray, own: int, known: int, step: float, form: int
) -> tuple[Worst, Worst]:
    """Compare the two secrets of a target, for every number of ones among the known members.

    Parameters
    ----------
    weights
        w of the group after summing out the unknown members outside the query, up to a factor.
    ways
        C(u, s) for s = 0 … u, u being the number of unknown members inside, up to a factor.
    own
        1 if the target itself is inside the query, else 0.
    known
        How many members are known.
    step
        Distance of neighbouring atoms in units of the scale.
    form
        DEFICITS, DENSITIES or LOGS.

    Returns
    -------
    tuple
        The worst of all outputs, and the worst of the outermost ones.
    """
    size, ones = len(ways) + own, np.arange(known + 1)
    laws, found = np.empty((2, 2, size, known + 1))
    possible = law(weights, ways, ones, 0, form, laws[0])
    possible &= law(weights, ways, ones + 1, own, form, laws[1])
    for secret in (0, 1):
        sweep(laws[secret], step, form, found[secret])
    # An event under which one secret is impossible compares nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        up, down = excess(found[1], found[0], form), excess(found[0], found[1], form)
    here = np.where(possible, np.maximum(up, down), -np.inf).T
    outermost = here[:, [0, -1]]

    def named(event: int, point: int) -> Worst:
        gain, secret = float(here[event, point]), int(up[point, event] >= down[point, event])
        return Worst(log_ratio(gain, form), event, point, secret)

    best, tail = divmod(int(here.argmax()), size), divmod(int(outermost.argmax()), 2)
    return named(*best), named(tail[0], (size - 1) * tail[1])


def without_members(log_weights: FloatArray, members: int) -> FloatArray:
    """Return log w of the group after summing out 0, 1, … of its members.

    Summing one member out adds its two possible values: w'(c) = w(c) + w(c + 1).
    """
    reduced = np.full((members + 1, len(log_weights)), -np.inf)
    reduced[0] = log_weights
    for gone in range(1, members + 1):
        left = len(log_weights) - gone
        before = reduced[gone - 1]
        reduced[gone, :left] = np.logaddexp(before[:left], before[1 : left + 1])
    return reduced
