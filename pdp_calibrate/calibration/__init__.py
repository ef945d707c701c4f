"""From ε to a proved scale, and from the scale to a release."""

from pdp_calibrate.calibration.calibrating import calibrate, calibrate_to_accuracy
from pdp_calibrate.calibration.result import Calibration, Release, verify

__all__ = ["Calibration", "Release", "calibrate", "calibrate_to_accuracy", "verify"]
