"""The scales we compare with are the published ones, and mean what they say."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.benchmarks.baselines import inferential, lange, quilts, transport

# P(0→1), P(1→1), Markov Quilt and W∞ for a count of 100 steps at ε = 1.
PUBLISHED = [
    (0.1, 0.9, 31.74, 10),
    (0.2, 0.8, 13.08, 5),
    (0.3, 0.7, 6.72, 3),
    (0.4, 0.6, 3.57, 2),
    (0.2, 0.5, 6.14, 2),
    (0.3, 0.6, 5.13, 2),
]


def kernel(up, stay):
    return np.array([[1 - up, up], [1 - stay, stay]])


@pytest.mark.parametrize(("up", "stay", "quilt", "distance"), PUBLISHED)
def test_reference_chains(up, stay, quilt, distance):
    transition = kernel(up, stay)
    found = quilts.scale(quilts.exact_influences(transition, 100), 1.0)
    assert found == pytest.approx(quilt, abs=0.005)
    assert transport.weakest_distance(transition, 100) == distance


def test_max_influence_by_hand():
    """One step either way on a symmetric chain: log p/(1 − p), and both sides add up."""
    influences = quilts.exact_influences(kernel(0.2, 0.8), 5)
    step = math.log(0.8 / 0.2)
    assert influences[0, 0] == 0
    assert influences[1, 0] == pytest.approx(step)
    assert influences[0, 1] == pytest.approx(step)
    assert influences[1, 1] == pytest.approx(2 * step)
    assert influences[0, 2] == pytest.approx(math.log(0.68 / 0.32))


def test_without_a_useful_quilt_the_group_is_everybody():
    influences = quilts.exact_influences(kernel(0.001, 0.999), 20)
    assert quilts.scale(influences, 1.0) == 20


def test_approximate_influence_never_undershoots():
    rng = np.random.default_rng(0)
    for size in (2, 2, 2, 3, 3, 4):
        transition = rng.dirichlet(np.full(size, 3.0), size=size)
        exact = quilts.exact_influences(transition, 40)
        bound = quilts.approximate_influences(transition, 40)
        assert np.all(bound >= exact - 1e-12)
        assert np.isfinite(bound[-1, -1])


def test_approximate_influence_by_hand():
    """Second eigenvalue 0.6, rarest state ½: a gap of 2·0.4 in the reversible case."""
    bound = quilts.approximate_influences(kernel(0.2, 0.8), 10)
    decay = math.exp(-0.4 * 5)
    assert bound[0, 5] == pytest.approx(math.log((0.5 + decay) / (0.5 - decay)))
    assert bound[5, 5] == pytest.approx(3 * bound[0, 5])
    assert bound[1, 0] == math.inf


def test_inferential_budget_by_hand():
    """Two tuples with p(1 | 1) = 0.6: γ = ½·log 1.5, ε₀ = ε·(1 − γ)/2."""
    cells = np.array([[0.3, 0.2], [0.2, 0.3]])
    gamma = math.log(1.5) / 2
    influences = inferential.table_influences(cells)
    assert influences == pytest.approx(np.array([[0, gamma], [gamma, 0]]))
    assert inferential.budget(influences, 1.0) == pytest.approx((1 - gamma) / 2)
    assert inferential.budget(np.array([[0.0, 1.1], [1.1, 0.0]]), 1.0) is None


def test_inferential_chain_is_the_table_of_the_chain():
    transition = kernel(0.35, 0.55)
    law = quilts.stationary_law(transition)
    cells = np.einsum("a,ab,bc,cd->abcd", law, transition, transition, transition)
    expected = inferential.table_influences(cells)
    assert inferential.chain_influences(transition, 4) == pytest.approx(expected)


def test_inferential_budget_holds():
    rng = np.random.default_rng(1)
    for _ in range(10):
        cells = np.exp(rng.normal(scale=0.15, size=(2, 2, 2)))
        table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * 3)
        budget = inferential.budget(inferential.table_influences(table.probabilities), 1.0)
        assert budget is not None
        assert pdp.black_box_leakage(table, epsilon=budget).value <= 1.0


def test_lange_by_hand():
    assert lange.gaussian_sum(3, 0.2, 1.0, 1.0) == pytest.approx(9 / 16 + 1)
    assert lange.gaussian_sum(12, 0.1, 1.0, 1.0) is None
    assert lange.chain_count(kernel(0.4, 0.6), 5.0) == pytest.approx(1 / (5 - 4 * math.log(1.5)))
    assert lange.chain_count(kernel(0.4, 0.6), 1.0) is None


def test_transport_distance_against_all_paths():
    """W∞ by listing the paths of a short chain."""
    transition = kernel(0.3, 0.9)
    law = quilts.stationary_law(transition)
    length = 5
    paths = {}
    for path in np.ndindex(*(2,) * length):
        chance = law[path[0]] * math.prod(transition[a, b] for a, b in itertools.pairwise(path))
        paths[path] = chance
    largest = 1.0
    for place in range(length):
        quantiles = []
        for value in (0, 1):
            mass = np.zeros(length + 1)
            for path, chance in paths.items():
                if path[place] == value:
                    mass[sum(path)] += chance
            quantiles.append(np.cumsum(mass / mass.sum()))
        for level in np.linspace(1e-4, 1 - 1e-4, 4001):
            low, high = (np.searchsorted(steps, level) for steps in quantiles)
            largest = max(largest, abs(high - low))
    assert transport.weakest_distance(transition, length) == largest
