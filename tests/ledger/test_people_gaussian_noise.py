"""People with Gaussian noise: shifts alone, and those of other columns in squares."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.gaussian_dp import mu_of

TABLE = pd.DataFrame(
    {
        "home": np.repeat(np.arange(5), 3),
        "pay": np.linspace(0, 100, 15),
        "age": np.linspace(0, 90, 15),
        "sick": [True, False, False] * 5,
    }
)
SAID = {
    "groups": "home",
    "bounds": {"pay": (0, 100), "age": (0, 90)},
    "domains": {"sick": [False, True]},
}


def people(**options):
    return pdp.People(
        TABLE, **SAID, **{"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"} | options
    )


def test_own_shifts_and_household_prices_add_in_squares(tmp_path):
    path = tmp_path / "people.json"
    table = people(ledger=path)
    first = table.sum("pay", epsilon=0.3, correlation=(0, 0.4)).calibration
    assert first.noise == "gaussian"
    sigma = first.scale
    assert sigma == pytest.approx(100 * 1.8 / mu_of(0.3, 1e-6), rel=1e-6)
    entry = table.history[-1]
    assert entry.price == pytest.approx(300 / sigma)  # what a whole household shifts
    assert entry.joint_mu == pytest.approx(300 / sigma)  # on other columns
    second = table.count({"sick": True}, epsilon=0.3).calibration
    assert second.scale == pytest.approx(3 / mu_of(0.3, 1e-6), rel=1e-6)
    assert isinstance(table.history[-1].spent, float)
    own = math.hypot(180 / sigma, 3 / second.scale)
    other = math.hypot(300 / sigma, 3 / second.scale)
    assert table.history[-1].joint_mu == pytest.approx(max(own, other), rel=1e-6)
    assert table.spent < 1.0
    again = pdp.People.open(TABLE, path)
    assert again.spent == table.spent
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(path.read_text()), pdp.json_schema())
    assert "Gaussian noise" in str(table)
    with pytest.raises(pdp.LedgerError, match="delta"):
        people(ledger=path, delta=1e-7)


def test_what_does_not_fit_is_refused_before_it_is_drawn():
    table = people()
    table.sum("pay", epsilon=0.5)
    with pytest.raises(pdp.BudgetExceededError):
        table.sum("age", epsilon=0.9)
    assert len(table.history) == 1
    table.sum("age", epsilon=None)
    assert 0.999 < table.spent <= 1.0


def test_laplace_noise_has_its_part():
    table = people(pure=0.25)
    table.count({"sick": True}, epsilon=0.25, noise="laplace")
    with pytest.raises(pdp.BudgetExceededError):
        table.count({"sick": True}, epsilon=0.01, noise="laplace")
    table.sum("pay", epsilon=0.3)
    assert table.spent <= 1.0
    with pytest.raises(pdp.BudgetExceededError):
        people().count({"sick": True}, epsilon=0.1, noise="laplace")
    pure = pdp.People(TABLE, **SAID, epsilon=1.0)
    with pytest.raises(pdp.LedgerError, match="delta="):
        pure.sum("pay", epsilon=0.5, noise="gaussian", delta=1e-6)


def test_laplace_noise_chosen_after_gaussian_noise_is_for_whole_households():
    """What a chain leaks holds for choices made before, not for those made from other answers."""
    days = pd.DataFrame({"home": [1] * 6, "day": range(6), "state": ["well", "ill"] * 3})
    table = pdp.People(
        days, groups="home", order_by="day", domains={"state": ["well", "ill"]},
        epsilon=6.0, delta=1e-6, pure=3.0,
    )  # fmt: skip
    asked = {"epsilon": 0.4, "persistence": 0.6}
    table.count({"state": "ill"}, **asked)
    assert table.history[-1].column == "state"
    assert table.spent == pytest.approx(0.4)
    table.histogram("state", epsilon=1.0, noise="gaussian")
    before, price = table.spent, table.calibrate.count({"state": "ill"}, **asked)
    release = table.count({"state": "ill"}, **asked)
    household = 6 / release.calibration.scale
    assert household > 3 * 0.4
    assert price.charge.column is None
    assert price.others == pytest.approx(household)
    assert price.spent["state"] == table.spent == pytest.approx(before + household)
