"""The worst adversary of a Markov chain.

Given what is known, only the nearest known tuple on each side of the target matters, so the 2^{T−1}
known sets reduce to windows. `walk_around` goes through all windows around one target; or around
all targets at once, where every tuple adds the same: then a window is given by the lengths of its
two sides. `search_one` evaluates one adversary: one window, and the limits r → ±∞ if it is long.

`ChainComposer` bounds what several releases about a chain leak together.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import ANY_TABLE, SHORT_TABLE
from pdp_calibrate.core.problem import (
    Bracket,
    Composer,
    Engine,
    Limits,
    Problem,
    Releases,
)
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF, rounded_up
from pdp_calibrate.core.table import WrittenOut
from pdp_calibrate.core.tuning import (
    QUICK_LAWS,
    TABLED_BINARY,
    TABLED_CELLS,
    TABLED_EVENTS,
    TABLED_LAWS,
)
from pdp_calibrate.core.workers import best_first, load_kernels
from pdp_calibrate.families.chain.mixing import likelihood_bounds
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.chain.walk import (
    KERNELS,
    Place,
    Walk,
    likely_course,
    witness_in,
    witness_of,
)
from pdp_calibrate.families.chain.windows import (
    Ends,
    Kind,
    Left,
    Right,
    Rules,
    Setup,
    Side,
)

_NOWHERE = Side("none", 0)


class Preparation:
    """What searches need that does not depend on the adversaries, computed when first needed."""

    def __init__(self, problem: Problem, chain: MarkovChain) -> None:
        self.problem, self.chain = problem, chain

    @functools.cached_property
    def setup(self) -> Setup:
        """The chain and the answer, prepared for windows."""
        return Setup(self.chain, self.problem.contributions)

    @functools.cached_property
    def written(self) -> WrittenOut:
        """The problem as one about a joint table."""
        return WrittenOut.of(self.problem, self.chain.to_table())

    @functools.cached_property
    def moves(self) -> FloatArray:
        """How far each tuple moves the answer between the two values of each pair."""
        contributions, mixing = self.problem.contributions, self.chain.mixing
        widest = contributions.tuple_ranges()[:, np.newaxis]
        if contributions.table is not None:
            return np.asarray(widest)
        moved = {
            key: np.abs(array[mixing.first] - array[mixing.second]).sum(axis=1)
            for key, array in {id(array): array for array in contributions.values}.items()
        }
        rows = np.array([moved[id(array)] for array in contributions.values])
        return np.asarray(np.minimum(rounded_up(rows, contributions.coordinates + 1), widest))


class ChainEngine(Engine):
    """Searches windows, or the joint table of a short chain.

    Exact for chains of up to 200 tuples whose contributions lie on a lattice. Otherwise a bracket:
    windows are cut where the chain has forgotten, and contributions rounded. Answers of several
    numbers get a bound (`mixing`), and on a short chain the smaller of it and the search of the
    joint table.
    """

    def __init__(self, problem: Problem, *, prepared: Preparation | None = None) -> None:
        """Prepare the search; `prepared` is what does not depend on the adversaries."""
        chain, contributions = problem.model, problem.contributions
        if not isinstance(chain, MarkovChain):
            raise TypeError(f"this engine searches Markov chains, got {chain!r}.")
        self.problem, self.chain = problem, chain
        self.prepared = Preparation(problem, chain) if prepared is None else prepared
        self._has_secrets = len(chain.states) > 1
        self._several = contributions.table is not None or contributions.coordinates > 1
        self._written: WrittenOut | None = None
        if self._has_secrets and self._needs_table():
            self._written = self.prepared.written.against(problem)

    def against(self, problem: Problem) -> ChainEngine:
        """Return an engine for the same chain and answers; see `core.problem.Engine`."""
        return ChainEngine(problem, prepared=self.prepared)

    def _needs_table(self) -> bool:
        """Whether the joint table is searched: where windows cannot replace it, or are slower."""
        chain = self.chain
        if self.problem.contributions.table is not None:
            return True
        if self._several:
            return fits_a_table(chain) and _is_tabled(self.problem, len(chain.states))
        if separates(self.problem) and chain.length <= SHORT_TABLE.tuples and fits_a_table(chain):
            return True
        if _laws(chain) <= TABLED_LAWS and fits_a_table(chain):
            return True
        return _is_small(chain) and bool(self.prepared.setup.lattice(chain.length - 1).errors.any())

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        if not self._has_secrets:
            return self.problem.nobody()
        if self._several:
            bound = self._bound_only(scale)
            if self._written is None or bound.upper <= limits.incumbent:
                return bound
            return self._written.search(scale, limits).at_most(bound.upper)
        if self._written is not None:
            return self._written.search(scale, limits)
        if self.problem.knowledge.known is not None:
            return search_one(self.problem, self.prepared.setup, scale)
        return _search_all(
            self.problem, self.prepared.setup, scale, limits.incumbent, limits.deadline
        )

    def _bound_only(self, scale: float) -> Bracket:
        """Bound answers of several numbers by the budgets of all tuples (`mixing`)."""
        problem, knowledge = self.problem, self.problem.knowledge
        budgets = problem.contributions.tuple_ranges() / scale * ROUND_UP
        own = self.prepared.moves / scale * ROUND_UP
        bounds = bounds_on_targets(self.chain, problem, budgets, own=own)
        target = max(bounds, key=lambda position: bounds[position])
        known = knowledge.known or frozenset()
        unknown = tuple(p for p in range(self.chain.length) if p != target and p not in known)
        moving = budgets[[target, *unknown]]  # if no adversary is named, the widest ranges left
        together = math.fsum(np.sort(moving)[::-1][: knowledge.total - knowledge.fewest])
        rounded = rounded_up(together, problem.contributions.coordinates + 3)
        value = min(bounds[target], rounded)
        return dataclasses.replace(problem.nobody(), upper=value, target=target, unknown=unknown)


def bounds_on_targets(
    chain: MarkovChain, problem: Problem, budgets: FloatArray, *, own: FloatArray | None = None
) -> dict[int, float]:
    """Bound what budgets per tuple reveal about each target; `own` as in `likelihood_bounds`."""
    knowledge, length = problem.knowledge, len(budgets)
    window = slice(0, length)
    if knowledge.known is not None:  # beyond the nearest known tuples nothing matters
        place = Place.nearest(length, knowledge.targets[0], knowledge.known)
        window = slice(place.low + 1, place.high)
    inside = None if own is None else own[window]
    bounds = likelihood_bounds(chain.mixing, budgets[window], inside)
    # Who knows all others learns what the target's own budget allows, between values that never
    # occur as well: that is plain DP, whatever the law.
    bounds = np.maximum(bounds, budgets[window] * ROUND_UP)
    return {target: float(bounds[target - window.start]) for target in knowledge.targets}


def separates(problem: Problem) -> bool:
    """Whether unknown tuples beyond a known one may blur the answer."""
    knowledge, length = problem.knowledge, problem.knowledge.total
    if knowledge.known is None:
        return 0 < knowledge.most < length - 1
    (target,) = knowledge.targets
    place = Place.nearest(length, target, knowledge.known)
    return length - 1 - len(knowledge.known) > place.inside


def fits_a_table(chain: MarkovChain, *, short: bool = False) -> bool:
    """Whether the chain can be written out as a joint table, or as a short one."""
    limits = SHORT_TABLE if short else ANY_TABLE
    return limits.admits([len(chain.states)] * chain.length, chain.log_rarest())


def _is_small(chain: MarkovChain) -> bool:
    """Whether all conditional laws of the joint table are quickly listed."""
    return _laws(chain) <= QUICK_LAWS and fits_a_table(chain)


def _laws(chain: MarkovChain) -> int:
    """Bound the number of conditional laws of the joint table."""
    return int(chain.length * (2 * len(chain.states)) ** min(chain.length, 64))


def _is_tabled(problem: Problem, states: int) -> bool:
    """Whether several numbers about a chain are searched in its joint table, beside the bound.

    Beyond this the search would take minutes, and its bracket would not close.
    """
    knowledge, length = problem.knowledge, problem.knowledge.total
    if knowledge.known is not None or knowledge.fewest == knowledge.most in (0, length - 1):
        return bool(states**length <= TABLED_CELLS)
    if states == 2:
        return length <= TABLED_BINARY
    return bool((states + 1) ** length <= TABLED_EVENTS)


def _search_all(
    problem: Problem, setup: Setup, scale: float, incumbent: float, deadline: float
) -> Bracket:
    knowledge = problem.knowledge
    best = problem.nobody()
    if knowledge.admits_strongest and not problem.hidden_noise:
        target = int(setup.ranges.argmax())
        best = problem.plain_dp(target, scale, likely_course(setup))
        if knowledge.fewest == setup.length - 1:
            return best

    def around(target: int | None, bound: float, least: float) -> Bracket:
        return _search_around(problem, setup, scale, target, bound, least, deadline)

    reach = setup.reach(scale)
    return _over_targets(problem, setup, scale, reach, best, incumbent, deadline, around)


def _over_targets(
    problem: Problem,
    setup: Setup,
    scale: float,
    reach: int,
    start: Bracket,
    incumbent: float,
    deadline: float,
    around: Callable[[int | None, float, float], Bracket],
) -> Bracket:
    """Search the windows around one target after the other, or around all of them at once.

    `around` searches those of one target (None for all), given its bound and a threshold below
    which windows do not matter. Of targets with equal surroundings only one is searched.
    """
    bounds = setup.bounds(scale)
    cases: list[tuple[float, int | None]] = [(float(bounds.max()), None)]
    if not setup.homogeneous:
        cases = [(float(bounds[target]), target) for target in range(setup.length)]
    seen, least = set[object](), max(incumbent, start.upper)

    def judge(bound: float, target: int | None) -> Bracket:
        nonlocal least
        view = None if target is None else setup.view(target, reach)
        if view in seen:
            return problem.nobody()
        seen.add(view)
        found = around(target, bound, least)
        least = max(least, found.upper)
        return found

    def unjudged(bound: float, target: int | None) -> Bracket:
        place = int(bounds.argmax()) if target is None else target
        unknown = tuple(position for position in range(setup.length) if position != place)
        return dataclasses.replace(problem.nobody(), upper=bound, target=place, unknown=unknown)

    return best_first(
        cases,
        judge,
        start=start,
        unjudged=unjudged,
        cutoff=lambda found: max(incumbent, found.upper),
        is_over=lambda: time.monotonic() > deadline,
        what="comparing adversaries",
    )


def _search_around(
    problem: Problem,
    setup: Setup,
    scale: float,
    target: int | None,
    bound: float,
    incumbent: float,
    deadline: float,
) -> Bracket:
    """Search the windows around one target; None for all of them at once."""
    reach = setup.reach(scale)
    knowledge = problem.knowledge
    rules = setup.rules(knowledge, hidden=problem.hidden_noise, target=target, reach=reach)
    walk = Walk(
        setup,
        setup.lattice(reach),
        scale,
        target=target,
        left=rules.most_left,
        right=rules.most_right,
        compiled=setup.is_large(reach),
    )
    outcome = walk_around(walk, rules, incumbent - walk.error, deadline)
    place = Place.of(setup, knowledge, target, *outcome.upper_sides)
    value = max(outcome.upper, outcome.pruned) + walk.error
    value = min(bound, max(0.0, value) * ROUND_UP) if outcome.finished else bound
    found = Bracket(
        upper=value,
        lower=0.0,
        witness=None,
        target=place.target,
        unknown=place.unknown(setup.length, knowledge.most),
    )
    if outcome.lower > -np.inf:
        found = found.or_worse(_attained(problem, setup, walk, target, outcome))
    if any(side.kind == "far" for side in outcome.upper_sides):
        found = with_tail(problem, setup, scale, place, found)
    return found


def _attained(
    problem: Problem, setup: Setup, walk: Walk, target: int | None, outcome: Outcome
) -> Bracket:
    """Name the window that attains the lower end."""
    knowledge = problem.knowledge
    place = Place.of(setup, knowledge, target, *outcome.lower_sides)
    unknown = place.unknown(setup.length, knowledge.most)
    hidden = problem.hidden_noise or len(unknown) > place.inside
    witness = witness_in(problem, walk, place, outcome.lower_sides, unknown, hidden=hidden)
    lower = max(0.0, outcome.lower - walk.error)
    return Bracket(upper=0.0, lower=lower, witness=witness, target=place.target, unknown=unknown)


@dataclass(kw_only=True)
class Outcome:
    """The result of the windows walked so far, before rounding."""

    upper: float = -np.inf
    """An upper bound on all windows that were walked or are out of reach."""
    upper_sides: tuple[Side, Side] = (_NOWHERE, _NOWHERE)
    """The window with this bound."""
    lower: float = -np.inf
    """Some window leaks at least this."""
    lower_sides: tuple[Side, Side] = (_NOWHERE, _NOWHERE)
    """That window."""
    pruned: float = -np.inf
    """An upper bound on all windows that were left out, at most what they were compared with."""
    finished: bool = True
    """Whether the search ended before its deadline."""

    def add(self, left: Side, ends: Ends, right: Right) -> None:
        """Add the windows of one left side."""
        at, known = right.upper_at, right.upper_known
        if right.upper > self.upper:
            far_left = bool(ends.left_far[at] if known else ends.left_far_none[at])
            far_right = bool(known and ends.right_far[at])
            self.upper = right.upper
            self.upper_sides = (
                left._replace(kind="far") if far_left else left,
                Side("far" if far_right else "known" if known else "none", at),
            )
        if right.lower > self.lower:
            kind: Kind = "known" if right.lower_known else "none"
            self.lower = right.lower
            self.lower_sides = left, Side(kind, right.lower_at, right.lower_end)
        if right.bound > right.upper:
            self.pruned = max(self.pruned, right.bound)


class _Begun(NamedTuple):
    """Left parts of windows, all of one length, from which the walk to the right begins."""

    distance: int
    """How far the left sides reach; 0 for a target that is the first tuple."""
    sides: list[Side]
    """The left sides."""
    ends: list[Ends]
    """How their right ends are counted."""
    lefts: list[Left]
    """What the walk needs to know about them."""


def walk_around(walk: Walk, rules: Rules, threshold: float, deadline: float) -> Outcome:
    """Compare the secrets in every window that the rules admit.

    Windows that cannot leak more than the threshold, or than the worst so far, are left out.
    """
    outcome = Outcome()
    waiting: list[_Begun] = []
    number = 0
    for begun in _begun(walk, rules):
        if time.monotonic() > deadline:
            outcome.finished = False
            return outcome
        waiting.append(begun)
        number += len(begun.lefts)
        if number >= walk.together:
            if _settled(walk, rules, waiting, threshold, outcome):
                return outcome
            waiting, number = [], 0
    _settled(walk, rules, waiting, threshold, outcome)
    return outcome


def all_left_parts(
    walk: Walk, rules: Rules
) -> Iterator[tuple[int, list[tuple[Side, FloatArray, FloatArray]]]]:
    """Yield the left sides of all windows with densities and masses, distance by distance."""
    if rules.none_left(0):
        yield 0, [(_NOWHERE, *walk.at_start())]
    for distance, here, masses in walk.lefts(rules.most_left):
        sides = [
            (Side("known", distance, state), here[state], masses[state])
            for state in rules.possible(distance)
        ]
        if rules.none_left(distance):
            sides.append((Side("none", distance), *walk.from_start(distance, here, masses)))
        yield distance, sides


def _begun(walk: Walk, rules: Rules) -> Iterator[_Begun]:
    """Yield the left parts of all windows, distance by distance."""

    def begin(distance: int, sides: list[tuple[Side, FloatArray, FloatArray]]) -> _Begun:
        begun = _Begun(distance, [], [], [])
        for left, rows, masses in sides:
            ends = rules.ends(left)
            if not ends.used:
                continue
            begun.sides.append(left)
            begun.ends.append(ends)
            begun.lefts.append(walk.begun(rows, masses, left.inside, ends))
        return begun

    for distance, sides in all_left_parts(walk, rules):
        yield begin(distance, sides)


def _settled(
    walk: Walk, rules: Rules, waiting: list[_Begun], threshold: float, outcome: Outcome
) -> bool:
    """Walk to the right from the left parts; return whether no longer left part can matter."""
    lefts = [left for begun in waiting for left in begun.lefts]
    if not lefts:
        return False
    rights = iter(walk.right_ends(lefts, max(threshold, outcome.upper)))
    for begun in waiting:
        bound = -np.inf
        for left, ends in zip(begun.sides, begun.ends, strict=True):
            right = next(rights)
            outcome.add(left, ends, right)
            if left.kind == "known":
                bound = max(bound, right.bound)
        diameter = walk.setup.diameters[begun.distance]
        if begun.distance and rules.may_prune and diameter < np.inf:
            # Windows that reach further left leak at most the diameter more than these.
            rest = bound + diameter
            if rest <= max(threshold, outcome.upper):
                outcome.pruned = max(outcome.pruned, rest)
                return True
    return False


class Tail(NamedTuple):
    """The limit of a log-ratio for outputs r → ±∞, and the adversary who attains it."""

    gain: float
    known: tuple[int, int]
    secrets: tuple[int, int]
    sign: int


def search_one(problem: Problem, setup: Setup, scale: float) -> Bracket:
    """Evaluate the only adversary of a problem."""
    knowledge = problem.knowledge
    (target,), known = knowledge.targets, knowledge.known or frozenset()
    place = Place.nearest(setup.length, target, known)
    unknown = tuple(p for p in range(setup.length) if p != target and p not in known)
    if not unknown and not problem.hidden_noise:
        return problem.plain_dp(target, scale, likely_course(setup))
    hidden = problem.hidden_noise or len(unknown) > place.inside
    reach = setup.reach(scale)
    left, right = place.sides(setup.length, reach)
    walk = Walk(
        setup, setup.lattice(reach), scale, target=target,
        left=left.distance, right=right.distance, compiled=setup.is_large(reach),
    )  # fmt: skip
    window = one_window(walk, place, left, right, hidden=hidden)
    value = max(0.0, window.upper + walk.error)
    found = Bracket(upper=value, lower=0.0, witness=None, target=target, unknown=unknown)
    if "far" in (left.kind, right.kind):
        value = min(value, float(setup.bounds(scale)[target]))
        return with_tail(problem, setup, scale, place, dataclasses.replace(found, upper=value))
    if window.lower == -np.inf:
        return found
    lower = max(0.0, window.lower - walk.error)
    witness = witness_of(
        problem, walk, place, window.sides, window.densities, unknown, hidden=hidden
    )
    return dataclasses.replace(found, lower=lower, witness=witness)


class Window(NamedTuple):
    """The result of one window, for all values of its ends, before rounding."""

    upper: float
    """The window leaks no more than this."""
    lower: float
    """The window leaks at least this."""
    sides: tuple[Side, Side]
    """The values of its ends that attain the lower end."""
    densities: tuple[FloatArray, FloatArray]
    """The densities and masses there, per secret."""


def one_window(walk: Walk, place: Place, left: Side, right: Side, *, hidden: bool) -> Window:
    """Compare the secrets in one window, for all values of its ends.

    Where tuples outside add noise that is `hidden`, only r → ±∞ counts for the lower end.
    """
    setup = walk.setup
    sides, rows, masses = walk.left_sides(place, left)
    here, ends = walk.whole_windows(rows, masses, right)
    everywhere, far_out = walk.evaluation.compare(here, ends, walk.noise.form)
    # Sides out of reach add their diameter; rounding of contributions widens both ends.
    truncated = sum(setup.diameters[side.distance] for side in (left, right) if side.kind == "far")
    inside = right.distance - (right.kind != "none")
    cost = float(walk.left_costs[left.inside] + walk.right_costs[inside])
    gains = far_out if hidden else everywhere
    state, side = np.unravel_index(int(gains.argmax()), gains.shape)
    return Window(
        upper=float(everywhere.max()) + (truncated + cost),
        lower=float(gains[state, side]) - cost,
        sides=(sides[side], right._replace(value=int(state))),
        densities=(here[state, :, side], ends[state, :, side]),
    )


def with_tail(
    problem: Problem, setup: Setup, scale: float, place: Place, found: Bracket
) -> Bracket:
    """Take the limit r → ±∞ as lower end, which costs one pass along any window."""
    tail = _tail(setup, scale, place)
    if tail is None:
        return found
    per_step = setup.states + 12 + 4 * (setup.largest_log + float(setup.ranges.max()) / scale)
    error = 8 * UNIT_ROUNDOFF * (place.inside + 4) * per_step + 8 * UNIT_ROUNDOFF * abs(tail.gain)
    lower = max(0.0, tail.gain - error)
    if lower <= found.lower:
        return found
    witness = place.witness(
        problem, setup, tail.known, tail.secrets, tail.sign * math.inf, found.unknown
    )
    return dataclasses.replace(found, lower=lower, witness=witness)


def _tail(setup: Setup, scale: float, place: Place) -> Tail | None:
    """Return the larger of the limits r → +∞ and r → −∞.

    There the density is E[e^{±f/λ} | x_i, x_K], in which left and right side are factors.
    """
    best: Tail | None = None
    flat = [_factors(setup, place, None, left=side) for side in (True, False)]
    for sign in (1, -1):
        tilts = sign * setup.added / scale
        total = tilts[place.target][:, np.newaxis] - tilts[place.target]
        choices = []
        for side, weights in zip((True, False), flat, strict=True):
            with np.errstate(invalid="ignore"):  # −inf − −inf marks what cannot happen
                gains = _factors(setup, place, tilts, left=side) - weights
                apart = gains[:, :, np.newaxis] - gains[:, np.newaxis, :]
            apart = np.where(np.isnan(apart), -np.inf, apart)
            total = total + apart.max(axis=0)
            choices.append(apart.argmax(axis=0))
        first, second = np.unravel_index(int(total.argmax()), total.shape)
        gain = float(total[first, second])
        if gain > -np.inf and (best is None or gain > best.gain):
            ends = int(choices[0][first, second]), int(choices[1][first, second])
            best = Tail(gain, ends, (int(first), int(second)), sign)
    return best


def _factors(setup: Setup, place: Place, tilts: FloatArray | None, *, left: bool) -> FloatArray:
    """Return the log-weight of one side for each value of its end and each secret."""
    rows = slice(place.low + 1, place.target) if left else slice(place.target + 1, place.high)
    inner = np.zeros_like(setup.added[rows]) if tilts is None else tilts[rows]
    inner = np.ascontiguousarray(inner if left else inner[::-1])
    kernel = setup.log_kernel
    if left and place.low < 0:
        starts = [setup.log_start]
    elif left:
        impossible = np.full(len(kernel), -np.inf)
        starts = [
            row if here else impossible
            for row, here in zip(kernel, setup.support[place.low], strict=True)
        ]
    else:
        starts = [np.zeros(len(kernel))] if place.high == setup.length else list(kernel.T)
    walk = load_kernels(KERNELS).tilted_walk
    return np.array([walk(np.array(start), inner, left, kernel) for start in starts])


class ChainComposer(Composer):
    """Bounds any releases by the plain-DP budget spent on each tuple.

    The further away, the less of a budget counts (`mixing`), whatever other tuples are known.
    """

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Bound by the budgets of all tuples, each reduced by what the chain forgets on the way."""
        del deadline
        chain = releases.problem.model
        if not isinstance(chain, MarkovChain):
            return None
        return max(bounds_on_targets(chain, releases.problem, releases.tuple_budgets).values())
