"""Compiled arithmetic: conditional moments of a node, and the bound that prunes it.

A node of the search attacks x_i with the function f = Σ_j a_j x_j. The tuples in A are decided
known, those in U decided unknown, those in R are open; a known set K lies between A and A ∪ R.
The coefficient to bound is β(K) = Cov(f, x_i | x_K) / Var(x_i | x_K).

Only second moments of (x_i, f) given A and given A ∪ R enter the bound. Given A they come from a
Cholesky factor of the covariance on A. Given A ∪ R they come from a Cholesky factor of the
*precision* on U: leaving U out of the precision by a Schur complement gives the precision of the
rest, and carries the weights a along to the coefficients of f in the regression on the rest. So
a node at depth d costs O(d²n), and what any single further decision does is known in O(1).
"""

from __future__ import annotations

import numpy as np
from numba import njit

OPEN, KNOWN, UNKNOWN = 0, 1, 2
_UNIT_ROUNDOFF = 2.0**-53


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
    margin = 2 * tau * (1 + multiplier) * spare + 8 * size * _UNIT_ROUNDOFF * value
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
