"""What was proved is what is released: nothing that happens to a query later changes a release."""

import contextlib
import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import pdp_calibrate as pdp
from pdp_calibrate.core.query import FrozenMapping, TableOfValues
from pdp_calibrate.errors import QueryError
from pdp_calibrate.frames.answers import instance_answer
from pdp_calibrate_integrations.handover import laplace_parameters

PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
BOTH = {"x1": 1, "x2": 1}
QUIET = 100.0
"""An ε at which noise on whole numbers is nothing but once in e^100."""


class Changing:
    """A function that is a thousand times larger whenever it is asked for the table again."""

    def __init__(self):
        self.calls = 0

    def __call__(self, cell):
        self.calls += 1
        return max(cell) * 1000 ** ((self.calls - 1) // 4)


def closures():
    """Return a function of a variable that another function sets."""
    k = 1

    def largest(cell):
        return k * max(cell)

    def turn():
        nonlocal k
        k = 1000

    return largest, turn


def changed_after_calibration():
    """Yield queries, and what makes each of them mean something else."""
    largest, turn = closures()
    yield "closure", pdp.Custom(function=largest), turn
    yield "stateful", pdp.Custom(function=Changing()), lambda: None
    table = {(i, j): max(i, j) for i in (0, 1) for j in (0, 1)}
    yield "table", pdp.Custom(function=table), lambda: table.update({(1, 1): 1000})
    arrays = {cell: np.array(float(max(cell))) for cell in table}
    yield "table of arrays", pdp.Custom(function=arrays), lambda: arrays[1, 1].fill(1000)


CHANGED = list(changed_after_calibration())


@pytest.fixture(params=range(len(CHANGED)), ids=[name for name, *_ in CHANGED])
def changed(request):
    """Return what builds one anew each time: the changes are for good."""
    return lambda: list(changed_after_calibration())[request.param][1:]


def brute_leakage(cal, released):
    """Return the leakage about x1 of what is really released, x2 known or not, by brute force."""
    outputs = np.linspace(-5, 1500, 3011)
    answers = np.array([[released({"x1": i, "x2": j}) for j in (0, 1)] for i in (0, 1)])
    distances = -np.abs(outputs[:, None, None] - answers) / cal.scale
    unknown = logsumexp(distances + np.log(PAIR.probabilities), axis=2)
    known = [distances[:, :, j] for j in (0, 1)]
    return max(np.abs(seen[:, 0] - seen[:, 1]).max() for seen in (unknown, *known))


def test_what_is_released_leaks_what_was_proved(changed):
    query, turn = changed()
    cal = pdp.calibrate(PAIR, query, epsilon=1.0)
    turn()

    def released(data):
        return float(instance_answer(cal.contributions[0], cal.model, data)[0])

    assert brute_leakage(cal, released) <= 1.0 + 1e-9


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_every_kind_of_release_is_of_what_was_proved(changed):
    queries, turns = zip(*(changed() for _ in range(3)), strict=True)
    single = pdp.calibrate(PAIR, queries[0], epsilon=QUIET)
    joint = pdp.calibrate(PAIR, [queries[1], pdp.Sum()], epsilon=4 * QUIET)
    accurate = pdp.calibrate_to_accuracy(
        PAIR, queries[2], half_width=0.01, alpha=1e-12, allow_large_epsilon=True
    )
    before = single.to_dict(), joint.to_dict(), accurate.to_dict()
    for turn in turns:
        turn()
    ledger = pdp.Ledger(PAIR, epsilon=10 * QUIET)
    assert single.release(BOTH, ledger=ledger).value == 1
    assert single.release_rows(pd.DataFrame([BOTH, BOTH])).value.tolist() == [1, 1]
    assert joint.release(BOTH, ledger=ledger).values == (1, 2)
    assert accurate.release(BOTH).value == 1
    assert (single.to_dict(), joint.to_dict(), accurate.to_dict()) == before
    for cal in (single, joint, accurate):
        assert pdp.verify(cal).value <= cal.epsilon
        assert type(cal).from_json(cal.to_json()) == cal
    stored = json.loads(json.dumps([entry.to_dict() for entry in ledger.history]))
    assert stored[0]["queries"] == [before[0]["query"]]
    assert single.dp_epsilon == pytest.approx(QUIET)
    assert laplace_parameters(single).sensitivity == 1.0


def test_a_function_is_called_once_for_every_cell():
    function = Changing()
    cal = pdp.calibrate(PAIR, pdp.Custom(function=function), epsilon=1.0)
    cal.release(BOTH, ledger=pdp.Ledger(PAIR, epsilon=5.0))
    cal.to_json()
    pdp.explain(cal)
    assert (function.calls, cal.dp_epsilon) == (4, pytest.approx(1.0))


def test_a_ledger_counts_what_is_released():
    largest, turn = closures()
    ledger = pdp.Ledger(PAIR, epsilon=3.0)
    cal = pdp.calibrate(PAIR, pdp.Custom(function=largest), epsilon=1.0)
    expected = ledger.would_spend(cal)
    turn()
    assert ledger.would_spend(cal) == expected
    cal.release(BOTH, ledger=ledger)
    assert ledger.spent == expected


def test_the_most_that_fits_is_found_and_released_for_one_function():
    function = Changing()
    ledger = pdp.Ledger(PAIR, epsilon=QUIET)
    release = ledger.release(pdp.Custom(function=function), BOTH, epsilon=None)
    assert (function.calls, release.value) == (4, 1)


def test_an_audit_attacks_what_is_released():
    largest, turn = closures()
    cal = pdp.calibrate(PAIR, pdp.Custom(function=largest), epsilon=1.0)
    turn()
    assert pdp.audit(cal, draws=4000, confidence=1 - 1e-10).lower_bound <= 1.0


def test_weights_are_frozen():
    given = {"x1": 1.0, "x2": 2.0}
    query = pdp.Linear(weights=given)
    given["x1"] = 1000.0
    assert query.weights == {"x1": 1.0, "x2": 2.0}
    with pytest.raises(TypeError):
        query.weights["x1"] = 1000.0
    with pytest.raises((AttributeError, TypeError)):
        query.weights.clear()
    again = pdp.Linear(weights={"x2": 2, "x1": 1})
    assert query == again
    assert hash(query) == hash(again)
    assert query != pdp.Linear(weights={"x1": 1, "x2": 2}, clamp=True)
    assert repr(query) == "Linear(weights={'x1': 1.0, 'x2': 2.0}, clamp=False)"
    for same in (pickle.loads(pickle.dumps(query)), copy.deepcopy(query)):  # noqa: S301
        assert same == query
        assert hash(same) == hash(query)
    cal = pdp.calibrate(PAIR, query, epsilon=QUIET)
    assert pdp.Calibration.from_json(cal.to_json()) == cal
    assert cal.release(BOTH).value == 3


def test_calibrations_of_functions_pickle_copy_and_compare():
    cal = pdp.calibrate(PAIR, pdp.Custom(function=lambda cell: max(cell)), epsilon=QUIET)
    for same in (pickle.loads(pickle.dumps(cal)), copy.deepcopy(cal)):  # noqa: S301
        assert same == cal
        assert same.release(BOTH).value == 1
    table = {(i, j): max(i, j) for i in (0, 1) for j in (0, 1)}
    written = pdp.Custom(function=table, over=["x1", "x2"])
    assert cal.query == written
    assert hash(cal.query) == hash(written)
    assert "table of 4 values" in repr(cal)


def test_frozen_mappings_behave_like_dicts():
    frozen = FrozenMapping({"a": 1, "b": 2})
    assert (dict(frozen), len(frozen), frozen["a"]) == ({"a": 1, "b": 2}, 2, 1)
    assert frozen == {"b": 2, "a": 1}
    table = TableOfValues(((0, 1), ("a", "b")), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert dict(table) == {(0, "a"): 1, (0, "b"): 2, (1, "a"): 3, (1, "b"): 4}
    assert table == FrozenMapping(dict(table))
    assert hash(table) == hash(FrozenMapping(dict(table)))
    assert table != TableOfValues(((0, 1), ("a", "b")), np.zeros((2, 2)))
    for missing in ((2, "a"), (0,), (0, "a", 1), 0):
        assert missing not in table
    assert table.over(((1, 0), ("a", "b"))) is None
    with pytest.raises(ValueError, match="read-only"):
        table.over(((0, 1), ("a", "b")))[0, 0] = 1000.0


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_a_table_is_read_by_value_on_other_domains():
    turned = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[1, 0]] * 2)
    query = pdp.Custom(function=lambda cell: cell[0] + 2 * cell[1]).tabulate(PAIR)
    cal = pdp.calibrate(turned, query, epsilon=QUIET)
    assert cal.release({"x1": 1, "x2": 0}).value == 1
    assert cal.release({"x1": 0, "x2": 1}).value == 2


def test_a_table_without_all_cells_is_refused():
    with pytest.raises(QueryError, match="every cell"):
        pdp.calibrate(PAIR, pdp.Custom(function={(0, 0): 1.0}))


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_long_frames_release_what_was_proved():
    group = pdp.Unknown(size=2, domain=[0, 1])
    cal = pdp.calibrate(group, pdp.Linear(weights={0: 1.0, 1: 1.0}), epsilon=QUIET)
    for member in (0, 1):
        with contextlib.suppress(TypeError):
            cal.query.weights[member] = 1000.0
    frame = pd.DataFrame({"home": [1, 1, 2, 2], "ill": [1, 1, 1, 1]})
    assert cal.release(frame, value="ill", groups="home").value == 4
