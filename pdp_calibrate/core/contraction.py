"""How fast a chain forgets: the two bounds that make long chains cheap.

Theorem 17 (docs/theory).

**Truncation.** Let q = (x_{i−a}, x_{i+b}) lie inside a larger unknown window. The larger window's
mixture given x_i averages those of the smaller one with weights P(q | x_i), so it leaks at most
I + (the worst leakage of the smaller window over q), where I bounds log P(q|v)/P(q|v') over all q.
By Bayes, each side's share of I is at most the Hilbert diameter of the a-step transition

    D_a = max over w, w', v, v' of  log P^a[w,v]·P^a[w',v'] / (P^a[w,v']·P^a[w',v]),

whatever the start and whether or not a far end is known. D_a never grows with a.

**Birkhoff.** A kernel of diameter D turns two beliefs at log-distance at most a into beliefs at
log-distance at most L(a) = 4·artanh(tanh(D/4)·tanh(a/4)). If tuple j alone can move the output's
log-likelihood by ε_j, all tuples left of i can add at most ε + L(ε' + L(…)), and likewise on the
right. That bounds every adversary, whatever they know, in one pass along the chain.
"""

from __future__ import annotations

import math

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

_NEGLIGIBLE = 1e-12  # diameters below this are mostly rounding


_SMALLEST = 1e-280  # probabilities below this may have lost digits to underflow

CONTRACTED = 1 + 64 * UNIT_ROUNDOFF  # covers the few units of every function called
TINY = 1e-300  # and what products of tiny numbers lose to underflow


def diameters(kernel: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Bound D_0 = ∞, D_1, …, D_most from above and the logs of what is possible from below.

    Returns
    -------
    tuple
        Non-increasing diameters, rounding included; and for each number of steps the log of the
        smallest positive entry of any power so far, −inf where it may have underflowed.
    """
    found, rarest = np.full(most + 1, np.inf), np.zeros(most + 1)
    power, possible = np.array(kernel), kernel > 0
    for steps in range(1, most + 1):
        smallest = float(power[possible].min())
        lost = smallest < _SMALLEST
        rarest[steps] = min(rarest[steps - 1], -np.inf if lost else math.log(smallest))
        rounding = 8 * (len(kernel) + 2) * steps * UNIT_ROUNDOFF
        found[steps] = min(found[steps - 1], np.inf if lost else hilbert_diameter(power) + rounding)
        if found[steps] <= _NEGLIGIBLE:
            # Further powers differ from this one by a factor of at most e^{D}.
            found[steps:], rarest[steps:] = found[steps], rarest[steps] - 1e-9
            break
        power = power @ kernel
        possible = (possible.astype(np.float64) @ (kernel > 0)) > 0
    return found, rarest


def diameter_of(kernel: FloatArray) -> float:
    """Bound the Hilbert diameter of one kernel, rounding included."""
    return hilbert_diameter(kernel) + 8 * (len(kernel) + 2) * UNIT_ROUNDOFF


def contracted(one: float, other: float) -> float:
    """Return a ⊗ b = 4·artanh(tanh(a/4)·tanh(b/4)), rounded up and at most min(a, b).

    Both are distances on a logarithmic scale, zero or more; ∞ ⊗ b = b. If a budget b is spent on a
    tuple, a coupling of strength a adds a ⊗ b to its neighbour's budget; if a tuple has couplings a
    and b with two neighbours, summing it out leaves a coupling a ⊗ b between them.

    Examples
    --------
    >>> round(contracted(2.0, 1.0), 6), contracted(float("inf"), 1.0)
    (0.454673, 1.0)
    """
    low, high = (one, other) if one <= other else (other, one)
    product = math.tanh(low / 4) * math.tanh(high / 4)
    if product < 0.5:
        image = 4 * math.atanh(product)
    else:
        # The same as 2·log((pq + 1)/(p + q)) with p = e^{a/2}, q = e^{b/2}: safe near 1. From here
        # on the smaller of a and b is at least 2.1, so that nothing cancels.
        image = low
        if math.isfinite(high):
            image += 2 * math.log1p(math.exp(-(high + low) / 2))
            image -= 2 * math.log1p(math.exp((low - high) / 2))
    return min(low, image * CONTRACTED + TINY) if low > 0 else 0.0


def contractions(ones: FloatArray, others: FloatArray) -> FloatArray:
    """Return `contracted` of arrays that broadcast, entry by entry."""
    low, high = np.minimum(ones, others), np.maximum(ones, others)
    product = np.tanh(low / 4) * np.tanh(high / 4)
    image = 4 * np.arctanh(np.minimum(product, 0.5))
    large = product >= 0.5
    if large.any():
        small, great = low[large], high[large]
        ends = np.isfinite(great)
        small, apart = small[ends], great[ends] - small[ends]
        carried = low[large]
        carried[ends] += 2 * np.log1p(np.exp(-apart / 2 - small))
        carried[ends] -= 2 * np.log1p(np.exp(-apart / 2))
        image[large] = carried
    return np.asarray(np.minimum(low, np.where(low > 0, image * CONTRACTED + TINY, 0.0)))


def birkhoff_bounds(budgets: FloatArray, diameter: float) -> FloatArray:
    """Bound the leakage about every tuple, for every adversary, in linear time.

    Parameters
    ----------
    budgets
        ε_j = LS_j/λ of every tuple, in the order of the chain.
    diameter
        D of one step of the chain.
    """
    left, right = _messages(budgets, diameter), _messages(budgets[::-1], diameter)[::-1]
    return np.asarray((budgets + left + right) * (1 + 8 * UNIT_ROUNDOFF))


def _messages(budgets: FloatArray, diameter: float) -> FloatArray:
    """Return what all tuples before each one can add to the leakage about it."""
    found = np.zeros(len(budgets))
    equal = bool(np.all(budgets == budgets[0]))
    carried = 0.0
    for position in range(1, len(budgets)):
        before, carried = carried, contracted(diameter, float(budgets[position - 1]) + carried)
        found[position] = carried
        if equal and carried == before:
            found[position:] = carried
            break
    return found


def hilbert_diameter(kernel: FloatArray) -> float:
    """Return the largest log cross-ratio of a kernel; states never reached do not count."""
    reached = kernel[:, kernel.max(axis=0) > 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(reached)
        apart = logs[:, :, np.newaxis] - logs[:, np.newaxis, :]  # NaN where both are impossible
        largest = np.where(np.isnan(apart), -np.inf, apart).max(axis=0)
        return max(0.0, float((largest + largest.T).max()))
