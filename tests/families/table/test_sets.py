"""Sets of tables by their conditional laws: balls around a centre, and samples."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.query import lower
from tests.oracles.table_sets import worst_of_pair, worst_over_balls
from tests.support.marks import bounds_checked
from tests.support.random_models import adversary_kinds


def random_center(rng, *, zeros=False, largest=4):
    sizes = [int(rng.integers(2, 4)) for _ in range(int(rng.integers(2, largest)))]
    cells = rng.dirichlet(np.ones(math.prod(sizes))).reshape(sizes)
    if zeros:
        cells[rng.random(sizes) < 0.3] = 0.0
        cells.flat[0] += 0.1
    lattice = rng.random() < 0.5
    domains = [
        rng.choice(np.arange(-2, 5), size, replace=False).tolist() if lattice
        else rng.normal(scale=2, size=size).round(3).tolist()
        for size in sizes
    ]  # fmt: skip
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


def parts_of(model, query):
    return [part[:, 0].tolist() for part in lower(query, model).values]


@pytest.mark.parametrize("seed", bounds_checked(range(25), 4))
def test_balls_equal_brute_force_for_all_adversaries(seed):
    rng = np.random.default_rng(seed)
    center = random_center(rng, zeros=seed % 3 == 0)
    radius, scale = float(rng.uniform(0, 0.5)), float(10 ** rng.uniform(-0.7, 1.5))
    query = (
        pdp.Sum() if seed % 2 else pdp.Linear(weights=rng.normal(size=len(center.names)).round(3))
    )
    ball = pdp.ConditionalBall(center=center, radius=radius)
    for adversaries, admits in adversary_kinds(rng, center.names):
        found = pdp.leakage(ball, query, scale=scale, adversaries=adversaries)
        truth = worst_over_balls(
            center.probabilities, parts_of(center, query), scale, lambda *_: radius, admits=admits
        )
        assert found.value >= truth * (1 - 1e-12)
        assert found.lower <= truth * (1 + 1e-9) + 1e-12
        assert found.value == pytest.approx(truth, rel=1e-8, abs=1e-11)
        assert found.exact


@pytest.mark.parametrize("seed", range(2))
def test_moving_mass_by_hand_is_the_linear_program(seed):
    rng = np.random.default_rng(100 + seed)
    center = random_center(rng, largest=3)
    arguments = center.probabilities, parts_of(center, pdp.Sum()), 0.8, lambda *_: 0.13
    by_hand = worst_over_balls(*arguments)
    assert worst_over_balls(*arguments, program=True) == pytest.approx(by_hand, rel=1e-7)


@pytest.mark.parametrize("seed", bounds_checked(range(10), 2))
def test_samples_equal_brute_force_with_the_radius_written_out(seed):
    rng = np.random.default_rng(200 + seed)
    sizes = [int(rng.integers(2, 4)) for _ in range(int(rng.integers(2, 4)))]
    counts = rng.multinomial(int(10 ** rng.uniform(1, 5)), rng.dirichlet(np.ones(math.prod(sizes))))
    counts = counts.reshape(sizes)
    domains = [list(range(size)) for size in sizes]
    confidence = float(rng.uniform(0.5, 0.99))
    model = pdp.SampledTable(counts=counts, domains=domains, confidence=confidence)
    events = sum(
        size * math.prod(1 + other for j, other in enumerate(sizes) if j != i)
        for i, size in enumerate(sizes)
    )
    assert model.events == events

    def radius(rows, values):
        if values == 1:
            return 0.0
        return math.sqrt(math.log((2**values - 2) * events / (1 - confidence)) / (2 * rows))

    truth = worst_over_balls(counts, domains, 1.3, radius)
    found = pdp.leakage(model, pdp.Sum(), scale=1.3)
    assert found.value >= truth * (1 - 1e-12)
    assert found.value == pytest.approx(truth, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_from_the_exact_leakage_to_group_privacy_without_a_step_back(seed):
    rng = np.random.default_rng(300 + seed)
    center = random_center(rng)
    query = pdp.Sum()
    group = lower(query, center).total_range()
    radii = [0.0, 1e-9, 1e-4, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0]
    values = [
        pdp.leakage(pdp.ConditionalBall(center=center, radius=radius), query).value
        for radius in radii
    ]
    assert values[0] == pytest.approx(pdp.leakage(center, query).value, rel=1e-9)
    assert values[1] == pytest.approx(values[0], rel=1e-6)
    assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(values))
    assert values[-1] == pytest.approx(group, rel=1e-9)
    assert max(values) <= group * (1 + 1e-12)


def inside_every_ball(center, radius, rng):
    """Mix the centre with another table so little that no conditional law leaves its ball.

    With θ' = (1−w)·θ + w·φ, the law given an event of probability P under θ moves by at most
    w·φ(event)/θ'(event); w is halved until that is below the radius for every cell, and so for
    every event, a union of cells.
    """
    other = rng.dirichlet(np.full(center.probabilities.size, 0.3)).reshape(
        center.probabilities.shape
    )
    weight = 1.0
    while True:
        mixed = (1 - weight) * center.probabilities + weight * other
        share = weight * other / mixed
        if share.max() <= radius:
            return pdp.JointTable(probabilities=mixed / mixed.sum(), domains=center.domains)
        weight /= 1.5


@pytest.mark.parametrize("seed", range(12))
def test_no_table_with_every_law_inside_leaks_more_and_the_worst_pair_of_laws_attains_it(seed):
    rng = np.random.default_rng(400 + seed)
    center = random_center(rng)
    radius = float(rng.uniform(0.02, 0.3))
    ball = pdp.ConditionalBall(center=center, radius=radius)
    found = pdp.leakage(ball, pdp.Sum(), scale=0.7)
    for _ in range(15):
        member = inside_every_ball(center, radius, rng)
        assert pdp.leakage(member, pdp.Sum(), scale=0.7).value <= found.value * (1 + 1e-9)
    witness = found.witness
    pair = pdp.leakage(witness.model, pdp.Sum(), scale=0.7, adversaries=witness.adversary)
    assert pair.lower >= found.lower * (1 - 1e-9)
    at = pdp.posterior(
        witness.model, pdp.Sum(), scale=0.7, target=witness.target, known=witness.known,
        output=witness.output,
    )  # fmt: skip
    assert at.log_odds_gain(*witness.secrets) == pytest.approx(found.value, rel=1e-7)


def test_an_unseen_event_says_nothing_however_many_rows_there_are():
    many = 10**9
    one = [[[many, many], [many, many]], [[many, many], [0, 0]]]
    both = [[[many, many], [0, 0]], [[many, many], [0, 0]]]
    knows = pdp.Adversaries.exactly("x1", known=["x2"])
    # x3 is 0 or 1 alike given x1 = 0; given x1 = 1 it may be anything, such as always 1.
    one_is_free = math.log((1 + math.exp(-1)) / 2 / math.exp(-2))
    for counts, truth in ((one, one_is_free), (both, 2.0)):
        model = pdp.SampledTable(counts=counts, domains=[[0, 1]] * 3)
        found = pdp.leakage(model, pdp.Sum(), adversaries=knows)
        assert found.value == pytest.approx(truth, rel=1e-3)
        table = np.array(counts) / np.sum(counts)
        center = pdp.JointTable(probabilities=table, domains=[[0, 1]] * 3)
        ball = pdp.ConditionalBall(center=center, radius=0.0)
        assert pdp.leakage(ball, pdp.Sum(), adversaries=knows).value == pytest.approx(truth)
        assert pdp.leakage(center, pdp.Sum(), adversaries=knows).value <= 1.0 + 1e-9


def test_the_strongest_adversary_learns_what_plain_privacy_says():
    center = pdp.JointTable(probabilities=[[0.5, 0.0], [0.0, 0.5]], domains=[[0, 3], [0, 5]])
    ball = pdp.ConditionalBall(center=center, radius=0.4)
    strongest = pdp.Adversaries.strongest()
    found = pdp.leakage(ball, pdp.Sum(), scale=2.0, adversaries=strongest)
    assert (found.value, found.witness.target) == (pytest.approx(2.5), "x2")
    assert found.exact


@pytest.mark.parametrize("scale", [1e-5, 1e-2, 1.0, 1e3, 1e6])
def test_any_scale_is_certified(scale):
    center = pdp.JointTable(
        probabilities=[[0.3, 0.2, 0.05], [0.1, 0.3, 0.05]], domains=[[0, 1], [0, 1, 7]]
    )
    for radius in (0.0, 1e-12, 0.1, 1.0):
        ball = pdp.ConditionalBall(center=center, radius=radius)
        found = pdp.leakage(ball, pdp.Sum(), scale=scale)
        assert 1 / scale <= found.value <= 8 / scale * (1 + 1e-12)
        assert found.exact
    assert found.value == pytest.approx(8 / scale, rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_the_bracket_holds_the_truth_in_sixty_digits(seed):
    """Extreme scales, radii at rounding and exactly at a mass, rare and impossible cells."""
    rng = np.random.default_rng(600 + seed)
    cells = rng.dirichlet(np.full(9, rng.choice([0.05, 1.0]))).reshape(3, 3)
    cells = np.where(rng.random((3, 3)) < rng.choice([0.0, 0.2]), 0.0, np.maximum(cells, 1e-290))
    if seed % 4 == 0:
        cells = np.array([[0.25, 0.125, 0.125], [0.125, 0.0625, 0.0625], [0.125, 0.0625, 0.0625]])
    center = pdp.JointTable(
        probabilities=cells / cells.sum(), domains=[[0, 1, 5], rng.normal(size=3).tolist()]
    )
    law = center.probabilities[0] / center.probabilities[0].sum()
    radius = float(rng.choice([0.0, 1e-300, 1e-15, 1e-6, 0.25, 0.5, law[1], law[2], 0.999999]))
    scale = float(10 ** rng.uniform(-4, 5))
    found = pdp.leakage(
        pdp.ConditionalBall(center=center, radius=min(radius, 1.0)), pdp.Sum(), scale=scale
    )
    domains = [list(domain) for domain in center.domains]
    truth = worst_of_pair(center.probabilities, domains, scale, min(radius, 1.0))
    assert found.lower <= truth <= found.value
    if seed % 4 and np.abs(law - radius).min() > 1e-12:  # a mass just gone may change everything
        assert found.value == pytest.approx(float(truth), rel=1e-6)


def test_leakage_falls_with_the_scale():
    rng = np.random.default_rng(5)
    for _ in range(5):
        ball = pdp.ConditionalBall(center=random_center(rng), radius=float(rng.uniform(0, 0.3)))
        values = [pdp.leakage(ball, pdp.Sum(), scale=s).value for s in np.geomspace(0.05, 50, 25)]
        assert all(a >= b * (1 - 1e-12) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("query", [pdp.Sum(), pdp.Mean(), pdp.Count(values={1}), pdp.Histogram()])
def test_calibrate_proves_its_scale_and_no_smaller_one_would_do(query):
    rng = np.random.default_rng(6)
    counts = rng.multinomial(4000, rng.dirichlet(np.ones(8))).reshape(2, 2, 2)
    model = pdp.SampledTable(counts=counts, domains=[[0, 1]] * 3, names=["a", "b", "c"])
    cal = pdp.calibrate(model, query, epsilon=0.8)
    assert cal.leakage.value <= 0.8
    assert pdp.leakage(model, query, scale=cal.scale * (1 - 1e-6)).value > 0.8
    assert cal.baselines["dp"] <= cal.scale <= cal.baselines["group"] * (1 + 1e-9)
    again = pdp.Calibration.from_json(cal.to_json())
    assert (again.scale, again.model) == (cal.scale, model)
    assert isinstance(cal.leakage.witness.model, pdp.JointTable)


def test_a_histogram_is_searched_at_every_point_of_its_grid():
    rng = np.random.default_rng(8)
    center = pdp.JointTable(
        probabilities=rng.dirichlet(np.ones(9)).reshape(3, 3), domains=["abc"] * 2
    )
    ball = pdp.ConditionalBall(center=center, radius=0.0)
    exact = pdp.leakage(center, pdp.Histogram(), scale=0.9)
    assert pdp.leakage(ball, pdp.Histogram(), scale=0.9).value == pytest.approx(
        exact.value, rel=1e-9
    )
    wide = pdp.ConditionalBall(center=center, radius=0.1)
    found = pdp.leakage(wide, pdp.Histogram(), scale=0.9)
    assert exact.value < found.value <= 4 / 0.9
    outputs = itertools.product(np.linspace(-1, 3, 17), repeat=3)
    law = center.probabilities / center.probabilities.sum(axis=1, keepdims=True)
    corner = np.eye(3)
    for output in outputs:  # a grid of outputs of its own, weakest adversary on x1
        ends = []
        for secret in range(3):
            kernel = np.exp(-np.abs(np.array(output) - corner[secret] - corner).sum(axis=1) / 0.9)
            rank = np.argsort(kernel)
            ends.append(
                [_moved(law[secret], rank, kernel), _moved(law[secret], rank[::-1], kernel)]
            )
        ratios = [math.log(ends[v][0] / ends[w][1]) for v, w in itertools.permutations(range(3), 2)]
        assert max(ratios) <= found.value * (1 + 1e-9)


def _moved(law, rank, kernel, radius=0.1):
    """Take mass from the first in the rank, give it to the last."""
    moved, left = law.copy(), radius
    for place in rank[:-1]:
        off = min(left, moved[place])
        moved[place] -= off
        moved[rank[-1]] += off
        left -= off
    return float(moved @ kernel)


def test_lists_of_queries_blocks_and_ledgers():
    rng = np.random.default_rng(9)
    center = pdp.JointTable(
        probabilities=rng.dirichlet(np.ones(8)).reshape(2, 2, 2), domains=[[0, 1]] * 3
    )
    ball = pdp.ConditionalBall(center=center, radius=0.05)
    both = pdp.calibrate(ball, [pdp.Sum(), pdp.Sum(over=["x1"])], epsilon=1.0)
    assert both.leakage.value <= 1.0
    tight = pdp.calibrate(center, [pdp.Sum(), pdp.Sum(over=["x1"])], epsilon=1.0)
    assert both.scales[0] > tight.scales[0]
    blocks = pdp.Blocks(models=[ball, ball], counts=[3, 2])
    assert pdp.leakage(blocks, pdp.Sum()).value == pytest.approx(pdp.leakage(ball, pdp.Sum()).value)
    hidden = pdp.leakage(blocks, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    alone = pdp.leakage(ball, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert hidden.lower <= hidden.value == pytest.approx(alone.value)
    assert math.isinf(hidden.witness.output)
    ledger = pdp.Ledger(ball, epsilon=2.0)
    ledger.release(pdp.Sum(), {"x1": 1, "x2": 0, "x3": 1}, epsilon=0.5)
    ledger.release(pdp.Sum(over=["x2"]), {"x1": 1, "x2": 0, "x3": 1}, epsilon=0.5)
    assert 0.5 < ledger.spent <= 2.0
    with pytest.raises(pdp.UnsupportedQueryError, match="Sum, Mean, Linear"):
        pdp.leakage(ball, pdp.Custom(function=max))


@pytest.mark.compiled
def test_too_large_is_refused_and_a_time_limit_gives_a_bracket():
    size = 17
    center = pdp.JointTable(probabilities=np.full((2,) * size, 2.0**-size), domains=[[0, 1]] * size)
    ball = pdp.ConditionalBall(center=center, radius=0.1)
    with pytest.raises(pdp.ModelError, match="time_limit"):
        pdp.leakage(ball, pdp.Sum())
    found = pdp.leakage(ball, pdp.Sum(), time_limit=0.1)
    assert found.lower == pytest.approx(1.0)
    assert found.value == pytest.approx(size)
    weakest = pdp.leakage(ball, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert weakest.value == pytest.approx(weakest.lower, rel=1e-7)
    cells = np.random.default_rng(1).dirichlet(np.ones(2**9)).reshape((2,) * 9)
    smaller = pdp.ConditionalBall(
        center=pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 9), radius=0.01
    )
    short, full = (
        pdp.leakage(smaller, pdp.Linear(weights=list(range(1, 10))), time_limit=limit)
        for limit in (0.02, None)
    )
    assert short.lower <= full.lower <= full.value <= short.value * (1 + 1e-9)
    assert not short.exact
    rushed = pdp.calibrate(smaller, pdp.Sum(), epsilon=0.5, time_limit=0.0)
    assert rushed.leakage.value <= 0.5
    assert rushed.scale <= rushed.baselines["group"] * (1 + 1e-9)
