"""The picture of a network: drawn from public models only, the worst entry deepest."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.show.networks import network
from tests.support.networks import grid_edges, ising_factors


def grid(rows, columns, **options):
    domains = {place: [0, 1] for place in range(rows * columns)}
    return pdp.Network(
        factors=ising_factors(grid_edges(rows, columns), 0.2), domains=domains, **options
    )


def test_small_networks_show_what_is_learned_about_each():
    found = network(pdp.calibrate(grid(2, 3), pdp.Sum(), epsilon=1.0))
    assert found.target in ("entry 1", "entry 4")
    assert max(found.bounds) == pytest.approx(1.0, abs=1e-6)
    assert np.argsort(found.bounds)[-2:].tolist() in ([1, 4], [4, 1])
    assert len(found.couplings) == 7
    json.dumps(vars(found), allow_nan=False)


def test_large_networks_show_bounds():
    found = network(pdp.calibrate(grid(5, 6), pdp.Sum(), epsilon=1.0))
    assert max(found.bounds) <= 1.0
    assert min(found.bounds) < 0.7
    places = np.array(found.places)
    corner = np.linalg.norm(places - places.mean(axis=0), axis=1).argmax()
    assert corner in (0, 5, 24, 29)


def test_gaussian_networks_show_what_is_learned_about_each(tmp_path):
    feeder = [("station", "a"), ("a", "b"), ("a", "c"), ("c", "d")]
    model = pdp.GaussianNetwork.from_edges(feeder, strength=1.0, bounds=(0, 6))
    found = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
    shown = network(found)
    covariance = np.linalg.inv(model.precision.toarray())
    wanted = 6 * covariance.sum(axis=1) / covariance.diagonal() / found.scale
    np.testing.assert_allclose(shown.bounds, np.minimum(wanted, 1.0), rtol=1e-8)
    assert shown.target == model.names[int(wanted.argmax())]
    assert [pair[:2] for pair in shown.couplings] == [(0, 1), (1, 2), (1, 3), (3, 4)]
    assert shown.couplings[0][2] == pytest.approx(1 / np.sqrt(2 * 4))
    assert pdp.plots.network(found).axes
    assert "About whom most could be learned" in pdp.report(found, tmp_path / "p.html").read_text()
    noisy = pdp.calibrate(model, pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian")
    assert network(noisy) is None


def test_what_is_not_drawn():
    pair = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2)
    assert network(pdp.calibrate(pair, pdp.Sum())) is None
    with pytest.raises(pdp.PdpError, match="nothing to draw for network"):
        pdp.plots.network(pdp.calibrate(pair, pdp.Sum()))
    with pytest.warns(pdp.PrivacyLeakWarning):
        private = pdp.calibrate(grid(2, 2, provenance="private"), pdp.Sum())
    with pytest.raises(pdp.ModelError, match="private rows"):
        pdp.plots.network(private)


def test_it_is_drawn_and_in_reports(tmp_path):
    found = pdp.calibrate(grid(2, 3), pdp.Sum(), epsilon=1.0)
    for theme in ("light", "dark"):
        assert pdp.plots.network(found, theme=theme).axes
    page = pdp.report(found, tmp_path / "page.html").read_text()
    assert "About whom most could be learned" in page
