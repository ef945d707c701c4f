"""What is passed to other libraries: a scale, or a plain-DP budget, always on the safe side.

A scale is rounded up at the float boundary. A library that rounds the answer *before* it adds
noise gets a little more of it: such rounding is not post-processing, so it needs slack below ε.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pdp_calibrate import (
    Calibration,
    CalibrationError,
    Ledger,
    LedgerError,
    PdpError,
    UnsupportedQueryError,
    dp_budget,
    verify,
)
from pdp_calibrate.calibration.result import single, with_laplace_noise
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.model import Model, refuse_endless
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF

Neighbours = Literal["substitution", "add-remove", "unknown"]
"""What a plain-DP ε is about: replacing one tuple's value, or adding and removing a tuple.

A substitution is one removal and one addition, so a budget for add/remove counts twice. A library
whose relation is not known is treated like one that adds and removes: that is the safe half.
"""
GRID_ROUNDING = 2.0**-38
"""Slack for Google's Laplace sampler, which rounds answers to a grid of at most 2^-39 scales.

Answers move by at most half a step each, which costs one step over the scale (the step is the next
power of two above 2^-40 scales); twice as much is left free.
"""
VALUES_COVERED = 10_000
"""Slack for adding up real numbers covers this number of values, or `rows` times the tuples."""
_STEPS = 16


@dataclass(frozen=True, kw_only=True)
class LaplaceParameters:
    """ε and sensitivity for a library that divides the second by the first."""

    epsilon: float
    """The plain-DP budget: what substituting one tuple costs at this scale."""
    sensitivity: float
    """How far the answer moves when one tuple changes."""


def laplace_parameters(
    calibration: Calibration,
    *,
    slack: float = 0.0,
    sensitivity_used: float | None = None,
    ledger: Ledger | None = None,
) -> LaplaceParameters:
    """Return ε and sensitivity whose quotient, in floating point, is at least the scale.

    `slack` is what the library's own rounding may add to the leakage, `sensitivity_used` the
    sensitivity that the library will insist on, by default that of the query. The release is
    written down in the ledger before anything is handed over.
    """
    with_laplace_noise(calibration, "the library")
    refuse_endless([calibration.model], "the library")
    scale = with_slack(single(calibration, "the library"), slack).scale
    own = calibration.sensitivity
    numerator = own if sensitivity_used is None else float(sensitivity_used)
    if not 0 < numerator < math.inf:
        raise UnsupportedQueryError(f"the answer's sensitivity must be positive, got {numerator}.")
    epsilon = numerator / scale
    while numerator / epsilon < scale:
        epsilon = math.nextafter(epsilon, 0.0)
    if ledger is not None:
        ledger.spend(calibration)
    return LaplaceParameters(epsilon=epsilon, sensitivity=numerator)


def gaussian_scale(
    calibration: Calibration, *, slack: float = 0.0, ledger: Ledger | None = None
) -> float:
    """Return σ for a library that draws Gaussian noise, with a margin for its own rounding.

    Parameters
    ----------
    calibration
        What is released with ``noise="gaussian"``, and the proved σ.
    slack
        How far the library's rounding may shift the answer, in units of σ; that adds to μ.
    ledger
        Where the release is recorded before anything is handed over.
    """
    refuse_endless([calibration.model], "the library")
    one = with_gaussian_noise(calibration, "the library")
    leak = one.leakage
    if slack and (leak.mu is None or leak.mu > float(one.mu or 0.0)):
        raise UnsupportedQueryError("rounding is charged to a mu, which this calibration lacks.")
    factor = 1.0
    for step in range(_STEPS):
        strength = (leak.mu or 0.0) / factor + slack
        kept = gaussian_dp.epsilon_of_drawn(strength, one.delta, [one.scale * factor])
        if not slack or (kept <= one.epsilon and strength <= float(one.mu or 0.0)):
            break
        factor = 1 + 2.0**step * 2 * slack / float(one.mu or 1.0)
    else:
        raise CalibrationError("no larger scale leaves a margin for the rounding of the library.")
    if ledger is not None:
        ledger.spend(calibration.with_noise(factor))
    return math.nextafter(one.scale * factor, math.inf) if factor > 1 else one.scale


def with_gaussian_noise(calibration: Calibration, what: str) -> Calibration:
    """Return a calibration of one answer with Gaussian noise, or refuse it."""
    if calibration.noise != "gaussian":
        raise UnsupportedQueryError(
            f"{what} is to draw Gaussian noise, and this calibration is of Laplace noise: calibrate"
            " with noise='gaussian'."
        )
    return single(calibration, what)


def with_slack(calibration: Calibration, slack: float) -> Calibration:
    """Return the calibration, with more noise if its leakage plus the slack would pass ε.

    The larger scale is proved before it is returned.
    """
    target = calibration.epsilon - slack
    if calibration.leakage.value <= target:
        return calibration
    for step in range(_STEPS if target > 0 else 0):
        factor = 1 + 2.0 ** (2 * step) * max(slack / calibration.epsilon, 2.0**-50)
        larger = dataclasses.replace(calibration, scale=calibration.scale * factor, epsilon=target)
        try:
            leakage = verify(larger)
        except CalibrationError:
            continue
        return dataclasses.replace(larger, epsilon=calibration.epsilon, leakage=leakage)
    raise CalibrationError(
        f"no larger scale could be proved to leave slack for rounding of {slack:.3g} below"
        f" epsilon = {calibration.epsilon}."
    )


def budget(model: Model, *, epsilon: float, neighbours: Neighbours) -> float:
    """Return the plain-DP budget to hand to a library, in the library's own sense of neighbours."""
    return dp_budget(model, epsilon=epsilon, neighbours=counted_as(neighbours))


def counted_as(neighbours: Neighbours) -> Literal["substitution", "add-remove"]:
    """Return the relation to count with: unknown counts like add/remove."""
    if neighbours not in ("substitution", "add-remove", "unknown"):
        raise PdpError(
            "neighbours must be 'substitution', 'add-remove' or 'unknown',"
            f" got {neighbours!r}; when in doubt, 'unknown' is safe."
        )
    return "substitution" if neighbours == "substitution" else "add-remove"


def checked_ledger(model: Model, ledger: Ledger | None) -> None:
    """Refuse a ledger that is about other tuples."""
    if ledger is not None and ledger.model != model:
        raise LedgerError("the budget is for another model than the ledger's.")


def check_clamped(calibration: Calibration) -> None:
    """Refuse a proof about values as they are where the library clamps them first.

    Clamping is another function of the data, and for Gaussian models it can leak more.
    """
    (added,) = single(calibration, "the library").contributions
    if added.real and not added.clamped:
        raise UnsupportedQueryError(
            "the library clamps values to their bounds before it adds them, and the calibration is"
            " for values that are not: calibrate the query with clamp=True."
        )


def summing_slack(calibration: Calibration) -> float:
    """Bound the cost of a library's rounding when it adds real numbers one by one."""
    if calibration.is_integer:
        return 0.0
    lower, upper = contribution_range(calibration)
    values = max(VALUES_COVERED, calibration.rows * sum(calibration.model.copies))
    error = values * UNIT_ROUNDOFF * values * max(abs(lower), abs(upper))
    return 2 * error / calibration.scale


def sum_parameters(
    calibration: Calibration, *, ledger: Ledger | None
) -> tuple[float, float, float]:
    """Return least and largest value, and the ε, with which Google's bounded sum has the scale.

    It takes the larger of abs(lower) and abs(upper) for the sensitivity, adds up with rounding, and
    rounds the sum to its grid. The release is recorded in the ledger first.
    """
    lower, upper = contribution_range(calibration)
    handed = laplace_parameters(
        calibration,
        slack=GRID_ROUNDING + summing_slack(calibration),
        sensitivity_used=max(abs(lower), abs(upper)),
        ledger=ledger,
    )
    return lower, upper, handed.epsilon


def contribution_range(calibration: Calibration) -> tuple[float, float]:
    """Return the least and the largest number that one tuple may add to the answer."""
    check_clamped(calibration)
    (added,) = calibration.contributions
    if added.table is not None or added.coordinates != 1:
        raise UnsupportedQueryError("only a sum, mean, weighted sum or count is added up by tuple.")
    ends = np.concatenate([values.ravel() for values in added.values])
    return float(ends.min()), float(ends.max())
