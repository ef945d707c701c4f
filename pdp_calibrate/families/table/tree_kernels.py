"""The compiled branch and bound over what an adversary knows, and its work on single nodes.

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
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.families.table.two_cell_bound import branch_bound, inlined, inner


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
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
            # Terms of one sign in either form, so that nothing cancels; cells that cannot occur are
            # left out, also of the mass in the last place.
            for h in range(hidden.size):
                place = opened[c] + own[v] + hidden[h]
                mass = cells[place]
                if mass > 0.0:
                    factors = kernel[answers[place]]
                    for r in range(outputs):
                        row[r] += mass * factors[r]
                    row[outputs] += mass
            at += outputs + 1


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def add_slices(data, start, length, size, where):
    """Write the sum of `size` neighbouring slices to `where`."""
    # The sum never overlaps its slices: it lies in the space of the level below. The first two are
    # added in one pass.
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


@inlined
def compact(data, start, where, rows, width, picked, kept):
    """Copy the picked columns and the mass of each row; safe in place, as it only moves down."""
    # Columns that stand together are copied as one run, which compiles to vector moves.
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


@inlined
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


@inner
def leaf_exceeds(data, at, secrets, width, limit, one):
    """Whether some pair of secrets has ratio − 1 above `limit` at some output of this leaf.

    y/z − 1 > limit is tested as y > (1 + limit)·z, or y − 1 > (1 + limit)·(z − 1) + limit.
    """
    outputs = width - 1
    # Both directions of every pair in one pass; hits are counted, for a loop that may stop early
    # is not made of vectors.
    factor, offset = 1.0 + limit, one * limit
    hits = 0
    for v in range(1, secrets):
        mass = data[at + v * width + outputs]
        if mass > 0.0:
            scale = 1.0 / mass
            ys = data[at + v * width : at + v * width + outputs]
            for w in range(v):
                other = data[at + w * width + outputs]
                if other > 0.0:
                    other_scale = 1.0 / other
                    zs = data[at + w * width : at + w * width + outputs]
                    for r in range(outputs):
                        y, z = ys[r] * scale, zs[r] * other_scale
                        hits += int(y > factor * z + offset) + int(z > factor * y + offset)
    return hits > 0


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def leaf_ratio(data, at, secrets, width, one):
    """Return the largest ratio − 1 of a leaf, the output and the two secrets."""
    outputs = width - 1
    best, where, for_secret, against = -1.0, 0, 0, 0
    # At each output the largest and the smallest density of the secrets that can occur: no pair has
    # a larger ratio. Each is a sum of terms of one sign over a mass, so nothing cancels before.
    for r in range(outputs):
        least, most, least_at, most_at = np.inf, -np.inf, 0, 0
        for v in range(secrets):
            mass = data[at + v * width + outputs]
            if mass > 0.0:
                y = data[at + v * width + r] / mass
                if y <= least:
                    least, least_at = y, v
                if y > most:
                    most, most_at = y, v
        if most_at != least_at:
            ratio = (most - least) / (one + least)
            if ratio > best:
                best, where, for_secret, against = ratio, r, most_at, least_at
    return best, where, for_secret, against


@inlined
def sweep_exceeds(data, start, top, sizes, below, space, base, turn, secrets, width, limit, one):
    """Whether any leaf below a node has ratio − 1 above `limit`.

    Walks every choice below level `top` (known at a value, or unknown) without bounds. Arrays
    are as in `explore`; what it writes lies in the space of levels below `top`, and in `base` and
    `turn`, which are its own.
    """
    depth = sizes.size
    row = secrets * width
    # Depth first, one counter per level: values 0 … size − 1 are known, `size` is unknown.
    base[top], turn[top] = start, 0
    level = top
    while level >= top:
        choice = turn[level]
        if choice > sizes[level]:
            level -= 1
            continue
        turn[level] = choice + 1
        # Known at a value: a slice of the node. Unknown: the sum of all of them, in a space of its
        # own.
        length = below[level + 1] * row
        at = base[level] + choice * length
        if choice == sizes[level]:
            at = space[level + 1]
            add_slices(data, base[level], length, choice, at)
        if level + 1 < depth:
            level += 1
            base[level] = at
            turn[level] = 0
        elif leaf_exceeds(data, at, secrets, width, limit, one):
            return True
    return False


# What a bound and a sum cost, in units of one leaf and secret, measured once.
_BOUND_FIXED, _BOUND_PER_CELL, _SUMS_PER_LEAF = 400.0, 4.0, 16.0


VECTOR = 4  # doubles that one instruction handles; the number of outputs is a multiple


_SWEPT_LEAVES = 300.0


_WORTH_COPYING = 0.75  # share of the outputs left, below which the others are thrown out


_FORGETTING = 0.99  # weight of what was learned one branch earlier


_PATIENCE = 64  # nodes of a level after which one more bound is tried, however rarely they helped


def space_to_explore(
    sizes: npt.NDArray[np.int64],
    secrets: int,
    outputs: int,
    parts: FloatArray,
    may_know: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], FloatArray, npt.NDArray[np.int64]]:
    """Return work space for `explore`: allocating it there would take seconds to compile.

    The first rows are filled: per level the cells of a node, where a node is kept that is not a
    slice of another, where the buckets of its cells begin, how many tuples below can be known; and
    the leaves below a node, the most that its tuple adds.
    """
    depth = len(sizes)
    below = np.append(np.cumprod(sizes[::-1])[::-1], 1)
    before = np.cumsum(below) - below
    places, numbers = np.zeros((11, depth + 1), dtype=np.int64), np.zeros((5, depth + 1))
    places[0], places[1], places[2] = below, before * secrets * (outputs + 1), before
    places[3, :depth] = np.cumsum(may_know[::-1])[::-1]
    numbers[0] = np.append(np.cumprod(sizes[::-1] + 1.0)[::-1], 1.0)
    numbers[1, :depth] = parts.max(axis=1)
    return places, numbers, np.empty((depth + 3, outputs), dtype=np.int64)


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def explore(
    data,
    sizes,
    secrets,
    one,
    grid,
    parts,
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
    work,
    buckets,
    places,
    numbers,
    columns,
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
        How much bounds saved on earlier branches, by number of open tuples:
        bounds tried, branches they cut, work of a branch, branches seen; zeros at first.
    work, buckets
        Work space for bounds, and the bucket of every cell, one level after the other; None to
        search without bounds. Then they are not compiled, and what is left when time is up has no
        bound but infinity.
    places, numbers, columns
        More work space, made by `space_to_explore`. The last two rows of `columns` are for outputs
        that are picked; each other row holds the outputs still of interest at one level.
    choices
        Receives, for the best leaf, per open tuple its value, or its size if unknown.

    Returns
    -------
    tuple
        (largest ratio − 1 found, output, secret for, secret against, largest bound cut or left).
    """
    depth = sizes.size
    below, space, bucket_at, knowable = places[0], places[1], places[2], places[3]
    base, turn, known, widths, waited = places[4], places[5], places[6], places[7], places[8]
    leaves, largest = numbers[0], numbers[1]
    floors, ceilings, entered = numbers[2], numbers[3], numbers[4]
    picked, left_over = columns[depth + 1], columns[depth + 2]
    floors[0], ceilings[0] = floor, ceiling
    widths[0] = grid.size + 1
    for r in range(grid.size):
        columns[0, r] = r
    # Work in units of one leaf and secret: what a node of each level costs, what bounds save there.
    spent = 0.0
    tried, gained, typical, visits = habits[0], habits[1], habits[2], habits[3]
    for level in range(depth + 1):
        if tried[depth - level] == 0.0:
            tried[depth - level] = gained[depth - level] = 1.0
            typical[depth - level] = leaves[level]

    # `left` is the largest bound of what is not searched: with the best ratio it covers all leaves.
    best, output, for_secret, against = -1.0, 0, 0, 0
    left = -1.0
    seen = -2.0
    limit = shared[1]
    pairs = secrets * (secrets - 1) / 2.0
    level = depth - depth  # not a literal, for which callees would be compiled once more
    turn[0] = -1
    while level >= 0:
        # Other threads may have found more: then more can be cut.
        if shared[0] > seen:
            seen = shared[0]
            limit = max(shared[1], math.expm1((1.0 + gap) * math.log1p(max(seen, 0.0))))
        width = widths[level]
        # A leaf: everybody is known or unknown. Remember it if it is the worst.
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
                # All leaves at once, blind to who is admitted; a hit is checked one by one.
                bar = max(seen, best, 0.0)
                spent += secrets * leaves[level]
                if not sweep_exceeds(
                    data, here, level, sizes, below, space,
                    places[9], places[10], secrets, width, bar, one,
                ):  # fmt: skip
                    level -= 1
                    continue
            if work is None:
                if stop[0]:
                    left = np.inf
                    level -= 1
                    continue
            else:
                # Beyond the answers that can still occur the ratio is constant: drop those outputs.
                begin, end = reach(grid, columns[level], width - 1, floors[level], ceilings[level])
                kept = end - begin
                for r in range(kept):
                    picked[r] = begin + r
                cost = pairs * (_BOUND_FIXED + _BOUND_PER_CELL * below[level])
                opened = depth - level
                waited[level] += 1
                # Bounds cost time too: they are tried where they paid on earlier branches.
                worthwhile = gained[opened] * secrets * typical[opened] > tried[opened] * cost
                if stop[0] or worthwhile or waited[level] >= _PATIENCE:
                    waited[level] = 0
                    spent += cost
                    result = work[1][4]
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
                    # Outputs whose bound does not matter are dropped, and the bound is remembered.
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
                    compact(data, here, space[level], below[level] * secrets, width, picked, kept)
                    base[level] = space[level]
                    widths[level] = width = kept + 1
        # The next choice for this tuple: a known value, unknown, or done and one level up.
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
        # Choices that no admitted adversary below can take are left out.
        knowing = known[level] + int(choice < size)
        allowed = may_know[level] if choice < size else may_hide[level]
        if not allowed or knowing > most or knowing + knowable[level + 1] < fewest:
            continue
        # Go down: a known value is a slice of the node, an unknown one the sum of its slices.
        start, length = base[level], below[level + 1] * secrets * width
        level += 1
        floors[level], ceilings[level] = floors[level - 1], ceilings[level - 1]
        if choice < size:
            base[level] = start + choice * length
            floors[level] += parts[level - 1, choice]
            ceilings[level] -= largest[level - 1] - parts[level - 1, choice]
        else:
            base[level] = space[level]
            add_slices(data, start, length, size, space[level])
            spent += length / _SUMS_PER_LEAF
        known[level] = knowing
        widths[level] = width
        for r in range(width - 1):
            columns[level, r] = columns[level - 1, r]
        turn[level] = -1
    return best, output, for_secret, against, left
