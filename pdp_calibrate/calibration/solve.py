"""The smallest scale at which a falling leakage curve is low enough.

The smallest scale at which no adversary leaks more than ε.

A search at some scale, cut at ε, either proves it or names a violator. The scale is then raised
until this adversary, or a neighbour who leaks more, keeps ε: they are cheap to evaluate one by one.
It ends because every search that names somebody raises the scale. Those who know nothing and those
who know everyone else are settled first, for one of them is often the worst and they are few; a
search over everyone stops at whoever leaks far more than ε, so few of them look at all.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence

from scipy.optimize import brentq

from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.leakage import worst
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.errors import CalibrationError

_TOLERANCE = 1e-13  # of the logarithm of the scale


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
        A scale below which there is no need to look; returned if it is already good enough.
    high
        A scale believed to be good enough; doubled until it is.

    Returns
    -------
    float
        Evaluated at exactly this scale, the curve was at or below the target: the root of a
        solver lands on the wrong side half the time, so the answer is stepped up and checked.

    Examples
    --------
    >>> round(smallest_scale(lambda scale: 3 / scale, 1.5, low=0.1, high=1.0), 9)
    2.0
    """

    @functools.cache
    def excess(log_scale: float) -> float:
        value = curve(math.exp(log_scale))
        if math.isnan(value):
            raise CalibrationError("the leakage is not a number: no scale can be certified.")
        # A curve may lie on the target for a while: no zeros, so that the solver seeks its edge.
        return value - target if value > target else min(value - target, -1e-16 * target)

    if curve(low) <= target:
        return low
    start, end = math.log(low), math.log(max(high, low))
    for _ in range(_MAXIMAL_STEPS):
        if excess(end) < 0:
            break
        start, end = end, end + math.log(2)
    else:
        raise CalibrationError(f"the leakage stays above {target} up to scale {math.exp(end):.3g}.")
    root = float(brentq(excess, start, end, xtol=_TOLERANCE, rtol=4 * _TOLERANCE))
    step = _TOLERANCE
    for _ in range(_MAXIMAL_STEPS):
        if excess(root) < 0:
            return math.exp(root)
        root, step = root + step, 2 * step
    raise CalibrationError(f"no scale near {math.exp(root):.6g} keeps the leakage at {target}.")


_HEADROOM = 1 - 1e-12  # equally bad adversaries differ by rounding: solve a hair below ε


_FAR_ABOVE = 1.03  # of ε: whoever leaks more is dealt with before the others are looked at


_HASTY = 0.25  # of the scale: the room given at once where there is no time left


_COARSEST = 1e-4  # of the scale: how much of the room given to a bound may be too much


_NEGLIGIBLE = 1e-9  # of the scale that group privacy needs


_MAXIMAL_SEARCHES = 10_000


_LARGEST_SCALE = 1e300  # searches double it, and noise of it is added to answers


_CLIMBED_TUPLES = 20  # up to here all neighbours of an adversary are looked at


def certified_scale(
    problems: Sequence[Problem], epsilon: float, *, rounding: float, deadline: float
) -> tuple[float, Bracket]:
    """Return the scale, and what the last search proved of it.

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
    if low <= high * _NEGLIGIBLE and worst(problems, low, deadline=deadline)[0].upper <= epsilon:
        raise CalibrationError(
            f"against these adversaries the leakage stays at or below {epsilon} however small the"
            " scale, because every secret leaves the same answers possible. Admit adversaries who"
            " know more, such as Adversaries.all()."
        )

    def leak(adversary: Problem, at: float) -> Bracket:
        return leakage_with_rounding([adversary], at, rounding=rounding)[0]

    def upper_end(adversary: Problem, at: float) -> float:
        return leak(adversary, at).upper

    def climbed(
        part: Problem, within: Problem, target: int, unknown: tuple[int, ...], at: float
    ) -> tuple[int, ...]:
        return _local_worst(
            within, target, unknown, lambda others: upper_end(part.restricted(target, others), at)
        )

    whole = {id(extreme): (extreme, problem) for problem in problems
             for extreme in problem.extremes()}  # fmt: skip
    extremes = [extreme for extreme, _ in whole.values()]
    candidates: dict[tuple[int, int, tuple[int, ...]], Problem] = {}
    named: set[tuple[int, int, tuple[int, ...]]] = set()
    scale, step, as_group = low, 1e-12, high * (1 + 1e-12)
    for everyone in filter(None, (extremes, list(problems))):
        too_small = math.inf
        for _ in range(_MAXIMAL_SEARCHES):
            found, problem = leakage_with_rounding(
                everyone,
                scale,
                rounding=rounding,
                incumbent=epsilon,
                enough=_FAR_ABOVE * epsilon,
                deadline=deadline,
            )
            if found.upper <= epsilon:
                break
            case = id(problem), found.target, found.unknown
            late = time.monotonic() > deadline
            if case in candidates or late:
                # What stands against this scale is a bound, not an adversary: give it room, but
                # not past the scale of group privacy without asking there.
                step = max(step, _HASTY) if late else step
                too_small, further = scale, scale * (1 + step)
                scale = as_group if scale < as_group < further else further
                step = min(2 * step, 1.0)
                continue
            _, within = whole.get(id(problem), (problem, problem))
            unknown, solved = found.unknown, None
            if case not in named:  # else a neighbour was solved for, and that was not enough
                named.add(case)
                unknown = climbed(problem, within, found.target, unknown, scale)
            while unknown != solved:
                violator = problem.restricted(found.target, unknown)
                candidates[id(problem), found.target, unknown] = violator
                # More noise never leaks more, so whoever kept ε so far still does.
                scale = smallest_scale(
                    functools.partial(upper_end, violator),
                    epsilon * _HEADROOM,
                    low=scale,
                    high=max(high, scale),
                )
                solved = unknown
                unknown = climbed(problem, within, found.target, unknown, scale)
        else:
            raise CalibrationError(f"no scale could be certified for epsilon = {epsilon}.")
        while scale > too_small * (1 + _COARSEST) and time.monotonic() < deadline:
            # The room given was more than what the bound needs.
            between = math.sqrt(too_small * scale)
            tried, _ = leakage_with_rounding(
                everyone, between, rounding=rounding, incumbent=epsilon, deadline=deadline
            )
            if tried.upper <= epsilon:
                scale, found = between, tried
            else:
                too_small = between
    # The last search cut off all that stays below ε; the candidates say who comes closest. Their
    # own brackets may be wider than what it proved of everyone.
    attained = [leak(one, scale) for one in (*extremes, *candidates.values())]
    return scale, functools.reduce(Bracket.or_worse, attained, found).at_most(epsilon)


def _local_worst(
    problem: Problem,
    target: int,
    unknown: tuple[int, ...],
    leak: Callable[[tuple[int, ...]], float],
) -> tuple[int, ...]:
    """Let somebody know one tuple more or less while that leaks more: often the worst one."""
    knowledge = problem.knowledge
    if knowledge.known is not None or knowledge.total > _CLIMBED_TUPLES:
        return unknown
    places = [place for place in range(knowledge.total) if place != target]
    best, idle = leak(unknown), 0
    for place in itertools.cycle(places):
        if idle == len(places):
            break
        others = tuple(sorted({place} ^ set(unknown)))
        idle += 1
        if knowledge.fewest <= knowledge.total - 1 - len(others) <= knowledge.most:
            found = leak(others)
            if found > best:
                unknown, best, idle = others, found, 0
    return unknown


def leakage_with_rounding(
    problems: Sequence[Problem],
    scale: float,
    *,
    rounding: float,
    incumbent: float = 0.0,
    enough: float = math.inf,
    deadline: float = math.inf,
) -> tuple[Bracket, Problem]:
    """Search, and charge the rounding of the answer to the upper end."""
    spent = 2 * rounding / scale
    found, problem = worst(
        problems,
        scale,
        incumbent=max(0.0, incumbent - spent),
        enough=enough,
        deadline=deadline,
    )
    return found.plus(spent), problem


def _bracket(problems: Sequence[Problem], epsilon: float) -> tuple[float, float]:
    """Return a scale that cannot be undercut, and one that group privacy would use."""
    group = max(problem.contributions.total_range() for problem in problems)
    if group / epsilon > _LARGEST_SCALE:
        raise CalibrationError(
            f"epsilon = {epsilon} needs more noise than floating point can hold."
        )
    if group == 0:
        raise CalibrationError("the answer is the same whatever the data are: nothing to protect.")
    plain = max(
        (
            float(problem.contributions.tuple_ranges()[list(problem.knowledge.targets)].max())
            for problem in problems
            if problem.knowledge.admits_strongest and not problem.hidden_noise
        ),
        default=0.0,
    )
    return max(plain, group * _NEGLIGIBLE) / epsilon, group / epsilon
