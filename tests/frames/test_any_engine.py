"""The same frame in every engine: the same models, the same answers, and no rows taken out."""

import math
import re
import subprocess
import sys
from fractions import Fraction

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings, strategies as st

import pdp_calibrate as pdp
from pdp_calibrate.calibration.release import check_grid
from pdp_calibrate.calibration.solve import rounding_error
from pdp_calibrate.core import noise
from pdp_calibrate.core.query import lower
from pdp_calibrate.frames.open import asks_the_engine
from pdp_calibrate.frames.products import centred_products
from pdp_calibrate.frames.sums import clamped_sums
from pdp_calibrate.learning.moments import moments_of
from tests.support.frames_of_any_kind import (
    ANSWERS,
    HOMES,
    MODELS,
    NEEDS_WINDOWS,
    SERIES,
    WIDE,
    answer,
    assert_same_model,
    watching_collects,
)

ENGINES = {
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}
engines = pytest.mark.parametrize("engine", ENGINES)


@engines
@pytest.mark.parametrize("name", MODELS)
def test_models_are_the_same(name, engine):
    frame, fit = MODELS[name]
    if engine == "dask" and name in NEEDS_WINDOWS:
        with pytest.raises(pdp.FrameError, match="window functions"):
            fit(ENGINES[engine](frame))
        return
    assert_same_model(fit(ENGINES[engine](frame)), fit(frame))


@engines
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_the_same_to_the_last_bit(name, engine):
    frame = ANSWERS[name][0]
    if engine == "dask" and name in NEEDS_WINDOWS:
        with pytest.raises(pdp.FrameError, match="window functions"):
            answer(name, ENGINES[engine](frame))
        return
    assert answer(name, ENGINES[engine](frame)) == answer(name, frame)


@pytest.mark.parametrize("name", ["clamped sum", "weighted"])
def test_answers_are_right_within_the_stated_error(name):
    frame, query, model, _ = ANSWERS[name]
    weights = query.weights if isinstance(query, pdp.Linear) else {"a": 1, "b": 1}
    exact = sum(
        Fraction(weights[column]) * sum(map(Fraction, frame[column].clip(*bounds)))
        for column, bounds in zip(model.names, model.bounds, strict=True)
    )
    stated = rounding_error(lower(query, model, rows=len(frame)), len(frame), model)
    (found,) = answer(name, frame)
    assert 0 < abs(found - exact) <= stated
    assert abs(Fraction(float(found)) - exact) <= stated


def _as_partitions(values, engine, pieces):
    if engine == "dask":
        return dd.from_pandas(pd.DataFrame({"x": values}), npartitions=pieces)
    if engine == "duckdb":
        return duckdb.from_df(pd.DataFrame({"x": values}))
    return pl.concat([pl.DataFrame({"x": part}) for part in np.array_split(values, pieces)]).lazy()


@pytest.mark.parametrize("engine", ["polars lazy", "duckdb", "dask"])
def test_sums_do_not_depend_on_order_or_partitions(engine):
    """On values chosen so that floats added in another order give another sum."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.choice([1e15, -1e15], 400) * rng.random(400), rng.random(4000)])
    floats, whole = set(), set()
    for pieces in (1, 2, 7):
        shuffled = rng.permutation(values)
        floats.add(sum(float(part.sum()) for part in np.array_split(shuffled, pieces)))
        frame = _as_partitions(shuffled, engine, pieces)
        sums, rows = clamped_sums(frame, {"x": (-1e15, 1e15)}, clamp=False)
        assert rows == len(values)
        whole.add(sums["x"].total)
    assert len(floats) > 1  # or this shows nothing
    assert len(whole) == 1
    (total,) = whole
    exact = sum(map(Fraction, values))
    assert total <= exact <= total + rows * sums["x"].step


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    ends=st.tuples(
        st.floats(-1e300, 1e300, allow_subnormal=False),
        st.floats(-1e300, 1e300, allow_subnormal=False),
    ).filter(lambda pair: max(map(abs, pair)) > 1e-250),
)
@example(values=[-3.5656096427984573e-270], ends=(0.0, -3.533694129556769e72))
def test_the_grid_is_below_by_less_than_a_step_a_value(values, ends):
    low, high = sorted(ends)
    sums, rows = clamped_sums(pd.DataFrame({"x": values}), {"x": (low, high)}, clamp=True)
    found = sums["x"]
    exact = sum(Fraction(min(max(value, low), high)) for value in values)
    underflow = rows * found.step / 2**1000  # a value too small for the grid counts as zero
    assert found.total - underflow <= exact < found.total + rows * found.step
    largest = Fraction(max(abs(low), abs(high)))
    assert found.step <= rows * largest / 2**59
    assert rows * largest / found.step <= 2**62  # fits, whatever the values are


def test_a_grid_that_the_scale_does_not_cover_is_refused():
    """With one unit in 2⁵³ of the largest answer charged, half of it may go to the grid."""
    model = pdp.GaussianGroup(size=2, correlation=0.1, bounds=(0, 8))
    contributions = lower(pdp.Sum(clamp=True), model)
    allowed = Fraction(noise.covered_grid(contributions.magnitude * 4))
    assert noise.covered_grid(16.0) + 16.0 * 2.0**-53 < noise.summation_error(16.0)
    check_grid(contributions, covered=4, grid=allowed)
    with pytest.raises(pdp.QueryError, match="too many values"):
        check_grid(contributions, covered=4, grid=allowed * (1 + Fraction(1, 10**9)))
    for rows in (1, 2**20, 2**33):
        _, query, heights, _ = ANSWERS["weighted"]
        wide = lower(query, heights, rows=rows)
        step = Fraction(2) ** -(62 - 16 - max(0, rows - 1).bit_length())
        check_grid(wide, covered=rows, grid=step * Fraction(7.3))


def test_bounds_near_zero_are_refused_rather_than_rounded():
    with pytest.raises(pdp.ModelError, match="change the unit"):
        clamped_sums(pd.DataFrame({"x": [0.0]}), {"x": (0.0, 1e-290)}, clamp=True)


def test_sorted_frames_lose_no_digits():
    """The first rows are then a bad centre: the means are far away, in units of the spread."""
    rng = np.random.default_rng(2)
    values = np.concatenate([np.full(2000, -1e7), 1e7 + rng.normal(size=60_000)])
    frame = pd.DataFrame({"x": values, "y": rng.normal(size=len(values))})
    expected = np.cov(frame.to_numpy().T)
    np.testing.assert_allclose(moments_of(frame).covariance, expected, rtol=1e-10)
    tight = pd.DataFrame({"x": 1e7 + rng.normal(size=60_000)})
    tight.iloc[:1500] -= 2e4
    assert centred_products(tight).centred[0, 0] == pytest.approx(
        float(np.var(tight["x"])) * len(tight), rel=1e-10
    )


@pytest.mark.parametrize("name", [*MODELS, *(name for name in ANSWERS if name != "any function")])
def test_duckdb_hands_over_aggregates_only(name):
    frame = (MODELS.get(name) or ANSWERS[name])[0]
    relation = duckdb.from_df(pd.concat([frame] * 3, ignore_index=True))
    if name in MODELS and name not in NEEDS_WINDOWS:
        with watching_collects() as seen:
            MODELS[name][1](relation)
    else:  # the frame once: places in a group must not repeat
        with watching_collects() as seen:
            (MODELS[name][1] if name in MODELS else lambda f: answer(name, f))(
                duckdb.from_df(frame)
            )
    assert seen
    for asked, rows in seen:
        plan = asked.explain()
        aggregate, scan = (
            re.search(what, plan, re.IGNORECASE) for what in ("aggregate|group.by", "scan")
        )
        assert aggregate, plan
        assert scan is None or aggregate.start() < scan.start(), plan
        assert rows < len(frame) / 3


def test_no_engine_is_loaded_unless_its_frame_is_passed():
    code = """
import sys, pandas as pd, numpy as np, pdp_calibrate as pdp
engines = {"polars", "duckdb", "dask", "pyspark"}
frame = pd.DataFrame({"home": [1, 1, 2, 2], "role": [1, 2, 1, 2], "x": [0.5, 1.0, 3.0, 5.0]})
def work(given):
    model = pdp.GroupEstimator(by="home", value="x", bounds=(0, 9), source="public").fit(given)
    pdp.pearson(given)
    cal = pdp.calibrate(model.model_, pdp.Sum(clamp=True))
    from pdp_calibrate.calibration.release import exact_answer
    from pdp_calibrate.frames.long_answers import LongFrame
    exact_answer(given, cal.query, cal.contributions[0], cal.model, rows=1,
                 layout=LongFrame(value="x", groups="home", order_by="role"))
work(frame)
print(sorted(engines & set(sys.modules)))
import duckdb
work(duckdb.from_df(frame))
print(sorted(engines & set(sys.modules)))
"""
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == ["[]", "['duckdb']"]


def test_only_one_place_collects():
    """Rows can leave an engine in `frames/open.py` only, where aggregates are read."""
    from pathlib import Path

    package = Path(pdp.__file__).parent
    places = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\.(collect|compute|fetchall|toPandas|to_arrow)\(", path.read_text())
    }
    assert places == {"frames/open.py", "frames/files.py"}  # the latter reads how SQL was parsed


def test_what_needs_rows_or_an_order_says_so():
    lazy = pl.from_pandas(WIDE).lazy()
    with pytest.raises(pdp.FrameError, match="rows in memory"):
        pdp.GaussianEstimator(bounds=(-1e5, 1e5), covariance="graphical-lasso").fit(lazy)
    cal = pdp.calibrate(pdp.Gaussian(covariance=[[1]], bounds=(0, 1), names=["a"]), pdp.Sum())
    with pytest.raises(pdp.FrameError, match="collect the frame first"):
        cal.release_rows(lazy)
    with pytest.raises(pdp.FrameError, match="order_by="):
        pdp.MarkovChainEstimator(by="who").fit(duckdb.from_df(SERIES))
    in_order = SERIES.sort_values(["who", "day"])
    same = pdp.MarkovChainEstimator(by="who").fit(pl.from_pandas(in_order)).model_
    assert_same_model(
        pdp.MarkovChainEstimator(by="who", source="public").fit(in_order).model_,
        pdp.MarkovChainEstimator(by="who", order_by="day", source="public").fit(SERIES).model_,
    )
    assert same.provenance == "private"


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_releases_through_engines(monkeypatch):
    monkeypatch.setattr(noise, "add_laplace_to_floats", lambda answers, _: list(answers))
    income = {"bounds": (30, 70), "by": "home", "value": "income"}
    model = (
        pdp.GroupEstimator(by="home", value="income", bounds=(30, 70), source="public")
        .fit(HOMES)
        .model_
    )
    cal = pdp.calibrate(model, pdp.Mean(clamp=True))
    expected = HOMES["income"].clip(30, 70).mean()
    for make in ENGINES.values():
        release = cal.release(make(HOMES), value=income["value"], by=income["by"])
        assert release.value == pytest.approx(expected, rel=1e-14)
    heights = pdp.Gaussian(covariance=[[1]], bounds=(49_990, 50_010), names=["a"])
    for make in ENGINES.values():
        ledger = pdp.Ledger(heights, epsilon=2.0)
        released = ledger.release(pdp.Mean(clamp=True), make(WIDE), epsilon=1.0)
        assert released.calibration.rows == len(WIDE)
        assert math.isclose(released.value, WIDE["a"].mean(), rel_tol=1e-12)


@pytest.mark.usefixtures("bare_answers")
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_polars_frames_have_the_same_methods():
    import pdp_calibrate_integrations.polars  # noqa: F401 - registers the namespace

    income = {"bounds": (30, 70), "groups": "home", "correlation": (0, 0.4)}
    for frame in (pl.from_pandas(HOMES), pl.from_pandas(HOMES).lazy()):
        total = frame.pdp.sum("income", **income, epsilon=1.0)
        assert total.value == HOMES.pdp.sum("income", **income, epsilon=1.0).value
        assert total.calibration.scale == pytest.approx(40 * (1 + 3 * 0.4), rel=1e-6)
        assert (
            frame.pdp.count("ill", values={1}, groups="home", domain=[0, 1], epsilon=1.0).value
            == HOMES["ill"].sum()
        )
        wide = frame.select("income")
        model = pdp.Gaussian(covariance=[[81]], bounds=(30, 70), names=["income"])
        cal = wide.pdp.calibrate(pdp.Mean(clamp=True), model=model, epsilon=1.0)
        assert cal.rows == len(HOMES)
        assert wide.pdp.release(cal).value == pytest.approx(HOMES["income"].clip(30, 70).mean())
        assert wide.pdp.leakage(cal.query, model=model, scale=cal.scale).value <= 1
        fitted = frame.pdp.fit(pdp.GroupEstimator(by="home", bounds=(0, 100), source="public"))
        assert_same_model(fitted.model_, MODELS["gaussian group"][1](HOMES))


def test_another_python_in_spark_is_named_and_nothing_else_of_the_error():
    @asks_the_engine
    def fails():
        raise RuntimeError(
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.13, secret777"
        )

    with pytest.raises(pdp.FrameError, match="PYSPARK_PYTHON") as caught:
        fails()
    assert sys.executable in str(caught.value)
    assert "777" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_panic_of_polars_is_withheld_like_any_error_and_interrupts_are_not():
    """It is no Exception, and quotes what it pleases."""

    @asks_the_engine
    def fails(error):
        raise error

    with pytest.raises(pdp.FrameError, match="PanicException") as caught:
        fails(pl.exceptions.PanicException("secret777"))
    assert "777" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(KeyboardInterrupt):
        fails(KeyboardInterrupt())
