"""What a budget that is refreshed every period really promises about a period's record.

Many systems grant a budget of ε per day, week or month and start again with the next. If people
tend to stay as they were from one period to the next, each period's answers also leak about the
records of the periods around it. For people who stay in their state with probability p and move to
each of the k − 1 others with equal probability, a step has the Hilbert diameter
D = 2·|log(p(k − 1)/(1 − p))|, and whatever is released, nobody ever learns more than ε' about any
one period's record, where

    sinh(ε'/4) = e^{D/2}·sinh(ε/4).

For comparison there are temporal privacy leakage (Cao, Yoshikawa, Xiao, Xiong: Quantifying
differential privacy under temporal correlations, ICDE 2017), which is the same quantity for an
adversary without known records or other hints, and the sum over all periods, which has no limit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.arrays import checked_epsilon, checked_share
from pdp_calibrate.core.model import checked_size, header
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.errors import PdpError
from pdp_calibrate.families.stream.memory import Contracting

_YEAR = 365.25  # days

_PERIODS = {
    "h": ("hour", 1 / 24),
    "d": ("day", 1.0),
    "w": ("week", 7.0),
    "m": ("month", _YEAR / 12),
    "q": ("quarter", _YEAR / 4),
    "y": ("year", _YEAR),
}

_EVERY = re.compile(r"(\d{1,4})? ?([hdwmqy])")


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """A refreshed budget, and what it amounts to about the record of any one period."""

    epsilon: float
    """The budget of each period, plain DP for substituting a person's record of that period."""
    every: str
    """How long a period is: a number and one of h, d, w, m, q, y."""
    persistence: float
    """How likely a person's record stays as it was from one period to the next."""
    states: int
    """How many values a record can have; all others are equally likely after a change."""

    @property
    def diameter(self) -> float:
        """The Hilbert diameter of a step, rounded up."""
        others = self.states - 1
        odds = self.persistence * others / (1 - self.persistence) if others else 1.0
        return 2 * abs(math.log(odds)) * (1 + 1e-12) + (1e-15 if odds != 1 else 0.0)

    @property
    def leakage(self) -> float:
        """The largest leakage about the record of any period, for ever, rounded up."""
        return Contracting(self.diameter).for_ever(self.epsilon)

    @property
    def leakage_about_the_latest(self) -> float:
        """The largest leakage about the first period, or so far about the latest one."""
        return Contracting(self.diameter).one_sided(self.epsilon)

    @property
    def temporal(self) -> float:
        """Temporal privacy leakage: the same for an adversary without hints or known records."""
        stay, move = self.persistence, (1 - self.persistence) / max(1, self.states - 1)
        high, low = max(stay, move), min(stay, move)
        leak = self.epsilon
        for _ in range(100_000):
            # log((q(e^a − 1) + 1)/(d(e^a − 1) + 1)), multiplied by e^{−a} so that nothing overflows
            rest = math.exp(-leak)
            passed = math.log((high * (1 - rest) + rest) / (low * (1 - rest) + rest))
            following = self.epsilon + passed
            if abs(following - leak) <= 1e-14 * leak:
                break
            leak = following
        return 2 * leak - self.epsilon

    @property
    def periods_a_year(self) -> int:
        """How many periods begin in a year."""
        return math.ceil(_YEAR / _days(self.every) - 1e-9)

    @property
    def counted_for_a_year(self) -> float:
        """The sum over all periods of one year: group privacy, and plain composition."""
        return self.periods_a_year * self.epsilon * ROUND_UP

    @property
    def still_gains(self) -> int:
        """After how many more periods a release adds at most a hundredth of the leakage."""
        return Contracting(self.diameter).fading(0.01)

    @property
    def budget(self) -> float:
        """The budget per period that would really keep ε for ever, rounded down."""
        return Contracting(self.diameter).budget(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Describe it for JSON."""
        return {
            **header("Refresh"),
            "epsilon": self.epsilon,
            "every": self.every,
            "persistence": self.persistence,
            "states": self.states,
            "diameter": self.diameter,
            "leakage": self.leakage,
            "leakage_about_the_latest": self.leakage_about_the_latest,
            "temporal": self.temporal,
            "counted_for_a_year": self.counted_for_a_year,
            "still_gains": self.still_gains,
            "budget": self.budget,
        }

    def __repr__(self) -> str:
        return (
            f"Refresh(epsilon {self.epsilon:.4g} every {period_words(self.every)} is at most"
            f" {self.leakage:.4g} about any one)"
        )


def refresh(*, epsilon: float, every: str = "30d", persistence: float, states: int = 2) -> Refresh:
    """Compute what a budget refreshed every period really promises about any period's record.

    Parameters
    ----------
    epsilon
        The plain-DP budget of each period, for substituting one person's record of it.
    every
        How long a period is, such as ``30d``, ``w``, ``m``: hours, days, weeks, months, quarters or
        years, each by its first letter.
    persistence
        How likely a person's record stays the same from one period to the next, below 1.
    states
        How many values a record can have.

    Returns
    -------
    Refresh
        With `leakage`, the largest leakage about any one period's record, for ever; `temporal` and
        `counted_for_a_year` for comparison; and `budget`, which would keep ε.

    Examples
    --------
    >>> found = refresh(epsilon=1.5, every="30d", persistence=0.8)
    >>> round(found.leakage, 2), round(found.temporal, 2), round(found.budget, 3)
    (4.86, 3.81, 0.383)
    """
    _days(every)
    stays = checked_share(persistence, "persistence", error=PdpError)
    found = Refresh(
        epsilon=checked_epsilon(epsilon),
        every="".join(every.split()).lower(),
        persistence=stays,
        states=checked_size(states, "states"),
    )
    if not math.isfinite(found.diameter):
        raise PdpError(f"persistence must be below 1 by more than rounding, got {persistence!r}.")
    return found


def period_words(every: str) -> str:
    """Say how long a period is.

    Examples
    --------
    >>> period_words("30d"), period_words("w")
    ('30 days', 'week')
    """
    number, unit = _parts(every)
    name = _PERIODS[unit][0]
    return name if number == 1 else f"{number} {name}s"


def _days(every: object) -> float:
    number, unit = _parts(every)
    return number * _PERIODS[unit][1]


def _parts(every: object) -> tuple[int, str]:
    found = _EVERY.fullmatch(every.lower()) if isinstance(every, str) else None
    if found is None or int(found[1] or 1) < 1:
        raise PdpError(f"every must be a period such as 30d, 1w or m, got {every!r}.")
    return int(found[1] or 1), found[2]
