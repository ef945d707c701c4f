"""The certified dual: above the exact leakage, below W∞, below the group bound."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.line_program import line_bounds
from pdp_calibrate.core.line_program_kernels import widest
from pdp_calibrate.core.lipschitz import (
    _balanced,
    _bottleneck,
    lipschitz_bound,
    proposed_plan,
)
from pdp_calibrate.core.mixtures import log_densities
from tests.oracles import brute_force as oracle
from tests.oracles.transport import told_apart
from tests.support.marks import bounds_checked, slow_after


def random_case(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Two laws on atoms in one or two dimensions, in units of a scale from 0.02 to 10."""
    rng = np.random.default_rng(seed)
    size, dimension = rng.integers(2, 9), rng.integers(1, 3)
    laws = rng.dirichlet(np.full(size, 0.5), size=2)
    if rng.random() < 0.3:
        laws[0, rng.integers(size)] = 0.0
        laws[0] /= laws[0].sum()
    places = rng.normal(size=(size, dimension)) / 10 ** rng.uniform(math.log10(0.02), 1)
    return laws[0], laws[1], places


def w_infinity(first: np.ndarray, second: np.ndarray, costs: np.ndarray) -> float:
    """Return the level that the dual starts from: W∞, but for masses below 1e-9."""
    rows, columns = np.flatnonzero(first > 0), np.flatnonzero(second > 0)
    needed, _ = _bottleneck(first[rows], second[columns], costs[np.ix_(rows, columns)])
    return needed


@pytest.mark.parametrize("chunk", range(4))
def test_between_the_exact_leakage_and_w_infinity(chunk: int) -> None:
    for seed in range(50 * chunk, 50 * chunk + 50):
        first, second, places = random_case(seed)
        costs = np.abs(places[:, None] - places[None]).sum(axis=-1)
        grid = np.array(list(itertools.product(*places.T)))
        atoms = np.broadcast_to(places, (1, 2, *places.shape))
        laws = np.array([[first, second]])
        log_density, _ = log_densities(laws, atoms, grid[None], additions=10)
        exact = float((log_density[0, 0] - log_density[0, 1]).max())
        dual = lipschitz_bound(first, second, costs)
        furthest = w_infinity(first, second, costs)
        assert exact <= dual + 1e-12
        assert dual <= furthest * (1 + 1e-9) + 1e-9
        assert furthest <= costs.max()


@pytest.mark.parametrize("seed", range(20))
def test_w_infinity_on_a_line_is_the_largest_quantile_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    laws, places = rng.dirichlet(np.ones(5), size=2), rng.normal(size=5)
    costs = np.abs(places[:, None] - places)
    found = w_infinity(laws[0], laws[1], costs)
    expected = oracle.wasserstein_infinity(
        laws / 2, ((0, 1), places.tolist()), lambda x: x[1], lambda i, known: i == 0 and not known
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_dual_is_tight_on_two_points() -> None:
    """P·g/Q·g with g = (1, e^c) or (e^c, 1): the largest of both."""
    first, second, cost = np.array([0.3, 0.7]), np.array([0.6, 0.4]), 1.2
    costs = np.array([[0.0, cost], [cost, 0.0]])
    slope = math.exp(cost)
    expected = math.log((0.3 + 0.7 * slope) / (0.6 + 0.4 * slope))
    assert lipschitz_bound(first, second, costs) == pytest.approx(expected, rel=1e-6)
    assert lipschitz_bound(first, second, costs) >= expected


def test_huge_costs_stay_finite_and_certified() -> None:
    first, second = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    places = np.array([0.0, 1e5, 2e5])
    costs = np.abs(places[:, None] - places)
    bound = lipschitz_bound(first, second, costs)
    assert 1e5 - 2 <= bound <= 1e5 * (1 + 1e-12)


def test_equal_priors_tell_nothing() -> None:
    law = np.array([0.2, 0.5, 0.3])
    costs = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    assert lipschitz_bound(law, law, costs) <= 1e-12


@pytest.mark.parametrize("seed", bounds_checked(range(30), 3))
def test_both_evaluations_of_the_line_program_agree(seed):
    """NumPy through many pairs, and the compiled one for steps of one size."""
    rng = np.random.default_rng(seed)
    atoms, step = int(rng.integers(2, 30)), float(rng.choice([0.01, 0.3, 4.0]))
    rows = rng.dirichlet(np.full(atoms, 0.4), size=3)
    rows[rng.random(rows.shape) < 0.2] = 0.0
    rows[:, rng.integers(atoms)] += 0.01
    rows /= rows.sum(axis=1, keepdims=True)
    pairs = list(itertools.permutations(range(3), 2))
    first, second = (np.array([rows[pair[k]] for pair in pairs]) for k in (0, 1))
    listed = line_bounds(first, second, np.full(atoms - 1, step), additions=4)
    compiled = widest(rows, rows.sum(axis=1), atoms, step, 1e-15, 1e-300, 0.0)
    assert compiled == pytest.approx(listed.max(), rel=1e-11, abs=1e-12)
    for pair, bound in zip(pairs, listed, strict=True):
        two = rows[list(pair)]
        both = max(bound, listed[pairs.index(pair[::-1])])
        alone = widest(two, two.sum(axis=1), atoms, step, 1e-15, 1e-300, 0.0)
        assert alone == pytest.approx(both, rel=1e-11, abs=1e-12)


def _laws_and_distances(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Laws of three bits, or on a line, and distances in units of a noise."""
    rng = np.random.default_rng(seed)
    bits = np.array(list(itertools.product((0, 1), repeat=3)))
    places = bits if seed % 2 else rng.normal(size=(7, 1))
    laws = rng.dirichlet(np.full(len(places), rng.uniform(0.3, 2)), size=2)
    apart = np.abs(places[:, None] - places[None]).sum(axis=-1)
    return laws[0], laws[1], rng.uniform(0.05, 1.5) * apart


@pytest.mark.parametrize("chunk", slow_after(1, range(4)))
def test_the_bound_is_the_optimum_to_the_last_digits(chunk: int) -> None:
    """Above it, by what is charged for rounding alone: plans of the solver are 1e-12 off."""
    for seed in range(12 * chunk, 12 * chunk + 12):
        first, second, costs = _laws_and_distances(seed)
        truth = told_apart(first, second, costs)
        rarest = min(first.min(), second.min())
        charged = (len(first) + 4) * 2.0**-49 * (1 + costs.max() - 2 * math.log(rarest))
        above = Decimal(lipschitz_bound(first, second, costs)) - truth
        assert 0 <= above <= Decimal(1.1 * charged)


def test_a_plan_that_is_nearly_balanced_is_balanced() -> None:
    """What is paid for the dearest agrees to 1e-10 before, to 1e-14 after."""
    first, second, costs = _laws_and_distances(5)
    plan = proposed_plan(first, second, costs, 0.0)
    assert plan is not None
    shaken = plan * (1 + 1e-10 * np.random.default_rng(0).normal(size=plan.shape))

    def spread(moves: FloatArray) -> float:
        shares = moves / moves.sum(axis=1, keepdims=True)
        paid = (shares * first[:, None] * np.exp(costs)).sum(axis=0) / second
        dearest = paid[paid > paid.max() * (1 - 1e-7)]
        assert len(dearest) > 1
        return float(dearest.max() / dearest.min() - 1)

    assert spread(shaken) > 1e-11
    assert spread(_balanced(shaken, first, second, costs)) < 1e-14


def test_a_row_that_the_solver_lost_is_no_reason_to_fail() -> None:
    plan = np.array([[0.3, 0.2], [0.0, 0.0]])
    half = np.array([0.5, 0.5])
    np.testing.assert_array_equal(_balanced(plan, half, half, 1 - np.eye(2)), plan)
