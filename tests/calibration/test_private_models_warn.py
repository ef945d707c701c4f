"""Every number worked out from a model of private rows comes with a warning."""

import json

import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.support.cli_runs import run

PRIVATE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]],
    domains=[[0, 1]] * 2,
    names=["mother", "child"],
    provenance="private",
)
PUBLIC = pdp.JointTable(
    probabilities=PRIVATE.probabilities, domains=PRIVATE.domains, names=PRIVATE.names
)
ROWS = pd.DataFrame({"mother": [0, 1] * 4, "child": [0, 1, 1, 1] * 2})
CALLS = {
    "leakage": lambda model: pdp.leakage(model, pdp.Sum(), scale=2.0),
    "df.pdp.leakage": lambda model: ROWS.pdp.leakage(pdp.Sum(), model=model, scale=2.0),
    "charge": lambda model: pdp.Ledger(model).charge(0.1),
    "would_spend": lambda model: pdp.Ledger(model).would_spend(dp_epsilon=0.1),
    "calibrate": lambda model: pdp.calibrate(model, pdp.Sum()),
    "black box": lambda model: pdp.black_box_leakage(model, epsilon=1.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_private_models_warn_and_others_do_not(name):
    with pytest.warns(pdp.PrivacyLeakWarning, match="learned from private rows"):
        CALLS[name](PRIVATE)
    CALLS[name](PUBLIC)  # warnings are errors in these tests


def test_the_command_warns_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("survey.csv", index=False)
    (tmp_path / "model.json").write_text(json.dumps(PUBLIC.to_dict()))
    ran = run('leakage survey.csv -q "sum()" --scale 2 --kind table')
    assert ran.code == 0
    assert ran.err.count("warning:") == 1
    assert run('leakage model.json -q "sum()" --scale 2').err == ""
