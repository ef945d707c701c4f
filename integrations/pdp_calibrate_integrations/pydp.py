"""PyDP, Google's C++ building blocks: ``pip install "pdp-calibrate[pydp]"``.

Neighbours: Google's library protects adding or removing all records of one user (Wilson et al.,
"Differentially Private SQL with Bounded User Contribution", arXiv 1909.01917, which its
documentation refers to), and its bounded sum accordingly draws noise for the larger of abs(lower)
and abs(upper), not for upper − lower. So a budget is handed over as ``add-remove``: half.
`laplace` and `bounded_sum` set the scale itself, to which no relation matters.

The sampler rounds answers to a grid of 2^-40 scales; the scale handed over is larger by what that
costs.
"""

from __future__ import annotations

from typing import Any

from pdp_calibrate import Calibration, Ledger
from pdp_calibrate.core.model import Model
from pdp_calibrate_integrations.handover import (
    GRID_ROUNDING,
    laplace_parameters,
    sum_parameters,
)
from pdp_calibrate_integrations.requiring import require
from pdp_calibrate_integrations.wrapping import Wrapped, wrap


def laplace(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return PyDP's Laplace mechanism at the calibrated scale, for one release.

    Parameters
    ----------
    calibration
        What will be released. Every number of its answer gets `add_noise` once.
    ledger
        Where the release is recorded first; it refuses what does not fit.

    Returns
    -------
    pydp.algorithms.numerical_mechanisms.LaplaceMechanism
        Whose `diversity` is the scale and whose `epsilon` is the plain-DP budget.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> twins = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> cal = pdp.calibrate(twins, pdp.Sum(), epsilon=1.0)
    >>> mechanism = laplace(cal)
    >>> 0 <= mechanism.diversity / cal.scale - 1 < 1e-9, isinstance(mechanism.add_noise(1), int)
    (True, True)
    """
    mechanisms = require("pydp.algorithms.numerical_mechanisms", extra="pydp")
    handed = laplace_parameters(calibration, slack=GRID_ROUNDING, ledger=ledger)
    return mechanisms.LaplaceMechanism(epsilon=handed.epsilon, sensitivity=handed.sensitivity)


def bounded_sum(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return PyDP's bounded sum with noise of exactly the calibrated scale, for one result.

    Parameters
    ----------
    calibration
        Of a sum, mean, weighted sum or count; of Gaussian models with ``clamp=True``. Real numbers
        are added up with rounding: that of 10,000 values is covered, or of as many as ``rows=``
        of the calibration says.
    ledger
        Where the release is recorded first; it refuses what does not fit.

    Returns
    -------
    pydp.algorithms.laplacian.BoundedSum
        To be given what each tuple *adds* to the answer, once per tuple: for a sum its value, for
        a count 0 or 1, for a mean its value over the number of values. It clamps to the bounds of
        the model and gives one result.
    """
    algorithms = require("pydp.algorithms.laplacian", extra="pydp")
    lower, upper, dp_epsilon = sum_parameters(calibration, ledger=ledger)
    whole = calibration.is_integer
    return algorithms.BoundedSum(
        epsilon=dp_epsilon,
        lower_bound=int(lower) if whole else lower,
        upper_bound=int(upper) if whole else upper,
        l0_sensitivity=1,
        linf_sensitivity=1,
        dtype="int64" if whole else "float",
    )


def with_budget(
    algorithm: Any, *, model: Model, epsilon: float, ledger: Ledger | None = None
) -> Wrapped[Any]:
    """Give a PyDP algorithm the plain-DP budget that keeps ε for correlated tuples.

    Parameters
    ----------
    algorithm
        A class such as `BoundedMean`, `Count` or `Percentile` of `pydp.algorithms.laplacian`.
    model, epsilon, ledger
        As in `wrap`. Each tuple is one entry of the algorithm; each that is built is charged, and
        PyDP lets it give one result.

    Returns
    -------
    Wrapped
        To be called like the class, without ``epsilon``.
    """
    require("pydp", extra="pydp")
    wrapped: Wrapped[Any] = wrap(
        algorithm, model=model, epsilon=epsilon, neighbours="add-remove", ledger=ledger
    )
    return wrapped
