"""Two tables with gaps, walked through Python, shell, page and report: equal numbers everywhere."""

import json
import re
import tomllib

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.numbers import beside_noise, width
from pdp_calibrate.exploring.schema import Column, as_json
from pdp_calibrate.exploring.subject import of_rows
from pdp_calibrate.exploring.view import Page
from pdp_calibrate.jobs.plan import read_plan
from pdp_calibrate.jobs.run import check_plan
from pdp_calibrate.show.views import beliefs, leakage_by_scale, scale_bars
from tests.support.cli_runs import fine, refused

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

ROWS, COUNT = 20_000, 19_400
TABLES = {"score": 1.0, "income": 150_000.0}
"""Columns by the upper end of their public range."""


@pytest.fixture(scope="module", params=TABLES)
def walk(request, tmp_path_factory):
    """A table of 20,000 people in homes of 3, with 3 % of the values missing, and its folder."""
    name, top = request.param, TABLES[request.param]
    rng = np.random.default_rng(20)
    values = rng.random(ROWS) if name == "score" else rng.gamma(2, 19_000, ROWS)
    values[rng.random(ROWS) < 0.03] = np.nan
    frame = pd.DataFrame({"household": np.arange(ROWS) // 3, name: values})
    folder = tmp_path_factory.mktemp(name)
    frame.to_csv(folder / "people.csv", index=False)
    return name, top, frame, folder


def said(top):
    return {"groups": "household", "bounds": (0, top), "missing": "zero"}


def command(name, top, *more):
    ends = f"--bounds {name}=0:{top:g} --missing zero --groups household"
    return " ".join(["calibrate people.csv -q", f"mean({name})", ends, *more])


def form(name, top, **more):
    columns = [
        Column(name="household", kind="whole number"),
        Column(name=name, kind="number", low="0", high=f"{top:g}"),
    ]
    asked = {"schema": as_json(columns), "groups": "household", "kind": "mean", "column": name}
    return asked | {"missing": "zero", "count": str(COUNT)} | more


def embedded(page):
    """Return the numbers of a report, and what a reader sees of it."""
    facts = json.loads(re.search(r'id="report-data">\s*(.*?)</script>', page, re.DOTALL)[1])
    return facts, re.sub(r"<[^>]+>", "", page.partition('id="report-data"')[0])


def test_one_accuracy_before_a_release(walk, monkeypatch):
    name, top, frame, folder = walk
    monkeypatch.chdir(folder)
    found = frame.pdp.calibrate(f"mean({name})", epsilon=1.0, count=COUNT, **said(top))
    wide = f"±{width(found.accuracy())}"
    assert 0.0004 * top < found.accuracy() < 0.0008 * top  # the mean's, not 18 rows of a sum
    assert wide in found._repr_html_()
    assert f"{wide} in 95 % of releases" in pdp.explain(found).replace("at most ", "")

    shell = fine(command(name, top, "-e 1", f"--count {COUNT}"))
    assert f"{wide} in 95 % of releases" in shell.out
    again = pdp.Calibration.from_json(
        fine(command(name, top, "-e 1", f"--count {COUNT}", "--json")).out
    )
    assert again.accuracy() == found.accuracy()

    people = pdp.People(frame, groups="household", bounds={name: (0, top)}, epsilon=2.0)
    price = people.calibrate.mean(name, missing="zero", epsilon=1.0, count=COUNT)
    assert price.accuracy() == found.accuracy() == price.accuracy(count=COUNT)
    assert wide in str(price)
    assert wide in price._repr_html_()
    fine(f"people create book.json people.csv --groups household -e 2 --bounds {name}=0:{top:g}")
    line = f"people price book.json people.csv -q mean({name}) -e 1 --missing zero --count {COUNT}"
    assert wide in fine(line).out

    view = Page(subject=of_rows(folder / "people.csv")).view(form(name, top))
    assert view.problem == ""
    assert view.scales[0][1:] == (f"{found.scale:.6g}", f"{wide} in 95 % of releases")
    assert view.units == found.scale_units
    assert f"count={float(COUNT)!r}" in view.handover.code
    assert f"--count {float(COUNT)!r}" in view.handover.command
    (folder / "plan.toml").write_text(view.handover.plan)
    (planned,) = check_plan(read_plan(folder / "plan.toml"))
    assert planned.calibration.accuracy() == found.accuracy()

    facts, text = embedded(pdp.report(found, folder / "before.html").read_text())
    assert facts["queries"][0]["half_width"] == found.accuracy()
    assert facts["methods"][-1]["half_width"] == found.accuracy()
    assert f"by at most {wide} in 95 % of releases" in text


def test_without_a_count_every_surface_says_what_it_depends_on(walk, monkeypatch):
    name, top, frame, folder = walk
    monkeypatch.chdir(folder)
    found = frame.pdp.calibrate(f"mean({name})", epsilon=1.0, **said(top))
    best = f"±{width(found.accuracy(count=ROWS))}"
    words = f"{best} in 95 % of releases if all 20,000 rows count"
    assert words in pdp.explain(found).replace("\n", " ")
    assert words in " ".join(fine(command(name, top, "-e 1")).out.split())
    view = Page(subject=of_rows(folder / "people.csv")).view(form(name, top, count=""))
    assert words in view.scales[0][2]
    facts, text = embedded(pdp.report(found, folder / "open.html").read_text())
    assert facts["queries"][0]["half_width"] is None
    assert words in " ".join(text.split())


def test_one_price_for_an_accuracy(walk, monkeypatch):
    name, top, frame, folder = walk
    monkeypatch.chdir(folder)
    wanted, tiny = 0.01 * top, 1e-6 * top
    model = frame.pdp.calibrate(f"mean({name})", epsilon=1.0, **said(top))
    found = pdp.calibrate_to_accuracy(model.model, model.query, half_width=wanted, count=COUNT)
    assert 0.05 < found.epsilon < 0.08  # not 1,797, nor .12 for a seventh of the accuracy
    assert 0.999 * wanted < found.accuracy() <= wanted
    asked = (f"--half-width {wanted}", f"--count {COUNT}")
    assert json.loads(fine(command(name, top, *asked, "--json")).out)["epsilon"] == found.epsilon
    page = Page(subject=of_rows(folder / "people.csv"))
    accurate = {"strength": "accuracy", "half_width": str(wanted)}
    view = page.view(form(name, top, **accurate))
    epsilon = tomllib.loads(view.handover.plan)["queries"][0]["epsilon"]
    assert found.epsilon <= epsilon <= 1.001 * found.epsilon
    assert f"epsilon={epsilon!r}" in view.handover.code
    assert f"--epsilon {epsilon!r}" in view.handover.command
    assert "count=" in page.view(form(name, top, count="", **accurate)).problem

    with pytest.raises(pdp.CalibrationError) as refusal:
        pdp.calibrate_to_accuracy(model.model, model.query, half_width=tiny, count=COUNT)
    largest = frame.pdp.calibrate(f"mean({name})", epsilon=20.0, count=COUNT, **said(top))
    assert f"epsilon = 20 gives {largest.half_widths_in_words()[0]}" in str(refusal.value)
    asked = (f"--half-width {tiny}", f"--count {COUNT}")
    assert refused(command(name, top, *asked)).removeprefix("error: ") == str(refusal.value)
    assert " 95 % " in fine(command(name, top, *asked, "--allow-large-epsilon")).out
    exact = {"strength": "accuracy", "half_width": str(tiny)}
    assert page.view(form(name, top, **exact)).problem == str(refusal.value)
    ticked = page.view(form(name, top, large="yes", **exact))
    assert tomllib.loads(ticked.handover.plan)["queries"][0]["epsilon"] > 20
    assert "·10^-" in dict(ticked.facts)["what that does to a belief"]
    assert "0000000000" not in " ".join(sum(ticked.facts, ()))


def test_one_half_width_of_a_release(walk, monkeypatch):
    name, top, _, folder = walk
    monkeypatch.chdir(folder)
    line = command(name, top, "-e 1 --output release.json --force")
    shell = fine(line.replace("calibrate", "release", 1))
    release = pdp.Release.from_json((folder / "release.json").read_text())
    (half,), ((low, high),) = release.half_widths(), release.intervals()
    wide = f"±{width(half)}"
    assert half == max(release.value - low, high - release.value)
    assert half < 0.001 * top
    assert f"({wide} in 95 % of releases)" in shell.out
    words = pdp.explain(release).replace("at most ", "")
    assert f"moves the answer by {wide} in 95 % of releases" in words
    assert f"Released: {beside_noise(release.value, half)}." in words
    assert wide in release._repr_html_()
    facts, text = embedded(pdp.report(release, folder / "release.html").read_text())
    assert facts["answers"][0]["half_width"] == facts["queries"][0]["half_width"] == half
    assert facts["methods"][-1]["half_width"] == half
    assert (facts["answers"][0]["low"], facts["answers"][0]["high"]) == (low, high)
    assert f"by at most {wide} in 95 % of releases" in text
    for end, side in ((low, "low"), (high, "high")):
        assert beside_noise(end, half, side=side) in text
        assert beside_noise(end, half, side=side) in release._repr_html_()


def test_every_picture_names_the_unit_of_its_scales(walk):
    name, top, frame, _ = walk
    gaps = frame.pdp.calibrate(f"mean({name})", epsilon=1.0, **said(top))
    filled = said(top) | {"missing": {name: top / 2}}
    public = frame.pdp.calibrate(f"mean({name})", epsilon=1.0, **filled)
    plain = frame.pdp.calibrate(f"sum({name})", epsilon=1.0, groups="household", bounds=(0, top))
    units = [
        (gaps, f"rows of the count, and {0.5 * top:,g} units of the sum, behind the mean"),
        (public, "units of the sum behind the mean"),
        (plain, "units of the answer"),
    ]
    for found, unit in units:
        for curve in (leakage_by_scale(found), scale_bars(found)):
            assert curve.unit == unit
        for picture in (pdp.plots.leakage_by_scale(found), pdp.plots.scales(found)):
            assert f"({unit})" in picture.axes[0].get_xlabel()
        assert f"(in {unit})" in found._repr_html_()
    assert beliefs(gaps).values == ("one possible record", "another")


def test_a_mean_without_a_count_beside_another_question(walk):
    """The other question keeps its accuracy and its picture."""
    name, top, _, folder = walk
    also = json.dumps([{"kind": "sum", "column": name}])
    page = Page(subject=of_rows(folder / "people.csv"))
    view = page.view(form(name, top, count="", also=also))
    assert "if all 20,000 rows count" in view.scales[0][2]
    assert view.scales[1][2].startswith("±")
    assert view.scales[1][2].endswith(" in 95 % of releases")
    assert "simulated-2" in page.pictures(form(name, top, count="", also=also))
    counted = page.view(form(name, top, also=also))
    assert counted.scales[1] == view.scales[1]
    assert "if all" not in counted.scales[0][2]
