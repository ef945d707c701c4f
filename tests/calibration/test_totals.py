"""One total everywhere: what learning the model told is part of it."""

import json
import math
from fractions import Fraction
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.rounding import sum_rounded_up
from pdp_calibrate.show.summary import summarise
from tests.support.cli_runs import fine, refused

PAIR = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["mother", "child"]
)
LEARNED = pdp.JointTable(
    probabilities=PAIR.probabilities, domains=PAIR.domains, names=PAIR.names, provenance="dp"
).learned_with(0.5)
ROWS = pd.DataFrame({"mother": [0, 1] * 20, "child": [0, 1, 1, 1] * 10})
VALIDATOR = jsonschema.Draft202012Validator(pdp.json_schema())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(LEARNED.to_dict()))
    (tmp_path / "assumed.json").write_text(json.dumps(PAIR.to_dict()))
    ROWS.to_csv("survey.csv", index=False)
    return tmp_path


def released(model=LEARNED, query=None, *, epsilon=1.0, ledger=None):
    query = pdp.Sum() if query is None else query
    return pdp.calibrate(model, query, epsilon=epsilon, rows=40).release(ROWS, ledger=ledger)


@pytest.mark.parametrize("query", [pdp.Sum(), [pdp.Sum(over="child"), pdp.Sum(over="mother")]])
def test_the_total_is_in_python_json_schema_and_words(query):
    release = released(query=query)
    cal = release.calibration
    assert (cal.epsilon, cal.estimation_epsilon, cal.total_epsilon) == (1.0, 0.5, 1.5)
    stored = release.to_dict()
    VALIDATOR.validate(stored)
    assert stored["calibration"]["total_epsilon"] == 1.5
    words = " ".join(pdp.explain(release).split())
    assert "e^1.5 (ε = 1.5 in total: 1 for the answer, 0.5 for learning the model)" in words
    assert "e^1 " not in words
    assert "1.5" in cal._repr_html_()
    plain = released(PAIR).calibration
    assert plain.total_epsilon == plain.to_dict()["total_epsilon"] == 1.0
    assert "in total" not in pdp.explain(plain)


def test_the_total_is_rounded_up():
    for epsilon, learning in [(0.1, 0.2), (1.0, 1e-30), (0.7, 0.1), (1e-300, 1e300)]:
        total = sum_rounded_up(epsilon, learning)
        exact = Fraction(epsilon) + Fraction(learning)
        assert Fraction(math.nextafter(total, 0)) < exact <= Fraction(total)


def test_the_commands_print_the_total():
    whole = "1.5 in total: 1 for the answer, 0.5 for learning the model"
    for line in ("calibrate", "release"):
        told = " ".join(fine(f'{line} survey.csv -q "sum()" -e 1 --model model.json').out.split())
        assert whole in told
        plain = fine(f'{line} survey.csv -q "sum()" -e 1 --model assumed.json').out
        assert "in total" not in plain


def test_the_headline_of_a_report_is_the_total():
    facts = summarise(released()).facts
    assert facts["total_epsilon"] == 1.5
    assert facts["odds_factor"] == pytest.approx(math.exp(1.5))
    pdp.report(released(), "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<td class="number" data-path="total_epsilon">1.5</td>' in page
    assert "can become at most 81.8 %" in page.split("<h2")[0]  # from even odds: e^1.5
    assert "from both together" not in page


def test_with_a_ledger_the_headline_is_what_all_of_it_leaks():
    ledger = pdp.Ledger(LEARNED, epsilon=3.0)
    first = released(epsilon=0.6, ledger=ledger)
    assert summarise(first, ledger=ledger).facts["total_epsilon"] == ledger.spent
    second = released(query=pdp.Sum(over="child"), epsilon=0.4, ledger=ledger)
    for one in (first, second):
        assert summarise(one, ledger=ledger).facts["total_epsilon"] == ledger.spent > 1.1
    elsewhere = pdp.Ledger(LEARNED, epsilon=3.0, learned_here=False)
    third = released(epsilon=0.6, ledger=elsewhere)
    assert summarise(third, ledger=elsewhere).facts["total_epsilon"] == 0.6


def test_each_draw_has_its_own_total():
    ledger = pdp.Ledger(PAIR, epsilon=3.0)
    first = released(PAIR, epsilon=0.6, ledger=ledger)
    ledger.new_draw("next")
    second = released(PAIR, epsilon=0.3, ledger=ledger)
    assert summarise(first, ledger=ledger).facts["total_epsilon"] == pytest.approx(0.6)
    assert summarise(second, ledger=ledger).facts["total_epsilon"] == pytest.approx(0.3)


def test_a_ledger_about_other_data_is_refused():
    ledger = pdp.Ledger(PAIR, epsilon=3.0, path="budget.json")
    other = pdp.Ledger(LEARNED, epsilon=3.0, path="other.json")
    release = released(PAIR, ledger=ledger)
    Path("release.json").write_text(release.to_json(), encoding="utf-8")
    fine("report release.json --ledger budget.json -o page.html")
    assert "another model" in refused("report release.json --ledger other.json -o none.html")
    empty = pdp.Ledger(PAIR, epsilon=3.0, path="empty.json")
    assert "not in this ledger" in refused("report release.json --ledger empty.json -o none.html")
    released(PAIR, epsilon=0.9, ledger=empty)
    for subject, book in [(release, empty), (release.calibration, other)]:
        with pytest.raises(pdp.LedgerError):
            pdp.report(subject, "none.html", ledger=book)
    assert summarise(release.calibration, ledger=empty).facts["total_epsilon"] == 1.0
