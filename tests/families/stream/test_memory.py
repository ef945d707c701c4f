"""What a budget at every step tells for ever: the closed forms, and their inverses."""

import math

import mpmath
import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.families.stream.memory import Contracting, Shifting, Smoothing
from pdp_calibrate_integrations.handover import laplace_parameters
from tests.oracles.streams import hinted, series_precision, series_shift

TABLE = {  # staying probability: budgets per step for ε = ½, 1, 2; for ε = 1 about an end
    0.6: (0.3338144569, 0.6704886235, 1.363054296, 0.8039081349),
    0.7: (0.2147410202, 0.4322081722, 0.8860425380, 0.6068691977),
    0.8: (0.1253052798, 0.2524447014, 0.5196325082, 0.4079083810),
    0.9: (0.05569854458, 0.1122574044, 0.2314687088, 0.2059933444),
    0.95: (0.02638418241, 0.05317997371, 0.1096905264, 0.1035813718),
}


def staying(probability, *, length=None):
    law = [[probability, 1 - probability], [1 - probability, probability]]
    return pdp.MarkovChain(transition=law, length=length)


@pytest.mark.parametrize("probability", TABLE)
def test_the_table_of_fixed_points(probability):
    chain = staying(probability)
    for epsilon, budget in zip((0.5, 1.0, 2.0), TABLE[probability], strict=False):
        found = pdp.dp_budget(chain, epsilon=epsilon)
        assert found == pytest.approx(budget, rel=1e-9)
        told = pdp.black_box_leakage(chain, epsilon=found)
        assert epsilon * (1 - 1e-11) <= told.value <= epsilon
        assert told.method == "stream"
        assert pdp.black_box_leakage(chain, epsilon=found * (1 + 1e-10)).value > epsilon
    memory = Contracting(chain.diameter)
    assert memory.one_sided(TABLE[probability][3]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("diameter", [0.0, 1e-9, 0.3, 2.0, 9.0, 40.0, 900.0])
@pytest.mark.parametrize("amount", [1e-12, 0.01, 1.0, 30.0, 2000.0])
def test_for_ever_is_the_fixed_point_and_never_below_it(diameter, amount):
    found = Contracting(diameter).for_ever(amount)
    with mpmath.workdps(800):
        exact = 4 * mpmath.asinh(
            mpmath.exp(mpmath.mpf(diameter) / 2) * mpmath.sinh(mpmath.mpf(amount) / 4)
        )
        one_sided = (exact + amount) / 2
        product = mpmath.tanh(one_sided / 4) * mpmath.tanh(mpmath.mpf(diameter) / 4)
        passed_on = 4 * mpmath.atanh(product)
        assert abs(one_sided - amount - passed_on) < 1e-60 * one_sided  # the fixed point
        assert exact <= found
    simple = min(amount * math.exp(min(diameter / 2, 700)), amount + 2 * diameter)
    assert found <= simple * (1 + 1e-12)
    assert found <= float(exact) * (1 + 1e-11) or found <= (amount + 2 * diameter) * (1 + 1e-15)


@pytest.mark.parametrize("probability", [0.7, 0.8, 0.9])
def test_the_bound_is_attained_by_somebody_with_hints(probability):
    chain = staying(probability)
    budget, steps = pdp.dp_budget(chain, epsilon=1.0), 401
    likelihoods = np.tile([0.0, budget], (steps, 1))
    hints = np.tile([0.0, -budget / 2], (steps, 1))
    kernels = [chain.kernel] * (steps - 1)
    told = hinted(np.full(2, 0.5), kernels, likelihoods, hints, 200)
    assert told[1] - told[0] == pytest.approx(1.0, abs=2e-9)
    without = hinted(np.full(2, 0.5), kernels, likelihoods, 0 * hints, 200)
    lower = pdp.leakage(chain, pdp.EachStep(pdp.Sum()), scale=1 / budget).lower
    assert lower == pytest.approx(without[1] - without[0], rel=1e-8)


def test_many_steps_at_once_are_never_less_than_one_by_one():
    for memory in (Contracting(0.01), Contracting(2.5), Contracting(30.0), Shifting(0.7)):
        for steps in (2, 7, 100):
            alone = 0.9
            for _ in range(steps):
                alone = memory.carried(alone)
            assert alone * (1 - 1e-11) <= memory.carried(0.9, steps) <= alone * (1 + 1e-11)


@pytest.mark.parametrize("correlation", [0.8, -0.6, 0.0, 0.3])
def test_series_are_exact_against_dense_covariances(correlation):
    steps, width = 200, 4.0
    series = pdp.GaussianSeries(length=None, correlation=correlation, bounds=(0, width))
    found = pdp.leakage(series, pdp.EachStep(pdp.Sum()), scale=10.0)
    dense = series_shift(correlation, np.full(steps, width / 10), (), 100)
    assert found.value == pytest.approx(dense, rel=1e-6)
    assert found.exact
    closed = width / 10 * (1 + abs(correlation)) / (1 - abs(correlation))
    assert closed <= found.value <= closed * (1 + 1e-13)
    rng = np.random.default_rng(3)
    for _ in range(20):  # whoever is known
        known = rng.choice([t for t in range(steps) if t != 100], size=rng.integers(1, 30))
        told = series_shift(correlation, np.full(steps, width / 10), sorted(set(known)), 100)
        assert told <= found.value * (1 + 1e-9)


@pytest.mark.parametrize("correlation", [0.8, -0.5, 0.95])
@pytest.mark.parametrize("variance", [0.2, 30.0])
def test_gaussian_answers_end_in_the_steady_state_of_the_smoother(correlation, variance):
    memory = Smoothing(correlation, variance)
    steps = 401 if correlation > 0.9 else 101
    for noise in (0.05, 40.0):
        dense = series_precision(correlation, variance, np.full(steps, 1 / noise), steps // 2)
        found = memory.for_ever(1 / noise)
        assert found >= dense * (1 - 1e-12)
        assert found == pytest.approx(dense, rel=1e-8)


def test_calibrated_series_need_what_the_closed_form_says():
    series = pdp.GaussianSeries(length=None, correlation=0.8, bounds=(0, 4))
    for query in (pdp.Sum(), pdp.Sum(clamp=True)):
        found = pdp.calibrate(series, pdp.EachStep(query), epsilon=1.0)
        assert 36.0 <= found.scale <= 36.0 * (1 + 1e-6)
    once = pdp.calibrate(series, pdp.Sum(), epsilon=1.0)
    assert once.scale == pytest.approx(4.0, rel=1e-9)
    several = pdp.calibrate(
        series, [pdp.EachStep(pdp.Sum()), pdp.EachStep(pdp.Mean())], epsilon=1.0, rows=2
    )
    assert several.scale[0] == pytest.approx(72.0, rel=1e-6)
    assert several.scale[1] == pytest.approx(36.0, rel=1e-6)


@pytest.mark.parametrize("correlation", [0.8, -0.6])
def test_gaussian_noise_at_every_step_is_exact_against_dense_covariances(correlation):
    series = pdp.GaussianSeries(length=None, correlation=correlation, bounds=(0, 4), variance=1.5)
    found = pdp.calibrate(
        series, pdp.EachStep(pdp.Sum()), noise="gaussian", epsilon=1.0, delta=1e-6
    )
    gained = series_precision(correlation, 1.5, np.full(401, found.scale**-2), 200)
    assert 4.0 * math.sqrt(gained) == pytest.approx(0.236704380663, rel=1e-6)
    assert 4.0 * math.sqrt(gained) <= found.mu
    assert found.leakage.exact
    unstated = pdp.GaussianSeries(length=None, correlation=correlation, bounds=(0, 4))
    square = correlation**2
    for query in (pdp.Sum(), pdp.Sum(clamp=True)):
        told = pdp.leakage(unstated, pdp.EachStep(query), scale=9.0, noise="gaussian")
        shifts = 4 / 9 * math.sqrt((1 + square) / (1 - square))
        assert shifts <= told.value <= shifts * (1 + 1e-12)
    clamped = pdp.leakage(series, pdp.EachStep(pdp.Sum(clamp=True)), scale=9.0, noise="gaussian")
    assert clamped.value == told.value
    assert not clamped.exact
    once = pdp.leakage(series, pdp.Sum(), scale=8.0, noise="gaussian")
    assert once.value == pytest.approx(0.5, rel=1e-12)


def test_several_states_and_uneven_chains_lie_between_their_ends():
    chain = pdp.MarkovChain(
        transition=[[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]],
        states=[0, 1, 2],
        length=None,
    )
    found = pdp.leakage(chain, pdp.EachStep(pdp.Sum()), scale=10.0)
    assert 0.2 < found.lower <= found.value
    members = pdp.MixingChain(diameter=chain.diameter, states=[0, 1, 2], length=None)
    as_set = pdp.leakage(members, pdp.EachStep(pdp.Sum()), scale=10.0)
    assert as_set.value == pytest.approx(found.value, rel=1e-12)
    assert found.lower <= as_set.lower * (1 + 1e-9) <= as_set.value
    tally = pdp.leakage(chain, pdp.EachStep(pdp.Histogram()), scale=10.0)
    assert tally.value == pytest.approx(Contracting(chain.diameter).for_ever(0.2), rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        staying(0.8),
        pdp.MixingChain(diameter=2.0, states=["a", "b"], length=None, names=["mood"]),
        pdp.GaussianSeries(length=None, correlation=-0.3, bounds=(0, 9), variance=2.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_endless_models_are_kept_in_json_and_differ_from_those_of_one_step(model):
    described = model.to_dict()
    again = pdp.MarkovChain.from_dict(described)
    assert again == model
    assert again.is_endless
    assert again.length is None
    other = type(model).from_parameters({**described, "length": 1})
    assert other != model
    assert not other.is_endless
    assert "for ever" in repr(model)
    assert len(model.names) == len(model.domains) == 1


def test_what_has_no_end_is_not_taken_for_one_step():
    chain = staying(0.8)
    for work in (
        lambda: pdp.Blocks(models=[chain]),
        lambda: pdp.ModelSet(models=[chain]),
        chain.to_table,
        lambda: pdp.leakage(chain, pdp.Sum(), adversaries=pdp.Adversaries.strongest()),
        lambda: pdp.black_box_leakage(chain, epsilon=1, adversaries=pdp.Adversaries.weakest()),
        lambda: pdp.dp_budget(chain, epsilon=1, adversaries=pdp.Adversaries.weakest()),
        lambda: pdp.posterior(chain, pdp.Sum(), scale=1.0, target=0, output=1.0),
        lambda: pdp.calibrate(staying(0.8, length=3), pdp.EachStep(pdp.Sum())),
        lambda: pdp.EachStep(pdp.EachStep(pdp.Sum())),
        lambda: pdp.MarkovChain(transition=[[1, 0], [0.5, 0.5]], length=None, initial=[1, 0]),
        lambda: pdp.calibrate(chain, pdp.Sum()).release({0: 1}),
        lambda: pdp.calibrate(chain, pdp.Sum()).release_rows([[0]]),
        lambda: laplace_parameters(pdp.calibrate(chain, pdp.EachStep(pdp.Sum()))),
        lambda: pdp.audit(pdp.calibrate(chain, pdp.Sum()), draws=2000),
    ):
        with pytest.raises(pdp.PdpError):
            work()


def test_outside_mechanisms_about_gaussian_records_are_refused():
    series = pdp.GaussianSeries(length=None, correlation=0.2, bounds=(0, 1))
    for work in (pdp.black_box_leakage, pdp.dp_budget):
        with pytest.raises(pdp.UnsupportedQueryError, match="Gaussian series"):
            work(series, epsilon=1.0)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 5.0, 300.0, 5000.0])
@pytest.mark.parametrize("diameter", [0.0, 1e-12, 3.0, 60.0, 1200.0])
def test_budgets_for_ever_are_never_above_what_they_keep(epsilon, diameter):
    chain = pdp.MixingChain(diameter=diameter, length=None)
    budget = pdp.dp_budget(chain, epsilon=epsilon)
    assert 0 < budget <= epsilon
    assert pdp.black_box_leakage(chain, epsilon=budget).value <= epsilon
    half = pdp.dp_budget(chain, epsilon=epsilon, neighbours="add-remove")
    assert half == pytest.approx(budget / 2)


def test_states_of_any_size_and_one_state():
    one = pdp.MarkovChain(transition=[[1.0]], states=[5], length=None)
    assert pdp.leakage(one, pdp.EachStep(pdp.Sum()), scale=1.0).value == 0.0
    tenths = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], states=[0.1, 0.7], length=None)
    found = pdp.calibrate(tenths, pdp.EachStep(pdp.Mean()), epsilon=1.0, rows=3)
    assert found.scale == pytest.approx(0.2 / 0.2524447014, rel=1e-6)
    assert found.leakage.value <= 1.0
