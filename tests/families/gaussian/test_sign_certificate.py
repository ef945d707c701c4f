"""The sign certificate: when nobody known is worst."""

from fractions import Fraction

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.gaussian.blocks import instance_of
from pdp_calibrate.families.gaussian.instance import distance, precision_of, product_minus_identity
from pdp_calibrate.families.gaussian.sign_certificate import certified_upper, signs_for
from tests.oracles import gaussian as oracle
from tests.support.marks import slow_after


def certificate(model: pdp.Gaussian, query: pdp.Linear) -> float | None:
    contributions = lower(query, model)
    (problem,) = split(model, contributions, pdp.Adversaries.all())
    weights = np.column_stack(contributions.weights)
    instance = instance_of(problem, weights, list(range(len(model.names))))
    return certified_upper(instance, precision_of(instance))


def attractive(seed: int, *, push: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A covariance whose partial correlations are all ≥ 0 after signs, and weights to match."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    links = np.triu(rng.random((size, size)) * (rng.random((size, size)) < 0.6), 1)
    precision = np.diag(rng.uniform(0.2, 1.0, size=size) + (links + links.T).sum(axis=1))
    precision -= links + links.T
    precision[0, 1] = precision[1, 0] = precision[0, 1] + push
    signs = rng.choice([-1.0, 1.0], size=size)
    weights = signs * rng.uniform(0.1, 2.0, size=size)
    weights[2:] *= rng.random(size - 2) > 0.3  # zero weights leave a sign free
    return np.linalg.inv(precision) * np.outer(signs, signs), weights


@pytest.mark.parametrize("seed", slow_after(40, range(100)))
def test_it_fires_exactly_where_brute_force_agrees(seed):
    covariance, weights = attractive(seed)
    widths = np.random.default_rng(seed).uniform(0.5, 2.0, size=len(weights))
    model = pdp.Gaussian(covariance=covariance, bounds=[(0, width) for width in widths])
    query = pdp.Linear(weights=weights)
    upper = certificate(model, query)
    leaks = oracle.leakages(model.covariance, weights[np.newaxis], model.widths, [1.0])
    assert upper is not None
    assert upper == pytest.approx(max(leaks.values()), rel=1e-9)
    assert upper >= max(leaks.values()) * (1 - 1e-12)
    for (target, _), leak in leaks.items():
        assert leak <= leaks[target, ()] * (1 + 1e-9)
    assert pdp.leakage(model, query).exact


@pytest.mark.parametrize("seed", range(40))
def test_it_stays_silent_just_outside(seed):
    covariance, weights = attractive(seed, push=1.0)
    if np.linalg.eigvalsh(covariance)[0] <= 1e-3:
        return
    weights[:2] = np.where(weights[:2] == 0, 1.0, weights[:2])
    precision = np.linalg.inv(covariance)
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    if weights[0] * weights[1] * precision[0, 1] > 1e-3:
        assert certificate(model, pdp.Linear(weights=weights)) is None
    leaks = oracle.leakages(model.covariance, weights[np.newaxis], model.widths, [1.0])
    found = pdp.leakage(model, pdp.Linear(weights=weights))
    assert found.value == pytest.approx(max(leaks.values()), rel=1e-9)


def test_tuples_of_weight_zero_must_stay_in():
    """Without x3 the pair looks attractive; with it, knowing x3 is worse than knowing nobody."""
    rng = np.random.default_rng(0)
    trapped = 0
    for _ in range(300):
        factors = rng.normal(size=(3, 3))
        covariance = factors @ factors.T + 0.2 * np.eye(3)
        pair = np.linalg.inv(covariance[:2, :2])
        if pair[0, 1] > 0:
            continue  # the pair alone would not be certified
        model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
        leaks = oracle.leakages(model.covariance, np.array([[1.0, 1, 0]]), model.widths, [1.0])
        worst = max(leaks.values())
        nobody = max(leak for (_, known), leak in leaks.items() if not known)
        if worst > 1.2 * nobody:
            trapped += 1
            assert certificate(model, pdp.Linear(weights=[1, 1, 0])) is None
        found = pdp.leakage(model, pdp.Linear(weights=[1, 1, 0]))
        assert found.value == pytest.approx(worst, rel=1e-9)
    assert trapped > 5


def test_rounding_off_the_diagonal_is_charged_not_obeyed():
    """A Markov chain's precision is tridiagonal; its computed zeros have random signs."""
    size = 200
    covariance = 0.8 ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    upper = certificate(model, pdp.Linear(weights=np.ones(size)))
    middle = 1 + 2 * sum(0.8**k for k in range(1, size // 2))
    assert upper is not None
    assert middle <= upper <= middle * (1 + 1e-9) + 0.8 ** (size // 2)
    leak = pdp.leakage(model, pdp.Sum())
    assert leak.exact
    assert leak.witness.known == {}


def test_a_wrong_sign_too_small_to_see_only_widens_the_bracket():
    precision = np.array([[1.0, -0.3, 1e-8], [-0.3, 1.0, -0.3], [1e-8, -0.3, 1.0]])
    model = pdp.Gaussian(covariance=np.linalg.inv(precision), bounds=(0, 1))
    upper = certificate(model, pdp.Linear(weights=np.ones(3)))
    truth = oracle.worst_leakage_mpmath(model.covariance, np.ones(3), model.widths, 1.0)
    assert truth <= upper <= float(truth) * (1 + 1e-6)


def test_several_answers_need_a_certificate_each():
    covariance, weights = attractive(3)
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    contributions = lower(pdp.Linear(weights=weights), model)
    (problem,) = split(model, contributions, pdp.Adversaries.all())
    block = list(range(len(weights)))
    agreeing = instance_of(problem, np.array([weights, 2 * np.abs(weights) * weights]), block)
    assert certified_upper(agreeing, precision_of(agreeing)) is not None
    flipped = weights.copy()
    flipped[0] *= -1
    quarrelling = instance_of(problem, np.array([weights, flipped]), block)
    if np.any(np.abs(np.linalg.inv(covariance)[0, 1:]) > 1e-3):
        assert certified_upper(quarrelling, precision_of(quarrelling)) is None


def test_colours_follow_the_links():
    partial = np.array([[1, -0.5, 0], [-0.5, 1, 0.4], [0, 0.4, 1.0]])
    assert signs_for(partial, np.array([1.0, 0, 0])).tolist() == [1, 1, -1]
    assert signs_for(partial, np.array([1.0, 0, 2.0])) is None
    assert signs_for(np.eye(2), np.array([0.0, -1.0])).tolist() == [1, -1]


def test_slice_products_are_nearly_exact():
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(40, 60)) * 10.0 ** rng.integers(-1, 2, size=(40, 1))
    covariance = factors @ factors.T
    precision = np.linalg.inv(covariance)
    precision = precision / 2 + precision.T / 2
    residual, error = product_minus_identity(precision, covariance)

    fractions = np.vectorize(Fraction, otypes=[object])
    exact = fractions(precision) @ fractions(covariance) - fractions(np.eye(40))
    off = np.abs(exact - fractions(residual))
    assert np.all(off <= fractions(error))
    assert float(error.max()) < 1e-20 * np.abs(precision).max() * np.abs(covariance).max() + 1e-26
    largest = np.abs(np.linalg.eigvals(residual)).max()
    assert largest <= distance(covariance, precision) < 1e3 * largest
