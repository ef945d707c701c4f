"""A ledger is about one column of a long frame: the model says nothing of two together."""

import json

import jsonschema
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.frames.long_answers import LongFrame
from pdp_calibrate.ledger.store import FileStore
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

CREW = pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.2, 0.3])
FRAME = pd.DataFrame(
    {
        "ill": [0, 1, 1, 0, 0, 1],
        "old": [1, 1, 0, 0, 0, 1],
        "home": ["a"] * 3 + ["b"] * 3,
        "street": ["x", "y"] * 3,
        "day": [1, 2, 3] * 2,
        "rank": [3, 2, 1] * 2,
    }
)


def ways(ledger, value):
    """Return every way to release about a column of a long frame through a ledger."""
    cal = pdp.calibrate(CREW, pdp.Sum(), epsilon=0.1)
    both = pdp.calibrate(CREW, [pdp.Sum(), pdp.Count(values={1})], epsilon=0.1)
    columns = {"value": value, "by": "home"}
    return [
        lambda: cal.release(FRAME, ledger=ledger, **columns),
        lambda: both.release(FRAME, ledger=ledger, **columns),
        lambda: FRAME.pdp.release(cal, ledger=ledger, **columns),
        lambda: FRAME.pdp.mean(value, groups="home", ledger=ledger, epsilon=0.1),
        lambda: FRAME.pdp.sum(value, groups="home", ledger=ledger, epsilon=None),
        lambda: FRAME.pdp.count(value, values={1}, groups="home", ledger=ledger, epsilon=0.1),
        lambda: FRAME.pdp.histogram(value, groups="home", ledger=ledger, epsilon=0.1),
        lambda: ledger.release(pdp.Sum(), FRAME, epsilon=0.1, **columns),
        lambda: ledger.release(pdp.Sum(), FRAME, epsilon=None, **columns),
    ]


@pytest.mark.parametrize("way", range(9))
def test_another_column_is_refused_before_noise(way, request):
    ledger = pdp.Ledger(CREW, epsilon=5.0)
    ledger.release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")
    before = ledger.history
    request.getfixturevalue("no_noise")()
    with pytest.raises(pdp.LedgerError, match=r"column ill .* column old .*a ledger for each"):
        ways(ledger, "old")[way]()
    assert ledger.history == before
    with pytest.raises(AssertionError, match="noise was drawn"):
        ways(ledger, "ill")[way]()  # the same column goes on
    assert len(ledger.history) == 2


def test_other_groups_are_other_tuples_and_an_order_may_be_named_later():
    chain = pdp.MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=3)
    ledger = pdp.Ledger(chain, epsilon=9.0)

    def ask(query, **columns):
        return ledger.release(query, FRAME, epsilon=0.1, value="ill", **columns)

    ask(pdp.Sum(), by="home")
    first = pdp.Sum(over=[0])
    ask(first, by="home", order_by="day")
    ask(pdp.Sum(), by="home")
    with pytest.raises(pdp.LedgerError, match=r"in order of day.*in order of rank"):
        ask(first, by="home", order_by="rank")
    with pytest.raises(pdp.LedgerError, match=r"by home.*by street"):
        ask(pdp.Sum(), by="street")
    with pytest.raises(pdp.LedgerError, match="columns that the model names"):
        ledger.release(pdp.Sum(), {0: 1, 1: 0, 2: 0}, epsilon=0.1)
    assert [entry.layout.order_by for entry in ledger.history] == [None, "day", None]
    ledger.new_draw("next year")  # independent data, in a table of their own
    ask(pdp.Sum(), by="street")


def test_wide_frames_and_instances_are_about_the_same_tuples():
    three = pdp.JointTable(probabilities=CREW.to_table().probabilities, domains=[[0, 1]] * 3)
    ledger = pdp.Ledger(three, epsilon=9.0)
    ledger.release(pdp.Sum(), {"x1": 1, "x2": 0, "x3": 0}, epsilon=0.1)
    wide = pd.DataFrame({"x1": [0, 1], "x2": [1, 1], "x3": [0, 0]})
    ledger.release(pdp.Sum(), wide, epsilon=0.1)
    pdp.calibrate(three, pdp.Sum(), epsilon=0.1).release_rows(wide, ledger=ledger)
    assert {entry.layout for entry in ledger.history} == {"wide"}
    with pytest.raises(pdp.LedgerError, match="column ill"):
        ledger.release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")


def test_the_file_names_the_column_and_nothing_of_the_rows(path):
    ledger = pdp.Ledger(CREW, epsilon=5.0, path=path)
    ledger.release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")
    ledger.charge(0.01)
    stored = json.loads(path.read_text())
    jsonschema.Draft202012Validator(pdp.json_schema()).validate(stored)
    assert stored["entries"][0]["layout"] == {"value": "ill", "by": "home", "order_by": None}
    assert "layout" not in stored["entries"][1]
    again = pdp.Ledger.open(path)
    assert again.history == ledger.history
    assert again.history[0].layout == LongFrame(value="ill", groups="home")
    with pytest.raises(pdp.LedgerError, match="column old"):
        again.release(pdp.Sum(), FRAME, epsilon=0.1, value="old", by="home")


def test_a_file_of_an_earlier_version_is_fixed_by_its_next_release(path):
    ledger = pdp.Ledger(CREW, epsilon=5.0, path=path)
    ledger.release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")
    state = FileStore(path).read()
    del state["entries"][0]["layout"]
    FileStore(path).write(state)
    again = pdp.Ledger.open(path)
    assert again.history[0].layout is None
    again.release(pdp.Sum(), FRAME, epsilon=0.1, value="old", by="home")
    with pytest.raises(pdp.LedgerError, match="column ill"):
        again.release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")
    assert len(again.history) == 2


def test_a_damaged_layout_is_refused(path):
    ledger = pdp.Ledger(CREW, epsilon=5.0, path=path)
    ledger.release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")
    state = FileStore(path).read()
    for damage in ("long", 3, {"value": "ill"}):
        state["entries"][0]["layout"] = damage
        FileStore(path).write(state)
        with pytest.raises(pdp.LedgerError):
            _ = pdp.Ledger.open(path).history
        with pytest.raises(pdp.PdpError):
            pdp.Ledger.open(path).release(pdp.Sum(), FRAME, epsilon=0.1, value="ill", by="home")


def test_names_that_json_cannot_hold_are_refused():
    ledger = pdp.Ledger(CREW, epsilon=5.0)
    cal = pdp.calibrate(CREW, pdp.Sum(), epsilon=0.1)
    with pytest.raises(pdp.ModelError, match="JSON holds only"):
        ledger.spend(cal, layout=LongFrame(value=pd.Timestamp("2026-11-16")))
    ledger.spend(cal, layout=LongFrame(value=("2026", "ill")))  # a column of two levels
    assert ledger.history[0].layout == LongFrame(value=("2026", "ill"))


def ledger_and_rows(folder, *, epsilon):
    """A ledger in a file, and how the command line names the rows."""
    FRAME.to_csv(folder / "people.csv", index=False)
    (folder / "model.json").write_text(json.dumps(CREW.to_dict()))
    book = folder / "budget.json"
    fine(f"ledger create {book} --model {folder}/model.json --epsilon {epsilon}")
    return book, f"{folder}/people.csv --groups home"


def test_the_command_line_and_plans_keep_to_the_column(tmp_path):
    book, rows = ledger_and_rows(tmp_path, epsilon=5)
    fine(f'release {rows} -q "sum(ill)" -e 0.1 --ledger {book}')
    assert "column old" in refused(f'release {rows} -q "sum(old)" -e 0.1 --ledger {book}')
    cal = pdp.calibrate(CREW, pdp.Sum(), epsilon=0.1)
    (tmp_path / "cal.json").write_text(cal.to_json())
    line = f"release {rows} --calibration {tmp_path}/cal.json --ledger {book} --value"
    assert "column old" in refused(f"{line} old")
    fine(f"{line} ill")
    plan = plan_text(
        {"query": "sum(old)", "epsilon": 0.1},
        data={"file": "people.csv", "groups": "home"},
        model={"file": "model.json"},
        budget={"epsilon": 5.0, "ledger": "budget.json"},
    )
    (tmp_path / "plan.toml").write_text(plan)
    assert "column old" in refused(f"plan {tmp_path}/plan.toml")
    assert len(pdp.Ledger.open(book).history) == 2
    assert "Sum in column ill" in fine(f"ledger history {book}").out
    assert "the sum of all entries in column ill, scale" in fine(f"explain {book}").out


def test_the_rest_of_a_budget_goes_to_a_long_frame():
    for groups in (CREW, pdp.Blocks(models=[CREW], counts=[2])):
        ledger = pdp.Ledger(groups, epsilon=1.0)
        FRAME.pdp.sum("ill", groups="home", ledger=ledger, epsilon=0.4)
        release = FRAME.pdp.mean("ill", groups="home", ledger=ledger, epsilon=None)
        assert 1 - 1e-5 < ledger.spent <= 1.0
        assert ledger.history[-1].scales == (release.calibration.scale,)
        assert release.calibration.leakage.value <= release.calibration.epsilon < 1.0
        with pytest.raises(pdp.BudgetExceededError):
            FRAME.pdp.mean("ill", groups="home", ledger=ledger, epsilon=None)


def test_a_mean_over_several_groups_goes_through_ledger_release():
    ledger = pdp.Ledger(CREW, epsilon=2.0)
    for epsilon in (0.5, None):
        release = ledger.release(pdp.Mean(), FRAME, epsilon=epsilon, value="ill", by="home")
        assert release.calibration.rows == 2


def test_the_rest_needs_a_ledger_and_its_model_and_adversaries():
    with pytest.raises(pdp.PdpError, match="ledger="):
        FRAME.pdp.sum("ill", groups="home", model=CREW, epsilon=None)
    ledger = pdp.Ledger(CREW, epsilon=1.0)
    other = pdp.BinaryGroup(count_probabilities=[0.25] * 4)
    with pytest.raises(pdp.LedgerError, match="another model"):
        FRAME.pdp.sum("ill", groups="home", model=other, ledger=ledger, epsilon=None)
    with pytest.raises(pdp.LedgerError, match="own adversaries"):
        FRAME.pdp.sum(
            "ill", groups="home", ledger=ledger, epsilon=None,
            adversaries=pdp.Adversaries.weakest(),
        )  # fmt: skip
    assert ledger.history == ()


def test_the_rest_on_the_command_line(tmp_path):
    book, rows = ledger_and_rows(tmp_path, epsilon=1)
    fine(f'release {rows} -q "mean(ill)" -e 0.3 --ledger {book}')
    told = fine(f'release {rows} -q "mean(ill)" --rest --ledger {book} --json').json
    ledger = pdp.Ledger.open(book)
    assert 1 - 1e-5 < ledger.spent <= 1.0
    assert told["calibration"]["scale"] == ledger.history[-1].scales[0]
    assert "spent" in refused(f'release {rows} -q "mean(ill)" --rest --ledger {book}', code=3)
    for wrong in (
        f'-q "sum(ill)" --rest --model {tmp_path}/model.json',
        f'-q "sum(ill)" --rest -e 1 --ledger {book}',
        f'-q "sum(ill)" -q "mean(ill)" --rest --ledger {book}',
    ):
        assert "--rest takes" in refused(f"release {rows} {wrong}")
