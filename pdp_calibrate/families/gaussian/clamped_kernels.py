"""Compiled search for clamped values: the same nodes, a sum of bounds over the unknown tuples."""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.families.gaussian.kernels import (
    BEST,
    CLOSED,
    KNOWN,
    OPEN,
    OPENED,
    PAUSED,
    UNKNOWN,
    VISITED,
    decided,
    halted,
    keep_best,
    leaf_bounds,
    pop,
    push,
    schur_rows,
    settled,
    sphere_bound,
    widened,
)


@njit(cache=True)
def unknown_regressions(precision, target, chosen, count, slopes, rests):
    """Regress each decided-unknown tuple on everyone decided or open: slope of x_i, variance left.

    With U the unknown tuples these are −Ω_UU⁻¹Ω_Ui and the diagonal of Ω_UU⁻¹.
    """
    factor = np.zeros((count, count))
    inverse = np.zeros((count, count))
    for r in range(count):
        for c in range(r + 1):
            here = precision[chosen[r], chosen[c]]
            for k in range(c):
                here -= factor[r, k] * factor[c, k]
            factor[r, c] = np.sqrt(here) if r == c else here / factor[c, c]
    for c in range(count):
        for r in range(c, count):
            here = 1.0 if r == c else 0.0
            for k in range(c, r):
                here -= factor[r, k] * inverse[k, c]
            inverse[r, c] = here / factor[r, r]
    # Two triangular solves, not a product with the inverse: their error is that of a nearby Ω.
    halfway = np.zeros(count)
    for r in range(count):
        here = -precision[chosen[r], target]
        for k in range(r):
            here -= factor[r, k] * halfway[k]
        halfway[r] = here / factor[r, r]
    for r in range(count - 1, -1, -1):
        here = halfway[r]
        for k in range(r + 1, count):
            here -= factor[k, r] * slopes[chosen[k]]
        slopes[chosen[r]] = here / factor[r, r]
        rest = 0.0
        for k in range(r, count):
            rest += inverse[k, r] ** 2
        rests[chosen[r]] = rest


@njit(cache=True)
def advance(
    covariance,
    precision,
    weights,
    factors,
    targets,
    widest,
    multipliers,
    fewest,
    most,
    tau,
    threshold,
    tolerance,
    keys,
    slots,
    states,
    owners,
    progress,
    best_state,
    budget,
):
    """Expand up to `budget` nodes, keeping books as `frontier.advance` does."""
    size = covariance.shape[0]
    work = np.empty((size, size))
    chosen = np.empty(size, np.int64)
    zeros = np.zeros(size)
    line_a, diagonal_a, unused = np.empty(size), np.empty(size), np.empty(size)
    line_b, diagonal_b = np.empty(size), np.empty(size)
    slopes, rests = np.empty(size), np.empty(size)
    state = np.empty(size, np.uint8)
    number = int(progress[OPENED])
    for _ in range(budget):
        limit = max(threshold, progress[BEST] * (1 + tolerance))
        halt = halted(keys, number, limit, progress)
        if halt != PAUSED:
            return halt
        key, slot = pop(keys, slots, number)
        number -= 1
        progress[VISITED] += 1
        owner = owners[slot]
        state[:] = states[slot]
        target = targets[owner]
        factor = factors[target]

        known, opened = settled(state, target, most)
        count = decided(state, target, KNOWN, chosen)
        schur_rows(covariance, zeros, target, chosen, count, work, line_a, diagonal_a, unused)
        count = decided(state, target, UNKNOWN, chosen)
        schur_rows(precision, zeros, target, chosen, count, work, line_b, diagonal_b, unused)
        unknown_regressions(precision, target, chosen, count, slopes, rests)
        variance, floor = diagonal_a[target], 1.0 / diagonal_b[target]

        # Three sums: all known sets of the node; its largest known set; its smallest.
        multiplier = widest[known, known + opened]
        bound = upper = largest = smallest = abs(weights[target])
        branch, share = -1, -1.0
        for k in range(size):
            if k == target or state[k] == KNOWN:
                continue
            cap = factors[k] / factor * (1 + 1e-14)
            weight = abs(weights[k])
            smallest += weight * min(cap, abs(line_a[k]) / variance)
            if state[k] == UNKNOWN:
                lowest, slope, rest = floor, slopes[k], rests[k]
                value, most_of_it = leaf_bounds(
                    floor, slope, rest, tau, multipliers[known + opened], size, 0.0
                )
                largest += weight * min(cap, value)
                upper += weight * min(cap, most_of_it)
            else:
                part = line_b[k] / diagonal_b[k]
                lowest = 1.0 / (diagonal_b[target] - part * line_b[k])
                slope, rest = -part, 1.0 / diagonal_b[k]
            total = covariance[k, k]
            reach = widened(
                sphere_bound(variance, line_a[k], diagonal_a[k], lowest, slope, rest, total, tau),
                variance, line_a[k], diagonal_a[k], lowest, total, tau, multiplier,
            )  # fmt: skip
            term = weight * min(cap, reach)
            bound += term
            if state[k] == OPEN and term > share:
                branch, share = k, term
        bound *= 1 + 4 * size * 2.0**-53
        upper *= 1 + 4 * size * 2.0**-53
        if known + opened <= most:
            keep_best(factor * largest, owner, state, KNOWN, progress, best_state)
        if known >= fewest and multipliers[known] == 0.0:
            keep_best(factor * smallest, owner, state, UNKNOWN, progress, best_state)
        if opened == 0 or known + opened == fewest:
            progress[CLOSED] = max(progress[CLOSED], min(key, factor * upper))
            continue
        limit = max(threshold, progress[BEST] * (1 + tolerance))
        key = min(key, factor * bound)
        if key <= limit:
            progress[CLOSED] = max(progress[CLOSED], key)
            continue
        for decision in (KNOWN, UNKNOWN):
            if decision == KNOWN and known + 1 > most:
                continue
            if decision == UNKNOWN and known + opened - 1 < fewest:
                continue
            slot = slots[number]
            states[slot] = state
            states[slot, branch] = decision
            owners[slot] = owner
            push(keys, slots, number, key, slot)
            number += 1
    progress[OPENED] = number
    return PAUSED
