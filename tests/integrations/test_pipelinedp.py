"""PipelineDP: the adapter runs the real library, where it has a release for this Python."""

import math

import pytest

import pdp_calibrate as pdp
from pdp_calibrate_integrations import pipelinedp as for_pipelinedp
from tests.support.adapters import HEIGHTS, TWINS
from tests.support.drawn_noise import assert_laplace

pipeline_dp = pytest.importorskip("pipeline_dp", reason="no release for this Python")
EXTRACTORS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)


@pytest.mark.parametrize("whole", [True, False])
def test_pipelinedp_aggregation_draws_exactly_the_calibrated_scale(whole):
    """A sum in each of many public partitions: independent families, one each."""
    model, query = (TWINS, pdp.Sum()) if whole else (HEIGHTS, pdp.Sum(clamp=True))
    cal = pdp.calibrate(model, query, epsilon=0.7)
    entries = [1, 0] if whole else [60.0, 70.0, 95.0]
    rows = [
        ((family, person), family, value)
        for family in range(3000)
        for person, value in enumerate(entries)
    ]
    ready = for_pipelinedp.aggregation(cal)
    engine = pipeline_dp.DPEngine(ready.accountant, pipeline_dp.LocalBackend())
    sums = engine.aggregate(rows, ready.params, EXTRACTORS, public_partitions=list(range(3000)))
    ready.accountant.compute_budgets()
    truth = 1 if whole else 60.0 + 70.0 + 80.0  # clamped to the bounds of the model
    assert_laplace([metrics.sum - truth for _, metrics in sums], cal.scale)


def test_pipelinedp_refuses_more_than_the_one_aggregation_and_anything_with_a_delta():
    cal, ledger = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0), pdp.Ledger(TWINS, epsilon=1.5)
    ready = for_pipelinedp.aggregation(cal, ledger=ledger)
    engine = pipeline_dp.DPEngine(ready.accountant, pipeline_dp.LocalBackend())
    with pytest.raises(ValueError, match="delta"):
        engine.aggregate([(1, "all", 1)], ready.params, EXTRACTORS)  # private partitions
    with pytest.raises(pdp.BudgetExceededError):
        for_pipelinedp.aggregation(cal, ledger=ledger)
    ready = for_pipelinedp.aggregation(cal)
    engine = pipeline_dp.DPEngine(ready.accountant, pipeline_dp.LocalBackend())
    for _ in range(2):
        engine.aggregate([(1, "all", 1)], ready.params, EXTRACTORS, public_partitions=["all"])
    with pytest.raises(ValueError, match="aggregations"):
        ready.accountant.compute_budgets()


def test_pipelinedp_accountant_has_half_the_budget():
    ledger = pdp.Ledger(TWINS, epsilon=1.0)
    accountant = for_pipelinedp.budget_accountant(TWINS, epsilon=1.0, ledger=ledger)
    assert ledger.spent == pytest.approx(1.0, rel=1e-5)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        output_noise_stddev=True,
    )
    counts = engine.aggregate([(1, "all", 1)], params, EXTRACTORS, public_partitions=["all"])
    accountant.compute_budgets()
    ((_, metrics),) = counts
    expected = math.sqrt(2) / (pdp.dp_budget(TWINS, epsilon=1.0) / 2)
    assert metrics.count_noise_stddev == pytest.approx(expected, rel=1e-5)
    with pytest.raises(pdp.BudgetExceededError):
        for_pipelinedp.budget_accountant(TWINS, epsilon=1.0, ledger=ledger)
    with pytest.raises(pdp.LedgerError, match="another model"):
        for_pipelinedp.budget_accountant(HEIGHTS, epsilon=1.0, ledger=ledger)
