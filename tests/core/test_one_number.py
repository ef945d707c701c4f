"""Answers of several numbers that are one number in truth (Theorem 25)."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.contributions import Contributions
from tests.oracles.vectors import worst_vector_leakage
from tests.support.marks import slow_after


def line_of(*values, euclidean=False):
    arrays = [np.array(value, dtype=float) for value in values]
    return Contributions.additive(arrays).line(euclidean=euclidean)


@pytest.mark.parametrize("seed", slow_after(12, range(100)))
def test_parallel_answers_leak_what_brute_force_over_all_outputs_finds(seed):
    rng = np.random.default_rng(seed)
    size, several = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    cells = rng.dirichlet(np.full(2**size, rng.choice([0.2, 1.0])))
    cells[rng.random(cells.size) < 0.2] = 0.0
    table = pdp.JointTable(
        probabilities=(cells / cells.sum()).reshape((2,) * size), domains=[[0, 1]] * size
    )
    weights = rng.integers(-2, 3, size=size).astype(float)
    weights[int(rng.integers(size))] = 1.0
    factors = rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0], size=several)
    queries = [pdp.Linear(weights=(factor * weights).tolist()) for factor in factors]
    scales = rng.uniform(0.5, 4.0, size=several).tolist()
    everyone = bool(rng.random() < 0.5)
    leak = pdp.leakage(
        table,
        queries,
        scale=scales,
        adversaries=pdp.Adversaries.all() if everyone else pdp.Adversaries.weakest(),
    )
    truth = worst_vector_leakage(
        table.probabilities,
        table.domains,
        lambda x: tuple(factor * float(np.dot(weights, x)) for factor in factors),
        scales,
        lambda _target, known: everyone or not known,
    )
    assert truth <= leak.value * (1 + 1e-12) + 1e-14
    assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-12)
    assert leak.lower == pytest.approx(truth, rel=1e-9, abs=1e-12)
    if leak.witness is not None and truth > 0:
        assert len(leak.witness.output) == several


MODELS = {
    "table": pdp.JointTable(
        probabilities=np.random.default_rng(3).dirichlet(np.ones(64)).reshape((2,) * 6),
        domains=[[0, 1]] * 6,
    ),
    "chain": pdp.MarkovChain(transition=[[0.9, 0.1], [0.3, 0.7]], length=30),
    "group": pdp.BinaryGroup(count_probabilities=[0.1, 0.2, 0.3, 0.25, 0.15]),
    "blocks": pdp.Blocks(
        models=[
            pdp.BinaryGroup(count_probabilities=[0.4, 0.2, 0.4]),
            pdp.MarkovChain(transition=[[0.9, 0.1], [0.3, 0.7]], length=4),
        ],
        counts=[3, 2],
    ),
    "any": pdp.Unknown(size=4, domain=[0, 1]),
}


@pytest.mark.parametrize("adversaries", [pdp.Adversaries.all(), pdp.Adversaries.weakest()])
@pytest.mark.parametrize("name", MODELS)
def test_a_histogram_of_yes_and_no_costs_twice_the_count(name, adversaries):
    model = MODELS[name]
    both = pdp.calibrate(model, pdp.Histogram(), adversaries=adversaries).scale
    count = pdp.calibrate(model, pdp.Count(values={1}), adversaries=adversaries).scale
    assert both == pytest.approx(2 * count, rel=1e-9)


@pytest.mark.parametrize("name", ["table", "chain", "group", "any"])
def test_with_gaussian_noise_it_costs_the_root_of_two(name):
    gaussian = {"noise": "gaussian", "delta": 1e-6, "epsilon": 1.0}
    both = pdp.calibrate(MODELS[name], pdp.Histogram(), **gaussian).scale
    count = pdp.calibrate(MODELS[name], pdp.Count(values={1}), **gaussian).scale
    assert both == pytest.approx(2**0.5 * count, rel=1e-9)


def test_whole_numbers_stay_whole():
    line = line_of([[1, 0], [0, 1]], [[0, 1], [1, 0]], [[2, 5], [4, 3]])
    assert [array[:, 0].tolist() for array in line.contributions.values] == [
        [0, -2],
        [0, 2],
        [0, 4],
    ]
    assert line.contributions.rounding == 0
    assert line.answer(0.0) == (3.0, 6.0)
    first, second = line.answer(line.contributions.values[2][1, 0])
    assert (first, second) == (5.0, 4.0)
    assert set(line.answer(float("inf"))) == {float("inf"), float("-inf")}


def test_what_does_not_move_stays_where_it_is_far_out():
    assert line_of([[0, 7], [1, 7]]).answer(float("-inf")) == (float("-inf"), 7.0)


@pytest.mark.parametrize(
    "values",
    [
        ([[1, 0], [0, 1], [0, 0]],),  # three values, two categories
        ([[0, 0], [1, 0]], [[0, 0], [0, 1]]),
        ([[0, 0], [1, 1 + 1e-12]], [[0, 0], [1, 1]]),
        ([[3, 4], [3, 4]],),
        ([[0], [1]],),
    ],
)
def test_other_answers_are_no_line(values):
    assert line_of(*values) is None


def test_what_is_parallel_up_to_rounding_is_charged():
    third = [[0.0, 0.0], [0.1, 0.3]]
    other = [[0.0, 0.0], [0.7, 0.7 * 3]]
    line = line_of(third, other)
    assert 0 < line.contributions.rounding < 1e-14
    assert line.contributions.total_range() == pytest.approx(0.4 + 2.8)
    euclidean = line_of(third, other, euclidean=True)
    assert euclidean.contributions.total_range() == pytest.approx(10**0.5 * 0.8)


@pytest.mark.parametrize("several", [2, 3, 5, 7])
def test_a_length_that_is_a_root_is_charged(several):
    """The root is rounded, down for 3 answers: what it lacks is part of the bound."""
    values = [[0.0] * several, [1.0] * several]
    line = line_of(values, values, euclidean=True)
    exact = 2 * np.sqrt(np.longdouble(several))
    reached = np.longdouble(line.contributions.total_range()) + line.contributions.rounding
    assert 0 < line.contributions.rounding < 1e-14
    assert reached >= exact
    assert line_of(values, values).contributions.rounding == 0
