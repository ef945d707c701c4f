"""Compiled steps along a chain: the same as in `windows`, for chains that are large."""

from __future__ import annotations

import numba
import numpy as np

from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, LOGS


@numba.njit(cache=True, no_cfunc_wrapper=True)
def _shift(source, mass, size, by, new_size, step, decay, lack, form, out):
    """Move a density to the right by some points, filling in its exponential tails.

    Outside the points held so far there is no atom; see `windows.Noise.tail`.
    """
    # The new points on the left, below the smallest sum.
    for r in range(by):
        gap = by - r
        if form == LOGS:
            out[r] = source[0] - gap * step
        else:
            out[r] = source[0] * decay[gap] + mass * lack[gap]
    # The points held so far.
    for r in range(size):
        out[r + by] = source[r]
    # The new points on the right, up to what another state may add.
    for r in range(by + size, new_size):
        gap = r - by - size + 1
        if form == LOGS:
            out[r] = source[size - 1] - gap * step
        else:
            out[r] = source[size - 1] * decay[gap] + mass * lack[gap]


@numba.njit(cache=True, no_cfunc_wrapper=True)
def _mix(rows, weights, size, form, out):
    """Write Σ_j weights[j]·rows[j] to `out`; logarithms stay logarithms."""
    # Row by row, so that memory is read in order; terms of weight zero add nothing.
    if form != LOGS:
        for r in range(size):
            out[r] = weights[0] * rows[0, r]
        for j in range(1, len(weights)):
            weight = weights[j]
            if weight > 0.0:
                for r in range(size):
                    out[r] += weight * rows[j, r]
        return
    # The largest term is taken out first: no exponential overflows, and one of them is 1.
    for r in range(size):
        peak = -np.inf
        for j in range(len(weights)):
            peak = max(peak, weights[j] + rows[j, r])
        if peak == -np.inf:
            out[r] = peak
            continue
        total = 0.0
        for j in range(len(weights)):
            total += np.exp(weights[j] + rows[j, r] - peak)
        out[r] = peak + np.log(total)


@numba.njit(cache=True, no_cfunc_wrapper=True)
def advance(source, masses, points, matrix, step, decay, lack, form):
    """Add the tuple at the end of each walk to the sum and move to its neighbour.

    `source` is indexed [state, walk, point], `matrix[new, old]` holds the transition.
    """
    states, walks, size = source.shape
    # All states get the points of the one that adds most.
    new_size = size
    for old in range(states):
        new_size = max(new_size, size + points[old])
    there, moved = np.empty((len(matrix), walks, new_size)), np.empty((len(matrix), walks))
    # The last point of these rows carries the mass, which is mixed by the same code.
    shifted, mixed = np.empty((states, new_size + 1)), np.empty(new_size + 1)
    for walk in range(walks):
        # Given the old state, its contribution moves the sum …
        for old in range(states):
            _shift(
                source[old, walk], masses[old, walk], size, points[old], new_size, step, decay,
                lack, form, shifted[old],
            )  # fmt: skip
            shifted[old, new_size] = masses[old, walk]
        # … and averaging over it leaves the sum and the new state.
        for new in range(len(matrix)):
            _mix(shifted, matrix[new], new_size + 1, form, mixed)
            for r in range(new_size):  # copying a slice would take seconds to compile
                there[new, walk, r] = mixed[r]
            moved[new, walk] = mixed[new_size]
    return there, moved


@numba.njit(cache=True, no_cfunc_wrapper=True)
def walk(source, masses, points, matrix, step, decay, lack, form):
    """Add several tuples to the sum, one after the other; see `advance`."""
    for place in range(len(points)):
        source, masses = advance(source, masses, points[place], matrix, step, decay, lack, form)
    return source, masses


@numba.njit(cache=True, no_cfunc_wrapper=True)
def _largest(rows, masses, form):
    """Return the largest log-ratio of two secrets' densities, at all points and at the ends.

    `rows` is indexed [secret, point]. −inf if fewer than two secrets are possible.
    """
    # Only secrets that can happen together with the ends are compared, each divided by its mass:
    # that turns joint densities into conditional ones.
    impossible = -np.inf if form == LOGS else 0.0
    secrets = 0
    scales = np.empty(len(masses))
    live = np.empty(len(masses), dtype=np.int64)
    for v in range(len(masses)):
        if masses[v] > impossible:
            live[secrets] = v
            scales[secrets] = masses[v] if form == LOGS else 1.0 / masses[v]
            secrets += 1
    if secrets < 2:
        return -np.inf, -np.inf
    # The supremum over all outputs is attained at a lattice point (see `core.mixtures`); there the
    # largest and the smallest density make the worst pair. The logarithm is taken once, at the end.
    best, ends, size = -np.inf, -np.inf, rows.shape[1]
    for r in range(size):
        first = rows[live[0], r]
        low = first - scales[0] if form == LOGS else first * scales[0]
        high = low
        for k in range(1, secrets):
            other = rows[live[k], r]
            here = other - scales[k] if form == LOGS else other * scales[k]
            low, high = min(low, here), max(high, here)
        if form == DEFICITS:
            excess = (high - low) / (1.0 - high)
        elif form == DENSITIES:
            excess = high / low
        else:
            excess = high - low
        best = max(best, excess)
        if r == 0 or r == size - 1:
            ends = max(ends, excess)
    if form == DEFICITS:
        return np.log1p(best), np.log1p(ends)
    if form == DENSITIES:
        return np.log(best), np.log(ends)
    return best, ends


@numba.njit(cache=True, no_cfunc_wrapper=True)
def compare_densities(here, masses, form):
    """Compare secrets per state and left side; `here` is indexed [state, secret, side, point]."""
    states, _, sides, _ = here.shape
    whole, ends = np.empty((states, sides)), np.empty((states, sides))
    for u in range(states):
        for side in range(sides):
            whole[u, side], ends[u, side] = _largest(here[u, :, side], masses[u, :, side], form)
    return whole, ends


@numba.njit(cache=True, no_cfunc_wrapper=True)
def tilted_walk(vector, points, forwards, matrix):
    """Carry log-weights along tuples that each add `points[j, state]` to the exponent.

    Only differences of the result matter: the peak is taken out at every step, so that a long
    walk keeps its digits.
    """
    states = len(vector)
    for j in range(len(points)):
        moved = np.empty(states)
        # log Σ_old e^{…}, the largest term taken out so that nothing overflows.
        for new in range(states):
            peak = -np.inf
            for old in range(states):
                link = matrix[old, new] if forwards else matrix[new, old]
                peak = max(peak, vector[old] + points[j, old] + link)
            total = 0.0
            if peak > -np.inf:
                for old in range(states):
                    link = matrix[old, new] if forwards else matrix[new, old]
                    total += np.exp(vector[old] + points[j, old] + link - peak)
            moved[new] = peak + np.log(total) if total > 0.0 else -np.inf
        # Take the peak out: a common factor, which cancels from every difference.
        highest = -np.inf
        for new in range(states):
            highest = max(highest, moved[new])
        if highest > -np.inf:
            for new in range(states):
                moved[new] -= highest
        vector = moved
    return vector
