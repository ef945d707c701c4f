"""Releases: the right law of noise, on the right answer, with nothing else on board."""

import inspect
import json
import logging
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.core import noise

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
INCOMES = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0.1, 2.7]] * 2, names=["a", "b"]
)
DRAWS = 20_000
SIGNIFICANCE = 1e-11  # OpenDP takes no seeds: a right law fails less than once in 1e9 runs


def test_whole_numbers_get_the_discrete_laplace():
    cal = pdp.calibrate(COUPLE, pdp.Sum(), epsilon=0.5)
    frame = pd.DataFrame({"a": [1] * DRAWS, "b": [0] * DRAWS})
    released = cal.release_rows(frame).value
    assert released.dtype.kind == "i"
    drawn = released - 1
    edge = int(4 * cal.scale)  # enough draws beyond it for the chi-squared law
    decay = math.exp(-1 / cal.scale)
    support = np.arange(-edge, edge + 1)
    expected = (1 - decay) / (1 + decay) * decay ** np.abs(support)
    tail = (1 - expected.sum()) / 2
    observed = np.bincount(np.clip(drawn, -edge - 1, edge + 1) + edge + 1)
    everything = np.concatenate([[tail], expected, [tail]]) * DRAWS
    assert stats.chisquare(observed, everything).pvalue > SIGNIFICANCE


def test_real_numbers_get_the_laplace():
    cal = pdp.calibrate(INCOMES, pdp.Sum(), epsilon=0.5)
    frame = pd.DataFrame({"a": [0.1] * DRAWS, "b": [2.7] * DRAWS})
    drawn = cal.release_rows(frame).value - 2.8
    assert stats.kstest(drawn, stats.laplace(scale=cal.scale).cdf).pvalue > SIGNIFICANCE


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_one_release_after_the_other_draws_the_same_law():
    """The path of a single answer, not only that of rows."""
    cal = pdp.calibrate(COUPLE, pdp.Mean(), epsilon=1.0)
    drawn = [cal.release({"a": 1, "b": 0}).value - 0.5 for _ in range(2000)]
    assert stats.kstest(drawn, stats.laplace(scale=cal.scale).cdf).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3, 400.0])
def test_half_width_is_the_smallest_that_holds(scale, alpha):
    decay = math.exp(-1 / scale)

    def outside(k: float) -> float:
        return 2 * decay ** (k + 1) / (1 + decay)

    width = noise.half_width(scale, alpha, integer=True)
    assert outside(width) <= alpha * (1 + 1e-9)
    assert width == 0 or outside(width - 1) > alpha
    assert noise.half_width(scale, alpha, integer=False) == pytest.approx(
        stats.laplace(scale=scale).ppf(1 - alpha / 2)
    )


@pytest.mark.usefixtures("bare_answers")
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_the_answer_under_the_noise_is_right():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.choice([0.1, 2.7], 500), "b": rng.choice([0.1, 2.7], 500)})
    total = pdp.calibrate(INCOMES, pdp.Sum()).release(frame).value
    assert total == math.fsum(frame.to_numpy().ravel())
    mean = pdp.calibrate(INCOMES, pdp.Mean(over="b"), rows=500).release(frame).value
    assert mean == pytest.approx(frame["b"].mean())
    rows = pdp.calibrate(INCOMES, pdp.Linear(weights={"a": 2})).release_rows(frame).value
    assert rows.tolist() == (2 * frame["a"]).tolist()
    count = pdp.calibrate(INCOMES, pdp.Count(values={2.7})).release(frame).value
    assert count == int((frame == 2.7).sum().sum())
    largest = pdp.calibrate(INCOMES, pdp.Custom(function=max))
    assert largest.release({"a": 0.1, "b": 2.7}).value == 2.7
    assert largest.release(frame.head(1)).value == frame.iloc[0].max()
    assert largest.release_rows(frame).value.tolist() == frame.max(axis=1).tolist()
    assert pdp.calibrate(INCOMES, pdp.Sum()).release(frame.iloc[7]).value == frame.iloc[7].sum()


@pytest.mark.usefixtures("bare_answers")
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_columns_that_do_not_enter_may_be_absent_and_the_index_is_kept():
    cal = pdp.calibrate(COUPLE, pdp.Sum(over=["a"]))
    frame = pd.DataFrame({"a": [1, 0, 1]}, index=["x", "y", "z"])
    assert cal.release(frame).value == 2
    assert cal.release_rows(frame).value.to_dict() == {"x": 1, "y": 0, "z": 1}


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_the_interval_covers_the_answer_as_often_as_it_says():
    cal = pdp.calibrate(COUPLE, pdp.Sum(), epsilon=0.7)
    release = cal.release_rows(pd.DataFrame({"a": [1] * 4000, "b": [1] * 4000}))
    low, high = release.interval(alpha=0.2)
    covered = int(((low <= 2) & (high >= 2)).sum())
    assert stats.binomtest(covered, 4000, 0.8, alternative="less").pvalue > SIGNIFICANCE
    single = cal.release({"a": 1, "b": 1})
    assert single.interval()[1] - single.interval()[0] == 2 * int(cal.accuracy(alpha=0.05))
    real = pdp.calibrate(INCOMES, pdp.Sum()).release({"a": 0.1, "b": 0.1})
    assert real.interval(alpha=0.1)[0] == pytest.approx(
        real.value - real.calibration.accuracy(alpha=0.1)
    )


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_a_release_carries_no_true_answer_and_no_record(caplog):
    table = pdp.JointTable(
        probabilities=np.full((3, 3), 1 / 9),
        domains=[[0, 311_000_777_123, 5]] * 2,
        names=["a", "b"],
    )
    cal = pdp.calibrate(table, pdp.Sum(), epsilon=1e-3)  # by chance once in 1e11 runs
    with caplog.at_level(logging.DEBUG):
        release = cal.release({"a": 311_000_777_123, "b": 311_000_777_123})
    true = str(2 * 311_000_777_123)
    for text in (release.to_json(), repr(release), repr(vars(release)), caplog.text):
        assert true not in text
    described = json.loads(release.to_json())
    assert described["type"] == "Release"
    assert described["calibration"]["scale"] == cal.scale
    rows = cal.release_rows(pd.DataFrame({"a": [0, 5], "b": [5, 5]}))
    assert len(json.loads(rows.to_json())["value"]) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": 1}, "lack a value for b"),
        ({"a": 1, "b": 777_123}, "a value of b is not in the domain"),
        (pd.DataFrame({"a": [1, 0]}), "no column b"),
        (pd.DataFrame({"a": [1, 0], "b": [1, 777_123]}), "a value of b is not in the domain"),
        (pd.DataFrame({"a": [1, None], "b": [1, 1]}), "column a has missing"),
        (pd.DataFrame({"a": [], "b": []}), "at least one row"),
        ([1, 0], "DataFrame is needed"),
    ],
)
def test_data_that_do_not_fit_are_refused_without_showing_them(data, message):
    cal = pdp.calibrate(COUPLE, pdp.Sum())
    with pytest.raises(pdp.ModelError, match=message) as caught:
        cal.release(data)
    assert "777" not in str(caught.value)


def test_a_mean_is_released_over_the_rows_it_was_calibrated_for():
    cal = pdp.calibrate(COUPLE, pdp.Mean(), rows=3)
    with pytest.raises(pdp.QueryError, match="calibrate with rows=2"):
        cal.release(pd.DataFrame({"a": [0, 1], "b": [1, 1]}))
    with pytest.raises(pdp.QueryError, match="calibrate with rows=1"):
        cal.release_rows(pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 1]}))
    with pytest.raises(pdp.QueryError, match="rows=2"):
        pdp.calibrate(COUPLE, pdp.Custom(function=max)).release(
            pd.DataFrame({"a": [0, 1], "b": [1, 1]})
        )


def test_real_sums_over_more_rows_than_covered_are_refused(monkeypatch):
    monkeypatch.setattr("pdp_calibrate.calibration.solve.ROWS_COVERED", 2)
    cal = pdp.calibrate(INCOMES, pdp.Sum())
    frame = pd.DataFrame({"a": [0.1] * 3, "b": [2.7] * 3})
    with pytest.raises(pdp.QueryError, match="calibrate with rows=3"):
        cal.release(frame)
    assert isinstance(pdp.calibrate(INCOMES, pdp.Sum(), rows=3).release(frame).value, float)
    whole = pdp.calibrate(COUPLE, pdp.Sum()).release(pd.DataFrame({"a": [1] * 3, "b": [0] * 3}))
    assert isinstance(whole.value, int)


def test_whole_numbers_beyond_64_bits_are_refused():
    table = pdp.JointTable(probabilities=[0.5, 0.5], domains=[[0, 2**50]], names=["a"])
    cal = pdp.calibrate(table, pdp.Sum())
    with pytest.raises(pdp.QueryError, match="64-bit"):
        cal.release(pd.DataFrame({"a": [0] * 5000}))


def test_copies_are_released_row_by_row_not_as_blocks():
    blocks = pdp.Blocks(models=[COUPLE], counts=[4])
    with pytest.raises(pdp.UnsupportedQueryError, match="one row per copy"):
        pdp.calibrate(blocks, pdp.Sum()).release(pd.DataFrame({"a": [1], "b": [0]}))


HEIGHTS = pdp.Gaussian(
    covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=[(0, 10), (-5, 5)], names=["a", "b"]
)


@pytest.mark.usefixtures("bare_answers")
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_continuous_answers_are_clamped_or_refused():
    frame = pd.DataFrame({"a": [1.25, 12.0, -3.0], "b": [0.5, 4.0, -7.0]})
    clamped = pdp.calibrate(HEIGHTS, pdp.Linear(weights={"a": 2, "b": -1}, clamp=True))
    assert clamped.release(frame).value == 2 * 11.25 - (-0.5)
    assert clamped.release({"a": 99, "b": 0}).value == 20.0
    assert clamped.release_rows(frame).value.tolist() == [2.0, 16.0, 5.0]
    mean = pdp.calibrate(HEIGHTS, pdp.Mean(clamp=True), rows=3).release(frame)
    assert mean.value == pytest.approx((11.25 - 0.5) / 6)
    strict = pdp.calibrate(HEIGHTS, pdp.Sum())
    with pytest.raises(pdp.ModelError, match="a value of a is outside the bounds") as caught:
        strict.release(frame)
    assert "12" not in str(caught.value)
    with pytest.raises(pdp.ModelError, match="not a number"):
        strict.release({"a": "tall", "b": 0})
    with pytest.raises(pdp.ModelError, match="not a finite number"):
        strict.release({"a": math.inf, "b": 0})


def test_continuous_answers_get_the_laplace_even_between_whole_bounds():
    cal = pdp.calibrate(HEIGHTS, pdp.Sum(), epsilon=0.5)
    assert not cal.is_integer
    frame = pd.DataFrame({"a": [2.0] * 5000, "b": [1.0] * 5000})
    drawn = cal.release_rows(frame).value - 3.0
    assert stats.kstest(drawn, stats.laplace(scale=cal.scale).cdf).pvalue > SIGNIFICANCE
    again = pdp.Calibration.from_json(cal.to_json())
    assert again.scale == cal.scale
    assert again.leakage.value <= 0.5


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_the_scale_does_not_depend_on_the_data():
    cal = pdp.calibrate(COUPLE, pdp.Sum())
    before = cal.scale, cal.leakage
    cal.release({"a": 1, "b": 1})
    cal.release({"a": 0, "b": 0})
    assert (cal.scale, cal.leakage) == before


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_columns_named_by_numbers(as_text):
    """The steps of a chain are 0, 1, 2, … by default, and so are the columns of many a frame."""
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=4)
    frame = pd.DataFrame([[0, 1, 1, 0], [1, 1, 1, 0]])
    frame = frame.rename(columns=str) if as_text else frame
    cal = pdp.calibrate(chain, pdp.Sum(), epsilon=400.0)  # hardly any noise
    assert cal.release(frame).value == 5
    assert cal.release_rows(frame).value.tolist() == [2, 3]
    assert frame.pdp.count(model=chain, values={1}, epsilon=400.0).value == 5
    if not as_text:
        fitted = pdp.TableEstimator(smoothing=0.5).fit(pd.concat([frame, 1 - frame])).model_
        assert fitted.names == ("0", "1", "2", "3")
        mixed = frame.rename(columns={1: "0"})
        with pytest.raises(pdp.ModelError, match="different names"):
            cal.release(mixed)


def test_releases_show_the_columns_they_take_and_refuse_others():
    cal, ledger = pdp.calibrate(COUPLE, pdp.Sum()), pdp.Ledger(COUPLE, epsilon=5.0)
    columns = {"value", "groups", "order_by", "time_format", "by"}
    for method in (cal.release, ledger.release):
        assert columns < set(inspect.signature(method).parameters)
    data = {"a": 1, "b": 0}
    with pytest.raises(TypeError, match="'group'"):
        cal.release(data, group="home")
    with pytest.raises(TypeError, match="'group'"):
        ledger.release(pdp.Sum(), data, epsilon=1.0, group="home")
    assert not ledger.history
