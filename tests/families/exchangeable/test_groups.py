"""Exchangeable and unknown groups against the oracle, at all scales, in blocks, and bad input."""

import math

import numpy as np
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from tests.oracles import brute_force as oracle
from tests.support.marks import bounds_checked
from tests.support.random_models import adversary_kinds
from tests.support.random_time import random_group, random_query


def bracket_holds(leak, truth, *, scale):
    """The truth lies in the bracket, and the bracket is as narrow as rounding allows."""
    slack = 1e-13 * (1 + 100 / scale)  # of the oracle's own rounding
    assert leak.value >= truth * (1 - 1e-12) - slack
    assert leak.lower <= truth * (1 + 1e-12) + slack
    assert leak.value - leak.lower <= 1e-9 * max(leak.value, 1.0, 1 / scale)


@pytest.mark.parametrize("seed", bounds_checked(range(60), 8, quick=30))
def test_groups_equal_the_oracle_for_every_kind_of_adversary(seed):
    rng = np.random.default_rng(seed)
    group = random_group(rng)
    query, function = random_query(rng, group)
    scale = float(rng.choice([1e-3, 0.3, 1.0, 7.0, 1e4]))
    cells = group.to_table().probabilities
    for adversaries, admits in adversary_kinds(rng, group.names):
        truth, _ = oracle.worst_leakage(cells, group.domains, function, scale, admits)
        leak = pdp.leakage(group, query, scale=scale, adversaries=adversaries)
        bracket_holds(leak, truth, scale=scale)
        witness = leak.witness
        if witness is not None and len(witness.known) < len(group.names) - 1:
            there = oracle.placed(witness, group.names)
            ratio = oracle.log_density_ratio(cells, group.domains, function, scale, there)
            assert ratio >= leak.lower * (1 - 1e-9) - 1e-13 * (1 + 100 / scale)


@pytest.mark.parametrize("seed", range(10))
def test_two_categories_are_a_binary_group(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(7, 12))
    law = rng.dirichlet(np.ones(size + 1))
    binary = pdp.BinaryGroup(count_probabilities=law)
    counts = {(size - ones, ones): p for ones, p in enumerate(law)}
    several = pdp.CategoryGroup(size=size, categories=[0, 1], count_probabilities=counts)
    over = list(range(int(rng.integers(1, size))))
    for query in (pdp.Sum(), pdp.Sum(over=over)):
        first = pdp.leakage(binary, query, scale=2.0)
        second = pdp.leakage(several, query, scale=2.0)
        assert first.value == pytest.approx(second.value, rel=1e-9)


def test_members_outside_the_query_still_matter():
    group = pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.1, 0.4])
    leak = pdp.leakage(group, pdp.Sum(over=[0, 1]), scale=1.0)
    pair = pdp.BinaryGroup(count_probabilities=[0.4 + 0.1 / 3, 0.4 / 3, 0.4 + 0.1 / 3])
    assert leak.value > pdp.leakage(pair, pdp.Sum(), scale=1.0).value


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_any_scale_is_finite_and_right(factor):
    law = stats.betabinom.pmf(np.arange(31), 30, 0.5, 0.7)
    group = pdp.BinaryGroup(count_probabilities=law / law.sum())
    leak = pdp.leakage(group, pdp.Sum(), scale=factor)
    assert leak.exact
    assert 1 / factor <= leak.value <= 30 / factor * (1 + 1e-12)


def test_an_extreme_law_is_told_in_logarithms():
    law = np.full(41, 1e-300)
    law[[0, 40]] = 0.5
    leak = pdp.leakage(pdp.BinaryGroup(count_probabilities=law), pdp.Sum(), scale=10.0)
    assert leak.value == pytest.approx(4.0, rel=1e-9)


def test_calibration_is_tight_and_between_plain_and_group():
    law = stats.betabinom.pmf(np.arange(21), 20, 2, 3)
    group = pdp.BinaryGroup(count_probabilities=law / law.sum())
    cal = pdp.calibrate(group, pdp.Sum(), epsilon=1.0)
    assert cal.leakage.value <= 1.0
    assert pdp.leakage(group, pdp.Sum(), scale=cal.scale * (1 - 1e-6)).value > 1.0
    assert cal.baselines["dp"] == 1.0 < cal.scale < cal.baselines["group"] == 20.0
    again = pdp.Calibration.from_json(cal.to_json())
    assert again.model == group
    assert again.scale == cal.scale


def test_a_survey_of_a_million_costs_its_largest_household():
    homes = [
        pdp.BinaryGroup(count_probabilities=[0.6, 0.4]),
        pdp.BinaryGroup(count_probabilities=[0.5, 0.1, 0.4]),
        pdp.CategoryGroup(size=2, categories=[0, 1], count_probabilities=[0.5, 0.1, 0.4]),
        pdp.Unknown(size=3, domain=[0, 1]),
    ]
    survey = pdp.Blocks(models=homes, counts=[400_000, 200_000, 1, 50_000])
    cal = pdp.calibrate(survey, pdp.Sum())
    assert cal.scale == pytest.approx(3.0, rel=1e-9)
    assert cal.baselines["group"] == 3.0
    pairs = pdp.Blocks(models=homes[:3], counts=[400_000, 200_000, 1])
    alone = pdp.calibrate(homes[1], pdp.Sum())
    assert pdp.calibrate(pairs, pdp.Sum()).scale == pytest.approx(alone.scale, rel=1e-9)
    weakest = pdp.calibrate(pairs, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert weakest.leakage.lower <= weakest.leakage.value <= 1.0


def test_few_blocks_are_written_out_exactly():
    pair = pdp.BinaryGroup(count_probabilities=[0.5, 0.1, 0.4])
    chain = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=2)
    leak = pdp.leakage(
        pdp.Blocks(models=[pair, chain], counts=[2, 1]),
        pdp.Sum(),
        adversaries=pdp.Adversaries.weakest(),
    )
    tables = pdp.Blocks(models=[pair.to_table(), chain.to_table()], counts=[2, 1], names="abcd")
    same = pdp.leakage(tables, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert leak.exact
    assert leak.value == pytest.approx(same.value, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_hidden_blocks_bracket_the_truth(seed):
    """Too many blocks to write out: the bracket still holds the value of fewer of them."""
    rng = np.random.default_rng(seed)
    pair = pdp.BinaryGroup(count_probabilities=rng.dirichlet(np.ones(3)))
    few = pdp.leakage(
        pdp.Blocks(models=[pair], counts=[4]), pdp.Sum(), adversaries=pdp.Adversaries.weakest()
    )
    many = pdp.leakage(
        pdp.Blocks(models=[pair], counts=[100]), pdp.Sum(), adversaries=pdp.Adversaries.weakest()
    )
    assert few.exact
    assert many.lower <= few.value * (1 + 1e-9)  # more noise never leaks more
    assert many.value >= few.lower * (1 - 1e-9)


def test_unknown_is_group_privacy():
    group = pdp.Unknown(size=4, bounds=(0, 5))
    leak = pdp.leakage(group, pdp.Sum(), scale=2.0)
    assert leak.exact
    assert leak.value == pytest.approx(10.0)
    some = pdp.Adversaries.knowing(at_least=1)
    assert pdp.leakage(group, pdp.Sum(), adversaries=some).value == pytest.approx(15.0)
    one = pdp.Adversaries.exactly(0, known=[1, 2])
    assert pdp.leakage(group, pdp.Sum(), adversaries=one).value == pytest.approx(10.0)
    strongest = pdp.Adversaries.strongest()
    assert pdp.leakage(group, pdp.Sum(), adversaries=strongest).value == pytest.approx(5.0)
    assert pdp.calibrate(group, pdp.Mean()).scale == pytest.approx(5.0)
    weighted = pdp.leakage(group, pdp.Linear(weights=[3, -1, 0, 0]))
    assert weighted.value == pytest.approx(20.0)


def test_unequal_weights_in_a_large_group_are_refused_with_a_hint():
    law = np.full(31, 1 / 31)
    group = pdp.BinaryGroup(count_probabilities=law)
    with pytest.raises(pdp.UnsupportedQueryError, match="same weight"):
        pdp.leakage(group, pdp.Linear(weights=range(1, 31)))
    several = pdp.CategoryGroup(
        size=20, categories=[0, 1, 2], count_probabilities=np.full(231, 1 / 231)
    )
    with pytest.raises(pdp.UnsupportedQueryError, match="same weight"):
        pdp.leakage(several, pdp.Linear(weights=range(1, 21)))
    with pytest.raises(pdp.UnsupportedQueryError, match="JointTable"):
        pdp.leakage(pdp.Unknown(size=2, domain=[0, 1]), pdp.Custom(function=max))


def test_any_function_of_a_small_group_goes_through_its_table():
    group = pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.1, 0.4])
    leak = pdp.leakage(group, pdp.Custom(function=max), scale=0.5)
    truth, _ = oracle.worst_leakage(
        group.to_table().probabilities, group.domains, max, 0.5, lambda i, known: True  # noqa: ARG005
    )  # fmt: skip
    assert leak.value == pytest.approx(truth, rel=1e-9)
    assert leak.witness.model is group


def test_time_limits_give_wider_brackets():
    law = np.full(61, 1 / 61)
    group = pdp.BinaryGroup(count_probabilities=law)
    cut = pdp.leakage(group, pdp.Sum(), scale=5.0, time_limit=0)
    full = pdp.leakage(group, pdp.Sum(), scale=5.0)
    assert cut.lower <= full.value <= cut.value <= 60 / 5.0 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pdp.BinaryGroup(count_probabilities=[0.5, 0.6]), "sum to 1, got 1.1"),
        (lambda: pdp.BinaryGroup(count_probabilities=[1.2, -0.2]), "not be negative"),
        (lambda: pdp.BinaryGroup(count_probabilities=[1.0]), "m ≥ 1 members"),
        (lambda: pdp.BinaryGroup(count_probabilities=[math.nan, 1.0]), "finite"),
        (lambda: pdp.BinaryGroup(count_probabilities=[[0.5, 0.5]]), "m ≥ 1 members"),
        (lambda: pdp.BinaryGroup(count_probabilities=[1 - 1e-310, 1e-310]), "at least"),
        (lambda: pdp.BinaryGroup(count_probabilities=[0.5, 0.5], names="ab"), "one per tuple"),
        (lambda: categories(size=0), "positive whole number"),
        (lambda: categories(size=True), "positive whole number"),
        (lambda: categories(categories=[0, 0]), "repeat a value"),
        (lambda: categories(count_probabilities={(1, 0): 1.0}), "counts that sum to 2"),
        (lambda: categories(count_probabilities=[0.5, 0.5]), "one entry per composition"),
        (lambda: categories(size=5000, categories=range(5)), "at most 2\\^22"),
        (lambda: pdp.Unknown(size=2), "either domain= or bounds="),
        (lambda: pdp.Unknown(size=2, domain=[0], bounds=(0, 1)), "either domain= or bounds="),
        (lambda: pdp.Unknown(size=2, bounds=(1, 0)), "lo < hi"),
        (lambda: pdp.Unknown(size=2, bounds=(0, math.inf)), "finite"),
        (lambda: pdp.Unknown(size=2.5, domain=[0, 1]), "positive whole number"),
    ],
)
def test_bad_groups_are_refused(make, message):
    with pytest.raises(pdp.ModelError, match=message):
        make()


def categories(**changes):
    given = {"size": 2, "categories": [0, 1], "count_probabilities": {(2, 0): 0.5, (0, 2): 0.5}}
    return pdp.CategoryGroup(**(given | changes))


@pytest.mark.parametrize(
    "model",
    [
        pdp.BinaryGroup(count_probabilities=[0.25, 0.5, 0.25]),
        categories(names=["a", "b"]),
        pdp.Unknown(size=3, domain=["x", "y"]),
        pdp.Unknown(size=3, bounds=(-1, 2.5)),
    ],
)
def test_groups_travel_through_json_and_compare_by_value(model):
    assert Model.from_dict(model.to_dict()) == model
    assert hash(Model.from_dict(model.to_dict())) == hash(model)
    assert "0.25" not in repr(model)
    assert len({model, Model.from_dict(model.to_dict())}) == 1
    private = type(model).from_parameters(model.to_dict() | {"provenance": "private"})
    assert private != model
    assert Model.from_dict(private.to_dict()) is None
