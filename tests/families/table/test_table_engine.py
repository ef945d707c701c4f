"""The table engine against an independent oracle, on the paper's examples and at random."""

import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.oracles import brute_force as oracle
from tests.support.marks import bounds_checked
from tests.support.random_models import adversary_kinds, random_case, random_table

BINARY = [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("name", "cells", "domains", "value", "secrets"),
    [
        ("Example 2 (a)", [[0.3, 0.2], [0.2, 0.3]], BINARY, 1.1853759, (0, 1)),
        ("Example 2 (b)", [[0.2, 0.3], [0.3, 0.2]], BINARY, 0.8146241, (0, 1)),
        ("Example 3 (a')", [[0.49, 0.01], [0.01, 0.49]], BINARY, 1.9534887, (0, 1)),
        ("Example 3 (b')", [[0.01, 0.49], [0.49, 0.01]], BINARY, 0.0465113, (0, 1)),
        ("Example 4 (c)", [[0.5, 0], [0, 0.5]], BINARY, 2.0, (0, 1)),
        ("Example 4 (d)", [[0.5, 0], [0, 0.5]], [[0, 1], [0, 5]], 6.0, (0, 1)),
        ("counterexample", [[0, 0.5, 0], [0.25, 0, 0.25]], [[0, 1], [-1, 0, 1]], 1.4337808, (1, 0)),
    ],
)  # fmt: skip
def test_reference_values_of_the_weakest_adversary(name, cells, domains, value, secrets):
    table = pdp.JointTable(probabilities=cells, domains=domains)
    leak = pdp.leakage(table, pdp.Sum(), adversaries=pdp.Adversaries.exactly("x1"))
    assert leak.value == pytest.approx(value, abs=5e-8), name
    assert leak.exact
    assert leak.witness.target == "x1"
    assert leak.witness.known == {}
    assert leak.witness.secrets == secrets
    there = oracle.placed(leak.witness, table.names)
    attained = oracle.log_density_ratio(table.probabilities, table.domains, sum, 1.0, there)
    assert attained == pytest.approx(value, abs=5e-8)


def test_example_2_the_strongest_adversary_learns_one():
    table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=BINARY)
    leak = pdp.leakage(table, pdp.Sum(), adversaries=pdp.Adversaries.exactly("x1", known=["x2"]))
    assert leak.value == pytest.approx(1.0, abs=1e-12)
    assert leak.value >= 1.0 >= leak.lower


def test_the_counterexample_is_worst_at_output_2():
    table = pdp.JointTable(
        probabilities=[[0, 0.5, 0], [0.25, 0, 0.25]], domains=[[0, 1], [-1, 0, 1]]
    )
    leak = pdp.leakage(table, pdp.Sum(), adversaries=pdp.Adversaries.exactly("x1"))
    assert leak.witness.output == 2.0


@pytest.mark.parametrize("seed", bounds_checked(range(300), 6, quick=40))
def test_equals_brute_force_for_every_kind_of_adversaries(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    scale = float(np.exp(rng.uniform(-2, 3)))
    for adversaries, admits in adversary_kinds(rng, case.table.names):
        value, _ = oracle.worst_leakage(
            case.probabilities, case.domains, case.function, scale, admits
        )
        leak = pdp.leakage(case.table, case.query, scale=scale, adversaries=adversaries)
        assert leak.value == pytest.approx(value, rel=1e-9, abs=1e-11), adversaries
        assert leak.lower <= value * (1 + 1e-12) + 1e-13
        assert leak.value >= value * (1 - 1e-14) - 1e-15
        assert leak.exact


@pytest.mark.parametrize("seed", range(60))
def test_the_witness_attains_the_leakage(seed):
    rng = np.random.default_rng(1000 + seed)
    case = random_case(rng)
    scale = float(np.exp(rng.uniform(-1, 2)))
    for adversaries, _ in adversary_kinds(rng, case.table.names):
        leak = pdp.leakage(case.table, case.query, scale=scale, adversaries=adversaries)
        witness = leak.witness
        if witness is None:
            assert leak.value == 0
            continue
        there = oracle.placed(witness, case.table.names)
        attained = oracle.log_density_ratio(
            case.probabilities, case.domains, case.function, scale, there
        )
        assert attained == pytest.approx(leak.value, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_theorem_1_independent_tuples_make_knowledge_useless(seed):
    rng = np.random.default_rng(seed)
    laws = [rng.dirichlet(np.ones(size)) for size in rng.integers(2, 4, size=3)]
    cells = laws[0][:, None, None] * laws[1][:, None] * laws[2]
    domains = [rng.normal(size=len(law)).tolist() for law in laws]
    table = pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)
    local = pdp.sensitivity(table, pdp.Sum()).local
    for target in table.names:
        strongest = local[target] / 0.7
        for known in ([], [n for n in table.names if n != target][:1]):
            adversary = pdp.Adversaries.exactly(target, known=known)
            leak = pdp.leakage(table, pdp.Sum(), scale=0.7, adversaries=adversary)
            assert leak.value <= strongest * (1 + 1e-9)
    everyone = pdp.leakage(table, pdp.Sum(), scale=0.7)
    assert everyone.value == pytest.approx(max(local.values()) / 0.7, rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_theorem_4_the_strongest_adversary_learns_what_plain_dp_says(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    local = pdp.sensitivity(case.table, case.query).local
    for target in case.table.names:
        known = [name for name in case.table.names if name != target]
        leak = pdp.leakage(
            case.table, case.query, scale=0.3,
            adversaries=pdp.Adversaries.exactly(target, known=known),
        )  # fmt: skip
        # The rounding of what the other tuples add is charged, though they are known here.
        assert leak.value == pytest.approx(local[target] / 0.3, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("seed", range(4))
def test_extreme_scales_equal_mpmath(factor, seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 3), values=(2, 3))
    scale = factor * pdp.sensitivity(table, pdp.Sum()).overall
    for adversaries, admits in adversary_kinds(rng, table.names):
        value, _ = oracle.worst_leakage_mpmath(
            table.probabilities, table.domains, sum, scale, admits
        )
        leak = pdp.leakage(table, pdp.Sum(), scale=scale, adversaries=adversaries)
        assert math.isfinite(leak.value)
        assert leak.value >= value >= leak.lower
        assert leak.value == pytest.approx(float(value), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("rare", [1e-300, 1e-100, 1e-12])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0, 1e7])
def test_rare_cells_and_large_values_equal_mpmath(rare, scale):
    cells = np.array([[0.5, rare], [rare / 3, 0.5]])
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1], [1_000_000, 1_000_005.25]])
    for adversaries, admits in adversary_kinds(np.random.default_rng(3), table.names):
        value, _ = oracle.worst_leakage_mpmath(
            table.probabilities, table.domains, sum, scale, admits
        )
        leak = pdp.leakage(table, pdp.Sum(), scale=scale, adversaries=adversaries)
        assert leak.value >= value >= leak.lower
        assert leak.value == pytest.approx(float(value), rel=1e-9)


def test_a_cell_of_mass_1e_12_counts_as_possible():
    table = pdp.JointTable(
        probabilities=[[0.5 - 1e-12, 1e-12], [1e-12, 0.5 - 1e-12]], domains=[[0, 1], [0, 5]]
    )
    impossible = pdp.JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[[0, 1], [0, 5]])
    knows = pdp.Adversaries.exactly("x1", known=["x2"])
    for model in (table, impossible):
        assert pdp.leakage(model, pdp.Sum(), adversaries=knows).value == pytest.approx(1.0)
        assert pdp.leakage(model, pdp.Sum()).value == pytest.approx(6.0)


def test_zero_weight_tuples_are_still_attacked():
    table = pdp.JointTable(probabilities=[[0.49, 0.01], [0.01, 0.49]], domains=BINARY)
    leak = pdp.leakage(
        table, pdp.Sum(over=["x2"]), adversaries=pdp.Adversaries.exactly("x1"), scale=0.1
    )
    assert leak.value > 3.8


@pytest.mark.parametrize("seed", range(20))
def test_a_time_limit_gives_a_bracket_around_the_truth(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    exact = pdp.leakage(case.table, case.query)
    for limit in (0.0, 0.001):
        leak = pdp.leakage(case.table, case.query, time_limit=limit)
        assert leak.lower <= exact.value * (1 + 1e-12)
        assert leak.value >= exact.lower
