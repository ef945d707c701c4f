"""What a report says to the person who signs it, read as text: no browser is needed."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.numbers import beside_noise, ordinary, width
from pdp_calibrate.show.hazards import checklist
from pdp_calibrate.show.opening import keeps_promise
from tests.support.cli_runs import fine

PEOPLE = pd.DataFrame(
    {
        "household": np.repeat(np.arange(40), [1, 2, 3, 4] * 10),
        "income": np.random.default_rng(0).normal(40_000, 9_000, 100),
    }
)
SAID = {"bounds": (0, 100_000), "groups": "household", "correlation": (0, 0.4)}
CUT = re.compile(r"<style>.*?</style>|<script.*?</script>", re.DOTALL)


def text_of(page):
    """Return what a reader sees, without pictures, numbers in JSON and styles."""
    shown = re.sub(r"<svg.*?</svg>", " ", CUT.sub(" ", page.read_text()), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def section(text, start, end):
    return text[text.index(start) : text.index(end)]


@pytest.fixture(scope="module")
def release():
    return PEOPLE.pdp.mean("income", epsilon=1.0, **SAID)


def test_the_first_paragraph_says_what_about_whom_on_which_assumption(release, tmp_path):
    page = pdp.report(release, tmp_path / "page.html", data="people.csv")
    first = section(text_of(page), "Privacy report", "The answer")
    for words in (
        "Published from the table people.csv, with noise added: the mean of income.",
        "100 entries of income, in 40 groups (one for each household), the largest of 4",
        "jointly Gaussian values",
        "correlation 0 to 0.4",
        "income lies between 0 and 100,000",
        "stated by hand",
        "nobody's odds about anyone's income can shift by more than ×2.72",
        "a belief of 1 % can become at most 2.7 %",
        "whichever other entries they know exactly",
    ):
        assert words in first, words


def test_order_and_words_of_the_page(release, tmp_path):
    text = text_of(pdp.report(release, tmp_path / "page.html"))
    headings = [
        "The answer",
        "What the promise rests on",
        "Who could learn most",
        "Beside other methods",
        "What is not protected",
        "Checklist of hazards",
        "The mathematics, and all numbers",
    ]
    places = [text.index(one) for one in headings]
    assert places == sorted(places)
    assert "e+0" not in text
    before = text[: places[-1]]
    for word in ("λ", "log p", "nats", "tuple", "PDP", "x_K", "θ", "Θ"):
        assert word not in before, word
    assert "about the 1st member of a group of 4" in text
    assert "no: odds shift up to" in section(text, "Beside other", "What is not")


def test_the_answer_has_the_digits_that_its_noise_deserves(release, tmp_path):
    text = text_of(pdp.report(release, tmp_path / "page.html"))
    answer = section(text, "The answer", "What the promise")
    low, high = release.interval()
    assert beside_noise(release.value, (high - low) / 2) in answer
    shown = [
        float(one.replace(",", "")) for one in re.findall(r"between (\S+) and (\S+)", answer)[0]
    ]
    assert shown[0] <= low
    assert shown[1] >= high


def test_what_people_say_about_the_report_is_on_it(release, tmp_path):
    page = pdp.report(
        release,
        tmp_path / "page.html",
        title="Income <b> 2025",
        data="Household survey",
        purpose="yearly statistics",
        author="A. Steward",
        date="1 May 2026",
        sign=True,
    )
    text = text_of(page)
    for words in ("Income <b> 2025", "Household survey", "yearly statistics", "A. Steward"):
        assert words in text
    assert "1 May 2026" in text
    assert "signature" in text
    without = text_of(pdp.report(release, tmp_path / "plain.html"))
    assert "signature" not in without
    assert "purpose" not in without
    assert re.search(r"date \d{4}-\d\d-\d\d", without)


def test_learning_is_part_of_the_promise(tmp_path):
    rows = pd.DataFrame({"mother": [0, 1] * 500, "child": [0, 1, 1, 0] * 250})
    stated = {"mother": [0, 1], "child": [0, 1]}
    model = pdp.TableEstimator(domains=stated, epsilon=0.5).fit(rows).model_
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, rows=1000)
    text = text_of(pdp.report(cal.release(rows), tmp_path / "page.html"))
    assert "by more than ×4.49" in text  # e^1.5
    assert "1,000 rows with 2 entries each: mother, child" in text
    assert "ε = 0.5" in text
    assert "the total of 1.5 includes it" in text


def test_a_private_model_is_not_described(tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(5, 1, (200, 2)), columns=["a", "b"])
    model = pdp.GaussianEstimator(bounds=(0, 10)).fit(frame).model_
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(model, pdp.Mean(clamp=True), rows=200)
    text = text_of(pdp.report(cal.release(frame), tmp_path / "page.html"))
    assert "Careful: the model was learned from private rows" in text
    assert "Who could learn most" not in text
    assert "withheld: the model is private" in text
    assert "That is not counted in ε" in text


def test_gaussian_noise_says_with_what_probability_it_fails(tmp_path):
    group = pdp.GaussianGroup(size=3, correlation=0.4, variance=1.0, bounds=(0, 4))
    cal = pdp.calibrate(group, pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian")
    text = text_of(pdp.report(cal, tmp_path / "page.html"))
    assert "except with probability 0.000002, whatever" in text
    assert "×5.44" in text  # 2e, rounded up
    assert "two bell curves" in text
    assert "To be published, with noise added: the sum of all entries" in text


def test_a_ledger_and_people_are_told_by_what_all_releases_promise(tmp_path):
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    book = pdp.Ledger(pair, epsilon=2.0, draw="week 1")
    empty = text_of(pdp.report(book, tmp_path / "empty.html"))
    assert "nothing was released" in empty
    book.release(pdp.Sum(), {"x1": 1, "x2": 0}, epsilon=1.0)
    text = text_of(pdp.report(book, tmp_path / "page.html", data="twins"))
    assert "1 line is in this ledger about the table twins for the draw “week 1”" in text
    assert "×2.72" in text
    assert "A ledger counts all releases" in text
    people = pdp.People(PEOPLE, groups="household", bounds={"income": (0, 100_000)}, epsilon=2.0)
    people.sum("income", epsilon=0.5)
    text = text_of(people.report(tmp_path / "people.html"))
    assert "1 answer was published so far: 100 rows in 40 independent groups" in text
    assert "×1.65" in text


def test_whole_records_and_independent_people_and_endless_series_are_called_so(tmp_path):
    table = pd.DataFrame({"home": [1, 1, 2], "sick": [True, False, True], "pay": [1.0, 2, 3]})
    about = {"groups": "home", "bounds": (0, 10), "where": {"sick": True}}
    text = text_of(pdp.report(table.pdp.sum("pay", **about, epsilon=1.0), tmp_path / "rows.html"))
    first = section(text, "Published", "The answer")
    assert "3 rows, in 2 groups (one for each home), the largest of 2" in first
    assert "anyone's record" in first
    assert "between 0 and 1" not in first
    alone = table.copy().pdp.count({"sick": True}, independent=True, epsilon=1.0)
    text = text_of(pdp.report(alone, tmp_path / "alone.html"))
    assert "3 rows, each a person who depends on nobody else" in text
    endless = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
    cal = pdp.calibrate(endless, pdp.EachStep(pdp.Sum()), epsilon=1.0)
    text = text_of(pdp.report(cal, tmp_path / "endless.html"))
    assert "without an end, one entry for each step" in text


def test_every_hazard_is_answered():
    cal = pdp.calibrate(pdp.Unknown(size=2, domain=[0, 1]), pdp.Sum())
    found = checklist(cal, total=1.0, counted=False)
    assert len({one.name for one in found}) == len(found) >= 12
    assert {one.status for one in found} == {"settled", "stated", "open"}
    assert all(one.answer.endswith(".") for one in found)


def test_which_methods_keep_the_promise():
    assert keeps_promise(2.0, 1.0, None, 1.0) == "yes"
    assert keeps_promise(0.5, 1.0, 1.0, 1.0) == "yes"
    assert keeps_promise(0.5, 1.0, 2.0, 1.0) == "no: odds shift up to ×7.39"
    assert keeps_promise(0.5, 1.0, None, 1.0) == "not proved"


def test_numbers_are_never_written_with_more_than_they_are_worth():
    assert ordinary(123456.0) == "123,456"
    assert ordinary(1e-300) == "1e-300"
    assert ordinary(-0.5) == "-0.5"
    assert width(0.0) == "0"
    assert width(float("inf")) == "∞"
    for value in np.random.default_rng(1).lognormal(0, 8, 300):
        assert float(width(value).replace(",", "")) >= value * (1 - 1e-12)
        low, high = (
            float(beside_noise(1.0, value, side=side).replace(",", "")) for side in ("low", "high")
        )
        assert low <= 1.0 <= high
    assert beside_noise(3, 0.001) == "3"


def test_commands_name_the_file_in_their_reports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("people.csv", index=False)
    words = 'people.csv -q "mean(income)" -e 1 --groups household --bounds income=0:100000'
    fine(f"release {words} --correlation 0:0.4 -o release.json --report page.html")
    assert "from the table people.csv, with noise" in text_of(tmp_path / "page.html")
    described = json.loads((tmp_path / "release.json").read_text())
    assert described["layout"] == {"value": "income", "by": "household", "order_by": None}
    assert described["sizes"] == [[1, 10], [2, 10], [3, 10], [4, 10]]
    fine(f"calibrate {words} --correlation 0:0.4 --report before.html")
    before = text_of(tmp_path / "before.html")
    assert "To be published from the table people.csv, with noise added: the mean" in before
    assert "100 entries of income, in 40 groups (one for each household)" in before
    group = pdp.GaussianGroup(size=3, correlation=0.4, bounds=(0, 1))
    (tmp_path / "model.json").write_text(json.dumps(group.to_dict()))
    fine('calibrate model.json -q "sum()" -e 1 --report model.html')
    assert "To be published, with noise added" in text_of(tmp_path / "model.html")
    fine('report release.json -o again.html --data Survey --title "Mean income" --sign --force')
    again = text_of(tmp_path / "again.html")
    assert "Mean income" in again
    assert "from the table Survey" in again
