"""Two laws on a line, compared by every likelihood that changes slowly along it.

How well can a likelihood g with |log g_{s+1} − log g_s| ≤ d_s distinguish P from Q? If the cost
between two atoms is their distance on a line, only neighbours matter, and P·g ≤ t·Q·g holds for
every such g if and only if W_0 ≤ 0 in the recursion, from the last atom to the first,

    W_s = P_s − t·Q_s + max(e^{d_s}·W_{s+1}, e^{−d_s}·W_{s+1}),

because W_0 is the largest (P − t·Q)·g among the g with g_0 = 1. The best g takes every step in
full: up where W_{s+1} is positive, down elsewhere. Dinkelbach's iteration finds the smallest such
t: take the best g of the current t, and use P·g/Q·g as the next one.

**Why the result is safe.** How t is found does not matter. A t is accepted only once the recursion,
run with a bound on its own rounding error, gives W_0 + error ≤ 0; where that fails after all
iterations, the length of the line is used instead, which no such likelihood exceeds.

The recursion is evaluated in two ways, which a test compares. `line_bounds` runs in NumPy through
many pairs of laws at once, the steps being any numbers: for tables and groups, without a compiler.
`line_program_kernels.widest` is compiled, for laws on a lattice whose steps are all equal: the
walks through chains call it from compiled code, once per window.
"""

from __future__ import annotations

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

ITERATIONS = 60


_LONGEST = 600.0  # nats; e^600 is far from overflow


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
    if len(steps) == 0 or length > _LONGEST:
        return np.full(len(first), length)
    up, down = np.exp(steps), np.exp(-steps)
    # Dinkelbach's iteration, all pairs side by side. A trial lies slightly above the ratio found,
    # so that the rounding error of the proof fits in between; where it does not, or the ratio no
    # longer grows, the distance is doubled. A pair that is proved keeps its trial.
    ratios = np.ones(len(first))
    slack = np.full(len(first), 16 * UNIT_ROUNDOFF * (additions + len(steps) + 16))
    proved = np.zeros(len(first), dtype=np.bool_)
    for _ in range(ITERATIONS):
        trial = ratios * (1 + slack)
        proved |= _upper(first, second, trial, up, down, additions) <= 0
        if proved.all():
            break
        likelihoods = _best(first - trial[:, np.newaxis] * second, up, down)
        found = (likelihoods * first).sum(axis=1) / (likelihoods * second).sum(axis=1)
        better = ~proved & (found > trial)
        ratios = np.where(better, found, ratios)
        slack = np.where(proved | better, slack, 2 * slack)
    # The last term covers the logarithms and the sum of the steps.
    logs = np.log(ratios) + np.log1p(slack) + 16 * UNIT_ROUNDOFF * (1 + length)
    return np.asarray(np.where(proved, np.minimum(logs, length), length))


def _best(gains: FloatArray, up: FloatArray, down: FloatArray) -> FloatArray:
    """Return the g with the largest gains·g among those that take every step in full.

    It only proposes a ratio: nothing depends on its rounding.
    """
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
    """Return W_0 rounded up: the recursion together with a bound on its error.

    Each step multiplies by e^{±d} and adds one term; both round what they return by less than a
    unit of its size, which is added to the error. Where the value might be positive, it is taken
    at its highest and multiplied by the larger factor, so that the maximum is never missed; where
    even its highest is negative, the smaller factor is the larger product.
    """
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
