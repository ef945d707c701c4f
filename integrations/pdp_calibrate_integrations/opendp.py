"""OpenDP plugins: ``pip install "pdp-calibrate[opendp]"``.

Measurements that add Laplace noise at a calibrated scale to an answer that OpenDP's own
transformations computed. Their map is the PDP leakage:

- `make_pdp_laplace` under ``user_divergence("PDP")``: OpenDP can call and map it, but refuses to
  compose it, which is right, because leakages of correlated data do not add up.
- `make_pdp_and_dp_laplace` under ``max_divergence()``, for the Context API: the map is the larger
  of leakage and plain DP, both true of this release. OpenDP composes such measurements by adding,
  and the sum then bounds plain DP only: **PDP composes through a `Ledger`**.

Neighbours: OpenDP states them by the input metric. A PDP model substitutes a tuple among a known
number of them: that is distance 1 for ``change_one_distance``/``hamming_distance``, and distance 2
for ``symmetric_distance`` on a domain of known size (https://docs.opendp.org, "Distances"). The map
takes how far the *answer* moves; more than the calibrated query can move is refused, since then
the answer is another one, or its size is not public.

Measurements defined in Python need ``dp.enable_features("contrib", "honest-but-curious")``: it says
that you take responsibility for them, so you must enable it yourself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from pdp_calibrate import (
    Calibration,
    CalibrationError,
    Ledger,
    PdpError,
    QueryError,
    UnsupportedQueryError,
    verify,
)
from pdp_calibrate.calibration.result import with_laplace_noise
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.model import refuse_endless
from pdp_calibrate_integrations.handover import check_clamped, with_gaussian_noise
from pdp_calibrate_integrations.requiring import require

_FEATURES = ("contrib", "honest-but-curious")
_LOOSE = 1e-3  # maps of float sums exceed the true distance by the rounding of the sum
_SUBSTITUTION = {
    "SymmetricDistance": 2,
    "InsertDeleteDistance": 2,
    "SymmetricIdDistance": 2,
    "ChangeOneDistance": 1,
    "HammingDistance": 1,
    "ChangeOneIdDistance": 1,
}
"""How far apart two databases are that differ in one tuple's value."""


def make_pdp_laplace(
    input_domain: Any, input_metric: Any, calibration: Calibration, *, ledger: Ledger | None = None
) -> Any:
    """Add Laplace noise at the calibrated scale; the map is the PDP leakage.

    Parameters
    ----------
    input_domain, input_metric
        Of the answer: numbers with absolute distance, or vectors of them with L1 distance.
    calibration
        Of the query that the answer is about; OpenDP cannot check that it is. Its sums clamp, so
        calibrate Gaussian models with ``clamp=True``.
    ledger
        Where each call is recorded first; it refuses what does not fit.

    Returns
    -------
    Measurement
        From answers to noisy answers, under ``user_divergence("PDP")``.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import pdp_calibrate as pdp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> twins = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> cal = pdp.calibrate(twins, pdp.Sum(), epsilon=1.0)
    >>> people = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=2), dp.symmetric_distance()
    >>> count = people >> dp.t.then_sum() >> then_pdp_laplace(cal)
    >>> round(count.map(2), 9), isinstance(count([1, 0]), int)
    (1.0, True)
    """
    dp = _opendp()
    leaks = _laplace_map(calibration)
    measure = dp.user_divergence("PDP")
    return _measurement(dp, input_domain, input_metric, measure, leaks, calibration, ledger)


def make_pdp_and_dp_laplace(
    input_domain: Any, input_metric: Any, calibration: Calibration, *, ledger: Ledger | None = None
) -> Any:
    """Add Laplace noise at the calibrated scale; the map is the larger of leakage and plain DP.

    Parameters
    ----------
    input_domain, input_metric, calibration, ledger
        As in `make_pdp_laplace`.

    Returns
    -------
    Measurement
        Under ``max_divergence()``, so the Context API takes it. What OpenDP composes of it holds
        for plain DP; for PDP pass a ``ledger``.
    """
    dp = _opendp()
    leaks = _laplace_map(calibration)

    def map_both(distance: Any) -> float:
        plain = math.nextafter(float(distance) / calibration.scale, math.inf)
        return max(leaks(distance), plain)

    measure = dp.max_divergence()
    return _measurement(dp, input_domain, input_metric, measure, map_both, calibration, ledger)


def make_pdp_gaussian(
    input_domain: Any, input_metric: Any, calibration: Calibration, *, ledger: Ledger | None = None
) -> Any:
    """Add Gaussian noise at the calibrated σ; the map is the PDP leakage ε beside its δ.

    Parameters
    ----------
    input_domain, input_metric
        Of the answer: floats with absolute distance, or vectors of them with L2 distance. Integer
        Gaussian noise does not keep a μ, so whole numbers are to be cast to floats first.
    calibration, ledger
        As in `make_pdp_laplace`; the calibration is of ``noise="gaussian"``.

    Returns
    -------
    Measurement
        Under ``user_divergence("PDP")``, as that of `make_pdp_laplace`.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import pdp_calibrate as pdp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> home = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4))
    >>> cal = pdp.calibrate(home, pdp.Sum(clamp=True), noise="gaussian", epsilon=1.0, delta=1e-6)
    >>> answer = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> round(make_pdp_gaussian(*answer, cal).map(4.0), 9)
    1.0
    """
    dp = _opendp()
    calibration = with_gaussian_noise(calibration, "OpenDP")
    if "f64" not in str(input_domain.carrier_type):
        raise QueryError(
            f"the domain holds {input_domain.carrier_type}: Gaussian noise on whole numbers does"
            " not keep a mu. Use a domain of f64."
        )
    leaks = _leakage_map(calibration)
    measure = dp.user_divergence("PDP")
    return _measurement(dp, input_domain, input_metric, measure, leaks, calibration, ledger)


def then_pdp_laplace(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return `make_pdp_laplace` without its domain and metric, to be chained with ``>>``."""
    return _then(make_pdp_laplace)(calibration, ledger=ledger)


def then_pdp_gaussian(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return `make_pdp_gaussian` without its domain and metric, to be chained with ``>>``."""
    return _then(make_pdp_gaussian)(calibration, ledger=ledger)


def then_pdp_and_dp_laplace(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return `make_pdp_and_dp_laplace` without its domain and metric, to be chained with ``>>``."""
    return _then(make_pdp_and_dp_laplace)(calibration, ledger=ledger)


def register() -> None:
    """Put ``.pdp_laplace`` and ``.pdp_and_dp_laplace`` on the queries of OpenDP's Context API."""
    context = require("opendp.context", extra="opendp")
    for constructor in (make_pdp_laplace, make_pdp_and_dp_laplace, make_pdp_gaussian):
        if constructor.__name__.removeprefix("make_") not in context.constructors:
            context.register(constructor)


def make_pdp_lazyframe(
    input_domain: Any, input_metric: Any, expression: Any, calibration: Calibration
) -> Any:
    """Release one noisy expression of a Polars LazyFrame at a pinned scale.

    Parameters
    ----------
    input_domain, input_metric
        Of the frame. Its number of rows must be public: give the domain a margin with
        ``invariant="lengths"`` and a ``max_length``.
    expression
        With a scale of its own, such as ``pl.col("x").dp.sum((0, 1), scale=cal.scale)``; it must
        be the query of the calibration. OpenDP's Context would rescale it; here it is kept.
    calibration
        Of the query. Only OpenDP's rounding error on top of it is checked, not the query itself.

    Returns
    -------
    Measurement
        OpenDP's own, under ``max_divergence()``: its map tells the plain-DP cost. What it leaks
        about correlated tuples is at most ``calibration.epsilon``.

    Raises
    ------
    CalibrationError
        If the expression has less noise than is needed, rounding of its sum included.
    """
    dp = require("opendp.prelude", extra="opendp")
    require("polars", extra="opendp")
    _check_features("contrib")
    domains = require("opendp.domains", extra="opendp")
    plan = domains._lazyframe_from_domain(input_domain).select(expression)  # noqa: SLF001
    measurement = dp.m.make_private_lazyframe(
        input_domain, input_metric, dp.max_divergence(), plan, global_scale=1.0
    )
    summary = require("opendp.accuracy", extra="opendp").summarize_polars_measurement(measurement)
    if summary.height != 1 or not summary["distribution"][0].endswith("Laplace"):
        raise UnsupportedQueryError(
            "the expression must release one number with Laplace noise, got"
            f" {summary['distribution'].to_list()}."
        )
    scale = float(summary["scale"][0])
    spent = float(measurement.map(_substitution_distance(input_metric)))
    with_laplace_noise(calibration, "the expression")
    refuse_endless([calibration.model], "the expression")
    check_clamped(calibration)
    moves = calibration.sensitivity
    if scale < calibration.scale or spent * scale > moves * (1 + _LOOSE):
        raise CalibrationError(
            f"the expression moves by up to {spent * scale:.6g} with noise of scale {scale:.6g};"
            f" the query moves by {moves:.6g} and needs {calibration.scale:.6g}. Give the margin"
            " invariant='lengths', and the expression the bounds of the model and this scale."
        )
    rounding = max(0.0, spent - moves / scale)
    if rounding > calibration.epsilon - calibration.leakage.value:
        # The sum's own rounding costs its share; a slightly larger scale makes slack for it.
        less = calibration.epsilon - rounding
        verify(dataclasses.replace(calibration, scale=scale, epsilon=less))
    return measurement


def _measurement(
    dp: Any,
    input_domain: Any,
    input_metric: Any,
    measure: Any,
    privacy_map: Callable[[Any], float],
    calibration: Calibration,
    ledger: Ledger | None,
) -> Any:
    carrier = str(input_domain.carrier_type)
    if "f64" not in carrier and ("f32" in carrier or not calibration.is_integer):
        raise QueryError(
            f"the domain holds {carrier}: rounding the answer to it before the noise is not"
            " covered. Use a domain of f64, or of integers for whole numbers."
        )
    check_clamped(calibration)
    make = dp.m.make_gaussian if calibration.noise == "gaussian" else dp.m.make_laplace
    noisy = make(input_domain, input_metric, scale=float(calibration.scale))

    def function(answer: Any) -> Any:
        if ledger is not None:
            ledger.spend(calibration)
        return noisy(answer)

    return dp.m.make_user_measurement(
        input_domain, input_metric, measure, function, privacy_map, TO=carrier
    )


def _laplace_map(calibration: Calibration) -> Callable[[Any], float]:
    with_laplace_noise(calibration, "Laplace noise")
    refuse_endless([calibration.model], "Laplace noise")
    return _leakage_map(calibration)


def _leakage_map(calibration: Calibration) -> Callable[[Any], float]:
    moves = calibration.sensitivity

    def leaks(distance: Any) -> float:
        """Return the leakage, plus what OpenDP says its sum may be off."""
        excess = float(distance) - moves
        if excess > _LOOSE * moves:
            raise PdpError(
                f"the answer may move by {float(distance):.6g}, the calibrated query by"
                f" {moves:.6g} only. Use a domain of known size with the bounds of the model, and"
                " the distance of one substitution (2 for symmetric distance)."
            )
        if excess <= 0:
            return calibration.leakage.value
        if calibration.leakage.mu is not None:
            strength = calibration.leakage.mu + excess / calibration.scale
            scales = [calibration.scale]
            return gaussian_dp.epsilon_of_drawn(strength, calibration.delta, scales)
        return math.nextafter(calibration.leakage.value + excess / calibration.scale, math.inf)

    return leaks


def _substitution_distance(input_metric: Any) -> int:
    name = str(input_metric).split("(")[0]
    if name not in _SUBSTITUTION:
        raise UnsupportedQueryError(
            f"the metric must be one of {', '.join(_SUBSTITUTION)}, got {name}."
        )
    return _SUBSTITUTION[name]


def _opendp() -> Any:
    dp = require("opendp.prelude", extra="opendp")
    _check_features(*_FEATURES)
    return dp


def _check_features(*features: str) -> None:
    enabled = require("opendp.mod", extra="opendp").GLOBAL_FEATURES
    missing = [feature for feature in features if feature not in enabled]
    if missing:
        called = ", ".join(f'"{feature}"' for feature in missing)
        raise PdpError(
            f"OpenDP's features {called} are not enabled. Calling"
            f" dp.enable_features({called}) says that you vouch for measurements that OpenDP"
            " itself has not proved, so you must call it yourself."
        )


def _then(constructor: Any) -> Any:
    return require("opendp.extras._utilities", extra="opendp").to_then(constructor)
