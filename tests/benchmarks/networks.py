"""Networks: whether elimination ever falls below the truth, how tight it is, and what it costs.

    python -m tests.benchmarks.networks 20000

draws that many random networks (seeds 0, 1, 2, …) of two to six tuples with two or three values, in
circles, with zeros and of both signs, and compares the bound of elimination about every target with
brute force over all adversaries: Laplace noise on a random sum, and mechanisms with random budgets
per tuple, with and without soft hints about every tuple. Then the bound is compared with the exact
worst case on positive couplings, and with Ghosh and Kleinberg's; and all targets of random planar
graphs are timed, in units of one 3000×3000 float64 matrix product. Writes `results/networks.txt`.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from scipy.spatial import Delaunay

import pdp_calibrate as pdp
from pdp_calibrate.families.network.couplings import Couplings
from pdp_calibrate.families.network.elimination import Elimination
from tests.benchmarks.heading import heading, keep
from tests.benchmarks.time import cpu_seconds, yardstick
from tests.oracles.networks import joint_law, laplace_likelihoods, leakages, random_mechanism
from tests.support.networks import ising_factors, random_factors

MECHANISMS = 3


def judged(seed: int) -> tuple[int, float, float] | None:
    """Return how many bounds fell below the truth, the largest share reached, and of the group."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    sizes = [int(k) for k in rng.integers(2, 4 if size < 6 else 3, size)]
    factors = random_factors(rng, sizes, zeros=seed % 2 == 1)
    joint = joint_law(sizes, factors)
    if not joint.any():
        return None
    try:
        domains = {place: range(number) for place, number in enumerate(sizes)}
        network = pdp.Network(factors=factors, domains=domains)
    except pdp.ModelError:
        return None
    elimination = Elimination(network.couplings)
    failed, reached, of_group = 0, 0.0, 0.0

    def compare(budgets: np.ndarray, truth: np.ndarray) -> None:
        nonlocal failed, reached, of_group
        bounds = elimination.bounds(budgets, range(size))
        alone = int(rng.integers(size))
        single = Elimination(network.couplings).bounds(budgets, [alone])[alone]
        failed += int(np.sum(truth > bounds * (1 + 1e-11) + 1e-12))
        failed += int(truth[alone] > single * (1 + 1e-11) + 1e-12)
        reached = max(reached, float((truth / np.maximum(bounds, 1e-300)).max()))
        of_group = max(of_group, float(bounds.max() / budgets.sum()))

    added = [rng.choice([-1.0, 0.5, 1.0, 2.0]) * np.arange(number) for number in sizes]
    scale = float(rng.choice([0.5, 2.0, 10.0]))
    budgets = np.array([np.ptp(one) for one in added]) / scale
    compare(budgets, leakages(joint, laplace_likelihoods(added, scale)))
    for _ in range(MECHANISMS):
        budgets = rng.exponential(size=size) * rng.choice([0.1, 1.0, 4.0])
        mechanism = random_mechanism(rng, sizes, budgets)
        hinted = joint
        if rng.random() < 0.5:
            for place, number in enumerate(sizes):
                hint = np.exp(rng.normal(size=number) * 3)
                hinted = hinted * hint.reshape([-1 if k == place else 1 for k in range(size)])
        compare(budgets, leakages(hinted / hinted.max(), mechanism[np.newaxis]))
    return failed, reached, of_group


def ghosh_kleinberg(joint: np.ndarray, budget: float) -> float:
    """Return their bound on what mechanisms of one budget per tuple leak; ∞ where it says nothing.

    Γ holds half the largest log-ratio of full conditionals; the spectral norm must be below 1.
    """
    size = joint.ndim
    gamma = np.zeros((size, size))
    for target in range(size):
        logs = np.log(joint / joint.sum(axis=target, keepdims=True))
        for other in range(size):
            if other != target:
                gamma[target, other] = np.ptp(logs, axis=other).max() / 2
    if np.linalg.norm(gamma, 2) >= 1:
        return float("inf")
    return float(budget * 2 * np.linalg.inv(np.eye(size) - gamma).sum(axis=1).max())


def positive(seed: int) -> tuple[float, float, float]:
    """Return elimination's bound, the exact worst case, and Ghosh and Kleinberg's bound."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 13))
    share = float(rng.choice([0.25, 0.5]))
    edges = {(int(rng.integers(0, k)), k) for k in range(1, size)}
    edges |= {pair for pair in itertools.combinations(range(size), 2) if rng.random() < share / 2}
    strongest = float(rng.choice([0.1, 0.3]))
    factors = [
        factor
        for edge in sorted(edges)
        for factor in ising_factors([edge], rng.uniform(0, strongest))
    ]
    network = pdp.Network(factors=factors, domains={place: [0, 1] for place in range(size)})
    scale = float(rng.choice([1.0, 3.0]))
    bound = Elimination(network.couplings).bounds(np.full(size, 1 / scale), range(size)).max()
    exact = pdp.leakage(network, pdp.Sum(), scale=scale)
    assert exact.exact
    return float(bound), exact.value, ghosh_kleinberg(joint_law([2] * size, factors), 1 / scale)


def planar(size: int, seed: int, strength: float | None) -> Couplings:
    """Return the triangulation of random points, with equal or random strengths."""
    rng = np.random.default_rng(seed)
    corners = Delaunay(rng.random((size, 2))).simplices
    edges = {
        (int(min(pair)), int(max(pair)))
        for triangle in corners
        for pair in itertools.combinations(triangle, 2)
    }
    return Couplings(
        size, {edge: strength or float(rng.exponential(0.4)) for edge in sorted(edges)}
    )


def main() -> None:
    """Judge, compare, time, and write the result."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    lines = heading("networks", "numpy", "scipy", "numba")
    found = [result for seed in range(number) if (result := judged(seed)) is not None]
    failed, reached, of_group = (np.array(part) for part in zip(*found, strict=True))
    lines += [
        "",
        f"{len(found)} random networks (of {number} draws), all adversaries:",
        f"Laplace noise, and {MECHANISMS} mechanisms each, half of them with hints about everyone",
        f"bounds below the truth: {int(failed.sum())}",
        f"largest share of a bound that was reached: {reached.max():.12f}",
        f"largest bound, as a share of the group bound: {of_group.max():.12f}",
    ]
    compared = np.array([positive(seed) for seed in range(200)])
    ratios = compared[:, 0] / compared[:, 1]
    others = compared[:, 2] / compared[:, 1]
    finite = np.isfinite(others)
    lines += [
        "",
        "200 networks of 4 to 12 yes/no tuples with positive couplings, sum, Laplace:",
        f"elimination / exact: median {np.median(ratios):.4f}, largest {ratios.max():.4f}",
        f"Ghosh-Kleinberg / exact: says nothing in {int((~finite).sum())} of them",
        f"else: median {np.median(others[finite]):.4f}, smallest {others[finite].min():.4f}",
        "",
        "all targets of random planar graphs, one bound each (yardsticks, first time):",
    ]
    Elimination(planar(200, 0, 0.4)).bounds(np.ones(200), range(200))  # compiles
    unit = yardstick()
    lines.append(f"yardstick: {unit:.2f} CPU seconds")
    for size, strength in itertools.product((250, 500, 1000, 2000), (0.4, None)):
        elimination = Elimination(planar(size, size, strength))
        ones = np.ones(size)
        first = cpu_seconds(lambda e=elimination, o=ones: e.bounds(o, range(len(o))))
        again = cpu_seconds(lambda e=elimination, o=ones: e.bounds(o, range(len(o))))
        highest = elimination.bounds(ones, range(size)).max()
        said = "equal couplings" if strength else "random couplings"
        lines.append(
            f"{size:5} tuples, {said}: {first / unit:.2f}, at another scale {again / unit:.3f};"
            f" bound {highest:.4f}, group {size}"
        )
    keep("networks", lines)


if __name__ == "__main__":
    main()
