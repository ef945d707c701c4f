"""An adversary's beliefs before and after an output, beyond the paper's example."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp

SUM = pdp.Sum()


@pytest.fixture
def table():
    law = np.random.default_rng(3).dirichlet(np.ones(12)).reshape(2, 3, 2)
    return pdp.JointTable(probabilities=law, domains=[(0, 1), (-1, 0, 4), (0, 2)])


def by_bayes(table, function, scale, target, known, output):
    """Weigh every database by its probability and the density of the output."""
    weights = dict.fromkeys(table.domains[table.names.index(target)], 0.0)
    for cell in itertools.product(*table.domains):
        database = dict(zip(table.names, cell, strict=True))
        if all(database[name] == value for name, value in known.items()):
            place = tuple(d.index(v) for d, v in zip(table.domains, cell, strict=True))
            density = math.exp(-abs(output - function(cell)) / scale)
            weights[database[target]] += table.probabilities[place] * density
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()}


@pytest.mark.parametrize("known", [{}, {"x3": 2}, {"x1": 1, "x3": 0}])
@pytest.mark.parametrize(("query", "function"), [(SUM, sum), (pdp.Custom(function=max), max)])
def test_bayes_rule(table, known, query, function):
    for output in (-3.0, 0.4, 7.0):
        found = pdp.posterior(table, query, scale=0.8, target="x2", known=known, output=output)
        expected = by_bayes(table, function, 0.8, "x2", known, output)
        assert found.posterior == pytest.approx(expected, rel=1e-12)
        assert found.prior == pytest.approx(by_bayes(table, function, 1e12, "x2", known, 0))


def test_limits_are_attained_beyond_the_atoms(table):
    far = pdp.posterior(table, SUM, scale=0.8, target="x2", output=-math.inf)
    near = pdp.posterior(table, SUM, scale=0.8, target="x2", output=-1.0)
    assert far == near


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_extreme_scales(table, scale):
    found = pdp.posterior(table, SUM, scale=scale, target="x2", output=-1.0)
    assert math.fsum(found.posterior.values()) == pytest.approx(1)
    leak = pdp.leakage(table, SUM, scale=scale, adversaries=pdp.Adversaries.exactly("x2"))
    witness = leak.witness
    found = pdp.posterior(
        table, SUM, scale=scale, target="x2", known=witness.known, output=witness.output
    )
    assert found.log_odds_gain(*witness.secrets) == pytest.approx(leak.value, rel=1e-8)


def test_a_large_offset_keeps_its_digits():
    law = [[0.3, 0.2], [0.2, 0.3]]
    small = pdp.JointTable(probabilities=law, domains=[(0, 1), (0, 1)])
    large = pdp.JointTable(probabilities=law, domains=[(0, 1), (10**9, 10**9 + 1)])
    near = pdp.posterior(small, SUM, scale=1.0, target="x1", output=0.25)
    far = pdp.posterior(large, SUM, scale=1.0, target="x1", output=10**9 + 0.25)
    assert far.posterior == pytest.approx(near.posterior, rel=1e-12)


def test_impossible_values():
    law = [[0.5, 0.0, 0.0], [0.0, 0.25, 0.25]]
    table = pdp.JointTable(probabilities=law, domains=[(0, 1), (0, 1, 2)])
    # Knowing everyone else, an impossible value has no weight but still a likelihood.
    beliefs = pdp.posterior(table, SUM, scale=1.0, target="x2", known={"x1": 0}, output=2.0)
    assert beliefs.posterior == {0: 1.0, 1: 0.0, 2: 0.0}
    assert beliefs.log_odds_gain(2, 0) == pytest.approx(2.0)
    wide = pdp.JointTable(
        probabilities=np.multiply.outer(law, [0.5, 0.5]), domains=[*table.domains, (0, 1)]
    )
    beliefs = pdp.posterior(wide, SUM, scale=1.0, target="x2", known={"x1": 0}, output=2.0)
    with pytest.raises(pdp.PdpError, match="can occur"):
        beliefs.log_odds_gain(2, 0)
    with pytest.raises(pdp.PdpError, match="cannot occur"):
        pdp.posterior(
            wide, SUM, scale=1.0, target="x2", known={"x1": 0}, output=2.0, prior={2: 1.0}
        )


@pytest.mark.parametrize(
    "bad",
    [
        {"scale": 0.0},
        {"output": math.nan},
        {"target": "y"},
        {"known": {"x2": 0}},
        {"known": {"x3": 7}},
        {"known": {"y": 0}},
        {"prior": {9: 1.0}},
        {"prior": {-1: 0.5, 0: 0.4}},
        {"prior": {-1: 1.5, 0: -0.5}},
        {"prior": {-1: math.nan}},
    ],
)
def test_bad_input(table, bad):
    arguments = {"scale": 1.0, "target": "x2", "output": 1.0} | bad
    with pytest.raises(pdp.PdpError):
        pdp.posterior(table, SUM, **arguments)


def test_other_models_and_impossible_knowledge():
    table = pdp.JointTable(probabilities=[[0.5, 0.0], [0.5, 0.0]], domains=[(0, 1), (0, 1)])
    with pytest.raises(pdp.ModelError, match="probability zero"):
        pdp.posterior(table, SUM, scale=1.0, target="x1", known={"x2": 1}, output=0.0)
    with pytest.raises(pdp.ModelError, match="JointTable"):
        pdp.posterior(pdp.ModelSet(models=[table]), SUM, scale=1.0, target="x1", output=0.0)
