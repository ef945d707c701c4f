"""Files that version 0.1.0 wrote: they open, are proved again, count fully, and go on."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

import pdp_calibrate as pdp

FILES = Path(__file__).parent / "fixtures" / "version_0_1_0"
SPENT = json.loads((FILES / "spent.json").read_text())
CALIBRATIONS = sorted(path.name for path in FILES.glob("calibration_*.json"))
OPEN = [name for name in CALIBRATIONS if name != "calibration_private.json"]


@pytest.mark.parametrize("name", OPEN)
def test_a_calibration_is_proved_again_and_goes_on(name):
    stored = json.loads((FILES / name).read_text())
    found = pdp.load(FILES / name)
    assert list(found.scales) == stored.get("scales", [stored.get("scale")])
    assert found.leakage.value <= found.epsilon == stored["epsilon"]
    assert type(found).from_json(found.to_json()).leakage == found.leakage


def test_a_private_calibration_needs_its_model():
    with pytest.raises(pdp.PdpError, match="withholds"):
        pdp.load(FILES / "calibration_private.json")


@pytest.mark.parametrize("path", sorted(FILES.glob("release_*.json")), ids=lambda path: path.name)
def test_a_release_keeps_its_answers(path):
    stored = json.loads(path.read_text())
    again = json.loads(pdp.load(path).to_json())
    assert again["value"] == stored.get("values", stored.get("value"))
    assert again["type"] == "Release"


@pytest.mark.parametrize("name", sorted({key.split()[0] for key in SPENT} - {"private"}))
def test_a_ledger_counts_what_it_counted_and_goes_on(name, tmp_path):
    path = tmp_path / "budget.json"
    shutil.copy(FILES / f"ledger_{name}.json", path)
    draws = json.loads(path.read_text())["draws"]
    for draw in draws:
        key = name if draw == "first" else f"{name} {draw}"
        ledger = pdp.Ledger.open(path, draw=draw)
        assert ledger.spent == SPENT[key]
        before = len(ledger.history)
        assert ledger.charge(0.1) > SPENT[key]
        again = pdp.Ledger.open(path, draw=draw)
        assert again.spent > SPENT[key]
        assert json.loads(path.read_text())["version"] == 2
        assert len(again.history) == before + 1


def test_a_ledger_about_a_private_model_still_withholds_it(tmp_path):
    path = tmp_path / "budget.json"
    shutil.copy(FILES / "ledger_private.json", path)
    with pytest.raises(pdp.PdpError, match="withholds"):
        pdp.Ledger.open(path)


@pytest.mark.parametrize("name", ["calibration_pair.json", "release_sum.json", "ledger_table.json"])
def test_files_of_a_later_version_are_refused(name, tmp_path):
    described = json.loads((FILES / name).read_text()) | {"version": 3}
    if name.startswith("ledger"):
        described.pop("checksum")
        summed = json.dumps(described, sort_keys=True, separators=(",", ":"))
        described["checksum"] = hashlib.sha256(summed.encode()).hexdigest()
    later = tmp_path / name
    later.write_text(json.dumps(described))
    with pytest.raises(pdp.PdpError, match="a later version of pdp-calibrate"):
        pdp.load(later)
