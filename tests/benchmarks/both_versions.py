"""The benchmarks that two versions share, case by case.

    git worktree add --detach EARLIER da6183d
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.both_versions EARLIER [script[:case] …]

Two processes, one per version, run the same case in turn, each from its own folder and with the
scripts that stand there: what both have is compared. CPU time of all threads, of warm calls in
both: a case is run until it has taken `WARMING` seconds in each, after which compiled code is
loaded, and the best of three rounds in turn counts, or one that takes more than `LONG` seconds.
In a new checkout run everything twice: the first time compiles, and uses NumPy longer. Version
0.1.0 keeps what it prepared for trees and balls, and finds it again by value: these get other names
in every run. What a script only writes down (coverage, prices, pictures) is left out, and what is
no work of the library (brute force, other methods). Every line goes to standard output.
"""

from __future__ import annotations

import itertools
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
WARMING = 1.0  # CPU seconds; NumPy gives way to kept compiled code after half of one
LEAST, MOST_RUNS = 0.05, 50  # CPU seconds of a round, and runs in it
PATIENCE = 20.0  # seconds after which a case is warm in any event
ENTRIES = 200  # releases in the ledger: a thousand take minutes to write
LARGE_ROWS = (100_000, 1_000_000)  # twenty million need 1.5 GB of files
SOAKED = 30  # models of each family, of a hundred thousand in all

Job = Callable[[], Any]
Maker = Callable[[], Job]
"""Prepares a run, which is not timed, and returns it."""

_numbers = itertools.count()


def new_names(size: int) -> list[str]:
    """Names that no model had before."""
    number = next(_numbers)
    return [f"{number}.{place}" for place in range(size)]


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
        tree = pdp.MarkovTree(
            domains=tree.domains,
            parents=tree.parents,
            tables=tree.tables,
            names=new_names(len(tree.names)),
        )
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
        center = pdp.JointTable(
            probabilities=cells / cells.sum(), domains=[[0, 1]] * size, names=new_names(size)
        )
        ball = pdp.ConditionalBall(center=center, radius=0.02)
        if calibrated:
            return lambda: pdp.calibrate(ball, pdp.Sum(), epsilon=1.0).scale
        return lambda: pdp.leakage(ball, pdp.Sum()).value

    for size in (8, 10, 12):
        yield f"{size} binary, leakage", lambda size=size: made(size, calibrated=False)
        yield f"{size} binary, calibrate", lambda size=size: made(size, calibrated=True)


def calibrations(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Calibrations of fifteen binary tuples, and the leakage at the scale that was found."""
    import pdp_calibrate as pdp

    def made(build: Callable[[], Any]) -> Job:
        model = build()
        return lambda: pdp.calibrate(model, pdp.Sum(), epsilon=1.0).scale

    def searched(build: Callable[[], Any]) -> Job:
        model = build()
        scale = pdp.calibrate(model, pdp.Sum(), epsilon=1.0).scale
        return lambda: pdp.leakage(model, pdp.Sum(), scale=scale).value

    for name, build in script.CASES.items():
        yield f"{name}, calibrate", lambda build=build: made(build)
        yield f"{name}, leakage", lambda build=build: searched(build)


def compare(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Our own calibrations among those of other methods, all of a family together."""
    import pdp_calibrate as pdp

    def run(cases: list[Any]) -> float:
        scales = []
        for case in cases:
            for epsilon in case.epsilons:
                for who in ("all", "weakest") if case.weakest else ("all",):
                    asked = {"epsilon": epsilon, "adversaries": getattr(pdp.Adversaries, who)()}
                    scales.append(pdp.calibrate(case.model, case.query, **asked).scale)
                if case.composed:
                    joint = pdp.calibrate(case.model, [case.query] * 10, epsilon=epsilon)
                    scales.append(joint.scales[0])
        return math.fsum(scales)

    by_family = itertools.groupby(script.cases(), lambda case: case.group)
    for family, cases in [(family, list(cases)) for family, cases in by_family]:
        job = lambda cases=cases: run(cases)  # noqa: E731
        yield f"{family}, {len(cases)} cases", lambda job=job: job


def soak(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Leakages of random models, and a calibration of each tenth."""
    import numpy as np

    import pdp_calibrate as pdp

    def made(family: Any) -> Job:
        asked = []
        for seed in range(SOAKED):
            rng = np.random.default_rng(seed)
            asked.append((family.draw(rng), math.exp(rng.uniform(math.log(0.05), math.log(50)))))

        def job() -> float:
            found = [pdp.leakage(model, pdp.Sum(), scale=scale).value for model, scale in asked]
            found += [pdp.calibrate(model, pdp.Sum()).scale for model, _ in asked[1::10]]
            return math.fsum(found)

        return job

    for name, family in script.FAMILIES.items():
        yield f"{name}, {SOAKED} models", lambda family=family: made(family)


def private(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Fits with noise, and calibrations of what they found, which differs from fit to fit."""
    import warnings

    import pdp_calibrate as pdp

    warnings.simplefilter("ignore", pdp.ModelFitWarning)
    for name, (estimator, frame, needed, asked) in script.cases().items():
        noisy = type(estimator)(**(estimator.get_params() | needed | {"epsilon": 1.0}))
        several = [noisy, frame, asked["query"]]
        run = lambda several=several: script.scale_of(*several) and None  # noqa: E731
        yield name, lambda run=run: run


def audits(script: Any, _folder: Path) -> Iterator[tuple[str, Maker]]:
    """Attacks on calibrated releases."""
    import pdp_calibrate as pdp

    def run(model: Any, query: Any, options: dict[str, Any]) -> float:
        cal = pdp.calibrate(model, query, epsilon=1.0, **options)
        pdp.audit(cal, draws=100_000, seed=1)
        return float(cal.scales[0] if isinstance(query, list) else cal.scale)

    for name, case in script.CASES.items():
        job = lambda case=case: run(*case)  # noqa: E731
        yield name, lambda job=job: job


SCRIPTS: dict[str, tuple[str | None, Callable[[Any, Path], Iterator[tuple[str, Maker]]]]] = {
    "tables": ("tables", tables),
    "small_tables": (None, small_tables),
    "time": ("time", chains),
    "trees": ("trees", trees),
    "scaling": ("scaling", scaling),
    "large": ("large", large),
    "table_sets": (None, table_sets),
    "ledger": ("ledger", ledger),
    "calibrate": ("calibrate", calibrations),
    "compare": ("compare", compare),
    "soak": ("soak", soak),
    "private": ("private", private),
    "audits": ("audits", audits),
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
    warm: set[str] = set()
    for line in sys.stdin:
        case = json.loads(line)
        if case not in warm:
            warm_up(found[case])
            warm.add(case)
        print(json.dumps(round_of(found[case])), flush=True)


def timed(maker: Maker) -> tuple[float, float | None]:
    """Return CPU seconds of one run, and what was found."""
    job = maker()
    begun = time.process_time()
    value = job()
    return time.process_time() - begun, value if isinstance(value, float) else None


def round_of(maker: Maker) -> tuple[float, float | None]:
    """Return the shortest of some short runs, or of one that is not short."""
    best = timed(maker)
    taken = best[0]
    while taken < LEAST:
        run = timed(maker)
        taken, best = taken + max(run[0], LEAST / MOST_RUNS), min(best, run, key=lambda one: one[0])
    return best


def warm_up(maker: Maker) -> None:
    """Run a case until compiled code is loaded where that is worth it."""
    taken, end = 0.0, time.monotonic() + PATIENCE
    while taken < WARMING and time.monotonic() < end:
        taken += timed(maker)[0]


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


def compared(name: str, earlier: Path, part: str = "") -> None:
    """Print a line for every case that both versions have, and whose name holds this part."""
    with tempfile.TemporaryDirectory(prefix="pdp_versions_") as folder:
        old = Version(earlier, name, folder)
        new = Version(Path(__file__).parents[2], name, folder)
        for case in [case for case in new.cases if case in old.cases and part in case]:
            times: dict[Version, list[float]] = {old: [], new: []}
            values: dict[Version, float | None] = {}
            for _ in range(ROUNDS):
                for version in (old, new):
                    seconds, values[version] = version.run(case)
                    times[version].append(seconds)
                if min(times[old][-1], times[new][-1]) > LONG:
                    break
            before, now = (min(times[version]) for version in (old, new))
            found = [values[version] or 0.0 for version in (old, new)]
            other = "" if math.isclose(*found) else "  found {:.9g}, now {:.9g}".format(*found)
            line = f"{name:13}{case:46}{before:9.4f} {now:9.4f} {now / before:6.2f}{other}"
            print(line, flush=True)
        old.close()
        new.close()


def main() -> None:
    """Compare the scripts that are asked for, or all."""
    earlier, *names = sys.argv[1:]
    for asked in names or SCRIPTS:
        name, _, part = asked.partition(":")
        compared(name, Path(earlier).resolve(), part)


if __name__ == "__main__":
    if sys.argv[1] == "--answer":
        answer(*sys.argv[2:])
    else:
        main()
