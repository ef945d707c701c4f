"""Uncertain covariances: Loewner balls and the bands of a sample."""

import math

import numpy as np
import pytest
from scipy.stats import binom, f as fisher, t as student

import pdp_calibrate as pdp
from pdp_calibrate.show.views import adversary_graph
from tests.oracles import gaussian as oracle
from tests.oracles.adversaries import every_adversary
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
    assert pdp.leakage(center, pdp.Sum()).value < found.value
    assert found.lower <= found.value < 2 * found.lower


def test_clamped_bands_share_the_failure_among_unknown_tuples():
    problem = draw(7100, smallest=4, largest=4, exponents=0)
    model, size = problem.model, 4
    sampled = pdp.SampledGaussian(center=model, rows=40, confidence=0.9)
    truth = max(
        oracle.clamped_bound(
            model.covariance, problem.weights, model.widths, target, known,
            one_sided(size, 40, 0.1, clamped=True),
        )
        for target, known in every_adversary(size)
    )  # fmt: skip
    found = pdp.leakage(sampled, pdp.Linear(weights=problem.weights, clamp=True)).value
    # Equal where all terms have one sign; never more, where bounds keep signs apart.
    assert found <= truth * (1 + 1e-9)
    assert found >= pdp.leakage(model, pdp.Linear(weights=problem.weights, clamp=True)).value


def test_a_ledger_uses_bands_for_every_query_at_once():
    problem = draw(33, smallest=4, largest=4, exponents=0)
    rows = np.random.default_rng(0).normal(size=(2, 4))
    sampled = pdp.SampledGaussian(center=problem.model, rows=60)
    ledger = pdp.Ledger(sampled, epsilon=1e6)
    data = dict.fromkeys(problem.model.names, 0.0)
    data |= {
        name: float(low)
        for name, (low, _) in zip(problem.model.names, problem.model.bounds, strict=True)
    }
    scales = []
    for row in rows:
        ledger.release(pdp.Linear(weights=row), data, epsilon=1.0)
        scales += ledger.history[-1].scales
        if len(scales) == 1:  # what one release leaks is what it was calibrated to
            assert ledger.spent == pytest.approx(1.0, rel=1e-6)
    leaks = oracle.leakages(
        problem.model.covariance, rows, problem.model.widths, scales, any_query(4, 60, 0.05)
    )
    assert ledger.spent == pytest.approx(max(leaks.values()), rel=1e-6)
    assert ledger.spent > 1.0


def test_pictures_show_single_adversaries_with_bands_for_all_of_them():
    sample = np.random.default_rng(3).normal(size=(30, 3)) @ [[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]]
    center = pdp.Gaussian(covariance=np.cov(sample.T), bounds=(0, 1), provenance="public")
    sampled = pdp.SampledGaussian(center=center, rows=30)
    calibration = pdp.calibrate(sampled, pdp.Sum(), epsilon=1.0)
    graph = adversary_graph(calibration)
    leaks = oracle.leakages(
        center.covariance, np.ones((1, 3)), np.ones(3), [calibration.scale], together(3, 30, 0.05)
    )
    for (target, known), leak in leaks.items():
        node = center.names[target], frozenset(center.names[k] for k in known)
        assert graph.leakages[node] == pytest.approx(leak, rel=1e-6)
    assert max(graph.leakages.values()) > calibration.leakage.value


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize(("rows", "size"), [(6, 3), (12, 4), (60, 4)])
def test_the_truth_is_covered_without_a_union_bound(clamp, rows, size):
    """The true leakage exceeds the reported one in at most 10 % of samples (chance < 1e-9)."""
    rng = np.random.default_rng(rows)
    factors = rng.normal(size=(size, size))
    covariance = factors @ factors.T + np.eye(size) / 2
    weights = np.array([1.0, -1.0, 1.0, 0.5])[:size]
    width = 2.0
    query = pdp.Linear(weights=weights, clamp=clamp)
    widths = np.full(size, width)
    truth = pdp.leakage(pdp.Gaussian(covariance=covariance, bounds=(0, width)), query).value
    if not clamp:
        leaks = oracle.leakages(covariance, weights[np.newaxis], widths, [1.0])
        assert truth == pytest.approx(max(leaks.values()), rel=1e-9)
    root = np.linalg.cholesky(covariance)
    failures = 0
    for _ in range(150):
        sample = rng.normal(size=(rows, size)) @ root.T
        center = pdp.Gaussian(covariance=np.cov(sample.T), bounds=(0, width))
        sampled = pdp.SampledGaussian(center=center, rows=rows, confidence=0.9)
        failures += pdp.leakage(sampled, query).value < truth * (1 - 1e-9)
    assert failures <= binom.isf(1e-9, 150, 0.1)
    if not clamp and rows > 6:
        assert failures > 0  # and the bands are not wider than they have to be


def test_a_query_chosen_after_looking_at_the_sample_needs_the_bands_of_a_ledger():
    """With no correlation at all, the weights that look worst are asked about."""
    rng = np.random.default_rng(8)
    size, rows, failure = 5, 25, 0.1
    narrow = wide = 0
    for _ in range(300):
        sample = np.cov(rng.normal(size=(rows, size)).T)
        inner = np.linalg.inv(
            sample[1:, 1:] - np.outer(sample[1:, 0], sample[0, 1:]) / sample[0, 0]
        )
        slopes = sample[1:, 0] / sample[0, 0]
        weights = np.concatenate([[0.0], -inner @ slopes])  # the truth is 0, the estimate far off
        slope, ratio = oracle.coefficient(sample, weights, 0, ())
        narrow += abs(slope) > one_sided(size, rows, failure)(0) * ratio
        wide += abs(slope) > any_query(size, rows, failure)(0) * ratio
    assert narrow > 60  # twice what is allowed
    assert wide <= binom.isf(1e-9, 300, failure)


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
