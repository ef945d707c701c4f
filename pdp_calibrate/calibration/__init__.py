"""From ε to a proved scale, and from the scale to a release."""

from pdp_calibrate.calibration.calibrating import calibrate, calibrate_to_accuracy, verify
from pdp_calibrate.calibration.joint import JointCalibration, JointRelease
from pdp_calibrate.calibration.result import Calibration, Release

__all__ = [
    "Calibration",
    "JointCalibration",
    "JointRelease",
    "Release",
    "calibrate",
    "calibrate_to_accuracy",
    "verify",
]
