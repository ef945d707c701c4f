"""The largest bound first: judge cases until no bound is left that matters."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from typing import Protocol, Self, TypeVar

from pdp_calibrate.core.workers import progress
from pdp_calibrate.errors import CalibrationError


class Judged(Protocol):
    """What is known about some cases: a bracket of the worst of them."""

    @property
    def lower(self) -> float:
        """What somebody among them attains."""

    def or_worse(self, other: Self) -> Self:
        """Return what is known about these cases and the others together."""


_Case = TypeVar("_Case")


_Found = TypeVar("_Found", bound=Judged)


def best_first(
    cases: Iterable[tuple[float, _Case]],
    judge: Callable[[float, _Case], _Found],
    *,
    start: _Found,
    unjudged: Callable[[float, _Case], _Found],
    cutoff: Callable[[_Found], float],
    is_over: Callable[[], bool],
    enough: float = math.inf,
    what: str | None = None,
) -> _Found:
    """Return a bracket of the worst of all cases, judging as few of them as possible.

    Sound for every cutoff and whenever it stops: the cases are sorted by falling bound, so the
    first one that is not judged has a bound that covers all that follow, and this bound goes into
    the result. The cutoff only decides how tight the result is. At `max(incumbent, found.lower)`
    the upper end exceeds neither the incumbent nor what the judged cases were found to leak, unless
    the search was stopped.

    Parameters
    ----------
    cases
        A bound on what each case leaks, and the case; in any order.
    judge
        Brackets one case, given its bound.
    start
        What is known before; the result covers it too.
    unjudged
        What is said of a case, and of all with smaller bounds, without judging it: the bound as
        upper end.
    cutoff
        Cases with a bound up to this, which may depend on what was found so far, are not judged.
    is_over
        Whether time is up.
    enough
        No further case is judged once somebody is found to leak more than this.
    what
        What to call the work while its progress is shown; None to show nothing.

    Examples
    --------
    >>> from pdp_calibrate.core.bracket import Bracket
    >>> def between(lower, upper):
    ...     return Bracket(upper=upper, lower=lower, witness=None, target=0, unknown=())
    >>> found = best_first(
    ...     [(1.0, "one"), (3.0, "three"), (2.0, "two")],
    ...     lambda bound, case: between(1.5, 1.6),
    ...     start=between(0.0, 0.0),
    ...     unjudged=lambda bound, case: between(0.0, bound),
    ...     cutoff=lambda found: found.upper,
    ...     is_over=lambda: False,
    ... )
    >>> found.upper  # "three" and "two" were judged, "one" cannot be worse
    1.6
    """
    found = start
    falling = sorted(cases, key=lambda case: case[0], reverse=True)
    if any(math.isnan(bound) for bound, _ in falling):
        raise CalibrationError("a bound on the leakage is not a number: it covers nobody.")
    shown = (
        contextlib.nullcontext(_show_nothing)
        if what is None
        else progress(what, total=len(falling))
    )
    with shown as show:
        for done, (bound, case) in enumerate(falling):
            if bound <= cutoff(found) or found.lower > enough or is_over():
                return found.or_worse(unjudged(bound, case))
            found = found.or_worse(judge(bound, case))
            show(done + 1)
    return found


def _show_nothing(_done: int) -> None:
    """Stand in where no progress is shown."""
