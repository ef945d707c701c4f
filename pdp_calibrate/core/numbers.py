"""Numbers as people write them: no exponents, and no more digits than they deserve."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

_WIDEST = 15  # digits before the point; beyond, a float is not known to its last digit


def ordinary(value: float | None, *, digits: int = 4) -> str:
    """Write a number with its significant digits, whole parts in full, thousands apart.

    Examples
    --------
    >>> ordinary(25126.31), ordinary(0.000569189), ordinary(2.0), ordinary(12345), ordinary(1e300)
    ('25,126', '0.0005692', '2', '12,345', '1e+300')
    >>> ordinary(None), ordinary(float("inf"))
    ('–', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = _size(value)
    if not -6 <= size < _WIDEST:
        return f"{value:.{digits}g}"
    return _trimmed(f"{value:,.{max(0, digits - 1 - size)}f}")


def width(value: float | None) -> str:
    """Write how far noise reaches: two digits, rounded up.

    Examples
    --------
    >>> width(56.9189), width(1186.2), width(0.000569189), width(7)
    ('57', '1,200', '0.00057', '7')
    """
    if value is None or not 0 < value < math.inf:
        return ordinary(value)
    rounded = Context(prec=2, rounding=ROUND_CEILING).create_decimal(Decimal(value))
    return ordinary(float(rounded), digits=2) if _size(value) < _WIDEST else f"{value:.2g}"


def beside_noise(value: float, noise: float, *, side: str = "") -> str:
    """Write a number to the second digit of its noise; whole parts in full.

    Parameters
    ----------
    value
        The number.
    noise
        How far noise moves it.
    side
        ``low`` and ``high`` round the ends of an interval outwards.

    Examples
    --------
    >>> beside_noise(25126.3146, 56.9189), beside_noise(0.51234, 0.0056), beside_noise(4059, 1186)
    ('25,126', '0.5123', '4,059')
    >>> beside_noise(1.2341, 0.2, side="low"), beside_noise(1.2341, 0.2, side="high")
    ('1.23', '1.24')
    """
    if isinstance(value, int) or not math.isfinite(value) or not 0 < noise < math.inf:
        return ordinary(value)
    decimals = max(0, 1 - _size(noise))
    if _size(value) >= _WIDEST or decimals > _WIDEST:
        return f"{value:.6g}"
    how = {"low": ROUND_FLOOR, "high": ROUND_CEILING}.get(side, ROUND_HALF_EVEN)
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=how):,f}"


def at_most(value: float, *, digits: int = 3) -> str:
    """Write a bound from above, rounded up.

    Examples
    --------
    >>> at_most(2.71828), at_most(1.0), at_most(148.4132)
    ('2.72', '1', '149')
    """
    return _rounded(value, ROUND_CEILING, digits)


def at_least(value: float, *, digits: int = 3) -> str:
    """Write a bound from below, rounded down.

    >>> at_least(2.71828), at_least(1.0), at_least(148.4132)
    ('2.71', '1', '148')
    """
    return _rounded(value, ROUND_FLOOR, digits)


def _rounded(value: float, rounding: str, digits: int) -> str:
    if not 0 < value < math.inf:
        return ordinary(value)
    found = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    return ordinary(float(found), digits=digits)


def _size(value: float) -> int:
    """Return the power of ten of the first digit; that of 0 is 0."""
    return math.floor(math.log10(abs(value))) if value else 0


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
