"""Chains learned with their error: limits against enumeration, what is covered, what is refused."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.families.chain.limits import (
    certain_diameter,
    drowns_in_noise,
    filled,
    likelihood_diameter,
    noisy_diameter,
    series_interval,
    tells_rows_from_noise,
)

GIVEN = {"value": "state", "order_by": "time"}
SYMMETRIC = np.array([[0.8, 0.2], [0.2, 0.8]])
THREE = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])


def drawn(rng, law, units, length):
    start = np.linalg.matrix_power(law, 500)[0]
    states = np.empty((units, length), dtype=int)
    states[:, 0] = rng.choice(len(law), size=units, p=start / start.sum())
    levels = np.cumsum(law, axis=1)[:, :-1]
    for t in range(1, length):
        states[:, t] = (rng.random((units, 1)) > levels[states[:, t - 1]]).sum(axis=1)
    return states


def frame_of(states):
    units, length = states.shape
    return pd.DataFrame(
        {
            "unit": np.repeat(range(units), length),
            "time": np.tile(range(length), units),
            "state": states.ravel(),
        }
    )


def counted(states, number):
    counts = np.zeros((number, number))
    np.add.at(counts, (states[:, :-1].ravel(), states[:, 1:].ravel()), 1)
    return counts


def conditional_law(course, tilt):
    """P(number of pairs of ones | ends, number of ones) by listing all courses."""
    law = {}
    for other in itertools.product((0, 1), repeat=len(course)):
        same = other[0] == course[0] and other[-1] == course[-1] and sum(other) == sum(course)
        if same:
            pairs = sum(a & b for a, b in itertools.pairwise(other))
            law[pairs] = law.get(pairs, 0.0) + math.exp(tilt * pairs)
    total = sum(law.values())
    return {pairs: mass / total for pairs, mass in law.items()}


@pytest.mark.parametrize("course", list(itertools.product((0, 1), repeat=9))[::7])
def test_the_limits_of_one_series_are_tails_of_the_listed_law(course):
    counts = counted(np.array([course]), 2)
    low, high = series_interval(counts, course[0], 0.95)
    for limit, sign in ((high, 1), (low, -1)):
        if math.isinf(limit):
            law = conditional_law(course, 0.0)
            assert counts[1, 1] == (max(law) if sign > 0 else min(law))
            continue
        law = conditional_law(course, limit)
        tail = sum(p for k, p in law.items() if sign * (k - counts[1, 1]) <= 0)
        assert tail == pytest.approx(0.05, rel=1e-6)
        assert tail <= 0.05 * (1 + 1e-9)  # on the safe side


def test_likelihood_limits_are_the_largest_cross_ratio_on_a_grid():
    counts = np.array([[30.0, 10.0], [8.0, 25.0]])
    grid = np.linspace(0.005, 0.995, 400)
    stay, move = np.meshgrid(grid, grid, indexing="ij")  # p00 and p10
    logs = 30 * np.log(stay) + 10 * np.log1p(-stay) + 8 * np.log(move) + 25 * np.log1p(-move)
    ratio = np.log(stay / (1 - stay)) - np.log(move / (1 - move))
    inside = 2 * (logs.max() - logs) <= 1.6448536**2
    assert likelihood_diameter(counts, 0.95) == pytest.approx(ratio[inside].max(), abs=0.03)
    assert likelihood_diameter(counts, 0.95) >= ratio[inside].max()


def test_certain_limits_are_wider_and_need_every_transition():
    counts = np.array([[300.0, 100.0], [80.0, 250.0]])
    assert certain_diameter(counts, 0.95) > likelihood_diameter(counts, 0.95)
    assert certain_diameter(np.array([[30.0, 0.0], [8.0, 25.0]]), 0.95) == math.inf
    assert noisy_diameter(counts, 5.0, 0.95) > likelihood_diameter(counts, 0.95)
    assert likelihood_diameter(filled(np.array([[30.0, 0.0], [8.0, 25.0]])), 0.95) < 12


@pytest.mark.parametrize("law", [SYMMETRIC, SYMMETRIC[::-1], [[0.97, 0.03], [0.4, 0.6]]])
@pytest.mark.parametrize("units", [1, 40])
def test_the_diameter_is_covered(law, units):
    """Of 100 fits at most 35 miss: at a rate of .1 that happens once in 1e11 runs."""
    rng, law = np.random.default_rng(units), np.array(law)
    truth = pdp.MixingChain.diameter_of(law)
    missed = exact = 0
    for _ in range(100):
        states = drawn(rng, law, units, 400 if units == 1 else 12)
        counts = counted(states, 2)
        found = likelihood_diameter(filled(counts), 0.95)
        if units == 1:
            low, high = series_interval(counts, int(states[0, 0]), 0.95)
            found = max(high, -low)
        missed += found < truth
        exact += certain_diameter(counts, 0.95) < truth
    assert missed <= 35
    assert exact <= 28  # at a rate of .05


def test_two_states_become_all_chains_up_to_a_diameter():
    states = drawn(np.random.default_rng(0), SYMMETRIC, 60, 10)
    estimator = pdp.MarkovChainEstimator(**GIVEN, groups="unit", source="public")
    model = estimator.fit(frame_of(states)).model_.models[0]
    assert isinstance(model, pdp.MixingChain)
    assert model.diameter == likelihood_diameter(counted(states, 2), 0.95)
    assert (model.coverage.kind, model.coverage.confidence) == ("covered", 0.95)
    renamed = frame_of(1 - states)
    again = estimator.fit(renamed.sample(frac=1, random_state=1)).model_.models[0]
    assert again.diameter == pytest.approx(model.diameter, rel=1e-9)
    twice = frame_of(np.vstack([states, states]))
    assert estimator.fit(twice).model_.models[0].diameter < model.diameter
    certain = pdp.MarkovChainEstimator(**GIVEN, groups="unit", source="public", guarantee="exact")
    assert certain.fit(frame_of(states)).model_.models[0].diameter > model.diameter


def test_three_states_become_what_counts_do_not_rule_out():
    rng = np.random.default_rng(1)
    estimator = pdp.MarkovChainEstimator(**GIVEN, groups="unit", source="public")
    scales = []
    truth = pdp.MarkovChain(transition=THREE, length=8, states=range(3))
    for units in (30, 300, 3000):
        model = estimator.fit(frame_of(drawn(rng, THREE, units, 8))).model_
        assert isinstance(model.models[0], pdp.SampledChain)
        scales.append(pdp.calibrate(model, pdp.Sum()).scale / pdp.calibrate(truth, pdp.Sum()).scale)
    assert scales[0] > scales[2]
    assert 0.95 < scales[2] < 1.15
    assert scales[1] < 1.5


def test_a_sampled_chain_holds_more_than_chains_drawn_from_its_region():
    """No law of the likelihood region, drawn at random, leaks more but by a trifle."""
    rng = np.random.default_rng(2)
    counts = np.array([[60.0, 20, 5], [15, 50, 20], [5, 20, 40]])
    model = pdp.SampledChain(counts=counts, length=6, states=range(3))
    fitted = counts / counts.sum(axis=1, keepdims=True)
    bound = pdp.leakage(model, pdp.Sum(), scale=4.0).value
    point = pdp.MarkovChain(transition=fitted, length=6, states=range(3))
    assert bound > pdp.leakage(point, pdp.Sum(), scale=4.0).value
    for _ in range(60):
        direction, share = rng.normal(size=(3, 3)), 1.0
        while True:
            law = fitted * np.exp(share * direction)
            law /= law.sum(axis=1, keepdims=True)
            if 2 * np.sum(counts * np.log(fitted / law)) <= 1.6448536**2:
                break
            share *= 0.95
        chain = pdp.MarkovChain(transition=law, length=6, states=range(3))
        assert pdp.leakage(chain, pdp.Sum(), scale=4.0).value <= bound * 1.001


def test_states_never_left_are_refused_of_public_rows_only():
    frame = pd.DataFrame({"time": range(6), "state": [0, 1, 0, 0, 1, 2]})
    given = {**GIVEN, "states": [0, 1, 2]}
    with pytest.raises(pdp.ModelError, match=r"Merge rare states.*pdp.Unknown.*pdp.MarkovChain"):
        pdp.MarkovChainEstimator(**given, source="public").fit(frame)
    model = pdp.MarkovChainEstimator(**given).fit(frame).model_
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(model, pdp.Sum())
    assert cal.scale == pytest.approx(12.0, rel=1e-6)  # group privacy
    pdp.MarkovChainEstimator(**GIVEN, states=[0, 1]).fit(frame)  # 2 is not counted
    with pytest.raises(pdp.ModelError, match="outside its stated states"):
        pdp.MarkovChainEstimator(**GIVEN, states=[0, 1], source="public").fit(frame)


@pytest.mark.parametrize(("rate", "units", "epsilon"), [
    (0.2, 30, 2.0), (0.2, 300, 0.5), (0.02, 30, 2.0), (0.02, 60, 1.0), (0.02, 100, 0.5),
    (0.02, 300, 1.0),
])  # fmt: skip
def test_limits_of_noisy_counts_hold_near_the_least_of_rows(rate, units, epsilon):
    """Of fits that are not refused a tenth miss at most; with a floor of b itself, a third."""
    rng, fits, length = np.random.default_rng(8), 400, 8
    law = np.array([[1 - rate, rate], [rate, 1 - rate]])
    noise_scale = 2 * (length - 1) / epsilon
    assert not drowns_in_noise(units * (length - 1), 2, noise_scale)
    truth = pdp.MarkovChain(transition=law, length=length, states=[0, 1])
    scale = pdp.calibrate(truth, pdp.Sum(), epsilon=1.0).scale
    missed = kept = 0
    low, high = 0.0, 20.0  # the diameter above which a set gives at least this scale
    while high - low > 1e-3:
        middle = (low + high) / 2
        mixing = pdp.MixingChain(length=length, states=[0, 1], diameter=middle)
        enough = pdp.calibrate(mixing, pdp.Sum(), epsilon=1.0).scale >= scale
        low, high = (low, middle) if enough else (middle, high)
    for _ in range(fits):
        counts = np.zeros((2, 2))
        state = rng.integers(2, size=units)
        for _ in range(length - 1):
            after = np.where(rng.random(units) < rate, 1 - state, state)
            np.add.at(counts, (state, after), 1)
            state = after
        share = 1 - np.exp(-1 / noise_scale)
        counts += rng.geometric(share, (2, 2)) - rng.geometric(share, (2, 2))
        if tells_rows_from_noise(counts, noise_scale):
            kept += 1
            missed += noisy_diameter(counts, noise_scale, 0.95) < low
    assert kept > 0.9 * fits
    assert missed <= stats.binom.isf(1e-6, kept, 0.08)


def test_so_few_series_that_only_large_noise_would_show_them_are_refused():
    assert drowns_in_noise(30 * 7, 2, 14.0)
    assert not drowns_in_noise(60 * 7, 2, 14.0)
    assert drowns_in_noise(60 * 7, 3, 14.0)


def test_private_fits_cover_the_noise_and_refuse_by_it_alone():
    rng, law = np.random.default_rng(3), SYMMETRIC
    given = {**GIVEN, "groups": "unit", "states": [0, 1], "max_length": 8, "epsilon": 1.0}
    frame = frame_of(drawn(rng, law, 400, 8))
    diameters = []
    for _ in range(20):
        model = pdp.MarkovChainEstimator(**given).fit(frame).model_
        diameters.append(model.models[0].diameter)
    assert model.coverage.over == "sampling and noise"
    assert model.estimation_epsilon == 1.0
    # At a rate of .1, 17 of 20 would miss once in 1e14 runs.
    assert sum(one < pdp.MixingChain.diameter_of(law) for one in diameters) < 17
    with pytest.raises(pdp.ModelError, match="2800 transitions between 2 states are too few"):
        pdp.MarkovChainEstimator(**{**given, "epsilon": 1e-3}).fit(frame)
    rare = frame_of(np.zeros((400, 8), dtype=int))  # one state is never left
    with pytest.raises(pdp.ModelError, match="seen in the noise"):
        pdp.MarkovChainEstimator(**given).fit(rare)
    strange = frame.assign(state=frame["state"].where(frame.index % 50 > 0, 9))
    pdp.MarkovChainEstimator(**given).fit(strange)  # not refused
    for changes, message in (
        ({"confidence": None}, "confidence="),
        ({"guarantee": "exact"}, "leave epsilon out"),
        ({"guarantee": "sure"}, "guarantee must be"),
    ):
        with pytest.raises(pdp.ModelError, match=message):
            pdp.MarkovChainEstimator(**(given | changes)).fit(frame)
