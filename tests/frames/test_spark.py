"""The same frames in a real, local Spark session: models, answers, plans, and a stopped session.

Needs Java 17 or later and PySpark; bound to 127.0.0.1. One session for the whole file.
"""

import os
import re
import runpy
import shutil
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import noise
from pdp_calibrate.frames.rows import read_rows
from tests.support.frames_of_any_kind import (
    ANSWERS,
    MODELS,
    SERIES,
    answer,
    assert_same_model,
    watching_collects,
)
from tests.support.marks import slow_after
from tests.support.people import KEPT, PEOPLE, QUESTIONS, expected
from tests.support.people_workers import SAID, small_table

HAS_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ
pytestmark = [
    pytest.mark.skipif(not HAS_JAVA, reason="Java is missing: install openjdk-17-jre-headless"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LARGEST = 40  # rows that may leave Spark at once: cells and sizes, never the 100 to 300 of a frame


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable  # `python` on the PATH may be another version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        quick = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            # Compiling every small query would take longer than running it.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
        builder = SparkSession.builder.master("local[1]").appName("pdp_calibrate tests")
        for name, value in quick.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def in_spark(session, frame: pd.DataFrame):
    """Put a frame into two partitions, without pandas' help."""
    schema = {"i": "bigint", "f": "double", "b": "boolean", "M": "timestamp"}
    kinds = [schema.get(kind.kind, "string") for kind in frame.dtypes]
    columns = [
        [time.to_pydatetime() for time in column]
        if kind == "timestamp"
        else column.astype(object).where(column.notna(), None).to_list()
        for kind, (_, column) in zip(kinds, frame.items(), strict=True)
    ]
    names = ", ".join(f"{n} {kind}" for n, kind in zip(frame.columns, kinds, strict=True))
    return session.createDataFrame(list(zip(*columns, strict=True)), names).repartition(2)


def assert_aggregates_only(seen, *, most=LARGEST):
    assert seen
    for asked, rows in seen:
        plan = asked._jdf.queryExecution().executedPlan().toString()
        aggregate, scan = (re.search(what, plan) for what in ("Aggregate", "Scan"))
        assert aggregate, plan
        assert scan is None or aggregate.start() < scan.start(), plan
        assert rows <= most


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("%Y-%m-%d", None),
        pytest.param("%d/%m/%Y", "%d/%m/%Y", marks=pytest.mark.slow),
        pytest.param("%Y-%m-%dT%H:%M+01:00", None, marks=pytest.mark.slow),
    ],
)
def test_times_written_as_text(spark, form, said):
    frame = SERIES.drop(columns="state")
    given = {"value": "load", "by": "who", "order_by": "date", "bounds": (-50, 50)}
    wanted = pdp.GaussianSeriesEstimator(**given, source="public").fit(frame).correlation_
    rows = in_spark(spark, frame.assign(date=frame["date"].dt.strftime(form)))
    estimator = pdp.GaussianSeriesEstimator(**given, time_format=said, source="public")
    assert estimator.fit(rows).correlation_ == pytest.approx(wanted)
    if said is not None:
        with pytest.raises(pdp.ModelError, match="ISO 8601"):
            estimator.set_params(time_format=None).fit(rows)
        with pytest.raises(pdp.ModelError, match="cannot be read with time_format"):
            estimator.set_params(time_format="%d.%m.%Y").fit(rows)


@pytest.mark.parametrize(
    "name",
    slow_after(2, ["cross table", "mean by a secret", "mean by a public column", "at most three"]),
)
def test_questions_about_several_columns_are_answered_in_spark(name, spark):
    query = (QUESTIONS | KEPT)[name]
    rows, sums, counted = expected(query)
    with watching_collects() as seen:
        found = read_rows(in_spark(spark, PEOPLE), query, groups="household")
    assert_aggregates_only(seen, most=(query.parts + 1) * len(counted))  # parts by kinds of groups
    assert found.rows == rows
    assert found.public.counted == counted
    for one, other, number in zip(found.totals, sums, rows, strict=True):
        if query.value is not None:
            assert other - number * found.step <= one <= other


def test_releases_about_people_read_spark_once(spark):
    found = pdp.People(in_spark(spark, small_table()), **SAID)
    wanted = pdp.People(small_table(), **SAID)
    for ask in (
        lambda to: to.sum("pay", epsilon=0.3, correlation=0.5),
        lambda to: to.count({"sick": True}, by="city", epsilon=0.2),
    ):
        with watching_collects() as seen:
            ask(found)
        assert len(seen) == 1
        assert_aggregates_only(seen, most=3 * 3)
        ask(wanted)
    assert found.spent_by_column == wanted.spent_by_column


def test_a_series_of_each_person_is_read_from_spark_once(spark):
    when = pd.date_range("2024-02-27", periods=4).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"who": [1] * 4 + [2] * 4, "t": [*when, *when], "load": [0.5] * 8})
    found = pdp.People(
        in_spark(spark, frame), groups="who", order_by="t", bounds={"load": (0, 1)}, epsilon=9.0
    )
    with watching_collects() as seen:
        found.sum("load", epsilon=0.3, correlation=0.5)
    assert len(seen) == 1
    gaps = in_spark(spark, frame.drop(index=[1, 5]))
    found = pdp.People(gaps, groups="who", order_by="t", bounds={"load": (0, 1)}, epsilon=9.0)
    with pytest.raises(pdp.ModelError, match="column t has gaps"):
        found.sum("load", epsilon=0.3, correlation=0.5)
    assert not found.history


@pytest.mark.parametrize(
    "name",
    slow_after(
        3, ["table", "gaussian", "chain", "gaussian group", "binary group", "gaussian series"]
    ),
)
def test_models_are_the_same(name, spark):
    frame, fit = MODELS[name]
    with watching_collects() as seen:
        found = fit(in_spark(spark, frame))
    assert_same_model(found, fit(frame))
    assert_aggregates_only(seen)


@pytest.mark.parametrize(
    "name", ["weighted", "count", "long mean", "long histogram", "weights by place"]
)
def test_answers_are_the_same_to_the_last_bit(name, spark):
    frame = ANSWERS[name][0]
    with watching_collects() as seen:
        found = answer(name, in_spark(spark, frame))
    assert found == answer(name, frame)
    assert_aggregates_only(seen)


def test_a_stopped_session_releases_and_charges_nothing(spark, monkeypatch):
    """The last test of the session: it stops it."""

    def forbidden(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(noise, "add_laplace_to_floats", forbidden)
    model = pdp.Gaussian(covariance=[[1]], bounds=(0, 9), names=["x"])
    ledger = pdp.Ledger(model, epsilon=1.0)
    cal = pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=0.5)
    mixed = spark.createDataFrame([("1",), ("secret777",)], schema="x string").selectExpr(
        "cast(x as double) as x"
    )
    for call in (lambda: cal.release(mixed, ledger=ledger), lambda: pdp.pearson(mixed)):
        with pytest.raises(pdp.PdpError) as caught:
            call()
        assert "777" not in str(caught.value)
        assert caught.value.__context__ is None
    frame = in_spark(spark, pd.DataFrame({"x": [1.0, 2.0]}))
    spark.stop()
    for call in (lambda: cal.release(frame, ledger=ledger), lambda: pdp.pearson(frame)):
        with pytest.raises(pdp.FrameError, match="connection is open"):
            call()
    assert ledger.spent == 0


def test_the_example_runs(capsys, monkeypatch):
    """In a session of its own, in the same virtual machine."""
    script = Path(__file__).parents[2] / "examples" / "spark_job.py"
    assert script.name in (script.parent / "README.md").read_text()
    monkeypatch.setattr(sys, "argv", [script.name])
    runpy.run_path(str(script), run_name="__main__")
    told = capsys.readouterr().out
    assert 0.2 < float(re.search(r"households: ([\d.]+)", told).group(1)) < 0.4
    assert 45 < float(re.search(r"mean income: ([\d.]+)", told).group(1)) < 55
