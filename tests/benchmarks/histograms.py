"""Histograms of survey items: every adversary, as a multiple of one 3000×3000 matrix product.

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.histograms

Latent-class tables (items correlated through a few kinds of respondents), tables without any
structure, and items that are nearly independent; the leakage at one scale and a whole calibration.
With the word `ten`: ten items of five values, 9.8 million cells, the leakage at one scale; besides
ordered answers behind which stands a common opinion, and nearly independent cells.
CPU time, imports warm; the yardstick is the best of three products in the same process.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

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


def ordered(items: int, values: int, *, correlation: float, seed: int) -> FloatArray:
    """Answers on a scale: one normal opinion and own noise, cut at thresholds of each item."""
    rng = np.random.default_rng(seed)
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    loadings = np.sqrt(np.clip(correlation + rng.uniform(-0.1, 0.1, items), 0.02, 0.95))
    cuts = [ndtri(np.cumsum(rng.dirichlet(np.full(values, 4.0)))[:-1]) for _ in range(items)]
    cells = np.zeros((values,) * items)
    for point, weight in zip(points, weights / weights.sum(), strict=True):
        if weight > 1e-16:
            laws = [
                np.diff(ndtr((cut - load * point) / np.sqrt(1 - load**2)), prepend=0, append=1)
                for cut, load in zip(cuts, loadings, strict=True)
            ]
            cells += weight * functools.reduce(np.multiply.outer, laws)
    return np.asarray(cells / cells.sum())


def perturbed(items: int, values: int, *, size: float, seed: int) -> FloatArray:
    """Independent items, every cell multiplied by a random factor."""
    rng = np.random.default_rng(seed)
    laws = [rng.dirichlet(np.full(values, 3.0)) for _ in range(items)]
    cells = functools.reduce(np.multiply.outer, laws)
    cells = cells * np.exp(size * rng.standard_normal(cells.shape))
    return np.asarray(cells / cells.sum())


TEN: dict[str, Callable[[], FloatArray]] = {
    "ordered, correlation 0.1": lambda: ordered(10, 5, correlation=0.1, seed=1),
    "ordered, correlation 0.3": lambda: ordered(10, 5, correlation=0.3, seed=2),
    "ordered, correlation 0.6": lambda: ordered(10, 5, correlation=0.6, seed=3),
    "perturbed by 10 %": lambda: perturbed(10, 5, size=0.1, seed=4),
    "perturbed by 50 %": lambda: perturbed(10, 5, size=0.5, seed=4),
    "classes, nearly independent": lambda: latent(10, 5, spread=0.1, seed=7),
    "classes, mildly correlated": lambda: latent(10, 5, spread=0.4, seed=6),
    "classes": lambda: latent(10, 5, spread=1.0, seed=5),
}


CASES = {
    "5 items of 6 values, latent classes": latent(5, 6, spread=1.0, seed=1),
    "5 items of 6 values, mildly correlated": latent(5, 6, spread=0.4, seed=2),
    "5 items of 6 values, nearly independent": latent(5, 6, spread=0.1, seed=3),
    "5 items of 6 values, no structure": structureless(5, 6, seed=4),
    "6 items of 5 values, latent classes": latent(6, 5, spread=1.0, seed=5),
    "7 items of 4 values, mildly correlated": latent(7, 4, spread=0.4, seed=6),
}


def ten_items() -> None:
    """Print the bracket of ten items, kernels compiled before."""
    unit = yardstick()
    first = True
    for name, made in TEN.items():
        table = pdp.JointTable(probabilities=made(), domains=[list(range(5))] * 10)
        found: list[pdp.Leakage] = []

        def once(table: pdp.JointTable = table, found: list[pdp.Leakage] = found) -> None:
            found.append(pdp.leakage(table, pdp.Histogram(), scale=4.0))

        if first:
            once()
            first = False
        one = cpu_seconds(once)
        lower, upper = found[-1].lower, found[-1].value
        print(
            f"10 items of 5 values, {name:28s} leakage at 4: {lower:.5f} to {upper:.5f}"
            f" (+{upper / lower - 1:.1%})  {one / unit:5.2f} yardsticks (allowed {ALLOWED:g})",
            flush=True,
        )


def main() -> None:
    """Print one line per table."""
    if "ten" in sys.argv[1:]:
        ten_items()
        return
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
