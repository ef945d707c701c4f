"""Regions around the targets of a tree: one query released again and again, or once."""

import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.composition.joint import Spending, spent
from pdp_calibrate.composition.table_dual import dual_bound
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.network import regions
from pdp_calibrate.families.network.regions import Regions
from tests.oracles.vectors import worst_vector_leakage
from tests.support.marks import bounds_checked, slow_after
from tests.support.networks import contraction_bounds, regular_tree
from tests.support.random_time import cells_of_tree, random_tree

ALL, WEAKEST = pdp.Adversaries.all(), pdp.Adversaries.weakest()


def problem_of(model, query, rate, adversaries=ALL):
    answer = Contributions.joined([lower(query, model)], [1 / rate])
    (problem,) = split(model, answer, adversaries)
    return problem


def birkhoff_of(problem):
    ranges = problem.contributions.tuple_ranges()
    return contraction_bounds(problem.model, ranges, problem.knowledge)


def bound_of(problem, highest=None):
    highest = birkhoff_of(problem) if highest is None else highest
    return float(Regions(problem).bounds(highest, 1.0)[list(problem.knowledge.targets)].max())


def unlimited(problem):
    return np.full(len(problem.names), np.inf)


def random_weights(rng, tree):
    weights = rng.integers(-2, 4, size=len(tree.names)).astype(float)
    weights[0] = 1.0
    return weights


@pytest.mark.parametrize("seed", bounds_checked(range(40), 4, quick=15))
def test_regions_bound_the_joint_leakage_of_repeated_releases(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, most=4)
    weights = random_weights(rng, tree)
    scales = rng.uniform(0.5, 4.0, size=3 if len(tree.names) < 4 else 2)
    rate, everyone = float((1 / scales).sum()), seed % 2 == 0
    adversaries = ALL if everyone else WEAKEST
    query = pdp.Linear(weights=weights.tolist())
    problem = problem_of(tree, query, rate, adversaries)
    bound = bound_of(problem, unlimited(problem))
    truth = worst_vector_leakage(
        cells_of_tree(tree),
        tree.domains,
        lambda x: (float(np.dot(weights, x)),) * len(scales),
        scales.tolist(),
        lambda _i, known: everyone or not known,
    )
    assert truth <= bound * (1 + 1e-12) + 1e-14
    # The same program on the joint table, which knows nothing of regions.
    written = problem_of(tree.to_table(), query, rate, adversaries)
    assert bound == pytest.approx(dual_bound(written, dp_epsilon=0.0), rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("seed", slow_after(15, range(40)))
def test_what_lies_beyond_the_horizon_has_its_price(seed, monkeypatch):
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(
        rng, most=5 if seed % 2 else 7, states=(2, 2 + seed % 2), zeros=seed % 4 == 1
    )
    query = pdp.Linear(weights=random_weights(rng, tree).tolist())
    rate = float(rng.choice([0.05, 0.3, 1.0]))
    adversaries = WEAKEST if seed % 3 == 1 else ALL
    problem = problem_of(tree, query, rate, adversaries)
    program = dual_bound(problem_of(tree.to_table(), query, rate, adversaries), dp_epsilon=0.0)
    highest = birkhoff_of(problem)
    found = [float(highest.max())]
    for steps in (1, 2, 3, 8):
        monkeypatch.setattr(regions, "REGION_REACH", steps)
        found.append(bound_of(problem, highest))
        assert program <= found[-1] * (1 + 1e-9)
        assert found[-1] <= found[0]
    assert found[-1] == pytest.approx(program, rel=1e-7, abs=1e-10)


def test_a_horizon_without_a_price_would_be_unsound(monkeypatch):
    tree = regular_tree(7, 1, 0.9)
    problem = problem_of(tree, pdp.Sum(), 0.3)
    monkeypatch.setattr(regions, "REGION_REACH", 2)
    truth = dual_bound(problem_of(tree.to_table(), pdp.Sum(), 0.3), dp_epsilon=0.0)
    priced = bound_of(problem)
    monkeypatch.setattr(regions, "contracted", lambda _d, _a: 0.0)
    assert bound_of(problem) < truth <= priced


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_beyond_a_certain_copy_lies_what_the_target_says(steps, monkeypatch):
    """Where a value at the horizon is possible under one secret alone, no price is enough."""
    copied, kept = [[0.0, 1.0], [1.0, 0.0]], [[0.7, 0.3], [0.4, 0.6]]
    tree = pdp.MarkovTree(
        domains=[[0, 3]] * 5,
        parents=[None, 0, 1, 2, 3],
        tables=[[0.5, 0.5], copied, copied, kept, kept],
    )
    monkeypatch.setattr(regions, "REGION_REACH", steps)
    query = pdp.Linear(weights=[1.0, -1.0, 1.0, 1.0, 0.5])
    problem = problem_of(tree, query, 0.3)
    program = dual_bound(problem_of(tree.to_table(), query, 0.3), dp_epsilon=0.0)
    assert program <= bound_of(problem) * (1 + 1e-9)
    assert bound_of(problem) <= birkhoff_of(problem).max()


@pytest.mark.parametrize("seed", range(15))
def test_named_adversaries_see_one_region(seed):
    rng = np.random.default_rng(200 + seed)
    tree = random_tree(rng, most=5)
    query = pdp.Linear(weights=random_weights(rng, tree).tolist())
    target, *others = rng.permutation(len(tree.names)).tolist()
    known = others[: int(rng.integers(0, len(others), endpoint=True))]
    names = [tree.names[place] for place in known]
    adversaries = pdp.Adversaries.exactly(tree.names[target], known=names)
    problem = problem_of(tree, query, 0.7, adversaries)
    program = dual_bound(problem_of(tree.to_table(), query, 0.7, adversaries), dp_epsilon=0.0)
    assert bound_of(problem, unlimited(problem)) == pytest.approx(program, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_contributions_that_share_no_step_are_rounded_upwards(seed):
    rng = np.random.default_rng(300 + seed)
    tree = random_tree(rng, most=5, states=(2, 2))
    query = pdp.Linear(weights=rng.uniform(0.3, 2.0, size=len(tree.names)).tolist())
    problem = problem_of(tree, query, 0.4)
    program = dual_bound(problem_of(tree.to_table(), query, 0.4), dp_epsilon=0.0)
    bound = bound_of(problem, unlimited(problem))
    assert program <= bound * (1 + 1e-9) <= program * 1.05


@pytest.mark.parametrize("stay", [0.2, 0.8])
def test_a_chain_is_a_tree(stay):
    kernel = [[stay, 1 - stay], [0.4, 0.6]]
    chain = pdp.MarkovChain(transition=kernel, length=30)
    tree = pdp.MarkovTree(
        domains=[[0, 1]] * 30,
        parents=[None, *range(29)],
        tables=[chain.start, *[kernel] * 29],
        names=chain.names,
    )
    windows = pdp.leakage(chain, pdp.Sum(), scale=1 / 0.26).value
    assert bound_of(problem_of(tree, pdp.Sum(), 0.26)) == pytest.approx(windows, rel=1e-4)


@pytest.mark.parametrize("stay", [0.3, 0.7])
def test_equal_branches_count_in_any_order(stay):
    """The same star, and one whose branches differ by a hair and are told apart."""
    star = regular_tree(8, 7, stay)
    hairs = [1e-13 * place for place in range(7)]
    other = pdp.MarkovTree(
        domains=star.domains,
        parents=star.parents,
        tables=[
            [0.5, 0.5],
            *([[stay - hair, 1 - stay + hair], [1 - stay, stay]] for hair in hairs),
        ],
    )
    both = [bound_of(problem_of(tree, pdp.Sum(), 0.3)) for tree in (star, other)]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
    written = dual_bound(problem_of(star.to_table(), pdp.Sum(), 0.3), dp_epsilon=0.0)
    assert both[0] == pytest.approx(written, rel=1e-7)
    sizes = [len(Regions(problem_of(tree, pdp.Sum(), 0.3))._interned) for tree in (star, other)]
    assert sizes[0] < sizes[1]


@pytest.mark.compiled
@pytest.mark.parametrize("children", slow_after(1, [2, 1]))
def test_repeats_in_a_ledger_are_bounded_by_regions(children):
    """Values that alternate cancel in the sum, which only regions see."""
    tree = regular_tree(60, children, 0.3)
    data = dict.fromkeys(tree.names, 0)
    ledger = pdp.Ledger(tree, epsilon=4.0)
    for _ in range(2):
        ledger.release(pdp.Sum(), data, epsilon=0.2)
    assert ledger.history[-1].method == "exact"
    rate = sum(1 / entry.scales[0] for entry in ledger.history)
    problem = problem_of(tree, pdp.Sum(), rate)
    assert rate <= ledger.spent <= bound_of(problem) * (1 + 1e-9)
    assert ledger.spent < 0.75 * birkhoff_of(problem).max()
    ledger.release(pdp.Sum(over=["x7"]), data, epsilon=0.01)
    assert ledger.history[-1].method == "birkhoff"


@pytest.mark.slow
@pytest.mark.compiled
def test_ten_releases_cost_what_one_with_all_of_the_budget_costs():
    tree = regular_tree(300, 2, 0.55)
    part, rate = lower(pdp.Sum(), tree), 0.26
    bound = spent(tree, Spending(parts=(part,) * 10, scales=(10 / rate,) * 10), ALL)
    once = pdp.leakage(tree, pdp.Sum(), scale=1 / rate)
    assert once.lower <= bound.value <= 1.005 * once.lower
    together = pdp.calibrate(tree, [pdp.Sum()] * 10, epsilon=1.0)
    alone = pdp.calibrate(tree, pdp.Sum(), epsilon=1.0)
    assert together.scales == pytest.approx([10 * alone.scale] * 10, rel=1e-3)


@pytest.mark.compiled
def test_large_trees_need_less_noise_than_contraction_alone_says():
    tree = regular_tree(400, 2, 0.35)
    cal = pdp.calibrate(tree, pdp.Sum(), epsilon=1.0)
    highest = birkhoff_of(problem_of(tree, pdp.Sum(), 1 / cal.scale))
    assert cal.leakage.value <= 1.0 < highest.max() / 2
    assert cal.leakage.exact  # plain DP is enough where values alternate
    assert cal.scale == pytest.approx(1.0, rel=1e-6)


def test_beyond_reach_the_bounds_given_stay():
    tree = regular_tree(40, 3, 0.6)
    far_apart = problem_of(tree, pdp.Sum(), 1e3)
    highest = birkhoff_of(far_apart)
    assert np.array_equal(Regions(far_apart).bounds(highest, 1.0), highest)
    near = problem_of(tree, pdp.Sum(), 0.1)
    highest = birkhoff_of(near)
    assert np.array_equal(Regions(near).bounds(highest, 1.0, deadline=0.0), highest)
    assert np.array_equal(Regions(near).bounds(highest, 1.0, enough=9.0), highest)
    rare = pdp.MarkovTree(  # the law of the last underflows
        domains=[[0, 1]] * 4,
        parents=[None, 0, 1, 2],
        tables=[[1 - 1e-150, 1e-150], *[[[1.0, 0.0], [1 - 1e-150, 1e-150]]] * 3],
    )
    problem = problem_of(rare, pdp.Sum(), 0.1)
    assert np.array_equal(Regions(problem).bounds(birkhoff_of(problem), 1.0), birkhoff_of(problem))
    table = regular_tree(2, 1, 0.6).to_table()
    with pytest.raises(TypeError, match="only Markov trees"):
        Regions(problem_of(table, pdp.Sum(), 1.0))


def test_looks_are_all_that_an_adversary_can_see():
    """Enumerate known sets and values of a small tree by hand."""
    tree = regular_tree(4, 2, 0.7)
    target = 3  # hangs on 1, which hangs on 0, as does 2
    seen = Regions(problem_of(tree, pdp.Sum(), 1.0))
    branches = seen.around[target].branches
    laws = regions.combined(seen.points[target], branches).laws
    cells = cells_of_tree(tree)
    expected = set()
    for values in itertools.product([None, 0, 1], repeat=3):  # of 0, 1 and 2
        law = np.zeros((2, 5))
        for cell in np.ndindex(cells.shape):
            if all(v is None or cell[place] == v for place, v in enumerate(values)):
                total = cell[3] + sum(cell[p] for p, v in enumerate(values) if v is None)
                law[cell[3], total] += cells[cell]
        law /= law.sum(axis=1, keepdims=True)
        cut = values[1] is not None
        blurred = cut and None in (values[0], values[2])
        blurred |= not cut and values[0] is not None and values[2] is None
        if not blurred:  # else unknown tuples in another piece blur the answer
            expected.add(tuple(law.round(12).ravel()))
    found = {tuple((law / law.sum(axis=1, keepdims=True)).round(12).ravel()) for law in laws}
    assert found == expected
