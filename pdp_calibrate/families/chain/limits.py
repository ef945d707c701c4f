"""How strongly neighbours of a chain may depend on each other, given counted transitions.

All limits are for the Hilbert diameter of a step, the largest log cross-ratio

    D(v, v'; w, w') = log P[v,w]·P[v',w'] / (P[v,w']·P[v',w]),

which is all that the bound on a set of chains uses (`core.contraction`). With two states it is
±D = ±log P[0,0]·P[1,1] / (P[0,1]·P[1,0]).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import optimize, special

from pdp_calibrate.arrays import FloatArray

_VISIBLE = 2.5  # standard deviations of noise above which a state was certainly left
_PLAIN = 5.0
_RELATIVE = 1e-12  # what limits are widened by: more than the error of their last digits


def filled(counts: FloatArray) -> FloatArray:
    """Return the counts with ½ for transitions never seen from a state that was left at all."""
    visited = counts.sum(axis=1, keepdims=True) > 0
    return np.where(visited & (counts == 0), 0.5, counts)


def likelihood_diameter(counts: FloatArray, confidence: float) -> float:
    """Return the upper likelihood limit of the diameter, one-sided and asymptotic.

    Theorem 28 (docs/theory).
    The limit of each cross-ratio is the largest value in {P : 2Σ n·log(p̂/p) ≤ z²}, where z is the
    quantile of a standard normal variable. The counts must be positive.
    """
    allowed = float(special.ndtri(confidence)) ** 2 / 2
    return max((_tilted(cells, allowed) for cells in _cross_ratios(counts)), default=0.0)


def noisy_diameter(counts: FloatArray, noise_scale: float, confidence: float) -> float:
    """Return the same limit for counts that carry Laplace noise of a scale each.

    Counts below the noise are lifted to half of its scale b; its variance 2b² adds to that of the
    counts in D's normal approximation. A larger floor would take noise for rare transitions: with
    b itself, chains that leave their state once in fifty steps were missed by 30 % of fits.
    """
    quantile = float(special.ndtri(confidence))
    lifted = lifted_above_noise(counts, noise_scale)
    return max(
        math.log(here * there / (away * back))
        + quantile
        * math.sqrt(sum(1 / n + 2 * (noise_scale / n) ** 2 for n in (here, there, away, back)))
        for here, there, away, back in _cross_ratios(lifted)
    ) * (1 + _RELATIVE)


def lifted_above_noise(counts: FloatArray, noise_scale: float) -> FloatArray:
    """Return noisy counts, none of which is too far below the scale of its noise."""
    more = 0.5 if len(counts) == 2 else 0.0
    return np.maximum(counts + more, noise_scale / 2)


def drowns_in_noise(transitions: int, number: int, noise_scale: float) -> bool:
    """Whether so many transitions between so many states are too few for this noise; all public.

    If all states were left equally often, that has to be seen at `_PLAIN` standard deviations of
    the noise on a row: otherwise the rows that are seen are mostly those whose noise is large.
    """
    return transitions < _PLAIN * math.sqrt(2 * number) * noise_scale * number


def tells_rows_from_noise(counts: FloatArray, noise_scale: float) -> bool:
    """Whether the noisy counts show that every state was left, whatever the noise may be.

    A row of S counts carries noise of standard deviation √(2S) times its scale.
    """
    spread = math.sqrt(2 * len(counts)) * noise_scale
    return bool(np.all(counts.sum(axis=1) > _VISIBLE * spread))


def certain_diameter(counts: FloatArray, confidence: float) -> float:
    """Return a limit that holds at any number of rows, however counting ended.

    Theorem 29 (docs/theory).
    The largest diameter among the laws P with Σ_v log KT(n_v) − Σ n·log p < log 1/β, where KT is
    the mixture of all laws of a row under the Jeffreys prior. Infinite where some transition was
    never seen, which then may be impossible.
    """
    own = np.where(counts > 0, counts, 1.0)
    rows = counts.sum(axis=1)
    fitted = np.sum(counts * np.log(own)) - np.sum(special.xlogy(rows, rows))
    allowed = -math.log1p(-confidence) - float(np.sum(_log_mixtures(counts)) - fitted)
    return max(_tilted(cells, allowed) for cells in _cross_ratios(counts))


def _log_mixtures(counts: FloatArray) -> FloatArray:
    """Return log KT(n_v) = log Γ(S/2)·Π Γ(n_vw + ½) / (Γ(½)^S·Γ(n_v + S/2)) of every row."""
    number, rows = counts.shape[1], counts.sum(axis=1)
    return np.asarray(
        special.gammaln(number / 2)
        - number * special.gammaln(0.5)
        + special.gammaln(counts + 0.5).sum(axis=1)
        - special.gammaln(rows + number / 2)
    )


def series_interval(counts: FloatArray, first: int, confidence: float) -> tuple[float, float]:
    """Return exact one-sided limits of D for one series of two states.

    Theorem 27 (docs/theory).
    Given both ends and how often each state occurs, P(n_11 = k) ∝ C_runs(k)·e^{Dk}. Each limit
    fails with probability at most 1 − confidence; infinite where the series cannot bound that side.

    Parameters
    ----------
    counts
        How often each transition occurs.
    first
        The first state, 0 or 1.
    confidence
        Of each limit.
    """
    zeros = counts[:, 0].sum() + (first == 0)
    ones = counts[:, 1].sum() + (first == 1)
    last = int(counts[0, 1] + (first == 1) > counts[1, 0])  # ended in a one
    more = 1 - first - last  # how many more runs of zeros than of ones there are
    runs = np.arange(max(1, 1 - more), min(ones, zeros - more) + 1)
    if ones == 0 or zeros == 0 or len(runs) < 2:
        return -math.inf, math.inf
    ways = _log_choose(ones - 1, runs - 1) + _log_choose(zeros - 1, runs + more - 1)
    observed = ones - counts[1, 1]
    few, many = runs <= observed, runs >= observed  # many ones in a row mean few runs
    high = _where_tail(ways, -runs, many, 1 - confidence) if observed > runs[0] else math.inf
    low = -_where_tail(ways, runs, few, 1 - confidence) if observed < runs[-1] else -math.inf
    return low, high


def _where_tail(
    logs: FloatArray, exponents: FloatArray, tail: FloatArray, probability: float
) -> float:
    """Return the tilt at which a tail that thins out with it has this probability, rounded up."""

    def excess(tilt: float) -> float:
        tilted = logs + tilt * exponents
        tilted = tilted - tilted.max()
        inside, all_of_it = special.logsumexp(tilted[tail]), special.logsumexp(tilted)
        return float(inside - all_of_it) - math.log(probability)

    high = 1.0
    while excess(high) > 0:
        high *= 2
    low = -1.0
    while excess(low) < 0:
        low *= 2
    found = optimize.brentq(excess, low, high, xtol=1e-12, rtol=1e-12)
    return float(found) + 1e-9 * max(1.0, abs(found))


def _log_choose(number: float, chosen: FloatArray) -> FloatArray:
    return np.asarray(
        special.gammaln(number + 1)
        - special.gammaln(chosen + 1)
        - special.gammaln(number - chosen + 1)
    )


def _cross_ratios(counts: FloatArray) -> Iterator[tuple[float, float, float, float]]:
    """Yield the counts of each cross-ratio: the two above the line, then the two below."""
    states = range(len(counts))
    for v, other in itertools.permutations(states, 2):
        for w, away in itertools.combinations(states, 2):
            yield (
                float(counts[v, w]),
                float(counts[other, away]),
                float(counts[v, away]),
                float(counts[other, w]),
            )


def _tilted(cells: tuple[float, float, float, float], allowed: float) -> float:
    """Return the largest log cross-ratio where Σ n·log(p̂/p) ≤ allowed.

    Its gradient in log p is +1 or −1 in four cells and adds up to 0 in each row, so the largest
    value has p = (n ± s)/n_v: one unknown, s.
    """
    here, there, away, back = cells
    least = min(away, back)
    if not least > 0:
        return math.inf

    def excess(share: float) -> float:
        moved = share * least
        with np.errstate(divide="ignore"):
            spent = -sum(float(special.xlogy(n, 1 + moved / n)) for n in (here, there) if n > 0)
            spent -= sum(float(special.xlogy(n, 1 - moved / n)) for n in (away, back))
        return spent - allowed

    share = _root(excess)
    moved = share * least
    ratio = math.log(here + moved) + math.log(there + moved)
    ratio -= math.log(away - moved) + math.log(back - moved)
    return ratio + _RELATIVE * max(1.0, abs(ratio))


def _root(excess: Callable[[float], float]) -> float:
    """Return where a function that grows from at most 0 at 0 to ∞ at 1 is 0, from above."""
    high = 0.5
    while excess(high) < 0:
        high = (1 + high) / 2
        if high == 1:
            return math.nextafter(1.0, 0.0)
    found = float(optimize.brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-14))
    return min(found * (1 + 1e-13), math.nextafter(1.0, 0.0))
