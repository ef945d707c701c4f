"""The bound that prunes, and the arithmetic under it, one by one."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pdp_calibrate.families.gaussian import branch_and_bound as branching, nodes as judging
from pdp_calibrate.families.gaussian.branch_and_bound import _Open, climb, swept, swept_together
from pdp_calibrate.families.gaussian.instance import Instance, precision_of, search_tau
from pdp_calibrate.families.gaussian.nodes import Batch, LinearNodes
from pdp_calibrate.families.gaussian.sphere import KNOWN, OPEN, UNKNOWN, sphere_bound
from tests.oracles import gaussian as oracle
from tests.support.gaussian_draws import draw
from tests.support.marks import bounds_checked


def conditional(covariance, given):
    """Covariance of everything given some tuples, by the textbook formula."""
    inner = covariance[np.ix_(given, given)]
    cross = covariance[:, given]
    return covariance - cross @ np.linalg.solve(inner, cross.T) if given else covariance


def node(seed):
    problem = draw(seed, smallest=3, largest=7, exponents=0)
    rng = np.random.default_rng(seed)
    size = len(problem.weights)
    state = rng.choice([OPEN, OPEN, KNOWN, UNKNOWN], size=size).astype(np.uint8)
    target = int(rng.integers(size))
    state[target] = UNKNOWN
    known = [k for k in range(size) if state[k] == KNOWN]
    opened = [k for k in range(size) if k != target and state[k] == OPEN]
    return problem.model.covariance, problem.weights, target, state, known, opened


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_sphere_bounds_every_known_set_below_a_node(seed):
    covariance, weights, target, state, known, opened = node(seed)
    top = conditional(covariance, known)
    bottom = conditional(covariance, known + opened)
    slope = (bottom @ weights)[target] / bottom[target, target]
    left = weights @ bottom @ weights - slope**2 * bottom[target, target]
    bound = sphere_bound(
        top[target, target], (top @ weights)[target], weights @ top @ weights,
        bottom[target, target], slope, max(left, 0.0), weights @ covariance @ weights, 1e-15,
    )  # fmt: skip
    values = [
        abs(oracle.coefficient(covariance, weights, target, [*known, *more])[0])
        for count in range(len(opened) + 1)
        for more in itertools.combinations(opened, count)
    ]
    assert max(values) <= bound * (1 + 1e-9) + 1e-12
    nodes = linear_nodes(covariance, weights[np.newaxis])
    states = state[np.newaxis].copy()
    (steady,) = nodes.steady(
        Batch(
            np.flatnonzero(nodes.targets == target),
            states,
            np.array([len(known)]),
            np.array([len(opened)]),
        )
    )
    assert max(values) <= steady * (1 + 1e-9) + 1e-12
    assert steady <= bound * (1 + 1e-9) + 1e-12
    if len(opened) <= 1:  # the sphere is a segment, its ends are the known sets
        assert steady == pytest.approx(max(values), rel=1e-7, abs=1e-9)


def instance_of(covariance, coordinates, *, multiplier=0.0):
    size = len(covariance)
    multipliers = np.append(np.linspace(multiplier, 2 * multiplier, size - 1), 0.0)
    return Instance(
        covariance=covariance,
        coordinates=coordinates,
        factors=np.ones(size),
        multipliers=multipliers,
        targets=tuple(range(size)),
        fewest=0,
        most=size - 1,
    )


def linear_nodes(covariance, coordinates, **uncertain):
    instance = instance_of(covariance, coordinates, **uncertain)
    precision = precision_of(instance)
    return LinearNodes(instance, precision, tau=search_tau(instance, precision))


def compile_everything(monkeypatch):
    monkeypatch.setattr(judging, "UNCOMPILED_WORK", 0)


@pytest.mark.parametrize("seed", bounds_checked(range(60), 10, quick=15))
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_compiled_searches_find_what_interpreted_ones_find_to_the_bit(
    seed, clamped, ties, monkeypatch
):
    rng = np.random.default_rng(seed)
    covariance = draw(seed, smallest=2, largest=9, exponents=0).model.covariance
    coordinates = rng.normal(size=(1 if clamped else 1 + seed % 3, len(covariance)))
    if ties:
        covariance = np.where(np.eye(len(covariance)), 1.0, rng.uniform(-0.1, 0.9))
        coordinates = np.sign(coordinates)
    instance = instance_of(covariance, coordinates, multiplier=seed % 2 * rng.uniform(0, 0.5))
    fewest, most = sorted(rng.integers(len(covariance), size=2))
    instance = dataclasses.replace(instance, fewest=int(fewest), most=int(most))
    precision = precision_of(instance)
    search = branching.branch_and_bound_clamped if clamped else branching.branch_and_bound
    wanted = {"tau": search_tau(instance, precision), "incumbent": 0.0, "deadline": np.inf}
    interpreted = search(instance, precision, **wanted)
    compile_everything(monkeypatch)
    compiled = search(instance, precision, **wanted)
    assert compiled.upper == interpreted.upper
    assert compiled.best == interpreted.best
    assert compiled.best <= compiled.upper
    assert fewest <= len(compiled.known) <= most
    # Cut short, both stay certified.
    monkeypatch.setattr(branching, "VISITED_AT_MOST", 1)
    assert search(instance, precision, **wanted).upper >= compiled.best * (1 - 1e-9)


def test_a_search_goes_on_in_compiled_code(monkeypatch):
    sample = np.random.default_rng(0).normal(size=(36, 12))
    instance = instance_of(np.cov(sample.T), np.ones((1, 12)))
    precision = precision_of(instance)
    wanted = {"tau": search_tau(instance, precision), "incumbent": 0.0, "deadline": np.inf}
    monkeypatch.setattr(branching, "BATCHES", (2, 2))
    whole = branching.branch_and_bound(instance, precision, **wanted)
    monkeypatch.setattr(judging, "UNCOMPILED_WORK", 4 * 12**3)
    handed_over = branching.branch_and_bound(instance, precision, **wanted)
    assert handed_over.visited > 4
    assert handed_over.upper == pytest.approx(whole.upper, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_moments_after_elimination(seed):
    covariance, weights, target, state, known, _ = node(seed)
    line, diagonal, columns, corner = judging.eliminated(
        covariance, (covariance @ weights)[np.newaxis],
        np.array([[weights @ covariance @ weights]]),
        (state == KNOWN)[np.newaxis], np.array([target]),
    )  # fmt: skip
    expected = conditional(covariance, known)
    np.testing.assert_allclose(line[0], expected[target], atol=1e-12)
    np.testing.assert_allclose(diagonal[0], np.diagonal(expected), atol=1e-12)
    np.testing.assert_allclose(columns[0, 0], expected @ weights, atol=1e-12)
    assert corner[0, 0, 0] == pytest.approx(weights @ expected @ weights, abs=1e-11)


def test_sweeps_undo_each_other():
    covariance = draw(3, smallest=5, exponents=0).model.covariance
    places = np.array([2, 0])
    once = swept(np.array([covariance, covariance]), places)
    for tableau, place in zip(once, places, strict=True):
        expected = conditional(covariance, [place])
        left = [k for k in range(len(covariance)) if k != place]
        rest = np.ix_(left, left)
        np.testing.assert_allclose(tableau[rest], expected[rest], atol=1e-12)
    for tableau in swept(once, places):
        np.testing.assert_allclose(tableau, covariance, atol=1e-12)


def test_tuples_swept_together_are_swept_one_after_the_other():
    covariance = draw(3, smallest=5, exponents=0).model.covariance
    size = len(covariance)
    chosen = np.zeros((3, size - 1), dtype=np.bool_)  # the last entry is the answer's, never swept
    chosen[0, [0, 3]] = chosen[1, 1] = True  # and nobody in the third
    expected = np.array([covariance] * 3)
    for tableau, places in enumerate([[0, 3], [1], []]):
        for place in places:
            expected[tableau] = swept(expected[tableau][np.newaxis], np.array([place]))[0]
    inside = swept_together(np.array([covariance] * 3), chosen)
    np.testing.assert_allclose(inside, expected, atol=1e-12)
    np.testing.assert_allclose(swept_together(inside, chosen), [covariance] * 3, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("most", [1, 2, None])
def test_climbs_end_at_admitted_sets(seed, most):
    covariance, weights, _, _, _, _ = node(seed)
    nodes = linear_nodes(covariance, weights[np.newaxis])
    most = len(weights) - 1 if most is None else most
    nodes.instance = dataclasses.replace(nodes.instance, fewest=1, most=most)
    attacks = np.arange(len(weights)).repeat(2)
    _, states = climb(nodes, attacks, np.arange(len(attacks)) % 2 == 1)
    for attack, state in zip(attacks, states, strict=True):
        others = [k for k in range(len(weights)) if k != nodes.targets[attack]]
        assert 1 <= np.sum(state[others] == KNOWN) <= most


@pytest.mark.parametrize("seed", range(10))
def test_climbs_report_the_value_of_the_set_they_end_at(seed):
    covariance, weights, _, _, _, _ = node(seed)
    nodes = linear_nodes(covariance, weights[np.newaxis])
    nodes.instance = dataclasses.replace(nodes.instance, fewest=1)
    attacks = np.arange(len(weights)).repeat(2)
    values, states = climb(nodes, attacks, np.arange(len(attacks)) % 2 == 1)
    for attack, value, state in zip(attacks, values, states, strict=True):
        target = nodes.targets[attack]
        known = [k for k in range(len(weights)) if k != target and state[k] == KNOWN]
        assert len(known) >= 1
        slope, _ = oracle.coefficient(covariance, weights, target, known)
        assert value == pytest.approx(abs(slope), rel=1e-9, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.lists(st.floats(0, 1), max_size=20))
def test_nodes_pushed_onto_a_heap_are_in_a_heap(values, more):
    waiting = _Open(np.array(values), np.arange(len(values)), np.zeros((len(values), 1), np.uint8))
    waiting.make_heap()
    numbers = np.arange(len(values), len(values) + len(more))
    waiting.push(np.array(more), numbers, np.zeros((len(more), 1), np.uint8))
    assert waiting.top == max(values + more)
    waiting.make_heap()
    keys = waiting.keys[: waiting.count]
    assert all(keys[(place - 1) // 2] >= keys[place] for place in range(1, len(keys)))
    assert [(values + more)[owner] for owner in waiting.owners[waiting.slots[: len(keys)]]] == list(
        keys
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 9))
def test_the_largest_open_nodes_are_taken_first(values, number):
    waiting = _Open(np.array(values[:1]), np.array([0]), np.zeros((1, 1), dtype=np.uint8))
    for place, value in enumerate(values[1:], start=1):
        waiting.push(np.array([value]), np.array([place]), np.zeros((1, 1), dtype=np.uint8))
    taken = []
    while waiting.count:
        assert waiting.top == max(waiting.keys[: waiting.count])
        keys, owners, _ = waiting.take(number)
        assert min(keys) >= waiting.top
        assert [values[owner] for owner in owners] == keys.tolist()
        taken += owners.tolist()
    assert sorted(taken) == list(range(len(values)))
