"""Lange et al. (PVLDB 2025): scales under bounded correlation, in closed form."""

from __future__ import annotations

import math

from tests.benchmarks.baselines.quilts import FloatArray


def gaussian_sum(size: int, correlation: float, width: float, epsilon: float) -> float | None:
    """Return the scale for a sum of Gaussian values of equal variance, None out of range.

    It covers every matrix of correlations up to the given one, not only a common one.
    """
    if size > 2 and correlation >= 1 / (size - 2):
        return None
    return (size**2 / (4 * (1 / correlation - size + 2)) + 1) * width / epsilon


def chain_count(transition: FloatArray, epsilon: float) -> float | None:
    """Return the scale for a count on a chain, None where ε is too small for its dependence."""
    left_over = epsilon - 4 * math.log(transition.max() / transition.min())
    return 1 / left_over if left_over > 0 else None
