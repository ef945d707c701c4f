"""Several columns over one budget, from the shell and from plans."""

import json

import pandas as pd
import pytest
from jsonschema import Draft202012Validator

import pdp_calibrate as pdp
from tests.support.cli_runs import fine, run
from tests.support.people_workers import small_table

SCHEMA = Draft202012Validator(pdp.json_schema())
CREATE = "people create b.json p.csv --groups home --bounds pay=0:10 --domain city=a,b -e 2"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_table().to_csv("p.csv", index=False)
    return tmp_path


def test_a_budget_from_beginning_to_end(folder):
    assert "spent on unasked" in fine(CREATE).out
    told = fine('people price b.json p.csv -q "sum(pay)" -e 0.5 --correlation 0:0.5').out
    assert "pay 0.5, every other column 0.75" in " ".join(told.split())
    made = fine(
        'people release b.json p.csv -q "sum(pay)" -q "count(sick=true)" -e 0.5'
        " --correlation 0:0.5 -o r.json --report r.html"
    ).out
    assert "1.25 of 2 spent" in made
    assert [one["type"] for one in json.loads((folder / "r.json").read_text())] == ["Release"] * 2
    assert "What is spent on whom" in (folder / "r.html").read_text()
    refused = run('people release b.json p.csv -q "histogram(city)" -e 1')
    assert refused.code == 3
    assert "2.25" in refused.err
    status = json.loads(fine("people show b.json --json").out)
    SCHEMA.validate(status)
    assert status["spent"] == pytest.approx(1.25)
    assert status["entries"] == 2
    assert pdp.People.open(small_table(), "b.json").spent == status["spent"]
    fine('people release b.json p.csv -q "histogram(city)" --rest')
    assert "whole" in fine("people history b.json").out
    SCHEMA.validate(json.loads(fine("people history b.json --json").out))
    assert "By column" in fine("explain b.json").out
    fine("report b.json -o again.html")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (CREATE, "already"),
        ('people release b.json p.csv -q "sum(pay)" -q "mean(pay)" --rest', "--rest"),
        ("people release b.json p.csv", "query"),
        ('people release b.json p.csv -q "count(sick=true)" -e 1 --correlation 0.5', "counts"),
        ('people release b.json p.csv -q "linear(2*pay)" -e 1', "weights"),
        ("ledger show b.json", "open it with People"),
        ("people show p.csv", "damaged"),
        ("audit b.json", "PeopleLedger"),
    ],
)
def test_what_the_shell_refuses_charges_nothing(folder, line, words):
    fine(CREATE)
    before = (folder / "b.json").read_text()
    found = run(line)
    assert found.code == 2
    assert words in found.err
    assert (folder / "b.json").read_text() == before


PLAN = """
[data]
file = "p.csv"
groups = "home"
[model]
bounds = {{pay = [0, 10]}}
domains = {{city = ["a", "b"]}}
{model}
[budget]
epsilon = 2.0
ledger = "b.json"
{budget}
[[queries]]
query = "sum(pay)"
epsilon = 0.5
{query}
[[queries]]
query = "count(sick=true)"
by = ["city"]
epsilon = 0.4
[output]
releases = "out.json"
report = "out.html"
"""


def plan(folder, *, model="", budget="people = true", query="correlation = [0, 0.5]"):
    (folder / "plan.toml").write_text(PLAN.format(model=model, budget=budget, query=query))


def test_a_plan_about_people(folder):
    plan(folder)
    check = json.loads(fine("plan plan.toml --check --json").out)
    assert [one["calibration"]["scale"] for one in check["answers"]] == pytest.approx([40, 15])
    assert not (folder / "b.json").exists()
    outcome = json.loads(fine("plan plan.toml --json").out)
    SCHEMA.validate(outcome)
    assert outcome["budget"]["spent_by_column"]["pay"] == pytest.approx(0.9)
    assert outcome["budget"]["spent"] == pytest.approx(1.15)
    assert "What is spent on whom" in (folder / "out.html").read_text()
    again = run("plan plan.toml --force")
    assert again.code == 3
    assert pdp.People.open(small_table(), "b.json").spent == pytest.approx(1.15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": ""}, "budget.people = true"),
        ({"model": "correlation = 0.5"}, "states its own"),
        ({"model": 'kind = "groups"'}, "states its own"),
        ({"budget": 'people = true\ndraw = "monday"'}, "draw"),
        ({"query": "correlation = 2"}, "correlation"),
    ],
)
def test_what_a_plan_about_people_cannot_say(folder, change, words):
    plan(folder, **change)
    found = run("plan plan.toml")
    assert found.code == 2
    assert words in found.err
    assert not (folder / "out.json").exists()


DAYS = """
[data]
file = "days.csv"
groups = "who"
order_by = "day"
[model]
bounds = {load = [0, 1]}
domains = {state = ["well", "ill", "hurt"]}
[budget]
epsilon = 3.0
ledger = "plan.json"
people = true
[[queries]]
query = "count(state=ill)"
epsilon = 0.5
persistence = 0.7
[[queries]]
query = "mean(load)"
epsilon = 0.5
correlation = 0.4
[output]
releases = "out.json"
"""


def test_how_long_states_last_is_said_from_the_shell_and_in_plans(folder):
    states = ["well", "ill", "hurt"]
    days = pd.DataFrame({"who": [1] * 4 + [2] * 4, "day": [*range(4)] * 2, "load": 0.5})
    days["state"] = [states[place % 3] for place in range(8)]
    days.to_csv("days.csv", index=False)
    alike = pdp.People(
        days, groups="who", order_by="day", bounds={"load": (0, 1)}, domains={"state": states}
    )
    counted = alike.calibrate.count({"state": "ill"}, epsilon=0.5, persistence=0.7)
    added = alike.calibrate.mean("load", epsilon=0.5, correlation=0.4)
    fine(
        "people create d.json days.csv --groups who --order-by day --bounds load=0:1"
        " --domain state=well,ill,hurt -e 3"
    )
    asked = 'd.json days.csv -q "count(state=ill)" -e 0.5 --persistence 0.7'
    price = json.loads(fine(f"people price {asked} --json").out)
    assert price["calibration"]["scale"] == counted.scale
    assert price["others"] == counted.others
    fine(f'people release {asked} -q "mean(load)" --correlation 0.4')
    spent = pdp.People.open(days, "d.json").spent_by_column
    assert spent["state"] == pytest.approx(0.5 + added.others)
    assert spent["load"] == pytest.approx(0.5 + counted.others)
    refused = run(f"people release {asked.replace('0.7', '0.6')}")
    assert refused.code != 0
    assert "persistence 0.7 of 3 states" in refused.err
    (folder / "days.toml").write_text(DAYS)
    check = json.loads(fine("plan days.toml --check --json").out)
    scales = [one["calibration"]["scale"] for one in check["answers"]]
    assert scales == [counted.scale, added.scale]
    outcome = json.loads(fine("plan days.toml --json").out)
    assert outcome["budget"]["spent_by_column"] == spent
