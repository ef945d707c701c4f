"""The Wasserstein mechanism (Song, Wang and Chaudhuri 2017) for a count on a two-state chain."""

from __future__ import annotations

import numpy as np

from pdp_calibrate.calibration.baselines import quantile_distance
from tests.benchmarks.baselines.quilts import FloatArray, stationary_law


def weakest_distance(transition: FloatArray, length: int) -> float:
    """Return the largest W∞ between the laws of the count given x_i = 0 and x_i = 1.

    Against adversaries who know no step. The mechanism's scale is this over ε, or the plain-DP
    scale where that is larger.
    """
    law = stationary_law(transition)
    backward = transition.T * law / law[:, np.newaxis]
    before, after = _ones_ahead(backward, length), _ones_ahead(transition, length)
    atoms = np.arange(float(length))
    largest = 0.0
    for place in range(length):
        zero, one = (
            np.convolve(before[place][value], after[length - 1 - place][value]) for value in (0, 1)
        )
        distance = quantile_distance(atoms, zero, atoms + 1, one)
        largest = max(largest, distance)
    return max(1.0, largest)


def _ones_ahead(kernel: FloatArray, length: int) -> list[tuple[FloatArray, FloatArray]]:
    """For n = 0, 1, …: the laws of the number of ones in the n steps after a 0 and after a 1."""
    laws = [(np.ones(1), np.ones(1))]
    for _ in range(length - 1):
        zero, one = laws[-1]
        stay, more = np.append(zero, 0.0), np.append(0.0, one)
        first, second = (row[0] * stay + row[1] * more for row in kernel)
        laws.append((first, second))
    return laws
