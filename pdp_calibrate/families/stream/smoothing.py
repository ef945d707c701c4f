"""Better answers from noisy ones about the same stream: smoothing with the public model.

It uses noisy answers only, so it costs no privacy. Intervals hold if the model does: they
contain the answer without noise with the stated probability, over the noise and over the stream.

- **Gaussian series.** The answer about N records is itself a Gaussian series of correlation φ, of
  any mean. Elimination along the steps (the forward and backward pass of a Kalman smoother) gives
  the best linear unbiased estimate. Its error is a Gaussian number, from the stream, plus a
  weighted sum of the noises that were drawn; its distribution is computed from its characteristic
  function, so that the interval is exact for Laplace noise too.
- **Counts.** The number of N two-state records that are in one of the states is a Markov chain on
  0 … N, and a single record with any states is a Markov chain too: forward-backward gives the law
  of every answer given everything released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray

_POINTS, _FURTHEST = 1200, 60.0  # grid of the characteristic function, in units of the deviation

_WEIGHTS = 40  # noises treated one by one; the many small ones are approximately Gaussian together

_ROWS = 256  # estimates computed at a time


@dataclass(frozen=True)
class Smoothed:
    """Estimates, and the ends of their intervals."""

    values: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def by(cls, smoother: tuple[FloatArray, FloatArray], answers: FloatArray) -> Smoothed:
        """Smooth answers, in the order of their steps, with the result of `series_smoother`."""
        weights, half = smoother
        values = weights @ answers
        return cls(values, values - half, values + half)


def series_smoother(
    gaps: Sequence[int],
    *,
    correlation: float,
    variance: float,
    noise: FloatArray,
    laplace: bool,
    alpha: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the weight of every answer in every estimate, and how far its interval reaches.

    Parameters
    ----------
    gaps
        How many steps lie between neighbours.
    correlation
        φ of neighbouring steps.
    variance
        The variance of an answer without noise.
    noise
        The variance of the noise of each answer.
    laplace
        Whether it is Laplace noise; otherwise Gaussian.
    alpha
        The probability with which an interval may miss.
    """
    weights, own = _posterior(gaps, correlation, variance, noise)
    # The mean is not known: it is estimated by weighted least squares along with the rest.
    left = 1 - weights.sum(axis=1)
    pull = left / noise
    weights = weights + np.outer(left, pull / pull.sum())
    own = own + left**2 / pull.sum()
    bell = np.maximum(own - (weights**2) @ noise, 0.0)  # the part of the error due to the stream
    deviation = np.sqrt(own)
    half = np.empty(len(noise))
    for start in range(0, len(noise), _ROWS):
        rows = slice(start, start + _ROWS)
        scaled = weights[rows] * np.sqrt(noise) / deviation[rows, np.newaxis]
        share = bell[rows] / own[rows]
        half[rows] = deviation[rows] * _quantiles(scaled, share, laplace=laplace, alpha=alpha)
    return weights, half


def _posterior(
    gaps: Sequence[int], correlation: float, variance: float, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of all answers in each estimate and its variance, if the mean were 0."""
    from scipy.linalg import solveh_banded  # slow to import

    size = len(noise)
    between = np.array([correlation**gap for gap in gaps], dtype=np.float64)
    new = variance * (1 - between**2)
    diagonal = np.full(size, 0.0)
    diagonal[0] += 1 / variance
    diagonal[1:] += 1 / new
    diagonal[:-1] += between**2 / new
    banded = np.zeros((2, size))
    banded[0, 1:] = -between / new
    banded[1] = diagonal + 1 / noise
    inverse = solveh_banded(banded, np.eye(size)) if size > 1 else 1 / banded[1:]
    return np.asarray(inverse / noise), np.asarray(np.diag(inverse))


def _quantiles(scaled: FloatArray, bell: FloatArray, *, laplace: bool, alpha: float) -> FloatArray:
    """Return h with P(|error| > h) = alpha, errors of variance 1.

    Parameters
    ----------
    scaled
        The deviation of each noise in each error.
    bell
        The part of the variance that is Gaussian anyway.
    laplace, alpha
        As in `series_smoother`.
    """
    from scipy.special import ndtri

    normal = float(-ndtri(alpha / 2))
    if not laplace:
        return np.full(len(scaled), normal)
    squares = np.sort(scaled**2, axis=1)[:, ::-1]
    single = squares[:, :_WEIGHTS]
    rest = bell + squares[:, _WEIGHTS:].sum(axis=1)
    # Laplace noise of variance v has the characteristic function 1/(1 + v·u²/2).
    points = (np.arange(_POINTS) + 0.5) * (_FURTHEST / _POINTS)
    logs = -np.outer(rest, points**2) / 2
    for place in range(single.shape[1]):
        logs -= np.log1p(np.outer(single[:, place], points**2) / 2)
    spectrum = np.exp(logs) / points * (2 / np.pi * _FURTHEST / _POINTS)
    low, high = np.zeros(len(scaled)), np.full(len(scaled), 4 * normal + 4)
    for _ in range(40):
        middle = (low + high) / 2
        inside = (np.sin(np.outer(middle, points)) * spectrum).sum(axis=1)
        low, high = (
            np.where(inside < 1 - alpha, middle, low),
            np.where(inside < 1 - alpha, high, middle),
        )
    return high


def smooth_chain(
    kernel: Callable[[int], FloatArray],
    start: FloatArray,
    truth: FloatArray,
    gaps: Sequence[int],
    log_likelihoods: FloatArray,
    *,
    alpha: float,
) -> Smoothed:
    """Smooth noisy answers that are functions of the state of a chain.

    Parameters
    ----------
    kernel
        The transition law over a number of steps.
    start
        The law of the first state.
    truth
        The answer without noise in each state, in increasing order.
    gaps
        How many steps lie between neighbours.
    log_likelihoods
        The log-likelihood of each answer in each state, up to a constant.
    alpha
        The probability with which an interval may miss.
    """
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    size = len(likelihoods)
    steps = [kernel(gap) for gap in gaps]
    forwards = np.empty_like(likelihoods)
    forwards[0] = start * likelihoods[0]
    for place in range(1, size):
        forwards[place] = (forwards[place - 1] @ steps[place - 1]) * likelihoods[place]
        forwards[place] /= forwards[place].sum()
    backwards = np.ones_like(likelihoods)
    for place in range(size - 2, -1, -1):
        backwards[place] = steps[place] @ (backwards[place + 1] * likelihoods[place + 1])
        backwards[place] /= backwards[place].max()
    law = forwards * backwards
    law /= law.sum(axis=1, keepdims=True)
    below = np.cumsum(law, axis=1)
    low = truth[np.argmax(below > alpha / 2, axis=1)]
    high = truth[np.argmax(below >= 1 - alpha / 2 - 1e-12, axis=1)]
    return Smoothed(law @ truth, low, high)


def count_kernel(stay: float, arrive: float, records: int) -> FloatArray:
    """Return the law of the next number of records in a state, for each current number.

    Each record in the state stays with probability `stay`, each other one enters with `arrive`.

    Examples
    --------
    >>> count_kernel(0.8, 0.2, 1).round(6).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    staying = _binomials(stay, records)
    arriving = _binomials(arrive, records)
    rows = [
        np.convolve(staying[count, : count + 1], arriving[records - count, : records - count + 1])
        for count in range(records + 1)
    ]
    return np.stack(rows)


def _binomials(probability: float, most: int) -> FloatArray:
    """Return the laws of the number of successes among 0 … most trials."""
    laws = np.zeros((most + 1, most + 1))
    laws[0, 0] = 1.0
    for trials in range(1, most + 1):
        laws[trials] = laws[trials - 1] * (1 - probability)
        laws[trials, 1:] += laws[trials - 1, :-1] * probability
    return laws
