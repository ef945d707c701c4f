"""What is said of Gaussian noise at every δ, on random models of all families, against oracles.

A question about one δ also brings a μ, and with it an ε at any other δ: `Leakage.mu`,
`Leakage.epsilon`, `Calibration.mu`, entries of ledgers. Here models are written out as joint laws,
alone or beside tuples that are independent of them, and every adversary is compared at other δ.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.model import Model
from tests.oracles import gaussian_mixtures as oracle, gaussian_noise
from tests.support.families import (
    cells_of_chain,
    cells_of_group,
    cells_of_network,
    draw_ball,
    draw_conditional_ball,
    draw_gaussian,
    draw_gaussian_group,
    draw_network,
    draw_sample,
    draw_series,
    draw_set,
    draw_unknown,
    widths_of,
)
from tests.support.random_models import random_table
from tests.support.random_time import cells_of_tree, random_chain, random_group, random_tree

MOST_CELLS = 48
_TIES = 1e-9  # relative: levels that meet are told apart by rounding only
_EXCESS = 1 + 1e-6, 1e-13  # of δ: the oracle's own rounding


@dataclass(frozen=True)
class Claim:
    """What nobody may exceed at any δ."""

    said_by: str
    scale: float
    mu: float
    epsilon: Callable[[float], float]


@dataclass(frozen=True, eq=False)
class Truth:
    """A law and what its tuples add to the answer; the largest δ of any adversary."""

    cells: FloatArray
    values: tuple[tuple[float, ...], ...]

    @functools.cached_property
    def laws(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where answers lie, and the laws of all pairs of secrets, in both orders."""
        pairs = [
            pair
            for _, _, laws in oracle.adversaries(self.cells, self.values)
            for pair in itertools.permutations(laws.values(), 2)
        ]
        places = sorted({place for pair in pairs for law in pair for place in law})
        where = {place: column for column, place in enumerate(places)}
        both = np.zeros((2, len(pairs), len(places)))
        for row, pair in enumerate(pairs):
            for side, law in enumerate(pair):
                for place, mass in law.items():
                    both[side, row, where[place]] += mass
        together = np.unique(np.concatenate([both[0], both[1]], axis=1).round(15), axis=0)
        return np.array(places), *np.split(together, 2, axis=1)

    @functools.lru_cache(maxsize=1)  # noqa: B019 (a case is soon forgotten)
    def _cells(self, scale: float) -> list[FloatArray]:
        places, *laws = self.laws
        return oracle.masses_on_cells(places, laws, scale)

    def delta(self, scale: float, epsilon: float) -> float:
        """Return a δ that somebody attains; those who know all others may hold any values."""
        own = max(
            gaussian_dp.delta_of((max(held) - min(held)) / scale, epsilon) for held in self.values
        )
        if not len(self.laws[1]):
            return own
        first, second = self._cells(scale)
        excess = np.maximum(first - math.exp(epsilon) * second, 0.0).sum(axis=1)
        return max(own, float(excess.max()))


@dataclass(frozen=True, eq=False)
class GaussianTruth:
    """A covariance, the ranges of the tuples and their weights; μ is known exactly."""

    covariance: FloatArray
    widths: FloatArray
    weights: FloatArray

    def delta(self, scale: float, epsilon: float) -> float:
        """Return δ of the worst adversary, or of who knows all others."""
        return gaussian_dp.delta_of(self._mu(scale) * (1 - 1e-7), epsilon)

    @functools.lru_cache(maxsize=1)  # noqa: B019 (a case is soon forgotten)
    def _mu(self, scale: float) -> float:
        worst, _, _ = gaussian_noise.worst(
            self.covariance, self.weights[np.newaxis], [scale], self.widths.tolist()
        )
        own = float((np.abs(self.weights) * self.widths).max()) / scale
        return max(math.sqrt(max(worst, 0.0)), own)


AnyTruth = Truth | GaussianTruth


@dataclass(frozen=True)
class Drawn:
    """A model, and its law written out: several laws for a set of models."""

    model: Model
    laws: tuple[FloatArray, ...]


def _small(draw: Callable[[np.random.Generator], Drawn]) -> Callable[..., Drawn]:
    def again(rng: np.random.Generator) -> Drawn:
        while True:
            found = draw(rng)
            if 2 < found.laws[0].size <= MOST_CELLS // 4:
                return found

    return again


def _table(rng: np.random.Generator) -> Drawn:
    model = random_table(rng, tuples=(1, 3), values=(1, 3))
    return Drawn(model, (model.probabilities,))


def _chain(rng: np.random.Generator) -> Drawn:
    model = random_chain(rng, longest=3)
    return Drawn(model, (cells_of_chain(model),))


def _group(rng: np.random.Generator) -> Drawn:
    model = random_group(rng)
    if len(model.names) > 3:
        model = pdp.BinaryGroup(count_probabilities=rng.dirichlet(np.ones(4)))
    return Drawn(model, (cells_of_group(model),))


def _tree(rng: np.random.Generator) -> Drawn:
    model = random_tree(rng, most=3)
    return Drawn(model, (cells_of_tree(model),))


def _network(rng: np.random.Generator) -> Drawn:
    model = draw_network(rng)
    return Drawn(model, (cells_of_network(model),))


def _set(rng: np.random.Generator) -> Drawn:
    model = draw_set(rng)
    return Drawn(model, tuple(member.probabilities for member in model.models))


def _ball(rng: np.random.Generator) -> Drawn:
    model = draw_conditional_ball(rng)
    return Drawn(model, (model.center.probabilities,))


def _sample(rng: np.random.Generator) -> Drawn:
    model = draw_sample(rng)
    return Drawn(model, (model.counts / model.counts.sum(),))


def _unknown(rng: np.random.Generator) -> Drawn:
    model = draw_unknown(rng)
    while len(model.names) > 2:
        model = draw_unknown(rng)
    cells = np.zeros([len(domain) for domain in model.domains])
    for place in range(len(model.domains[0])):  # all move together, towards the ends
        cells[(place,) * cells.ndim] = 1.0
    return Drawn(model, (cells / cells.sum(),))


DISCRETE: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "JointTable": _small(_table),
    "MarkovChain": _small(_chain),
    "groups": _small(_group),
    "MarkovTree": _small(_tree),
    "Network": _small(_network),
    "ModelSet": _small(_set),
    "ConditionalBall": _small(_ball),
    "SampledTable": _small(_sample),
    "Unknown": _small(_unknown),
}
WRITTEN_OUT = {"JointTable", "MarkovChain", "groups", "MarkovTree", "Network"}
"""Families with a single law of their own, which a table can state."""
GAUSSIAN: dict[str, Callable[[np.random.Generator], Model]] = {
    "Gaussian": draw_gaussian,
    "LoewnerBall": draw_ball,
    "GaussianGroup": draw_gaussian_group,
    "GaussianSeries": draw_series,
}
ARRANGEMENTS = "alone", "beside", "in one table"
"""A model as it is, one of two independent blocks, or written out as a table with the other."""


def discrete_case(
    name: str, arrangement: str, rng: np.random.Generator
) -> tuple[Model, pdp.Linear, list[AnyTruth]]:
    """Draw a model of a family, a query, and what everybody can learn."""
    drawn = DISCRETE[name](rng)
    model, laws = drawn.model, drawn.laws
    if arrangement != "alone":
        other = DISCRETE[str(rng.choice(["JointTable", "groups"]))](rng)
        while laws[0].size * other.laws[0].size > MOST_CELLS:
            other = Drawn(
                coin := pdp.JointTable(probabilities=rng.dirichlet([2.0, 2.0]), domains=[[0, 1]]),
                (coin.probabilities,),
            )
        domains = (*model.domains, *other.model.domains)
        laws = tuple(np.multiply.outer(law, other.laws[0]) for law in laws)
        if arrangement == "in one table" and name in WRITTEN_OUT:
            model = pdp.JointTable(probabilities=laws[0] / laws[0].sum(), domains=domains)
        else:
            model = pdp.Blocks(models=[model, other.model])
    weights = rng.choice([1.0, 1.0, 1.0, 0.0, -1.0, 2.0], size=len(model.names))
    weights[rng.integers(len(weights))] = 1.0
    values = tuple(
        tuple(float(weight * value) for value in domain)
        for weight, domain in zip(weights, model.domains, strict=True)
    )
    return model, pdp.Linear(weights=weights.tolist()), [Truth(law, values) for law in laws]


def gaussian_case(
    name: str, arrangement: str, rng: np.random.Generator
) -> tuple[Model, pdp.Linear, list[AnyTruth]]:
    """The same for Gaussian tuples."""
    model = GAUSSIAN[name](rng)
    covariances = _covariances(model)
    if arrangement != "alone":
        other = draw_gaussian(rng)
        while len(other.names) + len(model.names) > max(6, len(model.names) + 1):
            other = draw_gaussian(rng)
        covariances = [_beside(one, other.covariance) for one in covariances]
        widths = np.concatenate([widths_of(model), widths_of(other)])
        if arrangement == "in one table" and isinstance(model, pdp.Gaussian):
            model = pdp.Gaussian(covariance=covariances[0], bounds=[(0.0, w) for w in widths])
        else:
            model = pdp.Blocks(models=[model, other])
    weights = rng.normal(size=len(model.names)).round(2)
    weights[0] = 1.0
    widths = widths_of(model)
    truths: list[AnyTruth] = [GaussianTruth(one, widths, weights) for one in covariances]
    return model, pdp.Linear(weights=weights.tolist()), truths


def _covariances(model: Any) -> list[FloatArray]:
    if isinstance(model, pdp.LoewnerBall):
        return [model.center.covariance]
    if isinstance(model, pdp.Gaussian):
        return [model.covariance]
    size = len(model.names)
    # The variance is not stated: an arbitrarily small one adds no noise of its own.
    if isinstance(model, pdp.GaussianSeries):
        return [1e-6 * model.correlation ** np.abs(np.subtract.outer(range(size), range(size)))]
    ends = model.correlation if isinstance(model.correlation, tuple) else (model.correlation,)
    return [1e-6 * (np.full((size, size), rho) + (1 - rho) * np.eye(size)) for rho in ends]


def _beside(one: FloatArray, other: FloatArray) -> FloatArray:
    size = len(one) + len(other)
    both = np.zeros((size, size))
    both[: len(one), : len(one)] = one
    both[len(one) :, len(one) :] = other
    return both


def random_case(
    number: int,
) -> tuple[str, str, Model, pdp.Linear, list[AnyTruth], np.random.Generator]:
    """Draw one case; numbers go through all families and arrangements in turn."""
    rng = np.random.default_rng(number)
    name = [*DISCRETE, *GAUSSIAN][number % (len(DISCRETE) + len(GAUSSIAN))]
    arrangement = ARRANGEMENTS[number // (len(DISCRETE) + len(GAUSSIAN)) % 3]
    drawn = (discrete_case if name in DISCRETE else gaussian_case)(name, arrangement, rng)
    return name, arrangement, *drawn, rng


def claims(
    model: Model, query: pdp.Linear, rng: np.random.Generator, *, ledger: bool
) -> Iterator[Claim]:
    """Yield what is said about every δ where the question is about one."""
    delta = float(10 ** rng.uniform(-7, -1.2))
    asked: dict[str, Any] = {"noise": "gaussian", "delta": delta}
    scale = float(10 ** rng.uniform(-0.3, 1.3))
    leak = pdp.leakage(model, query, scale=scale, **asked)
    assert leak.mu is not None
    yield Claim("leakage", scale, leak.mu, leak.epsilon)
    try:
        found = pdp.calibrate(model, query, epsilon=float(rng.uniform(0.3, 3.0)), **asked)
        priced = pdp.calibrate_to_accuracy(model, query, half_width=math.ceil(2 * scale), **asked)
    except pdp.CalibrationError:  # no noise is needed, or the answer reveals nothing
        return
    for said_by, cal in (("calibrate", found), ("calibrate_to_accuracy", priced)):
        yield _claim(said_by, cal.scale, cal.mu)
        yield Claim(said_by + ".leakage", cal.scale, cal.leakage.mu or 0.0, cal.leakage.epsilon)
    if ledger:
        book = pdp.Ledger(model, epsilon=2.0, delta=delta, noise="gaussian")
        data = {name: domain[0] for name, domain in zip(model.names, model.domains, strict=True)}
        for epsilon in (0.7, None):
            release = book.release(query, data, epsilon=epsilon)
            entry = book.history[-1]
            yield _claim("ledger", release.calibration.scale, entry.mu)


def _claim(said_by: str, scale: float, mu: float | None) -> Claim:
    assert mu is not None
    at_least = float(mu)
    return Claim(said_by, scale, at_least, lambda delta: gaussian_dp.epsilon_of(at_least, delta))


def excess(claim: Claim, truths: list[AnyTruth], deltas: FloatArray) -> float:
    """Return by what factor somebody exceeds a δ at the ε claimed for it; at most 1 is fine."""
    worst = 0.0
    for delta in deltas.tolist():
        epsilon = claim.epsilon(delta)
        for truth in truths if epsilon < 60 else []:
            attained = truth.delta(claim.scale, epsilon)
            worst = max(worst, (attained - _EXCESS[1]) / delta / _EXCESS[0])
    return worst


def other_deltas(rng: np.random.Generator) -> FloatArray:
    """Ten other δ, from rare to common."""
    return np.asarray(10 ** rng.uniform(-11, -0.5, size=10))
