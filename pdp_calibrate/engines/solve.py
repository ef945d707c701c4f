"""The smallest scale at which no adversary leaks more than ε.

A full search is dear and one adversary is cheap. So the scale is solved for the few adversaries
that were ever worst, and one full search at that scale either proves it or names a violator, who
joins them. It ends because nobody is named twice; in practice after two or three searches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from pdp_calibrate.engines import worst
from pdp_calibrate.engines.monotone import smallest_scale
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.errors import CalibrationError

_HEADROOM = 1 - 1e-12  # equally bad adversaries differ by rounding: solve a hair below ε
_NEGLIGIBLE = 1e-9  # of the scale that group privacy needs
_MAXIMAL_SEARCHES = 10_000


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
    candidates: dict[tuple[int, int, tuple[int, ...]], Problem] = {}

    def of_candidates(at: float) -> Found:
        return leakage_with_rounding(list(candidates.values()), at, rounding=rounding)[0]

    scale, step = low, 1e-12
    found, problem = worst(problems, scale, deadline=deadline)
    if found.value <= epsilon and low <= high * _NEGLIGIBLE:
        raise CalibrationError(
            f"against these adversaries the leakage stays at or below {epsilon} however small the"
            " scale, because every secret leaves the same answers possible. Admit adversaries who"
            " know more, such as Adversaries.all()."
        )
    found = found.plus(2 * rounding / scale)
    for _ in range(_MAXIMAL_SEARCHES):
        if found.value <= epsilon:
            return scale, found
        case = id(problem), found.target, found.unknown
        if case in candidates or time.monotonic() > deadline:
            # What stands against this scale is a bound, not an adversary: give it room.
            scale, step = scale * (1 + step), min(2 * step, 1.0)
        else:
            candidates[case] = problem.restricted(found.target, found.unknown)
            scale = smallest_scale(
                lambda at: of_candidates(at).value,
                epsilon * _HEADROOM,
                low=scale,
                high=max(high, scale),
            )
        found, problem = leakage_with_rounding(
            problems, scale, rounding=rounding, incumbent=epsilon, deadline=deadline
        )
        if candidates and found.value <= epsilon:
            # The search pruned all that stays below ε; the candidates say who comes closest.
            found = found.or_worse(of_candidates(scale))
    raise CalibrationError(f"no scale could be certified for epsilon = {epsilon}.")


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
