"""The first lines of every result: the command, the day, the versions."""

import platform
import sys
import time
from importlib.metadata import version


def heading(name: str, *packages: str) -> list[str]:
    """Return the command that made a result, and on which day and with what it did."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return [
        " ".join(["python -m tests.benchmarks." + name, *sys.argv[1:]]),
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {versions}",
    ]
