"""Ten years of daily releases in one ledger: how long a release takes, and the file.

Run `python -m tests.benchmarks.streams` from the project root. CPU time; imports are warm; the
yardstick is one float64 3000×3000 matrix product, best of three. Every day one count with noise is
released about a chain without an end, at the budget that keeps ε = 1 for ever; then the file is
opened and asked what is spent, and one release too many is tried.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading
from tests.benchmarks.tables import yardstick

DAYS = 3653


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Print and store the figures."""
    lines = list(heading("streams", "numpy"))
    unit = yardstick()
    lines.append(f"yardstick {unit:.2f} CPU seconds")
    for stay in (0.8, 0.95):
        chain = pdp.MarkovChain(transition=[[stay, 1 - stay], [1 - stay, stay]], length=None)
        calibration = pdp.calibrate(chain, pdp.EachStep(pdp.Sum()), epsilon=1.0)
        days = pd.period_range("2026-01-01", periods=DAYS + 1, freq="D")
        people = pd.DataFrame({"sick": [0, 1, 1, 0, 1]})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.json"
            ledger = pdp.Ledger(chain, epsilon=1.0, path=path, every="D")
            took = []
            for day in days[:DAYS]:
                begun = time.process_time()
                calibration.release(people, value="sick", ledger=ledger, step=str(day))
                took.append(time.process_time() - begun)
            spent = ledger.spent
            opened = seconds(lambda path=path: pdp.Ledger.open(path).spent)
            size = path.stat().st_size / 2**20
            refused = ""
            try:
                pdp.Ledger.open(path).charge(0.5, step=str(days[DAYS - 30]))
            except pdp.BudgetExceededError:
                refused = "a charge of 0.5 about a day of last month is refused"
        year = [sum(took[k : k + 365]) / 365 for k in (0, len(took) - 365)]
        lines += [
            "",
            f"staying with probability {stay}: {DAYS} days, {spent:.12f} of 1 spent; {refused}",
            f"file of {size:.2f} MB",
            f"open it and ask what is spent: {opened / unit:.3f} yardsticks (at most 1)",
            f"one release: {1000 * year[0]:.1f} CPU ms in the first year",
            f"and in the tenth: {1000 * year[1]:.1f} CPU ms",
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parent / "results" / "streams.txt").write_text(text)


if __name__ == "__main__":
    main()
