"""Correlation inside groups and along time, learned from long frames."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.learning.intraclass import intraclass


def households(rng, sizes, rho, offset=0.0):
    keys = np.repeat(np.arange(len(sizes)), sizes)
    common = np.repeat(rng.normal(size=len(sizes)), sizes) * np.sqrt(rho)
    values = common + rng.normal(size=len(keys)) * np.sqrt(1 - rho) + offset
    return pd.DataFrame({"household": keys, "income": values})


def test_intraclass_is_the_textbook_analysis_of_variance():
    rng = np.random.default_rng(0)
    frame = households(rng, rng.integers(1, 6, size=300), 0.4, offset=1e6)
    found = intraclass(frame, value="income", by="household")
    groups = frame.groupby("household")["income"]
    k, rows = len(groups), len(frame)
    means, sizes = groups.mean(), groups.size()
    between = (sizes * (means - frame["income"].mean()) ** 2).sum() / (k - 1)
    within = ((frame["income"] - groups.transform("mean")) ** 2).sum() / (rows - k)
    average = (rows - (sizes**2).sum() / rows) / (k - 1)
    truth = (between - within) / (between + (average - 1) * within)
    assert found.correlation == pytest.approx(truth, rel=1e-6)
    assert found.sizes == dict(sizes.value_counts())


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_the_interval_covers_the_correlation(rho):
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        low, high = intraclass(
            households(rng, [4] * 40, rho), value="income", by="household"
        ).interval(0.9)
        covered += low <= rho <= high
    assert stats.binomtest(covered, 300, 0.9).pvalue > 1e-3


def test_a_gaussian_group_estimator_makes_a_block_per_size():
    rng = np.random.default_rng(2)
    frame = households(rng, rng.integers(1, 5, size=2000), 0.3)
    fitted = frame.pdp.fit(pdp.GroupEstimator(bounds=(-5, 5), source="public"))
    model = fitted.model_
    assert [len(block.names) for block in model.models] == [1, 2, 3, 4]
    assert sum(model.copies) == len(frame)
    rho = fitted.intraclass_.correlation
    assert rho == pytest.approx(0.3, abs=0.05)
    point = pdp.GroupEstimator(bounds=(-5, 5), confidence=None, source="public").fit(frame)
    cal = pdp.calibrate(point.model_, pdp.Mean(clamp=True))
    assert cal.scale == pytest.approx(10 * (1 + 3 * rho) / len(frame), rel=1e-5)
    release = cal.release(frame, value="income", by="household")
    assert abs(release.value - frame["income"].mean()) < 30 * cal.scale
    wider = frame.pdp.fit(pdp.GroupEstimator(bounds=(-5, 5), confidence=0.95, source="public"))
    low, high = wider.model_.models[-1].correlation
    assert low < rho < high
    assert pdp.calibrate(wider.model_, pdp.Mean(clamp=True)).scale > cal.scale


def test_one_size_gives_one_kind_of_group_and_negative_estimates_stay_possible():
    frame = pd.DataFrame({"household": [1, 1, 2, 2, 3, 3], "income": [1, 9, 8, 1, 1, 9.5]})
    estimator = pdp.GroupEstimator(bounds=(0, 10), confidence=None, source="public")
    model = estimator.fit(frame).model_
    assert model.counts == (3,)
    assert model.models[0].correlation[0] > -1
    assert pdp.calibrate(model, pdp.Sum()).scale == pytest.approx(10, rel=1e-6)


@pytest.mark.parametrize(
    ("frame", "parameters", "message"),
    [
        ({"household": [1, 1], "income": [1.0, 2.0]}, {}, "bounds="),
        ({"household": [1, 1], "income": [1.0, 2.0]}, {"bounds": (0, 9)}, "at least two groups"),
        ({"household": [1, 2], "income": [1.0, 2.0]}, {"bounds": (0, 9)}, "at least two groups"),
        ({"household": [1, 1, 2], "income": [1.0, 1.0, 2.0]}, {"bounds": (0, 9)}, "do not vary"),
        ({"household": [1, None, 2], "income": [1.0, 1.0, 2.0]}, {"bounds": (0, 9)}, "has missing"),
        ({"household": [1, 1, 2], "income": ["a", "b", "c"]}, {"bounds": (0, 9)}, "numbers"),
        ({"household": [1, 1, 2, 2], "income": [1, 2, 3, 5.0]},
         {"bounds": (0, 9), "confidence": 1.5}, "confidence"),
        ({"household": [1, 1], "income": [1, 2]}, {"kind": "poisson"}, "kind"),
    ],
)  # fmt: skip
def test_groups_that_say_nothing_are_refused(frame, parameters, message):
    with pytest.raises(pdp.ModelError, match=message):
        pdp.GroupEstimator(**parameters, source="public").fit(pd.DataFrame(frame))


def test_a_gaussian_series_is_learned_and_released():
    rng = np.random.default_rng(3)
    rows = []
    for meter in range(20):
        load = 0.0
        for hour in range(100):
            load = 0.8 * load + 0.6 * rng.normal()
            rows.append((meter, hour, load))
    frame = pd.DataFrame(rows, columns=["meter", "hour", "load"]).sample(frac=1, random_state=0)
    estimator = pdp.GaussianSeriesEstimator(
        value="load", by="meter", order_by="hour", bounds=(-6, 6), source="public"
    )
    fitted = frame.pdp.fit(estimator)
    assert fitted.correlation_ == pytest.approx(0.8, abs=0.04)
    cal = pdp.calibrate(fitted.model_, pdp.Sum(clamp=True))
    assert cal.release(frame, value="load", by="meter", order_by="hour").value != 0
    single = frame[frame.meter == 0]
    alone = pdp.GaussianSeriesEstimator(
        value="load", order_by="hour", bounds=(-6, 6), confidence=None
    ).fit(single)
    assert isinstance(alone.model_, pdp.GaussianSeries)
    assert alone.model_.provenance == "private"


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"hour": [0, 1, 1], "load": [1.0, 2.0, 3.0]}, "two equal times"),
        ({"hour": [0, 1, 2, 3, 9], "load": [1.0, 2.0, 3.0, 1.0, 2.0]}, "gaps"),
        ({"hour": [0, 1], "load": [1.0, 2.0]}, "two pairs"),
        ({"hour": [0, 1, 2], "load": [1.0, 1.0, 1.0]}, "does not vary"),
        ({"hour": [0, 1, 2], "load": ["a", "b", "c"]}, "numbers"),
        ({"hour": [0, 1, 2], "load": [1.0, np.inf, 2.0]}, "finite"),
    ],
)
def test_series_that_say_nothing_are_refused(frame, message):
    estimator = pdp.GaussianSeriesEstimator(
        value="load", order_by="hour", bounds=(0, 9), source="public"
    )
    with pytest.raises(pdp.ModelError, match=message):
        estimator.fit(pd.DataFrame(frame))
