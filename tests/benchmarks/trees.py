"""Large trees: what regions save over contraction alone, what they cost, and whether they hold.

    python -m tests.benchmarks.trees 10000

draws that many random trees of up to seven tuples (seeds 0, 1, 2, …), looks around their targets no
further than a random horizon, and compares with the linear program on the joint table; then
calibrates sums about large trees. CPU time is in units of one 3000×3000 float64 matrix product.
Writes `results/trees.txt`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.calibration.solve import smallest_scale
from pdp_calibrate.composition.table_dual import dual_bound
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Problem, split
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.families.network import regions
from tests.benchmarks.heading import heading
from tests.benchmarks.time import cpu_seconds, yardstick
from tests.support.networks import contraction_bounds, regular_tree
from tests.support.random_time import random_tree

TREES = [(100, 99), (1000, 1), (1000, 2), (10_000, 2), (1000, 3)]  # tuples, children of each
STAYS = [0.2, 0.35, 0.45, 0.55, 0.8]


def problem_of(model: Model, query: Query, rate: float, adversaries: pdp.Adversaries) -> Problem:
    """Return the query in the unit of its noise."""
    answer = Contributions.joined([lower(query, model)], [1 / rate])
    (problem,) = split(model, answer, adversaries)
    return problem


def judged(seed: int) -> tuple[float, float, float]:
    """Return Birkhoff's bound, that of regions up to a horizon, and the program's value."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, most=7, states=(2, 2), zeros=seed % 2 == 1)
    weights = rng.integers(-2, 4, size=len(tree.names)).astype(float)
    weights[0] = 1.0
    query = pdp.Linear(weights=weights.tolist())
    rate = float(rng.choice([0.05, 0.3, 1.0]))
    who = pdp.Adversaries.weakest() if seed % 3 == 1 else pdp.Adversaries.all()
    regions._FURTHEST = int(rng.integers(1, 5))
    problem = problem_of(tree, query, rate, who)
    highest = contraction_bounds(tree, problem.contributions.tuple_ranges(), problem.knowledge)
    found = float(regions.Regions(problem).bounds(highest, 1.0).max())
    truth = dual_bound(problem_of(tree.to_table(), query, rate, who), dp_epsilon=0.0)
    return float(highest.max()), found, truth


def scale_by_contraction(tree: pdp.MarkovTree) -> float:
    """Return the scale of a sum for ε = 1 if only Birkhoff's bound were known."""
    knowledge = pdp.Adversaries.all().resolve(tree)
    ones = np.ones(len(tree.names))
    return smallest_scale(
        lambda scale: float(contraction_bounds(tree, ones / scale, knowledge).max()),
        1.0,
        low=1.0,
        high=float(len(ones)),
    )


def main() -> None:
    """Compare, calibrate and write the results."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    values = np.array([judged(seed) for seed in range(number)])
    rounding = 1e-9 * values[:, 2] + 1e-12  # of the program, a bound itself
    unsound = int((values[:, 1] < values[:, 2] - rounding).sum())
    over = values[:, :2].sum(axis=0) / values[:, 2].sum()
    lines = [
        *heading("trees", "numpy", "scipy", "numba"),
        "",
        f"{number} random trees, horizons of 1 to 4 steps, against the program on the joint table:",
        f"below it: {unsound}",
        f"all bounds over it: contraction alone {over[0]:.3f}, with regions {over[1]:.3f}",
        "",
        "λ of a sum, ε = 1, all adversaries; yardsticks of one calibration",
        "tuples children   keeps   contraction   regions   lower end   yardsticks",
    ]
    regions._FURTHEST = 100
    unit = yardstick()
    for size, children in TREES:
        for stay in STAYS:
            tree = regular_tree(size, children, stay)
            found: list[pdp.Calibration] = []
            spent = cpu_seconds(
                lambda tree=tree, found=found: found.append(
                    pdp.calibrate(tree, pdp.Sum(), epsilon=1.0)
                )
            )
            lines.append(
                f"{size:6d} {children:8d} {stay:7.2f} {scale_by_contraction(tree):13.4f}"
                f" {found[0].scale:9.4f} {found[0].leakage.lower:11.4f} {spent / unit:12.2f}"
            )
            print(lines[-1], flush=True)
    (Path(__file__).parent / "results" / "trees.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[:9]))


if __name__ == "__main__":
    main()
