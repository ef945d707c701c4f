"""What any mechanisms reveal about a tuple of a short chain, by a linear program over likelihoods.

Written from the definition: a mechanism on which tuple j has the budget e_j is a likelihood g ≥ 0
of the transcript that changes by a factor of at most e^{e_j} when tuple j alone changes. Shares
nothing with the package. For every set of known tuples, every value they can have and every two
secrets,

    max E[g | x_i = v, x_K]  where  E[g | x_i = v', x_K] = 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array


def joint_law(start: Sequence[float], kernels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the probability of every course of a chain, one kernel per step."""
    law = np.array(start, dtype=float)
    for kernel in kernels:
        law = law[..., np.newaxis] * kernel
    return law / law.sum()


def worst_likelihood(
    law: np.ndarray,
    budgets: Sequence[float],
    target: int,
    knowing: Callable[[tuple[int, ...]], bool] = lambda _known: True,
) -> float:
    """Return the largest log-ratio about one tuple, over all adversaries admitted."""
    others = [axis for axis in range(law.ndim) if axis != target]
    worst = 0.0
    for number in range(len(others) + 1):
        for known in itertools.combinations(others, number):
            if knowing(known):
                for values in itertools.product(*(range(law.shape[axis]) for axis in known)):
                    given = dict(zip(known, values, strict=True))
                    worst = max(worst, _of_one(law, budgets, target, given))
    return worst


def _of_one(law: np.ndarray, budgets: Sequence[float], target: int, given: dict[int, int]) -> float:
    unknown = [axis for axis in range(law.ndim) if axis != target and axis not in given]
    place = tuple(given.get(axis, slice(None)) for axis in range(law.ndim))
    rest = law[place]  # the target and the unknown tuples, in order
    rest = np.moveaxis(rest, sum(axis < target for axis in unknown), 0)
    rows = rest.reshape(len(rest), -1)
    masses = rows.sum(axis=1)
    worst = 0.0
    for first, second in itertools.permutations(np.flatnonzero(masses > 0), 2):
        ones, twos = rows[first] / masses[first], rows[second] / masses[second]
        costs = [budgets[axis] for axis in unknown]
        worst = max(worst, _program(ones, twos, rest.shape[1:], costs, budgets[target]))
    return worst


def _program(
    ones: np.ndarray, twos: np.ndarray, shape: tuple[int, ...], costs: list[float], own: float
) -> float:
    """Maximise E_ones[g(v, ·)] with E_twos[g(v', ·)] = 1."""
    size = len(ones)
    numbers = np.arange(size).reshape(shape)
    pairs = [(k, size + k, own) for k in range(size)]
    for axis, cost in enumerate(costs):
        layers = np.moveaxis(numbers, axis, 0).reshape(shape[axis], -1)
        for one, two in itertools.combinations(range(shape[axis]), 2):
            for k, m in zip(layers[one], layers[two], strict=True):
                pairs += [(k, m, cost), (size + k, size + m, cost)]
    pairs = [(a, b, cost) for k, m, cost in pairs for a, b in ((k, m), (m, k))]
    lines = np.repeat(np.arange(len(pairs)), 2)
    columns = np.array([[a, b] for a, b, _ in pairs]).ravel()
    entries = np.array([[1.0, -math.exp(cost)] for *_, cost in pairs]).ravel()
    slow = coo_array((entries, (lines, columns)), shape=(len(pairs), 2 * size)).tocsr()
    found = linprog(
        -np.concatenate([ones, np.zeros(size)]),
        A_ub=slow,
        b_ub=np.zeros(len(pairs)),
        A_eq=np.concatenate([np.zeros(size), twos])[np.newaxis],
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0, found.message
    return math.log(-found.fun)
