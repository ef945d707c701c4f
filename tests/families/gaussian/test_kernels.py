"""The bound that prunes, and the arithmetic under it, one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pdp_calibrate.families.gaussian.kernels import (
    KNOWN,
    OPEN,
    UNKNOWN,
    climb,
    pop,
    push,
    schur_rows,
    sphere_bound,
    steady_bound,
    sweep,
)
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
    steady = steady_bound(covariance, weights, target, state, 1e-15, 0.0, 0.0)
    assert max(values) <= steady * (1 + 1e-9) + 1e-12
    assert steady <= bound * (1 + 1e-9) + 1e-12
    if len(opened) <= 1:  # the sphere is a segment, its ends are the known sets
        assert steady == pytest.approx(max(values), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", bounds_checked(range(20), 4))
def test_schur_rows(seed):
    covariance, weights, target, _, known, _ = node(seed)
    size = len(weights)
    line, diagonal, column = np.empty(size), np.empty(size), np.empty(size)
    lost = schur_rows(
        covariance, covariance @ weights, target, np.array([*known, 0]), len(known),
        np.empty((size, size)), line, diagonal, column,
    )  # fmt: skip
    expected = conditional(covariance, known)
    np.testing.assert_allclose(line, expected[target], atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diagonal(expected), atol=1e-12)
    np.testing.assert_allclose(column, expected @ weights, atol=1e-12)
    total = weights @ covariance @ weights
    assert total - lost == pytest.approx(weights @ expected @ weights, abs=1e-11)


def test_sweeps_undo_each_other():
    covariance = draw(3, smallest=5, exponents=0).model.covariance
    tableau = covariance.copy()
    sweep(tableau, 2)
    expected = conditional(covariance, [2])
    np.testing.assert_allclose(np.delete(np.delete(tableau, 2, 0), 2, 1),
                               np.delete(np.delete(expected, 2, 0), 2, 1), atol=1e-12)  # fmt: skip
    sweep(tableau, 2)
    np.testing.assert_allclose(tableau, covariance, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("start", [0, 1])
def test_a_climb_reports_the_value_of_the_set_it_ends_at(seed, start):
    covariance, weights, target, _, _, _ = node(seed)
    size = len(weights)
    state = np.zeros(size, dtype=np.uint8)
    product = covariance @ weights
    value = climb(
        covariance, weights, product, weights @ product, target, np.zeros(size), 1, size - 1,
        start, state,
    )  # fmt: skip
    known = [k for k in range(size) if k != target and state[k] == KNOWN]
    assert len(known) >= 1
    slope, _ = oracle.coefficient(covariance, weights, target, known)
    assert value == pytest.approx(abs(slope), rel=1e-9, abs=1e-12)


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_the_heap_sorts(values):
    keys, slots = np.zeros(64), np.arange(64)
    for size, value in enumerate(values):
        push(keys, slots, size, value, slots[size])
    assert sorted(slots.tolist()) == list(range(64))
    popped = [pop(keys, slots, size)[0] for size in range(len(values), 0, -1)]
    assert popped == sorted(values, reverse=True)
    assert sorted(slots.tolist()) == list(range(64))
