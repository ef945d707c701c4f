"""Compiled local search: flip one known tuple at a time while the leakage grows."""

from __future__ import annotations

import numpy as np
from numba import njit

from pdp_calibrate.engines.gaussian.kernels import KNOWN, UNKNOWN

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
