"""The ledger: never past the budget, and as tight as the best bound there is."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.composition.joint import Spending, spent
from pdp_calibrate.core.query import lower
from tests.oracles import gaussian as gaussian_oracle
from tests.oracles.adversaries import every_adversary, everyone
from tests.oracles.vectors import worst_vector_leakage
from tests.support.marks import slow_after

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
HERE = {"a": 1, "b": 0}


def small_model(rng):
    """A model of any discrete family, and the tables that it stands for."""
    kind = rng.choice(["table", "group", "categories", "chain", "tree", "blocks", "set", "unknown"])
    cells = rng.dirichlet(np.full(4, 0.6), size=2).reshape(2, 2, 2)
    cells = np.maximum(cells, 1e-4)
    tables = [pdp.JointTable(probabilities=t / t.sum(), domains=[[0, 1]] * 2) for t in cells]
    if kind == "group":
        group = pdp.BinaryGroup(count_probabilities=rng.dirichlet(np.ones(4)))
        return group, [group.to_table()]
    if kind == "categories":
        crew = pdp.CategoryGroup(
            size=2, categories=[0, 1, 3], count_probabilities=rng.dirichlet(np.ones(6))
        )
        return crew, [crew.to_table()]
    if kind == "tree":
        laws = rng.dirichlet(np.ones(2), size=5)
        tree = pdp.MarkovTree(
            domains=[[0, 1]] * 3, parents=[1, None, 1], tables=[laws[:2], laws[2], laws[3:]]
        )
        return tree, [tree.to_table()]
    if kind == "chain":
        chain = pdp.MarkovChain(transition=rng.dirichlet(np.ones(2), size=2), length=3)
        return chain, [chain.to_table()]
    if kind == "blocks":
        return pdp.Blocks(models=tables, names=list("abcd")), tables
    if kind == "set":
        return pdp.ModelSet(models=tables), tables
    if kind == "unknown":
        follow = np.array([[0.5, 0.0], [0.0, 0.5]])
        return pdp.Unknown(size=2, domain=[0, 1]), [
            pdp.JointTable(probabilities=follow, domains=[[0, 1]] * 2)
        ]
    return tables[0], tables[:1]


def random_query(model, rng):
    kind = rng.choice(["sum", "some", "linear", "count"])
    names = model.names
    some = [name for name in names if rng.random() < 0.6] or [names[0]]
    if kind == "sum":
        return pdp.Sum()
    if kind == "some":
        return pdp.Sum(over=some)
    if kind == "count":
        return pdp.Count(values={0}, over=some)
    return pdp.Linear(weights=rng.choice([-1.0, 0.5, 1.0, 2.0], size=len(names)).tolist())


def joint_truth(model, table, releases, positions):
    """Brute force of what the releases leak together about one table."""
    parts = [lower(query, model) for query, _ in releases]

    def answers(cell):
        return tuple(
            sum(float(part.values[p][value, 0]) for p, value in zip(positions, cell, strict=True))
            for part in parts
        )

    domains = [range(len(domain)) for domain in table.domains]
    scales = [scale for _, scale in releases]
    return worst_vector_leakage(table.probabilities, domains, answers, scales, everyone)


@pytest.mark.parametrize("group", slow_after(3, range(10)))
def test_random_sequences_never_pass_the_budget(group):
    """Twenty sequences each; refused releases leave no trace."""
    for seed in range(20 * group, 20 * group + 20):
        rng = np.random.default_rng(seed)
        model, tables = small_model(rng)
        budget = float(rng.choice([0.5, 2.0, 5.0]))
        ledger = pdp.Ledger(model, epsilon=budget)
        made = []
        for _ in range(3):
            query = random_query(model, rng)
            cal = pdp.calibrate(model, query, epsilon=float(rng.uniform(0.1, 0.6) * budget))
            before = ledger.spent
            try:
                ledger.spend(cal)
                made.append((query, cal.scale))
            except pdp.BudgetExceededError:
                assert ledger.spent == before
        assert len(ledger.history) == len(made)
        assert ledger.spent <= budget
        start = 0
        for table in tables:
            size = len(table.names)
            positions = range(start, start + size)
            start += size if isinstance(model, pdp.Blocks) else 0
            assert joint_truth(model, table, made, positions) <= ledger.spent * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_charges_cover_any_mechanism_beside_the_answers(seed):
    """Laplace answers at the worst output, times a random ε₀-Lipschitz likelihood."""
    rng = np.random.default_rng(seed)
    cells = np.maximum(rng.dirichlet(np.full(8, 0.6)), 1e-5).reshape(2, 2, 2)
    table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * 3)
    ledger = pdp.Ledger(table, epsilon=50.0)
    cal = pdp.calibrate(table, pdp.Sum(), epsilon=1.0)
    ledger.spend(cal)
    budget = float(rng.uniform(0.1, 1.0))
    total = ledger.charge(budget / 2, neighbours="add-remove", note="their pipeline")
    assert ledger.history[-1].dp_epsilon == budget
    assert ledger.history[-1].method == "dual"
    assert total == ledger.spent
    assert total > cal.leakage.lower
    points = np.array(list(np.ndindex(2, 2, 2)))
    distance = (points[:, np.newaxis] != points).sum(axis=-1) * budget
    for _ in range(30):
        likelihood = np.exp((rng.normal(scale=3, size=(1, 8)) + distance).min(axis=1))
        for output in range(4):
            both = likelihood * np.exp(-np.abs(points.sum(axis=1) - output) / cal.scale)
            assert _largest_gain(table.probabilities, both.reshape(2, 2, 2)) <= total


def _largest_gain(table, likelihood):
    worst = 0.0
    for target, size in itertools.product(range(3), range(3)):
        others = [j for j in range(3) if j != target]
        for unknown in itertools.combinations(others, size):
            joint = np.moveaxis((likelihood * table).sum(axis=unknown, keepdims=True), target, -1)
            mass = np.moveaxis(table.sum(axis=unknown, keepdims=True), target, -1)
            logs = np.log(joint / mass)
            worst = max(worst, float(np.ptp(logs, axis=-1).max()))
    return worst


@pytest.mark.parametrize("seed", slow_after(6, range(15)))
def test_gaussian_ledgers_equal_the_oracle(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    root = rng.normal(size=(size, size))
    model = pdp.Gaussian(covariance=root @ root.T + 0.3 * np.eye(size), bounds=(0, 1))
    ledger = pdp.Ledger(model, epsilon=1e6)
    weights, scales = [], []
    for _ in range(int(rng.integers(2, 5))):
        row = rng.normal(size=size).round(2)
        cal = pdp.calibrate(
            model, pdp.Linear(weights=row.tolist()), epsilon=float(rng.uniform(0.2, 2))
        )
        for _ in range(int(rng.integers(1, 3))):
            ledger.spend(cal)
            weights.append(row)
            scales.append(cal.scale)
    leaks = gaussian_oracle.leakages(model.covariance, np.array(weights), np.ones(size), scales)
    truth = max(leaks.values())
    assert truth <= ledger.spent
    assert ledger.spent == pytest.approx(truth, rel=1e-6)
    assert ledger.history[-1].method == "shift"
    ledger.charge(0.25)
    assert ledger.spent == pytest.approx(truth + 0.25 * size, rel=1e-6)


def test_many_different_gaussian_answers_are_bounded_part_by_part():
    rng = np.random.default_rng(0)
    model = pdp.Gaussian(covariance=[[1.0, 0.3], [0.3, 1.0]], bounds=(0, 1))
    ledger = pdp.Ledger(model, epsilon=1e6)
    rows = rng.normal(size=(15, 2)).round(3)
    for row in rows:
        ledger.spend(pdp.calibrate(model, pdp.Linear(weights=row.tolist()), epsilon=0.5))
    scales = [entry.scales[0] for entry in ledger.history]
    truth = max(
        sum(
            abs(gaussian_oracle.coefficient(model.covariance, row, i, known)[0]) / scale
            for row, scale in zip(rows, scales, strict=True)
        )
        for i, known in every_adversary(2)
    )
    assert truth <= ledger.spent <= 7.5 + 1e-6


def test_clamped_and_plain_gaussian_answers_share_a_ledger():
    group = pdp.GaussianGroup(size=3, correlation=(0.0, 0.3), bounds=(0, 1))
    ledger = pdp.Ledger(group, epsilon=3.0)
    ledger.spend(pdp.calibrate(group, pdp.Sum(), epsilon=1.0))
    ledger.spend(pdp.calibrate(group, pdp.Sum(clamp=True), epsilon=1.0))
    assert ledger.spent == pytest.approx(2.0, rel=1e-6)
    ball = pdp.LoewnerBall(
        center=pdp.Gaussian(covariance=[[1.0, 0.3], [0.3, 1.0]], bounds=(0, 1)), radius=0.1
    )
    other = pdp.Ledger(ball, epsilon=3.0)
    other.spend(pdp.calibrate(ball, pdp.Sum(), epsilon=1.0))
    other.spend(pdp.calibrate(ball, pdp.Linear(weights=[1.0, -1.0]), epsilon=1.0))
    assert 1.0 < other.spent <= 2.0


@pytest.mark.slow
@pytest.mark.compiled
def test_ten_releases_about_a_chain_cost_little_more_than_one_of_the_same_budget():
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=100)
    total = 1 / 3.8489
    one = pdp.leakage(chain, pdp.Sum(), scale=1 / total).lower
    rng = np.random.default_rng(0)
    ledger = pdp.Ledger(chain, epsilon=2.0)
    for _ in range(10):
        weights = rng.choice([-1.0, 1.0], size=100).tolist()
        query = pdp.Linear(weights=weights)
        scale = 10 / total
        leak = pdp.Leakage(value=1.0, lower=0.0, scale=scale, witness=None)
        ledger.spend(
            pdp.Calibration(
                model=chain, query=query, adversaries=pdp.Adversaries.all(), epsilon=1.0,
                scale=scale, leakage=leak,
            )
        )  # fmt: skip
    assert ledger.history[-1].method == "birkhoff"
    assert ledger.spent <= 1.1 * one


def test_the_smallest_bound_wins_and_is_named():
    part = lower(pdp.Sum(), COUPLE)
    spending = Spending(parts=(part,) * 12, scales=(20.0,) * 12, dp_epsilon=0.1)
    bound = spent(COUPLE, spending, pdp.Adversaries.all())
    assert bound.method == "dual"
    assert bound.value <= 12 * 2 / 20 + 0.2
    few = Spending(parts=(part,) * 3, scales=(20.0,) * 3)
    exact = spent(COUPLE, few, pdp.Adversaries.all())
    assert exact.method == "exact"
    truth = worst_vector_leakage(
        COUPLE.probabilities, COUPLE.domains, lambda x: (sum(x),) * 3, [20.0] * 3, everyone
    )
    assert exact.value == pytest.approx(truth, rel=1e-9)
    assert spent(COUPLE, Spending(), pdp.Adversaries.all()).value == 0.0


def test_a_release_is_refused_before_noise_is_drawn(monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0)
    assert isinstance(ledger.release(pdp.Sum(), HERE, epsilon=0.6), pdp.Release)
    assert ledger.spent == pytest.approx(0.6, rel=1e-9)
    monkeypatch.setattr("pdp_calibrate.core.noise.add_laplace_to_integers", None)
    with pytest.raises(pdp.BudgetExceededError, match=r"0\.6 is spent, 0\.4 is left"):
        ledger.release(pdp.Sum(), HERE, epsilon=0.6)
    assert len(ledger.history) == 1
    assert ledger.remaining == pytest.approx(0.4)
    with pytest.raises(pdp.ModelError, match="lack a value"):
        ledger.release(pdp.Sum(), {"a": 1}, epsilon=0.1)
    assert len(ledger.history) == 1


def test_none_releases_the_most_that_fits():
    ledger = pdp.Ledger(COUPLE, epsilon=1.0)
    ledger.release(pdp.Sum(), HERE, epsilon=0.6)
    second = ledger.release(pdp.Sum(over=["b"]), HERE, epsilon=None)
    assert 0.999 < ledger.spent <= 1.0
    assert second.calibration.epsilon > 0.35
    assert second.calibration.leakage.value <= second.calibration.epsilon
    with pytest.raises(pdp.BudgetExceededError):
        ledger.release(pdp.Sum(), HERE, epsilon=None)
    fresh = pdp.Ledger(COUPLE, epsilon=1.0)
    fresh.release(pdp.Sum(), HERE, epsilon=None)
    assert 0.999 < fresh.spent <= 1.0
    several = pdp.Ledger(COUPLE, epsilon=1.0)
    several.release(pdp.Sum(), HERE, epsilon=0.4)
    both = several.release([pdp.Sum(), pdp.Sum(over=["b"])], HERE, epsilon=None)
    assert 0.999 < several.spent <= 1.0
    assert len(both.value) == len(both.calibration.scale) == 2
    assert both.calibration.leakage.value <= both.calibration.epsilon < 1.0


def test_previews_are_what_is_spent_afterwards():
    ledger = pdp.Ledger(COUPLE, epsilon=5.0)
    for step in range(3):
        cal = pdp.calibrate(COUPLE, pdp.Count(values={step % 2}), epsilon=0.5)
        preview = ledger.would_spend(cal)
        assert preview == ledger.would_spend(pdp.Count(values={step % 2}), epsilon=0.5)
        ledger.spend(cal)
        assert ledger.spent == preview
    preview = ledger.would_spend(dp_epsilon=0.3)
    assert ledger.charge(0.3) == preview == ledger.spent
    both = [pdp.Sum(), pdp.Sum(over=["a"])]
    preview = ledger.would_spend(both, epsilon=0.2)
    ledger.release(both, HERE, epsilon=0.2)
    assert ledger.spent == preview
    for wrong in ({}, {"what": pdp.Sum()}, {"what": pdp.Sum(), "dp_epsilon": 1.0}):
        with pytest.raises(pdp.PdpError, match="would_spend"):
            ledger.would_spend(**wrong)


def test_every_way_to_release_takes_a_ledger():
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 0]})
    ledger = pdp.Ledger(COUPLE, epsilon=20.0)
    frame.pdp.sum(["a"], ledger=ledger, epsilon=0.5)
    frame.pdp.mean(model=COUPLE, ledger=ledger, epsilon=0.5)
    frame.pdp.count(values={1}, ledger=ledger, epsilon=0.5)
    frame.pdp.histogram(ledger=ledger, epsilon=0.5)
    cal = pdp.calibrate(COUPLE, pdp.Sum(), epsilon=0.5)
    frame.pdp.release(cal, ledger=ledger)
    cal.release_rows(frame, ledger=ledger)
    pdp.calibrate(COUPLE, [pdp.Sum(), pdp.Mean()], epsilon=0.5).release(HERE, ledger=ledger)
    ledger.release(pdp.Mean(), frame, epsilon=0.5)
    custom = pdp.Custom(function=max)
    ledger.release(custom, HERE, epsilon=0.5)
    assert len(ledger.history) == 9
    assert [entry.rows for entry in ledger.history] == [3, 3, 3, 3, 1, 1, 1, 3, 1]
    with pytest.raises(pdp.ModelError, match="model="):
        frame.pdp.sum(epsilon=1.0)


def test_long_frames_go_through_a_ledger():
    crew = pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.2, 0.3])
    frame = pd.DataFrame({"ill": [0, 1, 1, 0, 0, 1], "home": ["a"] * 3 + ["b"] * 3})
    ledger = pdp.Ledger(crew, epsilon=2.0)
    ledger.release(pdp.Sum(), frame, epsilon=0.5, value="ill", by="home")
    frame.pdp.sum("ill", groups="home", ledger=ledger, epsilon=0.5)
    release = ledger.release(pdp.Sum(), frame, epsilon=None, value="ill", by="home")
    assert isinstance(release.value, int)
    assert 1.99 < ledger.spent <= 2.0


def test_restricted_adversaries_cost_less():
    weakest = pdp.Ledger(COUPLE, epsilon=5.0, adversaries=pdp.Adversaries.weakest())
    everyone_ = pdp.Ledger(COUPLE, epsilon=5.0)
    query = pdp.Linear(weights=[1.0, -1.0])
    scale = pdp.calibrate(COUPLE, query, epsilon=1.0)
    for ledger in (weakest, everyone_):
        for _ in range(2):
            ledger.spend(scale)
    assert weakest.spent < everyone_.spent
    blocks = pdp.Blocks(
        models=[
            COUPLE,
            pdp.JointTable(
                probabilities=COUPLE.probabilities, domains=COUPLE.domains, names=["c", "d"]
            ),
        ]
    )
    ledger = pdp.Ledger(blocks, epsilon=1.0, adversaries=pdp.Adversaries.weakest())
    ledger.release(pdp.Sum(), HERE | {"c": 0, "d": 1}, epsilon=1.0)
    assert ledger.spent <= 1.0


def test_a_new_draw_has_a_budget_of_its_own():
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, draw="monday")
    ledger.release(pdp.Sum(), HERE, epsilon=0.9)
    ledger.new_draw("tuesday")
    assert ledger.draw == "tuesday"
    assert ledger.spent == 0.0
    ledger.release(pdp.Sum(), HERE, epsilon=0.9)
    assert [entry.draw for entry in ledger.history] == ["monday", "tuesday"]
    with pytest.raises(pdp.LedgerError, match="already"):
        ledger.new_draw("monday")
    with pytest.raises(pdp.LedgerError, match="name"):
        ledger.new_draw("")


def test_another_model_is_refused():
    other = pdp.JointTable(probabilities=np.full((2, 2), 0.25), domains=[[0, 1]] * 2)
    ledger = pdp.Ledger(COUPLE, epsilon=1.0)
    with pytest.raises(pdp.LedgerError, match="another model"):
        pdp.calibrate(other, pdp.Sum(), epsilon=0.5).release({"x1": 0, "x2": 1}, ledger=ledger)
    for epsilon in (0, -1, math.nan, "2"):
        with pytest.raises(pdp.PdpError, match="epsilon"):
            pdp.Ledger(COUPLE, epsilon=epsilon)
    with pytest.raises(pdp.PdpError, match="epsilon"):
        ledger.charge(-1.0)
