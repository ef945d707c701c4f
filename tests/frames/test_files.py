"""Rows in CSV, parquet and DuckDB are the same rows."""

import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import pytest

from pdp_calibrate.frames.files import Source
from tests.support.cli_runs import fine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(9)
    household = np.repeat(np.arange(60), [1, 2, 3] * 20)
    people = pd.DataFrame(
        {
            "household": household,
            "income": np.round(rng.normal(40, 15, len(household)), 2),
            "ill": rng.integers(0, 2, len(household)),
            "old": rng.integers(0, 2, len(household)),
        }
    )
    people.to_csv(place / "people.csv", index=False)
    people.to_csv(place / "people.txt", index=False, sep="|")
    people.to_csv(place / "people.csv.gz", index=False)
    (place / "parts" / "deep").mkdir(parents=True)
    people[:50].to_parquet(place / "parts" / "a.parquet")
    # A later file may have its columns in another order.
    people[50:][["ill", "old", "income", "household"]].to_parquet(
        place / "parts" / "deep" / "b.parquet"
    )
    people.to_parquet(place / "people.parquet")
    with duckdb.connect(place / "people.duckdb") as connection:
        connection.register("frame", people)
        connection.execute("create table people as select * from frame")
    return place


@pytest.fixture
def sources(folder):
    return {
        "csv": f"{folder}/people.csv",
        "gz": f"{folder}/people.csv.gz",
        "text": f"{folder}/people.txt --delimiter '|'",
        "parquet": f"{folder}/people.parquet",
        "folder": f"{folder}/parts",
        "database": f"--sql 'select * from people' --database {folder}/people.duckdb",  # noqa: S608
        "query": f"--sql \"select * from '{folder}/parts/**/*.parquet'\"",  # noqa: S608
    }


def test_every_source_gives_the_same_scale(sources):
    ask = "-q 'mean(income)' -e 1 --kind groups --groups household --bounds 0:100 --json --public"
    found = {name: fine(f"calibrate {place} {ask}").json for name, place in sources.items()}
    for name, one in found.items():
        assert one["scale"] == pytest.approx(found["csv"]["scale"], rel=1e-9), name
        assert one["model"]["counts"] == found["csv"]["model"]["counts"]


def test_every_source_gives_the_same_table_and_nearly_the_same_answer(sources, folder):
    tables = [
        fine(f"fit {place} --kind table --columns ill,old --public --json").json
        for place in sources.values()
    ]
    assert all(table == tables[0] for table in tables)
    truth = pd.read_csv(folder / "people.csv")["income"].clip(0, 100).sum()
    ask = "-q 'sum(income)' -e 1000 --groups household --bounds income=0:100 --json"
    for name in ("csv", "folder", "database"):
        released = fine(f"release {sources[name]} {ask}").json
        assert released["value"] == pytest.approx(truth, abs=0.3 * 30), name  # scale 0.3


def test_rows_stay_in_the_engine(folder):
    for source in (
        Source(file=folder / "parts"),
        Source(sql="select * from people", database=folder / "people.duckdb"),
    ):
        assert isinstance(source.read(), duckdb.DuckDBPyRelation)


def test_a_csv_file_needs_no_engine(folder):
    code = (
        "import sys; from pathlib import Path; from pdp_calibrate.frames.files import Source\n"
        f"Source(file=Path({str(folder / 'people.csv')!r})).read()\n"
        "print('duckdb' in sys.modules)"
    )
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "False"
