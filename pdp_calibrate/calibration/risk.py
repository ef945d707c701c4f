"""Risk first: what an ε does to somebody's belief, and the ε that a belief allows.

If every likelihood ratio is at most e^ε, the odds of any statement about one entry are multiplied
by at most e^ε and at least e^−ε, whatever comes out: p(r | S) and p(r | not S) are averages of
likelihoods of which no two differ by more.

With (ε, δ) (Gaussian noise) no single factor holds for every output. Where the odds of the truth
grow by more than 2e^ε, p > 2e^ε·q, so p − e^ε·q is more than half of p; its sum there is at most δ,
so such outputs have probability at most 2δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from pdp_calibrate.arrays import checked_epsilon, checked_share
from pdp_calibrate.errors import PdpError

_ROUNDING = 1e-12
"""A relative slack far above the rounding of a logarithm, taken towards privacy."""


@dataclass(frozen=True, kw_only=True)
class Risk:
    """How far one belief about one entry can move."""

    prior: float
    """The belief before the release: a probability."""
    posterior: float
    """The most that it can become."""
    lowest: float
    """The least that it can become."""
    factor: float
    """The most by which the odds are multiplied or divided."""
    failure: float = 0.0
    """The probability of outputs after which it may move further; 0 except for Gaussian noise."""

    def __str__(self) -> str:
        most, least = percent(self.posterior, up=True), percent(self.lowest, up=False)
        factor = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(self.factor))
        words = (
            f"A belief of {percent(self.prior)} becomes at most {most} and at least {least}: odds"
            f" shift by a factor of {float(factor):.3g} at most"
        )
        return (
            f"{words}."
            if not self.failure
            else f"{words}, except with probability {self.failure:.2g}."
        )


def epsilon_for(*, prior: float, posterior: float) -> float:
    """Return the largest ε at which a belief of `prior` can become at most `posterior`.

    Both are probabilities of one statement about one entry, such as "Ann's income is above 50,000".
    A `posterior` below `prior` requires that the belief falls no lower.

    Parameters
    ----------
    prior
        What somebody may believe before the release.
    posterior
        What they may believe after it, at most (or at least, if it is below `prior`).

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> round(pdp.epsilon_for(prior=0.01, posterior=0.03), 4)
    1.119
    """
    before = checked_share(prior, "prior", error=PdpError)
    after = checked_share(posterior, "posterior", error=PdpError)
    odds = abs(_log_odds(after) - _log_odds(before))
    slack = _ROUNDING * (1 + abs(_log_odds(after)) + abs(_log_odds(before)))
    if not odds > slack:
        raise PdpError(
            f"posterior must differ from prior, got {posterior} for both: a release that changes no"
            " belief has no use."
        )
    return odds - slack


def risk_of(epsilon: float, *, prior: float, delta: float = 0.0) -> Risk:
    """Return how far a belief can move under ε, or under (ε, δ) for Gaussian noise."""
    before = checked_share(prior, "prior", error=PdpError)
    shift = checked_epsilon(epsilon) + (math.log(2) if delta else 0.0)
    odds = _log_odds(before)
    slack = _ROUNDING * (1 + abs(odds) + shift)
    return Risk(
        prior=before,
        posterior=_belief(odds + shift + slack),
        lowest=_belief(odds - shift - slack),
        factor=math.exp(min(shift, 700.0)),
        failure=min(1.0, 2 * delta),
    )


def percent(share: float, *, up: bool | None = None) -> str:
    """Write a probability in per cent; bounds are rounded outwards, and never to 0 or 100 %.

    Examples
    --------
    >>> percent(0.01), percent(0.0267, up=True), percent(0.5), percent(0.9999, up=True)
    ('1 %', '2.7 %', '50 %', '99.99 %')
    """
    value = 100 * share
    near = min(value, 100 - value)
    digits = max(1, 1 - math.floor(math.log10(near))) if near > 0 else 0
    if up is None:
        return f"{round(value, digits):g} %"
    step = 10.0**-digits
    whole = math.ceil(value / step - 1e-9) if up else math.floor(value / step + 1e-9)
    shown = f"{whole * step:.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown} %"


def _log_odds(share: float) -> float:
    return math.log(share) - math.log1p(-share)


def _belief(log_odds: float) -> float:
    """Return the probability with these log-odds, without overflow."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-min(log_odds, 700.0)))
    small = math.exp(max(log_odds, -700.0))
    return small / (1 + small)
