"""Sampled mutation testing of what decides the noise, without numba.

    python -m tests.benchmarks.mutation map      # which test reaches which line, and how fast
    python -m tests.benchmarks.mutation run 120  # change one thing at a time, and run those tests

needs `pip install coverage`. Both work in a copy of the tree (`WORK`), under NUMBA_DISABLE_JIT=1.
The map runs at most `PER_FUNCTION` parametrisations of each test, each at most `PATIENCE` seconds,
and says which lines they reach. A mutant is one edit of one line, drawn with a fixed seed, as many
per module as possible; the tests that reach its line run until one fails. Mutants that live
through them meet all tests of the map that reach the line. What is then left is printed, to be
looked at.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import platform
import random
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORK = Path(os.environ.get("MUTATION_WORK", "/tmp/mut"))  # noqa: S108 - by hand, on one's own machine
TREE = WORK / "tree"
PATIENCE = 4.0  # seconds for one test of the map
PER_FUNCTION = 6
QUICK, LONG = 5.0, 15.0  # seconds of tests, as the map measured them
SEED = 12
_HARNESS = 99
_ENDS = {0: "lived", 1: "killed by a test", 2: "killed on import"}

MODULES = [
    *(f"calibration/{name}" for name in ("calibrate", "release", "result", "solve")),
    *(f"ledger/{name}" for name in ("accounts", "ledger", "store")),
    *(f"core/{name}" for name in (
        "noise", "mixtures", "problem", "composite", "workers", "lipschitz", "line_program",
        "contraction", "leakage", "posterior")),
    *(f"families/{name}" for name in (
        "any_dependence", "gaussian/alike_search", "network/limits", "exchangeable/laws",
        "table/setting", "table/two_cell_bound")),
    *(f"composition/{name}" for name in ("joint", "table_dual", "recursive_bound", "black_box")),
]  # fmt: skip
TESTS = [
    f"tests/{folder}" for folder in (
        "core", "calibration", "composition", "families/table", "families/exchangeable",
        "families/chain", "families/network", "families/gaussian", "families/test_families.py",
        "families/test_properties.py", "families/test_precision.py", "ledger/test_ledger.py",
        "ledger/test_file.py", "auditing", "show/test_explain.py",
        "show/test_private_models_stay_private.py", "test_mutants.py")
]  # fmt: skip

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
_TURNED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all",
          "all": "any", "floor": "ceil", "ceil": "floor", "argmin": "argmax", "argmax": "argmin",
          "expm1": "exp", "log1p": "log"}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One edit of one file."""

    module: str
    line: int
    start: int
    end: int
    new: str
    what: str


def mutants_of(module: str) -> list[Mutant]:
    """Return every edit of a module."""
    source = (ROOT / "pdp_calibrate" / f"{module}.py").read_text(encoding="utf-8")
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(node: Any) -> tuple[int, int]:
        return (starts[node.lineno - 1] + node.col_offset,
                starts[node.end_lineno - 1] + node.end_col_offset)  # fmt: skip

    found = []
    for node, new, what in _edits(ast.parse(source)):
        begin, end = at(node)
        old = " ".join(source.encode()[begin:end].decode().split())
        if new != old:
            words = f"{what}: {old[:60]} -> {new[:60]}"
            found.append(Mutant(module, node.lineno, begin, end, new, words))
    return found


def _edits(tree: ast.AST) -> Iterator[tuple[Any, str, str]]:
    """Yield nodes, what to write in their place, and the kind of edit; messages stay."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield from _edits_here(node)
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if isinstance(node, ast.Raise) or isinstance(child, ast.JoinedStr):
                continue
            children = child if isinstance(child, list) else [child]
            waiting += [one for one in children if isinstance(one, ast.AST)]


def _edits_here(node: ast.AST) -> Iterator[tuple[Any, str, str]]:
    def twin() -> Any:
        return ast.parse(ast.unparse(node), mode="eval").body

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for table, what in ((_SWAPS, "compare"), (_TURNED, "turn")):
            if type(node.ops[0]) in table:
                other = twin()
                other.ops = [table[type(node.ops[0])]()]
                yield node, f"({ast.unparse(other)})", what
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
        other = twin()
        other.op = _SWAPS[type(node.op)]()
        yield node, f"({ast.unparse(other)})", "operator"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node, f"({ast.unparse(node.operand)})", "sign"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        number = node.value
        yield node, repr(number + 1 if isinstance(number, int) else number * 2 or 1.0), "constant"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, repr(not node.value), "constant"
    elif isinstance(node, ast.Call):
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name in _NAMES:
            other = twin()
            if isinstance(other.func, ast.Attribute):
                other.func.attr = _NAMES[name]
            else:
                other.func.id = _NAMES[name]
            yield node, ast.unparse(other), "function"
        elif name in ("nextafter", "above", "up", "rounded_up") and node.args:
            yield node, ast.unparse(node.args[0]), "margin dropped"
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(
        node.test, ast.Compare
    ):
        yield node.test, f"(not ({ast.unparse(node.test)}))", "condition"
    elif isinstance(node, ast.Raise):
        yield node, "pass", "raise dropped"


def copied_tree() -> None:
    """Copy what is tested into `WORK`."""
    shutil.rmtree(TREE, ignore_errors=True)
    skip = shutil.ignore_patterns("__pycache__", ".git", "results", "examples")
    shutil.copytree(ROOT, TREE, ignore=skip)


class Keeper:
    """A pytest plugin: few parametrisations, limited time, and what each test reaches."""

    def __init__(self, coverage: Any = None, *, only: frozenset[str] | None = None) -> None:
        self.coverage, self.only = coverage, only
        self.durations: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_configure(self) -> None:
        """Let no test fail because the machine is busy."""
        from hypothesis import settings

        settings.register_profile("patient", deadline=None)
        settings.load_profile("patient")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Thin out."""
        seen: Counter[str] = Counter()
        kept = []
        for item in items:
            name = item.nodeid.split("[")[0]
            seen[name] += 1
            if item.nodeid in self.only if self.only is not None else seen[name] <= PER_FUNCTION:
                kept.append(item)
        items[:] = kept

    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin a test."""
        if self.coverage is not None:
            self.coverage.switch_context(item.nodeid)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def pytest_runtest_teardown(self) -> None:
        """End it."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep how long a good test took."""
        if report.when == "call" and report.passed:
            self.durations[report.nodeid] = report.duration
        elif report.failed:
            self.failed.append(report.nodeid)


def _pytest(arguments: list[str], keeper: Keeper) -> int:
    import pytest

    options = ["-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-q",
               "--no-header", "-W", "ignore::RuntimeWarning",  # inf · 0: silent in numba
               "-p", "no:xdist", "-p", "no:cov"]  # fmt: skip
    return int(pytest.main([*options, *arguments], plugins=[keeper]))


def make_map() -> None:
    """Run the tests once, and write which lines each reaches."""
    import coverage

    copied_tree()
    os.chdir(TREE)
    sys.path[:0] = [str(TREE), str(TREE / "integrations")]
    cover = coverage.Coverage(data_file=str(WORK / "coverage"), source=["pdp_calibrate"])
    keeper = Keeper(cover)

    def too_long(*_: object) -> None:
        raise TimeoutError("longer than a test of the map may take")

    signal.signal(signal.SIGALRM, too_long)
    cover.start()
    chosen = [name for name in TESTS if (TREE / name).exists()]
    _pytest([*chosen, "--tb=no", "-rN"], keeper)
    cover.stop()
    cover.save()
    data = cover.get_data()
    reached = {
        str(Path(file).relative_to(TREE / "pdp_calibrate").with_suffix("")): {
            line: [test for test in tests if test in keeper.durations]
            for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
        if file.startswith(str(TREE / "pdp_calibrate"))
    }
    (WORK / "map.json").write_text(json.dumps({"lines": reached, "durations": keeper.durations}))
    print(f"{len(keeper.durations)} tests, {sum(keeper.durations.values()):.0f} s;",
          f"{len(keeper.failed)} left out")  # fmt: skip


def chosen_tests(tests: list[str], durations: dict[str, float], seconds: float) -> list[str]:
    """Take one of each test function after the other, quick ones first."""
    by_function = defaultdict(list)
    for test in sorted(tests, key=lambda test: durations[test]):
        by_function[test.split("[")[0]].append(test)
    taken: list[str] = []
    spent = 0.0
    for rank in range(PER_FUNCTION):
        for group in by_function.values():
            if rank < len(group) and spent + durations[group[rank]] <= seconds:
                taken.append(group[rank])
                spent += durations[group[rank]]
    return taken


def survives(tests: list[str], seconds: float) -> tuple[bool, str]:
    """Run the tests in a child; return whether all passed, and how it ended."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.chdir(TREE)
        sys.path[:0] = [str(TREE), str(TREE / "integrations")]
        sys.dont_write_bytecode = True
        keeper = Keeper(only=frozenset(tests))
        files = sorted({test.split("::")[0] for test in tests})
        code = _HARNESS
        try:
            code = _pytest([*files, "-x", "--tb=no"], keeper)
            (WORK / "killer.txt").write_text("".join(keeper.failed[:1]))
        finally:
            os._exit(code)
    end = time.monotonic() + 3 * seconds + 15
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code not in _ENDS:
                raise RuntimeError(f"pytest itself failed: {code}")
            return code == 0, _ENDS[code]
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, "out of time"


def run(number: int, seconds: float, skipped: int) -> None:
    """Draw mutants, test each, and print what lives."""
    for name in ("jsonschema", "mpmath", "narwhals", "numba", "numpy", "opendp.prelude", "pandas",
                 "pytest", "scipy.linalg", "scipy.optimize", "scipy.stats"):  # fmt: skip
        importlib.import_module(name)  # once for all children

    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    mapped = json.loads((WORK / "map.json").read_text())
    lines, durations = mapped["lines"], mapped["durations"]
    rng = random.Random(SEED)  # noqa: S311 - a sample, no secret
    queues = {module: mutants_of(module) for module in MODULES}
    available = sum(map(len, queues.values()))
    for queue in queues.values():
        rng.shuffle(queue)
    order = [queue[rank] for rank in range(20) for queue in queues.values() if rank < len(queue)]
    control = chosen_tests(list(durations), durations, QUICK)
    if not survives(control, LONG)[0]:
        raise RuntimeError("the tests fail without any mutant")
    print(f"control: {len(control)} of {len(durations)} tests pass unchanged", flush=True)
    verdicts: list[tuple[Mutant, str]] = []
    killers: set[str] = set()
    begun = time.monotonic()
    for mutant in order[skipped:number]:
        if time.monotonic() - begun > seconds:
            break
        path = TREE / "pdp_calibrate" / f"{mutant.module}.py"
        source = (ROOT / "pdp_calibrate" / f"{mutant.module}.py").read_bytes()
        reached = lines.get(mutant.module, {})
        tests = reached.get(str(mutant.line)) or sorted({t for of in reached.values() for t in of})
        path.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
        took = time.monotonic()
        try:
            compile(path.read_bytes(), str(path), "exec")
            for allowed in (QUICK, LONG):
                some = chosen_tests(tests, durations, allowed)
                lives, how = (
                    survives(some, sum(durations[t] for t in some)) if some else (True, "no test")
                )
                if not lives or len(some) == len(tests):
                    break
        finally:
            path.write_bytes(source)
        verdicts.append((mutant, how))
        killer = (WORK / "killer.txt").read_text() if how == "killed by a test" else ""
        killers |= {killer} - {""}
        print(f"{time.monotonic() - took:5.1f} s  {how:20s} {mutant.module}:{mutant.line}"
              f"  {mutant.what}  ({len(tests)} tests) {killer}", flush=True)  # fmt: skip
    passing, _ = survives(sorted(killers), 10 * LONG)
    print("every test that killed a mutant passes without it:", passing)
    lived = [
        (mutant, how) for mutant, how in verdicts if how in ("lived", "no test", "out of time")
    ]
    killed = len(verdicts) - len(lived)
    print(
        f"\n{time.strftime('%Y-%m-%d')}, Python {platform.python_version()},"
        f" numpy {version('numpy')}, pytest {version('pytest')}; seed {SEED}, one core,"
        f" {time.monotonic() - begun:.0f} s\n"
        f"{available} possible mutants in {len(MODULES)} modules, {len(verdicts)} drawn:"
        f" {killed} killed, {len(lived)} lived: {killed / max(1, len(verdicts)):.1%}"
    )


if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    if sys.argv[1:2] == ["map"]:
        make_map()
    else:
        number, limit, skipped, *_ = (
            [*sys.argv[2:], "1500", "0"] if len(sys.argv) < 5 else sys.argv[2:]
        )
        run(int(number), float(limit), int(skipped))
