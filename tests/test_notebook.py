"""The notebook: its committed outputs are what its code gives today."""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

EXAMPLES = Path(__file__).parent.parent / "examples"
CELLS = json.loads((EXAMPLES / "tour.ipynb").read_text())["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def printed(cell):
    return "".join(
        "".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"
    )


def test_the_notebook_renders():
    kinds = [output["output_type"] for cell in CODE for output in cell["outputs"]]
    assert kinds
    assert set(kinds) <= {"stream", "execute_result", "display_data"}
    assert all(cell["outputs"] for cell in CODE)
    shown = [output.get("data", {}) for cell in CODE for output in cell["outputs"]]
    assert sum("image/png" in data for data in shown) >= 7
    assert sum("text/html" in data for data in shown) >= 4
    numbers = [cell["execution_count"] for cell in CODE]
    assert numbers == list(range(1, len(CODE) + 1))


def test_its_code_still_gives_the_committed_words():
    space: dict = {}
    for cell in CODE:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("".join(cell["source"]), "tour.ipynb", "exec"), space)  # noqa: S102
        if "random" not in cell["metadata"].get("tags", []):
            assert out.getvalue() == printed(cell)


def test_the_pictures_of_the_readme_are_drawn_by_their_script(tmp_path, monkeypatch, capsys):
    script = EXAMPLES / "pictures" / "draw.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script))
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == sorted(path.name for path in script.parent.glob("*.png"))
    assert capsys.readouterr().out.count(".png") == len(drawn)
    for name in drawn:
        with Image.open(tmp_path / name) as new, Image.open(script.parent / name) as old:
            assert new.size == old.size
            assert new.width == pytest.approx(660, abs=1)
            now, before = (np.asarray(one.convert("L"), dtype=float) for one in (new, old))
            # Fonts may differ from machine to machine; another picture differs by far more.
            assert np.abs(now - before).mean() < 4 < np.abs(now - now[::-1]).mean()
