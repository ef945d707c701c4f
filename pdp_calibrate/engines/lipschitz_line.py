"""Costs along a line, solved without a solver.

If the cost between two atoms is their distance on a line, only neighbours matter, and P·g ≤ t·Q·g
for every such g if and only if W_0 ≤ 0 in the recursion, from the last atom to the first,

    W_s = P_s − t·Q_s + max(e^{d_s}·W_{s+1}, e^{−d_s}·W_{s+1}),    d_s the step from s to s+1,

for W_0 is the largest (P − t·Q)·g among the g with g_0 = 1. The best g makes every step in full, up
or down; Dinkelbach's iteration finds it, and the recursion with its rounding error proves the t.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models.base import FloatArray

_LARGEST = 600.0  # e^600 is far from overflow
_ITERATIONS = 60


def line_bounds(
    first: FloatArray, second: FloatArray, steps: FloatArray, *, additions: int
) -> FloatArray:
    """Bound log max P·g/Q·g over all g with |log g_{s+1} − log g_s| ≤ steps[s].

    Parameters
    ----------
    first, second
        The laws P and Q on common atoms in the order of the line, shape (pairs, atoms).
    steps
        Distances of neighbours in nats, shape (atoms − 1,).
    additions
        Bound on the rounded operations behind each probability and step.

    Returns
    -------
    FloatArray
        One certified bound per pair, above the optimum by about 1e-12 relative; the length of
        the line where that exceeds 600.

    Examples
    --------
    >>> p, q = np.array([[0.25, 0.5, 0.25]]), np.array([[0.5, 0.25, 0.25]])
    >>> line_bounds(p, q, np.array([1.0, 1.0]), additions=2).round(6).tolist()
    [0.26274]
    """
    length = float(steps.sum()) * (1 + 4 * len(steps) * UNIT_ROUNDOFF)
    if len(steps) == 0 or length > _LARGEST:
        return np.full(len(first), length)
    up, down = np.exp(steps), np.exp(-steps)
    ratios = np.ones(len(first))
    slack = np.full(len(first), 16 * UNIT_ROUNDOFF * (additions + len(steps) + 16))
    proved = np.zeros(len(first), dtype=np.bool_)
    for _ in range(_ITERATIONS):
        trial = ratios * (1 + slack)
        proved |= _upper(first, second, trial, up, down, additions) <= 0
        if proved.all():
            break
        likelihoods = _best(first - trial[:, np.newaxis] * second, up, down)
        found = (likelihoods * first).sum(axis=1) / (likelihoods * second).sum(axis=1)
        better = ~proved & (found > trial)
        ratios = np.where(better, found, ratios)
        slack = np.where(proved | better, slack, 2 * slack)
    logs = np.log(ratios) + np.log1p(slack) + 16 * UNIT_ROUNDOFF * (1 + length)
    return np.asarray(np.where(proved, np.minimum(logs, length), length))


def _best(gains: FloatArray, up: FloatArray, down: FloatArray) -> FloatArray:
    """Return the g with the largest gains·g among those that make every step in full."""
    climbs = np.empty((len(gains), len(up)), dtype=np.bool_)
    value = gains[:, -1]
    for step in range(len(up) - 1, -1, -1):
        climbs[:, step] = value > 0
        value = gains[:, step] + np.where(value > 0, up[step], down[step]) * value
    log_likelihoods = np.zeros_like(gains)
    log_likelihoods[:, 1:] = np.cumsum(np.where(climbs, np.log(up), -np.log(up)), axis=1)
    return np.asarray(np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True)))


def _upper(
    first: FloatArray,
    second: FloatArray,
    ratios: FloatArray,
    up: FloatArray,
    down: FloatArray,
    additions: int,
) -> FloatArray:
    """Return W_0 rounded up: the recursion together with a bound on its error."""
    unit = 4 * (additions + 8) * UNIT_ROUNDOFF
    scaled = ratios[:, np.newaxis] * second
    gains, sizes = first - scaled, unit * (first + scaled)
    value, error = gains[:, -1], sizes[:, -1]
    for step in range(len(up) - 1, -1, -1):
        highest = value + error
        factor = np.where(highest > 0, up[step], down[step])
        value = np.where(highest > 0, highest, value) * factor
        error = np.where(highest > 0, 0.0, error) * factor + unit * np.abs(value)
        value = gains[:, step] + value
        error = error + sizes[:, step] + unit * np.abs(value)
    return np.asarray(value + error)
