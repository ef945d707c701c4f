"""From ε, or from a wanted accuracy, to a scale."""

from __future__ import annotations

import math
import warnings

from pdp_calibrate import noise
from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.calibration.result import (
    PRIVATE_MODEL,
    Calibration,
    checked_epsilon,
    rounding_error,
)
from pdp_calibrate.engines import as_leakage, deadline_after
from pdp_calibrate.engines.problem import split
from pdp_calibrate.engines.solve import certified_scale, leakage_with_rounding
from pdp_calibrate.errors import CalibrationError, PdpError, PrivacyLeakWarning
from pdp_calibrate.models import Model
from pdp_calibrate.queries import Query, lower


def calibrate(
    model: Model,
    query: Query,
    *,
    epsilon: float = 1.0,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> Calibration:
    """Find the smallest Laplace scale at which no allowed adversary learns more than ε.

    Parameters
    ----------
    model
        How the tuples are correlated: θ, or a set Θ of which the worst member counts.
    query
        What will be released, once. A second release of the same data leaks more.
    epsilon
        Nobody's log-odds about any two values of anyone's tuple may move by more than this.
    adversaries
        Who may attack; everyone by default, which implies plain ε-DP too.
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
    _warn_if_private(model)
    everyone = Adversaries.all() if adversaries is None else adversaries
    contributions = lower(query, model, rows=rows)
    problems = split(model, contributions, everyone)
    scale, found = certified_scale(
        problems,
        target,
        rounding=rounding_error(contributions, rows),
        deadline=deadline_after(time_limit),
    )
    return Calibration(
        model=model,
        query=query,
        adversaries=everyone,
        epsilon=target,
        scale=scale,
        leakage=as_leakage(found, scale),
        rows=int(rows),
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
    if not 0 < half_width < math.inf or not 0 < alpha < 1:
        raise PdpError(
            "half_width must be positive and finite and alpha between 0 and 1,"
            f" got {half_width} and {alpha}."
        )
    _warn_if_private(model)
    everyone = Adversaries.all() if adversaries is None else adversaries
    contributions = lower(query, model, rows=rows)
    scale = noise.scale_for_half_width(half_width, alpha, integer=contributions.is_integer)
    found, _ = leakage_with_rounding(
        split(model, contributions, everyone),
        scale,
        rounding=rounding_error(contributions, rows),
        deadline=deadline_after(time_limit),
    )
    if found.value <= 0:
        raise CalibrationError("the answer tells these adversaries nothing: it costs no epsilon.")
    return Calibration(
        model=model,
        query=query,
        adversaries=everyone,
        epsilon=found.value,
        scale=scale,
        leakage=as_leakage(found, scale),
        rows=int(rows),
    )


def _warn_if_private(model: Model) -> None:
    if model.provenance == "private":
        warnings.warn(PRIVATE_MODEL, PrivacyLeakWarning, stacklevel=3)
