"""Plans: everything in one file, run without a question, all of it or nothing."""

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.jobs.run import check_plan
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

VALIDATOR = jsonschema.Draft202012Validator(pdp.json_schema())
PLAN = """
[data]
file = "people.csv"
groups = "household"

[model]
bounds = {income = [0, 100]}
correlation = [0, 0.4]

[budget]
epsilon = 2.0
ledger = "budget.json"

[[queries]]
name = "mean income"
query = "mean(income)"
epsilon = 0.5

[[queries]]
query = "sum(income)"
epsilon = 0.5

[output]
releases = "out.json"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    rng = np.random.default_rng(2)
    household = np.repeat(np.arange(30), [1, 2, 3] * 10)
    income = np.round(rng.normal(40, 15, len(household)), 1)
    pd.DataFrame({"household": household, "income": income, "age": 30}).to_csv(
        tmp_path / "people.csv", index=False
    )
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def write(folder, old, new):
    assert old in PLAN
    (folder / "plan.toml").write_text(PLAN.replace(old, new))


def test_a_plan_runs_from_anywhere_and_is_charged_to_its_ledger(folder):
    outcome = fine(f"plan {folder}/plan.toml --json").json
    VALIDATOR.validate(outcome)
    assert json.loads((folder / "out.json").read_text()) == outcome
    assert [one["name"] for one in outcome["releases"]] == ["mean income", "sum(income)"]
    ledger = pdp.Ledger.open(folder / "budget.json")
    assert outcome["budget"]["spent"] == ledger.spent == pytest.approx(1, abs=1e-6)
    assert len(ledger.history) == 2
    income = pd.read_csv(folder / "people.csv")["income"]
    for one, truth in zip(outcome["releases"], [income.mean(), income.sum()], strict=True):
        calibration = pdp.Release.from_json(json.dumps(one["release"])).calibration
        assert calibration.epsilon == 0.5
        assert abs(one["release"]["value"] - truth) < calibration.accuracy(alpha=1e-11)


@pytest.mark.parametrize("anchored", [False, True])
def test_what_is_refused_begins_no_ledger(folder, anchored):
    anchor = 'ledger = "budget.json"\nanchor = "anchor.json"' if anchored else None
    write(folder, "epsilon = 2.0", "epsilon = 0.6")
    plan = folder / "plan.toml"
    if anchor is not None:
        plan.write_text(plan.read_text().replace('ledger = "budget.json"', anchor))
    before = sorted(folder.iterdir())
    assert "above the budget" in refused(f"plan {plan}", code=3)
    assert sorted(folder.iterdir()) == before
    plan.write_text(plan.read_text().replace("epsilon = 0.6", "epsilon = 2.0"))
    fine(f"plan {plan}")
    anchors = folder / "anchor.json" if anchored else None
    assert len(pdp.Ledger.open(folder / "budget.json", anchor=anchors).history) == 2


def test_two_runs_begin_one_ledger(folder, monkeypatch):
    """The other one begins it while this one calibrates: nothing is released by this one."""
    plan, real = pdp.read_plan(folder / "plan.toml"), pdp.Ledger.spend_together

    def overtaken(ledger, *releases, **more):
        monkeypatch.setattr(pdp.Ledger, "spend_together", real)
        pdp.run_plan(plan)
        return real(ledger, *releases, **more)

    monkeypatch.setattr(pdp.Ledger, "spend_together", overtaken)
    with pytest.raises(pdp.LedgerError, match="already"):
        pdp.run_plan(plan)
    assert len(pdp.Ledger.open(folder / "budget.json").history) == 2
    pdp.run_plan(plan)
    assert len(pdp.Ledger.open(folder / "budget.json").history) == 4


def test_a_refused_plan_about_people_begins_no_ledger(folder):
    text = PLAN.replace("epsilon = 2.0", "epsilon = 0.6\npeople = true")
    (folder / "plan.toml").write_text(text.replace("correlation = [0, 0.4]", ""))
    assert "above the budget" in refused(f"plan {folder}/plan.toml", code=3)
    assert not (folder / "budget.json").exists()
    (folder / "plan.toml").write_text((folder / "plan.toml").read_text().replace("0.6", "2.0"))
    outcome = fine(f"plan {folder}/plan.toml --json").json
    assert outcome["budget"]["spent"] == pytest.approx(1.0)
    assert len(pdp.load(folder / "budget.json").history) == 2


def test_a_list_is_answered_together_under_one_epsilon(folder):
    alone, asked = 'query = "sum(income)"', ["mean(income)", "sum(income)"]
    write(folder, alone, f"query = {json.dumps(asked)}")
    (_, check) = check_plan(pdp.read_plan(folder / "plan.toml"))
    frame = pd.read_csv(folder / "people.csv")
    said = {"groups": "household", "bounds": {"income": (0, 100)}, "correlation": (0, 0.4)}
    assert check.calibration.scale == frame.pdp.calibrate(asked, **said, epsilon=0.5).scale
    assert "mean(income); sum(income)" in fine(f"plan {folder}/plan.toml --check").out
    outcome = fine(f"plan {folder}/plan.toml --json").json
    VALIDATOR.validate(outcome)
    assert outcome["releases"][1]["query"] == asked
    assert len(outcome["releases"][1]["release"]["value"]) == 2
    assert pdp.Ledger.open(folder / "budget.json").spent == pytest.approx(1, abs=1e-6)
    write(folder, alone, "query = []")
    assert "queries[2].query must be" in refused(f"plan {folder}/plan.toml --check")
    people = PLAN.replace("correlation = [0, 0.4]", "").replace("= 2.0", "= 2.0\npeople = true")
    (folder / "plan.toml").write_text(people.replace(alone, f"query = {json.dumps(asked)}"))
    assert "one question at a time" in refused(f"plan {folder}/plan.toml --check")


def test_nothing_is_released_if_not_all_fits(folder):
    write(folder, "epsilon = 2.0", "epsilon = 0.9")
    assert "Nothing was released" in refused(f"plan {folder}/plan.toml", code=3)
    assert not (folder / "budget.json").exists()
    assert not (folder / "out.json").exists()


@pytest.mark.parametrize("ledger_exists", [False, True], ids=["new ledger", "ledger"])
@pytest.mark.parametrize(
    ("column", "query", "message"),
    [
        ([0, 1, None, 1], "sum(late)", "late"),
        ([0, 1, 1, 7], "count(late=1)", "not in the domain"),
        ([0, 1, 1, "x"], "sum(late)", "not in the domain"),
        ([0, 1, 1, 1], "sum(never)", "never"),
    ],
    ids=["missing value", "outside", "no number", "no column"],
)
def test_data_that_fail_a_later_query_spend_nothing(
    folder, monkeypatch, ledger_exists, column, query, message
):
    wide = pd.DataFrame({"early": [0, 1, 0, 1], "late": column})
    wide.to_csv(folder / "wide.csv", index=False)
    table = pdp.JointTable(
        probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2, names=["early", "late"]
    )
    (folder / "model.json").write_text(json.dumps(table.to_dict()))
    plan = plan_text(
        {"query": "sum(early)", "epsilon": 0.5},
        {"query": query, "epsilon": 0.5},
        data={"file": "wide.csv"},
        model={"file": "model.json"},
        budget={"epsilon": 2.0, "ledger": "wide.json", "draw": "today"},
    )
    (folder / "wide.toml").write_text(plan)
    book = folder / "wide.json"
    if ledger_exists:
        pdp.Ledger(table, epsilon=2.0, path=book, draw="yesterday")
    before = book.read_bytes() if ledger_exists else None
    drawn = []
    monkeypatch.setattr(
        "pdp_calibrate.core.noise.add_laplace_to_integers", lambda *_: drawn.append(1)
    )
    assert message in refused(f"plan {folder}/wide.toml")
    if "never" in query:
        assert message in refused(f"plan {folder}/wide.toml --check")
    else:  # what a check says does not depend on secret values
        fine(f"plan {folder}/wide.toml --check")
    assert not drawn
    assert (book.read_bytes() if book.exists() else None) == before


def test_all_answers_of_a_plan_are_in_the_ledger_before_the_first_noise(folder, monkeypatch):
    seen = []

    def draw(answers, _scale):
        seen.append(len(pdp.Ledger.open(folder / "budget.json").history))
        return list(answers)

    monkeypatch.setattr("pdp_calibrate.core.noise.add_laplace_to_floats", draw)
    fine(f"plan {folder}/plan.toml")
    assert seen == [2, 2]


def test_a_plan_that_another_process_overtakes_releases_nothing(folder, monkeypatch):
    fine(f"plan {folder}/plan.toml")
    original = pdp.Ledger.spend_together

    def overtaken(ledger, releases):
        other = pdp.Ledger.open(folder / "budget.json")
        other.spend(releases[0][0])  # leaves enough for the first answer, not for both
        return original(ledger, releases)

    monkeypatch.setattr(pdp.Ledger, "spend_together", overtaken)
    monkeypatch.setattr(pdp.Ledger, "spend", lambda self, one: original(self, [(one, None, None)]))
    assert "Nothing was released" in refused(f"plan {folder}/plan.toml --force", code=3)
    assert len(pdp.Ledger.open(folder / "budget.json").history) == 3


def test_a_second_run_goes_on_with_the_budget_and_a_new_draw_has_its_own(folder):
    for _ in range(2):
        fine(f"plan {folder}/plan.toml --force")
    exceeded = refused(f"plan {folder}/plan.toml --force", code=3)
    assert "to 3 (bound: shift), above the budget 2" in exceeded
    write(folder, "epsilon = 2.0", 'epsilon = 2.0\ndraw = "next"')
    for _ in range(2):
        fine(f"plan {folder}/plan.toml --force")
    refused(f"plan {folder}/plan.toml --force", code=3)
    history = pdp.Ledger.open(folder / "budget.json").history
    assert [entry.draw for entry in history] == ["first"] * 4 + ["next"] * 4


def test_a_ledger_with_another_budget_or_model_is_refused(folder):
    fine(f"plan {folder}/plan.toml")
    write(folder, "epsilon = 2.0", "epsilon = 3.0")
    assert "has budget 2" in refused(f"plan {folder}/plan.toml --force")
    write(folder, "[0, 0.4]", "[0, 0.5]")
    assert "not the one" in refused(f"plan {folder}/plan.toml --force")


def test_checking_releases_and_writes_nothing(folder):
    before = set(folder.iterdir())
    words = fine(f"plan {folder}/plan.toml --check").out
    assert "mean income" in words
    assert set(folder.iterdir()) == before
    found = fine(f"plan {folder}/plan.toml --check --json").json["answers"]
    wanted = check_plan(pdp.read_plan(folder / "plan.toml"))
    assert [one["calibration"]["scale"] for one in found] == [
        one.calibration.scale for one in wanted
    ]
    fine(f"plan {folder}/plan.toml")
    fine(f"plan {folder}/plan.toml --check")  # outputs that exist are not in its way


def test_two_columns_of_the_same_people_need_one_model(folder):
    write(folder, '"sum(income)"', '"sum(age)"')
    assert "different columns" in refused(f"plan {folder}/plan.toml")
    write(folder, '"sum(income)"', '"count(income=1)"')
    assert "a correlation does not cover counts" in refused(f"plan {folder}/plan.toml")


def test_counts_of_a_plan_state_what_is_possible(folder):
    people = pd.read_csv(folder / "people.csv")
    people["dx"] = ["none", "flu"] * (len(people) // 2)
    people.to_csv(folder / "people.csv", index=False)
    text = plan_text(
        {"query": "histogram(dx)", "epsilon": 1.0},
        data={"file": "people.csv", "groups": "household"},
        model={},
        budget={"epsilon": 1.0},
    )
    (folder / "counts.toml").write_text(text)
    assert "domains in a plan" in refused(f"plan {folder}/counts.toml")
    people["dx"] = "none"
    people.to_csv(folder / "people.csv", index=False)
    assert "domains in a plan" in refused(f"plan {folder}/counts.toml --check")
    stated = "[model]\ndomains = {dx = ['none', 'flu', 'HIV']}"
    (folder / "counts.toml").write_text(text.replace("[model]", stated))
    (found,) = pdp.run_plan(pdp.read_plan(folder / "counts.toml")).releases
    assert found.release.value.index.tolist() == ["none", "flu", "HIV"]


def test_a_plan_may_learn_and_may_limit_adversaries(folder):
    wide = pd.DataFrame({"mother": [0, 0, 1, 1, 1] * 20, "child": [0, 1, 1, 1, 0] * 20})
    wide.to_parquet(folder / "wide.parquet")
    text = plan_text(
        {"query": "histogram(child)", "epsilon": 0.5},
        {"query": "sum(mother, child)", "epsilon": 0.5},
        data={"sql": "select mother, child from read_parquet('FOLDER/wide.parquet')"},
        model={"kind": "table", "public": True, "smoothing": 1.0},
        budget={"epsilon": 1.5, "adversaries": "weakest", "time_limit": 30},
    )
    (folder / "wide.toml").write_text(text.replace("FOLDER", str(folder)))
    plan = pdp.read_plan(folder / "wide.toml")
    outcome = pdp.run_plan(plan)
    model = pdp.TableEstimator(source="public", smoothing=1.0).fit(wide).model_
    assert outcome.ledger.model == model
    assert outcome.ledger.adversaries == pdp.Adversaries.weakest()
    assert outcome.releases[0].release.value.index.tolist() == [0, 1]
    assert outcome.ledger.spent <= 1.5


def test_a_plan_may_take_the_model_of_its_ledger(folder):
    fine(f"plan {folder}/plan.toml")
    write(folder, "[model]\nbounds = {income = [0, 100]}\ncorrelation = [0, 0.4]\n", "")
    assert fine(f"plan {folder}/plan.toml --force --json").json["budget"]["spent"] <= 2
