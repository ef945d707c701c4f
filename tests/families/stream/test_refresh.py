"""A budget that is refreshed: what it really promises, beside what others say."""

import math

import pytest
from jsonschema import Draft202012Validator

import pdp_calibrate as pdp
from tests.support.cli_runs import fine, refused


def test_the_verdict_is_the_closed_form():
    found = pdp.refresh(epsilon=1.5, every="30d", persistence=0.8, states=2)
    assert found.diameter == pytest.approx(2 * math.log(4), rel=1e-11)
    assert math.sinh(found.leakage / 4) == pytest.approx(4 * math.sinh(1.5 / 4), rel=1e-9)
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
    assert found.leakage == pytest.approx(pdp.black_box_leakage(chain, epsilon=1.5).value, rel=1e-9)
    assert found.counted_for_a_year == pytest.approx(13 * 1.5)
    kept = pdp.refresh(epsilon=found.budget, persistence=0.8)
    assert 1.5 * (1 - 1e-9) <= kept.leakage <= 1.5


@pytest.mark.parametrize("states", [2, 3, 7])
@pytest.mark.parametrize("persistence", [0.05, 0.34, 0.7, 0.999])
def test_the_diameter_is_that_of_the_chain(states, persistence):
    move = (1 - persistence) / (states - 1)
    law = [[persistence if v == w else move for w in range(states)] for v in range(states)]
    found = pdp.refresh(epsilon=1.0, persistence=persistence, states=states)
    assert found.diameter >= pdp.MixingChain.diameter_of(law) * (1 - 1e-11)
    assert found.diameter == pytest.approx(pdp.MixingChain.diameter_of(law), rel=1e-9)
    assert 1.0 <= found.leakage_about_the_latest <= found.leakage
    assert found.temporal <= found.leakage * (1 + 1e-12)


@pytest.mark.parametrize(
    ("persistence", "budget", "temporal"),
    [
        (0.7, 0.4322081722, 0.97702681),
        (0.8, 0.2524447014, 0.97355632),
        (0.9, 0.1122574044, 0.97211515),
    ],
)
def test_temporal_privacy_leakage_is_what_somebody_without_hints_is_told(
    persistence, budget, temporal
):
    found = pdp.refresh(epsilon=budget, persistence=persistence)
    assert found.temporal == pytest.approx(temporal, abs=2e-8)
    assert found.leakage == pytest.approx(1.0, abs=2e-9)


def test_words_name_the_verdict_and_what_stands_beside_it():
    words = pdp.explain(pdp.refresh(epsilon=1.5, every="m", persistence=0.8))
    assert "ε = 1.5 every month is ε ≤ 4.86 about the record of any one month" in words
    assert "3.812 (temporal privacy leakage" in words
    assert "spend 0.3833 every month" in words
    assert "period of 30 days" in pdp.explain(pdp.refresh(epsilon=1.5, persistence=0.8))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"persistence": 0.0},
        {"persistence": 1.0},
        {"persistence": math.nan},
        {"states": 0},
        {"every": "30"},
        {"every": "0d"},
        {"every": 30},
    ],
)
def test_bad_budgets_are_refused(wrong):
    with pytest.raises(pdp.PdpError):
        pdp.refresh(**({"epsilon": 1.0, "persistence": 0.8} | wrong))


def test_records_of_one_value_or_pure_chance_tell_nothing_more():
    assert pdp.refresh(epsilon=1.0, persistence=0.5).leakage == 1.0
    assert pdp.refresh(epsilon=1.0, persistence=0.5, states=1).leakage == 1.0


def test_the_command_says_it_and_draws_it(tmp_path):
    picture = tmp_path / "verdict.png"
    line = "refresh -e 1.5 --every 30d --persistence 0.8"
    assert "ε ≤ 4.86" in fine(f"{line} --plot {picture}").out
    assert picture.stat().st_size > 5000
    assert "exists already" in refused(f"{line} --plot {picture}")
    shown = fine(f"{line} --json").json
    Draft202012Validator(pdp.json_schema()).validate(shown)
    assert shown["leakage"] == pdp.refresh(epsilon=1.5, persistence=0.8).leakage
    refused("refresh -e 1.5 --persistence 1.2")
