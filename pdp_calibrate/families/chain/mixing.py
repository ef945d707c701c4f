"""What any answers about a chain reveal of one of its tuples, by the budgets spent on all of them.

Theorem 35 (docs/theory).

A budget e_j bounds how far tuple j alone moves the log-likelihood of everything released. A tuple
reveals its neighbours, but less the further they are, which is measured here pair by pair of
values (v, v') and distance by distance. H[t, R] bounds what the tuples strictly between t and a
known tuple R > t (or the end of the chain) add to the leakage about tuple t, *whichever of them are
known*; S[L, t] is its mirror image:

    H[t, R](v, v') = min(C[t, R](v, v'),
                         min over t < u < R of H[t, u](v, v') + D_{u−t}(v, v') ⊗ α_u),
    α_u = e_u + max H[u, R] + max S[t, u].

D_b is the range of the log-ratio of the laws of a tuple b steps away, ⊗ that of
`core.contraction`, and C adds the budgets up, each times the largest chance that a coupling of the
two laws still differs there.

**Cost.** H and S depend on nothing but the budgets strictly between their ends, so they are
computed once for all intervals with equal budgets inside; with equal budgets all along the chain,
once per length. Both grow with the interval and are bounded, hence converge: intervals longer than
a few hundred tuples are bounded by the fixed point, approached *from above*, so that stopping early
is safe. Then nothing depends on the length of the chain.

Everything is rounded upwards: sums are multiplied by `ROUND_UP` step by step, and a relative
surplus of a budget becomes at most the same surplus of what it adds, since ⊗ and c are concave in
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, read_only
from pdp_calibrate.core.contraction import birkhoff_bounds, contractions
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF

_SMALLEST = 1e-280  # probabilities below this may have lost digits to underflow
_ALIKE = 1e-12  # pairs of values whose distances differ by less, relatively, count as one
_CONVERGED = 1e-9  # relative distance from its limit below which a longer interval adds nothing
_FIRST_SPAN = 24  # longest interval of the first try, doubled until the limit is reached
_SHORTEST_SPAN = 4
_LARGEST_SPAN = 2048
_MOST_KINDS = 4000  # different budgets beyond which intervals are no longer told apart
_WORK = 25_000_000  # contractions per table of intervals
_LIMIT_ACCURACY = 1e-11

_Indices = npt.NDArray[np.intp]


class Distances(NamedTuple):
    """How far the laws of a tuple some steps away are apart, for two values of a tuple."""

    right: FloatArray
    """`right[b, p]`: D to the tuple b steps later, for the p-th pair of values; ∞ for b = 0."""
    left: FloatArray
    """`left[b, p]`: D to the tuple b steps earlier."""


class Mixing:
    """How fast a chain forgets, pair by pair of values: what does not depend on any budget."""

    def __init__(self, kernel: FloatArray, possible: npt.NDArray[np.bool_]) -> None:
        """Prepare a chain with this kernel; `possible` are the values that any tuple can take."""
        self.kernel = kernel
        first, second = np.triu_indices(len(kernel), 1)
        kept = possible[first] & possible[second]
        self.first, self.second = first[kept], second[kept]
        self._right = [np.full(len(self.first), np.inf)]
        self._left = [np.full(len(self.first), np.inf)]
        self._power = np.eye(len(kernel))
        self._reached = self._power > 0
        self._grouped: dict[int, tuple[Distances, _Indices]] = {}

    def distances(self, most: int) -> tuple[Distances, _Indices]:
        """Return D_0 … D_most for pairs that differ, and which of them each pair of values is."""
        while len(self._right) <= most:
            self._step()
        if most not in self._grouped:
            right, left = np.array(self._right[: most + 1]), np.array(self._left[: most + 1])
            self._grouped[most] = _alike(right, left)
        return self._grouped[most]

    def _step(self) -> None:
        """Add the distances of one more step; none is larger than that of the step before."""
        steps = len(self._right)
        self._power = self._power @ self.kernel
        power = self._power
        self._reached = (self._reached.astype(np.float64) @ (self.kernel > 0)) > 0
        if power[self._reached].min() < _SMALLEST:  # entries may have lost digits to underflow
            self._right.append(self._right[-1])
            self._left.append(self._left[-1])
            return
        error = 8 * (len(power) + 2) * steps * UNIT_ROUNDOFF
        with np.errstate(divide="ignore"):
            logs = np.log(power)
        right = _ranges(logs[self.first], logs[self.second]) + error
        left = _ranges(logs.T[self.first], logs.T[self.second]) + error
        self._right.append(np.minimum(self._right[-1], right))
        self._left.append(np.minimum(self._left[-1], left))


def _ranges(ones: FloatArray, others: FloatArray) -> FloatArray:
    """Return the range of the difference of log-laws, row by row, rounded up.

    What is impossible under both does not count; what is impossible under one makes it infinite.
    A value that no tuple can have so late in the chain, a law of zeros, is not compared.
    """
    is_compared = (ones.max(axis=1) > -np.inf) & (others.max(axis=1) > -np.inf)
    ones, others = np.where(is_compared[:, np.newaxis], [ones, others], 0.0)
    with np.errstate(invalid="ignore"):
        apart = ones - others
    never = np.isnan(apart)
    largest = np.where(never, -np.inf, apart).max(axis=1)
    smallest = np.where(never, np.inf, apart).min(axis=1)
    sizes = np.where(np.isfinite(ones), np.abs(ones), 0.0).max(axis=1)
    sizes += np.where(np.isfinite(others), np.abs(others), 0.0).max(axis=1)
    return np.asarray(np.maximum(largest - smallest, 0.0) + 8 * UNIT_ROUNDOFF * (1 + sizes))


def _alike(right: FloatArray, left: FloatArray) -> tuple[Distances, _Indices]:
    """Join pairs of values with the same distances up to rounding, under the larger ones."""
    both = np.concatenate([right, left])
    kept: list[FloatArray] = []
    member = np.zeros(both.shape[1], dtype=np.intp)
    for pair, column in enumerate(both.T):
        if kept:
            slack = np.where(np.isfinite(column), _ALIKE * (1 + column), 0.0)
            with np.errstate(invalid="ignore"):
                near = np.abs(np.array(kept) - column) <= slack
            near |= np.array(kept) == column  # where both are infinite
            at = np.flatnonzero(near.all(axis=1))
            if len(at):
                member[pair] = at[0]
                kept[at[0]] = np.maximum(kept[at[0]], column)
                continue
        member[pair] = len(kept)
        kept.append(column)
    table = np.array(kept).reshape(len(kept), len(both)).T
    return Distances(read_only(table[: len(right)]), read_only(table[len(right) :])), member


def likelihood_bounds(
    mixing: Mixing, budgets: FloatArray, own: FloatArray | None = None
) -> FloatArray:
    """Bound the leakage about every tuple of a chain, for every K, by the budgets of all tuples.

    Parameters
    ----------
    mixing
        The chain.
    budgets
        e_j of every tuple, in the order of the chain. Tuples beyond known ones may be left out.
    own
        `own[i, p]`: what tuple i may move the log-likelihood when it changes from one value of the
        p-th pair to the other; its budget for every pair if not given.

    Returns
    -------
    array
        One number per tuple; nobody who knows other tuples exactly learns more.
    """
    length = len(budgets)
    if not len(mixing.first) or not length:
        return np.zeros(length)
    budgets = np.asarray(budgets, dtype=np.float64)
    level = float(budgets.max())
    if np.all(budgets == level):
        return _total(mixing, _revealed(mixing, budgets), budgets, own)
    # Fewer distances are tried where intervals differ: the other bound may be the smaller one.
    found = _total(mixing, _revealed(mixing, np.full(length, level)), budgets, own)
    if len(np.unique(budgets)) > _MOST_KINDS:
        diameter = float(mixing.distances(1)[0].right[1].max())
        return np.minimum(found, birkhoff_bounds(budgets, diameter))
    return np.minimum(found, _total(mixing, _revealed(mixing, budgets), budgets, own))


def _total(
    mixing: Mixing, revealed: tuple[FloatArray, int], budgets: FloatArray, own: FloatArray | None
) -> FloatArray:
    """Add what other tuples reveal, per pair that differs, to what each tuple's budget allows."""
    added, span = revealed
    if own is None:
        return np.asarray((added.max(axis=1) + budgets) * ROUND_UP)
    _, member = mixing.distances(span)
    return np.asarray((added[:, member] + own).max(axis=1) * ROUND_UP)


def _revealed(mixing: Mixing, budgets: FloatArray) -> tuple[FloatArray, int]:
    """Return H + S for every tuple and pair that differs, and the longest interval tabulated."""
    length, span = len(budgets), min(_FIRST_SPAN, len(budgets))
    padded = np.concatenate([budgets[:1], budgets, budgets[-1:]])  # ends of the chain
    grows = True
    while True:
        distances, _ = mixing.distances(span)
        places, kinds = _kinds(padded, span)
        work = span * span * distances.right.shape[1] * len(places)
        if work > _WORK and span > _SHORTEST_SPAN:
            span, grows = span // 2, False
            continue
        intervals = Intervals(distances, padded, places, kinds, span)
        later, is_settled = intervals.to_the_end()
        before, is_settled_too = intervals.from_the_start()
        more = min(2 * span, length, _LARGEST_SPAN)
        grows &= more > span and work * (more / span) ** 2 <= _WORK
        if (is_settled and is_settled_too) or not grows:
            return (later + before)[1:-1], span
        span = more


def _kinds(padded: FloatArray, span: int) -> tuple[_Indices, _Indices]:
    """Return one place of each kind of surroundings, and the kind of every place.

    Two places are of one kind if the budgets of the `span` tuples after each are the same.
    """
    if np.all(padded == padded[0]):
        return np.zeros(1, dtype=np.intp), np.zeros(len(padded), dtype=np.intp)
    _, levels = np.unique(padded, return_inverse=True)
    ahead = np.concatenate([levels, np.full(span, levels[-1])])
    windows = np.lib.stride_tricks.sliding_window_view(ahead[1:], span)
    _, places, kinds = np.unique(
        windows[: len(padded)], axis=0, return_index=True, return_inverse=True
    )
    return np.asarray(places), np.asarray(kinds).reshape(-1)


class Intervals:
    """H and S of all intervals up to a length, and the two passes along the whole chain.

    Tables are indexed [length, kind of the left end, pair of values]. Places 0 and T + 1 are the
    ends of the chain.
    """

    def __init__(
        self,
        distances: Distances,
        padded: FloatArray,
        places: _Indices,
        kinds: _Indices,
        span: int,
    ) -> None:
        self.distances, self.padded, self.kinds, self.span = distances, padded, kinds, span
        self.end = len(padded) - 1
        self.couples = {1, -1}  # the directions in which a coupling may still be the best
        pairs = distances.right.shape[1]
        self.after = np.zeros((span + 1, len(places), pairs))
        self.before = np.zeros((span + 1, len(places), pairs))
        self.most_after = np.zeros((span + 1, len(places)))
        self.most_before = np.zeros((span + 1, len(places)))
        for size in range(2, span + 1):
            self._fill(size, places)

    def _fill(self, size: int, places: _Indices) -> None:
        """Compute H and S of all intervals of one length from those of shorter ones."""
        steps = np.arange(1, size)
        right, left = (side[1:size, np.newaxis, :] for side in self.distances)
        # Tuples between the ends, seen from the left end; beyond the chain nothing is ever read.
        inner = np.minimum(places + steps[:, np.newaxis], self.end)
        budgets, kinds = self.padded[inner], self.kinds[inner]
        after, most_after = self.after, self.most_after
        before, most_before = self.before, self.most_before

        others = budgets + most_after[size - steps[:, np.newaxis], kinds] + most_before[1:size]
        through = after[1:size] + contractions(right, others[:, :, np.newaxis])
        after[size] = self._least(1, budgets, right, after[1:size], through)

        # The same from the right end, the nearest tuple first.
        budgets, kinds = budgets[::-1], kinds[::-1]
        others = budgets + most_before[size - steps] + most_after[steps[:, np.newaxis], kinds]
        nearer = before[steps[:, np.newaxis], kinds]
        through = nearer + contractions(left, others[:, :, np.newaxis])
        before[size] = self._least(-1, budgets, left, nearer, through)
        most_after[size] = after[size].max(axis=1)
        most_before[size] = before[size].max(axis=1)

    def _least(
        self,
        sign: int,
        budgets: FloatArray,
        distances: FloatArray,
        nearer: FloatArray,
        through: FloatArray,
    ) -> FloatArray:
        """Return the smaller of the best way through one tuple and the coupling of all."""
        least = through.min(axis=0)
        if sign in self.couples:
            coupled = _coupled(budgets, distances)
            if len(coupled) == 1 and np.all(coupled > (nearer + distances).min(axis=0)):
                # What goes through one tuple stays below this, and what is coupled only grows.
                self.couples.remove(sign)
            least = np.minimum(least, coupled)
        return np.asarray(least * ROUND_UP)

    def to_the_end(self) -> tuple[FloatArray, bool]:
        """Return H up to the end of the chain for every place and pair, and whether it is settled.

        It is settled if intervals longer than those tabulated could hardly make it smaller.
        """
        own = self.after[self.span, self.kinds]
        return self._pass(1, lambda place: self._step(place, 1), self._runs_down(), own)

    def from_the_start(self) -> tuple[FloatArray, bool]:
        """Return S from the start of the chain for every place and pair; see `to_the_end`."""
        own = self.before[self.span, self.kinds[np.maximum(np.arange(self.end + 1) - self.span, 0)]]
        return self._pass(-1, lambda place: self._step(place, -1), self._runs_up(), own)

    def _runs_down(self) -> _Indices:
        """Return, for every place, the first of the places up to it with equal surroundings."""
        changes = np.flatnonzero(np.diff(self.kinds)) + 1
        starts = np.concatenate([[0], changes])
        return np.asarray(starts[np.searchsorted(starts, np.arange(self.end + 1), "right") - 1])

    def _runs_up(self) -> _Indices:
        """Return, for every place, the last of the places from it on with equal surroundings.

        Those of a place are the kinds of the `span` places before it.
        """
        places = np.arange(self.end + 1)
        starts = self._runs_down()
        lasts = np.concatenate([np.flatnonzero(np.diff(self.kinds)), [self.end]])
        ends = lasts[np.searchsorted(lasts, places)]
        before = np.maximum(places - 1, 0)
        is_inside = places - self.span >= starts[before]
        return np.where(is_inside, np.minimum(ends[before] + 1, self.end), places)

    def _step(self, place: int, sign: int) -> _Step:
        """Return how the places within reach on one side of a place bound what they reveal."""
        near = place + sign * np.arange(1, self.span + 1)
        steps = np.arange(1, self.span + 1)
        if sign > 0:
            own = self.after[1:, self.kinds[place]]
            back = self.most_before[1:, self.kinds[place]]
            side = self.distances.right
        else:
            own = self.before[steps, self.kinds[near]]
            back = self.most_after[steps, self.kinds[near]]
            side = self.distances.left
        return _Step(near, own, side[1:], self.padded[near] + back)

    def _pass(
        self, sign: int, step_at: Callable[[int], _Step], runs: _Indices, longest: FloatArray
    ) -> tuple[FloatArray, bool]:
        """Go along the chain, away from one of its ends."""
        found = np.zeros((self.end + 1, self.after.shape[2]))
        most = np.zeros(self.end + 1)
        everything = float(self.padded[1:-1].sum()) * (1 + 2 * self.end * UNIT_ROUNDOFF)
        place = self.end - 1 if sign > 0 else 1
        limited, limit = -1, 0.0
        while 0 <= place <= self.end:
            size = self.end - place if sign > 0 else place
            last = place
            if size <= self.span:
                found[place] = (
                    self.after[size, self.kinds[place]]
                    if sign > 0
                    else self.before[size, self.kinds[0]]
                )
            else:
                step = step_at(place)
                near = float(most[step.near].max())
                if runs[place] != place:
                    if limited != runs[place]:
                        limited, limit = int(runs[place]), step.limit(everything)
                    slack = _CONVERGED * max(limit, float(self.padded.max()))
                    if near <= limit + slack:
                        # All places within reach reveal at most this much; then so do all others
                        # with the same surroundings, one after the other.
                        together = max(near, limit)
                        reveals = step.reveals(together)
                        if reveals.max() <= together:
                            last = int(runs[place])
                            found[min(place, last) : max(place, last) + 1] = reveals
                if last == place:
                    found[place] = step.reveals(most[step.near])
            found[place] = np.minimum(found[place], everything)
            most[min(place, last) : max(place, last) + 1] = found[place].max()
            place = last - sign
        tolerance = _CONVERGED * (float(self.padded.max()) + float(most.max()))
        if self.end - 1 <= self.span:
            return found, True
        return found, bool(np.all(found[1:-1] <= longest[1:-1] + tolerance))


class _Step(NamedTuple):
    """What a place learns from those within reach on one side of it."""

    near: _Indices
    """These places, the nearest first."""
    own: FloatArray
    """What the tuples before each reveal if it is known: `own[b, p]`."""
    distances: FloatArray
    """D to each of them."""
    others: FloatArray
    """The budget of each, with what the tuples before it reveal of it."""

    def reveals(self, most: FloatArray | float) -> FloatArray:
        """Bound what is revealed per pair, given what lies beyond reveals of each place."""
        others = self.others + most
        through = self.own + contractions(self.distances, others[:, np.newaxis])
        return np.asarray(through.min(axis=0) * ROUND_UP)

    def limit(self, everything: float) -> float:
        """Return a number that stays if what lies beyond reveals it, hardly above the smallest."""
        widest = (self.own + self.distances).min(axis=0).max() * ROUND_UP
        low, high = 0.0, min(float(widest), everything)
        while high - low > _LIMIT_ACCURACY * high:
            middle = low / 2 + high / 2
            if not low < middle < high:
                break
            if self.reveals(middle).max() <= middle:
                high = middle
            else:
                low = middle
        return high


def _coupled(budgets: FloatArray, distances: FloatArray) -> FloatArray:
    """Return C: every budget times the largest chance that coupled courses differ there.

    `budgets[b]` are those of the tuples 1, 2, … steps away, `distances[b]` D to them.
    """
    number = len(budgets)
    before = np.cumsum(budgets, axis=0) - budgets
    before = np.maximum(before, 0.0) * (1 + 4 * number * UNIT_ROUNDOFF)
    before = (before + 4 * number * UNIT_ROUNDOFF * budgets)[:, :, np.newaxis]
    # ∫₀¹ tanh((D + 2sB)/4) ds: at most tanh at the middle, which is concave; and in closed form,
    # whose rounding is divided by B.
    chance = np.tanh((distances + before) / 4)
    with np.errstate(divide="ignore"):
        one_over = 1 / before
    with np.errstate(invalid="ignore", over="ignore"):
        fallen = np.log1p(np.exp(-distances / 2)) - np.log1p(np.exp(-distances / 2 - before))
        mean = 1 - 2 * one_over * fallen + 16 * UNIT_ROUNDOFF * (1 + one_over)
    chance = np.fmin(chance * ROUND_UP, mean)
    together = (budgets[:, :, np.newaxis] * np.minimum(chance, 1.0)).sum(axis=0)
    return np.asarray(together * (1 + 2 * (number + 2) * UNIT_ROUNDOFF))
