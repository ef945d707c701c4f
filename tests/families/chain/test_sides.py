"""Couplings of long chains, one side of the target at a time."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.chain import gaussian_noise
from pdp_calibrate.families.chain.sides import move_by_sides
from pdp_calibrate.families.chain.windows import Setup
from tests.core.test_couplings import monotone_moves
from tests.oracles import gaussian_mixtures as oracle
from tests.support.marks import slow_after


def random_chain(rng, length: int) -> pdp.MarkovChain:
    """A chain with two or three states, sometimes with steps that never happen."""
    states = int(rng.integers(2, 4))
    kernel = rng.dirichlet(np.full(states, rng.choice([0.3, 2.0])), states)
    if rng.random() < 0.3:
        kernel[0, -1] = 0.0
    kernel[kernel < 1e-3] = 0.0
    kernel /= kernel.sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.ones(states))
    values = sorted(map(int, rng.choice(5, states, replace=False)))
    return pdp.MarkovChain(transition=kernel, length=length, states=values, initial=initial)


def sides_of(chain, query=None) -> float:
    return move_by_sides(Setup(chain, lower(query or pdp.Sum(), chain)))


@pytest.mark.parametrize("seed", slow_after(6, range(40)))
def test_no_window_is_coupled_worse_than_its_sides(seed):
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, 3 + seed % 2)
    weights = [rng.choice([1, 1, 2, -1]) for _ in range(chain.length)] if seed % 2 else None
    query = pdp.Linear(weights=weights) if weights else pdp.Sum()
    values = [
        [state * (weights[place] if weights else 1) for state in chain.states]
        for place in range(chain.length)
    ]
    said = sides_of(chain, query)
    assert said <= sum(max(own) - min(own) for own in values) * (1 + 1e-9)
    for _, _, laws in oracle.adversaries(chain.to_table().probabilities, values):
        kept = list(laws.values())
        for first in kept:
            for second in kept:
                places = sorted({*first, *second})
                pair = [[law.get(place, 0.0) for place in places] for law in (first, second)]
                # Levels that only rounding tells apart may move further.
                moves = [m for m, mass in monotone_moves(places, *pair) if mass > 1e-12]
                assert float(max(moves)) <= said


def test_long_chains_move_as_little_as_short_ones():
    kernel = [[0.9, 0.1], [0.1, 0.9]]
    short = pdp.MarkovChain(transition=kernel, length=60, states=[0, 1])
    long = pdp.MarkovChain(transition=kernel, length=210, states=[0, 1])
    asked = {"scale": 20.0, "noise": "gaussian"}
    windows = pdp.leakage(short, pdp.Sum(), **asked).mu * 20
    sides = pdp.leakage(long, pdp.Sum(), **asked).mu * 20
    assert windows == pytest.approx(10)
    assert sides == pytest.approx(13)  # the whole range is 210
    cycle = pdp.MarkovChain(
        transition=[[0, 1, 0], [0, 0, 1], [1, 0, 0]], length=205, states=[0, 1, 2],
        initial=[0.2, 0.3, 0.5],
    )  # fmt: skip
    assert pdp.leakage(cycle, pdp.Sum(), **asked).mu * 20 <= 20


def test_rare_steps_are_compared_down_to_the_rarest_path():
    # Paths of probability 1e-1200: no float holds them, their logarithms do.
    kernel = [[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]]
    chain = pdp.MarkovChain(transition=kernel, length=201, states=[0, 1])
    assert sides_of(chain) == pytest.approx(201)  # all steps agree, nearly always
    swift = pdp.MarkovChain(transition=[[1e-6, 1 - 1e-6]] * 2, length=201, states=[0, 1])
    assert sides_of(swift) <= 3 * (1 + 1e-9)


def test_at_one_delta_windows_stand_for_larger_ones(monkeypatch):
    chain = pdp.MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=30, states=[0, 1])
    asked = {"scale": 5.0, "noise": "gaussian", "delta": 1e-5}
    whole = pdp.leakage(chain, pdp.Sum(), **asked)
    monkeypatch.setattr(Setup, "reach", lambda *_: 12)
    cut = pdp.leakage(chain, pdp.Sum(), **asked)
    assert cut.value >= whole.lower
    assert cut.value == pytest.approx(whole.value, rel=1e-3)
    by_coupling = gaussian_dp.epsilon_of(cut.coupled, 1e-5)
    assert by_coupling >= cut.value
    assert cut.coupled * 5 == pytest.approx(whole.coupled * 5, rel=1e-2)
    assert cut.mu * 5 <= 5  # by sides; the range is 30


def test_restricted_adversaries_of_long_chains_have_a_lower_end(monkeypatch):
    chain = pdp.MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=14, states=[0, 1])
    asked = {"scale": 4.0, "noise": "gaussian", "delta": 1e-4}
    for who in (
        pdp.Adversaries.knowing(at_most=3),
        pdp.Adversaries.knowing(at_least=2, at_most=9),
        pdp.Adversaries.weakest(),
    ):
        found = pdp.leakage(chain, pdp.Sum(), adversaries=who, **asked)
        assert 0.5 * found.value < found.lower <= found.value
    # What nobody knows beyond the window blurs the answer: a chain far longer than its memory.
    long = pdp.MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=202, states=[0, 1])
    weakest = pdp.leakage(long, pdp.Sum(), adversaries=pdp.Adversaries.weakest(), **asked)
    monkeypatch.setattr(gaussian_noise, "SIDE_STEPS", 0)
    cut = pdp.leakage(long, pdp.Sum(), adversaries=pdp.Adversaries.weakest(), **asked)
    assert weakest.exact
    assert weakest.value < cut.value
    assert weakest.witness.known == {}
