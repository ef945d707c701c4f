"""Markov trees: the joint table where it fits, Birkhoff's bound everywhere, limits below it."""

import itertools
import json
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from tests.oracles.adversaries import everyone
from tests.oracles.brute_force import log_density_ratio, placed, worst_leakage
from tests.oracles.vectors import worst_vector_leakage
from tests.support.marks import bounds_checked
from tests.support.networks import contraction_bounds
from tests.support.random_time import cells_of_tree, random_tree


def random_weights(tree, rng):
    weights = rng.integers(-2, 4, size=len(tree.names)).astype(float)
    weights[0] = 1.0
    return weights, lambda x: float(np.dot(weights, x))


def only(target):
    return lambda i, _known: i == target


@pytest.mark.parametrize("seed", bounds_checked(range(30), 4))
def test_small_trees_equal_the_oracle(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, most=4)
    cells = cells_of_tree(tree)
    assert tree.to_table().probabilities == pytest.approx(cells, rel=1e-12)
    weights, function = random_weights(tree, rng)
    scale = float(rng.choice([0.3, 2.0, 20.0]))
    leak = pdp.leakage(tree, pdp.Linear(weights=weights.tolist()), scale=scale)
    truth, _ = worst_leakage(cells, tree.domains, function, scale, everyone)
    assert leak.exact
    assert leak.lower <= truth * (1 + 1e-12) <= leak.value * (1 + 2e-12)


@pytest.mark.parametrize("seed", range(25))
def test_birkhoff_bounds_every_target_and_ignores_the_root(seed):
    rng = np.random.default_rng(50 + seed)
    tree = random_tree(rng, most=4)
    weights, function = random_weights(tree, rng)
    scale = float(rng.choice([0.5, 2.0, 10.0]))
    ranges = [abs(w) * (max(d) - min(d)) for w, d in zip(weights, tree.domains, strict=True)]
    knowledge = pdp.Adversaries.all().resolve(tree)
    bounds = contraction_bounds(tree, np.array(ranges) / scale, knowledge)
    cells = cells_of_tree(tree)
    for target in range(len(tree.names)):
        truth, _ = worst_leakage(cells, tree.domains, function, scale, only(target))
        assert truth <= bounds[target]
    moved = rerooted(tree, int(rng.integers(len(tree.names))))
    if moved is not None:
        assert cells_of_tree(moved) == pytest.approx(cells, rel=1e-9, abs=1e-15)
        other = contraction_bounds(moved, np.array(ranges) / scale, knowledge)
        assert other == pytest.approx(bounds, rel=1e-9)
        query = pdp.Linear(weights=weights.tolist())
        both = [pdp.leakage(one, query, scale=scale).value for one in (tree, moved)]
        assert both[0] == pytest.approx(both[1], rel=1e-9)


def rerooted(tree, root):
    """The same distribution with another root, by Bayes; None where a value is impossible."""
    cells = cells_of_tree(tree)
    size = cells.ndim
    marginals = [
        cells.sum(axis=tuple(axis for axis in range(size) if axis != place))
        for place in range(size)
    ]
    if any(np.any(law == 0) for law in marginals):
        return None
    links = [(c, p) for c, p in enumerate(tree.parents) if p is not None]
    parents, tables = [None] * size, [None] * size
    tables[root] = marginals[root] / marginals[root].sum()
    reached = [root]
    for place in reached:
        for pair in links:
            if place in pair:
                child = pair[0] if pair[1] == place else pair[1]
                if child not in reached:
                    reached.append(child)
                    rest = tuple(axis for axis in range(size) if axis not in pair)
                    joint = cells.sum(axis=rest)
                    joint = joint if place < child else joint.T
                    parents[child] = place
                    tables[child] = joint / joint.sum(axis=1, keepdims=True)
    return pdp.MarkovTree(domains=tree.domains, parents=parents, tables=tables)


@pytest.mark.parametrize("zeros", [False, True])
def test_a_chain_is_a_tree(zeros):
    kernel = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    if zeros:
        kernel = np.array([[0.7, 0.3, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    chain = pdp.MarkovChain(transition=kernel, length=50, states=[0, 1, 2])
    tree = pdp.MarkovTree(
        domains=[[0, 1, 2]] * 50,
        parents=[None, *range(49)],
        tables=[chain.start, *[kernel] * 49],
        names=chain.names,
    )
    budgets = np.random.default_rng(0).uniform(0, 0.3, size=50)
    along = birkhoff_bounds(budgets, float(diameters(kernel, 1)[0][1]))
    knowledge = pdp.Adversaries.all().resolve(tree)
    assert contraction_bounds(tree, budgets, knowledge) == pytest.approx(along, rel=1e-12)
    both = [pdp.black_box_leakage(model, epsilon=0.05) for model in (chain, tree)]
    assert both[0].value <= both[1].value  # a chain's bound is about exact knowledge alone
    assert both[1].method == ("group" if zeros else "birkhoff")
    bracket = pdp.leakage(tree, pdp.Sum(), scale=20.0)
    exact = pdp.leakage(chain, pdp.Sum(), scale=20.0)
    assert bracket.lower <= exact.value * (1 + 1e-12)
    assert exact.lower <= bracket.value * (1 + 1e-12)
    assert bracket.lower >= 0.9 * exact.value  # states that follow each other: the limit is worst


ADVERSARIES = {
    "all": (pdp.Adversaries.all(), everyone),
    "weakest": (pdp.Adversaries.weakest(), lambda _i, known: not known),
    "strongest": (pdp.Adversaries.strongest(), None),
    "some": (pdp.Adversaries.knowing(at_least=1, at_most=2), lambda _i, k: 1 <= len(k) <= 2),
    "one": (pdp.Adversaries.exactly("x1", known=["x2"]), lambda i, k: (i, k) == (0, {1})),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("who", ADVERSARIES)
def test_the_bracket_of_large_trees_holds_the_truth(seed, who, monkeypatch):
    """Small trees, treated as if their tables were too large."""
    rng = np.random.default_rng(900 + seed)
    tree = random_tree(rng, most=5)
    while len(tree.names) < 3:
        tree = random_tree(rng, most=5)
    adversaries, admits = ADVERSARIES[who]
    last = len(tree.names) - 1
    admits = admits or (lambda _i, known: len(known) == last)
    weights, function = random_weights(tree, rng)
    scale = float(rng.choice([0.5, 3.0, 30.0]))
    monkeypatch.setattr(pdp.Network, "fits_a_table", False)
    query = pdp.Linear(weights=weights.tolist())
    leak = pdp.leakage(tree, query, scale=scale, adversaries=adversaries)
    cells = cells_of_tree(tree)
    truth, _ = worst_leakage(cells, tree.domains, function, scale, admits)
    assert leak.lower <= truth * (1 + 1e-12) + 1e-15
    assert truth <= leak.value * (1 + 1e-12)
    if leak.witness is not None and leak.lower > 0:
        beyond = float(np.clip(leak.witness.output, -1e3, 1e3))  # of all atoms
        witness = placed(leak.witness, tree.names, output=beyond)
        assert admits(*witness[:2])
        attained = log_density_ratio(cells, tree.domains, function, scale, witness)
        assert attained == pytest.approx(leak.lower, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_no_mechanism_of_a_small_budget_leaks_more(seed):
    """Random ε₀-Lipschitz likelihoods, with another ε₀ for every tuple."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, most=4, states=(2, 2))
    cells = cells_of_tree(tree)
    budgets = rng.uniform(0, 1.5, size=cells.ndim)
    points = np.array(list(np.ndindex(cells.shape)))
    distance = ((points[:, np.newaxis] != points) * budgets).sum(axis=-1)
    bounds = contraction_bounds(tree, budgets, pdp.Adversaries.all().resolve(tree))
    for _ in range(60):
        likelihood = np.exp((rng.normal(scale=2, size=(1, len(points))) + distance).min(axis=1))
        likelihood = likelihood.reshape(cells.shape)
        for target in range(cells.ndim):
            others = [j for j in range(cells.ndim) if j != target]
            for size in range(cells.ndim - 1):
                for known in itertools.combinations(others, size):
                    unknown = tuple(j for j in others if j not in known)
                    joint = (cells * likelihood).sum(axis=unknown, keepdims=True)
                    mass = cells.sum(axis=unknown, keepdims=True)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        logs = np.moveaxis(np.log(joint / mass), target, -1)
                    spread = np.fmax.reduce(logs, axis=-1) - np.fmin.reduce(logs, axis=-1)
                    worst = np.nanmax(spread, initial=0.0)
                    assert worst <= bounds[target] * (1 + 1e-12)


def test_ledgers_about_trees():
    rng = np.random.default_rng(2)
    small = random_tree(rng, most=3, zeros=False)
    ledger = pdp.Ledger(small, epsilon=5.0)
    queries = [pdp.Sum(), pdp.Count(values={small.domains[0][0]}, over=[small.names[0]]), pdp.Sum()]
    for query in queries:
        ledger.release(query, dict(zip(small.names, (d[0] for d in small.domains), strict=True)),
                       epsilon=0.4)  # fmt: skip
    scales = [entry.scales[0] for entry in ledger.history]
    truth = worst_vector_leakage(
        cells_of_tree(small),
        small.domains,
        lambda x: (sum(x), float(x[0] == small.domains[0][0]), sum(x)),
        scales,
        everyone,
    )
    assert truth <= ledger.spent <= 5.0
    passed_on = [[0.9, 0.1], [0.2, 0.8]]
    large = pdp.MarkovTree(
        domains=[[0, 1]] * 200,
        parents=[None, *((k - 1) // 2 for k in range(1, 200))],
        tables=[[0.5, 0.5], *[passed_on] * 199],
    )
    data = dict.fromkeys(large.names, 0)
    ledger = pdp.Ledger(large, epsilon=2.0)
    ledger.release(pdp.Sum(), data, epsilon=0.5)
    ledger.release(pdp.Sum(over=["x200"]), data, epsilon=0.5)
    assert ledger.history[-1].method == "birkhoff"
    assert ledger.charge(0.01) < 2.0
    group = pdp.Blocks(models=[large, small])
    again = pdp.Ledger(group, epsilon=3.0)
    again.charge(0.01)
    assert again.spent == pytest.approx(pdp.black_box_leakage(large, epsilon=0.01).value)
    budget = pdp.dp_budget(large, epsilon=1.0)
    assert pdp.black_box_leakage(large, epsilon=budget).value <= 1.0
    assert pdp.black_box_leakage(large, epsilon=budget * 1.0001).value > 1.0


@pytest.mark.filterwarnings("ignore::pdp_calibrate.PrivacyLeakWarning")
def test_a_large_tree_is_calibrated_released_and_stored():
    passed_on = {0: {0: 0.9, 1: 0.1}, 1: {0: 0.3, 1: 0.7}}
    names = [f"p{k}" for k in range(60)]
    tree = pdp.MarkovTree.from_conditionals(
        {"p0": {0: 0.6, 1: 0.4}},
        {name: (names[k // 3], passed_on) for k, name in enumerate(names[1:])},
    )
    cal = pdp.calibrate(tree, pdp.Sum(), epsilon=1.0)
    assert cal.leakage.value <= 1.0
    assert cal.baselines["dp"] <= cal.scale <= cal.baselines["group"]
    assert cal.leakage.lower > 0.5
    assert isinstance(cal.release(dict.fromkeys(names, 0)).value, int)
    assert pdp.verify(pdp.Calibration.from_json(cal.to_json())).value <= 1.0
    assert pdp.leakage(tree, pdp.Histogram(), scale=20.0).value < 6.0
    back = pdp.MarkovTree.from_dict(json.loads(json.dumps(tree.to_dict())))
    assert back == tree
    secret = pdp.MarkovTree(
        domains=[[0, 1]] * 2, parents=[1, None], tables=[[[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]],
        provenance="private",
    )  # fmt: skip
    assert "tables" not in secret.to_dict()
    weakest = pdp.Adversaries.weakest()
    query = pdp.Linear(weights=[1.0, -1.0, 1.0, 2.0])
    with pytest.warns(pdp.PrivacyLeakWarning):
        both = [
            pdp.leakage(pdp.Blocks(models=[one, one]), query, adversaries=weakest)
            for one in (secret, secret.to_table())
        ]
    assert both[0].exact
    assert both[0].value == pytest.approx(both[1].value)
    small = pdp.MarkovTree.from_conditionals({"a": {0: 0.5, 1: 0.5}}, {"b": ("a", passed_on)})
    largest = pdp.leakage(small, pdp.Custom(function=max), scale=1.0)
    assert largest.exact
    assert largest.value == pytest.approx(
        pdp.leakage(small.to_table(), pdp.Custom(function=max), scale=1.0).value
    )


GOOD = {"domains": [[0, 1]] * 2, "parents": [None, 0], "tables": [[0.5, 0.5], [[0.9, 0.1]] * 2]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parents": [None]}, "one per tuple"),
        ({"parents": [None, None]}, "one root, got 2"),
        ({"parents": [1, 0]}, "one root, got 0"),
        ({"parents": [None, 1]}, "circle"),
        ({"parents": [None, 2]}, "below 2"),
        ({"parents": [None, "x1"]}, "position"),
        ({"parents": [None, True]}, "position"),
        ({"tables": [[0.5, 0.5]]}, "tables must be one per tuple"),
        ({"tables": [[0.5, 0.5], [0.9, 0.1]]}, "the table of x2"),
        ({"tables": [[0.5, 0.4], [[0.9, 0.1]] * 2]}, "sum to 1"),
        ({"tables": [[0.5, 0.5], [[math.nan, 0.1]] * 2]}, "finite"),
        ({"domains": [[0, 0], [0, 1]]}, "repeat"),
        ({"domains": [], "parents": [], "tables": []}, "one per tuple"),
        ({"provenance": "mine"}, "provenance"),
    ],
)
def test_nonsense_is_refused(change, message):
    assert pdp.MarkovTree(**GOOD).order == (0, 1)
    with pytest.raises(pdp.ModelError, match=message):
        pdp.MarkovTree(**GOOD | change)


def test_conditionals_that_make_no_tree_are_refused():
    law = {0: {0: 1.0}}
    with pytest.raises(pdp.ModelError, match="one root"):
        pdp.MarkovTree.from_conditionals({}, {})
    with pytest.raises(pdp.ModelError, match="must not have a parent"):
        pdp.MarkovTree.from_conditionals({"a": {0: 1.0}}, {"a": ("b", law)})
    with pytest.raises(pdp.ModelError, match="without a law"):
        pdp.MarkovTree.from_conditionals({"a": {0: 1.0}}, {"b": ("c", law)})
    deep = pdp.MarkovTree(
        domains=[[0, 1]] * 2, parents=[None, 0], tables=[[1e-200, 1], [[1e-200, 1]] * 2]
    )
    with pytest.raises(pdp.ModelError, match=r"below 2\.2e-308"):
        deep.to_table()
    assert pdp.leakage(deep, pdp.Sum(), scale=1.0).value >= 1.0
