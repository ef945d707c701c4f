"""Engines are prepared once per problem, and asked no more often than their family needs."""

import math
import os
from collections import Counter

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.calibration.solve import certified_scale
from pdp_calibrate.core import workers
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.chain.search import ChainEngine
from pdp_calibrate.families.table import cells as table_cells, search, setting
from pdp_calibrate.families.table.search import TableEngine
from pdp_calibrate.families.table.set_search import TableSetEngine

TWO = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2)


@pytest.fixture
def prepares(monkeypatch):
    """The problems for which table engines were made, and how often each was searched."""
    problems, searches = [], Counter()
    make, find = TableEngine.__init__, TableEngine.search

    def making(self, problem, **prepared):
        problems.append(problem)
        make(self, problem, **prepared)

    def searching(self, scale, limits):
        searches[id(self)] += 1
        return find(self, scale, limits)

    monkeypatch.setattr(TableEngine, "__init__", making)
    monkeypatch.setattr(TableEngine, "search", searching)
    return problems, searches


def who(problem):
    knowledge = problem.knowledge
    return knowledge.targets, knowledge.fewest, knowledge.most, knowledge.known


@pytest.mark.parametrize("adversaries", [pdp.Adversaries.all(), pdp.Adversaries.weakest()])
def test_a_calibration_prepares_each_problem_once(adversaries, prepares):
    problems, searches = prepares
    pdp.calibrate(TWO, pdp.Sum(), epsilon=1.0, adversaries=adversaries)
    assert max(Counter(map(who, problems)).values()) == 1
    assert len(problems) <= 5  # everyone, those who know nothing or all, and violators
    assert sum(searches.values()) > 3 * len(problems)


def counting(monkeypatch, place, name, calls):
    real = getattr(place, name)

    def counted(*arguments, **options):
        calls.append(name)
        return real(*arguments, **options)

    monkeypatch.setattr(place, name, counted)


@pytest.mark.parametrize("scales", [1, 6])
def test_what_no_scale_changes_is_done_once_per_engine(scales, monkeypatch):
    """Tuples of one value, independent groups and the tree's order, at one scale or six."""
    rng = np.random.default_rng(0)
    pair, three = rng.dirichlet(np.ones(4)).reshape(2, 2), rng.dirichlet(np.ones(8))
    cells = np.multiply.outer(pair, three.reshape(2, 2, 2))[np.newaxis]
    model = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[7], *[[0, 1]] * 5])
    calls: list[str] = []
    counting(monkeypatch, search, "independent_groups", calls)
    counting(monkeypatch, table_cells, "pair_tables", calls)
    counting(monkeypatch, table_cells, "_influence", calls)
    counting(monkeypatch, setting, "_model", calls)
    (problem,) = split(model, lower(pdp.Sum(), model), pdp.Adversaries.all())
    for scale in np.geomspace(0.5, 5, scales):
        problem.engine.bracket(float(scale))
    # The whole is split, its two groups are not; neither needs an order of its tuples.
    assert Counter(calls) == {"independent_groups": 3, "pair_tables": 3, "_model": 1}


def test_the_laws_of_a_set_of_tables_are_worked_out_once(monkeypatch):
    from pdp_calibrate.families.table import set_laws

    ball = pdp.ConditionalBall(center=TWO, radius=0.1)
    calls: list[str] = []
    counting(monkeypatch, set_laws, "balls_of", calls)
    (problem,) = split(ball, lower(pdp.Sum(), ball), pdp.Adversaries.weakest())
    first = problem.engine.bracket(1.0)
    assert len(calls) == 2  # one for each target
    assert problem.engine.bracket(1.0) == first
    problem.engine.bracket(2.0)
    assert len(calls) == 2
    monkeypatch.setattr(set_laws, "KEPT_LAWS", 0)  # nothing is kept: worked out again
    (again,) = split(ball, lower(pdp.Sum(), ball), pdp.Adversaries.weakest())
    found = again.engine.bracket(1.0)
    assert (found.upper, found.lower) == (first.upper, first.lower)
    assert len(calls) > 4


def chain_calls(length, monkeypatch, **limits):
    """How often the chain engine is asked in one calibration."""
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=length)
    calls: list[str] = []
    with monkeypatch.context() as patch:
        counting(patch, ChainEngine, "search", calls)
        scale = pdp.calibrate(chain, pdp.Sum(), epsilon=1.0, **limits).scale
    return len(calls), scale


@pytest.mark.parametrize("limits", [{}, {"adversaries": pdp.Adversaries.knowing(at_most=2)}])
def test_a_short_chain_is_searched_no_more_often_than_a_long_one(limits, monkeypatch):
    """Neighbours are not tried: the chain engine searches everyone about as fast as one."""
    (short, below), (long, above) = (chain_calls(n, monkeypatch, **limits) for n in (20, 21))
    assert 0 < short <= 1.25 * long
    assert 0.99 * above < below < above


def test_only_large_tables_ask_for_neighbours(monkeypatch):
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=20)
    ball = pdp.ConditionalBall(center=TWO, radius=0.1)

    def asked():
        found = {}
        for model in (TWO, ball, chain):
            (problem,) = split(model, lower(pdp.Sum(), model), pdp.Adversaries.all())
            found[type(problem.engine)] = problem.engine.climbs
        return found

    assert asked() == {TableEngine: False, TableSetEngine: False, ChainEngine: False}
    monkeypatch.setattr(search, "UNCLIMBED_CELLS", 3)
    assert asked() == {TableEngine: True, TableSetEngine: True, ChainEngine: False}
    (problem,) = split(TWO, lower(pdp.Sum(), TWO), pdp.Adversaries.all())
    assert not problem.restricted(0, ()).engine.climbs  # one adversary has no neighbours


def test_climbing_changes_the_work_not_the_scale(monkeypatch):
    rng = np.random.default_rng(3)
    for seed in range(6):
        cells = rng.dirichlet(np.full(16, 0.4)).reshape((2,) * 4)
        table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 4)
        scales = []
        for limit in (0, 2**14):
            monkeypatch.setattr(search, "UNCLIMBED_CELLS", limit)
            problems = split(table, lower(pdp.Sum(), table), pdp.Adversaries.all())
            scale, found = certified_scale(problems, 0.8, rounding=0.0, deadline=math.inf)
            assert found.upper <= 0.8, seed
            scales.append(scale)
        assert scales[0] == pytest.approx(scales[1], rel=1e-11)


def test_threads_are_as_many_as_the_process_may_use(monkeypatch):
    assert 1 <= workers.cores() <= (os.cpu_count() or 1)
    seen = []
    real = workers.ThreadPoolExecutor

    def pool(max_workers):
        seen.append(max_workers)
        return real(max_workers=max_workers)

    monkeypatch.setattr(workers, "ThreadPoolExecutor", pool)
    for number, tasks, threads in [(1, 9, 1), (5, 9, 5), (64, 9, 9), (64, 0, 1)]:
        monkeypatch.setattr(workers, "cores", lambda number=number: number)
        clock = workers.Clock(math.inf)
        found = workers.run(range(tasks), lambda k: k * k, clock, what="squaring", small=False)
        assert found == [k * k for k in range(tasks)]
        assert seen.pop() == threads
