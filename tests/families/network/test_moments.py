"""Exact sums over networks: marginals, draws, limits, and what positive association makes exact."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.network.moments import Sums, association_slack
from tests.families.network.test_elimination import drawn
from tests.oracles.brute_force import log_density_ratio, placed
from tests.support.networks import grid_edges, ising_factors


@pytest.mark.parametrize("seed", range(30))
def test_marginals_are_sums_over_the_joint_law(seed, monkeypatch):
    together = 4 ** (1 + seed % 5)  # however many fronts go together
    monkeypatch.setattr("pdp_calibrate.families.network.fronts.MOMENT_TOGETHER", together)
    found = drawn(seed)
    if found is None:
        return
    rng, sizes, joint, network = found
    tilts = [rng.normal(size=(2, number)) for number in sizes]
    everyone, errors = Sums(network, {}).log_marginals(tilts)
    assert errors.shape == (2,)
    assert errors.max() < 1e-10
    laws = [joint, joint]
    for axis, tilt in enumerate(tilts):
        shape = [-1 if k == axis else 1 for k in range(len(sizes))]
        laws = [law * np.exp(row).reshape(shape) for law, row in zip(laws, tilt, strict=True)]
    for target in range(len(sizes)):
        alone, _ = Sums(network, {}, target).log_marginals(tilts)
        others = tuple(axis for axis in range(len(sizes)) if axis != target)
        for row, law in enumerate(laws):
            with np.errstate(divide="ignore"):
                truth = np.log(law.sum(axis=others))
            for logs in (everyone[target][row], alone[target][row]):
                assert logs - logs.max() == pytest.approx(truth - truth.max(), abs=1e-10)


@pytest.mark.parametrize("stretch", [17.0, 19.25, 23.0])
def test_errors_cover_tilts_that_cancel_what_children_say(stretch):
    """Leaves hold 1 only where they are tilted, and then lean as far against the centre's tilt."""
    leaves, lean = 3000, stretch / 3
    factor = np.array([[1.0, 1.0], [math.exp(-stretch), math.exp(-stretch - lean)]])
    network = pdp.Network(
        factors=[((leaf, leaves), factor) for leaf in range(leaves)],
        domains={place: [0, 1] for place in range(leaves + 1)},
    )
    tilt = Decimal(stretch) + 8
    with localcontext(prec=50):
        (_, _), (none, one) = [[Decimal(float(cell)) for cell in row] for row in factor]
        leaned = ((1 + one * tilt.exp()) / (1 + none * tilt.exp())).ln() * leaves
        centre = float(-leaned)
        exact = leaned + Decimal(centre)
    tilts = [np.array([[0.0, float(tilt)]])] * leaves + [np.array([[0.0, centre]])]
    found, (error,) = Sums(network, {}).log_marginals(tilts)
    ((low, high),) = found[leaves]
    assert abs(Decimal(float(high)) - Decimal(float(low)) - exact) <= Decimal(float(error))
    assert error < 1e-4


def test_draws_follow_the_law_given_what_is_fixed():
    network = pdp.Network(
        factors=[*ising_factors(grid_edges(2, 3), 0.4), ((0,), [1, 3])],
        domains={place: [0, 1] for place in range(6)},
    )
    draws = Sums(network, {3: 1}).draws(40_000, np.random.default_rng(0)).astype(int)
    counts = np.zeros((2,) * 6)
    np.add.at(counts, tuple(draws.T), 1)
    law = network.to_table().probabilities.copy()
    law[:, :, :, 0] = 0
    assert counts / 40_000 == pytest.approx(law / law.sum(), abs=0.012)


def cycle(size, strength):
    edges = [(place, (place + 1) % size) for place in range(size)]
    return pdp.Network(
        factors=ising_factors(edges, strength), domains={place: [0, 1] for place in range(size)}
    )


def test_positive_association_is_told_from_its_absence():
    for strength, query, positive in (
        (0.3, pdp.Sum(), True),
        (-0.3, pdp.Sum(), False),
        (-0.3, pdp.Linear(weights=[1, -1, 1, -1, 1, -1]), True),
        (0.3, pdp.Linear(weights=[1, -1, 1, 1, 1, 1]), False),
        (-0.3, pdp.Sum(over=[0]), True),  # the others may be turned round
    ):
        network = cycle(6, strength)
        slack = association_slack(network, lower(query, network))
        assert (slack < 1e-10) if positive else slack == math.inf


@pytest.mark.parametrize("strength", [0.2, 0.5])
def test_the_limits_are_exact_where_tuples_are_positively_associated(strength, monkeypatch):
    network = cycle(6, strength)
    sets = [
        pdp.Adversaries.weakest(),
        pdp.Adversaries.exactly(0),
        pdp.Adversaries.exactly(0, known=[3]),
        pdp.Adversaries.exactly(2, known=[0, 1, 4]),
    ]
    searched = [pdp.leakage(network, pdp.Sum(), scale=1.0, adversaries=who) for who in sets]
    everyone = pdp.leakage(network, pdp.Sum(), scale=1.0)
    monkeypatch.setattr(pdp.Network, "fits_a_table", False)
    for who, truth in zip(sets, searched, strict=True):
        found = pdp.leakage(network, pdp.Sum(), scale=1.0, adversaries=who)
        assert found.exact
        assert found.value == pytest.approx(truth.value, rel=1e-9)
    found = pdp.leakage(network, pdp.Sum(), scale=1.0)
    assert found.lower <= everyone.value <= found.value
    assert found.lower == pytest.approx(searched[0].value, rel=1e-9)  # somebody who knows nobody


def test_nobody_known_is_not_always_worst():
    path = pdp.Network(
        factors=ising_factors([(place, place + 1) for place in range(5)], 0.5),
        domains={place: [0, 1] for place in range(6)},
    )
    nobody = pdp.leakage(path, pdp.Sum(), scale=1.0, adversaries=pdp.Adversaries.weakest())
    everyone = pdp.leakage(path, pdp.Sum(), scale=1.0)
    assert nobody.value == pytest.approx(2.2141831, abs=1e-7)
    assert everyone.value == pytest.approx(2.2162719, abs=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_lower_ends_are_attained(seed, monkeypatch):
    found = drawn(200 + 2 * seed)
    rng, sizes, joint, network = found
    monkeypatch.setattr(pdp.Network, "fits_a_table", False)
    monkeypatch.setattr("pdp_calibrate.families.network.moments.MOMENT_CELLS", 2 ** (2 + seed % 6))
    weights = rng.choice([-1.0, 0.5, 1.0, 2.0], len(sizes)).tolist()
    leak = pdp.leakage(network, pdp.Linear(weights=weights), scale=1.5)
    witness = leak.witness
    assert leak.lower <= leak.value
    if witness is None or math.isinf(witness.output):
        output = math.copysign(500.0, witness.output) if witness else 0.0
    else:
        output = witness.output
    domains = [list(domain) for domain in network.domains]
    ratio = log_density_ratio(
        joint / joint.sum(),
        domains,
        lambda row: sum(weight * value for weight, value in zip(weights, row, strict=True)),
        1.5,
        placed(witness, network.names, output=output),
    )
    assert ratio == pytest.approx(leak.lower, rel=1e-9, abs=1e-9)


def test_a_large_grid_has_a_lower_end_within_a_region(monkeypatch):
    """Where a sum over everyone is too much, somebody who knows all around a region is worst."""
    monkeypatch.setattr("pdp_calibrate.families.network.moments.MOMENT_CELLS", 2**7)
    domains = {place: [0, 1] for place in range(64)}
    grid = pdp.Network(factors=ising_factors(grid_edges(8, 8), 0.1), domains=domains)
    nobody = pdp.leakage(grid, pdp.Sum(), scale=2.0, adversaries=pdp.Adversaries.exactly(27))
    assert nobody.lower == 0.0
    leak = pdp.leakage(grid, pdp.Sum(), scale=2.0)
    assert 0.85 * leak.value < leak.lower < leak.value
    assert len(leak.witness.known) == 64 - 40


def test_audits_draw_from_networks_too_large_for_tables():
    grid = pdp.Network(
        factors=ising_factors(grid_edges(3, 10), 0.2), domains={k: [0, 1] for k in range(30)}
    )
    cal = pdp.calibrate(grid, pdp.Sum(), epsilon=1.0)
    found = pdp.audit(cal, draws=12_000, confidence=1 - 1e-11)  # noise takes no seed
    assert 0 < found.lower_bound <= 1.0


def test_every_pair_of_values_counts():
    """Three values, of which the middle one adds most: the extremes are in the order of sums."""
    alike = np.exp(np.multiply.outer([0, 2, 1], [0, 2, 1]) * 0.4)
    network = pdp.Network(
        factors=[(pair, alike) for pair in itertools.pairwise(range(3))],
        domains={place: [0, 5, 1] for place in range(3)},
    )
    contributions = lower(pdp.Sum(), network)
    assert association_slack(network, contributions) < 1e-10


def test_more_tuples_in_a_front_than_an_array_has_axes():
    # Everyone is coupled with everyone: the first front holds all 70.
    edges = list(itertools.combinations(range(70), 2))
    network = pdp.Network(
        factors=ising_factors(edges, 0.001), domains={place: [0, 1] for place in range(70)}
    )
    assert not Sums(network, {}, 0).is_affordable
    found = pdp.leakage(network, pdp.Sum(), scale=3.0)
    assert 1 / 3 <= found.lower <= found.value < 70 / 3
