"""What the noise costs, and what other methods would have leaked or cost."""

from __future__ import annotations

import math

from pdp_calibrate.calibration import Calibration, JointCalibration
from pdp_calibrate.engines import Leakage, leakage
from pdp_calibrate.explain.phrases import asked
from pdp_calibrate.models import Gaussian, LoewnerBall, Model, SampledGaussian, SampledTable
from pdp_calibrate.queries import Mean

_PATIENCE = 10.0  # seconds for a comparison; a wider bracket after that


def leakage_of_plain_dp(calibration: Calibration) -> Leakage | None:
    """Return what noise set as if everyone were independent leaks; None if it adds no noise."""
    scale = calibration.baselines["dp"]
    if not scale:
        return None
    return leakage(
        calibration.model,
        calibration.query,
        scale=scale,
        adversaries=calibration.adversaries,
        rows=calibration.rows,
        time_limit=_PATIENCE,
    )


def plain_dp(calibration: Calibration, leak: Leakage | None) -> str:
    """Compare with plain differential privacy, given what its scale leaks."""
    if leak is None:
        return "Plain differential privacy would have added no noise at all."
    scale, epsilon = calibration.baselines["dp"], calibration.epsilon
    if leak.value <= epsilon * (1 + 1e-9):
        return (
            f"Plain differential privacy (scale {scale:.4g}) would have been enough here:"
            " the correlation does not help the worst adversary."
        )
    really = (
        f"would really have been {leak.lower:.4g}"
        if leak.exact
        else f"would really have been between {leak.lower:.4g} and {leak.value:.4g}"
    )
    return (
        f"Plain differential privacy would have used scale {scale:.4g}, as if everyone were"
        f" independent. Through the correlation, its ε = {epsilon:.4g} {really}."
    )


def parts_of_total(calibration: Calibration | JointCalibration) -> str:
    """Say what the total ε is made of, where learning the model is part of it."""
    spent = calibration.estimation_epsilon
    if spent is None:
        return ""
    return (
        f" in total: {calibration.epsilon:.4g} for the answer, {spent:.4g} for learning the model"
    )


def from_the_answer(calibration: Calibration | JointCalibration) -> str:
    """Say that a leakage is that of the answer alone, where there is more."""
    return "" if calibration.estimation_epsilon is None else " from the answer"


def learning(calibration: Calibration | JointCalibration) -> str:
    """Say what learning the model leaked, and whether the sample was worth anything."""
    found = []
    spent = calibration.estimation_epsilon
    if spent is not None:
        found.append(
            f"Learning the model was itself a private release of ε = {spent:.4g} about whole draws,"
            f" and the total of {calibration.total_epsilon:.4g} includes it. If the answer is about"
            " other data, independent of those that the model was learned from, the total for them"
            f" is {calibration.epsilon:.4g}."
        )
    if isinstance(calibration, Calibration) and isinstance(calibration.model, SampledTable):
        group = calibration.baselines["group"]
        if group is not None and calibration.scale >= group * (1 - 1e-6):
            found.append(
                "There are too few rows to rule anything out: this is the noise of group privacy,"
                " which needs no model. More rows, fewer values or a lower confidence help."
            )
    return " ".join(found)


def group_privacy(calibration: Calibration) -> str:
    """Say what treating all correlated entries as one would have cost."""
    group = calibration.baselines["group"]
    if not group or not math.isfinite(group):
        return ""
    ratio = group / calibration.scale
    compared = (
        f"{ratio:.2g} times as much noise"
        if ratio > 1 + 1e-6
        else "less noise"
        if ratio < 1 - 1e-6
        else "the same noise"
    )
    return (
        f"Treating all correlated entries as one (group privacy) would need scale {group:.4g},"
        f" {compared}."
    )


def interval_to_expect(calibration: Calibration | JointCalibration) -> str:
    """Say how far the noise moves the answer."""
    if isinstance(calibration, Calibration):
        wide, likely = calibration.accuracy(alpha=0.05), calibration.accuracy(alpha=0.5)
        each = " each count" if calibration.contributions.coordinates > 1 else " the answer"
        return (
            f"The noise moves{each} by at most ±{wide:.4g} in 95 % of releases, and by at most"
            f" ±{likely:.4g} in half of them."
        )
    widths = calibration.accuracy(alpha=0.05)
    parts = [
        f"±{width:.4g} for {asked(query)}"
        for width, query in zip(widths, calibration.queries, strict=True)
    ]
    return f"In 95 % of releases the noise stays within {'; '.join(parts)}."


def clamping(calibration: Calibration) -> str:
    """Say what clamping adds to the error, as far as it can be said without the data."""
    if not calibration.contributions.clamped:
        return ""
    bias = clamping_bias(calibration)
    beside = (
        "Values outside their public range count as its nearest end. That moves the answer too,"
        " and the interval does not contain it;"
    )
    if bias is None or calibration.model.provenance == "private":
        return (
            f"{beside} how far depends on the data alone: not at all if every value lies inside,"
            " and narrower ranges trade noise for this bias."
        )
    alone = calibration.rows == 1 and not isinstance(calibration.query, Mean)
    per_row = " per row" if alone else ""
    shift = f"{bias:+.3g}{per_row}" if bias else "nothing"
    return f"{beside} by the model's means and variances, {shift} on average."


def clamping_bias(calibration: Calibration) -> float | None:
    """Return E[clamped answer − answer] under a Gaussian model; None where it is not known."""
    model, weights = _gaussian(calibration.model), calibration.contributions.weights
    if model is None or weights is None:
        return None
    bias = 0.0
    for place, weight in enumerate(weights):
        spread = math.sqrt(model.covariance[place, place])
        low, high = model.bounds[place]
        mean = float(model.mean[place])
        shift = _mean_excess((low - mean) / spread) - _mean_excess((mean - high) / spread)
        bias += float(weight[0]) * spread * shift
    return bias * calibration.rows


def _mean_excess(threshold: float) -> float:
    """E[max(threshold − z, 0)] of a standard normal z."""
    density = math.exp(-threshold * threshold / 2) / math.sqrt(2 * math.pi)
    return threshold * math.erfc(-threshold / math.sqrt(2)) / 2 + density


def _gaussian(model: Model) -> Gaussian | None:
    if isinstance(model, LoewnerBall | SampledGaussian):
        return model.center
    return model if isinstance(model, Gaussian) else None
