"""The compiled branch and bound over what an adversary knows.

For one target, decide the other tuples one after the other: known at one of its values, or
unknown. A node holds, for each cell of the tuples still open, each secret v and each output r, the
filtered mass F_v(cell; r) = Σ p·e^{−|r−f|/λ} over the tuples decided to be unknown, and the plain
mass in the last place. Then "known at x" picks a contiguous slice (no work at all) and "unknown"
adds up slices. A leaf is one event (K, x_K): it leaks the largest ratio of F_v(r)/m_v over secrets.

Numbers are ratio − 1, compared with exp(bar) − 1, so the inner loop takes neither logarithms nor
quotients. With `one` = 1 the arrays hold p·(e^{−d} − 1) instead, which keeps tiny leakages exact.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pdp_calibrate.engines.tables.bound import branch_bound, workspace
from pdp_calibrate.engines.tables.nodes import add_slices, buckets_of_cells, compact, reach
from pdp_calibrate.engines.tables.sweep import leaf_exceeds, leaf_ratio, sweep_exceeds

# What a bound and a sum cost, in units of one leaf and secret, measured once.
_BOUND_FIXED, _BOUND_PER_CELL, _SUMS_PER_LEAF = 400.0, 4.0, 16.0
VECTOR = 4  # doubles that one instruction handles; the number of outputs is a multiple
_SWEPT_LEAVES = 300.0
_WORTH_COPYING = 0.75  # share of the outputs left, below which the others are thrown out
_FORGETTING = 0.99  # weight of what was learned one branch earlier
_PATIENCE = 64  # nodes of a level after which one more bound is tried, however hopeless


@numba.njit(cache=True, nogil=True, error_model="numpy")
def explore(
    data,
    sizes,
    secrets,
    one,
    grid,
    parts,
    marks,
    floor,
    ceiling,
    may_know,
    may_hide,
    fewest,
    most,
    shared,
    stop,
    gap,
    habits,
    choices,
):
    """Search all leaves below the node at the front of `data`.

    Parameters
    ----------
    data
        The node, then one node per level below it: in all, the sum of their cells, times secrets,
        times outputs and one.
    sizes
        Domain sizes of the open tuples, outermost first.
    secrets
        Number of secrets.
    one
        1.0 if `data` holds densities minus one, else 0.0.
    grid
        The outputs r, ascending; without order (vectors) `parts` is zero and nothing is narrowed.
    parts
        parts[level, value]: what a known open tuple adds to the answer.
    marks
        marks[level, value] ≥ 0: cells with the same sum of marks are compared together in bounds.
    floor, ceiling
        Smallest and largest answer at the node.
    may_know, may_hide
        Per open tuple, whether it may be known, and unknown.
    fewest, most
        How many of the open tuples must and may be known.
    shared
        [best ratio − 1 so far, ratio − 1 that need not be told apart]; the first entry is raised.
    stop
        stop[0] becomes true when time is up.
    gap
        Branches that cannot beat the best logarithm by more than this share are cut too.
    habits
        What was learned on earlier branches about the worth of bounds, by number of open tuples:
        bounds tried, branches they cut, work of a branch, branches seen; zeros at first.
    choices
        Receives, for the best leaf, per open tuple its value, or its size if unknown.

    Returns
    -------
    tuple
        (largest ratio − 1 found, output, secret for, secret against, largest bound cut or left).
    """
    depth = sizes.size
    below = np.empty(depth + 1, dtype=np.int64)  # cells of a node at each level
    leaves = np.empty(depth + 1)
    knowable = np.zeros(depth + 1, dtype=np.int64)
    below[depth], leaves[depth] = 1, 1.0
    for level in range(depth - 1, -1, -1):
        below[level] = below[level + 1] * sizes[level]
        leaves[level] = leaves[level + 1] * (sizes[level] + 1)
        knowable[level] = knowable[level + 1] + int(may_know[level])
    room = np.empty(depth + 1, dtype=np.int64)  # where a node that is not a slice is kept
    free = 0
    for level in range(depth + 1):
        room[level] = free
        free += below[level] * secrets * (grid.size + 1)
    largest = np.zeros(depth + 1)
    for level in range(depth):
        for value in range(sizes[level]):
            largest[level] = max(largest[level], parts[level, value])

    base = np.zeros(depth + 1, dtype=np.int64)
    turn = np.zeros(depth + 1, dtype=np.int64)
    known = np.zeros(depth + 1, dtype=np.int64)
    floors, ceilings = np.empty(depth + 1), np.empty(depth + 1)
    floors[0], ceilings[0] = floor, ceiling
    columns = np.empty((depth + 1, grid.size), dtype=np.int64)  # outputs still of interest
    widths = np.empty(depth + 1, dtype=np.int64)
    widths[0] = grid.size + 1
    for r in range(grid.size):
        columns[0, r] = r
    # Work in units of one leaf and secret: what a node of each level costs, what bounds save there.
    spent = 0.0
    entered = np.zeros(depth + 1)
    waited = np.zeros(depth + 1, dtype=np.int64)
    tried, gained, typical, visits = habits[0], habits[1], habits[2], habits[3]
    for level in range(depth + 1):
        if tried[depth - level] == 0.0:
            tried[depth - level] = gained[depth - level] = 1.0
            typical[depth - level] = leaves[level]

    buckets, bucket_at = buckets_of_cells(sizes, marks, below)
    work, result = workspace(grid.size), np.empty(grid.size)
    picked, left_over = np.empty(grid.size, dtype=np.int64), np.empty(grid.size, dtype=np.int64)
    best, output, for_secret, against = -1.0, 0, 0, 0
    left = -1.0
    seen = -2.0
    limit = shared[1]
    pairs = secrets * (secrets - 1) / 2.0
    level = 0
    turn[0] = -1
    while level >= 0:
        if shared[0] > seen:
            seen = shared[0]
            limit = max(shared[1], math.expm1((1.0 + gap) * math.log1p(max(seen, 0.0))))
        width = widths[level]
        if level == depth:
            here = base[level]
            if best < 0.0 or leaf_exceeds(data, here, secrets, width, max(seen, best), one):
                found = leaf_ratio(data, here, secrets, width, one)
                if found[0] > best:
                    best, output, for_secret, against = found
                    output = columns[level, output]
                    for place in range(depth):
                        choices[place] = turn[place] - 1
                if found[0] > shared[0]:
                    shared[0] = found[0]
            level -= 1
            continue
        if turn[level] < 0:  # arrived here
            turn[level] = 0
            here = base[level]
            if leaves[level] <= _SWEPT_LEAVES:
                # All leaves at once, blind to who is admitted; a hit is looked at one by one.
                bar = max(seen, best, 0.0)
                spent += secrets * leaves[level]
                if not sweep_exceeds(
                    data, here, level, sizes, below, room, secrets, width, bar, one
                ):
                    level -= 1
                    continue
            # Beyond the answers that can still occur the ratio is constant: drop those outputs.
            begin, end = reach(grid, columns[level], width - 1, floors[level], ceilings[level])
            kept = end - begin
            for r in range(kept):
                picked[r] = begin + r
            cost = pairs * (_BOUND_FIXED + _BOUND_PER_CELL * below[level])
            opened = depth - level
            waited[level] += 1
            worthwhile = gained[opened] * secrets * typical[opened] > tried[opened] * cost
            if stop[0] or worthwhile or waited[level] >= _PATIENCE:
                waited[level] = 0
                spent += cost
                whole = kept + -kept % VECTOR
                head = max(0, end - whole)
                branch_bound(
                    data,
                    here,
                    buckets[bucket_at[level] : bucket_at[level] + below[level]],
                    secrets,
                    width,
                    head,
                    head + whole,
                    one,
                    -1.0 if stop[0] else limit,
                    work,
                    result,
                )
                kept = 0
                for r in range(begin, end):
                    if result[r] > limit and not stop[0]:
                        picked[kept] = r
                        kept += 1
                    else:
                        left = max(left, result[r])
                tried[opened] = _FORGETTING * tried[opened] + 1.0
                gained[opened] = _FORGETTING * gained[opened] + 1.0 - kept / (end - begin)
                if kept == 0:
                    level -= 1
                    continue
            entered[level] = spent
            while kept % VECTOR:  # loops over whole vectors have no slow remainder
                picked[kept] = picked[kept - 1]
                kept += 1
            if kept < _WORTH_COPYING * (width - 1):
                for r in range(kept):
                    left_over[r] = columns[level, picked[r]]
                for r in range(kept):
                    columns[level, r] = left_over[r]
                compact(data, here, room[level], below[level] * secrets, width, picked, kept)
                base[level] = room[level]
                widths[level] = width = kept + 1
        size = sizes[level]
        choice = turn[level]
        if choice > size:
            visits[depth - level] += 1.0
            cost = (spent - entered[level]) / secrets
            rate = max(1.0 / visits[depth - level], 1.0 - _FORGETTING)
            typical[depth - level] += rate * (cost - typical[depth - level])
            level -= 1
            continue
        turn[level] = choice + 1
        knowing = known[level] + int(choice < size)
        allowed = may_know[level] if choice < size else may_hide[level]
        if not allowed or knowing > most or knowing + knowable[level + 1] < fewest:
            continue
        start, length = base[level], below[level + 1] * secrets * width
        level += 1
        floors[level], ceilings[level] = floors[level - 1], ceilings[level - 1]
        if choice < size:
            base[level] = start + choice * length
            floors[level] += parts[level - 1, choice]
            ceilings[level] -= largest[level - 1] - parts[level - 1, choice]
        else:
            base[level] = room[level]
            add_slices(data, start, length, size, room[level])
            spent += length / _SUMS_PER_LEAF
        known[level] = knowing
        widths[level] = width
        for r in range(width - 1):
            columns[level, r] = columns[level - 1, r]
        turn[level] = -1
    return best, output, for_secret, against, left
