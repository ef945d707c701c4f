"""How far two priors can be told apart by any slowly changing likelihood, by simplex in fractions.

Written from the program itself and sharing nothing with the package, which solves its dual:

    max P·g  where  Q·g ≤ 1,  g_k ≤ e^{c_kl}·g_l,  g ≥ 0.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from fractions import Fraction

DIGITS = 50
Row = list[Fraction]


def told_apart(
    first: Sequence[float], second: Sequence[float], costs: Sequence[Sequence[float]]
) -> decimal.Decimal:
    """Return the logarithm of the largest P·g/Q·g, to some forty digits."""
    size = len(first)
    lines = [[*map(Fraction, second), Fraction(1)]]
    with decimal.localcontext(prec=DIGITS):
        for row in range(size):
            for column in range(size):
                if row != column:
                    price = Fraction(decimal.Decimal(float(costs[row][column])).exp())
                    line = [Fraction(0)] * (size + 1)
                    line[row], line[column] = Fraction(1), -price
                    lines.append(line)
        best = _largest([*map(Fraction, first)], lines)
        return (decimal.Decimal(best.numerator) / decimal.Decimal(best.denominator)).ln()


def _largest(objective: Row, lines: list[Row]) -> Fraction:
    """Maximise over x ≥ 0 with lines·x at most their last entries, none of which is negative.

    The variable and the line of smallest number are taken, so that it ends (Bland's rule). Lines
    hold what is not in the base only: x at first, then the slack that took its place.
    """
    gains, value = [*objective], Fraction(0)
    outside = list(range(len(objective)))
    base = list(range(len(objective), len(objective) + len(lines)))
    while any(gain > 0 for gain in gains):
        column = min((p for p, gain in enumerate(gains) if gain > 0), key=lambda p: outside[p])
        row = min(
            (place for place, line in enumerate(lines) if line[column] > 0),
            key=lambda place: (lines[place][-1] / lines[place][column], base[place]),
        )
        pivot = lines[row][column]
        lines[row] = [entry / pivot for entry in lines[row]]
        lines[row][column] = 1 / pivot
        for place, line in enumerate(lines):
            if place != row and line[column]:
                lines[place] = _without(line, lines[row], column)
        value += gains[column] * lines[row][-1]
        gains = _without([*gains, Fraction(0)], lines[row], column)[:-1]
        base[row], outside[column] = outside[column], base[row]
    return value


def _without(line: Row, pivot_line: Row, column: int) -> Row:
    """Take the variable that enters the base out of a line."""
    factor = line[column]
    found = [one - factor * other for one, other in zip(line, pivot_line, strict=True)]
    found[column] = -factor * pivot_line[column]
    return found
