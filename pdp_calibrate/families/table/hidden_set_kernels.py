"""How much an adversary who ignores a set of binary tuples can learn, from pairs of tuples alone.

For a hidden set V let, over all values x of the other tuples,

    O_ab   the odds ratio of tuples a and b,     T_a   the odds of a,     S_a(p)   the ratio of the
    densities of the output given x_a = 1 and x_a = 0, at position p

lie in intervals. Hide one more tuple v. With t the odds of v given x_a = 0, β = O_av, η = S_v and
R_x = S_a given x_v = x, the new S_a is

    (R_0 + t·R_1·β·η)(1 + t) / ((1 + t·β)(1 + t·η)),

and the new O_ab is the same with η = O_bv and R = O_ab. It rises with R; in β it is monotone with
the sign of R_1·η − R_0 and in η with that of R_1·β − R_0, whatever t is; so its extremes over
intervals lie in corners, and there at the ends of t or at a zero of its derivative, a quadratic in
t. The odds of a given x_v = 0 are multiplied by (1 + t·O_av)/(1 + t), which leads to somewhere
between the odds given x_v = 0 and 1.

Starting from extremes over the cells of the table, this bounds all who ignore V, whatever they know
of the others: good for weak dependence, cheap for all. Intervals are widened after every step by
more than its rounding: the stationary t is the exact zero of a quadratic that is off by a few
roundings, so the value there misses the extreme by as little.

**The search** goes through every adversary of a table of binary tuples, one hidden set at a time.
For a hidden set V a node holds, for every value x of all other tuples and every position p of the
output, the filtered mass G(p, x) = Σ over x_V of P(x, x_V)·e^{−c·|p − f(x_V)|}, and the mass m(x).
An adversary who attacks tuple a and ignores V knows all others: two secrets are neighbouring x, and

    p(r | x_a = 1, x_K) / p(r | x_a = 0, x_K) = (G/m)(p − w_a, x_a = 1) / (G/m)(p, x_a = 0)

with p the output less what is known. So one node serves all targets and all known values, and
hiding one more tuple is one sum. Every set is visited, from the set without its last tuple, so even
the worst table takes no longer; for weak dependence the intervals above spare most comparisons.

Answers are whole multiples of a step; tuple j adds 0 or weights[j] steps; c is the step in scales.
Tuples hidden first have the lowest bits of x, so most sums and comparisons run along the memory.
"""

# ruff: noqa: FURB136

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.families.table.two_cell_bound import inlined, inner

_WIDER, _NARROWER = 1 + 1e-12, 1 - 1e-12


_LARGEST_ODDS = 1e6  # beyond, the bound says nothing worth its time


def first_intervals(
    cells: FloatArray,
    weights: npt.NDArray[np.int64],
    step: float,
    odds: FloatArray,
    pairs: FloatArray,
    ratios: FloatArray,
) -> bool:
    """Fill level 0, nothing hidden; return whether the bound is worth using for this table.

    odds[level, end, a], pairs[level, end, a, b] and ratios[level, end, a, p] hold the lower (end 0)
    and upper (end 1) ends. Tuple j is bit j of the index of a cell. Done once: not compiled.
    """
    if cells.min() <= 0.0:
        return False
    for a in range(weights.size):
        # The odds of a given all others: all cells are positive, so every quotient is a number.
        split = cells.reshape(-1, 2, 1 << a)
        odd = split[:, 1] / split[:, 0]
        low, high = odd.min(), odd.max()
        odds[0, 0, a], odds[0, 1, a] = low * _NARROWER, high * _WIDER
        if not 1 / _LARGEST_ODDS < low <= high < _LARGEST_ODDS:
            return False
        for b in range(a):
            # The odds ratio of a and b given all others, from the four cells that differ in them
            # alone.
            four = cells.reshape(-1, 2, 1 << (a - b - 1), 2, 1 << b)
            odd = four[:, 1, :, 1] / four[:, 1, :, 0] * (four[:, 0, :, 0] / four[:, 0, :, 1])
            pairs[0, 0, a, b] = pairs[0, 0, b, a] = odd.min() * _NARROWER
            pairs[0, 1, a, b] = pairs[0, 1, b, a] = odd.max() * _WIDER
        for p in range(int(weights[a]) + 1):
            # Nobody hidden: the output tells x_a as its noise does, by the distance from either
            # answer.
            ratio = math.exp(step * (2 * p - int(weights[a])))
            ratios[0, 0, a, p], ratios[0, 1, a, p] = ratio * _NARROWER, ratio * _WIDER
    return True


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def hide_in_intervals(level, hidden, v, before, weights, step, odds, pairs, ratios, most):
    """Fill level + 1: the tuples of `hidden` (bits), which add up to `before` steps, and v.

    most[a] receives the bound on the ratio, either way up, of all who attack a.
    """
    low_t, high_t = odds[level, 0, v], odds[level, 1, v]
    for a in range(weights.size):
        if hidden >> a & 1 or a == v:
            continue
        # The odds of a once v is hidden.
        low_b, high_b = pairs[level, 0, a, v], pairs[level, 1, a, v]
        _hide_in_odds(odds[level], odds[level + 1], a, low_b, high_b, low_t, high_t)
        # S_a at every position. What v adds moves the position if x_v = 1; positions beyond those
        # held are in the tails, where a ratio stays what it was. Nobody tells more than all who are
        # hidden together with the target: `ends`. Both ends are widened by more than the rounding.
        reach, reach_v = before + weights[a], before + weights[v]
        ends = math.exp(step * (reach + weights[v]))  # what the group of all can tell
        worst = 1.0
        for p in range(reach + weights[v] + 1):
            zero, one, own = min(p, reach), max(p - weights[v], 0), min(p, reach_v)
            low_e, high_e = ratios[level, 0, v, own], ratios[level, 1, v, own]
            old, new = ratios[level], ratios[level + 1]
            high = _WIDER * _extreme(
                old[1, a, zero], old[1, a, one], low_b, high_b, low_e, high_e, low_t, high_t, 1.0
            )
            low = _NARROWER * _extreme(
                old[0, a, zero], old[0, a, one], low_b, high_b, low_e, high_e, low_t, high_t, -1.0
            )
            high, low = min(high, ends * _WIDER), max(low, _NARROWER / ends)
            new[1, a, p], new[0, a, p] = high, low
            worst = max(worst, high, _WIDER / low)
        most[a] = worst
        # The odds ratios of the pairs left, by the same formula; none is larger than the quotient
        # of the ends between which the odds of a lie.
        for b in range(a):
            if hidden >> b & 1 or b == v:
                continue
            low_e, high_e = pairs[level, 0, b, v], pairs[level, 1, b, v]
            high, low = pairs[level, 1, a, b], pairs[level, 0, a, b]
            high = _WIDER * _extreme(high, high, low_b, high_b, low_e, high_e, low_t, high_t, 1.0)
            low = _NARROWER * _extreme(low, low, low_b, high_b, low_e, high_e, low_t, high_t, -1.0)
            widest = odds[level, 1, a] / odds[level, 0, a] * _WIDER
            high, low = min(high, widest), max(low, _NARROWER / widest)
            pairs[level + 1, 1, a, b] = pairs[level + 1, 1, b, a] = high
            pairs[level + 1, 0, a, b] = pairs[level + 1, 0, b, a] = low


@inlined
def _hide_in_odds(old, new, a, low, high, low_t, high_t):
    """Write the interval of the odds of a after hiding a tuple of odds t and odds ratio low … high.

    Both the odds given 0 and those given 1 lie in the old interval, and the new ones between them.
    """
    # Factors from the ends of the old interval to those of the new one. Each is monotone in t and
    # in the odds ratio, so its extreme lies at their ends; both are widened by the rounding.
    less, more = 1.0, 1.0
    if low > 1.0:
        less = (1.0 / low + high_t) / (1.0 + high_t)
        more = min((1.0 + low_t * low) / (1.0 + low_t), (1.0 + high_t * low) / (1.0 + high_t))
    elif high < 1.0:
        less = (1.0 + low_t * high) / (1.0 + low_t)
        more = (1.0 / high + high_t) / (1.0 + high_t)
    new[1, a] = min(old[1, a], old[1, a] * less * _WIDER)
    new[0, a] = max(old[0, a], old[0, a] * more * _NARROWER)


@inner
def _extreme(zero, one, low_b, high_b, low_e, high_e, low_t, high_t, sign):
    """Return the largest (sign 1) or smallest (−1) value over all β, η and t.

    Only corners that no step improves count; there is always one.
    """
    # β is at the end towards which sign·(R_1·η − R_0) points, η at the one towards which
    # sign·(R_1·β − R_0) does: every extreme lies in such a corner.
    best = -np.inf
    for corner in range(4):
        b = high_b if corner & 1 else low_b
        e = high_e if corner & 2 else low_e
        rises_with_b = sign if corner & 1 else -sign
        rises_with_e = sign if corner & 2 else -sign
        if rises_with_b * (one * e - zero) >= 0.0 and rises_with_e * (one * b - zero) >= 0.0:
            best = max(best, _along(zero, one, b, e, low_t, high_t, sign))
    return sign * best


@inner
def _along(zero, one, b, e, low_t, high_t, sign):
    """Return the largest sign·value over t from low_t to high_t."""
    best = max(sign * _value(low_t, zero, one, b, e), sign * _value(high_t, zero, one, b, e))
    top = one * b * e
    square = top * (b + e) - (zero + top) * b * e
    half, constant = b * e * (one - zero), zero + top - zero * (b + e)
    inside = max(half * half - square * constant, 0.0)
    # Both zeros by the form without cancellation; where it divides by zero there is none.
    sum_ = -(half + math.copysign(math.sqrt(inside), half))
    for above, below in ((sum_, square), (constant, sum_)):
        if below != 0.0 and low_t < above / below < high_t:
            best = max(best, sign * _value(above / below, zero, one, b, e))
    return best


@inner
def _value(t, zero, one, b, e):
    return (zero + t * one * b * e) * (1.0 + t) / ((1.0 + t * b) * (1.0 + t * e))


# Covers single precision: two rounded densities, a rounded factor, a difference. What is so close
# to the bar is computed again in double precision.
_MARGIN = 1e-6


_LONG_RUN = 32  # numbers in a row from which a plain loop is the faster one


_CHUNK = 1024  # numbers compared with one mask


# Densities are kept times this. They are at least e^{−40} and bars at most e^{50} (see
# `hidden_sets`): products of their differences neither vanish nor overflow in single precision.
_UNIT = 2.0**24


_BOUNDED_BITS = 9  # nodes with fewer known tuples are compared sooner than bounded


_TRIALS, _WORTH = 64.0, 0.1  # bounds of a level that spare less than this share are given up


def space_to_explore(
    number: int,
) -> tuple[FloatArray, npt.NDArray[np.float32], FloatArray, npt.NDArray[np.int64], FloatArray]:
    """Return work space for `explore_hidden` with this number of tuples."""
    no_run = np.arange(_LONG_RUN)[:, np.newaxis] & np.arange(_CHUNK) == 0
    return (
        np.empty(1 << number),
        no_run.astype(np.float32),
        np.empty((number + 1, number)),
        np.zeros((4, number + 2), dtype=np.int64),
        np.zeros((2, number + 1)),
    )


@numba.njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def explore_hidden(
    cells, weights, step, prefix, chosen, targets, fewest, most, shared, stop,
    intervals, space, scaled, inverses, masks, ceilings, places, shares, found,
):  # fmt: skip
    """Visit all sets that hide just `chosen` (bits) of the first `prefix` tuples.

    Parameters
    ----------
    cells
        The table, flat; tuple j is bit j of the index.
    weights, step
        What each tuple adds, in steps, and the length of a step in scales.
    prefix, chosen
        The part of the sets to visit.
    targets
        Per tuple, whether it is attacked.
    fewest, most
        How many tuples may be hidden.
    shared
        [largest ratio so far, ratio that is enough]; the first is raised.
    stop
        stop[0] becomes true when time is up.
    intervals
        Those of odds, pairs and ratios, filled at level 0; None to compare all, which spares
        compiling what bounds.
    space, scaled
        Space for all nodes of a path, and for one node in single precision and 64 numbers more.
    inverses, masks, ceilings, places, shares
        More space, made by `space_to_explore`: allocating it here would take a second to compile.
    found
        Receives (hidden set as bits, target, x as bits of the tuples not hidden, position, whether
        the output favours the value that adds more).

    Returns
    -------
    tuple
        (largest ratio found, or 0; whether all sets were visited).
    """
    number = weights.size
    # Per level: where its node begins, steps that the hidden tuples can add, the tuple hidden last,
    # whether there are bounds. Per number of known tuples: bounds tried, comparisons they spared.
    begins, added, last, has_bound = places[0], places[1], places[2], places[3]
    tried, spared = shares[0], shares[1]
    begins[0], begins[1], added[0], has_bound[0] = 0, 2 * cells.size, 0, 1
    for bits in range(number + 1):
        tried[bits] = spared[bits] = 0.0
    for x in range(cells.size):  # assigning slices would compile their error messages too
        space[x] = space[cells.size + x] = cells[x]
    for a in range(number):
        ceilings[0, a] = np.inf
    # Not literals, for which callees would be compiled once more.
    hidden = level = place = np.int64(0)
    start, is_new, best = np.int64(-1), False, 0.0
    while True:
        if start < 0 and place >= prefix:  # the prefix is done: from here on visit
            start, place, is_new = level, prefix, bool(level > 0)
        if start >= 0 and is_new and fewest <= level <= most:
            best = _compare(
                space, begins[level], number - level, added[level], step, weights, hidden, targets,
                ceilings[level], shared, scaled, inverses, masks, best, found,
            )  # fmt: skip
        is_new = False
        if stop[0] or shared[0] > shared[1]:
            return best, False
        # Depth first: hide the next tuple, or step back and let the last one be known again.
        if start < 0 and chosen >> place & 1 == 0:
            place += 1
        elif start < 0 or (place < number and level < most):
            for a in range(number):
                ceilings[level + 1, a] = np.inf
            # Bounds on all supersets, while they spare enough comparisons where they were tried.
            if intervals is not None:
                bits = number - level - 1
                useful = spared[bits] >= _WORTH * tried[bits] or tried[bits] < _TRIALS
                bounds = has_bound[level] > 0 and bits >= _BOUNDED_BITS and useful
                has_bound[level + 1] = bounds
                if bounds:
                    odds, pairs, ratios = intervals
                    hide_in_intervals(
                        level, hidden, place, added[level], weights, step,
                        odds, pairs, ratios, ceilings[level + 1],
                    )  # fmt: skip
                    for a in range(number):
                        if a != place and hidden >> a & 1 == 0:
                            tried[bits] += 1.0 / bits
                            spared[bits] += int(ceilings[level + 1, a] <= shared[0]) / bits
            _hide(space, begins, level, number, place, hidden, weights[place], added, step)
            level += 1
            last[level] = place
            hidden |= 1 << place
            place += 1
            is_new = True
        elif level == start:
            return best, True
        else:
            place = last[level] + 1
            hidden &= ~(1 << last[level])
            level -= 1


@inlined
def _hide(space, begins, level, number, place, hidden, weight, added, step):
    """Write the node with one tuple more hidden behind the node it comes from."""
    # In a node the known tuples are the bits of an index; the run is how far apart the two values
    # of the tuple to hide stand.
    size = 1 << (number - level)
    half, run = size // 2, np.int64(1)
    for other in range(place):
        if hidden >> other & 1 == 0:
            run *= 2
    before = added[level]
    after = before + weight
    added[level + 1] = after
    at, to = begins[level], begins[level + 1]
    begins[level + 2] = to + (after + 2) * half
    # First the mass, then one row per position of the output, each a sum of positive terms.
    _add(space, at, at, to, size, run, 1.0, 1.0)
    for p in range(after + 1):
        # Beyond the answers that can occur a filtered mass falls by e^{−c} per step.
        zero, one = at + (1 + min(p, before)) * size, at + (1 + max(p - weight, 0)) * size
        fall, other_fall = (
            math.exp(-step * max(p - before, 0)),
            math.exp(-step * max(weight - p, 0)),
        )
        _add(space, zero, one, to + (1 + p) * half, size, run, fall, other_fall)


@inner
def _add(space, zero, one, to, size, run, factor, other_factor):
    """Add one row where the tuple is 0 and another where it is 1."""
    for block in range(0, size, 2 * run):
        first = space[zero + block : zero + block + run]
        second = space[one + block + run : one + block + 2 * run]
        total = space[to + block // 2 : to + block // 2 + run]
        for x in range(run):
            total[x] = factor * first[x] + other_factor * second[x]


@inlined
def _compare(
    space, at, bits, added, step, weights, hidden, targets, ceilings, shared,
    scaled, inverses, masks, best, found,
):  # fmt: skip
    """Raise the best ratio to that of all who ignore just the hidden tuples."""
    size = 1 << bits
    is_filled = False
    bit = -1
    for target in range(weights.size):
        if hidden >> target & 1:
            continue
        bit += 1
        if not targets[target] or ceilings[target] <= shared[0]:
            continue
        if not is_filled:
            _fill_scaled(space, at, size, added, scaled, inverses)
            is_filled = True
        # Single precision finds candidates, with a margin far above its rounding; only they are
        # computed in full.
        weight = weights[target]
        for p in range(added + weight + 1):
            zero, one = min(p, added), max(p - weight, 0)
            # The ratio is e^{fall}·(row of x_a = 1)/(row of x_a = 0).
            fall = step * (max(p - added, 0) - max(weight - p, 0))
            above = np.float32(math.exp(-fall) * shared[0] * (1 - _MARGIN))
            below = np.float32(math.exp(-fall) / shared[0] * (1 + _MARGIN))
            if _any_beyond(scaled, zero * size, one * size, size, 1 << bit, above, below, masks):
                ratio, x, upwards = _largest(
                    space, at, at + (1 + zero) * size, at + (1 + one) * size,
                    size, 1 << bit, math.exp(fall),
                )  # fmt: skip
                if ratio > max(best, shared[0]):
                    best = ratio
                    found[0], found[1], found[2], found[3], found[4] = hidden, target, x, p, upwards
                    shared[0] = ratio
    return best


@inlined
def _fill_scaled(space, at, size, added, scaled, inverses):
    """Write all densities in single precision; NaN, which exceeds nothing, where x cannot occur."""
    inverse, mass = inverses[:size], space[at : at + size]
    # Each density is a product of two rounded numbers, which `_MARGIN` covers.
    for x in range(size):
        inverse[x] = _UNIT / mass[x] if mass[x] > 0.0 else np.nan
    for p in range(added + 1):
        row = space[at + (1 + p) * size : at + (2 + p) * size]
        density = scaled[p * size : (p + 1) * size]
        for x in range(size):
            density[x] = row[x] * inverse[x]


@numba.njit(
    cache=True,
    no_cfunc_wrapper=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "nsz", "contract"},
)
def _any_beyond(scaled, zeros, ones, size, run, above, below, masks):
    """Whether the ratio ones/zeros of some neighbours is larger than `above` or less than `below`.

    y is beyond the interval from b·z to a·z if (y − a·z)(y − b·z) > 0; such products are added up.
    """
    total, nothing = np.float32(0), np.float32(0)
    if run >= _LONG_RUN:
        # Neighbours stand in runs, one behind the other. A NaN, where x cannot occur, is not larger
        # than nothing and adds nothing.
        for block in range(0, size, 2 * run):
            first = scaled[zeros + block : zeros + block + run]
            second = scaled[ones + block + run : ones + block + 2 * run]
            for x in range(run):
                beyond = (second[x] - above * first[x]) * (second[x] - below * first[x])
                total += beyond if beyond > nothing else nothing
        return total > nothing
    # Compare all numbers `run` apart; those that are no neighbours count nothing.
    length = min(size, masks.shape[1])
    mask = masks[run, :length]
    for block in range(0, size, length):
        first = scaled[zeros + block : zeros + block + length]
        second = scaled[ones + block + run : ones + block + run + length]
        for x in range(length):
            beyond = (second[x] - above * first[x]) * (second[x] - below * first[x])
            total += mask[x] if beyond > nothing else nothing
    return total > nothing


@inlined
def _largest(space, mass, zeros, ones, size, run, factor):
    """Return the largest ratio of two neighbours, either way up, and where.

    The masses, and the rows where the target is 0 and 1, begin at these places.
    """
    # Both secrets must be possible. A ratio below one over the best is better the other way up.
    best, place, upwards = 0.0, 0, 0
    for x in range(size):
        below, above = space[mass + x], space[mass + x + run]
        if x & run == 0 and below > 0.0 and above > 0.0:
            ratio = factor * (space[ones + x + run] / above) / (space[zeros + x] / below)
            if ratio > best:
                best, place, upwards = ratio, x, 1
            if best * ratio < 1.0:
                best, place, upwards = 1.0 / ratio, x, 0
    return best, place, upwards
