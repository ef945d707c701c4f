"""One query or a list: the same types, single values or tuples inside, the same methods."""

import dataclasses
import inspect
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

PAIR = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
ROWS = pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 0]}, index=[7, 8, 9])
ONE = pdp.calibrate(PAIR, pdp.Sum(), epsilon=1.0)
LIST = pdp.calibrate(PAIR, [pdp.Sum(), pdp.Histogram()], epsilon=1.0)
ALONE = pdp.calibrate(PAIR, [pdp.Sum()], epsilon=1.0)
FIXTURES = Path(__file__).parents[1] / "fixtures" / "version_0_1_0"


def test_queries_and_scales_are_always_tuples():
    assert (ONE.queries, ONE.scales) == ((ONE.query,), (ONE.scale,))
    assert (LIST.queries, LIST.scales) == (LIST.query, LIST.scale)
    assert (len(ALONE.query), len(ALONE.scale)) == (1, 1)
    assert ALONE.scale[0] == pytest.approx(ONE.scale, rel=1e-9)
    assert type(ONE) is type(LIST) is pdp.Calibration
    assert {field.name for field in dataclasses.fields(LIST)} >= {"query", "scale"}


def test_a_calibration_has_one_scale_for_each_query():
    for scale in (ONE.scale, (ONE.scale,), (1.0, 2.0, 3.0)):
        with pytest.raises(pdp.CalibrationError, match="one scale for each query"):
            dataclasses.replace(LIST, scale=scale)
    with pytest.raises(pdp.CalibrationError, match="one scale for each query"):
        dataclasses.replace(ONE, scale=(1.0,))


@pytest.mark.parametrize("cal", [ONE, LIST, ALONE], ids=["one", "list", "list of one"])
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_every_property_and_method_works(cal):
    def each(value):
        assert isinstance(value, tuple) == (cal is not ONE)
        found = value if isinstance(value, tuple) else (value,)
        assert len(found) == len(cal.queries)
        return found

    release = cal.release(ROWS)
    for owner in (cal, release):
        names = [name for name, _ in inspect.getmembers(type(owner)) if not name.startswith("_")]
        skipped = {
            "from_json",
            "release",
            "release_rows",
            "answered",
            "with_noise",
            "risk",
            "estimate",
        }
        for name in {*names} - skipped:
            if name == "cleaned" and cal is not LIST:
                continue  # only counts can be cleaned
            found = getattr(owner, name)
            assert (found() if callable(found) else found) is not None or name in (
                "certificate", "count", "estimation_epsilon", "moment", "mu", "rho"
            )  # fmt: skip
        assert owner._repr_html_().startswith("<")
    assert cal.is_integer
    assert all(width > 0 for width in each(cal.accuracy(alpha=0.1)))
    assert [float(one) for one in each(cal.sensitivity)] == [1.0, 2.0][: len(cal.queries)]
    for scale in (cal.baselines["dp"], cal.baselines["group"]):
        assert all(number > 0 for number in each(scale))
    assert cal.dp_epsilon <= cal.epsilon
    assert cal.risk(prior=0.5).posterior > 0.5
    assert each(release.value) is release.value or release.values == (release.value,)
    assert len(pdp.explain(release)) > 500
    assert len(each(cal.release_rows(ROWS).value)[0]) == 3
    assert cal.release_rows(ROWS).values[0].index.tolist() == [7, 8, 9]
    ledger = pdp.Ledger(PAIR, epsilon=1.5)
    cal.release(ROWS, ledger=ledger)
    assert ledger.history[-1].scales == cal.scales
    assert len(pdp.Ledger(PAIR).release(cal.query, ROWS, epsilon=0.5).values) == len(cal.queries)
    assert pdp.verify(cal).value <= 1.0


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_intervals_of_whole_numbers_are_whole_numbers():
    single = ONE.release(ROWS)
    low, high = single.interval()
    assert (type(low), type(high)) == (int, int)
    (first, counts) = LIST.release(ROWS).interval(alpha=0.2)
    assert [type(end) for end in first] == [int, int]
    assert all(end.dtype.kind == "i" for end in counts)
    mixed = pdp.calibrate(PAIR, [pdp.Sum(), pdp.Mean()], epsilon=1.0, rows=3)
    whole, real = mixed.release(ROWS).interval()
    assert [type(end) for end in (*whole, *real)] == [int, int, float, float]
    assert not mixed.is_integer


def test_baselines_of_a_list_keep_its_proportions_and_say_what_they_mean():
    ratio = LIST.scale[1] / LIST.scale[0]
    for name in ("dp", "group"):
        first, second = LIST.baselines[name]
        assert second / first == pytest.approx(ratio, rel=1e-12)
    plain = dataclasses.replace(LIST, scale=LIST.baselines["dp"])
    assert plain.dp_epsilon == pytest.approx(1.0, rel=1e-12)  # what plain DP would have said
    assert pdp.leakage(PAIR, LIST.query, scale=plain.scale).value > 1.0  # and what it would leak
    group = pdp.leakage(PAIR, LIST.query, scale=LIST.baselines["group"])
    assert group.value <= 1.0 + 1e-12
    halves = [pdp.Sum(over=["a"]), pdp.Sum(over=["b"])]
    assert (
        pdp.calibrate(PAIR, halves).baselines["wasserstein"] is None
    )  # quantiles are of one number
    assert (
        pdp.calibrate(PAIR, pdp.Histogram()).baselines["wasserstein"] is not None
    )  # twice a count


def test_dp_epsilon_of_a_list_is_that_of_all_answers_together():
    halves = pdp.calibrate(PAIR, [pdp.Sum(over=["a"]), pdp.Sum(over=["b"])], epsilon=1.0)
    assert halves.dp_epsilon == pytest.approx(1 / halves.scale[0])  # one tuple is in one of them
    twice = pdp.calibrate(PAIR, [pdp.Sum(), pdp.Sum()], epsilon=1.0)
    assert twice.dp_epsilon == pytest.approx(2 / twice.scale[0])


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_only_histograms_of_a_list_are_cleaned():
    release = dataclasses.replace(LIST.release(ROWS), value=(-3, pd.Series([-4, 11], index=[0, 1])))
    total, counts = release.cleaned(total=6)
    assert (total, counts.tolist()) == (-3, [0, 6])
    with pytest.raises(pdp.QueryError, match="histogram"):
        ALONE.release(ROWS).cleaned()


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
@pytest.mark.parametrize("cal", [ONE, LIST, ALONE], ids=["one", "list", "list of one"])
def test_json_goes_both_ways(cal):
    described = json.loads(cal.to_json())
    assert (described["type"], described["schema"]) == ("Calibration", "pdp-calibrate/1")
    assert isinstance(described["scale"], list) == (cal is not ONE)
    assert "certificate" not in described
    again = pdp.Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.to_json() == cal.to_json()
    for release in (cal.release(ROWS), cal.release_rows(ROWS)):
        back = pdp.Release.from_json(release.to_json())
        assert back.calibration == cal
        for found, value in zip(back.values, release.values, strict=True):
            assert np.array_equal(np.asarray(found), np.asarray(value))
        assert back.to_json() == release.to_json()


def test_a_certificate_is_kept_and_never_shown_of_a_private_model():
    described = LIST.to_dict() | {"certificate": {"any": ["form", 1]}}
    kept = pdp.Calibration.from_json(json.dumps(described))
    assert kept.certificate == {"any": ["form", 1]}
    assert kept.to_dict() == described
    assert kept == LIST
    null = pdp.Calibration.from_json(json.dumps(described | {"certificate": None}))
    assert "certificate" not in null.to_dict()
    secret = pdp.JointTable(
        probabilities=PAIR.probabilities, domains=PAIR.domains, provenance="private"
    )
    with pytest.warns(pdp.PrivacyLeakWarning):
        private = pdp.calibrate(secret, pdp.Sum())
    private = dataclasses.replace(private, certificate={"cells": [0.4]})
    assert "certificate" not in private.to_dict()
    pytest.importorskip("jsonschema").validate(described, pdp.json_schema())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 3.0}, "one scale for each query"),
        ({"scale": [3.0]}, "one scale for each query"),
        ({"scale": [3.0, True]}, "must be a number"),
        ({"query": []}, "at least one"),
        ({"scale": [0.1, 0.1]}, "leaks up to"),
    ],
)
def test_lists_that_do_not_fit_are_refused(change, message):
    with pytest.raises(pdp.CalibrationError, match=message):
        pdp.Calibration.from_json(json.dumps(LIST.to_dict() | change))


def test_files_of_lists_by_version_0_1_0_open_as_the_one_type():
    cal = pdp.load(FIXTURES / "calibration_joint.json")
    assert type(cal) is pdp.Calibration
    assert isinstance(cal.query, tuple)
    assert json.loads(cal.to_json())["type"] == "Calibration"
    release = pdp.load(FIXTURES / "release_joint.json")
    assert type(release) is pdp.Release
    assert release.value[:2] == (2, -2)
    assert release.value[2].tolist() == [-14, -5]
    stored = json.loads((FIXTURES / "release_joint.json").read_text())
    stored["calibration"]["scales"] = 3.0
    with pytest.raises(pdp.PdpError):
        pdp.Release.from_json(json.dumps(stored))


def test_what_takes_one_answer_says_so():
    with pytest.raises(pdp.UnsupportedQueryError, match="takes one answer"):
        pdp.plots.leakage_by_scale(LIST)
    with pytest.raises(pdp.UnsupportedQueryError, match="takes one answer"):
        pdp.plots.scales(LIST)
    with pytest.raises(pdp.PdpError, match="a single query"):
        pdp.calibrate_to_accuracy(PAIR, [pdp.Sum()], half_width=3)


def test_names_of_groups_and_their_alias():
    frame = pd.DataFrame({"home": [1, 1, 2, 2], "x": [0, 1, 1, 1]})
    couple = pdp.BinaryGroup(count_probabilities=[0.4, 0.2, 0.4])
    cal = pdp.calibrate(couple, pdp.Sum(), epsilon=1e9, rows=2)
    ledger = pdp.Ledger(couple, epsilon=1e10)
    for name in ("groups", "by"):
        assert cal.release(frame, value="x", ledger=ledger, **{name: "home"}).value == 3
        assert ledger.release(pdp.Sum(), frame, epsilon=1e9, value="x", **{name: "home"}).value == 3
    assert {entry.layout.groups for entry in ledger.history} == {"home"}
    for ask in (cal.release, lambda f, **k: ledger.release(pdp.Sum(), f, epsilon=1.0, **k)):
        with pytest.raises(pdp.PdpError, match="give one of them"):
            ask(frame, value="x", groups="home", by="home")
        with pytest.raises(pdp.ModelError, match="groups= must be another column"):
            ask(frame, value="x", by="x")
    assert math.isclose(cal.dp_epsilon, 1 / cal.scale)
