"""Networks of pgmpy."""

from pathlib import Path

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate_integrations.pgmpy import network_of

readwrite = pytest.importorskip("pgmpy.readwrite")
FILES = Path(__file__).parents[1] / "fixtures" / "bif"


def test_a_network_of_pgmpy_has_the_same_law():
    file = FILES / "asia.bif"
    ours = pdp.read_bif(file)
    theirs = network_of(readwrite.BIFReader(str(file)).get_model())
    order = [theirs.names.index(name) for name in ours.names]
    joint = np.transpose(theirs.to_table().probabilities, order)
    assert [theirs.domains[place] for place in order] == list(ours.domains)
    np.testing.assert_allclose(joint, ours.to_table().probabilities, atol=1e-15)
    query = pdp.Count(values={"yes"})
    value = pdp.leakage(theirs, query).value
    assert value == pytest.approx(pdp.leakage(ours, query).value, rel=1e-9)


def test_incomplete_networks_and_other_things_are_refused():
    model = readwrite.BIFReader(str(FILES / "asia.bif")).get_model()
    assert network_of(model, provenance="private").provenance == "private"
    model.remove_cpds("lung")
    with pytest.raises(pdp.ModelError, match="no table"):
        network_of(model)
    with pytest.raises(pdp.ModelError, match="pgmpy"):
        network_of({})
