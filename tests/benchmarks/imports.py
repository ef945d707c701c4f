"""How long the first answer takes: ``--help`` and ``import pdp_calibrate`` against bare imports.

Run by hand: ``python tests/benchmarks/imports.py``. CPU time of fresh processes, interleaved, the
median of many; wall time varies too much on a shared machine.
"""

import platform
import resource
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version

ROUNDS = 15
CASES = {
    "import pandas": ["import pandas"],
    "import pdp_calibrate": ["import pdp_calibrate"],
    "import pandas, typer": ["import pandas, typer"],
    "pdp-calibrate --help": ["from pdp_calibrate.cli.main import main; main()", "--help"],
}
RATIOS = [
    ("import pdp_calibrate", "import pandas"),
    ("pdp-calibrate --help", "import pandas, typer"),
]
LIMIT = 1.5


def cpu_seconds(words: list[str]) -> float:
    """Run a process and return the CPU time it took, its own children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603
        [sys.executable, "-c", *words], stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    print("python tests/benchmarks/imports.py")
    print(datetime.now(UTC).strftime("%Y-%m-%d"), "Python", platform.python_version(), end="; ")
    print(", ".join(f"{name} {version(name)}" for name in ("pandas", "typer", "rich", "numpy")))
    for words in CASES.values():
        cpu_seconds(words)  # files into the cache, bytecode onto the disk
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, words in CASES.items():
            found[name].append(cpu_seconds(words))
    for name, times in found.items():
        print(f"{name:22} {statistics.median(times):6.3f} s CPU (best {min(times):.3f})")
    for ours, bare in RATIOS:
        ratio = statistics.median(
            one / other for one, other in zip(found[ours], found[bare], strict=True)
        )
        verdict = "kept" if ratio <= LIMIT else "MISSED"
        print(f"{ours} / {bare}: {ratio:.2f} (wanted <= {LIMIT}: {verdict})")


if __name__ == "__main__":
    main()
