"""How much anybody can learn who ignores a set of binary tuples, from pairs of tuples alone.

For a hidden set V let, over all values x of the other tuples,

    O_ab   the odds ratio of tuples a and b,     T_a   the odds of a,     S_a(p)   the ratio of the
    densities of the output given x_a = 1 and x_a = 0, at position p

lie in intervals. Hide one more tuple v. With t the odds of v given x_a = 0, β = O_av, η = S_v and
R_x = S_a given x_v = x, the new S_a is

    (R_0 + t·R_1·β·η)(1 + t) / ((1 + t·β)(1 + t·η)),

and the new O_ab is the same with η = O_bv and R = O_ab. It rises with R; in β it is monotone with
the sign of R_1·η − R_0 and in η with that of R_1·β − R_0, whatever t is; so its extremes over
intervals lie in corners, and there at the ends of t or at a zero of its derivative, a quadratic in
t. The odds of a given x_v = 0 are multiplied by (1 + t·O_av)/(1 + t), which leads to somewhere
between the odds given x_v = 0 and 1.

Starting from extremes over the cells of the table, this bounds all who ignore V, whatever they know
of the others: good for weak dependence, cheap for all. Intervals are widened after every step by
more than its rounding: the stationary t is the exact zero of a quadratic that is off by a few
roundings, so the value there misses the extreme by as little.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_WIDER, _NARROWER = 1 + 1e-12, 1 - 1e-12
_LARGEST_ODDS = 1e6  # beyond, the bound says nothing worth its time


@numba.njit(cache=True, nogil=True, error_model="numpy")
def first_intervals(cells, weights, step, odds, pairs, ratios):
    """Fill level 0, nothing hidden; say whether the bound is worth using for this table.

    odds[level, end, a], pairs[level, end, a, b] and ratios[level, end, a, p] hold the lower (end 0)
    and upper (end 1) ends. Tuple j is bit j of the index of a cell.
    """
    number = weights.size
    for a in range(number):
        low, high = np.inf, 0.0
        for x in range(cells.size):
            if x >> a & 1 == 0:
                if cells[x] <= 0.0 or cells[x | 1 << a] <= 0.0:
                    return False
                odd = cells[x | 1 << a] / cells[x]
                low, high = min(low, odd), max(high, odd)
        odds[0, 0, a], odds[0, 1, a] = low * _NARROWER, high * _WIDER
        if not 1 / _LARGEST_ODDS < low <= high < _LARGEST_ODDS:
            return False
        for b in range(a):
            low, high = np.inf, 0.0
            both = 1 << a | 1 << b
            for x in range(cells.size):
                if x & both == 0:
                    odd = cells[x | both] / cells[x | 1 << a] * (cells[x] / cells[x | 1 << b])
                    low, high = min(low, odd), max(high, odd)
            pairs[0, 0, a, b] = pairs[0, 0, b, a] = low * _NARROWER
            pairs[0, 1, a, b] = pairs[0, 1, b, a] = high * _WIDER
        for p in range(weights[a] + 1):
            ratio = math.exp(step * (2 * p - weights[a]))
            ratios[0, 0, a, p], ratios[0, 1, a, p] = ratio * _NARROWER, ratio * _WIDER
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def hide_in_intervals(level, hidden, v, before, weights, step, odds, pairs, ratios, most):
    """Fill level + 1: the tuples of `hidden` (bits), which add up to `before` steps, and v.

    most[a] receives the bound on the ratio, either way up, of all who attack a.
    """
    low_t, high_t = odds[level, 0, v], odds[level, 1, v]
    for a in range(weights.size):
        if hidden >> a & 1 or a == v:
            continue
        low_b, high_b = pairs[level, 0, a, v], pairs[level, 1, a, v]
        _hide_in_odds(odds[level], odds[level + 1], a, low_b, high_b, low_t, high_t)
        reach, reach_v = before + weights[a], before + weights[v]
        ends = math.exp(step * (reach + weights[v]))  # what the group of all can tell
        worst = 1.0
        for p in range(reach + weights[v] + 1):
            zero, one, own = min(p, reach), max(p - weights[v], 0), min(p, reach_v)
            low_e, high_e = ratios[level, 0, v, own], ratios[level, 1, v, own]
            old, new = ratios[level], ratios[level + 1]
            high = _WIDER * _most(
                old[1, a, zero], old[1, a, one], low_b, high_b, low_e, high_e, low_t, high_t
            )
            low = _NARROWER * _least(
                old[0, a, zero], old[0, a, one], low_b, high_b, low_e, high_e, low_t, high_t
            )
            high, low = min(high, ends * _WIDER), max(low, _NARROWER / ends)
            new[1, a, p], new[0, a, p] = high, low
            worst = max(worst, high, _WIDER / low)
        most[a] = worst
        for b in range(a):
            if hidden >> b & 1 or b == v:
                continue
            low_e, high_e = pairs[level, 0, b, v], pairs[level, 1, b, v]
            high, low = pairs[level, 1, a, b], pairs[level, 0, a, b]
            high = _WIDER * _most(high, high, low_b, high_b, low_e, high_e, low_t, high_t)
            low = _NARROWER * _least(low, low, low_b, high_b, low_e, high_e, low_t, high_t)
            widest = odds[level, 1, a] / odds[level, 0, a] * _WIDER
            high, low = min(high, widest), max(low, _NARROWER / widest)
            pairs[level + 1, 1, a, b] = pairs[level + 1, 1, b, a] = high
            pairs[level + 1, 0, a, b] = pairs[level + 1, 0, b, a] = low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _hide_in_odds(old, new, a, low, high, low_t, high_t):
    """Write the interval of the odds of a after hiding a tuple of odds t and odds ratio low … high.

    Both the odds given 0 and those given 1 lie in the old interval, and the new ones between them.
    """
    less, more = 1.0, 1.0
    if low > 1.0:
        less = (1.0 / low + high_t) / (1.0 + high_t)
        more = min((1.0 + low_t * low) / (1.0 + low_t), (1.0 + high_t * low) / (1.0 + high_t))
    elif high < 1.0:
        less = (1.0 + low_t * high) / (1.0 + low_t)
        more = (1.0 / high + high_t) / (1.0 + high_t)
    new[1, a] = min(old[1, a], old[1, a] * less * _WIDER)
    new[0, a] = max(old[0, a], old[0, a] * more * _NARROWER)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _most(zero, one, low_b, high_b, low_e, high_e, low_t, high_t):
    """Return the largest value over all β, η and t; only corners that no step improves count."""
    best = 0.0
    if one * high_e >= zero and one * high_b >= zero:
        best = max(best, _along(zero, one, high_b, high_e, low_t, high_t, 1.0))
    if one * low_e <= zero and one * low_b <= zero:
        best = max(best, _along(zero, one, low_b, low_e, low_t, high_t, 1.0))
    if one * low_e >= zero and one * high_b <= zero:
        best = max(best, _along(zero, one, high_b, low_e, low_t, high_t, 1.0))
    if one * high_e <= zero and one * low_b >= zero:
        best = max(best, _along(zero, one, low_b, high_e, low_t, high_t, 1.0))
    return best


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _least(zero, one, low_b, high_b, low_e, high_e, low_t, high_t):
    """Return the smallest value over all β, η and t."""
    best = np.inf
    if one * high_e <= zero and one * high_b <= zero:
        best = min(best, _along(zero, one, high_b, high_e, low_t, high_t, -1.0))
    if one * low_e >= zero and one * low_b >= zero:
        best = min(best, _along(zero, one, low_b, low_e, low_t, high_t, -1.0))
    if one * low_e <= zero and one * high_b >= zero:
        best = min(best, _along(zero, one, high_b, low_e, low_t, high_t, -1.0))
    if one * high_e >= zero and one * low_b <= zero:
        best = min(best, _along(zero, one, low_b, high_e, low_t, high_t, -1.0))
    return best


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _along(zero, one, b, e, low_t, high_t, sign):
    """Return the largest (sign 1) or smallest (−1) value over t from low_t to high_t."""
    first, last = _value(low_t, zero, one, b, e), _value(high_t, zero, one, b, e)
    best = max(first, last) if sign > 0.0 else min(first, last)
    top = one * b * e
    square = top * (b + e) - (zero + top) * b * e
    half, constant = b * e * (one - zero), zero + top - zero * (b + e)
    inside = max(half * half - square * constant, 0.0)
    # Both zeros by the form without cancellation; where it divides by zero there is none.
    sum_ = -(half + math.copysign(math.sqrt(inside), half))
    for above, below in ((sum_, square), (constant, sum_)):
        if below != 0.0 and low_t < above / below < high_t:
            value = _value(above / below, zero, one, b, e)
            best = max(best, value) if sign > 0.0 else min(best, value)
    return best


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _value(t, zero, one, b, e):
    return (zero + t * one * b * e) * (1.0 + t) / ((1.0 + t * b) * (1.0 + t * e))
