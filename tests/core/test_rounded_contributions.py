"""Contributions are floats: what that changes is charged, and exact ones cost nothing."""

import time
from fractions import Fraction

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.contributions import Contributions, diameter
from pdp_calibrate.core.query import lower
from tests.oracles import exact as exact_oracle
from tests.oracles.adversaries import everyone

PAIR = [[0.3, 0.2], [0.2, 0.3]]


def exact_leakage(table, weights, divisor, scale):
    """Brute force with weight·value/divisor as fractions."""
    law = {
        cell: Fraction(float(table.probabilities[cell]))
        for cell in np.ndindex(table.probabilities.shape)
    }
    answers = {
        cell: (
            sum(
                Fraction(w) * Fraction(d[k]) / divisor
                for w, d, k in zip(weights, table.domains, cell, strict=True)
            ),
        )
        for cell in law
    }
    found = exact_oracle.worst_leakage(law, (2, 2), answers, [scale], everyone)
    return float(exact_oracle.recomputed(law, (2, 2), answers, [scale], found))


@pytest.mark.parametrize("start", [10**9, 10**12, 17 * 10**14])
@pytest.mark.parametrize("seed", range(12))
def test_leakage_is_that_of_exact_contributions(start, seed):
    rng = np.random.default_rng(seed)
    low = start + int(rng.integers(1000))
    table = pdp.JointTable(probabilities=PAIR, domains=[[low, low + int(rng.integers(1, 9))]] * 2)
    weights = rng.choice([0.1, 1 / 3, 0.7, -0.9], size=2).tolist()
    for query, numbers, divisor in (
        (pdp.Mean(), [1.0, 1.0], 2 * 3),
        (pdp.Linear(weights=weights), weights, 1),
    ):
        rows = 3 if divisor > 1 else 1
        scale = float(10 ** rng.uniform(-1, 1))
        truth = exact_leakage(table, numbers, divisor, scale)
        leak = pdp.leakage(table, query, scale=scale, rows=rows)
        assert leak.lower <= truth <= leak.value
        together = pdp.leakage(table, [query, query], scale=[2 * scale, 2 * scale], rows=rows)
        assert together.value >= truth
        cal = pdp.calibrate(table, query, epsilon=truth, rows=rows)
        assert exact_leakage(table, numbers, divisor, cal.scale) <= truth
        ledger = pdp.Ledger(table, epsilon=1e6)
        ledger.spend(cal)
        ledger.spend(cal)
        assert ledger.spent >= exact_leakage(table, numbers, divisor, cal.scale / 2)


def test_a_strongest_adversary_sees_the_exact_difference():
    # 1/3 of a microsecond timestamp is rounded to a quarter: 0.75 of a third of 1 remains.
    low = 17 * 10**14
    for high in (low + 1, low + 2, low + 3):
        table = pdp.JointTable(probabilities=PAIR, domains=[[low, high]] * 2)
        leak = pdp.leakage(
            table, pdp.Mean(), rows=3, scale=0.01, adversaries=pdp.Adversaries.strongest()
        )
        truth = Fraction(high - low, 6) / Fraction(0.01)
        assert leak.lower <= truth <= leak.value


@pytest.mark.parametrize("query", [pdp.Sum(), pdp.Linear(weights=[2, -3]), pdp.Count(values={1})])
def test_exact_contributions_cost_nothing(query):
    table = pdp.JointTable(probabilities=PAIR, domains=[[1, 10**15]] * 2)
    assert lower(query, table).rounding == 0


def test_whole_numbers_beyond_the_floats_are_rounded_and_charged():
    low = 2**60
    table = pdp.JointTable(probabilities=PAIR, domains=[[low, low + 100]] * 2)
    leak = pdp.leakage(table, pdp.Sum(), adversaries=pdp.Adversaries.strongest())
    assert leak.lower <= 100 <= leak.value


def test_ordinary_models_stay_exact():
    table = pdp.JointTable(probabilities=PAIR, domains=[[0.1, 0.7], [3, 11]])
    for query in (pdp.Mean(), pdp.Linear(weights=[1 / 3, -0.7])):
        for scale in (1e-3, 1.0, 1e3):
            assert pdp.leakage(table, query, scale=scale).exact
        assert pdp.leakage(table, [query, pdp.Sum()], scale=[0.3, 0.7]).exact


def test_values_too_large_for_a_float_are_refused():
    table = pdp.JointTable(probabilities=PAIR, domains=[[0, 10**400]] * 2)
    with pytest.raises(pdp.QueryError, match="too large for a floating-point number"):
        pdp.leakage(table, pdp.Sum())


@pytest.mark.parametrize("kind", ["table", "unknown", "series"])
def test_a_range_beyond_the_floats_is_refused_at_once(kind):
    bounds = (-1e308, 1e308)
    if kind == "table":
        model = pdp.JointTable(probabilities=PAIR, domains=[list(bounds)] * 2)
    elif kind == "unknown":
        model = pdp.Unknown(size=2, bounds=bounds)
    else:
        model = pdp.GaussianSeries(length=2, correlation=0.5, bounds=(-0.8e308, 0.8e308))
    begun = time.process_time()
    with pytest.raises(pdp.QueryError, match="answers may be as large as"):
        pdp.calibrate(model, pdp.Sum(), time_limit=0)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("epsilon", [1e-60, 1e-300])
def test_a_scale_beyond_the_floats_is_refused_at_once(epsilon):
    table = pdp.JointTable(probabilities=PAIR, domains=[[-1e249, 1e249]] * 2)
    begun = time.process_time()
    with pytest.raises(pdp.CalibrationError, match="more noise than floating point can hold"):
        pdp.calibrate(table, pdp.Sum(), epsilon=epsilon, time_limit=0)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "model",
    [
        pdp.MixingChain(length=20, states=[0, 1], diameter=1.0),
        pdp.Unknown(size=20, domain=[0, 1]),
        pdp.ConditionalBall(
            center=pdp.JointTable(probabilities=PAIR, domains=[[0, 1]] * 2), radius=0.1
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_custom_is_refused_on_sets_before_it_is_evaluated(model):
    def function(_values):
        raise AssertionError("the function was evaluated")

    for asked in (model, pdp.ModelSet(models=[model])):
        with pytest.raises(pdp.UnsupportedQueryError, match="Custom has no bound on"):
            pdp.calibrate(asked, pdp.Custom(function=function), time_limit=5)


@pytest.mark.parametrize("rare", [1e-50, 1e-200, 1e-300])
@pytest.mark.parametrize("time_limit", [0, None])
def test_calibrations_keep_epsilon_to_the_last_digit(rare, time_limit):
    for law in ([0.93, rare, 0.07], [0.5, rare, rare, 0.5]):
        group = pdp.BinaryGroup(count_probabilities=law)
        categories = pdp.CategoryGroup(
            size=2,
            categories=[0, 1],
            count_probabilities={(2, 0): 0.93, (1, 1): rare, (0, 2): 0.07},
        )
        for model in (group, categories):
            cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, time_limit=time_limit)
            assert cal.leakage.value <= 1.0
            assert pdp.verify(cal).value <= 1.0


@pytest.mark.parametrize("width", [1, 2, 3])
def test_diameters_of_many_rows_are_those_of_all_pairs(width):
    points = np.random.default_rng(width).normal(size=(5000, width))
    plain = max(float(np.abs(points - point).sum(axis=-1).max()) for point in points)
    assert plain <= diameter(points) <= plain * (1 + 1e-13)


def test_ranges_of_a_large_function_are_found_at_once():
    table = np.random.default_rng(0).normal(size=(2,) * 16)
    begun = time.process_time()
    ranges = Contributions.tabulated(table).tuple_ranges()
    assert time.process_time() - begun < 2
    assert ranges == pytest.approx([np.abs(np.diff(table, axis=j)).max() for j in range(16)])
