"""Gaussian noise through frames, the command line and plans: one declaration, one result."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pdp_calibrate as pdp
from pdp_calibrate.cli.main import app
from pdp_calibrate.core import gaussian_dp
from tests.support.plans import plan_text

PEOPLE = pd.DataFrame({"home": np.repeat(np.arange(6), 3), "pay": np.linspace(0, 100, 18).round(1)})
SAID = {"bounds": (0, 100), "groups": "home", "correlation": (0, 0.4)}
SIGMA = 100 * 1.8 / 0.236704380663  # three members, correlation 0.4, (1, 1e-6)

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")


def test_frames():
    found = PEOPLE.pdp.sum("pay", **SAID, noise="gaussian", epsilon=1.0, delta=1e-6).calibration
    assert found.scale == pytest.approx(SIGMA, rel=1e-6)
    by_rho = PEOPLE.pdp.mean("pay", **SAID, noise="gaussian", rho=0.05).calibration
    assert by_rho.rho == pytest.approx(0.05)
    assert by_rho.scale == pytest.approx(180 / 18 / np.sqrt(0.1), rel=1e-6)
    wide = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    model = pdp.Gaussian(covariance=np.eye(3), bounds=(0, 1), names=["a", "b", "c"])
    assert wide.pdp.calibrate(
        pdp.Sum(), model=model, noise="gaussian", mu=0.5
    ).scale == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"noise": "gaussian", "epsilon": 1.0},
        {"delta": 1e-6, "epsilon": 1.0},
        {"noise": "gaussian", "mu": 1.0, "rho": 1.0},
        {"noise": "gaussian", "mu": 1.0, "epsilon": 1.0},
        {"mu": 1.0},
        {"noise": "normal", "delta": 1e-6, "epsilon": 1.0},
    ],
)
def test_what_contradicts_itself_is_refused(options):
    with pytest.raises(pdp.PdpError):
        PEOPLE.pdp.sum("pay", **SAID, **options)


def test_a_ledger_says_what_is_drawn():
    model = PEOPLE.pdp.sum("pay", **SAID, epsilon=1.0).calibration.model
    ledger = pdp.Ledger(model, epsilon=1.0, delta=1e-6, noise="gaussian")
    first = PEOPLE.pdp.sum("pay", **SAID, epsilon=0.3, ledger=ledger).calibration
    assert (first.noise, first.delta) == ("gaussian", 1e-6)
    rest = PEOPLE.pdp.sum("pay", **SAID, epsilon=None, ledger=ledger).calibration
    assert rest.noise == "gaussian"
    assert 0.999 < ledger.spent <= 1.0


def invoke(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_command_line(tmp_path):
    table = tmp_path / "people.csv"
    PEOPLE.to_csv(table, index=False)
    said = (
        "--groups", "home", "--bounds", "pay=0:100", "--correlation", "0:0.4",
        "--assume", "gaussian", "--noise", "gaussian", "--delta", "1e-6",
    )  # fmt: skip
    found = invoke("calibrate", str(table), "-q", "sum(pay)", "-e", "1", *said, "--json")
    assert found["scale"] == pytest.approx(SIGMA, rel=1e-6)
    assert (found["noise"], found["delta"]) == ("Gaussian", 1e-6)
    leak = invoke("leakage", str(table), "-q", "sum(pay)", "--scale", str(SIGMA), *said, "--json")
    assert leak["leakage"]["value"] == pytest.approx(1.0, rel=1e-6)
    home = tmp_path / "home.json"
    home.write_text(
        json.dumps(
            pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0).to_dict()
        )
    )
    book = str(tmp_path / "budget.json")
    create = ("ledger", "create", book, "--model", str(home), "-e", "1", "--delta", "1e-6")
    status = invoke(*create, "--noise", "gaussian", "--pure", "0.25", "--json")
    assert status["mu"] == pytest.approx(gaussian_dp.mu_of(0.75, 1e-6), rel=1e-9)
    status = invoke("ledger", "charge", book, "--mu", "0.01", "--json")
    assert 0 <= status["spent"] < 1
    history = invoke("ledger", "history", book, "--json")
    assert history["entries"][0]["mu"] == 0.01
    shown = CliRunner().invoke(app, ["ledger", "history", book])
    assert "μ = 0.01" in shown.output


PLAN = plan_text(
    {"query": "sum(pay)", "epsilon": 0.3},
    {"query": "mean(pay)", "mu": 0.1, "noise": "gaussian"},
    data={"file": "people.csv", "groups": "home"},
    model={"bounds": {"pay": [0, 100]}, "correlation": [0, 0.4], "assume": "gaussian"},
    budget={"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian", "ledger": "budget.json"},
)


def test_a_plan(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    found = invoke("plan", str(plan), "--json")
    assert [one["release"]["calibration"]["noise"] for one in found["releases"]] == ["Gaussian"] * 2
    ledger = pdp.Ledger.open(tmp_path / "budget.json")
    assert (ledger.delta, len(ledger.history)) == (1e-6, 2)
    assert ledger.history[1].mu == pytest.approx(0.1)
    plan.write_text(PLAN.replace("delta = 1e-06", "delta = 1e-7"))
    refused = CliRunner().invoke(app, ["plan", str(plan)])
    assert refused.exit_code != 0
