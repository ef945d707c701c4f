"""What the README says and the command line shows, run as a user would."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pdp_calibrate as pdp
from pdp_calibrate.cli.main import app
from pdp_calibrate.cli.ohio import COUNTS, wheeze, wheeze_table
from tests.support.cli_runs import fine
from tests.support.pages import form

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_demo_tells_the_whole_story():
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    for phrase in (
        "537 children",
        "knows nothing about this child",
        "plain differential privacy",
        "the paper's chain rule",
        "group privacy",
        "really leaks more",
        "sets the noise too low",
        "Published: about",
    ):
        assert phrase in words, phrase
    table = dict(re.findall(r"│ ([\w' ]+?) +│ +([\d.]+) │", result.output))
    leaks = re.findall(r"│ +([\d.]+) │ +×", result.output)
    assert float(table["plain differential privacy"]) < float(table["the paper's chain rule"])
    assert float(table["the paper's chain rule"]) < float(table["pdp_calibrate"])
    assert float(table["pdp_calibrate"]) < float(table["group privacy"])
    assert [float(leak) > 1 for leak in leaks] == [True, True, False, False]


def test_the_demo_begins_before_anything_is_searched(monkeypatch):
    monkeypatch.setattr(pdp, "calibrate", lambda *_, **__: 1 / 0)
    result = CliRunner().invoke(app, ["demo"])
    assert isinstance(result.exception, ZeroDivisionError)
    assert "537 children" in result.output
    assert "wheezed at 10" in result.output


def test_the_version_is_printed():
    assert fine("--version").out == f"pdp-calibrate {pdp.__version__}\n"


def test_the_figures_of_the_demo_are_those_of_the_engine():
    children = wheeze()
    assert len(children) == sum(COUNTS) == 537
    model = pdp.TableEstimator(smoothing=0.5, source="public").fit(children).model_
    assert model == wheeze_table()
    query = pdp.Count(values={1})
    cal = pdp.calibrate(model, query, epsilon=1.0)
    assert cal.scale == pytest.approx(2.3216, abs=1e-4)
    assert pdp.leakage(model, query, scale=1.0).value == pytest.approx(2.3735, abs=1e-4)
    with pytest.warns(pdp.PrivacyLeakWarning, match="not a bound"):
        scale = pdp.paper.unsound_chain_rule_scale(model, query, epsilon=1.0)
    assert scale < cal.scale
    assert pdp.leakage(model, query, scale=scale).lower > 1.15


def test_help_names_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_the_table_of_evidence_is_the_measured_one():
    measured = (ROOT / "tests" / "benchmarks" / "results" / "compare.md").read_text()
    table = measured[measured.index("| data |") : measured.index("\nMedians at")]
    assert table in (ROOT / "docs" / "evidence" / "index.md").read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/howto/command-line.md"])
def test_the_commands_of_the_pages_run(page, tmp_path, monkeypatch):
    """A steward's path from a file to a report, and every other line of the pages."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    household = np.repeat(np.arange(50), [1, 2, 3, 4, 5] * 10)
    income = np.round(rng.normal(40_000, 9_000, 150))
    people = {"household": household, "person": range(150), "income": income}
    people |= {"sick": rng.random(150) < 0.2, "city": rng.choice(["Oslo", "Voss"], 150)}
    pd.DataFrame(people).to_csv("people.csv", index=False)
    mother = rng.integers(0, 2, 100)
    pd.DataFrame({"mother": mother, "child": mother ^ (rng.random(100) < 0.3)}).astype(int).to_csv(
        "survey.csv", index=False
    )
    shell = re.compile(r"```sh\n(pdp.*?)```\n\n```text\n(.*?)```", flags=re.DOTALL)
    found = shell.findall((ROOT / page).read_text())
    assert len(found) == (ROOT / page).read_text().count("```sh\npdp"), "a block without its output"
    lines = []
    for block, shown in found:
        printed = ""
        for line in block.replace("\\\n", " ").splitlines():
            program, words = line.split(maxsplit=1)
            assert program == "pdp-calibrate"
            printed += fine(words).out
            lines.append(line)
        assert form(printed) == form(shown)
    assert len(lines) >= 2
    report = (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "release.json").read_text())["type"] == "Release"
    assert "<html" in report
    to_report = next(n for n, line in enumerate(lines) if "report.html" in line)
    assert to_report + 1 <= 5


def test_the_gate_runs_the_test_command_of_the_readme():
    commands = re.findall(r"```sh\n(.*?)\n```", README, flags=re.DOTALL)
    assert "python -m pip install -e . && pdp-calibrate demo" in commands
    assert 'python -m pip install -e ".[test]" && python -m pytest' in commands
    gate = (ROOT / ".ci" / "run").read_text()
    assert 'python -m pip install -e ".[test]" && python -m pytest' in gate


LONG_SEARCHES = {
    "activity.py": pytest.mark.compiled,
    "feeder_map.py": pytest.mark.slow,
    "wide_survey.py": pytest.mark.slow,
}
EXAMPLES = [  # others run in test_integrations_examples.py and test_spark.py
    pytest.param(path, marks=LONG_SEARCHES.get(path.name, ()))
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.name not in {"siblings.py", "spark_job.py"} and not path.name.startswith("with_")
]


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(script, capsys):
    runpy.run_path(str(script))
    assert capsys.readouterr().out
    assert script.name in (ROOT / "examples" / "README.md").read_text()


def test_scales_on_real_data(capsys):
    runpy.run_path(str(ROOT / "examples" / "real_data.py"))
    found = dict(re.findall(r"^(\S.{33}) +([\d.]+) ", capsys.readouterr().out, flags=re.MULTILINE))
    scales = {name.strip(): float(scale) for name, scale in found.items()}
    assert scales["Galton: father, mother, child"] == 1.568  # .95 covered; the estimate alone 1.468
    assert scales["Ohio wheeze: table of four years"] == 2.34
    assert 1 < scales["Retinopathy: two eyes"] < 2
    assert (
        scales["Respiratory: months as a chain"] < scales["Respiratory: table of five months"] < 5
    )
    assert scales["EuStockMarkets: four indices"] < 4
    assert scales["Galton: families of five"] < 5
