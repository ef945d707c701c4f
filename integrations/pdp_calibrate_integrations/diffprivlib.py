"""IBM's diffprivlib: ``pip install "pdp-calibrate[diffprivlib]"``.

Neighbours: the documentation does not name a relation, so it is read from the sensitivities in the
code of each tool (0.6.6). `sum`, `count_nonzero` and `mean` draw noise for upper − lower, or that
over the number of values: **substitution**. Histograms draw noise for 1 in each bin, while a
substitution changes two: **add/remove**, so half goes in. Everything else, `models` included, mixes
both or does not say: the safe half.

Its Laplace sampler works in floating point (Holohan and Braghin, arXiv 2107.10138, against known
attacks) and is not exact; for a release with exact noise use ``calibration.release``.
"""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

from pdp_calibrate import Calibration, Ledger, PdpError, UnsupportedQueryError
from pdp_calibrate.core.model import Model
from pdp_calibrate_integrations.handover import (
    Neighbours,
    gaussian_scale,
    laplace_parameters,
)
from pdp_calibrate_integrations.requiring import require
from pdp_calibrate_integrations.wrapping import Wrapped, wrap

_TOOLS: dict[str, Neighbours] = {
    "sum": "substitution",
    "mean": "substitution",
    "count_nonzero": "substitution",
    "histogram": "add-remove",
    "histogramdd": "add-remove",
    "histogram2d": "add-remove",
    "var": "unknown",
    "std": "unknown",
    "quantile": "unknown",
    "percentile": "unknown",
    "median": "unknown",
}


def laplace(
    calibration: Calibration,
    *,
    accountant: Any = None,
    ledger: Ledger | None = None,
) -> Any:
    """Return diffprivlib's Laplace mechanism at the calibrated scale, for one release.

    Parameters
    ----------
    calibration
        What will be released. Every number of its answer gets `randomise` once.
    accountant
        A `BudgetAccountant`, to which the plain-DP cost of the release is fed first.
    ledger
        Where the release is recorded first; it refuses what does not fit.

    Returns
    -------
    diffprivlib.mechanisms.Laplace
        Whose `epsilon` is the plain-DP budget and whose `sensitivity` over it is the scale.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> twins = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> cal = pdp.calibrate(twins, pdp.Sum(), epsilon=1.0)
    >>> mechanism = laplace(cal)
    >>> 0 <= mechanism.sensitivity / mechanism.epsilon / cal.scale - 1 < 1e-9
    True
    """
    library = require("diffprivlib", extra="diffprivlib")
    handed = laplace_parameters(calibration)
    mechanism = library.mechanisms.Laplace(epsilon=handed.epsilon, sensitivity=handed.sensitivity)
    if accountant is not None:
        accountant.check(handed.epsilon, 0)
    if ledger is not None:
        ledger.spend(calibration)
    if accountant is not None:
        accountant.spend(handed.epsilon, 0)
    return mechanism


def gaussian(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return diffprivlib's Gaussian mechanism at the calibrated standard deviation.

    Parameters
    ----------
    calibration
        What will be released, with ``noise="gaussian"``. Every number of its answer gets
        `randomise` once. The proof is about normal noise; diffprivlib's is normal in floating
        point (a sum of two draws, arXiv 2107.10138), which is close to it and not the same.
    ledger
        Where the release is recorded first; it refuses what does not fit.

    Returns
    -------
    diffprivlib.mechanisms.Gaussian
        Whose standard deviation is at least σ. Its ε, δ and sensitivity are those that give it by
        the classical formula, and say nothing about correlated values.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> home = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
    >>> cal = pdp.calibrate(home, pdp.Sum(), noise="gaussian", epsilon=1.0, delta=1e-6)
    >>> bool(0 <= gaussian(cal).variance(0) ** 0.5 / cal.scale - 1 < 1e-9)
    True
    """
    library = require("diffprivlib", extra="diffprivlib")
    scale = gaussian_scale(calibration, ledger=ledger)
    spread = math.sqrt(2 * math.log(1.25 / calibration.delta))
    sensitivity = scale / spread
    while True:
        mechanism = library.mechanisms.Gaussian(
            epsilon=1.0, delta=calibration.delta, sensitivity=sensitivity
        )
        if mechanism.variance(0) >= scale * scale:
            return mechanism
        sensitivity *= 1 + 1e-15


def with_budget(
    tool: Any, *, model: Model, epsilon: float, ledger: Ledger | None = None
) -> Wrapped[Any]:
    """Give a tool or model of diffprivlib the plain-DP budget that keeps ε for correlated tuples.

    Parameters
    ----------
    tool
        A function of `diffprivlib.tools`, or a class of `diffprivlib.models`.
    model
        How the tuples are correlated. Each is one entry of the array of a tool, one row of `X`.
    epsilon
        The most that anyone may learn from one call or one fit.
    ledger
        Charged before each call of a tool, and each time a model is built.

    Returns
    -------
    Wrapped
        To be called like the tool, without ``epsilon``. Bounds that diffprivlib would take from
        the data are refused, and so is a ``random_state``, which would make the noise known. A
        model may be fitted once, unless you pass an ``accountant`` of your own: it is fed by every
        fit, and each fit leaks ε again.

    Examples
    --------
    >>> import diffprivlib
    >>> import pdp_calibrate as pdp
    >>> twins = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> count = with_budget(diffprivlib.tools.count_nonzero, model=twins, epsilon=1.0)
    >>> accountant = diffprivlib.BudgetAccountant()
    >>> 0 <= count([1, 0], accountant=accountant) <= 2
    True
    >>> round(count.dp_epsilon, 4), round(accountant.total()[0], 4)
    (0.6299, 0.6299)
    """
    library = require("diffprivlib", extra="diffprivlib")
    name = getattr(tool, "__name__", "")
    if inspect.isclass(tool) and getattr(library.models, name, None) is tool:
        neighbours: Neighbours = "unknown"
        guarded = _fitted_once(tool, library)
    elif name in _TOOLS and getattr(library.tools, name, None) is tool:
        neighbours = _TOOLS[name]
        guarded = _with_given_bounds(tool, library)
    else:
        raise UnsupportedQueryError(
            f"with_budget takes {', '.join(_TOOLS)} of diffprivlib.tools and the classes of"
            f" diffprivlib.models, got {name or tool!r}. Tools that skip missing values divide by"
            " a number that the noise does not know of."
        )
    wrapped: Wrapped[Any] = wrap(
        guarded, model=model, epsilon=epsilon, neighbours=neighbours, ledger=ledger
    )
    return wrapped


def _fitted_once(model: Any, library: Any) -> Any:
    def build(*args: Any, epsilon: float, **kwargs: Any) -> Any:
        if kwargs.get("accountant") is None:  # refuses a second fit
            kwargs["accountant"] = library.BudgetAccountant(epsilon=epsilon, delta=0)
        return model(*args, epsilon=epsilon, **kwargs)

    build.__name__ = model.__name__
    build.__doc__ = model.__doc__
    build.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]
    return build


def _with_given_bounds(tool: Any, library: Any) -> Any:
    def call(*args: Any, epsilon: float, **kwargs: Any) -> Any:
        if kwargs.get("weights") is not None or isinstance(kwargs.get("bins"), str):
            raise PdpError(
                "a histogram with weights, or with bins chosen from the data, is not"
                " covered by its budget: count without weights, in bins given as edges or a number."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("error", library.utils.PrivacyLeakWarning)
            try:
                return tool(*args, epsilon=epsilon, **kwargs)
            except library.utils.PrivacyLeakWarning as warning:
                raise PdpError(
                    f"{tool.__name__} would take its bounds from the data, which no budget covers:"
                    " pass bounds= (for histograms range=)."
                ) from warning

    call.__name__ = tool.__name__
    call.__doc__ = tool.__doc__
    call.__signature__ = inspect.signature(tool)  # type: ignore[attr-defined]
    return call
