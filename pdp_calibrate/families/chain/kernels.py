"""Compiled walks along a chain.

For a fixed secret v of the target, the joint density of the noisy sum over the window walked so
far and the state at its end is held at every lattice point from 0 to the largest possible sum;
beyond these it falls like e^{−distance}. One step adds a tuple: shift the density by what the
tuple's state adds, then apply the transition.

The caller chooses the form by the width of the lattice in units of the scale: DEFICITS keep what a
density lacks to its mass, so that a tiny leakage keeps its digits; DENSITIES the density; LOGS its
logarithm (and that of masses and transition), where densities would underflow. LAWS leave the noise
out: the joint law of the sum and the state, for releases repeated any number of times.

No form subtracts before the final comparison: all entries are sums of products of non-negative
numbers, or logarithms of such, so the relative error grows by a few units per step, and `Walk`
knows how many steps there are. It charges them to both ends of the bracket.
"""

from __future__ import annotations

import numba
import numpy as np

from pdp_calibrate.core.line_program import widest

DEFICITS, DENSITIES, LOGS, LAWS = 0, 1, 2, 3


NOT, TAILS, WHOLE = 0, 1, 2  # over which outputs a window counts for the lower end


@numba.njit(cache=True)
def _shift(source, mass, size, by, new_size, step, decay, lack, form, out):
    """Move a density to the right by some points, filling in its exponential tails.

    Outside the points held so far there is no atom, so the density falls by e^{−step} per point,
    exactly; what it lacks to its mass follows: m − (m − l)·e^{−d} = l·e^{−d} + m·(1 − e^{−d}).
    For laws, `decay` and `lack` are zero there: no noise, no tails.
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


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def _mixed_mass(masses, weights, form):
    """Return Σ_j weights[j]·masses[j], as `_mix` does for a single point."""
    if form != LOGS:
        total = 0.0
        for j in range(len(weights)):
            total += weights[j] * masses[j]
        return total
    peak = -np.inf
    for j in range(len(weights)):
        peak = max(peak, weights[j] + masses[j])
    if peak == -np.inf:
        return peak
    total = 0.0
    for j in range(len(weights)):
        total += np.exp(weights[j] + masses[j] - peak)
    return peak + np.log(total)


@numba.njit(cache=True)
def advance(
    source, masses, size, points, matrix, step, decay, lack, form, shifted, out, new_masses
):
    """Take the tuple at the end of the walk into the sum and move to its neighbour.

    `matrix[new, old]` holds the transition; returns the new number of lattice points.
    """
    states = len(points)
    new_size = size
    # All states get the points of the one that adds most.
    for old in range(states):
        new_size = max(new_size, size + points[old])
    # Given the old state, its contribution moves the sum …
    for old in range(states):
        _shift(
            source[old], masses[old], size, points[old], new_size, step, decay, lack, form,
            shifted[old],
        )  # fmt: skip
    # … and averaging over it leaves the sum and the new state.
    for new in range(len(matrix)):
        _mix(shifted, matrix[new], new_size, form, out[new])
        new_masses[new] = _mixed_mass(masses, matrix[new], form)
    return new_size


@numba.njit(cache=True)
def compare(rows, masses, size, form, step, unit, tiny):
    """Return the largest log-ratio of two secrets' densities, at all points and at the ends.

    −inf if fewer than two secrets are possible. For laws, a bound on the largest log-ratio of any
    two averages of a likelihood that changes by at most e^step from point to point.
    """
    if form == LAWS:
        return widest(rows, masses, size, step, unit, tiny), -np.inf
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
    best, ends = -np.inf, -np.inf
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


@numba.njit(cache=True)
def run_right(
    left, left_masses, size, points, matrix, step, unit, tiny, decay, lack, form,
    known_up, known_low, none_up, none_low, known_cost, none_cost, prune_cost, threshold,
    buffers, shifted,
):  # fmt: skip
    """Walk to the right of the target and compare secrets wherever a window may end.

    Parameters
    ----------
    left, left_masses, size
        Densities of the left part and the target, one row per secret.
    points
        points[b − 1]: what the states of the tuple b steps to the right add.
    matrix
        P[v, w], or its logarithm.
    unit, tiny
        Relative error of a mass, and what it may have lost to underflow, for laws.
    known_up, none_up
        At b: what to add to the leakage of the window that ends at a known tuple b steps away,
        or that has b unknown tuples up to the end of the chain; −inf where there is none.
    known_low, none_low
        NOT, TAILS or WHOLE, for the lower end.
    known_cost, none_cost
        What to take off for the lower end.
    prune_cost
        At b: bound on what any window reaching further can leak beyond this one's worst end.
    threshold
        Stop where nothing further can exceed this.

    Returns
    -------
    tuple
        (upper, b, ended by a known tuple), (lower, b, known, value of that tuple), and a bound on
        every window of this left part, those not walked included.
    """
    secrets, states = len(left), matrix.shape[0]
    upper, upper_at, upper_known = -np.inf, 0, False
    lower, lower_at, lower_known, lower_end = -np.inf, 0, False, 0
    bound = -np.inf
    here, there = buffers[0], buffers[1]
    masses, new_masses = np.empty((secrets, states)), np.empty((secrets, states))
    summed, totals = np.empty((secrets, here.shape[2])), np.empty(secrets)
    flat = np.zeros(states) if form == LOGS else np.ones(states)
    backwards = np.ascontiguousarray(matrix.T)
    # Joint densities of the left part and the first tuple on the right, per secret v and state u.
    for v in range(secrets):
        for u in range(states):
            weight = matrix[v, u]
            masses[v, u] = left_masses[v] + weight if form == LOGS else left_masses[v] * weight
            for r in range(size):
                here[v, u, r] = left[v, r] + weight if form == LOGS else left[v, r] * weight
    steps = len(known_up)
    for b in range(1, steps):
        pruning = prune_cost[b] < np.inf
        worst = -np.inf
        # Windows that end here: the tuple b steps away is known, whatever it holds.
        if known_up[b] > -np.inf or known_low[b] != NOT or pruning:
            for u in range(states):
                whole, ends = compare(here[:, u], masses[:, u], size, form, step, unit, tiny)
                worst = max(worst, whole)
                if whole + known_up[b] > upper:
                    upper, upper_at, upper_known = whole + known_up[b], b, True
                gain = (whole if known_low[b] == WHOLE else ends) - known_cost[b]
                if known_low[b] != NOT and gain > lower:
                    lower, lower_at, lower_known, lower_end = gain, b, True, u
        # Windows open to the end of the chain: the b − 1 tuples walked so far are the last ones.
        # The state beyond the end is summed out, which leaves the density of the sum alone.
        if none_up[b - 1] > -np.inf or none_low[b - 1] != NOT:
            for v in range(secrets):
                _mix(here[v], flat, size, form, summed[v])
                totals[v] = _mixed_mass(masses[v], flat, form)
            whole, ends = compare(summed, totals, size, form, step, unit, tiny)
            if whole + none_up[b - 1] > upper:
                upper, upper_at, upper_known = whole + none_up[b - 1], b - 1, False
            gain = (whole if none_low[b - 1] == WHOLE else ends) - none_cost[b - 1]
            if none_low[b - 1] != NOT and gain > lower:
                lower, lower_at, lower_known, lower_end = gain, b - 1, False, 0
        # Whatever reaches further leaks at most the diameter more than the worst known end here
        # (truncation, `core.contraction`): below the threshold, nobody need be told apart.
        bound = max(bound, upper)
        if pruning and worst + prune_cost[b] <= threshold:
            bound = max(bound, worst + prune_cost[b])
            break
        if b == steps - 1:
            break
        # The tuple b steps away becomes unknown: take it into the sum.
        new_size = size
        for v in range(secrets):
            new_size = advance(
                here[v], masses[v], size, points[b - 1], backwards, step, decay, lack, form,
                shifted, there[v], new_masses[v],
            )  # fmt: skip
        here, there = there, here
        masses, new_masses = new_masses, masses
        size = new_size
    return (upper, upper_at, upper_known), (lower, lower_at, lower_known, lower_end), bound


@numba.njit(cache=True)
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
