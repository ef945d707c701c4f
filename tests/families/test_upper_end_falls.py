"""The upper end of every engine falls with the scale: the solver looks for a root of it.

Rounding, truncation by powers of ten and rounded contributions may lift it by as much as the
bracket of an exact engine is wide. With no time at all the upper end is a bound, which falls too.
"""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from tests.families.test_engines import CASES, chain
from tests.support.families import FAMILIES

SCALES = np.geomspace(0.02, 3e3, 24)


def upper_ends(model, query, deadline, adversaries):
    problems = split(model, lower(query, model), adversaries)
    return [
        max(problem.engine.bracket(scale, deadline=deadline).upper for problem in problems)
        for scale in SCALES
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
            assert_falling(upper_ends(model, pdp.Sum(), deadline, who))


@pytest.mark.parametrize("deadline", [math.inf, 0.0])
@pytest.mark.parametrize("case", [*CASES, "long chain"])
def test_of_every_way_to_search(case, deadline):
    model, query = CASES[case] if case in CASES else (chain(260), pdp.Sum())
    assert_falling(upper_ends(model, query, deadline, pdp.Adversaries.all()))
