"""Take the pictures of docs/howto/explore.md again: ``python -m tests.support.explore_pictures``.

The pages are those that `tests/exploring/test_browser.py` opens.
"""

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.exploring.test_browser import also_count_the_sick, people, served, settled
from tests.support.browser import FLAGS, chromium

PICTURES = Path(__file__).parents[2] / "docs" / "_static"


@contextlib.contextmanager
def opened(browser: Browser, folder: Path, *file: str, height: int) -> Iterator[Page]:
    """Open the page about a file, or about typed columns."""
    serving = served(folder, *file)
    try:
        page = browser.new_page(viewport={"width": 1100, "height": height})
        page.goto(next(serving))
        page.wait_for_selector("#numbers > *", timeout=60_000)
        yield page
        page.close()
    finally:
        next(serving, None)  # ends the server


def save(name: str, picture: bytes) -> None:
    """Save a picture with a palette: a third of the bytes."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(
        PICTURES / name, optimize=True
    )


def take(browser: Browser, folder: Path) -> None:
    """Take all three pictures."""
    with opened(browser, folder, "people.csv", height=1000) as page:
        page.get_by_label("Who belongs together").select_option("household")
        income = page.get_by_role("group", name="Column income")
        income.get_by_label("Lowest value").fill("0")
        income.get_by_label("Highest value").fill("100000")
        page.get_by_label("Measurements, jointly Gaussian").check()
        page.get_by_label("Correlation at most").fill("0.4")
        settled(page)
        page.wait_for_selector("figure[data-picture=leakage_by_scale]:not([data-open]) svg")
        income.evaluate("one => { one.closest('form').scrollTop = one.offsetTop - 116 }")
        page.evaluate("scrollTo(0, 0)")
        save("explore.png", page.screenshot())
    with opened(browser, folder, height=760) as page:
        page.get_by_label("I don't know").check()
        also_count_the_sick(page)
        page.evaluate("document.querySelector('form').scrollTop = 0; scrollTo(0, 0)")
        page.wait_for_timeout(1000)  # pictures that are now in sight are drawn
        settled(page)
        save("explore-typed.png", page.screenshot())
    with opened(browser, folder, "--demo", height=1000) as page:
        settled(page)
        everyone = page.locator("figure", has_text="Every adversary")
        everyone.scroll_into_view_if_needed()
        everyone.locator("svg").wait_for(timeout=60_000)
        settled(page)
        save("explore-demo.png", everyone.screenshot())


if __name__ == "__main__":
    flags = [one for one in FLAGS if one != "--remote-debugging-pipe"]
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as place:
        people().to_csv(Path(place) / "people.csv", index=False)
        take(driver.chromium.launch(executable_path=chromium(), args=flags), Path(place))
