"""The fast table engine against the plain one, the oracle, and itself."""

import dataclasses
import functools
import math
import subprocess
import sys
import time
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.problem import Bracket, Problem, split
from pdp_calibrate.core.query import lower
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table.search import search_sets
from pdp_calibrate.families.table.setting import Grid, Setting, conditional_laws, grid_of
from pdp_calibrate.families.table.sorted_mixtures import search_lines
from pdp_calibrate.families.table.tree_search import search_branches, target_bound
from tests.oracles import brute_force as oracle, plain_engine
from tests.support.marks import bounds_checked, slow_after
from tests.support.random_tables import additive_problem, binary_cells, random_problem
from tests.support.table_searches import only_compiled, only_sets, search, setting_at

BIT = np.array([[0.0], [1.0]])
FOREVER = Clock(math.inf)


def is_exact(found: Bracket) -> bool:
    return found.upper - found.lower <= max(1e-9 * found.upper, 1e-12)


def on_a_grid(cells: FloatArray, scale: float) -> tuple[Setting, Grid]:
    """The sum of a binary table's tuples at this scale, and the grid that its answers lie on."""
    setting = setting_at(additive_problem(cells, [BIT] * cells.ndim), scale)
    grid = grid_of(setting)
    assert grid is not None
    return setting, grid


def attained(problem: Problem, found: Bracket, scale: float) -> float:
    """What the oracle says about the witness."""
    witness, model = found.witness, problem.model
    assert witness is not None
    index = [{value: k for k, value in enumerate(domain)} for domain in model.domains]
    contributions = problem.contributions

    def answer(database: tuple[Any, ...]) -> float:
        cell = tuple(where[value] for where, value in zip(index, database, strict=True))
        if contributions.table is not None:
            return float(contributions.table[cell][0])
        parts = zip(contributions.values, cell, strict=True)
        return math.fsum(float(part[k, 0]) for part, k in parts)

    cells = model.probabilities  # type: ignore[attr-defined]
    if len(witness.known) == len(problem.names) - 1:
        cells = np.ones_like(cells)  # to whoever knows everyone else every database is possible
    there = oracle.placed(witness, problem.names)
    return oracle.log_density_ratio(cells, model.domains, answer, scale, there)


@pytest.mark.parametrize("by", ["all at once", "sets", "tree", "tree with bounds"])
@pytest.mark.parametrize("chunk", bounds_checked(range(10), 1, quick=2))
def test_equal_to_the_plain_engine(chunk: int, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "sets":
        only_sets(monkeypatch)
    elif by != "all at once":
        only_compiled(monkeypatch, bounds=by == "tree with bounds")
    for seed in range(50 * chunk, 50 * chunk + 50):
        problem, scale = random_problem(seed)
        plain, fast = plain_engine.search(problem, scale), search(problem, scale)
        assert fast.upper == pytest.approx(plain.upper, rel=1e-10, abs=1e-13)
        assert fast.lower == pytest.approx(plain.lower, rel=1e-10, abs=1e-13)
        assert fast.upper >= plain.lower
        if not problem.hidden_noise:
            assert is_exact(fast)
            if fast.witness is not None and np.isfinite(fast.witness.output):
                assert attained(problem, fast, scale) == pytest.approx(
                    fast.lower, rel=1e-9, abs=1e-11
                )


@pytest.mark.parametrize("kind", ["structureless", "coupled", "zeros"])
@pytest.mark.parametrize("scale", slow_after(1, [2.0, 0.2, 50.0]))
@pytest.mark.compiled
def test_the_tree_agrees_with_sorted_mixtures(
    kind: str, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two algorithms that share no code, on a table deep enough for every bound to act."""
    only_compiled(monkeypatch)
    setting, grid = on_a_grid(binary_cells(10, kind, seed=3), scale)
    tree = search_branches(setting, grid, 0.0, FOREVER)
    lines = search_lines(setting, 0.0, FOREVER)
    assert tree.lower == pytest.approx(lines.lower, rel=1e-10)
    assert tree.upper == pytest.approx(lines.upper, rel=1e-9)
    assert tree.lower <= lines.upper
    assert lines.lower <= tree.upper


@pytest.mark.parametrize("kind", ["structureless", "coupled", "zeros"])
@pytest.mark.compiled
def test_what_cannot_exceed_the_incumbent_is_only_bounded(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_compiled(monkeypatch)
    problem = additive_problem(binary_cells(9, kind, seed=5), [BIT] * 9)
    exact = search(problem, 2.0)
    for share in (0.5, 0.999, 1.001, 2.0):
        found = search(problem, 2.0, incumbent=share * exact.upper)
        assert exact.lower <= max(found.upper, share * exact.upper)
        if share < 1:
            assert found.upper == pytest.approx(exact.upper, rel=1e-10)
        else:
            assert found.upper <= share * exact.upper * (1 + 1e-9)


@pytest.mark.parametrize("seed", bounds_checked(range(3), 2, quick=1))
@pytest.mark.compiled
def test_a_bracket_stopped_early_holds_the_truth(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_compiled(monkeypatch)
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, 10)
    whole = [BIT] * 10
    real = [weight * BIT for weight in weights]
    cells = binary_cells(10, ["structureless", "coupled", "zeros"][seed % 3], seed=seed)
    for values in (whole, real):
        problem = additive_problem(cells, values)
        exact = search(problem, 1.5)
        assert is_exact(exact)
        for patience in (0.0, 0.001, 0.004, 0.02):
            found = search(problem, 1.5, deadline=time.monotonic() + patience)
            assert found.lower <= exact.upper
            assert found.upper >= exact.lower
            assert found.upper <= weights.size * values[0].max() * 2 + weights.sum()


@pytest.mark.parametrize("relative", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("seed", range(4))
def test_extreme_scales_against_many_digits(relative: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.full(12, 0.7)).reshape(2, 3, 2)
    cells[rng.random(cells.shape) < 0.15] = 0.0
    cells /= cells.sum()
    domains = [sorted((1e6 * rng.random(size)).tolist()) for size in cells.shape]
    table = pdp.JointTable(probabilities=cells, domains=domains)
    scale = relative * max(domain[-1] - domain[0] for domain in domains)
    for adversaries, admits in (
        (Adversaries.all(), lambda _i, _k: True),
        (Adversaries.weakest(), lambda _i, k: not k),
    ):
        found = pdp.leakage(table, pdp.Sum(), scale=scale, adversaries=adversaries)
        truth, _ = oracle.worst_leakage_mpmath(cells, domains, sum, scale, admits, digits=40)
        slack = mpmath.mpf(10) ** -9 * truth + mpmath.mpf(10) ** -12
        assert found.lower <= truth <= found.value <= truth + slack


def test_tiny_probabilities_stay_right() -> None:
    cells = np.array([[[0.3, 1e-300], [0.2, 0.1]], [[1e-300, 0.1], [1e-280, 0.3]]])
    cells /= cells.sum()
    domains = [[0, 1], [0, 2], [0, 5]]
    table = pdp.JointTable(probabilities=cells, domains=domains)
    for scale in (0.02, 1.0, 300.0):
        found = pdp.leakage(table, pdp.Sum(), scale=scale)
        truth, _ = oracle.worst_leakage_mpmath(cells, domains, sum, scale, lambda _i, _k: True)
        assert found.lower <= truth <= found.value <= truth * (1 + 1e-9)


def test_log_space_agrees_where_both_work() -> None:
    problem = additive_problem(binary_cells(6, "zeros", seed=1), [BIT] * 6)
    setting = setting_at(problem, 0.7)
    slow = search_sets(setting, 0.0, FOREVER)
    assert slow.lower == pytest.approx(search(problem, 0.7).lower, rel=1e-10)


@pytest.mark.parametrize("seed", bounds_checked(range(8), 2))
def test_independent_groups_are_searched_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [rng.dirichlet(np.ones(4)).reshape(2, 2) for _ in range(2)]
    cells = functools.reduce(np.multiply.outer, [*blocks, rng.dirichlet(np.ones(3))])
    cells = np.transpose(cells, rng.permutation(5))
    values = [rng.normal(size=(size, 1)) for size in cells.shape]
    for adversaries in (Adversaries.all(), Adversaries.knowing(at_least=2), Adversaries.weakest()):
        problem = additive_problem(cells / cells.sum(), values, adversaries)
        plain, fast = plain_engine.search(problem, 1.3), search(problem, 1.3)
        assert fast.upper == pytest.approx(plain.upper, rel=1e-12)
        assert is_exact(fast)
        assert attained(problem, fast, 1.3) == pytest.approx(fast.lower, rel=1e-10)


def test_pairwise_independence_is_not_enough_to_split() -> None:
    """The exclusive or of two fair coins is independent of each, not of both."""
    cells = np.zeros((2, 2, 2))
    for first, second in np.ndindex(2, 2):
        cells[first, second, first ^ second] = 0.25
    problem = additive_problem(cells, [BIT] * 3)
    assert search(problem, 1.0).upper == pytest.approx(plain_engine.search(problem, 1.0).upper)


@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
@pytest.mark.parametrize("seed", bounds_checked(range(4), 1))
def test_sorted_mixtures_of_any_function_equal_the_oracle(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    cells[rng.random(cells.shape) < 0.2 * (seed % 2)] = 0.0
    cells /= cells.sum()
    answers = rng.normal(size=(2, 3, 4))
    table = pdp.JointTable(probabilities=cells, domains=[range(2), range(3), range(4)])
    query = pdp.Custom(function=lambda x: float(answers[x]))
    (problem,) = split(table, lower(query, table), Adversaries.all())
    found = search_lines(setting_at(problem, scale), 0.0, FOREVER)
    truth, _ = oracle.worst_leakage(
        cells, table.domains, lambda x: float(answers[x]), scale, lambda _, known: len(known) < 2
    )
    assert found.lower <= truth <= found.upper
    assert found.upper == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("kind", ["structureless", "coupled", "zeros"])
@pytest.mark.parametrize("scale", [0.5, 40.0])
def test_one_pass_bounds_every_adversary_of_a_target(
    kind: str, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_compiled(monkeypatch)
    setting, grid = on_a_grid(binary_cells(8, kind, seed=4), scale)
    problem = setting.prepared.problem
    for target in range(8):
        alone = dataclasses.replace(setting.knowledge, targets=(target,))
        found = search(dataclasses.replace(problem, knowledge=alone), scale)
        bound = target_bound(setting, grid, target)
        assert found.lower <= bound * (1 + 1e-12)
        assert bound <= setting.furthest * (1 + 1e-12)


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("rare", [1e-3, 1e-100, 1e-155, 1e-200, 1e-270])
def test_one_pass_bounds_tuples_that_all_but_surely_agree(rare: float, scale: float) -> None:
    """The odds of two cells may lie further apart than numbers reach."""
    cells = np.full((2, 2, 2), rare)
    cells[0, 0, 0] = cells[1, 1, 1] = 0.5 - 3 * rare
    setting, grid = on_a_grid(cells, scale)
    assert setting.fits_linear_space
    for target in range(3):
        worst, _ = oracle.worst_leakage(
            cells, [[0, 1]] * 3, sum, scale, lambda i, _, target=target: i == target
        )
        bound = target_bound(setting, grid, target)
        assert worst <= bound * (1 + 1e-12)
        assert bound <= setting.furthest * (1 + 1e-12)


def test_conditional_laws_are_those_of_the_plain_engine() -> None:
    for seed in range(20):
        problem, _ = random_problem(seed)
        unknown = tuple(range(1, len(problem.names)))[:-1]
        fast = conditional_laws(problem, 0, unknown)
        plain = plain_engine.conditional_laws(problem, 0, unknown)
        np.testing.assert_allclose(fast.laws, plain.laws, rtol=1e-14)  # added in another order
        np.testing.assert_allclose(fast.atoms, plain.atoms, rtol=1e-14)


def test_the_adversary_behind_the_value_leaks_it() -> None:
    problem = additive_problem(binary_cells(7, "coupled", seed=2), [BIT] * 7)
    found = search(problem, 2.0)
    alone = search(problem.restricted(found.target, found.unknown), 2.0)
    assert alone.upper == pytest.approx(found.upper, rel=1e-12)


def test_more_secrets_than_values_that_occur() -> None:
    """A tuple with one value, and one whose other values never occur."""
    cells = np.array([[[0.5, 0.0, 0.0], [0.25, 0.25, 0.0]]])
    problem = additive_problem(cells, [np.zeros((1, 1)), BIT, np.array([[0.0], [2.0], [7.0]])])
    plain = plain_engine.search(problem, 1.0)
    assert search(problem, 1.0).upper == pytest.approx(plain.upper, rel=1e-12)
    weakest = dataclasses.replace(problem, knowledge=Adversaries.weakest().resolve(problem.model))
    assert search(weakest, 1.0).upper == pytest.approx(
        plain_engine.search(weakest, 1.0).upper, rel=1e-12
    )


@pytest.mark.parametrize(
    "case", slow_after(1, [(6, "pdp.Mean()"), (4, "pdp.Sum()"), (4, "pdp.Histogram()")])
)
def test_a_small_table_is_calibrated_without_the_compiler(case: tuple[int, str]) -> None:
    columns, query = case
    command = (
        "import sys, numpy as np, pdp_calibrate as pdp;"
        f"cells = np.random.default_rng(0).dirichlet(np.ones({2**columns}));"
        f"cells = cells.reshape([2] * {columns});"
        f"table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * {columns});"
        f"pdp.calibrate(table, {query}, epsilon=1.0);"
        "sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", command], check=True)  # noqa: S603  our own code


def test_importing_the_package_does_not_load_the_compiler() -> None:
    command = "import sys, pdp_calibrate; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0  # noqa: S603
