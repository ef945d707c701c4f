"""The shape of the project: imports flow one way, and load only what is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pdp_calibrate as pdp

PACKAGE = Path(pdp.__file__).parent
ORDER = [
    "errors", "cards", "progress", "models", "contributions", "queries", "adversaries", "noise",
    "estimators", "answers", "long_frames", "engines", "baselines", "calibration", "curves",
    "ledger", "auditing", "explain", "schema", "report", "verbs", "sources", "plan", "accessor",
    "cli",
]  # fmt: skip
SOURCES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[list[str]]:
    """List what a file imports, at any depth of its code, as the parts of dotted names."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    return [module.split(".") for module in modules]


def imported_rooms(path: Path) -> set[str]:
    """Name the parts of the package that a file imports."""
    return {part[1] for part in imports(path) if part[0] == "pdp_calibrate" and len(part) > 1}


@pytest.mark.parametrize("path", [p for p in SOURCES if room(p) != "__init__"], ids=str)
def test_imports_flow_one_way(path):
    here = ORDER.index(room(path))
    for other in imported_rooms(path):
        assert other in ORDER, f"{other} has no place in the order of imports"
        assert ORDER.index(other) <= here, f"{room(path)} must not import {other}"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_the_core_never_imports_the_integrations(path):
    assert "pdp_calibrate_integrations" not in {part[0] for part in imports(path)}


@pytest.mark.parametrize("path", [p for p in SOURCES if room(p) != "noise"], ids=str)
def test_only_noise_calls_opendp(path):
    names = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not any(name.split(".")[0] == "opendp" for name in names)


def test_importing_the_package_loads_no_heavy_library():
    code = (
        "import sys, pdp_calibrate;"
        "heavy = {'opendp', 'numba', 'sklearn', 'scipy', 'matplotlib'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_every_public_name_loads_and_type_checkers_see_the_same_names():
    for name in pdp.__all__:
        assert getattr(pdp, name) is not None
        assert name in dir(pdp)
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    seen = {
        (alias.name, node.module.removeprefix("pdp_calibrate."))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pdp_calibrate.")
        for alias in node.names
    }
    assert seen == set(pdp._MODULE_OF.items())
    with pytest.raises(AttributeError, match="no attribute"):
        _ = pdp.does_not_exist


def test_source_files_stay_small():
    for path in SOURCES:
        assert len(path.read_text().splitlines()) <= 400, path
