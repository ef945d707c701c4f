"""SQL given on a command line or in a plan: one SELECT, which reads files and writes none."""

import duckdb
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.frames.files import Source
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

FITS = "--kind table --columns a --public"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [0, 1, 1], "b": [3, 4, 5]}).to_csv("people.csv", index=False)
    with duckdb.connect("people.db") as connection:
        connection.execute("CREATE TABLE people AS FROM 'people.csv'")
    return tmp_path


@pytest.mark.parametrize(
    "query",
    [
        "from 'people.csv'",
        "select a from read_csv('people.csv') where b > 3;",
        "with s as (select a from 'people.csv') select * from s union all from s",
        "with recursive r(a) as (select 0 union all select a + 1 from r where a < 2) from r",
        "select unnest([0, 1]) as a",
        "select range % 2 as a from range(5)",
        "select a, sum(b) over (order by b) as s from 'people.csv'",
        "select (select max(a) from 'people.csv') as a",
    ],
)
def test_reading_goes_on(query):
    assert len(Source(sql=query).read().fetchall()) > 0


@pytest.mark.parametrize("database", [None, "people.db"])
@pytest.mark.parametrize(
    "query",
    [
        "copy (from 'people.csv') to 'out.csv'",
        "copy (from 'people.csv') to 'out.csv'; from 'people.csv'",
        "with x as (copy (from 'people.csv') to 'out.csv') select * from 'people.csv', x",
        "with x as (insert into people values (0, 0) returning *) select * from x",
        "from 'people.csv'; from 'people.csv'",
        "attach 'out.csv' as other",
        "install httpfs",
        "load httpfs",
        "pragma version",
        "set threads = 1",
        "create table out as from 'people.csv'",
        "insert into people values (0, 0)",
        "export database 'out.csv'",
        "explain analyze from 'people.csv'",
        "call enable_logging(storage = 'file', storage_config = {'path': 'out.csv'})",
        "",
    ],
)
def test_anything_but_one_select_is_refused_and_not_run(folder, database, query):
    before = set(folder.iterdir())
    where = "" if database is None else f" --database {database}"
    said = refused(f'fit --sql "{query}"{where} {FITS}')
    assert "single SELECT" in said or "DuckDB refuses the query: Parser Error" in said
    assert set(folder.iterdir()) == before


def test_functions_that_change_settings_are_refused(folder):
    log = "select * from enable_logging(storage = 'file', storage_path = 'logs')"
    for query in (log, "from query('from ''people.csv''')", "from checkpoint()"):
        with pytest.raises(pdp.SourceError, match="table function"):
            Source(sql=query).read()
    assert not (folder / "logs").exists()


def test_no_extension_is_installed_or_loaded():
    connection = (
        Source(sql="select 0 as a")
        .read()
        .query("rows", "select name, value from duckdb_settings()")
    )
    settings = dict(connection.fetchall())
    for name in ("autoinstall_known_extensions", "autoload_known_extensions"):
        assert settings[name] == "false"
    assert settings["lock_configuration"] == "true"
    with pytest.raises(pdp.SourceError):
        Source(sql="from 'https://127.0.0.1:9/people.csv'").read()


def test_variables_of_this_program_cannot_be_named():
    with pytest.raises(pdp.SourceError, match="does not exist"):
        Source(sql="from query").read()


def test_a_plan_may_not_copy_either(folder):
    copying = "COPY (SELECT * FROM 'people.csv') TO 'exfil.csv'; SELECT a FROM 'people.csv'"
    plan = plan_text(
        {"query": "sum(a)", "epsilon": 0.5},
        data={"sql": copying},
        model={"kind": "table", "public": True},
        budget={"epsilon": 1},
    )
    (folder / "plan.toml").write_text(plan)
    for line in ("plan plan.toml --check", "plan plan.toml"):
        assert "single SELECT" in refused(line)
    assert not (folder / "exfil.csv").exists()


def test_a_database_can_be_read():
    found = fine(f'fit --sql "from people" --database people.db {FITS} --json').json
    assert found["type"] == "JointTable"
