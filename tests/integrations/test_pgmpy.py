"""Networks of pgmpy, and the files in which networks are published."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate_integrations.pgmpy import network_of, read_bif

readwrite = pytest.importorskip("pgmpy.readwrite")
FILES = Path(__file__).parents[1] / "fixtures" / "bif"

PUBLISHED = {  # nodes, arcs and free parameters, as the bnlearn repository lists them
    "asia": (8, 8, 18),
    "child": (20, 25, 230),
    "alarm": (37, 46, 509),
    "insurance": (27, 52, 1008),
}


def _axis_of_the_child(table):
    """Return the axis along which the laws of a conditional table sum to 1."""
    axes = [axis for axis in range(table.ndim) if np.allclose(table.sum(axis=axis), 1, atol=1e-12)]
    return axes[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_classic_networks_are_read_as_published(name):
    model = read_bif(FILES / f"{name}.bif")
    arcs = sum(len(scope) - 1 for scope in model.scopes)
    children = [_axis_of_the_child(table) for table in model.factors]
    free = sum(
        table.size - table.size // table.shape[axis]
        for table, axis in zip(model.factors, children, strict=True)
    )
    assert (len(model.names), arcs, free) == PUBLISHED[name]
    leak = pdp.leakage(model, pdp.Count(values={model.domains[0][0]}), scale=2.0)
    assert leak.lower <= leak.value <= len(model.names) / 2 * (1 + 1e-9)


def test_asia_has_its_published_marginals():
    model = read_bif(FILES / "asia.bif", values={"yes": 1, "no": 0})
    table = model.to_table()
    assert table.domains == ((1, 0),) * 8
    marginals = {
        name: float(np.moveaxis(table.probabilities, axis, 0)[0].sum())
        for axis, name in enumerate(table.names)
    }  # Lauritzen and Spiegelhalter, 1988, section 2 and table 8
    expected = {"asia": 0.01, "tub": 0.0104, "smoke": 0.5, "lung": 0.055, "bronc": 0.45}
    expected |= {"either": 0.064828, "xray": 0.11029, "dysp": 0.435971}
    assert marginals == pytest.approx(expected, abs=5e-7)
    assert pdp.leakage(model, pdp.Sum(over=["lung", "bronc"])).exact


COINS = """network coins {{
}}
variable first {{
  type discrete [ 2 ] {{ heads, tails }};
}}
variable second {{
  type discrete [ 2 ] {{ heads, tails }};
}}
probability ( first ) {{
  table {first};
}}
probability ( second | first ) {{
  (heads) {heads};
  (tails) {tails};
}}
"""


def _coins(first="0.25, 0.75", heads="0.1, 0.9", tails="0.2, 0.8"):
    return COINS.format(first=first, heads=heads, tails=tails)


def test_compressed_files_and_numbers_for_states(tmp_path):
    file = tmp_path / "coins.bif.gz"
    file.write_bytes(gzip.compress(_coins(heads="0.3333, 0.6665").encode()))
    model = read_bif(file, values={"heads": 1, "tails": 0}, provenance="public")
    assert model.provenance == "public"
    assert model.domains == ((1, 0), (1, 0))
    joint = model.to_table().probabilities
    assert joint.sum() == pytest.approx(1, abs=1e-15)
    assert joint[0, 0] == pytest.approx(0.25 * 0.3333 / 0.9998)
    assert joint[1, 0] == pytest.approx(0.75 * 0.2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "no variable"),
        (_coins(first="0.5, 0.6"), "sum of 1"),
        (_coins(first="-0.5, 1.5"), "cannot read"),
        (_coins(first="nan, 1"), "cannot read"),
        (_coins(first="x, y"), "cannot read"),
        (_coins().replace("  (tails) 0.2, 0.8;\n", ""), "sum of 1"),
        (_coins().replace("(tails)", "(other)"), "cannot read"),
        (_coins()[: _coins().index("probability ( second")], "no table"),
    ],
)
def test_files_that_describe_no_law_are_refused(text, words, tmp_path):
    file = tmp_path / "coins.bif"
    file.write_text(text)
    with pytest.raises(pdp.ModelError, match=words):
        read_bif(file)


def test_files_that_cannot_be_opened(tmp_path):
    for name, content in (("a.bif", b"\xff\xfe"), ("b.bif.gz", b"not compressed")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(pdp.SourceError):
            read_bif(tmp_path / name)
    with pytest.raises(pdp.SourceError):
        read_bif(tmp_path / "absent.bif")


def test_incomplete_networks_and_other_things_are_refused():
    model = readwrite.BIFReader(str(FILES / "asia.bif")).get_model()
    assert network_of(model, provenance="private").provenance == "private"
    model.remove_cpds("lung")
    with pytest.raises(pdp.ModelError, match="no table"):
        network_of(model)
    with pytest.raises(pdp.ModelError, match="pgmpy"):
        network_of({})
