"""Ten years of daily releases in one ledger: how long a release takes, and the file.

Run `python -m tests.benchmarks.streams` from the project root; a path goes on with the ledger that
an interrupted run left there. CPU time; imports are warm; the yardstick is one float64 3000×3000
matrix product, best of three. Every day one count with noise is released about a chain without an
end, at the budget that keeps ε = 1 for ever; then the file is opened and asked what is spent, and a
release too many is tried.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep
from tests.benchmarks.tables import yardstick

DAYS, YEAR = 3653, 365
CHAIN = pdp.MarkovChain(transition=[[0.8, 1 - 0.8], [1 - 0.8, 0.8]], length=None)
CALENDAR = pd.period_range("2026-01-01", periods=DAYS, freq="D")
PEOPLE = pd.DataFrame({"sick": [0, 1, 1, 0, 1]})


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def ledger_at(path: Path) -> pdp.Ledger:
    """Go on with a ledger, or begin it."""
    if path.exists():
        return pdp.Ledger.open(path)
    return pdp.Ledger(CHAIN, epsilon=1.0, path=path, every="D")


def released(ledger: pdp.Ledger, days: int) -> list[float]:
    """Release about every day that is not in the ledger yet; return the CPU time of each."""
    calibration = pdp.calibrate(CHAIN, pdp.EachStep(pdp.Sum()), epsilon=1.0)
    took = []
    for day in CALENDAR[len(ledger.history) : days]:
        begun = time.process_time()
        calibration.release(PEOPLE, value="sick", ledger=ledger, step=day)
        took.append(time.process_time() - begun)
    return took


def is_refused(path: Path) -> bool:
    """Whether a charge of half the budget about a day of last month is refused."""
    try:
        pdp.Ledger.open(path).charge(0.5, step=CALENDAR[-30])
    except pdp.BudgetExceededError:
        return True
    return False


def main() -> None:
    """Print and store the figures."""
    unit = yardstick()
    with tempfile.TemporaryDirectory() as folder:
        first = released(ledger_at(Path(folder) / "first.json"), YEAR)
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "ledger.json"
        ledger = ledger_at(path)
        last = released(ledger, DAYS)[-YEAR:]
        opened = seconds(lambda: pdp.Ledger.open(path).spent)
        entries, spent = len(ledger.history), ledger.spent
        size = path.stat().st_size / 2**20
        refused = is_refused(path)
    lines = [
        *heading("streams", "numpy"),
        f"yardstick {unit:.2f} CPU seconds",
        (
            f"{entries} days, staying with probability 0.8: {spent:.12f} of 1 spent;"
            f" half the budget more about a day of last month is refused: {refused}"
        ),
        (
            f"file of {size:.2f} MB; open it and ask what is spent: {opened / unit:.3f} yardsticks"
            " (at most 1)"
        ),
        (
            f"one release: {1000 * sum(first) / len(first):.0f} CPU ms in the first year,"
            f" {1000 * sum(last) / max(1, len(last)):.0f} CPU ms in the tenth"
        ),
    ]
    keep("streams", lines)


if __name__ == "__main__":
    main()
