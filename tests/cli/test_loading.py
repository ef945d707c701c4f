"""Commands load the libraries that they use, and no others: importing one takes seconds."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.support.cli_runs import fine
from tests.support.marks import slow_after
from tests.support.plans import plan_text

HEAVY = {
    "opendp", "numba", "sklearn", "scipy", "scipy.stats", "narwhals", "matplotlib", "polars",
    "duckdb", "jinja2", "jsonschema", "rich.table", "starlette", "uvicorn",
}  # fmt: skip
ROWS = {"scipy", "narwhals"}
ASSUMED = "--groups household --bounds income=0:100 --correlation 0:0.4"
LOADED = {  # what each command may load; before it the files that it needs are made
    "--version": set(),
    "schema": ROWS,  # every family says what its files hold
    "demo": {*ROWS, "numba", "opendp", "rich.table"},
    f"fit people.csv --kind groups --value income {ASSUMED}": {*ROWS, "rich.table"},
    f'calibrate people.csv -q "mean(income)" -e 1 {ASSUMED}': {*ROWS, "rich.table"},
    f'release people.csv -q "mean(income)" -e 1 {ASSUMED} --json': {*ROWS, "opendp"},
    f'leakage people.csv -q "sum(income)" {ASSUMED} --scale 3 --json': ROWS,
    "ledger create new.json --model model.json -e 2 --json": ROWS,
    "ledger show budget.json --json": ROWS,
    "explain release.json": ROWS,
    "plan plan.toml --check --json": {*ROWS, "jsonschema"},
}
PLAN = plan_text(
    {"query": "sum(income)", "epsilon": 0.5},
    data={"file": "people.csv", "groups": "household"},
    model={"bounds": [0, 100], "correlation": 0.2},
    budget={"epsilon": 1.0},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("loading")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        household = np.repeat(np.arange(20), 2)
        income = np.random.default_rng(1).normal(50, 9, 40)
        pd.DataFrame({"household": household, "income": income}).to_csv("people.csv", index=False)
        fine(f"fit people.csv --kind groups --value income {ASSUMED} -o model.json")
        fine(f'release people.csv -q "mean(income)" -e 1 {ASSUMED} -o release.json')
        fine("ledger create budget.json --model model.json -e 2")
        (place / "plan.toml").write_text(PLAN)
    return place


@pytest.mark.parametrize("line", slow_after(6, LOADED))
def test_a_command_loads_only_what_it_uses(folder, line):
    code = (
        "import shlex, sys; from pdp_calibrate.cli.main import app\n"
        "try: app(shlex.split(sys.argv[1]))\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('loaded:', *sys.modules)"
    )
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, line],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = HEAVY & set(ran.stdout.rpartition("loaded:")[2].split())
    assert loaded <= LOADED[line]
    assert line != "demo" or "opendp" in loaded  # or nothing would be tested
