"""Compiled parts of the chained bound, and of histograms evaluated at every output.

A block holds 512 events, one row of the block per number of theirs. Written out straight for five
secrets and five values, the loop over a block becomes vectors: 16 events at a time.
"""

# ruff: noqa: FURB136

from __future__ import annotations

import numba
import numpy as np

BLOCK = 512

WIDTH = 5
"""Secrets and values of a block: fewer are filled up, more are not served."""

CELLS = WIDTH * WIDTH
RESULT = CELLS + 2 * WIDTH
ROWS = RESULT + 1
"""25 masses, then the five bounds about the first tuple, the five about the second, the result."""


FEW_AFTER = 16
"""Values after a tuple for which `count_out` runs along those before it."""


_LEAST = np.float32(1e-30)  # no sum of masses that counts is as small
_MOST = np.float32(3e38)  # no mass is as large; finite, for fastmath knows no infinity


_inside = numba.njit(
    error_model="numpy",
    fastmath=True,
    forceinline=True,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)
"""For what the loop over a block is made of: only without a call does it become vectors."""


@_inside
def _plus(one, other):
    return (
        one[0] + other[0],
        one[1] + other[1],
        one[2] + other[2],
        one[3] + other[3],
        one[4] + other[4],
    )


@_inside
def _times(one, other):
    return (
        one[0] * other[0],
        one[1] * other[1],
        one[2] * other[2],
        one[3] * other[3],
        one[4] * other[4],
    )


@_inside
def _each_times(rows, factor):
    every = (factor, factor, factor, factor, factor)
    return (
        _times(rows[0], every),
        _times(rows[1], every),
        _times(rows[2], every),
        _times(rows[3], every),
        _times(rows[4], every),
    )


@_inside
def _total(rows):
    return _plus(_plus(_plus(rows[0], rows[1]), _plus(rows[2], rows[3])), rows[4])


@_inside
def _more(one, other):
    return one if one > other else other


@_inside
def _less(one, other):
    return one if one < other else other


@_inside
def _largest(five):
    return _more(_more(_more(five[0], five[1]), _more(five[2], five[3])), five[4])


@_inside
def _smallest(five):
    return _less(_less(_less(five[0], five[1]), _less(five[2], five[3])), five[4])


@_inside
def _worse(worst, above, below):
    """Return the larger of two quotients, as above and below: products take less than a division.

    They are numbers of single precision, for (e^L)² is.
    """
    up, down = _largest(above), _smallest(below)
    is_worse = up * worst[1] > worst[0] * down
    return (up if is_worse else worst[0]), (down if is_worse else worst[1])


# Every set of values: with the value and without it, then the next value.


@_inside
def _from_fifth(above, below, raised, shares, worst):
    return _worse(worst, _plus(above, raised[4]), _plus(below, shares[4]))


@_inside
def _from_fourth(above, below, raised, shares, worst):
    up, down = _plus(above, raised[3]), _plus(below, shares[3])
    worst = _from_fifth(up, down, raised, shares, _worse(worst, up, down))
    return _from_fifth(above, below, raised, shares, worst)


@_inside
def _from_third(above, below, raised, shares, worst):
    up, down = _plus(above, raised[2]), _plus(below, shares[2])
    worst = _from_fourth(up, down, raised, shares, _worse(worst, up, down))
    return _from_fourth(above, below, raised, shares, worst)


@_inside
def _from_second(above, below, raised, shares, worst):
    up, down = _plus(above, raised[1]), _plus(below, shares[1])
    worst = _from_third(up, down, raised, shares, _worse(worst, up, down))
    return _from_third(above, below, raised, shares, worst)


@_inside
def _from_first(above, below, raised, shares, worst):
    up, down = _plus(above, raised[0]), _plus(below, shares[0])
    worst = _from_second(up, down, raised, shares, _worse(worst, up, down))
    return _from_second(above, below, raised, shares, worst)


@_inside
def _row(block, first, step, event):
    return (
        block[first * BLOCK + event],
        block[(first + step) * BLOCK + event],
        block[(first + 2 * step) * BLOCK + event],
        block[(first + 3 * step) * BLOCK + event],
        block[(first + 4 * step) * BLOCK + event],
    )


@_inside
def _every(number):
    return number, number, number, number, number


# What is called is compiled on its own and again within its caller: reductions, `max`, `min`, and
# arrays made here too; assigning to slices and expressions of arrays take seconds. Hence the plain
# loops, each written once, in room that the caller gives.


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=True, no_cfunc_wrapper=True)
def lower_bounds(
    masses, shape, about_one, about_other, charge, least, one_bounds, other_bounds, block
):
    """Lower the bounds about two tuples to what each proves about the other, where it proves any.

    The table of masses, flat, has the shape (before, firsts, between, seconds, after): the first
    tuple's values v stand on its second axis, the second tuple's values a on its fourth; events
    are counted along the others. about_one[·, a, after]: e^L about the first tuple if a is known of
    the second as well; about_other[before, v, ·] the reverse, both flat. A mass below `least`
    proves nothing. The block is room for `ROWS` times `BLOCK` numbers, positive ones at first.

    A result is the largest quotient of an event over z, 1 ≤ z_a ≤ κ, and all secrets. Everything
    is positive, so that each number is right to the roundings of its own terms: fewer than 60 in
    all, and the charge is for them.
    """
    before, firsts, between, seconds, after = shape
    events, none, one = before * between * after, np.float32(0), np.float32(1)
    is_full = firsts == WIDTH and seconds == WIDTH
    for start in range(0, events, BLOCK):
        number = events - start if events - start < BLOCK else BLOCK
        # About the first tuple from the second, then the reverse.
        for turn in range(2):
            done = number if turn > 0 and is_full else 0  # then all numbers are there already
            while done < number:
                # Events that differ on the last axis only stand side by side in every array.
                outer = (start + done) // after
                inner = start + done - outer * after
                length = number - done if number - done < after - inner else after - inner
                far = outer // between
                near = outer - far * between
                for row in range(RESULT):
                    # Filled up to five: secrets that are not there are the first one again, and
                    # values that are not there have no mass.
                    v, a = (
                        (row // WIDTH, row % WIDTH) if row < CELLS else (row % WIDTH, row % WIDTH)
                    )
                    is_there = row >= CELLS or (a < seconds if turn == 0 else v < firsts)
                    v, a = v if v < firsts else 0, a if a < seconds else 0
                    place = (far * firsts + v) * between + near
                    source = about_other
                    if row < CELLS:
                        source, place = masses, place * seconds + a
                    elif row < CELLS + WIDTH:
                        source, place = about_one, outer * seconds + a
                    numbers = source[place * after + inner : place * after + inner + length]
                    to = block[row * BLOCK + done : row * BLOCK + done + length]
                    factor = one if is_there else none
                    for event in range(length):
                        to[event] = factor * numbers[event]
                done += length
            by_first, by_second = (WIDTH, 1) if turn == 0 else (1, WIDTH)
            about, other = (CELLS, CELLS + WIDTH) if turn == 0 else (CELLS + WIDTH, CELLS)
            values, bounds = (seconds, one_bounds) if turn == 0 else (firsts, other_bounds)
            # Values that are not there do not count as too rare.
            rare = (
                none,
                none if values > 1 else _MOST,
                none if values > 2 else _MOST,
                none if values > 3 else _MOST,
                none if values > 4 else _MOST,
            )
            for event in range(BLOCK):
                # cells[a]: the masses of value a of the unknown tuple, with five secrets.
                cells = (
                    _row(block, 0 * by_second, by_first, event),
                    _row(block, by_second, by_first, event),
                    _row(block, 2 * by_second, by_first, event),
                    _row(block, 3 * by_second, by_first, event),
                    _row(block, 4 * by_second, by_first, event),
                )
                rarest = (
                    _smallest(cells[0]),
                    _smallest(cells[1]),
                    _smallest(cells[2]),
                    _smallest(cells[3]),
                    _smallest(cells[4]),
                )
                about_target = _row(block, about, np.int64(1), event)
                about_unknown = _row(block, other, np.int64(1), event)
                gain = _largest(about_unknown) - one  # κ − 1
                # P(a | v), and P(a | v)·e^L: sums below the least are those of events that are
                # discarded.
                sums = _total(cells)
                inverse = (
                    one / _more(sums[0], _LEAST),
                    one / _more(sums[1], _LEAST),
                    one / _more(sums[2], _LEAST),
                    one / _more(sums[3], _LEAST),
                    one / _more(sums[4], _LEAST),
                )
                shares = (
                    _times(cells[0], inverse),
                    _times(cells[1], inverse),
                    _times(cells[2], inverse),
                    _times(cells[3], inverse),
                    _times(cells[4], inverse),
                )
                raised = (
                    _times(shares[0], _every(about_target[0])),
                    _times(shares[1], _every(about_target[1])),
                    _times(shares[2], _every(about_target[2])),
                    _times(shares[3], _every(about_target[3])),
                    _times(shares[4], _every(about_target[4])),
                )
                # The quotient is largest at a corner: no value raised to κ, then every set.
                above, below = _total(raised), _every(one)
                worst = (_largest(above), one)
                raised, shares = _each_times(raised, gain), _each_times(shares, gain)
                worst = _from_first(above, below, raised, shares, worst)
                # Only where every mass counts is anything proved.
                counts = _smallest(_plus(rarest, rare)) >= least
                result = worst[0] / worst[1] * charge
                block[RESULT * BLOCK + event] = result if counts else _MOST
            lowered = bounds[start : start + number]
            results = block[RESULT * BLOCK : RESULT * BLOCK + number]
            for event in range(number):
                lowered[event] = _less(lowered[event], results[event])


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def gather_laws(cells, bases, offsets, places, steps, masses_at, scaled, sums, totals, laws):
    """Write the law of the counts given each secret, for many events.

    Secret v of event e has its masses at cells[bases[v, e] + offsets]; the c-th of them
    counts at masses_at[places[c] + steps[v]]. Written to laws[place, v, e]; each law sums to
    `scaled`. Written too are totals[v, e], of all masses of a secret: where these are zero, what is
    written is no law. sums[place, e] is room to work in.
    """
    # In double precision, for thousands of masses may meet at one place. Events side by side:
    # their masses are often neighbours.
    events = bases.shape[1]
    for v in range(bases.shape[0]):
        total = totals[v]
        for event in range(events):
            total[event] = 0.0
        for place in range(sums.shape[0]):
            for event in range(events):
                sums[place, event] = 0.0
        for c in range(offsets.size):
            row, shift = sums[masses_at[places[c] + steps[v]]], offsets[c]
            for event in range(events):
                row[event] += cells[bases[v, event] + shift]
        for place in range(sums.shape[0]):
            for event in range(events):
                total[event] += sums[place, event]
        for place in range(sums.shape[0]):  # a quotient first: 1/total may be infinite
            for event in range(events):
                mass, whole = sums[place, event], total[event]
                laws[place, v, event] = mass / whole * scaled if whole > 0.0 else scaled


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def count_out(masses, shape, moves, found):
    """Count one more tuple: of size shape[1], with so many values before it and after it.

    Row c of the masses belongs to one vector of counts, and goes, for value a of the tuple, to row
    moves[a, c] of `found`.
    """
    before, size, after = shape
    for c in range(masses.shape[0]):
        for a in range(size):
            row, to = masses[c], found[moves[a, c]]
            for inner in range(after if after < FEW_AFTER else 0):
                for outer in range(before):
                    to[outer * after + inner] += row[(outer * size + a) * after + inner]
            for outer in range(before if after >= FEW_AFTER else 0):
                source = row[(outer * size + a) * after : (outer * size + a + 1) * after]
                target = to[outer * after : (outer + 1) * after]
                for inner in range(after):
                    target[inner] += source[inner]


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def worst_ratios(work, width, factors, lengths, begins, starts, output, best):
    """Write to best[0, e] the largest quotient of two secrets' densities over all outputs.

    `work` begins with masses of count vectors, the first coordinate counting fastest: a row of
    `width` numbers each, one for secret v of event e. Coordinate d is blurred for every r_d; then,
    one r_d after the other, the coordinates that are left. So the densities at each output of the
    product grid come by, and none is kept.

    lengths[begins[d] : begins[d + 1]]: how many masses the lines along coordinate d have. Results
    of coordinate d are kept in `work` from starts[d] on. The output, zeros, and two more rows of
    `best` are room to work in.
    """
    levels, last = lengths[0], factors.size - 1
    best, most, least = best[0], best[1], best[2]
    lanes = best.size
    for e in range(lanes):
        best[e] = 1.0
    d, at = 0, 0
    while True:
        # Blur along one coordinate: from each line of masses x, Σ_n x_n·factor^|r−n| for every r.
        # A line has `levels` rows at most; lengths[l] of them hold masses. Row r of line l goes to
        # place r·lines + l; one more row is scratch. All terms are positive, so that nothing
        # cancels: every number is right to the roundings of its own terms.
        to, factor, step = starts[d], factors[d], (begins[d + 1] - begins[d]) * width
        tail = work[to + levels * step : to + levels * step + width]
        for line in range(begins[d], begins[d + 1]):
            here = to + (line - begins[d]) * width
            # What lies at r or before it, from the left …
            for w in range(width):
                tail[w] = 0.0
            for r in range(levels):
                row, before = work[here + r * step : here + r * step + width], tail
                if r > 0:
                    before = work[here + (r - 1) * step : here + (r - 1) * step + width]
                if r < lengths[line]:
                    masses = work[at + r * width : at + (r + 1) * width]
                    for w in range(width):
                        row[w] = masses[w] + factor * before[w]
                else:
                    for w in range(width):
                        row[w] = factor * before[w]
            # … and what lies after it, from the right.
            for r in range(lengths[line] - 2, -1, -1):
                row = work[here + r * step : here + r * step + width]
                masses = work[at + (r + 1) * width : at + (r + 2) * width]
                for w in range(width):
                    after = factor * (tail[w] + masses[w])
                    tail[w] = after
                    row[w] += after
            at += lengths[line] * width
        if d == last:
            for r in range(levels):
                # Raise the quotients to those at this output; a row per secret.
                here = to + r * width
                for e in range(lanes):
                    most[e] = least[e] = work[here + e]
                for start in range(here + lanes, here + width, lanes):
                    row = work[start : start + lanes]
                    for e in range(lanes):
                        number, high, low = row[e], most[e], least[e]
                        most[e] = number if number > high else high
                        least[e] = number if number < low else low
                for e in range(lanes):
                    ratio, so_far = most[e] / least[e], best[e]
                    best[e] = ratio if ratio > so_far else so_far
            # The next output of the coordinates before it.
            d -= 1
            while d >= 0:
                output[d] += 1
                if output[d] < levels:
                    break
                output[d] = 0
                d -= 1
            if d < 0:
                return
        at = starts[d] + output[d] * (begins[d + 1] - begins[d]) * width
        d += 1
