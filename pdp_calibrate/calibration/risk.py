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
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from pdp_calibrate.arrays import checked_epsilon, checked_share
from pdp_calibrate.errors import PdpError

_ROUNDING = 1e-12
"""A relative slack far above the rounding of a logarithm, taken towards privacy."""

_LARGEST_EXPONENT = 709.0
"""Of e, that a float holds."""

_EXACT = Context(prec=40)
_RARE = Decimal("1e-8")
"""Shares this near to 0 or 1 are written in powers of ten."""


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
    log_factor: float = field(kw_only=True, repr=False)
    """The logarithm of the factor, which may be too large for a float."""

    @property
    def most(self) -> str:
        """The most that it can become, in per cent, rounded up."""
        return percent(self.posterior, up=True, rest=1 / (1 + self._odds * self._factor))

    @property
    def least(self) -> str:
        """The least that it can become, in per cent, rounded down."""
        return percent(self._odds / (self._odds + self._factor), up=False)

    @property
    def _odds(self) -> Decimal:
        return Decimal(self.prior) / (1 - Decimal(self.prior))

    @property
    def _factor(self) -> Decimal:
        return (Decimal(self.log_factor) * (1 + Decimal(_ROUNDING))).exp(_EXACT)

    def __str__(self) -> str:
        factor = _powers_of_ten(Decimal(self.log_factor).exp(_EXACT), ROUND_CEILING, digits=3)
        words = (
            f"A belief of {percent(self.prior)} becomes at most {self.most} and at least"
            f" {self.least}: odds shift by a factor of {factor} at most"
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
        factor=math.exp(shift) if shift < _LARGEST_EXPONENT else math.inf,
        failure=min(1.0, 2 * delta),
        log_factor=shift,
    )


def percent(share: float | Decimal, *, up: bool | None = None, rest: Decimal | None = None) -> str:
    """Write a probability in per cent; bounds are rounded outwards, and never to 0 or 100 %.

    What is nearer to 0 or 100 % than a millionth is written in powers of ten. `rest` is what is
    missing to 1, where a float cannot hold it.

    Examples
    --------
    >>> percent(0.01), percent(0.0267, up=True), percent(0.5), percent(0.9999, up=True)
    ('1 %', '2.7 %', '50 %', '99.99 %')
    >>> percent(3.71e-42, up=False), percent(1 - 2.0**-40, up=True)
    ('3.7·10^-40 %', '100 % − 9.0·10^-11 %')
    """
    exact = Decimal(share)
    missing = 1 - exact if rest is None else rest
    rounding = {True: ROUND_CEILING, False: ROUND_FLOOR, None: ROUND_HALF_EVEN}[up]
    if 0 < exact < _RARE:
        return f"{_powers_of_ten(100 * exact, rounding)} %"
    if 0 < missing < _RARE:
        opposite = {ROUND_CEILING: ROUND_FLOOR, ROUND_FLOOR: ROUND_CEILING}.get(rounding, rounding)
        return f"100 % − {_powers_of_ten(100 * missing, opposite)} %"
    value = 100 * float(share)
    near = min(value, 100 - value)
    digits = max(1, 1 - math.floor(math.log10(near))) if near > 0 else 0
    if up is None:
        return f"{round(value, digits):g} %"
    step = 10.0**-digits
    whole = math.ceil(value / step - 1e-9) if up else math.floor(value / step + 1e-9)
    shown = f"{whole * step:.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown} %"


def _powers_of_ten(value: Decimal, rounding: str, *, digits: int = 2) -> str:
    """Write a number with these digits; one that is very small or large in powers of ten."""
    found = Context(prec=digits, rounding=rounding).create_decimal(value)
    power = found.adjusted()
    if -6 <= power < 7:
        return f"{float(found):.{digits}g}" if power < digits else f"{float(found):.0f}"
    return f"{found.scaleb(-power)}·10^{power}"


def _log_odds(share: float) -> float:
    return math.log(share) - math.log1p(-share)


def _belief(log_odds: float) -> float:
    """Return the probability with these log-odds, without overflow."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-min(log_odds, 700.0)))
    small = math.exp(log_odds)  # 0 below what a float holds: no more than the truth
    return small / (1 + small)
