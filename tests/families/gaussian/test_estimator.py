"""GaussianEstimator: from a frame to a model, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf, oas

import pdp_calibrate as pdp
from pdp_calibrate.learning.moments import moments_of

COVARIANCE = np.array([[1.0, 0.6, 0.2], [0.6, 2.0, -0.3], [0.2, -0.3, 0.5]])
BOUNDS = {"a": (-4.0, 4.0), "b": (-6.0, 6.0), "c": (-3.0, 3.0)}


def frame(rows: int = 300, seed: int = 0, units=(1.0, 1.0, 1.0)) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.multivariate_normal([5.0, -3.0, 0.0], COVARIANCE, size=rows)
    return pd.DataFrame(values * np.array(units), columns=["a", "b", "c"])


def test_the_sample_covariance():
    data = frame()
    estimator = pdp.GaussianEstimator(covariance="empirical", confidence=None, bounds=BOUNDS)
    assert estimator.fit(data).model_.provenance == "private"
    model = estimator.set_params(source="public").fit(data).model_
    assert model.names == ("a", "b", "c")
    assert model.bounds == tuple(BOUNDS.values())
    np.testing.assert_allclose(model.covariance, np.cov(data.to_numpy().T), rtol=1e-12)
    np.testing.assert_allclose(model.mean, data.mean(), rtol=1e-12)


@pytest.mark.parametrize(("method", "function"), [("ledoit-wolf", ledoit_wolf), ("oas", oas)])
def test_shrinkage_happens_on_standardised_columns(method, function):
    data = frame(60)
    model = (
        pdp.GaussianEstimator(covariance=method, bounds=BOUNDS, source="public").fit(data).model_
    )
    standard = (data - data.mean()) / data.std()
    expected = function(standard.to_numpy())[0] * 60 / 59 * np.outer(data.std(), data.std())
    np.testing.assert_allclose(model.covariance, expected, rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diagonal(model.covariance)), data.std(), rtol=1e-9)
    other = frame(60, units=(1.0, 100.0, 1e-6))
    shrunk = (
        pdp.GaussianEstimator(covariance=method, bounds=BOUNDS, source="public").fit(other).model_
    )
    units = np.array([1.0, 100.0, 1e-6])
    np.testing.assert_allclose(shrunk.covariance, expected * np.outer(units, units), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::pdp_calibrate.PrivacyLeakWarning")
def test_auto_is_the_sample_with_its_bands_and_ledoit_wolf_without():
    data = frame(60)
    auto = pdp.GaussianEstimator(bounds=BOUNDS, confidence=None).fit(data).model_
    shrunk = pdp.GaussianEstimator(covariance="ledoit-wolf", bounds=BOUNDS).fit(data).model_
    np.testing.assert_array_equal(auto.covariance, shrunk.covariance)
    assert (auto.coverage.kind, shrunk.coverage.kind) == ("point", "no band")
    default = pdp.GaussianEstimator(bounds=BOUNDS).fit(data).model_
    assert default == pdp.GaussianEstimator(bounds=BOUNDS, confidence=0.95).fit(data).model_
    assert (default.coverage.kind, default.coverage.confidence) == ("covered", 0.95)
    few = pdp.GaussianEstimator(bounds=BOUNDS).fit(frame(4)).model_
    assert isinstance(few, pdp.Gaussian)
    assert few.coverage.kind == "no band"
    sampled = pdp.GaussianEstimator(bounds=BOUNDS, confidence=0.9).fit(data).model_
    assert isinstance(sampled, pdp.SampledGaussian)
    assert (sampled.rows, sampled.confidence) == (60, 0.9)
    np.testing.assert_allclose(sampled.center.covariance, np.cov(data.to_numpy().T), rtol=1e-9)
    with pytest.warns(pdp.PrivacyLeakWarning, match="private rows"):
        centre = pdp.leakage(sampled.center, pdp.Sum()).value
    with pytest.warns(pdp.PrivacyLeakWarning, match="private rows"):
        assert pdp.leakage(sampled, pdp.Sum()).value > centre


def test_graphical_lasso_finds_missing_links():
    model = pdp.GaussianEstimator(covariance="graphical-lasso", bounds=BOUNDS).fit(frame()).model_
    assert model.covariance[0, 1] > 0.2


@pytest.mark.parametrize("method", ["ledoit-wolf", "oas", "graphical-lasso"])
def test_confidence_refuses_shrinkage_and_says_why(method):
    with pytest.raises(pdp.ModelError, match="a shrunk one can lie"):
        pdp.GaussianEstimator(covariance=method, bounds=BOUNDS, confidence=0.95).fit(frame())


def test_too_few_rows_say_how_many_are_needed():
    with pytest.raises(pdp.ModelError, match="at least 5 rows, got 4"):
        pdp.GaussianEstimator(bounds=BOUNDS, confidence=0.95).fit(frame(4))
    with pytest.raises(pdp.ModelError, match="at least 5 rows"):
        pdp.GaussianEstimator(covariance="empirical", bounds=BOUNDS).fit(frame(4))
    with pytest.raises(pdp.ModelError, match="at least 2 rows"):
        pdp.GaussianEstimator(bounds=BOUNDS).fit(frame(1))
    pdp.GaussianEstimator(bounds=BOUNDS).fit(frame(4))


def test_missing_and_wrong_cells_name_the_column_and_never_a_value():
    data = frame(20)
    data.loc[[3, 5], "b"] = np.nan
    with pytest.raises(pdp.ModelError, match="column b has missing"):
        pdp.GaussianEstimator(bounds=BOUNDS, source="public").fit(data)
    data = frame(20)
    data.loc[0, "a"] = np.inf
    with pytest.raises(pdp.ModelError, match="column a has infinite"):
        pdp.GaussianEstimator(bounds=BOUNDS, source="public").fit(data)
    with pytest.raises(pdp.ModelError, match="column word must hold numbers"):
        pdp.GaussianEstimator(bounds=(0, 1)).fit(pd.DataFrame({"word": ["x", "y"]}))
    with pytest.raises(pdp.ModelError, match="column k does not vary"):
        pdp.GaussianEstimator(bounds=(0, 1), source="public").fit(pd.DataFrame({"k": [2.0] * 9}))
    with pytest.raises(pdp.ModelError, match="at least one column"):
        pdp.GaussianEstimator(bounds=(0, 1)).fit(pd.DataFrame())
    with pytest.raises(pdp.ModelError, match="DataFrame"):
        pdp.GaussianEstimator(bounds=(0, 1)).fit([[1, 2]])


def test_wrong_arguments():
    with pytest.raises(pdp.ModelError, match="bounds must be given"):
        pdp.GaussianEstimator().fit(frame())
    with pytest.raises(pdp.ModelError, match=r"missing: \['c'\]"):
        pdp.GaussianEstimator(bounds={"a": (0, 1), "b": (0, 1)}).fit(frame())
    with pytest.raises(pdp.ModelError, match="covariance must be one of"):
        pdp.GaussianEstimator(covariance="best", bounds=BOUNDS).fit(frame())
    with pytest.raises(pdp.ModelError, match="source"):
        pdp.GaussianEstimator(bounds=BOUNDS, source="secret").fit(frame())
    with pytest.raises(pdp.ModelError, match="confidence"):
        pdp.GaussianEstimator(bounds=BOUNDS, confidence=1.5).fit(frame())


def test_it_is_a_scikit_learn_estimator():
    estimator = pdp.GaussianEstimator(covariance="oas", bounds=BOUNDS, source="public")
    twin = clone(estimator)
    assert twin.get_params() == estimator.get_params()
    assert twin.fit(frame()) is twin
    assert twin.model_.provenance == "public"


def test_gaussian_rows_pass_and_others_are_called_out():
    public = pdp.GaussianEstimator(bounds=BOUNDS, source="public")
    fitted = clone(public).fit(frame(2000))
    assert not fitted.diagnostics_.is_plainly_wrong
    assert fitted.diagnostics_.kurtosis == pytest.approx(15, rel=0.1)
    data = frame(2000)
    data["b"] = np.exp(2 * data["b"])
    with pytest.warns(pdp.ModelFitWarning, match="plainly not Gaussian.*column: b.*not proven"):
        clone(public).fit(data)
    with warnings.catch_warnings():  # of private rows nothing is tested: a warning is an output
        warnings.simplefilter("error")
        assert pdp.GaussianEstimator(bounds=BOUNDS).fit(data).diagnostics_ is None
    data = frame(2000)
    data["c"] = np.random.default_rng(0).standard_t(3, size=2000)
    with pytest.warns(pdp.ModelFitWarning, match="tails: c"):
        clone(public).fit(data)


@pytest.mark.slow
def test_diagnostics_rarely_cry_wolf():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(100):
            pdp.GaussianEstimator(bounds=BOUNDS, source="public").fit(frame(100, seed))


def test_too_few_rows_give_no_diagnostics():
    assert pdp.GaussianEstimator(bounds=BOUNDS).fit(frame(10)).diagnostics_ is None


def test_many_columns_skip_the_third_moments():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(400, 41)), columns=[f"c{k}" for k in range(41)])
    found = pdp.GaussianEstimator(bounds=(-4, 4), source="public").fit(data).diagnostics_
    assert found.skewness is None
    assert not found.is_plainly_wrong


def test_large_means_cost_no_digits():
    data = frame(200)
    shifted = moments_of(data + 1e9)
    np.testing.assert_allclose(shifted.covariance, moments_of(data).covariance, rtol=1e-6)


def test_a_private_fit_warns_at_calibration():
    model = pdp.GaussianEstimator(bounds=BOUNDS).fit(frame()).model_
    with pytest.warns(pdp.PrivacyLeakWarning):
        calibration = pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=1.0)
    assert "covariance" not in calibration.to_json()
