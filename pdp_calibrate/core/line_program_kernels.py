"""Compiled bounds on two laws on a lattice, compared by every slowly changing likelihood.

The recursion, and why its result is safe, are explained in `core.line_program`.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pdp_calibrate.core.line_program import ITERATIONS
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF


@numba.njit(cache=True, no_cfunc_wrapper=True)
def _recursion(first, first_share, second, second_share, size, ratio, up, unit, tiny):
    """Return W_0 rounded up, as `line_program._upper` does, and P·g/Q·g of the g it followed.

    The laws are first·first_share and second·second_share.
    """
    value = error = above = below = 0.0
    for s in range(size - 1, -1, -1):
        p, q = first[s] * first_share, second[s] * second_share
        if s < size - 1:
            # One step of the likelihood: up where the value might be positive, at its highest;
            # down where even that is negative. A product rounds by less than a unit of its size.
            highest = value + error
            if highest > 0.0:
                factor, value, error = up, highest * up, 0.0
            else:
                factor = 1.0 / up
                value, error = value * factor, error * factor
            error += unit * abs(value)
            above, below = above * factor, below * factor
        # Add this atom. Its masses err by a unit of their size, and by underflow.
        scaled = ratio * q
        value += p - scaled
        error += unit * (p + scaled) + tiny * (1.0 + ratio) + unit * abs(value)
        above, below = above + p, below + q
    return value + error, above / below


@numba.njit(cache=True, no_cfunc_wrapper=True)
def _monotone(first, first_share, second, second_share, size, up):
    """Return the larger ratio of the likelihoods that climb, or fall, all the way.

    They are often the worst, so the iteration starts there; nothing depends on their rounding.
    """
    above = below = 0.0
    high = low = 0.0
    for s in range(size):
        p, q = first[s] * first_share, second[s] * second_share
        above, below = above / up + p, below / up + q  # climbing, from its end
        back = size - 1 - s
        high = high / up + first[back] * first_share
        low = low / up + second[back] * second_share
    return max(above / below, high / low)


@numba.njit(cache=True, no_cfunc_wrapper=True)
def widest(rows, masses, size, step, unit, tiny, floor):
    """Bound log max P·g/Q·g over all slowly changing g, and all pairs P, Q of possible rows.

    Masses err by at most the share `unit` and, after division by their sum, by `tiny`.
    Bounds below `floor` count as `floor`. −inf if fewer than two rows have mass.
    """
    length = step * (size - 1) * (1.0 + 8.0 * UNIT_ROUNDOFF)
    up = math.exp(step)
    precision = 4.0 * UNIT_ROUNDOFF * (size + 16) + 4.0 * unit
    rounding = 16.0 * UNIT_ROUNDOFF * (1.0 + length)
    ratio, possible, best = 1.0, 0, -np.inf
    for one in range(len(masses)):
        if masses[one] <= 0.0:
            continue
        possible += 1
        for other in range(len(masses)):
            if other == one or masses[other] <= 0.0:
                continue
            first, second = 1.0 / masses[one], 1.0 / masses[other]
            # A pair that is proved to stay below the floor needs no ratio of its own. The trial
            # is rounded down, so that its proof is one for the floor.
            if floor > 0.0:
                trial = math.exp(floor) * (1.0 - 4.0 * UNIT_ROUNDOFF)
                left, _ = _recursion(
                    rows[one], first, rows[other], second, size, trial, up, unit, tiny
                )
                if left <= 0.0:
                    best = max(best, floor)
                    continue
            # Dinkelbach's iteration. Only the largest ratio of all pairs matters, so a pair starts
            # from that of the pairs before it: where it is proved at once, it is no worse.
            ratio = max(ratio, _monotone(rows[one], first, rows[other], second, size, up))
            slack, proved = precision, False
            for _ in range(ITERATIONS):
                trial = ratio * (1.0 + slack)
                left, found = _recursion(
                    rows[one], first, rows[other], second, size, trial, up, unit, tiny
                )
                if left <= 0.0:
                    best, proved = max(best, math.log(trial) + rounding), True
                    break
                if found > trial:
                    ratio = found
                else:
                    slack *= 2.0
            if not proved:
                return length
    if possible < 2:
        return -np.inf
    return min(best, length)


@numba.njit(cache=True, no_cfunc_wrapper=True)
def widest_of(laws, masses, prices, step, units, tiny):
    """Return the largest bound `widest` on many sets of rows, each with its price and its unit.

    A set need not be resolved below the largest bound so far, less its own price.
    """
    best = -np.inf
    for place in range(len(laws)):
        floor = max(0.0, best - prices[place])
        found = widest(laws[place], masses[place], laws.shape[2], step, units[place], tiny, floor)
        best = max(best, found + prices[place])
    return best
