"""Mixtures with arbitrary real atoms, compared at all of them in one sweep each way.

With the atoms of all secrets sorted, the part of a density that comes from the left obeys
L ← e^{−gap}·L + mass, the part from the right likewise: all densities of one event cost O(atoms).
Near one, the loss Σ p·(1 − e^{−distance}) obeys L ← e^{−gap}·L + (1 − e^{−gap})·(mass passed),
again a sum of positive terms, and density − 1 keeps its digits. Events with the same unknown tuples
share the atoms (if the query is additive) and go through the sweep together, as vectors.
"""

from __future__ import annotations

import numba
import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.families.table.two_cell_bound import inlined

_TOGETHER = 2**15  # numbers kept for the events that go together


_OUTSIDE = 2.0  # further from 0 than any density, or density − 1, is


@inlined
def _sweep(masses, events, order, decay, loss, one, tails_only, limit, left, rows, lines):
    """Compare the mixtures of the first events at all atoms; masses[v, atom, event].

    Returns the largest ratio − 1 if it exceeds `limit` (else −1), the step, event and secrets.
    """
    secrets, atoms = masses.shape[0], masses.shape[1]
    steps = order.size
    side, passed, inverse, never, always = rows[0], rows[1], rows[2], rows[3], rows[4]
    high, low = lines[0], lines[1]
    # The mass of each secret, given each event.
    for v in range(secrets):
        for k in range(events):
            side[v, k] = passed[v, k] = inverse[v, k] = 0.0
        for m in range(atoms):
            for k in range(events):
                inverse[v, k] += masses[v, m, k]
    # Secrets that cannot occur never win a comparison: their extremes lie outside every density.
    for k in range(events):
        possible = 0
        for v in range(secrets):
            possible += int(inverse[v, k] > 0.0)
        for v in range(secrets):
            counts = inverse[v, k] > 0.0 and possible > 1  # one possible secret: nothing to compare
            inverse[v, k] = 1.0 / inverse[v, k] if counts else 0.0
            never[v, k] = 0.0 if counts else -_OUTSIDE
            always[v, k] = 0.0 if counts else _OUTSIDE
    # From left to right: what each atom gets from those on its left, its own mass included. Only
    # sums of products of numbers that are not negative, so nothing cancels.
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
    # From right to left: the other half; with both, the densities at an atom are complete.
    for v in range(secrets):
        for k in range(events):
            side[v, k] = passed[v, k] = 0.0
    sign = -1.0 if one > 0.0 else 1.0
    best, best_step, best_event = -1.0, 0, 0
    factor, offset = 1.0 + limit, one * limit
    for s in range(steps - 1, -1, -1):
        if not tails_only or s == 0 or s == steps - 1:
            # The largest and the smallest density of all secrets make the worst pair.
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
            # Tested without a division, which few events deserve: y/z − 1 > limit.
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
        # Take this atom in, then move on to the one before it.
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
    # Whose densities they were: `left` holds all of them by now.
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


def space_to_compare(
    secrets: int, atoms: int, groups: int, known: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return work space for `compare_mixtures`: allocating it there would take long to compile.

    Parameters
    ----------
    secrets, atoms, groups
        How many secrets, atoms of all secrets, and atoms of one secret there are.
    known
        How many known cells share their atoms; as many go together as fit the cache.
    """
    block = max(1, min(known, _TOGETHER // (atoms * secrets)))
    return (
        np.empty((secrets, groups, block)),
        np.empty((atoms, secrets, block)),
        np.empty((5, secrets, block)),
        np.empty((2, block)),
    )


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def compare_mixtures(
    cells, own, hidden, known, group, order, decay, loss, one, tails_only, shared,
    masses, left, rows, lines,
):  # fmt: skip
    """Return the worst event of one target and one set of unknown tuples.

    Parameters
    ----------
    cells
        The flat joint table.
    own, hidden, known
        Secret v, hidden value h and known cell k stand at own[v] + hidden[h] + known[k] there.
    group
        Per hidden value, its atom among those of one secret.
    order, decay, loss
        Per row, the atoms of all secrets in order (secret × atoms + atom), the decay e^{−gap} to
        each from the one before, and 1 − e^{−gap}. One row for all known cells, or one for each.
    one
        1.0 to keep densities minus one, else 0.0.
    tails_only
        Whether only the outermost atoms count.
    shared
        [best ratio − 1 so far, …]; raised.
    masses, left, rows, lines
        Work space, made by `space_to_compare`; its last axis is for known cells with one order.

    Returns
    -------
    tuple
        (largest ratio − 1, or −1 if nothing exceeds the best so far; known cell; secret for;
        secret against; step in the order of the atoms).
    """
    secrets, groups, block = masses.shape
    best, cell, first, second, step = -1.0, 0, 0, 0, 0
    for begin in range(0, known.size, block):
        events = min(block, known.size - begin)
        # Add up the cells whose unknown tuples add the same: the mass of each atom.
        for v in range(secrets):
            for m in range(groups):
                for k in range(events):
                    masses[v, m, k] = 0.0
            for h in range(hidden.size):
                row = masses[v, group[h]]
                place = own[v] + hidden[h]
                for k in range(events):
                    row[k] += cells[known[begin + k] + place]
        # Events that share their atoms are swept together; only what beats the best counts.
        at = begin if order.shape[0] > 1 else 0
        found = _sweep(
            masses, events, order[at], decay[at], loss[at], one, tails_only,
            max(shared[0], best), left, rows, lines,
        )  # fmt: skip
        if found[0] > best:
            best, cell, first, second = found[0], begin + found[2], found[3], found[4]
            step = found[1]
    if best > shared[0]:
        shared[0] = best
    return best, cell, first, second, step
