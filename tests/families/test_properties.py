"""Properties that hold for every table (Hypothesis looks for one that breaks them)."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pdp_calibrate as pdp

PROFILE = settings(max_examples=60, deadline=None)


@st.composite
def tables(draw, most_tuples=3):
    sizes = draw(st.lists(st.integers(2, 3), min_size=1, max_size=most_tuples))
    weights = draw(
        st.lists(
            st.one_of(st.just(0.0), st.floats(1e-6, 1.0)),
            min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes)),
        ).filter(lambda found: sum(found) > 0)
    )  # fmt: skip
    cells = np.array(weights).reshape(sizes)
    value = st.one_of(
        st.integers(-5, 5), st.floats(-5, 5, allow_subnormal=False).map(lambda v: round(v, 3))
    )
    domains = [draw(st.lists(value, min_size=k, max_size=k, unique=True)) for k in sizes]
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


scales = st.floats(0.05, 50.0)
kinds = st.sampled_from(
    [pdp.Adversaries.all(), pdp.Adversaries.weakest(), pdp.Adversaries.strongest()]
)


@PROFILE
@given(tables(), scales, st.floats(1.0, 20.0), kinds)
def test_leakage_does_not_increase_with_the_scale(table, scale, factor, adversaries):
    small = pdp.leakage(table, pdp.Sum(), scale=scale, adversaries=adversaries)
    large = pdp.leakage(table, pdp.Sum(), scale=scale * factor, adversaries=adversaries)
    assert large.lower <= small.value


@PROFILE
@given(tables(), scales, st.randoms(use_true_random=False))
def test_leakage_ignores_order_names_and_shifts(table, scale, random):
    order = list(range(len(table.names)))
    random.shuffle(order)
    domains = [[value + 3 for value in table.domains[axis]][::-1] for axis in order]
    cells = np.flip(table.probabilities.transpose(order))
    relabelled = pdp.JointTable(
        probabilities=cells, domains=domains, names=[f"n{k}" for k in order]
    )
    one = pdp.leakage(table, pdp.Sum(), scale=scale)
    other = pdp.leakage(relabelled, pdp.Sum(), scale=scale)
    assert other.value == pytest.approx(one.value, rel=1e-8, abs=1e-9)


@PROFILE
@given(tables(), scales, st.sampled_from([-2.0, 0.25, 1000.0]))
def test_leakage_depends_on_the_ratio_of_weight_and_scale(table, scale, factor):
    one = pdp.leakage(table, pdp.Sum(), scale=scale)
    query = pdp.Linear(weights=[factor] * len(table.names))
    other = pdp.leakage(table, query, scale=scale * abs(factor))
    assert other.value == pytest.approx(one.value, rel=1e-9, abs=1e-12)


@PROFILE
@given(tables(), scales)
def test_more_adversaries_never_learn_less(table, scale):
    n = len(table.names)
    everyone = pdp.leakage(table, pdp.Sum(), scale=scale).value
    for adversaries in (
        pdp.Adversaries.weakest(),
        pdp.Adversaries.strongest(),
        pdp.Adversaries.knowing(at_least=n // 2),
        pdp.Adversaries.exactly(table.names[0]),
    ):
        leak = pdp.leakage(table, pdp.Sum(), scale=scale, adversaries=adversaries)
        assert leak.lower <= everyone


@PROFILE
@given(tables(), scales)
def test_between_plain_dp_and_group_dp(table, scale):
    leak = pdp.leakage(table, pdp.Sum(), scale=scale)
    local = pdp.sensitivity(table, pdp.Sum()).local
    assert leak.value >= max(local.values()) / scale * (1 - 1e-12)
    assert leak.lower <= sum(local.values()) / scale * (1 + 1e-12)
    assert leak.lower <= leak.value
    assert leak.exact


@PROFILE
@given(tables(most_tuples=2), tables(most_tuples=2), scales)
def test_an_independent_tuple_changes_nothing_and_a_larger_set_never_lowers(one, two, scale):
    alone = [pdp.leakage(table, pdp.Sum(), scale=scale).value for table in (one, two)]
    both = pdp.leakage(pdp.Blocks(models=[one, two]), pdp.Sum(), scale=scale).value
    assert both == pytest.approx(max(alone), rel=1e-12)
    if one.domains == two.domains:
        wider = pdp.leakage(pdp.ModelSet(models=[one, two]), pdp.Sum(), scale=scale).value
        assert wider >= max(alone) * (1 - 1e-12)


@settings(max_examples=25, deadline=None)
@given(tables(), st.floats(0.05, 5.0))
def test_calibrations_prove_themselves_and_survive_json(table, epsilon):
    cal = pdp.calibrate(table, pdp.Sum(), epsilon=epsilon)
    assert cal.leakage.value <= epsilon
    assert pdp.leakage(table, pdp.Sum(), scale=cal.scale * (1 - 1e-6)).value > epsilon
    assert pdp.Calibration.from_json(cal.to_json()).scale == cal.scale
