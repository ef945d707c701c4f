"""A source archive and a wheel built from it, installed and used far from the source tree."""

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import pdp_calibrate as pdp

ROOT = Path(__file__).parents[1]
SMOKE = """
import sys
from importlib import metadata

import pdp_calibrate as pdp
import pdp_calibrate_integrations

assert pdp.__file__.startswith(sys.prefix), pdp.__file__
assert pdp_calibrate_integrations.__file__.startswith(sys.prefix)
assert metadata.version("pdp-calibrate") == pdp.__version__
couple = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
calibration = pdp.calibrate(couple, pdp.Sum(), epsilon=1.0)
calibration.release({"x1": 1, "x2": 0})
pdp.report(calibration, "page.html")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The two archives, built in a copy: a build leaves files beside the source."""
    folder = tmp_path_factory.mktemp("build")
    copy = folder / "source"
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, copy, ignore=unwanted)
    ran(sys.executable, "-m", "build", "--outdir", folder / "dist", copy, cwd=folder)
    (archive,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return archive, wheel


def ran(*command, cwd):
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_archives_hold_what_they_need(built):
    archive, wheel = built
    assert wheel.name == f"pdp_calibrate-{pdp.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        held = set(packed.namelist())
    for name in ("__init__.pyi", "py.typed", "show/page.html.j2"):
        assert f"pdp_calibrate/{name}" in held
    assert not [name for name in held if name.startswith(("tests", "examples"))]
    assert not [name for name in held if name.endswith((".nbi", ".nbc", ".pyc"))]
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "pdp_calibrate/show/page.html.j2"} <= names


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_its_own(built, tmp_path):
    """Libraries are those of this environment; a `.pth` file does not load our editable finder."""
    _, wheel = built
    venv.create(tmp_path / "fresh", with_pip=False)
    python = tmp_path / "fresh" / "bin" / "python"
    site = Path(
        ran(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path
        ).strip()
    )
    paths = [sysconfig.get_path("purelib"), *map(str, sys.path)]
    libraries = dict.fromkeys(path for path in paths if path.endswith("site-packages"))
    (site / "libraries.pth").write_text("\n".join(libraries))
    pip = [sys.executable, "-m", "pip", "--python", python]
    ran(*pip, "install", "--no-deps", "--ignore-installed", wheel, cwd=tmp_path)
    ran(python, "-c", SMOKE, cwd=tmp_path)
    assert "worst adversary" in (tmp_path / "page.html").read_text()
    command = python.with_name("pdp-calibrate")
    assert ran(command, "--version", cwd=tmp_path) == f"pdp-calibrate {pdp.__version__}\n"
    assert "537" in ran(command, "demo", cwd=tmp_path)
