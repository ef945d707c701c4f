"""An adversary's beliefs before and after an output, beyond the paper's example."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

SUM = pdp.Sum()


@pytest.fixture
def table():
    law = np.random.default_rng(3).dirichlet(np.ones(12)).reshape(2, 3, 2)
    return pdp.JointTable(probabilities=law, domains=[(0, 1), (-1, 0, 4), (0, 2)])


def by_bayes(table, functions, scales, target, known, output):
    """Weigh every database by its probability and the density of the outputs, one per function."""
    weights = dict.fromkeys(table.domains[table.names.index(target)], 0.0)
    for cell in itertools.product(*table.domains):
        database = dict(zip(table.names, cell, strict=True))
        if all(database[name] == value for name, value in known.items()):
            place = tuple(d.index(v) for d, v in zip(table.domains, cell, strict=True))
            each = zip(output, functions, scales, strict=True)
            distance = sum(abs(r - function(cell)) / scale for r, function, scale in each)
            weights[database[target]] += table.probabilities[place] * math.exp(-distance)
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()}


@pytest.mark.parametrize("known", [{}, {"x3": 2}, {"x1": 1, "x3": 0}])
@pytest.mark.parametrize(("query", "function"), [(SUM, sum), (pdp.Custom(function=max), max)])
def test_bayes_rule(table, known, query, function):
    for output in (-3.0, 0.4, 7.0):
        found = pdp.posterior(table, query, scale=0.8, target="x2", known=known, output=output)
        expected = by_bayes(table, [function], [0.8], "x2", known, [output])
        assert found.posterior == pytest.approx(expected, rel=1e-12)
        assert found.prior == pytest.approx(by_bayes(table, [function], [1e12], "x2", known, [0]))


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


HISTOGRAM = pdp.Histogram(categories=[0, 4])


@pytest.mark.parametrize("known", [{}, {"x3": 2}])
def test_bayes_rule_with_every_category_of_a_histogram(table, known):
    counts = [lambda cell: cell.count(0), lambda cell: cell.count(4)]
    options = {"scale": 0.8, "target": "x2", "known": known}
    for output in ((0.0, 1.0), (2.0, -3.0), (0.3, 0.4)):
        found = pdp.posterior(table, HISTOGRAM, output=output, **options)
        expected = by_bayes(table, counts, [0.8, 0.8], "x2", known, output)
        assert found.posterior == pytest.approx(expected, rel=1e-12)
        by_category = {4: output[1], 0: output[0]}
        for same in (list(output), np.array(output), by_category, pd.Series(by_category)):
            assert pdp.posterior(table, HISTOGRAM, output=same, **options) == found
    noisy = pdp.calibrate(table, HISTOGRAM).release({"x1": 0, "x2": 4, "x3": 0})
    assert pdp.posterior(table, HISTOGRAM, output=noisy.value, **options).posterior


def test_bayes_rule_with_a_list_of_queries(table):
    queries, scales = [SUM, HISTOGRAM], [2.0, 0.8]
    functions = [sum, lambda cell: cell.count(0), lambda cell: cell.count(4)]
    expected = by_bayes(table, functions, [2.0, 0.8, 0.8], "x2", {}, (1.5, 1.0, 0.0))
    for output in ((1.5, (1.0, 0.0)), [1.5, {4: 0.0, 0: 1.0}], (1.5, 1.0, 0.0)):
        found = pdp.posterior(table, queries, scale=scales, target="x2", output=output)
        assert found.posterior == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("query", [pdp.Histogram(), [pdp.Histogram(), SUM], pdp.Count(values={4})])
def test_the_worst_output_gains_the_leakage(query):
    law = np.array([[0.4, 0.1], [0.1, 0.4]])
    couple = pdp.JointTable(probabilities=law, domains=[[0, 4]] * 2)
    leak = pdp.leakage(couple, query, scale=0.7, adversaries=pdp.Adversaries.weakest())
    witness = leak.witness
    found = pdp.posterior(
        couple, query, scale=0.7, target=witness.target, known=witness.known, output=witness.output
    )
    assert found.log_odds_gain(*witness.secrets) == pytest.approx(leak.value, rel=1e-9)


@pytest.mark.parametrize(
    ("query", "output"),
    [
        (SUM, (1.0, 2.0)),
        (SUM, "1.0"),
        (SUM, None),
        (SUM, 1j),
        (SUM, {0: 1.0}),
        (SUM, {1.0}),
        (HISTOGRAM, 1.0),
        (HISTOGRAM, (1.0, 2.0, 3.0)),
        (HISTOGRAM, (1.0, math.nan)),
        (HISTOGRAM, ((1.0, 2.0), (1.0, 2.0))),
        (HISTOGRAM, {0: 1.0}),
        (HISTOGRAM, {0: 1.0, 4: 1.0, 2: 1.0}),
        (HISTOGRAM, ("a", "b")),
        ([SUM, HISTOGRAM], 1.0),
        ([SUM, HISTOGRAM], (1.0, 2.0)),
        ([SUM, HISTOGRAM], {"a": 1.0, "b": 2.0}),
        ([SUM, HISTOGRAM], "ab"),
    ],
)
def test_outputs_that_do_not_answer_the_query_are_refused(table, query, output):
    with pytest.raises(pdp.PdpError, match=r"output|by category"):
        pdp.posterior(table, query, scale=1.0, target="x1", output=output)


def test_a_list_needs_a_scale_for_each_query(table):
    with pytest.raises(pdp.PdpError, match="one number per query"):
        pdp.posterior(table, [SUM, SUM], scale=[1.0], target="x1", output=(0.0, 0.0))


def test_gaussian_noise_moves_beliefs_without_limit(table):
    def gain(output):
        found = pdp.posterior(table, SUM, scale=2.0, target="x2", output=output, noise="gaussian")
        assert sum(found.posterior.values()) == pytest.approx(1.0)
        return found.log_odds_gain(max(found.prior), min(found.prior))

    place, law = table.names.index("x2"), {}
    for cell in np.ndindex(table.probabilities.shape):
        held = [domain[at] for domain, at in zip(table.domains, cell, strict=True)]
        density = math.exp(-(((3.0 - sum(held)) / 2.0) ** 2) / 2)
        one = law.setdefault(held[place], [0.0, 0.0])
        one[0] += table.probabilities[cell] * density
        one[1] += table.probabilities[cell]
    likelihoods = {value: joint / own for value, (joint, own) in law.items()}
    wanted = math.log(likelihoods[max(law)] / likelihoods[min(law)])
    assert gain(3.0) == pytest.approx(wanted, rel=1e-12)
    assert gain(3.0) < gain(30.0) < gain(300.0)
    with pytest.raises(pdp.PdpError, match="without limit"):
        gain(math.inf)
    with pytest.raises(pdp.PdpError, match="laplace"):
        pdp.posterior(table, SUM, scale=2.0, target="x2", output=1.0, noise="normal")
