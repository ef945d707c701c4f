"""Plain words: nothing of a private dialect, and no term of the field before it is introduced."""

import re

import pytest
from typer.testing import CliRunner

from pdp_calibrate.cli.main import app
from tests.support.pages import ROOT, pages

DIALECT = (
    "hang together", "hangs together", "imagined data", "is told of", "are told of", "so many as",
    "is a room", "what is told about", "that is told about", "nobody is told", "is looked at",
    "are looked at", "begun anew", "speaks for", "speak for", "blurs the answer", "read off the",
    "what nobody knows", "says nothing of", "worked out once", "tells groups apart", "was told of",
    "in the place of ε", "would pass the budget", "would pass its budget",
)  # fmt: skip
TERMS = (r"θ", r"Θ", r"\btuples?\b", r"\bnats\b", r"log-odds", r"\bPDP\b", r"x_K", r"\bx_i\b")
SOURCES = [
    path
    for folder in ("pdp_calibrate", "integrations", "examples", "docs")
    for ending in ("*.py", "*.md", "*.j2", "*.ipynb")
    for path in sorted((ROOT / folder).rglob(ending))
    if not {"_build", "_generated"} & set(path.parts)
]


@pytest.mark.parametrize("phrase", DIALECT)
def test_no_phrase_of_a_private_dialect(phrase):
    places = [*SOURCES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
    assert [str(path) for path in places if phrase in " ".join(path.read_text().split())] == []


INTRODUCED = {
    "README.md": {
        "ε": "at ε = 1 (odds may shift by a factor of",
        "PDP": "*prior differential privacy* (PDP)",
        "jointly Gaussian": "incomes of one household are jointly Gaussian",
    },
    "docs/choose/epsilon.md": {"ε": "# How do I choose ε? ε is the logarithm"},
    "docs/concepts/index.md": {
        "θ": "mathematicians call it θ, the joint distribution",
        "Θ": "the set of them is called Θ",
        "ε": "**ε** is what it may be",
        "PDP": "**Prior differential privacy (PDP)**",
    },
}


@pytest.mark.parametrize("page", INTRODUCED)
def test_terms_are_introduced_where_they_are_first_used(page):
    text = " ".join(re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL).split())
    for term, introduction in INTRODUCED[page].items():
        begins = text.index(introduction)
        assert begins <= text.index(term) < begins + len(introduction), (page, term)


def test_pages_for_beginners_need_no_terms():
    for page in ("README.md", "docs/start/index.md", "docs/choose/index.md"):
        assert page in pages()
        text = re.sub(r"```.*?```|`[^`]*`", "", (ROOT / page).read_text(), flags=re.DOTALL)
        used = [term for term in TERMS if re.search(term, text)]
        assert used == (["\\bPDP\\b"] if page == "README.md" else []), page


def helps():
    group = CliRunner().invoke(app, ["--help"]).output
    commands = re.findall(r"^│ (\w[\w-]*)  ", group, flags=re.MULTILINE)
    yield "", group
    for name in commands:
        text = CliRunner().invoke(app, [name, "--help"]).output
        yield name, text
        for inner in re.findall(r"^│ (\w[\w-]*)  ", text, flags=re.MULTILINE):
            if name in ("ledger", "people"):
                yield f"{name} {inner}", CliRunner().invoke(app, [name, inner, "--help"]).output


def test_help_and_demo_need_no_terms():
    texts = dict(helps())
    assert len(texts) > 12
    texts["demo itself"] = CliRunner().invoke(app, ["demo"]).output
    for name, text in texts.items():
        assert [term for term in TERMS if re.search(term, text)] == [], name
