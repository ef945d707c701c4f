"""JSON files that commands read."""

from __future__ import annotations

from pathlib import Path

import pdp_calibrate as pdp


def calibration_in(path: Path) -> pdp.Calibration | pdp.JointCalibration:
    """Read a calibration, or the one behind a release."""
    from pdp_calibrate.schema import load

    found = load(path)
    if isinstance(found, pdp.Release | pdp.JointRelease):
        return found.calibration
    if isinstance(found, pdp.Calibration | pdp.JointCalibration):
        return found
    raise pdp.PdpError(f"{path} describes a {type(found).__name__}, not a calibration or release.")
