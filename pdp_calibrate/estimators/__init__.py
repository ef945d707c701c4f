"""From a frame to a model, scikit-learn style."""

from pdp_calibrate.estimators.table import TableEstimator

__all__ = ["TableEstimator"]
