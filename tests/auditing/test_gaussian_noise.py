"""Attacks on Gaussian noise: what is calibrated holds, less noise is caught."""

import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.auditing.events import log_ratio_at_least

HOME = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
DENSE = pdp.Gaussian(
    covariance=[[1, 0.5, 0.5], [0.5, 1, -0.3], [0.5, -0.3, 1]], bounds=[(0, 1), (0, 4), (0, 4)]
)
CASES = {
    "one answer": (HOME, pdp.Sum()),
    "two answers": (DENSE, [pdp.Sum(), pdp.Linear(weights=[1.0, -1.0, 0.5])]),
    "clamped": (HOME, pdp.Sum(clamp=True)),
}


@pytest.mark.parametrize(
    "name", ["one answer", *(pytest.param(name, marks=pytest.mark.slow) for name in [*CASES][1:])]
)
def test_less_noise_is_caught(name):
    model, query = CASES[name]
    cal = pdp.calibrate(model, query, noise="gaussian", epsilon=0.5, delta=0.05)
    honest = pdp.audit(cal, draws=4000, confidence=1 - 1e-11, seed=1)  # noise takes no seed
    assert (honest.epsilon, honest.delta) == (0.5, 0.05)
    assert not honest.is_broken
    assert pdp.audit(cal.with_noise(0.5), draws=16_000, confidence=0.99, seed=1).is_broken


def test_a_function_beside_a_delta():
    cal = pdp.calibrate(HOME, pdp.Sum(), noise="gaussian", epsilon=0.5, delta=0.05)
    rng = np.random.default_rng(1)

    def quiet(database):
        return math.fsum(database.values()) + rng.normal(scale=0.4 * cal.scale)

    options = {"witness": cal.leakage.witness, "epsilon": 0.5, "draws": 8000, "seed": 1}
    assert pdp.audit(quiet, delta=0.05, **options).is_broken
    less = pdp.audit(quiet, delta=0.4, **options)
    assert less.lower_bound < pdp.audit(quiet, **options).lower_bound
    with pytest.raises(pdp.PdpError, match="delta"):
        pdp.audit(quiet, delta=1.5, **options)


def test_the_bound_takes_delta_off_the_probability():
    with_delta = log_ratio_at_least([400, 100], [1000, 1000], 0.005, 0.1)
    without = log_ratio_at_least([400, 100], [1000, 1000], 0.005)
    assert without - 0.4 < with_delta < without
    assert log_ratio_at_least([50, 10], [1000, 1000], 0.005, 0.2) == -math.inf
