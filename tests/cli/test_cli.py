"""The commands, run as typed: what they print, write and refuse."""

import json
import re
import subprocess
import sys

import jsonschema
import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.cli.main import app
from pdp_calibrate.core.numbers import at_most
from pdp_calibrate.show.registry import check_entry
from tests.support.cli_runs import fine, refused, run

VALIDATOR = jsonschema.Draft202012Validator(pdp.json_schema())
HOUSEHOLDS = "--groups household --bounds income=0:100 --correlation 0:0.4"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Give every test a folder of its own with the same small tables."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    household = np.repeat(np.arange(40), [1, 2, 3, 4] * 10)
    income = np.round(30 + 10 * rng.normal(size=40)[household] + 5 * rng.normal(size=100), 1)
    people = pd.DataFrame({"household": household, "income": income, "ill": income > 35})
    people.to_csv("people.csv", index=False)
    mother = rng.integers(0, 2, 200)
    child = np.where(rng.random(200) < 0.7, mother, 1 - mother)
    survey = pd.DataFrame({"mother": mother, "child": child})
    survey["city"] = np.where(child == 1, "Rome", "New York")
    survey.to_csv("survey.csv", index=False)
    survey.to_csv("survey.tsv", index=False, sep="\t")
    return tmp_path


def test_households_from_a_file_to_a_release():
    wanted = (
        people()
        .pdp.mean("income", bounds=(0, 100), groups="household", correlation=(0, 0.4), epsilon=0.8)
        .calibration
    )
    found = fine(f'calibrate people.csv -q "mean(income)" -e 0.8 {HOUSEHOLDS} --json').json
    VALIDATOR.validate(found)
    assert found["scale"] == wanted.scale
    assert found["query"] == {"type": "Mean", "over": None, "clamp": True}
    fine(f'calibrate people.csv -q "mean(income)" -e 0.8 {HOUSEHOLDS} -o cal.json')
    assert pdp.load("cal.json").scale == wanted.scale
    released = fine(f'release people.csv -q "mean(income)" -e 0.8 {HOUSEHOLDS} --json').json
    VALIDATOR.validate(released)
    assert abs(released["value"] - people()["income"].mean()) < wanted.accuracy(alpha=1e-11)
    stored = "release people.csv --calibration cal.json --value income --groups household"
    VALIDATOR.validate(fine(f"{stored} --json").json)
    assert "answer" in fine(f"{stored} -o release.json").out
    assert "worst adversary" in " ".join(fine("explain release.json").out.split())
    assert fine("explain cal.json --json").json["type"] == "Explanation"


def test_the_version_is_printed_and_nothing_else():
    assert fine("--version").out == f"pdp-calibrate {pdp.__version__}\n"


JSON_LINES = [
    "fit survey.tsv --kind table --columns mother,child --public",
    'advise people.csv -q "mean(income)" --groups household --bounds income=0:100',
    'calibrate model.json -q "sum()" -e 1',
    'calibrate model.json -q "sum(mother)" -q "sum(child)" -e 1 -o joint.json',
    'leakage model.json -q "sum()" --scale 2',
    "ledger create budget.json --model model.json -e 3",
    'release survey.csv -q "histogram(mother)" -e 1 --model model.json --ledger budget.json',
    'release survey.csv -q "sum(mother)" -q "sum(child)" -e 1 --model model.json',
    "ledger show budget.json",
    "ledger charge budget.json 0.1",
    "ledger draw budget.json next",
    "ledger history budget.json",
    "ledger certify budget.json -o proof.json",
    "check proof.json",
    "people create people.json people.csv --groups household --bounds income=0:100 -e 3",
    'people price people.json people.csv -q "sum(income)" -e 0.5',
    'people release people.json people.csv -q "sum(income)" -e 0.5',
    "people show people.json",
    "people history people.json",
    "plan plan.toml --check",
    "plan plan.toml",
    "refresh --epsilon 1 --persistence 0.8",
    "audit cal.json --draws 2000 --seed 1",
    "check cal.json",
    "explain cal.json",
    "report cal.json -o page.html",
    "demo",
]


def test_every_json_is_alone_on_stdout_and_keeps_the_schema(folder):
    fine("fit survey.csv --kind table --columns mother,child --public -o model.json")
    fine('calibrate model.json -q "sum()" -e 1 -o cal.json')
    (folder / "plan.toml").write_text(
        '[data]\nfile = "survey.csv"\n[model]\nfile = "model.json"\n[budget]\nepsilon = 1.0\n'
        '[[queries]]\nquery = "sum(mother)"\nepsilon = 1.0\n'
    )
    for line in JSON_LINES:
        found = fine(f"{line} --json").json
        assert {"schema", "type"} <= set(found), line  # so that the schema says something about it
        VALIDATOR.validate(found)
    VALIDATOR.validate(json.loads((folder / "joint.json").read_text()))
    jsonschema.Draft202012Validator.check_schema(fine("schema --json").json)
    about = "--name Sum --curator Office --use statistics --region Norway --author Me"
    check_entry(fine(f"registry cal.json {about} --json").json)
    tried = {" ".join(line.split()[:2]) for line in JSON_LINES}
    tried |= {line.split()[0] for line in JSON_LINES} | {"schema", "registry"}
    for group in [None, *app.registered_groups]:
        inside = app if group is None else group.typer_instance
        for command in inside.registered_commands:
            name = command.name or command.callback.__name__
            said = name if group is None else f"{group.name} {name}"
            assert said in tried or said == "explore", said  # that serves a page


def test_every_query_means_what_python_means():
    fine("fit survey.csv --kind table --columns mother,child --public -o model.json")
    model = pdp.load("model.json")
    for text, query in {
        "sum()": pdp.Sum(),
        "sum(child)": pdp.Sum(over=["child"]),
        "mean(mother,child)": pdp.Mean(over=["mother", "child"]),
        "count(mother,child=1)": pdp.Count(values={1}, over=["mother", "child"]),
        "histogram(child=1,0)": pdp.Histogram(over=["child"], categories=[1, 0]),
        "linear(2*mother-child)": pdp.Linear(weights={"mother": 2, "child": -1}),
    }.items():
        found = fine(f'calibrate survey.csv -q "{text}" -e 1 --model model.json --json').json
        wanted = pdp.calibrate(model, query, rows=200)
        assert found["scale"] == wanted.scale, text
        assert found["query"] == wanted.to_dict()["query"]


@pytest.mark.parametrize(
    ("options", "family"),
    [
        ("gaussian --columns mother,child --bounds 0:1", "SampledGaussian"),
        ("gaussian --columns mother,child --bounds 0:1 --confidence none", "Gaussian"),
        ("gaussian --columns child --bounds child=0:1 --confidence 0.9", "SampledGaussian"),
        ("table --columns child,city --smoothing 2", "JointTable"),
        ("table --columns child --domain child=0,1,2", "JointTable"),
        ("table --columns child --domain child=0,1,2 --confidence 90%", "SampledTable"),
        ("chain --value child", "MixingChain"),
        ("chain --value child --confidence none", "MarkovChain"),
        (
            "chain --value child --domain child=0,1,2 --confidence none --option smoothing=2",
            "MarkovChain",
        ),
        ("series --value child --bounds 0:1", "GaussianSeries"),
    ],
)
def test_kinds_of_models(options, family):
    assert fine(f"fit survey.csv --kind {options} --public --json").json["type"] == family


GROUPS = "--kind groups --groups household --value income --bounds 0:100"


def test_what_is_covered_is_said_on_the_command_line():
    line = f"fit people.csv {GROUPS}"
    coverage = {
        "--public": {"kind": "covered", "confidence": 0.95, "over": "sampling"},
        "--public --confidence .9": {"kind": "covered", "confidence": 0.9, "over": "sampling"},
        "--epsilon 1 --confidence .9": {
            "kind": "covered", "confidence": 0.9, "over": "sampling and noise",
        },
    }  # fmt: skip
    for said, wanted in coverage.items():
        found = fine(f"{line} {said} --json").json["coverage"]
        assert {name: found[name] for name in wanted} == wanted
    point = fine(f"{line} --public --confidence none -o point.json --json").json["coverage"]
    assert point["kind"] == "point"
    assert "learned, point (open)" in fine(f"{line} --public --confidence none").out
    assert "learned, covered at 0.95 over sampling" in fine(f"{line} --public").out
    assert "cover the noise" in refused(f"{line} --epsilon 1 --confidence none")
    assert "a probability such as .95, or none" in refused(f"{line} --public --confidence much")
    assert "between 0 and 1" in refused(f"{line} --public --confidence 2")
    assumed = f'calibrate people.csv -q "sum(income)" -e 1 {HOUSEHOLDS}'
    for idle in ("--confidence .9", "--smoothing 2"):
        assert "about learning a model" in refused(f"{assumed} {idle}")
    tree = "fit survey.csv --kind table --structure chow-liu --columns mother,child --public"
    assert "no confidence covers" in refused(f"{tree} --confidence .9")
    assert "learned, no band (open)" in fine(tree).out


def test_no_lowest_correlation_can_be_assumed():
    lowest = {
        said: fine(f"fit people.csv {GROUPS} --epsilon 2 --option lowest={said} --json").json
        for said in ("0", "none")
    }
    ends = {
        said: min(one["correlation"][0] for one in model["models"] if "correlation" in one)
        for said, model in lowest.items()
    }
    assert ends["0"] == 0 > ends["none"]


def test_beta_and_the_cost_of_a_miss_stand_beside_epsilon(folder):
    learn = "--kind groups --groups household --bounds income=0:100 --public"
    found = fine(f'calibrate people.csv -q "sum(income)" -e 1 {learn} -o cal.json --report a.html')
    words = " ".join(found.out.split())
    cal = pdp.load("cal.json")
    assert cal.baselines["group"] == pytest.approx(400)
    assert cal.group_epsilon == pytest.approx(400 / cal.scale, rel=1e-6)
    assert cal.group_epsilon > 400 / cal.scale > 1
    cost = at_most(cal.group_epsilon, digits=4)
    assert f"probability at most β = 0.05), the answer leaks up to {cost}" in words
    for said in (pdp.explain(cal), (folder / "a.html").read_text()):
        told = " ".join(said.split())
        assert "learned, covered at 0.95 over sampling" in told
        assert "β = 0.05" in told
        assert f"leaks at most {cost}" in told
        assert "is not covered" in told
    line = f'release people.csv -q "sum(income)" -e 1 {learn} -o release.json --json'
    released = fine(line).json
    assert released["calibration"]["model"]["coverage"]["confidence"] == 0.95
    ledger = pdp.Ledger(cal.model, epsilon=2.0)
    for shown in (cal, pdp.load("release.json"), ledger):
        assert "learned, covered at 0.95 over sampling" in shown._repr_html_()
    leak = " ".join(fine(f'leakage people.csv -q "sum(income)" --scale 300 {learn}').out.split())
    assert "learned, covered at 0.95 over sampling" in leak
    about = "--name Sum --curator Office --use statistics --region Norway --author Me"
    assert "β = 0.05" in json.dumps(
        fine(f"registry cal.json {about} --json").json, ensure_ascii=False
    )


def test_groups_are_learned_or_assumed():
    yes_no = fine("fit people.csv --kind groups --groups household --value ill --public --json")
    assert {model["type"] for model in yes_no.json["models"]} == {"ModelSet"}
    line = "fit people.csv --kind groups --groups household --value income --bounds 0:100"
    assert fine(f"{line} --public --json").json["provenance"] == "public"
    assumed = fine(f"{line} --correlation 0.3 -o model.json --json").json
    assert assumed["provenance"] == "assumed"
    assert assumed["counts"] == [10] * 4
    found = fine(
        'calibrate people.csv -q "sum(income)" -e 1 --groups household --model model.json --json'
    )
    same = fine(
        f'calibrate people.csv -q "sum(income)" -e 1 {HOUSEHOLDS.replace("0:0.4", "0.3")} --json'
    )
    assert found.json["scale"] == same.json["scale"]


def test_counts_in_groups_may_state_what_is_possible():
    rows = people()
    ask = 'calibrate people.csv -q "count(ill=2)" -e 1 --groups household --json'
    told = set()
    for ill in (rows["ill"].astype(int), 2 * rows["ill"], 0):  # nobody, somebody, all alike
        rows.assign(ill=ill).to_csv("people.csv", index=False)
        told.add(refused(ask))
    assert len(told) == 1
    assert "--domain" in told.pop()
    stated = fine(f"{ask} --domain ill=0,1,2").json
    assert stated["scale"] == pytest.approx(4)
    assert stated["model"]["models"][0]["domain"] == [0, 1, 2]


def test_a_model_of_private_rows_is_not_written(folder):
    words = refused("fit survey.csv --kind table --columns mother,child -o model.json")
    for choice in ("--public", "--epsilon", "--correlation", "calibrate"):
        assert choice in words
    assert not (folder / "model.json").exists()
    ran = run(
        'calibrate survey.csv -q "sum(mother,child)" -e 1 --kind table --columns mother,child'
        " --json"
    )
    assert ran.code == 0
    assert ran.err.startswith("warning: the model was learned from private rows")
    assert len(ran.err.splitlines()) == 1
    assert "probabilities" not in ran.out
    assert set(ran.json["leakage"]) == {"value"}
    leak = run('leakage survey.csv -q "sum(mother)" --scale 1 --kind table --columns mother,child')
    assert "private rows" in leak.err
    assert "attacks" not in leak.out
    fine(
        'calibrate survey.csv -q "sum(child)" -e 1 --kind table --columns mother,child'
        " -o secret.json"
    )
    assert "withholds" in refused("explain secret.json")


def test_learning_under_differential_privacy_is_spent_first():
    told = "--kind table --columns mother,child --domain mother=0,1 --domain child=0,1"
    model = fine(f"fit survey.csv {told} --epsilon 0.5 -o model.json --json").json
    assert (model["provenance"], model["estimation_epsilon"]) == ("dp", 0.5)
    spent = fine("ledger create here.json --model model.json --epsilon 2 --json").json["spent"]
    assert spent == 0.5
    elsewhere = "ledger create there.json --model model.json --epsilon 2 --learned-elsewhere --json"
    assert fine(elsewhere).json["spent"] == 0
    groups = "--kind groups --groups household --value income --bounds 0:100000"
    line = f"fit people.csv {groups} --epsilon 1 --option max_group_size=5 --json"
    assert fine(line).json["provenance"] == "dp"
    assert refused("ledger create no.json --model model.json --epsilon 0.1", code=3)


def test_a_ledger_refuses_with_its_own_exit_code():
    line = "fit people.csv --kind groups --groups household --value income --bounds 0:100"
    fine(f"{line} --correlation 0:0.4 -o model.json")
    fine("ledger create budget.json --model model.json --epsilon 1")
    ask = 'release people.csv -q "sum(income)" --groups household --ledger budget.json'
    assert "0.6 of 1 spent" in fine(f"{ask} -e 0.6").out
    assert "above the budget 1" in refused(f"{ask} -e 0.6", code=3)
    assert "budget" in refused("ledger charge budget.json 5", code=3)
    fine("ledger charge budget.json 0.05 --note elsewhere")
    history = fine("ledger history budget.json --json").json["entries"]
    assert [entry["kind"] for entry in history] == ["release", "charge"]
    assert "Sum" in fine("ledger history budget.json").out
    fine("ledger draw budget.json second")
    assert fine("ledger show budget.json --json").json["spent"] == 0
    assert "already" in refused("ledger create budget.json --model model.json -e 1")


def test_adversaries_rows_and_time_can_be_limited():
    fine("fit survey.csv --kind table --columns mother,child --public -o model.json")
    scale = {
        who: fine(f'calibrate model.json -q "sum()" -e 1 --adversaries {who} --json').json["scale"]
        for who in ("all", "strongest", "weakest", "knowing:0:0", "exactly:child:mother")
    }
    assert scale["weakest"] == scale["knowing:0:0"] == pytest.approx(scale["all"])
    assert scale["all"] > 1.1 * scale["strongest"]
    assert scale["exactly:child:mother"] == scale["strongest"]
    whole = fine('calibrate model.json -q "mean(child)" -e 1 --rows 200 --time-limit 9 --json').json
    assert whole["rows"] == 200
    assert "adversaries are all" in refused(
        'leakage model.json -q "sum()" --scale 1 --adversaries x'
    )


def test_help_has_examples_and_loads_no_heavy_library():
    code = (
        "import sys; from pdp_calibrate.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'opendp', 'numba', 'sklearn', 'scipy', 'matplotlib', 'duckdb', 'jinja2'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    for words in ([], ["calibrate"]):
        ran = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, *words, "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "loaded: []" in ran.stdout
        assert "pdp-calibrate release" in ran.stdout or "pdp-calibrate calibrate" in ran.stdout
    for command in app.registered_commands:
        name = command.callback.__name__
        assert name in ("demo", "schema") or re.search(
            rf"pdp-calibrate {name}|\[data", command.callback.__doc__
        )


def people() -> pd.DataFrame:
    return pd.read_csv("people.csv")
