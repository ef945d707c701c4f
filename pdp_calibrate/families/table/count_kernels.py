"""Compiled parts of histograms evaluated at every output: laws of counts, and their quotients.

What is called is compiled on its own and again within its caller, and so are reductions, `max`,
`min` and arrays made here: hence plain loops, each written once, in buffers that the caller gives.
"""

# ruff: noqa: FURB136

from __future__ import annotations

import numba

FEW_AFTER = 16
"""Values after a tuple for which `count_out` runs along those before it."""


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
