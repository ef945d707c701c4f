"""Compiled parts of the chained bound, and of histograms evaluated at every output.

A block holds 512 events, one row of the block per number of theirs. Written out straight for five
secrets and five values, the loop over a block becomes vectors: 16 events at a time.
"""

from __future__ import annotations

import numba
import numpy as np

BLOCK = 512

WIDTH = 5
"""Secrets and values of a block: fewer are filled up, more are not served."""

ROWS = WIDTH * WIDTH + 2 * WIDTH
"""25 masses, then the five bounds about the first tuple, and the five about the second."""


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


_apart = numba.njit(
    cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""For what is called: compiled once, and not again within each caller."""


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
def _largest(five):
    return max(max(max(five[0], five[1]), max(five[2], five[3])), five[4])


@_inside
def _smallest(five):
    return min(min(min(five[0], five[1]), min(five[2], five[3])), five[4])


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


# Assigning to slices and expressions of arrays compile for seconds: hence the loops.


@_apart
def _copied(numbers, start, block, at, number):
    """Copy a run of numbers into the block."""
    source, to = numbers[start : start + number], block[at : at + number]
    for event in range(number):
        to[event] = source[event]


@_apart
def _lessened(smallest, at, numbers, start, number):
    """Keep the smallest mass of each event."""
    source, to = numbers[start : start + number], smallest[at : at + number]
    for event in range(number):
        to[event] = min(to[event], source[event])


@_apart
def _filled(block, nothing, secrets, by_secret, values, by_value):
    """Fill up to five: values that are not there have no mass, secrets are the first one again."""
    for v in range(WIDTH):
        for a in range(WIDTH):
            row, first = (by_secret * v + by_value * a) * BLOCK, by_value * a * BLOCK
            if a >= values or v >= secrets:
                source, at = (nothing, np.int64(0)) if a >= values else (block, first)
                _copied(source, at, block, row, np.int64(BLOCK))


@_apart
def _lowered(bounds, start, result, factor, smallest, least):
    """Take over what was proved where every mass counts."""
    for event in range(min(BLOCK, bounds.size - start)):
        bound = bounds[start + event]
        if smallest[event] >= least:
            bounds[start + event] = min(bound, result[event] * factor)


@_apart
def _gathered(masses, shape, one, other, start, number, block, smallest):
    """Copy the numbers of a block of events: masses, and bounds about both tuples."""
    _, firsts, between, seconds, after = shape
    for event in range(BLOCK):
        smallest[event] = _MOST
    done = np.int64(0)  # no literal: what is called would be compiled for that as well
    while done < number:
        # Events that differ on the last axis only stand side by side in every array.
        outer, inner = divmod(start + done, after)
        length = min(after - inner, number - done)
        far, near = divmod(outer, between)
        for v in range(firsts):
            for a in range(seconds):
                place = (((far * firsts + v) * between + near) * seconds + a) * after + inner
                _copied(masses, place, block, (WIDTH * v + a) * BLOCK + done, length)
                _lessened(smallest, done, masses, place, length)
        for k in range(WIDTH):
            a, v = (k if k < seconds else 0), (k if k < firsts else 0)
            place = (outer * seconds + a) * after + inner
            _copied(one, place, block, (25 + k) * BLOCK + done, length)
            place = ((far * firsts + v) * between + near) * after + inner
            _copied(other, place, block, (30 + k) * BLOCK + done, length)
        done += length


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=True, no_cfunc_wrapper=True)
def lower_bounds(masses, shape, about_one, about_other, charge, least, one_bounds, other_bounds):
    """Lower the bounds about two tuples to what each proves about the other, where it proves any.

    The table of masses, flat, has the shape (before, firsts, between, seconds, after): the first
    tuple's values v stand on its second axis, the second tuple's values a on its fourth; events
    are counted along the others. about_one[·, a, after]: e^L about the first tuple if a is known of
    the second as well; about_other[before, v, ·] the reverse, both flat. A mass below `least`
    proves nothing.

    A result is the largest quotient of an event over z, 1 ≤ z_a ≤ κ, and all secrets. Everything
    is positive, so that each number is right to the roundings of its own terms: fewer than 60 in
    all, and the charge is for them.
    """
    firsts, seconds = shape[1], shape[3]
    events = shape[0] * shape[2] * shape[4]
    block = np.ones(ROWS * BLOCK, dtype=np.float32)
    nothing = np.zeros(BLOCK, dtype=np.float32)
    result = np.empty(BLOCK, dtype=np.float32)
    smallest = np.empty(BLOCK, dtype=np.float32)
    one, side_by_side = np.float32(1), np.int64(1)
    for start in range(0, events, BLOCK):
        number = min(BLOCK, events - start)
        _gathered(masses, shape, about_one, about_other, start, number, block, smallest)
        # About the first tuple from the second, then the reverse, and both written once: the
        # compiler repeats a function wherever it is called.
        for turn in range(2):
            by_first, by_second = (WIDTH, 1) if turn == 0 else (1, WIDTH)
            about, other = (25, 30) if turn == 0 else (30, 25)
            if firsts < WIDTH or seconds < WIDTH:
                secrets, values = (firsts, seconds) if turn == 0 else (seconds, firsts)
                _filled(block, nothing, secrets, by_first, values, by_second)
            for event in range(BLOCK):
                # cells[a]: the masses of value a of the unknown tuple, with five secrets.
                cells = (
                    _row(block, 0 * by_second, by_first, event),
                    _row(block, by_second, by_first, event),
                    _row(block, 2 * by_second, by_first, event),
                    _row(block, 3 * by_second, by_first, event),
                    _row(block, 4 * by_second, by_first, event),
                )
                about_target = _row(block, about, side_by_side, event)
                about_unknown = _row(block, other, side_by_side, event)
                gain = _largest(about_unknown) - one  # κ − 1
                # P(a | v), and P(a | v)·e^L: sums below the least are those of events that are
                # discarded.
                sums = _total(cells)
                inverse = (
                    one / max(sums[0], _LEAST),
                    one / max(sums[1], _LEAST),
                    one / max(sums[2], _LEAST),
                    one / max(sums[3], _LEAST),
                    one / max(sums[4], _LEAST),
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
                result[event] = worst[0] / worst[1]
            bounds = one_bounds if turn == 0 else other_bounds
            _lowered(bounds, start, result, charge, smallest, least)


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def gather_laws(cells, bases, offsets, places, steps, masses_at, scaled, laws):
    """Write the law of the counts given each secret, for many events.

    Secret v of event e has its masses at cells[bases[v, e] + offsets]; the c-th of them
    counts at masses_at[places[c] + steps[v]]. Written to laws[place, v, e]; each law sums to
    `scaled`. A secret without mass repeats one that has some, and lanes without an event the first
    event: neither adds a quotient.
    """
    size, secrets, lanes = laws.shape
    events = bases.shape[1]
    # In double precision, for thousands of masses may meet at one place. Events side by side:
    # their masses are often neighbours.
    sums = np.empty((size, events))
    totals = np.zeros((secrets, events))
    for v in range(secrets):
        for place in range(size):
            for event in range(events):
                sums[place, event] = 0.0
        for c in range(offsets.size):
            row, shift = sums[masses_at[places[c] + steps[v]]], offsets[c]
            for event in range(events):
                row[event] += cells[bases[v, event] + shift]
        for place in range(size):
            for event in range(events):
                totals[v, event] += sums[place, event]
        for place in range(size):  # a quotient first: 1/total may be infinite
            for event in range(events):
                total = totals[v, event]
                mass = sums[place, event] / total * scaled if total > 0 else scaled
                laws[place, v, event] = mass
    for event in range(events):
        possible = 0
        for v in range(1, secrets):
            if totals[v, event] > totals[possible, event]:
                possible = v
        for v in range(secrets):
            if totals[v, event] == 0:
                for place in range(size):
                    laws[place, v, event] = laws[place, possible, event]
    for place in range(size):
        for v in range(secrets):
            for event in range(events, lanes):
                laws[place, v, event] = laws[place, v, 0]


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


@_apart
def _blur(work, at, width, lengths, factor, to, levels):
    """Blur along one coordinate: from each line of masses x, Σ_n x_n·factor^|r−n| for every r.

    A line has up to `levels` rows of `width` numbers each; lengths[l] of them hold masses. Their
    rows begin at `at`, line after line. Row r of line l goes to place r·lines + l, counted from
    `to`; one more row there is scratch. All terms are positive, so that nothing
    cancels: every number is right to the roundings of its own terms.
    """
    lines = lengths.size
    step = lines * width
    tail = work[to + levels * step : to + levels * step + width]
    for line in range(lines):
        number, here = lengths[line], to + line * width
        # What lies at r or before it, from the left …
        for w in range(width):
            work[here + w] = work[at + w]
        for r in range(1, levels):
            row = work[here + r * step : here + r * step + width]
            before = work[here + (r - 1) * step : here + (r - 1) * step + width]
            if r < number:
                masses = work[at + r * width : at + (r + 1) * width]
                for w in range(width):
                    row[w] = masses[w] + factor * before[w]
            else:
                for w in range(width):
                    row[w] = factor * before[w]
        # … and what lies after it, from the right.
        for w in range(width):
            tail[w] = 0.0
        for r in range(number - 2, -1, -1):
            row = work[here + r * step : here + r * step + width]
            masses = work[at + (r + 1) * width : at + (r + 2) * width]
            for w in range(width):
                after = factor * (tail[w] + masses[w])
                tail[w] = after
                row[w] += after
        at += number * width


@_apart
def _compare(densities, most, least, best):
    """Raise best[e] to the largest quotient of two secrets' densities; a row per secret."""
    lanes = best.size
    for e in range(lanes):
        most[e] = least[e] = densities[e]
    for start in range(lanes, densities.size, lanes):
        row = densities[start : start + lanes]
        for e in range(lanes):
            number, high, low = row[e], most[e], least[e]
            most[e] = max(high, number)
            least[e] = min(low, number)
    for e in range(lanes):
        ratio, so_far = most[e] / least[e], best[e]
        best[e] = max(so_far, ratio)


@numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def worst_ratios(work, width, factors, lengths, begins, starts, best):
    """Write to best[e] the largest quotient of two secrets' densities over all outputs.

    `work` begins with masses of count vectors, the first coordinate counting fastest: a row of
    `width` numbers each, one for secret v of event e. Coordinate d is blurred for every r_d; then,
    one r_d after the other, the coordinates that are left. So the densities at each output of the
    product grid come by, and none is kept.

    lengths[begins[d] : begins[d + 1]]: how many masses the lines along coordinate d have. Results
    of coordinate d are kept in `work` from starts[d] on.
    """
    levels, last = lengths[0], factors.size - 1
    output = np.zeros(factors.size, dtype=np.int64)
    most, least = np.empty(best.size, dtype=np.float32), np.empty(best.size, dtype=np.float32)
    for e in range(best.size):
        best[e] = 1.0
    d, at = np.int64(0), np.int64(0)  # not literals: `_blur` would be compiled for each
    while True:
        _blur(work, at, width, lengths[begins[d] : begins[d + 1]], factors[d], starts[d], levels)
        if d == last:
            for r in range(levels):
                here = starts[d] + r * width
                _compare(work[here : here + width], most, least, best)
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
