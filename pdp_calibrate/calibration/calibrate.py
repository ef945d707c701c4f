"""From ε, or from a wanted accuracy, to a scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from pdp_calibrate.calibration.joint import JointCalibration, calibrate_jointly
from pdp_calibrate.calibration.proof import certified_leakage, checked_epsilon, proved
from pdp_calibrate.calibration.release import rounding_error
from pdp_calibrate.calibration.result import Calibration
from pdp_calibrate.calibration.solve import certified_scale
from pdp_calibrate.core import noise
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.bracket import Leakage
from pdp_calibrate.core.checks import checked_positive, checked_share
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.leakage import as_leakage, checked_queries, deadline_after
from pdp_calibrate.core.model import Model, warn_if_private
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import Query, frozen, lower
from pdp_calibrate.errors import CalibrationError, PdpError, QueryError


@overload
def calibrate(
    model: Model,
    query: Query,
    *,
    epsilon: float = 1.0,
    adversaries: Adversaries | None = None,
    shares: None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> Calibration: ...


@overload
def calibrate(
    model: Model,
    query: Sequence[Query],
    *,
    epsilon: float = 1.0,
    adversaries: Adversaries | None = None,
    shares: Sequence[float] | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> JointCalibration: ...


def calibrate(
    model: Model,
    query: Query | Sequence[Query],
    *,
    epsilon: float = 1.0,
    adversaries: Adversaries | None = None,
    shares: Sequence[float] | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> Calibration | JointCalibration:
    """Find the smallest Laplace scale at which no allowed adversary learns more than ε.

    Parameters
    ----------
    model
        How the tuples are correlated: θ, or a set Θ of which the worst member counts.
    query
        What will be released, once; a list is released together, under one ε. A second release
        of the same data leaks more.
    epsilon
        Nobody's log-odds about any two values of anyone's tuple may move by more than this.
    adversaries
        Who may attack; everyone by default, which implies plain ε-DP too.
    shares
        For a list, how the ε is divided: query m gets scale t·GS_m/share_m with one t for all.
        Equal shares by default.
    rows
        Number of independent rows that one answer is about; a mean divides by it.
    time_limit
        Seconds after which a larger, still proved scale is returned.

    Returns
    -------
    Calibration
        With ``leakage.value <= epsilon`` at exactly ``scale``. Where the engine is exact, a scale
        smaller by a millionth leaks more than ε.

    Raises
    ------
    CalibrationError
        If no scale can be certified, or any scale at all would do.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> cal = pdp.calibrate(table, pdp.Sum(), epsilon=1.0)
    >>> round(cal.scale, 4), cal.baselines["dp"], cal.baselines["group"]
    (1.1894, 1.0, 2.0)
    """
    target = checked_epsilon(epsilon)
    warn_if_private(model, "scale")
    everyone = Adversaries.all() if adversaries is None else adversaries
    if not isinstance(query, Query):
        return calibrate_jointly(
            model,
            checked_queries(query),
            epsilon=target,
            adversaries=everyone,
            shares=shares,
            rows=rows,
            deadline=deadline_after(time_limit),
        )
    if shares is not None:
        raise QueryError("shares divide ε among a list of queries; this is a single one.")
    fixed = frozen(query, model)
    contributions = lower(fixed, model, rows=rows)
    problems = split(model, contributions, everyone)
    scale, found = certified_scale(
        problems,
        target,
        rounding=rounding_error(contributions, rows, model),
        deadline=deadline_after(time_limit),
    )
    return Calibration(
        model=model,
        query=fixed,
        adversaries=everyone,
        epsilon=target,
        scale=scale,
        leakage=as_leakage(found, scale),
        rows=int(rows),
        contributions=contributions,
    )


def calibrate_to_accuracy(
    model: Model,
    query: Query,
    *,
    half_width: float,
    alpha: float = 0.05,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> Calibration:
    """Take the scale from a wanted accuracy, and say what ε it costs.

    Parameters
    ----------
    model, query, adversaries, rows, time_limit
        As in `calibrate`.
    half_width
        The noise may exceed this only with probability alpha.
    alpha
        That probability.

    Returns
    -------
    Calibration
        Whose ``epsilon`` is the certified leakage at that scale.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> cal = pdp.calibrate_to_accuracy(table, pdp.Sum(), half_width=10)
    >>> cal.accuracy(alpha=0.05), round(cal.epsilon, 4)
    (10.0, 0.3409)
    """
    checked_positive(half_width, "half_width", error=PdpError)
    checked_share(alpha, "alpha", error=PdpError)
    warn_if_private(model, "scale")
    everyone = Adversaries.all() if adversaries is None else adversaries
    fixed = frozen(query, model)
    contributions = lower(fixed, model, rows=rows)
    scale = noise.scale_for_half_width(half_width, alpha, integer=contributions.is_integer)
    leakage = certified_leakage(
        model, [contributions], [scale], everyone, rows=rows, deadline=deadline_after(time_limit)
    )
    if leakage.value <= 0:
        raise CalibrationError("the answer tells these adversaries nothing: it costs no epsilon.")
    return Calibration(
        model=model,
        query=fixed,
        adversaries=everyone,
        epsilon=leakage.value,
        scale=scale,
        leakage=leakage,
        rows=int(rows),
        contributions=contributions,
    )


def verify(calibration: Calibration | JointCalibration) -> Leakage:
    """Prove a calibration again, from its model, what it releases and its scales alone.

    Returns the leakage at its scales; raises `CalibrationError` if that is above its ε.
    """
    parts: Sequence[Contributions]
    scales: Sequence[float]
    if isinstance(calibration, Calibration):
        parts, scales = [calibration.contributions], [calibration.scale]
    else:
        parts, scales = calibration.contributions, calibration.scales
    leakage = certified_leakage(
        calibration.model, parts, scales, calibration.adversaries, rows=calibration.rows
    )
    return proved(leakage, checked_epsilon(calibration.epsilon))
