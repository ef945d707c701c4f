"""Networks: stated references, never below brute force, the same law however it is given."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.families.network.elimination import Elimination, _Fronts, farthest_first
from tests.support.networks import contraction_bounds, grid_edges, ising_factors


def ising(size, edges, strength, **options):
    domains = {place: [0, 1] for place in range(size)}
    return pdp.Network(factors=ising_factors(edges, strength), domains=domains, **options)


def cycle(size):
    return [(place, (place + 1) % size) for place in range(size)]


STAR = [(0, leaf) for leaf in range(1, 6)]
DENSE = list(itertools.combinations(range(6), 2))
PATH = [(place, place + 1) for place in range(5)]
REFERENCES = {  # exact over all K; index order; farthest first; all others merged
    "grid": (9, grid_edges(3, 3), 0.2, 1.9728873, 2.1788852, 2.1349910, 4.0337098),
    "cycle": (6, cycle(6), 0.2, 1.4317134, 1.4968561, 1.4748191, 2.3368665),
    "strong cycle": (6, cycle(6), 0.5, 2.2905850, 2.8754556, 2.6336386, 4.0739415),
    "star": (6, STAR, 0.3, 2.3544274, 2.4293867, 2.4293867, 5.0600029),
    "dense": (6, DENSE, 0.1, 1.6205391, 1.7613755, 1.7613755, 2.6566743),
    "negative": (6, DENSE, -0.1, 1.0, 1.7613755, 1.7613755, 2.6566743),
    "path": (6, PATH, 0.5, 2.2162719, 2.5568411, 2.3796278, 4.0739415),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_references(name):
    size, edges, strength, exact, by_index, by_distance, merged = REFERENCES[name]
    network, ones = ising(size, edges, strength), np.ones(size)
    couplings = network.couplings

    def summed_out(order_of):
        programs = ((i, _Fronts(couplings, order_of(i)).last()) for i in range(size))
        return max(program.bounds(ones)[i] for i, program in programs)

    assert pdp.leakage(network, pdp.Sum(), scale=1.0).value == pytest.approx(exact, abs=1e-7)
    index = summed_out(lambda i: [*(k for k in range(size) if k != i), i])
    assert index == pytest.approx(by_index, abs=1e-7)
    distance = summed_out(lambda i: farthest_first(couplings, i))
    assert distance == pytest.approx(by_distance, abs=1e-7)
    assert couplings.merged_bounds(ones).max() == pytest.approx(merged, abs=1e-7)
    found = Elimination(couplings).bounds(ones, range(size)).max()
    assert exact - 1e-7 <= found <= by_distance + 1e-7


def test_a_grid_of_625():
    couplings = ising(625, grid_edges(25, 25), 0.1).couplings
    for target, bound in ((312, 1.5399772), (0, 1.2426718)):
        program = _Fronts(couplings, farthest_first(couplings, target)).last()
        assert program.bounds(np.ones(625), compiled=True)[target] == pytest.approx(bound, abs=1e-7)
        found = Elimination(couplings).bounds(np.ones(625), [target])[target]
        assert bound - 1e-7 <= found <= bound * 1.001


def test_zeros_that_do_not_cancel_are_infinite():
    cells = np.zeros((2, 2, 2))
    cells[0, 0, 0] = cells[1, 1, 1] = 0.5
    alike = pdp.Network(factors=[("abc", cells)], domains={name: [0, 1] for name in "abc"})
    assert set(alike.couplings.strengths.values()) == {math.inf}
    knowledge = pdp.Adversaries.all().resolve(alike)
    assert contraction_bounds(alike, [1, 1, 1], knowledge).max() == pytest.approx(3, abs=1e-12)
    assert pdp.leakage(alike, pdp.Sum(), scale=1.0).value == pytest.approx(3, abs=1e-9)


def test_zeros_that_cancel_are_not():
    """The last two rule each other out, whatever the first holds: it stays as free as it was."""
    pair = np.array([[3.0, 1.0], [1.0, 3.0]])
    cells = pair[:, :, np.newaxis] * np.array([[1.0, 2.0], [1.0, 0.0]])
    network = pdp.Network(factors=[("abc", cells)], domains={name: [0, 1] for name in "abc"})
    strengths = network.couplings.strengths
    assert strengths[1, 2] == math.inf
    assert strengths[0, 1] == pytest.approx(math.log(9), rel=1e-12)
    assert strengths[0, 2] < math.log(9)


def test_a_network_is_the_table_that_it_multiplies_out_to():
    pedigree = (
        {"ann": {0: 0.9, 1: 0.1}, "bob": {0: 0.7, 1: 0.3}},
        {
            "eve": (["ann", "bob"], {
                (a, b): {0: 0.95 - 0.3 * (a + b), 1: 0.05 + 0.3 * (a + b)}
                for a in (0, 1) for b in (0, 1)
            }),
            "joe": (["eve"], {0: {0: 0.9, 1: 0.1}, 1: {0: 0.4, 1: 0.6}}),
        },
    )  # fmt: skip
    network = pdp.Network.from_conditionals(*pedigree)
    table = pdp.JointTable.from_conditionals(*pedigree)
    assert network.names == table.names
    assert network.to_table().probabilities == pytest.approx(table.probabilities, rel=1e-12)
    for scale in (0.3, 2.0):
        both = [pdp.leakage(model, pdp.Sum(), scale=scale).value for model in (network, table)]
        assert both[0] == pytest.approx(both[1], rel=1e-9)


@pytest.mark.parametrize("private", [False, True])
def test_json(private):
    edges = cycle(4)
    network = ising(4, edges, 0.3, provenance="private" if private else "public")
    stored = json.loads(json.dumps(network.to_dict()))
    back = Model.from_dict(stored)
    assert back is None if private else back == network
    assert not private or "factors" not in stored


def test_json_of_a_set():
    people = {name: ["a", "b"] for name in ("ann", "bob", "eve")}
    every = pdp.Network.from_influences({("bob", "ann"): 1.2, ("bob", "eve"): 0.5}, people)
    back = Model.from_dict(json.loads(json.dumps(every.to_dict())))
    assert back == every
    assert back.couplings.strengths == {(0, 1): 1.2, (1, 2): 0.5}


def test_a_set_covers_its_members_and_is_bounded_below_by_one():
    influences = {(0, 1): 1.0, (1, 2): 1.5, (0, 2): 0.7, (2, 3): 2.0}
    every = pdp.Network.from_influences(influences, {place: [0, 1] for place in range(4)})
    leak = pdp.leakage(every, pdp.Sum(), scale=1.0)
    assert 1 < leak.lower < leak.value
    rng = np.random.default_rng(3)
    for _ in range(20):
        factors = [
            (pair, np.exp(rng.choice([-1, 1]) * strength / 4 * np.array([[1, -1], [-1, 1]])))
            for pair, strength in influences.items()
        ]
        factors += [((place,), rng.exponential(size=2)) for place in range(4)]
        member = pdp.Network(factors=factors, domains={place: [0, 1] for place in range(4)})
        assert pdp.leakage(member, pdp.Sum(), scale=1.0).value <= leak.value
    with pytest.raises(pdp.UnsupportedQueryError):
        pdp.leakage(every, pdp.Custom(function=max), scale=1.0)


@pytest.mark.parametrize(
    ("factors", "rule"),
    [
        ([("ab", [[1, 2]])], "an axis per tuple"),
        ([("ab", [[1, -2], [1, 1]])], "negative"),
        ([("ab", [[0, 0], [0, 0]])], "positive entry"),
        ([("ab", [[1, math.nan], [1, 1]])], "finite"),
        ([("az", [[1, 1], [1, 1]])], "no domain"),
        ([("aa", [[1, 1], [1, 1]])], "twice"),
        ([("", 1.0)], "at least one"),
        (["ab"], "a pair"),
        ([("a", [1, 0]), ("a", [0, 1])], "rule out every value"),
        ([("ab", [[1e200, 1e-200], [1, 1]])], "within a factor"),
    ],
)
def test_what_is_refused(factors, rule):
    with pytest.raises(pdp.ModelError, match=rule):
        pdp.Network(factors=factors, domains={"a": [0, 1], "b": [0, 1]})


def test_calibration_is_tight_for_what_is_bounded():
    network = ising(64, grid_edges(8, 8), 0.2)
    found = pdp.calibrate(network, pdp.Sum(), epsilon=1.0)
    assert 2 < found.scale < 3
    assert found.leakage.value <= 1.0
    assert pdp.leakage(network, pdp.Sum(), scale=found.scale * 0.999).value > 1.0


def test_influences_and_factors_of_another_shape_are_named():
    people = {"a": [0, 1], "b": [0, 1]}
    for influences in ([("a", "b", 1.0)], None, 1.0):
        with pytest.raises(pdp.ModelError, match="must be a mapping"):
            pdp.Network.from_influences(influences, people)
    for about in (None, (["a"],)):
        with pytest.raises(pdp.ModelError, match="list of names"):
            pdp.Network(factors=[(about, [0.5, 0.5])], domains=people)
