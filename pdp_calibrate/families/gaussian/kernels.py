"""The compiled search: best first through nodes of large problems, one at a time.

Given A, moments come from a Cholesky factor of the covariance on A. Given A ∪ R they come from a
Cholesky factor of the *precision* on U: leaving U out of the precision by a Schur complement gives
the precision of the rest, and carries the weights a along to the coefficients of f in the
regression on the rest. So a node at depth d costs O(d²n), and what any single further decision does
is known in O(1). `nodes.py` says what is computed, and computes the same with numpy.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.workers import njit
from pdp_calibrate.families.gaussian import sphere
from pdp_calibrate.families.gaussian.nodes import (
    ASIDE,
    BEST,
    CLOSED,
    NEAR,
    OPENED,
    OWNER,
    VISITED,
)

# As numpy integers, so that no function is compiled again for each literal.
OPEN, KNOWN, UNKNOWN = np.int64(sphere.OPEN), np.int64(sphere.KNOWN), np.int64(sphere.UNKNOWN)

# Inner functions need no entry from Python, and numpy's rules for 0/0 need no error branches.
_inner = njit(cache=True, no_cfunc_wrapper=True, error_model="numpy", no_cpython_wrapper=True)
_sphere_bound = _inner(sphere.sphere_bound)
_widened = _inner(sphere.widened)
_leaf_value = _inner(sphere.leaf_value)
_leaf_upper = _inner(sphere.leaf_upper)


@_inner
def _larger(one, other):
    """Return the larger number; this compiles faster than the built-in function."""
    return other if other > one else one  # noqa: FURB136


@_inner
def _smaller(one, other):
    """Return the smaller number; the first if the other is NaN."""
    return other if other < one else one  # noqa: FURB136


@_inner
def _push(keys, slots, number, key, slot):
    """Put a node on the heap of `number` nodes."""
    # Parents with smaller bounds move down until the new node's place is found.
    place = number
    while place > 0:
        parent = (place - 1) // 2
        if keys[parent] >= key:
            break
        keys[place], slots[place] = keys[parent], slots[parent]
        place = parent
    keys[place], slots[place] = key, slot


@_inner
def _pop(keys, slots, number):
    """Remove the node with the largest bound from the heap; its slot moves behind the end."""
    key, slot = keys[0], slots[0]
    last = number - 1
    moved_key, moved_slot = keys[last], slots[last]
    # The last node fills the gap: larger children move up until its place is found.
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= moved_key:
            break
        keys[place], slots[place] = keys[child], slots[child]
        place = child
    keys[place], slots[place] = moved_key, moved_slot
    # Slots are only ever swapped, so none is lost: the one removed is free, behind the end.
    slots[last] = slot
    return key, slot


@_inner
def _next(keys, slots, counts, limit):
    """Remove the node with the largest bound if it matters; otherwise return the slot −1."""
    if counts[OPENED] == 0 or keys[0] <= limit:
        return limit, -1
    key, slot = _pop(keys, slots, counts[OPENED])
    counts[OPENED] -= 1
    counts[VISITED] += 1
    return key, slot


@_inner
def _take(stored, target, most, state):
    """Copy the decisions of a node; return the numbers of known and of open tuples."""
    known = opened = 0
    # The target's own place is no decision: it counts as unknown.
    for k in range(len(state)):
        state[k] = UNKNOWN if k == target else stored[k]
        known += state[k] == KNOWN
        opened += state[k] == OPEN
    # Where no more tuples may be known, the open ones are unknown.
    if known == most and opened:
        for k in range(len(state)):
            if state[k] == OPEN:
                state[k] = UNKNOWN
        opened = 0
    return known, opened


@_inner
def _close(reached, bound):
    """Keep the largest bound of any node that is not searched further."""
    if bound > reached[CLOSED]:
        reached[CLOSED] = bound


@_inner
def _limit(reached, incumbent, tolerance):
    """Return the bound up to which nodes do not matter."""
    return _larger(incumbent, reached[BEST] * (1 + tolerance))


@_inner
def _judged(
    reached, counts, best_state, key, owner, state, known, opened, fewest, most, ends, incumbent,
    tolerance,
):  # fmt: skip
    """Try a node's two extreme sets as candidates; return its bound, or −1 if it was closed.

    A bound that is NaN carries no information: `_smaller` keeps the one the node had before.
    """
    later = known + opened
    # The largest and the smallest known set of a node are candidates if they are admitted.
    for decision in (KNOWN, UNKNOWN):
        value = ends[0] if decision == KNOWN else ends[2]
        admitted = later <= most if decision == KNOWN else known >= fewest
        if admitted and value > reached[BEST]:
            reached[BEST], counts[OWNER] = value, owner
            for k in range(len(state)):
                best_state[k] = decision if state[k] == OPEN else state[k]
    # A leaf holds one admitted set, the largest: its own upper bound closes it.
    if opened == 0 or later == fewest:
        _close(reached, _smaller(key, ends[1]))
        return -1.0
    # Otherwise a node whose bound is within the limit is closed, and the bound kept.
    bound = _smaller(key, ends[3])
    if bound <= _limit(reached, incumbent, tolerance):
        _close(reached, bound)
        return -1.0
    return bound


@_inner
def _branch(
    keys, slots, owners, states, reached, counts, key, owner, state, known, opened, fewest, most,
    limit, after, order,
):  # fmt: skip
    """Push what is left of a node, with the most promising open tuple decided both ways.

    `after[decision]` bounds the node after each single decision.
    """
    branch = -1
    for k in range(len(state)):
        if state[k] == OPEN and (branch < 0 or order[k] < order[branch]):
            branch = k
    # Where only one of the two decisions can beat the limit, it is taken at once. The bound of the
    # other one is kept, so nobody is lost.
    for k in range(len(state)):
        if k == branch or state[k] != OPEN:
            continue
        if after[KNOWN, k] <= limit and known + opened > fewest:
            _close(reached, _smaller(key, after[KNOWN, k]))
            state[k] = UNKNOWN
            opened -= 1
        elif after[UNKNOWN, k] <= limit and known < most:
            _close(reached, _smaller(key, after[UNKNOWN, k]))
            state[k] = KNOWN
            known += 1
            opened -= 1
    # One child for each decision, if it still holds an admitted adversary. The bound of a child
    # that does not matter is kept: together the children cover every adversary of this node.
    for decision in (KNOWN, UNKNOWN):
        if decision == KNOWN and known + 1 > most:
            continue
        if decision == UNKNOWN and known + opened - 1 < fewest:
            continue
        bound = _smaller(key, after[decision, branch])
        if bound <= limit:
            _close(reached, bound)
            continue
        # It takes the first free slot behind the end of the heap.
        number = counts[OPENED]
        slot = slots[number]
        for k in range(len(state)):
            states[slot, k] = decision if k == branch else state[k]
        owners[slot] = owner
        _push(keys, slots, number, bound, slot)
        counts[OPENED] += 1


@_inner
def _decided(state, target, decision, chosen, count):
    """List the tuples with this decision behind the first `count` ones; return how many there are.

    The target's own entry is no decision.
    """
    for k in range(len(state)):
        if k != target and state[k] == decision:
            chosen[count] = k
            count += 1
    return count


@_inner
def cholesky_row(matrix, work, step, place):
    """Write one row of the matrix with all earlier rows of the Cholesky factor subtracted.

    Returns the factor that the row must be multiplied by: one over the root of its pivot.
    """
    size = len(matrix)
    # Outer products of the rows before: the rounding is that of a nearby matrix, which τ covers.
    for k in range(size):
        work[step, k] = matrix[place, k]
    for earlier in range(step):
        factor = work[earlier, place]
        for k in range(size):
            work[step, k] -= factor * work[earlier, k]
    return 1.0 / np.sqrt(work[step, place])


@_inner
def _schur_rows(matrix, right, row, chosen, count, work, line, diagonal, column):
    """Eliminate the chosen tuples from a positive definite matrix and a right-hand side.

    Writes what remains of row `row`, of the diagonal and of the right-hand side into `line`,
    `diagonal` and `column`; returns what the right-hand side's own square loses. `work` keeps the
    columns of the Cholesky factor, one in each row.
    """
    size = len(right)
    # Nothing is eliminated yet.
    lost = 0.0
    for k in range(size):
        line[k] = matrix[row, k]
        diagonal[k] = matrix[k, k]
        column[k] = right[k]
    for step in range(count):
        place = chosen[step]
        # The next row of the Cholesky factor.
        scale = cholesky_row(matrix, work, step, place)
        # Subtract its outer product from the row, the diagonal and the right-hand side: what is
        # left is a Schur complement. The rounding of all steps is that of a matrix nearby, which τ
        # covers.
        answer = column[place] * scale
        lost += answer * answer
        factor = work[step, row] * scale
        for k in range(size):
            here = work[step, k] * scale
            work[step, k] = here
            line[k] -= factor * here
            diagonal[k] -= here * here
            column[k] -= answer * here
    return lost


@_inner
def _unknown_regressions(work, target, chosen, count, inverse, slopes, rests):
    """Regress each decided-unknown tuple on all tuples outside U: slope of x_i, residual variance.

    With U the unknown tuples these are −Ω_UU⁻¹Ω_Ui and the diagonal of Ω_UU⁻¹. `work` holds the
    columns L_c of the Cholesky factor of Ω_UU, as `_schur_rows` left them: row c has L_rc at the
    r-th chosen tuple, and at the target entry c of L⁻¹Ω_Ui.
    """
    # The second triangular solve, not a product with the inverse: the error of both is that of a
    # nearby Ω.
    for r in range(count - 1, -1, -1):
        here = -work[r, target]
        for k in range(r + 1, count):
            here -= work[r, chosen[k]] * slopes[chosen[k]]
        slopes[chosen[r]] = here / work[r, chosen[r]]
        rests[chosen[r]] = 0.0
    # The inverse of L, row by row; row by row the squares of its columns add up to the diagonal of
    # Ω_UU⁻¹, and nothing cancels.
    for r in range(count):
        for c in range(r):
            inverse[r, c] = 0.0
        inverse[r, r] = 1.0
        for k in range(r):
            factor = work[k, chosen[r]]
            for c in range(k + 1):
                inverse[r, c] -= factor * inverse[k, c]
        pivot = work[r, chosen[r]]
        for c in range(r + 1):
            here = inverse[r, c] / pivot
            inverse[r, c] = here
            rests[chosen[c]] += here * here


@_inner
def _linear_bound(variance, cross, spread, floor, slope, rest, total, tau, multiplier):
    """Bound all known sets of a node from its moments given A and given A ∪ R."""
    bound = _sphere_bound(variance, cross, spread, floor, slope, rest, total, tau)
    if multiplier == 0.0:
        return bound
    return _widened(bound, variance, cross, spread, floor, total, tau, multiplier)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def linear_search(block, answers, space, frontier, incumbent, tolerance, budget):
    """Expand up to `budget` nodes of an answer that is not clamped, while any matters."""
    covariance, precision, factors, multipliers, widest, fewest, most, tau = block
    functions, products, totals, targets, whichs = answers
    keys, slots, owners, states, reached, counts, best_state = frontier[:7]
    aside_keys, aside_owners, aside_states = frontier[7:]
    work, _, lines, after, order, ends, chosen, state = space
    size = len(covariance)
    total = 0.0  # one scale of rounding errors for all functions
    for which in range(len(totals)):
        total = _larger(total, totals[which])
    peak = 0.0 if len(totals) == 1 else total
    for _ in range(budget):
        key, slot = _next(keys, slots, counts, _limit(reached, incumbent, tolerance))
        if slot < 0:
            break
        is_steady = owners[slot] < 0
        owner = ~owners[slot] if is_steady else owners[slot]
        target, which = targets[owner], whichs[owner]
        known, opened = _take(states[slot], target, most, state)
        later = known + opened
        count = _decided(state, target, KNOWN, chosen, 0)
        spread = totals[which] - _schur_rows(
            covariance, products[which], target, chosen, count, work,
            lines[0], lines[1], lines[2],
        )  # fmt: skip
        count = _decided(state, target, UNKNOWN, chosen, 0)
        rest = _schur_rows(
            precision, functions[which], target, chosen, count, work,
            lines[3], lines[4], lines[5],
        )  # fmt: skip
        factor, variance, cross = factors[target], lines[1, target], lines[2, target]
        floor, slope = 1.0 / lines[4, target], lines[5, target]
        # The largest known set below the node, the smallest, and all of them.
        value = _leaf_value(floor, slope, rest, multipliers[later])
        upper = _leaf_upper(value, floor, rest, tau, multipliers[later], size, peak)
        ends[0], ends[1] = factor * value, factor * upper
        ends[2] = factor * abs(cross / variance) if multipliers[known] == 0.0 else 0.0
        ends[3] = factor * _linear_bound(
            variance, cross, spread, floor, slope, rest, total, tau, widest[known, later]
        )
        key = _judged(
            reached, counts, best_state, key, owner, state, known, opened, fewest, most, ends,
            incumbent, tolerance,
        )  # fmt: skip
        if key < 0.0:
            continue
        limit = _limit(reached, incumbent, tolerance)
        # Near-ties are set aside, once, to be bounded more carefully.
        if key <= limit * NEAR and not is_steady:
            place = counts[ASIDE]
            aside_keys[place], aside_owners[place] = key, owner
            for k in range(size):
                aside_states[place, k] = state[k]
            counts[ASIDE] += 1
            continue
        # Bounds after each single decision: a known tuple changes the moments given A, an unknown
        # one those given A ∪ R. Both are rank-one updates of what is there.
        for k in range(size):
            if state[k] == OPEN:
                part = lines[0, k] / lines[1, k]
                after[KNOWN, k] = factor * _linear_bound(
                    variance - part * lines[0, k], cross - part * lines[2, k],
                    spread - lines[2, k] ** 2 / lines[1, k],
                    floor, slope, rest, total, tau, widest[known + 1, later],
                )  # fmt: skip
                part = lines[3, k] / lines[4, k]
                after[UNKNOWN, k] = factor * _linear_bound(
                    variance, cross, spread, 1.0 / (lines[4, target] - part * lines[3, k]),
                    slope - part * lines[5, k], rest + lines[5, k] ** 2 / lines[4, k],
                    total, tau, widest[known, later - 1],
                )  # fmt: skip
                high = _larger(after[KNOWN, k], after[UNKNOWN, k])
                low = _smaller(after[KNOWN, k], after[UNKNOWN, k])
                # The smaller bound counts little: the larger one has to be closed too.
                order[k] = high + 0.2 * low
        _branch(
            keys, slots, owners, states, reached, counts, key, owner, state, known, opened,
            fewest, most, limit, after, order,
        )  # fmt: skip


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def clamped_search(block, answers, space, frontier, incumbent, tolerance, budget):
    """Expand up to `budget` nodes of a clamped answer, while any matters."""
    covariance, precision, factors, multipliers, widest, fewest, most, tau = block
    functions, _, _, targets, _ = answers
    keys, slots, owners, states, reached, counts, best_state = frontier[:7]
    work, inverse, lines, after, order, ends, chosen, state = space
    size, weights = len(covariance), functions[0]
    rounding = 1 + 4 * size * UNIT_ROUNDOFF
    for _ in range(budget):
        key, slot = _next(keys, slots, counts, _limit(reached, incumbent, tolerance))
        if slot < 0:
            break
        owner = owners[slot]
        target = targets[owner]
        known, opened = _take(states[slot], target, most, state)
        later = known + opened
        # No right-hand side enters here: `weights` stands in for one.
        count = _decided(state, target, KNOWN, chosen, 0)
        _schur_rows(covariance, weights, target, chosen, count, work, lines[0], lines[1], lines[2])
        count = _decided(state, target, UNKNOWN, chosen, 0)
        _schur_rows(precision, weights, target, chosen, count, work, lines[3], lines[4], lines[2])
        _unknown_regressions(work, target, chosen, count, inverse, lines[5], lines[6])
        variance, floor = lines[1, target], 1.0 / lines[4, target]
        multiplier = multipliers[later]
        # Four sums: the largest known set, its upper bound, the smallest, all known sets.
        for place in range(4):
            ends[place] = abs(weights[target])
        for k in range(size):
            if k == target or state[k] == KNOWN:
                continue
            cap = factors[k] / factors[target] * (1 + 1e-14)
            weight = abs(weights[k])
            ends[2] += weight * _smaller(cap, abs(lines[0, k]) / variance)
            # Decided unknown: its regression on all tuples outside U, which is also that of the
            # largest known set. Open: the same regression once it is unknown itself.
            if state[k] == UNKNOWN:
                lowest, slope, rest = floor, lines[5, k], lines[6, k]
                value = _leaf_value(floor, slope, rest, multiplier)
                upper = _leaf_upper(value, floor, rest, tau, multiplier, size, 0.0)
                ends[0] += weight * _smaller(cap, value)
                ends[1] += weight * _smaller(cap, upper)
            else:
                part = lines[3, k] / lines[4, k]
                lowest = 1.0 / (lines[4, target] - part * lines[3, k])
                slope, rest = -part, 1.0 / lines[4, k]
            # All known sets below the node; no tuple can move by more than its range, which is the
            # cap.
            total = covariance[k, k]
            reach = _linear_bound(
                variance, lines[0, k], lines[1, k], lowest, slope, rest, total, tau,
                widest[known, later],
            )  # fmt: skip
            term = weight * _smaller(cap, reach)
            ends[3] += term
            order[k] = -term  # the tuple that adds most is decided next
        # Sums of numbers that are not negative: a factor covers their rounding in both upper
        # bounds.
        ends[0] *= factors[target]
        ends[1] *= factors[target] * rounding
        ends[2] *= factors[target] if multipliers[known] == 0.0 else 0.0
        ends[3] *= factors[target] * rounding
        key = _judged(
            reached, counts, best_state, key, owner, state, known, opened, fewest, most, ends,
            incumbent, tolerance,
        )  # fmt: skip
        if key < 0.0:
            continue
        # Single decisions are not bounded here: each keeps the bound of the node.
        for k in range(size):
            after[KNOWN, k] = after[UNKNOWN, k] = key
        limit = _limit(reached, incumbent, tolerance)
        _branch(
            keys, slots, owners, states, reached, counts, key, owner, state, known, opened,
            fewest, most, limit, after, order,
        )  # fmt: skip
