"""δ of Gaussian noise on finite laws, against 30-digit roots and quadrature."""

import math

import numpy as np
import pytest

from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.couplings import furthest_quantiles
from pdp_calibrate.core.gaussian_mixtures import LARGEST_EPSILON, deltas, epsilon_at
from pdp_calibrate.errors import PdpError
from tests.oracles import gaussian_mixtures as oracle
from tests.support.marks import slow_after


def random_pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Laws of every kind: smooth, spiky, shifted, tilted, with holes, with tiny cells."""
    size = int(rng.integers(2, 9))
    first, second = rng.dirichlet(np.full(size, rng.choice([0.2, 0.7, 3.0])), 2)
    kind = rng.integers(6)
    if kind == 0:
        second = np.roll(first, 1)
    elif kind == 1:
        second = first ** rng.uniform(0.5, 2)
    elif kind == 2:
        first = first * (rng.random(size) < 0.7) + 1e-300
    elif kind == 3:
        second = np.where(rng.random(size) < 0.4, 0.0, second) + (first == first.max())
    return first / first.sum(), second / second.sum()


@pytest.mark.parametrize("seed", slow_after(25, range(250)))
def test_delta_encloses_roots_in_30_digits(seed):
    rng = np.random.default_rng(seed)
    first, second = random_pair(rng)
    sigma, epsilon = 10 ** rng.uniform(-0.7, 1.3), float(rng.choice([0.0, 0.1, 0.5, 1, 3]))
    places = range(len(first))
    found = deltas(np.array(places) / sigma, first[np.newaxis], second[np.newaxis], epsilon)
    truth = oracle.delta_by_roots(places, first, second, sigma, epsilon)
    assert found.lower[0] <= truth * (1 + 1e-15) + 1e-320
    assert truth <= found.upper[0] <= truth + 1e-6 * truth + 1e-15


@pytest.mark.parametrize("seed", slow_after(1, range(6)))
def test_delta_off_a_lattice_agrees_with_quadrature(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet(np.ones(6), 2)
    places = np.sort(rng.uniform(0, 5, 6))
    found = deltas(places / 1.3, first[np.newaxis], second[np.newaxis], 0.5)
    truth = oracle.delta_by_quadrature(places, first, second, 1.3, 0.5)
    assert found.upper[0] == pytest.approx(truth, rel=1e-9, abs=1e-15)
    assert found.lower[0] <= truth * (1 + 1e-12) <= found.upper[0] * (1 + 2e-12)


def test_two_normal_laws_are_gaussian_dp():
    for shift, epsilon in [(0.2, 1.0), (1.0, 0.0), (1.0, 2.5), (5.0, 1.0), (30.0, 400.0)]:
        atoms, first, second = np.array([0.0, shift]), np.array([[0.0, 1.0]]), np.array([[1.0, 0]])
        found = deltas(atoms, first, second, epsilon)
        assert found.upper[0] == pytest.approx(gaussian_dp.delta_of(shift, epsilon), rel=1e-9)
        assert found.lower[0] <= gaussian_dp.delta_of(shift, epsilon)


def test_roots_far_beyond_all_atoms_are_no_trouble():
    # The second root lies 690 deviations out: the rare atom overtakes the others there.
    first = np.array([[0.3, 0.7 - 1e-30, 1e-30]])
    second = np.array([[0.35, 0.65, 0.0]])
    found = deltas(np.arange(3) / 10, first, second, 0.01)
    truth = oracle.delta_by_roots(range(3), first[0], second[0], 10.0, 0.01)
    assert found.lower[0] <= truth <= found.upper[0] <= truth * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_many_changes_of_sign_are_cut_into_cells(epsilon):
    rng = np.random.default_rng(3)
    laws = rng.dirichlet(np.ones(40), 2)
    places = np.sort(rng.uniform(0, 4, 40))
    found = deltas(places, laws[:1], laws[1:], epsilon)
    grid = np.linspace(-12, 16, 100_001)
    density = np.exp(-0.5 * (grid[:, np.newaxis] - places) ** 2) / math.sqrt(2 * math.pi)
    h = density @ (laws[0] - math.exp(epsilon) * laws[1])
    truth = float(np.maximum(h, 0).sum() * (grid[1] - grid[0]))
    assert found.lower[0] <= truth + 1e-9
    assert found.upper[0] == pytest.approx(truth, rel=1e-6, abs=1e-9)
    assert found.upper[0] - found.lower[0] <= 1e-8 * truth + 1e-15


@pytest.mark.parametrize("seed", range(3))
def test_a_coarse_upper_end_is_never_below_the_truth(seed):
    rng = np.random.default_rng(seed)
    places = np.sort(rng.uniform(0, 3, 40))
    first, second = rng.dirichlet(np.ones(40), (2, 6))
    exact = deltas(places, first, second, 0.2)
    some = deltas(places, first, second, 0.2, enough=exact.upper * rng.choice([0.5, 1.3], 6))
    assert np.all(some.upper >= exact.lower)
    assert np.all(some.lower <= exact.upper)
    finished = some.lower == 0
    assert finished.any()
    assert np.all(some.upper[finished] <= exact.upper[finished] * 1.3)
    assert some.upper[~finished] == pytest.approx(exact.upper[~finished])


def test_equal_laws_have_no_delta_and_impossible_ones_all_of_it():
    law = np.array([[0.2, 0.5, 0.3]])
    assert deltas(np.arange(3.0), law, law, 0.0).upper[0] <= 1e-14
    assert deltas(np.arange(3.0), law, law, 0.5).upper[0] == pytest.approx(0, abs=1e-200)
    apart = deltas(np.array([0.0, 1e6]), np.array([[1.0, 0]]), np.array([[0.0, 1]]), 3.0)
    assert apart.upper[0] == 1.0
    assert apart.lower[0] == pytest.approx(1.0)


def test_the_error_of_probabilities_is_covered():
    rng = np.random.default_rng(5)
    first, second = rng.dirichlet(np.ones(5), 2)
    error = 1e-3
    worst = 0.0
    for _ in range(40):
        p = first * rng.choice([1 - error, 1 + error], 5)
        q = second * rng.choice([1 - error, 1 + error], 5)
        worst = max(worst, deltas(np.arange(5.0), p[np.newaxis], q[np.newaxis], 0.4).lower[0])
    found = deltas(np.arange(5.0), first[np.newaxis], second[np.newaxis], 0.4, error=error)
    assert found.upper[0] >= worst
    assert found.lower[0] <= worst


def test_epsilon_at_a_delta():
    rng = np.random.default_rng(7)
    atoms = np.arange(5) / 4
    for _ in range(10):
        first, second = rng.dirichlet(np.ones(5), 2)
        upper, lower = epsilon_at(atoms, first, second, above=1e-4, below=1e-4)
        assert lower <= upper <= lower + 1e-9 * upper + 1e-12
        assert deltas(atoms, first[np.newaxis], second[np.newaxis], upper).upper[0] <= 1e-4
        if lower:
            less = deltas(atoms, first[np.newaxis], second[np.newaxis], lower).lower[0]
            assert less > 1e-4
    apart = np.array([0.0, 60.0])
    upper, lower = epsilon_at(apart, np.eye(2)[1], np.eye(2)[0], above=1e-4, below=1e-4)
    assert math.isinf(upper)
    assert lower == LARGEST_EPSILON


def test_what_cannot_be_certified_raises():
    law = np.array([[0.5, 0.5]])
    for bad in (-1.0, LARGEST_EPSILON + 1, math.nan):
        with pytest.raises(PdpError, match="epsilon must lie"):
            deltas(np.arange(2.0), law, law, bad)
    with pytest.raises(PdpError, match="finite"):
        deltas(np.array([0.0, math.nan]), law, law, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_couplings_are_never_shorter_than_quantiles_in_fractions(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        size = int(rng.integers(1, 8))
        places = np.sort(rng.choice(30, size, replace=False)).astype(float)
        first, second = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])), 2)
        ours = furthest_quantiles(places, first[np.newaxis], second[np.newaxis])[0]
        truth = oracle.furthest_quantiles(places, first, second)
        assert truth <= ours <= truth * (1 + 1e-9)


def test_levels_that_are_one_up_to_rounding_are_taken_the_worse_way():
    first, second = np.array([[0.1 + 0.2, 0.7, 0.0]]), np.array([[0.0, 0.3, 0.7]])
    assert furthest_quantiles(np.arange(3.0), first, second)[0] >= 1.0
