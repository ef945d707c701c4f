"""The story in a real browser: 20,000 people, households, a slider, files that run."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.support.browser import FLAGS, chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt install chromium"),
]
playwright = pytest.importorskip(
    "playwright.sync_api", reason='needs playwright: pip install "pdp-calibrate[test]"'
)
pytest.importorskip("uvicorn", reason='needs the page: pip install "pdp-calibrate[explore]"')
_MAIN = "from pdp_calibrate.cli.main import main; main()"
SAID = {"groups": "household", "bounds": {"income": (0, 100_000)}, "assume": "gaussian"}
HOSTILE = "<script>alert('1')</script> Löhne ; \"x\""


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    home = np.sort(rng.integers(0, 8000, 20_000))
    return pd.DataFrame({"household": home, "income": rng.gamma(4, 9000, 20_000).round(2)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    people().to_csv(place / "people.csv", index=False)
    return place


def served(folder, *file):
    server = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _MAIN, "explore", *file, "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE, text=True, cwd=folder, env=os.environ | {"COLUMNS": "20"},
    )  # fmt: skip
    with server.stdout as printed:
        yield printed.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


@pytest.fixture(scope="module")
def address(folder):
    yield from served(folder, "people.csv")


@pytest.fixture(scope="module")
def typed_address(folder):
    yield from served(folder)


@pytest.fixture(scope="module")
def browser():
    flags = [one for one in FLAGS if one != "--remote-debugging-pipe"]
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium(), args=flags)
        yield found
        found.close()


def settled(page):
    page.wait_for_selector("body:not(.busy)", timeout=60_000)


def wait_for_scale(page, scale, place=""):
    page.wait_for_selector(f"#scale{place}[data-scale='{scale!r}']", timeout=60_000)


def also_count_the_sick(page):
    """Ask one more question, and return its fields."""
    page.get_by_role("button", name="Ask for something else too").click()
    more = page.get_by_role("group", name="One more question")
    more.get_by_label("What").select_option("count")
    more.get_by_label("Of column").select_option("sick")
    more.get_by_label("Values to count").fill("true")
    page.wait_for_selector("#scale1")
    settled(page)
    return more


def saved(page, button, folder, name):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    waiting.value.save_as(folder / name)


def ran(folder, *line):
    return subprocess.run(  # noqa: S603
        [sys.executable, *line], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def planned(folder):
    found = json.loads(ran(folder, "-c", _MAIN, "plan", "plan.toml", "--check", "--json"))
    return found["answers"][0]["calibration"]["scale"]


def test_the_story(browser, address, folder):
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    asked, said = [], []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: said.append(one.text))
    page.on("pageerror", lambda one: said.append(str(one)))
    page.goto(address)
    page.wait_for_selector("#problem")
    assert "who belongs together" in page.inner_text("#problem")
    income = page.get_by_role("group", name="Column income")
    assert income.get_by_label("Kind").input_value() == "number"  # of the file, never a value
    assert income.get_by_label("Lowest value").input_value() == ""
    page.get_by_label("Who belongs together").select_option("household")
    income.get_by_label("Lowest value").fill("0")
    income.get_by_label("Highest value").fill("100000")
    frame = people()
    any_way = frame.pdp.calibrate(
        "mean(income)",
        groups="household",
        bounds={"income": (0, 100_000)},
        epsilon=1.0,
    )
    wait_for_scale(page, any_way.scale)
    page.get_by_label("Measurements, jointly Gaussian").check()
    for most in (0.4, 0.41):
        slider = page.get_by_label("Correlation at most")
        if most == 0.4:
            slider.fill("0.4")
        else:
            slider.press("ArrowRight")  # by keyboard
        options = SAID | {"correlation": (0, most), "epsilon": 1.0}
        wanted = frame.pdp.calibrate("mean(income)", **options).scale
        wait_for_scale(page, wanted)
        assert page.inner_text("#scale") == f"{wanted:.6g}"
    page.wait_for_selector("figure[data-picture=leakage_by_scale]:not([data-open]) svg")
    below = "figure[data-picture=beliefs]"
    assert page.locator(f"{below}[data-open]").count() == 1  # out of sight: not drawn yet
    page.eval_on_selector(below, "figure => figure.scrollIntoView()")  # at once: it may be replaced
    page.wait_for_selector(f"{below}:not([data-open]) svg", timeout=60_000)
    saved(page, "Python code", folder, "pdp.py")
    saved(page, "plan.toml", folder, "plan.toml")
    assert float(ran(folder, "pdp.py")) == wanted
    assert planned(folder) == wanted
    page.get_by_label("Publish a number").check()
    page.get_by_role("button", name="Release").click()
    page.wait_for_selector("#released .problem")
    assert "name a ledger" in page.inner_text("#released")
    assert not (folder / "budget.json").exists()
    page.get_by_label("Ledger, a file").fill("budget.json")
    page.get_by_label("ε of the ledger").fill("2")
    page.get_by_role("button", name="Release").click()
    page.wait_for_selector("#released .fine", timeout=60_000)
    assert "Spent 1 of 2" in page.inner_text("#released")
    assert pdp.Ledger.open(folder / "budget.json").spent == pytest.approx(1.0, abs=1e-6)
    assert said == []
    assert all(one.startswith((address, "data:")) for one in asked)
    page.close()


def test_columns_are_typed_and_several_questions_asked(browser, typed_address, folder):
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    said = []
    page.on("console", lambda one: said.append(one.text))
    page.on("pageerror", lambda one: said.append(str(one)))
    page.goto(typed_address)
    page.wait_for_selector("#scale")
    page.get_by_role("button", name="Remove city").click()
    page.get_by_role("button", name="Add a column").click()
    page.keyboard.type(HOSTILE)  # the new name has the focus
    mine = page.get_by_role("group", name=f"Column {HOSTILE}")
    mine.get_by_label("Lowest value").fill("0")
    mine.get_by_label("Highest value").fill("10")
    page.get_by_label("Number of people").fill("500")
    page.get_by_label("Of which column").select_option(HOSTILE)
    page.get_by_label("Statistic").select_option("sum")
    page.get_by_label("I don't know").check()
    wait_for_scale(page, pdp.calibrate(pdp.Unknown(size=4, bounds=(0, 10)), pdp.Sum()).scale)
    more = also_count_the_sick(page)
    titles = page.locator("figure h3").all_inner_texts()
    assert titles[-1] == "What an answer would look like: count(sick=true)"
    scales = [float(page.get_attribute(f"#scale{place}", "data-scale")) for place in ("", "1")]
    for button, name in (
        ("Python code", "typed.py"), ("plan.toml", "plan.toml"), ("Placeholder rows", "people.csv"),
    ):  # fmt: skip
        saved(page, button, folder, name)
    assert ran(folder, "typed.py") == f"({scales[0]!r}, {scales[1]!r})\n"
    assert planned(folder) == scales
    people().to_csv(folder / "people.csv", index=False)
    more.get_by_role("button", name="Remove question").click()
    page.wait_for_selector("#scale1", state="detached")
    assert said == []
    page.close()


_FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const label = one.labels && one.labels[0] ? one.labels[0].textContent : one.textContent;
  return [one.id || one.name || one.dataset.field || one.tagName, label.trim(),
          style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
}"""
_CONTRASTS = r"""() => {
  const light = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    const [r, g, b] = parts.slice(0, 3).map((one) => one / 255)
      .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const solid = parts.length < 4 || parts[3] === 1;
    return { value: 0.2126 * r + 0.7152 * g + 0.0722 * b, solid };
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const paper = light(getComputedStyle(one).backgroundColor);
      if (paper.solid) return paper.value;
    }
    throw new Error("nothing behind");
  };
  const found = [];
  const note = (a, b, what) =>
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), what]);
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const drawn = one.closest("svg");
    const written = own || one.matches("input:not([type=range]), select");
    if (!written || (!drawn && one.offsetParent === null)) continue;
    const style = getComputedStyle(one);
    const ink = light(drawn ? style.fill : style.color).value, paper = behind(drawn || one);
    note(ink, paper, one.outerHTML.slice(0, 90));
    if (one.placeholder) {
      const hint = light(getComputedStyle(one, "::placeholder").color).value;
      note(hint, paper, "hint " + one.placeholder);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_by_everybody(browser, typed_address, scheme):
    page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme=scheme)
    page.goto(typed_address)
    page.wait_for_selector("#scale")
    page.locator("#pictures").scroll_into_view_if_needed()
    page.wait_for_selector("figure svg", timeout=60_000)
    page.get_by_role("button", name="Add a column").click()  # which needs a name: a problem
    page.wait_for_selector("#problem")
    page.get_by_role("button", name="Remove", exact=True).last.click()
    page.wait_for_selector("#scale")
    settled(page)
    found = page.evaluate(_CONTRASTS)
    assert len(found) > 80
    assert not [one for one in found if one[0] < 4.5]  # WCAG 2.2, AA
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_the_page_is_walked_through_by_keyboard(browser, typed_address):
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.goto(typed_address)
    page.wait_for_selector("#scale")
    settled(page)
    walked = []
    for _ in range(80):
        page.keyboard.press("Tab")
        walked.append(page.evaluate(_FOCUS))
        if walked[-1][0] == "BODY":
            break
    names = [name for name, _, _ in walked]
    wanted = ["name", "kind", "add_column", "people", "groups", "alike", "correlation", "column",
              "add_question", "strength", "epsilon"]  # fmt: skip
    places = [names.index(name) for name in wanted]
    assert places[:1] == [0]
    assert places == sorted(places)  # in the order of the steps
    assert all(seen for name, _, seen in walked if name != "BODY"), walked
    assert all(label for name, label, _ in walked if name != "BODY"), walked
    assert "Python code" in [label for _, label, _ in walked]
    page.focus("#epsilon")
    before = page.inner_text("#scale")
    page.keyboard.press("ArrowRight")
    page.locator("#scale", has_not_text=before).wait_for()
    page.close()


def test_the_slider_of_a_notebook_chooses_among_its_frames(browser, tmp_path):
    home = pdp.GaussianGroup(size=3, correlation=(0, 0.4), bounds=(0, 100))
    found = pdp.explore(home, pdp.Sum(clamp=True), epsilons=[1.0, 2.0])
    (tmp_path / "cell.html").write_text(found._repr_html_())
    page = browser.new_page()
    asked, said = [], []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: said.append(one.text))
    page.goto((tmp_path / "cell.html").as_uri())
    cell = page.frame_locator("iframe")
    for press, cal in zip((None, "ArrowRight"), found.calibrations, strict=True):
        if press:
            cell.get_by_label("ε, at most").press(press)
        assert cell.locator(".noise:visible").all_inner_texts() == [f"{cal.scale:.6g}"]
        assert cell.locator("svg:visible").count() == 3
    assert said == []
    assert all(one.startswith(("file:", "about:")) for one in asked)
    page.close()


def test_a_tab_with_a_wrong_token_shows_nothing(browser, address):
    root = address.rpartition("/")[0].rpartition("/")[0]
    page = browser.new_page()
    for path in ("", "/wrong/", "/wrong/view"):
        answer = page.request.get(f"{root}{path}")
        assert (answer.status, answer.body()) == (404, b"")
    with pytest.raises(playwright.Error, match="ERR_HTTP_RESPONSE_CODE_FAILURE"):
        page.goto(f"{root}/wrong/")
    page.close()
    page = browser.new_page()  # blank: the failed one may still be on its way to an error page
    opened = page.evaluate(
        """(url) => new Promise((tell) => {
          const one = new WebSocket(url);
          one.onopen = () => tell("opened"); one.onerror = () => tell("refused");
        })""",
        address.replace("http", "ws"),
    )
    assert opened == "refused"
    page.close()
