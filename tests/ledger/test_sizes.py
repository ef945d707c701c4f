"""A draw of a ledger is about the same rows every time: another number of them is refused."""

import json
import re

import jsonschema
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.ledger.store import FileStore
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
PEOPLE = pd.DataFrame({"a": [0, 1, 1, 0, 1], "b": [0, 1, 0, 0, 1], "hiv": [0, 1, 1, 0, 0]})
CREW = pdp.BinaryGroup(count_probabilities=[0.4, 0.2, 0.4])
HOMES = pdp.Blocks(models=[CREW, pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.2, 0.3])],
                   counts=[1, 1])  # fmt: skip
LONG = pd.DataFrame({"ill": [0, 1, 1, 0, 0], "home": [1, 1, 2, 2, 2]})
REFUSED = "another number of rows or groups"


def ways(ledger, frame):
    """Return every way to release about a wide frame through a ledger."""
    cal = pdp.calibrate(COUPLE, pdp.Sum(), epsilon=0.1)
    both = pdp.calibrate(COUPLE, [pdp.Sum(), pdp.Count(values={1})], epsilon=0.1)
    return [
        lambda: cal.release(frame, ledger=ledger),
        lambda: cal.release_rows(frame, ledger=ledger),
        lambda: both.release(frame, ledger=ledger),
        lambda: frame.pdp.sum(["a", "b"], ledger=ledger, epsilon=0.1),
        lambda: frame.pdp.mean(["a", "b"], ledger=ledger, epsilon=None),
        lambda: frame.pdp.histogram(["a", "b"], ledger=ledger, epsilon=0.1),
        lambda: ledger.release(pdp.Sum(), frame, epsilon=0.1),
    ]


@pytest.mark.parametrize("way", range(7))
def test_rows_filtered_by_a_secret_column_are_refused(way, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=5.0)
    ledger.release(pdp.Sum(), PEOPLE, epsilon=0.1)
    before = ledger.history
    no_noise()
    with pytest.raises(pdp.LedgerError, match=REFUSED) as caught:
        ways(ledger, PEOPLE[PEOPLE.hiv == 1])[way]()
    assert not re.search(r"\d", str(caught.value))
    assert ledger.history == before
    with pytest.raises(AssertionError, match="noise was drawn"):
        ways(ledger, PEOPLE)[way]()
    assert len(ledger.history) == 2


def test_groups_of_a_long_frame_count_by_size():
    ledger = pdp.Ledger(HOMES, epsilon=5.0)
    ask = {"epsilon": 0.1, "value": "ill", "by": "home"}
    ledger.release(pdp.Sum(), LONG, **ask)
    ledger.release(pdp.Sum(), LONG.sample(frac=1, random_state=0), **ask)  # order does not matter
    for other in (
        LONG[LONG.home == 1],
        LONG.assign(home=[1, 1, 1, 2, 2]).iloc[:3],
        pd.concat([LONG, pd.DataFrame({"ill": [1, 0], "home": [3, 3]})]),
    ):
        with pytest.raises(pdp.LedgerError, match=REFUSED):
            ledger.release(pdp.Sum(), other, **ask)
    assert [entry.sizes for entry in ledger.history] == [((2, 1), (3, 1))] * 2


def test_one_instance_says_nothing_of_a_number_and_a_new_draw_has_its_own():
    ledger = pdp.Ledger(COUPLE, epsilon=5.0)
    ledger.release(pdp.Sum(), {"a": 1, "b": 0}, epsilon=0.1)
    ledger.release(pdp.Sum(), PEOPLE, epsilon=0.1)
    ledger.charge(0.1)
    ledger.release(pdp.Sum(), PEOPLE.iloc[0], epsilon=0.1)
    with pytest.raises(pdp.LedgerError, match=REFUSED):
        ledger.release(pdp.Sum(), PEOPLE.iloc[:1], epsilon=0.1)
    ledger.new_draw("next")
    ledger.release(pdp.Sum(), PEOPLE.iloc[:2], epsilon=0.1)
    assert [entry.sizes for entry in ledger.history] == [None, ((2, 5),), None, None, ((2, 2),)]


def test_the_file_remembers_and_files_of_earlier_versions_open(path):
    ledger = pdp.Ledger(COUPLE, epsilon=5.0, path=path)
    ledger.release(pdp.Sum(), PEOPLE, epsilon=0.1)
    stored = json.loads(path.read_text())
    jsonschema.Draft202012Validator(pdp.json_schema()).validate(stored)
    assert stored["entries"][0]["sizes"] == [[2, 5]]
    again = pdp.Ledger.open(path)
    assert again.history == ledger.history
    with pytest.raises(pdp.LedgerError, match=REFUSED):
        again.release(pdp.Sum(), PEOPLE.iloc[:2], epsilon=0.1)
    state = FileStore(path).read()
    del state["entries"][0]["sizes"]
    FileStore(path).write(state)
    earlier = pdp.Ledger.open(path)
    assert earlier.history[0].sizes is None
    earlier.release(pdp.Sum(), PEOPLE.iloc[:2], epsilon=0.1)  # fixes it
    with pytest.raises(pdp.LedgerError, match=REFUSED):
        earlier.release(pdp.Sum(), PEOPLE, epsilon=0.1)


@pytest.mark.parametrize("damage", ["wide", 3, [[2]], [[2, 0]], [[2, 1.5]], [[True, 3]], {"a": 1}])
def test_damaged_sizes_are_refused(path, damage):
    ledger = pdp.Ledger(COUPLE, epsilon=5.0, path=path)
    ledger.release(pdp.Sum(), PEOPLE, epsilon=0.1)
    state = FileStore(path).read()
    state["entries"][0]["sizes"] = damage
    FileStore(path).write(state)
    again = pdp.Ledger.open(path)
    for use in (lambda: again.history, lambda: again.release(pdp.Sum(), PEOPLE, epsilon=0.1)):
        with pytest.raises(pdp.LedgerError):
            use()


def test_the_command_line_and_plans_keep_to_the_number(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    PEOPLE[PEOPLE.hiv == 1].to_csv(tmp_path / "some.csv", index=False)
    (tmp_path / "model.json").write_text(json.dumps(COUPLE.to_dict()))
    book = tmp_path / "budget.json"
    fine(f"ledger create {book} --model {tmp_path}/model.json -e 5")
    line = f'release {tmp_path}/people.csv -q "sum(a,b)" -e 0.1 --ledger {book}'
    fine(line)
    assert REFUSED in refused(line.replace("people.csv", "some.csv"))
    plan = plan_text(
        {"query": "sum(a,b)", "epsilon": 0.1},
        data={"file": "some.csv"},
        model={"file": "model.json"},
        budget={"epsilon": 5.0, "ledger": "budget.json"},
    )
    (tmp_path / "plan.toml").write_text(plan)
    assert REFUSED in refused(f"plan {tmp_path}/plan.toml")
    assert len(pdp.Ledger.open(book).history) == 1
