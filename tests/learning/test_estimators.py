"""Estimators and the DataFrame methods."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import pdp_calibrate as pdp

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

FRAME = pd.DataFrame({"a": [0, 0, 1, 1, 1], "b": ["x", "x", "y", "y", "x"]})


def test_the_table_is_smoothed_counts():
    model = pdp.TableEstimator(smoothing=0.5, source="public").fit(FRAME).model_
    assert model.names == ("a", "b")
    assert model.domains == ((0, 1), ("x", "y"))
    assert model.probabilities == pytest.approx(np.array([[2.5, 0.5], [1.5, 2.5]]) / 7)
    assert model.provenance == "public"


def test_a_private_source_is_the_default_and_warns():
    model = FRAME.pdp.fit(pdp.TableEstimator()).model_
    assert model.provenance == "private"
    with pytest.warns(pdp.PrivacyLeakWarning):
        pdp.calibrate(model, pdp.Count(values={1}))


def test_no_unseen_cell_counts_as_impossible():
    frame = pd.DataFrame({"a": [0, 1], "b": [0, 1]})
    for rows, members in ((frame, 2), (pd.concat([frame] * 30), 1)):
        model = pdp.TableEstimator(domains={"a": [0, 1, 2]}).fit(rows).model_
        assert model.domains[0] == (0, 1, 2)
        tables = model.models if members == 2 else (model,)
        assert len(tables) == members
        assert all((table.probabilities > 0).all() for table in tables)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.iloc[:0], "at least one row"),
        (pd.DataFrame(index=[1, 2]), "at least one column"),
        (pd.DataFrame({"a": [1.0, np.nan, np.nan]}), "column a has missing values"),
        (pd.DataFrame({"a": ["x", None]}), "column a has missing values"),
        (pd.DataFrame({f"c{k}": [0, 1] for k in range(25)}), "at most 2\\^24"),
        ([[1, 2]], "DataFrame is needed"),
    ],
)
def test_frames_that_do_not_work_are_refused(frame, message):
    with pytest.raises(pdp.ModelError, match=message):
        pdp.TableEstimator(source="public").fit(frame)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"smoothing": 0}, "smoothing must be positive"),
        ({"smoothing": -1.0}, "smoothing must be positive"),
        ({"structure": "tree"}, "structure"),
        ({"source": "secret"}, "source"),
        ({"domains": {"a": [0]}}, "column a holds a value outside"),
    ],
)
def test_bad_parameters_are_refused_when_fitting(parameters, message):
    with pytest.raises(pdp.ModelError, match=message):
        pdp.TableEstimator(**{"source": "public", **parameters}).fit(FRAME)


def test_estimators_clone_and_keep_their_parameters():
    estimator = pdp.TableEstimator(smoothing=2.0, source="public")
    fitted = FRAME.pdp.fit(estimator)
    assert not hasattr(estimator, "model_")
    assert clone(fitted).get_params() == estimator.get_params()


def test_the_accessor_speaks_for_the_library():
    model = pdp.TableEstimator(source="public").fit(FRAME).model_
    count = FRAME.pdp.count("b", values={"x"}, model=model, epsilon=2.0)
    assert isinstance(count.value, int)
    assert count.calibration.epsilon == 2.0
    total = FRAME.pdp.sum(["a"], model=model, epsilon=1.0)
    assert isinstance(total.value, int)
    mean = FRAME.pdp.mean("a", model=model, epsilon=1.0)
    assert mean.calibration.rows == 5
    assert mean.calibration.scale == pytest.approx(total.calibration.scale / 5, rel=1e-8)
    cal = FRAME.pdp.calibrate(
        pdp.Mean(over="a"), model=model, adversaries=pdp.Adversaries.all(), epsilon=1.0
    )
    assert FRAME.pdp.release(cal).calibration is cal
    leak = FRAME.pdp.leakage(pdp.Mean(over="a"), model=model, scale=cal.scale)
    assert leak.value == pytest.approx(1.0, rel=1e-8)


def test_values_that_do_not_compare_are_ordered_as_text():
    frame = pd.DataFrame({"a": [0, "x", 1.5]}, dtype=object)
    assert set(pdp.TableEstimator().fit(frame).model_.domains[0]) == {0, 1.5, "x"}
