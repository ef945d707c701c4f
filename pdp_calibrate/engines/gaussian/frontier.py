"""Compiled best-first search: a heap of open nodes, expanded until bounds and best value meet."""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.engines.gaussian.kernels import (
    KNOWN,
    OPEN,
    UNKNOWN,
    leaf_bounds,
    schur_rows,
    sphere_bound,
    steady_bound,
    widened,
)

DONE, PAUSED, FULL = 0, 1, 2
CLOSED, BEST, OPENED, VISITED = 0, 1, 2, 3  # places in `progress`
_LOWER_CHILD = 0.2  # weight of the smaller of two children's bounds when choosing where to branch
_NEAR = 1 + 1e-4  # nodes so close to the best value are bounded a second time, more carefully


@njit(cache=True)
def push(keys, slots, size, key, slot):
    """Put a node on the heap of `size` nodes."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if keys[parent] >= key:
            break
        keys[place] = keys[parent]
        slots[place] = slots[parent]
        place = parent
    keys[place] = key
    slots[place] = slot


@njit(cache=True)
def pop(keys, slots, size):
    """Take the node with the largest bound off the heap; its slot moves behind the end."""
    key, slot = keys[0], slots[0]
    last = size - 1
    moved_key, moved_slot = keys[last], slots[last]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= moved_key:
            break
        keys[place] = keys[child]
        slots[place] = slots[child]
        place = child
    keys[place] = moved_key
    slots[place] = moved_slot
    slots[last] = slot
    return key, slot


@njit(cache=True)
def halted(keys, number, limit, progress):
    """Say whether to stop before the next node: nothing open matters, or there is no room."""
    if number == 0 or keys[0] <= limit:
        if number:
            progress[CLOSED] = max(progress[CLOSED], keys[0])
        progress[OPENED] = 0
        return DONE
    progress[OPENED] = number
    return FULL if number + 2 > len(keys) else PAUSED


@njit(cache=True)
def settled(state, target, most):
    """Count known and open tuples; where nobody else may be known, the open ones are unknown."""
    known = opened = 0
    for k in range(len(state)):
        if k != target:
            known += state[k] == KNOWN
            opened += state[k] == OPEN
    if known == most and opened:
        for k in range(len(state)):
            if k != target and state[k] == OPEN:
                state[k] = UNKNOWN
        opened = 0
    return known, opened


@njit(cache=True)
def decided(state, target, decision, chosen):
    """List the tuples with this decision in front of `chosen`; return how many there are."""
    count = 0
    for k in range(len(state)):
        if k != target and state[k] == decision:
            chosen[count] = k
            count += 1
    return count


@njit(cache=True)
def keep_best(value, owner, state, decision, progress, best_state):
    """Remember a value above the best one, attained where all open tuples are decided alike."""
    if value > progress[BEST]:
        progress[BEST] = value
        progress[VISITED + 1] = owner
        for k in range(len(state)):
            best_state[k] = decision if state[k] == OPEN else state[k]


@njit(cache=True)
def advance(
    covariance,
    precision,
    functions,
    products,
    totals,
    attacks,
    factors,
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
    """Expand up to `budget` nodes; return why it stopped.

    `slots[:open]` belong to the nodes on the heap, `slots[open:]` are free. `progress` holds the
    largest bound ever closed, the best value found, the number of open nodes, of visited nodes
    and the attack that attains the best value. Whatever happens, no adversary leaks more than the
    larger of the closed bound and the top of the heap.
    """
    size = covariance.shape[0]
    work = np.empty((size, size))
    chosen = np.empty(size, np.int64)
    line_a, diagonal_a, column_a = np.empty(size), np.empty(size), np.empty(size)
    line_b, diagonal_b, column_b = np.empty(size), np.empty(size), np.empty(size)
    if_known, if_unknown = np.empty(size), np.empty(size)
    state = np.empty(size, np.uint8)
    number = int(progress[OPENED])
    total = totals.max()  # one scale of rounding errors for all functions
    peak = 0.0 if len(totals) == 1 else total
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
        target, which = attacks[owner, 0], attacks[owner, 1]
        factor, weights = factors[target], functions[which]

        known, opened = settled(state, target, most)
        count = decided(state, target, KNOWN, chosen)
        spread = totals[which] - schur_rows(
            covariance, products[which], target, chosen, count, work, line_a, diagonal_a, column_a
        )
        count = decided(state, target, UNKNOWN, chosen)
        rest = schur_rows(
            precision, weights, target, chosen, count, work, line_b, diagonal_b, column_b
        )
        variance, cross = diagonal_a[target], column_a[target]
        floor, slope = 1.0 / diagonal_b[target], column_b[target]

        # The largest known set of the node is a candidate whenever its size is admitted.
        if known + opened <= most:
            value, upper = leaf_bounds(
                floor, slope, rest, tau, multipliers[known + opened], size, peak
            )
            keep_best(factor * value, owner, state, KNOWN, progress, best_state)
            if opened == 0 or known + opened == fewest:
                progress[CLOSED] = max(progress[CLOSED], min(key, factor * upper))
                continue
        if multipliers[known] == 0.0 and known >= fewest and known <= most:
            value = factor * abs(cross / variance)
            keep_best(value, owner, state, UNKNOWN, progress, best_state)
        limit = max(threshold, progress[BEST] * (1 + tolerance))

        multiplier = widest[known, known + opened]
        here = factor * widened(
            sphere_bound(variance, cross, spread, floor, slope, rest, total, tau),
            variance, cross, spread, floor, total, tau, multiplier,
        )  # fmt: skip
        key = min(key, here)
        if key > limit and key <= limit * _NEAR:
            steady = steady_bound(covariance, weights, target, state, tau, multiplier, peak)
            key = min(key, factor * steady)
        if key <= limit:
            progress[CLOSED] = max(progress[CLOSED], key)
            continue

        # Bounds after each single decision; decisions that only one way can beat are taken.
        branch, score = -1, np.inf
        for k in range(size):
            if k == target or state[k] != OPEN:
                continue
            part = line_a[k] / diagonal_a[k]
            next_variance = variance - part * line_a[k]
            next_cross = cross - part * column_a[k]
            next_spread = spread - column_a[k] ** 2 / diagonal_a[k]
            if known + 1 > most:
                if_known[k] = 0.0
            else:
                if_known[k] = factor * widened(
                    sphere_bound(
                        next_variance, next_cross, next_spread, floor, slope, rest, total, tau
                    ),
                    next_variance, next_cross, next_spread, floor, total, tau,
                    widest[known + 1, known + opened],
                )  # fmt: skip
            part = line_b[k] / diagonal_b[k]
            next_floor = 1.0 / (diagonal_b[target] - part * line_b[k])
            next_slope = slope - part * column_b[k]
            next_rest = rest + column_b[k] ** 2 / diagonal_b[k]
            if known + opened - 1 < fewest:
                if_unknown[k] = 0.0
            else:
                if_unknown[k] = factor * widened(
                    sphere_bound(
                        variance, cross, spread, next_floor, next_slope, next_rest, total, tau
                    ),
                    variance, cross, spread, next_floor, total, tau,
                    widest[known, known + opened - 1],
                )  # fmt: skip
            high = max(if_known[k], if_unknown[k])
            low = min(if_known[k], if_unknown[k])
            if high + _LOWER_CHILD * low < score:
                branch, score = k, high + _LOWER_CHILD * low
        for k in range(size):
            if k in (target, branch) or state[k] != OPEN:
                continue
            if if_known[k] <= limit and known + opened > fewest:
                progress[CLOSED] = max(progress[CLOSED], min(key, if_known[k]))
                state[k] = UNKNOWN
                opened -= 1
            elif if_unknown[k] <= limit and known < most:
                progress[CLOSED] = max(progress[CLOSED], min(key, if_unknown[k]))
                state[k] = KNOWN
                known += 1
                opened -= 1
        for decision in (KNOWN, UNKNOWN):
            bound = min(key, if_known[branch] if decision == KNOWN else if_unknown[branch])
            if decision == KNOWN and known + 1 > most:
                continue
            if decision == UNKNOWN and known + opened - 1 < fewest:
                continue
            if bound <= limit:
                progress[CLOSED] = max(progress[CLOSED], bound)
                continue
            slot = slots[number]
            states[slot] = state
            states[slot, branch] = decision
            owners[slot] = owner
            push(keys, slots, number, bound, slot)
            number += 1
    progress[OPENED] = number
    return PAUSED
