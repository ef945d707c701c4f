"""What several releases about one household leak, by adding up every world one by one.

A world is a household: a list of records, each a mapping of cells. An adversary who sees noisy
answers weighs the worlds that go with either secret. On every interval between answers that can
occur, the ratio of two sums of Laplace densities is monotone in each output, so its largest value
is found where every output equals an answer of some world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tests.oracles.rows import answer_of

World = tuple[float, Sequence[dict[str, Any]]]
"""A probability, and the records of a household."""


def in_units_of_noise(
    queries: Sequence[Any], scales: Sequence[float], household: Sequence[dict[str, Any]]
) -> np.ndarray:
    """Return all answers about a household, each divided by the scale of its noise."""
    return np.array(
        [
            number / scale
            for query, scale in zip(queries, scales, strict=True)
            for number in answer_of(query, household)
        ]
    )


def leaked(
    queries: Sequence[Any],
    scales: Sequence[float],
    first: Sequence[World],
    second: Sequence[World],
) -> float:
    """Return the largest log-ratio, either way, of the likelihoods of what is released."""
    answers = [
        np.array([in_units_of_noise(queries, scales, people) for _, people in worlds])
        for worlds in (first, second)
    ]
    weights = [np.log([share for share, _ in worlds]) for worlds in (first, second)]
    atoms = [np.unique(column) for column in np.concatenate(answers).T]
    outputs = np.stack([grid.ravel() for grid in np.meshgrid(*atoms, indexing="ij")], axis=1)
    logs = [
        logsumexp(
            weight[:, None] - np.abs(outputs[None] - answer[:, None]).sum(axis=2), axis=0
        )
        for weight, answer in zip(weights, answers, strict=True)
    ]  # fmt: skip
    return float(np.abs(logs[0] - logs[1]).max())


def farthest(
    queries: Sequence[Any],
    scales: Sequence[float],
    households: Sequence[Sequence[dict[str, Any]]],
    *,
    power: int = 1,
) -> tuple[float, int, int]:
    """Return how far two households can be from each other, in units of noise, and which.

    In L1, or in L2 with a power of 2.
    """
    answers = np.array([in_units_of_noise(queries, scales, people) for people in households])
    apart = (np.abs(answers[:, None] - answers[None]) ** power).sum(axis=2) ** (1 / power)
    one, other = np.unravel_index(apart.argmax(), apart.shape)
    return float(apart.max()), int(one), int(other)
