"""Corollary 1: group DP, the weakest and the strongest adversary as special cases."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate import paper

SUM = pdp.Sum()
ALL, WEAKEST = pdp.Adversaries.all(), pdp.Adversaries.weakest()


def given_graph(first_layer, impact):
    """A graph over tuples 0 … n−1 whose edges are impact(j)."""
    size = len(first_layer)
    edges = np.broadcast_to([impact(j) for j in range(size)], (size, size))
    edges = np.repeat(edges[:, :, np.newaxis], 2**size, axis=2)
    return paper.WeightedHierarchicalGraph(dict(enumerate(first_layer)), edges)


def percent(table):
    law = np.array(table) / 100
    return pdp.JointTable(probabilities=law, domains=[range(size) for size in law.shape])


def leak(table, adversaries=ALL):
    return pdp.leakage(table, SUM, scale=1.0, adversaries=adversaries)


def test_corollary_1_1_with_ratios_instead_of_impacts():
    reach = [1.0, 2.0, 0.5, 3.0]
    group = given_graph(reach, lambda j: reach[j])  # every IR = 1
    assert paper.special_case(group) == "group"
    search = paper.full_space_search(group)
    assert search.value == search.layers[-1] == pytest.approx(sum(reach))
    # As printed, with IC = 1: no group DP, unless LS_j = λ for every tuple.
    printed = paper.full_space_search(given_graph(reach, lambda _: 1.0))
    assert printed.value == pytest.approx(3 + 3)
    assert paper.special_case(given_graph(reach, lambda _: 1.0)) == "weakest"


def test_corollary_1_1_on_a_table():
    table = pdp.JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[[0, 1], [0, 5]])
    graph = paper.graph(table, SUM, 2.0)
    assert paper.special_case(graph) == "group"
    assert paper.full_space_search(graph).value == pytest.approx(3)
    assert pdp.leakage(table, SUM, scale=2.0).value == pytest.approx(3)


def test_corollary_1_2_along_every_single_path():
    rng = np.random.default_rng(12)
    edges = rng.uniform(0.01, 1, size=(4, 4, 16))
    graph = paper.WeightedHierarchicalGraph(dict.fromkeys("abcd", 1.0), edges)
    assert paper.special_case(graph) == "weakest"
    values = [paper.chain_rule(graph, "a", unknown="bcd"[:size]).value for size in range(4)]
    assert values == sorted(values)


def test_corollary_1_2_fails_on_a_graph():
    """The smallest of several paths may fall from layer to layer though every edge is positive."""
    few, one, edges = frozenset(), frozenset, {}
    for i, j, k in ("abc", "bca", "cab"):
        edges |= {(i, k, one(j)): 0.9, (i, j, one(k)): 0.01, (i, j, few): 0.5, (i, k, few): 0.01}
    graph = paper.WeightedHierarchicalGraph(dict.fromkeys("abc", 1.0), edges)
    assert paper.special_case(graph) == "weakest"
    assert paper.full_space_search(graph).layers == pytest.approx((1.0, 1.9, 1.02))


def test_corollary_1_2_fails_on_a_table():
    table = percent([[[67, 9], [11, 4]], [[6, 1], [1, 1]]])
    graph = paper.graph(table, SUM, 1.0)
    assert paper.special_case(graph) == "weakest"
    search = paper.full_space_search(graph)
    assert search.layers[1] > search.layers[2] + 0.05
    # And of the leakage itself: whoever knows one tuple leaks more than whoever knows none.
    table = percent([[[68, 10], [11, 2]], [[6, 1], [1, 1]]])
    assert paper.special_case(paper.graph(table, SUM, 1.0)) == "weakest"
    assert leak(table).lower > leak(table, WEAKEST).value + 0.09
    assert len(leak(table).witness.known) == 1


def test_corollary_1_2_holds_for_two_yes_no_tuples():
    rng = np.random.default_rng(13)
    for _ in range(100):
        law = rng.dirichlet(np.ones(4)).reshape(2, 2)
        table = pdp.JointTable(probabilities=law, domains=[[0, 1], [0, 1]])
        case = paper.special_case(paper.graph(table, SUM, 1.0))
        assert case in ("weakest", "strongest")
        who = WEAKEST if case == "weakest" else pdp.Adversaries.strongest()
        assert leak(table).value == pytest.approx(leak(table, who).value, rel=1e-9)


def test_corollary_1_3_in_the_graph():
    """Every IC lies in [−LS_j/λ, 0): no node exceeds GS/λ, which the bottom layer attains."""
    rng = np.random.default_rng(14)
    for _ in range(50):
        reach = rng.uniform(0.2, 3, size=5)
        edges = -rng.uniform(0.01, 1, size=(5, 5, 32)) * reach[np.newaxis, :, np.newaxis]
        graph = paper.WeightedHierarchicalGraph(dict(enumerate(reach)), edges)
        assert paper.special_case(graph) == "strongest"
        search = paper.full_space_search(graph)
        assert search.value == search.layers[0] == reach.max()


def test_corollary_1_3_fails_for_the_leakage():
    table = percent([[3, 33, 9], [1, 45, 1], [2, 1, 5]])
    graph = paper.graph(table, SUM, 1.0)
    assert paper.special_case(graph) == "strongest"
    assert paper.full_space_search(graph).value == pytest.approx(2)
    assert leak(table, pdp.Adversaries.strongest()).value == pytest.approx(2)
    assert leak(table).lower > 2.38


def test_no_special_case():
    mixed = given_graph([1.0, 1.0, 1.0], lambda j: -0.5 if j else 0.5)
    assert paper.special_case(mixed) is None
    alone = paper.WeightedHierarchicalGraph({"a": 1.0}, np.full((1, 1, 2), np.nan))
    assert paper.special_case(alone) is None
