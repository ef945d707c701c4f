"""Other libraries draw Gaussian noise of the calibrated standard deviation, never less."""

import math

import pytest

import pdp_calibrate as pdp
from pdp_calibrate_integrations import diffprivlib, dp_accounting, opendp, pipelinedp

HOME = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
CAL = pdp.calibrate(HOME, pdp.Sum(clamp=True), noise="gaussian", epsilon=1.0, delta=1e-6)
PURE = pdp.calibrate(HOME, pdp.Sum(clamp=True), epsilon=1.0)


def test_diffprivlib():
    pytest.importorskip("diffprivlib")
    mechanism = diffprivlib.gaussian(CAL)
    assert 0 <= math.sqrt(mechanism.variance(0)) / CAL.scale - 1 < 1e-9
    assert isinstance(mechanism.randomise(1.0), float)
    with pytest.raises(pdp.UnsupportedQueryError, match="gaussian"):
        diffprivlib.gaussian(PURE)


def test_pipelinedp():
    pytest.importorskip("pipeline_dp")
    ledger = pdp.Ledger(HOME, epsilon=1.5, delta=1e-6, noise="gaussian")
    mechanism = pipelinedp.gaussian(CAL, ledger=ledger)
    assert 0 < mechanism.std / CAL.scale - 1 < 1e-6
    assert len(ledger.history) == 1
    with pytest.raises(pdp.UnsupportedQueryError, match="gaussian"):
        pipelinedp.gaussian(PURE)


def test_dp_accounting():
    events = pytest.importorskip("dp_accounting")
    event = dp_accounting.gaussian_event(CAL, neighbours="substitution")
    assert event.noise_multiplier <= CAL.scale / 4
    assert event.noise_multiplier == pytest.approx(CAL.scale / 4)
    both = pdp.calibrate(
        HOME, [pdp.Sum(clamp=True), pdp.Mean(clamp=True)], noise="gaussian", mu=0.5
    )
    assert isinstance(dp_accounting.gaussian_event(both), events.ComposedDpEvent)
    with pytest.raises(pdp.UnsupportedQueryError, match="gaussian"):
        dp_accounting.gaussian_event(PURE)


def test_opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    answer = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    ledger = pdp.Ledger(HOME, epsilon=1.0, delta=1e-6, noise="gaussian")
    measurement = opendp.make_pdp_gaussian(*answer, CAL, ledger=ledger)
    assert measurement.map(4.0) == CAL.leakage.value
    assert measurement.map(4.0 * (1 + 1e-9)) > CAL.leakage.value
    assert isinstance(measurement(8.0), float)
    with pytest.raises(Exception, match="above the budget"):
        measurement(8.0)
    with pytest.raises(pdp.PdpError, match="whole numbers"):
        opendp.make_pdp_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), CAL)
    with pytest.raises(pdp.UnsupportedQueryError, match="takes Laplace noise"):
        opendp.make_pdp_laplace(*answer, CAL)
