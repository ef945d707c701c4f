"""Compiled comparison of two mixtures on a lattice, for many events at once.

The number s of ones among u unknown members is an atom of the answer. Given the secret v of the
target and t ones among those known, P(s | v, t) ∝ w(v + t + s)·C(u, s), where w(c) is the
probability of one assignment with c ones.

A density at all lattice points costs one sweep to the right and one to the left, in one of three
forms that the caller chooses by the width of the lattice in units of the scale: DEFICITS (what a
density lacks to 1) for narrow ones, so that a tiny leakage keeps its digits; DENSITIES; LOGS for
wide ones, where densities underflow. In the form LOGS, weights and ways are logarithms too.

All entries are sums of products of non-negative numbers, or logarithms of such: nothing cancels
before the final comparison, and `BinaryGroupSearch` charges the rounding to both ends.
"""

from __future__ import annotations

import numba
import numpy as np

DEFICITS, DENSITIES, LOGS = 0, 1, 2


@numba.njit(cache=True)
def _log_add(first, second):
    """Return log(e^first + e^second) without overflow."""
    high, low = max(first, second), min(first, second)
    if low == -np.inf:
        return high
    return high + np.log1p(np.exp(low - high))


@numba.njit(cache=True)
def _law(weights, ways, start, shift, form, out):
    """Write the law of the lattice points to `out`; return whether it exists."""
    size = len(ways)
    out[:] = -np.inf if form == LOGS else 0.0
    # Logarithms: the peak is taken out before their exponentials are added up.
    if form == LOGS:
        peak = -np.inf
        for s in range(size):
            out[s + shift] = weights[start + s] + ways[s]
            peak = max(peak, out[s + shift])
        if peak == -np.inf:
            return False
        total = 0.0
        for s in range(size):
            total += np.exp(out[s + shift] - peak)
        out -= peak + np.log(total)
        return True
    # Masses, divided by their sum; the caller has seen to it that no possible one underflows.
    total = 0.0
    for s in range(size):
        out[s + shift] = weights[start + s] * ways[s]
        total += out[s + shift]
    if total == 0.0:
        return False
    out /= total
    return True


@numba.njit(cache=True)
def _sweep(law, step, form, out):
    """Write the mixture's density at every point, in the given form, to `out`.

    The density at r is Σ_{s ≤ r} p_s·e^{−(r−s)·step}, which a sweep to the right carries along, and
    Σ_{s > r} p_s·e^{−(s−r)·step}, which a sweep to the left does. As deficits both carry what they
    lack to the mass passed so far: l becomes l·e^{−step} + mass·(1 − e^{−step}) at every step.
    """
    decay, lack = np.exp(-step), -np.expm1(-step)
    size = len(law)
    here = -np.inf if form == LOGS else 0.0
    mass = 0.0
    # To the right: atoms at or before the point.
    for r in range(size):
        if form == LOGS:
            here = _log_add(here - step, law[r])
        elif form == DENSITIES:
            here = here * decay + law[r]
        else:
            here = here * decay + mass * lack
            mass += law[r]
        out[r] = here
    here = -np.inf if form == LOGS else 0.0
    mass = 0.0
    # To the left: atoms behind the point.
    for r in range(size - 1, -1, -1):
        if form == LOGS:
            out[r] = _log_add(out[r], here)
            here = _log_add(here, law[r]) - step
        elif form == DENSITIES:
            out[r] += here
            here = (here + law[r]) * decay
        else:
            here = here * decay + mass * lack
            out[r] += here
            mass += law[r]


@numba.njit(cache=True)
def _excess(first, second, form):
    """Measure how far the first density exceeds the second; `_log_ratio` finishes it."""
    if form == DEFICITS:
        return (second - first) / (1 - second)
    return first / second if form == DENSITIES else first - second


@numba.njit(cache=True)
def _log_ratio(excess, form):
    """Turn what `_excess` measured into a log-ratio."""
    if excess == -np.inf or form == LOGS:
        return excess
    return np.log1p(excess) if form == DEFICITS else np.log(excess)


@numba.njit(cache=True)
def worst_event(weights, ways, own, known, step, form):
    """Compare the two secrets of a target, for every number of ones that are known.

    Parameters
    ----------
    weights
        w of the group from which the unknown members outside the query were summed out, up to a
        factor.
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
        The largest log-ratio with (ones known, point, secret spoken for), and the same over the
        outermost points only. The ratio is −inf where no event has two secrets.
    """
    size = len(ways) + own
    laws, found = np.empty((2, size)), np.empty((2, size))
    best, best_ones, best_point, best_secret = -np.inf, 0, 0, 0
    tail, tail_ones, tail_point, tail_secret = -np.inf, 0, 0, 0
    for ones in range(known + 1):
        # The laws of the sum under both secrets; an event under which one of them is impossible
        # tells nothing apart.
        if not _law(weights, ways, ones, 0, form, laws[0]):
            continue
        if not _law(weights, ways, ones + 1, own, form, laws[1]):
            continue
        _sweep(laws[0], step, form, found[0])
        _sweep(laws[1], step, form, found[1])
        # The supremum over all outputs is attained at a lattice point (see `core.mixtures`), the
        # limits r → ±∞ at the outermost ones.
        for point in range(size):
            up = _excess(found[1, point], found[0, point], form)
            down = _excess(found[0, point], found[1, point], form)
            here, secret = (up, 1) if up >= down else (down, 0)
            if here > best:
                best, best_ones, best_point, best_secret = here, ones, point, secret
            if (point == 0 or point == size - 1) and here > tail:
                tail, tail_ones, tail_point, tail_secret = here, ones, point, secret
    return (
        (_log_ratio(best, form), best_ones, best_point, best_secret),
        (_log_ratio(tail, form), tail_ones, tail_point, tail_secret),
    )


@numba.njit(cache=True)
def without_members(log_weights, members):
    """Return log w of the group after 0, 1, … of its members are summed out.

    Leaving one member out adds the two ways to fill it: w'(c) = w(c) + w(c + 1).
    """
    reduced = np.full((members + 1, len(log_weights)), -np.inf)
    reduced[0] = log_weights
    for gone in range(1, members + 1):
        for ones in range(len(log_weights) - gone):
            reduced[gone, ones] = _log_add(reduced[gone - 1, ones], reduced[gone - 1, ones + 1])
    return reduced
