"""Numbers past every float are refused in words, in Python and on the command line."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.support.cli_runs import refused

HUGE = 10**400
PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
LONG = pd.DataFrame({"v": [1.0, 2.0, 3.0], "g": [1, 1, 2]})


def pair_of(domain):
    return pdp.JointTable(probabilities=PAIR.probabilities, domains=[domain] * 2)


def network(edges):
    tuples = {place for edge in edges for place in edge}
    return pdp.Network(
        factors=[(edge, [[2, 1], [1, 2]]) for edge in edges],
        domains={place: [0, 1] for place in sorted(tuples)},
    )


RING = network([(place, (place + 1) % 30) for place in range(30)])
TREE = network([(place, (place - 1) // 2) for place in range(1, 30)])


def clamped(model):
    return pdp.calibrate(model, pdp.Sum(clamp=True))


CALLS = {
    "charge": lambda: pdp.Ledger(PAIR).charge(HUGE),
    "charge of 1e308": lambda: pdp.Ledger(PAIR).charge(1e308, neighbours="add-remove"),
    "would_spend": lambda: pdp.Ledger(PAIR).would_spend(dp_epsilon=HUGE),
    "ledger": lambda: pdp.Ledger(PAIR, epsilon=HUGE),
    "epsilon": lambda: pdp.calibrate(PAIR, pdp.Sum(), epsilon=HUGE),
    "tiny epsilon": lambda: pdp.calibrate(PAIR, pdp.Sum(), epsilon=1e-320),
    "scale": lambda: pdp.leakage(PAIR, pdp.Sum(), scale=HUGE),
    "tiny scale of a ring": lambda: pdp.leakage(RING, pdp.Sum(), scale=1e-307),
    "tiny scale of a tree": lambda: pdp.leakage(TREE, pdp.Sum(), scale=1e-307),
    "smallest scale": lambda: pdp.leakage(RING, pdp.Count(values={1}), scale=5e-324),
    "scales": lambda: pdp.leakage(PAIR, [pdp.Sum()] * 2, scale=[1, HUGE]),
    "shares": lambda: pdp.calibrate(PAIR, [pdp.Sum()] * 2, shares=[1, HUGE]),
    "rows": lambda: pdp.calibrate(PAIR, pdp.Mean(), rows=HUGE),
    "time limit": lambda: pdp.calibrate(PAIR, pdp.Sum(), time_limit=HUGE),
    "half-width": lambda: pdp.calibrate_to_accuracy(PAIR, pdp.Sum(), half_width=HUGE),
    "black box": lambda: pdp.black_box_leakage(PAIR, epsilon=1e308),
    "dp budget": lambda: pdp.dp_budget(PAIR, epsilon=HUGE),
    "learned with": lambda: PAIR.learned_with(HUGE),
    "domain of 1e307": lambda: pdp.calibrate(pair_of([0, 1e307]), pdp.Sum()),
    "domain of 1e308": lambda: pdp.calibrate(pair_of([-1e308, 1e308]), pdp.Mean()),
    "whole domain": lambda: pdp.calibrate(pair_of([0, HUGE]), pdp.Sum()),
    "weight": lambda: pdp.Linear(weights=[HUGE, 1]),
    "weights of 1e308": lambda: pdp.calibrate(PAIR, pdp.Linear(weights=[1e308] * 2)),
    "function": lambda: pdp.calibrate(PAIR, pdp.Custom(function=lambda x: 1e308 * (2 * x[0] - 1))),
    "group": lambda: clamped(pdp.GaussianGroup(size=3, correlation=0.3, bounds=(0, 1e308))),
    "whole bounds": lambda: pdp.GaussianGroup(size=3, correlation=0.3, bounds=(0, HUGE)),
    "series": lambda: clamped(pdp.GaussianSeries(length=3, correlation=0.3, bounds=(0, 1e308))),
    "unknown": lambda: clamped(pdp.Unknown(size=3, bounds=(0, 1e308))),
    "Gaussian": lambda: clamped(pdp.Gaussian(covariance=np.eye(2), bounds=(0, 1e308))),
    "covariance": lambda: pdp.Gaussian(covariance=[[HUGE]], bounds=(0, 1)),
    "correlation": lambda: pdp.GaussianGroup(size=3, correlation=HUGE, bounds=(0, 1)),
    "variance": lambda: pdp.GaussianGroup(size=2, correlation=0.1, bounds=(0, 1), variance=HUGE),
    "size": lambda: pdp.Unknown(size=HUGE, domain=[0, 1]),
    "length": lambda: pdp.MarkovChain(transition=[[0.5, 0.5]] * 2, length=HUGE),
    "copies": lambda: pdp.Blocks(models=[PAIR], counts=[HUGE]),
    "probabilities": lambda: pdp.JointTable(probabilities=[HUGE, 1], domains=[[0, 1]]),
    "accessor": lambda: LONG.pdp.mean("v", groups="g", bounds=(0, 1e308), epsilon=1.0),
    "accessor, both signs": lambda: LONG.pdp.mean(
        "v", groups="g", bounds=(-1e308, 1e308), epsilon=1.0
    ),
    "smoothing": lambda: pdp.TableEstimator(smoothing=HUGE, source="public").fit(LONG),
    "estimator": lambda: pdp.TableEstimator(epsilon=HUGE, domains={"g": [1, 2]}).fit(LONG[["g"]]),
    "cleaned": lambda: (
        pdp.calibrate(PAIR, pdp.Histogram()).release({"x1": 0, "x2": 1}).cleaned(total=HUGE)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_overflow_reaches_the_caller(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pdp.PdpError) as caught:
            CALLS[name]()
    assert "however small the scale" not in str(caught.value)  # which would not be the reason


def test_large_numbers_that_are_covered_are_released():
    cal = clamped(pdp.Unknown(size=3, bounds=(0, 1e200)))
    assert cal.scale == pytest.approx(3e200)
    found = LONG.pdp.mean("v", groups="g", bounds=(0, 1e200), epsilon=1.0).value
    assert np.isfinite(found)


def test_the_command_line_complains_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LONG.to_csv("people.csv", index=False)
    (tmp_path / "model.json").write_text(json.dumps(PAIR.to_dict()))
    ask = 'calibrate people.csv -q "mean(v)" -e 1 --groups g'
    for bounds in ("0:1e308", "-1e308:1e308", f"0:1{'0' * 400}", "0:1e999"):
        for more in ("", "--correlation 0.2"):
            refused(f"{ask} --bounds={bounds} {more}")
    refused(f'calibrate model.json -q "linear(1{"0" * 400}*x1)" -e 1')
    refused('calibrate model.json -q "sum()" -e 1e-320')
    refused('leakage model.json -q "sum()" --scale 1e999')


def test_an_overflow_that_nobody_foresaw_is_one_line_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(PAIR.to_dict()))

    def overflows(*_, **__):
        raise OverflowError

    monkeypatch.setattr("pdp_calibrate.jobs.run.calibrate", overflows)
    assert "too large" in refused('calibrate model.json -q "sum()" -e 1')
