"""Pearson correlations of a frame: matrix, Fisher intervals, sign pattern, partial correlations."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import pdp_calibrate as pdp


def frame(rows=400, seed=1, offset=0.0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "up": common + rng.normal(size=rows) + offset,
            "too": common + rng.normal(size=rows),
            "down": -common + rng.normal(size=rows),
            "aside": rng.normal(size=rows),
        }
    )


def test_matrix_is_numpys():
    data = frame()
    found = pdp.pearson(data)
    np.testing.assert_allclose(found.matrix, np.corrcoef(data.to_numpy(), rowvar=False), atol=1e-14)
    assert list(found.matrix.columns) == list(found.matrix.index) == list(data.columns)
    assert found.rows == 400


def test_a_large_offset_keeps_its_digits():
    np.testing.assert_allclose(
        pdp.pearson(frame(offset=1e8)).matrix, pdp.pearson(frame()).matrix, atol=1e-7
    )


def test_other_frames():
    data = frame()
    other = pl.DataFrame({name: data[name].to_numpy() for name in data})
    for given in (other, other.lazy()):
        np.testing.assert_allclose(pdp.pearson(given).matrix, pdp.pearson(data).matrix, atol=1e-14)


def test_fisher_interval_is_scipys():
    data = frame(rows=40)
    lower, upper = pdp.pearson(data).interval(0.9)
    expected = stats.pearsonr(data["up"], data["down"]).confidence_interval(0.9)
    assert lower.loc["up", "down"] == pytest.approx(expected.low, rel=1e-9)
    assert upper.loc["up", "down"] == pytest.approx(expected.high, rel=1e-9)
    assert lower.loc["up", "up"] == upper.loc["up", "up"] == 1


def test_pattern():
    found = pdp.pearson(frame())
    assert found.pattern() == "hybrid"
    assert pdp.pearson(frame()[["up", "too"]]).pattern() == "positive"
    assert pdp.pearson(frame()[["up", "down"]]).pattern() == "negative"
    assert pdp.pearson(frame()[["up", "aside"]]).pattern() == "independent"


def test_pattern_of_a_weighted_query():
    """ρ' = sign(a_i·a_j)·ρ: subtracting what falls makes all terms move together."""
    found = pdp.pearson(frame())
    assert found.pattern(pdp.Linear(weights={"up": 2, "too": 1, "down": -3})) == "positive"
    assert found.pattern(pdp.Linear(weights=[1, -1, 0, 0])) == "negative"
    assert found.pattern(pdp.Sum(over=["up", "too"])) == "positive"
    assert found.pattern(pdp.Mean()) == "hybrid"
    assert found.pattern(pdp.Sum(over=["up", "aside"])) == "independent"


def test_pattern_needs_evidence():
    few = frame(rows=12)[["up", "too"]]
    assert pdp.pearson(few).pattern(confidence=1 - 1e-9) == "independent"


def test_partial_is_the_correlation_of_residuals():
    data = frame()
    found = pdp.pearson(data)
    design = np.column_stack([np.ones(len(data)), data["down"], data["aside"]])
    residuals = [
        data[name] - design @ np.linalg.lstsq(design, data[name], rcond=None)[0]
        for name in ("up", "too")
    ]
    expected = np.corrcoef(*residuals)[0, 1]
    assert found.partial("up", "too", given=["down", "aside"]) == pytest.approx(expected, rel=1e-9)
    assert found.partial("up", "too") == pytest.approx(found.matrix.loc["up", "too"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1.0, 2.0, math.nan, math.nan], "b": [1, 2, 3, 4]}, "column a has missing"),
        ({"b": [1, 2], "a": pd.array([1, None], dtype="Int64")}, "column a has missing"),
        ({"a": [1, 1, 1], "b": [1, 2, 3]}, "column a does not vary"),
        ({"a": ["x", "y"]}, "column a must hold numbers"),
        ({"a": [1.0, math.inf]}, "infinite"),
        ({}, "at least one column"),
        ({"a": np.array([], dtype=float)}, "at least one row"),
    ],
)
def test_bad_frames(data, message):
    with pytest.raises(pdp.PdpError, match=message):
        pdp.pearson(pd.DataFrame(data))


def test_bad_questions():
    found = pdp.pearson(frame())
    for call in (
        lambda: pdp.pearson([[1, 2]]),
        lambda: pdp.pearson(pd.DataFrame([[1, 2], [2, 1]], columns=["a", "a"])),
        lambda: found.interval(1.0),
        lambda: pdp.pearson(frame(rows=3)).interval(),
        lambda: found.partial("up", "up"),
        lambda: found.partial("up", "left"),
        lambda: found.pattern(pdp.Count(values={1})),
        lambda: found.pattern(pdp.Sum(over=["left"])),
        lambda: found.pattern(pdp.Linear(weights=[1, 2])),
    ):
        with pytest.raises(pdp.PdpError):
            call()
    same = pd.DataFrame({"a": [1.0, 2, 3, 5], "b": [2.0, 4, 6, 10], "c": [1.0, 0, 1, 1]})
    with pytest.raises(pdp.PdpError, match="linearly dependent"):
        pdp.pearson(same).partial("a", "c", given=["b"])
