"""The smallest scale at which no adversary leaks more than ε.

Theorem 2 (docs/theory).

A search at some scale, which ignores all who learn less than ε, either proves that nobody learns
more or finds an adversary who does. The scale is then raised until this adversary keeps ε, or a
*neighbour* does (one who knows one tuple more or less) who learns more: where a full search is
slow, neighbours are tried one by one. The loop ends because every search that finds such an
adversary raises the scale. Adversaries who know nothing, and those who know all others, come first,
because they are few and one of them is often the worst; a full search stops as soon as it finds
somebody who learns far more than ε.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from pdp_calibrate.arrays import checked_scale
from pdp_calibrate.core import noise
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.leakage import as_joint_leakage
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import (
    LAPLACE,
    Bracket,
    Leakage,
    Measure,
    Problem,
    split,
    worst,
)
from pdp_calibrate.core.tuning import COARSEST_SLACK, FAR_ABOVE, HASTY_SLACK
from pdp_calibrate.core.workers import one_bar
from pdp_calibrate.errors import CalibrationError

ROWS_COVERED = 2**20
"""A scale for real-valued answers covers the rounding of a sum over this many rows, or `rows`."""

STEP_ROWS_COVERED = 2**10
"""The same at each step of a model without an end, where the errors of all steps count."""

_TOLERANCE = 2e-14  # absolute, for the logarithm of the scale


_FINEST = 4 * float(np.finfo(np.float64).eps)  # the smallest relative tolerance of the solver


_FURTHEST = 1e300  # larger ratios of a leakage to its target are cut to this for the solver


_MAXIMAL_STEPS = 200


def smallest_scale(
    curve: Callable[[float], float], target: float, *, low: float, high: float
) -> float:
    """Return a scale with curve(scale) ≤ target, within 1e-12 relative of the smallest one.

    Parameters
    ----------
    curve
        Leakage as a function of the scale: non-increasing, possibly with jumps.
    target
        What it must not exceed.
    low
        A scale below which no search is needed; returned if it is already large enough.
    high
        A scale believed to be large enough; doubled until it is.

    Returns
    -------
    float
        Evaluated at exactly this scale, the curve was at or below the target. The solver ends with
        two evaluated scales, one on each side of the root: the larger one is returned.

    Examples
    --------
    >>> round(smallest_scale(lambda scale: 3 / scale, 1.5, low=0.1, high=1.0), 9)
    2.0
    """
    lowest, kept = math.log(low), list[float]()  # logarithms of scales that were good enough

    @functools.cache
    def excess(log_scale: float) -> float:
        value = curve(low if log_scale == lowest else math.exp(log_scale))
        if math.isnan(value):
            raise CalibrationError("the leakage is not a number: no scale can be certified.")
        if value <= target:
            kept.append(log_scale)
        # Leakages fall roughly as 1/λ, a straight line in logarithms, so few steps are needed. A
        # curve may be flat at the target: 0 is never returned, so that the solver finds the edge.
        apart = math.log(min(max(value / target, 1 / _FURTHEST), _FURTHEST))
        return apart if value > target else min(apart, -_FINEST)

    if excess(lowest) < 0:
        return low
    start, end = lowest, math.log(max(high, low))
    for _ in range(_MAXIMAL_STEPS):
        if excess(end) < 0:
            break
        start, end = end, end + math.log(2)
    else:
        raise CalibrationError(f"the leakage stays above {target} up to scale {math.exp(end):.3g}.")
    brentq(excess, start, end, xtol=_TOLERANCE, rtol=_FINEST, maxiter=_MAXIMAL_STEPS)
    return math.exp(min(kept))


_HEADROOM = 1 - 1e-12  # equally bad adversaries differ by rounding: solve slightly below ε


_NEGLIGIBLE = 1e-9  # times the scale of group privacy: smaller scales count as no noise


_MAXIMAL_SEARCHES = 10_000


_ALMOST = 1 + 1e-9  # times ε: where a little slack settles it
_MEASURABLE = 1e-6  # how much logarithms of two scales must differ to show how fast a bound falls


_LARGEST_SCALE = 1e300  # leaves room: searches double a scale, and noise is added to answers


def certified_scale(
    problems: Sequence[Problem], epsilon: float, *, rounding: float, deadline: float
) -> tuple[float, Bracket]:
    """Return the scale, and what the last search proved about it.

    Parameters
    ----------
    problems
        The parts of the model that leak one by one.
    epsilon
        The leakage nobody may exceed.
    rounding
        The answer's own rounding error: at scale λ it costs up to 2·rounding/λ of ε.
    deadline
        Value of `time.monotonic()` after which searches stop early; the scale then grows until
        their wider brackets prove it.
    """
    low, high = _bracket(problems, epsilon)
    if not (low > 0 and math.isfinite(high) and math.isfinite(rounding / high)):
        raise CalibrationError(
            "the scale is outside the range of floating-point numbers. Measure the values in"
            " another unit, or choose another epsilon."
        )
    few = low <= high * _NEGLIGIBLE
    if few and worst(problems, low, deadline=deadline, upper_only=True)[0].upper <= epsilon:
        if problems[0].measure.noise == "gaussian":
            raise CalibrationError(
                "against these adversaries no noise is needed: what they do not know already hides"
                f" everyone well enough for mu = {epsilon:.6g}. A scale of 0 is never returned:"
                " admit adversaries who know more, such as Adversaries.all()."
            )
        raise CalibrationError(
            f"against these adversaries the leakage stays at or below {epsilon} however small the"
            " scale, because every secret leaves the same answers possible. Admit adversaries who"
            " know more, such as Adversaries.all()."
        )

    ascent = _Ascent(epsilon, rounding=rounding, deadline=deadline, low=low, high=high)
    extremes = [
        _Part(problem=extreme, whole=problem, place=place)
        for place, problem in enumerate(problems)
        for extreme in problem.extremes()
    ]
    alone = {part.place: part for part in extremes if part.problem is part.whole}
    everyone = [
        alone.get(place, _Part(problem=problem, whole=problem, place=place))
        for place, problem in enumerate(problems)
    ]
    with one_bar("calibrating"):
        if extremes and extremes != everyone:
            ascent.settle(extremes)
        found = ascent.settle(everyone)
        return ascent.scale, ascent.closest(found, extremes)


@dataclass(frozen=True, eq=False)
class _Part:
    """Adversaries of one problem who are searched together."""

    problem: Problem
    """The problem against them."""
    whole: Problem
    """The same against everyone."""
    place: int
    """The place of the whole among the problems of the calibration."""

    @property
    def climbs(self) -> bool:
        """Whether their neighbours are tried one by one."""
        return self.whole.engine.climbs


class _Curve:
    """What the adversaries of a problem learn, as a function of the scale, each searched once.

    After the deadline they are bounded, not searched.
    """

    def __init__(self, problem: Problem, rounding: float, deadline: float) -> None:
        self._problem, self._rounding, self._deadline = problem, rounding, deadline
        self._found: dict[tuple[float, bool], Bracket] = {}

    def bracket(self, scale: float, *, upper_only: bool = False) -> Bracket:
        """Return the bracket at a scale."""
        asked = scale, upper_only and self._problem.engine.searches_below
        if asked not in self._found:
            self._found[asked], _ = worst(
                [self._problem],
                scale,
                rounding=self._rounding,
                deadline=self._deadline,
                upper_only=upper_only,
            )
        return self._found[asked]

    def __call__(self, scale: float) -> float:
        """Return the upper end at a scale; raise `_TimeIsUp` if that takes another search."""
        if time.monotonic() > self._deadline:
            raise _TimeIsUp
        return self.bracket(scale, upper_only=True).upper


class _TimeIsUp(Exception):  # noqa: N818 (nothing went wrong)
    """Raised where a scale is solved for and the deadline has passed."""


class _Case(NamedTuple):
    """One adversary of a part."""

    part: _Part
    target: int
    unknown: tuple[int, ...]


class _Ascent:
    """A scale that is raised until nobody leaks more than ε.

    Parameters
    ----------
    epsilon, rounding, deadline
        As in `certified_scale`.
    low
        Where the scale starts.
    high
        The scale of group privacy.
    """

    def __init__(
        self, epsilon: float, *, rounding: float, deadline: float, low: float, high: float
    ) -> None:
        self.scale = low
        self._epsilon, self._rounding, self._deadline = epsilon, rounding, deadline
        self._high, self._as_group = high, high * (1 + 1e-12)
        self._slack = 1e-12  # relative: how much the scale is raised if a bound alone is too high
        self._curves: dict[tuple[int, int, tuple[int, ...]], _Curve] = {}
        self._solved: dict[_Case, _Curve] = {}
        self._named: set[_Case] = set()

    def settle(self, parts: Sequence[_Part]) -> Bracket:
        """Raise the scale until a search proves that nobody in these parts leaks more than ε."""
        refused = list[tuple[float, float]]()  # scales, and mere bounds that were too high there
        for _ in range(_MAXIMAL_SEARCHES):
            found, part = self._search(parts, self.scale, enough=FAR_ABOVE * self._epsilon)
            if found.upper <= self._epsilon:
                return self._tightened(parts, found, refused) if refused else found
            case = _Case(part, found.target, found.unknown)
            # A mere bound, above ε by its rounding: what bounds one adversary may be looser.
            is_close = found.witness is None and found.upper <= self._epsilon * _ALMOST
            is_new = case not in self._solved and not is_close
            if is_new and time.monotonic() <= self._deadline:
                before = self.scale
                self._raise_for(case)
                if self.scale > before or case not in self._solved:
                    continue
            # This scale is refused by a bound, not by an adversary.
            was_stopped = found.lower > FAR_ABOVE * self._epsilon
            refused.append((self.scale, math.inf if was_stopped else found.upper))
            self._give_slack(refused)
        raise CalibrationError(f"no scale could be certified for epsilon = {self._epsilon}.")

    def closest(self, found: Bracket, extremes: Sequence[_Part]) -> Bracket:
        """Return the adversary closest to ε; the last search ignored all who learn less than ε.

        The brackets of single adversaries may be wider than what that search proved about all.
        """
        few = (_Curve(part.problem, self._rounding, self._deadline) for part in extremes)
        attained = [curve.bracket(self.scale) for curve in (*few, *self._solved.values())]
        return functools.reduce(Bracket.or_worse, attained, found).at_most(self._epsilon)

    def _search(
        self, parts: Sequence[_Part], scale: float, *, enough: float = math.inf
    ) -> tuple[Bracket, _Part]:
        """Search all who may learn more than ε, and return the part with the worst of them."""
        found, problem = worst(
            [part.problem for part in parts],
            scale,
            rounding=self._rounding,
            incumbent=self._epsilon,
            enough=enough,
            deadline=self._deadline,
            upper_only=True,
        )
        return found, next(part for part in parts if part.problem is problem)

    def _give_slack(self, refused: Sequence[tuple[float, float]]) -> None:
        """Raise the scale by a growing amount, stopping once at the scale of group privacy.

        If a search has found bounds at several scales, go where they seem to reach ε.
        """
        guess = _meeting(refused, self._epsilon)
        if time.monotonic() > self._deadline:
            self._slack, guess = max(self._slack, HASTY_SLACK), 0.0
        further = max(self.scale * (1 + self._slack), guess)
        self.scale = self._as_group if self.scale < self._as_group < further else further
        self._slack = min(2 * self._slack, 1.0)

    def _tightened(
        self, parts: Sequence[_Part], found: Bracket, refused: Sequence[tuple[float, float]]
    ) -> Bracket:
        """Take back the part of the slack that a bound did not need."""
        below = refused[-1]
        for turn in itertools.count():
            if self.scale <= below[0] * (1 + COARSEST_SLACK) or time.monotonic() > self._deadline:
                return found
            between = math.sqrt(below[0] * self.scale)
            # Slightly below where the bounds seem to reach ε: if refused, the gap is small enough.
            guess = _meeting([below, (self.scale, found.upper)], self._epsilon)
            guess *= 1 - COARSEST_SLACK / 2
            if turn % 2 == 0 and below[0] < guess < self.scale:
                between = guess
            tried, _ = self._search(parts, between)
            if tried.upper <= self._epsilon:
                self.scale, found = between, tried
            else:
                below = between, tried.upper
        return found

    def _raise_for(self, case: _Case) -> None:
        """Raise the scale until this adversary, or a neighbour who leaks more, keeps ε.

        If time is up before, the scale stays as it is.
        """
        with contextlib.suppress(_TimeIsUp):
            self._solve_for(case)

    def _solve_for(self, case: _Case) -> None:
        if case not in self._named:  # otherwise its neighbour's scale was not enough before
            self._named.add(case)
            case = self._worst_neighbour(case)
        solved = None
        while case != solved:
            violator = self._solved[case] = self._curve(case)
            # More noise never leaks more, so everyone who kept ε so far still does.
            self.scale = smallest_scale(
                violator,
                self._epsilon * _HEADROOM,
                low=self.scale,
                high=max(self._high, self.scale),
            )
            solved, case = case, self._worst_neighbour(case)

    def _worst_neighbour(self, case: _Case) -> _Case:
        """Add or remove one known tuple while the leakage grows: that often finds the worst one."""
        if not case.part.climbs:
            return case
        knowledge = case.part.whole.knowledge
        places = [place for place in range(knowledge.total) if place != case.target]
        best, idle = self._curve(case)(self.scale), 0
        for place in itertools.cycle(places):
            if idle == len(places):
                break
            idle += 1
            others = tuple(sorted({place} ^ set(case.unknown)))
            if knowledge.fewest <= knowledge.total - 1 - len(others) <= knowledge.most:
                neighbour = case._replace(unknown=others)
                found = self._curve(neighbour)(self.scale)
                if found > best:
                    case, best, idle = neighbour, found, 0
        return case

    def _curve(self, case: _Case) -> _Curve:
        """Return the leakage of one adversary, prepared once however often it is searched."""
        adversary = case.part.place, case.target, case.unknown
        if adversary not in self._curves:
            only = case.part.whole.restricted(case.target, case.unknown)
            self._curves[adversary] = _Curve(only, self._rounding, self._deadline)
        return self._curves[adversary]


def _meeting(at_scales: Sequence[tuple[float, float]], epsilon: float) -> float:
    """Return the scale at which bounds at rising scales seem to reach ε, by a line in logarithms.

    Only a guess, at most twice the last scale: all adversaries are searched again there. Bounds
    fall about as 1/λ, which gives the slope if two of them do not show it well; 0 if the last one
    is 0 or infinite.
    """
    (scale, bound), slope = at_scales[-1], 1.0
    if not 0 < bound < math.inf:
        return 0.0
    if len(at_scales) > 1:
        before, higher = at_scales[-2]
        apart, fallen = math.log(scale / before), math.log(higher / bound)
        if apart > _MEASURABLE and math.isfinite(fallen):
            slope = min(max(fallen / apart, 0.5), 8.0)
    return scale * math.exp(min(math.log(bound / epsilon) / slope, math.log(2)))


def _bracket(problems: Sequence[Problem], epsilon: float) -> tuple[float, float]:
    """Return a lower bound on the scale, and the scale that group privacy would use."""
    group = max(problem.contributions.total_range() for problem in problems)
    if group / epsilon > _LARGEST_SCALE:
        raise CalibrationError(
            f"epsilon = {epsilon} needs more noise than floating point can hold."
        )
    if group == 0:
        raise CalibrationError("the answer is the same whatever the data are: nothing to protect.")
    plain = max(
        (
            _own_range(problem)
            for problem in problems
            if problem.knowledge.admits_strongest and not problem.hidden_noise
        ),
        default=0.0,
    )
    return max(plain, group * _NEGLIGIBLE) / epsilon, group / epsilon


def _own_range(problem: Problem) -> float:
    """Return a lower bound on how far a target alone can move the answer.

    Several answers with Gaussian noise are measured in L2, which is at least the largest move.
    """
    contributions, targets = problem.contributions, list(problem.knowledge.targets)
    if problem.measure.noise == "laplace" or contributions.coordinates == 1:
        return float(contributions.tuple_ranges()[targets].max())
    return max(float(np.ptp(contributions.values[target], axis=0).max()) for target in targets)


def certified_leakage(
    model: Model,
    parts: Sequence[Contributions],
    scales: Sequence[float],
    adversaries: Adversaries,
    *,
    rows: int,
    deadline: float = math.inf,
    measure: Measure = LAPLACE,
) -> Leakage:
    """Return the leakage of releasing the answers together, rounding of them included."""
    for scale in scales:
        checked_scale(scale)
    if len(parts) == 1:
        (part,), (scale,) = parts, scales
        found, _ = worst(
            split(model, part, adversaries, measure=measure),
            scale,
            rounding=rounding_error(part, rows, model),
            deadline=deadline,
        )
        return measure.leakage(found, scale, found.witness)
    found, _ = worst(
        split(model, Contributions.joined(parts, scales), adversaries, measure=measure),
        1.0,
        rounding=scaled_rounding(model, parts, scales, rows),
        deadline=deadline,
    )
    return as_joint_leakage(found, parts, scales, measure)


def keeps(leakage: Leakage, epsilon: float, mu: float | None) -> bool:
    """Whether a leakage keeps ε and, for Gaussian noise, μ."""
    return leakage.value <= epsilon and (
        mu is None or (leakage.mu is not None and leakage.mu <= mu)
    )


def proved(leakage: Leakage, epsilon: float, mu: float | None = None) -> Leakage:
    """Return the leakage if it keeps ε and μ; raise otherwise."""
    if not keeps(leakage, epsilon, mu):
        claim = "" if mu is None else f" or the mu = {mu}"
        raise CalibrationError(
            f"scale {leakage.scale} leaks up to {leakage.value}, above the epsilon = {epsilon}"
            f"{claim} it claims."
        )
    return leakage


def scaled_rounding(
    model: Model, parts: Sequence[Contributions], units: Sequence[float], rows: int
) -> float:
    """Add up the rounding errors of the answers, each in its unit."""
    return sum(
        rounding_error(part, rows, model) / unit for part, unit in zip(parts, units, strict=True)
    )


def rounding_error(contributions: Contributions, rows: int, model: Model) -> float:
    """Bound the rounding of the answer before noise; whole numbers are exact."""
    if contributions.is_integer:
        return 0.0
    error = noise.summation_error(contributions.magnitude * covered_rows(rows, model))
    return error * model.lasting if contributions.every_step else error


def covered_rows(rows: int, model: Model) -> int:
    """Return the number of rows or groups whose summation error a scale covers."""
    return max(rows * model.instances, STEP_ROWS_COVERED if model.is_endless else ROWS_COVERED)
