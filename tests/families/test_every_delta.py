"""A μ at one δ never passes for one at every δ."""

import dataclasses
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.adversary import EVERYONE
from pdp_calibrate.core.problem import Bracket, Engine, Measure, split, worst
from pdp_calibrate.core.query import lower
from tests.support import every_delta as cases
from tests.support.marks import slow_after


@pytest.mark.parametrize("number", slow_after(39, range(400)))
def test_nobody_exceeds_the_mu_of_a_question_about_one_delta(number):
    *_, model, query, truths, rng = cases.random_case(number)
    deltas = cases.other_deltas(rng)
    for claim in cases.claims(model, query, rng, ledger=number % 8 == 0):
        assert cases.excess(claim, truths, deltas) <= 1, claim


def rare_and_a_coin() -> pdp.JointTable:
    """Three tuples with rare cells, and a coin that is independent of them."""
    cells = np.array([[[0.1586, 3e-6], [0.4, 7e-4]], [[5e-5, 4e-6], [3e-6, 0.4406]]])
    cells = np.multiply.outer(cells / cells.sum(), [0.5, 0.5])
    return pdp.JointTable(probabilities=cells, domains=[[0, 2]] * 4)


RARE = pdp.Sum(over=["x1", "x2", "x3"])


def test_independent_groups_of_a_table_keep_their_mu():
    model, asked = rare_and_a_coin(), {"scale": 4.68, "noise": "gaussian"}
    at_one = pdp.leakage(model, RARE, delta=0.0172, **asked)
    everywhere = pdp.leakage(model, RARE, **asked)
    assert at_one.mu >= everywhere.value * (1 - 1e-12)
    # An adversary attains more than the mu that represents the answer at the delta asked about.
    rare = pdp.leakage(model, RARE, delta=1e-12, **asked)
    assert at_one.epsilon(1e-12) >= rare.lower > 8.7
    two_groups = pdp.Blocks(models=[model, model])
    assert pdp.leakage(two_groups, RARE_TWICE, delta=0.0172, **asked).mu >= everywhere.value


RARE_TWICE = pdp.Sum(over=[(block, place) for block in (0, 1) for place in range(3)])


def test_a_forged_mu_is_refused():
    cal = pdp.calibrate_to_accuracy(
        rare_and_a_coin(), RARE, half_width=9, noise="gaussian", delta=0.0172
    )
    assert pdp.verify(cal).mu <= cal.mu
    with pytest.raises(pdp.CalibrationError, match="mu"):
        pdp.verify(dataclasses.replace(cal, mu=cal.mu * 0.8))
    for forged in (None, math.inf, math.nan, -1.0):
        with pytest.raises(pdp.CalibrationError, match="mu"):
            dataclasses.replace(cal, mu=forged)
    with pytest.raises(pdp.CalibrationError, match="mu"):
        dataclasses.replace(pdp.calibrate(rare_and_a_coin(), RARE), mu=1.0)


def test_an_engine_that_states_no_mu_has_proved_none(monkeypatch):
    class AtOneDelta(Engine):
        """Answers the question about one δ, and says nothing about others."""

        charges_rounding = True

        def __init__(self, problem):
            self.problem = problem

        def search(self, scale, limits):
            del scale, limits
            return Bracket(upper=0.125, lower=0.0, witness=None, target=0, unknown=())

    monkeypatch.setattr(pdp.JointTable, "gaussian_noise_engine", AtOneDelta)
    model = rare_and_a_coin()
    measure = Measure.of("gaussian", delta=1e-3)
    problems = split(model, lower(RARE, model), EVERYONE, measure=measure)
    found, _ = worst(problems, 2.0, deadline=math.inf)
    assert found.upper == 0.125
    # Nothing but the range of the answer holds at every δ.
    assert found.everywhere == pytest.approx(6 / 2.0)
    alone = Bracket(upper=0.125, lower=0.0, witness=None, target=0, unknown=())
    assert alone.everywhere == alone.by_coupling == math.inf
    known = dataclasses.replace(alone, everywhere=0.5)
    assert alone.or_worse(known).everywhere == known.or_worse(alone).everywhere == math.inf
    assert known.at_most(0.1).everywhere == 0.5
    assert known.at_most_everywhere(0.1).upper == 0.1
