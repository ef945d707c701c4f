"""Results: their first lines (the command, the day, the versions), and where they are kept."""

import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def heading(name: str, *packages: str) -> list[str]:
    """Return the command that made a result, and on which day and with what it did."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return [
        " ".join(["python -m tests.benchmarks." + name, *sys.argv[1:]]),
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {versions}",
    ]


def keep(name: str, lines: list[str]) -> None:
    """Print a result and write it down."""
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (RESULTS / f"{name}.txt").write_text(text, encoding="utf-8")
