"""Panels with gaps: absence is one more state."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

PANEL = pd.DataFrame(
    {
        "who": ["b", "a", "a", "a", "b", "c"],
        "day": [3, 1, 4, 2, 5, 9],
        "ill": [0.0, 1.0, np.nan, 0.0, 1.0, 1.0],
    }
)


def estimator(**changes):
    fixed = {"value": "ill", "groups": "who", "order_by": "day", "missing": "absent", "every": 1}
    return pdp.MarkovChainEstimator(**(fixed | {"source": "public"} | changes))


def drawn(rng, units=300, length=5, away=0.2):
    """Two states that last, some values not there and some rows neither."""
    rows = []
    for who in range(units):
        state = int(rng.integers(2))
        for day in range(length):
            state = state if rng.random() < 0.8 else 1 - state
            if day in (0, length - 1) or rng.random() > away / 2:
                rows.append((who, day, state if rng.random() > away / 2 else None))
    return pd.DataFrame(rows, columns=["who", "day", "ill"])


def test_every_step_of_every_series_has_a_state():
    found = estimator().fit(PANEL).filled(PANEL)
    assert found["who"].tolist() == ["a"] * 4 + ["b"] * 3 + ["c"]
    assert found["day"].tolist() == [0, 1, 2, 3, 0, 1, 2, 0]
    assert found["ill"].tolist() == [1, 0, "absent", "absent", 0, "absent", 1, 1]


@pytest.mark.parametrize("kind", ["polars", "pandas", "dates", "shuffled"])
def test_other_frames_and_times_give_the_same_panel(kind):
    expected = estimator().fit(PANEL).filled(PANEL)
    frame, every = PANEL, 1
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(PANEL)
    if kind == "dates":
        start = dt.date(2024, 2, 27)
        days = [start + dt.timedelta(days=int(day)) for day in PANEL["day"]]
        frame, every = PANEL.assign(day=pd.to_datetime(days)), "1D"
    if kind == "shuffled":
        frame = PANEL.sample(frac=1, random_state=1)
    found = estimator(every=every).fit(frame).filled(frame)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_a_chain_with_absences_is_the_chain_of_the_filled_panel():
    panel = drawn(np.random.default_rng(1))
    fitted = estimator().fit(panel)
    filled = fitted.filled(panel)
    plain = pdp.MarkovChainEstimator(value="ill", groups="who", order_by="day", source="public")
    assert fitted.model_ == plain.fit(filled).model_
    assert fitted.model_.models[0].states == ("absent", 0, 1)
    # An answer about the states is protected, and so is who was absent when.
    calibration = pdp.calibrate(fitted.model_, pdp.Count(values={1}), epsilon=1.0)
    released = calibration.release(filled, value="ill", groups="who", order_by="day")
    assert isinstance(released.value, int)


def test_absence_costs_less_than_the_whole_series():
    """Where missing="zero" asks for the noise of group privacy."""
    panel = drawn(np.random.default_rng(2), units=2000)
    point = estimator(confidence=None).fit(panel).model_.models[0]
    with_states = pdp.calibrate(point, pdp.Count(values={1}), epsilon=1.0)
    table = pdp.calibrate(point.to_table(), pdp.Count(values={1}), epsilon=1.0)
    assert with_states.scale == pytest.approx(table.scale, rel=1e-4)
    assert with_states.scale < 0.8 * with_states.baselines["group"]


def test_stated_states_and_private_fits_have_absence_too():
    panel = drawn(np.random.default_rng(3))
    private = estimator(states=[0, 1], epsilon=2.0, max_length=5, source="private").fit(panel)
    assert private.model_.models[0].states == (0, 1, "absent")
    assert private.model_.estimation_epsilon == 2.0


@pytest.mark.parametrize(
    ("changes", "frame", "message"),
    [
        ({"missing": "zero"}, PANEL, "missing must be 'absent' or None"),
        ({"missing": None}, PANEL, "give missing='absent'"),
        ({"order_by": None, "every": None}, PANEL, "missing= needs order_by="),
        ({"every": 2}, PANEL, "not a whole number of steps"),
        ({"every": None}, PANEL, "has gaps"),
        ({}, pd.concat([PANEL, PANEL]), "two equal times"),
        ({"missing": None, "every": None}, PANEL[PANEL["who"] == "a"], "missing='absent'"),
    ],
)
def test_what_is_no_panel_is_refused(changes, frame, message):
    with pytest.raises(pdp.ModelError, match=message):
        estimator(**changes).fit(frame)
