"""Mechanisms known only by their budget: never too low, and exact where a program reaches."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.optimize

import pdp_calibrate as pdp
from pdp_calibrate.composition.recursive_bound import peeled_bounds
from pdp_calibrate.composition.table_dual import dual_bound
from pdp_calibrate.core import lipschitz
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.line_program import line_bounds
from pdp_calibrate.core.lipschitz import spread_bounds
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from tests.oracles.vectors import worst_vector_leakage
from tests.support.random_models import random_table


def random_likelihoods(shape, epsilon, number, rng):
    """Random functions g of a database with g(x) ≤ e^ε·g(y) whenever x and y differ in one tuple.

    The largest function below random values at every cell that obeys the rule.
    """
    cells = np.array(list(np.ndindex(shape)))
    distance = (cells[:, np.newaxis] != cells).sum(axis=-1) * epsilon
    logs = rng.normal(
        scale=rng.choice([0.5, 2.0, 8.0], size=(number, 1)), size=(number, len(cells))
    )
    found = (logs[:, np.newaxis] + distance).min(axis=-1)
    return np.exp(found).reshape(number, *shape)


def largest_gain(table, likelihoods):
    """Largest log-ratio of average likelihoods over every adversary, by brute force."""
    n = table.ndim
    worst = 0.0
    for target in range(n):
        others = [j for j in range(n) if j != target]
        for size in range(n):
            for known in itertools.combinations(others, size):
                unknown = tuple(j for j in others if j not in known)
                mass = np.ones_like(table) if not unknown else table
                joint = (likelihoods * mass).sum(axis=tuple(j + 1 for j in unknown))
                total = mass.sum(axis=unknown)
                axis = [j for j in range(n) if j not in unknown].index(target)
                joint = np.moveaxis(joint, axis + 1, -1)
                total = np.moveaxis(total, axis, -1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    logs = np.log(joint / total)
                logs = np.where(total > 0, logs, np.nan)
                spread = np.nanmax(logs, axis=-1) - np.nanmin(logs, axis=-1)
                worst = max(worst, float(np.nanmax(spread)))
    return worst


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("seed", range(10))
def test_no_random_mechanism_leaks_more(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 4), values=(2, 3))
    epsilon = float(rng.choice([0.05, 0.5, 2.0]))
    bound = pdp.black_box_leakage(table, epsilon=epsilon)
    shape = table.probabilities.shape
    found = 0.0
    for _ in range(10):
        likelihoods = random_likelihoods(shape, epsilon, 100, rng)
        found = max(found, largest_gain(table.probabilities, likelihoods))
    assert found <= bound.value
    assert bound.value <= len(shape) * epsilon * (1 + 1e-12)
    assert bound.method in ("dual", "group")


def best_mechanism(table, epsilon):
    """The worst mechanism of all, from the primal program of every adversary."""
    n, worst = table.ndim, epsilon
    for target in range(n):
        others = [j for j in range(n) if j != target]
        for size in range(n - 1):
            for known in itertools.combinations(others, size):
                unknown = tuple(j for j in others if j not in known)
                moved = table.transpose(*known, target, *unknown)
                moved = moved.reshape(-1, table.shape[target], moved[(0,) * (size + 1)].size)
                cells = list(np.ndindex(*(table.shape[j] for j in unknown)))
                for block, (one, other) in itertools.product(
                    moved, itertools.permutations(range(table.shape[target]), 2)
                ):
                    if block[one].sum() > 0 and block[other].sum() > 0:
                        first = block[one] / block[one].sum()
                        second = block[other] / block[other].sum()
                        worst = max(worst, epsilon + _primal(first, second, cells, epsilon))
    return worst


def _primal(first, second, cells, epsilon):
    rows = []
    for one, other in itertools.permutations(range(len(cells)), 2):
        if sum(a != b for a, b in zip(cells[one], cells[other], strict=True)) == 1:
            row = np.zeros(len(cells))
            row[one], row[other] = 1.0, -math.exp(epsilon)
            rows.append(row)
    solved = scipy.optimize.linprog(
        -first, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=second[None], b_eq=[1.0]
    )
    return math.log(-solved.fun)


@pytest.mark.parametrize("seed", range(6))
def test_small_tables_are_answered_exactly(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 3), values=(2, 3))
    epsilon = float(rng.choice([0.1, 1.0]))
    bound = pdp.black_box_leakage(table, epsilon=epsilon).value
    assert bound == pytest.approx(best_mechanism(table.probabilities, epsilon), rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_certificate_holds_in_exact_rationals(seed, monkeypatch):
    """The plan that was evaluated, in fractions: its rows sum to P, its value is not above."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    first, second = rng.dirichlet(np.full(size, 0.6)), rng.dirichlet(np.full(size, 0.6))
    factors = rng.integers(1, 40, size=(size, size)) / 4 + 1  # e^c, exact in binary
    plans = []

    def remember(coupling, supply, demand, cost):
        value = original(coupling, supply, demand, cost)
        plans.append((value, coupling.copy(), supply, demand))
        return value

    original = lipschitz._certified
    monkeypatch.setattr(lipschitz, "_certified", remember)
    found = lipschitz.lipschitz_bound(first, second, np.log(factors))
    value, plan, supply, demand = min(plans, key=lambda one: one[0])
    assert found == value
    rows = [[Fraction(float(cell)) for cell in row] for row in np.maximum(plan, 0.0)]
    exact = [
        [cell * Fraction(float(total)) / sum(row) for cell in row]
        for row, total in zip(rows, supply, strict=True)
    ]
    assert [sum(row) for row in exact] == [Fraction(float(total)) for total in supply]
    loads = [
        sum(exact[k][column] * Fraction(float(factors[k, column])) for k in range(size))
        / Fraction(float(demand[column]))
        for column in range(size)
    ]
    assert float(max(loads)) <= math.exp(found)


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_solved_exactly(seed):
    rng = np.random.default_rng(seed)
    atoms = int(rng.integers(2, 9))
    first, second = rng.dirichlet(np.full(atoms, 0.4), size=(2, 5))
    first[:, rng.integers(atoms)], second[:, rng.integers(atoms)] = 0.0, 0.0
    first /= first.sum(axis=1, keepdims=True)
    second /= second.sum(axis=1, keepdims=True)
    steps = rng.exponential(rng.choice([0.01, 1.0, 10.0]), size=atoms - 1)
    bounds = line_bounds(first, second, steps, additions=4)
    spreads = spread_bounds(first, second, steps.sum(), additions=4)
    for one, other, bound, spread in zip(first, second, bounds, spreads, strict=True):
        best = 0.0
        for signs in itertools.product([1, -1], repeat=atoms - 1):
            likelihood = np.exp(np.concatenate([[0.0], np.cumsum(signs * steps)]))
            best = max(best, math.log(one @ likelihood / (other @ likelihood)))
        rounding = 1e-15 * (1 + best)  # of the brute force
        assert best - rounding <= bound <= best * (1 + 1e-8) + 1e-10
        assert best - rounding <= spread <= steps.sum()


@pytest.mark.parametrize("seed", range(15))
def test_peeling_is_never_below_the_programs(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 4), values=(2, 3))
    epsilon = float(rng.choice([0.0, 0.3, 2.0]))
    weights = rng.normal(size=(2, len(table.names))) * rng.choice([0.2, 1.0])
    parts = [lower(pdp.Linear(weights=list(row)), table) for row in weights]
    answers = Contributions.joined(parts, [1.0, 1.0])
    (problem,) = split(table, answers, pdp.Adversaries.all())
    exact = dual_bound(problem, dp_epsilon=epsilon)
    peeled = peeled_bounds(table.probabilities, answers.in_every_cell(), epsilon)
    assert exact <= max(float(bound.max()) for bound in peeled.values()) * (1 + 1e-12)
    if epsilon == 0 and len(table.names) < 4:
        truth = worst_vector_leakage(
            table.probabilities,
            table.domains,
            lambda x: tuple(float(np.dot(row, x)) for row in weights),
            [1.0, 1.0],
            lambda _i, _known: True,
        )
        assert truth <= exact


def test_groups_and_chains_agree_with_their_tables():
    rng = np.random.default_rng(3)
    for size in (1, 2, 3, 5):
        law = rng.dirichlet(np.ones(size + 1))
        law[rng.integers(size + 1)] = 0.0
        group = pdp.BinaryGroup(count_probabilities=law / law.sum())
        here = pdp.black_box_leakage(group, epsilon=0.7).value
        assert here == pytest.approx(
            pdp.black_box_leakage(group.to_table(), epsilon=0.7).value, rel=1e-6
        )
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=5)
    small = pdp.black_box_leakage(chain.to_table(), epsilon=0.2).value
    assert pdp.black_box_leakage(chain, epsilon=0.2).value == pytest.approx(small, rel=1e-6)
    long = pdp.MarkovChain(transition=chain.transition, length=5000)
    bound = pdp.black_box_leakage(long, epsilon=0.2)
    assert bound.method == "birkhoff"
    assert small < bound.value < 1.0


def test_large_models_fall_back_to_sound_bounds():
    assert pdp.black_box_leakage(pdp.Unknown(size=5, domain=[0, 1]), epsilon=0.1).value == (
        pytest.approx(0.5)
    )
    cells = np.random.default_rng(0).dirichlet(np.ones(2**14)).reshape((2,) * 14)
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 14)
    assert pdp.black_box_leakage(table, epsilon=0.1).method == "group"
    pair = pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    assert pdp.black_box_leakage(pair, epsilon=0.1).value == pytest.approx(0.2)
    apart = pdp.Gaussian(covariance=np.diag([1.0, 2.0, 3.0]), bounds=(0, 1))
    assert pdp.black_box_leakage(apart, epsilon=0.1).value == pytest.approx(0.1)
    groups = pdp.BinaryGroup(count_probabilities=np.full(301, 1 / 301))
    # One coupling of all members moves 124 others with x_i: the largest difference of quantiles.
    assert pdp.black_box_leakage(groups, epsilon=0.01).value == pytest.approx(1.25)


def test_independent_blocks_leak_what_the_worst_of_them_leaks():
    rng = np.random.default_rng(1)
    tables = [random_table(rng, tuples=(2, 2), values=(2, 2)) for _ in range(2)]
    each = [pdp.black_box_leakage(table, epsilon=0.5).value for table in tables]
    blocks = pdp.Blocks(models=tables, counts=[100, 3])
    assert pdp.black_box_leakage(blocks, epsilon=0.5).value == pytest.approx(max(each), rel=1e-9)
    weakest = pdp.Adversaries.weakest()
    assert pdp.black_box_leakage(blocks, epsilon=0.5, adversaries=weakest).value <= max(each)


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
@pytest.mark.parametrize(
    "model",
    [
        random_table(np.random.default_rng(2), tuples=(3, 3), values=(2, 3)),
        pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.1, 0.4]),
        pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=60),
        pdp.GaussianGroup(size=4, correlation=0.3, bounds=(0, 1)),
    ],
    ids=["table", "group", "chain", "Gaussian"],
)
def test_a_budget_is_the_largest_that_keeps_epsilon(model, neighbours):
    budget = pdp.dp_budget(model, epsilon=1.0, neighbours=neighbours)
    options = {"neighbours": neighbours}
    assert pdp.black_box_leakage(model, epsilon=budget, **options).value <= 1.0
    assert pdp.black_box_leakage(model, epsilon=budget * 1.00001, **options).value > 1.0
    if neighbours == "add-remove":
        assert budget == pytest.approx(pdp.dp_budget(model, epsilon=1.0) / 2, rel=1e-5)


def test_independent_tuples_keep_the_whole_budget():
    table = pdp.JointTable(probabilities=np.full((2, 2), 0.25), domains=[[0, 1]] * 2)
    assert pdp.dp_budget(table, epsilon=1.0) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, "1", True])
def test_nonsense_is_refused(epsilon):
    table = pdp.JointTable(probabilities=np.full((2, 2), 0.25), domains=[[0, 1]] * 2)
    for ask in (pdp.black_box_leakage, pdp.dp_budget):
        with pytest.raises(pdp.PdpError, match="epsilon"):
            ask(table, epsilon=epsilon)
    with pytest.raises(pdp.PdpError, match="neighbours"):
        pdp.dp_budget(table, epsilon=1.0, neighbours="replace")


@pytest.mark.parametrize("ask", [pdp.black_box_leakage, pdp.dp_budget])
def test_a_private_model_warns_once_where_it_is_asked(ask):
    def pair(provenance):
        return pdp.JointTable(
            probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, provenance=provenance
        )

    with pytest.warns(pdp.PrivacyLeakWarning, match="private rows") as caught:
        found = ask(pair("private"), epsilon=1.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found == ask(pair("public"), epsilon=1.0)  # where a warning would be an error
    with pytest.raises(pdp.ModelError, match="pass its model_"):
        ask(pdp.TableEstimator().fit(pd.DataFrame({"a": [0, 1], "b": [1, 0]})), epsilon=1.0)


@pytest.mark.parametrize("epsilon", [1e18, 1e30, 1e250])
def test_huge_budgets_come_to_an_end(epsilon):
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    assert epsilon <= pdp.black_box_leakage(pair, epsilon=epsilon).value <= 2.001 * epsilon
