"""Vectors of answers: the grid against brute force, the bracket against the grid."""

import dataclasses
import functools
import itertools
import time
from typing import Any

import numpy as np
import pytest

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table import joint_outputs
from pdp_calibrate.families.table.joint_outputs import search_vectors
from pdp_calibrate.families.table.search import search_sets, search_strongest
from pdp_calibrate.families.table.setting import Outcome, group_bound
from tests.support.marks import bounds_checked, slow_after
from tests.support.random_tables import additive_problem
from tests.support.table_searches import only_compiled, only_sets, search, setting_at


def brute_force(cells: FloatArray, values: list[FloatArray], scale: FloatArray) -> float:
    """Every target, known set, known value, pair of secrets and point of the whole grid."""
    worst = 0.0
    for target in range(cells.ndim):
        others = [place for place in range(cells.ndim) if place != target]
        for number in range(cells.ndim):
            for known in itertools.combinations(others, number):
                worst = max(worst, one_adversary(cells, values, scale, target, known))
    return worst


def one_adversary(
    cells: FloatArray,
    values: list[FloatArray],
    scale: FloatArray,
    target: int,
    known: tuple[int, ...],
) -> float:
    weights = np.ones_like(cells) if len(known) == cells.ndim - 1 else cells
    laws: dict[tuple[int, ...], dict[int, list[tuple[float, FloatArray]]]] = {}
    for cell in np.ndindex(cells.shape):
        if weights[cell] > 0:
            answer = sum(part[k] for part, k in zip(values, cell, strict=True)) / scale
            event = laws.setdefault(tuple(cell[place] for place in known), {})
            event.setdefault(cell[target], []).append((float(weights[cell]), answer))
    worst = 0.0
    for event in laws.values():
        places = np.array([place for law in event.values() for _, place in law])
        grid = np.array(list(itertools.product(*map(np.unique, places.T))))
        log_densities = []
        for law in event.values():
            mass, atoms = np.array([m for m, _ in law]), np.array([place for _, place in law])
            distances = np.abs(atoms[:, None] - grid).sum(axis=-1)
            log_mass = np.log(mass / mass.sum())
            log_densities.append(np.logaddexp.reduce(log_mass[:, None] - distances, axis=0))
        stacked = np.array(log_densities)
        worst = max(worst, float((stacked.max(axis=0) - stacked.min(axis=0)).max()))
    return worst


def histogram(seed: int) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """A random table of at most four tuples and four categories, and scales per category."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    categories = int(rng.integers(2, 5 if size < 4 else 4))
    cells = rng.dirichlet(np.full(categories**size, rng.choice([0.3, 1.0, 3.0])))
    if rng.random() < 0.3:
        cells[rng.random(cells.size) < 0.3] = 0.0
    scale = 10 ** rng.uniform(-0.7, 2) * rng.uniform(0.5, 2.0, categories)
    cells = cells.reshape((categories,) * size)
    return cells / cells.sum(), [np.eye(categories)] * size, scale


@pytest.mark.parametrize("by", ["all at once", "sets", "tree"])
@pytest.mark.parametrize("chunk", bounds_checked(range(4), 1, quick=1))
def test_histograms_equal_brute_force(chunk: int, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "sets":
        only_sets(monkeypatch)
    elif by == "tree":
        only_compiled(monkeypatch)
    for seed in range(12 * chunk, 12 * chunk + 12):
        cells, values, scale = histogram(seed)
        found = search(additive_problem(cells, values), scale)
        truth = brute_force(cells, values, scale)
        assert found.upper == pytest.approx(truth, rel=1e-9)
        assert found.lower == pytest.approx(truth, rel=1e-9)
        assert found.upper >= truth * (1 - 1e-15)


@pytest.mark.parametrize("seed", bounds_checked(range(12), 2))
def test_joint_answers_with_real_weights_equal_brute_force(seed: int) -> None:
    """Two sums of the same binary tuples: also the output of the witness is a vector."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
    values = [np.outer([0.0, 1.0], rng.normal(size=2)) for _ in range(3)]
    scale = np.array([0.8, 2.0])
    found = search(additive_problem(cells, values), scale)
    assert found.upper == pytest.approx(brute_force(cells, values, scale), rel=1e-9)
    assert found.witness is not None
    assert isinstance(found.witness.output, tuple)
    assert len(found.witness.output) == 2


@pytest.mark.parametrize("scale", [0.9, 30.0])
def test_a_histogram_of_survey_items_equals_log_space(scale: float) -> None:
    """Four items of five values, set by set: matrix products against careful sums of logarithms."""
    rng = np.random.default_rng(0)
    classes = [[rng.dirichlet(np.ones(5)) for _ in range(4)] for _ in range(3)]
    cells = sum(functools.reduce(np.multiply.outer, laws) for laws in classes) / 3
    problem = additive_problem(cells, [np.eye(5)] * 4)
    weakest = dataclasses.replace(problem.knowledge, most=1)
    setting = setting_at(dataclasses.replace(problem, knowledge=weakest), scale)
    assert setting.fits_linear_space
    products = search_sets(setting, 0.0, Clock(np.inf))
    setting.__dict__["fits_linear_space"] = False
    logarithms = search_sets(setting, 0.0, Clock(np.inf))
    assert products.lower == pytest.approx(logarithms.lower, rel=1e-10)
    assert products.upper == pytest.approx(logarithms.upper, rel=1e-10)
    assert products.lower <= logarithms.upper
    assert logarithms.lower <= products.upper


def test_one_sum_released_twice_can_leak_more_than_twice() -> None:
    """Adding the leakages of single releases is not a bound: the joint one is larger."""
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        cells = rng.dirichlet(np.full(8, 0.3)).reshape(2, 2, 2)
        once = search(additive_problem(cells, [np.array([[0.0], [1.0]])] * 3), 2.0)
        twice = additive_problem(cells, [np.array([[0.0, 0.0], [1.0, 1.0]])] * 3)
        ratios.append(search(twice, np.array([2.0, 2.0])).upper / once.upper)
    assert max(ratios) > 2.01


def bracket_of(problem: Problem, scale: FloatArray, clock: Clock) -> Outcome:
    setting = setting_at(problem, scale)
    found = search_vectors(setting, 0.0, clock)
    return found.or_worse(search_strongest(setting))


@pytest.mark.parametrize("seed", slow_after(1, range(4)))
def test_the_bracket_holds_the_truth(seed: int) -> None:
    cells, values, scale = histogram(seed)
    if cells.size > 64:
        cells, values = cells.sum(axis=-1), values[:-1]
    problem = additive_problem(cells, values)
    exact = search(problem, scale)
    for deadline in (np.inf, time.monotonic() + 0.002):
        found = bracket_of(problem, scale, Clock(deadline))
        assert found.lower <= exact.upper
        assert found.upper >= exact.lower


def two_counts(size: int, seed: int = 0) -> Problem:
    """Two sums of the same binary tuples, with real weights."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(2**size)).reshape((2,) * size)
    return additive_problem(cells, [np.outer([0.0, 1.0], rng.normal(size=2)) for _ in range(size)])


@pytest.mark.parametrize("equal", [False, True])
def test_sets_come_by_falling_bound_each_of_them_once(equal: bool) -> None:
    """Where bounds are equal the order stays: by target, and the largest sets first."""
    problem = two_counts(5)
    if equal:
        problem = additive_problem(problem.model.probabilities, [np.eye(2)] * 5)
    setting = setting_at(problem, 2.0)
    bounds = {
        (target, unknown): min(
            group_bound(setting, (target, *unknown)), joint_outputs.odds_bound(setting, target)
        )
        for target, unknown in setting.prepared.cases()
    }
    found = [
        ((case.target, case.unknown), bound)
        for bound, case in joint_outputs._by_falling_bound(setting)
    ]
    assert found == sorted(bounds.items(), key=lambda item: -item[1])


def test_nobody_lists_millions_of_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing the 16·2^15 sets took longer than any time limit, at every scale anew."""
    setting, listed = setting_at(two_counts(16), 2.0), []

    def counted(*arguments: Any) -> float:
        listed.append(arguments)
        return group_bound(*arguments)

    monkeypatch.setattr(joint_outputs, "group_bound", counted)
    search_vectors(setting, 0.0, Clock(-np.inf))
    assert len(listed) == 16
    assert setting.prepared.log_work == np.inf


@pytest.mark.parametrize("looks", range(1, 40, 3))
def test_a_search_that_is_stopped_covers_the_events_it_left(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is asked for before every event, and what was not attacked keeps its bound."""
    attacked = []

    class Patience(Clock):
        @property
        def is_over(self) -> bool:
            attacked.append(0)
            return len(attacked) > looks

    def counted(*arguments: Any) -> Any:
        attacked[-1] += 1
        return pairs(*arguments)

    pairs = joint_outputs._pairs
    monkeypatch.setattr(joint_outputs, "_pairs", counted)
    problem = two_counts(4)
    exact = search(problem, 0.3)
    found = bracket_of(problem, np.array([0.3, 0.3]), Patience(np.inf))
    assert max(attacked) == 1 or looks == 1
    assert attacked[-1] == 0
    assert found.lower <= exact.upper
    assert found.upper >= exact.lower


def test_a_grid_too_large_gives_a_bracket() -> None:
    rng = np.random.default_rng(0)
    cells = rng.dirichlet(np.ones(256)).reshape((2,) * 8)
    values = [np.outer([0.0, 1.0], rng.normal(size=3)) for _ in range(8)]
    found = search(
        additive_problem(cells, values), np.array([5.0, 5.0, 5.0]), deadline=time.monotonic() + 2
    )
    assert 0 < found.lower <= found.upper < np.inf
    assert found.upper <= sum(np.abs(part[1]).sum() for part in values) / 5 * (1 + 1e-9)
