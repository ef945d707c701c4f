"""Steps along a chain: take a tuple into the sum, compare secrets, walk to all right ends.

For a fixed secret of the target, the joint density of the noisy sum over the window walked so far
and the state at its end is held at every lattice point from 0 to the largest possible sum; beyond
these it falls like e^{−distance}. One step adds a tuple: shift the density by what the tuple's
state adds, then apply the transition. Arrays are indexed [state at the end, secret, …, point].

Forms and their rounding are those of `core.mixtures`: all entries are sums of products of
non-negative numbers, or logarithms of such, so nothing cancels before two secrets are compared, and
`Walk` charges the rounding of all steps to both ends of the bracket. LAWS leave the noise out: the
joint law of the sum and the state, for releases repeated any number of times.

`advance` and `compare` are NumPy; `kernels` has the same two compiled, for chains that are large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, LOGS

LAWS = 3


NOT, TAILS, WHOLE = 0, 1, 2  # over which outputs a window counts for the lower end


IntArray = npt.NDArray[np.int64]


class Noise(NamedTuple):
    """The noise on the lattice."""

    step: float
    """The distance of neighbouring points, in scales."""
    decay: FloatArray
    """e^{−gap·step} per gap; for laws 1 at the gap 0, else 0."""
    lack: FloatArray
    """1 − e^{−gap·step} per gap, for deficits; else 0."""
    form: int
    """DEFICITS, DENSITIES, LOGS or LAWS."""

    def tail(self, edge: FloatArray, masses: FloatArray, gaps: IntArray) -> FloatArray:
        """Continue densities beyond their last point, by these gaps.

        Outside the points held so far there is no atom, so a density falls by e^{−step} per point,
        exactly; what it lacks to its mass follows: m − (m − l)·e^{−d} = l·e^{−d} + m·(1 − e^{−d}).
        """
        edge, masses = edge[..., np.newaxis], masses[..., np.newaxis]
        if self.form == LOGS:
            return np.asarray(edge - gaps * self.step)
        if self.form == DEFICITS:
            return np.asarray(edge * self.decay[gaps] + masses * self.lack[gaps])
        return np.asarray(edge * self.decay[gaps])


class Left(NamedTuple):
    """The left part of some windows together with the target, and what their right ends count for.

    Right ends are counted by their distance b from the target.
    """

    rows: FloatArray
    """Densities [secret, point]."""
    masses: FloatArray
    """The mass of each secret, or its logarithm."""
    known_up: FloatArray
    """What to add to the leakage of the window that ends at a known tuple b steps away; −inf where
    there is none."""
    none_up: FloatArray
    """The same for b unknown tuples up to the end of the chain."""
    known_low: IntArray
    """NOT, TAILS or WHOLE, for the lower end."""
    none_low: IntArray
    """The same for windows open to the end of the chain."""
    known_cost: FloatArray
    """What to take off for the lower end."""
    none_cost: FloatArray
    """The same for windows open to the end of the chain."""
    prune_cost: FloatArray
    """Bound on what any window reaching further can leak beyond this one's worst end; ∞ if none."""


class Right(NamedTuple):
    """What all right ends of one left part say."""

    upper: float
    """No window that was walked leaks more."""
    upper_at: int
    """The distance of the end behind it."""
    upper_known: bool
    """Whether that end is a known tuple."""
    lower: float
    """Some window leaks at least this."""
    lower_at: int
    """The distance of its end."""
    lower_known: bool
    """Whether that end is a known tuple."""
    lower_end: int
    """The state of that tuple."""
    bound: float
    """No window of this left part leaks more, those not walked included."""


def advance(
    source: FloatArray, masses: FloatArray, points: IntArray, matrix: FloatArray, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Take the tuple at the end of the walk into the sum and move to its neighbour.

    `points` is what its states add, `matrix[new, old]` holds the transition. Each term is rounded
    twice by the shift, once by its weight and once per state by the sum.
    """
    size, most = source.shape[-1], int(points.max())
    # Given the old state, its contribution moves the sum; all states get the points of the one
    # that adds most.
    shifted = np.empty((*source.shape[:-1], size + most))
    for old, by in enumerate(points.tolist()):
        here, edges = shifted[old], source[old]
        here[..., by : by + size] = edges
        if by:
            here[..., :by] = noise.tail(edges[..., 0], masses[old], np.arange(by, 0, -1))
        if by < most:
            gaps = np.arange(1, most - by + 1)
            here[..., by + size :] = noise.tail(edges[..., -1], masses[old], gaps)
    # Averaging over the old state leaves the sum and the new state.
    return mixed(shifted, matrix, noise.form), mixed(masses, matrix, noise.form)


def mixed(rows: FloatArray, matrix: FloatArray, form: int) -> FloatArray:
    """Return Σ_old matrix[new, old]·rows[old] for every new state; logarithms stay logarithms."""
    out = np.empty((len(matrix), *rows.shape[1:]))
    for new, weights in enumerate(matrix):
        if form == LOGS:
            terms = rows + weights.reshape(-1, *[1] * (rows.ndim - 1))
            # The largest term is taken out: no exponential overflows, and one of them is 1.
            peak = terms.max(axis=0)
            held = np.maximum(peak, -1.7e308)
            total = np.exp(terms - held).sum(axis=0)
            out[new] = np.where(peak > -np.inf, held + np.log(np.maximum(total, 1.0)), -np.inf)
            continue
        np.multiply(rows[0], weights[0], out=out[new])
        for old in range(1, len(weights)):
            if weights[old] > 0:
                out[new] += weights[old] * rows[old]
    return out


def weighted(rows: FloatArray, weight: FloatArray | float, form: int) -> FloatArray:
    """Multiply densities or masses by a probability, or add its logarithm."""
    return np.asarray(rows + weight if form == LOGS else rows * weight)


def first_right(
    rows: FloatArray, masses: FloatArray, matrix: FloatArray, form: int
) -> tuple[FloatArray, FloatArray]:
    """Return joint densities of the left part and the state of the first tuple on the right.

    `rows` is indexed [secret, …, point]; the results [state, secret, …, point] and their masses.
    """
    weights = matrix.T.reshape(*matrix.shape, *[1] * (masses.ndim - 1))
    return weighted(rows, weights[..., np.newaxis], form), weighted(masses, weights, form)


def compare(here: FloatArray, masses: FloatArray, form: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest log-ratio of two secrets' densities, at all points and at the ends.

    Per state and left side; −inf where fewer than two secrets are possible.
    """
    # Only secrets that can happen together with the ends are compared, each divided by its mass:
    # that turns joint densities into conditional ones.
    live = masses > (-np.inf if form == LOGS else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if form == LOGS:
            shares = here - masses[..., np.newaxis]
        else:
            shares = here * (1.0 / masses)[..., np.newaxis]
        # The supremum over all outputs is attained at a lattice point (see `core.mixtures`); there
        # the largest and the smallest density make the worst pair.
        if live.all():
            high, low = shares.max(axis=1), shares.min(axis=1)
        else:
            high = np.where(live[..., np.newaxis], shares, -np.inf).max(axis=1)
            low = np.where(live[..., np.newaxis], shares, np.inf).min(axis=1)
        if form == DEFICITS:
            excess = (high - low) / (1.0 - high)
        else:
            excess = high / low if form == DENSITIES else high - low
        whole, ends = excess.max(axis=-1), np.maximum(excess[..., 0], excess[..., -1])
        if form == DEFICITS:
            whole, ends = np.log1p(whole), np.log1p(ends)
        elif form == DENSITIES:
            whole, ends = np.log(whole), np.log(ends)
    two = live.sum(axis=1) > 1
    return np.where(two, whole, -np.inf), np.where(two, ends, -np.inf)


class _Found:
    """What the right ends of many left sides say so far."""

    def __init__(self, number: int) -> None:
        self.upper, self.lower = np.full(number, -np.inf), np.full(number, -np.inf)
        self.bound = np.full(number, -np.inf)
        self.upper_at, self.lower_at, self.lower_end = np.zeros((3, number), dtype=np.int64)
        self.upper_known, self.lower_known = np.zeros((2, number), dtype=np.bool_)

    def add(
        self,
        which: IntArray,
        compared: tuple[FloatArray, FloatArray],
        counts: tuple[FloatArray, IntArray, FloatArray],
        at: int,
        *,
        known: bool,
    ) -> FloatArray:
        """Add windows of the left sides `which` that end here; return their worst log-ratios.

        `compared` comes from `compare`; `counts` says what they count for above, in which form
        they count below, and what to take off there.
        """
        (whole, ends), (up, low, cost) = compared, counts
        worst = whole.max(axis=0)
        better = worst + up > self.upper[which]
        chosen = which[better]
        self.upper[chosen] = (worst + up)[better]
        self.upper_at[chosen], self.upper_known[chosen] = at, known
        gains = np.where(low == WHOLE, whole, ends) - cost
        state = gains.argmax(axis=0)
        gain = gains[state, np.arange(len(which))]
        better = (low != NOT) & (gain > self.lower[which])
        chosen = which[better]
        self.lower[chosen] = gain[better]
        self.lower_at[chosen], self.lower_known[chosen] = at, known
        self.lower_end[chosen] = state[better]
        return np.asarray(worst)

    def rights(self) -> list[Right]:
        """Return them one by one."""
        columns = (
            self.upper, self.upper_at, self.upper_known,
            self.lower, self.lower_at, self.lower_known, self.lower_end, self.bound,
        )  # fmt: skip
        return [Right(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


class Evaluation(NamedTuple):
    """How densities are computed: in NumPy, or compiled."""

    advance: Callable[
        [FloatArray, FloatArray, IntArray, FloatArray, Noise], tuple[FloatArray, FloatArray]
    ]
    """Takes densities, masses, points, transition and noise; see `advance`."""
    compare: Callable[[FloatArray, FloatArray, int], tuple[FloatArray, FloatArray]]
    """Takes densities, masses and form; see `compare`."""


def run_right(
    lefts: Sequence[Left],
    points: IntArray,
    matrix: FloatArray,
    noise: Noise,
    threshold: float,
    evaluation: Evaluation,
) -> list[Right]:
    """Walk to the right of the target and compare secrets wherever a window may end.

    Parameters
    ----------
    lefts
        The left parts, all around the same target.
    points
        points[b − 1]: what the states of the tuple b steps to the right add.
    matrix
        P[v, w], or its logarithm.
    noise
        The noise on the lattice.
    threshold
        Nothing is walked further that cannot exceed this.
    evaluation
        How densities are computed.
    """
    form, number = noise.form, len(lefts)
    steps = np.array([len(left.known_up) for left in lefts])

    def side_by_side(name: str, empty: float) -> FloatArray:
        found = np.full((steps.max(), number), empty)
        for place, left in enumerate(lefts):
            found[: steps[place], place] = getattr(left, name)
        return found

    known_up, none_up = side_by_side("known_up", -np.inf), side_by_side("none_up", -np.inf)
    known_low, none_low = side_by_side("known_low", NOT), side_by_side("none_low", NOT)
    known_cost, none_cost = side_by_side("known_cost", 0.0), side_by_side("none_cost", 0.0)
    prune_cost = side_by_side("prune_cost", np.inf)
    # Left parts have lattices of different lengths: the shorter ones are continued by their tails,
    # where the ratio of two densities does not change any more.
    size = max(left.rows.shape[1] for left in lefts)
    rows = np.empty((len(matrix), number, size))
    masses = np.stack([left.masses for left in lefts], axis=1)
    for place, left in enumerate(lefts):
        own = left.rows.shape[1]
        rows[:, place, :own] = left.rows
        if own < size:
            gaps = np.arange(1, size - own + 1)
            rows[:, place, own:] = noise.tail(left.rows[:, -1], left.masses, gaps)
    here, ends = first_right(rows, masses, matrix, form)
    backwards, flat = matrix.T, (np.zeros if form == LOGS else np.ones)((1, len(matrix)))
    found, which = _Found(number), np.arange(number)
    for b in range(1, len(known_up)):
        pruning = prune_cost[b, which] < np.inf
        worst = np.full(len(which), -np.inf)
        # Windows that end here: the tuple b steps away is known, whatever it holds.
        counts = known_up[b, which], known_low[b, which], known_cost[b, which]
        if np.any((counts[0] > -np.inf) | (counts[1] != NOT) | pruning):
            worst = found.add(which, evaluation.compare(here, ends, form), counts, b, known=True)
        # Windows open to the end of the chain: the b − 1 tuples walked so far are the last ones.
        # The state beyond the end is summed out, which leaves the density of the sum alone.
        is_open = (none_up[b - 1, which] > -np.inf) | (none_low[b - 1, which] != NOT)
        if is_open.any():
            some = which[is_open]
            counts = none_up[b - 1, some], none_low[b - 1, some], none_cost[b - 1, some]
            summed = mixed(here[:, :, is_open], flat, form), mixed(ends[:, :, is_open], flat, form)
            found.add(some, evaluation.compare(*summed, form), counts, b - 1, known=False)
        found.bound[which] = np.maximum(found.bound[which], found.upper[which])
        # Whatever reaches further leaks at most the diameter more than the worst known end here
        # (truncation, `core.contraction`): below the threshold, nobody need be told apart.
        rest = worst + np.where(pruning, prune_cost[b, which], 0.0)
        done = pruning & (rest <= threshold)
        found.bound[which[done]] = np.maximum(found.bound[which[done]], rest[done])
        left_over = ~done & (steps[which] > b + 1)
        if not left_over.any():
            break
        if not left_over.all():
            which, here, ends = which[left_over], here[:, :, left_over], ends[:, :, left_over]
        # The tuple b steps away becomes unknown: take it into the sum.
        here, ends = evaluation.advance(here, ends, points[b - 1], backwards, noise)
    return found.rights()
