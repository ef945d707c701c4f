"""Files that claim a proof: proved again within a limit, or refused with the reason."""

import functools
import json
import time

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.support.cli_runs import refused

RNG = np.random.default_rng(8)
CUBE = pdp.JointTable(
    probabilities=RNG.dirichlet(np.ones(3**8)).reshape((3,) * 8), domains=[[0, 1, 2]] * 8
)


@functools.cache
def proved():
    return pdp.calibrate(CUBE, pdp.Sum(), epsilon=1.0, time_limit=1).to_json()


def claims(kind):
    """Return the JSON of a calibration or release that takes long to prove and is not false.

    Those of several answers as version 0.1.0 wrote them.
    """
    cal = json.loads(proved())
    cal |= {"query": pdp.Histogram().to_dict(), "scale": 16.0, "epsilon": 0.74}
    if kind == "Calibration":
        return cal
    if kind == "JointCalibration":
        del cal["query"]
        return cal | {
            "type": kind,
            "queries": [pdp.Histogram().to_dict()] * 2,
            "scales": [32.0, 32.0],
        }
    inner = claims(kind.replace("Release", "Calibration") if "Joint" in kind else "Calibration")
    value = {"values": [[3, 3, 2], [3, 3, 2]]} if "Joint" in kind else {"value": [3, 3, 2]}
    return {"schema": cal["schema"], "type": kind, "calibration": inner} | value


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["Calibration", "Release", "JointCalibration", "JointRelease"])
def test_what_cannot_be_proved_in_time_is_refused_and_says_so(tmp_path, kind):
    text = json.dumps(claims(kind))
    file = tmp_path / "claim.json"
    file.write_text(text)
    begun = time.monotonic()
    with pytest.raises(pdp.CalibrationError, match="proved again within"):
        getattr(pdp, kind.removeprefix("Joint")).from_json(text, time_limit=0.01)
    with pytest.raises(pdp.CalibrationError, match="proved again within"):
        pdp.load(file, time_limit=0.01)
    assert time.monotonic() - begun < 30  # of one process among others


@pytest.mark.compiled
def test_the_commands_have_a_limit_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claim.json").write_text(json.dumps(claims("Calibration")))
    for line in ("explain claim.json", "report claim.json", "audit claim.json"):
        assert "could not be proved again" in refused(f"{line} --time-limit 0.01")


def test_a_false_claim_is_called_false_however_little_time_there_is():
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    lie = pdp.calibrate(table, pdp.Sum(), epsilon=1.0).to_dict() | {"scale": 0.5}
    with pytest.raises(pdp.CalibrationError, match="above the epsilon"):
        pdp.Calibration.from_json(json.dumps(lie), time_limit=0)
    with pytest.raises(pdp.PdpError, match="time_limit"):
        pdp.Calibration.from_json(json.dumps(lie), time_limit=-1)
