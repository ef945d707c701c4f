"""Rows along time: text orders them only as times, and series are checked before a release."""

import datetime as dt
import itertools
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.frames.order import _DAY, check_series
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

MONTHS = 120
PHI = 0.845
SERIES = {"order_by": "when", "correlation": 0.5, "bounds": (-9, 9)}
ENGINES = {
    "pandas": lambda frame: frame,
    "pandas on arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
}


def savings(form="%d/%m/%Y"):
    """Return ten years of a rate that moves slowly, in any order, with dates as a file has them."""
    rng = np.random.default_rng(17)
    rate = np.empty(MONTHS)
    rate[0] = rng.normal()
    for month in range(1, MONTHS):
        rate[month] = PHI * rate[month - 1] + np.sqrt(1 - PHI**2) * rng.normal()
    dates = pd.Series(pd.date_range("1990-01-01", periods=MONTHS, freq="MS"))
    when = dates if form is None else dates.dt.strftime(form)
    frame = pd.DataFrame({"when": when, "rate": rate})
    return frame.sample(frac=1, random_state=3, ignore_index=True)


def series_of(frame, **options):
    estimator = pdp.GaussianSeriesEstimator(
        value="rate", order_by="when", bounds=(-9, 9), source="public", **options
    )
    return estimator.fit(frame).correlation_


def test_what_a_series_in_text_order_would_leak():
    """Sorted as text the correlation was 0.187 of 0.845: noise for 1 that leaks 8.17."""
    apart, alike = (
        pdp.GaussianSeries(length=MONTHS, correlation=phi, bounds=(0, 1)) for phi in (0.187, PHI)
    )
    wrong = pdp.calibrate(apart, pdp.Mean(clamp=True), epsilon=1.0)
    assert pdp.leakage(alike, pdp.Mean(clamp=True), scale=wrong.scale).value > 7.9


@pytest.mark.parametrize("engine", ENGINES)
def test_text_is_read_as_times_or_refused(engine):
    moved = ENGINES[engine]
    wanted = series_of(savings(None))
    assert wanted > 0.7
    with pytest.raises(pdp.ModelError, match=r"column when .* ISO 8601 .* time_format=") as caught:
        series_of(moved(savings()))
    assert "1990" not in str(caught.value)
    assert "/19" not in str(caught.value)
    assert series_of(moved(savings()), time_format="%d/%m/%Y") == pytest.approx(wanted)
    for form in ("%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M"):
        assert series_of(moved(savings(form))) == pytest.approx(wanted)
    with pytest.raises(pdp.ModelError, match="cannot be read with time_format") as caught:
        series_of(moved(savings()), time_format="%d.%m.%Y")
    assert "199" not in str(caught.value)


@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-31", "2024-02-01T00:00"],
        ["2024-1-31", "2024-2-01"],
        ["20240131", "20240201"],
        ["2024-01-31", "2024-13-01"],
        ["2024-02-29", "2024-02-30"],
        ["2024-04-30T12:00", "2024-04-31T12:00"],
        ["1900-02-28", "1900-02-29"],
        ["2024-01-31T10:00:00.5", "2024-01-31T10:00:00.25"],
        ["31/01/2024", "2024-02-01"],
        ["first", "second"],
    ],
)
@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_text_in_other_forms_is_refused(times, kind):
    frame = pd.DataFrame({"when": pd.Series(times, dtype=kind), "x": [0.0, 1.0]})
    with pytest.raises(pdp.ModelError, match=r"column when .* ISO 8601"):
        check_series(frame, "x", by=None, order_by="when")


def test_days_of_iso_text_are_those_of_the_calendar():
    """A day that no month has would be read as one of the next month."""
    years = (1, 4, 100, 400, 1900, 1999, 2000, 2024, 2100, 9996)
    for year, month, day in itertools.product(years, range(14), range(34)):
        try:
            there = dt.date(year, month, day) is not None
        except ValueError:
            there = False
        assert bool(re.fullmatch(_DAY, f"{year:04}-{month:02}-{day:02}")) == there


@pytest.mark.parametrize("engine", ENGINES)
def test_leap_days_are_read(engine):
    frame = pd.DataFrame({"when": ["2024-03-01", "2024-02-28", "2024-02-29"], "x": [1.0, 2.0, 3.0]})
    check_series(ENGINES[engine](frame), "x", by=None, order_by="when", every="1D")
    with pytest.raises(pdp.ModelError, match="the calendar has"):
        check_series(ENGINES[engine](frame.replace("2024", "2023", regex=True)), "x", by=None,
                     order_by="when")  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("times", [[0.0, 1.0, np.inf], [-np.inf, 0.0, 1.0], [-np.inf, 0.0, np.inf]])
@pytest.mark.parametrize("every", [None, 1])
def test_infinite_times_are_refused(engine, times, every):
    with np.errstate(invalid="ignore"):  # pandas 2 tries whether they are whole numbers
        frame = ENGINES[engine](pd.DataFrame({"when": times, "x": [1.0, 2.0, 3.0]}))
    with pytest.raises(pdp.ModelError, match="column when has times that are infinitely far apart"):
        check_series(frame, "x", by=None, order_by="when", every=every)


@pytest.mark.parametrize("engine", ENGINES)
def test_times_may_be_real_numbers(engine):
    frame = ENGINES[engine](pd.DataFrame({"when": [2.5, 0.5, 1.5], "x": [1.0, 2.0, 3.0]}))
    for every in (None, 1, 0.5):
        check_series(frame, "x", by=None, order_by="when", every=every)
    with pytest.raises(pdp.ModelError, match="not a whole number of steps"):
        check_series(frame, "x", by=None, order_by="when", every=0.75)


@pytest.mark.parametrize("engine", ENGINES)
def test_offsets_of_iso_times_count(engine):
    """In text order the third of these comes last."""
    frame = pd.DataFrame(
        {
            "when": ["2024-03-31T00:30+01:00", "2024-03-31T03:30+03:00", "2024-03-31T01:30+01:00"],
            "x": [1.0, 2.0, 3.0],
        }
    )
    weights = pdp.Linear(weights=[100, 10, 1], clamp=True)
    model = pdp.GaussianSeries(length=3, correlation=0.1, bounds=(0, 3))
    cal = pdp.calibrate(model, weights, epsilon=1e9)
    with pytest.raises(pdp.ModelError, match="two equal times"):
        cal.release(ENGINES[engine](frame), value="x", order_by="when")
    frame.loc[1, "when"] = "2024-03-31T00:30-01:00"
    assert cal.release(ENGINES[engine](frame), value="x", order_by="when").value == pytest.approx(
        132, abs=0.01
    )


def test_other_types_of_times():
    frame = savings(None)
    periods = frame.assign(when=frame["when"].dt.to_period("M"))
    assert series_of(periods) == pytest.approx(series_of(frame))
    with pytest.raises(pdp.ModelError, match="column when has gaps"):
        series_of(periods.drop(index=periods.index[periods["when"] == "1993-05"]))
    objects = frame.assign(when=frame["when"].dt.date)
    assert isinstance(objects["when"][0], dt.date)
    with pytest.raises(pdp.ModelError, match="must hold numbers, dates or times, got Object"):
        series_of(objects)
    with pytest.raises(pdp.ModelError, match="says how text is read"):
        series_of(frame, time_format="%d/%m/%Y")


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_follow_the_order_of_times(engine):
    frame = pd.DataFrame({"when": ["05/01/2024", "01/02/2024", "20/01/2024"], "x": [1.0, 2.0, 3.0]})
    model = pdp.GaussianGroup(size=3, correlation=0.1, bounds=(0, 3))
    cal = pdp.calibrate(model, pdp.Linear(weights=[100, 10, 1], clamp=True), epsilon=1e9)
    rows = ENGINES[engine](frame)
    given = {"value": "x", "order_by": "when"}
    with pytest.raises(pdp.ModelError, match="ISO 8601"):
        cal.release(rows, **given)
    found = cal.release(rows, **given, time_format="%d/%m/%Y").value
    assert found == pytest.approx(132, abs=0.01)
    joint = pdp.calibrate(model, [cal.query, pdp.Sum(clamp=True)], epsilon=1e9)
    assert joint.release(rows, **given, time_format="%d/%m/%Y").values[0] == pytest.approx(
        132, abs=0.01
    )
    ledger = pdp.Ledger(model, epsilon=1e10)
    kept = ledger.release(cal.query, rows, epsilon=1e9, **given, time_format="%d/%m/%Y")
    assert kept.value == pytest.approx(132, abs=0.01)
    assert ledger.history[0].to_dict()["layout"] == {"value": "x", "by": None, "order_by": "when"}
    with pytest.raises(pdp.QueryError, match="order_by= is read"):
        cal.release(rows, value="x", time_format="%d/%m/%Y")


def test_private_learning_sorts_by_time_too():
    def fitted(frame, **options):
        estimator = pdp.MarkovChainEstimator(
            value="up",
            by="who",
            order_by="when",
            states=[0, 1, 2],
            epsilon=1e6,
            max_length=4,
            **options,
        )
        return estimator.fit(frame).model_.models[0].counts

    # In time every series goes from 0 to 1; in text order, where it begins with 1, never.
    frame = pd.DataFrame(
        {
            "who": np.repeat(np.arange(50), 4),
            "when": ["31/01/2024", "01/02/2024", "02/02/2024", "03/02/2024"] * 50,
            "up": [0, 1, 2, 0] * 50,
        }
    )
    with pytest.raises(pdp.ModelError, match="ISO 8601"):
        fitted(frame)
    assert fitted(frame, time_format="%d/%m/%Y")[0, 1] == pytest.approx(50, abs=1)


@pytest.mark.parametrize(
    ("days", "message"),
    [([1, 2, 3, 9], "column when has gaps"), ([1, 2, 2, 3], "column when has two equal times")],
)
def test_assumed_series_are_checked_like_fitted_ones(days, message):
    frame = pd.DataFrame(
        {"who": "a", "when": days, "x": [1.0, 2.0, 3.0, 1.0], "state": [0, 1, 0, 1]}
    )
    dated = frame.assign(when=[f"2024-01-{day:02}" for day in days])
    for rows in (frame, dated):
        with pytest.raises(pdp.ModelError, match=message) as caught:
            rows.pdp.sum("x", groups="who", **SERIES, epsilon=1.0)
        assert not any(sign.isdigit() for sign in str(caught.value).replace("1.5", ""))
        model = pdp.GaussianSeries(length=4, correlation=0.5, bounds=(-9, 9))
        cal = pdp.calibrate(model, pdp.Sum(clamp=True))
        with pytest.raises(pdp.ModelError, match=message):
            cal.release(rows, value="x", by="who", order_by="when")
        chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], states=[0, 1], length=4)
        blocks = pdp.Blocks(models=[chain], counts=[1])
        for states in (chain, blocks):
            cal = pdp.calibrate(states, pdp.Sum())
            with pytest.raises(pdp.ModelError, match=message):
                cal.release(rows, value="state", by="who", order_by="when")
    # Where nothing depends on the order, it may be anything.
    unordered = frame.pdp.sum("x", groups="who", order_by="when", bounds=(0, 9), epsilon=1.0)
    assert unordered.calibration.model.covers_any_dependence


def test_dask_cannot_check_a_series_and_says_so():
    """It has no window functions; before, gaps and equal times passed unseen."""
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(savings(None), npartitions=2)
    model = pdp.GaussianSeries(length=MONTHS, correlation=0.5, bounds=(-9, 9))
    cal = pdp.calibrate(model, pdp.Sum(clamp=True))
    with pytest.raises(pdp.FrameError, match="Dask has no ordered window functions"):
        cal.release(frame, value="rate", order_by="when")


def test_an_assumed_series_of_text_dates():
    with pytest.raises(pdp.ModelError, match=r"column when .* ISO 8601"):
        savings().pdp.mean("rate", **SERIES, epsilon=1.0)
    found = savings().pdp.mean("rate", **SERIES, time_format="%d/%m/%Y", epsilon=1.0).calibration
    assert found.scale == savings(None).pdp.mean("rate", **SERIES, epsilon=1.0).calibration.scale


def test_the_command_line_and_plans_read_times(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    savings().to_csv("rates.csv", index=False)
    asked = 'calibrate rates.csv -q "mean(rate)" -e 1 --order-by when --bounds=-9:9'
    for model in ("--correlation 0.5", "--kind series --public"):
        assert "ISO 8601" in refused(f"{asked} {model}")
        fine(f"{asked} {model} --time-format %d/%m/%Y")
    fit = "fit rates.csv --kind series --value rate --order-by when --bounds=-9:9 --public"
    assert "ISO 8601" in refused(fit)
    fine(f"{fit} --time-format %d/%m/%Y -o model.json")
    assert pdp.load("model.json").ends[1] > 0.7
    released = 'release rates.csv -q "mean(rate)" -e 1 --model model.json --order-by when'
    assert "ISO 8601" in refused(released)
    fine(f"{released} --time-format %d/%m/%Y -o release.json")
    fine(f"{asked} --correlation 0.5 --time-format %d/%m/%Y -o cal.json")
    stored = "release rates.csv --calibration cal.json --value rate --order-by when"
    assert "ISO 8601" in refused(stored)
    fine(f"{stored} --time-format %d/%m/%Y")
    assert "order_by is read" in refused(
        f"{released.replace('--order-by when', '')} --time-format %d"
    )
    plan = plan_text(
        {"query": "mean(rate)", "epsilon": 1.0},
        data={"file": "rates.csv", "order_by": "when", "time_format": "%d/%m/%Y"},
        model={"bounds": [-9, 9], "correlation": 0.5},
        budget={"epsilon": 1.0},
    )
    (tmp_path / "plan.toml").write_text(plan)
    assert "jointly Gaussian values" in fine("plan plan.toml --check").out
    (tmp_path / "plan.toml").write_text(plan.replace("time_format", "# time_format"))
    assert "ISO 8601" in refused("plan plan.toml --check")
