"""The story in a real browser: 20,000 people, households, a slider, files that run."""

import os
import signal
import socket
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


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    home = np.sort(rng.integers(0, 8000, 20_000))
    return pd.DataFrame({"household": home, "income": rng.gamma(4, 9000, 20_000).round(2)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    people().to_csv(place / "people.csv", index=False)
    return place


@pytest.fixture(scope="module")
def address(folder):
    server = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _MAIN, "explore", "people.csv", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE, text=True, cwd=folder, env=os.environ | {"COLUMNS": "20"},
    )  # fmt: skip
    with server.stdout as printed:
        yield printed.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


@pytest.fixture(scope="module")
def browser():
    flags = [one for one in FLAGS if one != "--remote-debugging-pipe"]
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium(), args=flags)
        yield found
        found.close()


def noise(page) -> str:
    page.wait_for_selector("body:not(.busy) #scale", timeout=60_000)
    return page.inner_text("#scale")


def test_the_story(browser, address, folder):
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    asked, said = [], []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: said.append(one.text))
    page.on("pageerror", lambda one: said.append(str(one)))
    page.goto(address)
    page.wait_for_selector("#problem")
    assert "who belongs together" in page.inner_text("#problem")
    page.get_by_label("Who belongs together").select_option("household")
    page.get_by_label("Lowest value").fill("0")
    page.get_by_label("Highest value").fill("100000")
    frame = people()
    any_way = frame.pdp.calibrate(
        "mean(income)", groups="household", bounds={"income": (0, 100_000)}
    )
    page.wait_for_selector(f"#scale[data-scale='{any_way.scale!r}']", timeout=60_000)
    page.get_by_label("Measurements, jointly Gaussian").check()
    for most in (0.4, 0.41):
        slider = page.get_by_label("Correlation at most")
        if most == 0.4:
            slider.fill("0.4")
        else:
            slider.press("ArrowRight")  # by keyboard
        wanted = frame.pdp.calibrate("mean(income)", correlation=(0, most), **SAID).scale
        page.wait_for_selector(f"#scale[data-scale='{wanted!r}']", timeout=60_000)
        assert noise(page) == f"{wanted:.6g}"
    page.wait_for_selector("#pictures figure svg", timeout=60_000)
    for button, name in (("Python code", "pdp.py"), ("plan.toml", "plan.toml")):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=button).click()
        waiting.value.save_as(folder / name)
    ran = subprocess.run(
        [sys.executable, "pdp.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert float(ran.stdout) == wanted
    checked = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _MAIN, "plan", "plan.toml", "--check", "--json"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f'"scale": {wanted!r}' in checked.stdout
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
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_wrong_tokens_get_nothing_and_neither_does_a_websocket(browser, address):
    root, _, rest = address.rpartition("127.0.0.1:")
    port = int(rest.split("/")[0])
    page = browser.new_page()
    for path in ("", "wrong/", "wrong/view"):
        answer = page.request.get(f"{root}127.0.0.1:{port}/{path}")
        assert (answer.status, answer.body()) == (404, b"")
    with pytest.raises(playwright.Error, match="ERR_HTTP_RESPONSE_CODE_FAILURE"):
        page.goto(f"{root}127.0.0.1:{port}/wrong/")  # the tab has nothing to show
    page.close()
    for path in ("/", "/wrong/", "/wrong/websocket/"):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\n"
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
            )
            assert line.recv(4096).startswith(b"HTTP/1.1 404")
