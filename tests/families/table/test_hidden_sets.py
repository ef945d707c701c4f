"""The search over hidden sets of binary tuples: against other engines, and its bound by pairs."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.problem import Problem, split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.table import hidden_sets as hiding
from pdp_calibrate.families.table.hidden_set_kernels import first_intervals, hide_in_intervals
from pdp_calibrate.families.table.setting import PreparedTable
from tests.oracles import brute_force as oracle, plain_engine
from tests.support.marks import bounds_checked, slow_after
from tests.support.table_searches import only_compiled, search

FAR = 10_000  # more tuples than any table has: turns the search over hidden sets off


def coupled(size: int, strength: float, seed: int) -> pdp.JointTable:
    """Binary tuples with random pairwise couplings of both signs, and fields."""
    rng = np.random.default_rng(seed)
    spins = 2.0 * np.indices((2,) * size).reshape(size, -1) - 1
    couplings = np.triu(rng.uniform(-strength, strength, (size, size)), 1)
    energy = rng.uniform(-0.3, 0.3, size) @ spins + ((couplings @ spins) * spins).sum(axis=0)
    cells = np.exp(energy - energy.max()).reshape((2,) * size)
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * size)


def random_problem(seed: int) -> tuple[Problem, pdp.JointTable, pdp.Linear, float]:
    """Two to six binary tuples, whole weights of both signs, zeros, many kinds of adversaries."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    cells = rng.dirichlet(np.full(2**size, rng.choice([0.3, 1.0, 5.0]))).reshape((2,) * size)
    if seed % 3 == 0:
        cells[rng.random(cells.shape) < 0.25] = 0.0
    table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * size)
    weights = [1.0] * size if seed % 2 else (0.7 * rng.integers(-2, 4, size)).tolist()
    weights[0] = weights[0] or 0.7
    query = pdp.Linear(weights=weights)
    fewest = int(rng.integers(0, size))
    kinds = [Adversaries.all(), Adversaries.knowing(at_most=fewest)]
    kinds += [Adversaries.knowing(at_least=fewest)]
    (problem,) = split(table, lower(query, table), kinds[int(rng.integers(3))])
    spread = sum(map(abs, weights))
    return problem, table, query, float(spread / rng.uniform(1.1, 12.0))


def always_hidden(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Search small tables by hidden sets too; the list returned grows with every such search."""
    monkeypatch.setattr(hiding, "HIDDEN_SET_TUPLES", 2)
    monkeypatch.setattr(hiding, "WHOLE_HIDDEN_TUPLES", 2)
    monkeypatch.setattr(PreparedTable, "line_work", math.inf)
    only_compiled(monkeypatch)
    used: list[int] = []
    search_hidden = hiding.search_hidden
    monkeypatch.setattr(
        "pdp_calibrate.families.table.hidden_sets.search_hidden",
        lambda *arguments: used.append(1) or search_hidden(*arguments),
    )
    return used


@pytest.mark.parametrize("seed", bounds_checked(range(60), 12, quick=20))
def test_equals_the_plain_engine(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used = always_hidden(monkeypatch)
    problem, table, query, scale = random_problem(seed)
    found, plain = search(problem, scale), plain_engine.search(problem, scale)
    assert found.upper == pytest.approx(plain.upper, rel=1e-10, abs=1e-12)
    assert found.lower <= plain.upper
    assert found.upper >= plain.lower
    assert used
    if found.witness is not None and found.witness.known.keys() != set(table.names[1:]):
        attained = oracle.log_density_ratio(
            table.probabilities,
            table.domains,
            lambda values: math.fsum(w * v for w, v in zip(query.weights, values, strict=True)),
            scale,
            oracle.placed(found.witness, table.names),
        )
        assert attained == pytest.approx(found.lower, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(
    "case", slow_after(2, [(0.03, 1.0), (0.25, 0.5), (0.1, 1.0), (0.1, 4.0), (0.5, 1.0)])
)
@pytest.mark.compiled
def test_equals_the_tree_where_bounds_spare_comparisons(
    case: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    strength, scale = case
    table = coupled(12, strength, seed=int(100 * strength))
    (problem,) = split(table, lower(pdp.Sum(), table), Adversaries.all())
    monkeypatch.setattr(hiding, "HIDDEN_SET_TUPLES", FAR)
    tree = search(problem, scale)
    monkeypatch.setattr(hiding, "HIDDEN_SET_TUPLES", 9)
    monkeypatch.setattr(hiding, "WHOLE_HIDDEN_TUPLES", 9)
    hidden = search(problem, scale)
    assert hidden.upper == pytest.approx(tree.upper, rel=1e-10)
    assert hidden.upper - hidden.lower <= 1e-10 * hidden.upper
    above = search(problem, scale, incumbent=tree.upper * 1.01)
    assert above.upper <= tree.upper * 1.01
    cut = search(problem, scale, incumbent=tree.upper * 0.99)
    assert cut.upper == pytest.approx(tree.upper, rel=1e-10)


@pytest.mark.compiled
def test_hidden_sets_and_all_events_at_once_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    table = coupled(9, 0.3, seed=5)
    (problem,) = split(table, lower(pdp.Sum(), table), Adversaries.all())
    events = search(problem, 2.0)
    used = always_hidden(monkeypatch)
    hidden = search(problem, 2.0)
    assert used
    assert hidden.lower <= events.upper <= hidden.upper * (1 + 1e-11)
    assert events.lower <= hidden.upper <= events.upper * (1 + 1e-11)


@pytest.mark.parametrize(
    ("size", "strength", "at_most_hidden"), [(7, 0.3, 6), (10, 0.02, 1), (10, 0.3, 1), (10, 0.1, 2)]
)
def test_equals_brute_force_where_few_are_hidden(
    size: int, strength: float, at_most_hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enough tuples for long rows and for bounds, one target, few enough sets for the oracle."""
    used = always_hidden(monkeypatch)
    table = coupled(size, strength, seed=size)
    adversaries = Adversaries.knowing(at_least=size - 1 - at_most_hidden)
    (problem,) = split(table, lower(pdp.Sum(), table), adversaries)
    alone = dataclasses.replace(problem.knowledge, targets=(size - 1,), most=size - 2)
    found = search(dataclasses.replace(problem, knowledge=alone), 1.2)
    assert used
    worst, _ = oracle.worst_leakage(
        table.probabilities, table.domains, sum, 1.2,
        lambda i, known: i == size - 1 and size - 1 - at_most_hidden <= len(known) < size - 1,
    )  # fmt: skip
    assert found.lower <= worst <= found.upper
    assert found.upper == pytest.approx(worst, rel=1e-10)


@pytest.mark.parametrize(
    ("seed", "width"), [(1, 39.0), (9, 39.0), (15, 39.0), (2, 25.0), (12, 25.0), (16, 25.0)]
)
def test_wide_ranges_equal_the_plain_engine(
    seed: int, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as the answers may be apart, in scales, for single precision."""
    used = always_hidden(monkeypatch)
    problem, _, query, _ = random_problem(seed)
    scale = sum(map(abs, query.weights)) / width
    found, plain = search(problem, scale), plain_engine.search(problem, scale)
    assert found.upper == pytest.approx(plain.upper, rel=1e-10)
    assert used


@pytest.mark.parametrize("incumbent", [30.0, 1e6])
def test_others_who_leak_more_do_not_matter(
    incumbent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = always_hidden(monkeypatch)
    table = coupled(5, 0.2, 1)
    (problem,) = split(table, lower(pdp.Sum(), table), Adversaries.all())
    found = search(problem, 1.0, incumbent=incumbent)
    assert used
    assert found.lower <= plain_engine.search(problem, 1.0).upper <= found.upper <= 5 + 1e-9


@pytest.mark.parametrize("seed", slow_after(2, range(4)))
@pytest.mark.compiled
def test_stopped_early_the_bracket_holds_the_truth(seed: int) -> None:
    table = coupled(13, 0.2, seed)
    exact = pdp.leakage(table, pdp.Sum(), scale=1.5)
    assert exact.exact
    for limit in (0.0, 0.001, 0.02, 0.05):
        leak = pdp.leakage(table, pdp.Sum(), scale=1.5, time_limit=limit)
        assert leak.lower <= exact.value
        assert leak.value >= exact.lower


def test_stopped_early_tuples_that_all_but_surely_agree_stay_bounded() -> None:
    cells = np.full((2,) * 13, 1e-200)
    cells[(0,) * 13] = cells[(1,) * 13] = 0.5
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 13)
    ignorant = (0, frozenset[int](), {}, (0, 1), 0.0)
    nobody_known = oracle.log_density_ratio(cells, table.domains, sum, 2.0, ignorant)
    assert nobody_known == pytest.approx(13 / 2.0)
    leak = pdp.leakage(table, pdp.Sum(), scale=2.0, time_limit=0.0)
    assert leak.value >= nobody_known


@pytest.mark.compiled
def test_whoever_leaks_enough_ends_the_search() -> None:
    table = coupled(13, 0.3, 1)
    (problem,) = split(table, lower(pdp.Sum(), table), Adversaries.all())
    exact = search(problem, 1.0)
    some = search(problem, 1.0, incumbent=1.0, enough=1.05)
    assert 1.05 < some.lower <= exact.upper <= some.upper
    everyone = search(problem, 1.0, incumbent=1.0, enough=exact.upper * 1.1)
    assert everyone.upper == pytest.approx(exact.upper, rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.compiled
def test_calibration_of_a_larger_table_is_tight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(2**13)).reshape((2,) * 13)
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 13)
    cal = pdp.calibrate(table, pdp.Sum(), epsilon=0.8)
    assert pdp.leakage(table, pdp.Sum(), scale=cal.scale).value <= 0.8
    assert pdp.leakage(table, pdp.Sum(), scale=cal.scale * (1 - 1e-6)).lower > 0.8


def bounds(cells: FloatArray, weights: list[int], step: float, order: list[int]) -> FloatArray:
    """The bound on the log-ratio of every target, after hiding the tuples in this order."""
    number = len(weights)
    arrays = [
        np.empty((number + 1, 2, number)),
        np.empty((number + 1, 2, number, number)),
        np.empty((number + 1, 2, number, sum(weights) + 1)),
    ]
    flat = cells.transpose(range(number)[::-1]).ravel()  # tuple j is bit j
    whole = np.array(weights)
    assert first_intervals(flat, whole, step, *arrays)
    most = np.full(number, np.inf)
    hidden = before = 0
    for level, place in enumerate(order):
        hide_in_intervals(level, hidden, place, before, whole, step, *arrays, most)
        hidden |= 1 << place
        before += weights[place]
    return np.log(most)


def leaks(cells: FloatArray, weights: list[int], step: float, target: int, unknown: set[int]):
    """The log-ratio for every known value, by brute force."""
    number = len(weights)
    known = [place for place in range(number) if place != target and place not in unknown]
    for values in itertools.product(range(2), repeat=len(known)):
        laws = []
        for secret in range(2):
            fixed = dict(zip(known, values, strict=True)) | {target: secret}
            law = np.zeros(sum(weights) + 1)
            for rest in itertools.product(range(2), repeat=len(unknown)):
                cell = fixed | dict(zip(sorted(unknown), rest, strict=True))
                answer = sum(weights[place] * value for place, value in cell.items())
                law[answer] += cells[tuple(cell[place] for place in range(number))]
            laws.append(law / law.sum())
        places = np.arange(len(laws[0]))
        kernel = np.exp(-step * np.abs(places[:, None] - places))
        yield float(np.abs(np.log(kernel @ laws[1]) - np.log(kernel @ laws[0])).max())


@pytest.mark.parametrize("seed", range(60))
def test_nobody_exceeds_the_bound_by_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 6))
    cells = rng.dirichlet(np.full(2**size, rng.choice([0.5, 2.0, 20.0]))).reshape((2,) * size)
    if seed % 2:
        cells = coupled(size, float(rng.choice([0.05, 0.3, 1.0])), seed).probabilities
    weights = rng.integers(0, 3, size).tolist()
    step = float(rng.uniform(0.05, 2.0))
    order = rng.permutation(size)[: int(rng.integers(1, size))].tolist()
    bound = bounds(cells, weights, step, order)
    for target in set(range(size)) - set(order):
        worst = max(leaks(cells, weights, step, target, set(order)))
        assert worst <= bound[target] * (1 + 1e-12)
        group = step * (weights[target] + sum(weights[place] for place in order))
        assert bound[target] <= group * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_by_pairs_is_close_for_weak_dependence(seed: int) -> None:
    """One hidden tuple whose odds the others can choose freely: nearly attained."""
    cells = coupled(6, 0.05, seed).probabilities
    for order, slack in ([0], 0.02), ([0, 1, 2], 0.1):
        bound = bounds(cells, [1] * 6, 1.0, order)
        for target in (3, 4, 5):
            worst = max(leaks(cells, [1] * 6, 1.0, target, set(order)))
            assert worst <= bound[target] <= worst + slack < len(order) + 1


def test_the_bound_by_pairs_declines_tables_with_zeros() -> None:
    cells = np.array([0.5, 0.0, 0.2, 0.3])
    shapes = (3, 2, 2), (3, 2, 2, 2), (3, 2, 2, 3)
    assert not first_intervals(cells, np.array([1, 1]), 1.0, *(np.empty(s) for s in shapes))
