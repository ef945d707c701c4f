"""Compiled moments and bounds of the nodes of a search, for problems too large for numpy.

Given A, moments come from a Cholesky factor of the covariance on A. Given A ∪ R they come from a
Cholesky factor of the *precision* on U: leaving U out of the precision by a Schur complement gives
the precision of the rest, and carries the weights a along to the coefficients of f in the
regression on the rest. So a node at depth d costs O(d²n), and what any single further decision does
is known in O(1). `nodes.py` says what is computed, and computes the same with numpy.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.families.gaussian import sphere
from pdp_calibrate.families.gaussian.sphere import KNOWN, OPEN, UNKNOWN

# Inner functions need no entry from Python, and numpy's rules for 0/0 need no error branches.
_inner = njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
_sphere_bound = _inner(sphere.sphere_bound)
_widened = _inner(sphere.widened)
_leaf_value = _inner(sphere.leaf_value)
_leaf_upper = _inner(sphere.leaf_upper)


@_inner
def _schur_rows(matrix, right, row, state, decision, work, line, diagonal, column):
    """Eliminate the tuples with this decision from a positive definite matrix and a right side.

    Writes what remains of row `row`, of the diagonal and of the right-hand side into `line`,
    `diagonal` and `column`; returns what the right-hand side's own square loses.
    """
    size = len(right)
    lost = 0.0
    step = 0
    for k in range(size):
        line[k] = matrix[row, k]
        diagonal[k] = matrix[k, k]
        column[k] = right[k]
    for place in range(size):
        if place == row or state[place] != decision:
            continue
        # One row of the Cholesky factor: what earlier rows leave of this one, over its root.
        for k in range(size):
            work[step, k] = matrix[place, k]
        for earlier in range(step):
            factor = work[earlier, place]
            for k in range(size):
                work[step, k] -= factor * work[earlier, k]
        scale = 1.0 / np.sqrt(work[step, place])
        answer = column[place] * scale
        lost += answer * answer
        factor = work[step, row] * scale
        for k in range(size):
            here = work[step, k] * scale
            work[step, k] = here
            line[k] -= factor * here
            diagonal[k] -= here * here
            column[k] -= answer * here
        step += 1
    return lost


@_inner
def _unknown_regressions(precision, target, state, chosen, factor, inverse, halfway, slopes, rests):
    """Regress each decided-unknown tuple on everyone decided or open: slope of x_i, variance left.

    With U the unknown tuples these are −Ω_UU⁻¹Ω_Ui and the diagonal of Ω_UU⁻¹.
    """
    count = 0
    for k in range(len(state)):
        if k != target and state[k] == UNKNOWN:
            chosen[count] = k
            count += 1
    # The Cholesky factor of Ω_UU, and its inverse.
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


@njit(cache=True, error_model="numpy")
def linear_nodes(
    covariance, precision, functions, products, totals, targets, which, states, known, opened,
    widest, multipliers, tau, ends, if_known, if_unknown, work, lines,
):  # fmt: skip
    """Judge every node of a batch: `ends` and the bounds after each single decision."""
    size = len(covariance)
    total = totals.max()  # one scale of rounding errors for all functions
    peak = 0.0 if len(totals) == 1 else total
    for node in range(len(targets)):
        target, function, state = targets[node], which[node], states[node]
        now, later = known[node], known[node] + opened[node]
        spread = totals[function] - _schur_rows(
            covariance, products[function], target, state, KNOWN, work, lines[0], lines[1], lines[2]
        )
        rest = _schur_rows(
            precision, functions[function], target, state, UNKNOWN, work,
            lines[3], lines[4], lines[5],
        )  # fmt: skip
        variance, cross = lines[1, target], lines[2, target]
        floor, slope = 1.0 / lines[4, target], lines[5, target]
        # The largest known set below the node, the smallest, and all of them.
        ends[node, 0] = _leaf_value(floor, slope, rest, multipliers[later])
        ends[node, 1] = _leaf_upper(ends[node, 0], floor, rest, tau, multipliers[later], size, peak)
        ends[node, 2] = abs(cross / variance) if multipliers[now] == 0.0 else 0.0
        for k in range(-1, size):
            if k >= 0 and (k == target or state[k] != OPEN):
                continue
            # Twice for an open tuple: known, which changes the moments given A; unknown, which
            # changes those given A ∪ R. Once, with k = −1, for the node as it is.
            for decision in (KNOWN, UNKNOWN):
                variance_, cross_, spread_ = variance, cross, spread
                floor_, slope_, rest_ = floor, slope, rest
                fewer, more = now, later
                if k >= 0 and decision == KNOWN:
                    part = lines[0, k] / lines[1, k]
                    variance_ -= part * lines[0, k]
                    cross_ -= part * lines[2, k]
                    spread_ -= lines[2, k] ** 2 / lines[1, k]
                    fewer += 1
                elif k >= 0:
                    part = lines[3, k] / lines[4, k]
                    floor_ = 1.0 / (lines[4, target] - part * lines[3, k])
                    slope_ -= part * lines[5, k]
                    rest_ += lines[5, k] ** 2 / lines[4, k]
                    more -= 1
                bound = _widened(
                    _sphere_bound(variance_, cross_, spread_, floor_, slope_, rest_, total, tau),
                    variance_, cross_, spread_, floor_, total, tau, widest[fewer, more],
                )  # fmt: skip
                if k < 0:
                    ends[node, 3] = bound
                    break
                if decision == KNOWN:
                    if_known[node, k] = bound
                else:
                    if_unknown[node, k] = bound


@njit(cache=True, error_model="numpy")
def clamped_nodes(
    covariance, precision, weights, factors, targets, states, known, opened,
    widest, multipliers, tau, ends, terms, work, inverse, lines, chosen,
):  # fmt: skip
    """Judge every node of a batch: `ends`, and what each open tuple adds to the bound."""
    size = len(covariance)
    for node in range(len(targets)):
        target, state = targets[node], states[node]
        now, later = known[node], known[node] + opened[node]
        # No right-hand side enters here: `weights` stands in for one.
        _schur_rows(covariance, weights, target, state, KNOWN, work, lines[0], lines[1], lines[2])
        _schur_rows(precision, weights, target, state, UNKNOWN, work, lines[3], lines[4], lines[2])
        _unknown_regressions(
            precision, target, state, chosen, work, inverse, lines[2], lines[5], lines[6]
        )
        variance, floor = lines[1, target], 1.0 / lines[4, target]
        # Four sums: the largest known set, its upper bound, the smallest, all known sets.
        largest = upper = smallest = bound = abs(weights[target])
        for k in range(size):
            if k == target or state[k] == KNOWN:
                continue
            cap = factors[k] / factors[target] * (1 + 1e-14)
            weight = abs(weights[k])
            smallest += weight * min(cap, abs(lines[0, k]) / variance)
            if state[k] == UNKNOWN:
                lowest, slope, rest = floor, lines[5, k], lines[6, k]
                value = _leaf_value(floor, slope, rest, multipliers[later])
                largest += weight * min(cap, value)
                upper += weight * min(
                    cap, _leaf_upper(value, floor, rest, tau, multipliers[later], size, 0.0)
                )
            else:
                part = lines[3, k] / lines[4, k]
                lowest = 1.0 / (lines[4, target] - part * lines[3, k])
                slope, rest = -part, 1.0 / lines[4, k]
            total = covariance[k, k]
            reach = _widened(
                _sphere_bound(
                    variance, lines[0, k], lines[1, k], lowest, slope, rest, total, tau
                ),
                variance, lines[0, k], lines[1, k], lowest, total, tau, widest[now, later],
            )  # fmt: skip
            term = weight * min(cap, reach)
            bound += term
            if state[k] == OPEN:
                terms[node, k] = term
        ends[node, 0], ends[node, 1] = largest, upper
        ends[node, 2] = smallest if multipliers[now] == 0.0 else 0.0
        ends[node, 3] = bound
