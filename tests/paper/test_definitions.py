"""Definitions 1 and 2, Eq. 3, Remark 1, Theorems 1 and 4, Examples 1 to 4, Figures 1 and 2."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.oracles import brute_force as oracle

SUM = pdp.Sum()

# The paper's Table II; rows of the arrays are x1, columns x2.
TABLE_A = [[0.3, 0.2], [0.2, 0.3]]
TABLE_B = [[0.2, 0.3], [0.3, 0.2]]
TABLE_C = [[0.5, 0.0], [0.0, 0.5]]
STRONG_A = [[0.49, 0.01], [0.01, 0.49]]
STRONG_B = [[0.01, 0.49], [0.49, 0.01]]


def two_tuples(probabilities, second_domain=(0, 1)):
    return pdp.JointTable(probabilities=probabilities, domains=[(0, 1), second_domain])


def random_table(rng, *sizes):
    law = rng.dirichlet(np.ones(math.prod(sizes))).reshape(sizes)
    return pdp.JointTable(probabilities=law, domains=[range(size) for size in sizes])


def leak(table, target, known=(), scale=1.0, query=SUM):
    adversary = pdp.Adversaries.exactly(target, known=known)
    return pdp.leakage(table, query, scale=scale, adversaries=adversary)


def adversaries(table):
    for target in table.names:
        others = [name for name in table.names if name != target]
        for size in range(len(others) + 1):
            for known in itertools.combinations(others, size):
                yield target, known


def test_definition_1_is_the_strongest_adversary():
    table = random_table(np.random.default_rng(1), 2, 3, 2)
    strongest = pdp.leakage(table, SUM, scale=0.7, adversaries=pdp.Adversaries.strongest())
    assert strongest.value == pytest.approx(2 / 0.7, rel=1e-12)


def test_definition_2():
    table = random_table(np.random.default_rng(2), 2, 3, 2)
    for target, known in adversaries(table):
        positions = [table.names.index(name) for name in (target, *known)]
        reference = oracle.adversary_leakage(
            table.probabilities, table.domains, sum, 0.8, positions[0], frozenset(positions[1:])
        )
        assert leak(table, target, known, 0.8).value == pytest.approx(reference, rel=1e-9)


def test_equation_3_leakage_is_the_largest_gain_of_log_odds():
    table = random_table(np.random.default_rng(3), 3, 2, 2)
    found = leak(table, "x1", ["x2"])
    gains = [
        pdp.posterior(
            table, SUM, scale=1.0, target="x1", known={"x2": x2}, output=output
        ).log_odds_gain(v, w)
        for x2 in (0, 1)
        for output in (-math.inf, *np.linspace(-1, 5, 25), math.inf)
        for v, w in itertools.permutations(range(3), 2)
    ]
    assert max(gains) == pytest.approx(found.value, rel=1e-9)
    # It is the same for every prior belief, and equals the gain of the posterior's own odds.
    witness = found.witness
    first, second = witness.secrets
    for prior in (None, {first: 0.2, second: 0.7, 3 - first - second: 0.1}):
        beliefs = pdp.posterior(
            table,
            SUM,
            scale=1.0,
            target="x1",
            known=witness.known,
            output=witness.output,
            prior=prior,
        )
        odds_after = beliefs.posterior[first] / beliefs.posterior[second]
        odds_before = beliefs.prior[first] / beliefs.prior[second]
        assert math.log(odds_after / odds_before) == pytest.approx(found.value, rel=1e-9)


def test_theorem_1():
    rng = np.random.default_rng(4)
    laws = [rng.dirichlet(np.ones(size)) for size in (2, 3, 2)]
    joint = np.einsum("i,j,k->ijk", *laws)
    table = pdp.JointTable(probabilities=joint / joint.sum(), domains=[(0, 1), (0, 2, 5), (0, 3)])
    reach = {"x1": 1, "x2": 5, "x3": 3}
    for target, known in adversaries(table):
        assert leak(table, target, known, 2.0).value == pytest.approx(reach[target] / 2)


def test_theorem_1_needs_an_additive_query():
    coins = two_tuples(np.full((2, 2), 0.25))
    largest = pdp.Custom(function=max)
    assert leak(coins, "x1", ["x2"], query=largest).value == pytest.approx(1)
    assert leak(coins, "x1", query=largest).value < 0.65


def test_remark_1_bounds_by_group_dp_not_by_dp():
    rng = np.random.default_rng(5)
    for _ in range(20):
        table = random_table(rng, 2, 3, 2)
        reach = {"x1": 1, "x2": 2, "x3": 1}
        for target, known in adversaries(table):
            group = sum(reach[name] for name in table.names if name not in known)
            assert leak(table, target, known).value <= group * (1 + 1e-12)
    # "DP provides an upper bound" holds only when it counts all |U| + 1 tuples.
    assert leak(two_tuples(TABLE_A), "x1").value > 1


def test_theorem_4():
    rng = np.random.default_rng(6)
    for _ in range(20):
        table = random_table(rng, 2, 3, 2)
        for target, reach in (("x1", 1), ("x2", 2), ("x3", 1)):
            others = [name for name in table.names if name != target]
            assert leak(table, target, others, 0.4).value == pytest.approx(reach / 0.4, rel=1e-12)


FIVE_CORRELATIONS = {
    "perfectly positive": TABLE_C,
    "positive": TABLE_A,
    "independent": [[0.25, 0.25], [0.25, 0.25]],
    "negative": TABLE_B,
    "perfectly negative": [[0.0, 0.5], [0.5, 0.0]],
}
# log odds of s1 = 1 against 0 gained by seeing r = 2 at scale 1, knowing nothing.
GAINS = {
    "perfectly positive": 2.0,
    "positive": 1.1853759,
    "independent": 1.0,
    "negative": 0.8146241,
    "perfectly negative": 0.0,
}


@pytest.mark.parametrize("correlation", FIVE_CORRELATIONS)
def test_example_1_and_figure_2_weak_adversary(correlation):
    table = two_tuples(FIVE_CORRELATIONS[correlation])
    beliefs = pdp.posterior(table, SUM, scale=1.0, target="x1", output=2.0)
    assert beliefs.prior == {0: 0.5, 1: 0.5}
    assert beliefs.log_odds_gain(1, 0) == pytest.approx(GAINS[correlation], abs=5e-8)
    assert beliefs.posterior[1] == pytest.approx(1 / (1 + math.exp(-GAINS[correlation])), rel=1e-7)


@pytest.mark.parametrize(
    ("correlation", "before"),
    [
        ("perfectly positive", 1.0),
        ("positive", 0.6),
        ("independent", 0.5),
        ("negative", 0.4),
        ("perfectly negative", 0.0),
    ],
)
def test_example_1_and_figure_2_strong_adversary(correlation, before):
    table = two_tuples(FIVE_CORRELATIONS[correlation])
    beliefs = pdp.posterior(table, SUM, scale=1.0, target="x1", known={"x2": 1}, output=2.0)
    assert beliefs.prior[1] == pytest.approx(before)
    # Cases 1 and 2: what is known settles s1, and r = 2 adds nothing.
    odds = before * math.e / (before * math.e + 1 - before)
    assert beliefs.posterior[1] == pytest.approx(odds)
    # Knowing everyone else, the output itself always tells as much as plain DP says.
    assert beliefs.log_odds_gain(1, 0) == pytest.approx(1.0)


def test_figure_1_first_impression_instead_of_the_correlation():
    table = two_tuples(TABLE_A)
    beliefs = pdp.posterior(
        table, SUM, scale=1.0, target="x1", known={"x2": 1}, output=2.0, prior={0: 0.5, 1: 0.5}
    )
    assert beliefs.posterior[1] == pytest.approx(math.e / (1 + math.e))


def test_example_2():
    positive, negative = two_tuples(TABLE_A), two_tuples(TABLE_B)
    assert leak(positive, "x1", ["x2"]).value == pytest.approx(1)
    assert leak(positive, "x1").value == pytest.approx(1.1853759, abs=5e-8)
    assert f"{leak(positive, 'x1').value:.2f}" == "1.19"  # as printed
    assert leak(negative, "x1").value == pytest.approx(0.8146241, abs=5e-8)
    # The paper prints 0.82, which is this number rounded up; 0.81 is the nearest.
    assert math.ceil(100 * leak(negative, "x1").value) == 82
    # Eq. 5 and 6
    assert leak(positive, "x1").lower > leak(positive, "x1", ["x2"]).value
    assert leak(negative, "x1").value < leak(negative, "x1", ["x2"]).lower


def test_example_3():
    # The paper writes A(1,{2}) beside these two numbers; they belong to A(1,∅).
    assert f"{leak(two_tuples(STRONG_A), 'x1').value:.2f}" == "1.95"
    assert leak(two_tuples(STRONG_A), "x1").value == pytest.approx(1.9534887, abs=5e-8)
    assert f"{leak(two_tuples(STRONG_B), 'x1').value:.2f}" == "0.05"
    assert leak(two_tuples(STRONG_B), "x1").value == pytest.approx(0.0465113, abs=5e-8)
    assert leak(two_tuples(STRONG_A), "x1", ["x2"]).value == pytest.approx(1)
    # Eq. 7 and 8
    assert leak(two_tuples(STRONG_A), "x1").lower > leak(two_tuples(TABLE_A), "x1").value
    assert leak(two_tuples(STRONG_B), "x1").value < leak(two_tuples(TABLE_B), "x1").lower


def test_example_4():
    assert leak(two_tuples(TABLE_C), "x1").value == pytest.approx(2, rel=1e-12)
    assert leak(two_tuples(TABLE_C, (0, 5)), "x1").value == pytest.approx(6, rel=1e-12)


def test_linear_query_is_a_sum_of_scaled_tuples():
    table = random_table(np.random.default_rng(7), 2, 3, 2)
    weights = {"x1": 2.0, "x2": -1.0, "x3": 0.5}
    scaled = pdp.JointTable(
        probabilities=table.probabilities, domains=[(0, 2), (0, -1, -2), (0, 0.5)]
    )
    weighted = pdp.leakage(table, pdp.Linear(weights=weights), scale=1.3)
    assert weighted.value == pytest.approx(pdp.leakage(scaled, SUM, scale=1.3).value, rel=1e-12)
    # ρ'_ij = sign(a_i a_j) ρ_ij
    for i, j in itertools.combinations(table.names, 2):
        sign = np.sign(weights[i] * weights[j])
        assert scaled.correlation(i, j) == pytest.approx(sign * table.correlation(i, j))
