"""What the page of ``pdp-calibrate explore`` costs: to start, and for every change of its form.

Run by hand: ``python -m tests.benchmarks.explore``. CPU time, the best of a few rounds, against
``import pandas`` in a fresh process. A change is everything that the browser asks for then: the
numbers and words, which pictures there are, and each of them; and what is left if only the two that
stand in sight are drawn, which is what the page does. The start includes the first page, its first
numbers and its end.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from pdp_calibrate.cli.ohio import wheeze
from pdp_calibrate.exploring.schema import Column, as_json
from pdp_calibrate.exploring.server import Application
from pdp_calibrate.exploring.subject import of_nothing, of_rows
from tests.benchmarks.heading import heading

ROUNDS = 5
WANTED = 0.5  # seconds for a change
START = 4.0  # seconds until the page stands
IN_SIGHT = 2
TOKEN = "token"  # noqa: S105
COLUMNS = [
    Column(name="household", kind="whole number"),
    Column(name="income", kind="number", low="0", high="100000"),
]
HOMES = {"schema": as_json(COLUMNS), "groups": "household", "kind": "mean", "column": "income"}
CHANGES = {
    "20,000 people in households, the correlation": (
        "people", HOMES | {"alike": "correlation"}, "correlation"),
    "20,000 people in households, any dependence, ε": ("people", HOMES, "epsilon"),
    "four answers of 537 children, ε": ("children", {}, "epsilon"),
    "columns that are typed, the correlation": ("typed", {}, "correlation"),
    "columns that are typed, two questions, ε": (
        "typed", {"also": '[{"kind": "sum", "column": "income"}]'}, "epsilon"),
}  # fmt: skip


def answered(application: Application, name: str, given: dict[str, str]) -> str:
    """Ask the application, without a network."""
    sent: list[dict[str, bytes]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": urlencode(given).encode(), "more_body": False}

    async def send(message: dict[str, bytes]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "path": f"/{TOKEN}/{name}", "method": "POST", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:1")],
    }  # fmt: skip
    asyncio.run(application(scope, receive, send))
    return b"".join(one.get("body", b"") for one in sent).decode()


def change(application: Application, given: dict[str, str]) -> tuple[float, float, float]:
    """Return the CPU time of the numbers, of what is in sight too, and of everything."""
    begun = time.process_time()
    words = answered(application, "view", given)
    assert 'id="scale"' in words, words
    numbers = time.process_time() - begun
    figures = answered(application, "pictures", given)
    names = [part.split('"')[0] for part in figures.split('data-picture="')[1:]]
    seen = time.process_time() - begun
    for place, name in enumerate(names):
        assert "<svg" in answered(application, "picture", given | {"picture": name})
        if place < IN_SIGHT:
            seen = time.process_time() - begun
    return numbers, seen, time.process_time() - begun


def started(folder: Path) -> float:
    """Return the CPU time of a page that is served, asked for its first numbers, and closed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-c", "from pdp_calibrate.cli.main import main; main()", "explore"]
    server = subprocess.Popen(  # noqa: S603
        [*line, "people.csv", "--no-browser"], stdout=subprocess.PIPE, text=True, cwd=folder
    )
    assert server.stdout is not None
    with server.stdout as printed:
        address = printed.readline().strip()
        body = urlencode(HOMES | {"alike": "correlation"}).encode()
        for place, data in (("", None), ("view", body)):
            with urllib.request.urlopen(address + place, data) as answer:  # noqa: S310
                answer.read()
        server.send_signal(signal.SIGINT)
        server.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imported() -> float:
    """Return the CPU time of ``import pandas``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import pandas"], check=True, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def line(name: str, seconds: float, yardstick: float, limit: float | None) -> str:
    """Write one result."""
    kept = "" if limit is None else f"   wanted <= {limit} s: "
    kept += "" if limit is None else "kept" if seconds <= limit else "MISSED"
    return f"{name:56} {seconds:6.3f}   {seconds / yardstick:6.2f} x import pandas{kept}"


def main() -> None:
    """Measure and print."""
    print("\n".join(heading("explore", "numpy", "pandas", "matplotlib", "starlette", "uvicorn")))
    print(f"CPU seconds, the best of {ROUNDS} rounds")
    yardstick = min(imported() for _ in range(ROUNDS))
    print(line("import pandas", yardstick, yardstick, None))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = np.random.default_rng(0)
        home = np.sort(rng.integers(0, 8000, 20_000))
        income = rng.gamma(4, 9000, 20_000).round(2)
        frame = pd.DataFrame({"household": home, "income": income})
        frame.to_csv(folder / "people.csv", index=False)
        wheeze().to_csv(folder / "children.csv", index=False)
        begun = min(started(folder) for _ in range(ROUNDS))
        print(line("pdp-calibrate explore, until its first numbers", begun, yardstick, START))
        children = {"kind": "count", "column": "", "values": "1", "alike": "public"}
        pages = {
            "people": Application(of_rows(folder / "people.csv"), token=TOKEN),
            "children": Application(of_rows(folder / "children.csv", children), token=TOKEN),
            "typed": Application(of_nothing(), token=TOKEN),
        }
        for what, (which, given, moved) in CHANGES.items():
            rounds = [
                change(pages[which], given | {moved: f"{0.5 + place / 100:.2f}"})
                for place in range(ROUNDS + 1)
            ][1:]  # the first loads what pictures are drawn with
            numbers, seen, everything = (min(one) for one in zip(*rounds, strict=True))
            print(line(what, seen, yardstick, WANTED))
            print(line("    the numbers alone, which come first", numbers, yardstick, None))
            print(line("    every picture, in sight or not", everything, yardstick, None))


if __name__ == "__main__":
    main()
