"""Calibrate differential-privacy noise for correlated data, exactly and provably."""

from pdp_calibrate.models import *
from pdp_calibrate.queries import *
from pdp_calibrate.adversaries import *
from pdp_calibrate.engines import leakage, paper
from pdp_calibrate.errors import ModelError, PdpError, PrivacyLeakWarning, UnsupportedQueryError
from pdp_calibrate.engines.posterior import posterior
from pdp_calibrate.estimators.pearson import pearson
