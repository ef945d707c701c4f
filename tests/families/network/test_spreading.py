"""How far differences spread over networks: Gaussian noise on networks too large for a table."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.couplings import RandomMove, epsilon_of_moves
from pdp_calibrate.families.network import gaussian_noise, spreading
from pdp_calibrate.families.network.couplings import Couplings
from pdp_calibrate.families.network.spreading import random_move
from tests.oracles import gaussian_mixtures as oracle
from tests.support.marks import slow_after


def open_cluster_law(size, shares, weights, target):
    """P(weight of the tuples reached from the target), by listing all sets of open edges."""
    found: dict[float, float] = {}
    edges = list(shares)
    for opened in itertools.product((0, 1), repeat=len(edges)):
        chance = math.prod(
            shares[e] if o else 1 - shares[e] for e, o in zip(edges, opened, strict=True)
        )
        reached, waiting = {target}, [target]
        while waiting:
            place = waiting.pop()
            for (a, b), o in zip(edges, opened, strict=True):
                if o and place in (a, b):
                    other = b if place == a else a
                    if other not in reached:
                        reached.add(other)
                        waiting.append(other)
        weight = sum(weights[p] for p in reached)
        found[weight] = found.get(weight, 0.0) + chance
    assert size >= len(reached)
    return found


def random_forest(rng, size):
    """Couplings of a forest, some edges missing and some infinite."""
    strengths = {}
    for place in range(1, size):
        if rng.random() < 0.9:
            strength = math.inf if rng.random() < 0.1 else float(rng.exponential(2))
            strengths[int(rng.integers(place)), place] = strength
    return Couplings(size, strengths)


@pytest.mark.parametrize("seed", slow_after(8, range(60)))
def test_the_move_in_a_forest_is_that_of_its_open_clusters(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    couplings = random_forest(rng, size)
    weights = rng.choice([0.0, 1.0, 2.0, 3.0], size) if seed % 2 else np.ones(size)
    target = int(rng.integers(size))
    longest = float(weights[list(couplings.distances(target))].sum())
    found = random_move(couplings, weights, [target], longest)
    shares = {pair: math.tanh(d / 4) for pair, d in couplings.strengths.items()}
    exact = open_cluster_law(size, shares, weights, target)
    for distance in np.linspace(0, longest, 9):
        truth = sum(p for w, p in exact.items() if w > distance + 1e-9)
        # A bound on P(move > distance) is that of the first move beyond it.
        further = np.flatnonzero(found.moves > distance + 1e-6 * (1 + longest))
        said = found.reached[further[0]] if len(further) else 0.0
        assert said >= truth * (1 - 1e-12)
        assert said <= truth * (1 + 1e-8) + 1e-300


def random_network(rng, size: int, *, loops: bool) -> pdp.Network:
    pairs = {(int(rng.integers(k)), k) for k in range(1, size)}
    if loops:
        pairs |= {(0, size - 1), (0, 2)}
    strength = rng.choice([0.2, 0.8])
    factors = [
        ((f"n{a}", f"n{b}"), np.exp(rng.normal(0, strength, (2, 2)))) for a, b in sorted(pairs)
    ]
    return pdp.Network(factors=factors, domains={f"n{k}": [0, 1] for k in range(size)})


@pytest.mark.parametrize("seed", slow_after(6, range(40)))
def test_no_adversary_of_a_network_exceeds_its_random_coupling(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 3 + seed // 2 % 3, loops=bool(seed % 2))
    # As if it were too large for a table.
    monkeypatch.setattr(gaussian_noise.SHORT_TABLE.__class__, "admits", lambda *_: False)
    sigma, delta = 2.0, float(rng.choice([1e-2, 1e-4]))
    asked = {"noise": "gaussian", "scale": sigma}
    leak = pdp.leakage(network, pdp.Sum(), delta=delta, **asked)
    assert leak.coupled <= leak.mu
    monkeypatch.undo()
    table = network.to_table()
    exact = pdp.leakage(table, pdp.Sum(), delta=delta, **asked)
    assert leak.lower <= exact.value * (1 + 1e-9)
    assert leak.value >= exact.lower * (1 - 1e-9)
    assert leak.lower > 0
    if seed >= 2 or len(network.names) > 3:
        return
    # Every adversary by roots in 30 digits, at the ε that is claimed.
    values = [[0, 1]] * len(network.names)
    worst = max(
        oracle.delta_by_roots(places, p, q, sigma, leak.value)
        for _, _, laws in oracle.adversaries(table.probabilities, values)
        for first, second in itertools.permutations(laws.values(), 2)
        for places in [sorted({*first, *second})]
        for p, q in [[[law.get(place, 0.0) for place in places] for law in (first, second)]]
    )
    assert worst <= delta


def test_differences_rarely_spread_far():
    alike = np.array([[0.7, 0.3], [0.3, 0.7]])
    names = [f"n{k}" for k in range(60)]
    path = pdp.Network(
        factors=[(pair, alike) for pair in itertools.pairwise(names)],
        domains={name: [0, 1] for name in names},
    )
    asked = {"noise": "gaussian", "scale": 31.17, "delta": 1e-6}
    leak = pdp.leakage(path, pdp.Sum(), **asked)
    # The mean over two geometric numbers of steps, by hand.
    steps = np.arange(1, 61)
    chances = steps * 0.6**2 * 0.4 ** (steps - 1)
    total = sum(
        chance * gaussian_dp.delta_of(float(step) / 31.17, leak.value)
        for step, chance in zip(steps, chances, strict=True)
    )
    assert total == pytest.approx(1e-6, rel=1e-6)
    assert leak.value == pytest.approx(1.0, abs=1e-3)
    assert leak.mu * 31.17 == pytest.approx(60)  # at every delta, all may move
    assert leak.lower > 2 * gaussian_dp.epsilon_of(1 / 31.17, 1e-6)  # ten steps, all else known
    assert len(leak.witness.known) == 50
    chain = pdp.MarkovChain(transition=alike, length=60, states=[0, 1])
    assert pdp.leakage(chain, pdp.Sum(), **asked).value < leak.value
    # The same bound, whatever the chain is that forgets as fast; and with its ends known.
    mixing = pdp.MixingChain(length=400, states=[0, 1], diameter=pdp.MixingChain.diameter_of(alike))
    assert pdp.leakage(mixing, pdp.Sum(), **asked).value == pytest.approx(leak.value, rel=1e-6)
    known = pdp.Adversaries.exactly("n30", known=["n28", "n33"])
    close = pdp.leakage(path, pdp.Sum(), adversaries=known, **asked)
    assert close.mu * 31.17 == pytest.approx(4)
    assert close.value < leak.value


def test_weak_loops_keep_differences_near_and_strong_ones_do_not():
    def grid(strength):
        weight = math.exp(strength)
        alike = [[weight, 1 / weight], [1 / weight, weight]]
        cells = list(itertools.product(range(6), repeat=2))
        pairs = [
            (a, b) for a in cells for b in cells if (b[0] - a[0], b[1] - a[1]) in ((0, 1), (1, 0))
        ]
        return pdp.Network(
            factors=[(pair, alike) for pair in pairs], domains={cell: [0, 1] for cell in cells}
        )

    asked = {"noise": "gaussian", "scale": 60.0, "delta": 1e-6}
    weak, strong = (pdp.leakage(grid(j), pdp.Sum(), **asked) for j in (0.03, 0.5))
    assert weak.coupled < weak.mu / 2
    assert strong.coupled == pytest.approx(strong.mu)


@pytest.mark.parametrize("strength", [0.05, 0.3, 0.8, 2.0, 6.0])
def test_what_never_ends_is_not_lost_to_rounding(strength):
    # A ring of loops: two ways to go on from everywhere.
    size = 12
    pairs = {(k, (k + 1) % size) for k in range(size)} | {(k, (k + 5) % size) for k in range(size)}
    couplings = Couplings(size, {tuple(sorted(pair)): strength for pair in pairs})
    found = random_move(couplings, np.ones(size), range(size), float(size))
    assert found.reached[0] == 1.0
    assert np.all(np.diff(found.reached) <= 1e-15)
    share, ways = math.tanh(4 * strength / 4), 3
    # The probability that a branch dies out, by its own equation.
    dies = 0.0
    for _ in range(10_000):
        dies = 1 - share + share * dies**ways
    assert found.reached[-1] >= (1 - dies**4) * (1 - 1e-6) - 1e-12


@pytest.mark.parametrize("excess", [-1e-15, 1e-15])
def test_what_rounding_adds_does_not_multiply(monkeypatch, excess):
    # Whichever way a machine rounds, moves that never end stay a share of 1.
    joined = spreading._joined
    monkeypatch.setattr(spreading, "_joined", lambda one, other: joined(one, other) * (1 + excess))
    size = 12
    pairs = {(k, (k + 1) % size) for k in range(size)} | {(k, (k + 5) % size) for k in range(size)}
    for strength in np.linspace(0.1, 3.0, 30):
        couplings = Couplings(size, {tuple(sorted(pair)): strength for pair in pairs})
        found = random_move(couplings, np.ones(size), range(size), float(size))
        assert found.reached[0] == 1.0
        assert np.all(np.diff(found.reached) <= 1e-15)


def test_rare_long_moves_cost_little_and_their_probability_is_charged():
    once = RandomMove(np.array([1.0, 40.0]), np.array([1.0, 1e-7]))
    found = epsilon_of_moves(once, 5.0, 1e-6)
    mean = gaussian_dp.delta_of(1 / 5, found)
    mean += 1e-7 * (gaussian_dp.delta_of(8.0, found) - mean)
    assert mean == pytest.approx(1e-6, rel=1e-6)
    assert epsilon_of_moves(once, 5.0, 0.5) == 0.0
    often = RandomMove(np.array([1.0, 40.0]), np.array([1.0, 1e-5]))
    assert epsilon_of_moves(often, 5.0, 1e-6) > 5  # more than δ: the long move decides
    for mu, epsilon in itertools.product([1e-6, 1e-3, 0.5, 3.0, 80.0], [0.0, 1e-3, 1.0, 30.0]):
        above = float(gaussian_dp.deltas_above(np.array([mu]), epsilon)[0])
        assert above >= gaussian_dp.delta_of(mu, epsilon) * (1 - 3e-13) - 1e-310
        assert above <= gaussian_dp.delta_of(mu, epsilon) * (1 + 1e-3) + 1e-14
