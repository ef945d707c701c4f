"""From a belief to ε and back, in Python, on the command line and in plans."""

import decimal
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import pdp_calibrate as pdp
from pdp_calibrate.calibration.risk import percent, risk_of
from tests.support.cli_runs import fine, refused

PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)


@pytest.mark.parametrize("prior", [1e-12, 0.001, 0.01, 0.3, 0.4, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("posterior", [1e-13, 0.02, 0.5, 0.97, 1 - 1e-10])
def test_the_epsilon_of_a_belief_keeps_it_and_hardly_more_would(prior, posterior):
    epsilon = pdp.epsilon_for(prior=prior, posterior=posterior)
    stated = abs(
        math.log(posterior) - math.log1p(-posterior) - math.log(prior) + math.log1p(-prior)
    )
    assert epsilon <= stated
    assert epsilon == pytest.approx(stated, rel=1e-9)
    found = risk_of(epsilon, prior=prior)
    reached = found.posterior if posterior > prior else found.lowest
    assert reached == pytest.approx(posterior, rel=1e-9)
    assert risk_of(epsilon * 1.01, prior=prior).posterior >= found.posterior


def test_no_belief_of_any_adversary_moves_further():
    rng = np.random.default_rng(3)
    for _ in range(20):
        table = pdp.JointTable(probabilities=rng.dirichlet(np.ones(12)).reshape(3, 2, 2),
                               domains=[[0, 1, 2], [0, 1], [0, 1]])  # fmt: skip
        cal = pdp.calibrate(table, pdp.Sum(), epsilon=rng.uniform(0.2, 2))
        for output in range(5):
            after = pdp.posterior(
                table, pdp.Sum(), scale=cal.scale, target="x1", known={}, output=output
            )
            for event in ([0], [1], [2], [0, 1], [0, 2]):
                before = sum(after.prior[value] for value in event)
                then = sum(after.posterior[value] for value in event)
                risk = cal.risk(prior=before)
                assert risk.lowest <= then <= risk.posterior


def test_the_risk_is_reached_by_the_worst_adversary():
    cal = pdp.calibrate(PAIR, pdp.Sum(), epsilon=1.0)
    witness = cal.leakage.witness
    found = pdp.posterior(
        PAIR, pdp.Sum(), scale=cal.scale, target=witness.target, known={}, output=witness.output
    )
    belief = witness.secrets[0]
    risk = cal.risk(prior=found.prior[belief])
    assert found.posterior[belief] == pytest.approx(risk.posterior, rel=1e-6)


def test_learning_the_model_counts():
    rows = pd.DataFrame({"mother": [0, 1] * 500, "child": [0, 1, 1, 0] * 250})
    stated = {"mother": [0, 1], "child": [0, 1]}
    model = pdp.TableEstimator(domains=stated, epsilon=0.5).fit(rows).model_
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
    assert cal.risk(prior=0.5) == risk_of(1.5, prior=0.5)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_beside_a_delta_twice_the_factor_fails_with_twice_its_probability(mu, epsilon):
    """The exact case: two normal laws at distance μ, whose log-ratio is normal itself."""
    delta = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    risk = risk_of(epsilon, prior=0.2, delta=delta)
    beyond = norm.sf((math.log(risk.factor) - mu**2 / 2) / mu)
    assert beyond <= risk.failure
    assert risk.factor == pytest.approx(2 * math.exp(epsilon))
    assert "except with probability" in str(risk)


@pytest.mark.parametrize("bad", [0, 1, -0.1, math.nan, "1", True, None])
def test_beliefs_are_probabilities_between_0_and_1(bad):
    with pytest.raises(pdp.PdpError, match="prior must"):
        pdp.epsilon_for(prior=bad, posterior=0.5)
    with pytest.raises(pdp.PdpError, match="posterior must"):
        pdp.epsilon_for(prior=0.5, posterior=bad)
    with pytest.raises(pdp.PdpError, match="prior must"):
        pdp.calibrate(PAIR, pdp.Sum()).risk(prior=bad)


def test_a_belief_that_may_not_move_is_refused():
    with pytest.raises(pdp.PdpError, match="must differ"):
        pdp.epsilon_for(prior=0.3, posterior=0.3)


def test_shown_bounds_are_on_the_safe_side():
    for share in np.random.default_rng(0).uniform(size=200):
        high, low = (float(percent(share, up=up).rstrip(" %")) for up in (True, False))
        assert low / 100 <= share * (1 + 1e-9)
        assert high / 100 >= share * (1 - 1e-9)
    assert percent(1 - 1e-9, up=False) != "100 %"


PEOPLE = pd.DataFrame({"home": [1, 1, 2, 2, 2], "pay": [10.0, 20.0, 5.0, 0.0, 30.0]})
SAID = {"bounds": (0, 100), "groups": "home", "correlation": (0, 0.4)}


def test_a_belief_stands_for_epsilon_in_frames_commands_and_plans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    epsilon = pdp.epsilon_for(prior=0.01, posterior=0.03)
    assert PEOPLE.pdp.sum("pay", belief=(0.01, 0.03), **SAID).calibration.epsilon == epsilon
    PEOPLE.to_csv("people.csv", index=False)
    words = "people.csv -q sum(pay) --groups home --bounds pay=0:100 --correlation 0:0.4"
    found = json.loads(fine(f"calibrate {words} --belief 1%:3% --json").out)
    assert found["epsilon"] == epsilon
    assert (
        json.loads(fine(f"release {words} --belief 0.01:0.03 --json").out)["calibration"] == found
    )
    (tmp_path / "plan.toml").write_text(
        'data = {file = "people.csv", groups = "home"}\nbudget = {epsilon = 2}\n'
        "model = {bounds = {pay = [0, 100]}, correlation = [0, 0.4]}\n"
        '[[queries]]\nquery = "sum(pay)"\nbelief = "1%:3%"\n'
    )
    (job,) = pdp.read_plan("plan.toml").jobs
    assert job.epsilon == epsilon
    people = pdp.People(PEOPLE, groups="home", bounds={"pay": (0, 100)}, epsilon=2.0)
    people.sum("pay", belief=(0.01, 0.03))
    assert people.spent == pytest.approx(epsilon)


def test_what_is_no_belief_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    words = "calibrate people.csv -q sum(pay) --groups home --bounds pay=0:100"
    assert "BEFORE:AFTER" in refused(f"{words} --belief 3%")
    assert "a belief is a probability" in refused(f"{words} --belief 1%:much")
    assert "strictly between 0 and 1" in refused(f"{words} --belief 1%:300%")
    assert "give one of them" in refused(f"{words} --belief 1%:3% -e 1")
    with pytest.raises(pdp.QueryError, match="a pair"):
        PEOPLE.pdp.sum("pay", belief=0.1, **SAID)
    (tmp_path / "plan.toml").write_text(
        'data = {file = "people.csv", groups = "home"}\nbudget = {epsilon = 2}\n'
        'model = {bounds = {pay = [0, 100]}}\n[[queries]]\nquery = "sum(pay)"\n'
    )
    with pytest.raises(pdp.PlanError, match="epsilon is missing"):
        pdp.read_plan("plan.toml")


@pytest.mark.parametrize("epsilon", [0.1, 5.0, 20.0, 35.0, 100.0, 700.0, 1797.0, 1e5])
@pytest.mark.parametrize("prior", [1e-9, 0.01, 0.5, 0.999])
def test_a_huge_risk_is_written_in_powers_of_ten_on_the_safe_side(epsilon, prior):
    risk = risk_of(epsilon, prior=prior)
    text = str(risk)
    assert "000000" not in text
    assert "at most 100 %:" not in text
    assert "at most 100 % and" not in text
    assert "at least 0 %" not in text
    with decimal.localcontext(prec=50):
        odds = decimal.Decimal(prior) / (1 - decimal.Decimal(prior))
        factor = decimal.Decimal(epsilon).exp()
        least = odds / (odds + factor)
        missing = 1 / (1 + odds * factor)
        assert share_in(risk.least) <= least <= share_in(risk.least) * decimal.Decimal("1.2")
        assert 1 - share_in(risk.most) <= missing * (1 + decimal.Decimal("1e-9"))
    assert risk.lowest <= least
    assert decimal.Decimal(risk.posterior) >= 1 - missing - decimal.Decimal("1e-15")
    assert risk.factor == pytest.approx(math.exp(epsilon)) if epsilon < 709 else risk.factor > 1e300


def share_in(text):
    """Read a share in per cent, also one in powers of ten, and what is missing to all."""
    if "−" in text:
        return 1 - share_in(text.partition("− ")[2])
    number, _, power = text.removesuffix(" %").partition("·10^")
    return decimal.Decimal(number).scaleb(int(power or 0)) / 100


def test_a_belief_that_falls_is_refused():
    for said in ((0.03, 0.01), (0.5, 0.4999)):
        with pytest.raises(pdp.QueryError, match=re.escape(f"got {said}")) as refusal:
            PEOPLE.pdp.sum("pay", belief=said, **SAID)
        assert "epsilon_for" in str(refusal.value)
