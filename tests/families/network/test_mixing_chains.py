"""All chains that forget fast enough: members never leak more, and the recursion is Birkhoff's."""

import itertools
import json
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.query import lower
from tests.oracles import brute_force as oracle


def recursion(budgets, diameter):
    """4·artanh(tanh(D/4)·tanh(a/4)) along both sides of every tuple, written out."""

    def carried(before):
        total = 0.0
        for budget in before:
            total = 4 * math.atanh(math.tanh(diameter / 4) * math.tanh((budget + total) / 4))
        return total

    return [
        budgets[i] + carried(budgets[:i]) + carried(budgets[:i:-1]) for i in range(len(budgets))
    ]


@pytest.mark.parametrize("seed", range(15))
def test_no_chain_of_the_set_leaks_more_whatever_its_steps(seed):
    rng = np.random.default_rng(seed)
    length, states = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    diameter, scale = float(rng.uniform(0.2, 4)), float(rng.uniform(0.3, 3))
    values = rng.normal(size=states).round(2).tolist()
    model = pdp.MixingChain(length=length, states=values, diameter=diameter)
    found = pdp.leakage(model, pdp.Sum(), scale=scale)
    spread = max(values) - min(values)
    truth = max(recursion([spread / scale] * length, diameter))
    assert found.value == pytest.approx(truth, rel=1e-9)
    assert found.value >= truth * (1 - 1e-12)
    worst, _ = oracle.worst_leakage(
        joint_law(rng, length, states, diameter), [values] * length, sum, scale,
        lambda i, known: True,  # noqa: ARG005
    )  # fmt: skip
    assert worst <= found.value * (1 + 1e-9)
    assert found.lower <= found.value
    member = found.witness.model
    assert pdp.MixingChain.diameter_of(member.transition) <= diameter * (1 + 1e-9)
    attained = pdp.leakage(member, pdp.Sum(), scale=scale, adversaries=found.witness.adversary)
    assert attained.value >= found.lower * (1 - 1e-9)


def joint_law(rng, length, states, diameter):
    """A chain of steps that differ, each with exactly this diameter, from any start."""
    joint = rng.dirichlet(np.ones(states))
    for _ in range(length - 1):
        logs = rng.normal(size=(states, states))
        power = diameter / pdp.MixingChain.diameter_of(_rows(np.exp(logs)))
        joint = joint[..., np.newaxis] * _rows(np.exp(power * (1 - 1e-9) * logs))
    return joint / joint.sum()


def _rows(weights):
    return weights / weights.sum(axis=1, keepdims=True)


def test_the_reference_chains_need_the_scales_that_are_known():
    for law, scale in [((0.1, 0.9), 8.908), ((0.2, 0.8), 3.961), ((0.3, 0.6), 1.857)]:
        up, stay = law
        diameter = pdp.MixingChain.diameter_of([[1 - up, up], [1 - stay, stay]])
        model = pdp.MixingChain(length=100, states=[0, 1], diameter=diameter)
        cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
        assert cal.scale == pytest.approx(scale, abs=6e-4)
        assert cal.leakage.value <= 1.0
        assert pdp.leakage(model, pdp.Sum(), scale=cal.scale * (1 - 1e-6)).value > 1.0


def test_no_memory_is_plain_privacy_and_little_forgetting_nearly_group_privacy():
    plain = pdp.MixingChain(length=5, states=[0, 2], diameter=0.0)
    assert pdp.leakage(plain, pdp.Sum()).value == pytest.approx(2.0)
    assert pdp.leakage(plain, pdp.Sum()).exact
    stuck = pdp.MixingChain(length=5, states=[0, 2], diameter=60.0)
    assert pdp.leakage(stuck, pdp.Sum()).value == pytest.approx(10.0, rel=1e-6)
    values = [
        pdp.leakage(pdp.MixingChain(length=5, states=[0, 2], diameter=d), pdp.Sum()).value
        for d in (0.0, 0.1, 1.0, 3.0, 10.0, 60.0)
    ]
    assert all(a < b for a, b in itertools.pairwise(values))


def test_what_is_known_cuts_the_chain():
    model = pdp.MixingChain(length=9, states=[0, 1], diameter=2.0)
    cut = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.exactly(4, known=[3, 6]))
    assert cut.value == pytest.approx(recursion([1.0, 1.0], 2.0)[0])
    strongest = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.strongest())
    assert (strongest.value, strongest.exact) == (pytest.approx(1.0), True)
    weakest = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert 1.0 < weakest.lower <= weakest.value


def test_ledger_and_black_box_use_the_same_recursion():
    model = pdp.MixingChain(length=6, states=[0, 1], diameter=1.5)
    bound = pdp.black_box_leakage(model, epsilon=0.3)
    assert bound.value == pytest.approx(max(recursion([0.3] * 6, 1.5)), rel=1e-9)
    assert bound.method == "birkhoff"
    budget = pdp.dp_budget(model, epsilon=1.0)
    assert pdp.black_box_leakage(model, epsilon=budget).value <= 1.0
    ledger = pdp.Ledger(model, epsilon=2.0)
    data = dict.fromkeys(range(6), 1)
    ledger.release(pdp.Sum(), data, epsilon=0.5)
    ledger.release(pdp.Sum(over=[0, 1]), data, epsilon=0.3)
    ledger.charge(0.05)
    scales = [entry.scales[0] for entry in ledger.history[:2]]
    budgets = [0.05 + 1 / scales[0] + (1 / scales[1] if place < 2 else 0.0) for place in range(6)]
    assert ledger.spent == pytest.approx(max(recursion(budgets, 1.5)), rel=1e-6)


def test_histograms_blocks_and_sets_of_chains():
    model = pdp.MixingChain(length=4, states=["a", "b", "c"], diameter=1.0)
    histogram = pdp.leakage(model, pdp.Histogram(), scale=2.0)
    assert histogram.value == pytest.approx(max(recursion([1.0] * 4, 1.0)), rel=1e-9)
    numbers = pdp.MixingChain(length=4, states=[0, 1], diameter=1.0)
    blocks = pdp.Blocks(models=[numbers, numbers], counts=[5, 1])
    whole, alone = pdp.leakage(blocks, pdp.Sum()), pdp.leakage(numbers, pdp.Sum())
    assert whole.value == pytest.approx(alone.value)
    chains = pdp.ModelSet(
        models=[
            pdp.MarkovChain(transition=[[1 - p, p], [p, 1 - p]], length=4) for p in (0.4, 0.1, 0.3)
        ]
    )
    worst = pdp.leakage(chains, pdp.Sum())
    assert worst.witness.index == 1
    assert worst.value == pytest.approx(pdp.leakage(chains.models[1], pdp.Sum()).value)
    assert pdp.calibrate(chains, pdp.Sum(), epsilon=1.0).leakage.value <= 1.0
    with pytest.raises(pdp.UnsupportedQueryError, match="Sum, Mean"):
        pdp.leakage(numbers, pdp.Custom(function=max))


@pytest.mark.parametrize("diameter", [-0.1, math.nan, math.inf, "fast", True])
def test_bad_diameters_are_refused(diameter):
    with pytest.raises(pdp.ModelError, match="diameter"):
        pdp.MixingChain(length=3, states=[0, 1], diameter=diameter)


def test_json_and_names():
    model = pdp.MixingChain(length=3, states=["x", "y"], diameter=1.234, provenance="public")
    assert pdp.MixingChain.from_dict(json.loads(json.dumps(model.to_dict()))) == model
    assert pdp.MixingChain.diameter_of([[0.5, 0.5], [1.0, 0.0]]) == math.inf
    secret = pdp.MixingChain(length=3, states=["x", "y"], diameter=1.234, provenance="private")
    assert "1.234" not in json.dumps(secret.to_dict()) + repr(secret)
    with pytest.raises(pdp.ModelError, match="length"):
        pdp.MixingChain(length=0, states=[0, 1], diameter=1.0)


@pytest.mark.parametrize("diameter", [0.0, 1e-9, 0.3, 5.0, 20.0, 40.0, 60.0, 73.0])
def test_the_persistence_of_a_chain_forgets_no_faster(diameter):
    for states in (2, 3, 7):
        found = pdp.MixingChain(length=2, states=range(states), diameter=diameter).persistence
        again = pdp.MixingChain.diameter_of_staying(found, states)
        assert diameter <= again
        assert again <= diameter * (1 + 1e-11) + 4 * 2.0**-53 / (1 - found)


@pytest.mark.parametrize("fewest", [0, 20, 37, 39])
def test_with_gaussian_noise_only_what_is_not_known_moves(fewest):
    chains = pdp.MixingChain(length=40, states=[0, 1], diameter=2.5)
    someone = pdp.Adversaries.knowing(at_least=fewest)
    noise = {"scale": 2.0, "noise": "gaussian", "delta": 1e-6}
    found = pdp.leakage(chains, pdp.Sum(), adversaries=someone, **noise)
    together = pdp.Unknown(size=40 - fewest, domain=[0, 1])
    assert found.value <= pdp.leakage(together, pdp.Sum(), **noise).value * (1 + 1e-9)
    if fewest == 39:
        assert found.lower == pytest.approx(found.value)
    else:  # a chain of the set, of which the others are known
        few = pdp.MixingChain(length=3, states=[0, 1], diameter=2.5)
        member = few.member(lower(pdp.Sum(), few)).to_table()
        assert pdp.leakage(member, pdp.Sum(), **noise).lower <= found.value
