"""Gaussian noise on tables, groups, chains and networks: the worst of all adversaries."""

import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import gaussian_dp
from tests.oracles import gaussian_mixtures as oracle
from tests.support.marks import slow_after

OHIO = np.array([355, 16, 23, 6, 27, 3, 13, 7, 31, 6, 6, 3, 10, 4, 9, 18]) / 537
MU = 0.236704380663  # of epsilon 1, delta 1e-6


def ohio() -> pdp.JointTable:
    return pdp.JointTable(probabilities=OHIO.reshape([2] * 4), domains=[[0, 1]] * 4)


def worst_delta(table: pdp.JointTable, values, sigma: float, epsilon: float) -> float:
    """The largest δ of all adversaries, by the oracle; those who know everyone else as well."""
    worst = max(gaussian_dp.delta_of((max(own) - min(own)) / sigma, epsilon) for own in values)
    for _, _, laws in oracle.adversaries(table.probabilities, values):
        for first, second in itertools.permutations(laws.values(), 2):
            places = sorted({*first, *second})
            p, q = ([law.get(place, 0.0) for place in places] for law in (first, second))
            worst = max(worst, oracle.delta_by_roots(places, p, q, sigma, epsilon))
    return worst


@pytest.mark.parametrize(
    ("model", "sigma", "move", "delta"),
    [
        # The smallest sigma by 30-digit roots and quadrature of the worst adversary.
        (ohio(), 9.859932747, 4, 0.07025905883),
        (pdp.BinaryGroup(count_probabilities=np.array([355, 97, 44, 23, 18]) / 537),
         9.426715758, 4, 0.06108119781),
        (pdp.BinaryGroup(count_probabilities=[0.5, 0.1, 0.1, 0.3]), 10.31535259, 3, 0.08775810745),
        (pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2),
         6.697591298, 2, 0.02510453942),
    ],
    ids=["table of 4 years", "group of 4", "group of 3", "pair"],
)  # fmt: skip
def test_reference_values(model, sigma, move, delta):
    calibrated = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian")
    assert calibrated.scale == pytest.approx(sigma, rel=2e-9)
    assert calibrated.leakage.exact
    assert calibrated.leakage.value <= 1.0
    # The coupling moves the answer by its whole range: mu is that bound.
    assert calibrated.leakage.mu * calibrated.scale == pytest.approx(move)
    coupled = pdp.calibrate(model, pdp.Sum(), mu=MU, noise="gaussian")
    assert coupled.scale == pytest.approx(move / MU)
    found = pdp.leakage(model, pdp.Sum(), scale=4.0, noise="gaussian", delta=delta)
    assert found.value == pytest.approx(0.5, rel=1e-8)


@pytest.mark.parametrize("seed", slow_after(3, range(12)))
def test_nobody_exceeds_what_is_said_of_a_table(seed):
    rng = np.random.default_rng(seed)
    sizes = [(2, 2, 2), (3, 2), (2, 3, 2), (4, 3)][seed % 4]
    cells = rng.dirichlet(np.full(np.prod(sizes), rng.choice([0.3, 1.0])))
    if seed % 3 == 0:
        cells[rng.integers(len(cells))] = 0.0
    table = pdp.JointTable(
        probabilities=(cells / cells.sum()).reshape(sizes),
        domains=[list(range(size)) for size in sizes],
    )
    sigma, delta = float(rng.choice([1.5, 6.0])), float(rng.choice([1e-3, 1e-6]))
    leak = pdp.leakage(table, pdp.Sum(), scale=sigma, noise="gaussian", delta=delta)
    assert leak.exact
    values = [list(range(size)) for size in sizes]
    assert worst_delta(table, values, sigma, leak.value) <= delta
    if leak.lower > 0:
        assert worst_delta(table, values, sigma, leak.lower * (1 - 1e-6)) > delta


@pytest.mark.parametrize("seed", range(2))
def test_groups_and_chains_agree_with_their_tables(seed):
    rng = np.random.default_rng(seed)
    chain = pdp.MarkovChain(transition=rng.dirichlet(np.ones(2), 2), length=4, states=[0, 1])
    group = pdp.BinaryGroup(count_probabilities=rng.dirichlet(np.ones(5)))
    letters = pdp.CategoryGroup(
        size=2, categories=[0, 1, 5], count_probabilities=rng.dirichlet(np.ones(6))
    )
    asked = {"noise": "gaussian", "delta": 1e-4, "scale": 2.0}
    for model in (chain, group, letters):
        for query in (pdp.Sum(), pdp.Sum(over=[0, 1])):
            own = pdp.leakage(model, query, **asked)
            table = pdp.leakage(model.to_table(), query, **asked)
            assert own.value == pytest.approx(table.value, rel=1e-9)
            assert own.lower == pytest.approx(table.lower, rel=1e-9)
    few = pdp.Adversaries.exactly(1, known=[3])
    own = pdp.leakage(chain, pdp.Sum(), adversaries=few, **asked)
    names = pdp.Adversaries.exactly(1, known=[3])
    table = pdp.leakage(chain.to_table(), pdp.Sum(), adversaries=names, **asked)
    assert own.value == pytest.approx(table.value, rel=1e-9)


def test_one_adversary_of_a_long_chain_is_searched_to_its_ends():
    kernel = [[0.7, 0.3], [0.4, 0.6]]
    short = pdp.MarkovChain(transition=kernel, length=40, states=[0, 1])
    long = pdp.MarkovChain(transition=kernel, length=260, states=[0, 1])
    asked = {"noise": "gaussian", "delta": 1e-5, "scale": 8.0}
    few = pdp.Adversaries.exactly(20, known=[])
    near = pdp.leakage(short, pdp.Sum(), adversaries=few, **asked)
    far = pdp.leakage(long, pdp.Sum(), adversaries=pdp.Adversaries.exactly(130, known=[]), **asked)
    assert near.exact
    assert far.exact
    assert far.value < near.value  # more unknown steps, more noise


def test_repeats_of_one_query_are_one_release():
    asked = {"noise": "gaussian", "delta": 1e-6}
    once = pdp.leakage(ohio(), pdp.Sum(), scale=8.0, **asked)
    twice = pdp.leakage(ohio(), [pdp.Sum(), pdp.Sum()], scale=[8 * 2**0.5] * 2, **asked)
    uneven = pdp.leakage(
        ohio(), [pdp.Sum(), pdp.Sum()], scale=[10.0, (8.0**-2 - 10.0**-2) ** -0.5], **asked
    )
    assert twice.value == pytest.approx(once.value, rel=1e-10)
    assert uneven.value == pytest.approx(once.value, rel=1e-10)
    assert twice.exact


def test_different_queries_need_one_coupling():
    # u1 = u2 if x1 = 0, u1 != u2 if x1 = 1: about x1, each of u1 and u2 alone tells nothing.
    cells = np.zeros((2, 4))
    for x, u, v in itertools.product((0, 1), repeat=3):
        cells[x, 2 * u + v] = 0.25 if (u != v) == bool(x) else 0.0
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1], range(4)], names=["x", "u"])
    first = pdp.Count(values={2, 3}, over=["u"])
    second = pdp.Count(values={1, 3}, over=["u"])
    weakest = pdp.Adversaries.exactly("x", known=[])
    for query in (first, second):
        alone = pdp.leakage(
            table, query, scale=1.0, noise="gaussian", delta=1e-6, adversaries=weakest
        )
        assert alone.value < 1e-9
    both = pdp.leakage(
        table, [first, second], scale=[1.0, 1.0], noise="gaussian", adversaries=weakest
    )
    assert both.value >= 1.0


def test_a_coupling_of_a_yes_no_group_changes_few_members():
    # Six members, any number of ones equally likely: some coupling changes the target and at most
    # half of the others, whoever is asked about.
    group = pdp.BinaryGroup(count_probabilities=np.full(7, 1 / 7))
    queries = [pdp.Sum(), pdp.Sum(over=[0]), pdp.Sum(over=[1, 2])]
    leak = pdp.leakage(group, queries, scale=[3.0, 3.0, 3.0], noise="gaussian")
    moved = max(
        np.linalg.norm([1 + 3, (target == 0) or 1, 1 + (target in (1, 2)) if target else 2])
        for target in range(6)
    )
    assert leak.value * 3 <= moved * (1 + 1e-9)
    assert leak.value * 3 < np.linalg.norm([6, 1, 2]) - 1e-6
    uneven = pdp.leakage(group, pdp.Linear(weights=range(1, 7)), scale=3.0, noise="gaussian")
    assert uneven.value * 3 <= sum(range(1, 7))


def test_a_ledger_of_a_yes_no_group_counts_by_one_coupling():
    group = pdp.BinaryGroup(count_probabilities=np.full(7, 1 / 7))
    data = dict.fromkeys(range(6), 1)

    def spent(query) -> tuple[float, float]:
        ledger = pdp.Ledger(group, epsilon=2.0, delta=1e-6, noise="gaussian", repeats=0)
        release = ledger.release(query, data, epsilon=0.3, delta=1e-6)
        return ledger.spent, release.calibration.scale

    # The number of all ones moves by no more than its quantiles; others follow the same coupling.
    found, sigma = spent(pdp.Sum())
    assert found == pytest.approx(gaussian_dp.epsilon_of(4 / sigma, 1e-6), rel=1e-6)
    found, sigma = spent(pdp.Sum(over=[0, 1, 2, 3]))
    assert found == pytest.approx(gaussian_dp.epsilon_of(4 / sigma, 1e-6), rel=1e-6)
    alone = pdp.leakage(group, pdp.Sum(over=[0, 1, 2, 3]), scale=sigma, noise="gaussian")
    assert alone.mu * sigma == pytest.approx(3)


def test_counts_too_rare_for_floats_are_not_compared():
    law = np.array([0.4, *np.full(298, 1e-290), 0.1, 0.5])
    group = pdp.BinaryGroup(count_probabilities=law / law.sum())
    leak = pdp.leakage(
        group, pdp.Sum(), scale=100.0, noise="gaussian", adversaries=pdp.Adversaries.weakest()
    )
    assert leak.mu * 100 == pytest.approx(300)


def test_histograms_and_lists_of_tables_get_the_range():
    table = ohio()
    leak = pdp.leakage(table, [pdp.Sum(), pdp.Sum(over=["x1"])], scale=[2.0, 2.0], noise="gaussian")
    assert leak.mu == pytest.approx(np.sqrt(4**2 + 1) / 2)
    assert leak.lower == pytest.approx(np.sqrt(2) / 2)
    sizes = pdp.JointTable(probabilities=np.full((3, 3), 1 / 9), domains=[list("abc")] * 2)
    counted = pdp.leakage(sizes, pdp.Histogram(), scale=2.0, noise="gaussian")
    assert counted.mu == pytest.approx(np.sqrt(2) / 2)  # independent: one at a time


def test_estimated_tables_charge_their_radius():
    center = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    asked = {"noise": "gaussian", "delta": 1e-3, "scale": 3.0}
    exact = pdp.leakage(center, pdp.Sum(), **asked)
    none = pdp.leakage(pdp.ConditionalBall(center=center, radius=0.0), pdp.Sum(), **asked)
    small = pdp.leakage(pdp.ConditionalBall(center=center, radius=1e-5), pdp.Sum(), **asked)
    large = pdp.leakage(pdp.ConditionalBall(center=center, radius=0.1), pdp.Sum(), **asked)
    group = gaussian_dp.epsilon_of(2 / 3, 1e-3)
    assert none.value == pytest.approx(exact.value, rel=1e-9)
    assert exact.value < small.value < large.value
    assert large.value == pytest.approx(group, rel=1e-9)
    assert large.lower == pytest.approx(exact.lower, rel=1e-9)
    # A member of the set: conditional laws moved by the radius.
    moved = pdp.JointTable(
        probabilities=[[0.5 * 0.8 - 5e-6, 0.1 + 5e-6], [0.1 - 5e-6, 0.4 + 5e-6]],
        domains=[[0, 1]] * 2,
    )
    assert pdp.leakage(moved, pdp.Sum(), **asked).value <= small.value
    either = pdp.ModelSet(models=[center, ohio_pair()])
    both = pdp.leakage(either, pdp.Sum(), **asked)
    assert both.value == max(exact.value, pdp.leakage(ohio_pair(), pdp.Sum(), **asked).value)


def ohio_pair() -> pdp.JointTable:
    return pdp.JointTable(
        probabilities=OHIO.reshape([2] * 4).sum(axis=(2, 3)), domains=[[0, 1]] * 2
    )


def test_networks_are_tables_while_small_and_bounded_by_their_component_when_large():
    alike = [[3, 1], [1, 3]]
    ring = pdp.Network(
        factors=[(pair, alike) for pair in ("ab", "bc", "cd", "da")],
        domains={name: [0, 1] for name in "abcd"},
    )
    asked = {"noise": "gaussian", "delta": 1e-5, "scale": 3.0}
    own = pdp.leakage(ring, pdp.Sum(), **asked)
    assert own.value == pdp.leakage(ring.to_table(), pdp.Sum(), **asked).value
    names = [f"n{k}" for k in range(60)]
    pairs = [(names[k], names[k + 1]) for k in range(59) if k != 29]
    halves = pdp.Network(
        factors=[(pair, alike) for pair in pairs], domains={name: [0, 1] for name in names}
    )
    leak = pdp.leakage(halves, pdp.Sum(), scale=3.0, noise="gaussian")
    assert leak.value == pytest.approx(30 / 3)
    assert leak.lower == pytest.approx(1 / 3)
    unknown = pdp.Unknown(size=3, domain=[0, 1])
    group = pdp.leakage(unknown, pdp.Sum(), scale=3.0, noise="gaussian")
    assert group.exact
    assert group.value == pytest.approx(1.0)


def test_blocks_of_tables_and_gaussian_values_are_searched_together():
    home = pdp.GaussianGroup(size=2, correlation=0.4, bounds=(0, 4), variance=1.0)
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    asked = {"noise": "gaussian", "delta": 1e-5, "scale": 9.0}
    mixed = pdp.Blocks(models=[home, table], counts=[1, 1])
    apart = [pdp.leakage(model, pdp.Sum(), **asked).value for model in (home, table)]
    assert pdp.leakage(mixed, pdp.Sum(), **asked).value == max(apart)


def test_restricted_adversaries_constant_columns_and_real_weights():
    asked = {"noise": "gaussian", "delta": 1e-5, "scale": 3.0}
    cells = OHIO.reshape(2, 1, 2, 2, 2)
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1], [7], [0, 1], [0, 1], [0, 1]])
    assert pdp.leakage(table, pdp.Sum(), **asked).value == pytest.approx(
        pdp.leakage(ohio(), pdp.Sum(), **asked).value, rel=1e-12
    )
    constant = pdp.JointTable(probabilities=[[1.0]], domains=[[1], [2]])
    assert pdp.leakage(constant, pdp.Sum(), **asked).value == 0.0
    weakest = pdp.leakage(ohio(), pdp.Sum(), adversaries=pdp.Adversaries.weakest(), **asked)
    everyone = pdp.leakage(ohio(), pdp.Sum(), **asked)
    assert weakest.value <= everyone.value
    strongest = pdp.leakage(ohio(), pdp.Sum(), adversaries=pdp.Adversaries.strongest(), **asked)
    assert strongest.value == pytest.approx(gaussian_dp.epsilon_of(1 / 3, 1e-5), rel=1e-9)
    real = pdp.leakage(ohio(), pdp.Linear(weights=[0.1, 0.2, 0.30000000000000004, 0.7]), **asked)
    assert real.exact
    largest = pdp.leakage(ohio(), pdp.Custom(function=max), **asked)
    assert largest.value <= gaussian_dp.epsilon_of(1 / 3, 1e-5) * (1 + 1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_any_unit_and_any_scale(unit):
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, unit]] * 2)
    calibrated = pdp.calibrate(table, pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian")
    assert calibrated.scale / unit == pytest.approx(6.697591298, rel=1e-6)
    tiny = pdp.leakage(table, pdp.Sum(), scale=unit / 20, noise="gaussian", delta=1e-6)
    assert tiny.value >= gaussian_dp.epsilon_of(20.0, 1e-6)
    assert np.isfinite(tiny.value)
    huge = pdp.leakage(table, pdp.Sum(), scale=unit * 1e6, noise="gaussian", delta=1e-6)
    assert huge.value < 1e-5


def test_where_enumeration_ends_the_range_is_the_upper_end(monkeypatch):
    from pdp_calibrate.families.table import gaussian_noise

    rng = np.random.default_rng(0)
    table = pdp.JointTable(
        probabilities=rng.dirichlet(np.ones(16)).reshape([2] * 4), domains=[[0, 1]] * 4
    )
    asked = {"noise": "gaussian", "delta": 1e-5, "scale": 3.0}
    exact = pdp.leakage(table, pdp.Sum(), **asked)
    monkeypatch.setattr(gaussian_noise, "EVENT_NUMBERS", 0)
    by_sets = pdp.leakage(table, pdp.Sum(), **asked)
    assert by_sets.value == pytest.approx(exact.value, rel=1e-9)
    monkeypatch.setattr(gaussian_noise, "LISTED_SETS", 0)
    cut = pdp.leakage(table, pdp.Sum(), **asked)
    assert cut.value == pytest.approx(gaussian_dp.epsilon_of(4 / 3, 1e-5), rel=1e-9)
    assert 0 < cut.lower <= exact.value
    assert cut.mu == pytest.approx(4 / 3)


def test_no_time_leaves_a_certified_bracket():
    asked = {"noise": "gaussian", "delta": 1e-5, "scale": 3.0}
    exact = pdp.leakage(ohio(), pdp.Sum(), **asked)
    hasty = pdp.leakage(ohio(), pdp.Sum(), time_limit=1e-9, **asked)
    assert hasty.lower <= exact.value <= hasty.value


def test_black_boxes_of_large_groups_change_few_members():
    from scipy.stats import betabinom

    size = 210
    law = betabinom(size, 40, 40).pmf(range(size + 1))
    group = pdp.BinaryGroup(count_probabilities=law / law.sum())
    bound = pdp.black_box_leakage(group, epsilon=0.5).value
    assert bound < 0.5 * size / 4  # one coupling serves any mechanism
    assert bound >= 0.5
    # A small group, searched exactly, never leaks more than its coupling says.
    small = pdp.BinaryGroup(count_probabilities=[0.5, 0.1, 0.1, 0.3])
    assert pdp.black_box_leakage(small, epsilon=0.5).value <= 0.5 * 3 * (1 + 1e-9)


def test_everything_said_of_a_table_with_gaussian_noise():
    cal = pdp.calibrate(ohio(), pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian")
    assert cal.baselines["wasserstein"] == pytest.approx(4 / MU, rel=1e-9)
    assert cal.baselines["group"] == pytest.approx(4 / MU, rel=1e-9)
    words = pdp.explain(cal)
    assert "from a coupling" in words
    assert "No variance" not in words
    again = pdp.Calibration.from_json(cal.to_json())
    assert pdp.verify(again).value == pytest.approx(cal.leakage.value, rel=1e-12)
    ledger = pdp.Ledger(ohio(), epsilon=1.0, delta=1e-6, noise="gaussian")
    data = {"x1": 1, "x2": 0, "x3": 0, "x4": 1}
    ledger.release(pdp.Sum(), data, epsilon=0.5, delta=1e-6)
    once = ledger.spent
    ledger.release(pdp.Sum(over=["x1"]), data, epsilon=0.05, delta=1e-6)
    assert once < ledger.spent <= 1.0
    with pytest.raises(pdp.BudgetExceededError):
        ledger.release(pdp.Sum(), data, epsilon=1.0, delta=1e-6)
    biggest = pdp.calibrate(
        ohio(), pdp.Custom(function=max), epsilon=1.0, delta=1e-6, noise="gaussian"
    )
    assert biggest.baselines["dp"] == pytest.approx(1 / MU)


@pytest.mark.parametrize("seed", range(3))
def test_one_adversary_of_a_chain_counts_what_is_unknown_elsewhere(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    states = [[0, 1], [0, 1, 3], [1, 0]][seed]
    kernel = rng.dirichlet(np.ones(len(states)), len(states))
    start = None if seed == 0 else rng.dirichlet(np.ones(len(states)))
    given = {} if start is None else {"initial": start}
    chain = pdp.MarkovChain(transition=kernel, length=6, states=states, **given)
    asked = {"noise": "gaussian", "delta": 1e-4, "scale": 1.5}
    monkeypatch.setattr(
        "pdp_calibrate.families.chain.gaussian_noise.fits_a_table", lambda *_, **__: False
    )
    for target, known in (
        (3, [2]),
        (2, [0, 3]),
        (3, [1, 5]),
        (2, [1, 4, 5]),
        (0, [1, 3]),
        (2, [1, 3]),
    ):
        only = pdp.Adversaries.exactly(target, known=known)
        found = pdp.leakage(chain, pdp.Sum(), adversaries=only, **asked)
        exact = pdp.leakage(chain.to_table(), pdp.Sum(), adversaries=only, **asked)
        assert found.lower <= exact.value * (1 + 1e-9)
        assert found.value >= exact.lower * (1 - 1e-9)
        assert found.lower > 0
        nearest = [place for place in known if not any(abs(o - target) < abs(place - target)
                   and (o - target) * (place - target) > 0 for o in known)]  # fmt: skip
        if known == nearest:
            assert found.value == pytest.approx(exact.value, rel=1e-8)
            assert found.lower == pytest.approx(exact.value, rel=1e-8)


def test_exactly_on_a_long_chain_has_a_lower_end():
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=100, states=[0, 1])
    asked = {"noise": "gaussian", "delta": 1e-6, "scale": 8.0}
    for known, exact in (([47, 56], True), ([47, 56, 80], False)):
        only = pdp.Adversaries.exactly(50, known=known)
        found = pdp.leakage(chain, pdp.Sum(), adversaries=only, **asked)
        assert (found.value - found.lower < 1e-6) == exact
        assert found.lower > 1
        assert found.witness is not None
        assert set(found.witness.known) == set(known)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([pdp.Sum(), pdp.Linear(weights=[-1.0, -1.0])], "as far out as can be: (low, high)"),
        ([pdp.Sum(), pdp.Sum(over=["x1"])], "as low as can be in every number"),
        (pdp.Histogram(), "as far out as can be: (high, low)"),
    ],
    ids=["mirrored", "different", "histogram"],
)
def test_several_numbers_speak_for_a_secret_on_its_side(query, words):
    model = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    found = pdp.calibrate(model, query, epsilon=1.0, delta=1e-6, noise="gaussian")
    assert found.leakage.witness.secrets == (0, 1)
    assert words in pdp.explain(found)
