"""The windows of the adversaries of a chain, and for which end of the bracket each one counts.

Theorem 5 (docs/theory).

The window of an adversary is the target with the unknown tuples around it, up to the nearest known
tuple on each side; given those two, no tuple outside matters. Each side of a window is *known* (it
ends at a known tuple, some distance away) or *none* (everything up to the end of the chain is
unknown); *far* stands for all sides longer than the reach of the search.

**Steps** add a tuple to the sum, compare secrets, and walk to every right end. For a fixed secret
of the target, the joint density of the noisy sum over the window walked so far and the state at its
end is held at every lattice point from 0 to the largest possible sum; beyond these it falls like
e^{−distance}. One step adds a tuple: shift the density by what the tuple's state adds, then apply
the transition. Arrays are indexed [state at the end, secret, …, point].

Forms and their rounding are those of `core.mixtures`: all entries are sums of products of
non-negative numbers, or logarithms of such, so nothing cancels before two secrets are compared, and
`Walk` widens the bracket at both ends by the rounding of all steps. The form LAWS leaves the noise
out: the joint law of the sum and the state, for releases repeated any number of times.

`advance` and `compare` are NumPy; `kernels` has the same two compiled, for chains that are large.

`Setup` is what a search along a chain needs, computed once per chain and query; the engines for
other adversaries of the same problem share it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, LOGS, Lattice, lattice_of
from pdp_calibrate.core.tuning import (
    CHAIN_STEPS,
    COMPILED_CHAIN_STEPS,
    FORGETFUL,
    FORGOTTEN,
    FULL_LENGTH,
    KEPT_WINDOWS,
    LATTICE_STEPS,
    LONGEST_SIDE,
    SIDES_AT_ONCE,
    TRUNCATION,
)
from pdp_calibrate.families.chain.model import MarkovChain


class Setup:
    """A chain and what its tuples add, prepared for searches at many scales."""

    def __init__(self, chain: MarkovChain, contributions: Contributions) -> None:
        self.chain = chain
        self.length, self.states = chain.length, len(chain.states)
        self.kernel, self.start = chain.kernel, chain.start
        self.log_start = chain.log_start
        with np.errstate(divide="ignore"):
            self.log_kernel = np.log(self.kernel)
        values = np.concatenate(contributions.values, axis=1).T  # (tuples, states)
        self.lowest = values.min(axis=1)
        self.added: FloatArray = values - self.lowest[:, np.newaxis]
        self.ranges: FloatArray = self.added.max(axis=1)
        self.homogeneous = bool(np.all(self.added == self.added[0]))
        sides = min(self.length - 1, LONGEST_SIDE)
        self.diameters, self.log_rarest = diameters(self.kernel, max(1, sides))
        self.support = _support(self.kernel, np.isfinite(self.log_start), self.length)
        self._lattices: dict[int, Lattice] = {}
        self._reaches: dict[float, int] = {}
        self._rules: dict[tuple[Knowledge, bool, int], Rules] = {}

    @functools.cached_property
    def largest_log(self) -> float:
        """The largest absolute value of the logarithm of any probability of the model."""
        logs = np.append(self.log_kernel, self.log_start)
        return float(np.abs(logs[np.isfinite(logs)]).max())

    @functools.cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """When each state becomes possible; the length of the chain if never."""
        ever = self.support.any(axis=0)
        return np.where(ever, self.support.argmax(axis=0), self.length)

    def view(self, target: int, reach: int) -> object:
        """Return the surroundings of a target within reach; equal surroundings leak the same."""
        inner = reach < target < self.length - 1 - reach
        if not inner or not self.support.all():
            return target
        return self.added[target - reach : target + reach + 1].tobytes()

    def bounds(self, scale: float) -> FloatArray:
        """Return the Birkhoff bound on the leakage about each tuple."""
        return birkhoff_bounds(self.ranges / scale, float(self.diameters[1]))

    def reach(self, scale: float) -> int:
        """Return how far windows are walked on each side of the target."""
        if self.length <= FULL_LENGTH:
            return self.length - 1
        # Steps by powers of ten, so that solving for a scale sees a curve without jumps.
        size = min(1.0, float(self.ranges.max()) / scale)
        decade = math.floor(math.log10(size)) if size > 0 else 0
        tolerance = max(TRUNCATION * 10.0**decade, 1e-11)
        if tolerance not in self._reaches:
            enough = np.flatnonzero(self.diameters <= tolerance)
            wanted = int(enough[0]) if len(enough) else len(self.diameters) - 1
            self._reaches[tolerance] = min(wanted, self._affordable())
        return self._reaches[tolerance]

    def lattice(self, reach: int) -> Lattice:
        """Return the lattice on which sums within reach are counted."""
        if reach not in self._lattices:
            # Windows much longer than the chain's memory are rarely walked: `search.walk_around`.
            forgotten = np.flatnonzero(self.diameters <= FORGOTTEN)
            usual = min(reach, int(forgotten[0])) if len(forgotten) else reach
            largest = int(np.clip(LATTICE_STEPS / self._runs(usual), 512, 2**15))
            window = min(self.length, 2 * usual + 1)
            self._lattices[reach] = lattice_of(self.added, window, largest)
        return self._lattices[reach]

    def rules(self, knowledge: Knowledge, *, hidden: bool, target: int | None, reach: int) -> Rules:
        """Return which windows count; the rules for all targets at once are kept between scales."""
        if target is not None:
            return Rules(self, knowledge, hidden=hidden, target=target, reach=reach)
        kind = knowledge, hidden, reach
        if kind not in self._rules:
            self._rules[kind] = Rules(self, knowledge, hidden=hidden, target=None, reach=reach)
        return self._rules[kind]

    def is_large(self, reach: int) -> bool:
        """Whether a search may take so many elementary steps that compiling code for it pays."""
        tops = np.sort(self.lattice(reach).points.max(axis=1))[-2 * reach - 1 :]
        return self._runs(reach) * float(tops.sum() + 1) > COMPILED_CHAIN_STEPS

    def _runs(self, reach: int) -> float:
        """Estimate the work of one search, per lattice point."""
        per_point = self.states * (self.states**2 + 5 * (self.states + 1))
        targets = 1 if self.homogeneous else self.length
        return targets * (self.states + 1) * per_point * max(1, reach) ** 2

    def _affordable(self) -> int:
        """Return the reach that keeps one search within the work allowed, at least 16."""
        work = CHAIN_STEPS if self.diameters[-1] < math.inf else FORGETFUL * CHAIN_STEPS
        reach = 16
        while reach < len(self.diameters) - 1 and self._runs(reach) * 2 * reach <= work:
            reach += max(1, reach // 8)
        return min(reach, len(self.diameters) - 1)


def _support(
    kernel: FloatArray, first: npt.NDArray[np.bool_], length: int
) -> npt.NDArray[np.bool_]:
    """Return which states are possible at which time."""
    links = kernel > 0
    support = np.empty((length, len(first)), dtype=np.bool_)
    support[0] = first
    for time in range(1, length):
        support[time] = links[support[time - 1]].any(axis=0)
        if np.array_equal(support[time], support[time - 1]):
            support[time:] = support[time]
            break
    return support


LAWS = 3


NOT, TAILS, WHOLE = 0, 1, 2  # over which outputs a window counts for the lower end


IntArray = npt.NDArray[np.int64]


class Noise(NamedTuple):
    """The noise on the lattice."""

    step: float
    """The distance of neighbouring points, in scales."""
    decay: FloatArray
    """e^{−gap·step} per gap, or its logarithm; for laws 1 at the gap 0, else 0."""
    lack: FloatArray
    """1 − e^{−gap·step} per gap, for deficits; else 0."""
    form: int
    """DEFICITS, DENSITIES, LOGS or LAWS."""

    def tail(self, edge: FloatArray, masses: FloatArray, gaps: slice | IntArray) -> FloatArray:
        """Continue densities beyond their last point, by these gaps.

        Outside the points held so far there is no atom, so a density falls by e^{−step} per point,
        exactly; what it lacks to its mass follows: m − (m − l)·e^{−d} = l·e^{−d} + m·(1 − e^{−d}).
        """
        edge, masses = edge[..., np.newaxis], masses[..., np.newaxis]
        if self.form == LOGS:
            return np.asarray(edge + self.decay[gaps])
        if self.form == DEFICITS:
            return np.asarray(edge * self.decay[gaps] + masses * self.lack[gaps])
        return np.asarray(edge * self.decay[gaps])


class Left(NamedTuple):
    """The left part of some windows together with the target."""

    rows: FloatArray
    """Densities [secret, point]."""
    masses: FloatArray
    """The mass of each secret, or its logarithm."""
    cost: float
    """How much the rounding of the left part's contributions may change a leakage."""
    ends: Ends
    """How the right ends are counted."""


class Right(NamedTuple):
    """The result of all right ends of one left part."""

    upper: float
    """An upper bound on the leakage of every window that was walked."""
    upper_at: int
    """The distance of the right end of the window with this bound."""
    upper_known: bool
    """Whether that end is a known tuple."""
    lower: float
    """Some window leaks at least this."""
    lower_at: int
    """The distance of that window's right end."""
    lower_known: bool
    """Whether that end is a known tuple."""
    lower_end: int
    """The state of that tuple."""
    bound: float
    """An upper bound on all windows of this left part, including those not walked."""


def advance(
    source: FloatArray, masses: FloatArray, points: IntArray, matrix: FloatArray, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Add the tuple at the end of the walk to the sum and move to its neighbour.

    `points` is what its states add, `matrix[new, old]` holds the transition. Each term is rounded
    twice by the shift, once by its weight and once per state by the sum.
    """
    size, most = source.shape[-1], int(points.max())
    # Given the old state, its contribution moves the sum; all states get the points of the one
    # that adds most. The last place of each row carries the mass, which is mixed by the same code.
    shifted = np.empty((*source.shape[:-1], size + most + 1))
    shifted[..., -1] = masses
    for old, by in enumerate(points.tolist()):
        here, edges = shifted[old], source[old]
        here[..., by : by + size] = edges
        if by:
            here[..., :by] = noise.tail(edges[..., 0], masses[old], slice(by, 0, -1))
        if by < most:
            gaps = slice(1, most - by + 1)
            here[..., by + size : -1] = noise.tail(edges[..., -1], masses[old], gaps)
    # Averaging over the old state leaves the sum and the new state.
    there = mixed(shifted, matrix, noise.form)
    return there[..., :-1], there[..., -1]


def walk(
    source: FloatArray, masses: FloatArray, points: IntArray, matrix: FloatArray, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Add several tuples to the sum, one after the other."""
    for row in points:
        source, masses = advance(source, masses, row, matrix, noise)
    return source, masses


def mixed(rows: FloatArray, matrix: FloatArray, form: int) -> FloatArray:
    """Return Σ_old matrix[new, old]·rows[old] for every new state; logarithms stay logarithms."""
    weights = matrix.reshape(*matrix.shape, *[1] * (rows.ndim - 1))
    if form != LOGS:
        return np.asarray(np.add.reduce(weights * rows, axis=1))
    terms = weights + rows
    # The largest term is taken out: no exponential overflows, and one of them is 1.
    peak = terms.max(axis=1)
    held = np.maximum(peak, -1.7e308)
    total = np.exp(terms - held[:, np.newaxis]).sum(axis=1)
    return np.where(peak > -np.inf, held + np.log(np.maximum(total, 1.0)), -np.inf)


def summed_out(rows: FloatArray, form: int) -> FloatArray:
    """Sum over all states: one row stands for all of them; logarithms stay logarithms."""
    if form != LOGS:
        return np.asarray(rows.sum(axis=0, keepdims=True))
    return mixed(rows, np.zeros((1, len(rows))), form)


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
    """The result of the right ends of many left sides so far."""

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

        `compared` comes from `compare`. `counts` says what to add for the upper end, over which
        outputs the windows count for the lower end (NOT, TAILS, WHOLE), and what to subtract there.
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


Step = Callable[
    [FloatArray, FloatArray, IntArray, FloatArray, Noise], tuple[FloatArray, FloatArray]
]
"""Takes densities, masses, points, transition and noise to densities and masses."""


class Evaluation(NamedTuple):
    """How densities are computed: in NumPy, or compiled."""

    advance: Step
    """Adds the tuple at the end to the sum; see `advance`."""
    walk: Step
    """The same for several tuples in a row, whose points stand one below the other."""
    compare: Callable[[FloatArray, FloatArray, int], tuple[FloatArray, FloatArray]]
    """Takes densities, masses and form; see `compare`."""


def run_right(
    lefts: Sequence[Left],
    points: IntArray,
    costs: tuple[FloatArray, FloatArray],
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
    costs
        How much the rounding of contributions on the right may change a leakage, by the distance of
        a known end and by the number of tuples up to the end of the chain.
    matrix
        P[v, w], or its logarithm.
    noise
        The noise on the lattice.
    threshold
        A walk stops where no longer window can exceed this, or the worst window found so far.
    evaluation
        How densities are computed.
    """
    form, number, (known_costs, none_costs) = noise.form, len(lefts), costs
    steps = np.array([left.ends.steps for left in lefts])
    left_costs = np.array([left.cost for left in lefts])
    counts = np.empty((len(_NOTHING), steps.max(), number))
    counts[:] = _NOTHING[:, np.newaxis, np.newaxis]
    for place, left in enumerate(lefts):
        counts[:, : steps[place], place] = left.ends.counts
    here, ends = first_right(*_side_by_side(lefts, noise), matrix, form)
    backwards = matrix.T
    found, which = _Found(number), np.arange(number)
    for b in range(1, counts.shape[1]):
        known_up, known_low, prune_cost = counts[:3, b]
        none_up, none_low = counts[3:, b - 1]
        known_cost = left_costs + known_costs[b]
        pruning = prune_cost < np.inf
        worst = np.full(len(which), -np.inf)
        # Windows that end here: the tuple b steps away is known, whatever it holds.
        if ((known_up > -np.inf) | (known_low != NOT) | pruning).any():
            counted = known_up + known_cost, known_low, known_cost
            worst = found.add(which, evaluation.compare(here, ends, form), counted, b, known=True)
        # Windows open to the end of the chain: the b − 1 tuples walked so far are the last ones.
        # The state beyond the end is summed out, which leaves the density of the sum alone.
        is_open = (none_up > -np.inf) | (none_low != NOT)
        if is_open.any():
            none_cost = left_costs[is_open] + none_costs[b - 1]
            counted = none_up[is_open] + none_cost, none_low[is_open], none_cost
            open_here, open_ends = (summed_out(a, form)[:, :, is_open] for a in (here, ends))
            compared = evaluation.compare(open_here, open_ends, form)
            found.add(which[is_open], compared, counted, b - 1, known=False)
        found.bound[which] = np.maximum(found.bound[which], found.upper[which])
        # Whatever reaches further leaks at most the diameter more than the worst known end here
        # (truncation, `core.contraction`): if that is below the threshold, the walk stops.
        rest = worst + np.where(pruning, prune_cost + known_cost, 0.0)
        threshold = max(threshold, float(found.upper.max()))
        done = pruning & (rest <= threshold)
        found.bound[which[done]] = np.maximum(found.bound[which[done]], rest[done])
        left_over = ~done & (steps[which] > b + 1)
        if not left_over.any():
            break
        if not left_over.all():
            # Mostly the walks of the last left sides stop first, as they reach furthest left; then
            # the others are a slice, and nothing is copied.
            number = int(np.count_nonzero(left_over))
            rest_of = slice(number) if left_over[:number].all() else left_over
            which, left_costs, counts = which[rest_of], left_costs[rest_of], counts[:, :, rest_of]
            here, ends = here[:, :, rest_of], ends[:, :, rest_of]
        # The tuple b steps away becomes unknown: add it to the sum.
        here, ends = evaluation.advance(here, ends, points[b - 1], backwards, noise)
    return found.rights()


def _side_by_side(lefts: Sequence[Left], noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Return the densities [secret, left part, point] and masses of left parts together.

    They have lattices of different lengths: the shorter ones are continued by their tails, where
    the ratio of two densities does not change any more.
    """
    sizes = np.array([left.rows.shape[1] for left in lefts])
    masses = np.stack([left.masses for left in lefts], axis=1)
    rows = np.empty((len(masses), len(lefts), sizes.max()))
    for place, left in enumerate(lefts):
        rows[:, place, : sizes[place]] = left.rows
    gaps = np.arange(rows.shape[2]) - sizes[:, np.newaxis] + 1
    edges = np.stack([left.rows[:, -1] for left in lefts], axis=1)
    return np.where(gaps > 0, noise.tail(edges, masses, np.maximum(gaps, 0)), rows), masses


Kind = Literal["known", "none", "far"]


class Side(NamedTuple):
    """One side of a window."""

    kind: Kind
    """Ended by a known tuple, by the end of the chain, or somewhere out of reach."""
    distance: int
    """Distance of the known tuple, or number of unknown tuples."""
    value: int = 0
    """The state of the known tuple."""

    @property
    def inside(self) -> int:
        """How many unknown tuples it has."""
        return self.distance - 1 if self.kind == "known" else self.distance


class Ends(NamedTuple):
    """How the right ends of one left side are counted, by their distance b from the target."""

    counts: FloatArray
    """Five rows, as in `_NOTHING`. Three are about windows that end at a known tuple: what to add
    to their leakage (−inf if there is no such window); NOT, TAILS or WHOLE for the lower end; how
    much more windows that reach further can leak (∞ if that is not known). Two are about windows
    with b unknown tuples up to the end of the chain: the first two of these again."""
    left_far: npt.NDArray[np.bool_]
    """At which known right ends a window also represents those whose left side is out of reach."""
    left_far_none: npt.NDArray[np.bool_]
    """The same where the right side is open to the end of the chain."""
    right_far: npt.NDArray[np.bool_]
    """At which known right ends a window also represents those whose right side is out of reach."""

    @property
    def steps(self) -> int:
        """How many distances there are, from 0 on."""
        return len(self.right_far)

    @property
    def used(self) -> bool:
        """Whether any window counts at all."""
        return self.steps > 1


_NOTHING = np.array([-np.inf, NOT, np.inf, -np.inf, NOT])  # the counts where there is no window


class Rules:
    """Which windows the adversaries of a problem admit."""

    def __init__(
        self, setup: Setup, knowledge: Knowledge, *, hidden: bool, target: int | None, reach: int
    ) -> None:
        self.setup, self.knowledge, self.hidden = setup, knowledge, hidden
        self.target = target
        self.reach = reach
        last = setup.length - 1
        self.most_left = min(reach, last if target is None else target)
        self.most_right = min(reach, last if target is None else last - target)
        self.truncated = reach < last
        self._kept: dict[tuple[Kind, int], dict[int, list[Ends]]] = {}
        # What follows from distances alone; codes are looked up by the number of unknown tuples.
        self._distance = np.arange(self.most_right + 2)
        self._within = (self._distance >= 1) & (self._distance <= self.most_right)
        self._diameters = np.append(setup.diameters[: self.most_right + 1], np.inf)
        inside = np.arange(-1, self.most_left + len(self._distance) + 1)
        self._coded = [self._codes(inside, known) for known in range(3)]
        self._is_alike = target is None and bool(setup.support.all())
        numbers = 8 * (setup.states + 1) * reach**2
        self._keeps = target is None and numbers <= KEPT_WINDOWS

    @property
    def may_prune(self) -> bool:
        """Whether a smaller window is admitted wherever a larger one is."""
        return self.knowledge.most >= 2 or self.knowledge.most == self.setup.length - 1

    def none_left(self, distance: int) -> bool:
        """Whether `distance` unknown tuples may reach from the target to the start of the chain."""
        return self.target is None or self.target == distance

    def possible(self, distance: int) -> list[int]:
        """Return the states that a tuple this far to the left can be known to have."""
        setup = self.setup
        if self._is_alike:
            return list(range(setup.states))
        if self.target is None:
            return [int(w) for w in np.flatnonzero(setup.first < setup.length - distance)]
        return [int(w) for w in np.flatnonzero(setup.support[self.target - distance])]

    def ends(self, left: Side) -> Ends:
        """Return how every right end is counted, which does not depend on the scale."""
        # Where every state is always possible, it does not matter what the known tuple holds.
        value = 0 if self._is_alike else left.value
        kept = self._kept.setdefault((left.kind, value), {})
        block, place = divmod(left.inside, SIDES_AT_ONCE)
        if block not in kept:
            if not self._keeps:
                kept.clear()
            first = block * SIDES_AT_ONCE
            kept[block] = self._ends(left.kind, value, range(first, first + SIDES_AT_ONCE))
        return kept[block][place]

    def _ends(self, kind: Kind, value: int, inside: range) -> list[Ends]:
        """Compute how every right end is counted, for left sides of these numbers of unknowns.

        Arrays are indexed [left side, distance of the right end].
        """
        ends = int(kind == "known")
        most = self.most_left - ends
        unknown = np.arange(inside.start, min(inside.stop, most + 1))[:, np.newaxis]
        left, right = unknown + ends, self._distance
        known, none = self._feasible(kind, value, left)
        known_low = np.where(known, self._coded[ends + 1][unknown + right], NOT)
        none_low = np.where(none, self._coded[ends][unknown + right + 1], NOT)
        known_up = np.where(known_low > NOT, 0.0, -np.inf)
        none_up = np.where(none_low > NOT, 0.0, -np.inf)
        left_far = left_far_none = right_far = np.zeros(known_up.shape, dtype=np.bool_)
        if self.truncated:
            left_far, left_far_none, right_far = self._beyond(kind, left)
            cost_left = self.setup.diameters[left] if ends else 0.0
            cost_right = self.setup.diameters[self.most_right]
            known_up = np.where(left_far, cost_left, known_up)
            none_up = np.where(left_far_none, cost_left, none_up)
            both = right_far & self._far_left(kind, left, right + 1)
            known_up = np.where(right_far, np.maximum(known_up, cost_right), known_up)
            known_up = np.where(both, cost_left + cost_right, known_up)
            left_far = (left_far & ~right_far) | both
        prune_cost = np.full(known_up.shape, np.inf)
        if self.may_prune:
            prune_cost = np.where(known_up > -np.inf, self._diameters, np.inf)
            if self.truncated:
                beyond = (left_far | left_far_none).any(axis=1)
                prune_cost[beyond] += self.setup.diameters[left[beyond]]
        used = (known_up > -np.inf) | (known_low > NOT)
        is_open = (none_up > -np.inf) | (none_low > NOT)
        stops = 1 + np.maximum(used * right, is_open * (right + 1)).max(axis=1)
        counts = np.stack([known_up, known_low, prune_cost, none_up, none_low])
        return [
            Ends(
                counts[:, place, :stop],
                left_far[place, :stop],
                left_far_none[place, :stop],
                right_far[place, :stop],
            )
            for place, stop in enumerate(stops.tolist())
        ]

    def _feasible(
        self, kind: Kind, value: int, left: IntArray
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return at which distances a right end may be known, and where the chain may end."""
        setup, last = self.setup, self.setup.length - 1
        within, distance = self._within, self._distance
        if self.target is not None:
            behind = last - self.target
            return within & (distance <= behind), (distance == behind) & (behind <= self.reach)
        if kind == "none":
            return (
                within & (left + distance <= last),
                (left + distance == last) & (distance <= self.reach),
            )
        begins = last - distance - left  # where the known tuple stands
        none = (begins >= 0) & (distance <= self.reach)
        none &= setup.support[np.maximum(begins, 0), value]
        return within & (setup.first[value] <= begins), none

    def _codes(self, inside: IntArray, ends: int) -> IntArray:
        """Return NOT, TAILS or WHOLE for windows of `inside` unknown tuples with `ends` known ends.

        Unknown tuples outside a window blur the answer further. They are dropped for the upper
        end; the tails, from which they cancel, serve the lower end.
        """
        knowledge = self.knowledge
        outside = self.setup.length - 1 - inside
        admitted = (max(ends, knowledge.fewest) <= outside) & (
            max(ends, knowledge.fewest) <= knowledge.most
        )
        whole = admitted & (outside <= knowledge.most) & (not self.hidden)
        return np.where(whole, WHOLE, np.where(admitted, TAILS, NOT)).astype(np.int64)

    def _far_left(self, kind: Kind, left: IntArray, right: IntArray) -> npt.NDArray[np.bool_]:
        """Return where windows may exist that reach further left; `right` is how far they go."""
        last = self.setup.length - 1
        fits = left + 1 + right <= last if self.target is None else self.target > self.reach
        ends_there = (left >= self.reach) & (kind == "known")
        return np.asarray(
            ends_there & fits & (self.knowledge.fewest <= last - (left + right - 1)), dtype=np.bool_
        )

    def _beyond(self, kind: Kind, left: IntArray) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return where windows represent larger ones: further left (known, open), further right."""
        last, most, distance = self.setup.length - 1, self.knowledge.most, self._distance
        known, none = self._feasible(kind, int(self.setup.first.argmin()), left)
        further = self._far_left(kind, left, distance)
        fits = (
            left + self.reach + 1 <= last
            if self.target is None
            else last - self.target > self.reach
        )
        ends = int(kind == "known")
        inside = left - ends
        allowed = (ends <= most) & (self.knowledge.fewest <= last - (inside + self.reach))
        far_both = self._far_left(kind, left, distance + 1)
        right = (distance == self.reach) & fits & (allowed | far_both)
        return further & known & (most >= 1), further & none, right
