"""Twenty million rows in parquet: our statistics against the bare query of the engine.

Run `python -m tests.benchmarks.large` from the project root; it writes about 1.5 GB to a temporary
folder. Each engine runs in a process of its own, bare query and ours in turn. DuckDB and polars by
CPU time of the process, all threads; Spark works in another process, so by wall time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

ROWS = (100_000, 1_000_000, 20_000_000)
COLUMNS = 8
ROWS_OF_A_FILE = 1_000_000
REPEATS = 3
PAIRS = list(combinations_with_replacement(range(COLUMNS), 2))
Job = Callable[[Any], Any]


def write(folder: Path, rows: int) -> None:
    """Write `rows` rows of eight correlated reals, and of eight small codes, in several files."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "2GB", "threads": 2})
    connection.execute("SELECT setseed(0.5)")
    reals = ", ".join(f"{100 * k} + random() + random() + common AS x{k}" for k in range(COLUMNS))
    codes = ", ".join(
        f"CAST(floor(random() * 2 + common) AS TINYINT) AS c{k}" for k in range(COLUMNS)
    )
    for name, columns in (("reals", reals), ("codes", codes)):
        place = folder / f"{name}_{rows}"
        place.mkdir()
        for part in range(max(1, rows // ROWS_OF_A_FILE)):
            number = min(rows, ROWS_OF_A_FILE)
            connection.execute(
                f"COPY (SELECT {columns} FROM (SELECT random() AS common FROM range({number})))"  # noqa: S608
                f" TO '{place}/{part}.parquet' (FORMAT parquet)"
            )


def duckdb_jobs() -> tuple[Callable[[str], Any], Job, Job]:
    """Read with DuckDB; its two bare queries."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "512MB", "threads": 2})

    def moments(frame: Any) -> Any:
        sums = [f"sum(x{k})" for k in range(COLUMNS)]
        products = [f"sum(x{i} * x{j})" for i, j in PAIRS]
        return frame.aggregate(", ".join(["count(*)", *sums, *products])).fetchall()

    def contingency(frame: Any) -> Any:
        names = ", ".join(f"c{k}" for k in range(COLUMNS))
        return frame.aggregate(f"{names}, count(*)", names).fetchall()

    return connection.read_parquet, moments, contingency


def polars_jobs() -> tuple[Callable[[str], Any], Job, Job]:
    """Read with polars, lazily and streaming; its two bare queries."""
    import polars as pl

    def moments(frame: Any) -> Any:
        sums = [pl.col(f"x{k}").sum() for k in range(COLUMNS)]
        products = [(pl.col(f"x{i}") * pl.col(f"x{j}")).sum().alias(f"{i} {j}") for i, j in PAIRS]
        return frame.select(pl.len(), *sums, *products).collect(engine="streaming").rows()

    def contingency(frame: Any) -> Any:
        names = [f"c{k}" for k in range(COLUMNS)]
        return frame.group_by(names).agg(pl.len()).collect(engine="streaming").rows()

    return pl.scan_parquet, moments, contingency


def spark_jobs() -> tuple[Callable[[str], Any], Job, Job]:
    """Read with a local Spark session; its two bare queries."""
    from pyspark.sql import SparkSession, functions as f

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")

    def moments(frame: Any) -> Any:
        sums = [f.sum(f"x{k}") for k in range(COLUMNS)]
        products = [f.sum(f.col(f"x{i}") * f.col(f"x{j}")) for i, j in PAIRS]
        return frame.agg(f.count("*"), *sums, *products).collect()

    def contingency(frame: Any) -> Any:
        return frame.groupBy(*(f"c{k}" for k in range(COLUMNS))).count().collect()

    return session.read.parquet, moments, contingency


ENGINES = {"duckdb": duckdb_jobs, "polars": polars_jobs, "spark": spark_jobs}


def measured(engine: str, folder: str, what: str, rows: int, who: str) -> dict[str, float]:
    """Time the bare query, ours, or both in turn; in this process."""
    from pdp_calibrate.frames.counts import contingency
    from pdp_calibrate.frames.products import centred_products

    read, *bare = ENGINES[engine]()
    clock = time.perf_counter if engine == "spark" else time.process_time
    kind = ("moments", "contingency").index(what)
    path = f"{folder}/{('reals', 'codes')[kind]}_{rows}/*.parquet"
    names = [f"c{k}" for k in range(COLUMNS)]
    ours: Job = (centred_products, lambda frame: contingency(frame, names))[kind]
    jobs = {"bare": bare[kind], "ours": ours}
    jobs = jobs if who == "both" else {who: jobs[who]}
    small = f"{folder}/{('reals', 'codes')[kind]}_{ROWS[0]}/*.parquet"
    for job in jobs.values():  # imports, and the virtual machine's compiler
        job(read(small))
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(REPEATS):
        for name, job in jobs.items():
            begun = clock()
            job(read(path))
            best[name] = min(best[name], clock() - begun)
    return best | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def in_process(*arguments: object) -> dict[str, float]:
    """Call `measured` in a fresh process."""
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tests.benchmarks.large", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"POLARS_MAX_THREADS": "2"},
    )
    return dict(json.loads(found.stdout.splitlines()[-1]))


def main() -> None:
    """Print and store times, ratios and peak memory."""
    packages = ", ".join(f"{p} {version(p)}" for p in ("duckdb", "polars", "pyspark", "narwhals"))
    heads = ("engine", "statistic", "rows", "bare", "ours", "ratio", "GiB")
    about = (
        f"{COLUMNS} columns; seconds (CPU; Spark: wall), best of {REPEATS}, bare and ours in turn;"
        " GiB: peak resident memory of a Python process that runs ours only"
    )
    lines = [
        "python -m tests.benchmarks.large",
        f"{time.strftime('%Y-%m-%d')}, {packages}",
        about,
        "{:8} {:12} {:>9} {:>8} {:>8} {:>6} {:>6}".format(*heads),
    ]
    print("\n".join(lines))
    results = Path(__file__).parent / "results" / "large.txt"
    with tempfile.TemporaryDirectory(prefix="pdp_large_") as folder:
        for rows in ROWS:
            write(Path(folder), rows)
        for engine in ENGINES:
            for what in ("moments", "contingency"):
                for rows in ROWS:
                    both = in_process(engine, folder, what, rows, "both")
                    alone = both if engine == "spark" else None  # memory is the other process's
                    alone = alone or in_process(engine, folder, what, rows, "ours")
                    peak = alone["peak"]
                    bare, ours = both["bare"], both["ours"]
                    line = f"{engine:8} {what:12} {rows:9d} {bare:8.3f} {ours:8.3f}"
                    lines.append(f"{line} {ours / bare:6.2f} {peak:6.2f}")
                    print(lines[-1], flush=True)
                    results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        engine, folder, what, rows, who = sys.argv[1:]
        print(json.dumps(measured(engine, folder, what, int(rows), who)))
    else:
        main()
