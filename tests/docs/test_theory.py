"""The theory: every statement has a number and a proof, and the code cites it by that number."""

import re

import pytest

from tests.support.pages import ROOT

THEORY = ROOT / "docs" / "theory"
PACKAGE = ROOT / "pdp_calibrate"
PAGES = {path: path.read_text() for path in sorted(THEORY.glob("*.md"))}
CITED = {
    str(path.relative_to(PACKAGE)): set(map(int, found))
    for path in sorted(PACKAGE.rglob("*.py"))
    if (found := re.findall(r"Theorem (\d+) \(docs/theory\)", path.read_text()))
}


NUMBERS = list(range(1, 37))


def statements():
    found = {}
    for text in PAGES.values():
        for heading in re.finditer(
            r"^## Theorem (\d+): .*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
        ):
            assert int(heading[1]) not in found, f"Theorem {heading[1]} is there twice"
            found[int(heading[1])] = heading[0]
    return found


def test_every_statement_has_one_number():
    assert sorted(statements()) == NUMBERS


@pytest.mark.parametrize("number", sorted(set(NUMBERS) - {18}))  # 18 only says what is reported
def test_every_statement_is_proved(number):
    text = statements()[number]
    assert "Proof" in text or "proof" in text
    assert "∎" in text or number == 12  # proved by running an example


def test_citations_and_statements_agree():
    assert set.union(*CITED.values()) == set(statements())
    table = dict(re.findall(r"^\| (\d+) \|.*\| (.+) \|$", PAGES[THEORY / "index.md"], re.MULTILINE))
    assert sorted(map(int, table)) == NUMBERS
    for number, places in table.items():
        named = set(re.findall(r"`([^`]+)`", places))
        citing = {name for name, cited in CITED.items() if int(number) in cited}
        assert named == citing, f"Theorem {number}"


def test_nothing_cites_a_statement_that_is_not_there():
    for name, numbers in CITED.items():
        assert numbers <= set(statements()), name
