"""Theorem 3: increment ratio and correlation; Lemma 3 in its corrected form."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate import paper

SUM = pdp.Sum()


def random_table(rng, *sizes, concentration=1.0):
    law = rng.dirichlet(np.full(math.prod(sizes), concentration)).reshape(sizes)
    domains = [np.sort(rng.normal(scale=2.0, size=size)).tolist() for size in sizes]
    return pdp.JointTable(probabilities=law, domains=domains)


def ratios(table, scale, target="x1", other="x2", given=None):
    return paper.increment_ratios(table, SUM, scale=scale, target=target, other=other, given=given)


def test_equations_9_to_13_from_plain_sums():
    rng = np.random.default_rng(9)
    table = random_table(rng, 3, 2, 2)
    scale, known = 0.7, table.domains[2][1]
    law = table.probabilities[:, :, 1]
    means = [
        sum(p * math.exp(-x / scale) for p, x in zip(row, table.domains[1], strict=True)) / sum(row)
        for row in law
    ]
    found = paper.impacts(table, SUM, scale=scale, target="x1", other="x2", given={"x3": known})
    values = table.domains[0]
    assert list(found) == list(itertools.combinations(values, 2))
    reach = (table.domains[1][1] - table.domains[1][0]) / scale
    found_ratios = ratios(table, scale, given={"x3": known})
    for (v, w), impact in found.items():
        expected = math.log(means[values.index(v)] / means[values.index(w)])
        assert impact == pytest.approx(expected, rel=1e-12)
        assert found_ratios[v, w] == pytest.approx(expected / reach, rel=1e-12)


def test_pairs_are_ordered_by_contribution_not_by_domain():
    law = [[0.3, 0.2], [0.1, 0.4]]
    up = pdp.JointTable(probabilities=law, domains=[[0, 1], [0, 1]])
    down = pdp.JointTable(probabilities=law[::-1], domains=[[1, 0], [0, 1]])
    assert ratios(up, 1.0) == ratios(down, 1.0)
    negative = pdp.Linear(weights=[-1, 1])
    assert list(paper.impacts(up, negative, scale=1.0, target="x1", other="x2")) == [(1, 0)]


def test_impacts_at_extreme_scales_are_finite():
    table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.0, 0.5]], domains=[[0, 1], [0, 1]])
    for scale in (1e-6, 1e6):
        ((_, ratio),) = ratios(table, scale).items()
        expected = 1.0 if scale < 1 else 0.6  # all of the reach, or the shift of the mean
        assert ratio == pytest.approx(expected, rel=1e-5)


def test_theorem_3_1():
    rng = np.random.default_rng(31)
    for _ in range(200):
        table = random_table(rng, 3, 4, 2, concentration=0.3)
        for scale in (0.05, 1.0, 20.0):
            for given in (None, {"x3": table.domains[2][0]}):
                for ratio in ratios(table, scale, given=given).values():
                    assert -1 - 1e-12 <= ratio <= 1 + 1e-12


def test_theorem_3_2():
    rng = np.random.default_rng(32)
    for _ in range(200):
        table = random_table(rng, 2, 2, 2)
        scale = 10 ** rng.uniform(-1, 1)
        for value in table.domains[2]:
            ((_, ratio),) = ratios(table, scale, given={"x3": value}).items()
            rho = table.correlation("x1", "x2", given={"x3": value})
            assert np.sign(ratio) == np.sign(rho)
    independent = pdp.JointTable(probabilities=[[0.25, 0.25]] * 2, domains=[[0, 1], [0, 1]])
    assert ratios(independent, 1.0) == {(0, 1): 0.0}


# x2 is 1 for sure under x1 = 1, and spread over 0, 1, 2 under x1 = 0, a little above 1 on average.
THEOREM_3_3 = [[0.20, 0.08, 0.22], [0.0, 0.5, 0.0]]


def test_theorem_3_3_fails():
    table = pdp.JointTable(probabilities=THEOREM_3_3, domains=[[0, 1], [0, 1, 2]])
    scale = 2.02  # just above GS = 2
    assert table.correlation("x1", "x2") < -0.02
    ((_, ratio),) = ratios(table, scale).items()
    assert ratio > 0.02
    # The first-order approximation behind the claim becomes true as the scale grows.
    ((_, ratio),) = ratios(table, 100.0).items()
    assert ratio < 0


def test_theorem_3_3_fails_in_four_percent_of_random_tables():
    rng = np.random.default_rng(33)
    wrong = 0
    for _ in range(2000):
        law = rng.dirichlet(np.ones(6)).reshape(2, 3)
        table = pdp.JointTable(probabilities=law, domains=[[0, 1], [0, 1, 2]])
        ((_, ratio),) = ratios(table, 2.02).items()
        wrong += ratio * table.correlation("x1", "x2") < 0
    assert 0.025 < wrong / 2000 < 0.055


def test_after_theorem_3_larger_domains():
    """At least one IR has the sign of ρ, as long as x_j has two values."""
    rng = np.random.default_rng(34)
    for _ in range(300):
        table = random_table(rng, 4, 2)
        signs = {float(np.sign(ratio)) for ratio in ratios(table, 0.5).values()}
        assert float(np.sign(table.correlation("x1", "x2"))) in signs
    # With three values of x_j it falls with Theorem 3 (3), a pair of secrets being enough.
    table = pdp.JointTable(probabilities=THEOREM_3_3, domains=[[0, 1], [0, 1, 2]])
    assert min(ratios(table, 2.02).values()) > 0 > table.correlation("x1", "x2")


def test_lemma_3():
    """Cov(x1, x2) = p1·p2·(x12 − x11)·(y2 − y1): the paper's proof leaves out p1·p2."""
    rng = np.random.default_rng(35)
    for _ in range(200):
        table = random_table(rng, 2, 2)
        law, (first, second) = table.probabilities, map(np.array, table.domains)
        p1, p2 = law.sum(axis=1)
        y1, y2 = law @ second / (p1, p2)
        covariance = first @ law @ second - (first @ law.sum(axis=1)) * (law.sum(axis=0) @ second)
        printed = (first[1] - first[0]) * (y2 - y1)
        assert covariance == pytest.approx(p1 * p2 * printed, rel=1e-9, abs=1e-12)
        assert abs(printed) > 3.9 * abs(covariance)
        # What the lemma concludes holds: p1·p2 does not change the sign.
        sign = np.sign(table.correlation("x1", "x2"))
        assert sign == np.sign(y2 - y1) == np.sign(law[0, 0] / p1 - law[1, 0] / p2)
        gap = (second[1] - second[0]) * (law[0, 0] / p1 - law[1, 0] / p2)
        assert y2 - y1 == pytest.approx(gap, rel=1e-9, abs=1e-12)
