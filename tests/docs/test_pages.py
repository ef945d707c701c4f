"""The pages: their code runs and shows its results, their links lead somewhere."""

import re

import pytest

import pdp_calibrate as pdp
from tests.support.pages import NOISE, ROOT, blocks, pages, problems_of

WITH_PYTHON = [page for page in pages() if blocks(page)]


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_the_code_of_a_page_gives_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # blocks write files
    names = {"__name__": "page"}
    for block in blocks(page):
        assert block.startswith(">>> "), f"{page}: a block without results:\n{block}"
        assert not problems_of(block, page, names)


def test_the_checker_notices_what_is_wrong():
    assert not problems_of(">>> 1 + 1\n2\n", "page")
    assert "Got:\n    2" in problems_of(">>> 1 + 1\n3\n", "page")
    assert not problems_of(f">>> print('about', 17.5)  {NOISE}\nabout -1,803\n", "page")
    assert problems_of(f">>> print('about', 17.5)  {NOISE}\nnearly 17.5\n", "page")
    assert problems_of(f">>> print(17.5, 3)  {NOISE}\n17.5\n", "page")
    assert "ZeroDivisionError" in problems_of(">>> 1 / 0\n1\n", "page")


def test_every_block_of_python_shows_a_result():
    for page in WITH_PYTHON:
        for block in blocks(page):
            shown = [line for line in block.splitlines() if line and line[:3] not in (">>>", "...")]
            assert shown, f"{page}: nothing is shown\n{block}"


def test_the_reference_lists_every_public_name_once():
    listed = re.findall(r"^   (\w+)$", (ROOT / "docs/api/index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(pdp.__all__)


@pytest.mark.parametrize("page", [*pages(), "SECURITY.md", "CONTRIBUTING.md", "examples/README.md"])
def test_links_lead_somewhere(page):
    place = ROOT / page
    text = re.sub(r"```.*?```", "", place.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (place.parent / link).exists(), link
