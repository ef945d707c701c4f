"""Histograms of survey items: every adversary, as a multiple of one 3000×3000 matrix product.

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.histograms

Latent-class tables (items correlated through a few kinds of respondents), tables without any
structure, and items that are nearly independent; the leakage at one scale and a whole calibration.
CPU time, imports warm; the yardstick is the best of three products in the same process.
"""

from __future__ import annotations

import functools
import os
import sys

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from tests.benchmarks.time import cpu_seconds, yardstick

ALLOWED = 8.0


def latent(items: int, values: int, *, spread: float, seed: int) -> FloatArray:
    """Three kinds of respondents, whose answers are independent given the kind."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 2.0))
    base = [rng.dirichlet(np.ones(values)) for _ in range(items)]
    cells = np.zeros((values,) * items)
    for share in shares:
        laws = [(1 - spread) * law + spread * rng.dirichlet(np.ones(values)) for law in base]
        cells += share * functools.reduce(np.multiply.outer, laws)
    return np.asarray(cells / cells.sum())


def structureless(items: int, values: int, *, seed: int) -> FloatArray:
    """A random table."""
    cells = np.random.default_rng(seed).dirichlet(np.ones(values**items))
    return np.asarray(cells.reshape((values,) * items))


CASES = {
    "5 items of 6 values, latent classes": latent(5, 6, spread=1.0, seed=1),
    "5 items of 6 values, mildly correlated": latent(5, 6, spread=0.4, seed=2),
    "5 items of 6 values, nearly independent": latent(5, 6, spread=0.1, seed=3),
    "5 items of 6 values, no structure": structureless(5, 6, seed=4),
    "6 items of 5 values, latent classes": latent(6, 5, spread=1.0, seed=5),
    "7 items of 4 values, mildly correlated": latent(7, 4, spread=0.4, seed=6),
}


def main() -> None:
    """Print one line per table."""
    small = pdp.JointTable(probabilities=structureless(2, 3, seed=0), domains=[[0, 1, 2]] * 2)
    pdp.calibrate(small, pdp.Histogram(), epsilon=1.0)
    for name, cells in CASES.items():
        table = pdp.JointTable(
            probabilities=cells, domains=[list(range(size)) for size in cells.shape]
        )
        unit = yardstick()
        found: list[pdp.Leakage] = []
        one = cpu_seconds(
            lambda table=table, found=found: found.append(
                pdp.leakage(table, pdp.Histogram(), scale=4.0)
            )
        )
        scales: list[float] = []
        whole = cpu_seconds(
            lambda table=table, scales=scales: scales.append(
                pdp.calibrate(table, pdp.Histogram(), epsilon=1.0).scale
            )
        )
        gap = found[0].value / found[0].lower - 1
        print(
            f"{name:42s} leakage at 4: {found[0].value:.6f} (gap {gap:.0e})"
            f"  {one / unit:5.2f} yardsticks;  calibrated to {scales[0]:.4f}:"
            f" {whole / unit:5.2f} yardsticks (allowed {ALLOWED:g})  unit {unit:.2f} s",
            flush=True,
        )
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
