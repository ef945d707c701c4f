"""Clamped answers: the coupling bound, against regressions and against true densities."""

import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.query import Query
from tests.oracles import gaussian as oracle
from tests.oracles.adversaries import every_adversary
from tests.support.gaussian_draws import draw, joint_search
from tests.support.marks import bounds_checked, slow_after


@pytest.mark.parametrize("seed", bounds_checked(range(40), 4, quick=20))
def test_the_bound_equals_brute_force(seed):
    problem = draw(7000 + seed, smallest=2, largest=6, exponents=3)
    model, size = problem.model, len(problem.weights)
    query = pdp.Linear(weights=problem.weights, clamp=True)
    bounds = {
        (target, known): oracle.clamped_bound(
            model.covariance, problem.weights, model.widths, target, known
        )
        for target, known in every_adversary(size)
    }
    low = seed % size
    for adversaries, sizes in (
        (pdp.Adversaries.all(), range(size)),
        (pdp.Adversaries.weakest(), range(1)),
        (pdp.Adversaries.strongest(), range(size - 1, size)),
        (pdp.Adversaries.knowing(at_least=low, at_most=low), range(low, low + 1)),
    ):
        found = pdp.leakage(model, query, adversaries=adversaries)
        truth = max(bound for (_, known), bound in bounds.items() if len(known) in sizes)
        assert found.value == pytest.approx(truth, rel=1e-9)
        assert found.value >= truth * (1 - 1e-11)
    everyone = pdp.leakage(model, query)
    group = float(np.abs(problem.weights) @ model.widths)
    floor = float((np.abs(problem.weights) * model.widths).max())
    assert everyone.value <= group * (1 + 1e-9)
    assert everyone.lower == pytest.approx(floor, rel=1e-9)
    assert pdp.leakage(model, query, adversaries=pdp.Adversaries.strongest()).exact


def test_it_equals_the_linear_form_where_nothing_is_cut_or_cancels():
    covariance = 0.5 + 0.5 * np.eye(5)
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    assert pdp.leakage(model, pdp.Sum(clamp=True)).value == pytest.approx(
        pdp.leakage(model, pdp.Sum()).value, rel=1e-9
    )


def test_clamping_beats_the_linear_form_where_ranges_are_narrow():
    model = pdp.Gaussian(covariance=[[1.0, 2.4], [2.4, 9.0]], bounds=(0, 1))
    assert pdp.leakage(model, pdp.Sum()).value == pytest.approx(3.4)
    assert pdp.leakage(model, pdp.Sum(clamp=True)).value == pytest.approx(2.0)


def clamped_log_density(outputs, secret, covariance, weights, bounds, mean, scale):
    """Density of a clamped sum given x1 = secret, others unknown, by quadrature (2 or 3 tuples)."""
    grid = np.linspace(-7, 7, 301)
    mass = np.exp(-(grid**2) / 2)
    mass /= mass.sum()
    rest = len(weights) - 1
    slopes = covariance[1:, 0] / covariance[0, 0]
    root = np.linalg.cholesky(covariance[1:, 1:] - np.outer(slopes, covariance[0, 1:]))
    points = np.stack(np.meshgrid(*[grid] * rest, indexing="ij"), axis=-1).reshape(-1, rest)
    masses = np.prod(np.stack(np.meshgrid(*[mass] * rest, indexing="ij"), axis=-1), axis=-1)
    others = mean[1:] + slopes * (secret - mean[0]) + points @ root.T
    others = np.clip(others, bounds[1:, 0], bounds[1:, 1])
    answers = weights[0] * secret + others @ weights[1:]
    kernel = np.exp(-np.abs(outputs[:, np.newaxis] - answers) / scale)
    return np.log(kernel @ masses.ravel())


@pytest.mark.parametrize("seed", slow_after(8, range(25)))
def test_true_densities_of_clamped_sums_never_exceed_the_bound(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    factors = rng.normal(size=(size, size))
    covariance = factors @ factors.T + 0.1 * np.eye(size)
    weights = rng.normal(size=size)
    low = rng.normal(size=size)
    bounds = np.stack([low, low + rng.uniform(0.3, 3.0, size=size)], axis=1)
    mean = bounds.mean(axis=1) + rng.normal(size=size)
    scale = float(rng.uniform(0.3, 2.0))
    model = pdp.Gaussian(covariance=covariance, bounds=[tuple(p) for p in bounds], mean=mean)
    found = pdp.leakage(
        model, pdp.Linear(weights=weights, clamp=True), scale=scale,
        adversaries=pdp.Adversaries.exactly("x1"),
    )  # fmt: skip
    reach = float(np.abs(weights) @ np.abs(bounds).max(axis=1)) + scale
    outputs = np.linspace(-reach, reach, 61)
    secrets = np.linspace(*bounds[0], 4)
    densities = np.array(
        [
            clamped_log_density(outputs, secret, covariance, weights, bounds, mean, scale)
            for secret in secrets
        ]
    )
    assert (densities.max(axis=0) - densities.min(axis=0)).max() <= found.value * (1 + 1e-6)


def test_the_linear_form_is_no_bound_once_values_are_clamped():
    """Opposite effects cancel in a linear answer; clamping removes one of them."""
    covariance = np.array([[1.0, 3.0, -3.0], [3.0, 10.0, -9.0], [-3.0, -9.0, 10.0]])
    bounds = np.array([[0.0, 1.0], [0.0, 3.0], [50.0, 51.0]])
    mean = np.array([0.5, 1.5, 0.0])  # the third is always clamped
    weights = np.ones(3)
    model = pdp.Gaussian(covariance=covariance, bounds=[tuple(p) for p in bounds], mean=mean)
    one = pdp.Adversaries.exactly("x1")
    outputs = np.linspace(40, 65, 201)
    densities = [
        clamped_log_density(outputs, secret, covariance, weights, bounds, mean, 1.0)
        for secret in (0.0, 1.0)
    ]
    true = np.abs(densities[0] - densities[1]).max()
    assert true > pdp.leakage(model, pdp.Sum(), adversaries=one).value * 1.5
    assert true <= pdp.leakage(model, pdp.Sum(clamp=True), adversaries=one).value


def test_uncertain_covariances_can_be_clamped_too():
    problem = draw(7100, smallest=4, largest=4, exponents=0)
    model, radius = problem.model, 0.2
    query = pdp.Linear(weights=problem.weights, clamp=True)
    slope = radius / math.sqrt(1 - radius**2)
    ball = pdp.LoewnerBall(center=model, radius=radius)
    truth = max(
        oracle.clamped_bound(
            model.covariance, problem.weights, model.widths, target, known, lambda _k: slope
        )
        for target, known in every_adversary(4)
    )
    assert pdp.leakage(ball, query).value == pytest.approx(truth, rel=1e-9)
    sampled = pdp.SampledGaussian(center=model, rows=100)
    assert pdp.leakage(sampled, query).value >= pdp.leakage(model, query).value


def test_clamped_answers_of_several_queries_add_up():
    problem = draw(7101, smallest=4, largest=4, exponents=0)
    rows = np.random.default_rng(0).normal(size=(2, 4))
    found = joint_search(
        problem.model, [pdp.Linear(weights=row) for row in rows], [1.0, 2.0], clamped=True
    )
    together = np.abs(rows[0]) + np.abs(rows[1]) / 2
    truth = max(
        oracle.clamped_bound(
            problem.model.covariance, together, problem.model.widths, target, known
        )
        for target, known in every_adversary(4)
    )
    assert found.upper == pytest.approx(truth, rel=1e-9)


def test_a_large_clamped_search_obeys_the_deadline():
    sample = np.random.default_rng(0).normal(size=(120, 40))
    model = pdp.Gaussian(covariance=np.cov(sample.T), bounds=(0, 1))
    found = pdp.leakage(model, pdp.Sum(clamp=True), time_limit=0.3)
    assert 1.0 <= found.value <= 40 * (1 + 1e-9)
    one = pdp.leakage(model, pdp.Sum(clamp=True), adversaries=pdp.Adversaries.exactly("x1"))
    assert one.value <= found.value
    assert one.lower == 0.0
    assert one.witness is None


def test_without_the_strongest_adversary_nothing_is_claimed_below():
    model = pdp.Gaussian(covariance=[[1, 0.5], [0.5, 1]], bounds=(0, 1))
    weak = pdp.leakage(model, pdp.Sum(clamp=True), adversaries=pdp.Adversaries.weakest())
    assert weak.lower == 0.0
    assert weak.witness is None
    assert weak.value == pytest.approx(1.5)


def test_tables_do_not_care():
    table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2)
    assert pdp.leakage(table, pdp.Sum(clamp=True)) == pdp.leakage(table, pdp.Sum())


@pytest.mark.parametrize(
    "query",
    [
        pdp.Sum(clamp=True),
        pdp.Mean(over=["x1"], clamp=True),
        pdp.Linear(weights=[1.0, 2.0], clamp=True),
        pdp.Linear(weights={"x1": 1.0}, clamp=True),
    ],
)
def test_clamp_is_stored(query):
    assert Query.from_dict(query.to_dict()) == query
    assert query.to_dict()["clamp"] is True
    model = pdp.Gaussian(covariance=np.eye(2), bounds=(0, 1))
    from pdp_calibrate.core.query import lower

    assert lower(query, model).clamped
    assert lower(query, model).select([0]).clamped
