"""The cost of ledger checks after 1,000 different releases about a chain of 10,000 steps.

Run `python -m tests.benchmarks.ledger` from the project root. CPU time; imports and compilation are
warm; the yardstick is one float64 3000×3000 matrix product, best of three. Measured are a check in
a running ledger, the first check after opening the file (parsing it and its checksum included), and
one release written to disk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep
from tests.benchmarks.tables import yardstick

STEPS, ENTRIES = 10_000, 1_000


def release_of(chain: pdp.MarkovChain, over: list[int]) -> pdp.Calibration:
    """A release at a given scale, as a ledger sees it."""
    leakage = pdp.Leakage(value=0.01, lower=0.0, scale=5000.0, witness=None)
    return pdp.Calibration(
        model=chain,
        query=pdp.Sum(over=over),
        adversaries=pdp.Adversaries.all(),
        epsilon=0.01,
        scale=5000.0,
        leakage=leakage,
    )


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Print and store the ratios."""
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=STEPS)
    rng = np.random.default_rng(0)
    chosen = [
        sorted(rng.choice(STEPS, size=100, replace=False).tolist()) for _ in range(ENTRIES + 2)
    ]
    last, further = (release_of(chain, over) for over in chosen[ENTRIES:])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.json"
        ledger = pdp.Ledger(chain, epsilon=50.0, path=path)
        for over in chosen[:ENTRIES]:
            ledger.spend(release_of(chain, over))
        unit = yardstick()
        running = seconds(lambda: ledger.would_spend(last)) / unit
        opened = seconds(lambda: pdp.Ledger.open(path).would_spend(last)) / unit
        written = seconds(lambda: ledger.spend(further)) / unit
        agree = pdp.Ledger.open(path).would_spend(last) == ledger.would_spend(last)
        entry = ledger.history[-1]
        different = len({entry.queries for entry in ledger.history})
        size = path.stat().st_size / 2**20
    lines = [
        *heading("ledger", "numpy"),
        f"yardstick {unit:.2f} CPU seconds",
        (
            f"{STEPS} steps, {different} different releases, file of {size:.1f} MB;"
            f" {entry.spent:.4f} spent, by {entry.method}"
        ),
        f"check in a running ledger: {running:.2f} yardsticks (at most 1)",
        f"open the file and check: {opened:.2f} yardsticks (at most 1); same answer: {agree}",
        f"check, write and sync one release: {written:.2f} yardsticks",
    ]
    keep("ledger", lines)


if __name__ == "__main__":
    main()
