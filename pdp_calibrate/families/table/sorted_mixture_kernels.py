"""Mixtures with arbitrary real atoms, compared at all of them in one sweep each way.

With the atoms of all secrets sorted, the part of a density that comes from the left obeys
L ← e^{−gap}·L + mass, the part from the right likewise: all densities of one event cost O(atoms).
Near one, the loss Σ p·(1 − e^{−distance}) obeys L ← e^{−gap}·L + (1 − e^{−gap})·(mass passed),
again a sum of positive terms, and density − 1 keeps its digits. Events with the same unknown tuples
share the atoms (if the query is additive) and go through the sweep together, as vectors.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_TOGETHER = 2**15  # numbers kept for the events that go together


_OUTSIDE = 2.0  # further from 0 than any density, or density − 1, is


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _offsets(sizes, strides, chosen):
    """Return where the cells of the chosen tuples stand, last tuple fastest."""
    count = 1
    for place in range(sizes.size):
        if chosen[place]:
            count *= sizes[place]
    offsets = np.zeros(count, dtype=np.int64)
    filled = 1
    for place in range(sizes.size):
        if chosen[place]:
            for at in range(filled - 1, -1, -1):
                start = offsets[at]
                for value in range(sizes[place]):
                    offsets[at * sizes[place] + value] = start + value * strides[place]
            filled *= sizes[place]
    return offsets


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sums(sizes, parts, chosen):
    """Return what the cells of the chosen tuples add to the answer, in the same order."""
    count = 1
    for place in range(sizes.size):
        if chosen[place]:
            count *= sizes[place]
    sums = np.zeros(count)
    filled = 1
    for place in range(sizes.size):
        if chosen[place]:
            for at in range(filled - 1, -1, -1):
                start = sums[at]
                for value in range(sizes[place]):
                    sums[at * sizes[place] + value] = start + parts[place, value]
            filled *= sizes[place]
    return sums


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _steps(places, one):
    """Sort the atoms; return their order, the decay to each from the one before, and the loss."""
    order = np.argsort(places)
    decay, loss = np.ones(places.size), np.zeros(places.size)
    for s in range(1, places.size):
        gap = places[order[s]] - places[order[s - 1]]
        decay[s] = math.exp(-gap)
        loss[s] = -math.expm1(-gap) if one > 0.0 else 0.0
    return order, decay, loss


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sweep(masses, order, decay, loss, one, tails_only, limit, left):
    """Compare the mixtures of several events at all atoms; masses[v, atom, event].

    Returns the largest ratio − 1 if it exceeds `limit` (else −1), the step, event and secrets.
    """
    secrets, atoms, events = masses.shape
    steps = order.size
    side, passed = np.zeros((secrets, events)), np.zeros((secrets, events))
    inverse, never, always = np.zeros((3, secrets, events))
    for v in range(secrets):
        for m in range(atoms):
            for k in range(events):
                inverse[v, k] += masses[v, m, k]
    for k in range(events):
        possible = 0
        for v in range(secrets):
            possible += int(inverse[v, k] > 0.0)
        for v in range(secrets):
            counts = inverse[v, k] > 0.0 and possible > 1  # one secret alone: nothing to tell apart
            inverse[v, k] = 1.0 / inverse[v, k] if counts else 0.0
            never[v, k] = 0.0 if counts else -_OUTSIDE
            always[v, k] = 0.0 if counts else _OUTSIDE
    for s in range(steps):
        own, atom = order[s] // atoms, order[s] % atoms
        e, lost = decay[s], loss[s]
        for v in range(secrets):
            here, gone, kept = side[v], passed[v], left[s, v]
            for k in range(events):
                here[k] = e * here[k] + lost * gone[k]
            if v == own:
                mass = masses[v, atom]
                if one > 0.0:
                    for k in range(events):
                        gone[k] += mass[k]
                else:
                    for k in range(events):
                        here[k] += mass[k]
            for k in range(events):
                kept[k] = here[k]
    side[:] = 0.0
    passed[:] = 0.0
    sign = -1.0 if one > 0.0 else 1.0
    high, low = np.empty(events), np.empty(events)
    best, best_step, best_event = -1.0, 0, 0
    factor, offset = 1.0 + limit, one * limit
    for s in range(steps - 1, -1, -1):
        if not tails_only or s == 0 or s == steps - 1:
            for k in range(events):
                high[k], low[k] = -_OUTSIDE, _OUTSIDE
            for v in range(secrets):
                here, kept, scale = side[v], left[s, v], inverse[v]
                lowest, highest = never[v], always[v]
                for k in range(events):
                    y = sign * (kept[k] + here[k]) * scale[k]
                    kept[k] = y
                    high[k] = max(high[k], y + lowest[k])
                    low[k] = min(low[k], y + highest[k])
            hits = 0
            for k in range(events):
                hits += int(high[k] > factor * low[k] + offset)
            if hits > 0:
                for k in range(events):
                    if high[k] > factor * low[k] + offset:
                        ratio = (high[k] - low[k]) / (one + low[k])
                        if ratio > best:
                            best, best_step, best_event = ratio, s, k
                factor, offset = 1.0 + best, one * best
        own, atom = order[s] // atoms, order[s] % atoms
        e, lost = decay[s], loss[s]
        mass = masses[own, atom]
        if one > 0.0:
            gone = passed[own]
            for k in range(events):
                gone[k] += mass[k]
        else:
            here = side[own]
            for k in range(events):
                here[k] += mass[k]
        for v in range(secrets):
            here, gone = side[v], passed[v]
            for k in range(events):
                here[k] = e * here[k] + lost * gone[k]
    first, second = 0, 0
    if best >= 0.0:
        most, least = -np.inf, np.inf
        for v in range(secrets):
            if inverse[v, best_event] > 0.0:
                y = left[best_step, v, best_event]
                if y > most:
                    most, first = y, v
                if y <= least:
                    least, second = y, v
    return best, best_step, best_event, first, second


@numba.njit(cache=True, nogil=True, error_model="numpy")
def compare_mixtures(
    cells, sizes, strides, parts, table, target, unknown, one, tails_only, same, shared
):
    """Return the worst event of one target and one set of unknown tuples.

    Parameters
    ----------
    cells
        The flat joint table.
    sizes, strides
        Domain size and step in the flat table, per tuple.
    parts
        parts[tuple, value]: what it adds to the answer; not used if `table` is not empty.
    table
        The answer per cell of the flat table, empty for an additive query.
    target, unknown
        The tuple attacked; per tuple, whether it is unknown.
    one
        1.0 to keep densities minus one, else 0.0.
    tails_only
        Whether only the outermost atoms count.
    same
        Atoms of the unknown tuples closer than this are one.
    shared
        [best ratio − 1 so far, …]; raised.

    Returns
    -------
    tuple
        (largest ratio − 1, or −1 if nothing exceeds the best so far; known cell; secret for;
        secret against; output, without what the known tuples add if the query is additive).
    """
    secrets = sizes[target]
    known_places = ~unknown
    known_places[target] = False
    hidden, known = _offsets(sizes, strides, unknown), _offsets(sizes, strides, known_places)
    own = np.arange(secrets) * strides[target]
    best, cell, first, second, output = -1.0, 0, 0, 0, 0.0
    if table.size > 0:
        masses, places = np.empty((secrets, hidden.size, 1)), np.empty(secrets * hidden.size)
        left = np.empty((places.size, secrets, 1))
        for k in range(known.size):
            for v in range(secrets):
                for h in range(hidden.size):
                    at = known[k] + own[v] + hidden[h]
                    masses[v, h, 0], places[v * hidden.size + h] = cells[at], table[at]
            order, decay, loss = _steps(places, one)
            limit = max(shared[0], best)
            found = _sweep(masses, order, decay, loss, one, tails_only, limit, left)
            if found[0] > best:
                best, cell, first, second = found[0], k, found[3], found[4]
                output = places[order[found[1]]]
    else:
        sums = _sums(sizes, parts, unknown)
        by_size = np.argsort(sums)
        group, values = np.empty(sums.size, dtype=np.int64), np.empty(sums.size)
        groups = 0
        for h in by_size:
            if groups == 0 or sums[h] - values[groups - 1] > same:
                values[groups] = sums[h]
                groups += 1
            group[h] = groups - 1
        places = np.empty(secrets * groups)
        for v in range(secrets):
            for k in range(groups):  # assigning a slice would compile its error message too
                places[v * groups + k] = parts[target, v] + values[k]
        order, decay, loss = _steps(places, one)
        block = max(1, min(known.size, _TOGETHER // (places.size * secrets)))
        left = np.empty((places.size, secrets, block))
        for begin in range(0, known.size, block):
            events = min(block, known.size - begin)
            masses = np.zeros((secrets, groups, events))
            for v in range(secrets):
                for h in range(hidden.size):
                    row = masses[v, group[h]]
                    place = own[v] + hidden[h]
                    for k in range(events):
                        row[k] += cells[known[begin + k] + place]
            limit = max(shared[0], best)
            found = _sweep(masses, order, decay, loss, one, tails_only, limit, left)
            if found[0] > best:
                best, cell, first, second = found[0], begin + found[2], found[3], found[4]
                output = places[order[found[1]]]
    if best > shared[0]:
        shared[0] = best
    return best, cell, first, second, output
