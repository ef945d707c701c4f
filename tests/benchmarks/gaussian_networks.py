"""Gaussian networks: never below brute force, exact where signs fit, and CPU time on grids.

Run from the project's folder:

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.gaussian_networks [networks]

Random networks of up to 8 tuples with every pattern of signs, zero weights, mixed units and one or
two answers are compared with a regression for every adversary: with the bound of the comparison
matrix alone, and as the library decides. CPU time (`time.process_time`) is in units of one
3000×3000 float64 matrix product in the same process, compilation warm.
"""

from __future__ import annotations

import sys

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.families.gaussian import network_search
from tests.benchmarks.heading import heading, keep
from tests.benchmarks.time import cpu_seconds, yardstick
from tests.oracles.gaussian import leakages_by_precision
from tests.support.networks import grid_precision

ROUNDING = 1e-12  # of the brute force


def random_network(
    rng: np.random.Generator, kind: str
) -> tuple[pdp.GaussianNetwork, np.ndarray] | None:
    """A network and the weights of one or two answers; None where it is next to singular."""
    size = int(rng.integers(1, 9 if rng.random() < 0.1 else 7))
    there = rng.random((size, size)) < rng.choice([0.2, 0.5, 1.0])
    links = np.triu(rng.exponential(size=(size, size)) * there, 1)
    flips = rng.choice([-1.0, 1.0], size=size) if kind == "flipped" else np.ones(size)
    signs = rng.choice([-1.0, 1.0], size=(size, size)) if kind == "any" else -np.outer(flips, flips)
    links *= np.triu(signs, 1)
    beside = links + links.T
    own = np.abs(beside).sum(axis=1) * rng.choice([0.4, 0.8, 1.0]) + rng.exponential(0.5, size)
    precision = beside + np.diag(own + 1e-3)
    roots = np.sqrt(np.diagonal(precision))
    if np.linalg.eigvalsh(precision / np.outer(roots, roots))[0] < 1e-4:
        return None
    units = 2.0 ** rng.integers(-3, 3, size) * rng.choice([1, 1e-7, 1e5])
    weights = rng.normal(size=(int(rng.choice([1, 1, 2])), size)) * (rng.random(size) < 0.7)
    if kind != "any":
        weights = np.abs(weights) * flips
    weights[:, 0] = flips[0]
    widths = rng.uniform(0.1, 3.0, size) / units
    model = pdp.GaussianNetwork(
        precision=precision * np.outer(units, units), bounds=[(0, width) for width in widths]
    )
    return model, weights * units


def campaign(number: int) -> list[str]:
    """Compare with brute force; return what was found."""
    rng = np.random.default_rng(24)
    compared = {"alike": 0, "flipped": 0, "any": 0}
    faults, refused, not_exact, adversaries = 0, 0, 0, 0
    ratios: list[float] = []
    while sum(compared.values()) < number:
        kind = str(rng.choice(["alike", "flipped", "any", "any"]))
        drawn = random_network(rng, kind)
        if drawn is None:
            continue
        model, weights = drawn
        compared[kind] += 1
        truth = leakages_by_precision(model.precision.toarray(), weights, model.widths)
        adversaries += len(truth)
        worst = max(truth.values())
        queries = [pdp.Linear(weights=row) for row in weights]
        for searched in (0, 60):
            network_search.SEARCHED_TUPLES = searched
            try:
                leak = pdp.leakage(model, queries, scale=1.0)
            except pdp.UnsupportedQueryError:
                refused += 1
                continue
            faults += leak.value < worst * (1 - ROUNDING) or leak.lower > worst * (1 + ROUNDING)
            if searched or kind != "any":
                not_exact += not leak.exact
            else:
                ratios.append(leak.value / worst)
        network_search.SEARCHED_TUPLES = 60
    return [
        f"{number:,} random networks ({compared}), {adversaries:,} adversaries by brute force:",
        f"  bounds below the truth, or lower ends above it: {faults}",
        f"  not exact where signs fit or few tuples are searched: {not_exact}",
        (
            f"  comparison matrix alone, any signs: {refused} refused, the others"
            f" {np.median(ratios):.3f} (median) to {max(ratios):.2f} times the truth"
        ),
    ]


def timings() -> list[str]:
    """CPU time of whole calibrations, in yardsticks."""
    small = pdp.GaussianNetwork(precision=grid_precision(4, 4, 1.0), bounds=(0, 1))
    for query in (pdp.Sum(), pdp.Sum(clamp=True)):
        pdp.calibrate(small, query, epsilon=1.0)
    unit = yardstick()
    lines = [f"yardstick {unit:.2f} CPU seconds"]
    for side, strength, allowed in ((100, 1.0, "8"), (100, 30.0, "8"), (316, 1.0, "-")):
        model = pdp.GaussianNetwork(precision=grid_precision(side, side, strength), bounds=(0, 1))
        found: list[pdp.Leakage] = []
        one = cpu_seconds(lambda: found.append(pdp.leakage(model, pdp.Sum())))  # noqa: B023
        whole = cpu_seconds(lambda: pdp.calibrate(model, pdp.Sum(), epsilon=1.0))  # noqa: B023
        leak = found[0]
        lines.append(
            f"grid {side} x {side}, strength {strength:g}: leakage {leak.value:.6f},"
            f" gap {leak.value / leak.lower - 1:.1e}, {'exact' if leak.exact else 'bracket'},"
            f" {one / unit:.2f} yardsticks; calibrated: {whole / unit:.2f} (allowed {allowed})"
        )
    return lines


def main() -> None:
    """Run everything and keep the result."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    lines = [*heading("gaussian_networks", "numpy", "scipy", "numba"), "", *timings(), ""]
    lines += campaign(number)
    keep("gaussian_networks", lines)


if __name__ == "__main__":
    main()
