"""Gaussian groups and series: every kind of adversaries, against dense matrices and quadrature."""

import dataclasses
import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from tests.oracles import gaussian as oracle
from tests.oracles.adversaries import every_adversary
from tests.support.marks import slow_after
from tests.support.random_models import adversary_kinds


def dense(model, covariance):
    return pdp.Gaussian(
        mean=np.zeros(len(model.names)),
        covariance=covariance,
        bounds=model.bounds,
        names=model.names,
    )


def group_covariance(size, rho):
    return (1 - rho) * np.eye(size) + rho


def series_covariance(length, phi):
    steps = np.arange(length)
    return float(phi) ** np.abs(steps[:, None] - steps)


def random_query(rng, size):
    weights = rng.normal(size=size).round(2) * (rng.random(size) < 0.8)
    weights[rng.integers(size)] = 1.0
    return pdp.Linear(weights=weights.tolist()) if rng.random() < 0.6 else pdp.Sum()


def equals_the_dense_engine(rng, model, covariance, *, scale):
    query, written_out = random_query(rng, len(model.names)), dense(model, covariance)
    for adversaries, _ in adversary_kinds(rng, model.names):
        expected = pdp.leakage(written_out, query, scale=scale, adversaries=adversaries)
        leak = pdp.leakage(model, query, scale=scale, adversaries=adversaries)
        assert leak.value == pytest.approx(expected.value, rel=1e-9, abs=1e-10), adversaries
        assert leak.exact


@pytest.mark.parametrize("seed", slow_after(30, range(60)))
def test_groups_equal_the_dense_engine(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    rho = float(rng.uniform(-0.9 / max(size - 1, 1), 0.97))
    model = pdp.GaussianGroup(size=size, correlation=rho, bounds=(-1, 4))
    equals_the_dense_engine(rng, model, group_covariance(size, rho), scale=1.7)


@pytest.mark.parametrize("seed", slow_after(30, range(60)))
def test_series_equal_the_dense_engine(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 11))
    phi = float(rng.choice([rng.uniform(-0.97, 0.97), 0.0, 0.5]))
    model = pdp.GaussianSeries(length=length, correlation=phi, bounds=(0, 2))
    equals_the_dense_engine(rng, model, series_covariance(length, phi), scale=0.6)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["group", "series"])
def test_the_named_worst_adversary_is_as_bad_as_said(seed, kind):
    rng = np.random.default_rng(seed)
    model = (
        pdp.GaussianGroup(size=7, correlation=float(rng.uniform(-0.15, 0.9)), bounds=(0, 1))
        if kind == "group"
        else pdp.GaussianSeries(length=9, correlation=float(rng.uniform(-0.9, 0.9)), bounds=(0, 1))
    )
    query = random_query(rng, len(model.names))
    for adversaries, _ in adversary_kinds(rng, model.names):
        leak = pdp.leakage(model, query, adversaries=adversaries)
        known = set(leak.witness.known)
        limits = adversaries.resolve(model)
        assert limits.fewest <= len(known) <= limits.most
        again = pdp.leakage(model, query, adversaries=leak.witness.adversary)
        assert again.value == pytest.approx(leak.value, rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_several_answers_equal_the_dense_engine(seed):
    rng = np.random.default_rng(seed)
    model = pdp.GaussianGroup(size=5, correlation=float(rng.uniform(-0.2, 0.9)), bounds=(0, 3))
    other = dense(model, group_covariance(5, model.correlation[0]))
    queries = [pdp.Sum(), pdp.Linear(weights=rng.normal(size=5).tolist())]
    joint = pdp.leakage(model, queries, scale=[1.0, 2.0])
    assert joint.value == pytest.approx(
        pdp.leakage(other, queries, scale=[1.0, 2.0]).value, rel=1e-9
    )


def alike(rng, *, smallest=2, largest=5):
    """A group or a series without a stated variance, and the correlations of its worst members."""
    size = int(rng.integers(smallest, largest + 1))
    if rng.random() < 0.5:
        low, high = np.sort(rng.uniform(-1 / (size - 1) + 0.01, 0.95, size=2))
        model = pdp.GaussianGroup(size=size, correlation=(low, high), bounds=(-1, 2))
        return model, [group_covariance(size, rho) for rho in (low, high)]
    phi = float(rng.uniform(-0.95, 0.95))
    model = pdp.GaussianSeries(length=size, correlation=phi, bounds=(-1, 2))
    return model, [series_covariance(size, phi)]


@pytest.mark.parametrize("seed", slow_after(20, range(60)))
def test_clamped_answers_equal_brute_force_over_who_follows_the_target(seed):
    rng = np.random.default_rng(seed)
    model, covariances = alike(rng)
    size = len(model.names)
    scales = rng.uniform(0.5, 2, size=1 + seed % 3)
    weights = rng.normal(size=(len(scales), size)) * (rng.random((len(scales), size)) < 0.8)
    weights[:, 0] += 0.1  # an answer that is constant is refused
    weights = np.abs(weights) if seed % 4 == 0 else weights
    queries = [pdp.Linear(weights=row.tolist(), clamp=True) for row in weights]
    for adversaries, admits in adversary_kinds(rng, model.names):
        leak = pdp.leakage(model, queries, scale=scales.tolist(), adversaries=adversaries)
        truth = max(
            oracle.clamped_supremum(covariance, weights / scales[:, None], 3.0, target, known)
            for covariance in covariances
            for target, known in every_adversary(size, admits)
        )
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert leak.value >= truth * (1 - 1e-12)
        assert leak.exact


@pytest.mark.parametrize("seed", slow_after(100, range(300)))
def test_no_member_of_the_set_leaks_more_than_a_clamped_answer_is_said_to(seed):
    rng = np.random.default_rng(seed)
    model, covariances = alike(rng, smallest=2, largest=4)
    size = len(model.names)
    weights = np.ones(size) if seed % 2 else rng.normal(size=size)
    leak = pdp.leakage(model, pdp.Linear(weights=weights.tolist(), clamp=True))
    target = int(rng.integers(size))
    others = [k for k in range(size) if k != target]
    known = [int(k) for k in rng.permutation(others)[: rng.integers(max(0, size - 3), size)]]
    outputs = np.append(rng.uniform(-20, 20, size=20), [-60.0, 60.0])
    secrets = model.bounds if rng.random() < 0.5 else model.bounds[::-1]
    member = oracle.ClampedSum(
        mean=rng.uniform(-3, 4, size=size),
        covariance=covariances[seed % len(covariances)] * 10.0 ** rng.uniform(-3, 2),
        bounds=model.bounds,
        weights=weights,
        target=target,
        known=dict(zip(known, rng.uniform(-1, 2, size=len(known)), strict=True)),
    )
    assert member.log_ratios(outputs, secrets).max() <= leak.value * (1 + 1e-9)
    # The witness holds a member of the set with next to no variance, which attains the claim.
    witness = leak.witness
    worst = dataclasses.replace(
        member,
        mean=witness.model.mean,
        covariance=witness.model.covariance,
        target=witness.target,
        known=dict(witness.known),
    )
    attained = worst.log_ratios(outputs, witness.secrets)
    assert attained.max() == pytest.approx(leak.value, rel=1e-5)


def test_a_stated_variance_keeps_the_upper_end_and_its_meaning():
    for size, kind in (("size", pdp.GaussianGroup), ("length", pdp.GaussianSeries)):
        free = kind(**{size: 4}, correlation=0.5, bounds=(0, 1))
        stated = kind(**{size: 4}, correlation=0.5, bounds=(0, 1), variance=1.0)
        assert free.variance is None
        assert free != stated
        assert Model.from_dict(stated.to_dict()) == stated
        assert Model.from_dict(free.to_dict()) == free
        clamped = pdp.Sum(clamp=True)
        assert pdp.leakage(free, clamped).value == pdp.leakage(stated, clamped).value
        assert not pdp.leakage(stated, clamped).exact
        assert pdp.leakage(free, pdp.Sum()).value == pdp.leakage(stated, pdp.Sum()).value


@pytest.mark.parametrize("seed", slow_after(20, range(300)))
def test_the_lower_end_for_a_stated_variance_is_what_the_witness_learns(seed):
    rng = np.random.default_rng(seed)
    kinds = ("size", pdp.GaussianGroup), ("length", pdp.GaussianSeries)
    name, kind = kinds[seed % 2]
    size = int(rng.integers(1, 5))
    low, width = float(rng.choice([0.0, -3.0, 1e4])), float(rng.choice([1e-3, 1.0, 50.0]))
    rho = float(rng.choice([0.0, rng.uniform(0, 0.95), 0.5]))
    deviation = width * 10.0 ** rng.uniform(-0.8, 0.8)
    model = kind(**{name: size}, correlation=rho, bounds=(low, low + width), variance=deviation**2)
    weights = rng.uniform(0.1, 2, size=size) if seed % 3 else np.ones(size)
    weights *= rng.choice([-1.0, 1.0]) / width
    query = pdp.Linear(weights=weights.tolist(), clamp=True)
    scale = float(rng.uniform(0.5, 3))  # beyond Σb = 20 no quadrature along a series is tried
    for adversaries in (pdp.Adversaries.all(), pdp.Adversaries.weakest()):
        leak = pdp.leakage(model, query, scale=scale, adversaries=adversaries)
        witness = leak.witness
        assert leak.lower <= leak.value
        clamped = oracle.ClampedSum(
            mean=witness.model.mean if size > 1 or rho else np.full(size, low + width / 2),
            covariance=np.atleast_2d(witness.model.covariance),
            bounds=model.bounds,
            weights=weights / scale,
            target=witness.target,
            known=dict(witness.known),
        )
        found, close = clamped.tail(witness.secrets)
        assert leak.lower <= found + close
        assert leak.lower == pytest.approx(found, abs=close)
    assert leak.lower > 0


@pytest.mark.parametrize(
    "model",
    [
        pdp.GaussianGroup(size=6, correlation=(0, 0.4), bounds=(0, 1), variance=1.0),
        pdp.GaussianSeries(length=9, correlation=0.6, bounds=(0, 1), variance=1.0),
    ],
    ids=repr,
)
def test_the_lower_end_is_left_out_where_it_is_not_asked_for(model):
    clamped = pdp.Sum(clamp=True)
    (problem,) = split(model, lower(clamped, model), pdp.Adversaries.weakest())
    whole = problem.engine.bracket(3.0)
    upper = problem.engine.bracket(3.0, upper_only=True)
    assert upper.upper == whole.upper
    assert upper.lower == 0.0 < whole.lower
    # A calibration asks for it at the scale that it returns.
    calibration = pdp.calibrate(model, clamped)
    there = pdp.leakage(model, clamped, scale=calibration.scale)
    assert calibration.leakage.lower == there.lower > 0.5
    assert calibration.leakage.witness == there.witness


def test_the_lower_end_rises_to_the_upper_one_as_the_stated_variance_falls():
    clamped, gaps = pdp.Sum(clamp=True), []
    for variance in (1.0, 0.1, 0.01, 0.001):
        for model in (
            pdp.GaussianGroup(size=6, correlation=(0, 0.4), bounds=(0, 1), variance=variance),
            pdp.GaussianSeries(length=9, correlation=0.6, bounds=(0, 1), variance=variance),
        ):
            leak = pdp.leakage(model, clamped)
            gaps.append(1 - leak.lower / leak.value)
    assert gaps[0::2] == sorted(gaps[0::2], reverse=True)
    assert gaps[1::2] == sorted(gaps[1::2], reverse=True)
    assert max(gaps[-2:]) < 1e-3
    calibration = pdp.calibrate(model, clamped)
    sure = 1 - 1e-11  # noise takes no seed
    audit = pdp.audit(calibration, draws=6000, confidence=sure, seed=1)
    assert 0.2 < audit.lower_bound <= 1.0


@pytest.mark.parametrize("variance", [1e-12, 1e12])
def test_a_variance_beyond_quadrature_leaves_plain_dp(variance):
    model = pdp.GaussianSeries(length=4, correlation=0.5, bounds=(0, 1), variance=variance)
    leak = pdp.leakage(model, pdp.Sum(clamp=True))
    assert leak.lower == pytest.approx(1.0)
    assert len(leak.witness.known) == 3
    assert leak.value == pytest.approx(2.25)


def test_the_worst_adversary_of_households_is_in_the_largest_and_knows_nobody():
    sizes = (1, 2, 3, 4)
    homes = [pdp.GaussianGroup(size=m, correlation=(0, 0.4), bounds=(0, 1)) for m in sizes]
    households = pdp.Blocks(models=homes, counts=[10, 20, 30, 40])
    leak = pdp.leakage(households, pdp.Sum(clamp=True))
    assert leak.exact
    assert leak.value == pytest.approx(1 + 3 * 0.4)
    assert leak.witness.target[0] == 3
    assert not leak.witness.known


def test_a_range_of_correlations_takes_its_worst_end():
    model = pdp.GaussianGroup(size=5, correlation=(-0.1, 0.4), bounds=(0, 10))
    assert pdp.leakage(model, pdp.Sum()).value == pytest.approx(10 * (1 + 4 * 0.4))
    negative = pdp.GaussianGroup(size=5, correlation=(-0.2, -0.1), bounds=(0, 10))
    assert pdp.leakage(negative, pdp.Sum()).value == pytest.approx(10)
    ends = [pdp.GaussianGroup(size=5, correlation=rho, bounds=(0, 10)) for rho in (-0.1, 0.4)]
    query = pdp.Linear(weights=[1, -1, 2, 0, 0.5])
    both = max(pdp.leakage(end, query).value for end in ends)
    assert pdp.leakage(model, query).value == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("weights", [[1, -1], [1, -1, 0.5], [1, 1, 1, 1], [2, -1, -1, -1]])
@pytest.mark.parametrize("ends", [(-0.3, 0.05), (-0.3, 0.3), (-0.05, 0.3)])
def test_either_end_of_a_range_may_be_the_worst(weights, ends):
    size, query = len(weights), pdp.Linear(weights=weights)
    model = pdp.GaussianGroup(size=size, correlation=ends, bounds=(0, 10))
    written_out = [dense(model, group_covariance(size, rho)) for rho in ends]
    worst = max(pdp.leakage(end, query).value for end in written_out)
    assert pdp.leakage(model, query).value == pytest.approx(worst, rel=1e-9)


def test_large_groups_and_long_series_are_quick_and_right():
    group = pdp.GaussianGroup(size=3000, correlation=0.02, bounds=(0, 1))
    assert pdp.calibrate(group, pdp.Sum()).scale == pytest.approx(1 + 2999 * 0.02, rel=1e-6)
    series = pdp.GaussianSeries(length=5000, correlation=0.9, bounds=(0, 1))
    leak = pdp.leakage(series, pdp.Sum())
    assert leak.exact
    assert leak.value == pytest.approx(1 + 2 * 0.9 / 0.1, rel=1e-9)


def test_a_million_households_cost_what_the_largest_costs():
    sizes = [1, 2, 3, 6]
    models = [pdp.GaussianGroup(size=m, correlation=0.3, bounds=(0, 100)) for m in sizes]
    survey = pdp.Blocks(models=models, counts=[500_000, 300_000, 150_000, 50_000])
    cal = pdp.calibrate(survey, pdp.Sum(clamp=True), rows=1)
    assert cal.scale == pytest.approx(100 * (1 + 5 * 0.3), rel=1e-6)
    assert cal.baselines["group"] == pytest.approx(600)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pdp.GaussianGroup(size=3, correlation=-0.5, bounds=(0, 1)), "above -0.5"),
        (lambda: pdp.GaussianGroup(size=3, correlation=1.0, bounds=(0, 1)), "below 1"),
        (
            lambda: pdp.GaussianGroup(size=3, correlation=(0.4, 0.1), bounds=(0, 1)),
            r"^a range of correlations must begin at its lower end, got \(0\.4, 0\.1\): write",
        ),
        (
            lambda: pdp.GaussianGroup(size=1, correlation=(0.2, 1.5), bounds=(0, 1)),
            r"^the correlation in a group of 1 must lie below 1, got \(0\.2, 1\.5\)\.$",
        ),
        (lambda: pdp.GaussianGroup(size=0, correlation=0.1, bounds=(0, 1)), "size"),
        (lambda: pdp.GaussianGroup(size=2, correlation="x", bounds=(0, 1)), "correlation"),
        (lambda: pdp.GaussianGroup(size=2, correlation=float("nan"), bounds=(0, 1)), "finite"),
        (lambda: pdp.GaussianGroup(size=2, correlation=0.1, bounds=(1, 0)), "bounds"),
        (lambda: pdp.GaussianGroup(size=2, correlation=0.1, bounds=(0, 1), variance=0), "variance"),
        (lambda: pdp.GaussianSeries(length=3, correlation=1.0, bounds=(0, 1)), "between -1 and 1"),
        (lambda: pdp.GaussianSeries(length=2.5, correlation=0.1, bounds=(0, 1)), "length"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(pdp.ModelError, match=message):
        make()


def test_a_group_of_one_is_plain_dp():
    alone = pdp.GaussianGroup(size=1, correlation=0.9, bounds=(0, 5))
    assert pdp.calibrate(alone, pdp.Sum(), epsilon=2.0).scale == pytest.approx(2.5, rel=1e-6)


def test_descriptions_rebuild_the_model():
    for model in (
        pdp.GaussianGroup(size=3, correlation=(0, 0.4), bounds=(0, 1), names=["a", "b", "c"]),
        pdp.GaussianSeries(length=4, correlation=-0.2, bounds=(0, 1), provenance="public"),
    ):
        assert type(model).from_dict(model.to_dict()) == model
    assert pdp.Blocks(models=[pdp.GaussianGroup(size=2, correlation=0, bounds=(0, 1))]).names == (
        (0, 0),
        (0, 1),
    )


@pytest.mark.parametrize("clamp", [True, False])
@pytest.mark.parametrize("phi", [0.0, 1e-9, 0.3, 0.9, 0.9999])
@pytest.mark.parametrize("length", slow_after(3, [1, 3, 6, 2, 7]))
def test_equal_weights_are_worst_for_the_middle_and_for_who_knows_nobody(length, phi, clamp):
    series = pdp.GaussianSeries(length=length, correlation=phi, bounds=(0, 2))
    query = pdp.Linear(weights=[-1.5] * length, clamp=clamp)
    found = pdp.leakage(series, query, scale=3.0)
    everyone = range(length)
    sums = [sum(phi ** abs(t - i) for t in everyone) for i in everyone]
    assert found.value == pytest.approx(max(sums), rel=1e-9)
    assert found.value >= max(sums) * (1 - 1e-15)
    for target in everyone:
        others = [name for name in everyone if name != target]
        for number in range(length):
            for known in itertools.combinations(others, number):
                one = pdp.Adversaries.exactly(target, known=known)
                assert pdp.leakage(series, query, scale=3.0, adversaries=one).lower <= found.value


def test_long_series_of_equal_weights_are_searched_at_one_point():
    series = pdp.GaussianSeries(length=100_000, correlation=0.9, bounds=(0, 1))
    found = pdp.leakage(series, pdp.Sum(clamp=True))
    assert found.exact
    assert found.value == pytest.approx(19.0, rel=1e-9)
    assert found.witness.target in (49_999, 50_000)
