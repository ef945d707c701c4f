"""Gaussian noise on tables, groups and chains: truth, noise against W∞, and time.

    python -m tests.benchmarks.finite_noise [truth|noise|time]

- truth: random (table, adversary) cases; δ against roots of a polynomial in 30 digits, and every
  tenth against quadrature. Allowed: never above what is claimed, error at most 1e-6·δ + 1e-15.
- noise: σ for ε = 1, δ = 1e-6 by exact δ beside what the Wasserstein coupling needs, with the
  chains (weakest adversary, as in the table about Laplace noise), real and random tables.
- time: 10 binary columns, a calibration against all adversaries, in units of one 3000×3000 float64
  matrix product in the same process; at most 8.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.gaussian_dp import mu_of
from pdp_calibrate.core.gaussian_mixtures import deltas
from tests.benchmarks.cases import Case, cases
from tests.benchmarks.heading import heading
from tests.benchmarks.tables import dirichlet, ising
from tests.benchmarks.time import yardstick
from tests.oracles import gaussian_mixtures as oracle

RESULT = Path(__file__).parent / "results" / "finite_noise.txt"
NUMBER = 2400


def adversary_cases(
    number: int,
) -> Iterator[tuple[list[int], list[float], list[float], float, float]]:
    """Yield random tables' adversaries: places, both laws, deviation, level."""
    rng = np.random.default_rng(23)
    done = 0
    while done < number:
        size = int(rng.integers(2, 6))
        cells = rng.dirichlet(np.full(2**size, rng.choice([0.05, 0.3, 1.0, 5.0])))
        cells[rng.random(2**size) < rng.choice([0.0, 0.3])] = 0.0
        if rng.random() < 0.2:
            cells = cells ** rng.choice([3.0, 20.0])
        if not cells.sum() > 0:
            continue
        table = (cells / cells.sum()).reshape([2] * size)
        values = [[0, int(weight)] for weight in rng.choice([1, 1, 1, 2, 3], size)]
        listed = list(oracle.adversaries(table, values))
        for place in rng.permutation(len(listed))[:8]:
            _, _, laws = listed[place]
            for first, second in itertools.permutations(laws.values(), 2):
                places = sorted(map(int, {*first, *second}))
                p, q = ([law.get(s, 0.0) for s in places] for law in (first, second))
                sigma = float(10 ** rng.uniform(-0.5, 1.5))
                yield places, p, q, sigma, float(rng.choice([0.0, 0.1, 0.5, 1.0, 2.0, 5.0]))
                done += 1


def truth() -> list[str]:
    """Compare δ with 30 digits."""
    above = below = checked = quadratures = fewer = 0
    worst = gap = 0.0
    for number, (places, p, q, sigma, level) in enumerate(adversary_cases(NUMBER)):
        atoms, laws = np.array(places) / sigma, (np.array([p]), np.array([q]))
        found = deltas(atoms, *laws, level)
        exact = oracle.delta_by_roots(places, p, q, sigma, level)
        checked += 1
        above += exact > found.upper[0]
        below += found.lower[0] > exact * (1 + 1e-15) + 1e-320
        allowed = 1e-6 * exact + 1e-15
        worst = max(worst, (found.upper[0] - exact) / allowed)
        gap = max(gap, (found.upper[0] - found.lower[0]) / allowed)
        fewer += exact > 0
        if number % 10 == 0:
            quadratures += 1
            by_area = oracle.delta_by_quadrature(places, p, q, sigma, level, pieces=150)
            if abs(by_area - exact) > 1e-8 * exact + 1e-18:
                raise SystemExit(f"the oracles differ: {by_area} and {exact}")
    return [
        f"truth: {checked} cases, {fewer} of them with delta > 0; {quadratures} by quadrature too",
        f"  true delta above the claimed one: {above}; below the lower end: {below}",
        f"  largest error over (1e-6 delta + 1e-15): {worst:.2e}; largest gap: {gap:.2e}",
    ]


def compared(case: Case) -> tuple[str, float | None]:
    """Say what one case needs by exact δ and by a coupling, and the ratio of both."""
    chain, mu = isinstance(case.model, pdp.MarkovChain), mu_of(1.0, 1e-6)
    who = pdp.Adversaries.weakest() if chain else pdp.Adversaries.all()
    name = f"  {case.group:<16} {case.name:<34}"
    try:
        ours = pdp.calibrate(
            case.model, case.query, epsilon=1.0, delta=1e-6, noise="gaussian", adversaries=who
        )
    except pdp.CalibrationError as error:
        if "no noise is needed" not in str(error):
            raise
        return f"{name} what is unknown hides everyone: no noise is needed", None
    coupled = float(ours.baselines["wasserstein"] or 0.0)
    everywhere = (ours.leakage.mu or 0.0) * ours.scale / mu
    ratio, group = coupled / ours.scale, ours.baselines["group"]
    needs = f"exact {ours.scale:9.5f}   W {coupled:9.5f}   ratio {ratio:6.3f}"
    return f"{name} {needs}   at every delta {everywhere:8.4g}   group {group:8.4g}", ratio


def noise() -> list[str]:
    """Compare σ by exact δ with what the coupling needs."""
    ratios: dict[str, list[float]] = {}
    lines = [
        "noise: sigma for epsilon 1, delta 1e-6; W is what a coupling needs that leaves out 1e-10",
        "  of the mass, and charges it; at every delta, what one needs that leaves out nothing",
    ]
    for case in cases():
        if isinstance(case.model, pdp.MarkovChain | pdp.JointTable):
            line, ratio = compared(case)
            lines.append(line)
            if ratio is not None:
                ratios.setdefault(case.group, []).append(ratio)
    lines += [
        f"  {name}: {len(found)} cases, W over exact: median {np.median(found):.3f},"
        f" largest {max(found):.3f}, smallest {min(found):.3f}"
        for name, found in ratios.items()
    ]
    return lines


def timing() -> list[str]:
    """Measure calibrations of 10 binary columns."""
    rng = np.random.default_rng(3)
    latent = np.zeros([2] * 10)
    for weight in (0.5, 0.3, 0.2):
        part = np.ones(())
        for yes in rng.uniform(0.1, 0.9, 10):
            part = np.multiply.outer(part, [1 - yes, yes])
        latent += weight * part
    tables = {
        "latent classes": latent,
        "no structure": dirichlet(10, seed=1).reshape([2] * 10),
        "couplings": ising(10, 0.3, seed=1).reshape([2] * 10),
    }
    asked = {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    pdp.calibrate(pair, pdp.Sum(), **asked)  # type: ignore[call-overload]
    lines = ["time: calibration of 10 binary columns, all adversaries, yardsticks (at most 8)"]
    for name, cells in tables.items():
        table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * 10)
        unit, start = yardstick(), time.process_time()
        found = pdp.calibrate(table, pdp.Sum(), **asked)  # type: ignore[call-overload]
        spent = time.process_time() - start
        lines.append(
            f"  {name:<16} {spent / unit:5.2f} yardsticks (unit {unit:.2f} s);"
            f" sigma {found.scale:.6f}, exact {found.leakage.exact}"
        )
    return lines


def main() -> None:
    """Print what was asked for; write everything down if all of it was."""
    parts = {"truth": truth, "noise": noise, "time": timing}
    chosen = sys.argv[1:] or list(parts)
    lines = heading("finite_noise", "numpy", "scipy", "mpmath")
    for name in chosen:
        found = parts[name]()
        print("\n".join(found), flush=True)
        lines += ["", *found]
    if len(chosen) == len(parts):
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
