"""The HTML report, opened as a reader would, in headless Chromium."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import pdp_calibrate as pdp
from pdp_calibrate.cli.ohio import wheeze
from pdp_calibrate.show.summary import summarise
from tests.support.browser import Browser, chromium
from tests.support.people_workers import SAID, small_table

HOSTILE = "<script>alert('1')</script>"
FORMULA = r"$\frac$ & </script> “収入” " + "long" * 20


def released():
    children = wheeze()
    model = pdp.TableEstimator(smoothing=0.5, source="public").fit(children).model_
    ledger = pdp.Ledger(model, epsilon=3.0)
    cal = pdp.calibrate(model, pdp.Count(values={1}), epsilon=1.0)
    release = cal.release(children, ledger=ledger)
    ledger.charge(0.05, note=HOSTILE)
    return release, {"ledger": ledger}


def hostile():
    pair = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=[HOSTILE, FORMULA]
    )
    return pdp.calibrate(pair, pdp.Sum()), {"title": HOSTILE}


def joint():
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    cal = pdp.calibrate(pair, [pdp.Histogram(), pdp.Sum(over=["x1"])])
    return cal.release({"x1": 1, "x2": 0}), {}


def ledger():
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    book = pdp.Ledger(pair, epsilon=2.0, draw="week 1")
    book.release(pdp.Sum(), {"x1": 1, "x2": 0}, epsilon=0.5)
    book.new_draw("week 2")
    book.charge(0.1, note="a survey")
    return book, {}


def households():
    people = pd.DataFrame({"household": [1, 1, 2, 2, 2, 3], "income": [31, 28, 55, 40, 0, 19.0]})
    options = {"bounds": (0, 100), "groups": "household", "correlation": (0, 0.4)}
    return people.pdp.sum("income", epsilon=1.0, **options), {}


def people(path):
    frame = small_table().rename(columns={"unasked": HOSTILE})
    found = pdp.People(frame, ledger=path / "budget.json", **SAID)
    found.sum("pay", epsilon=0.5, correlation=(0, 0.4))
    found.count({"sick": True}, by="city", epsilon=0.3)
    return pdp.load(path / "budget.json"), {}


def private_rows():
    rng = np.random.default_rng(5)
    draws = rng.multivariate_normal([5, 5, 5], [[1, 0.5, 0.2], [0.5, 1, 0.1], [0.2, 0.1, 1]], 200)
    return pd.DataFrame(draws.clip(0, 10), columns=["a", "b", "c"])


def private():
    frame = private_rows()
    model = pdp.GaussianEstimator(bounds=(0, 10)).fit(frame).model_.center
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(model, pdp.Mean(clamp=True), rows=len(frame))
    return cal.release(frame), {}


PAGES = {
    page.__name__: page for page in (released, hostile, joint, ledger, households, people, private)
}
PICTURES = {
    "released": 6,
    "hostile": 6,
    "joint": 1,
    "ledger": 0,
    "households": 5,
    "people": 0,
    "private": 0,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    written = {}
    for name, page in PAGES.items():
        subject, options = page(folder) if page is people else page()
        written[name] = pdp.report(subject, folder / f"{name}.html", **options)
    return written


@pytest.fixture(scope="module")
def browser():
    if chromium() is None:
        pytest.skip("Chromium is not installed, so no page was opened: apt-get install chromium")
    with Browser() as one:
        yield one


def embedded(page):
    found = re.findall(
        r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL
    )
    assert len(found) == 1
    return json.loads(found[0])


def at(facts, path):
    for key in path.split("."):
        facts = facts[int(key)] if isinstance(facts, list) else facts[key]
    return facts


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1000, False), (375, False), (375, True)])
def test_the_page_opens_without_errors_network_or_overflow(browser, pages, name, width, dark):
    browser.open(pages[name], width=width, dark=dark)
    assert browser.console == []
    assert browser.requests == [pages[name].as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    beyond = browser.run(
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') &&"
        " !e.closest('svg') && e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert beyond == []
    colours = browser.run(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    paper, ink = (np.mean([int(n) for n in re.findall(r"\d+", c)[:3]]) for c in colours)
    assert (paper < 60 and ink > 200) if dark else (paper > 200 and ink < 60)


@pytest.mark.parametrize(
    ("name", "dark"),
    [
        ("released", False),
        ("hostile", True),
        *(
            pytest.param(name, True, marks=pytest.mark.slow)
            for name in ("released", "joint", "households")
        ),
    ],
)
def test_every_picture_can_be_seen(browser, pages, tmp_path, name, dark):
    browser.open(pages[name], width=1000, dark=dark)
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    boxes = browser.run(
        "[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect())"
        ".map(b => [b.left, b.top + scrollY, b.right, b.bottom + scrollY])"
    )
    assert len(boxes) == PICTURES[name]
    whole = Image.open(browser.screenshot(tmp_path / "page.png")).convert("RGB")
    paper = np.array(whole.getpixel((2, 2)))
    for box in boxes:
        pixels = np.asarray(whole.crop(tuple(map(int, box))), dtype=int)
        height, width, _ = pixels.shape
        assert width >= 350
        assert height >= 120
        drawn = np.abs(pixels - paper).max(axis=2) > 60
        assert 0.005 < drawn.mean() < 0.9
        colours = {tuple(colour) for colour in (pixels[drawn] // 32).tolist()}
        assert len(colours) >= 3
    ink = browser.run("getComputedStyle(document.body).color")
    written = browser.run(
        "[...document.querySelectorAll('figure svg text')].map(e => getComputedStyle(e).fill)"
    )
    assert written.count(ink) > len(written) / 2


@pytest.mark.parametrize("name", PAGES)
def test_numbers_on_the_page_are_those_of_its_json(browser, pages, name):
    browser.open(pages[name])
    shown = browser.run(
        "[...document.querySelectorAll('[data-path]')].map(e => [e.dataset.path, e.textContent])"
    )
    in_tables = browser.run("document.querySelectorAll('td.number').length")
    assert in_tables == browser.run("document.querySelectorAll('td.number[data-path]').length")
    facts = json.loads(browser.run("document.getElementById('report-data').textContent"))
    assert facts == embedded(pages[name].read_text())
    assert shown
    for path, text in shown:
        value = at(facts, path)
        if value is None:
            assert text == "–"
        elif isinstance(value, int):
            assert text == f"{value:,}"
        elif path.startswith("answers"):
            beside = at(facts, path.rpartition(".")[0])["half_width"]
            assert abs(float(text.replace(",", "")) - value) <= max(beside / 10, 1), path
        elif path.endswith("half_width"):  # two digits, rounded up
            assert value <= float(text.replace(",", "")) <= value * 1.1, path
        else:
            assert float(text.replace(",", "")) == pytest.approx(value, rel=6e-3), path
            assert "e" not in text or value < 1e-5, path


def test_the_page_prints(browser, pages):
    browser.open(pages["released"], dark=True)
    printed = browser.printed()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
    assert re.search(rb"/MediaBox \[0 0 59[45](\.\d+)? 84[12](\.\d+)?\]", printed)  # A4


def test_hostile_names_stay_text(browser, pages):
    page = pages["hostile"].read_text()
    assert page.count("<script") == 1
    assert page.count("</script>") == 1
    browser.open(pages["hostile"])
    assert browser.run("document.querySelector('h1').textContent") == HOSTILE
    assert HOSTILE in browser.run("document.body.innerText")
    assert FORMULA[:12] in browser.run("document.body.innerText")


def test_the_facts_are_those_of_the_calibration():
    release, options = released()
    found = summarise(release, **options).facts
    cal = release.calibration
    assert found["queries"][0]["scale"] == cal.scale
    assert found["epsilon"] == cal.epsilon
    assert found["answers"][0]["value"] == release.value
    scales = {method["name"]: method["scale"] for method in found["methods"]}
    assert scales["plain DP"] == cal.baselines["dp"]
    assert scales["group DP"] == cal.baselines["group"]
    plain = pdp.leakage(cal.model, cal.query, scale=cal.baselines["dp"])
    assert found["methods"][0]["leakage"] == plain.value
    assert found["ledger"]["spent"] == options["ledger"].spent
    assert found["assumptions"][-1] == "Every release about these people is in the ledger below."
    assert "only release" in summarise(release).facts["assumptions"][-1]
    assert found["source"]["calibration"] == cal.to_dict()


def test_nothing_of_a_private_model_is_on_the_page(pages):
    page = pages["private"].read_text()
    frame = private_rows()
    facts = embedded(page)
    assert facts["views"] == {}
    assert [method["name"] for method in facts["methods"]] == ["plain DP", "this release"]
    assert "lower" not in facts["leakage"]
    assert "digest" not in facts["model"]
    shown = set(facts["source"]["calibration"]["model"])
    assert shown == {"schema", "version", "type", "names", "provenance"}
    model = pdp.GaussianEstimator(bounds=(0, 10)).fit(frame).model_.center
    for number in [*model.covariance.ravel(), *model.mean, *frame.to_numpy().ravel()]:
        assert f"{number:.9f}"[:10] not in page
    assert "worst adversary attacks" not in page


def test_true_answers_are_nowhere_on_the_page(tmp_path):
    model = pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 100), names=["a", "b"])
    data = {"a": 31.41592, "b": 27.18281}
    release = pdp.calibrate(model, pdp.Sum()).release(data)
    page = pdp.report(release, tmp_path / "page.html").read_text()
    for secret in ("31.41592", "27.18281", "58.59873"):
        assert secret not in page


def test_a_report_that_cannot_be_written_says_so(tmp_path):
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    cal = pdp.calibrate(pair, pdp.Sum())
    with pytest.raises(pdp.PdpError, match="there is no folder"):
        pdp.report(cal, tmp_path / "missing" / "page.html")
    with pytest.raises(pdp.PdpError, match="a calibration, a release or a ledger, got int"):
        pdp.report(3, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_a_missing_library_is_named_with_its_extra(monkeypatch, tmp_path, library):
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    cal = pdp.calibrate(pair, pdp.Sum())
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(pdp.PdpError, match=r"pip install .*\[report\]"):
        pdp.report(cal, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_learning_the_model_stands_in_numbers_words_and_ledger(tmp_path):
    rows = pd.DataFrame({"mother": [0, 1] * 500, "child": [0, 1, 1, 0] * 250})
    stated = {"mother": [0, 1], "child": [0, 1]}
    model = pdp.TableEstimator(domains=stated, epsilon=0.25).fit(rows).model_
    ledger = pdp.Ledger(model, epsilon=2.0)
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
    page = pdp.report(cal, tmp_path / "report.html", ledger=ledger).read_text()
    assert "ε of learning the model" in page
    assert 'data-path="total_epsilon">1.25</td>' in page
    assert "the total of 1.25 includes it" in " ".join(page.split())
    assert "×3.5" in page  # e^1.25, rounded up
    assert "<td>learning the model</td>" in page
