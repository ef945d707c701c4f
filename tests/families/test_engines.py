"""An engine is prepared once: scales and adversaries that share it find what they find alone."""

import dataclasses
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.problem import Bracket, engine_of, split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.chain.windows import Setup
from pdp_calibrate.families.table.search import TableEngine
from tests.support.marks import slow_after

ALL, FEW = pdp.Adversaries.all(), pdp.Adversaries.knowing(at_least=1, at_most=2)


def chain(length):
    return pdp.MarkovChain(transition=[[0.9, 0.1], [0.3, 0.7]], length=length)


def tree(size, stay=0.7):
    kernel = [[stay, 1 - stay], [1 - stay, stay]]
    return pdp.MarkovTree(
        domains=[[0, 1]] * size,
        parents=[None, *((place - 1) // 2 for place in range(1, size))],
        tables=[[0.5, 0.5], *[kernel] * (size - 1)],
    )


def ring(size):
    return pdp.Network(
        factors=[((place, (place + 1) % size), [[3, 2], [2, 3]]) for place in range(size)],
        domains={place: [0, 1] for place in range(size)},
    )


def uneven(model):
    return pdp.Linear(weights=[1 + 0.1 * math.sqrt(place) for place in range(len(model.names))])


YES_NO = pdp.BinaryGroup(count_probabilities=np.full(7, 1 / 7))
CATEGORIES = pdp.CategoryGroup(
    size=4, categories=[0, 1, 2], count_probabilities=np.full(15, 1 / 15)
)
MIXING = pdp.MixingChain(length=6, diameter=2.0)
CASES = {
    "windows": (chain(14), pdp.Sum(over=[0, 1, 2, 5, 9])),
    "rounded windows": (chain(14), uneven(chain(14))),
    "chain as a table": (chain(5), uneven(chain(5))),
    "bound of a chain": (chain(30), pdp.Histogram()),
    "tree as a table": (tree(6), uneven(tree(6))),
    "regions": (tree(24), pdp.Sum()),
    "network as a table": (ring(6), uneven(ring(6))),
    "elimination": (ring(40), pdp.Sum()),
    "yes or no": (YES_NO, pdp.Sum(over=[0, 1, 2, 3])),
    "group as a table": (YES_NO, uneven(YES_NO)),
    "categories": (CATEGORIES, pdp.Sum(over=[0, 1, 2])),
    "mixing chains": (MIXING, pdp.Sum()),
    "any dependence": (pdp.Unknown(size=4, domain=[0, 3]), pdp.Sum()),
}


def problem_of(case, adversaries=ALL):
    model, query = CASES[case]
    (problem,) = split(model, lower(query, model), adversaries)
    return problem


def assert_same(found: Bracket, alone: Bracket) -> None:
    assert (found.upper, found.lower) == (alone.upper, alone.lower)
    assert (found.target, found.unknown) == (alone.target, alone.unknown)
    assert str(found.witness) == str(alone.witness)
    assert found.witness is None or found.witness.model is alone.witness.model


@pytest.mark.parametrize("case", [name for name in CASES if name != "mixing chains"])
@pytest.mark.parametrize("adversaries", slow_after(1, [ALL, FEW]), ids=["all", "few"])
def test_scales_do_not_disturb_each_other(case, adversaries):
    problem = problem_of(case, adversaries)
    for scale in (2.0, 0.4, 30.0, 2.0):
        assert_same(problem.engine.bracket(scale), engine_of(problem).bracket(scale))


@pytest.mark.parametrize("case", CASES)
def test_adversaries_that_share_a_preparation_find_what_they_find_alone(case):
    problem = problem_of(case)
    if case == "mixing chains":  # each engine makes its own member of the set
        problem.engine.bracket(1.5)
    others = [*problem.extremes(), problem.restricted(1, [0, 2]), problem.restricted(0, [])]
    for other in others:
        alone = dataclasses.replace(problem, knowledge=other.knowledge)
        for scale in (1.5, 0.3):
            found, fresh = other.engine.bracket(scale), engine_of(alone).bracket(scale)
            if case == "mixing chains" and found.witness and fresh.witness:
                assert found.witness.model == fresh.witness.model
                fresh = dataclasses.replace(fresh, witness=found.witness)
            assert_same(found, fresh)


def test_a_problem_about_another_model_does_not_keep_the_engine():
    problem = problem_of("windows").restricted(1, [0])
    other = dataclasses.replace(problem, model=chain(14).to_table())
    assert type(other.engine) is not type(problem.engine)
    assert isinstance(other.engine, TableEngine)


def test_a_calibration_prepares_a_chain_once(monkeypatch):
    made = []
    prepare = Setup.__init__
    monkeypatch.setattr(Setup, "__init__", lambda *parts: made.append(parts[1]) or prepare(*parts))
    pdp.calibrate(chain(14), uneven(chain(14)))
    assert len(made) == 1
    model = chain(40)
    thrice = Contributions.joined([lower(pdp.Sum(), model)] * 3, [1.0] * 3)
    (problem,) = split(model, thrice, ALL)
    for scale in (5.0, 7.0, 20.0):
        problem.engine.bracket(scale)
    assert len(made) == 2


def test_a_calibration_writes_a_table_out_once(monkeypatch):
    made = []
    for kind in (pdp.MarkovChain, pdp.MarkovTree, pdp.BinaryGroup):
        write = kind.to_table
        monkeypatch.setattr(
            kind, "to_table", lambda model, write=write: made.append(model) or write(model)
        )
    for model in (chain(5), tree(6), YES_NO):
        pdp.calibrate(model, uneven(model))
        assert made == [model]
        made.clear()
