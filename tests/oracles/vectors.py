"""Brute force for answers of several numbers: every adversary, every point of the grid of atoms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tests.oracles.adversaries import Admits, every_adversary


def worst_vector_leakage(
    probabilities: np.ndarray,
    domains: Sequence[Sequence[Hashable]],
    function: Callable[[tuple[Any, ...]], tuple[float, ...]],
    scales: Sequence[float],
    admits: Admits,
) -> float:
    """Supremum of the log ratio; knowing everyone else, over cells of probability zero too."""
    n = len(domains)
    worst = 0.0
    for target, known in every_adversary(n, admits):
        mass = np.ones_like(probabilities) if len(known) == n - 1 else probabilities
        worst = max(worst, _adversary(mass, domains, function, scales, target, known))
    return worst


def _adversary(mass, domains, function, scales, target, known):
    worst = 0.0
    for values in itertools.product(*(range(len(domains[j])) for j in known)):
        laws = []
        for secret in range(len(domains[target])):
            fixed = dict(zip(known, values, strict=True)) | {target: secret}
            law: dict[tuple[float, ...], float] = {}
            ranges = [
                [fixed[j]] if j in fixed else range(len(domain)) for j, domain in enumerate(domains)
            ]
            for cell in itertools.product(*ranges):
                if mass[cell] > 0:
                    answer = function(tuple(domains[j][k] for j, k in enumerate(cell)))
                    law[answer] = law.get(answer, 0.0) + float(mass[cell])
            if law:
                laws.append(law)
        for one, other in itertools.permutations(laws, 2):
            grid = itertools.product(
                *(sorted({answer[m] for answer in (*one, *other)}) for m in range(len(scales)))
            )
            for r in grid:
                worst = max(worst, _log_density(one, r, scales) - _log_density(other, r, scales))
    return worst


def _log_density(law, r, scales):
    terms = [
        math.log(mass) - sum(abs(a - b) / s for a, b, s in zip(r, answer, scales, strict=True))
        for answer, mass in law.items()
    ]
    peak = max(terms)
    total = math.log(sum(law.values()))
    return peak + math.log(sum(math.exp(term - peak) for term in terms)) - total
