"""diffprivlib, PyDP, PipelineDP and dp_accounting: each adapter runs the real library."""

import math

import diffprivlib
import numpy as np
import pytest
from dp_accounting import dp_event, pld
from pydp.algorithms import laplacian

import pdp_calibrate as pdp
from pdp_calibrate_integrations import (
    diffprivlib as for_diffprivlib,
    dp_accounting as for_dp_accounting,
    handover,
    pipelinedp as for_pipelinedp,
    pydp as for_pydp,
    wrapping,
)
from tests.support.adapters import HEIGHTS, TWINS, attacked
from tests.support.drawn_noise import (
    assert_discrete_laplace,
    assert_laplace,
    assert_rounded_laplace,
)
from tests.support.marks import needs_pipelinedp

DRAWS = 3000
PIPELINEDP = pytest.param("pipelinedp", marks=needs_pipelinedp)
LIBRARIES = ["diffprivlib", "pydp", PIPELINEDP]
LAPLACES = {
    "diffprivlib": (for_diffprivlib.laplace, lambda mechanism: mechanism.randomise),
    "pydp": (for_pydp.laplace, lambda mechanism: mechanism.add_noise),
    "pipelinedp": (for_pipelinedp.laplace, lambda mechanism: mechanism.add_noise),
}


def substitution_budget(epsilon):
    return pdp.dp_budget(TWINS, epsilon=epsilon)


@pytest.mark.parametrize("name", LIBRARIES)
def test_mechanisms_draw_the_calibrated_scale(name):
    make, draw = LAPLACES[name]
    for model, query in ((TWINS, pdp.Sum()), (HEIGHTS, pdp.Mean())):
        cal = pdp.calibrate(model, query, epsilon=0.7)
        add = draw(make(cal))
        assert_laplace([add(60.0) - 60.0 for _ in range(DRAWS)], cal.scale)


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_audit_of_a_mechanism_stays_below_epsilon(name):
    make, draw = LAPLACES[name]
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    add = draw(make(cal))
    found = attacked(cal, lambda x: add(float(x["a"] + x["b"])))
    assert 0.3 < found.lower_bound <= 1.0  # 0.63 ± 0.03 as a rule


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_mechanism_is_written_down_first_and_refused_beyond_the_budget(name):
    make, _ = LAPLACES[name]
    cal, ledger = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0), pdp.Ledger(TWINS, epsilon=1.5)
    make(cal, ledger=ledger)
    assert ledger.spent == pytest.approx(1.0)
    with pytest.raises(pdp.BudgetExceededError):
        make(cal, ledger=ledger)
    assert len(ledger.history) == 1


@pytest.mark.parametrize("name", ["pydp", PIPELINEDP])
def test_googles_rounding_of_answers_has_slack(name):
    """Its grid is a power of two, at most 2^-39 scales; a step costs that much leakage."""
    make, _ = LAPLACES[name]
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    mechanism = make(cal)
    scale = mechanism.diversity if name == "pydp" else mechanism.noise_parameter
    leaks = pdp.leakage(TWINS, pdp.Sum(), scale=scale).value
    assert leaks + 2.0**-39 <= 1.0
    assert scale == pytest.approx(cal.scale, rel=1e-9)
    grid = 2.0 ** math.ceil(math.log2(scale * 2.0**-40))
    if name == "pydp":  # the grid is what the slack was computed for
        drawn = np.array([mechanism.add_noise(0.0) for _ in range(200)])
        steps = drawn / grid
        assert np.all(steps == np.round(steps))
        assert np.any(steps / 2 != np.round(steps / 2))


def test_diffprivlib_tools_get_the_budget_and_feed_their_accountant():
    accountant = diffprivlib.BudgetAccountant()
    ledger = pdp.Ledger(TWINS, epsilon=4.0)
    given = {"model": TWINS, "epsilon": 1.0, "ledger": ledger}
    tools = diffprivlib.tools
    values = np.tile([0.0, 1.0], 200)
    total = for_diffprivlib.with_budget(tools.sum, **given)
    mean = for_diffprivlib.with_budget(tools.mean, **given)
    histogram = for_diffprivlib.with_budget(tools.histogram, **given)
    assert total.dp_epsilon == mean.dp_epsilon == substitution_budget(1.0)
    assert histogram.dp_epsilon == pytest.approx(substitution_budget(1.0) / 2)
    total(values, bounds=(0, 1), accountant=accountant)
    mean(values, bounds=(0, 1), accountant=accountant)
    histogram(values, bins=2, range=(0, 1), accountant=accountant)
    assert accountant.total()[0] == pytest.approx(2.5 * substitution_budget(1.0))
    spent = [entry.dp_epsilon for entry in ledger.history]  # counted by substitution
    assert spent == pytest.approx([substitution_budget(1.0)] * 3)


def test_diffprivlib_tools_draw_the_noise_of_the_budget():
    """What the noise tells about their neighbours: width over ε, and 1 over ε in each bin."""
    given = {"model": TWINS, "epsilon": 2.0}
    values = np.tile([0.0, 1.0], 200)
    tools = diffprivlib.tools
    count = for_diffprivlib.with_budget(tools.count_nonzero, **given)
    total = for_diffprivlib.with_budget(tools.sum, **given)
    histogram = for_diffprivlib.with_budget(tools.histogram, **given)
    scale = 1 / substitution_budget(2.0)
    assert_discrete_laplace([count(values) - 200 for _ in range(2500)], scale)
    assert_laplace([total(3 * values, bounds=(0, 3)) - 600 for _ in range(2500)], 3 * scale)
    bins = np.array([histogram(values, bins=2, range=(0, 1))[0] for _ in range(1250)])
    assert_discrete_laplace(bins.ravel() - 200, 2 * scale)
    # A substitution moves one from a bin to another: in both it leaks at most its budget.
    assert 2 / (2 * scale) <= substitution_budget(2.0) * (1 + 1e-9)


def test_diffprivlib_refuses_what_its_budget_does_not_cover():
    given = {"model": TWINS, "epsilon": 1.0}
    tools = diffprivlib.tools
    with pytest.raises(pdp.PdpError, match="bounds from the data"):
        for_diffprivlib.with_budget(tools.mean, **given)([0.0, 1.0])
    with pytest.raises(pdp.PdpError, match="bounds from the data"):
        for_diffprivlib.with_budget(tools.histogram, **given)([0.0, 1.0])
    for wrong in ({"weights": [3, 3]}, {"bins": "auto"}):
        with pytest.raises(pdp.PdpError, match="not covered"):
            for_diffprivlib.with_budget(tools.histogram, **given)([0, 1], range=(0, 1), **wrong)
    for unknown in (tools.nanmean, sum, diffprivlib.mechanisms.Laplace):
        with pytest.raises(pdp.UnsupportedQueryError, match="of diffprivlib"):
            for_diffprivlib.with_budget(unknown, **given)


def test_a_seed_is_refused_before_anything_is_charged():
    ledger = pdp.Ledger(TWINS, epsilon=3.0)
    given = {"model": TWINS, "epsilon": 1.0, "ledger": ledger}
    count = for_diffprivlib.with_budget(diffprivlib.tools.count_nonzero, **given)
    mean = for_diffprivlib.with_budget(diffprivlib.tools.mean, **given)
    bayes = for_diffprivlib.with_budget(diffprivlib.models.GaussianNB, **given)
    own = wrapping.wrap(lambda data, epsilon, seed=None: (data, epsilon, seed), **given)
    for call in (
        lambda: count([1, 0], random_state=0),
        lambda: count([1, 0], random_state=np.random.RandomState(0)),
        lambda: mean([1, 0], 1.0, (0, 1), None, None, False, 7),  # by place
        lambda: bayes(bounds=(0, 1), random_state=1),
        lambda: own(3, seed=4),
    ):
        with pytest.raises(pdp.PdpError, match="makes the noise known"):
            call()
    assert ledger.history == ()
    with pytest.raises(TypeError, match="random_state"):
        for_diffprivlib.laplace(pdp.calibrate(TWINS, pdp.Sum()), random_state=0)
    assert count([1, 0], random_state=None) is not None
    assert len(ledger.history) == 1


def test_diffprivlib_models_are_fitted_once_on_half():
    ledger = pdp.Ledger(TWINS, epsilon=1.0)
    make = for_diffprivlib.with_budget(
        diffprivlib.models.GaussianNB, model=TWINS, epsilon=1.0, ledger=ledger
    )
    classifier = make(bounds=([0.0], [1.0]))
    assert classifier.epsilon == pytest.approx(substitution_budget(1.0) / 2)
    assert ledger.spent == pytest.approx(1.0, rel=1e-5)
    rows, labels = np.array([[0.1], [0.2], [0.9], [0.8]] * 10), np.array([0, 0, 1, 1] * 10)
    classifier.fit(rows, labels)
    with pytest.raises(diffprivlib.utils.BudgetError):
        classifier.fit(rows, labels)
    with pytest.raises(pdp.BudgetExceededError):
        make(bounds=([0.0], [1.0]))
    accountant = diffprivlib.BudgetAccountant()
    scaler = for_diffprivlib.with_budget(
        diffprivlib.models.StandardScaler, model=TWINS, epsilon=1.0
    )
    scaler(bounds=([0.0], [1.0]), accountant=accountant).fit(rows).fit(rows)
    assert accountant.total()[0] == pytest.approx(2 * scaler.dp_epsilon)


def test_diffprivlib_accountant_is_fed_by_the_mechanism_and_may_refuse():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    accountant = diffprivlib.BudgetAccountant(epsilon=1.0, delta=0)
    for_diffprivlib.laplace(cal, accountant=accountant)
    assert accountant.total()[0] == pytest.approx(cal.dp_epsilon)
    ledger = pdp.Ledger(TWINS, epsilon=9.0)
    with pytest.raises(diffprivlib.utils.BudgetError):
        for_diffprivlib.laplace(cal, accountant=accountant, ledger=ledger)
    assert ledger.history == ()


@pytest.mark.parametrize("whole", [True, False])
def test_pydp_bounded_sum_draws_exactly_the_calibrated_scale(whole):
    model, query = (TWINS, pdp.Sum()) if whole else (HEIGHTS, pdp.Sum(clamp=True))
    cal = handover.with_slack(pdp.calibrate(model, query, epsilon=0.7), 1e-6)  # once, not each time
    entries = [1, 0] if whole else [60.0, 70.0, 65.0]
    drawn = [for_pydp.bounded_sum(cal).quick_result(entries) - sum(entries) for _ in range(3000)]
    (assert_rounded_laplace if whole else assert_laplace)(drawn, cal.scale)


def test_pydp_algorithms_get_half_the_budget():
    ledger = pdp.Ledger(TWINS, epsilon=1.0)
    count = for_pydp.with_budget(laplacian.Count, model=TWINS, epsilon=1.0, ledger=ledger)
    algorithm = count(dtype="int")
    assert algorithm.epsilon == count.dp_epsilon == pytest.approx(substitution_budget(1.0) / 2)
    assert isinstance(algorithm.quick_result([1] * 50), int)
    with pytest.raises(pdp.BudgetExceededError):
        count(dtype="int")
    count = for_pydp.with_budget(laplacian.Count, model=TWINS, epsilon=1.0)
    drawn = [count(dtype="int").quick_result([1] * 50) - 50 for _ in range(3000)]
    assert_rounded_laplace(drawn, 2 / substitution_budget(1.0))


def accounted(event):
    accountant = pld.PLDAccountant()
    accountant.compose(event)
    return accountant.get_epsilon(1e-10)


def test_events_say_what_plain_dp_costs():
    real = pdp.calibrate(HEIGHTS, pdp.Sum(), epsilon=0.7)
    moves = {"substitution": 30.0, "add-remove": 80.0, "unknown": 80.0}
    for neighbours, largest in moves.items():
        event = for_dp_accounting.laplace_event(real, neighbours=neighbours)
        assert isinstance(event, dp_event.LaplaceDpEvent)
        assert event.noise_multiplier <= real.scale / largest
        assert accounted(event) == pytest.approx(largest / real.scale, abs=2e-4)
    whole = pdp.calibrate(TWINS, pdp.Histogram(), epsilon=0.7)
    for neighbours, largest in {"substitution": 2, "add-remove": 1, "unknown": 2}.items():
        event = for_dp_accounting.laplace_event(whole, neighbours=neighbours)
        assert isinstance(event, dp_event.DiscreteLaplaceDpEvent)
        assert event.sensitivity == largest
        assert event.noise_parameter >= 1 / whole.scale
        assert accounted(event) == pytest.approx(largest / whole.scale, abs=2e-4)


def test_the_discrete_laplace_has_the_larger_delta():
    """Why whole numbers get an event of their own."""
    discrete, continuous = pld.PLDAccountant(), pld.PLDAccountant()
    discrete.compose(dp_event.DiscreteLaplaceDpEvent(1.0, 1))
    continuous.compose(dp_event.LaplaceDpEvent(1.0))
    assert discrete.get_delta(0.3) > 1.05 * continuous.get_delta(0.3)


def test_events_of_joint_releases_add_up_and_tables_have_no_missing_tuples():
    joint = pdp.calibrate(TWINS, [pdp.Sum(), pdp.Mean()], epsilon=1.0)
    event = for_dp_accounting.laplace_event(joint)
    kinds = [type(part) for part in event.events]
    assert kinds == [dp_event.DiscreteLaplaceDpEvent, dp_event.LaplaceDpEvent]
    expected = 1 / joint.scales[0] + 0.5 / joint.scales[1]
    assert accounted(event) == pytest.approx(expected, rel=1e-3)
    largest = pdp.calibrate(TWINS, pdp.Custom(function=max), epsilon=1.0)
    assert for_dp_accounting.laplace_event(largest, neighbours="substitution").sensitivity == 1
    with pytest.raises(pdp.UnsupportedQueryError, match="substitution"):
        for_dp_accounting.laplace_event(largest)


@pytest.mark.parametrize(
    "make", [for_pydp.bounded_sum, pytest.param(for_pipelinedp.aggregation, marks=needs_pipelinedp)]
)
def test_libraries_that_clamp_and_add_up_get_a_proof_about_that(make):
    with pytest.raises(pdp.UnsupportedQueryError, match="clamp=True"):
        make(pdp.calibrate(HEIGHTS, pdp.Sum(), epsilon=1.0))


def test_rounding_of_long_sums_has_slack():
    """Adding n numbers up to 80 one by one is off by at most n²·80 half units in the last place."""
    slack = {}
    for rows in (1, 10**6):
        cal = pdp.calibrate(HEIGHTS, pdp.Sum(clamp=True), epsilon=1.0, rows=rows)
        slack[rows] = handover.summing_slack(cal)
        most = max(10_000, 3 * rows)
        assert slack[rows] == pytest.approx(2 * most**2 * 80 * 2.0**-53 / cal.scale)
    values = np.random.default_rng(1).uniform(50, 80, size=10_000)
    naive = 0.0
    for value in values:
        naive += value
    assert 2 * abs(naive - math.fsum(values)) / cal.scale < slack[1] < 1e-6
    assert handover.summing_slack(pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)) == 0


def test_the_grid_slack_is_twice_the_cost_of_a_step():
    assert handover.GRID_ROUNDING == 2 * 2.0**-39
