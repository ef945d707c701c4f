"""Tuples that can hold one value only: they change nothing, and nothing about them can leak."""

import dataclasses
import itertools
import math

import numba
import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table.setting import grid_of
from pdp_calibrate.families.table.tree_kernels import add_slices
from pdp_calibrate.families.table.tree_search import (
    branch_search,
    branches_of,
    filled,
    search_branches,
)
from tests.oracles import brute_force as oracle
from tests.oracles.table_sets import worst_over_balls
from tests.oracles.vectors import worst_vector_leakage
from tests.support.random_models import adversary_kinds
from tests.support.table_searches import search, setting_at

pytestmark = pytest.mark.bounds

KNOWING = pdp.Adversaries.knowing
EXACTLY = pdp.Adversaries.exactly


def with_constants(rng, table, number):
    """The same table with more tuples, of one value, at any places; and where the others are."""
    n = len(table.names)
    places = sorted(map(int, rng.choice(n + number, n, replace=False)))
    sizes, domains = [1] * (n + number), [[float(rng.integers(-5, 9))] for _ in range(n + number)]
    for place, domain in zip(places, table.domains, strict=True):
        sizes[place], domains[place] = len(domain), list(domain)
    cells = table.probabilities.reshape(sizes)
    return pdp.JointTable(probabilities=cells, domains=domains), places


def small_table(rng, *, most=3):
    """A number of tuples, of a number of values at most, zeros among the cells."""
    sizes = rng.integers(2, most, endpoint=True, size=int(rng.integers(1, most, endpoint=True)))
    cells = rng.dirichlet(np.full(int(np.prod(sizes)), rng.choice([0.3, 1.0, 5.0]))).reshape(sizes)
    cells = np.where(rng.random(sizes) < rng.choice([0.0, 0.3]), 0.0, cells)
    cells[(0,) * len(sizes)] += 0.05
    cells[cells < 1e-9] = 0.0
    domains = [sorted(rng.choice(np.arange(-2, 4), size, replace=False).tolist()) for size in sizes]
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


def curved(values):
    return 1.3 * max(values) - values[0] * values[-1] + 0.25 * sum(values)


def queries_of(table):
    """One query of each kind, as a query and as a plain function."""
    n, counted = len(table.names), {domain[0] for domain in table.domains}
    return [
        (pdp.Sum(), sum),
        (pdp.Mean(), lambda x: sum(x) / n),
        (pdp.Count(values=counted), lambda x: float(sum(v in counted for v in x))),
        (pdp.Linear(weights=[math.sqrt(2) + j for j in range(n)]),
         lambda x: sum((math.sqrt(2) + j) * v for j, v in enumerate(x))),
        (pdp.Custom(function=curved), curved),
    ]  # fmt: skip


def assert_witness_attains(table, leak, function, scale, admits):
    """The adversary named is admitted, and its ratio at the output named is the lower end."""
    there = oracle.placed(leak.witness, table.names)
    assert admits(*there[:2])
    attained = oracle.log_density_ratio(table.probabilities, table.domains, function, scale, there)
    assert attained == pytest.approx(leak.value, rel=1e-8, abs=1e-9)
    assert leak.witness.model is table


@pytest.mark.parametrize("seed", range(25))
def test_one_number_equals_brute_force_for_every_kind_of_adversaries(seed):
    rng = np.random.default_rng(seed)
    number = 1 + seed % 5
    table, _ = with_constants(rng, small_table(rng, most=3 if number < 3 else 2), number)
    scale = float(np.exp(rng.uniform(-1.5, 2)))
    query, function = queries_of(table)[seed // 5]
    for adversaries, admits in adversary_kinds(rng, table.names):
        truth, _ = oracle.worst_leakage(table.probabilities, table.domains, function, scale, admits)
        leak = pdp.leakage(table, query, scale=scale, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-11), adversaries
        assert leak.lower <= truth * (1 + 1e-12) + 1e-13
        assert leak.exact
        if leak.witness is None:
            assert leak.value < 1e-14  # the rounding of what the others add is charged
        else:
            assert_witness_attains(table, leak, function, scale, admits)


@pytest.mark.parametrize("seed", range(12))
def test_several_numbers_equal_brute_force_for_every_kind_of_adversaries(seed):
    rng = np.random.default_rng(100 + seed)
    table, _ = with_constants(rng, small_table(rng, most=2), 1 + seed % 3)
    scales = [float(np.exp(rng.uniform(-1, 1))) for _ in range(2)]
    value = table.domains[0][0]
    queries = [pdp.Sum(), pdp.Count(values={value})]
    if seed % 4 == 1:
        queries[1] = pdp.Custom(function=curved)

    def function(x):
        return float(sum(x)), curved(x) if seed % 4 == 1 else float(x.count(value))

    if seed % 2 == 0:
        queries = pdp.Histogram()
        categories = queries.of(table)
        scales = [scales[0]] * len(categories)

        def function(x):
            return tuple(float(x.count(c)) for c in categories)

    for adversaries, admits in adversary_kinds(rng, table.names):
        truth = worst_vector_leakage(table.probabilities, table.domains, function, scales, admits)
        scale = scales[0] if seed % 2 == 0 else scales
        leak = pdp.leakage(table, queries, scale=scale, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-11), adversaries
        assert leak.exact


def translated(adversaries, table, bare, places):
    """The same adversaries of the table without its constant tuples; None where there are none."""
    gone = len(table.names) - len(bare.names)
    if adversaries.known is not None:
        if table.names.index(adversaries.target) not in places:
            return None
        known = [
            bare.names[places.index(place)]
            for place in map(table.names.index, adversaries.known) if place in places
        ]  # fmt: skip
        return EXACTLY(bare.names[places.index(table.names.index(adversaries.target))], known=known)
    if adversaries.at_least is None:
        return adversaries
    most = adversaries.at_most
    most = None if most is None or most >= len(bare.names) - 1 else most
    return KNOWING(at_least=max(0, adversaries.at_least - gone), at_most=most)


@pytest.mark.parametrize("seed", range(30))
def test_a_table_leaks_what_it_leaks_without_them(seed):
    rng = np.random.default_rng(200 + seed)
    bare = small_table(rng)
    bare = pdp.JointTable(  # without zeros nobody asks whether everyone else is known
        probabilities=(bare.probabilities + 0.01) / (bare.probabilities + 0.01).sum(),
        domains=bare.domains,
    )
    table, places = with_constants(rng, bare, int(rng.integers(1, 5, endpoint=True)))
    scale = float(np.exp(rng.uniform(-2, 3)))
    for query in (pdp.Sum(), pdp.Histogram(), [pdp.Sum(), pdp.Count(values={bare.domains[0][0]})]):
        for adversaries, _ in adversary_kinds(rng, table.names):
            same = translated(adversaries, table, bare, places)
            leak = pdp.leakage(table, query, scale=scale, adversaries=adversaries)
            truth = 0.0
            if same is not None:
                truth = pdp.leakage(bare, query, scale=scale, adversaries=same).value
            assert leak.value == pytest.approx(truth, rel=1e-12, abs=1e-13), adversaries


HEAP = (1, 1, 1, 2, 2, 2), np.array([1, 30, 2, 3, 4, 5, 40, 7]) / 92


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (3, 0, 4, 1, 5, 2), (5, 4, 3, 2, 1, 0)])
def test_three_constant_columns_overflow_nothing(order):
    sizes, cells = HEAP
    cells = cells.reshape(sizes).transpose(order)
    table = pdp.JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    leak = pdp.leakage(table, pdp.Sum(), scale=0.5, adversaries=KNOWING(at_most=1))
    assert leak.value == pytest.approx(3.0953343, abs=5e-8)
    assert leak.exact


def test_the_tree_allocates_what_it_writes_whatever_the_sizes():
    sizes, cells = HEAP
    table = pdp.JointTable(probabilities=cells.reshape(sizes), domains=[range(n) for n in sizes])
    (problem,) = split(table, lower(pdp.Sum(), table), KNOWING(at_most=1))
    setting = setting_at(problem, 0.5)  # the search itself, with no tuple left out
    grid, clock = grid_of(setting), Clock(math.inf)
    shared, _ = branch_search(setting, grid, 0.0, clock)
    for branch in branches_of(shared, 3):
        shared.per_thread.__dict__.clear()
        levels = [math.prod(sizes[p] for p in branch.opened[k:]) for k in range(6)]
        assert len(filled(shared, branch)) == sum(levels) * 2 * (len(shared.outputs) + 1)
    assert search_branches(setting, grid, 0.0, clock).upper == pytest.approx(3.0953343, abs=5e-8)


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="needs NUMBA_BOUNDSCHECK=1")
def test_every_index_of_compiled_code_is_checked():
    with pytest.raises(IndexError):
        add_slices(np.zeros(5), 0, 2, 2, 4)


def test_one_constant_column_among_independent_ones():
    cells = np.full((2, 1, 2, 2), 1 / 8)
    table = pdp.JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    leak = pdp.leakage(table, pdp.Sum(), scale=0.5, adversaries=pdp.Adversaries.weakest())
    assert leak.value == pytest.approx(2.0, rel=1e-12)


def test_a_frame_with_constant_columns_is_calibrated_as_without_them():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 400)
    columns = {f"c{j}": np.full(400, j) for j in range(3)}
    varying = {
        "a": first,
        "b": np.where(rng.random(400) < 0.8, first, 1 - first),
        "c": np.where(rng.random(400) < 0.7, first, 1 - first),
    }
    scales = [
        pdp.calibrate(
            pdp.TableEstimator(source="public").fit(pd.DataFrame(frame)).model_,
            pdp.Sum(), epsilon=1.0,
        ).scale
        for frame in (columns | varying, varying)
    ]  # fmt: skip
    assert scales[0] == pytest.approx(scales[1], rel=1e-9)
    assert 1.5 < scales[0] < 2.5


def test_plain_privacy_is_owed_to_those_alone_who_know_the_constants_too():
    # x1 = 1 never occurs: only who knows all the others, constants included, may hold it possible.
    table = pdp.JointTable(
        probabilities=[[[0.5, 0.5]], [[0.0, 0.0]]], domains=[[0, 5], [7], [0, 1]]
    )
    everyone = EXACTLY("x1", known=["x2", "x3"])
    assert pdp.leakage(table, pdp.Sum(), adversaries=everyone).value == pytest.approx(5.0)
    others = EXACTLY("x1", known=["x3"])
    leak = pdp.leakage(table, pdp.Sum(), adversaries=others)
    assert (leak.value, leak.witness) == (0.0, None)
    assert pdp.leakage(table, pdp.Sum()).value == pytest.approx(5.0)
    assert pdp.leakage(table, pdp.Sum(), adversaries=KNOWING(at_most=1)).value == pytest.approx(1.0)


@pytest.mark.parametrize("query", [pdp.Sum(), pdp.Custom(function=curved), pdp.Histogram()])
@pytest.mark.parametrize(
    "adversaries",
    [pdp.Adversaries.all(), pdp.Adversaries.weakest(), pdp.Adversaries.strongest(),
     KNOWING(at_least=1, at_most=1), EXACTLY("x2"), EXACTLY("x2", known=["x1", "x3"])],
    ids=str,
)  # fmt: skip
def test_where_nothing_varies_nobody_has_two_secrets(adversaries, query):
    table = pdp.JointTable(probabilities=[[[1.0]]], domains=[[4], [5], [6]])
    leak = pdp.leakage(table, query, adversaries=adversaries)
    assert (leak.value, leak.lower, leak.witness) == (0.0, 0.0, None)
    assert pdp.black_box_leakage(table, epsilon=1.0, adversaries=adversaries).value == 0.0
    with pytest.raises(pdp.CalibrationError, match="nothing to protect"):
        pdp.calibrate(table, query, epsilon=1.0, adversaries=adversaries)


def test_whoever_attacks_a_constant_learns_nothing():
    table = pdp.JointTable(probabilities=[[0.4, 0.6]], domains=[[4], [0, 1]])
    for known in ([], ["x2"]):
        leak = pdp.leakage(table, pdp.Sum(), adversaries=EXACTLY("x1", known=known))
        assert (leak.value, leak.witness) == (0.0, None)
        with pytest.raises(pdp.CalibrationError, match="stays at or below"):
            pdp.calibrate(table, pdp.Sum(), epsilon=1.0, adversaries=EXACTLY("x1", known=known))


def test_one_tuple():
    table = pdp.JointTable(probabilities=[0.4, 0.6], domains=[[0, 3]])
    for adversaries in (pdp.Adversaries.all(), pdp.Adversaries.weakest(), EXACTLY("x1")):
        leak = pdp.leakage(table, pdp.Sum(), scale=2.0, adversaries=adversaries)
        assert leak.value == pytest.approx(1.5)
    assert pdp.calibrate(table, pdp.Sum(), epsilon=1.0).scale == pytest.approx(3.0)


@pytest.mark.parametrize("seed", range(8))
def test_hidden_noise_and_extreme_scales_with_constants(seed):
    rng = np.random.default_rng(300 + seed)
    bare = small_table(rng)
    bare = pdp.JointTable(
        probabilities=(bare.probabilities + 0.01) / (bare.probabilities + 0.01).sum(),
        domains=bare.domains,
    )
    table, _ = with_constants(rng, bare, 1 + seed % 3)
    for query, scale in itertools.product((pdp.Sum(), pdp.Custom(function=sum)), (1e-3, 0.7, 1e5)):
        found = []
        for model in (table, bare):
            (problem,) = split(model, lower(query, model), pdp.Adversaries.all())
            problem = dataclasses.replace(problem, hidden_noise=True)
            found.append(search(problem, scale))
        assert found[0].upper == pytest.approx(found[1].upper, rel=1e-12)
        assert found[0].lower == pytest.approx(found[1].lower, rel=1e-12)


@pytest.mark.compiled
def test_many_binary_columns_beside_a_constant_one():
    rng = np.random.default_rng(5)
    cells = rng.dirichlet(np.full(2**13, 2.0)).reshape((2,) * 13)
    bare = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 13)
    table = pdp.JointTable(probabilities=cells[None], domains=[[9]] + [[0, 1]] * 13)
    for low, high in ((0, 1), (10, 11)):
        few = KNOWING(at_least=low, at_most=high)
        truth = pdp.leakage(bare, pdp.Sum(), scale=1.5, adversaries=few)
        few = KNOWING(at_least=low + (low > 0), at_most=high)  # the constant one may be known too
        leak = pdp.leakage(table, pdp.Sum(), scale=1.5, adversaries=few)
        assert leak.value == pytest.approx(truth.value, rel=1e-9)


def test_a_grid_too_large_gives_the_same_bracket():
    rng = np.random.default_rng(6)
    cells = rng.dirichlet(np.full(27, 2.0)).reshape(3, 3, 3)
    queries = [pdp.Linear(weights=rng.normal(size=3).tolist()) for _ in range(4)]
    wider = [pdp.Linear(weights=[*q.weights[:1], 2.0, *q.weights[1:]]) for q in queries]
    bare = pdp.JointTable(probabilities=cells, domains=[[0, 1, 2.5]] * 3)
    table = pdp.JointTable(
        probabilities=cells[:, None], domains=[[0, 1, 2.5], [3], [0, 1, 2.5], [0, 1, 2.5]]
    )
    one = pdp.leakage(bare, queries, scale=3.0)
    other = pdp.leakage(table, wider, scale=3.0)
    assert other.value == pytest.approx(one.value, rel=1e-9)
    assert other.lower == pytest.approx(one.lower, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_sets_of_tables_equal_brute_force(seed):
    rng = np.random.default_rng(400 + seed)
    bare = small_table(rng, most=2)
    table, _ = with_constants(rng, bare, 1 + seed % 3)
    radius = float(rng.choice([0.0, 0.05, 0.4]))
    ball = pdp.ConditionalBall(center=table, radius=radius)
    for adversaries, admits in adversary_kinds(rng, table.names):
        truth = worst_over_balls(
            table.probabilities, [list(d) for d in table.domains], 0.8,
            lambda mass, _values: radius if mass > 0 else 1.0, admits=admits,
        )  # fmt: skip
        leak = pdp.leakage(ball, pdp.Sum(), scale=0.8, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-9), adversaries
        assert leak.witness is None or leak.witness.model.names == table.names


def test_a_sample_with_constant_columns_counts_as_without_them():
    counts = np.array([[40, 10], [12, 38]])
    bare = pdp.SampledTable(counts=counts, domains=[[0, 1], [0, 1]])
    table = pdp.SampledTable(counts=counts[:, None], domains=[[0, 1], [8], [0, 1]])
    for adversaries in (pdp.Adversaries.all(), pdp.Adversaries.weakest(), KNOWING(at_most=1)):
        one, other = (
            pdp.leakage(model, pdp.Sum(), adversaries=adversaries) for model in (bare, table)
        )
        assert other.value == pytest.approx(one.value, rel=1e-12)
        assert other.witness.model.domains == table.domains


def test_black_boxes_and_ledgers_about_tables_with_constants():
    rng = np.random.default_rng(7)
    for number in (1, 3):
        bare = small_table(rng)
        table, _ = with_constants(rng, bare, number)
        for adversaries in (pdp.Adversaries.all(), pdp.Adversaries.weakest()):
            one, other = (
                pdp.black_box_leakage(model, epsilon=0.7, adversaries=adversaries).value
                for model in (bare, table)
            )
            assert other == pytest.approx(one, rel=1e-9)
        one, other = (pdp.dp_budget(model, epsilon=1.0) for model in (bare, table))
        assert other == pytest.approx(one, rel=1e-5)


def chain(states, length):
    size = len(states)
    return pdp.MarkovChain(transition=np.full((size, size), 1 / size), length=length, states=states)


NOTHING_VARIES = {
    "chain": chain([3], 4),
    "long chain": chain([3], 400),
    "group": pdp.CategoryGroup(size=3, categories=[2], count_probabilities=[1.0]),
    "large group": pdp.CategoryGroup(size=100, categories=[2], count_probabilities=[1.0]),
    "member": pdp.CategoryGroup(size=1, categories=[2], count_probabilities=[1.0]),
    "tree": pdp.MarkovTree(domains=[[1]], parents=[None], tables=[[1.0]]),
    "large tree": pdp.MarkovTree(
        domains=[[1]] * 90, parents=[None, *range(89)], tables=[[1.0], *[[[1.0]]] * 89]
    ),
    "mixing": pdp.MixingChain(length=3, states=[1], diameter=0.5),
    "blocks": pdp.Blocks(
        models=[pdp.JointTable(probabilities=[[1.0]], domains=[[1], [2]]), chain([3], 2)],
        counts=[2, 1],
    ),
}


@pytest.mark.parametrize("model", NOTHING_VARIES.values(), ids=NOTHING_VARIES)
def test_families_of_one_value(model):
    for adversaries in (
        pdp.Adversaries.all(), pdp.Adversaries.weakest(), pdp.Adversaries.strongest(),
        EXACTLY(model.names[0], known=model.names[2:]),
    ):  # fmt: skip
        for query in (pdp.Sum(), pdp.Histogram()):
            leak = pdp.leakage(model, query, scale=0.5, adversaries=adversaries)
            assert (leak.value, leak.lower, leak.witness) == (0.0, 0.0, None)
            with pytest.raises(pdp.CalibrationError, match="nothing to protect"):
                pdp.calibrate(model, query, epsilon=1.0, adversaries=adversaries)
        both = [pdp.Sum(), pdp.Mean()]
        assert pdp.leakage(model, both, scale=0.5, adversaries=adversaries).value == 0.0
        with pytest.raises(pdp.QueryError, match="the same answer whatever the data"):
            pdp.calibrate(model, both, epsilon=1.0, adversaries=adversaries)
        pdp.black_box_leakage(model, epsilon=1.0, adversaries=adversaries)


ONE_TUPLE = {
    "chain": chain([0, 3], 1),
    "group": pdp.CategoryGroup(size=1, categories=[0, 3], count_probabilities=[0.4, 0.6]),
    "tree": pdp.MarkovTree(domains=[[0, 3]], parents=[None], tables=[[0.4, 0.6]]),
    "mixing": pdp.MixingChain(length=1, states=[0, 3], diameter=0.5),
}


@pytest.mark.parametrize("model", ONE_TUPLE.values(), ids=ONE_TUPLE)
def test_families_of_one_tuple(model):
    for adversaries in (pdp.Adversaries.all(), pdp.Adversaries.weakest(), EXACTLY(model.names[0])):
        assert pdp.leakage(model, pdp.Sum(), adversaries=adversaries).value == pytest.approx(3.0)
        found = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, adversaries=adversaries)
        assert found.scale == pytest.approx(3.0, rel=1e-9)
        budget = pdp.black_box_leakage(model, epsilon=1.0, adversaries=adversaries)
        assert budget.value == pytest.approx(1.0)


def random_tree(rng):
    """A tree of four tuples, at least one of one value."""
    sizes = rng.integers(1, 3, size=4)
    sizes[rng.integers(4)] = 1
    parents = [None, *(int(rng.integers(place)) for place in range(1, 4))]
    laws = [rng.dirichlet(np.ones(sizes[0]))]
    laws += [rng.dirichlet(np.ones(sizes[j]), sizes[parents[j]]) for j in range(1, 4)]
    domains = [sorted(rng.choice(5, size, replace=False).tolist()) for size in sizes]
    return pdp.MarkovTree(domains=domains, parents=parents, tables=laws)


@pytest.mark.parametrize("seed", range(12))
def test_trees_with_constant_nodes_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    table = tree.to_table()
    for adversaries, admits in adversary_kinds(rng, tree.names):
        truth, _ = oracle.worst_leakage(table.probabilities, table.domains, sum, 0.7, admits)
        leak = pdp.leakage(tree, pdp.Sum(), scale=0.7, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-11), adversaries
        both = pdp.leakage(tree, [pdp.Sum(), pdp.Histogram()], scale=2.0, adversaries=adversaries)
        assert both.lower <= both.value * (1 + 1e-12)
        bound = pdp.black_box_leakage(tree, epsilon=0.5, adversaries=adversaries)
        assert bound.value >= (0.5 if truth > 0 else 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_large_trees_with_constant_nodes_are_bounded(seed, monkeypatch):
    monkeypatch.setattr(pdp.MarkovTree, "fits_a_table", property(lambda _tree: False))
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    table = tree.to_table()
    truth, _ = oracle.worst_leakage(
        table.probabilities, table.domains, sum, 0.7, lambda _i, _known: True
    )
    leak = pdp.leakage(tree, pdp.Sum(), scale=0.7)
    assert leak.value >= truth * (1 - 1e-12) >= leak.lower * (1 - 1e-9)


def test_a_ledger_about_a_table_with_constants():
    table = pdp.JointTable(
        probabilities=[[[0.4, 0.1]], [[0.1, 0.4]]], domains=[[0, 1], [6], [0, 1]]
    )
    bare = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    left = []
    for model in (table, bare):
        ledger = pdp.Ledger(model, epsilon=5.0)
        for _ in range(2):
            ledger.spend(pdp.calibrate(model, pdp.Sum(), epsilon=1.0))
        ledger.charge(0.5)
        left.append(ledger.spent)
    assert left[0] == pytest.approx(left[1], rel=1e-9)


def test_a_table_has_at_most_as_many_tuples_as_an_array_has_axes():
    tree = pdp.MarkovTree(
        domains=[[0, 1], *[[1]] * 69, [0, 1]],
        parents=[None, *range(70)],
        tables=[[0.3, 0.7], [[1.0]] * 2, *[[[1.0]]] * 68, [[0.4, 0.6]]],
    )
    assert pdp.leakage(tree, pdp.Sum()).value == pytest.approx(1.0)  # the constants separate them
    with pytest.raises(pdp.ModelError, match="at most 63 tuples"):
        tree.to_table()
    with pytest.raises(pdp.ModelError, match="at most 63 tuples"):
        pdp.leakage(chain([3], 70), pdp.Custom(function=max))
    frame = pd.DataFrame({f"c{j}": np.zeros(5) for j in range(70)})
    with pytest.raises(pdp.PdpError, match="at most 63 tuples"):
        pdp.TableEstimator(source="public").fit(frame)
