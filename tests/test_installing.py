"""What a missing library says: the command that adds it to this installation."""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import pdp_calibrate as pdp
from pdp_calibrate import errors
from pdp_calibrate.errors import MissingLibraryError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def hint(extra="plot"):
    return str(MissingLibraryError.needed_for("pictures need matplotlib", extra=extra))


def test_a_clone_installs_the_extra_from_its_folder():
    assert hint() == f'pictures need matplotlib: python -m pip install -e "{ROOT}[plot]"'


class Installed:
    def __init__(self, recorded):
        self.recorded = recorded

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.recorded


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        (None, "pdp-calibrate[plot]"),
        ('{"url": "file:///home/me/pdp"}', "pdp-calibrate[plot] @ file:///home/me/pdp"),
    ],
)
def test_a_wheel_installs_it_from_where_it_came(recorded, wanted, monkeypatch, tmp_path):
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "pdp_calibrate" / "errors.py"))
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed(recorded))
    assert hint() == f'pictures need matplotlib: python -m pip install "{wanted}"'


def test_a_library_without_a_release_for_this_python_is_named_so(monkeypatch):
    monkeypatch.setattr(errors, "_LAST_PYTHON", {"plot": (3, 0)})
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert hint() == (
        f"pictures need matplotlib, which has no release for Python {here}: use Python 3.0 or"
        " earlier."
    )


def test_the_limits_of_extras_are_those_of_the_markers():
    limits = {
        extra: (3, int(marker[1]) - 1)
        for extra, needed in PROJECT["optional-dependencies"].items()
        for one in needed
        if (marker := re.search(r"python_version < '3\.(\d+)'", one))
    }
    assert limits == errors._LAST_PYTHON


def test_the_version_stands_in_one_place():
    assert PROJECT["dynamic"] == ["version"]
    assert metadata.version("pdp-calibrate") == pdp.__version__


def test_every_file_speaks_of_this_version():
    """The version is set in `pdp_calibrate/__init__.py`; what is written for people follows."""
    version = pdp.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()
    notes = ROOT / "docs" / "releases"
    assert (notes / f"{version}.md").read_text().startswith(f"# {version}\n")
    assert f"\n{version}\n" in (notes / "index.md").read_text()
