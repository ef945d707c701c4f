"""The site: it builds without a warning, asks no network, and its own links lead somewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.pages import ROOT

pytest.importorskip("sphinx", reason="the site needs the extra docs")
pytest.importorskip("latex2mathml", reason="the site needs the extra docs")


class Page(HTMLParser):
    """Collects what a page loads, where it links to, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.loads.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.append(found["href"])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert built.returncode == 0, built.stderr[-3000:]
    return {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}


@pytest.mark.slow
def test_the_site_is_whole_and_needs_no_network(site):
    assert len(site) > 60
    for path, page in site.items():
        for place in page.loads:
            assert not re.match(r"(https?:)?//", place), (path.name, place)
        for link in page.links:
            if re.match(r"https?:|mailto:|#", link):
                continue
            target, _, anchor = link.partition("#")
            found = (path.parent / target).resolve()
            assert found.exists(), (path.name, link)
            if anchor and Path(found) in site:
                assert anchor in site[found].anchors, (path.name, link)
    styles = "".join(path.read_text() for path in next(iter(site)).parent.rglob("_static/*.css"))
    for outside in ("url(http", "url('http", 'url("http', "@import url(http"):
        assert outside not in styles
