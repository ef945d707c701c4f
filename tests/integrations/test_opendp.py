"""OpenDP plugins against OpenDP itself."""

import math

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import pdp_calibrate as pdp
from pdp_calibrate_integrations import opendp as plugin
from tests.support.adapters import HEIGHTS, TWINS, attacked
from tests.support.drawn_noise import assert_discrete_laplace, assert_laplace

DRAWS = 4000
WHOLE = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
REAL = dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64")


@pytest.fixture(autouse=True)
def features():
    before = set(dp.GLOBAL_FEATURES)
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")
    dp.enable_features(*before)


def people(*, size=2, bounds=(0, 1)):
    return dp.vector_domain(dp.atom_domain(bounds=bounds), size=size), dp.symmetric_distance()


@pytest.mark.parametrize(
    "make", [plugin.make_pdp_laplace, plugin.make_pdp_and_dp_laplace], ids=lambda m: m.__name__
)
def test_noise_has_the_calibrated_scale(make):
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=0.7)
    whole = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    drawn = make(*whole, cal)([3] * DRAWS)
    assert_discrete_laplace(np.array(drawn) - 3, cal.scale)
    cal = pdp.calibrate(HEIGHTS, pdp.Mean(clamp=True), epsilon=0.7)
    real = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.l1_distance(T="f64")
    assert_laplace(np.array(make(*real, cal)([70.0] * DRAWS)) - 70.0, cal.scale)


def test_numbers_one_by_one_have_the_same_noise():
    cal = pdp.calibrate(HEIGHTS, pdp.Mean(clamp=True), epsilon=0.7)
    measurement = plugin.make_pdp_laplace(*REAL, cal)
    assert_laplace([measurement(0.0) for _ in range(2500)], cal.scale)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_the_map_is_the_leakage_and_the_other_one_is_never_below_plain_dp(epsilon):
    positive = pdp.calibrate(TWINS, pdp.Sum(), epsilon=epsilon)
    negative = pdp.calibrate(  # the release leaks less than plain DP says
        pdp.JointTable(probabilities=[[0.05, 0.45], [0.45, 0.05]], domains=[[0, 1]] * 2),
        pdp.Sum(),
        epsilon=epsilon,
        adversaries=pdp.Adversaries.weakest(),
    )
    for cal in (positive, negative):
        leak = pdp.leakage(cal.model, cal.query, scale=cal.scale, adversaries=cal.adversaries)
        pure = plugin.make_pdp_laplace(*WHOLE, cal)
        both = plugin.make_pdp_and_dp_laplace(*WHOLE, cal)
        plain = dp.m.make_laplace(*WHOLE, scale=cal.scale).map(1)
        assert pure.map(1) == pytest.approx(leak.value, rel=1e-9)
        assert pure.map(1) <= epsilon
        assert both.map(1) >= max(pure.map(1), plain * (1 - 1e-15))
        assert both.map(1) == pytest.approx(max(leak.value, 1 / cal.scale), rel=1e-9)
        assert pure.output_measure == dp.user_divergence("PDP")
        assert both.output_measure == dp.max_divergence()
    assert negative.leakage.value < 1 / negative.scale
    assert positive.leakage.value > 1 / positive.scale


def test_chained_with_opendps_own_sum():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    chain = people() >> dp.t.then_sum() >> plugin.then_pdp_laplace(cal)
    assert chain.map(2) <= 1.0
    assert isinstance(chain([1, 1]), int)
    counted = people(size=None) >> dp.t.then_sum() >> plugin.then_pdp_laplace(cal)
    assert counted.map(1) <= 1.0
    with pytest.raises(OpenDPException, match="known size"):
        counted.map(2)


def test_the_rounding_of_a_float_sum_is_charged():
    cal = pdp.calibrate(HEIGHTS, pdp.Sum(clamp=True), epsilon=1.0)
    chain = people(size=3, bounds=(50.0, 80.0)) >> dp.t.then_sum()
    moved = chain.map(2)
    assert moved > 30.0
    mapped = (chain >> plugin.then_pdp_laplace(cal)).map(2)
    assert mapped >= cal.leakage.value + (moved - 30.0) / cal.scale
    assert mapped == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(OpenDPException, match="may move by 80"):
        plugin.make_pdp_laplace(*REAL, cal).map(80.0)


def test_pdp_measurements_are_not_composed_by_opendp():
    one = plugin.make_pdp_laplace(*WHOLE, pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0))
    with pytest.raises(OpenDPException):
        dp.c.make_composition([one, one])


def two_children(*, epsilon, queries):
    return dp.Context.compositor(
        data=[1, 0],
        privacy_unit=dp.unit_of(contributions=2),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=queries,
        domain=people()[0],
    )


def test_the_context_api_takes_the_registered_measurement():
    plugin.register()
    plugin.register()  # twice is fine
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    ledger = pdp.Ledger(TWINS, epsilon=1.2)
    context = two_children(epsilon=2.0, queries=2)
    value = context.query().sum().pdp_and_dp_laplace(cal, ledger=ledger).release()
    assert isinstance(value, int)
    assert ledger.spent == pytest.approx(1.0)
    # OpenDP would let a second one through; the ledger knows that together they leak more.
    with pytest.raises(OpenDPException, match="joint leakage"):
        context.query().sum().pdp_and_dp_laplace(cal, ledger=ledger).release()
    assert len(ledger.history) == 1
    small = two_children(epsilon=0.9, queries=1)
    with pytest.raises(OpenDPException, match="nsufficient"):
        small.query().sum().pdp_and_dp_laplace(cal).release()


def test_features_are_the_users_to_enable():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    dp.disable_features("honest-but-curious")
    for make in (plugin.make_pdp_laplace, plugin.make_pdp_and_dp_laplace):
        with pytest.raises(pdp.PdpError, match=r'enable_features\("honest-but-curious"\)'):
            make(*WHOLE, cal)
    assert "honest-but-curious" not in dp.GLOBAL_FEATURES
    dp.disable_features("contrib")
    with pytest.raises(pdp.PdpError, match='"contrib"'):
        plugin.make_pdp_lazyframe(None, None, None, cal)


def test_an_answer_that_is_not_whole_is_not_rounded_before_the_noise():
    cal = pdp.calibrate(TWINS, pdp.Mean(), epsilon=1.0)
    short = dp.atom_domain(T="f32", nan=False), dp.absolute_distance(T="f32")
    for space in (WHOLE, short):
        with pytest.raises(pdp.QueryError, match="not covered"):
            plugin.make_pdp_laplace(*space, cal)


def test_sums_of_opendp_clamp_so_the_calibration_must():
    cal = pdp.calibrate(HEIGHTS, pdp.Sum(), epsilon=1.0)
    for make in (plugin.make_pdp_laplace, plugin.make_pdp_and_dp_laplace):
        with pytest.raises(pdp.UnsupportedQueryError, match="clamp=True"):
            make(*REAL, cal)
    total = pl.col("x").dp.sum((50.0, 80.0), scale=2 * cal.scale)
    with pytest.raises(pdp.UnsupportedQueryError, match="clamp=True"):
        plugin.make_pdp_lazyframe(
            frame_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance(), total, cal
        )


def frame_domain(kind, *, invariant="lengths"):
    domain = dp.lazyframe_domain([dp.series_domain("x", kind)])
    margin = dp.polars.Margin(by=[], max_length=100, invariant=invariant)
    return dp.with_margin(domain, margin)


def test_a_lazyframe_is_released_at_the_pinned_scale():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=0.8)
    domain = frame_domain(dp.atom_domain(T="i64"))
    total = pl.col("x").dp.sum((0, 1), scale=cal.scale)
    for metric, distance in ((dp.symmetric_distance(), 2), (dp.change_one_distance(), 1)):
        release = plugin.make_pdp_lazyframe(domain, metric, total, cal)
        assert release.map(distance) == pytest.approx(1 / cal.scale)
    frame = pl.LazyFrame({"x": [1, 0, 1, 1]})
    drawn = [release(frame).collect().item() - 3 for _ in range(2500)]
    assert_discrete_laplace(drawn, cal.scale)


def test_a_lazyframe_with_too_little_noise_is_refused():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=0.8)
    metric, domain = dp.symmetric_distance(), frame_domain(dp.atom_domain(T="i64"))
    sums = {scale: pl.col("x").dp.sum((0, 1), scale=scale * cal.scale) for scale in (0.999, 1.0)}
    with pytest.raises(pdp.CalibrationError, match="needs"):
        plugin.make_pdp_lazyframe(domain, metric, sums[0.999], cal)
    with pytest.raises(pdp.CalibrationError, match="invariant='lengths'"):
        plugin.make_pdp_lazyframe(
            frame_domain(dp.atom_domain(T="i64"), invariant=None), metric, sums[1.0], cal
        )
    wider = pl.col("x").dp.sum((0, 2), scale=cal.scale)
    with pytest.raises(pdp.CalibrationError, match="bounds of the model"):
        plugin.make_pdp_lazyframe(domain, metric, wider, cal)
    both = [sums[1.0], dp.len(scale=cal.scale, signed=True)]
    with pytest.raises(pdp.UnsupportedQueryError, match="one number"):
        plugin.make_pdp_lazyframe(domain, metric, both, cal)
    with pytest.raises(pdp.UnsupportedQueryError, match="metric must be"):
        plugin._substitution_distance(dp.absolute_distance(T="f64"))


def test_a_lazyframe_of_floats_needs_room_for_the_rounding_of_its_sum():
    cal = pdp.calibrate(HEIGHTS, pdp.Sum(clamp=True), epsilon=1.0)
    domain = frame_domain(dp.atom_domain(T="f64", nan=False))
    metric = dp.symmetric_distance()

    def total(factor):
        return pl.col("x").dp.sum((50.0, 80.0), scale=factor * cal.scale)

    with pytest.raises(pdp.CalibrationError, match="leaks"):
        plugin.make_pdp_lazyframe(domain, metric, total(1.0), cal)
    release = plugin.make_pdp_lazyframe(domain, metric, total(1.001), cal)
    assert math.isfinite(release(pl.LazyFrame({"x": [70.0, 68.0, 71.0]})).collect().item())


def test_an_audit_stays_below_epsilon():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    chain = people() >> dp.t.then_sum() >> plugin.then_pdp_laplace(cal)
    found = attacked(cal, lambda x: chain([x["a"], x["b"]]), draws=4000)
    assert 0.1 < found.lower_bound <= 1.0
