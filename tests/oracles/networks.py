"""What one likelihood tells about the tuples of a network, by summing over everything.

Written from the definition alone: the joint law is the product of all factors; an adversary who
attacks i and knows x_K compares E[g | x_i, x_K] for the values of x_i that are possible.
"""

from __future__ import annotations

import itertools

import numpy as np


def joint_law(sizes, factors):
    """Multiply factors ``(positions, array)`` out; up to a constant."""
    joint = np.ones(sizes)
    for positions, cells in factors:
        letters = list(range(len(sizes)))
        joint = np.einsum(joint, letters, np.asarray(cells), list(positions), letters)
    return joint


def leakages(joint, likelihoods):
    """Return, for each target, the most that any adversary learns from any of the likelihoods.

    `likelihoods` has one axis more than the law, in front. Adversaries hold exact values of any
    tuples. A tuple with one possible value under what is known tells nothing.
    """
    size = joint.ndim
    worst = np.zeros(size)
    weighed = likelihoods * joint
    for number in range(1, size + 1):
        for kept in itertools.combinations(range(size), number):
            away = tuple(axis for axis in range(size) if axis not in kept)
            below = joint.sum(axis=away)
            above = weighed.sum(axis=tuple(axis + 1 for axis in away))
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(above) - np.log(below)
            possible = np.broadcast_to(below > 0, logs.shape)
            for place, target in enumerate(kept):
                high = np.where(possible, logs, -np.inf).max(axis=place + 1)
                low = np.where(possible, logs, np.inf).min(axis=place + 1)
                apart = np.where(np.isfinite(high), high - low, 0.0)
                worst[target] = max(worst[target], float(apart.max()))
    return worst


def laplace_likelihoods(contributions, scale):
    """Return e^{−|r − f|/λ} for every answer f that some database has, as r."""
    size = len(contributions)
    answers = np.zeros([1] * size)
    for axis, added in enumerate(contributions):
        answers = answers + np.asarray(added).reshape([-1 if k == axis else 1 for k in range(size)])
    outputs = np.unique(answers)
    apart = np.abs(outputs.reshape(-1, *[1] * size) - answers)
    return np.exp(-apart / scale)


def random_mechanism(rng, sizes, budgets):
    """Return the likelihood of one output of a mechanism with these budgets per tuple.

    The largest function below a random one whose logarithm changes by at most ε_j with x_j: the
    infimal convolution, one tuple after the other, with ε_j·[x_j ≠ x_j'].
    """
    logs = rng.normal(size=sizes) * rng.choice([0.5, 2.0, 10.0])
    for axis, budget in enumerate(budgets):
        lowest = logs.min(axis=axis, keepdims=True)
        logs = np.minimum(logs, lowest + budget)
    return np.exp(logs)
