"""Which model: from columns, types and four answers, never from a value."""

import jsonschema
import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.jobs.written import command_line, question_text, toml_text
from tests.support.cli_runs import fine, run
from tests.support.homes import FRAME

INCOME = {"query": "mean(income)", "groups": "home", "bounds": (0, 100)}


def test_four_questions_are_asked_and_no_more():
    assert len(pdp.advise(FRAME).questions) == 4
    assert pdp.advise(FRAME).choice is None
    said = {}
    answers = {**INCOME, "correlation": 0.3}.items()
    for left, (name, answer) in zip((3, 2, 1, 0), answers, strict=True):
        said[name] = answer
        assert len(pdp.advise(FRAME, **said).questions) == left


@pytest.mark.parametrize(
    ("said", "model"),
    [
        (INCOME, "pdp.Unknown"),
        (INCOME | {"correlation": (0, 0.4)}, "pdp.GaussianGroup"),
        (INCOME | {"correlation": 0.4, "order_by": "day"}, "pdp.GaussianSeries"),
        (INCOME | {"learn": "dp"}, "pdp.GroupEstimator"),
        (INCOME | {"learn": "public", "order_by": "day"}, "pdp.GaussianSeriesEstimator"),
        ({"query": "count(sick=true)", "groups": "home"}, "pdp.Unknown"),
        ({"query": "count(sick=true)", "groups": "home", "learn": "dp"}, "pdp.GroupEstimator"),
        (
            {
                "query": "histogram(state)",
                "groups": "home",
                "order_by": "day",
                "domains": {"state": ["well", "ill"]},
                "persistence": 0.8,
            },
            "pdp.MixingChain",
        ),
        (
            {"query": "sum(income)", "independent": True, "bounds": (0, 100)},
            "none: the rows are independent",
        ),
    ],
)
def test_the_model_fits_the_answers_and_its_call_gives_the_scale_that_was_named(said, model):
    found = pdp.advise(FRAME, **said)
    one = found.choice
    assert one.model == model
    assert one.assumes
    if one.scale is None:
        low, high = one.scale_range
        assert 0 < low <= high
        return
    people = FRAME
    assert eval(one.call, {"people": people}).scale == one.scale  # noqa: S307
    plain = next((other for other in found.alternatives if other.name == "plain DP"), one)
    assert plain.scale <= one.scale * (1 + 1e-12)


def test_alternatives_are_in_order_and_plain_dp_says_what_it_leaks():
    found = pdp.advise(FRAME, **INCOME, correlation=(0, 0.4))
    scales = {one.name: one.scale for one in (found.choice, *found.alternatives)}
    assert scales["plain DP"] < scales["stated correlation"] < scales["any dependence"]
    assert scales["stated correlation"] == pytest.approx(100 / 14 * 2.2)
    plain = found.alternatives[-1]
    assert "leak up to 2.2 instead of 1" in plain.note
    assert "Scale" in str(found)


def test_a_command_that_is_named_runs_and_gives_the_same_scale(tmp_path):
    FRAME.to_csv(tmp_path / "p.csv", index=False)
    found = pdp.advise(FRAME, **INCOME, correlation=(0, 0.4), file=str(tmp_path / "p.csv"))
    program, _, line = found.choice.command.partition(" ")
    assert program == "pdp-calibrate"
    assert fine(f"{line} --json").json["scale"] == found.choice.scale
    answers = "-q 'mean(income)' --groups home --bounds income=0:100 --correlation 0:0.4"
    described = fine(f"advise {tmp_path}/p.csv {answers} --json").json
    assert described["choice"]["scale"] == found.choice.scale
    jsonschema.validate(described, pdp.json_schema())
    assert "Still open" in fine(f"advise {tmp_path}/p.csv").out
    assert run(f"advise {tmp_path}/q.csv").code == 2


def test_no_value_is_read():
    other = FRAME.assign(income=np.nan, sick=False, state="Ann")
    for said in (INCOME, INCOME | {"correlation": 0.2}, {"query": "count(sick=true)"}):
        assert pdp.advise(FRAME, **said) == pdp.advise(other, **said)


def test_a_schema_is_enough():
    schema = {"home": "whole number", "income": "number"}
    found = pdp.advise(schema, **INCOME, correlation=(0, 0.4), max_group_size=3)
    assert found.choice.scale == pytest.approx(100 / 3 * (1 + 2 * 0.4))
    with pytest.raises(pdp.PdpError, match="type of column income"):
        pdp.advise({"income": "money"})
    wide = pdp.advise({"a": "yes/no", "b": "yes/no"}, query="count(a,b=true)")
    assert wide.choice.scale == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"learn": "guess"}, "'public' or 'dp'"),
        ({"independent": True, "groups": "home"}, "independent people have no groups"),
        ({"correlation": 0.1, "learn": "dp"}, "one question"),
        ({"query": "mean(wealth)"}, "no column wealth"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
    ],
)
def test_what_cannot_be_is_refused(said, words):
    with pytest.raises(pdp.PdpError, match=words):
        pdp.advise(FRAME, **said)


def test_a_correlation_that_says_nothing_falls_back_to_any_dependence():
    found = pdp.advise(FRAME, query="count(sick=true)", groups="home", correlation=0.2)
    assert found.choice.model == "pdp.Unknown"
    assert any("correlation does not fit count" in one.note for one in found.alternatives)


def test_a_frame_calibrates_questions_as_text():
    said = {"groups": "home", "bounds": (0, 100), "correlation": (0, 0.4)}
    found = FRAME.pdp.calibrate("mean(income)", **said, epsilon=1.0)
    assert found.scale == FRAME.pdp.mean("income", **said, epsilon=1.0).calibration.scale
    both = FRAME.pdp.calibrate(["sum(income)", "mean(income)"], **said, epsilon=1.0)
    assert len(both.scales) == 2
    with pytest.raises(pdp.PdpError, match="asked of a model"):
        FRAME.pdp.calibrate(pdp.Sum(), epsilon=1.0)
    with pytest.raises(pdp.PdpError, match="takes no argument 'groups'"):
        FRAME.pdp.calibrate(
            pdp.Sum(), model=pdp.Unknown(size=2, domain=[0, 1]), groups="home", epsilon=1.0
        )


NAMES = ["x", "net income", "it's", 'a "b"', "ü", "a,b", "a=b", "-x", "true", "1"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_as_it_was_meant_or_refused(name):
    assert question_text("count", [name], [True, 1, 2.5, "true", name]).startswith("count(")
    contents = {"data": {"groups": name, "b": {name: [0, 1.5]}}, "queries": [{"query": name}]}
    assert name[0] in toml_text(contents)
    said = {"by": [name], "domains": {name: (name, 1, True)}}
    if name in ("a,b", "a=b"):
        with pytest.raises(pdp.PdpError, match="command line"):
            command_line("calibrate", name, [], said)
    else:
        assert command_line("calibrate", name, [], said).startswith("pdp-calibrate calibrate")
