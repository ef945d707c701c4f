"""What a person who waits sees: one bar that only moves forward, gone when the result is there."""

import json

import pytest

from tests.support.terminals import COMMAND_LINE, Shown, in_pipes, in_terminal

NEXT = "-- next --"
BEGIN = """
import numpy as np
import pdp_calibrate as pdp

chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=20, states=[0, 1])
pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
calibrated = pdp.calibrate(chain, pdp.Sum(), epsilon=1.0)
attacked = pdp.calibrate(pair, pdp.Sum(), epsilon=1.0)
ledger = pdp.Ledger(chain, epsilon=20.0)
noisy = lambda database: sum(database.values()) + np.random.default_rng().laplace(scale=2.0)
"""
WAITS = {  # an expression that is true, and what the bar says meanwhile
    "leakage": (
        "pdp.leakage(chain, pdp.Sum(), scale=2.0).value > 0",
        {"comparing adversaries"},
    ),
    "calibration": (
        "pdp.calibrate(chain, pdp.Sum(), epsilon=0.9).scale > calibrated.scale",
        {"calibrating", "comparing adversaries"},
    ),
    "audit": (
        "pdp.audit(attacked, draws=2000).lower_bound < 20",
        {"attacking", "drawing noise"},
    ),
    "audit of a function": (
        "pdp.audit(noisy, draws=2000, witness=attacked.leakage.witness).lower_bound < 20",
        {"attacking", "running the mechanism"},
    ),
    "price in a ledger": (
        "ledger.would_spend(pdp.Sum(), epsilon=0.5) <= 0.5",
        {"adding up what is spent", "comparing adversaries"},
    ),
    "release through a ledger": (
        "ledger.release(pdp.Sum(), dict.fromkeys(range(20), 1), epsilon=0.5).calibration.scale > 0",
        {"releasing", "comparing adversaries"},
    ),
    "charge of a ledger": ("ledger.charge(0.1) > 0.5", {"adding up what is spent"}),
}
ALL = BEGIN + "".join(f"print({NEXT!r})\nprint({line})\n" for line, _ in WAITS.values())


@pytest.fixture(scope="module")
def pages() -> dict[str, Shown]:
    _, *shown = in_terminal(ALL).pages(NEXT)
    return dict(zip(WAITS, shown, strict=True))


@pytest.mark.parametrize("what", WAITS)
def test_one_bar_says_what_is_done_and_never_moves_back(pages, what):
    shown, (_, says) = pages[what], WAITS[what]
    percentages = [percentage for _, percentage in shown.states]
    assert shown.bars == 1
    assert says <= {words for words, _ in shown.states}
    assert percentages == sorted(percentages)
    assert shown.text == "True"  # the bar is gone


@pytest.mark.parametrize("what", [name for name in WAITS if not name.startswith("charge")])
def test_the_bar_moves_while_one_waits(pages, what):
    percentages = {percentage for _, percentage in pages[what].states}
    assert len(percentages) > 1
    assert max(percentages) < 100  # whoever still waits is not shown the end


def test_running_a_function_moves_the_bar_by_single_steps(pages):
    steps = {percentage for _, percentage in pages["audit of a function"].states}
    assert steps == set(range(41))  # twice a thousand runs; the third part of three is not run


def test_cases_that_become_more_do_not_move_the_bar_to_its_end():
    """A search that splits what it judged has more to do than it knew when it began."""
    shown = in_terminal(
        "from pdp_calibrate.core import workers\n"
        "with workers.one_bar('calibrating'):\n"
        "    with workers.progress('searching', total=2) as show:\n"
        "        for done in range(9):\n"
        "            show(done + 1)\n"
        "    workers._shown.searches = 10_000\n"
        "    with workers.progress('still searching', total=1) as show:\n"
        "        show(1)\n"
    )
    assert {state for state in shown.states if state[0] == "searching"} == {
        ("searching", 0), ("searching", 14), ("searching", 25),
    }  # fmt: skip
    assert shown.states[-1] == ("still searching", 99)


def test_nothing_is_shown_where_nobody_looks():
    ran = in_pipes(ALL)
    assert ran.stderr == ""
    assert ran.stdout.split("\n") == [*[NEXT, "True"] * len(WAITS), ""]


def test_a_bar_never_stands_in_what_is_written_to_a_file(tmp_path):
    file, messages = tmp_path / "leakage.json", tmp_path / "messages.txt"
    rows = tmp_path / "answers.csv"
    rows.write_text("mother,child\n" + "0,0\n0,0\n0,1\n1,1\n1,1\n1,0\n" * 5)
    words = ["leakage", str(rows), "--kind", "table", "--public", "-q", "sum()", "--scale", "2"]
    shown = in_terminal(COMMAND_LINE, *words, "--json", redirected=f"> {file}")
    assert shown.bars == 1
    assert shown.text == ""
    leaked = json.loads(file.read_text())
    assert leaked["type"] == "Leakage"
    shown = in_terminal(COMMAND_LINE, *words, "--json", redirected=f"2> {messages}")
    assert shown.bars == 0
    assert json.loads(shown.text) == leaked
    assert messages.read_text() == ""
