"""A bound on what any adversary in one branch of the tree learns, from its cells alone.

Theorem 19 (docs/theory).

Fix the output r and two secrets v, w. In each cell c of the tuples still open stand the masses
m_v, m_w and the filtered masses F_v, F_w (mass times e^{−|r−f|/λ}, summed over tuples decided to be
unknown). An adversary who knows or ignores open tuples, exactly or softly, weighs the cells by some
h ≥ 0 and sees the ratio R(h) = (Σh·F_v · Σh·m_w) / (Σh·F_w · Σh·m_v).

Two cells suffice: with three, keep Σh·F_v and Σh·F_w fixed along a line; the remaining quotient of
two linear functions is monotone on it, so R does not fall until a cell drops out. Take cells a and
b with densities y = F/m, odds x = m_v/m_w and ratios R_c = y_v/y_w, and let β = x_a/x_b ≥ 1 and
η = y_w(a)/y_w(b). With weight t on a,

    R = (R_b + t·R_a·β·η)(1 + t) / ((1 + t·β)(1 + t·η))
      ≤ max(R_a, R_b)·(1 + k)²,   k = (√β − 1)(√η' − 1)/(√β + √η'),   η' = η·min(1, R_a/R_b),

and k = 0 if η' ≤ 1: for R_a = R_b the maximum over t is at t = 1/√(βη); for R_a < R_b write R_a·η
as R_b·η' and use 1 + t·η' ≤ 1 + t·η; for R_a > R_b replace R_b by R_a. For 1/R the roles of v and w
change; in terms of the same y_w it is η' = η·min(1, R_a/R_b) again, now with x_b ≥ x_a.

Densities and ratios hardly differ between cells whose open tuples add the same to the answer. So
cells are put into buckets by that sum, and pairs of buckets are compared by their extreme values.

Everything is kept as y − 1 and R − 1 when all distances are short (`one` = 1; else `one` = 0 and y
itself is kept), so that tiny leakages keep their digits.
"""

# ruff: noqa: FURB136

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray

MOST_BUCKETS = 16


inner = numba.njit(
    cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""For what only compiled code calls: nothing is compiled to call it from outside."""


inlined = numba.njit(error_model="numpy", inline="always")
"""For what one place only calls: it is compiled there, and not a second time by itself."""


def workspace(outputs: int) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.int64]]:
    """Return work space for `branch_bound`: allocating it there would take a second to compile.

    The first array is indexed [bucket, kind, output]. Kinds 0, 1: the largest and smallest y_w; 2,
    3: the largest and smallest R; all minus one where `one` says so; 4 to 7 the same again.
    Extremes are read from one of the two and written to the other: a loop that overwrites what it
    reads becomes one of masked stores, which are several times slower. 8, 9: R and 1/R; 10, 11:
    their inverses; 12 to 14: the largest and smallest y_w, and the inverse of the smallest y.

    Then [kind, output]: the largest R, and 1/R, of a single cell, two turns of the bound, and one
    row for the caller; then the largest and smallest odds per bucket; and the last turn of each.
    """
    return (
        np.empty((MOST_BUCKETS, 15, outputs)),
        np.empty((5, outputs)),
        np.empty((2, MOST_BUCKETS)),
        np.empty(MOST_BUCKETS, dtype=np.int64),
    )


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def branch_bound(data, start, bucket_of, secrets, width, begin, end, one, limit, work, result):
    """Write to result[r] an upper bound on ratio − 1 over all soft knowledge of the open tuples.

    Only for outputs from `begin` to `end`. bucket_of[c] is the bucket of cell c. Pairs of buckets
    that cannot exceed `limit` at any output are not resolved.
    """
    space, rows, span, turn = work
    outputs = end - begin
    # Bounds start at 0 and only grow: a pair of secrets with equal densities adds nothing.
    here = result[begin:end]
    for r in range(outputs):
        here[r] = 0.0
    stride = secrets * width
    mass_at = width - 1 - begin
    for v in range(secrets):
        for w in range(v):
            first, second = start + v * width + begin, start + w * width + begin
            # Both secrets' densities, cell by cell, gathered into buckets of similar odds.
            excluding = _fill_buckets(
                data, first, second, bucket_of, mass_at, outputs, stride, one, span, turn, space
            )
            for r in range(outputs):
                rows[0, r] = rows[1, r] = 0.0
            # Move the filled buckets next to each other, in the form that comparing pairs needs.
            filled = 0
            for k in range(MOST_BUCKETS):
                if span[0, k] > 0.0:
                    span[0, filled], span[1, filled] = span[0, k], span[1, k]
                    kind = 4 * turn[k]
                    for r in range(outputs):
                        up, down = space[k, kind + 2, r], space[k, kind + 3, r]
                        down = (1.0 - one - one * down) / (one + down)  # the largest 1/R
                        rows[0, r] = max(rows[0, r], one + up)
                        rows[1, r] = max(rows[1, r], one + down)
                        space[filled, 8, r], space[filled, 9, r] = up, down
                        space[filled, 10, r] = 1 / (one + up)
                        space[filled, 11, r] = 1 / (one + down)
                        space[filled, 12, r] = space[k, kind, r]
                        space[filled, 13, r] = space[k, kind + 1, r]
                        space[filled, 14, r] = 1.0 / (one + space[k, kind + 1, r])
                    filled += 1
            # The bound on all pairs of buckets, then on pairs with a cell that rules one secret
            # out.
            skipped = _mix_buckets(space, rows, span, filled, outputs, limit, one, here)
            for r in range(outputs):
                here[r] = max(here[r], skipped)
            if excluding:
                _beside_excluding(data, first, second, bucket_of.size, mass_at, stride, one, here)


@inlined
def _mix_buckets(space, rows, span, filled, outputs, limit, one, result):
    """Raise result[r] to the two-cell bound on R − 1 and 1/R − 1 over all pairs of buckets.

    All terms are differences from one, √η' − 1 = (η' − 1)/(1 + √η'), so no digits are lost. As
    (1 + k)² ≤ β, pairs and outputs with most·β within `limit` are skipped: a bound on them is
    returned.
    """
    for r in range(outputs):
        rows[2, r] = rows[3, r] = 0.0
    now = 2
    skipped = 0.0
    lacking = 1.0 - one
    # The largest odds of all: outputs that stay within the limit even with these are left out.
    widest = 1.0
    for a in range(filled):
        for b in range(filled):
            widest = max(widest, _odds_ratio(span[0, a], span[1, b]))
    # Once for R, once for 1/R.
    for flip in range(2):
        begin, end = outputs, 0
        largest = 0.0
        for r in range(outputs):
            here = float(rows[flip, r])
            largest = max(largest, here)
            if here * widest - 1.0 > limit:
                begin, end = min(begin, r), r + 1
            else:
                skipped = max(skipped, here * widest - 1.0)
        for r in range(outputs):
            rows[5 - now, r] = rows[now, r]
        for a in range(filled):
            for b in range(filled):
                largest_odds, least_odds = span[0, b if flip else a], span[1, a if flip else b]
                odds = max(_odds_ratio(largest_odds, least_odds), 1.0)
                if largest * odds - 1.0 <= limit:
                    skipped = max(skipped, largest * odds - 1.0)
                    continue
                root = math.sqrt(odds)
                if odds == np.inf:  # its root is finite; with ∞, k would be NaN
                    root = math.sqrt(largest_odds) / math.sqrt(least_odds)
                less, more = root - 1.0, root + 1.0
                # η' falls by R_a/R_b; where inverse ratios are kept, the two cells change places.
                low, high = (b, a) if flip else (a, b)
                old, now = now, 5 - now
                for r in range(np.uint64(begin), np.uint64(end)):  # unsigned: never from the end
                    top, least, step = space[a, 12, r], space[b, 13, r], space[b, 14, r]
                    ratio, other = space[low, 8 + flip, r], space[high, 8 + flip, r]
                    apart = (top - least) * step
                    falls = (ratio - other) * space[high, 10 + flip, r]
                    falls = falls if falls < 0.0 else 0.0
                    gain = apart + falls + apart * falls
                    gain = gain if gain > 0.0 else 0.0
                    k = less * gain / (more * (1.0 + math.sqrt(1.0 + gain)) + gain)
                    worst = ratio if ratio > other else other
                    bound = worst + (one + worst) * k * (2.0 + k) - lacking
                    rows[now, r] = bound if bound > rows[old, r] else rows[old, r]
    for r in range(outputs):
        result[r] = max(result[r], rows[2, r], rows[3, r])
    return skipped


@inlined
def _odds_ratio(largest, least):
    """Return β of two cells, infinite beyond the range of numbers."""
    return float(largest) / float(least)  # plain numbers overflow without a warning


@inlined
def _fill_buckets(data, first, second, bucket_of, mass_at, outputs, stride, one, span, turn, space):
    """Gather the extremes of odds, density and ratio; say if a cell excludes just one secret."""
    # Empty buckets: every extreme gives way to the first cell.
    for k in range(MOST_BUCKETS):
        span[0, k], span[1, k], turn[k] = 0.0, np.inf, 0
        for r in range(outputs):
            space[k, 0, r] = space[k, 2, r] = -np.inf
            space[k, 1, r] = space[k, 3, r] = np.inf
    excluding = False
    for c in range(bucket_of.size):
        at, other_at = first + c * stride, second + c * stride
        mass, other = data[at + mass_at], data[other_at + mass_at]
        # Cells that exclude one of the two secrets have no odds: they are bounded by themselves.
        if mass <= 0.0 or other <= 0.0:
            excluding = excluding or mass > 0.0 or other > 0.0
            continue
        k = bucket_of[c]
        inverse, other_inverse = 1.0 / mass, 1.0 / other
        odds = mass * other_inverse
        span[0, k], span[1, k] = max(span[0, k], odds), min(span[1, k], odds)
        row, other_row = data[at : at + outputs], data[other_at : other_at + outputs]
        old, new = 4 * turn[k], 4 - 4 * turn[k]
        turn[k] = 1 - turn[k]
        # Extremes of the density, then of the ratio: two loops, which both become vectors.
        for r in range(outputs):
            z = other_row[r] * other_inverse
            most, least = space[k, old, r], space[k, old + 1, r]
            space[k, new, r] = z if z > most else most
            space[k, new + 1, r] = z if z < least else least
        for r in range(outputs):
            y, z = row[r] * inverse, other_row[r] * other_inverse
            ratio = (y - one * z) / (one + z)
            most, least = space[k, old + 2, r], space[k, old + 3, r]
            space[k, new + 2, r] = ratio if ratio > most else most
            space[k, new + 3, r] = ratio if ratio < least else least
    return excluding


@inlined
def _beside_excluding(data, first, second, cells, mass_at, stride, one, result):
    """Bound pairs with a cell that excludes a secret: each secret has mass in one cell only.

    Such a pair is at most the largest y_v over the smallest y_w, one of them in an excluding cell.
    """
    for r in range(result.size):
        # Extremes over all cells, and over those that exclude the other secret.
        top_v, least_v, top_w, least_w = -np.inf, np.inf, -np.inf, np.inf
        only_top_v, only_least_v, only_top_w, only_least_w = -np.inf, np.inf, -np.inf, np.inf
        for c in range(cells):
            at, other_at = first + c * stride, second + c * stride
            mass, other = data[at + mass_at], data[other_at + mass_at]
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
        # One of the two cells excludes a secret: four combinations, in both directions.
        bound = max(_apart(top_v, only_least_w, one), _apart(only_top_v, least_w, one))
        bound = max(bound, _apart(top_w, only_least_v, one), _apart(only_top_w, least_v, one))
        result[r] = max(result[r], bound)


@inner
def _apart(most, least, one):
    if most == -np.inf or least == np.inf:
        return 0.0
    return (most - least) / (one + least)
