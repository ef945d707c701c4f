"""The innermost loops of the tree: leaves, and all leaves below a small node at once."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True, error_model="numpy")
def leaf_exceeds(data, at, secrets, width, limit, one):
    """Whether some pair of secrets has ratio − 1 above `limit` at some output of this leaf.

    y/z − 1 > limit is tested as y > (1 + limit)·z, or y − 1 > (1 + limit)·(z − 1) + limit.
    """
    outputs = width - 1
    factor, offset = 1.0 + limit, one * limit
    hits = 0
    for v in range(1, secrets):
        mass = data[at + v * width + outputs]
        if mass > 0.0:
            scale = 1.0 / mass
            ys = data[at + v * width : at + v * width + outputs]
            for w in range(v):
                other = data[at + w * width + outputs]
                if other > 0.0:
                    other_scale = 1.0 / other
                    zs = data[at + w * width : at + w * width + outputs]
                    for r in range(outputs):
                        y, z = ys[r] * scale, zs[r] * other_scale
                        hits += int(y > factor * z + offset) + int(z > factor * y + offset)
    return hits > 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def leaf_ratio(data, at, secrets, width, one):
    """Return the largest ratio − 1 of a leaf, the output and the two secrets."""
    outputs = width - 1
    best, where, for_secret, against = -1.0, 0, 0, 0
    for r in range(outputs):
        least, most, least_at, most_at = np.inf, -np.inf, 0, 0
        for v in range(secrets):
            mass = data[at + v * width + outputs]
            if mass > 0.0:
                y = data[at + v * width + r] / mass
                if y <= least:
                    least, least_at = y, v
                if y > most:
                    most, most_at = y, v
        if most_at != least_at:
            ratio = (most - least) / (one + least)
            if ratio > best:
                best, where, for_secret, against = ratio, r, most_at, least_at
    return best, where, for_secret, against


@numba.njit(cache=True, nogil=True, error_model="numpy")
def nine_leaves_exceed(data, at, width, limit, one, inverse):
    """Whether a leaf below two open binary tuples, two secrets, has ratio − 1 above `limit`.

    All nine leaves (each tuple 0, 1 or unknown) share one pass over the outputs. A leaf that
    excludes a secret gets inverse masses 0, which compare as 0 > 0.
    """
    outputs, cell = width - 1, 2 * width
    for v in range(2):
        place = at + v * width + outputs
        a, b, c, d = (
            data[place],
            data[place + cell],
            data[place + 2 * cell],
            data[place + 3 * cell],
        )
        inverse[v, 0], inverse[v, 1], inverse[v, 2], inverse[v, 3] = a, b, c, d
        inverse[v, 4], inverse[v, 5], inverse[v, 6], inverse[v, 7] = a + b, c + d, a + c, b + d
        inverse[v, 8] = (a + b) + (c + d)
    for leaf in range(9):
        possible = inverse[0, leaf] > 0.0 and inverse[1, leaf] > 0.0
        inverse[0, leaf] = 1.0 / inverse[0, leaf] if possible else 0.0
        inverse[1, leaf] = 1.0 / inverse[1, leaf] if possible else 0.0
    i0, i1, i2 = inverse[0, 0], inverse[0, 1], inverse[0, 2]
    i3, i4, i5 = inverse[0, 3], inverse[0, 4], inverse[0, 5]
    i6, i7, i8 = inverse[0, 6], inverse[0, 7], inverse[0, 8]
    j0, j1, j2 = inverse[1, 0], inverse[1, 1], inverse[1, 2]
    j3, j4, j5 = inverse[1, 3], inverse[1, 4], inverse[1, 5]
    j6, j7, j8 = inverse[1, 6], inverse[1, 7], inverse[1, 8]
    f, g = 1.0 + limit, one * limit
    ya, za = data[at : at + outputs], data[at + width : at + width + outputs]
    at += cell
    yb, zb = data[at : at + outputs], data[at + width : at + width + outputs]
    at += cell
    yc, zc = data[at : at + outputs], data[at + width : at + width + outputs]
    at += cell
    yd, zd = data[at : at + outputs], data[at + width : at + width + outputs]
    hits = 0
    for r in range(outputs):
        ab, cd, ac, bd = ya[r] + yb[r], yc[r] + yd[r], ya[r] + yc[r], yb[r] + yd[r]
        pq, rs, pr, qs = za[r] + zb[r], zc[r] + zd[r], za[r] + zc[r], zb[r] + zd[r]
        y0, y1, y2, y3 = ya[r] * i0, yb[r] * i1, yc[r] * i2, yd[r] * i3
        z0, z1, z2, z3 = za[r] * j0, zb[r] * j1, zc[r] * j2, zd[r] * j3
        y4, y5, y6, y7, y8 = ab * i4, cd * i5, ac * i6, bd * i7, (ab + cd) * i8
        z4, z5, z6, z7, z8 = pq * j4, rs * j5, pr * j6, qs * j7, (pq + rs) * j8
        hits += int(y0 > f * z0 + g) + int(z0 > f * y0 + g)
        hits += int(y1 > f * z1 + g) + int(z1 > f * y1 + g)
        hits += int(y2 > f * z2 + g) + int(z2 > f * y2 + g)
        hits += int(y3 > f * z3 + g) + int(z3 > f * y3 + g)
        hits += int(y4 > f * z4 + g) + int(z4 > f * y4 + g)
        hits += int(y5 > f * z5 + g) + int(z5 > f * y5 + g)
        hits += int(y6 > f * z6 + g) + int(z6 > f * y6 + g)
        hits += int(y7 > f * z7 + g) + int(z7 > f * y7 + g)
        hits += int(y8 > f * z8 + g) + int(z8 > f * y8 + g)
    return hits > 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sweep_exceeds(data, start, top, sizes, below, room, secrets, width, limit, one):
    """Whether any leaf below a node has ratio − 1 above `limit`.

    Walks every choice below level `top` (known at a value, or unknown) without bounds. Arrays
    are as in `explore`; what it writes lies in the room of levels below `top`.
    """
    depth = sizes.size
    row = secrets * width
    base, turn = np.empty(depth + 1, dtype=np.int64), np.zeros(depth + 1, dtype=np.int64)
    base[top] = start
    inverse = np.empty((2, 9))
    ends_binary = secrets == 2 and depth - top > 2 and sizes[depth - 1] == sizes[depth - 2] == 2
    level = top
    while level >= top:
        choice = turn[level]
        if choice > sizes[level]:
            level -= 1
            continue
        turn[level] = choice + 1
        length = below[level + 1] * row
        at = base[level] + choice * length
        if choice == sizes[level]:
            at = room[level + 1]
            total = data[at : at + length]
            first = data[base[level] : base[level] + length]
            if choice == 1:
                for t in range(length):
                    total[t] = first[t]
            else:
                second = data[base[level] + length : base[level] + 2 * length]
                for t in range(length):
                    total[t] = first[t] + second[t]
            for value in range(2, choice):
                further = data[base[level] + value * length : base[level] + (value + 1) * length]
                for t in range(length):
                    total[t] += further[t]
        if ends_binary and level + 1 == depth - 2:
            if nine_leaves_exceed(data, at, width, limit, one, inverse):
                return True
        elif level + 1 < depth:
            level += 1
            base[level] = at
            turn[level] = 0
        elif leaf_exceeds(data, at, secrets, width, limit, one):
            return True
    return False
