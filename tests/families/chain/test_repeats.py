"""One query about a chain, released again and again, is one release with the whole budget."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.composition.joint import Spending, spent
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from pdp_calibrate.core.line_program_kernels import widest
from pdp_calibrate.core.query import lower
from tests.oracles.vectors import worst_vector_leakage
from tests.support.marks import bounds_checked, slow_after
from tests.support.random_time import random_chain, random_query

ALL = pdp.Adversaries.all()


def spent_on(chain, query, scales, adversaries=ALL):
    part = lower(query, chain)
    return spent(chain, Spending(parts=(part,) * len(scales), scales=tuple(scales)), adversaries)


def birkhoff_of(chain, query, rate):
    budgets = lower(query, chain).tuple_ranges() * rate
    return float(birkhoff_bounds(budgets, float(diameters(chain.kernel, 1)[0][1])).max())


@pytest.mark.parametrize("seed", bounds_checked(range(40), 4))
def test_repeated_releases_leak_what_one_of_their_budget_does(seed):
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, longest=4)
    query, function = random_query(rng, chain)
    scales = rng.uniform(0.5, 4.0, size=int(rng.integers(2, 4))).tolist()
    table = chain.to_table()
    everyone = rng.random() < 0.5
    adversaries = ALL if everyone else pdp.Adversaries.weakest()
    bound = spent_on(chain, query, scales, adversaries)
    truth = worst_vector_leakage(
        table.probabilities,
        table.domains,
        lambda x: (function(x),) * len(scales),
        scales,
        lambda _i, known: everyone or not known,
    )
    assert bound.method == "exact"
    assert truth <= bound.value * (1 + 1e-12) + 1e-14
    assert bound.value == pytest.approx(truth, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_laws_are_compared_by_the_worst_slow_likelihood(seed):
    rng = np.random.default_rng(seed)
    points = int(rng.integers(1, 9))
    rows = rng.dirichlet(np.full(points, 0.4), size=3)
    rows[rng.random(rows.shape) < 0.2] = 0.0
    rows[rng.integers(3)] *= rng.choice([0.0, 1.0])
    masses, step = rows.sum(axis=1), float(rng.choice([0.01, 1.0, 5.0]))
    live = [row / mass for row, mass in zip(rows, masses, strict=True) if mass > 0]
    best = -math.inf
    for one, other in itertools.permutations(live, 2):
        for signs in itertools.product([1, -1], repeat=points - 1):
            likelihood = np.exp(step * np.concatenate([[0], np.cumsum(signs)]))
            best = max(best, math.log(one @ likelihood / (other @ likelihood)))
    found = widest(rows, masses, points, step, 1e-15, 1e-300, 0.0)
    if best == -math.inf:
        assert found == best
    else:
        assert best - 1e-14 <= found <= best + 1e-9


@pytest.mark.parametrize("stay", [0.8, 0.2])
def test_ten_releases_of_one_query_cost_what_one_with_all_of_the_budget_costs(stay):
    chain = pdp.MarkovChain(transition=[[stay, 1 - stay], [1 - stay, stay]], length=100)
    rate = 0.26
    bound = spent_on(chain, pdp.Sum(), [10 / rate] * 10)
    one = pdp.leakage(chain, pdp.Sum(), scale=1 / rate)
    assert bound.value == pytest.approx(one.value, rel=1e-9)
    looser = birkhoff_of(chain, pdp.Sum(), rate)
    assert bound.value < looser * (0.3 if stay < 0.5 else 0.98)


def test_multiples_of_a_query_count_as_repeats_of_it():
    chain = pdp.MarkovChain(transition=[[0.3, 0.7], [0.6, 0.4]], length=30)
    queries = [pdp.Sum(), pdp.Mean(), pdp.Count(values={0}), pdp.Linear(weights=[0.1] * 30)]
    scales = [10.0, 0.4, 20.0, 1.5]
    parts = tuple(lower(query, chain) for query in queries)
    together = spent(chain, Spending(parts=parts, scales=tuple(scales)), ALL)
    assert together.method == "exact"
    rate = 1 / 10 + 1 / 12 + 1 / 20 + 1 / 15
    alone = pdp.leakage(chain, pdp.Sum(), scale=1 / rate).value
    assert alone * (1 - 1e-12) <= together.value <= alone * (1 + 1e-9)
    other = lower(pdp.Linear(weights=[1.0] * 29 + [1.0 + 1e-9]), chain)
    apart = spent(chain, Spending(parts=(parts[0], other), scales=(10.0, 10.0)), ALL)
    assert apart.method == "birkhoff"


def test_a_mechanism_beside_the_answers_leaves_the_search_out():
    chain = pdp.MarkovChain(transition=[[0.2, 0.8], [0.8, 0.2]], length=60)
    ledger = pdp.Ledger(chain, epsilon=3.0)
    cal = pdp.calibrate(chain, pdp.Sum(), epsilon=0.2)
    ledger.spend(cal)
    ledger.spend(cal)
    assert ledger.history[-1].method == "exact"
    assert ledger.spent == pytest.approx(0.4, rel=1e-6)
    ledger.charge(0.1)
    assert ledger.history[-1].method == "birkhoff"
    assert ledger.spent > 0.5


@pytest.mark.compiled
@pytest.mark.parametrize("length", slow_after(1, [40, 100]))
@pytest.mark.parametrize("up", [0.2, 0.8])
def test_ten_sums_together_need_hardly_more_than_one_of_their_budget(length, up):
    chain = pdp.MarkovChain(transition=[[1 - up, up], [up, 1 - up]], length=length)
    once = pdp.calibrate(chain, pdp.Sum()).scale
    together = pdp.calibrate(chain, [pdp.Sum()] * 10)
    assert once * (1 - 1e-9) <= together.scales[0] / 10 <= once * 1.002


@pytest.mark.compiled
def test_ten_sums_about_alternating_states_need_no_more_than_plain_dp():
    # Windows were given up where a tail of noise, which laws do not have, would underflow.
    chain = pdp.MarkovChain(transition=[[0.7, 0.3], [0.9, 0.1]], length=100)
    assert pdp.calibrate(chain, [pdp.Sum()] * 10, epsilon=5.0).scales[0] == pytest.approx(2.0)
