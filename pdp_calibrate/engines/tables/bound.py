"""How much anybody can learn inside one branch of the tree, from its cells alone.

Fix the output r and two secrets v, w. In each cell c of the tuples still open stand the masses
m_v, m_w and the filtered masses F_v, F_w (mass times e^{−|r−f|/λ}, summed over tuples decided to be
unknown). Whoever knows or ignores the open tuples, exactly or softly, weighs the cells by some
h ≥ 0 and sees the ratio R(h) = (Σh·F_v · Σh·m_w) / (Σh·F_w · Σh·m_v).

Two cells suffice: with three, keep Σh·F_v and Σh·F_w fixed along a line; the remaining quotient of
two linear functions is monotone on it, so R does not fall until a cell drops out. On two cells,
with densities y = F/m, odds x = m_v/m_w and R_c = y_v/y_w, weighing by h·m_v or by h·m_w gives

    R(h) ≤ max R_c · E[y_w]·E[1/x] / E[y_w/x]    and    R(h) ≤ max R_c · E[y_v·x] / (E[y_v]·E[x]).

Both quotients are at most (1 + k)², k = (√β − 1)(√η − 1)/(√β + √η), with β and η the quotients of
the two odds and of the two densities y_w (or y_v), if odds and density rank the cells alike; else
they are at most 1. So one density, y_w, serves both R and 1/R. Cells are gathered into buckets of
similar odds, and pairs of buckets are compared through their extremes.

Everything is kept as y − 1 and R − 1 when all distances are short (`one` = 1; else `one` = 0 and y
itself is kept), so that tiny leakages keep their digits.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_MOST_BUCKETS = 16


@numba.njit(cache=True, nogil=True, error_model="numpy")
def workspace(outputs):
    """Return room for `branch_bound`, indexed [bucket, turn, kind, output].

    Kinds 0, 1: the largest and smallest y_w; 2, 3: the largest and smallest R − 1. Extremes are
    read at one turn and written at the other: a loop that overwrites what it reads becomes one of
    masked stores, which are several times slower.
    """
    return np.empty((_MOST_BUCKETS + 2, 2, 4, outputs))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def branch_bound(data, start, cells, secrets, width, one, odds, room, result):
    """Write to result[r] an upper bound on ratio − 1 over all soft knowledge of the open tuples."""
    outputs = width - 1
    for r in range(outputs):
        result[r] = 0.0
    buckets = min(_MOST_BUCKETS, max(4, cells // 16))
    span, turn = np.empty((2, buckets)), np.empty(buckets, dtype=np.int64)
    stride = secrets * width
    for v in range(secrets):
        for w in range(v):
            first, second = start + v * width, start + w * width
            excluding = _fill_buckets(
                data, first, second, cells, width, stride, one, odds, span, turn, room
            )
            _worst_pairs(room, outputs, one, span, turn, result)
            if excluding:
                _beside_excluding(data, first, second, cells, width, stride, one, result)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_buckets(data, first, second, cells, width, stride, one, odds, span, turn, room):
    """Gather the extremes of density and ratio, per bucket of similar odds and per output."""
    buckets, outputs = turn.size, width - 1
    for k in range(buckets):
        span[0, k], span[1, k], turn[k] = 0.0, np.inf, 0
        for r in range(outputs):
            room[k, 0, 0, r], room[k, 0, 1, r] = -np.inf, np.inf
            room[k, 0, 2, r], room[k, 0, 3, r] = -np.inf, np.inf
    lowest, highest = np.inf, 0.0
    excluding = False
    for c in range(cells):
        place = c * stride + width - 1
        mass, other = data[first + place], data[second + place]
        odds[c] = 0.0
        if mass > 0.0 and other > 0.0:
            odds[c] = mass / other
            lowest, highest = min(lowest, odds[c]), max(highest, odds[c])
        elif mass > 0.0 or other > 0.0:
            excluding = True
    slope = 0.0
    if highest > lowest:
        slope = (buckets - 1e-6) / math.log(highest / lowest)
    for c in range(cells):
        if odds[c] > 0.0:
            k = min(buckets - 1, max(0, int(math.log(odds[c] / lowest) * slope)))
            span[0, k], span[1, k] = max(span[0, k], odds[c]), min(span[1, k], odds[c])
            at, other_at = first + c * stride, second + c * stride
            inverse, other_inverse = 1.0 / data[at + width - 1], 1.0 / data[other_at + width - 1]
            row = data[at : at + outputs]
            other_row = data[other_at : other_at + outputs]
            old, new = turn[k], 1 - turn[k]
            top, least, new_top, new_least = (
                room[k, old, 0],
                room[k, old, 1],
                room[k, new, 0],
                room[k, new, 1],
            )
            for r in range(outputs):
                z = other_row[r] * other_inverse
                new_top[r] = max(top[r], z)
                new_least[r] = min(least[r], z)
            top, least, new_top, new_least = (
                room[k, old, 2],
                room[k, old, 3],
                room[k, new, 2],
                room[k, new, 3],
            )
            for r in range(outputs):
                y, z = row[r] * inverse, other_row[r] * other_inverse
                ratio = (y - z) / (one + z)
                new_top[r] = max(top[r], ratio)
                new_least[r] = min(least[r], ratio)
            turn[k] = 1 - turn[k]
    return excluding


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _worst_pairs(room, outputs, one, span, turn, result):
    """Raise result[r] to the bound on R − 1 and 1/R − 1 of all pairs that admit both secrets."""
    buckets = turn.size
    for k in range(buckets):
        if span[0, k] > 0.0:
            extremes, roots = room[k, turn[k]], room[k, 1 - turn[k]]
            for r in range(outputs):
                roots[0, r] = math.sqrt(one + extremes[0, r])
                roots[1, r] = math.sqrt(one + extremes[1, r])
    mixed = np.zeros((4, outputs))
    now = 0
    for a in range(buckets):
        for b in range(a + 1):
            if span[0, a] > 0.0 and span[0, b] > 0.0:
                root_odds = math.sqrt(span[0, a] / span[1, b])
                # Odds of v over w grow with the bucket, those of w over v fall with it.
                _mix(room, a, b, turn, root_odds, mixed[now], mixed[1 - now])
                _mix_inverse(room, b, a, turn, root_odds, mixed[2 + now], mixed[3 - now])
                now = 1 - now
    for r in range(outputs):
        result[r] = max(result[r], mixed[now, r], mixed[2 + now, r])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mix(room, high, low, turn, root_odds, mixed, raised):
    """Raise mixed[r] to the two-cell bound on R − 1 for a pair of buckets.

    √η − 1 = (z_a − z_b)/(√z_b·(√z_a + √z_b)) loses no digits near one; one quotient gives all of k.
    """
    top, root_top = room[high, turn[high], 0], room[high, 1 - turn[high], 0]
    least, root_least = room[low, turn[low], 1], room[low, 1 - turn[low], 1]
    ratio, other_ratio = room[high, turn[high], 2], room[low, turn[low], 2]
    less, more = root_odds - 1.0, root_odds + 1.0
    for r in range(mixed.size):
        gain = top[r] - least[r]
        gain = max(0.0, gain)
        k = less * gain / (more * root_least[r] * (root_top[r] + root_least[r]) + gain)
        worst = max(other_ratio[r], ratio[r])
        here = worst + (1.0 + worst) * k * (2.0 + k)
        raised[r] = max(mixed[r], here)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mix_inverse(room, high, low, turn, root_odds, mixed, raised):
    """Do the same for 1/R − 1."""
    top, root_top = room[high, turn[high], 0], room[high, 1 - turn[high], 0]
    least, root_least = room[low, turn[low], 1], room[low, 1 - turn[low], 1]
    ratio, other_ratio = room[high, turn[high], 3], room[low, turn[low], 3]
    less, more = root_odds - 1.0, root_odds + 1.0
    for r in range(mixed.size):
        gain = top[r] - least[r]
        gain = max(0.0, gain)
        k = less * gain / (more * root_least[r] * (root_top[r] + root_least[r]) + gain)
        worst = min(other_ratio[r], ratio[r])
        here = (k * (2.0 + k) - worst) / (1.0 + worst)
        raised[r] = max(mixed[r], here)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _beside_excluding(data, first, second, cells, width, stride, one, result):
    """Bound pairs with a cell that excludes a secret: each secret is spoken for by one cell only.

    Such a pair is at most the largest y_v over the smallest y_w, one of them in an excluding cell.
    """
    for r in range(width - 1):
        # Extremes over all cells, and over those that exclude the other secret.
        top_v, least_v, top_w, least_w = -np.inf, np.inf, -np.inf, np.inf
        only_top_v, only_least_v, only_top_w, only_least_w = -np.inf, np.inf, -np.inf, np.inf
        for c in range(cells):
            at, other_at = first + c * stride, second + c * stride
            mass, other = data[at + width - 1], data[other_at + width - 1]
            if mass > 0.0:
                y = data[at + r] / mass
                top_v, least_v = max(top_v, y), min(least_v, y)
                if other == 0.0:
                    only_top_v, only_least_v = max(only_top_v, y), min(only_least_v, y)
            if other > 0.0:
                z = data[other_at + r] / other
                top_w, least_w = max(top_w, z), min(least_w, z)
                if mass == 0.0:
                    only_top_w, only_least_w = max(only_top_w, z), min(only_least_w, z)
        bound = max(_apart(top_v, only_least_w, one), _apart(only_top_v, least_w, one))
        bound = max(bound, _apart(top_w, only_least_v, one), _apart(only_top_w, least_v, one))
        result[r] = max(result[r], bound)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _apart(most, least, one):
    if most == -np.inf or least == np.inf:
        return 0.0
    return (most - least) / (one + least)
