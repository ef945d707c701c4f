"""What any answers about a chain reveal: histograms, lists, black boxes, ledgers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from pdp_calibrate.families.chain.mixing import Mixing, likelihood_bounds
from tests.oracles.chain_budgets import joint_law, worst_likelihood
from tests.oracles.vectors import worst_vector_leakage
from tests.support.marks import slow_after

ALL, WEAKEST = pdp.Adversaries.all(), pdp.Adversaries.weakest()


def normalised(matrix):
    matrix = np.array(matrix, dtype=float)
    return matrix / matrix.sum(axis=1, keepdims=True)


APART = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
EIGHT = normalised(0.3 * np.eye(8) + 0.7 * np.exp(-APART))
CYCLE = normalised([[0.7, 0.3, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]])
POWER = 0.4 * np.eye(51) + 0.6 / 51
REFERENCES = {  # the scale of a histogram and the budget of every step, for ε = 1
    "eight": (EIGHT, 75.889062, 0.0263542591),
    "eight, moving": (normalised(np.exp(-APART)), 60.176428, 0.0332356054),
    "eight, never staying": (normalised(np.exp(-APART) - np.eye(8)), 24.373183, None),
    "cycle": (CYCLE, 11.440277, 0.1748209342),
    "51 states": (POWER, 16.948163, 0.1180068889),
    "two states": (normalised([[0.8, 0.2], [0.2, 0.8]]), 7.922527, 0.2524447014),
}


def chain_of(kernel, length, **more):
    return pdp.MarkovChain(transition=kernel, length=length, states=range(len(kernel)), **more)


def mixing_of(kernel):
    return Mixing(kernel, np.ones(len(kernel), dtype=bool))


@pytest.mark.parametrize("name", REFERENCES)
def test_reference_values(name):
    kernel, scale, budget = REFERENCES[name]
    for length in (400, 10_000):
        chain = chain_of(kernel, length)
        mixing = chain.mixing
        at_scale = likelihood_bounds(mixing, np.full(length, 2 / scale)).max()
        assert at_scale == pytest.approx(1, rel=1e-7)
        if budget is not None:
            assert pdp.dp_budget(chain, epsilon=1.0) == pytest.approx(budget, rel=2e-6)
        if len(kernel) > 2:  # a histogram of two states is one number
            found = pdp.calibrate(chain, pdp.Histogram(), epsilon=1.0)
            assert found.scale == pytest.approx(scale, rel=1e-7)


@pytest.mark.parametrize(
    ("kernel", "state", "scale"),
    [(EIGHT, 0, 37.944531), (EIGHT, 3, 37.053042), (CYCLE, 0, 5.614992), (POWER, 0, 8.474082)],
)
def test_a_count_as_a_black_box_charges_only_pairs_it_tells_apart(kernel, state, scale):
    mixing = mixing_of(kernel)
    counted = (mixing.first == state) | (mixing.second == state)
    own = np.tile(counted / scale, (400, 1))
    bound = likelihood_bounds(mixing, np.full(400, 1 / scale), own).max()
    assert bound == pytest.approx(1, rel=3e-7)


def random_kernel(rng, states):
    kernel = rng.dirichlet(np.full(states, rng.choice([0.3, 1.0, 3.0])), size=states)
    if rng.random() < 0.5:
        kernel[rng.random(kernel.shape) < 0.3] = 0.0
    kernel[kernel < 1e-4] = 0.0
    for row in kernel:
        row[rng.integers(states)] += row.sum() == 0
    return normalised(kernel)


def random_budgets(rng, length):
    budgets = rng.exponential(rng.choice([0.1, 0.5, 2.0]), size=length)
    if rng.random() < 0.3:
        budgets[:] = budgets[0]
    if rng.random() < 0.3:
        budgets[rng.integers(length)] = 0.0
    return budgets


@pytest.mark.parametrize("seed", slow_after(25, range(400)))
def test_no_likelihood_with_these_budgets_reveals_more(seed):
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 4))
    length = int(rng.integers(2, 6 if states == 2 else 5))
    kernel, budgets = random_kernel(rng, states), random_budgets(rng, length)
    budgets *= min(1.0, 15 / budgets.sum())  # beyond this the linear program loses its digits
    start = rng.dirichlet(np.ones(states))
    bounds = likelihood_bounds(mixing_of(kernel), budgets)
    target = int(rng.integers(length))
    truth = worst_likelihood(joint_law(start, [kernel] * (length - 1)), budgets, target)
    assert truth <= bounds[target] * (1 + 1e-9) + 1e-9
    one_step = birkhoff_bounds(budgets, float(diameters(kernel, 1)[0][1]))
    assert np.all(bounds <= one_step * (1 + 1e-9) + 1e-12)


def test_two_tuples_reveal_as_much_as_bounded():
    kernel = normalised([[0.8, 0.2], [0.3, 0.7]])
    bounds = likelihood_bounds(mixing_of(kernel), np.array([0.4, 1.5]))
    law = joint_law([0.5, 0.5], [kernel])
    assert 0.95 * bounds[0] < worst_likelihood(law, [0.4, 1.5], 0) <= bounds[0]


@pytest.mark.parametrize("seed", slow_after(10, range(120)))
def test_histograms_agree_with_brute_force(seed):
    rng = np.random.default_rng(seed)
    kernel, length = random_kernel(rng, 3), int(rng.integers(2, 4))
    start = rng.dirichlet(np.ones(3))
    chain, scale = chain_of(kernel, length, initial=start), float(rng.uniform(0.7, 4))
    adversaries = [ALL, WEAKEST][int(rng.integers(2))]
    truth = worst_vector_leakage(
        chain.to_table().probabilities,
        chain.domains,
        lambda x: tuple(x.count(state) for state in range(3)),
        [scale] * 3,
        lambda _i, known: adversaries is ALL or not known,
    )
    moves = 2 / scale
    bound = likelihood_bounds(chain.mixing, np.full(length, moves)).max()
    assert truth <= bound * (1 + 1e-12)
    found = pdp.leakage(chain, pdp.Histogram(), scale=scale, adversaries=adversaries)
    assert truth * (1 - 1e-9) <= found.value <= bound * (1 + 1e-12)


@pytest.mark.parametrize("seed", slow_after(8, range(60)))
def test_the_length_stops_mattering(seed):
    rng = np.random.default_rng(seed)
    kernel = random_kernel(rng, int(rng.integers(2, 5)))
    mixing, budget = mixing_of(kernel), float(rng.uniform(0.01, 0.5))
    long, longer = (likelihood_bounds(mixing, np.full(n, budget)).max() for n in (600, 6000))
    assert long <= longer * (1 + 1e-12)
    if np.linalg.matrix_power(kernel, 64).min() > 0:
        assert longer == pytest.approx(long, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_more_budget_anywhere_never_reveals_less(seed):
    rng = np.random.default_rng(seed)
    mixing, length = mixing_of(random_kernel(rng, 3)), int(rng.integers(2, 60))
    budgets = random_budgets(rng, length)
    more = budgets + (rng.random(length) < 0.3) * rng.exponential(size=length)
    assert np.all(
        likelihood_bounds(mixing, budgets) <= likelihood_bounds(mixing, more) * (1 + 1e-7)
    )


def test_a_step_in_the_budgets_is_bounded_on_both_sides():
    # Far from the step, every tuple is in a chain with equal budgets; at the step it is between.
    mixing = mixing_of(EIGHT)
    budgets = np.repeat([0.01, 0.02], 1500)
    bounds = likelihood_bounds(mixing, budgets)
    low, high = (likelihood_bounds(mixing, np.full(3000, e)).max() for e in (0.01, 0.02))
    assert bounds[700] == pytest.approx(low, rel=1e-5)
    assert bounds[2200] == pytest.approx(high, rel=1e-5)
    assert low <= bounds[1500] <= high * (1 + 1e-9)
    assert np.all(bounds <= high * (1 + 1e-9))


def test_only_the_nearest_known_tuples_matter():
    chain = chain_of(CYCLE, 40)
    around = pdp.Adversaries.exactly(target=20, known=[18, 23])
    found = pdp.leakage(chain, pdp.Histogram(), scale=8.0, adversaries=around)
    inside = likelihood_bounds(chain.mixing, np.full(4, 0.25))[1]
    everyone = pdp.leakage(chain, pdp.Histogram(), scale=8.0)
    assert found.value == pytest.approx(inside, rel=1e-9)
    assert found.value < everyone.value


def test_states_that_only_the_first_tuple_can_have_do_not_count_later():
    kernel = normalised([[0, 0.5, 0.5], [0, 0.7, 0.3], [0, 0.3, 0.7]])
    begun = chain_of(kernel, 50, initial=[1, 0, 0])
    assert np.all(np.isfinite(likelihood_bounds(begun.mixing, np.full(50, 0.1))))


def test_a_chain_that_never_forgets_is_bounded_as_a_group():
    chain = chain_of(normalised([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), 3000)
    bound = likelihood_bounds(chain.mixing, np.full(3000, 0.001)).max()
    assert 3.0 <= bound <= 3.0 * (1 + 1e-6)


@pytest.mark.parametrize(
    "kernel", [CYCLE, normalised([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])]
)
def test_weakest_and_parts_never_need_more_noise(kernel):
    for length in (6, 30):
        chain = chain_of(kernel, length)
        whole = pdp.calibrate(chain, pdp.Histogram(), epsilon=1.0).scale
        weakest = pdp.calibrate(chain, pdp.Histogram(), epsilon=1.0, adversaries=WEAKEST).scale
        assert weakest <= whole * (1 + 1e-9)
        counts = [pdp.Count(values={state}) for state in range(2)]
        part = pdp.calibrate(chain, counts, epsilon=1.0).scales[0]
        assert part <= whole * (1 + 1e-9)


def test_black_boxes_are_bounded_by_the_budgets_of_every_tuple():
    chain = chain_of(CYCLE, 500)
    box = pdp.black_box_leakage(chain, epsilon=0.1)
    expected = likelihood_bounds(chain.mixing, np.full(500, 0.1)).max()
    assert box.value == pytest.approx(expected, rel=1e-9)
    group = pdp.black_box_leakage(chain, epsilon=0.1, adversaries=pdp.Adversaries.strongest())
    assert group.value == pytest.approx(0.1)


def test_unreachable_distances_are_skipped_pair_by_pair():
    # From 0 and 1 the same states are reached, from 2 others: only pairs with 2 never mix at once.
    kernel = normalised([[0.5, 0.5, 0], [0.4, 0.6, 0], [0, 0.5, 0.5]])
    mixing = mixing_of(kernel)
    distances, member = mixing.distances(1)
    pairs = list(itertools.combinations(range(3), 2))
    finite = {pair: np.isfinite(distances.right[1, member[p]]) for p, pair in enumerate(pairs)}
    assert finite == {(0, 1): True, (0, 2): False, (1, 2): False}


def test_many_different_budgets_are_bounded_in_time():
    rng = np.random.default_rng(0)
    mixing = mixing_of(EIGHT)
    for length in (700, 9000):  # few enough to tell intervals apart, and too many
        budgets = rng.uniform(0.001, 0.01, size=length)
        bounds = likelihood_bounds(mixing, budgets)
        together = likelihood_bounds(mixing, np.full(length, budgets.max()))
        assert np.all(budgets < bounds)
        assert np.all(bounds <= together * (1 + 1e-9))


def test_a_list_about_three_states_is_exact_while_short_and_bounded_at_once_when_long():
    scales = []
    for length in (7, 8, 9, 30, 3000):
        found = pdp.calibrate(chain_of(CYCLE, length), pdp.Histogram(), epsilon=1.0)
        scales.append(found.scale)
    assert scales == sorted(scales)
    assert scales[-1] == pytest.approx(11.440277, rel=1e-6)


def test_values_that_never_occur_count_for_whoever_knows_all_others():
    """Plain DP is about every value of a domain: no law, and no start, takes one away."""
    for length in (1, 2, 5):
        chain = pdp.MarkovChain(
            transition=[[0.2, 0.8], [0.5, 0.5]], length=length, initial=[0.0, 1.0]
        )
        assert pdp.black_box_leakage(chain, epsilon=0.7).value >= 0.7
        fixed = pdp.MarkovChain(transition=[[1.0, 0.0], [0.5, 0.5]], length=length, initial=[1, 0])
        assert pdp.black_box_leakage(fixed, epsilon=0.7).value >= 0.7
        assert pdp.leakage(fixed, [pdp.Sum(), pdp.Sum(over=[0])], scale=[1.0, 2.0]).value >= 1.5
