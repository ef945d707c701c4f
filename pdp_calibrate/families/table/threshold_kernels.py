"""Compiled parts of the threshold bound: laws of counts compared, many events side by side."""

from __future__ import annotations

import numba
import numpy as np

LANES = 256
"""Laws or events that are compared together."""

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
def _centred(masses, start, law, rows, begins, shares, t, near, far, work):
    """Compare the laws of some columns with one law, group by group."""
    number = min(LANES, masses.shape[1] - start)
    total, up, down = work[0, :number], work[1, :number], work[2, :number]
    high, low, mass = work[3, :number], work[4, :number], work[5, :number]
    for lane in range(number):
        total[lane] = up[lane] = down[lane] = np.float32(0)
    for c in range(masses.shape[0]):
        row = masses[c, start : start + number]
        for lane in range(number):
            total[lane] += row[lane]
    for group in range(shares.size):
        for lane in range(number):
            high[lane] = low[lane] = mass[lane] = np.float32(0)
        for c in rows[begins[group] : begins[group + 1]]:
            row, centre = masses[c, start : start + number], law[c]
            for lane in range(number):
                middle = centre * total[lane]
                high[lane] += max(row[lane], middle)
                low[lane] += max(middle, t * row[lane])
                mass[lane] += row[lane]
        for lane in range(number):
            middle = shares[group] * total[lane]
            above = high[lane] - middle - near * (high[lane] - mass[lane])
            below = low[lane] - t * mass[lane] - near * (low[lane] - middle)
            up[lane] += max(above, far * above)
            down[lane] += max(below, far * below)


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def compare_with(masses, law, rows, begins, shares, t, near, far, least, above, below):
    """Write how far each law lies above the given one, and below it.

    masses[c, x]: of count c in the column x, whose law is P. `law` is s·R. Written are the excess
    of P over s·R and that of s·R over t·P; much for a column whose mass is below `least`.

    The counts of group g are rows[begins[g] : begins[g + 1]], and s·R has shares[g] there. The
    excess of A over B is the sum of max(y, far·y) over the groups, where y is Σ(A − B)⁺ less
    near·Σ(B − A)⁺ of the group.
    """
    work = np.empty((6, LANES), dtype=np.float32)
    for start in range(0, above.size, LANES):
        _centred(masses, start, law, rows, begins, shares, t, near, far, work)
        for lane in range(min(LANES, above.size - start)):
            total = work[0, lane]
            counts = total >= least
            above[start + lane] = work[1, lane] / total if counts else _MOST
            below[start + lane] = work[2, lane] / total if counts else np.float32(0)


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
def _compared(one, other, rows, begins, near, far, work):
    """Add up the excess of one law's masses over the other's, raised, group by group."""
    factors, sums, high, mass, raised = work[2], work[3], work[4], work[5], work[6]
    for lane in range(LANES):
        sums[lane] = 0
    for group in range(begins.size - 1):
        for lane in range(LANES):
            high[lane] = mass[lane] = raised[lane] = np.float32(0)
        for c in rows[begins[group] : begins[group + 1]]:
            for lane in range(LANES):
                here, there = one[c, lane], factors[lane] * other[c, lane]
                high[lane] += max(here, there)
                mass[lane] += here
                raised[lane] += there
        for lane in range(LANES):
            above = high[lane] - raised[lane] - near * (high[lane] - mass[lane])
            sums[lane] += max(above, far * above)


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def compare_laws(masses, ones, others, rows, begins, t, near, far, least, found):
    """Write the excess of the laws P in some columns over t·Q, Q in others.

    The excess and the groups are those of `compare_with`; much if one has no mass.
    """
    blocks = np.zeros((2, masses.shape[0], LANES), dtype=np.float32)
    work = np.empty((7, LANES), dtype=np.float32)
    for start in range(0, found.size, LANES):
        number = min(LANES, found.size - start)
        _taken(masses, ones, start, number, blocks[0], work[0])
        _taken(masses, others, start, number, blocks[1], work[1])
        for lane in range(LANES):
            work[2, lane] = t * work[0, lane] / max(work[1, lane], least)
        _compared(blocks[0], blocks[1], rows, begins, near, far, work)
        for lane in range(number):
            counts = min(work[0, lane], work[1, lane]) >= least
            found[start + lane] = work[3, lane] / work[0, lane] if counts else _MOST
