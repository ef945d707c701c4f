"""BIF files: the classic networks as published, and files that are no BIF files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.families.network.bif import parsed

FILES = Path(__file__).parents[2] / "fixtures" / "bif"

PUBLISHED = {  # nodes, arcs and free parameters, as the bnlearn repository lists them
    "asia": (8, 8, 18),
    "child": (20, 25, 230),
    "alarm": (37, 46, 509),
    "insurance": (27, 52, 1008),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_classic_networks_are_read_as_published(name):
    found = parsed((FILES / f"{name}.bif").read_text())
    arcs = sum(len(parents) for parents, _ in found.tables.values())
    free = sum(
        (len(found.domains[child]) - 1) * len(table) for child, (_, table) in found.tables.items()
    )
    assert (len(found.domains), arcs, free) == PUBLISHED[name]
    model = pdp.read_bif(FILES / f"{name}.bif")
    assert model.names == tuple(found.domains)
    assert model.domains == tuple(found.domains.values())
    leak = pdp.leakage(model, pdp.Count(values={model.domains[0][0]}), scale=2.0)
    assert leak.lower <= leak.value <= len(model.names) / 2 * (1 + 1e-9)


def test_asia_has_its_published_marginals():
    model = pdp.read_bif(FILES / "asia.bif", values={"yes": 1, "no": 0})
    table = model.to_table()
    assert table.domains == ((1, 0),) * 8
    found = {
        name: float(np.moveaxis(table.probabilities, axis, 0)[0].sum())
        for axis, name in enumerate(table.names)
    }  # Lauritzen and Spiegelhalter, 1988, section 2 and table 8
    expected = {"asia": 0.01, "tub": 0.0104, "smoke": 0.5, "lung": 0.055, "bronc": 0.45}
    expected |= {"either": 0.064828, "xray": 0.11029, "dysp": 0.435971}
    assert found == pytest.approx(expected, abs=5e-7)
    assert pdp.leakage(model, pdp.Sum(over=["lung", "bronc"])).exact


WRITTEN = """
network "two coins" { property author nobody; }  // a comment
variable "first coin" { type discrete[2] { heads, tails }; property position = (1, 2); }
variable b { type discrete [ 2 ] { heads tails }; }
/* the last one
   depends on both */
variable c { type discrete [3] { <5, 5-12, a/b }; }
probability ( "first coin" ) { table 0.25, 0.75; }
probability ( b | "first coin" ) { table 0.1 0.2 0.9 0.8; }
probability ( c | "first coin", b ) {
  (heads, tails) 0.2, 0.3, 0.5;
  default 0.333, 0.333, 0.333;
}
"""


def test_everything_that_the_format_allows():
    found = parsed(WRITTEN)
    assert found.domains["c"] == ("<5", "5-12", "a/b")
    assert found.tables["b"][1] == {("heads",): [0.1, 0.9], ("tails",): [0.2, 0.8]}
    parents, table = found.tables["c"]
    assert parents == ("first coin", "b")
    assert list(table) == [
        ("heads", "heads"), ("heads", "tails"), ("tails", "heads"), ("tails", "tails"),
    ]  # fmt: skip
    assert table["heads", "tails"] == [0.2, 0.3, 0.5]
    assert table["tails", "heads"] == pytest.approx([1 / 3] * 3)


def test_compressed_files_and_numbers_for_labels(tmp_path):
    file = tmp_path / "coins.bif.gz"
    file.write_bytes(gzip.compress(WRITTEN.encode()))
    model = pdp.read_bif(file, values={"heads": 1, "tails": 0}, provenance="public")
    assert model.provenance == "public"
    assert model.domains[:2] == ((1, 0), (1, 0))
    joint = model.to_table().probabilities
    assert joint[0, 1].sum() == pytest.approx(0.25 * 0.9)
    assert joint[0, 1, 2] == pytest.approx(0.25 * 0.9 * 0.5)


BROKEN = [
    ("variable a { type discrete [2] { x, y }; }", "no table"),
    ("", "no variable"),
    ("hello", "holds network"),
    ("variable a { type discrete [3] { x, y }; }", "different values"),
    ("variable a { type discrete [2] { x, x }; }", "different values"),
    ("variable a { type continuous; }", "discrete"),
    ("variable a { }", "no values"),
    ("variable a { type discrete [2] { x, y };", "too early"),
]
TABLES = [
    ("probability ( a ) { table 0.5, 0.6; }", "a law"),
    ("probability ( a ) { table -0.5, 1.5; }", "a law"),
    ("probability ( a ) { table nan, 1; }", "a law"),
    ("probability ( a ) { table 1; }", "2 numbers"),
    ("probability ( a ) { table x, y; }", "no number"),
    ("probability ( a b ) { table 0.5, 0.5; }", "headed"),
    ("probability ( a | ) { table 0.5, 0.5; }", "headed"),
    ("probability ( z ) { table 0.5, 0.5; }", "no such variable"),
    ("probability ( a | a ) { (x) 1, 0; (y) 1, 0; }", "must differ"),
    ("probability ( a | b ) { (x) 1, 0; }", "lacks the rows"),
    ("probability ( a | b ) { (q) 1, 0; }", "unknown or twice"),
    ("probability ( a | b ) { (x) 1, 0; (x) 1, 0; }", "unknown or twice"),
    ("probability ( a ) { tables 0.5, 0.5; }", "unknown entry"),
    ("probability ( a ) { table .5, .5; } probability ( a ) { table .5, .5; }", "two tables"),
    ("probability ( a | b ) { default 1, 0; } probability ( b | a ) { default 1, 0; }", "circle"),
]
VARIABLES = " ".join(f"variable {name} {{ type discrete [2] {{ x, y }}; }}" for name in "ab")


@pytest.mark.parametrize(
    ("text", "words"), BROKEN + [(f"{VARIABLES} {table}", words) for table, words in TABLES]
)
def test_what_is_no_bif_file_is_refused(text, words):
    with pytest.raises(pdp.ModelError, match=words):
        parsed(text)


def test_files_that_cannot_be_read(tmp_path):
    for name, content in (("a.bif", b"\xff\xfe"), ("b.bif.gz", b"not compressed")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(pdp.SourceError):
            pdp.read_bif(tmp_path / name)
    with pytest.raises(pdp.SourceError):
        pdp.read_bif(tmp_path / "absent.bif")
