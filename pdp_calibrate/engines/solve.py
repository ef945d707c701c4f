"""The smallest scale at which no adversary leaks more than ε.

A search at some scale, cut at ε, either proves it or names a violator; the scale is then raised
until this one adversary, who is cheap to evaluate, keeps ε. It ends because nobody is named twice.
Those who know nothing and those who know everyone else are settled first, for one of them is often
the worst and they are few; then one or two searches over everyone are enough.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Sequence

from pdp_calibrate.engines import worst
from pdp_calibrate.engines.monotone import smallest_scale
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.errors import CalibrationError

_HEADROOM = 1 - 1e-12  # equally bad adversaries differ by rounding: solve a hair below ε
_NEGLIGIBLE = 1e-9  # of the scale that group privacy needs
_MAXIMAL_SEARCHES = 10_000
_CLIMBED_TUPLES = 20  # up to here all neighbours of an adversary are looked at


def certified_scale(
    problems: Sequence[Problem], epsilon: float, *, rounding: float, deadline: float
) -> tuple[float, Found]:
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
    if low <= high * _NEGLIGIBLE and worst(problems, low, deadline=deadline)[0].value <= epsilon:
        raise CalibrationError(
            f"against these adversaries the leakage stays at or below {epsilon} however small the"
            " scale, because every secret leaves the same answers possible. Admit adversaries who"
            " know more, such as Adversaries.all()."
        )

    def leak(adversary: Problem, at: float) -> Found:
        return leakage_with_rounding([adversary], at, rounding=rounding)[0]

    def upper_end(adversary: Problem, at: float) -> float:
        return leak(adversary, at).value

    whole = {id(extreme): (extreme, problem) for problem in problems
             for extreme in problem.extremes()}  # fmt: skip
    extremes = [extreme for extreme, _ in whole.values()]
    candidates: dict[tuple[int, int, tuple[int, ...]], Problem] = {}
    scale, step, enough = low, 1e-12, high * (1 + 1e-12)
    for everyone in filter(None, (extremes, list(problems))):
        for _ in range(_MAXIMAL_SEARCHES):
            found, problem = leakage_with_rounding(
                everyone, scale, rounding=rounding, incumbent=epsilon, deadline=deadline
            )
            if found.value <= epsilon:
                break
            case = id(problem), found.target, found.unknown
            if case in candidates or time.monotonic() > deadline:
                # What stands against this scale is a bound, not an adversary: give it room, but
                # not past the scale of group privacy without asking there.
                further = scale * (1 + step)
                scale = enough if scale < enough < further else further
                step = min(2 * step, 1.0)
                continue
            _, within = whole.get(id(problem), (problem, problem))
            unknown: tuple[int, ...] | None = found.unknown
            while unknown is not None:
                violator = problem.restricted(found.target, unknown)
                candidates[id(problem), found.target, unknown] = violator
                # More noise never leaks more, so whoever kept ε so far still does.
                scale = smallest_scale(
                    functools.partial(upper_end, violator),
                    epsilon * _HEADROOM,
                    low=scale,
                    high=max(high, scale),
                )
                leaks = {
                    others: upper_end(problem.restricted(found.target, others), scale)
                    for others in _neighbours(within, found.target, unknown)
                }
                unknown = max(leaks, key=leaks.__getitem__, default=None)
                if unknown is not None and leaks[unknown] <= epsilon:
                    unknown = None
        else:
            raise CalibrationError(f"no scale could be certified for epsilon = {epsilon}.")
    # The last search cut off all that stays below ε; the candidates say who comes closest.
    attained = [leak(one, scale) for one in (*extremes, *candidates.values())]
    return scale, functools.reduce(Found.or_worse, attained, found)


def _neighbours(
    problem: Problem, target: int, unknown: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Yield who knows one tuple more or less: often worse at the next scale, and cheap to ask."""
    knowledge = problem.knowledge
    if knowledge.known is not None or knowledge.total > _CLIMBED_TUPLES:
        return
    for place in range(knowledge.total):
        if place != target:
            others = tuple(sorted({place} ^ set(unknown)))
            if knowledge.fewest <= knowledge.total - 1 - len(others) <= knowledge.most:
                yield others


def leakage_with_rounding(
    problems: Sequence[Problem],
    scale: float,
    *,
    rounding: float,
    incumbent: float = 0.0,
    deadline: float = math.inf,
) -> tuple[Found, Problem]:
    """Search, and charge the rounding of the answer to the upper end."""
    spent = 2 * rounding / scale
    found, problem = worst(
        problems, scale, incumbent=max(0.0, incumbent - spent), deadline=deadline
    )
    return found.plus(spent), problem


def _bracket(problems: Sequence[Problem], epsilon: float) -> tuple[float, float]:
    """Return a scale that cannot be undercut, and one that group privacy would use."""
    group = max(problem.contributions.total_range() for problem in problems)
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
