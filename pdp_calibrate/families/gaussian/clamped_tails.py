"""What clamped sums of Gaussian groups and series of a stated variance leak in the tails.

Theorem 24 (docs/theory), part (d), has the proofs of what follows.

Far out, r → −∞, the log-ratio of two secrets x_i is that of E[e^{−S/λ} | x_i], S the clamped sum.
Values are measured from the middle of their range, where their means are, in widths of it: the
secrets are ±1/2. All weights have one sign and no correlation is negative.

*Groups.* Given x_i and k known members in the middle, the others are c·x_i + a common factor +
their own parts, c = ρ/(1+kρ). Given the factor z they are independent, and each has a closed form.
The integral over z is done by the trapezoidal rule, whose error with step q is at most
4·e^{−2π²/(q²·B)} of the integral, B = 1 + n·ρ/(1+kρ): the step below makes it 4·e^{−40}.

*Series.* Both sides of x_i are independent given it. From the far end inwards, V(x), the expected
e^{−S'/λ} of the points beyond x, is the integral of the normal kernel times e^{−b·clamp(y)} times
the previous V, by Gauss-Legendre rules of 16 points on panels no wider than the standard deviation
s of a step, or than the range inside it. All n steps together err by less than
n·10^{−21}·e^{Σb·(1+1.5·min(s,1))} of the result.

Both truncate the tails, less than e^{−40} of the integral. What remains is floating-point rounding,
for which `_MARGIN` is charged.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import log_ndtr, logsumexp

from pdp_calibrate.arrays import FloatArray

_MARGIN = 1e-9  # absolute, and relative to the leakage

_LARGEST_GROUP = (4096, 500.0)  # members, and Σb
_LARGEST_SERIES = (400, 20.0)  # points, and Σb·(1+1.5·min(s,1))
_MOST_NODES = 2400
_DEVIATIONS = (1e-3, 1e3)  # in widths of the range


def group_tail(
    own: float, others: FloatArray, rho: float, *, known: int, deviation: float
) -> float:
    """Return a lower bound on the leakage about one member of a group, 0 if none was computed.

    Parameters
    ----------
    own
        The weight of the target times the width of the range over λ, not negative.
    others
        The same for those whose values are not known.
    rho
        The common correlation, not negative.
    known
        How many members are known; their values lie in the middle of the range.
    deviation
        The standard deviation in widths of the range.
    """
    size, reach = len(others), float(others.sum())
    single = deviation * math.sqrt(1 - rho)
    if not _is_possible(deviation, _LARGEST_GROUP, size, reach) or others.max() * single > 100:
        return 0.0
    shrunk = 1 + known * rho
    step = math.pi * math.sqrt(2 / 40 / (1 + size * rho / shrunk))
    furthest = math.sqrt(2 * (reach + 45))
    factor = np.arange(-math.ceil(furthest / step), math.ceil(furthest / step) + 1) * step
    common = np.asarray(deviation * math.sqrt(rho * (1 - rho) / shrunk) * factor, np.float64)
    weights, numbers = np.unique(others, return_counts=True)
    logs = []
    for secret in (-0.5, 0.5):
        total: FloatArray = -(factor**2) / 2
        for weight, number in zip(weights, numbers, strict=True):
            total = total + number * _log_clamped(secret * rho / shrunk + common, single, weight)
        logs.append(float(logsumexp(total)))
    return _charged(own + logs[0] - logs[1])


def series_tail(
    own: float, left: FloatArray, right: FloatArray, phi: float, *, deviation: float
) -> float:
    """Return a lower bound on the leakage about one point of a series, 0 if none was computed.

    Parameters
    ----------
    own
        The weight of the target times the width of the range over λ, not negative.
    left, right
        The same for the points before and after it, the nearest first; all of them are unknown.
    phi
        The correlation of neighbours, not negative.
    deviation
        The standard deviation in widths of the range.
    """
    size, reach = len(left) + len(right), float(left.sum() + right.sum())
    innovation = deviation * math.sqrt(1 - phi**2)
    grown = reach * (1 + 1.5 * min(innovation, 1.0))
    if not _is_possible(deviation, _LARGEST_SERIES, size, grown):
        return 0.0
    furthest = 0.5 + deviation * math.sqrt(2 * (reach + math.log(size) + 45))
    nodes, areas = _nodes(furthest, innovation)
    if len(nodes) > _MOST_NODES:
        return 0.0
    secrets = np.array([-0.5, 0.5])
    steps = _kernel(nodes, nodes, phi, innovation, areas)
    last = _kernel(secrets, nodes, phi, innovation, areas)
    inside = np.clip(nodes, -0.5, 0.5)
    value = own
    for side in (left, right):
        beyond = np.ones(len(nodes))
        for place in range(len(side) - 1, -1, -1):
            here = np.exp(-side[place] * inside) * beyond
            beyond = (steps if place else last) @ here
        if len(side):
            value += math.log(beyond[0] / beyond[1])
    return _charged(value)


def _is_possible(deviation: float, largest: tuple[int, float], size: int, reach: float) -> bool:
    return (
        0 < size <= largest[0]
        and reach <= largest[1]
        and (_DEVIATIONS[0] <= deviation <= _DEVIATIONS[1])
    )


def _charged(value: float) -> float:
    return max(0.0, value - _MARGIN * (1 + value))


def _log_clamped(mean: FloatArray, deviation: float, weight: float) -> FloatArray:
    """Return log E[e^{−weight·clamp(x)}] of normal values x, clamped into ±1/2."""
    low, high = (-0.5 - mean) / deviation, (0.5 - mean) / deviation
    moved = weight * deviation
    below, above = log_ndtr(low) + weight / 2, log_ndtr(-high) - weight / 2
    inside = moved**2 / 2 - weight * mean + _log_between(low + moved, high + moved)
    return np.asarray(np.logaddexp(np.logaddexp(below, above), inside))


def _log_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return log P(low < Z < high) for standard normal Z, computed from the smaller tail."""
    flipped = low > 0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    larger = log_ndtr(high)
    return np.asarray(larger + np.log(-np.expm1(log_ndtr(low) - larger)))


def _nodes(furthest: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Return quadrature nodes and weights, on panels that do not cross an end of the range."""
    points, shares = np.polynomial.legendre.leggauss(16)
    ends = [-furthest, -0.5, 0.5, furthest]
    edges = np.concatenate(
        [
            np.linspace(low, high, math.ceil((high - low) / width) + 1)[:-1]
            for low, high in itertools.pairwise(ends)
        ]
        + [np.array([furthest])]
    )
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    places = middle[:, np.newaxis] + half[:, np.newaxis] * points
    return places.ravel(), (half[:, np.newaxis] * shares).ravel()


def _kernel(
    here: FloatArray, there: FloatArray, phi: float, deviation: float, areas: FloatArray
) -> FloatArray:
    """Return the probability of the next value around each node, given this one."""
    unit = deviation * math.sqrt(2)
    found = there / unit - (phi / unit * here)[:, np.newaxis]
    # In place: the matrix has up to some million numbers.
    np.multiply(found, found, out=found)
    np.negative(found, out=found)
    np.exp(found, out=found)
    found *= areas / (deviation * math.sqrt(2 * math.pi))
    return found
