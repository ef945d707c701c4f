"""Gaussian differential privacy: from μ to (ε, δ) and ρ and back, rounded towards privacy.

Theorem 20 (docs/theory).

A mechanism is μ-GDP if telling two secrets apart by its output is never easier than telling
N(0,1) from N(μ,1) by one draw (Dong, Roth, Su: Gaussian differential privacy, 2022). It is then
(ε, δ)-DP for every ε with

    δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2),

which increases with μ and decreases with ε, and μ²/2-zCDP.

Arithmetic. With a = ε/μ − μ/2 and b = a + μ, e^ε·φ(b) = φ(a) for the normal density φ. So

    δ = φ(a)·(R(a) − R(b)) = φ(a)·∫_0^∞ e^{−as − s²/2}·(1 − e^{−μs}) ds,      R = (1 − Φ)/φ.

The difference is taken where R(b) is at most half of R(a); elsewhere it would cancel and the
integral, whose integrand is positive, is taken by Gauss-Legendre quadrature. a and a² are
computed as fractions, so that huge and tiny μ and ε lose no digits. What is left are the errors
of `exp`, `expm1` and `erfcx` and of the quadrature: relative to δ less than 1e-14 in 20,000 random
cases against 70 digits. Ten times that is added.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from pdp_calibrate.arrays import FloatArray, check_number
from pdp_calibrate.errors import PdpError

_ERROR = 1e-13  # relative, of a computed δ: ten times what is seen

_SMALLEST = math.ulp(0.0)
_LARGEST_ROOT = 1e150  # its square, and the square of its inverse, are normal floats

_FOR_THE_LAW = 1 - 2.0**-40  # share of δ for the proof; the sampler needs 1e-300 of the rest

_NEVER = 39.0  # φ(a)/a is below the smallest float beyond

_UNDERFLOW = 1e-300  # added for probabilities too small for a float

_NODES = 64

_KEPT = 2**12  # conversions that are remembered: a search repeats the same ones at every step

_NEARBY = 2**10, 2**24, 2**40  # floats, around a root found roughly

_LARGEST_CERTIFIED = 700.0  # beyond, e^ε makes even the finest grid of noise count


def delta_of(mu: float, epsilon: float) -> float:
    """Return the δ of (ε, δ)-DP that μ-GDP implies, rounded up.

    Parameters
    ----------
    mu
        Zero or more; infinity stands for no privacy at all.
    epsilon
        Any finite number. Below zero it bounds P(S) − e^ε·Q(S) as well.

    Returns
    -------
    float
        At least δ_μ(ε), and at most 1; above it by at most 2e-13 relative plus 1e-322.

    Examples
    --------
    >>> round(delta_of(1.0, 1.0), 12)
    0.126936737507
    """
    strength, level = _not_negative(mu, "mu"), _finite(epsilon, "epsilon")
    if strength == 0:
        return 0.0 if level >= 0 else _up(-math.expm1(level))
    if math.isinf(strength):
        return 1.0
    if level < 0:
        # P(S) − e^{−x}·Q(S) = 1 − e^{−x} + e^{−x}·(Q(S') − e^x·P(S')) for the complement S'.
        return _up(-math.expm1(level) + math.exp(level) * _delta(strength, -level))
    return _up(_delta(strength, level))


def deltas_above(mus: FloatArray, epsilon: float) -> FloatArray:
    """Bound δ_μ(ε) from above for many μ at once, less tightly than `delta_of`.

    Φ(−a) and e^ε·Φ(−b) are each right to some roundings and some more per unit of a²; that is added
    on, so that nothing is lost where they cancel.

    Examples
    --------
    >>> deltas_above(np.array([0.0, 1.0, np.inf]), 1.0).round(9).tolist()
    [0.0, 0.126936738, 1.0]
    """
    from scipy.special import erfcx, ndtr  # slow to import

    level = _not_negative(_finite(epsilon, "epsilon"), "epsilon")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        a = level / mus - mus / 2
        near = np.clip(a, -_NEVER, _NEVER)
        doubt = 1e-14 * (4 + near * near) * (1 + level)
        density = np.exp(-near * near / 2) / math.sqrt(2 * math.pi)
        mills = math.sqrt(math.pi / 2) * erfcx((near + mus) / math.sqrt(2))
        found = ndtr(-near) * (1 + doubt) - density * mills * (1 - doubt)
    found = np.where(a >= _NEVER, 0.0, np.where(a <= -_NEVER, 1.0, found))
    found = np.where(mus == 0, 0.0, np.where(np.isinf(mus), 1.0, found))
    if not np.all(np.isfinite(found)):
        raise PdpError("delta is not a number: nothing can be certified.")
    return np.asarray(np.where(mus == 0, 0.0, np.clip(found + _UNDERFLOW, 0.0, 1.0)))


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest ε that μ-GDP implies beside this δ, rounded up; at least 0.

    Infinity where δ = 0 and μ > 0.

    Examples
    --------
    >>> round(epsilon_of(0.236704380663, 1e-6), 9)
    1.0
    """
    strength = _not_negative(mu, "mu")
    limit = _number(delta, "delta")
    if not 0 <= limit < 1:
        raise PdpError(f"delta must be at least 0 and below 1, got {delta!r}.")
    return _epsilon_of(strength, limit)


@functools.lru_cache(maxsize=_KEPT)
def _epsilon_of(strength: float, limit: float) -> float:
    if strength == 0:
        return 0.0
    if limit == 0 or math.isinf(strength):
        return math.inf
    if delta_of(strength, 0.0) <= limit:
        return 0.0
    near = _last_float(lambda epsilon: _roughly(strength, epsilon) > limit)
    return _next_float(_last_float(lambda epsilon: delta_of(strength, epsilon) > limit, near))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest μ that implies (ε, δ)-DP, rounded down.

    Parameters
    ----------
    epsilon
        Zero or more.
    delta
        Above 0 and below 1.

    Returns
    -------
    float
        Here `delta_of` of it and ε is at most δ, and of the next larger float above.

    Examples
    --------
    >>> round(mu_of(1.0, 1e-6), 12)
    0.236704380663
    """
    level, limit = _not_negative(_finite(epsilon, "epsilon"), "epsilon"), _number(delta, "delta")
    if not 0 < limit < 1:
        raise PdpError(
            f"delta must lie between 0 and 1, got {delta!r}. Gaussian noise never gives delta = 0."
        )
    return _mu_of(level, limit)


@functools.lru_cache(maxsize=_KEPT)
def _mu_of(level: float, limit: float) -> float:
    near = _last_float(lambda mu: _roughly(mu, level) <= limit)
    return _last_float(lambda mu: delta_of(mu, level) <= limit, near)


def epsilon_attained(mu: float, delta: float) -> float:
    """Return an ε below which μ-GDP alone does not imply this δ, rounded down; at least 0."""
    return _epsilon_attained(_not_negative(mu, "mu"), _number(delta, "delta"))


@functools.lru_cache(maxsize=_KEPT)
def _epsilon_attained(strength: float, limit: float) -> float:
    if strength == 0 or math.isinf(strength):
        return 0.0

    def is_exceeded(epsilon: float) -> bool:
        return _delta(strength, epsilon) * (1 - _ERROR) - 16 * _SMALLEST > limit

    if not is_exceeded(0.0):
        return 0.0
    near = _last_float(lambda epsilon: _roughly(strength, epsilon) > limit)
    return _last_float(is_exceeded, near)


def mu_reaching(epsilon: float, delta: float) -> float:
    """Return a μ that implies no smaller ε than this one at δ, rounded up.

    Examples
    --------
    >>> epsilon_of(mu_reaching(1.0, 1e-6), 1e-6) >= 1.0
    True
    """
    return _mu_reaching(_not_negative(_finite(epsilon, "epsilon"), "epsilon"), delta)


@functools.lru_cache(maxsize=_KEPT)
def _mu_reaching(level: float, limit: float) -> float:
    near = _last_float(lambda mu: _roughly(mu, level) <= limit)
    return _next_float(
        _last_float(lambda mu: _delta(mu, level) * (1 - _ERROR) - 16 * _SMALLEST <= limit, near)
    )


def law_delta(delta: float) -> float:
    """Return δ less the trace that is reserved for the sampler."""
    return delta * _FOR_THE_LAW


def mu_for_drawn(epsilon: float, delta: float) -> float:
    """Return the largest μ for (ε, δ) that leaves a trace of δ for the sampler, rounded down.

    `check_drawn` checks that this trace is enough.
    """
    return mu_of(epsilon, law_delta(delta))


def epsilon_of_drawn(mu: float, delta: float, scales: Sequence[float]) -> float:
    """Return an ε that holds at this δ for noise as it is drawn at these scales, rounded up."""
    epsilon = epsilon_of(mu, law_delta(delta))
    if math.isfinite(epsilon):
        check_drawn(epsilon, delta, scales)
    return epsilon


def check_drawn(epsilon: float, delta: float, scales: Sequence[float]) -> None:
    """Raise if noise as it is drawn differs from Gaussian noise by more than δ allows."""
    excess = math.fsum(drawn_excess(scale, epsilon) for scale in scales)
    if delta > 0 and not excess <= delta * (1 - _FOR_THE_LAW) / 2:
        if epsilon > _LARGEST_CERTIFIED:
            raise PdpError(
                f"scale {min(scales):.3g} is too small: epsilon = {epsilon:.3g} is too large to"
                " certify a delta beside it. Raise the scale."
            )
        raise PdpError(
            f"scale {min(scales):.3g} is too close to the smallest floats: noise of this size is"
            " too coarse to certify a delta. Measure the values in another unit."
        )


def precision_of(scale: float) -> float:
    """Return σ^-2, within a rounding error; raise where floats cannot hold it.

    Precisions of several answers are added: one that vanished would count nothing.
    """
    if not 1 / _LARGEST_ROOT < scale < _LARGEST_ROOT:
        raise PdpError(
            f"scale {scale:.3g} cannot be added to others in floats, which hold its square from"
            f" {1 / _LARGEST_ROOT:.0e} to {_LARGEST_ROOT:.0e} only: measure the values in another"
            " unit."
        )
    return (1 / scale) ** 2


def rho_of(mu: float) -> float:
    """Return the ρ of zCDP that μ-GDP implies, μ²/2, rounded up.

    Examples
    --------
    >>> rho_of(2.0)
    2.0
    """
    strength = _not_negative(mu, "mu")
    if math.isinf(strength):
        return math.inf
    exact = Fraction(strength) ** 2 / 2
    rho = _nearest(exact)
    return rho if rho >= exact else _next_float(rho)


def mu_of_rho(rho: float) -> float:
    """Return the largest μ with μ²/2 ≤ ρ, rounded down.

    For Gaussian shifts, ρ-zCDP and μ-GDP with μ = √(2ρ) are equivalent.

    Examples
    --------
    >>> mu_of_rho(2.0)
    2.0
    """
    limit = _not_negative(rho, "rho")
    if limit in (0.0, math.inf):
        return limit
    # Two roots, because 2ρ may overflow; then fractions decide on which side the float lies.
    mu = math.sqrt(limit) * math.sqrt(2.0)
    while Fraction(mu) ** 2 > 2 * Fraction(limit):
        mu = math.nextafter(mu, 0.0)
    while Fraction(_next_float(mu)) ** 2 <= 2 * Fraction(limit):
        mu = _next_float(mu)
    return mu


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return an ε that every ρ-zCDP mechanism keeps beside this δ, rounded up.

    For every α > 1 it is at most αρ + log(1/(αδ))/(α−1) + log(1 − 1/α) (Canonne, Kamath, Steinke:
    The discrete Gaussian for differential privacy, 2020, Corollary 13). Noise that is Gaussian
    keeps less, `epsilon_of` μ = √(2ρ).

    Examples
    --------
    >>> epsilon_of_rho(0.02, 1e-6) > epsilon_of(mu_of_rho(0.02), 1e-6)
    True
    """
    limit, share = _not_negative(rho, "rho"), _number(delta, "delta")
    if not 0 <= share < 1:
        raise PdpError(f"delta must be at least 0 and below 1, got {delta!r}.")
    if limit == 0:
        return 0.0
    if share == 0 or math.isinf(limit):
        return math.inf

    def bound(excess: float) -> float:
        log_odds = math.log(excess) - math.log1p(excess)
        spread = -math.log(share) - math.log1p(excess)
        return (1 + excess) * limit + spread / excess + log_odds

    # Any order gives a bound. The best is sought on a logarithmic grid, then between neighbours.
    start = math.sqrt(-math.log(share) / limit)
    grid = [start * 2.0**step for step in range(-12, 13)]
    best = min(grid, key=bound)
    for width in (2.0**0.5, 2.0**0.125, 2.0**0.03, 2.0**0.008):
        best = min((best * width**step for step in range(-4, 5)), key=bound)
    terms = (1 + best) * limit + abs(math.log(share)) / best + abs(math.log(best)) + 1
    return max(0.0, bound(best) + 1e-14 * terms)


def drawn_excess(scale: float, epsilon: float, *, step: float = _SMALLEST) -> float:
    """Bound how much larger δ is for the noise that is drawn than for Gaussian noise, rounded up.

    OpenDP 0.16 writes a float answer as a multiple of 2^-1074, which is exact, adds noise z with
    P(z) ∝ e^{−z²/2σ²} on these multiples, drawn exactly, and rounds the result to a float. Compare
    with Y ~ N(0, σ²) rounded to the grid of step g. As the answer lies on the grid, that is
    Gaussian noise added to the answer and then rounded: post-processing, so it is covered by the
    proof. At every point z of the grid

        P(Y rounds to z) = g·φ_σ(z)·avg of e^{−(zt + t²/2)/σ²} over |t| ≤ g/2 ≥ g·φ_σ(z)·e^{−g²/8σ²}

    (t and −t average to a hyperbolic cosine), while the drawn law has g·φ_σ(z)/N with
    N = Σ g·φ_σ(z) ≥ 1 by Poisson summation. So the two laws differ by at most
    η = 1 − e^{−g²/8σ²} ≤ g²/8σ² in total variation, for every answer; averaged over unknown data
    that stays so, and δ grows by at most (1 + e^ε)·η. For g = 2^-1074 and σ = 1 this is 1e-647.

    A claim of μ or ρ alone has no δ to charge: it is a claim about Y rounded to the grid, and what
    is drawn cannot be distinguished from that with an advantage of more than η.

    Whole numbers with integer (discrete) Gaussian noise have g = 1: there δ is up to 2.3 times the
    formula. They get float noise, rounded afterwards.

    Parameters
    ----------
    scale
        Standard deviation σ of the noise.
    epsilon
        The ε at which δ is claimed.
    step
        Step g of the grid.

    Examples
    --------
    >>> drawn_excess(1.0, 1.0) < 1e-300
    True
    """
    sigma = _number(scale, "scale")
    if not (sigma > 0 and math.isfinite(sigma)):
        raise PdpError(f"scale must be positive and finite, got {scale!r}.")
    level = _finite(epsilon, "epsilon")
    apart = (Fraction(step) / Fraction(sigma)) ** 2 / 8
    if apart == 0:
        return 0.0
    if level > 700:
        # In logarithms, with a margin for their rounding; and 1 + e^ε is at most 2e^ε.
        exponent = level + 2 * (math.log(step) - math.log(sigma)) - math.log(4) + 1e-9
        return 1.0 if exponent >= 0 else max(math.exp(exponent), 16 * _SMALLEST)
    if apart >= 1:
        return 1.0
    excess = apart * (1 + Fraction(math.exp(level) * (1 + _ERROR)))
    return _up(_nearest(excess)) if excess < 1 else 1.0


def _delta(mu: float, epsilon: float) -> float:
    """Compute δ_μ(ε) for ε ≥ 0 to within `_ERROR` relative, or the smallest float."""
    start = (2 * Fraction(epsilon) - Fraction(mu) ** 2) / (2 * Fraction(mu))
    if start > _NEVER:
        return _SMALLEST
    if start < -_NEVER:
        return 1.0
    a = float(start)
    density = _density(start)
    b = float(start + Fraction(mu))
    if a < -1:
        # Φ(−a) is at least 0.84, and e^ε·Φ(−b) = φ(a)·R(b) at most 0.16.
        return 0.5 * math.erfc(a / math.sqrt(2)) - density * _mills(b)
    above, below = _mills(a), _mills(b)
    if 2 * below <= above:
        return density * (above - below)
    return density * _integral(a, mu)


def _density(a: Fraction) -> float:
    """φ(a), with the exponent's rounding put back."""
    exponent = -(a**2) / 2
    rounded = float(exponent)
    return math.exp(rounded) * (1 + float(exponent - Fraction(rounded))) / math.sqrt(2 * math.pi)


def _mills(x: float) -> float:
    """R(x) = (1 − Φ(x))/φ(x)."""
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _integral(a: float, mu: float) -> float:
    """∫ e^{−as − s²/2}·(1 − e^{−μs}) ds for a ≥ −1 and moderate μ.

    It is cut where the first factor is e^{−50}. There the integrand is entire and falls like an
    exponential over the interval, which 64 nodes resolve to the last digits.
    """
    nodes, weights = _legendre()
    end = math.sqrt(a * a + 100) - a
    s = nodes * end
    values = np.exp(-s * (a + s / 2)) * -np.expm1(-mu * s)
    return float(weights @ values) * end


@functools.cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def _up(value: float) -> float:
    """Round a computed δ up; among the subnormal floats errors are absolute."""
    if math.isnan(value):
        raise PdpError("delta is not a number: nothing can be certified.")
    return min(1.0, _next_float(value * (1 + _ERROR)) + 16 * _SMALLEST)


def _roughly(mu: float, epsilon: float) -> float:
    """Compute δ_μ(ε) in plain floats, to find where `delta_of` must decide."""
    if mu == 0 or math.isinf(mu):
        return float(mu > 0)
    a = epsilon / mu - mu / 2
    if not abs(a) < _NEVER:
        return float(a < 0)
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    if a < -1:
        return 0.5 * math.erfc(a / math.sqrt(2)) - density * _mills(a + mu)
    # R falls by about 1 − a·R(a) per unit; for a small μ the difference itself would cancel.
    fall = _mills(a) - _mills(a + mu) if mu > 1e-6 else mu * (1 - a * _mills(a))
    return density * fall


def _last_float(holds: Callable[[float], bool], near: float | None = None) -> float:
    """Return the largest float at which a property that small floats have still holds.

    The bit patterns of floats from 0 to infinity are in their order, so 63 bisections of them reach
    every magnitude; fewer suffice if a nearby float is known. Zero if it holds nowhere.
    """
    low, high = 0, _bits(math.inf)
    for width in _NEARBY if near is not None else ():
        start = _bits(near or 0.0)
        for probe in (start - width, start + width):
            if low < probe < high:
                low, high = (probe, high) if holds(_float(probe)) else (low, probe)
        if high - low <= 2 * width:
            break
    while high - low > 1:
        middle = (low + high) // 2
        if holds(_float(middle)):
            low = middle
        else:
            high = middle
    return _float(low)


def _bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _next_float(value: float) -> float:
    return math.nextafter(value, math.inf)


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf


def _not_negative(value: float, what: str) -> float:
    number = _number(value, what)
    if not number >= 0:
        raise PdpError(f"{what} must be zero or more, got {value!r}.")
    return number


def _finite(value: float, what: str) -> float:
    number = _number(value, what)
    if not math.isfinite(number):
        raise PdpError(f"{what} must be finite, got {value!r}.")
    return number


def _number(value: float, what: str) -> float:
    check_number(value, what, error=PdpError)
    return float(value)
