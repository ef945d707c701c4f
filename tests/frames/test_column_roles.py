"""Order, groups and parts are public, so the secret column cannot be any of them."""

import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

FRAME = pd.DataFrame({"home": [1, 1, 2, 2], "x": [0, 1, 1, 0], "day": [1, 2, 1, 2]})
CHAIN = pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=2)
GROUP = pdp.Unknown(size=2, domain=[0, 1])
ORDER = {"by": "home", "order_by": "x"}
REFUSED = "must be another column than that of the values"


def test_the_first_in_order_of_the_values_is_an_order_statistic():
    """Twice the first of two in order of the values is twice their minimum, not what was proved."""
    first = pdp.calibrate(GROUP, pdp.Linear(weights={0: 1.0, 1: 0.0}), epsilon=1.0)
    with pytest.raises(pdp.ModelError, match="order_by= " + REFUSED):
        first.release(FRAME, value="x", **ORDER)
    first.release(FRAME, value="x", by="home", order_by="day")


@pytest.mark.parametrize("query", [pdp.Sum(), [pdp.Sum(), pdp.Count(values={1})]])
def test_releases_refuse_it(query):
    cal = pdp.calibrate(CHAIN, query)
    with pytest.raises(pdp.ModelError, match="order_by= " + REFUSED):
        cal.release(FRAME, value="x", **ORDER)
    with pytest.raises(pdp.ModelError, match="groups= " + REFUSED):
        cal.release(FRAME, value="x", by="x")
    ledger = pdp.Ledger(CHAIN, epsilon=3.0)
    with pytest.raises(pdp.ModelError, match="order_by= " + REFUSED):
        ledger.release(query, FRAME, epsilon=1.0, value="x", **ORDER)
    with pytest.raises(pdp.ModelError, match="order_by= " + REFUSED):
        cal.release(FRAME, value="x", ledger=ledger, **ORDER)
    assert ledger.history == ()


@pytest.mark.parametrize(
    "estimator",
    [
        pdp.MarkovChainEstimator(value="x", **ORDER),
        pdp.MarkovChainEstimator(value="x", states=[0, 1], epsilon=1.0, max_length=2, **ORDER),
        pdp.MarkovChainEstimator(value="x", by="x", order_by="day"),
        pdp.GaussianSeriesEstimator(value="x", bounds=(0, 1), **ORDER),
        pdp.GroupEstimator(value="x", by="x", bounds=(0, 1)),
        pdp.GroupEstimator(value="x", by="x", kind="binary"),
    ],
    ids=repr,
)
def test_estimators_refuse_it(estimator):
    with pytest.raises(pdp.ModelError, match=REFUSED):
        estimator.fit(FRAME)


@pytest.mark.parametrize(
    "columns",
    [
        {"groups": "home", "order_by": "x"},
        {"groups": "x"},
    ],
)
def test_the_accessor_refuses_it(columns):
    with pytest.raises(pdp.ModelError, match=REFUSED):
        FRAME.pdp.sum("x", bounds=(0, 1), **columns, epsilon=1.0)
    with pytest.raises(pdp.ModelError, match=REFUSED):
        FRAME.pdp.sum("x", model=CHAIN, **columns, epsilon=1.0)


def test_the_command_line_and_plans_refuse_it(tmp_path):
    rows = tmp_path / "rows.csv"
    FRAME.to_csv(rows, index=False)
    plan = plan_text(
        {"query": "sum(x)", "epsilon": 0.5},
        data={"file": "rows.csv", "groups": "home", "order_by": "x"},
        model={"bounds": {"x": [0, 1]}, "correlation": 0.3},
        budget={"epsilon": 2.0, "ledger": "budget.json"},
    )
    (tmp_path / "plan.toml").write_text(plan)
    assumed = "--groups home --bounds 0:1 --correlation 0.3 --query 'sum(x)'"
    for line in (
        f"release {rows} {assumed} -e 1 --order-by x",
        f"calibrate {rows} {assumed} -e 1 --order-by x",
        f"leakage {rows} {assumed} --order-by x --scale 1",
        f"plan {tmp_path}/plan.toml",
        f"plan {tmp_path}/plan.toml --check",
    ):
        assert "order_by= " + REFUSED in refused(line)
    assert not (tmp_path / "budget.json").exists()
    fine(f"release {rows} {assumed} --assume gaussian --order-by day --epsilon 1")
