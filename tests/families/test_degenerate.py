"""Degenerate models of every family keep the promise: a seeded part of the long comparison."""

import math
from fractions import Fraction

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.benchmarks.degenerate import FAULTS, judged_apart
from tests.oracles import brute_force as oracle, exact as exact_oracle
from tests.oracles.adversaries import everyone
from tests.support.degenerate_models import FAMILIES, stationary
from tests.support.marks import slow_after


@pytest.mark.parametrize("number", slow_after(1, [40, 500]))
def test_no_degenerate_model_is_unsound_raises_raw_or_crashes(number):
    found = list(judged_apart(range(number)))
    assert [seed for seed, *_ in found] == list(range(number))
    assert [one for one in found if one[3].startswith(FAULTS)] == []
    compared = [family for _, family, _, verdict, _ in found if verdict in ("right", "bound")]
    assert set(compared) == set(FAMILIES)


@pytest.mark.parametrize("seed", range(20))
def test_the_exact_oracle_agrees_with_the_plain_one(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2)
    cells = rng.dirichlet(np.ones(12)).reshape(sizes)
    domains = [rng.choice(np.arange(-3, 6), size, replace=False).tolist() for size in sizes]
    law = {cell: Fraction(float(cells[cell])) for cell in np.ndindex(sizes)}
    answers = {
        cell: (Fraction(sum(d[k] for d, k in zip(domains, cell, strict=True))),) for cell in law
    }
    found = exact_oracle.worst_leakage(law, sizes, answers, [0.7], everyone)
    assert found.value == pytest.approx(
        oracle.worst_leakage(cells, domains, sum, 0.7, everyone)[0], rel=1e-12
    )
    again = exact_oracle.recomputed(law, sizes, answers, [0.7], found)
    assert float(again) == pytest.approx(found.value, rel=1e-12)


def test_the_exact_oracle_does_not_underflow():
    # 1e-200 twice: in floats the third state could not be reached at all.
    r = Fraction(1e-200)
    steps = [[1 - r, r, Fraction(0)], [1 - r, Fraction(0), r], [Fraction(1), Fraction(0), 0]]
    law = stationary(steps)
    assert law[2] == law[1] * r > 0
    assert exact_oracle.log_of(law[2]) == pytest.approx(2 * math.log(1e-200), rel=1e-12)


def test_mechanisms_of_the_oracle_reach_the_optimum_of_a_pair():
    law = {(a, b): Fraction(2, 5) if a == b else Fraction(1, 10) for a in (0, 1) for b in (0, 1)}
    found = exact_oracle.private_mechanisms(law, (2, 2), 1.0, everyone)
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    assert found == pytest.approx(pdp.black_box_leakage(pair, epsilon=1.0).value, rel=1e-9)
