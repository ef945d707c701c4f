"""Lemmas 1 and 2, Theorem 6, Corollary 2, Example 5 and Figures 4 (c) and (d).

The formulas are written out here and checked against numerical integration, so that they stand
beside whatever the library computes.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import log_ndtr


def random_covariance(rng, size):
    factor = rng.normal(size=(size, size + 2))
    return factor @ factor.T


def conditional(covariance, target, known):
    """Coefficient of x_i in the mean of the unknown sum, and the variance of that sum (Lemma 1)."""
    given = [target, *known]
    unknown = [j for j in range(len(covariance)) if j not in given]
    cross = covariance[np.ix_(unknown, given)]
    coefficients = cross @ np.linalg.inv(covariance[np.ix_(given, given)])
    remaining = covariance[np.ix_(unknown, unknown)] - coefficients @ cross.T
    return float(coefficients.sum(axis=0)[0]), float(remaining.sum())


def log_g(x, b):
    """Log of G(x; b) of Lemma 2, without cancellation in either tail."""
    return np.logaddexp(x + log_ndtr(-x / b - b), -x + log_ndtr(x / b - b))


def log_density(distance, deviation, scale):
    """Log density of Gaussian plus Laplace noise at this distance from its centre."""
    if deviation == 0:
        return -abs(distance) / scale - math.log(2 * scale)
    ratio = deviation / scale
    return ratio**2 / 2 + log_g(distance / scale, ratio) - math.log(2 * scale)


def leakage_at(outputs, covariance, target, known, width, scale):
    """Log density ratio of the secrets x_i = width and 0 at the outputs, x_K at its mean 0."""
    slope, variance = conditional(covariance, target, known)
    deviation = math.sqrt(max(variance, 0.0)) if len(known) < len(covariance) - 1 else 0.0
    return [
        log_density(r - (1 + slope) * width, deviation, scale) - log_density(r, deviation, scale)
        for r in outputs
    ]


def test_lemma_1_conditional_law():
    rng = np.random.default_rng(61)
    covariance, mean = random_covariance(rng, 4), rng.normal(size=4)
    point = rng.normal(size=4)
    first, second = [0, 1], [2, 3]
    coefficients = covariance[np.ix_(first, second)] @ np.linalg.inv(
        covariance[np.ix_(second, second)]
    )
    law = stats.multivariate_normal(
        mean[first] + coefficients @ (point[second] - mean[second]),
        covariance[np.ix_(first, first)] - coefficients @ covariance[np.ix_(second, first)],
    )
    joint = stats.multivariate_normal(mean, covariance).logpdf(point)
    marginal = stats.multivariate_normal(mean[second], covariance[np.ix_(second, second)]).logpdf(
        point[second]
    )
    assert law.logpdf(point[first]) == pytest.approx(joint - marginal, rel=1e-9)


def test_lemma_1_linear_function():
    rng = np.random.default_rng(62)
    covariance, mean, weights = random_covariance(rng, 2), rng.normal(size=2), np.array([2.0, -0.5])
    joint = stats.multivariate_normal(mean, covariance)
    law = stats.norm(weights @ mean, math.sqrt(weights @ covariance @ weights))
    for total in (-3.0, 0.0, 2.5):
        density, _ = integrate.quad(
            lambda x, total=total: joint.pdf([x, (total - weights[0] * x) / weights[1]]),
            -40,
            40,
            limit=400,
            points=[mean[0]],
        )
        assert density / abs(weights[1]) == pytest.approx(law.pdf(total), rel=1e-7)


@pytest.mark.parametrize("b", [0.05, 0.5, 1.0, 4.0])
def test_lemma_2(b):
    x = np.linspace(-12, 12, 2001)
    slope = np.diff(log_g(x, b)) / np.diff(x)
    assert np.all(np.diff(slope) < 1e-9)
    far = 60 + 5 * b**2
    for place, limit in ((-far, 1), (far, -1)):
        assert log_g(place + 0.5, b) - log_g(place - 0.5, b) == pytest.approx(limit, abs=1e-9)


@pytest.mark.parametrize(("deviation", "scale"), [(1.3, 0.7), (0.4, 2.0)])
def test_lemma_2_is_gaussian_plus_laplace(deviation, scale):
    for distance in (-4.0, -0.3, 0.0, 1.7, 6.0):
        density, _ = integrate.quad(
            lambda z, distance=distance: (
                stats.norm.pdf(distance - z, scale=deviation) * stats.laplace.pdf(z, scale=scale)
            ),
            -60,
            60,
            points=[0.0, distance],
            limit=400,
        )
        assert log_density(distance, deviation, scale) == pytest.approx(math.log(density), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_theorem_6(seed):
    rng = np.random.default_rng(seed)
    covariance = random_covariance(rng, 4)
    width, scale = rng.uniform(0.5, 3), rng.uniform(0.5, 3)
    for target in range(4):
        others = [j for j in range(4) if j != target]
        for size in range(4):
            for known in itertools.combinations(others, size):
                slope, variance = conditional(covariance, target, known)
                claimed = width / scale * abs(1 + slope)
                near = np.linspace(-20, 20, 81)
                assert np.max(
                    np.abs(leakage_at(near, covariance, target, known, width, scale))
                ) <= (claimed * (1 + 1e-9))
                # A limit: the supremum is reached only as r → ±∞.
                reach = 40 * (scale + math.sqrt(variance) + variance / scale) + 10 * claimed
                far = leakage_at([-reach, reach], covariance, target, known, width, scale)
                assert max(far) == pytest.approx(claimed, rel=1e-8)


def test_theorem_6_is_a_regression_coefficient():
    """1 + μ_0i is the coefficient of x_i in the regression of the sum on (x_i, x_K)."""
    rng = np.random.default_rng(66)
    covariance = random_covariance(rng, 5)
    given = [2, 0, 4]
    with_sum = covariance.sum(axis=0)[given]
    coefficients = np.linalg.solve(covariance[np.ix_(given, given)], with_sum)
    assert 1 + conditional(covariance, 2, [0, 4])[0] == pytest.approx(coefficients[0])


def test_corollary_2():
    covariance = random_covariance(np.random.default_rng(67), 5)
    for target in range(5):
        slope, _ = conditional(covariance, target, [])
        others = covariance[target].sum() - covariance[target, target]
        assert 1 + slope == pytest.approx(1 + others / covariance[target, target])


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.3, 0.9])
def test_example_5(rho):
    covariance = np.array([[1.0, rho], [rho, 1.0]])
    width, scale = 2.0, 1.5
    unknowing = max(leakage_at([-400, 400], covariance, 0, [], width, scale))
    knowing = max(leakage_at([-400, 400], covariance, 0, [1], width, scale))
    assert unknowing == pytest.approx(abs(1 + rho) * width / scale, rel=1e-9)
    assert knowing == pytest.approx(width / scale, rel=1e-9)
    assert np.sign(round(unknowing - knowing, 9)) == np.sign(rho)


def equicorrelated(size, rho):
    return np.full((size, size), rho) + (1 - rho) * np.eye(size)


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8, -0.05])
def test_figures_4c_and_4d(rho):
    """With one common correlation l = (1 + (n−1)ρ)/(1 + kρ)·M/λ, k tuples being known."""
    size = 15
    leaks = [
        abs(1 + conditional(equicorrelated(size, rho), 0, range(1, 1 + known))[0])
        for known in range(size - 1, -1, -1)
    ]
    expected = [(1 + (size - 1) * rho) / (1 + known * rho) for known in range(size - 1, -1, -1)]
    assert leaks == pytest.approx(expected)
    assert leaks[0] == pytest.approx(1)
    assert np.all(np.diff(leaks) * np.sign(rho) > 0)


def test_figure_4d_has_no_covariance_matrix_below_one_fourteenth():
    """Fifteen tuples cannot all be correlated by less than −1/14, let alone by −0.8."""
    for rho in (-0.8, -0.5, -0.2, -1 / 13):
        assert np.linalg.eigvalsh(equicorrelated(15, rho)).min() < 0
    assert np.linalg.eigvalsh(equicorrelated(15, -1 / 15)).min() > 0
