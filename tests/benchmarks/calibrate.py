"""What a calibration costs beside one search at the scale it finds: fifteen binary tuples.

Run `python -m tests.benchmarks.calibrate` from the project root. CPU time, compilation warm.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading
from tests.benchmarks.tables import dirichlet, ising


def table(cells: np.ndarray) -> pdp.JointTable:
    """Binary tuples with these probabilities."""
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * cells.ndim)


CASES = {
    "positively correlated": lambda: table(ising(15, 0.15, seed=1, sign=1.0)),
    "negatively correlated": lambda: table(ising(15, 0.15, seed=1, sign=-1.0)),
    "mixed signs": lambda: table(ising(15, 0.2, seed=1)),
    "random Dirichlet": lambda: table(dirichlet(15, seed=1)),
}


def main() -> None:
    """Print and store one line per case."""
    pdp.calibrate(table(dirichlet(13, seed=0)), pdp.Sum())
    lines = [
        *heading("calibrate", "numpy", "numba"),
    ]
    for name, build in CASES.items():
        model = build()
        begun = time.process_time()
        cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
        calibrated = time.process_time() - begun
        begun = time.process_time()
        pdp.leakage(model, pdp.Sum(), scale=cal.scale)
        searched = time.process_time() - begun
        lines.append(
            f"15 binary, {name:22s} scale {cal.scale:.4f}  calibrate {calibrated:.2f} s"
            f"  leakage {searched:.2f} s  ratio {calibrated / searched:.2f} (at most 2.5)"
        )
        print(lines[-1], flush=True)
    (Path(__file__).parent / "results" / "calibrate.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
