"""Names and values come from data: nothing of them commands a terminal, or turns a page around."""

import json

import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.cards import card
from pdp_calibrate.errors import printable
from tests.support.cli_runs import fine, run
from tests.support.plans import plan_text

NASTY = ["[/x]", "[bold]y[/bold]", "\x1b[31mred", "\u202eabc", ":smile:", "a\nb", "\u2066c\x07"]
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    table = pdp.JointTable(
        probabilities=[1 / len(NASTY)] * len(NASTY), domains=[NASTY], names=["city"]
    )
    (tmp_path / "model.json").write_text(json.dumps(table.to_dict()))
    pd.DataFrame({"city": NASTY * 3}).to_csv("people.csv", index=False)
    pdp.Ledger(table, epsilon=5.0, path="budget.json")
    return tmp_path


def assert_safe(text):
    assert not any(one in text for one in ("\x1b", "\x07", *BIDI))


ASK = 'people.csv -q "histogram(city)" --model model.json'


def test_answers_about_any_category_are_printed_as_they_are(folder):
    told = fine(f"release {ASK} -e 0.5 --ledger budget.json -o release.json").out
    assert_safe(told)
    for shown in ("[/x]", "[bold]y[/bold]", r"\x1b[31mred", r"\u202eabc", ":smile:", r"a\nb"):
        assert f"{shown}: " in told
    value = json.loads((folder / "release.json").read_text())["value"]
    assert len(value) == len(NASTY)


def test_plans_ledgers_and_words_are_safe_too(folder):
    plan = plan_text(
        {"name": "[/x] \x1b[31m \u202e", "query": "histogram(city)", "epsilon": 0.5},
        data={"file": "people.csv"},
        model={"file": "model.json"},
        budget={"epsilon": 5, "draw": "[/today]"},
    )
    (folder / "plan.toml").write_text(plan)
    for line in ("plan plan.toml --check", "plan plan.toml"):
        told = fine(line).out
        assert_safe(told)
        assert r"[/x] \x1b[31m \u202e" in told
    fine('ledger charge budget.json 0.1 --note "[/x]"')
    for name in ("[/draw]", "\u202e\x1b[2J"):
        pdp.Ledger.open("budget.json").new_draw(name)
        pdp.Ledger.open("budget.json").charge(0.1)
        for line in ("show", "history"):
            told = fine(f"ledger {line} budget.json").out
            assert_safe(told)
            assert printable(name) in told
        assert_safe(fine("explain budget.json").out)


def test_errors_and_warnings_are_safe():
    ran = run("release people.csv -q \"sum('\x1b[2J\u202e')\" -e 1 --model model.json")
    assert ran.code == 2
    assert_safe(ran.err)
    assert r"\x1b[2J\u202e" in ran.err


def test_pages_and_cards_hold_no_bidi_controls(folder):
    fine(f"release {ASK} -e 1 -o release.json --report page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert_safe(page)
    assert r"\u202eabc" in page
    release = pdp.load("release.json")
    assert_safe(release._repr_html_())
    assert_safe(card("x", [("\u202e", "\x1b")]))


def test_ordinary_text_is_left_alone():
    for text in ("Ångström", "naïve – ε ≤ 1", "日本", "👩‍👧", "a\tb"):
        assert printable(text, lines=True) == text
    assert printable("\ud800") == r"\ud800"


def test_words_for_python_are_safe_too():
    model = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["\x1b[2J", "\u202eb"]
    )
    words = pdp.explain(pdp.calibrate(model, pdp.Sum(), epsilon=1.0))
    assert "\\x1b[2J" in words
    assert_safe(words)


def test_names_command_no_terminal_and_no_notebook_from_python():
    """What Python shows by itself: repr, str, cards, explanations, errors."""
    name, city, label = "\x1b[31mpay\u202e", "c\x1bty", "a\x1b"
    rows = {"home\x07": [1, 1, 2, 3], name: [1.0, 2.0, 3.0, 4.0], city: [label, "b"] * 2}
    frame = pd.DataFrame(rows)
    people = pdp.People(
        frame, groups="home\x07", bounds={name: (0, 9)}, domains={city: [label, "b"]}, epsilon=9.0
    )
    table = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[label, "b"]] * 2, names=[name, city]
    )
    gaussian = pdp.Gaussian(covariance=[[1, 0.5], [0.5, 1]], bounds=(0, 1), names=[name, city])
    calibration = pdp.calibrate(table, pdp.Histogram())
    shown = [
        people,
        people.calibrate.sum(name, epsilon=0.5),
        people.sum(name, epsilon=0.5),
        people.sum(name, by=city, missing="zero", epsilon=0.5),
        people.histogram(city, epsilon=0.5),
        people.history[-1],
        table,
        gaussian,
        calibration,
        calibration.leakage,
        calibration.leakage.witness,
        calibration.release({name: "b", city: "b"}),
        pdp.Ledger(table),
        pdp.advise(frame, query=f'mean("{name}")', groups="home\x07", bounds=(0, 9)),
        *table_sets(name, city),
    ]
    for one in shown:
        assert_safe(repr(one))
        assert_safe(str(one))
        assert_safe(getattr(one, "_repr_html_", str)())
    for asked in ({"groups": "gone\x1b"}, {"groups": "home\x07", "bounds": (1, 0)}):
        with pytest.raises(pdp.PdpError) as error:
            frame.pdp.sum(city, epsilon=1.0, **asked)
        assert_safe(str(error.value))


def table_sets(*names):
    rows = pd.DataFrame({name: [0, 1] * 50 for name in names})
    domains = {name: [0, 1] for name in names}
    return [
        pdp.TableEstimator(source="public", confidence=0.9, domains=domains).fit(rows).model_,
        pdp.TableEstimator(source="public", domains=domains).fit(rows).model_,
    ]
