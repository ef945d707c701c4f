"""The Markov Quilt mechanism (Song, Wang and Chaudhuri, SIGMOD 2017) for a count on a chain.

A quilt {i − a, i + b} separates the a + b − 1 steps near i from the rest. Knowing the quilt tells
about x_i at most its max-influence e, so noise for a group of a + b − 1 at ε − e is enough; every
step takes its cheapest quilt. The promise is against adversaries who know no step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def stationary_law(transition: FloatArray) -> FloatArray:
    """Return the law that the chain keeps."""
    size = len(transition)
    equations = np.vstack([transition.T - np.eye(size), np.ones(size)])
    solution: FloatArray = np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0))[0]
    return solution


def exact_influences(transition: FloatArray, length: int) -> FloatArray:
    """Return e of every quilt [a, b], a and b from 1; index 0 means that side is left out."""
    law = stationary_law(transition)
    backward = transition.T * law / law[:, np.newaxis]
    sides = [_log_ratios(kernel, length) for kernel in (backward, transition)]
    return _largest_sums(*sides)


def two_sided_influences(transition: FloatArray, length: int) -> FloatArray:
    """Return e of every quilt against those who know any other steps, not the published one.

    A known step further out tilts the law of the quilt, at most by the opposite ratio.
    """
    law = stationary_law(transition)
    backward = transition.T * law / law[:, np.newaxis]
    sides = []
    for kernel in (backward, transition):
        ratios = _log_ratios(kernel, length)
        sides.append(ratios + ratios.transpose(0, 2, 1))
    return _largest_sums(*sides)


def approximate_influences(transition: FloatArray, length: int) -> FloatArray:
    """Return the published closed bound on e, from the rarest state and the eigengap."""
    law = stationary_law(transition)
    rarest = float(law.min())
    backward = transition.T * law / law[:, np.newaxis]
    if np.allclose(backward, transition):
        gap = 2 * _distance_from_one(transition)
    else:
        gap = _distance_from_one(transition @ backward)
    decay = np.exp(-gap * np.arange(length) / 2)
    near = decay < rarest
    bound = np.full(length, np.inf)
    bound[near] = np.log((rarest + decay[near]) / (rarest - decay[near]))
    bound[0] = 0.0  # no quilt on that side
    return np.asarray(2 * bound[:, np.newaxis] + bound)


def scale(influences: FloatArray, epsilon: float) -> float:
    """Return the scale for a count: the worst step with its cheapest quilt."""
    length = len(influences)
    return max(_cheapest(influences, place, length, epsilon) for place in range(1, length + 1))


def _cheapest(influences: FloatArray, place: int, length: int, epsilon: float) -> float:
    left, right = np.arange(place), np.arange(length - place + 1)
    before = np.where(left == 0, place, left)  # a = 0: everything before belongs to the group
    after = np.where(right == 0, length - place + 1, right)
    group = before[:, np.newaxis] + after - 1
    left_over = epsilon - influences[: len(left), : len(right)]
    useful = left_over > 0
    return float((group[useful] / left_over[useful]).min())


def _largest_sums(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the largest sum over pairs of secrets, for every length of both sides."""
    return np.array([(one + right).max(axis=(1, 2)) for one in left])


def _log_ratios(kernel: FloatArray, length: int) -> FloatArray:
    """For each number of steps, max over the end w of log K^n[v, w]/K^n[v', w]; 0 for n = 0."""
    size = len(kernel)
    ratios = np.zeros((length, size, size))
    power = np.eye(size)
    for steps in range(1, length):
        power = power @ kernel
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(power)
            ratio = logs[:, np.newaxis] - logs
        ratio[np.isnan(ratio)] = -np.inf  # an end that neither can reach
        ratios[steps] = ratio.max(axis=2)
    return ratios


def _distance_from_one(kernel: FloatArray) -> float:
    sizes = np.sort(np.abs(np.linalg.eigvals(kernel)))
    return 1.0 - float(sizes[-2])
