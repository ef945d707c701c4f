"""Elimination: above brute force for every mechanism, never above the group bound, any order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.families.network import elimination
from pdp_calibrate.families.network.couplings import Couplings, EvenPath, pair_strength
from pdp_calibrate.families.network.elimination import Elimination, _Fronts, least_fill
from tests.oracles.networks import joint_law, laplace_likelihoods, leakages, random_mechanism
from tests.support.marks import bounds_checked, slow_after
from tests.support.networks import grid_edges, random_factors


def drawn(seed, most=5):
    """Return a random law and its network; None where nothing is possible."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, most + 1))
    sizes = [int(k) for k in rng.integers(2, 4, size)]
    factors = random_factors(rng, sizes, zeros=seed % 2 == 1)
    joint = joint_law(sizes, factors)
    if not joint.any():
        return None
    domains = {place: range(number) for place, number in enumerate(sizes)}
    return rng, sizes, joint, pdp.Network(factors=factors, domains=domains)


@pytest.mark.parametrize("seed", slow_after(40, range(900)))
def test_no_mechanism_tells_more(seed):
    found = drawn(seed)
    if found is None:
        return
    rng, sizes, joint, network = found
    size = len(sizes)
    added = [rng.choice([-1.0, 0.5, 2.0]) * np.arange(number) for number in sizes]
    scale = float(rng.choice([0.5, 3.0]))
    cases = [
        (
            np.array([np.ptp(one) for one in added]) / scale,
            joint,
            laplace_likelihoods(added, scale),
        )
    ]
    budgets = rng.exponential(size=size) * rng.choice([0.2, 1.0, 4.0])
    hinted = joint
    for place, number in enumerate(sizes):
        hint = np.exp(2 * rng.normal(size=number))
        hinted = hinted * hint.reshape([-1 if k == place else 1 for k in range(size)])
    cases.append((budgets, hinted, random_mechanism(rng, sizes, budgets)[np.newaxis]))
    for budgets, law, likelihoods in cases:
        truth = leakages(law, likelihoods)
        bounds = Elimination(network.couplings).bounds(budgets, range(size))
        assert np.all(truth <= bounds * (1 + 1e-11) + 1e-12)
        assert bounds.max() <= budgets.sum() * (1 + 1e-12)
        order = [*rng.permutation(size).tolist()]
        any_order = _Fronts(network.couplings, order).last().bounds(budgets)[order[-1]]
        assert truth[order[-1]] <= any_order * (1 + 1e-11) + 1e-12


def random_couplings(rng, size, share):
    pairs = itertools.combinations(range(size), 2)
    return Couplings(size, {pair: rng.exponential() for pair in pairs if rng.random() < share})


def plain_elimination(couplings, order, budgets):
    """The definition, with dense arrays and no rounding up."""

    def tensor(one, other):
        if math.isinf(one) or math.isinf(other):
            return min(one, other)
        return 4 * math.atanh(math.tanh(one / 4) * math.tanh(other / 4))

    size = couplings.size
    strengths = np.zeros((size, size))
    for (first, second), strength in couplings.strengths.items():
        strengths[first, second] = strengths[second, first] = strength
    budgets = np.array(budgets, dtype=float)
    for number, gone in enumerate(order[:-1]):
        left = order[number + 1 :]
        for k in left:
            budgets[k] += tensor(strengths[gone, k], budgets[gone])
        for k, m in itertools.combinations(left, 2):
            more = tensor(strengths[gone, k], strengths[gone, m])
            strengths[k, m] = strengths[m, k] = strengths[k, m] + more
    return budgets[order[-1]]


@pytest.mark.parametrize("seed", bounds_checked(range(20), 4))
def test_fronts_do_what_dense_arrays_do(seed):
    rng = np.random.default_rng(seed)
    couplings = random_couplings(rng, 8, 0.4)
    budgets = rng.exponential(size=8)
    order = rng.permutation(8).tolist()
    expected = plain_elimination(couplings, order, budgets)
    program = _Fronts(couplings, order).last()
    for compiled in (False, True):
        found = program.bounds(budgets, compiled=compiled)[order[-1]]
        assert expected <= found <= expected * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_two_passes_are_eliminations_of_some_order(seed):
    """No target gets less than its best order, nor more than the group bound."""
    rng = np.random.default_rng(100 + seed)
    couplings = random_couplings(rng, 6, 0.5)
    budgets = rng.exponential(size=6)
    for together in couplings.components:
        if len(together) < 2:
            continue
        fronts = _Fronts(couplings, least_fill(couplings, together))
        for target, bound in fronts.each(frozenset(together)).bounds(budgets).items():
            others = [place for place in together if place != target]
            best = min(
                plain_elimination(couplings, [*order, target], budgets)
                for order in itertools.permutations(others)
            )
            assert best * (1 - 1e-12) <= bound <= sum(budgets) * (1 + 1e-12)


def test_far_neighbourhoods_cost_little(monkeypatch):
    """Targets that share who is far away get almost the bound of an order of their own."""
    couplings = Couplings(100, dict.fromkeys(grid_edges(10, 10), 0.8))
    ones = np.ones(100)
    whole = Elimination(couplings).bounds(ones, range(100)).max()
    monkeypatch.setattr(elimination, "NEIGHBOURHOOD", 30)
    shared = Elimination(couplings).bounds(ones, range(100)).max()
    assert whole * (1 - 1e-3) <= shared <= whole * 1.03


def test_no_work_left_is_still_a_bound(monkeypatch):
    couplings = Couplings(36, dict.fromkeys(grid_edges(6, 6), 1.0))
    ones = np.ones(36)
    best = Elimination(couplings).bounds(ones, range(36))
    monkeypatch.setattr(elimination, "ELIMINATION_REFINED", 0.0)
    coarse = Elimination(couplings).bounds(ones, range(36))
    assert np.all(best <= coarse * (1 + 1e-12))
    monkeypatch.setattr(elimination, "ELIMINATION_WORK", 0.0)
    monkeypatch.setattr(elimination, "ELIMINATION_EACH", 0.0)
    merged = Elimination(couplings)
    assert merged.bounds(ones, range(36)) == pytest.approx(couplings.merged_bounds(ones))
    assert merged.bounds(ones, [7])[7] == pytest.approx(couplings.merged_bounds(ones)[7])


def test_known_tuples_cut_a_path():
    budgets = np.array([1.0, 2.0, 1.0, 0.5, 3.0, 1.0])
    path = EvenPath(6, 1.5)
    plain = Couplings(6, path.strengths)
    for known in (frozenset(), frozenset({2}), frozenset({0, 4})):
        expected = plain.without(known).forest_bounds(budgets)
        found = path.without(known).forest_bounds(budgets)
        unknown = [place for place in range(6) if place not in known]
        assert found[unknown] == pytest.approx(expected[unknown], rel=1e-12)


def test_strengths_of_extreme_factors():
    assert pair_strength(np.array([[1e-300, 1.0], [1.0, 1.0]]), 0, 1) == pytest.approx(690.7755)
    assert pair_strength(np.ones((3, 1)), 0, 1) == 0.0
    assert pair_strength(np.array([[0.0, 1.0], [1.0, 0.0]]), 0, 1) == math.inf


def test_several_releases_add_up_per_tuple():
    size = 30
    network = pdp.Network(
        factors=[(edge, [[3, 2], [2, 3]]) for edge in grid_edges(5, 6)],
        domains={place: [0, 1] for place in range(size)},
    )
    couplings = network.couplings

    def bound(budgets):
        return float(Elimination(couplings).bounds(np.asarray(budgets), range(size)).max())

    assert pdp.black_box_leakage(network, epsilon=0.2).value == pytest.approx(
        bound(np.full(size, 0.2)), rel=1e-9
    )
    twice = pdp.leakage(network, [pdp.Sum(), pdp.Sum(over=range(15))], scale=[4.0, 8.0])
    budgets = np.full(size, 1 / 4) + np.where(np.arange(size) < 15, 1 / 8, 0.0)
    assert twice.value == pytest.approx(bound(budgets), rel=1e-9)
    counted = pdp.leakage(network, pdp.Histogram(), scale=6.0)
    assert counted.value == pytest.approx(bound(np.full(size, 2 / 6)), rel=1e-9)
    ledger = pdp.Ledger(network, epsilon=1.0)
    data = dict.fromkeys(range(size), 0)
    first = ledger.release(pdp.Sum(), data, epsilon=0.3)
    second = ledger.release(pdp.Count(values={1}, over=[0, 1, 2]), data, epsilon=0.2)
    ledger.charge(0.05)
    scales = [one.calibration.scale for one in (first, second)]
    budgets = np.full(size, 1 / scales[0] + 0.05)
    budgets[:3] += 1 / scales[1]
    assert ledger.spent == pytest.approx(bound(budgets), rel=1e-6)
