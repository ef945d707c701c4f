"""Compiled arithmetic for Gaussian noise: how precisely an answer tells one tuple.

The answers f_m = Σ_j B_mj·x_j get independent noise of variance z. A node of the search attacks
x_i; the tuples in A are known, those in U unknown, those in R open. With b(K) the coefficients of
x_i in the regressions of the answers on (x_i, x_K) and V(K) = Cov(f | x_i, x_K), the value of a
known set is √gain(K), where

    gain(K) = bᵀ(κV + z)⁻¹b        (κ = 1: 1/Var(x_i | x_K, r) − 1/Var(x_i | x_K)),

and κ ≤ 1 is the part of the data's own variance that may be counted. Two bounds hold for every K
between A and A ∪ R; the smaller one counts.

Precision: gain(K) ≤ gain(A ∪ R) + (1/Var(x_i|A∪R) − 1/Var(x_i|A))/κ, for conditioning on more never
lowers a precision. (Dividing V and z by κ turns any κ into 1.)

Spheres: V(K) ⪰ V(A ∪ R). With WᵀW = (κV(A∪R) + z)⁻¹ the gain is at most Σ_m t_m², t_m the sphere
bound on the coefficient of the m-th row of W·B. Any rotation of W will do: its first row is laid
along the coefficients, so that little is left for the others.

Rounding. Moments given A and given A ∪ R are those of covariances within 1 ± τ of the true one. For
any direction u, uᵀb moves by at most 2τ·√(uᵀVu/Var(x_i|x_K)), so √gain moves by at most
2τ·√(t/(κt + z))/√Var(x_i|x_K) with t = trace V, and by a factor 1 + τ through V itself.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
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
    pop,
    push,
    settled,
    sphere_bound,
    steady_bound,
)

_LOWER_CHILD = 0.2  # weight of the smaller of two children's bounds when choosing where to branch


_NEAR = 1 + 1e-4  # nodes so close to the best value are bounded a second time, more carefully


@njit(cache=True)
def schur_answers(matrix, right, row, chosen, count, work, line, diagonal, columns, lost):
    """Eliminate the chosen positions from a positive definite matrix and from several answers.

    Writes the remaining row `row`, diagonal and right-hand sides into `line`, `diagonal` and
    `columns`, and what the answers' own products lose into `lost`.
    """
    answers, size = right.shape
    heads = np.empty(answers)
    lost[:, :] = 0.0
    for k in range(size):
        line[k] = matrix[row, k]
        diagonal[k] = matrix[k, k]
        for m in range(answers):
            columns[m, k] = right[m, k]
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
        for m in range(answers):
            heads[m] = columns[m, place] * scale
        for m in range(answers):
            for other in range(answers):
                lost[m, other] += heads[m] * heads[other]
            for k in range(size):
                columns[m, k] -= heads[m] * work[step, k]
        factor = work[step, row]
        for k in range(size):
            here = work[step, k]
            line[k] -= factor * here
            diagonal[k] -= here * here


@njit(cache=True)
def trace(matrix):
    """Add up the diagonal."""
    total = 0.0
    for m in range(matrix.shape[0]):
        total += matrix[m, m]
    return total


@njit(cache=True)
def reach(spread, kept, noise):
    """Bound √(uᵀVu / uᵀ(κV + z)u) over all directions u by the trace of V."""
    return np.sqrt(spread / (kept * spread + noise))


@njit(cache=True)
def noise_factor(rest, kept, noise):
    """Return the Cholesky factor of κ·rest + z, which is at least z."""
    answers = rest.shape[0]
    lower = np.zeros((answers, answers))
    for r in range(answers):
        for c in range(r + 1):
            value = kept * rest[r, c]
            if r == c:
                value += noise
            for k in range(c):
                value -= lower[r, k] * lower[c, k]
            if r == c:
                lower[r, r] = np.sqrt(max(value, 0.5 * noise))
            else:
                lower[r, c] = value / lower[c, c]
    return lower


@njit(cache=True)
def solved(lower, right):
    """Return L⁻¹·right for a vector."""
    answers = lower.shape[0]
    found = np.empty(answers)
    for r in range(answers):
        value = right[r]
        for k in range(r):
            value -= lower[r, k] * found[k]
        found[r] = value / lower[r, r]
    return found


@njit(cache=True)
def whitened(lower, matrix):
    """Return L⁻¹·matrix·L⁻ᵀ for a symmetric matrix."""
    answers = lower.shape[0]
    half = np.empty((answers, answers))
    for c in range(answers):
        half[c, :] = solved(lower, matrix[:, c])
    found = np.empty((answers, answers))
    for c in range(answers):
        found[c, :] = solved(lower, half[:, c])
    return found


@njit(cache=True)
def mirror(direction):
    """Return h such that v − 2h·<h,v> lays `direction` along the first axis."""
    length = np.sqrt((direction * direction).sum())
    found = direction.copy()
    if length == 0.0:
        found[:] = 0.0
        return found
    found[0] += length if direction[0] >= 0.0 else -length
    return found / np.sqrt((found * found).sum())


@njit(cache=True)
def root_gain(slope, lower):
    """Return √gain of a known set from its coefficients and the factor of κV + z."""
    found = solved(lower, slope)
    return np.sqrt((found * found).sum())


@njit(cache=True)
def share_of(variance, cross, spread, floor, total, tau, multiplier, kept, noise):
    """Bound what an uncertain covariance adds to √gain: Var(f|x_i,·) is largest at A."""
    if multiplier == 0.0:
        return 0.0
    left = trace(spread)
    for m in range(len(cross)):
        left -= cross[m] * cross[m] / variance
    left = max(left, 0.0) + 4 * tau * total
    return multiplier * reach(left, kept, noise) / np.sqrt(floor) * (1 + 2 * tau)


@njit(cache=True)
def node_bound(
    variance, cross, spread, floor, slope, rest, total, tau, multiplier, kept, noise
):  # fmt: skip
    """Bound √gain for every K between A and A ∪ R; `total` is the trace of Cov(f)."""
    answers = len(cross)
    if answers == 1:
        unit = 1.0 / np.sqrt(kept * rest[0, 0] + noise)
        size = sphere_bound(
            variance, cross[0], spread[0, 0], floor, slope[0], rest[0, 0], total, tau
        )
        spheres = (unit * size) ** 2
        full = abs(slope[0]) * unit
        around = reach(rest[0, 0], kept, noise)
    else:
        lower = noise_factor(rest, kept, noise)
        b = solved(lower, slope)
        c = solved(lower, cross)
        s = whitened(lower, spread)
        v = whitened(lower, rest)
        full = np.sqrt((b * b).sum())
        h = mirror(b + c / variance)
        b -= 2 * h * (h * b).sum()
        c -= 2 * h * (h * c).sum()
        s_h, v_h = s @ h, v @ h
        s_hh, v_hh = (h * s_h).sum(), (h * v_h).sum()
        largest = total / noise
        spheres = 0.0
        for m in range(answers):
            own_s = s[m, m] - 4 * h[m] * s_h[m] + 4 * h[m] * h[m] * s_hh
            own_v = v[m, m] - 4 * h[m] * v_h[m] + 4 * h[m] * h[m] * v_hh
            size = sphere_bound(variance, c[m], own_s, floor, b[m], own_v, largest, tau)
            spheres += size * size
        around = reach(total, kept, noise)
    found = spheres * (1 + 4 * tau)
    if kept > 0.0:
        full = full * (1 + 2 * tau) + 2 * tau * around / np.sqrt(floor)
        sharper = full * full + ((1 + 2 * tau) / floor - (1 - 2 * tau) / variance) / kept
        found = min(found, sharper * (1 + 8 * UNIT_ROUNDOFF))
    share = share_of(variance, cross, spread, floor, total, tau, multiplier, kept, noise)
    return np.sqrt(found) * (1 + 2 * tau) + share


@njit(cache=True)
def steady_node_bound(covariance, rows, target, state, rest, share, total, tau, kept, noise, slope):
    """Return the sphere bounds from one factorisation, for nodes that tie with the best value."""
    answers, size = rows.shape
    lower = noise_factor(rest, kept, noise)
    white = np.empty((answers, size))
    for k in range(size):
        white[:, k] = solved(lower, rows[:, k])
    peak = 0.0
    if answers > 1:
        peak = total / noise
        h = mirror(solved(lower, slope))
        for k in range(size):
            white[:, k] -= 2 * h * (h * white[:, k]).sum()
    spheres = 0.0
    for m in range(answers):
        spheres += steady_bound(covariance, white[m], target, state, tau, 0.0, peak) ** 2
    return np.sqrt(spheres) * (1 + 4 * tau) + share


@njit(cache=True)
def leaf_values(floor, slope, rest, tau, multiplier, kept, noise, size, total):
    """Return the value of one known set and an upper bound on it, from its regression alone."""
    around = reach(trace(rest), kept, noise) / np.sqrt(floor)
    value = root_gain(slope, noise_factor(rest, kept, noise)) + multiplier * around
    widest = around if len(slope) == 1 else reach(total, kept, noise) / np.sqrt(floor)
    margin = 2 * tau * (1 + multiplier) * widest + (8 * size * UNIT_ROUNDOFF + 2 * tau) * value
    return value, value + margin


@njit(cache=True)
def advance_noisy(
    covariance,
    precision,
    rows,
    products,
    totals,
    targets,
    factors,
    settings,
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

    `settings` holds the variance z of the noise and κ. `slots[:open]` belong to the nodes on the
    heap, `slots[open:]` are free. `progress` holds the largest bound ever closed, the best value
    found, the number of open nodes, of visited nodes and the target that attains the best value.
    Whatever happens, no adversary exceeds the larger of the closed bound and the top of the heap.
    """
    noise, kept = settings[0], settings[1]
    answers, size = rows.shape
    work = np.empty((size, size))
    chosen = np.empty(size, np.int64)
    line_a, diagonal_a, columns_a = np.empty(size), np.empty(size), np.empty((answers, size))
    line_b, diagonal_b, columns_b = np.empty(size), np.empty(size), np.empty((answers, size))
    lost, rest = np.empty((answers, answers)), np.empty((answers, answers))
    if_known, if_unknown = np.empty(size), np.empty(size)
    state = np.empty(size, np.uint8)
    number = int(progress[OPENED])
    total = trace(totals)
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

        # Moments of x_i and the answers: given A from the covariance, given A ∪ R from its inverse.
        known, opened = settled(state, target, most)
        count = decided(state, target, KNOWN, chosen)
        schur_answers(
            covariance, products, target, chosen, count, work, line_a, diagonal_a, columns_a, lost
        )
        spread = totals - lost
        count = decided(state, target, UNKNOWN, chosen)
        schur_answers(
            precision, rows, target, chosen, count, work, line_b, diagonal_b, columns_b, rest
        )
        variance, cross = diagonal_a[target], columns_a[:, target].copy()
        floor, slope = 1.0 / diagonal_b[target], columns_b[:, target].copy()

        # The largest known set of the node is a candidate whenever its size is admitted.
        if known + opened <= most:
            value, upper = leaf_values(
                floor, slope, rest, tau, multipliers[known + opened], kept, noise, size, total
            )
            keep_best(factor * value, owner, state, KNOWN, progress, best_state)
            if opened == 0 or known + opened == fewest:
                progress[CLOSED] = max(progress[CLOSED], min(key, factor * upper))
                continue
        # So is the smallest one.
        if multipliers[known] == 0.0 and known >= fewest and known <= most:
            left = spread - np.outer(cross, cross) / variance
            value = root_gain(cross / variance, noise_factor(left, kept, noise))
            keep_best(factor * value, owner, state, UNKNOWN, progress, best_state)
        limit = max(threshold, progress[BEST] * (1 + tolerance))

        multiplier = widest[known, known + opened]
        here = factor * node_bound(
            variance, cross, spread, floor, slope, rest, total, tau, multiplier, kept, noise
        )
        key = min(key, here)
        if key > limit and key <= limit * _NEAR:
            share = share_of(variance, cross, spread, floor, total, tau, multiplier, kept, noise)
            steady = steady_node_bound(
                covariance, rows, target, state, rest, share, total, tau, kept, noise, slope
            )
            key = min(key, factor * steady)
        if key <= limit:
            progress[CLOSED] = max(progress[CLOSED], key)
            continue

        # Bounds after each single decision; decisions that only one way can beat are taken.
        branch, score = -1, np.inf
        for k in range(size):
            if k == target or state[k] != OPEN:
                continue
            if_known[k] = if_unknown[k] = 0.0
            if known + 1 <= most:
                part = line_a[k] / diagonal_a[k]
                own = columns_a[:, k].copy()
                if_known[k] = factor * node_bound(
                    variance - part * line_a[k], cross - part * own,
                    spread - np.outer(own, own) / diagonal_a[k],
                    floor, slope, rest, total, tau, widest[known + 1, known + opened], kept, noise,
                )  # fmt: skip
            if known + opened - 1 >= fewest:
                part = line_b[k] / diagonal_b[k]
                own = columns_b[:, k].copy()
                if_unknown[k] = factor * node_bound(
                    variance, cross, spread,
                    1.0 / (diagonal_b[target] - part * line_b[k]), slope - part * own,
                    rest + np.outer(own, own) / diagonal_b[k],
                    total, tau, widest[known, known + opened - 1], kept, noise,
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
