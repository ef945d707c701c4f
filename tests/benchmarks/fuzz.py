"""Coverage-guided fuzzing of everything that reads text from outside.

    pip install atheris
    python -m tests.benchmarks.fuzz 120

fuzzes each target for that many seconds with atheris (libFuzzer) and writes `results/fuzz.txt`. A
finding is anything but a `PdpError` that comes out of a loader, or a loader that takes longer than
`PATIENCE` seconds; findings are told apart by type and place, and the shortest input is kept.

Bytes choose a valid document and edits of it, so that most inputs get past the parser; one input in
eight is the raw bytes themselves. Models are small: a valid file may ask for any amount of work.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

from tests.benchmarks.heading import heading

ROOT = Path(__file__).parents[2]
ENGINES = [  # numba reads their bytecode
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in (ROOT / "pdp_calibrate" / "engines").rglob("*.py")
]

with atheris.instrument_imports(include=["pdp_calibrate"], exclude=ENGINES):
    import numpy as np

    import pdp_calibrate as pdp
    import pdp_calibrate.jobs.load  # what the lazy table would load later, uninstrumented
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.jobs.grammar import parse_query, parse_values
    from pdp_calibrate.jobs.plan import read_plan
    from pdp_calibrate.ledger.store import FileStore, _checksum
from tests.support.families import FAMILIES  # noqa: E402 - after what is instrumented

PATIENCE = 10  # seconds
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 10**30, 10**400, -(10**400), 0.0, -0.0, 0.5, 1e-300, 5e-324,
    1e300, float("nan"), float("inf"), -float("inf"), "", "x1", "private", "dp", "public", "é",
    "\ud800", [], {}, [0], [0, 1], [[0.5, 0.5], [0.5, 0.5]], [None], [["a"]],
    {"type": "JointTable"}, {"type": []}, {"type": "Sum", "over": None},
]  # fmt: skip
TOML_ODD = [
    "", "nan", "inf", "-inf", "0", "-1", "1e400", "9" * 5000, "true", '""', '"x"', "[]", "[0]",
    "[0, 1]", "[1, 0]", "[nan, nan]", "{}", "{a = 1}", "{a = [0, 1]}", "1979-05-27", "[[0, 1]]",
    '"mean(income)"', '"all"', '"weakest"', '"\\u0000"', "[0, " + "9" * 400 + "]", "0x10", '["a"]',
]  # fmt: skip
PLAN = """[data]
file = "people.csv"
groups = "household"
order_by = "day"
[model]
kind = "table"
public = true
columns = ["a", "b"]
bounds = {income = [0, 100]}
correlation = [0, 0.4]
smoothing = 1.0
domains = {a = [0, 1]}
[budget]
epsilon = 2.0
ledger = "budget.json"
draw = "first"
adversaries = "all"
time_limit = 3.0
[[queries]]
name = "mean income"
query = "mean(income)"
epsilon = 0.5
[[queries]]
query = "linear(2*a - b)"
epsilon = 0.5
[output]
releases = "out.json"
report = "out.html"
"""
QUERIES = ["mean(income)", "sum()", "count(a, b = 1, -2.5, 'two')", "histogram(a = true, x)",
           "linear(2*income - .5e3*debt + `a b`)", "0, 1, 'it''s'"]  # fmt: skip
PIECES = ["(", ")", ",", "=", "*", "+", "-", "'", '"', "`", " ", ".", "1e999", "9" * 5000, "٣", "²",
          "\n", "\0", "sum", "linear", "count", "a", "1", "e", "_", "\ud800"]  # fmt: skip


class TookTooLongError(BaseException):
    """The loader did not come back."""


def models() -> list[Model]:
    """Draw two small models of every family."""
    rng = np.random.default_rng(7)
    found = [family.draw(rng) for family in FAMILIES.values() for _ in range(2)]
    return [*found, found[0].learned_with(0.5)]


def calibrations() -> list[Any]:
    """Calibrate a sum on each, and one count and one histogram."""
    found = [pdp.calibrate(model, pdp.Sum(), epsilon=1.0) for model in models()]
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    found += [pdp.calibrate(table, query) for query in (pdp.Count(values=[1]), pdp.Histogram())]
    return [*found, pdp.calibrate(table, [pdp.Sum(), pdp.Count(values=[1])])]


def ledgers(folder: Path) -> list[Any]:
    """Keep three ledgers, one of them with several entries."""
    states = []
    for number, model in enumerate(models()[::6]):
        path = folder / f"ledger{number}.json"
        ledger = pdp.Ledger(model, epsilon=3.0, path=path)
        ledger.spend(pdp.calibrate(model, pdp.Sum(), epsilon=0.5))
        ledger.charge(0.01)
        states.append(FileStore(path).read())
    return states


def odd_value(choose: atheris.FuzzedDataProvider) -> Any:
    """Return what rarely stands where it is put."""
    return copy.deepcopy(ODD[choose.ConsumeIntInRange(0, len(ODD) - 1)])


def edited(document: Any, choose: atheris.FuzzedDataProvider) -> Any:
    """Replace, drop or repeat some nodes of a JSON document."""
    document = json.loads(json.dumps(document))
    for _ in range(choose.ConsumeIntInRange(1, 3)):
        node, parent, key = document, None, None
        for _ in range(choose.ConsumeIntInRange(1, 6)):
            if not isinstance(node, dict | list) or not node:
                break
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            parent, key = node, keys[choose.ConsumeIntInRange(0, len(keys) - 1)]
            node = parent[key]
        if parent is None:
            return odd_value(choose)
        what = choose.ConsumeIntInRange(0, 9)
        if what == 0:
            del parent[key]
        elif what == 1 and isinstance(parent, list):
            parent.append(node)
        elif what == 2:
            parent[key] = [node]
        elif what == 3 and isinstance(node, int | float):
            parent[key] = choose.ConsumeRegularFloat()
        elif what == 4:
            parent[key] = choose.ConsumeUnicode(8)
        else:
            parent[key] = odd_value(choose)
    return document


def edited_text(text: str, odd: list[str], choose: atheris.FuzzedDataProvider) -> str:
    """Cut out, put in or repeat stretches of a text."""
    for _ in range(choose.ConsumeIntInRange(1, 4)):
        start = choose.ConsumeIntInRange(0, len(text))
        end = choose.ConsumeIntInRange(start, min(len(text), start + 12))
        what = choose.ConsumeIntInRange(0, 3)
        new = text[start:end] * 2 if what == 0 else choose.ConsumeUnicode(4)
        if what > 1:
            new = odd[choose.ConsumeIntInRange(0, len(odd) - 1)]
        text = text[:start] + new + text[end:]
    return text


def edited_plan(choose: atheris.FuzzedDataProvider) -> str:
    """Change, drop or repeat lines of a plan."""
    lines = PLAN.splitlines()
    for _ in range(choose.ConsumeIntInRange(1, 4)):
        at = choose.ConsumeIntInRange(0, len(lines) - 1)
        what = choose.ConsumeIntInRange(0, 5)
        if what == 0 and len(lines) > 1:
            del lines[at]
        elif what == 1:
            lines.insert(at, lines[choose.ConsumeIntInRange(0, len(lines) - 1)])
        elif what == 2:
            lines[at] = edited_text(lines[at], PIECES, choose)
        elif "=" in lines[at]:
            odd = TOML_ODD[choose.ConsumeIntInRange(0, len(TOML_ODD) - 1)]
            lines[at] = f"{lines[at].split('=')[0]}= {odd}"
    return "\n".join(lines)


def json_target(
    documents: list[Any], read: Callable[[str], Any]
) -> Callable[[atheris.FuzzedDataProvider], Any]:
    """Read edited JSON text."""

    def once(choose: atheris.FuzzedDataProvider) -> Any:
        if choose.ConsumeIntInRange(0, 7) == 0:
            return read(choose.ConsumeUnicode(400))
        document = documents[choose.ConsumeIntInRange(0, len(documents) - 1)]
        return read(json.dumps(edited(document, choose)))

    return once


def targets(folder: Path) -> dict[str, Callable[[], Callable[[Any], Any]]]:
    """Name what is fuzzed; each is set up only where it is run."""
    file = folder / "input"

    def write(text: str) -> Path:
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        return file

    def read_ledger(text: str) -> Any:
        try:
            state = json.loads(text)
            state["checksum"] = _checksum(state)  # or nothing would get past it
        except (ValueError, TypeError):
            return pdp.Ledger.open(write(text))
        ledger = pdp.Ledger.open(write(json.dumps(state)))
        return ledger.spent, ledger.remaining, ledger.history

    def loaded() -> Callable[[Any], Any]:
        documents = [model.to_dict() for model in models()]
        documents += [calibration.to_dict() for calibration in calibrations()]
        return json_target(documents, lambda text: pdp.load(write(text)))

    def model_read() -> Callable[[Any], Any]:
        def read(text: str) -> Any:
            try:
                described = json.loads(text)
            except ValueError:
                return None
            return Model.from_dict(described)

        return json_target([model.to_dict() for model in models()], read)

    def calibration_read() -> Callable[[Any], Any]:
        single = [one.to_dict() for one in calibrations() if isinstance(one, pdp.Calibration)]
        return json_target(single, pdp.Calibration.from_json)

    def release_read() -> Callable[[Any], Any]:
        single = [one for one in calibrations() if isinstance(one, pdp.Calibration)]
        documents = [
            {"schema": "pdp-calibrate/1", "type": "Release", "value": value, "calibration": each}
            for each in (one.to_dict() for one in single)
            for value in (1.5, [1, 2])
        ]
        return json_target(documents, pdp.Release.from_json)

    def plan_read() -> Callable[[Any], Any]:
        def once(choose: atheris.FuzzedDataProvider) -> Any:
            raw = choose.ConsumeIntInRange(0, 7) == 0
            return read_plan(write(choose.ConsumeUnicode(200) if raw else edited_plan(choose)))

        return once

    def query_read() -> Callable[[Any], Any]:
        def once(choose: atheris.FuzzedDataProvider) -> Any:
            start = QUERIES[choose.ConsumeIntInRange(0, len(QUERIES) - 1)]
            read = parse_values if choose.ConsumeBool() else parse_query
            return read(edited_text(start, PIECES, choose))

        return once

    return {
        "load": loaded,
        "Model.from_dict": model_read,
        "Calibration.from_json": calibration_read,
        "Release.from_json": release_read,
        "Ledger.open": lambda: json_target(ledgers(folder), read_ledger),
        "read_plan": plan_read,
        "parse_query": query_read,
    }


def place_of(error: BaseException) -> str:
    """Return the innermost line of the library that the error passed."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "pdp_calibrate/" in f.filename
    ]
    if not frames:
        return "outside"
    return f"{frames[-1].filename.rpartition('pdp_calibrate/')[2]}:{frames[-1].lineno}"


def fuzz(name: str, seconds: int, report: Path, folder: Path) -> None:
    """Fuzz one target in this process; libFuzzer ends it."""
    once = targets(folder)[name]()
    findings: dict[str, list[Any]] = {}
    done = {"executions": 0, "returned": 0}

    def interrupt(*_: object) -> None:
        raise TookTooLongError

    def tell() -> None:
        report.write_text(json.dumps({**done, "findings": findings}))

    def one_input(data: bytes) -> None:
        done["executions"] += 1
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            once(atheris.FuzzedDataProvider(data))
            done["returned"] += 1
        except pdp.PdpError:
            pass
        except (Exception, TookTooLongError) as error:  # noqa: BLE001 - all of these are findings
            key = f"{type(error).__name__} at {place_of(error)}"
            old = findings.get(key)
            if old is None or len(data) < old[1]:
                findings[key] = [str(error)[:120], len(data), data.hex()]
                tell()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if done["executions"] % 200 == 0:
            tell()

    tell()
    signal.signal(signal.SIGALRM, interrupt)
    arguments = [f"-max_total_time={seconds}", "-max_len=600", "-seed=1", "-rss_limit_mb=4096"]
    arguments.append(f"-artifact_prefix={folder}/")
    atheris.Setup([sys.argv[0], *arguments, "-print_final_stats=1"], one_input)
    signal.signal(signal.SIGALRM, interrupt)  # libFuzzer takes it for itself
    atheris.Fuzz()


def main() -> None:
    """Fuzz every target in a process of its own, and write down what came out."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    chosen = sys.argv[2:]
    lines = [
        *heading("fuzz", "atheris", "numpy", "scipy", "numba"),
        f"{seconds} s a target, one core, seed 1",
        "",
    ]
    total = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in chosen or targets(folder):
            report = folder / "report.json"
            report.unlink(missing_ok=True)
            ran = subprocess.run(  # noqa: S603 - this very file
                [sys.executable, "-m", "tests.benchmarks.fuzz", "--one", name, str(seconds)],
                env={**os.environ, "FUZZ_REPORT": str(report), "FUZZ_FOLDER": place},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            found = json.loads(report.read_text()) if report.exists() else {"findings": {}}
            total += len(found["findings"])
            covered = [word for word in ran.stderr.splitlines() if " cov: " in word][-1:]
            reached = covered[0].split(" cov: ")[1].split()[0] if covered else "?"
            lines.append(
                f"{name:22s} {found.get('executions', 0):8d} executions, "
                f"{found.get('returned', 0):7d} read, {reached} edges, "
                f"{len(found['findings'])} findings"
                + ("" if ran.returncode == 0 else f", ended with {ran.returncode}")
            )
            for key, (message, _, data) in found["findings"].items():
                lines.append(f"    {key}: {message} [{data[:80]}]")
            print("\n".join(lines[-1 - len(found["findings"]) :]), flush=True)
            if not covered:
                print(ran.stderr[-2000:])
    lines += ["", f"findings: {total}"]
    if not chosen:
        (Path(__file__).parent / "results" / "fuzz.txt").write_text("\n".join(lines) + "\n")
    print(lines[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fuzz(
            sys.argv[2],
            int(sys.argv[3]),
            Path(os.environ["FUZZ_REPORT"]),
            Path(os.environ["FUZZ_FOLDER"]),
        )
    else:
        main()
