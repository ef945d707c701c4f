"""Compiled work on one node of the tree: fill it, add it up, narrow it, sort its cells."""

from __future__ import annotations

import numba
import numpy as np

from pdp_calibrate.engines.tables.bound import MOST_BUCKETS


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_node(cells, answers, kernel, opened, hidden, own, data):
    """Write the filtered masses of a node's cells to the front of `data`.

    Cell c, secret v and hidden value h stand at opened[c] + own[v] + hidden[h] in the flat table.
    """
    outputs = kernel.shape[1]
    at = 0
    for c in range(opened.size):
        for v in range(own.size):
            row = data[at : at + outputs + 1]
            for r in range(outputs + 1):
                row[r] = 0.0
            for h in range(hidden.size):
                place = opened[c] + own[v] + hidden[h]
                mass = cells[place]
                if mass > 0.0:
                    factors = kernel[answers[place]]
                    for r in range(outputs):
                        row[r] += mass * factors[r]
                    row[outputs] += mass
            at += outputs + 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_slices(data, start, length, size, where):
    """Write the sum of `size` neighbouring slices to `where`."""
    total, first = data[where : where + length], data[start : start + length]
    if size == 1:
        for t in range(length):
            total[t] = first[t]
        return
    second = data[start + length : start + 2 * length]
    for t in range(length):
        total[t] = first[t] + second[t]
    for value in range(2, size):
        further = data[start + value * length : start + (value + 1) * length]
        for t in range(length):
            total[t] += further[t]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def compact(data, start, where, rows, width, picked, kept):
    """Copy the picked columns and the mass of each row; safe in place, as it only moves down."""
    first = picked[0]
    together = picked[kept - 1] == first + kept - 1
    for row in range(rows):
        source, goal = start + row * width, where + row * (kept + 1)
        mass = data[source + width - 1]
        if together:
            origin, copy = data[source + first : source + first + kept], data[goal : goal + kept]
            for r in range(kept):
                copy[r] = origin[r]
        else:
            for r in range(kept):
                data[goal + r] = data[source + picked[r]]
        data[goal + kept] = mass


@numba.njit(cache=True, nogil=True, error_model="numpy")
def reach(grid, columns, number, floor, ceiling):
    """Return the range of columns whose outputs hold every answer from `floor` to `ceiling`.

    A column that is missing was judged before, together with all that lie beyond it.
    """
    begin = 0
    while begin + 1 < number and grid[columns[begin + 1]] <= floor:
        begin += 1
    end = begin + 1
    while end < number and grid[columns[end - 1]] < ceiling:
        end += 1
    return begin, end


@numba.njit(cache=True, nogil=True, error_model="numpy")
def buckets_of_cells(sizes, marks, below):
    """Return the bucket of every cell, one level after the other, and where each level begins."""
    depth = sizes.size
    begins = np.zeros(depth + 1, dtype=np.int64)
    for level in range(depth):
        begins[level + 1] = begins[level] + below[level]
    sums = np.zeros(begins[depth] + 1)
    buckets = np.zeros(begins[depth] + 1, dtype=np.int64)
    widest = 0.0
    for level in range(depth - 1, -1, -1):
        largest = 0.0
        for value in range(sizes[level]):
            largest = max(largest, marks[level, value])
            for c in range(below[level + 1]):
                at = begins[level] + value * below[level + 1] + c
                sums[at] = marks[level, value] + sums[begins[level + 1] + c]
        widest += largest
        for c in range(below[level]):
            if widest > 0.0:
                share = sums[begins[level] + c] / widest
                buckets[begins[level] + c] = int(share * (MOST_BUCKETS - 1) + 0.5)
    return buckets, begins
