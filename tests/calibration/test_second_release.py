"""Two releases from one calibration: nothing counts them together without a ledger."""

import copy
import dataclasses
import pickle
import warnings

import pandas as pd
import pytest

import pdp_calibrate as pdp

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
HERE = {"a": 1, "b": 0}
FRAME = pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 0]})
WAYS = {
    "release": lambda cal: cal.release(HERE),
    "rows": lambda cal: cal.release_rows(FRAME),
    "accessor": lambda cal: FRAME.copy().pdp.release(cal),
}


def one():
    return pdp.calibrate(COUPLE, pdp.Sum(), epsilon=0.1)


@pytest.mark.parametrize("second", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("first", WAYS.values(), ids=WAYS)
def test_a_second_release_without_a_ledger_warns_before_noise_is_drawn(first, second, monkeypatch):
    cal = one()
    first(cal)  # warnings are errors here: the first release gives none
    with pytest.warns(pdp.SecondReleaseWarning, match="no ledger counts both") as caught:
        second(cal)
    assert len(caught) == 1
    monkeypatch.setattr("pdp_calibrate.core.noise.add_laplace_to_integers", None)
    with pytest.raises(pdp.SecondReleaseWarning):  # so nothing was drawn
        second(cal)


def test_joint_releases_warn_too():
    both = pdp.calibrate(COUPLE, [pdp.Sum(), pdp.Count(values={1})], epsilon=0.1)
    both.release(HERE)
    with pytest.warns(pdp.SecondReleaseWarning):
        both.release(FRAME)


def test_the_warning_points_to_the_line_that_releases():
    cal = one()
    cal.release(HERE)
    with pytest.warns(pdp.SecondReleaseWarning) as caught:
        cal.release(HERE)
    assert caught[0].filename == __file__
    assert issubclass(pdp.SecondReleaseWarning, pdp.PrivacyLeakWarning)


def test_a_ledger_counts_all_of_them_and_says_nothing():
    cal, ledger = one(), pdp.Ledger(COUPLE, epsilon=2.0)
    for _ in range(3):
        cal.release(HERE, ledger=ledger)
    cal.release_rows(FRAME, ledger=ledger)
    assert len(ledger.history) == 4
    with pytest.warns(pdp.SecondReleaseWarning):  # of which the ledger does not know
        cal.release(HERE)


def test_other_calibrations_and_copies_begin_anew():
    cal = one()
    cal.release(HERE)
    for other in (one(), dataclasses.replace(cal), copy.copy(cal), pickle.loads(pickle.dumps(cal))):  # noqa: S301
        assert other == cal
        other.release(HERE)
    with pytest.warns(pdp.SecondReleaseWarning):
        cal.release(HERE)


def test_refused_data_are_no_release():
    cal = one()
    with pytest.raises(pdp.ModelError):
        cal.release({"a": 1})
    cal.release(HERE)


def test_calibrations_that_are_gone_are_forgotten():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):  # objects that take the place of others in memory
            one().release(HERE)


# Frames that df.pdp answers about

HOMES = {"groups": "home", "bounds": (0, 1), "epsilon": 0.5}
QUESTIONS = {
    "sum": lambda frame: frame.pdp.sum("pay", **HOMES),
    "mean": lambda frame: frame.pdp.mean("pay", **HOMES),
    "count": lambda frame: frame.pdp.count({"sick": True}, groups="home", epsilon=0.5),
    "release": lambda frame: frame.pdp.release(
        frame.pdp.calibrate("sum(pay)", **HOMES), value="pay", groups="home"
    ),
}


def homes():
    return pd.DataFrame({"home": [1, 1, 2], "pay": [0.1, 0.2, 0.3], "sick": [True, False, True]})


@pytest.mark.parametrize("second", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("first", QUESTIONS.values(), ids=QUESTIONS)
def test_a_second_release_about_one_frame_warns_before_noise_is_drawn(first, second, monkeypatch):
    frame = homes()
    first(frame)
    with pytest.warns(pdp.SecondReleaseWarning, match="this table has had a release") as caught:
        second(frame)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    monkeypatch.setattr("pdp_calibrate.core.noise.add_laplace_to_integers", None)
    monkeypatch.setattr("pdp_calibrate.core.noise.add_laplace_to_floats", None)
    with pytest.raises(pdp.SecondReleaseWarning):
        second(frame)


def test_frames_of_other_libraries_are_remembered_too():
    pl = pytest.importorskip("polars")
    pytest.importorskip("pdp_calibrate_integrations.polars")
    for frame in (pl.from_pandas(homes()), pl.from_pandas(homes()).lazy()):
        QUESTIONS["sum"](frame)
        with pytest.warns(pdp.SecondReleaseWarning, match="this table"):
            QUESTIONS["mean"](frame)


def test_calibrating_is_no_release_and_other_frames_begin_anew():
    frame = homes()
    for _ in range(3):
        frame.pdp.calibrate("sum(pay)", **HOMES)
    with pytest.raises(pdp.PdpError):
        frame.pdp.sum("gone", **HOMES)
    QUESTIONS["sum"](frame)
    for other in (homes(), frame.copy(), copy.deepcopy(frame), frame[frame["home"] > 0]):
        QUESTIONS["sum"](other)
    for _ in range(50):  # objects that take the place of others in memory
        QUESTIONS["sum"](homes())


def test_a_ledger_counts_what_a_frame_is_asked():
    model = pdp.Blocks(models=[pdp.Unknown(size=n, bounds=(0, 1)) for n in (1, 2)], counts=[1, 1])
    ledger, frame = pdp.Ledger(model, epsilon=2.0), homes()
    for epsilon in (0.2, 0.2, None):
        frame.pdp.sum("pay", **HOMES | {"epsilon": epsilon}, ledger=ledger)
    with pytest.warns(pdp.SecondReleaseWarning):  # of which the ledger does not know
        QUESTIONS["sum"](frame)
    survey = pdp.People(frame, groups="home", bounds={"pay": (0, 1)}, epsilon=2.0)
    survey.sum("pay", epsilon=0.5)
    survey.sum("pay", epsilon=0.5)
