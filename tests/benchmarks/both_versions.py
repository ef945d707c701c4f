"""The benchmarks of tables, chains, trees, frames and ledgers on two versions, case by case.

    git worktree add --detach EARLIER da6183d
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.both_versions EARLIER [script …]

Two processes, one per version, run the same case in turn, each from its own folder and with the
scripts that stand there: what both have is compared. CPU time of all threads, the best of three
runs after one that compiles; cases that take more than `LONG` seconds run once. What a script only
writes down (coverage, prices, pictures) is left out. Every line goes to standard output.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

ROUNDS, LONG = 3, 5.0
ENTRIES = 200  # releases in the ledger: a thousand take minutes to write
LARGE_ROWS = (100_000, 1_000_000)  # twenty million need 1.5 GB of files

Job = Callable[[], Any]
Maker = Callable[[], Job]
"""Prepares a run, which is not timed, and returns it."""


def tables(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Searches of joint tables; nothing is kept from one to the next."""

    def made(build: Callable[[], Any], scale: float) -> Job:
        problem = build()
        return lambda: script.search(problem, scale).lower

    for what, build, scale, _ in script.CASES.values():
        if "0.3" not in what:  # stopped by the clock in both versions
            yield what, lambda build=build, scale=scale: made(build, scale)


def small_tables(_script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Calibrations of small tables."""
    import numpy as np

    import pdp_calibrate as pdp

    def made(sizes: tuple[int, ...], query: str) -> Job:
        cells = np.random.default_rng(0).dirichlet(np.ones(int(np.prod(sizes)))).reshape(sizes)
        table = pdp.JointTable(probabilities=cells, domains=[range(size) for size in sizes])
        asked = getattr(pdp, query)()
        return lambda: max([pdp.calibrate(table, asked, epsilon=1.0).scale for _ in range(20)])

    for sizes in [(2, 2), (2, 3), (2,) * 3, (2,) * 4, (2,) * 5, (2,) * 6, (3,) * 3]:
        for query in ("Sum", "Mean", "Histogram"):
            name = f"{' × '.join(map(str, sizes))}, {query}, 20 times"
            yield name, lambda sizes=sizes, query=query: made(sizes, query)


def trees(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Calibrations of sums about large trees."""
    import pdp_calibrate as pdp

    def made(*shape: Any) -> Job:
        tree = script.regular_tree(*shape)
        return lambda: pdp.calibrate(tree, pdp.Sum(), epsilon=1.0).scale

    for size, children in script.TREES:
        for stay in script.STAYS:
            shape = size, children, stay
            yield f"{size} tuples, {children} children, {stay}", lambda s=shape: made(*s)


def scaling(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Every point of the curves of growth."""
    for curve in script.CURVES:
        for size in curve.sizes:
            run = lambda curve=curve, size=size: getattr(curve.work(size), "lower", None)  # noqa: E731
            yield f"{curve.name}, {size} {curve.axis}", lambda run=run: run


def large(script: Any, folder: Path) -> Iterator[tuple[str, Maker]]:
    """Statistics of files; the best of three runs each, told by the script itself."""
    for rows in LARGE_ROWS:
        if not (folder / f"codes_{rows}").exists():
            script.write(folder, rows)
    for engine in ("duckdb", "polars"):
        for what in ("moments", "contingency"):
            for rows in LARGE_ROWS:
                asked = engine, str(folder), what, rows, "ours"
                run = lambda asked=asked: script.measured(*asked)["peak"] and None  # noqa: E731
                yield f"{engine}, {what}, {rows} rows", lambda run=run: run


def ledger(script: Any, folder: Path) -> Iterator[tuple[str, Maker]]:
    """Checks of a ledger in memory and of its file."""
    import numpy as np

    import pdp_calibrate as pdp

    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=script.STEPS)
    rng = np.random.default_rng(0)
    path = folder / f"ledger_{os.getpid()}.json"
    book = pdp.Ledger(chain, epsilon=50.0, path=path)

    def release() -> Any:
        chosen = sorted(rng.choice(script.STEPS, size=100, replace=False).tolist())
        return script.release_of(chain, chosen)

    for _ in range(ENTRIES):
        book.spend(release())
    last = release()
    yield f"check beside {ENTRIES} releases", lambda: lambda: book.would_spend(last)
    yield "open the file", lambda: lambda: pdp.Ledger.open(path) and None
    yield "open the file and check", lambda: lambda: pdp.Ledger.open(path).would_spend(last)

    def spent() -> Job:
        one = release()
        return lambda: book.spend(one) and None

    yield "check, write and sync one release", spent


def chains(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Calibrations of chains and groups."""
    import pdp_calibrate as pdp

    for warm in (script.binary_chain(0.1, 0.9, 210), script.beta_binomial(100)):
        for epsilon in (1.0, 10.0):  # until compiled code is loaded
            pdp.calibrate(warm, pdp.Sum(), epsilon=epsilon)
    for name, _, model in script.CASES:
        run = lambda model=model: pdp.calibrate(model, pdp.Sum()).scale  # noqa: E731
        yield name, lambda run=run: run


def table_sets(_script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Balls around a table."""
    import pdp_calibrate as pdp

    dirichlet = import_module("tests.benchmarks.tables").dirichlet

    def made(size: int, *, calibrated: bool) -> Job:
        cells = dirichlet(size, seed=1)
        center = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * size)
        ball = pdp.ConditionalBall(center=center, radius=0.02)
        if calibrated:
            return lambda: pdp.calibrate(ball, pdp.Sum(), epsilon=1.0).scale
        return lambda: pdp.leakage(ball, pdp.Sum()).value

    for size in (8, 10, 12):
        yield f"{size} binary, leakage", lambda size=size: made(size, calibrated=False)
        yield f"{size} binary, calibrate", lambda size=size: made(size, calibrated=True)


SCRIPTS: dict[str, tuple[str | None, Callable[[Any, Path], Iterator[tuple[str, Maker]]]]] = {
    "tables": ("tables", tables),
    "small_tables": (None, small_tables),
    "time": ("time", chains),
    "trees": ("trees", trees),
    "scaling": ("scaling", scaling),
    "large": ("large", large),
    "ledger": ("ledger", ledger),
    "table_sets": (None, table_sets),
}


def answer(root: str, name: str, folder: str) -> None:
    """Be one of the two processes: say what there is, then run what is asked for."""
    sys.path[:0] = [root, f"{root}/integrations"]
    import pdp_calibrate as pdp

    if not str(pdp.__file__).startswith(root):
        raise SystemExit(f"the library of {root} was asked for, found {pdp.__file__}")
    module, cases = SCRIPTS[name]
    script = None if module is None else import_module(f"tests.benchmarks.{module}")
    found = dict(cases(script, Path(folder)))
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        job = found[json.loads(line)]()
        begun = time.process_time()
        value = job()
        taken = time.process_time() - begun
        print(json.dumps([taken, value if isinstance(value, float) else None]), flush=True)


class Version:
    """A checkout of the library in a process of its own."""

    def __init__(self, root: Path, name: str, folder: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", __file__, "--answer", str(root), name, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        self.cases: list[str] = self._line()

    def _line(self) -> Any:
        return json.loads(cast("IO[str]", self._process.stdout).readline())

    def run(self, case: str) -> tuple[float, float | None]:
        """Return CPU seconds and what was found."""
        asked = cast("IO[str]", self._process.stdin)
        asked.write(json.dumps(case) + "\n")
        asked.flush()
        seconds, value = self._line()
        return seconds, value

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()


def compared(name: str, earlier: Path) -> None:
    """Print a line for every case that both versions have."""
    with tempfile.TemporaryDirectory(prefix="pdp_versions_") as folder:
        old = Version(earlier, name, folder)
        new = Version(Path(__file__).parents[2], name, folder)
        for case in [case for case in new.cases if case in old.cases]:
            times: dict[Version, list[float]] = {old: [], new: []}
            values: dict[Version, float | None] = {}
            for _ in range(1 + ROUNDS):  # the first compiles, unless it is long
                for version in (old, new):
                    seconds, values[version] = version.run(case)
                    times[version].append(seconds)
                if min(times[old][-1], times[new][-1]) > LONG:
                    break
            before, now = (min(times[version][1:] or times[version]) for version in (old, new))
            found = [values[version] or 0.0 for version in (old, new)]
            other = "" if math.isclose(*found) else "  found {:.9g}, now {:.9g}".format(*found)
            line = f"{name:13}{case:46}{before:9.4f} {now:9.4f} {now / before:6.2f}{other}"
            print(line, flush=True)
        old.close()
        new.close()


def main() -> None:
    """Compare the scripts that are asked for, or all."""
    earlier, *names = sys.argv[1:]
    for name in names or SCRIPTS:
        compared(name, Path(earlier).resolve())


if __name__ == "__main__":
    if sys.argv[1] == "--answer":
        answer(*sys.argv[2:])
    else:
        main()
