"""Files that commands write: checked before a budget is spent, never written over unasked."""

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.support.cli_runs import fine, refused, run
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


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("suffix", ["out.json", ".tmp"])
def test_a_folder_that_cannot_be_written_costs_no_budget(folder, monkeypatch, number, suffix):
    opened = os.open  # root may write anywhere

    def closed(path, flags, *more, **named):
        if str(path).endswith(suffix) and "ledger" not in str(path) and flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", closed)
    line = f"release {ASK} -e 0.5 --ledger budget.json -o out.json"
    assert os.strerror(number) in refused(line)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert spent() == 0
    assert not (folder / "out.json").exists()


def test_a_name_that_is_too_long_costs_no_budget():
    line = f"release {ASK} -e 0.5 --ledger budget.json -o {'x' * 300}.json"
    assert "cannot be written" in refused(line)
    assert spent() == 0


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def test_what_is_refused_leaves_no_file(folder):
    before = names(folder)
    line = f"release {ASK} -e 9 --ledger budget.json -o out.json --report page.html"
    assert "above the budget" in refused(line, code=3)
    assert names(folder) == before


NOWHERE = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@NOWHERE
@pytest.mark.parametrize("json_too", ["", " --json"])
def test_an_answer_that_cannot_be_written_is_printed_and_said_to_be_charged(json_too):
    line = f"release {ASK} -e 0.5 --ledger budget.json -o /dev/full --force{json_too}"
    ran = run(line)
    assert ran.code == 4
    assert ran.json["type"] == "Release"
    assert isinstance(ran.json["value"], int)
    (message,) = ran.err.splitlines()
    for words in ("/dev/full", "No space left", "is printed", "Budget: 0.5 of 2 spent"):
        assert words in message
    assert spent() == pytest.approx(0.5)


@NOWHERE
def test_a_report_that_cannot_be_written_comes_after_the_answer():
    ran = run(f"release {ASK} -e 0.5 --ledger budget.json --report /dev/full --force")
    assert ran.code == 4
    assert "sum(mother)" in ran.out
    assert "was printed: keep it. Budget: 0.5 of 2 spent." in ran.err
    ran = run(f"release {ASK} -e 0.5 -o out.json --report /dev/full --force")
    assert ran.code == 4
    assert "is in out.json: keep it. It leaked up to" in ran.err
    assert pdp.load("out.json").calibration.epsilon == 0.5


@NOWHERE
def test_people_plans_and_learned_models_reach_the_person_too(folder):
    table = "survey.csv --independent --domain mother=0,1"
    fine(f"people create people.json {table} -e 2")
    asked = 'people.json survey.csv -q "count(mother=1)"'
    ran = run(f"people release {asked} -e 0.5 -o /dev/full --force")
    assert (ran.code, ran.json["type"]) == (4, "Release")
    assert "Budget: 0.5 of 2 spent" in ran.err
    write_plan(folder)
    ran = run("plan plan.toml -o /dev/full --force")
    assert (ran.code, ran.json["type"]) == (4, "Outcome")
    assert "Budget: 0.1 of 9 spent" in ran.err
    fitted = "fit survey.csv --kind table --columns mother,child --epsilon 1"
    ran = run(f"{fitted} --domain mother=0,1 --domain child=0,1 -o /dev/full --force")
    assert (ran.code, ran.json["type"]) == (4, "ModelSet")
    assert "ε = 1 was spent" in ran.err


def test_a_disk_that_is_full_when_the_file_is_put_in_place(folder, monkeypatch):
    (folder / "out.json").write_text("mine")
    real, opened = Path.replace, Path.open

    def full(path, target):
        if str(path).endswith(".tmp") and "out.json" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, target)

    def busy(path, mode="r", **named):
        if mode == "wb":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, mode, **named)

    monkeypatch.setattr(Path, "replace", full)
    monkeypatch.setattr(Path, "open", busy)
    ran = run(f"release {ASK} -e 0.5 --ledger budget.json -o out.json --force")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert (ran.code, ran.json["type"]) == (4, "Release")
    assert (folder / "out.json").read_text() == "mine"
    assert not [one for one in names(folder) if one.endswith(".tmp")]
    assert spent() == pytest.approx(0.5)


def shell(line, **options):
    """Run a line in a process of its own, which has a stdout that can fail."""
    code = "from pdp_calibrate.cli.main import main; main()"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *shlex.split(line)], check=False, timeout=120,
        stderr=subprocess.PIPE, text=True, env=environment | options.pop("env", {}), **options,
    )  # fmt: skip


@NOWHERE
@pytest.mark.parametrize("json_too", ["", " --json"])
def test_where_stdout_is_full_the_answer_is_on_stderr(json_too):
    with Path("/dev/full").open("w") as full:
        ran = shell(f"release {ASK} -e 0.5 --ledger budget.json{json_too}", stdout=full)
    assert ran.returncode == 4
    answer, _, words = ran.stderr.rpartition("\nerror: ")
    assert json.loads(answer)["type"] == "Release"
    assert "No space left" in words
    assert "on stderr: keep it. Budget: 0.5 of 2 spent." in words


@NOWHERE
def test_a_charge_that_cannot_be_shown_is_said_to_be_recorded():
    with Path("/dev/full").open("w") as full:
        ran = shell("ledger charge budget.json 0.1", stdout=full)
    assert ran.returncode == 4
    assert "The charge was recorded" in ran.stderr
    assert "of 2 spent." in ran.stderr
    assert spent() > 0


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("json_too", ["", " --json"])
def test_where_nobody_reads_stdout_the_answer_is_on_stderr(json_too):
    read, write = os.pipe()
    os.close(read)
    ran = shell(f"release {ASK} -e 0.5 --ledger budget.json{json_too}", stdout=write)
    os.close(write)
    assert ran.returncode == 4
    answer, _, words = ran.stderr.rpartition("\nerror: ")
    assert json.loads(answer)["type"] == "Release"
    assert "Budget: 0.5 of 2 spent." in words


def test_a_terminal_without_the_letters_gets_the_answer_as_json():
    line = f"release {ASK} -e 0.5 --ledger budget.json"
    ran = shell(line, stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii:strict"})
    assert ran.returncode == 4
    assert json.loads(ran.stdout)["type"] == "Release"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_between_charging_and_writing_the_ledger_holds_and_no_half_file_is_there(folder):
    code = (
        "import os, signal, sys; from pdp_calibrate.show.output_file import OutputFile;"
        "OutputFile.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL);"
        "from pdp_calibrate.cli.main import main; main()"
    )
    line = f"release {ASK} -e 0.5 --ledger budget.json -o"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *shlex.split(line), "out put.json"], check=False, timeout=120,
        env=environment,
    )  # fmt: skip
    assert ran.returncode == -9
    assert spent() == pytest.approx(0.5)
    assert (folder / "out put.json").read_text() == ""
    fine(f"{line} 'out put.json' --force")
    assert pdp.load("out put.json").calibration.epsilon == 0.5
    assert spent() == pytest.approx(1.0)


def test_no_ledger_is_overwritten_under_any_name(folder):
    pdp.Ledger(pdp.load("model.json"), epsilon=2.0, path="other.json", anchor="other.anchor")
    (folder / "torn.json").write_bytes((folder / "budget.json").read_bytes()[:-50])
    (folder / "sub dir").mkdir()
    (folder / "sub dir" / "link.json").symlink_to("../other.json")
    os.link("other.json", "second.json")
    before = {one: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    others = ["other.json", "other.anchor", "other.json.lock", "torn.json", "second.json"]
    for name in [*others, "sub dir/link.json", "./sub dir/../other.json"]:
        for line in (
            f"release {ASK} -e 0.5 --ledger budget.json -o '{name}' --force",
            f"release {ASK} -e 0.5 --ledger budget.json --report '{name}' --force",
            f"calibrate {ASK} -e 0.5 -o '{name}' --force",
            f"ledger certify budget.json -o '{name}' --force",
        ):
            assert "is a ledger, or belongs to one" in refused(line)
    after = {one: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    assert after == before
    fine("ledger certify budget.json -o proof.json")
    fine("ledger certify budget.json -o proof.json --force")  # a copy, which cannot be opened


def test_python_overwrites_no_report_unasked_and_no_ledger_at_all(folder):
    ledger = pdp.Ledger.open("budget.json")
    page = pdp.report(ledger, "page one.html")
    (folder / "link.html").symlink_to("budget.json")
    before = page.read_text(), (folder / "budget.json").read_bytes()
    with pytest.raises(pdp.PdpError, match="exists already: overwrite=True"):
        pdp.report(ledger, "page one.html", title="Another")
    for name in ("budget.json", "./budget.json", "link.html", "budget.json.lock"):
        for overwrite in (False, True):
            with pytest.raises(pdp.PdpError, match="never overwritten"):
                pdp.report(ledger, name, overwrite=overwrite)
    assert before == (page.read_text(), (folder / "budget.json").read_bytes())
    pdp.report(ledger, "page one.html", title="Another", overwrite=True)
    assert "Another" in page.read_text()
    with pytest.raises(pdp.PdpError, match="NUL"):
        pdp.report(ledger, "page\0.html")


def test_a_report_without_its_libraries_costs_no_budget(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "jinja2" in refused(f"release {ASK} -e 1 --ledger budget.json --report page.html")
    assert spent() == 0


def test_nothing_is_overwritten_without_force(folder):
    for name, line in {
        "out.json": f"release {ASK} -e 1 --ledger budget.json -o out.json",
        "page.html": f"release {ASK} -e 1 --ledger budget.json --report page.html",
        "cal.json": f"calibrate {ASK} -e 1 -o cal.json",
        "cal.html": f"calibrate {ASK} -e 1 --report cal.html",
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
    assert "something else" in refused(f"calibrate {ASK} -e 1 -o survey.csv{force}")
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
