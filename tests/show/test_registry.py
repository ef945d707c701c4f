"""Entries for the public registry of differential-privacy deployments."""

import json

import pandas as pd
import pytest
import yaml

import pdp_calibrate as pdp
from pdp_calibrate.show.registry import as_yaml, check_entry, registry_entry
from tests.support.cli_runs import fine, refused

PEOPLE = pd.DataFrame({"home": [1, 1, 2, 2, 2, 3], "pay": [10.0, 20.0, 5.0, 0.0, 30.0, 7.0]})
SAID = {
    "name": "Mean: pay “2025”",
    "curators": ["Office"],
    "intended_use": "statistics",
    "region": "Norway",
    "authors": ["A. Steward"],
}


def released():
    return PEOPLE.copy().pdp.mean(
        "pay", bounds=(0, 100), groups="home", correlation=(0, 0.4), epsilon=1.0
    )


def test_an_entry_says_what_the_registry_asks():
    entry = registry_entry(released(), justification="as the law asks", **SAID)
    assert (entry["tier"], entry["status"], entry["url_slug"]) == (3, "Draft", "mean_pay_2025")
    found = entry["deployment"]
    assert found["dp_variant"]["variant_name"] == "Custom"
    assert "6 entries of pay, in 3 groups (one for each home)" in found["dp_variant"]["data_domain"]
    assert "how many rows" in found["dp_variant"]["unprotected_quantities"]
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert "correlation 0 to 0.4" in found["privacy_loss"]["privacy_unit_details"]
    assert found["deployment_model"]["release_type"] == "One release"
    assert "Laplace noise of scale" in found["implementation"]["mechanisms"]
    assert found["implementation"]["justification"] == "as the law asks"
    assert registry_entry(released(), **SAID)["tier"] == 2
    assert yaml.safe_load(as_yaml(entry)) == entry


def test_a_ledger_makes_it_many_releases_and_delta_is_told():
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    ledger = pdp.Ledger(pair, epsilon=3.0)
    cal = pdp.calibrate(pair, pdp.Sum(), epsilon=1.0)
    release = cal.release({"x1": 1, "x2": 0}, ledger=ledger)
    ledger.charge(0.5)
    entry = registry_entry(release, ledger=ledger, **SAID)
    assert entry["deployment"]["deployment_model"]["release_type"] == "Many releases"
    found = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert found["epsilon"] == ledger.spent > 1
    group = pdp.GaussianGroup(size=3, correlation=0.4, variance=1.0, bounds=(0, 4))
    noisy = pdp.calibrate(group, pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian")
    found = registry_entry(noisy, **SAID)["deployment"]["privacy_loss"]["privacy_parameters"]
    assert found == {"epsilon": 1.0, "delta": 1e-6}


def test_nothing_of_a_private_model_is_told():
    rows = pd.DataFrame({"a": [0, 0, 1, 1, 0, 1] * 40, "b": [0, 0, 1, 1, 1, 0] * 40})
    model = pdp.TableEstimator().fit(rows).model_
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(model, pdp.Sum())
    text = as_yaml(registry_entry(cal, **SAID))
    for cell in model.probabilities.ravel():
        assert f"{cell:.4g}" not in text
    assert "without differential privacy" in text


def test_what_does_not_fit_is_refused():
    entry = registry_entry(released(), **SAID)
    for broken, words in (
        ({**entry, "surprise": 1}, "surprise"),
        ({**entry, "tier": 4}, "tier"),
        ({key: value for key, value in entry.items() if key != "status"}, "status"),
    ):
        with pytest.raises(pdp.PdpError, match=words):
            check_entry(broken)
    with pytest.raises(pdp.PdpError, match="data_product_sector"):
        registry_entry(released(), sector="Fishing", **SAID)
    with pytest.raises(pdp.PdpError, match="YYYY-MM-DD"):
        registry_entry(released(), published="1 May", **SAID)


def test_the_command_writes_an_entry(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "release.json").write_text(released().to_json())
    words = 'registry release.json --name Pay --curator Office --use "statistics" --region Norway'
    words += ' --author "A. Steward" --date 2026-05-01 --sector Government'
    fine(f"{words} -o pay.yaml")
    found = yaml.safe_load((tmp_path / "pay.yaml").read_text())
    assert found["deployment"]["basic"]["publication_date"] == "2026-05-01"
    assert json.loads(fine(f"{words} --json").out) == found
    assert "url_slug" in fine(words).out
    assert "exists already" in refused(f"{words} -o pay.yaml")
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    pdp.Ledger(pair, epsilon=1.0, path=tmp_path / "book.json")
    assert "holds a ledger" in refused(words.replace("release.json", "book.json"))
