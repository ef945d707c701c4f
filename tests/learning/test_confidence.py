"""What `confidence=` means in every estimator: a default that can be told from the same number."""

from __future__ import annotations

import pickle

import pytest
from sklearn.base import clone

import pdp_calibrate as pdp
from pdp_calibrate.learning.base import CONFIDENCE, confidence_for

ESTIMATORS = [
    pdp.GaussianEstimator,
    pdp.GroupEstimator,
    pdp.MarkovChainEstimator,
    lambda **given: pdp.GaussianSeriesEstimator(value="x", **given),
]


@pytest.mark.parametrize("make", ESTIMATORS)
def test_the_default_is_95_percent_and_stays_the_default_in_clones(make: object) -> None:
    estimator = make()  # type: ignore[operator]
    assert estimator.confidence == 0.95
    pickled = pickle.loads(pickle.dumps(estimator))  # noqa: S301 - our own bytes
    for copy in (clone(estimator), pickled):
        assert copy.confidence is CONFIDENCE
    assert clone(make(confidence=0.95)).confidence is not CONFIDENCE  # type: ignore[operator]
    assert "confidence" not in repr(estimator)
    assert pdp.TableEstimator().confidence is None


def test_with_epsilon_a_fit_without_confidence_is_refused_where_a_band_exists() -> None:
    with pytest.raises(pdp.ModelError, match="give confidence="):
        confidence_for(None, epsilon=1.0)
    assert confidence_for(None, epsilon=None) is None
    assert confidence_for(CONFIDENCE, epsilon=1.0) == 0.95


def test_where_no_band_exists_only_the_default_and_none_are_taken() -> None:
    for epsilon in (None, 1.0):
        assert confidence_for(CONFIDENCE, epsilon=epsilon, no_band="why.") is None
        assert confidence_for(None, epsilon=epsilon, no_band="why.") is None
        with pytest.raises(pdp.ModelError, match=r"0\.95 cannot be kept here: why\."):
            confidence_for(0.95, epsilon=epsilon, no_band="why.")
