"""The oracle against values known by hand, and against facts it does not use."""

import itertools
import math
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from tests.oracles import brute_force as oracle
from tests.oracles.adversaries import everyone

BITS = (0, 1)
NOBODY: frozenset[int] = frozenset()


def total(database: tuple[Any, ...]) -> Any:
    """The sum query, for floats and mpf alike."""
    return sum(database)


def curved(database: tuple[Any, ...]) -> Any:
    """A query neither linear nor symmetric, for floats and mpf alike."""
    return database[0] * database[1] - 2 * database[-1] + database[0]


def ignorant(_target: int, known: frozenset[int]) -> bool:
    """Admit only those who know nothing."""
    return not known


def ignorant_about_first(target: int, known: frozenset[int]) -> bool:
    """Admit only the one who attacks the first tuple knowing nothing."""
    return target == 0 and not known


def random_problem(seed: int) -> tuple[oracle.Table, list[list[float]]]:
    """A random joint table with some zeros, and random domains, of two or three tuples."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=rng.integers(2, 4))
    table = rng.dirichlet(np.full(math.prod(sizes), 0.5)).reshape(sizes)
    table[rng.random(table.shape) < 0.2] = 0.0
    domains = [sorted(rng.normal(scale=2.0, size=size).tolist()) for size in sizes]
    return table / table.sum(), domains


COUNTEREXAMPLE = np.array([[0.0, 0.5, 0.0], [0.25, 0.0, 0.25]])
COUNTEREXAMPLE_DOMAINS = (BITS, (-1, 0, 1))


@pytest.mark.parametrize(
    ("table", "second_domain", "leakage", "distance"),
    [
        ([[0.3, 0.2], [0.2, 0.3]], (0, 1), 1.1853759, 2.0),
        ([[0.2, 0.3], [0.3, 0.2]], (0, 1), 0.8146241, 1.0),
        ([[0.49, 0.01], [0.01, 0.49]], (0, 1), 1.9534887, 2.0),
        ([[0.01, 0.49], [0.49, 0.01]], (0, 1), 0.0465113, 1.0),
        ([[0.25, 0.25], [0.25, 0.25]], (0, 1), 1.0, 1.0),
        ([[0.5, 0.0], [0.0, 0.5]], (0, 1), 2.0, 2.0),
        ([[0.5, 0.0], [0.0, 0.5]], (0, 5), 6.0, 6.0),
        (COUNTEREXAMPLE, (-1, 0, 1), 1.4337808, 2.0),
    ],
)
def test_leakage_and_wasserstein_distance_by_hand(
    table: Any, second_domain: tuple[int, ...], leakage: float, distance: float
) -> None:
    cells, domains = np.array(table), (BITS, second_domain)
    found = oracle.adversary_leakage(cells, domains, total, 1.0, 0, NOBODY)
    assert found == pytest.approx(leakage, abs=5e-8)
    assert oracle.wasserstein_infinity(cells, domains, total, ignorant_about_first) == distance


def test_the_counterexample_is_attained_at_two() -> None:
    value, witness = oracle.worst_leakage(
        COUNTEREXAMPLE, COUNTEREXAMPLE_DOMAINS, total, 1.0, ignorant_about_first
    )
    assert value == pytest.approx(math.log((1 + math.exp(2)) / 2), rel=1e-14)
    assert witness == (0, NOBODY, {}, (1, 0), 2)


@pytest.mark.parametrize("table", [[[0.3, 0.2], [0.2, 0.3]], [[0.5, 0.0], [0.0, 0.5]]])
def test_the_strongest_adversary_sees_local_sensitivity(table: list[list[float]]) -> None:
    """Also over databases of probability zero."""
    probabilities, known = np.array(table), frozenset({1})
    assert oracle.adversary_leakage(probabilities, (BITS, BITS), total, 1.0, 0, known) == 1.0
    assert oracle.adversary_leakage(probabilities, (BITS, (0, 5)), total, 4.0, 0, known) == 0.25


def test_local_sensitivity_is_a_maximum_over_all_other_values() -> None:
    """The product query moves most at the largest other value, here of probability zero."""
    table = np.array([[0.5, 0.0], [0.5, 0.0]])
    value, witness = oracle.worst_leakage(
        table, (BITS, (0, 7)), math.prod, 2.0, lambda i, known: i == 0 and known == {1}
    )
    assert value == 3.5
    assert witness == (0, frozenset({1}), {1: 7}, (0, 1), 0)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_known_conditions_the_table(seed: int) -> None:
    """Knowing one tuple of three is knowing nothing in the worst slice of the table."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(12)).reshape(3, 2, 2)
    domains = [[-1.0, 0.5, 2.0], [0.0, 1.0], [0.0, 3.0]]
    slices = []
    for k, value in enumerate(domains[0]):

        def rest(database: tuple[Any, ...], value: float = value) -> Any:
            return curved((value, *database))

        slices.append(oracle.adversary_leakage(table[k], domains[1:], rest, 1.0, 0, NOBODY))
    found = oracle.adversary_leakage(table, domains, curved, 1.0, 1, frozenset({0}))
    assert found == pytest.approx(max(slices), rel=1e-12)


def test_every_admitted_adversary_is_tried_once() -> None:
    seen = []

    def remember(target: int, known: frozenset[int]) -> bool:
        seen.append((target, known))
        return False

    value, witness = oracle.worst_leakage(np.full((2, 2, 2), 1 / 8), [BITS] * 3, sum, 1.0, remember)
    assert (value, witness) == (0.0, None)
    assert len(seen) == len(set(seen)) == 3 * 4
    assert all(target not in known for target, known in seen)


def test_no_pair_of_secrets_leaks_nothing() -> None:
    certain = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert oracle.worst_leakage(certain, (BITS, BITS), total, 1.0, ignorant) == (0.0, None)
    assert oracle.wasserstein_infinity(certain, (BITS, BITS), total, ignorant) == 0.0
    with pytest.raises(KeyError):
        oracle.log_density_ratio(certain, (BITS, BITS), total, 1.0, (0, NOBODY, {}, (0, 1), 0.0))


def test_a_constant_query_leaks_zero_with_a_witness() -> None:
    table = np.full((2, 2), 0.25)
    value, witness = oracle.worst_leakage(table, (BITS, BITS), lambda _: 3.0, 1.0, everyone)
    assert value == 0.0
    assert witness is not None


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_no_output_exceeds_the_atoms(seed: int, scale: float) -> None:
    """The maximum over a dense grid, far tails and the atoms themselves, is that of the oracle."""
    table, domains = random_problem(seed)
    answers = [curved(database) for database in itertools.product(*domains)]
    low, high = min(answers), max(answers)
    grid = np.linspace(low - 2, high + 2, 4001)
    grid = np.concatenate([grid, [low - 1e3, high + 1e3], answers])
    leakage = oracle.adversary_leakage(table, domains, curved, scale, 0, NOBODY)
    shaped = np.array(answers).reshape(table.shape)
    possible = [k for k in range(len(domains[0])) if table[k].sum() > 0]
    log_densities = [dense_log_density(table[k], shaped[k], scale, grid) for k in possible]
    pairs = itertools.permutations(log_densities, 2)
    on_grid = max(float(np.max(first - second)) for first, second in pairs)
    assert leakage == pytest.approx(on_grid, rel=1e-10, abs=1e-10)


def dense_log_density(
    weights: oracle.Table, answers: oracle.Table, scale: float, grid: oracle.Table
) -> oracle.Table:
    """Log density of one conditional mixture on a grid, by numpy."""
    exponents = -np.abs(grid[:, None] - answers.ravel()[None, :]) / scale
    with np.errstate(divide="ignore"):
        exponents = exponents + np.log(weights.ravel() / weights.sum())[None, :]
    result: oracle.Table = np.logaddexp.reduce(exponents, axis=1)
    return result


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_floats_agree_with_mpmath(seed: int, scale: float) -> None:
    table, domains = random_problem(seed)
    for admits in (everyone, ignorant):
        value, _ = oracle.worst_leakage(table, domains, curved, scale, admits)
        exact, _ = oracle.worst_leakage_mpmath(table, domains, curved, scale, admits)
        assert value == pytest.approx(float(exact), rel=1e-11)


def test_mpmath_carries_its_digits() -> None:
    exact, witness = oracle.worst_leakage_mpmath(
        COUNTEREXAMPLE, COUNTEREXAMPLE_DOMAINS, total, 1.0, ignorant_about_first
    )
    with mpmath.workdps(60):
        expected = mpmath.log((1 + mpmath.exp(2)) / 2)
        assert abs(exact - expected) < mpmath.mpf(10) ** -58
    assert witness == (0, NOBODY, {}, (1, 0), 2)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("admits", [everyone, ignorant])
def test_the_witness_attains_the_value(seed: int, admits: oracle.Admits) -> None:
    table, domains = random_problem(seed)
    value, witness = oracle.worst_leakage(table, domains, curved, 0.7, admits)
    assert witness is not None
    target, known, known_values, _, _ = witness
    assert known == set(known_values)
    assert oracle.log_density_ratio(table, domains, curved, 0.7, witness) == value
    assert oracle.adversary_leakage(table, domains, curved, 0.7, target, known) == value


def test_extreme_scales_stay_finite_and_reach_their_limits() -> None:
    """Times the scale: distance between supports when small, mean distances when large."""
    for scale in (1e-300, 1e-100, 1e-10):
        small = oracle.adversary_leakage(
            COUNTEREXAMPLE, COUNTEREXAMPLE_DOMAINS, total, scale, 0, NOBODY
        )
        assert small * scale == pytest.approx(2.0, rel=1e-9)
    large = oracle.adversary_leakage(COUNTEREXAMPLE, COUNTEREXAMPLE_DOMAINS, total, 1e6, 0, NOBODY)
    assert large * 1e6 == pytest.approx(1.0, rel=1e-5)
    for scale in (1e-300, 1e300):
        assert math.isfinite(
            oracle.worst_leakage(COUNTEREXAMPLE, COUNTEREXAMPLE_DOMAINS, total, scale, everyone)[0]
        )
        assert mpmath.isfinite(
            oracle.worst_leakage_mpmath(
                COUNTEREXAMPLE, COUNTEREXAMPLE_DOMAINS, total, scale, everyone
            )[0]
        )


def test_wasserstein_of_the_strongest_is_local_sensitivity() -> None:
    table = np.array([[0.5, 0.0], [0.5, 0.0]])
    strongest = oracle.wasserstein_infinity(
        table, (BITS, (0, 7)), math.prod, lambda i, known: i == 0 and known == {1}
    )
    assert strongest == 7.0


@pytest.mark.parametrize("seed", range(20))
def test_wasserstein_is_the_best_matching(seed: int) -> None:
    """With four equal quarters under each secret, try all ways to match them."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, 5, size=(2, 4))
    answers = rng.normal(size=(2, 5))
    table = np.zeros((2, 5))
    for secret in BITS:
        np.add.at(table[secret], picks[secret], 1 / 8)
    first, second = answers[0][picks[0]], answers[1][picks[1]]
    best = min(np.max(np.abs(first - np.array(p))) for p in itertools.permutations(second))
    found = oracle.wasserstein_infinity(
        table, (BITS, range(5)), lambda x: float(answers[x]), ignorant_about_first
    )
    assert found == best


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_leakage_is_at_most_wasserstein_over_scale(seed: int, scale: float) -> None:
    table, domains = random_problem(seed)
    for admits in (everyone, ignorant):
        leakage, _ = oracle.worst_leakage(table, domains, curved, scale, admits)
        distance = oracle.wasserstein_infinity(table, domains, curved, admits)
        assert leakage <= distance / scale * (1 + 1e-12)
