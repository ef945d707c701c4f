"""The worst pair of laws in two balls, at every output: move mass to where it helps most.

At an output r the density of a law is Σ_s p_s·e^{−|r−s|/λ}. Within total variation τ of p it is
largest after taking τ from the values furthest from r and giving it to the nearest one, smallest
after taking τ from the nearest values and giving it to the furthest one: closed form. Everything
is written out relative to the nearest value that has mass, so no scale is too small; where all
distances are below one scale, densities are kept as their difference from 1.
"""

from __future__ import annotations

import math

import numba
import numpy as np

LOST = 1e-300
"""More than what underflow can take from a sum of masses."""


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def moved_in(law, radius, order, moved):
    """Write the law whose density is largest at the output; order[0] is the nearest value."""
    last = order.size - 1
    # Take the radius from the far end, as much as each value has, …
    left = radius
    taken = 0.0
    for j in range(last, 0, -1):
        p = law[order[j]]
        off = min(left, p)
        left -= off
        taken += off
        moved[j] = p - off
    # … and give what was really taken, not the radius, to the nearest value: no mass is made up.
    moved[0] = law[order[0]] + taken


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def moved_out(law, radius, order, moved):
    """Write the law whose density is smallest at the output."""
    last = order.size - 1
    # The mirror image: from the near end to the furthest value.
    left = radius
    taken = 0.0
    for j in range(last):
        p = law[order[j]]
        off = min(left, p)
        left -= off
        taken += off
        moved[j] = p - off
    moved[last] = law[order[last]] + taken


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def _log_density(moved, distances, decay, change, near, lost):
    """Return the log of Σ p·e^{−distance}; values come nearest first."""
    # Below one scale, the difference from 1 is summed: a tiny leakage keeps its digits.
    total = 0.0
    if near:
        for j in range(moved.size):
            total += moved[j] * change[j]
        return math.log1p(total)
    # Relative to the nearest value that has mass, the first term is that mass: no underflow there,
    # and what the later terms lose to it is covered by `lost`.
    first = 0
    while first < moved.size - 1 and moved[first] <= 0.0:
        first += 1
    weight = 1.0
    total = moved[first]
    for j in range(first + 1, moved.size):
        weight *= decay[j]
        total += weight * moved[j]
    return math.log(total + lost) - distances[first]


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def worst_pair(laws, radii, order, distances, near, above, below):
    """Return the largest log-ratio of two laws in their balls, and where it is.

    Parameters
    ----------
    laws
        laws[event, secret, value], the centres.
    radii
        radii[event, secret].
    order
        order[output, secret, rank]: the values by their distance from the output.
    distances
        Those distances, in scales.
    near
        Whether all of them are below 1.
    above, below
        What is added to numerators and denominators for what they may have lost to underflow: LOST
        and 0 for an upper bound, 0 and LOST for a lower one.

    Returns
    -------
    tuple
        (log-ratio, event, output, secret for, secret against); −inf with fewer than two secrets.
    """
    events, secrets, values = laws.shape
    decay, change = np.ones((secrets, values)), np.zeros((secrets, values))
    moved = np.empty(values)
    high, low = np.empty(secrets), np.empty(secrets)
    best, event, output, first, second = -np.inf, 0, 0, 0, 0
    for r in range(order.shape[0]):
        # What the noise does at this output, for all events: step by step from value to value, for
        # e^{−distance} itself may underflow where a quotient of two does not.
        for v in range(secrets):
            for j in range(values):
                if near:
                    change[v, j] = math.expm1(-distances[r, v, j])
                elif j > 0:
                    decay[v, j] = math.exp(distances[r, v, j - 1] - distances[r, v, j])
        for e in range(events):
            # The largest and the smallest density that each secret's ball allows.
            for v in range(secrets):
                moved_in(laws[e, v], radii[e, v], order[r, v], moved)
                high[v] = _log_density(moved, distances[r, v], decay[v], change[v], near, above)
                moved_out(laws[e, v], radii[e, v], order[r, v], moved)
                low[v] = _log_density(moved, distances[r, v], decay[v], change[v], near, below)
            # Balls are chosen independently of each other, so any two extremes occur together.
            for v in range(secrets):
                for w in range(secrets):
                    if v != w and high[v] - low[w] > best:
                        best = high[v] - low[w]
                        event, output, first, second = e, r, v, w
    return best, event, output, first, second
