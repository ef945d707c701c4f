"""The bound that prunes a node of the search, from second moments alone.

Theorem 9 (docs/theory).

A node attacks x_i with the function f = Σ_j a_j x_j. The tuples in A are decided known, those in U
decided unknown, those in R are open; a known set K lies between A and A ∪ R. The coefficient to
bound is β(K) = Cov(f, x_i | x_K) / Var(x_i | x_K).

These formulas take numbers or arrays, and are compiled as they stand: each exists once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

OPEN, KNOWN, UNKNOWN = 0, 1, 2
"""What a node has decided about a tuple."""

Numbers = Any
"""A number, or an array of numbers."""


def sphere_bound(
    variance: Numbers,
    cross: Numbers,
    spread: Numbers,
    floor: Numbers,
    slope: Numbers,
    rest: Numbers,
    total: Numbers,
    tau: float,
) -> Numbers:
    """Bound |β(K)| for every K between A and A ∪ R.

    Given A, the residual of x_i on x_K is e + w, with e its residual on all of R and w on a sphere
    whose diameter is the projection p of x_i on R: |w|² = <w, p>. Maximising
    |<f, e + w>| / |e + w|² over the sphere is a quadratic equation; written without dividing by
    |p|² it also holds for p = 0 and for empty R.

    Parameters are Var(x_i|A), Cov(f,x_i|A), Var(f|A); Var(x_i|A∪R), β(A∪R), Var(f|x_i,A∪R); Var(f);
    and τ: the moments given A and those given A ∪ R are the exact ones of two covariances that lie
    within a factor 1 ± τ of the true one. Then |δVar| ≤ τ·Var and |δCov| ≤ τ·√(Var·Var), from
    which the four increments below follow to first order, with slack for the second.
    """
    diameter = np.maximum(variance - floor, 0.0)
    end = slope * floor
    moved = cross - end
    reach = np.maximum(spread - slope * end - rest, 0.0)
    twist = np.maximum(diameter * reach - moved * moved, 0.0) + 10 * tau * variance * total
    slack = 5 * tau * variance * np.sqrt(floor * total)
    middle = abs(end * (floor + diameter / 2) + moved * floor / 2) + slack
    half = abs(end * diameter - moved * floor) / 2 + slack
    root = np.sqrt(half * half + twist * floor * variance / 4)
    return (middle + root) / (floor * variance) * (1 + 4 * tau)


def widened(
    bound: Numbers,
    variance: Numbers,
    cross: Numbers,
    spread: Numbers,
    floor: Numbers,
    total: Numbers,
    tau: float,
    multiplier: Numbers,
) -> Numbers:
    """Add the largest share that an uncertain covariance can add below this node.

    The share of a known set K is m·√(Var(f|x_i,x_K)/Var(x_i|x_K)). Numerator and denominator both
    fall as K grows: the first is bounded at A, the second at A ∪ R.
    """
    left = np.maximum(spread - cross * cross / variance, 0.0) + 4 * tau * total
    return bound + multiplier * np.sqrt(left / floor) * (1 + 2 * tau)


def leaf_value(floor: Numbers, slope: Numbers, rest: Numbers, multiplier: Numbers) -> Numbers:
    """Return the value of one known set from its regression."""
    return abs(slope) + multiplier * np.sqrt(rest / floor)


def leaf_upper(
    value: Numbers,
    floor: Numbers,
    rest: Numbers,
    tau: float,
    multiplier: Numbers,
    size: int,
    peak: float,
) -> Numbers:
    """Bound the value of one known set from above, from its regression alone.

    `peak` is 0, or the largest Var(f) among sign patterns: sums of answers can cancel, and then
    rounded weights err relative to the patterns that do not.
    """
    spare = np.sqrt(np.maximum(rest, peak) / floor)
    return value + 2 * tau * (1 + multiplier) * spare + 8 * size * UNIT_ROUNDOFF * value
