"""Coverage of samples of known tables, and what sets of tables cost.

Run `python -m tests.benchmarks.table_sets` from the project root. CPU time, compilation warm.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading
from tests.benchmarks.tables import dirichlet
from tests.families.table.test_sampled_tables import FAMILY, RARE, RARE_AMONG_THREE, UNEVEN, sampled

_DRAWS = 300
CASES = [
    ("pair, values .995/.005", RARE, 300, 0.0),
    ("pair, values .995/.005", RARE, 10_000, 0.0),
    ("pair, values .995/.005", RARE, 1_000_000, 0.0),
    ("three, one .995/.005", RARE_AMONG_THREE, 50_000, 0.0),
    ("three binary", FAMILY, 500, 0.0),
    ("three binary", FAMILY, 20_000, 0.0),
    ("two by three", UNEVEN, 3_000, 0.0),
    ("three binary, noise 2", FAMILY, 20_000, 2.0),
    ("three binary, noise 20", FAMILY, 20_000, 20.0),
]


def coverage(name: str, table: object, rows: int, noise_scale: float) -> str:
    """Draw samples and count how often the certified leakage is below the true one."""
    cells = np.asarray(table)
    truth = pdp.JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    rng = np.random.default_rng(1)
    true = pdp.leakage(truth, pdp.Sum()).value
    certified = [
        pdp.leakage(sampled(cells, rows, rng, noise_scale=noise_scale), pdp.Sum()).value
        for _ in range(_DRAWS)
    ]
    group = float(sum(size - 1 for size in cells.shape))
    below = sum(value < true for value in certified)
    return (
        f"{name:23s} {rows:8d} rows: {below} of {_DRAWS} below the truth (at most {_DRAWS // 20});"
        f" true {true:.3f}, median certified {np.median(certified):.3f}, group {group:.0f}"
    )


def cost(size: int) -> str:
    """Time one search and one calibration of a ball of binary tuples."""
    cells = dirichlet(size, seed=1)
    center = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * size)
    ball = pdp.ConditionalBall(center=center, radius=0.02)
    begun = time.process_time()
    pdp.leakage(ball, pdp.Sum())
    searched = time.process_time() - begun
    begun = time.process_time()
    cal = pdp.calibrate(ball, pdp.Sum(), epsilon=1.0)
    calibrated = time.process_time() - begun
    return (
        f"{size} binary, radius 0.02: leakage {searched:.2f} s, calibrate {calibrated:.2f} s,"
        f" scale {cal.scale:.3f} (group {size})"
    )


def main() -> None:
    """Print and store one line per case."""
    cost(4)
    lines = [
        *heading("table_sets", "numpy", "numba"),
    ]
    for case in CASES:
        lines.append(coverage(*case))
        print(lines[-1], flush=True)
    for size in (8, 10, 12):
        lines.append(cost(size))
        print(lines[-1], flush=True)
    (Path(__file__).parent / "results" / "table_sets.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
