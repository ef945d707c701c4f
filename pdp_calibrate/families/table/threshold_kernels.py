"""Compiled parts of the threshold bound: laws of counts compared, many events side by side."""

from __future__ import annotations

import numba
import numpy as np

LANES = 256
"""Laws or events that are compared together."""

FIVE = 5
"""Counts that are compared in one turn: rows without mass fill up the last."""

_MOST = np.float32(3e38)  # finite, for fastmath knows no infinity


_fast = numba.njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath=True,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)
"""For what is called from other kernels only."""


@_fast
def _centred(masses, start, law, t, work):
    """Compare the laws of some columns with one law."""
    number = min(LANES, masses.shape[1] - start)
    total, up, down = work[0, :number], work[1, :number], work[2, :number]
    for lane in range(number):
        total[lane] = up[lane] = down[lane] = np.float32(0)
    for c in range(masses.shape[0]):
        row = masses[c, start : start + number]
        for lane in range(number):
            total[lane] += row[lane]
    for c in range(masses.shape[0]):
        row, centre = masses[c, start : start + number], law[c]
        for lane in range(number):
            middle = centre * total[lane]
            up[lane] += max(row[lane], middle)
            down[lane] += max(middle, t * row[lane])


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def compare_with(masses, law, s, t, least, above, below):
    """Write how far each law lies above the given one, and below it.

    masses[c, x]: of count c in the column x, whose law is P. `law` is s·R. Written are
    Σ(P − s·R)⁺ and Σ(s·R − t·P)⁺; much for a column whose mass is below `least`.
    """
    work = np.empty((3, LANES), dtype=np.float32)
    for start in range(0, above.size, LANES):
        _centred(masses, start, law, t, work)
        for lane in range(min(LANES, above.size - start)):
            total = work[0, lane]
            counts = total >= least
            above[start + lane] = work[1, lane] / total - s if counts else _MOST
            below[start + lane] = work[2, lane] / total - t if counts else np.float32(0)


@_fast
def _largest(part, first, size, after, most):
    """Write the largest number of each of some events, whose columns are `after` apart."""
    number = most.size
    row = part[first : first + number]
    for k in range(number):
        most[k] = row[k]
    for v in range(1, size):
        row = part[first + v * after : first + v * after + number]
        for k in range(number):
            most[k] = max(most[k], row[k])


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def far_apart(above, below, size, after, most, ones, others):
    """Find two secrets of an event, one far above the middle and the other far below it.

    The secrets of an event have their laws in columns, `after` apart. Written are the columns of
    all such pairs, event by event, as long as there is room for them; returned is how many there
    are.
    """
    number = 0
    up, down = np.empty((2, LANES), dtype=np.float32)
    for outer in range(above.size // (size * after)):
        for start in range(0, after, LANES):
            first, length = outer * size * after + start, min(LANES, after - start)
            _largest(above, first, size, after, up[:length])
            _largest(below, first, size, after, down[:length])
            for event in range(length):
                if up[event] + down[event] <= most:
                    continue
                for v in range(size):
                    for w in range(size):
                        one, other = first + event + v * after, first + event + w * after
                        if v != w and above[one] + below[other] > most:
                            if number < ones.size:
                                ones[number], others[number] = one, other
                            number += 1
    return number


@_fast
def _taken(masses, places, start, number, block, total):
    """Copy the masses in some columns, and add them up."""
    for lane in range(LANES):
        total[lane] = 0
    for c in range(masses.shape[0]):
        source, row = masses[c], block[c]
        for lane in range(number):
            row[lane] = source[places[start + lane]]
        for lane in range(LANES):
            total[lane] += row[lane]


@_fast
def _compared(one, other, factors, sums):
    """Add up the larger of two laws' masses, the other one's raised."""
    for lane in range(LANES):
        sums[lane] = 0
    for c in range(0, one.shape[0], FIVE):
        for lane in range(LANES):
            f = factors[lane]
            two = max(one[c, lane], f * other[c, lane]) + max(
                one[c + 1, lane], f * other[c + 1, lane]
            )
            two += max(one[c + 2, lane], f * other[c + 2, lane])
            two += max(one[c + 3, lane], f * other[c + 3, lane])
            sums[lane] += two + max(one[c + 4, lane], f * other[c + 4, lane])


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def compare_laws(masses, ones, others, t, least, found):
    """Write Σ(P − t·Q)⁺ of the laws P in some columns and Q in others; much if one has no mass."""
    rows = -(-masses.shape[0] // FIVE) * FIVE
    blocks = np.zeros((2, rows, LANES), dtype=np.float32)
    totals = np.empty((4, LANES), dtype=np.float32)
    for start in range(0, found.size, LANES):
        number = min(LANES, found.size - start)
        _taken(masses, ones, start, number, blocks[0], totals[0])
        _taken(masses, others, start, number, blocks[1], totals[1])
        for lane in range(LANES):
            totals[2, lane] = t * totals[0, lane] / max(totals[1, lane], least)
        _compared(blocks[0], blocks[1], totals[2], totals[3])
        for lane in range(number):
            counts = min(totals[0, lane], totals[1, lane]) >= least
            found[start + lane] = totals[3, lane] / totals[0, lane] - t if counts else _MOST
