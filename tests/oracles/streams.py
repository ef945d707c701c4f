"""What releases about the steps of a chain or a series tell: sums over all states, dense matrices.

Shares nothing with the package: likelihoods are optimised as they are, by linear programs over all
cells of short chains and by ascent over noisy hints and directions of long ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog, minimize


def any_mechanism(
    start: np.ndarray,
    kernels: Sequence[np.ndarray],
    budgets: Sequence[float],
    target: int,
    *,
    hints: Sequence[np.ndarray] | None = None,
    known: dict[int, int] | None = None,
) -> float:
    """Largest log ratio that any likelihood tells about one step, over all cells of the chain.

    A likelihood may change by at most e^{ε_t} where the record of step t alone changes; nothing
    else is asked of it. Hints multiply the law by a function of each record.
    """
    steps, states = len(budgets), len(start)
    cells = [
        cell
        for cell in itertools.product(range(states), repeat=steps)
        if all(cell[place] == value for place, value in (known or {}).items())
    ]
    index = {cell: place for place, cell in enumerate(cells)}
    law = np.array([_probability(cell, start, kernels) for cell in cells])
    if hints is not None:
        law *= [np.prod([hint[s] for hint, s in zip(hints, cell, strict=True)]) for cell in cells]
    rows = []
    for cell in cells:
        for place, budget in enumerate(budgets):
            for other in range(states):
                moved = (*cell[:place], other, *cell[place + 1 :])
                if other != cell[place] and moved in index:
                    row = np.zeros(len(cells))
                    row[index[cell]], row[index[moved]] = 1.0, -np.exp(budget)
                    rows.append(row)
    best = 0.0
    for one, other in itertools.permutations(range(states), 2):
        laws = [law * [cell[target] == secret for cell in cells] for secret in (one, other)]
        found = linprog(
            -laws[0] / laws[0].sum(),
            A_ub=np.array(rows),
            b_ub=np.zeros(len(rows)),
            A_eq=[laws[1] / laws[1].sum()],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
        )
        best = max(best, float(np.log(-found.fun)))
    return best


def _probability(cell: tuple[int, ...], start: np.ndarray, kernels: Sequence[np.ndarray]) -> float:
    steps = zip(kernels, cell, cell[1:], strict=False)
    return float(start[cell[0]] * np.prod([kernel[one, two] for kernel, one, two in steps]))


def hinted(
    start: np.ndarray,
    kernels: Sequence[np.ndarray],
    likelihoods: np.ndarray,
    hints: np.ndarray,
    target: int,
) -> np.ndarray:
    """Return log p(r | x_t = v) up to a constant, given hints: by dense vectors along the chain."""
    steps = len(likelihoods)
    told = []
    for with_answers in (True, False):
        weights = hints + (likelihoods if with_answers else 0.0)
        before = np.log(start)
        for step in range(target):
            before = np.log(np.exp(before + weights[step]) @ kernels[step])
            before -= before.max()
        after = np.zeros(len(start))
        for step in range(steps - 1, target, -1):
            after = np.log(kernels[step - 1] @ np.exp(after + weights[step]))
            after -= after.max()
        told.append(before + after)
    return likelihoods[target] + told[0] - told[1]


def best_hints(
    kernels: Sequence[np.ndarray], budgets: np.ndarray, target: int, *, seed: int
) -> float:
    """Ascend over hints of a chain of two states, every step's answer at its budget."""
    rng = np.random.default_rng(seed)
    steps = len(budgets)
    start = np.full(2, 0.5)
    best = 0.0
    for attempt in range(3):
        signs = np.ones(steps) if attempt < 2 else rng.choice([-1.0, 1.0], steps)
        likelihoods = np.zeros((steps, 2))
        likelihoods[:, 1] = signs * budgets

        def negative(odds: np.ndarray, likelihoods: np.ndarray = likelihoods) -> float:
            hints = np.stack([np.zeros(steps), odds], axis=1)
            logs = hinted(start, kernels, likelihoods, hints, target)
            return -abs(float(logs[1] - logs[0]))

        first = -signs * budgets / 2 if attempt == 0 else rng.normal(0, 0.5, steps)
        found = minimize(negative, first, method="L-BFGS-B", options={"maxiter": 12})
        best = max(best, -float(found.fun), -negative(first))
    return best


def series_shift(
    correlation: float, budgets: np.ndarray, known: Sequence[int], target: int
) -> float:
    """Return what Laplace answers at every step tell about one: Σ ε_t·|β_t|, β by regression.

    ε_t is the width of the range over the scale of step t; β_t the coefficient of x_t on the target
    given what is known, from the dense covariance.
    """
    places = np.arange(len(budgets))
    covariance = correlation ** np.abs(places[:, np.newaxis] - places)
    given = [target, *known]
    coefficients = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given])
    own = coefficients[0].copy()
    own[list(known)] = 0.0
    return float(np.abs(own) @ budgets)


def series_precision(
    correlation: float, variance: float, precisions: np.ndarray, target: int
) -> float:
    """Return how much Gaussian answers at every step add to the precision of one record."""
    places = np.arange(len(precisions))
    covariance = variance * correlation ** np.abs(places[:, np.newaxis] - places)
    posterior = np.linalg.inv(np.linalg.inv(covariance) + np.diag(precisions))
    return float(1 / posterior[target, target] - 1 / variance)
