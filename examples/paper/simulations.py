"""The numbers behind the paper's examples and its Figures 4 and 5."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.paper.graph import is_edge

AVERAGES = (0.2, 0.5, 0.8)
SPREADS = (2.0, 10.0, 2000.0)
"""a + b of the beta law of the edges; the paper does not give it. 2: wide; 2000: nearly equal."""
NEGATIVE = (-0.02, -0.04, -0.06, -0.07)
"""Common correlations that fifteen tuples can have: none is below −1/14."""


def beta_graph(
    rng: np.random.Generator, size: int, average: float, spread: float
) -> pdp.paper.WeightedHierarchicalGraph:
    """Return a graph with beta-distributed edges of this average, LS_i/λ = 1."""
    there = is_edge(size)
    edges = np.full(there.shape, np.nan)
    mean = abs(average)
    drawn = rng.beta(mean * spread, (1 - mean) * spread, size=int(there.sum()))
    edges[there] = np.sign(average) * drawn
    return pdp.paper.WeightedHierarchicalGraph(dict.fromkeys(range(size), 1.0), edges)


def examples() -> pd.DataFrame:
    """Return what the paper prints for its examples, and what is true."""
    both = [[0, 1], [0, 1]]
    nobody, second = pdp.Adversaries.exactly("x1"), pdp.Adversaries.exactly("x1", known=["x2"])

    def leak(cells: list[list[float]], adversary: pdp.Adversaries = nobody) -> float:
        table = pdp.JointTable(probabilities=cells, domains=both)
        return pdp.leakage(table, pdp.Sum(), scale=1.0, adversaries=adversary).value

    def belief(cells: list[list[float]]) -> float:
        table = pdp.JointTable(probabilities=cells, domains=both)
        found = pdp.posterior(
            table, pdp.Sum(), scale=1.0, target="x1", output=2.0, prior={0: 0.5, 1: 0.5}
        )
        return found.posterior[1]

    rows = [
        (
            "Example 1, s1 = s2: P(s1 = 1 | r = 2), knowing nothing",
            "high",
            belief([[0.5, 0], [0, 0.5]]),
        ),
        ("Example 1, independent", "above one half", belief([[0.25, 0.25], [0.25, 0.25]])),
        ("Example 1, s1 = 1 − s2", "0.5", belief([[0, 0.5], [0.5, 0]])),
        ("Example 2 (a), A(1, ∅)", "1.19", leak([[0.3, 0.2], [0.2, 0.3]])),
        ("Example 2 (a), A(1, {2})", "1", leak([[0.3, 0.2], [0.2, 0.3]], second)),
        ("Example 2 (b), A(1, ∅)", "0.82", leak([[0.2, 0.3], [0.3, 0.2]])),
        ("Example 3 (a'), A(1, ∅)", "1.95", leak([[0.49, 0.01], [0.01, 0.49]])),
        ("Example 3 (b'), A(1, ∅)", "0.05", leak([[0.01, 0.49], [0.49, 0.01]])),
    ]
    for name, printed, second_domain in (("(c)", "2", [0, 1]), ("(d)", "6", [0, 5])):
        table = pdp.JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[[0, 1], second_domain])
        value = pdp.leakage(table, pdp.Sum(), scale=1.0, adversaries=nobody).value
        rows.append((f"Example 4 {name}, A(1, ∅)", printed, value))
    pair = pdp.Gaussian(mean=[0, 0], covariance=[[1, 0.5], [0.5, 1]], bounds=(0, 1))
    value = pdp.leakage(pair, pdp.Sum(), scale=1.0, adversaries=nobody).value
    rows.append(("Example 5 with ρ = 0.5: (M/λ)·|1 + ρ|", "1.5", value))
    return pd.DataFrame(rows, columns=["case", "printed", "exact"])


def figure_4(size: int, repetitions: int) -> pd.DataFrame:
    """Return leakage against layer: the paper's graphs, and the exact engine on real laws."""
    rng = np.random.default_rng(4)
    rows: list[tuple[str, float, float, int, float]] = []
    for spread in SPREADS:
        for average in (*AVERAGES, *(-mean for mean in AVERAGES)):
            layers = np.mean(
                [
                    pdp.paper.full_space_search(beta_graph(rng, size, average, spread)).layers
                    for _ in range(repetitions)
                ],
                axis=0,
            )
            rows += [("graph", average, spread, k + 1, float(v)) for k, v in enumerate(layers)]
    for rho in (*AVERAGES, *NEGATIVE):
        model = pdp.Gaussian.from_correlation(
            np.full((size, size), rho) + (1 - rho) * np.eye(size), std=1.0, bounds=(0, 1)
        )
        for unknown in range(1, size + 1):
            adversary = pdp.Adversaries.exactly("x1", known=model.names[1 : size + 1 - unknown])
            leak = pdp.leakage(model, pdp.Sum(), scale=1.0, adversaries=adversary)
            rows.append(("Gaussian", rho, np.nan, unknown, leak.value))
    for rho, group in binary_groups(size):
        for unknown in range(1, size + 1):
            known = size - unknown
            adversaries = pdp.Adversaries.knowing(at_least=known, at_most=known)
            leak = pdp.leakage(group, pdp.Sum(), scale=1.0, adversaries=adversaries)
            rows.append(("exact, yes/no", rho, np.nan, unknown, leak.value))
    return pd.DataFrame(rows, columns=["kind", "correlation", "spread", "layer", "leakage"])


def binary_groups(size: int) -> list[tuple[float, pdp.BinaryGroup]]:
    """Return groups of yes/no tuples with their common Pearson correlation.

    Positive: a shared rate drawn from a beta law. Negative: mostly half of the members say yes.
    """
    counts = np.arange(size + 1)
    laws = [
        stats.betabinom.pmf(counts, size, (1 / rho - 1) / 2, (1 / rho - 1) / 2) for rho in AVERAGES
    ]
    fair = stats.binom.pmf(counts, size, 0.5)
    for weight in (0.3, 0.9):  # how often exactly half (rounded either way) say yes
        half = np.where((counts == size // 2) | (counts == (size + 1) // 2), 1.0, 0.0)
        laws.append(weight * half / half.sum() + (1 - weight) * fair)
    return [
        (_common_correlation(law / law.sum()), pdp.BinaryGroup(count_probabilities=law / law.sum()))
        for law in laws
    ]


def _common_correlation(law: npt.NDArray[np.float64]) -> float:
    size = len(law) - 1
    counts = np.arange(size + 1)
    mean = float(counts @ law) / size
    both = float((counts * (counts - 1)) @ law) / (size * (size - 1))
    return (both - mean**2) / (mean * (1 - mean))


def figure_5(largest: int, repetitions: int) -> pd.DataFrame:
    """Return value and CPU time of both searches, and of the exact engine on random tables."""
    rng = np.random.default_rng(5)
    rows: list[tuple[str, int, float, float, float]] = []
    for size in range(1, largest + 1):
        for average in AVERAGES:
            for _ in range(repetitions):
                graph = beta_graph(rng, size, average, 2.0)
                for name, search in SEARCHES.items():
                    value, seconds = timed(lambda: search(graph).value)  # noqa: B023
                    rows.append((name, size, average, value, seconds))
        for _ in range(3):
            cells = rng.dirichlet(np.ones(2**size)).reshape((2,) * size)
            table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * size)
            value, seconds = timed(lambda: pdp.leakage(table, pdp.Sum(), scale=1.0).value)  # noqa: B023
            rows.append(("exact, random table", size, np.nan, value, seconds))
    return pd.DataFrame(rows, columns=["search", "tuples", "correlation", "leakage", "seconds"])


SEARCHES: dict[str, Callable[[pdp.paper.WeightedHierarchicalGraph], pdp.paper.Search]] = {
    "full": pdp.paper.full_space_search,
    "fast": pdp.paper.fast_search,
}


def timed(work: Callable[[], float]) -> tuple[float, float]:
    """Return the result and the CPU seconds it took."""
    begun = time.process_time()
    value = work()
    return value, time.process_time() - begun


def too_low(tables: int) -> float:
    """Return how often the full search's answer is below the truth on random tables."""
    rng = np.random.default_rng(6)
    low = 0
    for _ in range(tables):
        cells = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
        table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 3)
        found = pdp.paper.full_space_search(pdp.paper.graph(table, pdp.Sum(), 1.0)).value
        low += found < pdp.leakage(table, pdp.Sum(), scale=1.0).lower - 1e-9
    return low / tables
