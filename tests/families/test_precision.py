"""Floats against fifty digits where floats are weakest: tiny masses, huge scales, near-singularity.

The value must never be below the true leakage of the given floats, and close to it from above.
"""

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.oracles import brute_force as oracle, gaussian as gaussian_oracle
from tests.oracles.adversaries import everyone

SCALES = (1e-6, 1e-3, 0.3, 1.0, 40.0, 1e6)


def nasty_tables():
    rng = np.random.default_rng(12)
    yield "one cell of 1e-300", np.array([[0.5, 1e-300], [0.3, 0.2]])
    yield "masses from 1e-300 to 1", 10.0 ** -np.array([[0, 300, 150], [7, 290, 1]], dtype=float)
    yield "nearly deterministic", np.array([[1.0, 1e-17], [1e-16, 1.0]])
    yield "correlation ±0.999999", np.array([[1.0, 5e-7], [5e-7, 1.0]])
    yield (
        "nearly independent",
        np.outer([0.3, 0.7], [0.2, 0.8]) * (1 + 1e-15 * rng.normal(size=(2, 2))),
    )
    yield "three tuples", 10.0 ** rng.uniform(-300, 0, size=(2, 2, 2))
    yield (
        "three tuples with holes",
        10.0 ** rng.uniform(-300, 0, size=(2, 3, 2)) * (rng.random((2, 3, 2)) < 0.7),
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", dict(nasty_tables()))
def test_tables_against_fifty_digits(name, scale):
    cells = dict(nasty_tables())[name]
    table = pdp.JointTable(
        probabilities=cells / cells.sum(), domains=[list(range(size)) for size in cells.shape]
    )
    truth, _ = oracle.worst_leakage_mpmath(
        table.probabilities, table.domains, sum, scale, everyone, digits=50
    )
    found = pdp.leakage(table, pdp.Sum(), scale=scale)
    assert found.value >= truth * (1 - 1e-12)
    assert found.value == pytest.approx(float(truth), rel=1e-8, abs=1e-10)


def nasty_covariances():
    rng = np.random.default_rng(13)
    yield "correlation 0.999999", np.array([[1.0, 0.999999], [0.999999, 1.0]])
    yield "correlation −0.999999", np.array([[1.0, -0.999999], [-0.999999, 1.0]])
    yield "correlation 0.99999 of four", np.full((4, 4), 0.99999) + 1e-5 * np.eye(4)
    yield "units from 1e-8 to 1e8", _scaled(0.6 * np.ones((4, 4)) + 0.4 * np.eye(4), [-8, 0, 3, 8])
    factors = rng.normal(size=(5, 2))
    yield "two factors, little else", factors @ factors.T + 1e-6 * np.eye(5)
    yield "almost diagonal", np.eye(4) + 1e-14 * np.ones((4, 4))


def _scaled(covariance, powers):
    units = 10.0 ** np.array(powers)
    return covariance * units * units[:, np.newaxis]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", dict(nasty_covariances()))
def test_gaussians_against_fifty_digits(name, scale):
    covariance = dict(nasty_covariances())[name]
    size = len(covariance)
    widths = np.sqrt(np.diagonal(covariance))
    model = pdp.Gaussian(
        mean=np.zeros(size), covariance=covariance, bounds=[(0.0, float(width)) for width in widths]
    )
    truth = gaussian_oracle.worst_leakage_mpmath(
        model.covariance, np.ones(size), widths, scale, digits=50
    )
    found = pdp.leakage(model, pdp.Sum(), scale=scale)
    assert found.value >= truth * (1 - 1e-15)
    assert float(found.value) == pytest.approx(float(truth), rel=1e-5)


@pytest.mark.parametrize("rho", [0.999999, -0.999999])
def test_series_with_almost_perfect_memory(rho):
    series = pdp.GaussianSeries(length=4, correlation=rho, bounds=(0, 1))
    lags = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    truth = gaussian_oracle.worst_leakage_mpmath(rho**lags, np.ones(4), np.ones(4), 1.0, digits=50)
    found = pdp.leakage(series, pdp.Sum(), scale=1.0)
    assert found.value >= truth * (1 - 1e-9)  # the covariance itself is rounded here
    assert found.value == pytest.approx(float(truth), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("stay", [0.999999, 1e-6, 1 - 1e-12])
def test_chains_with_extreme_steps(stay, scale):
    """A chain that almost never, or almost always, changes its state."""
    chain = pdp.MarkovChain(
        transition=[[stay, 1 - stay], [1 - stay, stay]], length=4, initial=[0.5, 0.5]
    )
    kernel, start = chain.transition, chain.start
    cells = np.einsum("a,ab,bc,cd->abcd", start, kernel, kernel, kernel)
    truth, _ = oracle.worst_leakage_mpmath(cells, chain.domains, sum, scale, everyone, digits=50)
    found = pdp.leakage(chain, pdp.Sum(), scale=scale)
    assert found.value >= truth * (1 - 1e-12)
    assert found.value == pytest.approx(float(truth), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_groups_with_tiny_masses(scale):
    law = np.array([0.5, 1e-300, 1e-12, 0.5 - 1e-12])
    group = pdp.BinaryGroup(count_probabilities=law / law.sum())
    cells = np.empty((2, 2, 2))
    for cell in np.ndindex(2, 2, 2):
        cells[cell] = group.count_probabilities[sum(cell)] / (1, 3, 3, 1)[sum(cell)]
    truth, _ = oracle.worst_leakage_mpmath(cells, group.domains, sum, scale, everyone, digits=50)
    found = pdp.leakage(group, pdp.Sum(), scale=scale)
    assert found.value >= truth * (1 - 1e-12)
    assert found.value == pytest.approx(float(truth), rel=1e-8, abs=1e-9)
