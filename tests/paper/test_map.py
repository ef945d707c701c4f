"""The map of the paper names tests that exist, and its example gives the numbers beside it."""

import re
from pathlib import Path

import pytest

import pdp_calibrate as pdp

HERE = Path(__file__).parent
MAP = HERE.parent.parent / "examples" / "paper" / "README.md"


def test_every_test_named_in_the_map_exists():
    named = set(re.findall(r"`(test_\w+)`", MAP.read_text(encoding="utf-8")))
    sources = [path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py")]
    assert named <= set(re.findall(r"def (test_\w+)", "\n".join(sources)))


def test_every_numbered_statement_is_in_the_map():
    text = MAP.read_text(encoding="utf-8")
    numbered = {"Definition": 2, "Theorem": 6, "Corollary": 2, "Lemma": 3, "Proposition": 2}
    numbered |= {"Algorithm": 2, "Example": 5}
    for kind, count in numbered.items():
        for number in range(1, count + 1):
            assert re.search(rf"\| .*{kind} {number}\b", text), f"{kind} {number}"
    assert all(f"Figure {number}" in text for number in (3, 4, 5))
    assert "Figures 1 and 2" in text


def test_the_example_gives_the_numbers_beside_it():
    (code,) = re.findall(r"```python\n(.*?)```", MAP.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for line in code.splitlines():
        statement, _, comment = line.partition("#")
        if comment:
            stated = float(re.search(r"[\d.]+", comment).group())
            assert eval(statement, names) == pytest.approx(stated, abs=5e-4)  # noqa: S307
        else:
            exec(statement, names)  # noqa: S102
    assert names["pdp"] is pdp
