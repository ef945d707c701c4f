"""Gaussian noise on Markov chains: the windows of the Laplace search, compared for another noise.

Given what is known, only the nearest known tuple on each side of the target matters, whatever the
noise. A window's law of the sum is walked as for repeated releases (`windows`, the form LAWS), and
two secrets' laws are compared exactly.

**Truncation.** Let q be the states at the ends of a smaller window inside. The larger window's laws
average those of the smaller one with weights P(q|x_i) ≤ e^I·P(q|x_i'), so for every set E

    P(E) − e^{ε+I}·Q(E) ≤ Σ_q P(q|x_i)·(P_q(E) − e^ε·Q_q(E)):

at the same δ, the ε of the larger window is larger by at most I. Windows that represent larger ones
have I added to their ε, as in the Laplace search.

**At every δ** (μ, ρ) no window may represent another. If there are too many of them, couplings of
both sides of the target are combined (`sides`); for chains of more than about a thousand steps,
only the range of the whole answer is used: two coupled chains may stay different for arbitrarily
many steps, though rarely.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.couplings import one_number, output_side
from pdp_calibrate.core.finite_noise import Case, FiniteSearch, Mixtures, Named, VectorBound
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.table import WrittenOut
from pdp_calibrate.core.tuning import FINITE_NUMBERS, SHORTEST_REACH, SIDE_STEPS, TOGETHER_LAWS
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.chain.search import all_left_parts, fits_a_table, separates
from pdp_calibrate.families.chain.sides import move_by_sides
from pdp_calibrate.families.chain.walk import Place, Walk, course_around, likely_course
from pdp_calibrate.families.chain.windows import (
    LAWS,
    NOT,
    TAILS,
    WHOLE,
    Ends,
    Rules,
    Setup,
    Side,
    advance,
    first_right,
    summed_out,
)

_DEEP = 600.0  # nats: no probability of a path is lost above e^{−600}
_MISSING = 1e-80  # probability that may be missing from a law
_START_ERROR = 1e-10  # relative error of stationary probabilities that a lower end allows for
_CLOSED = 1e-9  # relative gap between the ends below which nothing more is searched


class ChainNoiseEngine(Engine):
    """Searches windows, or the joint table of a short chain.

    Parameters
    ----------
    problem
        The chain, what its tuples add, and who attacks them.
    """

    charges_rounding = True

    def __init__(self, problem: Problem, *, long: _Long | None = None) -> None:
        """Prepare the search; `long` is what does not depend on the adversaries."""
        chain = problem.model
        if not isinstance(chain, MarkovChain):
            raise TypeError(f"this engine searches Markov chains, got {chain!r}.")
        self.problem = problem
        self._one: tuple[Problem, float] | None = None
        self._fixed: VectorBound | WrittenOut | None = None
        self._searches: dict[int, FiniteSearch] = {}
        if len(chain.states) < 2:
            return
        once = one_number(problem.contributions)
        custom = problem.contributions.table is not None
        if custom or (once is not None and separates(problem) and fits_a_table(chain, short=True)):
            self._fixed = WrittenOut.of(problem, chain.to_table())
        elif once is None:
            small = fits_a_table(chain, short=True)
            self._fixed = (
                WrittenOut.of(problem, chain.to_table()) if small else VectorBound(problem)
            )
        else:
            self._one = dataclasses.replace(problem, contributions=once[0]), once[1]
            self._long = _Long(chain, once[0]) if long is None else long
            self._setup = self._long.setup

    def against(self, problem: Problem) -> ChainNoiseEngine:
        """Return an engine for other adversaries, with the same chain prepared."""
        return ChainNoiseEngine(problem, long=None if self._one is None else self._long)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        if self._fixed is not None:
            found = self._fixed.search(scale, limits)
        elif self._one is not None:
            found = self._search_within(self._reach(scale)).search(scale, limits)
            if self._example is not None and found.lower < found.upper * (1 - _CLOSED):
                found = found.with_lower(self._example.engine.search(scale, limits))
            if self._blurred is not None and found.lower < found.upper * (1 - _CLOSED):
                alone = dataclasses.replace(limits, incumbent=0.0)
                blurred = self._blurred.search(scale, alone)
                found = found.with_lower(blurred)
                if self._knows_only_ends:
                    found = found.at_most(blurred.upper)
        else:
            found = self.problem.nobody()
        return output_side(found, self.problem)

    @functools.cached_property
    def _example(self) -> Problem | None:
        """One adversary, searched alone where those of a whole set are only bounded.

        The one who knows least: no unknown tuple lies outside the window, so its law is exact.
        """
        problem, knowledge = self.problem, self.problem.knowledge
        if knowledge.known is not None or problem.hidden_noise:
            return None
        return problem.restricted(*knowledge.knowing_least)

    @functools.cached_property
    def _blurred(self) -> FiniteSearch | None:
        """One adversary, including the noise of unknown tuples outside the window.

        Other tuples known there are given one set of possible values, so that this is a lower end;
        if nothing else is known, it is exact.
        """
        if self._one is None or self.problem.knowledge.known is None or self.problem.hidden_noise:
            return None
        problem, rounding = self._one
        reach = self._setup.length - 1
        source = _Blurred(problem, self._setup, reach)
        if self._reach(1.0) < reach or source.deep or source.underflows or not source.is_blurred:
            return None
        return FiniteSearch(problem, source, strongest=None, rounding=rounding)

    @property
    def _knows_only_ends(self) -> bool:
        """Whether the one adversary knows nothing outside a window but its ends."""
        knowledge = self.problem.knowledge
        known = knowledge.known or frozenset()
        place = Place.nearest(self._setup.length, knowledge.targets[0], known)
        return known <= {place.low, place.high}

    def _reach(self, scale: float) -> int:
        """Return how far windows are walked: as far as the work allowed goes."""
        setup = self._setup
        reach = setup.reach(scale)
        knowledge = self.problem.knowledge
        if knowledge.known is not None or knowledge.most == 0:
            # There are no more windows than targets, so they are walked to their ends.
            points = setup.lattice(setup.length - 1).points.max(axis=1)
            steps = setup.length * float(points.sum() + 1) * setup.states**3
            full = len(knowledge.targets) * steps <= 100 * SIDE_STEPS
            return setup.length - 1 if full else reach
        targets = 1 if setup.homogeneous else setup.length
        while reach > SHORTEST_REACH:
            tops = np.sort(setup.lattice(reach).points.max(axis=1))[-2 * reach - 1 :]
            events = targets * reach**2 * (setup.states + 1) ** 2 * setup.states**2 / 4
            if events * float(tops.sum() + 1) <= FINITE_NUMBERS:
                break
            reach = max(SHORTEST_REACH, reach * 7 // 8)
        return reach

    def _search_within(self, reach: int) -> FiniteSearch:
        if reach not in self._searches and self._one is not None:
            problem, rounding = self._one
            source = _Windows(problem, self._setup, reach)
            strongest = None
            if problem.admits_strongest:
                strongest = functools.partial(_strongest, problem, self._setup)
            whole = float(self._setup.ranges.sum()) * (1 + 4 * reach * UNIT_ROUNDOFF)
            move = None
            if source.truncated or source.underflows:
                move = min(whole, self._long.by_sides)
            self._searches[reach] = FiniteSearch(
                problem,
                source,
                strongest=strongest,
                rounding=rounding,
                unlisted=whole if source.deep else 0.0,
                move=move,
            )
        return self._searches[reach]


class _Long:
    """What does not depend on the adversaries of a chain."""

    def __init__(self, chain: MarkovChain, contributions: Contributions) -> None:
        self.setup = Setup(chain, contributions)

    @functools.cached_property
    def by_sides(self) -> float:
        """How far couplings of both sides of a target move the answer."""
        found = move_by_sides(self.setup)
        return math.inf if found is None else found


def _strongest(problem: Problem, setup: Setup, scale: float) -> Bracket:
    """Evaluate the adversary who knows all others: the answer moves by what the target adds."""
    targets = problem.knowledge.targets
    target = max(targets, key=lambda place: float(setup.ranges[place]))
    return problem.plain_dp(target, scale, likely_course(setup))


class _Begun(NamedTuple):
    """The left part of some windows, and how their right ends are counted."""

    side: Side
    rows: FloatArray
    masses: FloatArray
    ends: Ends


class _Windows:
    """The laws of all windows of the adversaries of a problem."""

    def __init__(self, problem: Problem, setup: Setup, reach: int) -> None:
        self._problem, self._setup, self._reach = problem, setup, reach
        chain_depth = setup.largest_log * (setup.length + 1)
        self.underflows = chain_depth > _DEEP
        self.truncated = reach < setup.length - 1
        target = None if setup.homogeneous else 0
        side = min(reach, setup.length - 1)
        probe = self._walk(target, side, side)
        self.deep = probe.is_deep or probe.tiny * (1 + setup.length) > _MISSING
        self._unit = probe.unit

    def _walk(self, target: int | None, left: int, right: int) -> Walk:
        setup = self._setup
        scale = float(setup.ranges.sum()) + float(setup.lattice(self._reach).step)
        lattice = setup.lattice(self._reach)
        return Walk(setup, lattice, scale, target=target, left=left, right=right, laws=True)

    def cases(self) -> Iterator[Case]:
        """List windows around one target after the other, or around all of them at once."""
        setup, knowledge = self._setup, self._problem.knowledge
        if self.deep:
            return
        if knowledge.known is not None:
            (target,) = knowledge.targets
            place = Place.nearest(setup.length, target, knowledge.known)
            unknown = tuple(
                p for p in range(setup.length) if p != target and p not in knowledge.known
            )
            if unknown or self._problem.hidden_noise:
                listed = functools.partial(self._one_window, place, unknown)
                yield Case(self._most(), target, unknown, listed)
            return
        targets: list[int | None] = [None] if setup.homogeneous else list(range(setup.length))
        seen = set[object]()
        for around in targets:
            view = None if around is None else setup.view(around, self._reach)
            if view not in seen:
                seen.add(view)
                named = setup.length // 2 if around is None else around
                others = tuple(p for p in range(setup.length) if p != named)
                yield Case(self._most(), named, others, functools.partial(self._around, around))

    def _most(self) -> float:
        return float(self._setup.ranges.sum()) * (1 + 4 * self._setup.length * UNIT_ROUNDOFF)

    def _around(self, target: int | None) -> Iterator[Mixtures]:
        """Yield the laws of all windows around a target."""
        setup, knowledge, reach = self._setup, self._problem.knowledge, self._reach
        hidden = self._problem.hidden_noise
        rules = Rules(setup, knowledge, hidden=hidden, target=target, reach=reach)
        walk = self._walk(target, rules.most_left, rules.most_right)
        most = max(1, TOGETHER_LAWS // (setup.states**2 * (len(walk.noise.decay))))
        waiting: list[_Begun] = []
        for _, sides in all_left_parts(walk, rules):
            for side, rows, masses in sides:
                ends = rules.ends(side)
                if ends.used:
                    waiting.append(_Begun(side, rows, masses, ends))
            if len(waiting) >= most:
                yield from self._to_the_right(walk, target, waiting)
                waiting = []
        if waiting:
            yield from self._to_the_right(walk, target, waiting)

    def _one_window(self, place: Place, unknown: tuple[int, ...]) -> Iterator[Mixtures]:
        """Yield the laws of the window of one adversary."""
        setup = self._setup
        left, right = place.sides(setup.length, self._reach)
        walk = self._walk(place.target, left.distance, right.distance)
        hidden = self._problem.hidden_noise or len(unknown) > place.inside
        cost = sum(setup.diameters[side.distance] for side in (left, right) if side.kind == "far")
        sides, rows, masses = walk.left_sides(place, left)
        here = walk.whole_windows(rows, masses, right)
        counts = [(float(cost), WHOLE if cost == 0 and not hidden else TAILS)] * len(sides)
        yield from self._ending(walk, place.target, sides, counts, *here, right)

    def _to_the_right(
        self, walk: Walk, target: int | None, begun: list[_Begun]
    ) -> Iterator[Mixtures]:
        """Walk to the right of the target, and yield laws wherever a window may end."""
        form, number = walk.noise.form, len(begun)
        if form != LAWS:
            raise ValueError("windows are walked as laws here.")
        steps = np.array([one.ends.steps for one in begun])
        size = max(one.rows.shape[1] for one in begun)
        rows = np.zeros((len(walk.matrix), number, size))
        masses = np.stack([one.masses for one in begun], axis=1)
        for place, one in enumerate(begun):
            rows[:, place, : one.rows.shape[1]] = one.rows
        here, ends = first_right(rows, masses, walk.matrix, form)
        backwards = walk.matrix.T
        which = np.arange(number)
        for b in range(1, int(steps.max())):
            own = [begun[place] for place in which]
            known = [(up, low) for up, low in (one.ends.counts[:2, b] for one in own)]
            sides = [one.side for one in own]
            yield from self._ending(walk, target, sides, known, here, ends, Side("known", b))
            none = [(up, low) for up, low in (one.ends.counts[3:, b - 1] for one in own)]
            if any(up > -np.inf or low != NOT for up, low in none):
                summed = summed_out(here, form), summed_out(ends, form)
                yield from self._ending(walk, target, sides, none, *summed, Side("none", b - 1))
            left_over = steps[which] > b + 1
            if not left_over.any():
                return
            which, here, ends = which[left_over], here[:, :, left_over], ends[:, :, left_over]
            here, ends = advance(here, ends, walk.right[b - 1], backwards, walk.noise)

    def _ending(
        self,
        walk: Walk,
        target: int | None,
        lefts: list[Side],
        counts: list[tuple[float, int]],
        here: FloatArray,
        masses: FloatArray,
        right: Side,
    ) -> Iterator[Mixtures]:
        """Yield the laws of the windows that end here, in groups that count in the same way."""
        alike: dict[tuple[float, bool], list[int]] = {}
        for place, (up, low) in enumerate(counts):
            if up > -np.inf or low != NOT:
                alike.setdefault((max(float(up), 0.0), low == WHOLE), []).append(place)
        step = float(self._setup.lattice(self._reach).step)
        errors = self._setup.lattice(self._reach).errors
        for (extra, attained), places in alike.items():
            rows, totals = here[:, :, places], masses[:, :, places]
            used = np.flatnonzero(rows.any(axis=(0, 1, 2)))
            stop = int(used[-1]) + 1 if len(used) else 1
            # (state, secret, left, point) → (event, secret, point)
            laws = rows[..., :stop].transpose(0, 2, 1, 3).reshape(-1, rows.shape[1], stop)
            mass = totals.transpose(0, 2, 1).reshape(-1, rows.shape[1])
            possible = mass > 0
            laws = laws / np.where(possible, mass, 1.0)[..., np.newaxis]
            inside = max(lefts[place].inside for place in places) + right.distance + 1
            moved = float(np.sort(errors)[::-1][:inside].sum())
            span = stop * step
            yield Mixtures(
                atoms=np.arange(stop, dtype=np.float64) * step,
                laws=laws,
                possible=possible,
                adversary=functools.partial(
                    self._named, target, [lefts[place] for place in places], right
                ),
                error=walk.unit,
                moved=moved * (1 + 1e-9) + 4 * UNIT_ROUNDOFF * span,
                extra=extra,
                attained=attained,
            )

    def _named(
        self,
        target: int | None,
        lefts: list[Side],
        right: Side,
        event: int,
        secrets: tuple[int, int],
        output: float,
    ) -> Named:
        """Return the adversary who has a window."""
        problem, setup = self._problem, self._setup
        state, place = divmod(event, len(lefts))
        left = lefts[place]
        knowledge = problem.knowledge
        if knowledge.known is not None:
            where = Place.nearest(setup.length, knowledge.targets[0], knowledge.known)
            hidden = {where.target, *knowledge.known}
            unknown = tuple(p for p in range(setup.length) if p not in hidden)
        else:
            where = Place.of(setup, knowledge, target, left, right)
            unknown = where.unknown(setup.length, knowledge.most)
        ends = left.value, state if right.kind == "known" else 0
        witness = where.witness(problem, setup, ends, secrets, output, unknown)
        return Named(witness, where.target, unknown)


class _Blurred(_Windows):
    """The laws of one adversary's whole answer: a window's, and what is unknown outside of it.

    Known tuples outside hold the values that the witness names.
    """

    @property
    def _place(self) -> Place:
        knowledge = self._problem.knowledge
        return Place.nearest(self._setup.length, knowledge.targets[0], knowledge.known or ())

    def _is_unknown(self, position: int) -> bool:
        return position not in (self._problem.knowledge.known or ())

    @property
    def is_blurred(self) -> bool:
        """Whether anything outside the window is unknown, and its law not too long."""
        place, length = self._place, self._setup.length
        outside = sum(map(self._is_unknown, (*range(place.low), *range(place.high + 1, length))))
        points = self._setup.lattice(self._reach).points.max(axis=1).sum()
        return outside > 0 and float(points) ** 2 * self._setup.states**3 <= SIDE_STEPS

    def cases(self) -> Iterator[Case]:
        """List the one adversary."""
        target = self._place.target
        others = (p for p in range(self._setup.length) if p != target and self._is_unknown(p))
        yield Case(self._most(), target, tuple(others), self._whole_answer)

    def _whole_answer(self) -> Iterator[Mixtures]:
        setup, place = self._setup, self._place
        left, right = place.sides(setup.length, self._reach)
        walk = self._walk(place.target, left.distance, right.distance)
        sides, rows, masses = walk.left_sides(place, left)
        here, ends = walk.whole_windows(rows, masses, right)
        counts = [(0.0, WHOLE)] * len(sides)
        lattice = setup.lattice(self._reach)
        for window in self._ending(walk, place.target, sides, counts, here, ends, right):
            outside = [
                self._outside(place, (sides[event % len(sides)].value, event // len(sides)))
                for event in range(len(window.laws))
            ]
            possible = window.possible & np.array([len(law) > 0 for law in outside])[:, np.newaxis]
            longest = max(map(len, outside))
            laws = np.zeros((*window.laws.shape[:2], window.laws.shape[2] + longest - 1))
            for (event, secret), there in np.ndenumerate(possible):
                if there:
                    blurred = np.convolve(window.laws[event, secret], outside[event])
                    laws[event, secret, : len(blurred)] = blurred
            size = laws.shape[2]
            yield dataclasses.replace(
                window,
                atoms=np.arange(size, dtype=np.float64) * float(lattice.step),
                laws=laws,
                possible=possible,
                error=window.error + _START_ERROR + 8 * (setup.length + size) * UNIT_ROUNDOFF,
                moved=float(lattice.errors.sum()) * (1 + 1e-9)
                + 4 * UNIT_ROUNDOFF * size * float(lattice.step),
            )

    def _outside(self, place: Place, ends: tuple[int, int]) -> FloatArray:
        """Return the law of what is unknown outside the window; empty if its ends cannot occur."""
        setup, course = self._setup, course_around(self._setup, place, ends)
        law = np.ones(1)
        if place.low > 0:
            law = self._walked(range(place.low + 1), setup.start, course)
        if place.high < setup.length - 1 and len(law):
            begun = setup.kernel[ends[1]]
            after = self._walked(range(place.high + 1, setup.length), begun, course)
            law = np.convolve(law, after) if len(after) else after
        return law

    def _walked(self, positions: range, begun: FloatArray, course: dict[int, int]) -> FloatArray:
        """Return the law of the unknown tuples among some positions, given the known ones.

        `begun` is the law of the first state.
        """
        setup, points = self._setup, self._setup.lattice(self._reach).points
        rows = begun[:, np.newaxis]  # (state, sum so far)
        for position in positions:
            if position > positions[0]:
                rows = setup.kernel.T @ rows
            if self._is_unknown(position):
                moved = np.zeros((len(rows), rows.shape[1] + int(points[position].max())))
                for state, step in enumerate(points[position].tolist()):
                    moved[state, step : step + rows.shape[1]] = rows[state]
                rows = moved
            else:
                kept = np.zeros_like(rows)
                kept[course[position]] = rows[course[position]]
                total = kept.sum()
                if not total > 0:
                    return np.zeros(0)
                rows = kept / total
        law = rows.sum(axis=0)
        return np.asarray(law / law.sum())
