"""Compiled comparison of two secrets, one event after the other: see `events`."""

from __future__ import annotations

import numba
import numpy as np

from pdp_calibrate.core.mixtures import excess, sweep
from pdp_calibrate.families.exchangeable.events import law

_law = numba.njit(cache=True, no_cfunc_wrapper=True)(law)


_sweep = numba.njit(cache=True, no_cfunc_wrapper=True)(sweep)


_excess = numba.njit(cache=True, no_cfunc_wrapper=True)(excess)


@numba.njit(cache=True, no_cfunc_wrapper=True)
def worst_event(weights, ways, own, known, step, form):
    """Return what `events.worst_event` does, before logarithms are taken, as plain tuples."""
    size = len(ways) + own
    laws, found = np.empty((2, size)), np.empty((2, size))
    best, best_ones, best_point, best_secret = -np.inf, 0, 0, 0
    tail, tail_ones, tail_point, tail_secret = -np.inf, 0, 0, 0
    for ones in range(known + 1):
        # The laws of the sum under both secrets; an event under which one of them is impossible
        # compares nothing and is skipped.
        if not _law(weights, ways, ones, 0, form, laws[0]):
            continue
        if not _law(weights, ways, ones + 1, own, form, laws[1]):
            continue
        # Noise added: densities (or their form) at every lattice point, one pass in each direction;
        # the rounding of law and sweep is what `BinaryGroupSearch._error` charges.
        _sweep(laws[0], step, form, found[0])
        _sweep(laws[1], step, form, found[1])
        # The supremum over all outputs is attained at a lattice point (see `core.mixtures`), and
        # the limits r → ±∞ at the outermost ones.
        for point in range(size):
            up = _excess(found[1, point], found[0, point], form)
            down = _excess(found[0, point], found[1, point], form)
            here, secret = (up, 1) if up >= down else (down, 0)
            if here > best:
                best, best_ones, best_point, best_secret = here, ones, point, secret
            if (point == 0 or point == size - 1) and here > tail:
                tail, tail_ones, tail_point, tail_secret = here, ones, point, secret
    return (best, best_ones, best_point, best_secret), (tail, tail_ones, tail_point, tail_secret)
