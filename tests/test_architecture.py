"""The shape of the project: imports flow one way, and load only what is used."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import pdp_calibrate as pdp

PACKAGE = Path(pdp.__file__).parent
ORDER = [
    {"errors"}, {"check"}, {"arrays"}, {"core"}, {"frames"}, {"learning"}, {"families"},
    {"calibration"}, {"composition"}, {"ledger", "auditing", "paper"}, {"jobs"}, {"show"},
    {"accessor", "people"}, {"exploring"}, {"cli"},
]  # fmt: skip
SOURCES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rank(name: str) -> int:
    """Where a room stands in the order of imports."""
    (found,) = (place for place, rooms in enumerate(ORDER) if name in rooms)
    return found


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


def inside(path: Path) -> list[list[str]]:
    """What a file imports of the package: the parts of the names below it."""
    return [part[1:] for part in imports(path) if part[0] == "pdp_calibrate" and len(part) > 1]


def test_contributing_draws_the_same_house():
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    drawn = text.split("## The house\n\n```\n")[1].split("```")[0]
    assert [
        set(part.replace(" ", "").split(",")) for part in " ".join(drawn.split()).split("<")
    ] == (ORDER)
    named = set(re.findall(r"`(\w+)(?:/|\.py)`", text.split("| place |")[1].split("\n\n")[0]))
    assert set().union(*ORDER) - {"errors", "arrays"} <= named


@pytest.mark.parametrize("path", [p for p in SOURCES if room(p) != "__init__"], ids=str)
def test_imports_flow_one_way(path):
    here = room(path)
    for other in {part[0] for part in inside(path)}:
        if other in pdp.__all__ and other != "paper":
            continue  # a public name, loaded when it is used
        assert other == here or rank(other) < rank(here), f"{here} must not import {other}"


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if room(p) == "families" and p.parent != PACKAGE / "families"],
    ids=str,
)  # fmt: skip
def test_a_family_never_imports_another(path):
    own = path.relative_to(PACKAGE).parts[1]
    others = {part[1] for part in inside(path) if part[0] == "families" and len(part) > 1}
    assert others <= {own}, f"{own} must reach other families through core"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_the_core_never_imports_the_integrations(path):
    assert "pdp_calibrate_integrations" not in {part[0] for part in imports(path)}


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name != "noise.py"], ids=str)
def test_only_noise_calls_opendp(path):
    assert not any(part[0] == "opendp" for part in imports(path))


def test_the_checker_stands_apart():
    used = {part[0] for part in imports(PACKAGE / "check.py")}
    assert used <= sys.stdlib_module_names


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
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    seen = {
        alias.asname for node in stub.body if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }  # fmt: skip
    assert seen == set(pdp.__all__)
    with pytest.raises(AttributeError, match="no attribute"):
        _ = pdp.does_not_exist


def test_every_model_that_json_names_has_an_engine():
    from pdp_calibrate.core.model import model_named
    from pdp_calibrate.families import MODELS

    for kind in set(MODELS) - {
        "Blocks",
        "ModelSet",
        "SampledChain",
    }:  # these are split into their parts
        assert model_named(kind).engine is not None


def test_every_composer_that_a_model_names_is_there():
    from pdp_calibrate.core.model import model_named
    from pdp_calibrate.core.problem import Composer
    from pdp_calibrate.families import MODELS

    named = {model_named(kind).composer for kind in MODELS} - {None}
    assert len(named) >= 6
    for module, name in (found.split(":") for found in named):
        assert issubclass(getattr(import_module(module), name), Composer)


def test_composition_knows_no_family_but_the_tables_that_others_are_written_out_as():
    for path in SOURCES:
        if room(path) == "composition":
            assert {part[1] for part in inside(path) if part[0] == "families"} <= {"table"}, path


def test_no_source_file_is_two_rooms():
    for path in SOURCES:  # the checker must be one file: see test_check.py for its size
        assert path == PACKAGE / "check.py" or len(path.read_text().splitlines()) <= 800, path


def files_entered(call: Callable[[], object]) -> set[str]:
    """Return the files of the library whose functions a call enters, the second time it is made."""
    call()
    entered = set()

    def note(frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def test_a_reader_can_follow_a_calibration_and_a_release_through_few_files(tmp_path):
    pair = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    assert len(files_entered(lambda: pdp.calibrate(pair, pdp.Sum()))) <= 15

    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=20)
    ledger = pdp.Ledger(chain, epsilon=5.0, path=tmp_path / "ledger.json")
    data = dict.fromkeys(range(20), 1)
    ledger.release(pdp.Sum(), data, epsilon=0.1)
    assert len(files_entered(lambda: ledger.release(pdp.Sum(), data, epsilon=0.1))) <= 25
