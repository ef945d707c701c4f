"""What must hold for a model of any family (Hypothesis looks for one that breaks it)."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from tests.support.families import FAMILIES

PROFILE = settings(max_examples=8, deadline=None)
every_family = pytest.mark.parametrize("family", FAMILIES)
seeds = st.integers(0, 2**32 - 1)
scales = st.floats(0.1, 20.0)


def drawn(family, seed):
    return FAMILIES[family].draw(np.random.default_rng(seed))


def leak(model, scale, weight=1.0):
    query = pdp.Sum() if weight == 1 else pdp.Linear(weights=[weight] * len(model.names))
    return pdp.leakage(model, query, scale=scale)


@every_family
@PROFILE
@given(seeds, scales)
def test_equals_brute_force(family, seed, scale):
    model = drawn(family, seed)
    found, truth = leak(model, scale), FAMILIES[family].truth(model, scale)
    assert found.value >= truth * (1 - 1e-12)
    assert found.value == pytest.approx(truth, rel=1e-8, abs=1e-10)
    assert found.lower <= truth * (1 + 1e-9) + 1e-10


@every_family
@PROFILE
@given(seeds)
def test_json_gives_the_same_model(family, seed):
    model = drawn(family, seed)
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again == model
    assert hash(again) == hash(model)
    assert again.names == model.names
    assert again.digest == model.digest


@every_family
@PROFILE
@given(seeds, scales)
def test_names_do_not_matter(family, seed, scale):
    model = drawn(family, seed)
    other = Model.from_dict(relabelled(model.to_dict(), "new"))
    assert other.names != model.names
    assert leak(other, scale).value == pytest.approx(leak(model, scale).value, rel=1e-9, abs=1e-12)


def relabelled(described, prefix):
    """Give every tuple another name, the same in all members of a set."""
    changed = dict(described)
    if "names" in changed:
        changed["names"] = [f"{prefix} {place}" for place, _ in enumerate(changed["names"])]
    for part in ("center", "base"):
        if isinstance(changed.get(part), dict):
            changed[part] = relabelled(changed[part], prefix)
    if "models" in changed:
        apart = changed["type"] == "Blocks"
        changed["models"] = [
            relabelled(member, f"{prefix} {place}" if apart else prefix)
            for place, member in enumerate(changed["models"])
        ]
    return changed


@every_family
@PROFILE
@given(seeds, scales, st.sampled_from([-2.0, 0.25, 1000.0, 1e-6]))
def test_other_units_need_other_scales(family, seed, scale, factor):
    model = drawn(family, seed)
    same = leak(model, scale * abs(factor), weight=factor)
    assert same.value == pytest.approx(leak(model, scale).value, rel=1e-9, abs=1e-12)


@every_family
@PROFILE
@given(seeds, scales)
def test_an_independent_tuple_changes_nothing(family, seed, scale):
    model = drawn(family, seed)
    stranger = pdp.JointTable(probabilities=[0.3, 0.7], domains=[[0, 1e-9]], names=["stranger"])
    blocks = model.models if isinstance(model, pdp.Blocks) else [model]
    both = pdp.Blocks(models=[*blocks, stranger])
    alone = leak(model, scale).value
    assert leak(both, scale).value == pytest.approx(max(alone, 1e-9 / scale), rel=1e-12)


@every_family
@PROFILE
@given(seeds, scales, st.floats(1.0, 20.0))
def test_more_noise_never_leaks_more(family, seed, scale, factor):
    model = drawn(family, seed)
    assert leak(model, scale * factor).lower <= leak(model, scale).value


@every_family
@settings(max_examples=6, deadline=None)
@given(seeds, st.floats(0.1, 4.0))
def test_the_scale_holds_and_is_tight(family, seed, epsilon):
    model = drawn(family, seed)
    truth = FAMILIES[family].truth
    if truth(model, 1.0) == 0:
        return  # a single possible answer needs no noise
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=epsilon)
    assert truth(model, cal.scale) <= epsilon * (1 + 1e-12)
    if FAMILIES[family].exact:
        assert truth(model, cal.scale * (1 - 1e-6)) > epsilon


@PROFILE
@given(seeds, scales, st.floats(0, 0.4), st.floats(0, 0.4))
def test_a_larger_ball_never_leaks_less(seed, scale, radius, more):
    center = drawn("Gaussian", seed)
    small, large = (
        leak(pdp.LoewnerBall(center=center, radius=tau), scale) for tau in (radius, radius + more)
    )
    assert large.value >= small.lower
    assert small.value >= leak(center, scale).lower


@PROFILE
@given(seeds, scales, st.floats(0, 0.5), st.floats(0, 0.4))
def test_a_larger_range_of_correlations_never_leaks_less(seed, scale, low, more):
    size = 2 + seed % 5
    one, wider = (
        pdp.GaussianGroup(size=size, correlation=rho, bounds=(0, 1))
        for rho in (low, (low, low + more))
    )
    assert leak(wider, scale).value >= leak(one, scale).lower


@PROFILE
@given(seeds, scales)
def test_engines_agree_where_they_overlap(seed, scale):
    """A chain and a group as tables, never above any dependence; a group as a covariance."""
    for family in ("MarkovChain", "groups"):
        model = drawn(family, seed)
        found = leak(model, scale)
        assert leak(model.to_table(), scale).value == pytest.approx(
            found.value, rel=1e-8, abs=1e-10
        )
        anything = pdp.Unknown(size=len(model.names), domain=model.domains[0])
        assert leak(anything, scale).value >= found.lower
    group = pdp.GaussianGroup(size=4, correlation=0.3, bounds=(0, 1))
    matrix = pdp.Gaussian.from_correlation(
        np.full((4, 4), 0.3) + 0.7 * np.eye(4), std=1.0, bounds=(0, 1)
    )
    assert leak(matrix, scale).value == pytest.approx(leak(group, scale).value, rel=1e-9)
