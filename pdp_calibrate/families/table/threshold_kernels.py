"""Compiled parts of the threshold bound: laws of counts compared, many events side by side.

Plain loops, each written once, in room that the caller gives: what is called, `max` and `min` and
arrays made here would be compiled on their own as well.
"""

# ruff: noqa: FURB136

from __future__ import annotations

import numba
import numpy as np

LANES = 256
"""Laws or events that are compared together."""

ROOM = 7
"""Rows of `LANES` numbers that a comparison takes as its room."""

_NONE = np.float32(0)
_MOST = np.float32(3e38)  # finite, for fastmath knows no infinity


_compiled = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath=True, no_cfunc_wrapper=True
)


@_compiled
def compare_with(masses, law, rows, begins, shares, t, near, far, least, room, above, below):
    """Write how far each law lies above the given one, and below it.

    masses[c, x]: of count c in the column x, whose law is P. `law` is s·R. Written are the excess
    of P over s·R and that of s·R over t·P; much for a column whose mass is below `least`.

    The counts of group g are rows[begins[g] : begins[g + 1]], and s·R has shares[g] there. The
    excess of A over B is the sum of max(y, far·y) over the groups, where y is Σ(A − B)⁺ less
    near·Σ(B − A)⁺ of the group.
    """
    total, high, low, mass = room[0], room[1], room[2], room[3]
    for start in range(0, above.size, LANES):
        number = LANES if above.size - start > LANES else above.size - start
        up, down = above[start : start + number], below[start : start + number]
        for lane in range(number):
            total[lane] = up[lane] = down[lane] = _NONE
        for c in range(masses.shape[0]):
            row = masses[c, start : start + number]
            for lane in range(number):
                total[lane] += row[lane]
        for group in range(shares.size):
            for lane in range(number):
                high[lane] = low[lane] = mass[lane] = _NONE
            for k in range(begins[group], begins[group + 1]):
                row, centre = masses[rows[k], start : start + number], law[rows[k]]
                for lane in range(number):
                    here, middle = row[lane], centre * total[lane]
                    raised = t * here
                    high[lane] += here if here > middle else middle
                    low[lane] += raised if raised > middle else middle
                    mass[lane] += here
            share = shares[group]
            for lane in range(number):
                middle = share * total[lane]
                over = high[lane] - middle - near * (high[lane] - mass[lane])
                under = low[lane] - t * mass[lane] - near * (low[lane] - middle)
                up[lane] += over if over > _NONE else far * over
                down[lane] += under if under > _NONE else far * under
        for lane in range(number):
            whole = total[lane] if total[lane] > least else least
            up[lane] = up[lane] / whole if total[lane] >= least else _MOST
            down[lane] = down[lane] / whole if total[lane] >= least else _NONE


@_compiled
def far_apart(parts, size, after, most, room, ones, others):
    """Find two secrets of an event, one far above the middle and the other far below it.

    parts[0, x]: how far column x is above, parts[1, x]: below. The secrets of an event have their
    laws in columns, `after` apart. Written are the columns of all such pairs, event by event, as
    long as there is room for them; returned is how many there are.
    """
    found = 0
    for outer in range(parts.shape[1] // (size * after)):
        for start in range(0, after, LANES):
            first = outer * size * after + start
            number = LANES if after - start > LANES else after - start
            for side in range(2):
                largest = room[side]
                for event in range(number):
                    largest[event] = -_MOST
                for v in range(size):
                    row = parts[side, first + v * after : first + v * after + number]
                    for event in range(number):
                        here, so_far = row[event], largest[event]
                        largest[event] = here if here > so_far else so_far
            for event in range(number):
                if room[0, event] + room[1, event] <= most:
                    continue
                for v in range(size):
                    for w in range(size):
                        one, other = first + event + v * after, first + event + w * after
                        if v != w and parts[0, one] + parts[1, other] > most:
                            if found < ones.size:
                                ones[found], others[found] = one, other
                            found += 1
    return found


@_compiled
def compare_laws(masses, columns, rows, begins, t, near, far, least, room, blocks, found):
    """Write the excess of the laws P in the columns[0] over t·Q, Q in the columns[1].

    The excess and the groups are those of `compare_with`; much if one has no mass. The blocks are
    room as well, [2, c, lane].
    """
    factors, sums, high, mass, raised = room[2], room[3], room[4], room[5], room[6]
    for start in range(0, found.size, LANES):
        number = LANES if found.size - start > LANES else found.size - start
        for side in range(2):
            total = room[side]
            for lane in range(number):
                total[lane] = _NONE
            for c in range(masses.shape[0]):
                for lane in range(number):
                    here = masses[c, columns[side, start + lane]]
                    blocks[side, c, lane] = here
                    total[lane] += here
        for lane in range(number):
            whole = room[1, lane] if room[1, lane] > least else least
            factors[lane], sums[lane] = t * room[0, lane] / whole, _NONE
        for group in range(begins.size - 1):
            for lane in range(number):
                high[lane] = mass[lane] = raised[lane] = _NONE
            for k in range(begins[group], begins[group + 1]):
                one, other = blocks[0, rows[k]], blocks[1, rows[k]]
                for lane in range(number):
                    here, there = one[lane], factors[lane] * other[lane]
                    high[lane] += here if here > there else there
                    mass[lane] += here
                    raised[lane] += there
            for lane in range(number):
                over = high[lane] - raised[lane] - near * (high[lane] - mass[lane])
                sums[lane] += over if over > _NONE else far * over
        for lane in range(number):
            is_there = room[0, lane] >= least and room[1, lane] >= least
            whole = room[0, lane] if room[0, lane] > least else least
            found[start + lane] = sums[lane] / whole if is_there else _MOST
