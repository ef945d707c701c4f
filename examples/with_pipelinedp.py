"""A sum by PipelineDP keeps ε = 1 for each child, but not when siblings are alike."""

import pipeline_dp
from siblings import attack, model, query, siblings

import pdp_calibrate as pdp
from pdp_calibrate_integrations import pipelinedp as for_pipelinedp

extractors = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],  # a child, not a family
    partition_extractor=lambda _: "all",
    value_extractor=lambda row: row[1],
)


def tall_children(
    rows: list[tuple[object, int]],
    accountant: pipeline_dp.NaiveBudgetAccountant,
    params: pipeline_dp.AggregateParams,
) -> float:
    """Sum with a pipeline of one aggregation."""
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    result = engine.aggregate(rows, params, extractors, public_partitions=["all"])
    accountant.compute_budgets()
    ((_, metrics),) = result
    return metrics.sum


def before(family: dict[int, int]) -> float:
    """Count with plain DP."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0)
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.SUM],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=0,
        max_value=1,
    )
    return tall_children(list(family.items()), accountant, params)


cal = pdp.calibrate(model, query, epsilon=1.0)  # changed


def after(family: dict[int, int]) -> float:
    """Count with noise for siblings."""
    ready = for_pipelinedp.aggregation(cal)  # changed
    return tall_children(list(family.items()), ready.accountant, ready.params)  # changed


attacks = (("before", before, 1.0, 3000), ("after", after, cal.scale, 1000))
for name, count, scale, draws in attacks:
    print(f"{name:<6}", attack(count, scale=scale, draws=draws))

# Several aggregations, all of them together within ε: an accountant with a smaller budget.
ledger = pdp.Ledger(model, epsilon=1.0)
accountant = for_pipelinedp.budget_accountant(model, epsilon=1.0, ledger=ledger)
engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
params = pipeline_dp.AggregateParams(
    metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.MEAN],
    max_partitions_contributed=1,
    max_contributions_per_partition=1,
    min_value=0,
    max_value=1,
)
rows = list(enumerate(siblings["tall"]))
result = engine.aggregate(rows, params, extractors, public_partitions=["all"])
accountant.compute_budgets()
((_, metrics),) = result
print(f"{metrics.count:.0f} children, share of tall ones {metrics.mean:.2f}", end="")
print(f"; leakage of all siblings {ledger.spent:.2f}")
