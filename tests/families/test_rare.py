"""Rare is not impossible: probabilities, or products of them, that are too small for a float."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.auditing.worlds import drawn_databases
from pdp_calibrate.calibration.baselines import quantile_distance
from pdp_calibrate.core import lipschitz
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.model import Model
from pdp_calibrate.families.exchangeable.laws import _laws_of_sums
from pdp_calibrate.families.exchangeable.model import compositions
from tests.oracles import rare as rare_oracle

E = 1e-200
BITS = (0, 1)
ALIKE = [[0.99, 0.01], [0.01, 0.99]]
TWINS_AND_ANOTHER = np.multiply.outer([[0.5, 0.0], [0.0, 0.5]], [0.4, 0.6])
TREES = {
    # x2 = 1 has the probability 1e-400, so a marginal is 0 in floats.
    "marginal": [[1 - E, E], [[1, 0], [1 - E, E]], ALIKE],
    # Every tuple has probabilities of at least 1e-200, but x1 = 1 beside x2 = 1 has not: who knows
    # x1 = 1 takes both values of x2 for possible, and nobody else does.
    "edge": [[1 - E, E], [[0, 1], [1 - E, E]], ALIKE],
}


def line(tables: Sequence[Any]) -> pdp.MarkovTree:
    """A tree of yes/no tuples without branches."""
    parents = [None, *range(len(tables) - 1)]
    return pdp.MarkovTree(domains=[BITS] * len(tables), parents=parents, tables=tables)


def rare_chain(length: int) -> pdp.MarkovChain:
    """A chain whose third state has the stationary probability 1e-338."""
    r = 1e-170
    rows = [[1 - r, r, 0], [1 - r, 0, r], [0.01, 0, 0.99]]
    return pdp.MarkovChain(transition=rows, states=[0, 1e-6, 1], length=length)


def is_sound(found: pdp.Leakage, truth: float) -> bool:
    return found.lower <= truth * (1 + 1e-12) + 1e-13 and found.value >= truth * (1 - 1e-12) - 1e-13


@pytest.mark.parametrize("name", TREES)
def test_a_tree_counts_values_whose_probability_underflows(name: str) -> None:
    tree = line(TREES[name])
    joint = rare_oracle.tree_joint([2] * 3, [None, 0, 1], TREES[name])
    truth = rare_oracle.worst_leakage(joint, [BITS] * 3, 1.0)
    assert truth > 1.97
    assert is_sound(pdp.leakage(tree, pdp.Sum(), scale=1.0), truth)
    scale = pdp.calibrate(tree, pdp.Sum(), epsilon=1.0).scale
    assert rare_oracle.worst_leakage(joint, [BITS] * 3, scale) <= 1.0
    repeated = pdp.leakage(tree, [pdp.Sum(), pdp.Sum()], scale=2.0)  # Birkhoff and regions
    assert repeated.value >= truth


def test_what_is_possible_passes_seventy_rare_steps() -> None:
    step = [[1, 0], [1 - 1e-5, 1e-5]]
    tree = line([[1 - 1e-5, 1e-5], *[step] * 69, ALIKE])
    assert tree.marginals[69][1] == 0  # 1e-350
    assert tree.supports[69].all()
    alone = rare_oracle.tree_joint([2, 2], [None, 0], [[0.5, 0.5], ALIKE])
    truth = rare_oracle.worst_leakage(alone, [BITS] * 2, 1.0, lambda target, _: target == 0)
    query, attack = pdp.Sum(over=["x70", "x71"]), pdp.Adversaries.exactly("x70")
    assert pdp.leakage(tree, query, scale=1.0, adversaries=attack).value >= truth > 1.97


@pytest.mark.parametrize("length", [2, 4])
def test_a_stationary_start_may_be_rarer_than_any_float(length: int) -> None:
    chain = rare_chain(length)
    assert chain.start[2] == 0
    exact = rare_oracle.stationary(chain.transition.tolist())
    assert chain.log_start[2] == pytest.approx(
        math.log(exact[2].numerator) - math.log(exact[2].denominator), rel=1e-14
    )
    joint = rare_oracle.chain_joint(chain.transition.tolist(), length)
    values = [[0.0, 1e-6, 1.0]] * length
    truth = rare_oracle.worst_leakage(joint, values, 1.0)
    assert truth > 1.9
    assert is_sound(pdp.leakage(chain, pdp.Sum(), scale=1.0), truth)
    scale = pdp.calibrate(chain, pdp.Sum(), epsilon=1.0).scale
    assert rare_oracle.worst_leakage(joint, values, scale) <= 1.0


def test_a_stationary_law_is_accurate_where_elimination_underflows() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = 10.0 ** -rng.uniform(0, 150, size=(4, 4)) * (rng.random((4, 4)) < 0.8)
        rows += np.roll(np.eye(4), 1, axis=1) * 1e-160  # irreducible
        rows[:, 0] += 1 - rows.sum(axis=1)
        rows = np.abs(rows) / np.abs(rows).sum(axis=1, keepdims=True)
        chain = pdp.MarkovChain(transition=rows, states=range(4), length=2)
        for log, exact in zip(chain.log_start, rare_oracle.stationary(rows.tolist()), strict=True):
            truth = math.log(exact.numerator) - math.log(exact.denominator)
            assert log == pytest.approx(truth, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 2e-3, 1e-2, 1.0])
def test_a_product_that_underflows_is_no_sign_of_independence(scale: float) -> None:
    cells = [[1 - 2 * E, E], [E, 0]]
    joint = {
        cell: rare_oracle.exact([*cells[0], *cells[1]])[2 * cell[0] + cell[1]]
        for cell in itertools.product(BITS, repeat=2)
    }
    table = pdp.JointTable(probabilities=cells, domains=[BITS] * 2)
    query = pdp.Linear(weights={"x1": 1, "x2": -1})
    truth = rare_oracle.worst_leakage(joint, [(0, 1), (0, -1)], scale)
    found = pdp.leakage(table, query, scale=scale)
    assert found.exact
    assert is_sound(found, truth)
    assert found.value == pytest.approx(truth, rel=1e-9)


def _law(rng: np.random.Generator, size: int) -> list[float]:
    """A law with zeros and with probabilities from 1e-305 to 1e-100."""
    kinds = rng.choice(3, size=size, p=[0.5, 0.3, 0.2])
    kinds[rng.integers(size)] = 0
    law = np.where(kinds == 1, 10.0 ** -rng.choice([100, 150, 200, 290, 305], size=size), 0.0)
    usual = np.where(kinds == 0, rng.random(size) + 0.01, 0.0)
    return [float(p) for p in law + usual / usual.sum()]


def _any_chain(rng: np.random.Generator) -> tuple[Model, rare_oracle.Joint, list[Any]]:
    size, length = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    states = [[0, 1, 3], [0, 1e-6, 1]][rng.integers(2)][:size]
    rows, start = [_law(rng, size) for _ in range(size)], _law(rng, size)
    chain = pdp.MarkovChain(transition=rows, length=length, states=states, initial=start)
    return chain, rare_oracle.chain_joint(rows, length, start), [states] * length


def _any_stationary(rng: np.random.Generator) -> tuple[Model, rare_oracle.Joint, list[Any]]:
    length = int(rng.integers(2, 5))
    while True:
        rows = [_law(rng, 3) for _ in range(3)]
        try:
            chain = pdp.MarkovChain(transition=rows, length=length, states=range(3))
        except pdp.ModelError:
            continue  # not irreducible
        return chain, rare_oracle.chain_joint(rows, length), [range(3)] * length


def _any_tree(rng: np.random.Generator) -> tuple[Model, rare_oracle.Joint, list[Any]]:
    number = int(rng.integers(2, 5))
    sizes = [int(size) for size in rng.integers(2, 4, size=number)]
    parents = [None, *(int(rng.integers(place)) for place in range(1, number))]
    tables: list[Any] = [
        _law(rng, size) if parent is None else [_law(rng, size) for _ in range(sizes[parent])]
        for size, parent in zip(sizes, parents, strict=True)
    ]
    domains = [range(size) for size in sizes]
    tree = pdp.MarkovTree(domains=domains, parents=parents, tables=tables)
    return tree, rare_oracle.tree_joint(sizes, parents, tables), domains


def _any_group(rng: np.random.Generator) -> tuple[Model, rare_oracle.Joint, list[Any]]:
    size = int(rng.integers(2, 6))
    law = _law(rng, size + 1)
    group = pdp.BinaryGroup(count_probabilities=law)
    return group, rare_oracle.group_joint(law), [BITS] * size


def _any_categories(rng: np.random.Generator) -> tuple[Model, rare_oracle.Joint, list[Any]]:
    size, values = int(rng.integers(2, 4)), [0, 1, 5]
    counts = list(compositions(size, 3))
    law = dict(zip(counts, _law(rng, len(counts)), strict=True))
    group = pdp.CategoryGroup(size=size, categories=values, count_probabilities=law)
    return group, rare_oracle.category_joint(size, 3, law), [values] * size


def _any_blocks(rng: np.random.Generator) -> tuple[Model, rare_oracle.Joint, list[Any]]:
    laws = [_law(rng, 4), _law(rng, 4)]
    blocks = pdp.Blocks(
        models=[
            pdp.JointTable(probabilities=np.reshape(law, (2, 2)), domains=[BITS] * 2)
            for law in laws
        ]
    )
    one, other = map(rare_oracle.exact, laws)
    joint = {
        cell: one[2 * cell[0] + cell[1]] * other[2 * cell[2] + cell[3]]
        for cell in itertools.product(BITS, repeat=4)
    }
    return blocks, joint, [BITS] * 4


ADVERSARIES: list[tuple[pdp.Adversaries, rare_oracle.Admits]] = [
    (pdp.Adversaries.all(), lambda _target, _known: True),
    (pdp.Adversaries.weakest(), lambda _target, known: not known),
    (pdp.Adversaries.knowing(at_most=1), lambda _target, known: len(known) <= 1),
]


@pytest.mark.parametrize(
    "drawn", [_any_chain, _any_stationary, _any_tree, _any_group, _any_categories, _any_blocks]
)
@pytest.mark.parametrize("seed", range(8))
def test_no_family_is_below_the_truth_where_probabilities_are_rare(
    drawn: Callable[[np.random.Generator], tuple[Model, rare_oracle.Joint, list[Any]]],
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    model, joint, domains = drawn(rng)
    scale = float(rng.choice([1e-3, 1e-2, 0.1, 1.0]))
    adversaries, admits = ADVERSARIES[seed % len(ADVERSARIES)]
    weights = [float(weight) for weight in rng.choice([-1, 1, 2], size=len(domains))]
    values = [[w * value for value in domain] for w, domain in zip(weights, domains, strict=True)]
    query = pdp.Linear(weights=dict(zip(model.names, weights, strict=True)))
    truth = rare_oracle.worst_leakage(joint, values, scale, admits)
    found = pdp.leakage(model, query, scale=scale, adversaries=adversaries)
    assert is_sound(found, truth)
    # A Laplace answer is one of the mechanisms that a budget stands for.
    budget = max(max(value) - min(value) for value in values) / scale
    bound = pdp.black_box_leakage(model, epsilon=budget, adversaries=adversaries, time_limit=2)
    assert bound.value >= truth * (1 - 1e-12) - 1e-13


def test_tables_of_rare_models_are_refused() -> None:
    with pytest.raises(pdp.ModelError, match=r"below 2\.2e-308"):
        rare_chain(1).to_table()
    with pytest.raises(pdp.ModelError, match=r"below 2\.2e-308"):
        line(TREES["marginal"]).to_table()
    with pytest.raises(pdp.ModelError, match=r"below 2\.2e-308"):
        pdp.BinaryGroup(count_probabilities=[0.5, 0.5 - 3e-308, 3e-308, 0, 0]).to_table()
    with pytest.raises(pdp.ModelError, match=r"below 2\.2e-308"):
        pdp.JointTable.from_conditionals(
            {"a": {0: 1 - E, 1: E}}, {"b": (["a"], {0: {0: 1.0}, 1: {0: 1 - E, 1: E}})}
        )


def test_tables_of_large_groups_are_refused_for_their_size() -> None:
    with pytest.raises(pdp.ModelError, match="at most"):
        pdp.BinaryGroup(count_probabilities=[1.0, *[0.0] * 1100]).to_table()
    law = [1.0, *[0.0] * 2000]
    with pytest.raises(pdp.ModelError, match="at most"):
        pdp.CategoryGroup(size=2000, categories=BITS, count_probabilities=law).to_table()


def test_other_bounds_hold_where_there_is_no_table() -> None:
    tree = line(TREES["marginal"])
    joint = rare_oracle.tree_joint([2] * 3, [None, 0, 1], TREES["marginal"])
    truth = rare_oracle.worst_leakage(joint, [BITS] * 3, 1.0)
    assert 3 > pdp.black_box_leakage(tree, epsilon=1.0).value >= truth
    budget = pdp.dp_budget(tree, epsilon=1.0)
    assert budget > 1 / 3
    assert rare_oracle.worst_leakage(joint, [BITS] * 3, 1 / budget) <= 1.0
    assert pdp.Ledger(tree, epsilon=10.0).charge(1.0) >= truth


def test_the_dual_program_bears_rare_cells() -> None:
    rng = np.random.default_rng(0)
    for epsilon in (5.0, 50.0):
        cells = rng.random((2, 2, 2))
        cells /= cells.sum()
        cells[0, 0, 1] = cells[1, 1, 0] = cells[1, 0, 0] = 1e-306
        cells[0, 0, 0] += 1 - cells.sum()
        table = pdp.JointTable(probabilities=cells, domains=[BITS] * 3)
        truth = pdp.leakage(table, pdp.Sum(), scale=1 / epsilon).lower
        found = pdp.black_box_leakage(table, epsilon=epsilon).value
        assert truth <= found <= 3 * epsilon * (1 + 1e-12)


def test_a_plan_of_transport_counts_rows_that_the_solver_nearly_lost() -> None:
    supply, demand = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    costs = np.array([[0.0, 5.0], [5.0, 0.0]])
    likelihood = np.array([math.exp(-5.0), 1.0])
    attained = math.log((supply @ likelihood) / (demand @ likelihood))
    assert attained > 1.5
    plan = np.array([[0.5, 0.0], [1e-320, 0.0]])
    assert lipschitz._certified(plan, supply, demand, costs) >= attained


def test_shares_of_a_category_group_stay_apart_from_zero() -> None:
    logs = np.array([[[0.0, -800.0, -801.0, -math.inf], [-math.inf] * 4]])
    laws, log_laws = _laws_of_sums(logs, np.array([0, 1, 1, 2]), 3)
    assert laws[0, 0].tolist() == [1.0, 0.0, 0.0]
    assert log_laws is not None
    expected = [0.0, -800 + math.log1p(math.exp(-1)), -math.inf]
    assert log_laws[0, 0].tolist() == pytest.approx(expected)
    assert _laws_of_sums(logs[..., :1], np.array([0]), 1)[1] is None


def test_wasserstein_sees_rare_masses() -> None:
    atoms = np.array([0.0, 1.0, 2.0])
    for law, other in [
        ([1, 0, 0], [1, E, 0]),
        ([0.5, E, 0.5], [0.5, 0, 0.5]),  # in the middle
        ([1, E, 0], [1, 1e-100, 0]),  # equal supports
        ([0, 1, E], [0, 1, 1e-100]),  # at the upper end
    ]:
        assert quantile_distance(atoms, np.array(law), atoms, np.array(other)) == 1.0
    table = pdp.JointTable(probabilities=[[0.5, 0], [0.5 - E, E]], domains=[BITS] * 2)
    query, weakest = pdp.Linear(weights={"x2": 1}), pdp.Adversaries.exactly("x1")
    proof = pdp.calibrate(table, query, epsilon=0.5, adversaries=weakest)
    assert proof.baselines["wasserstein"] == 2.0


def test_audits_draw_courses_that_are_rare_given_both_ends() -> None:
    rows = [[1 - E, E, 0], [1 - E, 0, E], [0.1, 0, 0.9]]
    chain = pdp.MarkovChain(transition=rows, length=4, states=range(3), initial=[1, 0, 0])
    witness = Witness(target=2, known={0: 0}, secrets=(2, 0), output=0.0, model=chain, index=None)
    drawn = drawn_databases(witness, chain.names, 2, 50, np.random.default_rng(0))
    assert drawn[:, :3].tolist() == [[0.0, 1.0, 2.0]] * 50
    assert set(drawn[:, 3]) <= {0.0, 2.0}


def test_the_lower_end_of_a_set_of_tables_forgives_no_underflow() -> None:
    table = pdp.JointTable(probabilities=[[0.5, 2e-307], [0.5, 3e-308]], domains=[BITS] * 2)
    ball = pdp.ConditionalBall(center=table, radius=0.0)
    query, attack = pdp.Linear(weights={"x2": 1}), pdp.Adversaries.exactly("x1")
    truth = math.log(20 / 3)
    assert is_sound(pdp.leakage(ball, query, scale=1e-3, adversaries=attack), truth)
    assert is_sound(pdp.leakage(table, query, scale=1e-3, adversaries=attack), truth)


def _same(first: Model, second: Model) -> None:
    """Both models tell the same about a black box."""
    found, expected = (pdp.black_box_leakage(model, epsilon=1.0) for model in (first, second))
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    budgets = [pdp.dp_budget(model, epsilon=1.0) for model in (first, second)]
    assert budgets[0] == pytest.approx(budgets[1], rel=2e-6)
    assert pdp.Ledger(first, epsilon=9.0).charge(1.0) == pytest.approx(found.value, rel=1e-9)


def test_black_boxes_where_an_adversary_has_no_two_possible_secrets() -> None:
    pair = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[BITS] * 2)
    constant = [[[0.3, 0.2]], [[0.2, 0.3]]]
    _same(pdp.JointTable(probabilities=constant, domains=[BITS, (7,), BITS]), pair)
    never = [[0.3, 0.2, 0], [0.2, 0.3, 0]]
    _same(pdp.JointTable(probabilities=never, domains=[BITS, range(3)]), pair)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (pdp.JointTable(probabilities=TWINS_AND_ANOTHER, domains=[BITS] * 3), 2.0),
        (line([[0.4, 0.6], np.eye(2), [[0.5, 0.5], [0.5, 0.5]]]), 2.0),
        (pdp.MarkovChain(transition=[[0, 1], [1, 0]], length=3), 3.0),
        (pdp.MarkovChain(transition=[[0, 1], [1, 0]], length=3, initial=[1, 0]), 1.0),
        (pdp.MarkovChain(transition=[[1]], states=[5], length=3), 0.0),
        (pdp.CategoryGroup(size=3, categories=[5], count_probabilities={(3,): 1.0}), 0.0),
        (pdp.JointTable(probabilities=[[1.0]], domains=[[0], [0]]), 0.0),
    ],
    ids=["twins", "edge", "periodic", "course", "state", "category", "cell"],
)
def test_black_boxes_where_everyone_follows_from_one(model: Model, expected: float) -> None:
    assert pdp.black_box_leakage(model, epsilon=1.0).value == pytest.approx(expected, rel=1e-9)
    assert pdp.dp_budget(model, epsilon=1.0) == pytest.approx(1 / (expected or 1.0), rel=2e-6)
    assert pdp.Ledger(model, epsilon=9.0).charge(1.0) == pytest.approx(expected, rel=1e-9)
    for adversaries in (pdp.Adversaries.weakest(), pdp.Adversaries.knowing(at_most=1)):
        bound = pdp.black_box_leakage(model, epsilon=1.0, adversaries=adversaries)
        assert bound.value <= expected * (1 + 1e-9)
