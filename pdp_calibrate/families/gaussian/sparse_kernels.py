"""Compiled elimination of sparse symmetric matrices, rounded to one side.

A comparison matrix A has off-diagonal entries ≤ 0. Eliminating it in any order only ever adds
numbers that are not negative, except for one difference per pivot, so every step can be rounded to
a chosen side: `towards` is 1 for factors of some A' ≥ A, −1 for some A' ≤ A (entry by entry), and 0
for plain rounding, which any symmetric matrix can have. If all pivots of A' ≤ A are positive, A' is
an M-matrix and so is A; then 0 ≤ A⁻¹ ≤ A'⁻¹, and A'⁻¹ ≤ A⁻¹ for A' ≥ A: for both,
A⁻¹ − A'⁻¹ = A⁻¹(A' − A)A'⁻¹ with factors that are not negative.

Matrices are given by columns: those of A hold rows up to the diagonal, those of L rows below it,
in increasing order. L has ones on its diagonal, A' = L·D·Lᵀ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

_TINY = 1e-290  # covers what products lose below the normal range; entries are at least 1e-200
_STEP = 1.01 * UNIT_ROUNDOFF

_compiled = njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy", no_cpython_wrapper=True)
def _moved(value, operations, towards):
    """Round a non-negative result of some operations up (1), down (−1) or not at all (0)."""
    if towards == 0 or value == 0.0:
        return value
    moved = value * (1.0 + towards * (operations + 4) * _STEP) + towards * _TINY
    return moved if moved > 0.0 else 0.0  # noqa: FURB136 - compiles faster


@_compiled
def tree_of(starts, rows):
    """Return each column's parent in the elimination tree, and the number of entries of L in it.

    The third result is the number of entries in the longest row.
    """
    size = len(starts) - 1
    parents, counts = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    seen, longest = np.empty(size, np.int64), 0
    for column in range(size):
        seen[column], length = column, 0
        # Row `column` of L has an entry for each entry of A and for every ancestor of one in the
        # tree. Climb from each until reaching a row already visited for this column; every row on
        # the way lies below `column` and has a parent or gets this one.
        for place in range(starts[column], starts[column + 1]):
            row = rows[place]
            while row < column and seen[row] != column:
                if parents[row] < 0:
                    parents[row] = column
                counts[row] += 1
                length += 1
                seen[row] = column
                row = parents[row]
        longest = max(longest, length)
    return parents, counts, longest


@_compiled
def factored(starts, rows, entries, parents, below, towards):
    """Return the rows and entries of L and the pivots D; a pivot that is not positive ends it.

    Row k of L solves a triangular system: y_j = A_kj − Σ_i L_ji·y_i, L_kj = y_j/D_j. What is stored
    is rounded first, and y_j = L_kj·D_j afterwards, so that L·D·Lᵀ lies on the side asked for.
    """
    size = len(starts) - 1
    found_rows, found = np.empty(below[size], np.int64), np.empty(below[size])
    pivots, ends = np.zeros(size), below[:size].copy()
    seen, order, path = (
        np.full(size, -1, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    row_of_a = np.zeros(size)
    for column in range(size):
        # Which entries this row of L has: the paths up the tree from those of A. Each path is
        # written back to front, so that a column comes before those that need it.
        top, diagonal = size, 0.0
        seen[column] = column
        for place in range(starts[column], starts[column + 1]):
            row = rows[place]
            if row == column:
                diagonal = entries[place]
                continue
            row_of_a[row] = entries[place]
            length = 0
            while seen[row] != column:
                path[length] = row
                length += 1
                seen[row] = column
                row = parents[row]
            while length > 0:
                length -= 1
                top -= 1
                order[top] = path[length]
        # Column by column: y_j is complete, because the columns it needs were subtracted before.
        # Entries of A off the diagonal are not positive and products of two such numbers are
        # subtracted, so nothing cancels; the row of A is zero again at the end.
        removed = 0.0
        for place in range(top, size):
            row = order[place]
            done = place - top
            value, row_of_a[row] = row_of_a[row], 0.0
            if towards == 0:
                ratio = value / pivots[row]
            else:  # values are not positive, so up is towards zero
                ratio = -_moved(-value / pivots[row], done + 2, -towards)
                value = -_moved(-ratio * pivots[row], 1, -towards)
            # Subtract y_j's part from the later entries of this row, and from the pivot.
            for entry in range(below[row], ends[row]):
                row_of_a[found_rows[entry]] -= found[entry] * value
            found_rows[ends[row]], found[ends[row]] = column, ratio
            ends[row] += 1
            removed += value * ratio
        # The only difference of numbers of one sign: what is removed is rounded the other way, and
        # the difference then to its own side. A pivot that is not positive proves nothing: stop.
        left = diagonal - _moved(removed, size - top + 1, -towards)
        pivots[column] = left * (1.0 + 4 * towards * UNIT_ROUNDOFF)
        if not pivots[column] > 0.0:
            break
    return found_rows, found, pivots


@_compiled
def solved(below, rows, entries, pivots, vector, towards):
    """Return A'⁻¹·vector for a vector that is not negative, rounded to one side (0: plainly)."""
    size = len(pivots)
    found, added = vector.copy(), np.zeros(size, np.int64)
    # L·y = vector: entries of L are not positive, so only non-negative numbers are added, and one
    # rounding is charged for each addition.
    for column in range(size):
        found[column] = _moved(found[column], added[column] + 1, towards)
        if found[column] == 0.0:
            continue
        for place in range(below[column], below[column + 1]):
            found[rows[place]] -= entries[place] * found[column]
            added[rows[place]] += 1
    # Lᵀ·x = D⁻¹·y, from the last entry on: again sums of numbers that are not negative.
    for column in range(size - 1, -1, -1):
        total = found[column] / pivots[column]
        for place in range(below[column], below[column + 1]):
            total -= entries[place] * found[rows[place]]
        found[column] = _moved(total, below[column + 1] - below[column] + 2, towards)
    return found


@_compiled
def least_diagonal(below, rows, entries, pivots):
    """Return the diagonal of A'⁻¹ rounded down, A' = L·D·Lᵀ.

    Z = A'⁻¹ satisfies Z = D⁻¹L⁻¹ + (I − Lᵀ)Z. Read from the last column on, it gives the entries of
    Z where L has some from each other (Takahashi, Fagan, Chin, 1973), all terms not negative.
    """
    size = len(pivots)
    inverse, diagonal = np.zeros(len(entries)), np.zeros(size)
    where = np.full(size, -1, np.int64)
    for column in range(size - 1, -1, -1):
        start, end = below[column], below[column + 1]
        operations = end - start + 2
        # Where the rows of this column are stored; −1 for all others.
        for place in range(start, end):
            where[rows[place]] = place
        # Z_row,column = Σ over rows k of −L_k,column·Z_row,k. The entry of Z for two rows of this
        # column is stored once, below the diagonal, and used for both; L has one for each pair.
        for place in range(start, end):
            row, weight = rows[place], -entries[place]
            inverse[place] += weight * diagonal[row]
            for other in range(below[row], below[row + 1]):
                partner = where[rows[other]]
                if partner >= 0:
                    inverse[partner] += weight * inverse[other]
                    inverse[place] -= entries[partner] * inverse[other]
        # Everything added is not negative and is rounded down, the diagonal last: 1/D and the same
        # sum.
        total = 1.0 / pivots[column]
        for place in range(start, end):
            inverse[place] = _moved(inverse[place], operations, -1)
            total -= entries[place] * inverse[place]
            where[rows[place]] = -1
        diagonal[column] = _moved(total, operations, -1)
    return diagonal


@_compiled
def coloured(starts, rows, entries, labels, signs):
    """Give every tuple a sign such that s_i·s_j·Ω_ij ≤ 0, and mark components where none fits.

    A negative entry asks for equal signs, a positive one for different signs. `signs` holds those
    of the weights, 0 where they are free, and is filled.
    """
    size = len(starts) - 1
    mixed = np.zeros(labels.max() + 1, np.bool_)
    waiting, number = np.empty(size, np.int64), 0
    reached = np.zeros(size, np.bool_)
    for weighted in (True, False):  # free signs follow from the others
        for start in range(size):
            if reached[start] or (weighted and signs[start] == 0.0):
                continue
            # A component without weights may begin with either sign.
            if signs[start] == 0.0:
                signs[start] = 1.0
            reached[start] = True
            waiting[0], number = start, 1
            # Depth-first search. Each tuple is marked when it is pushed, so it is pushed once and a
            # stack of `size` suffices. A sign that conflicts with an earlier one marks the
            # component as mixed.
            while number > 0:
                number -= 1
                here = waiting[number]
                for place in range(starts[here], starts[here + 1]):
                    there = rows[place]
                    if there == here:
                        continue
                    wanted = -signs[here] if entries[place] > 0.0 else signs[here]
                    if signs[there] == 0.0:
                        signs[there] = wanted
                    elif signs[there] != wanted:
                        mixed[labels[here]] = True
                    if not reached[there]:
                        reached[there] = True
                        waiting[number] = there
                        number += 1
    return mixed
