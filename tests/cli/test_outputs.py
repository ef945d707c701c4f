"""Files that commands write: checked before a budget is spent, never written over unasked."""

import json
import os
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

ASK = 'survey.csv -q "sum(mother)" --model model.json'
PLAN = plan_text(
    {"query": "sum(mother)", "epsilon": 0.1},
    data={"file": "survey.csv"},
    model={"file": "model.json"},
    budget={"epsilon": 9.0, "ledger": "LEDGER"},
    output={"releases": "OUT", "report": "REPORT"},
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    pd.DataFrame({"mother": [0, 1] * 20, "child": [0, 1, 1, 1] * 10}).to_csv(
        "survey.csv", index=False
    )
    table = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["mother", "child"]
    )
    (place / "model.json").write_text(json.dumps(table.to_dict()))
    pdp.Ledger(table, epsilon=2.0, path="budget.json")
    return place


def spent():
    return pdp.Ledger.open("budget.json").spent


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_place_that_cannot_be_written_costs_no_budget(folder, option):
    (folder / "folder").mkdir()
    for place, words in {"missing/out": "no folder", "folder": "is a folder"}.items():
        line = f"release {ASK} -e 0.5 --ledger budget.json {option} {place}"
        assert words in refused(line)
    assert spent() == 0


def test_a_folder_without_permission_costs_no_budget(monkeypatch):
    closed = SimpleNamespace(access=lambda *_: False, W_OK=os.W_OK, path=os.path)
    monkeypatch.setattr("pdp_calibrate.cli.output.os", closed)  # root may write anywhere
    assert "permission" in refused(f"release {ASK} --ledger budget.json -o out.json")
    assert spent() == 0


def test_a_report_without_its_libraries_costs_no_budget(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "jinja2" in refused(f"release {ASK} --ledger budget.json --report page.html")
    assert spent() == 0


def test_nothing_is_overwritten_without_force(folder):
    for name, line in {
        "out.json": f"release {ASK} --ledger budget.json -o out.json",
        "page.html": f"release {ASK} --ledger budget.json --report page.html",
        "cal.json": f"calibrate {ASK} -o cal.json",
        "cal.html": f"calibrate {ASK} --report cal.html",
        "fit.json": "fit survey.csv --kind table --public -o fit.json",
    }.items():
        (folder / name).write_text("mine")
        assert "--force" in refused(line)
        assert (folder / name).read_text() == "mine"
    assert spent() == 0
    fine(f"release {ASK} -e 0.2 --ledger budget.json -o out.json --force")
    assert json.loads((folder / "out.json").read_text())["type"] == "Release"
    (folder / "report.html").write_text("mine")
    assert "--force" in refused("report out.json")
    fine("report out.json --force")
    assert (folder / "report.html").read_text() != "mine"


def write_plan(folder, *, out="out.json", page="page.html", ledger="plans.json"):
    text = PLAN.replace("OUT", out).replace("REPORT", page).replace("LEDGER", ledger)
    (folder / "plan.toml").write_text(text)


def test_a_plan_writes_over_nothing_without_force(folder):
    write_plan(folder)
    (folder / "out.json").write_text("mine")
    assert "--force" in refused("plan plan.toml")
    assert not (folder / "plans.json").exists()
    fine("plan plan.toml --force")
    assert json.loads((folder / "out.json").read_text())["type"] == "Outcome"


@pytest.mark.parametrize("where", ["../out.json", "ABSOLUTE/out.json", "link/out.json"])
@pytest.mark.parametrize("what", ["out", "page", "ledger"])
def test_a_plan_writes_beside_itself_only(folder, where, what):
    (folder / "link").symlink_to(folder.parent, target_is_directory=True)
    place = where.replace("ABSOLUTE", str(folder.parent))
    write_plan(folder, **{what: place})
    for line in ("plan plan.toml", "plan plan.toml --check", "plan plan.toml --force"):
        assert "outside the folder" in refused(line)
    assert not (folder.parent / "out.json").exists()
    assert not (folder / "plans.json").exists()


def test_the_command_line_may_name_any_place(folder):
    write_plan(folder, out="sub/missing.json", page="sub/missing.html")
    elsewhere = folder.parent
    fine(f"plan plan.toml -o {elsewhere}/out.json --report {elsewhere}/page.html")
    assert json.loads((elsewhere / "out.json").read_text())["type"] == "Outcome"
    assert "Privacy report" in (elsewhere / "page.html").read_text()


def test_a_ledger_outside_the_folder_may_be_used_if_it_exists(folder):
    model = pdp.load("model.json")
    pdp.Ledger(model, epsilon=9.0, path=folder.parent / "shared.json")
    write_plan(folder, ledger="../shared.json")
    fine("plan plan.toml")
    assert len(pdp.Ledger.open(folder.parent / "shared.json").history) == 1


@pytest.mark.parametrize("force", ["", " --force"])
def test_no_output_takes_the_place_of_a_file_in_use(folder, force):
    before = {one: one.read_bytes() for one in folder.iterdir()}
    (folder / "by-link.json").symlink_to("budget.json")
    kept = ["budget.json", "budget.json.lock", "./budget.json", "by-link.json", "survey.csv"]
    for name in [*kept, "model.json"]:
        for option in ("-o", "--report"):
            line = f"release {ASK} -e 0.5 --ledger budget.json {option} {name}{force}"
            assert "something else" in refused(line)
    both = f"release {ASK} -e 0.5 --ledger budget.json -o one.json --report one.json{force}"
    assert "something else" in refused(both)
    assert "something else" in refused(f"calibrate {ASK} -o survey.csv{force}")
    assert "something else" in refused(f"fit survey.csv --kind table --public -o survey.csv{force}")
    assert "something else" in refused(f"report budget.json -o budget.json{force}")
    assert all(one.read_bytes() == content for one, content in before.items())


@pytest.mark.parametrize(
    "names",
    [
        {"out": "plans.json"},
        {"page": "plans.json"},
        {"page": "plans.json.lock"},
        {"out": "plan.toml"},
        {"out": "page.html"},
    ],
)
def test_a_plan_writes_over_nothing_that_it_uses(folder, names):
    write_plan(folder, **names)
    assert "something else" in refused("plan plan.toml --force")
    assert not (folder / "plans.json").exists()  # nothing was spent on it
