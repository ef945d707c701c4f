"""Conditions that mean something else than they say are refused before anything is spent."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdp_calibrate as pdp
import pdp_calibrate_integrations.polars  # noqa: F401 - registers the namespace
from tests.support.cli_runs import refused
from tests.support.plans import plan_text

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

FRAME = pd.DataFrame(
    {
        "home": [1, 1, 2, 3],
        "income": [20_000, 30_000, 50_000, 10_000],
        "city": ["Oslo", "Voss", "Oslo", "Bergen"],
        "sick": [True, False, True, False],
    }
)
CITIES = {"city": ["Oslo", "Bergen", "Voss"]}
HOME = {"groups": "home", "epsilon": 1e6}


def counted(**options):
    return FRAME.copy().pdp.count(**options, **HOME).value


@pytest.mark.parametrize("values", [(20_000, 50_000), (">=", 20_000), (20_000,), ()])
@pytest.mark.parametrize(
    "ask",
    [
        lambda people, pair: people.count({"income": pair}, epsilon=1.0),
        lambda people, pair: people.count({"sick": True}, where={"income": pair}, epsilon=1.0),
        lambda people, pair: people.calibrate.histogram(
            "city", where={"income": pair}, epsilon=1.0
        ),
    ],
)
def test_a_pair_is_no_set_of_values_and_spends_nothing(ask, values):
    people = pdp.People(FRAME, groups="home", epsilon=2.0, domains=CITIES)
    with pytest.raises(pdp.QueryError, match=r"a tuple: for rows with one of these values give a"):
        ask(people, values)
    assert people.spent == 0
    with pytest.raises(pdp.QueryError, match="not supported yet"):
        FRAME.pdp.sum("income", bounds=(0, 9), where={"income": values}, **HOME)


def test_several_values_are_a_set_a_list_or_an_array():
    for values in ({20_000, 50_000}, [20_000, 50_000], np.array([20_000, 50_000])):
        assert counted(columns={"income": values}) == pytest.approx(2, abs=0.1)
        frame = FRAME.copy()  # another table: each is released about once
        assert frame.pdp.count("income", values=tuple(values), missing="zero", **HOME).value == 2


@pytest.mark.parametrize("make", [pd.Series, np.array, pl.Series, list])
def test_a_mask_of_rows_is_no_condition(make):
    mask = make([True, False, True, False])
    for call in (
        lambda: FRAME.pdp.sum("income", bounds=(0, 9), where=mask, **HOME),
        lambda: FRAME.pdp.count(where=mask, **HOME),
        lambda: pdp.People(FRAME, groups="home", epsilon=1.0).count(where=mask, epsilon=1.0),
        lambda: FRAME.pdp.count({"sick": True}, where={"city": mask}, **HOME),
    ):
        with pytest.raises(pdp.QueryError) as caught:
            call()
        assert any(words in str(caught.value) for words in ("mask", "condition on", "twice"))


def test_a_column_is_named_and_not_handed_over():
    """Its values would pass for names of columns, and appear in the message."""
    frame = FRAME.assign(name=["Ann", "Bob", "Cyd", "Dan"])
    for call in (
        lambda: frame.pdp.sum(frame["name"], bounds=(0, 9), **HOME),
        lambda: frame.pdp.count({"sick": True}, by=frame["name"], **HOME),
        lambda: frame.pdp.count({"sick": True}, groups=frame["name"], epsilon=1.0),
        lambda: pdp.People(frame, groups="home", epsilon=1.0).histogram(frame["name"], epsilon=1.0),
    ):
        with pytest.raises(pdp.QueryError) as caught:
            call()
        assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda f, **o: f.pdp.count({"t": [["A"]]}, **o),
        lambda f, **o: f.pdp.count("t", values=[["A"]], domains=["A"], **o),
        lambda f, **o: f.pdp.histogram("t", categories=5, domains=["A"], **o),
        lambda f, **o: f.pdp.histogram("t", categories=5, by="u", **o),
        lambda f, **o: f.pdp.histogram("t", categories=[["A"]], missing="zero", **o),
        lambda f, **o: f.pdp.count({"t": {"min": 1}}, **o),
        lambda f, **o: f.pdp.count({"t": slice(1, 2)}, **o),
        lambda f, **o: f.pdp.count({"t": pd.NA}, **o),
        lambda f, **o: f.pdp.count({"t": float("nan")}, **o),
        lambda f, **o: f.pdp.count("t", **o),
        lambda f, **o: f.pdp.count({"t": "A"}, public=5, **o),
        lambda f, **o: f.pdp.count({"t": "A"}, independent=np.array([True, False]), **o),
        lambda f, **o: f.pdp.count({"t": "A"}, time_limit="x", **o),
        lambda f, **o: f.pdp.calibrate([5], **o),
        lambda f, **o: pdp.People(f, **o).count("t", epsilon=1.0),
        lambda f, **o: pdp.People(f, **o).histogram("t", categories=5, epsilon=1.0),
    ],
)
def test_what_is_no_value_is_refused_in_words_of_this_library(ask):
    frame = pd.DataFrame({"g": [1, 1, 2], "t": ["A", "B", "A"], "u": [True, False, True]})
    with pytest.raises(pdp.PdpError):
        ask(frame, groups="g", epsilon=1.0)


def test_one_instance_has_one_value_of_each_name():
    table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    calibration = pdp.calibrate(table, pdp.Sum())
    with pytest.raises(pdp.ModelError, match="two values under one name"):
        calibration.release(pd.Series([0, 1, 1], index=["x1", "x2", "x1"]))


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas])
def test_a_condition_that_no_declared_value_meets_spends_nothing(make):
    frame = make(FRAME)
    people = pdp.People(frame, groups="home", epsilon=2.0, domains=CITIES)
    for call in (
        lambda: people.count({"city": "Osloo"}, epsilon=1.0),
        lambda: people.count({"city": {"Oslo", "Osloo"}}, epsilon=1.0),
        lambda: people.count({"sick": True}, where={"city": "Osloo"}, epsilon=1.0),
        lambda: people.histogram("city", categories=["Oslo", "Osloo"], epsilon=1.0),
    ):
        with pytest.raises(pdp.QueryError, match="'Osloo' is no possible value of column city"):
            call()
    with pytest.raises(pdp.QueryError, match="'ja' is no possible value of column sick"):
        people.count({"sick": "ja"}, epsilon=1.0)
    assert people.spent == 0
    people.count({"city": "Oslo", "sick": 1}, epsilon=0.1)
    assert people.spent > 0


def test_types_that_list_their_values_declare_them_for_conditions():
    held = pl.from_pandas(FRAME).with_columns(pl.col("city").cast(pl.Enum(CITIES["city"])))
    with pytest.raises(pdp.QueryError, match=r"'Osla' .*did you mean Oslo"):
        held.pdp.count({"city": "Osla"}, **HOME)
    assert held.pdp.count({"city": "Oslo"}, **HOME).value == 2


def test_a_domain_for_all_columns_is_about_the_breakdown():
    found = counted(columns={"sick": True}, by="city", domains=CITIES["city"])
    assert found.to_dict() == {"Oslo": 2, "Bergen": 0, "Voss": 0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("people.csv", index=False)
    return tmp_path


ASK = "release people.csv -q 'count(sick=true)' --groups home -e 1"


@pytest.mark.parametrize(
    "where", ["income>=30000", "income<=30000", "income!=5", "income==5", "income>5", "income<5"]
)
@pytest.mark.usefixtures("folder")
def test_comparisons_on_the_command_line_are_named(where):
    words = refused(f'{ASK} --where "{where}"')
    assert f"comparisons such as '{where}' are not supported yet" in words


def test_lists_in_plans_and_commands_are_sets_of_values(folder):
    query = {"query": "count(sick=true)", "epsilon": 1e6, "where": {"income": [20_000, 50_000]}}
    plan = plan_text(query, data={"file": "people.csv", "groups": "home"}, budget={"epsilon": 1e6})
    (folder / "plan.toml").write_text(plan)
    (found,) = pdp.run_plan(pdp.read_plan("plan.toml")).releases
    assert found.release.value == 2
    assert "Osloo" in refused(f"{ASK} --where city=Osloo --domain city=Oslo,Voss,Bergen")


def test_dates_are_values():
    days = [dt.date(2026, 3, day) for day in (1, 2, 1, 3)]
    frame = pl.from_pandas(FRAME).with_columns(day=pl.Series(days))
    assert frame.pdp.count({"day": {dt.date(2026, 3, 1)}}, **HOME).value == 2
