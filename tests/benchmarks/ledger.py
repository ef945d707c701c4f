"""The cost of one ledger check after 1,000 releases about a chain of 10,000 steps.

Run `python -m tests.benchmarks.ledger` from the project root. CPU time; imports and compilation are
warm; the yardstick is one float64 3000×3000 matrix product, best of three.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
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


def main() -> None:
    """Print and store the ratio."""
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=STEPS)
    rng = np.random.default_rng(0)
    chosen = [
        sorted(rng.choice(STEPS, size=100, replace=False).tolist()) for _ in range(ENTRIES + 1)
    ]
    ledger = pdp.Ledger(chain, epsilon=50.0)
    for over in chosen[:-1]:
        ledger.spend(release_of(chain, over))
    unit = yardstick()
    begun = time.process_time()
    after = ledger.would_spend(release_of(chain, chosen[-1]))
    seconds = time.process_time() - begun
    text = (
        "python -m tests.benchmarks.ledger\n"
        f"{time.strftime('%Y-%m-%d')}, numpy {np.__version__}\n"
        f"one check after {ENTRIES} different releases, {STEPS} steps: {seconds:.2f} CPU seconds,"
        f" ratio {seconds / unit:.2f} (at most 1);"
        f" {after:.4f} spent, by {ledger.history[-1].method}\n"
    )
    print(text)
    (Path(__file__).parent / "results" / "ledger.txt").write_text(text)


if __name__ == "__main__":
    main()
