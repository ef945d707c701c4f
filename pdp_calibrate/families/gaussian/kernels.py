"""Compiled arithmetic: conditional moments of a node, and the bound that prunes it.

A node of the search attacks x_i with the function f = Σ_j a_j x_j. The tuples in A are decided
known, those in U decided unknown, those in R are open; a known set K lies between A and A ∪ R.
The coefficient to bound is β(K) = Cov(f, x_i | x_K) / Var(x_i | x_K).

Only second moments of (x_i, f) given A and given A ∪ R enter the bound. Given A they come from a
Cholesky factor of the covariance on A. Given A ∪ R they come from a Cholesky factor of the
*precision* on U: leaving U out of the precision by a Schur complement gives the precision of the
rest, and carries the weights a along to the coefficients of f in the regression on the rest. So
a node at depth d costs O(d²n), and what any single further decision does is known in O(1).

Compiled best-first search: a heap of open nodes, expanded until bounds and best value meet.

Compiled local search: flip one known tuple at a time while the leakage grows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

OPEN, KNOWN, UNKNOWN = 0, 1, 2


@njit(cache=True)
def schur_rows(matrix, right, row, chosen, count, work, line, diagonal, column):
    """Eliminate the chosen positions from a positive definite matrix and a right-hand side.

    Writes the remaining row `row`, diagonal and right-hand side into `line`, `diagonal` and
    `column`; returns what the right-hand side's own square loses.
    """
    size = len(right)
    lost = 0.0
    for k in range(size):
        line[k] = matrix[row, k]
        diagonal[k] = matrix[k, k]
        column[k] = right[k]
    for step in range(count):
        place = chosen[step]
        for k in range(size):
            work[step, k] = matrix[place, k]
        for earlier in range(step):
            factor = work[earlier, place]
            for k in range(size):
                work[step, k] -= factor * work[earlier, k]
        scale = 1.0 / np.sqrt(work[step, place])
        for k in range(size):
            work[step, k] *= scale
        factor = work[step, row]
        answer = column[place] * scale
        lost += answer * answer
        for k in range(size):
            here = work[step, k]
            line[k] -= factor * here
            diagonal[k] -= here * here
            column[k] -= answer * here
    return lost


@njit(cache=True)
def sphere_bound(variance, cross, spread, floor, slope, rest, total, tau):
    """Bound |β(K)| for every K between A and A ∪ R.

    Given A, the residual of x_i on x_K is e + w, with e its residual on all of R and w on a sphere
    whose diameter is the projection p of x_i on R: |w|² = <w, p>. Maximising
    |<f, e + w>| / |e + w|² over the sphere is a quadratic equation; written without dividing by
    |p|² it also holds for p = 0 and for empty R.

    Parameters are Var(x_i|A), Cov(f,x_i|A), Var(f|A); Var(x_i|A∪R), β(A∪R), Var(f|x_i,A∪R); Var(f);
    and τ: the moments given A and those given A ∪ R are the exact ones of two covariances that lie
    within a factor 1 ± τ of the true one. Then |δVar| ≤ τ·Var and |δCov| ≤ τ·√(Var·Var), from
    which the four increments below follow to first order, with room for the second.
    """
    diameter = max(variance - floor, 0.0)
    end = slope * floor
    moved = cross - end
    reach = max(spread - slope * end - rest, 0.0)
    twist = max(diameter * reach - moved * moved, 0.0) + 10 * tau * variance * total
    slack = 5 * tau * variance * np.sqrt(floor * total)
    middle = abs(end * (floor + diameter / 2) + moved * floor / 2) + slack
    half = abs(end * diameter - moved * floor) / 2 + slack
    root = np.sqrt(half * half + twist * floor * variance / 4)
    return (middle + root) / (floor * variance) * (1 + 4 * tau)


@njit(cache=True)
def widened(bound, variance, cross, spread, floor, total, tau, multiplier):
    """Add the largest share that an uncertain covariance can add below this node.

    The share of a known set K is m·√(Var(f|x_i,x_K)/Var(x_i|x_K)). The numerator falls and the
    denominator falls as K grows: the one is bounded at A, the other at A ∪ R.
    """
    if multiplier == 0.0:
        return bound
    left = max(spread - cross * cross / variance, 0.0) + 4 * tau * total
    return bound + multiplier * np.sqrt(left / floor) * (1 + 2 * tau)


@njit(cache=True)
def leaf_bounds(floor, slope, rest, tau, multiplier, size, peak):
    """Return the value of one known set and an upper bound on it, from its regression alone.

    `peak` is 0, or the largest Var(f) among sign patterns: adding answers up can cancel, and then
    rounded weights err relative to the patterns that do not.
    """
    ratio = np.sqrt(rest / floor)
    value = abs(slope) + multiplier * ratio
    spare = max(ratio, np.sqrt(peak / floor))
    margin = 2 * tau * (1 + multiplier) * spare + 8 * size * UNIT_ROUNDOFF * value
    return value, value + margin


@njit(cache=True)
def steady_bound(covariance, weights, target, state, tau, multiplier, peak):
    """Return the sphere bound from one factorisation, for nodes that tie with the best value.

    All moments come from one perturbed covariance, so their errors cannot turn a vanishing
    Δq − s² into a square root of τ: the margin is linear in τ. Costs O(n³).
    """
    size = len(weights)
    order = np.empty(size, np.int64)
    place = 0
    for wanted in (KNOWN, OPEN, -1, UNKNOWN):
        for k in range(size):
            if (wanted == -1 and k == target) or (k != target and state[k] == wanted):
                order[place] = k
                place += 1
    known = 0
    opened = 0
    for k in range(size):
        if k != target:
            known += state[k] == KNOWN
            opened += state[k] == OPEN
    permuted = np.empty((size, size))
    for r in range(size):
        for c in range(size):
            permuted[r, c] = covariance[order[r], order[c]]
    factor = np.linalg.cholesky(permuted)
    mine = known + opened
    answer = np.zeros(size)
    for r in range(size):
        weight = weights[order[r]]
        for c in range(r + 1):
            answer[c] += factor[r, c] * weight
    diameter = moved = 0.0
    for k in range(known, mine):
        diameter += factor[mine, k] ** 2
        moved += factor[mine, k] * answer[k]
    twist = spread = 0.0
    for k in range(known, mine):
        off = answer[k]
        if diameter > 0.0:
            off -= moved / diameter * factor[mine, k]
        twist += diameter * off * off
    for k in range(known, size):
        spread += answer[k] ** 2
    floor = factor[mine, mine] ** 2
    end = factor[mine, mine] * answer[mine]
    variance = floor + diameter
    middle = abs(end * (floor + diameter / 2) + moved * floor / 2)
    half = (end * diameter - moved * floor) / 2
    bound = (middle + np.sqrt(half * half + twist * floor * variance / 4)) / (floor * variance)
    left = 0.0  # Var(f | x_i, A), as a sum of squares of what x_i leaves of f
    for k in range(known, size):
        own = factor[mine, k] if k <= mine else 0.0
        left += (answer[k] - (end + moved) / variance * own) ** 2
    share = multiplier * np.sqrt(left / floor) * (1 + 2 * tau)
    margin = 3 * tau * (1 + multiplier) * np.sqrt(max(spread, peak) / floor)
    return (bound + share) * (1 + 4 * tau) + margin


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


_GAIN = 1 + 1e-12  # smaller gains are rounding and could make the climb go in circles


@njit(cache=True)
def sweep(tableau, place):
    """Move one tuple into or out of the known set; a second sweep undoes the first.

    With K known the tableau holds conditional covariances outside K, regression coefficients
    between K and the rest, and minus the precision inside K.
    """
    size = tableau.shape[0]
    pivot = tableau[place, place]
    row = tableau[place].copy()
    for r in range(size):
        factor = row[r] / pivot
        for c in range(size):
            tableau[r, c] -= factor * row[c]
    sign = 1.0 if pivot > 0 else -1.0
    for k in range(size):
        tableau[place, k] = sign * row[k] / pivot
        tableau[k, place] = tableau[place, k]
    tableau[place, place] = -1.0 / pivot


@njit(cache=True)
def value_of(variance, cross, spread, multiplier):
    """Leakage of a known set in units of the target's factor."""
    if variance <= 0.0:
        return 0.0
    left = max(spread - cross * cross / variance, 0.0)
    return abs(cross) / variance + multiplier * np.sqrt(left / variance)


@njit(cache=True)
def best_flip(tableau, target, state, known, multipliers, allow_in, allow_out):
    """Return the flip that leaves the largest value, and that value."""
    size = tableau.shape[0] - 1
    found, best = -1, -1.0
    for k in range(size):
        if k == target:
            continue
        enters = state[k] != KNOWN
        if (enters and not allow_in) or (not enters and not allow_out):
            continue
        pivot = tableau[k, k]
        if pivot == 0.0:
            continue
        part = tableau[target, k] / pivot
        value = value_of(
            tableau[target, target] - part * tableau[target, k],
            tableau[target, size] - part * tableau[size, k],
            tableau[size, size] - tableau[size, k] ** 2 / pivot,
            multipliers[known + 1 if enters else known - 1],
        )
        if value > best:
            found, best = k, value
    return found, best


@njit(cache=True)
def climb(covariance, weights, product, total, target, multipliers, fewest, most, start, state):
    """Climb from nobody known (start 0) or everybody known (start 1); return the value reached.

    The state is left at the best known set. Values are rounded: evaluate the set anew.
    """
    size = len(weights)
    tableau = np.empty((size + 1, size + 1))
    tableau[:size, :size] = covariance
    tableau[:size, size] = product
    tableau[size, :size] = product
    tableau[size, size] = total
    known = 0
    state[:] = UNKNOWN
    if start == 1:
        for k in range(size):
            if k != target:
                sweep(tableau, k)
                state[k] = KNOWN
                known += 1
    value = 0.0
    for _ in range(8 * size + 8):
        inside = fewest <= known and known <= most
        if inside:
            value = value_of(
                tableau[target, target], tableau[target, size], tableau[size, size],
                multipliers[known],
            )  # fmt: skip
        allow_in = known < most
        allow_out = known > fewest
        move, reached = best_flip(tableau, target, state, known, multipliers, allow_in, allow_out)
        if move < 0 or (inside and reached <= value * _GAIN):
            break
        if state[move] == KNOWN:
            state[move] = UNKNOWN
            known -= 1
        else:
            state[move] = KNOWN
            known += 1
        sweep(tableau, move)
    return value
