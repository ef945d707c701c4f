"""What is wrong with a file is said in one line on stderr, with exit code 2 and no traceback."""

import subprocess
import sys

import pandas as pd
import pytest

from tests.support.cli_runs import refused, run
from tests.support.plans import plan_text

CELL = "9731"
ASK = "release {file} -q 'sum(income)' --groups household --bounds income=0:10000 -e 1"
PLAN = plan_text(
    {"query": "sum(income)", "epsilon": 0.5},
    data={"file": "people.csv", "groups": "household"},
    model={"bounds": {"income": [0, 10000]}},
    budget={"epsilon": 1.0},
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"household": [1, 1, 2], "income": [10, int(CELL), 30]}).to_csv(
        "people.csv", index=False
    )
    return tmp_path


def refused_file(content, *, name="data.csv", options=""):
    if isinstance(content, bytes):
        with open(name, "wb") as file:  # noqa: PTH123
            file.write(content)
    elif content is not None:
        with open(name, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(content)
    words = refused(f"{ASK.format(file=name)} {options}")
    assert CELL not in words
    return words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"household;income\n1;{CELL}\n", "';': give that as the delimiter"),
        (f"household|income\n1|{CELL}\n", "'|': give that as the delimiter"),
        (f"household\tincome\n1\t{CELL}\n", "give that as the delimiter"),
        (f"household,income\n1,{CELL}\n1,2,3\n", "line 3 has 3 fields"),
        ("household,wage\n1,10\n", "no column income"),
        (f"home,income\n1,{CELL}\n", "no column household"),
        (f"household,income\n1,{CELL}\n1,unknown{CELL}\n", "must hold numbers"),
        (f"household,income\n1,{CELL}\n1,\n", "missing"),
        (f"household,income\n,{CELL}\n1,4\n", "missing"),
        ("", "is empty"),
        ("household,income\n", "no rows"),
        (b"household,income\n1,\xff\xfe\n", "cannot be read as text"),
        (None, "there is no file"),
    ],
)
def test_tables_that_cannot_be_used(content, words):
    assert words in refused_file(content)


def test_the_right_delimiter_mends_it(folder):
    (folder / "data.csv").write_text("household;income\n1;5\n1;6\n")
    assert run(f"{ASK.format(file='data.csv')} --delimiter ';'").code == 0
    assert "one ASCII character" in refused(f"{ASK.format(file='data.csv')} --delimiter ';;'")


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"not parquet", "data.parquet", "cannot be read as parquet"),
        ("a,b\n1,2\n", "data.xlsx", "unknown ending"),
    ],
)
def test_other_files(content, name, words):
    assert words in refused_file(content, name=name)


def test_folders_databases_and_queries(folder):
    (folder / "empty").mkdir()
    ask = "release {} -q 'sum(income)' -e 1 --groups household --bounds income=0:10000"
    for source, words in {
        "empty": "holds no .parquet files",
        "--sql 'selec 1'": "syntax error",
        "--sql 'select nothing from people'": "DuckDB refuses the query",
        "--sql 'select 1' --database gone.duckdb": "there is no database",
        "--sql 'select 1' --database people.csv": "DuckDB refuses the query",
        "people.csv --sql 'select 1'": "and not both",
        "--database people.csv": "name a FILE",
        "people.csv --database people.csv": "a database needs an SQL query",
        "": "name a FILE",
        f"--sql \"select 1 household, cast('x{CELL}' as int) income\"": "ConversionException",
    }.items():
        message = refused(ask.format(source))
        assert words in message
        assert CELL not in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[data]", "[data", "is not TOML"),
        ("epsilon = 1.0", "epsilon = ", "is not TOML"),
        ("[budget]", "[buget]", "buget is unknown; did you mean budget?"),
        ("[budget]", "[other]", "other is unknown; there is data, model, budget"),
        ('file = "people.csv"', "", "either a file or an SQL query"),
        ('file = "people.csv"', 'file = "gone.csv"', "there is no file"),
        ('groups = "household"', 'groups = "home"', "no column home"),
        (
            'groups = "household"',
            'group = "household"',
            "data.group is unknown; did you mean",
        ),
        ("epsilon = 0.5", 'epsilon = "half"', "queries[1].epsilon must be a number"),
        ("epsilon = 0.5", "epsilon = 0", "queries[1].epsilon must be above 0"),
        ("epsilon = 0.5", "epsilon = nan", "queries[1].epsilon must be a number"),
        ("epsilon = 0.5", "", "queries[1].epsilon is missing"),
        ("epsilon = 0.5", "epsilon = 0.5\nepsilom = 1", "queries[1].epsilom is unknown; did you"),
        ("[model]", "[model]\nmax_group_size = 2", "model.max_group_size is unknown"),
        ("[data]", "[data]\nmax_group_size = 1", "groups may have at most 1 rows, got one of 2"),
        ("[data]", "[data]\nmax_group_size = 0", "data.max_group_size must be at least 1"),
        ('"sum(income)"', '"sum(income"', "expected ',' or ')' at character 11"),
        ('"sum(income)"', '"som(income)"', "linear; did you mean sum? at character 1"),
        ('"sum(income)"', '"sum(wage)"', "no column wage"),
        ("[0, 10000]", "[0]", "model.bounds.income must have 2 entries"),
        ("[0, 10000]", "[10000, 0]", "lo < hi"),
        ("[model]", '[model]\nkind = "magic"', "model.kind must be one of"),
        ("[model]", '[model]\nkind = "tabel"', "did you mean table?"),
        ("[model]", '[model]\nfile = "gone.json"', "comes from a file"),
        ("[budget]", '[budget]\nadversaries = "nobody"', "adversaries are all"),
    ],
)
def test_malformed_plans(folder, old, new, words):
    assert old in PLAN
    (folder / "plan.toml").write_text(PLAN.replace(old, new, 1))
    message = refused("plan plan.toml")
    assert words in message
    assert CELL not in message


def test_plans_that_are_no_files(folder):
    assert "there is no file" in refused("plan gone.toml")
    (folder / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    assert "is not TOML" in refused("plan bytes.toml")
    assert "cannot be read" in refused(f"plan {folder}")


def test_queries_on_the_command_line_get_a_caret():
    ran = run("release people.csv -q 'sum(income' -e 1 --groups household --bounds 0:1")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "error: expected ',' or ')' at character 11 of 'sum(income'.",
        "sum(income",
        "          ^",
    ]


def test_options_that_do_not_fit():
    ask = "calibrate people.csv -q 'sum(income)' -e 1"
    for options, words in {
        "": "say how the values are correlated",
        "--kind magic": "a kind of model is one of",
        "--kind groups": "the column that names the group",
        "--groups household": "bounds",
        "--groups household --bounds income=x:y": "a number or a range",
        "--groups household --bounds 0:1 --correlation 0:2": "correlation",
        "--groups household --bounds 0:1 --rows 5": "--rows is for a model",
        "--model gone.json": "there is no file",
        "--kind table --model m.json": "comes from a file",
        "--kind table --correlation 0.2": "bounds and correlation are for",
        "--kind table --correlation 0.2 --groups household": "not a table",
        "--model gone.json --bounds 0:1": "comes from a file",
        "--groups household --bounds 0:1 --public": "about learning a model",
        "--bounds 0:1 --correlation 0.1": "name the column of the groups",
        "--kind table --covariance oas": "takes no covariance",
        "--kind table --columns income,wage": "no column wage",
        "--kind table --domain income": "a domain is written",
        "--kind table --domain 'income=1 2'": "expected ','",
        "--kind table --option smoothing": "an option is written",
        "--kind table --smoothing 0": "smoothing must be positive",
        "--groups household --bounds 0:1 --max-group-size 1": "groups may have at most 1 rows",
        "--kind table --option colour=red": "takes no colour",
        "--kind series --correlation 0.2 --groups household": "orders it",
        "--groups household --bounds 0:1 -e 0": "epsilon must be positive",
        "--groups household --bounds 0:1 -o no/folder.json": "there is no folder",
    }.items():
        ran = run(f"{ask} {options}")
        assert ran.code == 2, (options, ran)
        assert words in ran.err, (options, ran.err)
        assert len(ran.err.splitlines()) == (3 if "character" in ran.err else 1)


def test_no_traceback_in_a_process_of_its_own(folder):
    """The same through a real process, where nothing catches what the command lets out."""
    (folder / "data.csv").write_text("")
    code = "from pdp_calibrate.cli.main import main; main()"
    ran = subprocess.run(  # noqa: S603
        [
            sys.executable,
            "-c",
            code,
            "calibrate",
            "data.csv",
            "-q",
            "sum()",
            "-e",
            "1",
            "--kind",
            "table",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "error: data.csv is empty.\n")


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    words = refused("calibrate --sql 'select 1' -q 'sum()' -e 1 --kind table")
    assert "pip install" in words
    assert "[duckdb]" in words


def test_a_report_without_its_libraries_is_refused(monkeypatch):
    ask = "calibrate people.csv -q 'sum(income)' -e 1 --groups household --bounds 0:1 -o cal.json"
    assert run(ask).code == 0
    for name in [*sys.modules]:
        if name.split(".")[0] in ("jinja2", "matplotlib"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert '[report]"' in refused("report cal.json -o report.html")


def test_what_is_said_twice_about_a_column_is_refused():
    asked = "release people.csv -e 1 --groups household"
    words = refused(f"{asked} -q count() --where income=10 --where income=30")
    assert "--where is given twice for income" in words
    words = refused(f"{asked} -q sum(income) --bounds 0:1 --bounds 0:9")
    assert "--bounds is given twice for all columns" in words
