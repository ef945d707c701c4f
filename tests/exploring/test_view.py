"""What the page says, without a browser: the same numbers as the library, and sentences."""

import dataclasses
import json
import subprocess
import sys
import tomllib

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.exploring.answers import DEFAULTS, completed
from pdp_calibrate.exploring.handover import plan_contents, release
from pdp_calibrate.exploring.subject import of_rows, open_subject
from pdp_calibrate.exploring.view import Page
from pdp_calibrate.jobs.plan import read_plan
from pdp_calibrate.jobs.run import check_plan
from tests.support.cli_runs import fine

SIZES = [1, 2, 3, 4, 4]
FRAME = pd.DataFrame(
    {
        "home": np.repeat(range(5), SIZES),
        "day": np.concatenate([range(size) for size in SIZES]),
        "income": np.linspace(1.5, 98.5, 14),
        "sick": [True, False] * 7,
        "state": ["well", "ill"] * 7,
    }
)
HOMES = {"groups": "home", "low": "0", "high": "100", "kind": "mean", "column": "income"}
STATED = HOMES | {"alike": "correlation", "correlation": "0.4"}
CASES = {
    "any dependence": HOMES,
    "correlation": STATED,
    "series": STATED | {"order_by": "day"},
    "independent": HOMES | {"alike": "independent", "kind": "sum"},
    "belief": STATED | {"strength": "belief", "before": "1", "after": "5"},
    "count by": {
        "groups": "home", "kind": "count", "column": "sick", "values": "true", "by": "state",
        "by_domain": "well, ill",
    },
    "states": {
        "groups": "home", "order_by": "day", "kind": "histogram", "column": "state",
        "domain": "well, ill", "alike": "persistence", "persistence": "0.8",
    },
    "several": STATED | {"also": "sum(income)"},
}  # fmt: skip


@pytest.fixture
def page(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    return Page(subject=of_rows(tmp_path / "people.csv"))


def test_the_noise_is_what_calibrate_says(page):
    view = page.view(STATED)
    said = {"groups": "home", "bounds": (0, 100), "correlation": (0, 0.4)}
    assert view.exact_scales == (FRAME.pdp.calibrate("mean(income)", **said).scale,)
    assert view.scales[0][1] == f"{view.exact_scales[0]:.6g}"
    assert page.view(STATED | {"correlation": "0.5"}).exact_scales > view.exact_scales
    names = [one.name for one in view.choices]
    assert names == ["stated correlation", "any dependence", "learned under DP", "plain DP"]
    assert any("1 % becomes at most 2.7 %" in value for _, value in view.facts)


@pytest.mark.parametrize("name", CASES)
def test_what_is_handed_over_runs_and_has_the_same_scale(name, page, tmp_path, monkeypatch):
    view = page.view(CASES[name])
    assert not view.problem
    monkeypatch.chdir(tmp_path)
    code = {}
    exec(view.handover.code.replace("print(", "("), code)  # noqa: S102
    assert tuple(code["calibration"].scales) == view.exact_scales
    program, _, line = view.handover.command.partition(" ")
    assert program == "pdp-calibrate"
    found = fine(f"{line} --json").json["scale"]
    assert tuple(found if isinstance(found, list) else [found]) == view.exact_scales
    if name == "several":
        assert "every answer alone" in view.handover.without_plan
        return
    (tmp_path / "plan.toml").write_text(view.handover.plan)
    (check,) = check_plan(read_plan(tmp_path / "plan.toml"))
    assert check.calibration.scales == view.exact_scales


@pytest.mark.parametrize("name", ["any dependence", "series", "belief", "count by", "states"])
def test_a_plan_opens_with_its_answers(name, page, tmp_path):
    view = page.view(CASES[name])
    (tmp_path / "plan.toml").write_text(view.handover.plan)
    again = Page(subject=open_subject(tmp_path / "plan.toml"))
    assert again.view({}).exact_scales == view.exact_scales


def test_a_model_alone_and_one_that_is_uploaded(tmp_path):
    wide = FRAME[["sick"]].assign(other=FRAME["sick"])
    wide.to_csv(tmp_path / "wide.csv", index=False)
    model = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[False, True]] * 2, names=["sick", "other"]
    )
    (tmp_path / "model.json").write_text(json.dumps(model.to_dict()))
    alone = Page(subject=open_subject(tmp_path / "model.json"))
    asked = {"kind": "count", "values": "true", "column": ""}
    wanted = pdp.calibrate(model, pdp.Count(values={True})).scale
    view = alone.view(asked)
    assert view.exact_scales == (wanted,)
    assert "adversary_graph" in {one["name"] for one in alone.pictures(asked)}
    code = {}
    text = view.handover.code.replace("'model.json'", repr(str(tmp_path / "model.json")))
    exec(text.replace("print(", "("), code)  # noqa: S102
    assert code["calibration"].scale == wanted
    rows = Page(subject=of_rows(tmp_path / "wide.csv"))
    given = asked | {"alike": "model", "model": json.dumps(model.to_dict())}
    assert rows.view(given).exact_scales == (wanted,)
    assert "model.json" in rows.view(given).handover.command
    for text, words in (("", "choose the file"), ("{", "not JSON"), ("{}", "lacks the schema")):
        assert words in rows.view(given | {"model": text}).problem
    public = rows.view(asked | {"alike": "public"})
    assert public.exact_scales[0] > 0
    assert "TableEstimator(source='public')" in public.handover.code


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "who belongs together"),
        ({"groups": "home"}, "lowest and the highest"),
        (HOMES | {"low": "ten"}, "must be a number"),
        (HOMES | {"low": "nan"}, "finite"),
        (HOMES | {"epsilon": "0"}, "epsilon must be positive"),
        (HOMES | {"groups": "house"}, "no column house"),
        (HOMES | {"kind": "median"}, "sum, mean, count or histogram"),
        (HOMES | {"also": "sum(("}, "expected"),
        (HOMES | {"max_group_size": "2"}, "at most 2 rows"),
        (STATED | {"column": "sick"}, "jointly Gaussian"),
        (STATED | {"strength": "accuracy"}, "must be a number"),
        (HOMES | {"alike": "dp", "strength": "accuracy", "half_width": "9"}, "once the model"),
        ({"secret": "1"}, "no field secret"),
        (HOMES | {"high": "1e999"}, "finite"),
    ],
)
def test_bad_answers_give_a_sentence(page, given, words):
    view = page.view(given)
    assert words in view.problem
    assert page.pictures(given) == ()


def test_an_accuracy_is_reached(page):
    view = page.view(STATED | {"strength": "accuracy", "half_width": "40"})
    assert float(view.scales[0][2].removeprefix("±")) == pytest.approx(40, rel=2e-3)
    assert float(view.scales[0][2].removeprefix("±")) <= 40


def test_learning_waits_for_the_release(page):
    view = page.view(HOMES | {"alike": "dp", "learning": "0.25"})
    assert view.exact_scales == ()
    assert "nothing is learned before a release" in view.words[0]
    plan = tomllib.loads(view.handover.plan)
    assert plan["model"]["epsilon"] == 0.25
    assert plan["budget"]["epsilon"] == 1.25


def test_nothing_depends_on_a_secret_value(page):
    other = FRAME.assign(income=0.5, sick=False, state="Ann")
    twin = Page(subject=dataclasses.replace(page.subject, frame=other))
    for given in CASES.values():
        assert page.view(given) == twin.view(given)
    assert page.pictures(STATED) == twin.pictures(STATED)


def test_no_row_is_in_what_a_traceback_would_show(page):
    assert "98.5" not in repr(page)


def test_pictures_are_drawn_of_simulated_people(page):
    found = {one["name"]: one["svg"] for one in page.pictures(STATED)}
    assert {"simulated", "leakage_by_scale", "scales"} <= set(found)
    assert "14 simulated people" in found["simulated"]


def test_a_release_needs_a_ledger_and_somebody_who_says_so(page, tmp_path):
    def released(**more):
        answers = completed(STATED | more, page.subject)
        asked, _ = page.calibrated(STATED | more)
        return release(asked, page.subject, answers)

    for more, words in (
        ({}, "tick the box"),
        ({"ledger": "b.json", "budget": "2"}, "tick the box"),
        ({"sure": "yes"}, "name a ledger"),
        ({"sure": "yes", "ledger": "b.json"}, "which ε"),
        ({"sure": "yes", "ledger": "../b.json", "budget": "2"}, "outside the folder"),
    ):
        with pytest.raises(pdp.PdpError, match=words):
            released(**more)
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]
    said = {"sure": "yes", "ledger": "b.json", "budget": "1.5"}
    outcome = released(**said)
    assert outcome.ledger.spent == pytest.approx(1.0, abs=1e-6)
    assert (tmp_path / "b.json").exists()
    with pytest.raises(pdp.BudgetExceededError):
        released(**said)


def test_a_plan_with_more_than_the_page_can_say_is_refused(page, tmp_path):
    asked, _ = page.calibrated(STATED)
    contents = plan_contents(asked, page.subject)
    assert contents["model"]["correlation"] == [0.0, 0.4]
    plan, parts = (page.view(one).handover.plan for one in (STATED, CASES["count by"]))
    for text, old, new in (
        (plan, "[model]", "[model]\nsmoothing = 1.0"),
        (plan, "[0.0, 0.4]", "[-0.1, 0.4]"),
        (plan, "[0.0, 0.4]", "0.4"),
        (parts, 'by = ["state"]', 'by = ["state", "sick"]'),
        (plan, "epsilon = 1.0\n", "epsilon = 1.0\nmissing = 5.0\n"),
        (plan, "epsilon = 1.0\n", "epsilon = 1.0\nnoise = 'laplace'\n"),
    ):
        head, middle, tail = text.rpartition(old)
        assert middle
        (tmp_path / "plan.toml").write_text(head + new + tail)
        with pytest.raises(pdp.PdpError, match="page has no place for"):
            Page(subject=open_subject(tmp_path / "plan.toml"))
    gaps = page.view(HOMES | {"missing": "zero"})
    (tmp_path / "plan.toml").write_text(gaps.handover.plan)
    again = Page(subject=open_subject(tmp_path / "plan.toml"))
    assert again.view({}).exact_scales == gaps.exact_scales
    for name in ("none.csv", "none.json", "none.toml"):
        with pytest.raises(pdp.PdpError, match="no file"):
            open_subject(tmp_path / name)
    assert set(DEFAULTS) >= set(completed({}, page.subject))


def test_the_framework_is_loaded_by_the_page_alone():
    code = "import sys, pdp_calibrate.cli.main; print({'starlette', 'uvicorn'} & set(sys.modules))"
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "set()"
