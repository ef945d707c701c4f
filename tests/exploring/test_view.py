"""What the page says, without a browser: the same numbers as the library, and sentences."""

import dataclasses
import json
import tomllib

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.exploring.answers import DEFAULTS, completed
from pdp_calibrate.exploring.handover import plan_contents, release
from pdp_calibrate.exploring.schema import Column, as_json, columns_from
from pdp_calibrate.exploring.subject import of_nothing, of_rows, open_subject
from pdp_calibrate.exploring.view import Page
from pdp_calibrate.jobs.plan import read_plan
from pdp_calibrate.jobs.run import check_plan
from tests.support.cli_runs import fine
from tests.support.homes import FRAME

COLUMNS = (
    Column(name="home", kind="whole number"),
    Column(name="day", kind="whole number"),
    Column(name="income", kind="number", low="0", high="100"),
    Column(name="sick", kind="yes/no"),
    Column(name="state", kind="text", values="well, ill"),
)


def schema(**typed):
    """Return the columns of the frame as the page sends them, some of them otherwise."""
    return as_json(dataclasses.replace(one, **typed.get(one.name, {})) for one in COLUMNS)


HOMES = {"schema": schema(), "groups": "home", "kind": "mean", "column": "income"}
STATED = HOMES | {"alike": "correlation", "correlation": "0.4"}
SUM = json.dumps([{"kind": "sum", "column": "income"}])
SICK = json.dumps([{"kind": "count", "column": "sick", "values": "true"}])
CASES = {
    "any dependence": HOMES,
    "correlation": STATED,
    "series": STATED | {"order_by": "day"},
    "independent": HOMES | {"alike": "independent", "kind": "sum"},
    "belief": STATED | {"strength": "belief", "before": "1", "after": "5"},
    "count by": HOMES | {"kind": "count", "column": "sick", "values": "true", "by": "state"},
    "states": HOMES | {
        "order_by": "day", "kind": "histogram", "column": "state", "alike": "persistence",
        "persistence": "0.8",
    },
    "several": STATED | {"also": SUM},
    "several columns": HOMES | {"kind": "sum", "also": SICK},
    "several by": HOMES | {"kind": "sum", "also": SICK, "by": "state"},
}  # fmt: skip
PAIR = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[False, True]] * 2, names=["sick", "other"]
)
PAIR_COUNT = {"kind": "count", "values": "true", "column": ""}
UPLOADED = {
    "alike": "model",
    "model": json.dumps(PAIR.to_dict()),
    "model_name": "pair of mine.json",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    FRAME.to_csv(place / "people.csv", index=False)
    FRAME[["sick"]].assign(other=FRAME["sick"]).to_csv(place / "wide.csv", index=False)
    (place / "pair of mine.json").write_text(json.dumps(PAIR.to_dict()))
    return place


@pytest.fixture(scope="module")
def page(folder):
    return Page(subject=of_rows(folder / "people.csv"))


@pytest.fixture(scope="module")
def wide(folder):
    return Page(subject=of_rows(folder / "wide.csv"))


def check_handed_over(view, folder, monkeypatch):
    """Run what is handed over, and compare the scales to the last digit."""
    assert not view.problem
    monkeypatch.chdir(folder)
    code = {}
    exec(view.handover.code.replace("print(", "("), code)  # noqa: S102
    assert tuple(code["calibration"].scales) == view.exact_scales
    program, _, line = view.handover.command.partition(" ")
    assert program == "pdp-calibrate"
    found = fine(f"{line} --json").json["scale"]
    assert tuple(found if isinstance(found, list) else [found]) == view.exact_scales
    (folder / "plan.toml").write_text(view.handover.plan)
    (check,) = check_plan(read_plan(folder / "plan.toml"))
    assert check.calibration.scales == view.exact_scales


def test_the_noise_is_what_calibrate_says(page):
    view = page.view(STATED)
    said = {"groups": "home", "bounds": (0, 100), "correlation": (0, 0.4)}
    assert view.exact_scales == (FRAME.pdp.calibrate("mean(income)", **said, epsilon=1.0).scale,)
    assert view.scales[0][1] == f"{view.exact_scales[0]:.6g}"
    assert page.view(STATED | {"correlation": "0.5"}).exact_scales > view.exact_scales
    names = [one.name for one in view.choices]
    assert names == ["stated correlation", "any dependence", "learned under DP", "plain DP"]
    assert any("1 % becomes at most 2.7 %" in value for _, value in view.facts)


@pytest.mark.parametrize("name", CASES)
def test_what_is_handed_over_runs_and_has_the_same_scale(name, page, folder, monkeypatch):
    check_handed_over(page.view(CASES[name]), folder, monkeypatch)


@pytest.mark.parametrize("name", ["any dependence", "series", "belief", "count by", "several by"])
def test_a_plan_opens_with_its_answers(name, page, folder):
    view = page.view(CASES[name])
    (folder / "plan.toml").write_text(view.handover.plan)
    again = Page(subject=open_subject(folder / "plan.toml"))
    assert again.view({}).exact_scales == view.exact_scales


def test_a_model_alone_and_one_that_is_uploaded(wide, folder, monkeypatch):
    alone = Page(subject=open_subject(folder / "pair of mine.json"))
    wanted = pdp.calibrate(PAIR, pdp.Count(values={True})).scale
    view = alone.view(PAIR_COUNT)
    assert view.exact_scales == (wanted,)
    assert "adversary_graph" in alone.pictures(PAIR_COUNT)
    code = {}
    monkeypatch.chdir(folder)
    exec(view.handover.code.replace("print(", "("), code)  # noqa: S102
    assert code["calibration"].scale == wanted
    view = wide.view(PAIR_COUNT | UPLOADED)
    assert view.exact_scales == (wanted,)
    check_handed_over(view, folder, monkeypatch)
    other = wide.view(PAIR_COUNT | UPLOADED | {"model_name": "../../x'; rm.json"})
    assert "load('model.json')" in other.handover.code
    for text, words in (("", "choose the file"), ("{", "not JSON"), ("{}", "lacks the schema")):
        assert words in wide.view(PAIR_COUNT | UPLOADED | {"model": text}).problem
    public = wide.view(PAIR_COUNT | {"alike": "public"})
    assert public.exact_scales[0] > 0
    assert "TableEstimator(source='public')" in public.handover.code


LEARNED = {
    "": ("learned, covered at 0.95 over sampling", 0.95),
    "0.9": ("learned, covered at 0.9 over sampling", 0.9),
    "none": ("learned, point (open)", None),
}


@pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")  # of the code handed over
def test_the_error_of_learning_is_covered_unless_the_form_says_none(folder, monkeypatch):
    rng = np.random.default_rng(2)
    income = 50 + 8 * np.repeat(rng.normal(size=60), 3) + 8 * rng.normal(size=180)
    homes = pd.DataFrame({"home": np.repeat(range(60), 3), "income": income.round(1)})
    homes.to_csv(folder / "homes.csv", index=False)
    page = Page(subject=of_rows(folder / "homes.csv"))
    asked = {
        "schema": as_json([COLUMNS[0], COLUMNS[2]]), "groups": "home", "kind": "sum",
        "column": "income", "alike": "public",
    }  # fmt: skip
    scales = {}
    for said, (words, confidence) in LEARNED.items():
        view = page.view(asked | {"confidence": said})
        assert ("the model", words) in view.facts
        assert any("β = " in one for one in view.assumed) == (confidence is not None)
        warned = [one for one in view.words if "point estimate, whose error is not covered" in one]
        assert bool(warned) == (said == "none")
        check_handed_over(view, folder, monkeypatch)
        estimator = pdp.GroupEstimator(
            groups="home", value="income", bounds=(0, 100), source="public", confidence=confidence
        )
        wanted = homes.pdp.calibrate(
            "sum(income)", model=estimator.fit(homes).model_, groups="home", epsilon=1.0
        )
        assert view.exact_scales == (wanted.scale,)
        scales[said] = wanted.scale
    assert scales[""] > scales["0.9"] > scales["none"]
    later = page.view(asked | {"alike": "dp", "confidence": "0.9"})
    assert tomllib.loads(later.handover.plan)["model"]["confidence"] == 0.9
    (folder / "homes.toml").write_text(later.handover.plan)
    again = open_subject(folder / "homes.toml")
    assert (again.answers["confidence"], again.answers["alike"]) == ("0.9", "dp")


def test_nothing_is_shown_of_a_private_model(wide, folder):
    private = pdp.JointTable(
        probabilities=[[0.41, 0.09], [0.13, 0.37]], domains=[[False, True]] * 2,
        names=["sick", "other"], provenance="private",
    )  # fmt: skip
    described = json.dumps(private.to_dict() | {"probabilities": [[0.41, 0.09], [0.13, 0.37]]})
    for text in (described, json.dumps(private.to_dict())):
        given = PAIR_COUNT | UPLOADED | {"model": text}
        view = wide.view(given)
        assert view.problem
        assert view.handover is None
        assert "0.37" not in view.problem
        assert wide.pictures(given) == {}
        (folder / "private.json").write_text(text)
        with pytest.raises(pdp.PdpError) as refused:
            open_subject(folder / "private.json")
        assert "0.37" not in str(refused.value)


TYPED = {
    "schema": as_json(
        [
            Column(name="Haus nr", kind="whole number"),
            Column(name="Löhne <b>", kind="number", low="-5", high="1e5"),
            Column(name="sick", kind="yes/no"),
            Column(name="city", kind="text", values="Oslo, 'Voss; no', 3"),
            Column(name="day", kind="time"),
        ]
    ),
    "people": "2000", "groups": "Haus nr", "max_group_size": "5", "column": "Löhne <b>",
    "alike": "unknown",
}  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "mean", "alike": "correlation"},
        {"kind": "count", "column": "sick", "values": "true", "by": "city"},
        {"kind": "sum", "alike": "correlation", "correlation": "0.5", "order_by": "day"},
        {"kind": "histogram", "column": "city", "groups": "", "alike": "independent"},
        {"kind": "sum", "also": json.dumps([{"kind": "histogram", "column": "city"}])},
    ],
)
def test_columns_that_are_typed_are_as_good_as_a_file(more, tmp_path, monkeypatch):
    typed = Page(subject=of_nothing())
    view = typed.view(TYPED | more)
    assert view.exact_scales
    stand_in = typed.worked(TYPED | more).subject.stand_in
    stand_in.frame().to_csv(tmp_path / "people.csv", index=False)
    check_handed_over(view, tmp_path, monkeypatch)
    opened = Page(subject=of_rows(tmp_path / "people.csv"))
    assert opened.view(TYPED | more).exact_scales == view.exact_scales


def test_a_page_without_a_file_begins_with_an_example():
    typed = Page(subject=of_nothing())
    wanted = pdp.calibrate(
        pdp.Blocks(
            models=[pdp.GaussianGroup(size=4, correlation=(0, 0.3), bounds=(0, 100_000))],
            counts=[250],
        ),
        pdp.Mean(clamp=True),
    )
    assert typed.view({}).exact_scales == (wanted.scale,)
    assert set(typed.pictures({})) >= {"simulated", "leakage_by_scale", "leakage_by_knowledge"}
    for given, words in (
        ({"alike": "public"}, "no rows to learn from"),
        ({"people": "2000000"}, "at most 1,000,000"),
        ({"people": "0"}, "above 0"),
        ({"people": "many"}, "must be a number"),
        ({"schema": "[]"}, "in step 1"),
        ({"schema": "{"}, "must be a list"),
        ({"schema": '[{"name": 3}]'}, "must be a list"),
        ({"schema": '[{"nom": "x"}]'}, "must be a list"),
        ({"schema": '[{"name": "x", "kind": "shape"}]'}, "must be one of number"),
        ({"schema": '[{"name": "x"}, {"name": "x"}]'}, "two columns are called x"),
        ({"schema": '[{"name": ""}]'}, "needs a name"),
        ({"schema": '[{"name": "income", "low": "9", "high": "1"}]', "groups": "income"}, "income"),
        ({"column": "sick"}, "ask for a count"),
        ({"column": "household"}, "lowest and the highest"),
    ):
        assert words in typed.view(given).problem, given
    learned = typed.view({"alike": "dp"})
    assert tomllib.loads(learned.handover.plan)["model"]["epsilon"] == 0.5
    with pytest.raises(pdp.PdpError, match="there are no rows"):
        released(typed, {})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "who belongs together"),
        ({"groups": "home"}, "lowest and the highest"),
        (HOMES | {"schema": schema(income={"low": "ten"})}, "must be a number"),
        (HOMES | {"schema": schema(income={"low": "nan"})}, "finite"),
        (HOMES | {"schema": schema(income={"low": "200"})}, "income"),
        (HOMES | {"schema": schema(income={"name": "pay"})}, "names are fixed"),
        (HOMES | {"epsilon": "0"}, "epsilon must be positive"),
        (HOMES | {"epsilon": "-1"}, "epsilon must be positive"),
        (HOMES | {"groups": "house"}, "no column house"),
        (HOMES | {"column": "pay"}, "no column pay"),
        (HOMES | {"kind": "median"}, "sum, mean, count or histogram"),
        (HOMES | {"also": "sum(("}, "must be a list"),
        (HOMES | {"also": '[{"kind": "count", "column": "sick"}]'}, "which values to count"),
        (HOMES | {"max_group_size": "2"}, "at most 2 rows"),
        (STATED | {"column": "sick"}, "ask for a count"),
        (HOMES | {"kind": "histogram", "column": "day"}, "which values day can have"),
        (HOMES | {"kind": "count", "column": "day", "values": "1"}, "which values day can have"),
        (HOMES | {"by": "home"}, "which values home can have"),
        (STATED | {"strength": "accuracy"}, "must be a number"),
        (HOMES | {"alike": "dp", "strength": "accuracy", "half_width": "9"}, "once the model"),
        (HOMES | {"alike": "dp", "confidence": "none"}, "must cover the noise of the fit"),
        (HOMES | {"alike": "public", "confidence": "high"}, "must be a number"),
        (HOMES | {"alike": "public", "confidence": "1.5"}, "between 0 and 1"),
        ({"secret": "1"}, "no field secret"),
        (HOMES | {"schema": schema(income={"high": "1e999"})}, "finite"),
    ],
)
def test_bad_answers_give_a_sentence(page, given, words):
    view = page.view(given)
    assert words in view.problem
    assert page.pictures(given) == {}


def test_an_accuracy_is_reached(page):
    view = page.view(STATED | {"strength": "accuracy", "half_width": "40"})
    assert view.scales[0][2] == "±40 in 95 % of releases"


def test_learning_waits_for_the_release(page):
    view = page.view(HOMES | {"alike": "dp", "learning": "0.25"})
    assert view.exact_scales == ()
    assert "nothing is learned before a release" in view.words[0]
    plan = tomllib.loads(view.handover.plan)
    assert plan["model"]["epsilon"] == 0.25
    assert plan["budget"]["epsilon"] == 1.25


def test_nothing_depends_on_a_secret_value(page):
    other = FRAME.assign(income=0.5, sick=False, state="Ann")
    twin = Page(subject=dataclasses.replace(page.subject, frame=other))
    for name in ("any dependence", "series", "independent", "count by", "states", "several by"):
        assert page.view(CASES[name]) == twin.view(CASES[name])
    assert page.pictures(STATED) == twin.pictures(STATED)
    for name in ("simulated", "leakage_by_scale"):
        assert page.picture(STATED, name) == twin.picture(STATED, name)


def test_no_row_is_in_what_a_traceback_would_show(page):
    page.view(STATED)
    assert "98.5" not in repr(page)


def test_pictures_are_drawn_of_simulated_people_and_only_when_their_numbers_change(page):
    names = set(page.pictures(STATED))
    assert {"simulated", "leakage_by_scale", "leakage_by_knowledge", "scales"} <= names
    found = page.picture(STATED, "simulated")
    assert "14 simulated people" in found["svg"]
    assert page.picture(STATED | {"ledger": "other.json"}, "simulated") is found
    for place, text in enumerate(("mean(income)", "sum(income)"), 1):
        one = page.picture(CASES["several"], f"simulated-{place}")
        assert one["title"].endswith(text)
        assert f'id="simulated-{place}-' in one["svg"]
    assert page.picture(STATED, "network") is None
    assert page.picture({}, "simulated") is None


def released(page, given, **more):
    said = {"sure": "yes", "ledger": "b.json", "budget": "1.5"} | more
    found = page.worked(given | said)
    return release(found.asked, found.subject, found.answers)


def test_a_release_needs_a_ledger_and_somebody_who_says_so(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    page = Page(subject=of_rows(tmp_path / "people.csv"))
    for more, words in (
        ({"sure": "", "ledger": "", "budget": ""}, "tick the box"),
        ({"sure": ""}, "tick the box"),
        ({"ledger": ""}, "name a ledger"),
        ({"budget": ""}, "total ε"),
        ({"ledger": "../b.json"}, "outside the folder"),
    ):
        with pytest.raises(pdp.PdpError, match=words):
            released(page, STATED, **more)
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]
    outcome = released(page, STATED)
    assert outcome.ledger.spent == pytest.approx(1.0, abs=1e-6)
    assert (tmp_path / "b.json").exists()
    with pytest.raises(pdp.BudgetExceededError):
        released(page, STATED)


def test_several_answers_are_released_together_under_one_epsilon(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    page = Page(subject=of_rows(tmp_path / "people.csv"))
    for place, name in enumerate(("several", "several columns", "several by")):
        view = page.view(CASES[name])
        outcome = released(page, CASES[name], ledger=f"{place}.json")
        (one,) = outcome.releases
        assert one.release.calibration.scales == view.exact_scales
        assert len(one.release.values) == 2
        kept = pdp.Ledger.open(tmp_path / f"{place}.json")
        assert kept.spent == pytest.approx(1.0, abs=1e-6)
        assert len(kept.history) == 1


def test_an_answer_is_released_with_an_uploaded_model(tmp_path, wide):
    FRAME[["sick"]].assign(other=FRAME["sick"]).to_csv(tmp_path / "wide.csv", index=False)
    page = Page(subject=of_rows(tmp_path / "wide.csv"))
    given = PAIR_COUNT | UPLOADED
    (one,) = released(page, given).releases
    assert one.release.calibration.scales == wide.view(given).exact_scales
    assert one.release.calibration.model == PAIR
    kept = pdp.Ledger.open(tmp_path / "b.json")
    assert kept.model == PAIR
    assert kept.spent == pytest.approx(1.0, abs=1e-6)


def test_a_plan_with_more_than_the_page_can_say_is_refused(page, folder):
    found = page.worked(STATED)
    contents = plan_contents(found.asked, found.subject)
    assert contents["model"]["correlation"] == [0.0, 0.4]
    plan, parts = (page.view(one).handover.plan for one in (STATED, CASES["count by"]))
    for text, old, new in (
        (plan, "[0.0, 0.4]", "[-0.1, 0.4]"),
        (plan, "[0.0, 0.4]", "0.4"),
        (parts, 'by = ["state"]', 'by = ["state", "sick"]'),
        (plan, "epsilon = 1.0\n", "epsilon = 1.0\nmissing = 5.0\n"),
        (plan, "epsilon = 1.0\n", "epsilon = 1.0\nnoise = 'laplace'\n"),
    ):
        head, middle, tail = text.rpartition(old)
        assert middle
        (folder / "plan.toml").write_text(head + new + tail)
        with pytest.raises(pdp.PdpError, match=r"page (has no field for|cannot express)"):
            Page(subject=open_subject(folder / "plan.toml"))
    gaps = page.view(HOMES | {"missing": "zero"})
    (folder / "plan.toml").write_text(gaps.handover.plan)
    again = Page(subject=open_subject(folder / "plan.toml"))
    assert again.view({}).exact_scales == gaps.exact_scales
    for name in ("none.csv", "none.json", "none.toml"):
        with pytest.raises(pdp.PdpError, match="no file"):
            open_subject(folder / name)
    assert set(DEFAULTS) >= set(completed({}, page.subject))
    assert columns_from(page.subject.answers["schema"]) == page.subject.columns
