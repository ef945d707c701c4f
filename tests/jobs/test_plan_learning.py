"""Plans that learn their model from secret rows: checks learn nothing, and learning is counted."""

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.jobs import run
from pdp_calibrate.jobs.run import check_plan
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

PLAN = plan_text(
    {"query": "sum(mother, child)", "epsilon": 0.6},
    data={"file": "survey.csv"},
    model={"kind": "table", "epsilon": 0.5, "domains": {"mother": [0, 1], "child": [0, 1]}},
    budget={"epsilon": 2.0, "ledger": "budget.json"},
)
SCHEMA = jsonschema.Draft202012Validator(pdp.json_schema())


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    mother = rng.integers(0, 2, 300)
    child = np.where(rng.random(300) < 0.7, mother, 1 - mother)
    survey = pd.DataFrame({"mother": mother, "child": child})
    survey.to_csv(tmp_path / "survey.csv", index=False)
    write(tmp_path, PLAN)
    return tmp_path


def write(folder, text):
    (folder / "plan.toml").write_text(text)


@pytest.fixture
def learned(monkeypatch):
    """Count how often rows were learned from."""
    calls = []
    original = run.learned_model

    def counted(job, frame):
        calls.append(job.learning["kind"])
        return original(job, frame)

    monkeypatch.setattr(run, "learned_model", counted)
    return calls


@pytest.mark.parametrize("how", ["epsilon = 0.5", ""], ids=["dp", "private"])
def test_a_check_learns_nothing_from_secret_rows(folder, learned, how):
    write(folder, PLAN.replace("epsilon = 0.5", how))
    told = fine(f"plan {folder}/plan.toml --check")
    assert "known only then" in told.out
    assert "private rows" not in told.err
    (found,) = fine(f"plan {folder}/plan.toml --check --json").json["answers"]
    assert found == {
        "name": "sum(mother, child)",
        "query": "sum(mother, child)",
        "epsilon": 0.6,
        "calibration": None,
    }
    assert learned == []
    assert not (folder / "budget.json").exists()


def test_a_check_reads_no_row_but_the_columns_and_the_budget(folder, learned):
    (folder / "survey.csv").write_text("mother,child\n0,broken\n")
    assert check_plan(pdp.read_plan(folder / "plan.toml"))[0].calibration is None
    for old, new, words, code in [
        ("sum(mother, child)", "sum(father)", "no column father", 2),
        ("sum(mother, child)", "sum(mother", "expected", 2),
        ('kind = "table"', 'kind = "table"\ncovariance = "oas"', "takes no covariance", 2),
        ("epsilon = 0.6", "epsilon = 1.6", "beside the 0.5 of learning", 3),
    ]:
        write(folder, PLAN.replace(old, new))
        for line in ("--check", ""):
            assert words in refused(f"plan {folder}/plan.toml {line}", code=code)
    assert learned == []
    assert not (folder / "budget.json").exists()


def test_a_check_of_a_public_model_still_knows_the_scale(folder):
    write(folder, PLAN.replace("epsilon = 0.5", "public = true"))
    (found,) = check_plan(pdp.read_plan(folder / "plan.toml"))
    assert found.calibration is not None
    assert found.calibration.epsilon == 0.6


def test_learning_is_in_the_ledger_before_a_row_is_read_for_it(folder, monkeypatch):
    seen = []

    def fails(_job, _frame):
        state = json.loads((folder / "budget.json").read_text())
        SCHEMA.validate(state)
        assert state["model"] is None
        assert [entry["kind"] for entry in state["entries"]] == ["estimation"] * (len(seen) + 1)
        seen.append(state)
        raise pdp.ModelError("the rows are not as they should be.")

    monkeypatch.setattr(run, "learned_model", fails)
    for _ in range(3):  # each attempt may have told something, so each is counted
        assert "not as they should be" in refused(f"plan {folder}/plan.toml")
    monkeypatch.undo()
    with pytest.raises(pdp.LedgerError, match="was not learned"):
        pdp.Ledger.open(folder / "budget.json")
    (found,) = check_plan(pdp.read_plan(folder / "plan.toml"))
    assert found.calibration is None
    # 3 x 0.5 are spent: learning once more fits, and the answer of 0.6 does not.
    assert "above the budget 2" in refused(f"plan {folder}/plan.toml", code=3)
    assert pdp.Ledger.open(folder / "budget.json").spent == pytest.approx(2.0, abs=1e-9)


def test_a_second_run_takes_the_model_of_the_ledger(folder, learned):
    first = fine(f"plan {folder}/plan.toml --json").json
    assert learned == ["table"]
    assert first["budget"]["spent"] == pytest.approx(1.1, abs=1e-6)
    second = fine(f"plan {folder}/plan.toml --json").json
    assert learned == ["table"]
    models = [one["releases"][0]["release"]["calibration"]["model"] for one in (first, second)]
    assert models[0] == models[1]
    history = pdp.Ledger.open(folder / "budget.json").history
    assert [entry.kind for entry in history] == ["estimation", "release", "release"]
    (found,) = check_plan(pdp.read_plan(folder / "plan.toml"))
    assert found.calibration.to_dict() == second["releases"][0]["release"]["calibration"]
    write(folder, PLAN.replace("epsilon = 2.0", 'epsilon = 2.0\ndraw = "next"'))
    outcome = fine(f"plan {folder}/plan.toml --json").json
    assert outcome["budget"]["spent"] == pytest.approx(0.6, abs=1e-6)  # learned elsewhere
    assert learned == ["table"]
    write(folder, PLAN.replace("epsilon = 0.5", "epsilon = 0.4"))
    assert "not learned with epsilon = 0.4" in refused(f"plan {folder}/plan.toml")


def test_two_runs_at_once_release_about_one_model_only(folder, monkeypatch):
    original = run.learned_model

    def overtaken(job, frame):
        monkeypatch.setattr(run, "learned_model", original)
        fine(f"plan {folder}/plan.toml")
        return original(job, frame)

    monkeypatch.setattr(run, "learned_model", overtaken)
    assert "meanwhile" in refused(f"plan {folder}/plan.toml")
    history = pdp.Ledger.open(folder / "budget.json").history
    assert [entry.kind for entry in history] == ["estimation", "estimation", "release"]


def test_a_plan_without_a_ledger_counts_learning_too(folder):
    write(folder, PLAN.replace('ledger = "budget.json"\n', ""))
    outcome = pdp.run_plan(pdp.read_plan(folder / "plan.toml"))
    assert [entry.kind for entry in outcome.ledger.history] == ["estimation", "release"]
    assert outcome.ledger.spent == pytest.approx(1.1, abs=1e-6)


def test_a_plan_that_names_no_confidence_says_which_applied(folder):
    model = '[model]\nkind = "gaussian"\npublic = true\nbounds = [0, 1]\n'
    text = (
        f'[data]\nfile = "survey.csv"\n{model}[budget]\nepsilon = 1\n'
        '[[queries]]\nquery = "sum(mother, child)"\nepsilon = 1\n'
    )
    write(folder, text)
    told = " ".join(fine(f"plan {folder}/plan.toml").out.split())
    assert "The model was learned, covered at 0.95 over sampling." in told
    assert "names no model.confidence. The default is 0.95 where a band is known" in told
    assert "names no model.confidence" in " ".join(
        fine(f"plan {folder}/plan.toml --check").out.split()
    )
    coverage = {}
    for said in ('"none"', "0.9", "0.95"):
        write(folder, text.replace(model, f"{model}confidence = {said}\n"))
        assert "model.confidence" not in fine(f"plan {folder}/plan.toml").out
        (one,) = fine(f"plan {folder}/plan.toml --json").json["releases"]
        coverage[said] = one["release"]["calibration"]["model"]["coverage"]
    assert coverage['"none"']["kind"] == "point"
    assert [coverage[said]["confidence"] for said in ("0.9", "0.95")] == [0.9, 0.95]
    for wrong in ('"all"', "1", "0", "true"):
        write(folder, text.replace(model, f"{model}confidence = {wrong}\n"))
        assert "model.confidence" in refused(f"plan {folder}/plan.toml")


@pytest.mark.parametrize("kind", ["groups", "series"])
def test_a_fit_that_must_cover_its_noise_is_refused_before_its_epsilon_is_spent(folder, kind):
    rows = pd.DataFrame({"home": np.repeat(range(30), 2), "day": [0, 1] * 30, "pay": 0.5})
    rows.to_csv(folder / "homes.csv", index=False)
    data = {"file": "homes.csv", "groups": "home"} | (
        {"order_by": "day"} if kind == "series" else {}
    )
    text = plan_text(
        {"query": "sum(pay)", "epsilon": 0.6},
        data=data,
        model={"kind": kind, "epsilon": 0.5, "bounds": [0, 1], "confidence": "none"},
        budget={"epsilon": 2.0, "ledger": "budget.json"},
    )
    write(folder, text)
    for more in (" --check", ""):
        assert "cover the noise" in refused(f"plan {folder}/plan.toml{more}")
    assert not (folder / "budget.json").exists()
