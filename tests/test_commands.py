"""What the README says and the command line shows, run as a user would."""

import re
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pdp_calibrate as pdp
from pdp_calibrate.cli import app
from pdp_calibrate.cli.ohio import COUNTS, wheeze

ROOT = Path(__file__).parent.parent
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


def test_the_figures_of_the_demo_are_those_of_the_engine():
    children = wheeze()
    assert len(children) == sum(COUNTS) == 537
    model = pdp.TableEstimator(source="public").fit(children).model_
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


def test_the_python_of_the_readme_runs(capsys):
    snippets = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102
    assert "worst adversary" in capsys.readouterr().out


def test_the_gate_runs_the_test_command_of_the_readme():
    commands = re.findall(r"```sh\n(.*?)\n```", README, flags=re.DOTALL)
    assert "python -m pip install -e . && pdp-calibrate demo" in commands
    assert 'python -m pip install -e ".[test]" && python -m pytest' in commands
    gate = (ROOT / ".ci" / "run").read_text()
    assert 'python -m pip install -e ".[test]" && python -m pytest' in gate


EXAMPLES = [  # tests/test_spark.py runs the one that needs Spark
    path for path in sorted((ROOT / "examples").glob("*.py")) if path.name != "spark_job.py"
]


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(script, capsys):
    runpy.run_path(str(script))
    assert capsys.readouterr().out
    assert script.name in (ROOT / "examples" / "README.md").read_text()


def test_scales_on_real_data(capsys):
    runpy.run_path(str(ROOT / "examples" / "real_data.py"))
    found = dict(re.findall(r"^(\S.{33}) +([\d.]+) ", capsys.readouterr().out, flags=re.MULTILINE))
    scales = {name.strip(): float(scale) for name, scale in found.items()}
    assert scales["Galton: father, mother, child"] == 1.468
    assert scales["Ohio wheeze: table of four years"] == 2.322
    assert 1 < scales["Retinopathy: two eyes"] < 2
    assert (
        scales["Respiratory: months as a chain"] < scales["Respiratory: table of five months"] < 5
    )
    assert scales["EuStockMarkets: four indices"] < 4
    assert scales["Galton: families of five"] < 5


def test_words_for_every_situation():
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    positive = pdp.explain(pdp.calibrate(table, pdp.Sum()))
    assert "would really have leaked" in positive
    assert "knows nobody's entry" in positive
    assert "group privacy" in positive
    negative = pdp.JointTable(probabilities=[[0.1, 0.4], [0.4, 0.1]], domains=[[0, 1]] * 2)
    words = pdp.explain(pdp.calibrate(negative, pdp.Mean()))
    assert "would have been enough" in words
    assert "knows x2 = " in words or "knows x1 = " in words
    hurried = pdp.explain(pdp.calibrate(table, pdp.Sum(), time_limit=0))
    assert "at most" in hurried
