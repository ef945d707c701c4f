"""The page answers to nobody without its token."""

import asyncio
import contextlib
import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlencode, urlsplit

import pandas as pd
import pytest

from pdp_calibrate.exploring.schema import Column, as_json
from pdp_calibrate.exploring.server import Application
from pdp_calibrate.exploring.subject import of_nothing, of_rows
from tests.support.cli_runs import run

TOKEN = "a-token"  # noqa: S105
COLUMNS = [
    Column(name="home", kind="whole number"),
    Column(name="income", kind="number", low="0", high="100"),
]
HOMES = urlencode(
    {"schema": as_json(COLUMNS), "groups": "home", "kind": "mean", "column": "income"}
).encode()
LOCAL = [(b"host", b"127.0.0.1:5")]


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    frame = pd.DataFrame({"home": [1, 1, 2], "income": [31.41592, 27.18281, 16.18033]})
    frame.to_csv(place / "people.csv", index=False)
    return Application(of_rows(place / "people.csv"), token=TOKEN)


def ask(application, path, *, body=None, headers=LOCAL, kind="http"):
    """Return the status, headers and body of one request."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind, "path": path, "method": "GET" if body is None else "POST",
        "headers": headers, "query_string": b"",
    }  # fmt: skip
    asyncio.run(application(scope, receive, send))
    if kind == "websocket":
        return sent
    text = b"".join(one.get("body", b"") for one in sent[1:]).decode()
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, text


@pytest.mark.parametrize("token", ["", "b-token", "a-toke", "a-token2", "A-TOKEN", "ä"])
@pytest.mark.parametrize("name", ["", "page.js", "view", "release", "pdp.py"])
def test_nothing_without_the_token(application, token, name):
    for body in (None, HOMES):
        status, _, text = ask(application, f"/{token}/{name}", body=body)
        assert (status, text) == (404, "")


def test_a_websocket_is_closed_with_and_without_the_token(application):
    for path in ("/", f"/{TOKEN}/", f"/{TOKEN}/websocket/"):
        found = ask(application, path, kind="websocket")
        assert [one["type"] for one in found] == ["websocket.close"]


@pytest.mark.parametrize(
    "host", [[], [(b"host", b"evil.example:5")], [(b"host", b"127.0.0.1.x:5")]]
)
def test_another_name_of_this_computer_gets_nothing(application, host):
    assert ask(application, f"/{TOKEN}/", headers=host)[0] == 404


def test_the_page_loads_nothing_from_elsewhere_and_shows_no_value(application):
    status, headers, text = ask(application, f"/{TOKEN}/")
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    everything = text
    for name in ("page.css", "page.js"):
        everything += ask(application, f"/{TOKEN}/{name}")[2]
    drawing = HOMES + b"&picture=leakage_by_scale"
    for name in ("view", "pictures", "report.html", "plan.toml", "pdp.py", "command.sh", "picture"):
        body = drawing if name == "picture" else HOMES
        status, _, found = ask(application, f"/{TOKEN}/{name}", body=body)
        assert status == 200, name
        assert found, name
        everything += found
    for secret in ("31.4159", "27.1828", "16.1803", "74.7790", "24.9263"):
        assert secret not in everything
    addresses = {one.split('"')[0] for one in everything.split("http")[1:]}
    known = ("://www.w3.org/", "-equiv=")  # names of SVG, and a meta element
    assert not [one for one in addresses if not one.startswith(known)]
    assert ask(application, f"/{TOKEN}/../secrets")[0] == 404
    assert ask(application, f"/{TOKEN}")[0] == 307


def test_a_release_is_refused_without_a_ledger_and_names_are_escaped(application):
    found = ask(application, f"/{TOKEN}/release", body=HOMES + b"&sure=yes")[2]
    assert "name a ledger" in found
    found = ask(application, f"/{TOKEN}/view", body=b"groups=<script>alert(1)</script>")[2]
    assert "<script>" not in found
    assert ask(application, f"/{TOKEN}/plan.toml", body=b"")[0] == 400
    assert ask(application, f"/{TOKEN}/people.csv", body=HOMES)[0] == 400
    assert ask(application, f"/{TOKEN}/picture", body=HOMES + b"&picture=none")[2] == ""
    assert ask(application, f"/{TOKEN}/view", body=b"a" * 9_000_000)[0] == 413


def test_bad_files_give_a_sentence(tmp_path, monkeypatch):
    for name, text, words in (
        ("a.csv", "", "is empty"),
        ("a.json", "{", "is not JSON"),
        ("a.toml", "x = ", "is not TOML"),
        ("a.xyz", "x", "unknown ending"),
    ):
        (tmp_path / name).write_text(text)
        ran = run(f"explore {tmp_path / name} --no-browser")
        assert ran.code == 2
        assert words in ran.err
        assert "Traceback" not in ran.err
    assert "leave it or FILE out" in run("explore x.csv --demo").err
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    missing = run("explore --demo").err
    assert "pip install" in missing
    assert "[explore]" in missing


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"epsilon": "5"}, "above the budget"),
        ({"ledger": "a\0b.json"}, "NUL"),
        ({"ledger": "x" * 300}, "too long"),
        ({"ledger": ""}, "name a ledger"),
    ],
)
def test_a_refused_release_leaves_no_ledger_behind(tmp_path, said, words):
    place = tmp_path
    frame = pd.DataFrame({"home": [1, 1, 2], "income": [31.41592, 27.18281, 16.18033]})
    frame.to_csv(place / "people.csv", index=False)
    page = Application(of_rows(place / "people.csv"), token=TOKEN)
    asks = {"ledger": "budget.json", "budget": "2", "sure": "on", "epsilon": "1"}
    body = HOMES + b"&" + urlencode(asks | said).encode()
    status, _, text = ask(page, f"/{TOKEN}/release", body=body)
    assert status == 200
    assert words in text
    assert [one.name for one in place.iterdir()] == ["people.csv"]


def test_rows_of_nobody_are_handed_over_where_columns_are_typed():
    typed = Application(of_nothing(), token=TOKEN)
    status, headers, text = ask(typed, f"/{TOKEN}/people.csv", body=b"people=3")
    assert status == 200
    assert "people.csv" in headers["content-disposition"]
    assert text.splitlines()[:2] == ["household,income,sick,city", "0,0.0,False,Bergen"]
    page = ask(typed, f"/{TOKEN}/")[2]
    assert "Add a column" in page
    assert "Publish a number" not in page


def test_the_address_stands_alone_on_its_line_and_an_upgrade_gets_nothing(tmp_path):
    program = "from pdp_calibrate.cli.main import main; main()"
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", program, "explore", "--demo", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "20"}, cwd=tmp_path,
    ) as server:  # fmt: skip
        try:
            address = server.stdout.readline()
            port, token = address.split(":")[2].split("/")[:2]
            paths = ("/", "/wrong/", f"/{token}x/websocket/", f"/{token}/")
            found = [upgraded(int(port), path) for path in paths]
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        assert server.stdout.read() == "The page is closed.\n"
    assert address.startswith("http://127.0.0.1:")
    assert address.endswith("/\n")
    assert len(token) >= 32
    assert found[:3] == [(404, b"")] * 3
    assert b"<h1>See it move" in found[3][1]  # no websocket there either


@pytest.mark.skipif(os.name == "nt", reason="needs a shell script, and permissions of POSIX")
def test_the_token_is_not_on_the_command_line_of_the_browser(tmp_path):
    """Which every other user of the computer can read; the file that it names only this one."""
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.new\nmv {seen}.new {seen}\n')
    browser.chmod(0o700)
    program = "from pdp_calibrate.cli.main import main; main()"
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", program, "explore", "--demo"],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"BROWSER": f"{browser} %s"},
        cwd=tmp_path,
    ) as server:  # fmt: skip
        try:
            address = server.stdout.readline().strip()
            token = address.split("/")[3]
            port = int(address.split(":")[2].split("/")[0])
            assert upgraded(port, f"/{token}/")[0] == 200  # so the browser has been opened
            (line,) = seen.read_text().splitlines()
            page = Path(unquote(urlsplit(line).path))
            assert f"url={address}" in page.read_text()
            assert page.stat().st_mode & 0o077 == 0
            assert page.parent.stat().st_mode & 0o077 == 0
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    assert line.startswith("file:///")
    assert token not in line
    assert not page.exists()


def upgraded(port, path):
    """Ask for a websocket; return the status and what comes back."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
        line.request(
            "GET", path, headers={
                "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            },
        )  # fmt: skip
        answer = line.getresponse()
        return answer.status, answer.read()
