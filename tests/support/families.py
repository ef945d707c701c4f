"""Random models of every family, each with its leakage from an oracle that shares no code with us.

A truth is computed by writing the model out: as a joint table that the brute force goes through, or
as a covariance for plain regressions. Sums only; the queries have tests of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import Model
from pdp_calibrate.families.exchangeable.model import compositions
from tests.oracles import brute_force as oracle, gaussian as gaussian_oracle
from tests.oracles.networks import joint_law
from tests.oracles.table_sets import radius_of_sample, worst_over_balls
from tests.support.networks import random_factors
from tests.support.random_models import random_table
from tests.support.random_time import cells_of_tree, random_chain, random_group, random_tree

Truth = Callable[[Any, float], float]


@dataclass(frozen=True)
class Family:
    """How to draw a model, and what it leaks to the worst of all adversaries at a scale."""

    draw: Callable[[np.random.Generator], Model]
    truth: Truth
    exact: bool = True
    """Whether the engine promises the exact value, not only a bracket."""


def table_truth(model: pdp.JointTable, scale: float) -> float:
    return brute_force(model.probabilities, model.domains, scale)


def brute_force(cells: FloatArray, domains: Any, scale: float) -> float:
    return oracle.worst_leakage(cells, domains, sum, scale, lambda _i, _known: True)[0]


def chain_truth(model: pdp.MarkovChain, scale: float) -> float:
    return brute_force(cells_of_chain(model), model.domains, scale)


def cells_of_chain(model: pdp.MarkovChain) -> FloatArray:
    """Every path of the chain is a cell."""
    states = len(model.states)
    start = model.start if model.initial is None else model.initial
    cells = np.empty((states,) * model.length)
    for path in np.ndindex(cells.shape):
        steps = (model.transition[a, b] for a, b in itertools.pairwise(path))
        cells[path] = start[path[0]] * math.prod(steps)
    return cells


def group_truth(model: pdp.BinaryGroup | pdp.CategoryGroup, scale: float) -> float:
    return brute_force(cells_of_group(model), model.domains, scale)


def cells_of_group(model: pdp.BinaryGroup | pdp.CategoryGroup) -> FloatArray:
    """All orders of the same counts are alike."""
    members, values = len(model.names), model.domains[0]
    cells = np.zeros((len(values),) * members)
    orders: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for cell in np.ndindex(cells.shape):
        counts = tuple(cell.count(place) for place in range(len(values)))
        orders.setdefault(counts, []).append(cell)
    for counts, alike in orders.items():
        for cell in alike:
            cells[cell] = count_probability(model, counts) / len(alike)
    return cells


def count_probability(model: pdp.BinaryGroup | pdp.CategoryGroup, counts: tuple[int, ...]) -> float:
    """The chance of these numbers of members per value."""
    if isinstance(model, pdp.BinaryGroup):
        return float(model.count_probabilities[counts[1]])
    order = list(compositions(len(model.names), len(counts)))
    return float(model.count_probabilities[order.index(counts)])


def tree_truth(model: pdp.MarkovTree, scale: float) -> float:
    return brute_force(cells_of_tree(model), model.domains, scale)


def draw_network(rng: np.random.Generator) -> pdp.Network:
    sizes = [int(number) for number in rng.integers(2, 4, int(rng.integers(2, 5)))]
    domains = {
        place: rng.choice(np.arange(-3, 6), number, replace=False).tolist()
        for place, number in enumerate(sizes)
    }
    return pdp.Network(factors=random_factors(rng, sizes), domains=domains)


def network_truth(model: pdp.Network, scale: float) -> float:
    return brute_force(cells_of_network(model), model.domains, scale)


def cells_of_network(model: pdp.Network) -> FloatArray:
    """The product of all factors."""
    factors = list(zip(model.scopes, model.factors, strict=True))
    cells = joint_law([len(domain) for domain in model.domains], factors)
    return np.asarray(cells / cells.sum())


def conditional_ball_truth(model: pdp.ConditionalBall, scale: float) -> float:
    cells = model.center.probabilities
    return worst_over_balls(cells, model.domains, scale, lambda _mass, _values: model.radius)


def sample_truth(model: pdp.SampledTable, scale: float) -> float:
    radius = radius_of_sample(model.counts.shape, model.confidence)
    return worst_over_balls(model.counts.astype(float), model.domains, scale, radius)


def blocks_truth(model: pdp.Blocks, scale: float) -> float:
    """The product table of two blocks."""
    one, two = model.models
    cells = np.multiply.outer(one.probabilities, two.probabilities)
    return brute_force(cells, (*one.domains, *two.domains), scale)


def set_truth(model: pdp.ModelSet, scale: float) -> float:
    return max(table_truth(member, scale) for member in model.models)


def covariance_truth(
    covariance: FloatArray, widths: FloatArray, scale: float, extra: float
) -> float:
    found = gaussian_oracle.leakages(
        covariance, np.ones((1, len(covariance))), widths, [scale], lambda _known: extra
    )
    return max(found.values())


def gaussian_truth(model: pdp.Gaussian, scale: float) -> float:
    return covariance_truth(model.covariance, widths_of(model), scale, 0.0)


def ball_truth(model: pdp.LoewnerBall, scale: float) -> float:
    extra = model.radius / math.sqrt(1 - model.radius**2)
    return covariance_truth(model.center.covariance, widths_of(model), scale, extra)


def gaussian_group_truth(model: pdp.GaussianGroup, scale: float) -> float:
    """The worst of many correlations in the range; the ends among them."""
    size = len(model.names)
    low, high = (
        model.correlation if isinstance(model.correlation, tuple) else (model.correlation,) * 2
    )
    return max(
        covariance_truth(
            np.full((size, size), rho) + (1 - rho) * np.eye(size), widths_of(model), scale, 0.0
        )
        for rho in np.unique(np.linspace(low, high, 5))
    )


def series_truth(model: pdp.GaussianSeries, scale: float) -> float:
    steps = np.arange(len(model.names))
    lags = np.abs(steps[:, np.newaxis] - steps)
    return covariance_truth(model.correlation**lags, widths_of(model), scale, 0.0)


def unknown_truth(model: pdp.Unknown, scale: float) -> float:
    return float(sum(max(domain) - min(domain) for domain in model.domains)) / scale


def widths_of(model: Model) -> FloatArray:
    return np.array([float(high) - float(low) for low, high in model.domains])  # type: ignore[arg-type]


def draw_blocks(rng: np.random.Generator) -> pdp.Blocks:
    sizes: dict[str, tuple[int, int]] = {"tuples": (1, 2), "values": (2, 3)}
    return pdp.Blocks(models=[random_table(rng, **sizes), random_table(rng, **sizes)])


def draw_set(rng: np.random.Generator) -> pdp.ModelSet:
    first = random_table(rng, tuples=(2, 3), values=(2, 3))
    cells = rng.dirichlet(np.ones(first.probabilities.size)).reshape(first.probabilities.shape)
    second = pdp.JointTable(probabilities=cells, domains=first.domains)
    return pdp.ModelSet(models=[first, second])


def draw_conditional_ball(rng: np.random.Generator) -> pdp.ConditionalBall:
    sizes = rng.integers(2, 3, size=int(rng.integers(1, 3, endpoint=True)), endpoint=True)
    cells = rng.dirichlet(np.ones(int(np.prod(sizes)))).reshape(sizes)
    domains = [rng.choice(np.arange(-3, 6), size, replace=False).tolist() for size in sizes]
    center = pdp.JointTable(probabilities=cells, domains=domains)
    return pdp.ConditionalBall(center=center, radius=float(rng.choice([0.0, 1.0, rng.random()])))


def draw_sample(rng: np.random.Generator) -> pdp.SampledTable:
    ball = draw_conditional_ball(rng)
    rows = int(10 ** rng.uniform(1, 6))
    cells = ball.center.probabilities
    counts = rng.multinomial(rows, cells.ravel()).reshape(cells.shape)
    return pdp.SampledTable(counts=counts, domains=ball.domains, confidence=0.9)


def draw_gaussian(rng: np.random.Generator) -> pdp.Gaussian:
    size = int(rng.integers(1, 5, endpoint=True))
    factors = rng.normal(size=(size, int(rng.integers(1, 4))))
    covariance = factors @ factors.T + np.diag(rng.uniform(0.05, 2.0, size=size))
    bounds = [(0.0, float(high)) for high in rng.uniform(0.1, 5.0, size=size)]
    return pdp.Gaussian(mean=np.zeros(size), covariance=covariance, bounds=bounds)


def draw_ball(rng: np.random.Generator) -> pdp.LoewnerBall:
    return pdp.LoewnerBall(center=draw_gaussian(rng), radius=float(rng.uniform(0, 0.8)))


def draw_gaussian_group(rng: np.random.Generator) -> pdp.GaussianGroup:
    size = int(rng.integers(2, 6, endpoint=True))
    low, high = np.sort(rng.uniform(-0.9 / (size - 1), 0.95, size=2))
    correlation = (float(low), float(high)) if rng.random() < 0.5 else float(low)
    return pdp.GaussianGroup(size=size, correlation=correlation, bounds=(-1.0, 2.0))


def draw_series(rng: np.random.Generator) -> pdp.GaussianSeries:
    return pdp.GaussianSeries(
        length=int(rng.integers(1, 6, endpoint=True)),
        correlation=float(rng.uniform(-0.95, 0.95)),
        bounds=(0.0, 1.5),
    )


def draw_unknown(rng: np.random.Generator) -> pdp.Unknown:
    values = rng.choice(np.arange(-3, 6), 3, replace=False).tolist()
    return pdp.Unknown(size=int(rng.integers(1, 6)), domain=values)


def draw_rates(rng: np.random.Generator) -> pdp.RateGroup:
    """Draw a group of at most six members whose rate has a beta law, or one of a few values."""
    size = int(rng.integers(1, 7))
    if rng.random() < 0.5:
        return pdp.RateGroup(size=size, beta=np.exp(rng.normal(size=2)))
    number = int(rng.integers(1, 5))
    weights = rng.dirichlet(np.ones(number))
    return pdp.RateGroup(size=size, rates=rng.uniform(0.01, 0.99, number), weights=weights)


FAMILIES = {
    "JointTable": Family(lambda rng: random_table(rng, tuples=(1, 3), values=(2, 3)), table_truth),
    "Blocks": Family(draw_blocks, blocks_truth),
    "ModelSet": Family(draw_set, set_truth),
    "MarkovChain": Family(lambda rng: random_chain(rng, longest=5), chain_truth),
    "MarkovTree": Family(lambda rng: random_tree(rng, most=4), tree_truth),
    "Network": Family(draw_network, network_truth),
    "ConditionalBall": Family(draw_conditional_ball, conditional_ball_truth),
    "SampledTable": Family(draw_sample, sample_truth),
    "RateGroup": Family(draw_rates, group_truth),
    "groups": Family(random_group, group_truth),
    "Gaussian": Family(draw_gaussian, gaussian_truth),
    "LoewnerBall": Family(draw_ball, ball_truth),
    "GaussianGroup": Family(draw_gaussian_group, gaussian_group_truth),
    "GaussianSeries": Family(draw_series, series_truth),
    "Unknown": Family(draw_unknown, unknown_truth),
}
