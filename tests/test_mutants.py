"""Small edits of the code that no other test noticed: each test here kills one.

Found by sampled mutation testing (`tests/benchmarks/mutation.py`).
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.composition.joint import Spending, spent
from pdp_calibrate.composition.table_dual import dual_bound
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.exchangeable.composed import group_of_two_values
from pdp_calibrate.families.gaussian.alike_search import group_slope
from tests.support.table_searches import setting_at

PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
HERE = {"x1": 1, "x2": 0}


def test_a_new_draw_starts_from_nothing_in_the_same_object():
    ledger = pdp.Ledger(PAIR, epsilon=1.0, draw="monday")
    ledger.release(pdp.Sum(), HERE, epsilon=0.6)
    before = ledger.would_spend(pdp.Sum(), epsilon=0.3)
    ledger.new_draw("tuesday")
    after = ledger.would_spend(pdp.Sum(), epsilon=0.3)
    assert after <= 0.3 * (1 + 1e-9) < before


@pytest.mark.parametrize("size", [3, 8, 40])
def test_the_rounding_of_a_slope_is_covered_where_one_is_unknown_and_correlation_is_extreme(size):
    rho = -(1 - 2.0**-40) / (size - 1)
    weights = np.random.default_rng(size).normal(size=size)
    knowledge = Knowledge(
        total=size, targets=tuple(range(size)), fewest=size - 2, most=size - 2, known=None
    )
    found = group_slope(weights, rho, knowledge)
    exact = Fraction(weights[found.target]) + Fraction(rho) / (1 + (size - 2) * Fraction(rho)) * (
        sum(Fraction(weights[place]) for place in found.unknown)
    )
    assert found.error > 0
    assert abs(exact) <= Fraction(abs(found.value)) + Fraction(found.error)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1 / 3])
def test_what_learning_leaked_is_added_rounding_up(epsilon):
    part = lower(pdp.Sum(), PAIR)
    spending = Spending().plus(part, 1.7, ranges=part.tuple_ranges(), rounding=0.0)
    alone, both = (
        Fraction(spent(PAIR, each, pdp.Adversaries.all()).value)
        for each in (spending, spending.plus_learning(epsilon))
    )
    assert alone + Fraction(epsilon) <= both <= (alone + Fraction(epsilon)) * (1 + Fraction(1e-12))


def test_two_answers_on_a_set_of_chains_have_an_upper_end_only():
    chain = pdp.MixingChain(length=3, states=[0, 1], diameter=1.0)
    two = pdp.leakage(chain, [pdp.Sum(over=[0]), pdp.Sum(over=[1, 2])], scale=[1.0, 1.0])
    one = pdp.leakage(chain, pdp.Sum(), scale=1.0)
    assert one.lower > 0.0
    assert two.lower == 0.0 < two.value


def test_exactly_the_whole_budget_may_be_spent():
    cal = pdp.calibrate(PAIR, pdp.Sum(), epsilon=0.5)
    needed = pdp.Ledger(PAIR, epsilon=10.0).would_spend(cal)
    ledger = pdp.Ledger(PAIR, epsilon=needed)
    ledger.spend(cal)
    assert ledger.spent == needed


def test_releases_come_back_as_they_were():
    counts = pdp.calibrate(PAIR, pdp.Histogram()).release(HERE)
    again = pdp.Release.from_json(counts.to_json())
    assert isinstance(again.value, pd.Series)
    assert again.value.equals(counts.value)
    total = pdp.calibrate(PAIR, pdp.Sum()).release(HERE)
    assert pdp.Release.from_json(total.to_json()).value == total.value


def test_the_furthest_distance_of_two_answers_is_rounded_up():
    for scale in (0.1, 0.3, 0.7, 1.1, 1.9, 3.7):
        problems = split(PAIR, lower(pdp.Sum(), PAIR), pdp.Adversaries.all())
        for problem in problems:
            assert Fraction(setting_at(problem, scale).furthest) * Fraction(scale) >= 2


@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_the_lower_end_of_an_unknown_group_is_below_the_upper(scale):
    crew = pdp.Unknown(size=3, domain=[0, 1])
    found = pdp.leakage(crew, pdp.Histogram(over=[0]), scale=scale)
    assert found.lower == pytest.approx(2 / scale)
    assert found.lower <= found.value <= 2 / scale * (1 + 1e-12)


def test_queries_that_are_multiples_of_each_other_cost_their_distance_rounded_up(monkeypatch):
    part = lower(pdp.Sum(), PAIR)
    spending = Spending(parts=(part, part), scales=(1.7, 1.7))
    bounds = []
    for distance in (0.0, 0.25):
        monkeypatch.setattr(Spending, "merged", lambda self, moved=distance: (self, moved))
        bounds.append(Fraction(spent(PAIR, spending, pdp.Adversaries.all()).value))
    assert Fraction(1, 4) < bounds[1] - bounds[0] < Fraction(1, 4) + Fraction(1, 10**9)


def test_the_unit_of_rounding_is_that_of_doubles():
    """Every bound on rounding is a multiple of it: the next number after 1 lies two units away."""
    assert np.nextafter(1.0, 2.0) - 1.0 == 2 * UNIT_ROUNDOFF
    assert 1.0 + UNIT_ROUNDOFF == 1.0


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("step", [0.1, 1.3])
def test_counting_ones_is_the_program_on_the_table_of_a_group(size, step):
    group = pdp.BinaryGroup(count_probabilities=np.arange(1, size + 2) / sum(range(1, size + 2)))
    answer = Contributions.joined([lower(pdp.Sum(), group)], [1 / step])
    (problem,) = split(group, answer, pdp.Adversaries.all())
    (table,) = split(group.to_table(), answer, pdp.Adversaries.all())
    found = group_of_two_values(group, step, problem.knowledge, by_count=True)
    assert found == pytest.approx(dual_bound(table, dp_epsilon=0.0), rel=1e-7)
