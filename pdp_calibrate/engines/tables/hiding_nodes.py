"""Compiled search of every adversary of a table of binary tuples, one hidden set at a time.

For a hidden set V a node holds, for every value x of all other tuples and every position p of the
output, the filtered mass G(p, x) = Σ over x_V of P(x, x_V)·e^{−c·|p − f(x_V)|}, and the mass m(x).
Whoever attacks tuple a and ignores V knows all others: the two secrets are neighbouring x, and

    p(r | x_a = 1, x_K) / p(r | x_a = 0, x_K) = (G/m)(p − w_a, x_a = 1) / (G/m)(p, x_a = 0)

with p the output less what is known. So one node serves all targets and all known values, and
hiding one more tuple is one sum. Every set is visited, from the set without its last tuple, so even
the worst table takes no longer; for weak dependence `hiding_bound` spares most comparisons.

Answers are whole multiples of a step; tuple j adds 0 or weights[j] steps; c is the step in scales.
Tuples hidden first have the lowest bits of x, so most sums and comparisons run along the memory.
"""

# Selects written out are what the compiler turns into vector instructions.
# ruff: noqa: FURB136
from __future__ import annotations

import math

import numba
import numpy as np

from pdp_calibrate.engines.tables.hiding_bound import hide_in_intervals

# Covers single precision: two rounded densities, a rounded factor, a difference. What is so close
# to the bar is looked at again in double precision.
_MARGIN = 1e-6
_LONG_RUN = 32  # numbers in a row from which a plain loop is the faster one
_CHUNK = 1024  # numbers compared with one mask
# Densities are kept times this. They are at least e^{−40} and bars at most e^{50} (see `hiding`):
# products of their differences neither vanish nor overflow in single precision.
_UNIT = 2.0**24
_BOUNDED_BITS = 9  # nodes with fewer known tuples are compared sooner than bounded
_TRIALS, _WORTH = 64.0, 0.1  # bounds of a level that spare less than this share are given up


@numba.njit(cache=True, nogil=True, error_model="numpy")
def explore_hidden(
    cells, weights, step, prefix, chosen, targets, fewest, most, shared, stop,
    bounded, odds, pairs, ratios, room, scaled, found,
):  # fmt: skip
    """Visit all sets that hide just `chosen` (bits) of the first `prefix` tuples.

    Parameters
    ----------
    cells
        The table, flat; tuple j is bit j of the index.
    weights, step
        What each tuple adds, in steps, and the length of a step in scales.
    prefix, chosen
        The part of the sets to visit.
    targets
        Per tuple, whether it is attacked.
    fewest, most
        How many tuples may be hidden.
    shared
        [largest ratio so far, ratio that is enough]; the first is raised.
    stop
        stop[0] becomes true when time is up.
    bounded
        Whether the intervals of `hiding_bound` are filled at level 0.
    odds, pairs, ratios
        These intervals.
    room, scaled
        Room for all nodes of a path, and for one node in single precision and 64 numbers more.
    found
        Receives (hidden set as bits, target, x as bits of the tuples not hidden, position, whether
        the output speaks for the value that adds more).

    Returns
    -------
    tuple
        (largest ratio found, or 0; whether all sets were visited).
    """
    number = weights.size
    masks = np.empty((_LONG_RUN, _CHUNK), dtype=np.float32)
    for run in range(1, _LONG_RUN):
        for x in range(_CHUNK):
            masks[run, x] = 1.0 if x & run == 0 else 0.0
    inverses = np.empty(cells.size)
    begins = np.empty(number + 2, dtype=np.int64)
    added = np.zeros(number + 1, dtype=np.int64)  # steps that the hidden tuples can add
    last = np.full(number + 1, -1, dtype=np.int64)
    begins[0], begins[1] = 0, 2 * cells.size
    room[: cells.size] = cells
    room[cells.size : 2 * cells.size] = cells
    ceilings = np.full((number + 1, number), np.inf)
    has_bound = np.zeros(number + 1, dtype=np.bool_)
    has_bound[0] = bounded
    tried, spared = np.zeros(number + 1), np.zeros(number + 1)
    hidden, level, best = 0, 0, 0.0
    place, start, is_new = 0, -1, False
    while True:
        if start < 0 and place >= prefix:  # the prefix is done: from here on visit
            start, place, is_new = level, prefix, level > 0
        if start >= 0 and is_new and fewest <= level <= most:
            best = _compare(
                room, begins[level], number - level, added[level], step, weights, hidden, targets,
                ceilings[level], shared, scaled, inverses, masks, best, found,
            )  # fmt: skip
        is_new = False
        if stop[0] or shared[0] > shared[1]:
            return best, False
        if start < 0 and chosen >> place & 1 == 0:
            place += 1
        elif start < 0 or (place < number and level < most):
            bits = number - level - 1
            useful = spared[bits] >= _WORTH * tried[bits] or tried[bits] < _TRIALS
            has_bound[level + 1] = has_bound[level] and bits >= _BOUNDED_BITS and useful
            if has_bound[level + 1]:
                hide_in_intervals(
                    level, hidden, place, added[level], weights, step,
                    odds, pairs, ratios, ceilings[level + 1],
                )  # fmt: skip
                for a in range(number):
                    if a != place and hidden >> a & 1 == 0:
                        tried[bits] += 1.0 / bits
                        spared[bits] += int(ceilings[level + 1, a] <= shared[0]) / bits
            else:
                ceilings[level + 1] = np.inf
            _hide(room, begins, level, number, place, hidden, weights[place], added, step)
            level += 1
            last[level] = place
            hidden |= 1 << place
            place += 1
            is_new = True
        elif level == start:
            return best, True
        else:
            place = last[level] + 1
            hidden &= ~(1 << last[level])
            level -= 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _hide(room, begins, level, number, place, hidden, weight, added, step):
    """Write the node with one tuple more hidden behind the node it comes from."""
    size = 1 << (number - level)
    half, run = size // 2, 1
    for other in range(place):
        if hidden >> other & 1 == 0:
            run *= 2
    before = added[level]
    after = before + weight
    added[level + 1] = after
    at, to = begins[level], begins[level + 1]
    begins[level + 2] = to + (after + 2) * half
    _add(room, at, at, to, size, run, 1.0, 1.0)
    for p in range(after + 1):
        # Beyond the answers that can occur a filtered mass falls by e^{−c} per step.
        zero, one = at + (1 + min(p, before)) * size, at + (1 + max(p - weight, 0)) * size
        fall, other_fall = (
            math.exp(-step * max(p - before, 0)),
            math.exp(-step * max(weight - p, 0)),
        )
        _add(room, zero, one, to + (1 + p) * half, size, run, fall, other_fall)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add(room, zero, one, to, size, run, factor, other_factor):
    """Add one row where the tuple is 0 and another where it is 1."""
    for block in range(0, size, 2 * run):
        first = room[zero + block : zero + block + run]
        second = room[one + block + run : one + block + 2 * run]
        total = room[to + block // 2 : to + block // 2 + run]
        for x in range(run):
            total[x] = factor * first[x] + other_factor * second[x]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _compare(
    room, at, bits, added, step, weights, hidden, targets, ceilings, shared,
    scaled, inverses, masks, best, found,
):  # fmt: skip
    """Raise the best ratio to that of all who ignore just the hidden tuples."""
    size = 1 << bits
    mass = room[at : at + size]
    is_filled = False
    bit = -1
    for target in range(weights.size):
        if hidden >> target & 1:
            continue
        bit += 1
        if not targets[target] or ceilings[target] <= shared[0]:
            continue
        if not is_filled:
            _fill_scaled(room, at, size, added, scaled, inverses)
            is_filled = True
        weight = weights[target]
        for p in range(added + weight + 1):
            zero, one = min(p, added), max(p - weight, 0)
            # The ratio is e^{fall}·(row of x_a = 1)/(row of x_a = 0).
            fall = step * (max(p - added, 0) - max(weight - p, 0))
            above = np.float32(math.exp(-fall) * shared[0] * (1 - _MARGIN))
            below = np.float32(math.exp(-fall) / shared[0] * (1 + _MARGIN))
            if _any_beyond(scaled, zero * size, one * size, size, 1 << bit, above, below, masks):
                zeros = room[at + (1 + zero) * size : at + (2 + zero) * size]
                ones = room[at + (1 + one) * size : at + (2 + one) * size]
                ratio, x, upwards = _largest(mass, zeros, ones, 1 << bit, math.exp(fall))
                if ratio > max(best, shared[0]):
                    best = ratio
                    found[0], found[1], found[2], found[3], found[4] = hidden, target, x, p, upwards
                    shared[0] = ratio
    return best


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_scaled(room, at, size, added, scaled, inverses):
    """Write all densities in single precision; NaN, which exceeds nothing, where x cannot occur."""
    inverse, mass = inverses[:size], room[at : at + size]
    for x in range(size):
        inverse[x] = _UNIT / mass[x] if mass[x] > 0.0 else np.nan
    for p in range(added + 1):
        row = room[at + (1 + p) * size : at + (2 + p) * size]
        density = scaled[p * size : (p + 1) * size]
        for x in range(size):
            density[x] = row[x] * inverse[x]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _any_beyond(scaled, zeros, ones, size, run, above, below, masks):
    """Whether the ratio ones/zeros of some neighbours is larger than `above` or less than `below`.

    y is beyond the interval from b·z to a·z if (y − a·z)(y − b·z) > 0; such products are added up.
    """
    total, nothing = np.float32(0), np.float32(0)
    if run >= _LONG_RUN:
        for block in range(0, size, 2 * run):
            first = scaled[zeros + block : zeros + block + run]
            second = scaled[ones + block + run : ones + block + 2 * run]
            for x in range(run):
                beyond = (second[x] - above * first[x]) * (second[x] - below * first[x])
                total += beyond if beyond > nothing else nothing
        return total > nothing
    # Compare all numbers `run` apart; those that are no neighbours count nothing.
    length = min(size, masks.shape[1])
    mask = masks[run, :length]
    for block in range(0, size, length):
        first = scaled[zeros + block : zeros + block + length]
        second = scaled[ones + block + run : ones + block + run + length]
        for x in range(length):
            beyond = (second[x] - above * first[x]) * (second[x] - below * first[x])
            total += mask[x] if beyond > nothing else nothing
    return total > nothing


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _largest(mass, zeros, ones, run, factor):
    """Return the largest ratio of two neighbours, either way up, and where."""
    best, place, upwards = 0.0, 0, 0
    for block in range(0, mass.size, 2 * run):
        for x in range(block, block + run):
            if mass[x] > 0.0 and mass[x + run] > 0.0:
                ratio = factor * (ones[x + run] / mass[x + run]) / (zeros[x] / mass[x])
                if ratio > best:
                    best, place, upwards = ratio, x, 1
                if best * ratio < 1.0:
                    best, place, upwards = 1.0 / ratio, x, 0
    return best, place, upwards
