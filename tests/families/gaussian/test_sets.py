"""Uncertain covariances: Loewner balls and the bands of a sample."""

import math

import numpy as np
import pytest
from scipy.stats import f as fisher
from scipy.stats import t as student

import pdp_calibrate as pdp
from tests.oracles import gaussian as oracle
from tests.support.gaussian_draws import draw, joint_search


def one_sided(size: int, rows: int, failure: float, *, clamped: bool = False):
    """The multiplier per number of tuples known that one claim needs, written out."""

    def multiplier(known: int) -> float:
        if known == size - 1:
            return 0.0
        freedom = rows - known - 2
        share = size - 1 - known if clamped else 1
        return student.isf(failure / share, freedom) / math.sqrt(freedom)

    return multiplier


def together(size: int, rows: int, failure: float):
    """The same for all adversaries beside each other: t-bands with a union bound."""

    def multiplier(known: int) -> float:
        if known == size - 1:
            return 0.0
        each = failure / (size**2 * math.comb(size - 1, known))
        freedom = rows - known - 2
        return student.isf(each / 2, freedom) / math.sqrt(freedom)

    return multiplier


def any_query(size: int, rows: int, failure: float):
    """The same for all linear functions too: Hotelling's T² over its degrees of freedom."""

    def multiplier(known: int) -> float:
        unknown = size - 1 - known
        if not unknown:
            return 0.0
        each = failure / (size**2 * math.comb(size - 1, known))
        left = rows - known - 2 - unknown + 1
        return math.sqrt(unknown * fisher.isf(each, unknown, left) / left)

    return multiplier


@pytest.mark.parametrize("seed", range(30))
def test_balls_equal_brute_force(seed):
    problem = draw(4000 + seed, smallest=2, largest=6, exponents=3)
    radius = float(np.random.default_rng(seed).uniform(0.02, 0.6))
    slope = radius / math.sqrt(1 - radius**2)
    size = len(problem.weights)
    ball = pdp.LoewnerBall(center=problem.model, radius=radius)
    leaks = oracle.leakages(
        problem.model.covariance, problem.weights[np.newaxis], problem.model.widths, [1.0],
        lambda known: slope if known < size - 1 else 0.0,
    )  # fmt: skip
    for adversaries, sizes in (
        (pdp.Adversaries.all(), range(size)),
        (pdp.Adversaries.weakest(), range(1)),
        (pdp.Adversaries.knowing(at_least=1), range(1, size)),
    ):
        found = pdp.leakage(ball, problem.query, adversaries=adversaries)
        truth = max(leak for (_, known), leak in leaks.items() if len(known) in sizes)
        assert found.value == pytest.approx(truth, rel=1e-9)
        assert found.value >= truth * (1 - 1e-11)
        assert found.exact


@pytest.mark.parametrize("seed", range(20))
def test_members_of_the_ball_never_exceed_it_and_one_attains_it(seed):
    problem = draw(5000 + seed, smallest=2, largest=5, exponents=2)
    rng = np.random.default_rng(seed)
    radius, size = 0.3, len(problem.weights)
    found = pdp.leakage(pdp.LoewnerBall(center=problem.model, radius=radius), problem.query)
    root = np.linalg.cholesky(problem.model.covariance)
    for trial in range(30):
        noise = rng.normal(size=(size, size))
        values, vectors = np.linalg.eigh(noise + noise.T)
        extreme = np.sign(values) if trial % 2 else rng.uniform(-1, 1, size=size)
        inside = root @ (np.eye(size) + radius * (vectors * extreme) @ vectors.T) @ root.T
        leaks = oracle.leakages(
            inside / 2 + inside.T / 2, problem.weights[np.newaxis], problem.model.widths, [1.0]
        )
        assert max(leaks.values()) <= found.value * (1 + 1e-9)
    member = found.witness.model
    inverse = np.linalg.inv(root)
    inner = np.linalg.eigvalsh(inverse @ member.covariance @ inverse.T)
    assert inner[0] >= 1 - radius - 1e-9
    assert inner[-1] <= 1 + radius + 1e-9
    attained = pdp.leakage(member, problem.query, adversaries=found.witness.adversary)
    assert attained.value == pytest.approx(found.value, rel=1e-6)


def test_a_ball_of_radius_zero_is_its_centre():
    problem = draw(17, smallest=5, exponents=0)
    ball = pdp.LoewnerBall(center=problem.model, radius=0.0)
    found, centre = pdp.leakage(ball, problem.query), pdp.leakage(problem.model, problem.query)
    assert found.value == pytest.approx(centre.value, rel=1e-9)
    assert pdp.leakage(ball, problem.query, adversaries=pdp.Adversaries.strongest()).exact


def test_larger_balls_never_leak_less():
    problem = draw(18, smallest=5, exponents=0)
    values = [
        pdp.leakage(pdp.LoewnerBall(center=problem.model, radius=r), problem.query).value
        for r in (0.0, 0.1, 0.3, 0.7, 0.95)
    ]
    assert values == sorted(values)


@pytest.mark.parametrize("seed", range(20))
def test_bands_equal_brute_force(seed):
    problem = draw(6000 + seed, smallest=2, largest=6, exponents=3)
    rows = int(np.random.default_rng(seed).integers(12, 200))
    size = len(problem.weights)
    sampled = pdp.SampledGaussian(center=problem.model, rows=rows, confidence=0.9)
    leaks = oracle.leakages(
        problem.model.covariance, problem.weights[np.newaxis], problem.model.widths, [1.0],
        one_sided(size, rows, 0.1),
    )  # fmt: skip
    found = pdp.leakage(sampled, problem.query)
    assert found.value == pytest.approx(max(leaks.values()), rel=1e-8)
    assert found.exact
    attained = pdp.leakage(found.witness.model, problem.query, adversaries=found.witness.adversary)
    assert attained.value == pytest.approx(found.value, rel=1e-6)


def test_bands_of_a_list_need_no_union_over_sign_patterns():
    problem = draw(33, smallest=4, largest=4, exponents=0)
    rows = np.random.default_rng(0).normal(size=(2, 4))
    sampled = pdp.SampledGaussian(center=problem.model, rows=60)
    leaks = oracle.leakages(
        problem.model.covariance, rows, problem.model.widths, [1.0, 2.0], one_sided(4, 60, 0.05)
    )
    found = joint_search(sampled, [pdp.Linear(weights=row) for row in rows], [1.0, 2.0])
    assert found.upper == pytest.approx(max(leaks.values()), rel=1e-8)


def test_a_set_over_many_tuples_gives_a_certified_bracket():
    sample = np.random.default_rng(0).normal(size=(300, 25))
    center = pdp.Gaussian(covariance=np.cov(sample.T), bounds=(0, 1))
    sampled = pdp.SampledGaussian(center=center, rows=300)
    found = pdp.leakage(sampled, pdp.Sum(), time_limit=0.5)
    assert pdp.leakage(center, pdp.Sum()).value < found.lower <= found.value
    assert found.value < 2 * found.lower


@pytest.mark.slow
@pytest.mark.parametrize("units", [(1, 1, 1, 1), (1, 100, 1, 100)])
def test_the_truth_is_covered(units):
    """The true leakage exceeds the reported one in at most 5 % of samples."""
    rng = np.random.default_rng(42)
    scale = np.array(units, dtype=float)
    factors = rng.normal(size=(4, 4))
    covariance = (factors @ factors.T + np.eye(4)) * np.outer(scale, scale)
    weights = np.array([1.0, -1.0, 1.0, 0.0]) / scale
    query = pdp.Linear(weights=weights)
    truth = max(oracle.leakages(covariance, weights[np.newaxis], scale, [1.0]).values())
    root = np.linalg.cholesky(covariance)
    failures = 0
    for _ in range(500):
        rows = rng.normal(size=(25, 4)) @ root.T
        center = pdp.Gaussian(covariance=np.cov(rows.T), bounds=[(0, width) for width in scale])
        bound = pdp.leakage(pdp.SampledGaussian(center=center, rows=25), query)
        failures += bound.value < truth
    assert failures <= 500 * 0.05 + 3 * math.sqrt(500 * 0.05 * 0.95)


@pytest.mark.parametrize("rows", [40, 200])
def test_the_ball_of_a_sample_covers_a_multiple_of_the_covariance(rows):
    """Not the covariance itself: at 40 rows about a quarter of all balls miss it."""
    rng = np.random.default_rng(7)
    radius = pdp.LoewnerBall.radius_for(rows=rows, tuples=4, confidence=0.95)
    misses = itself = 0
    for _ in range(500):
        sample = np.cov(rng.normal(size=(rows, 4)).T)
        values = np.linalg.eigvalsh(np.linalg.inv(sample))
        misses += values[-1] / values[0] > (1 + radius) / (1 - radius)
        itself += values[0] < 1 - radius or values[-1] > 1 + radius
    assert misses <= 25
    assert (itself > 50) == (rows == 40)


def test_leakage_does_not_change_with_a_common_factor():
    problem = draw(21, smallest=5, exponents=0)
    bigger = pdp.Gaussian(covariance=7.3 * problem.model.covariance, bounds=problem.model.bounds)
    assert pdp.leakage(bigger, problem.query).value == pytest.approx(
        pdp.leakage(problem.model, problem.query).value, rel=1e-9
    )
