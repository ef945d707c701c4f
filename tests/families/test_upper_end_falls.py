"""The upper end of every engine falls with the scale: the solver looks for a root of it.

Rounding, truncation by powers of ten and rounded contributions may lift it by as much as the
bracket of an exact engine is wide. With no time at all the upper end is a bound, which falls too.
"""

import itertools
import math
from importlib import import_module

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import model_named
from pdp_calibrate.core.problem import LAPLACE, Measure, split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families import MODELS
from tests.families.test_engines import CASES, chain
from tests.support.families import FAMILIES
from tests.support.marks import slow_after

SCALES = np.geomspace(0.02, 3e3, 24)
NOISY_SCALES = np.geomspace(0.3, 300, 8)
EVERYONE = pdp.Adversaries.all()
MEASURES = {
    "every delta": Measure.of("gaussian"),
    "one delta": Measure.of("gaussian", unit="epsilon", delta=1e-6),
}


def pair():
    return pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 2))


FURTHER = {  # what no random family draws
    "map": (
        pdp.GaussianNetwork.from_edges([(0, 1), (1, 2), (2, 0)], strength=0.7, bounds=(0, 3)),
        pdp.Sum(),
    ),
    "sample": (pdp.SampledGaussian(center=pair(), rows=80), pdp.Sum()),
    "endless chain": (
        pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=None), pdp.EachStep(pdp.Sum())
    ),
    "endless series": (
        pdp.GaussianSeries(length=None, correlation=0.6, bounds=(0, 2), variance=1.0),
        pdp.EachStep(pdp.Sum()),
    ),
}  # fmt: skip
NOISY = FURTHER | {
    "table": (
        pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2), pdp.Sum()
    ),
    "ball of tables": (
        pdp.ConditionalBall(
            center=pdp.JointTable(probabilities=[[0.4, 0.1], [0.2, 0.3]], domains=[[0, 1]] * 2),
            radius=0.01,
        ),
        pdp.Sum(),
    ),
    "group": (pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.1, 0.4]), pdp.Sum()),
    "chain": (chain(20), pdp.Sum()),
    "long chain": (chain(260), pdp.Sum()),
    "network": (CASES["elimination"][0], pdp.Sum()),
    "any dependence": (pdp.Unknown(size=3, domain=[0, 1]), pdp.Sum()),
    "pair": (pair(), pdp.Sum()),
    "ball": (pdp.LoewnerBall(center=pair(), radius=0.1), pdp.Sum()),
    "alike": (pdp.GaussianGroup(size=4, correlation=(0.1, 0.4), bounds=(0, 2)), pdp.Sum()),
    "series": (
        pdp.GaussianSeries(length=5, correlation=0.6, bounds=(0, 2), variance=1.0), pdp.Sum()
    ),
}  # fmt: skip
del NOISY["endless chain"]  # Gaussian noise is for endless series alone


def problems_of(model, query, *, adversaries=EVERYONE, measure=LAPLACE):
    return split(model, lower(query, model), adversaries, measure=measure)


def upper_ends(problems, deadline, scales=SCALES):
    return [
        max(problem.engine.bracket(scale, deadline=deadline).upper for problem in problems)
        for scale in scales
    ]


def assert_falling(ends):
    assert all(end >= 0 and math.isfinite(end) for end in ends)
    for before, after in itertools.pairwise(ends):
        assert after <= before * (1 + 1e-9)
    assert ends[-1] < ends[0] or ends[0] == 0


@pytest.mark.parametrize("deadline", [math.inf, 0.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_of_every_family(family, deadline):
    for seed in range(3):
        model = FAMILIES[family].draw(np.random.default_rng(seed))
        for who in (pdp.Adversaries.all(), pdp.Adversaries.weakest()):
            assert_falling(upper_ends(problems_of(model, pdp.Sum(), adversaries=who), deadline))


QUICK = [case for case in (*CASES, *FURTHER, "long chain") if case != "rounded windows"]


@pytest.mark.parametrize("deadline", [math.inf, 0.0])
@pytest.mark.parametrize("case", slow_after(len(QUICK), [*QUICK, "rounded windows"]))
def test_of_every_way_to_search(case, deadline):
    known = CASES | FURTHER
    model, query = known[case] if case in known else (chain(260), pdp.Sum())
    assert_falling(upper_ends(problems_of(model, query), deadline))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (case == "long chain")) for case in NOISY],
)
def test_with_gaussian_noise(case, measure):
    problems = problems_of(*NOISY[case], measure=MEASURES[measure])
    assert_falling(upper_ends(problems, math.inf, NOISY_SCALES))


def test_no_engine_is_left_out():
    drawn = [family.draw(np.random.default_rng(0)) for family in FAMILIES.values()]
    cases = [*((model, pdp.Sum()) for model in drawn), *CASES.values(), *FURTHER.values()]
    seen = {type(one.engine) for case in cases for one in problems_of(*case)}
    for measure in MEASURES.values():
        for case in NOISY.values():
            seen |= {type(one.engine) for one in problems_of(*case, measure=measure)}
    families = map(model_named, MODELS)
    named = {name for one in families for name in (one.engine, one.gaussian_noise_engine) if name}
    wanted = {
        getattr(import_module(module), name) for module, name in (n.split(":") for n in named)
    }
    assert wanted <= seen
