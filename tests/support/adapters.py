"""What the tests of adapters share: two small models, and an attack on what a library draws."""

from collections.abc import Callable
from typing import Any

import pdp_calibrate as pdp

TWINS = pdp.JointTable(
    probabilities=[[0.45, 0.05], [0.05, 0.45]], domains=[[0, 1]] * 2, names=["a", "b"]
)
HEIGHTS = pdp.GaussianGroup(size=3, correlation=0.3, bounds=(50.0, 80.0))


def attacked(
    calibration: pdp.Calibration, release: Callable[[Any], float], *, draws: int = 10_000
) -> pdp.Audit:
    """Attack a library's noisy sum; an honest one is caught less than once in 1e9 runs."""
    return pdp.audit(
        release,
        witness=calibration.leakage.witness,
        query=pdp.Sum(),
        scale=calibration.scale,
        epsilon=calibration.epsilon,
        draws=draws,
        confidence=1 - 1e-10,
        seed=3,
    )
