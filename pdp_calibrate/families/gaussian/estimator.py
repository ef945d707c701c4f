"""Fit a Gaussian model, or a set of them, to a frame with one column per tuple."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.coverage import Coverage
from pdp_calibrate.core.model import Bounds, Model, checked_bounds
from pdp_calibrate.errors import ModelError, ModelFitWarning
from pdp_calibrate.families.gaussian.model import Gaussian, bounds_for
from pdp_calibrate.families.gaussian.private_moments import ball_radius, private_moments
from pdp_calibrate.families.gaussian.sets import LoewnerBall, SampledGaussian
from pdp_calibrate.frames.open import columns_of
from pdp_calibrate.frames.recoded import within_reach
from pdp_calibrate.learning.base import (
    CONFIDENCE,
    FrameEstimator,
    Source,
    confidence_for,
)
from pdp_calibrate.learning.gaussianity import Normality, normality
from pdp_calibrate.learning.moments import Moments, moments_of, moments_of_any
from pdp_calibrate.learning.private_sums import numbers_of

Method = Literal["auto", "empirical", "ledoit-wolf", "oas", "graphical-lasso"]


_METHODS: tuple[str, ...] = get_args(Method)


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianEstimator(FrameEstimator):
    """Estimate a multivariate normal law from independent rows.

    Parameters
    ----------
    covariance
        ``"empirical"`` (the sample covariance), ``"ledoit-wolf"``, ``"oas"`` or
        ``"graphical-lasso"`` (cross-validated, which needs the rows in memory; where it does not
        converge, public rows raise, and of private ones Ledoit and Wolf's is taken), all on
        standardised columns. ``"auto"`` is the sample covariance, and ``"ledoit-wolf"`` where no
        confidence is asked for, or where there are fewer than two rows more than columns and none
        is given.
    bounds
        Public range of each column: one pair for all, one per column, or ``{column: pair}``. Never
        take them from the data.
    confidence
        Fit a set of laws that fails to cover the truth with probability at most 1 − confidence,
        over the sample, if the rows are Gaussian. None fits one law, a point: nothing covers its
        error; not with `epsilon`, where the set covers the noise too. A shrunk covariance has no
        band: there an omitted confidence gives a law marked so, and a number raises. Of public
        rows, calibrating a point warns where its scale leaks far more under the set.
    epsilon
        Learn under ε-differential privacy for substituting one row; the number of rows is public.
        Values are clipped to their bounds, noise goes on means of values and of products; the
        relative error of the covariance grows with the square of the number of columns. The set is
        a Loewner ball that covers the noise and the clipping too, as far as the noisy moments show
        how far the bounds are: bounds a few standard deviations away from the means are needed.
        What rules nothing out raises. Sample covariance only.
    source
        ``"private"`` if the rows are secret (then the noise scale itself leaks), ``"public"`` if
        they are public or historical. Of private rows none is refused for what it holds: a cell
        that is missing, not finite or more than a million widths of the bounds away counts as the
        middle of its bounds, which nothing covers.

    Attributes
    ----------
    model_ : Gaussian, SampledGaussian or LoewnerBall
        The fitted law, or set of laws.
    diagnostics_ : Normality or None
        How Gaussian public rows look; None with too few rows to say, and of private rows.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rows = np.random.default_rng(0).normal(size=(200, 2)) @ [[1, 0.5], [0, 1]]
    >>> frame = pd.DataFrame(rows, columns=["father", "son"])
    >>> GaussianEstimator(bounds=(-4, 4), source="public").fit(frame).model_
    SampledGaussian(Gaussian(father, son; public), 0.95 confidence)
    >>> GaussianEstimator(bounds=(-4, 4), confidence=None, source="public").fit(frame).model_
    Gaussian(father, son; public)
    """

    covariance: Method = "auto"
    bounds: Bounds | Mapping[Hashable, tuple[float, float]] | None = None
    confidence: float | None = CONFIDENCE
    epsilon: float | None = None
    source: Source = "private"

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Fit the model to a frame with one column per tuple and one row per instance."""
        if self.covariance not in _METHODS:
            raise ModelError(f"covariance must be one of {_METHODS}, got {self.covariance!r}.")
        shrinks = self.covariance not in {"auto", "empirical"}
        sure = confidence_for(
            self.confidence,
            epsilon=epsilon,
            no_band=f"it needs the sample covariance, got covariance={self.covariance!r}; a shrunk"
            " one can lie outside its own bands. Use covariance='empirical', or leave confidence"
            " out."
            if shrinks
            else None,
        )
        if not self._may_test:
            frame = within_reach(frame, self._ranges(frame))
        if epsilon is not None:
            self.diagnostics_ = None
            covered = self._coverage(sure)
            return self._fit_privately(frame, epsilon, sure).with_coverage(covered)
        ranges = tuple(self._ranges(frame).values())
        moments = moments_of(frame) if self._may_test else moments_of_any(frame, ranges)
        need = len(moments.names) + 2
        few = self.covariance == "auto" and moments.rows < need
        if few and self.confidence is CONFIDENCE:  # the number of rows is public
            sure = None

        def fitted(confidence: float | None) -> Gaussian | SampledGaussian:
            return fitted_model(
                moments,
                covariance=self.covariance,
                bounds=ranges,
                confidence=confidence,
                provenance=self.source,
            )

        found = fitted(sure)
        self.diagnostics_ = normality(moments) if self._may_test else None
        if self.diagnostics_ is not None and self.diagnostics_.is_plainly_wrong:
            warnings.warn(_in_words(self.diagnostics_), ModelFitWarning, stacklevel=3)
        if sure is not None:
            return found.with_coverage(self._coverage(sure))
        if shrinks or moments.rows < need:
            return found.with_coverage(Coverage(kind="no band"))
        upper = fitted(float(CONFIDENCE)) if self._may_test else None
        return found.with_coverage(Coverage(kind="point", upper=upper))

    def _ranges(self, frame: Any) -> dict[str, tuple[float, float]]:
        """Return the bounds of each column, by name."""
        names = columns_of(frame)
        if not names:
            raise ModelError("the frame must have at least one column, got none.")
        ranges = checked_bounds(bounds_for(self.bounds, tuple(names)), len(names))
        return dict(zip(names, ranges, strict=True))

    def _fit_privately(self, frame: Any, epsilon: float, confidence: float | None) -> LoewnerBall:
        if confidence is None:
            raise ModelError(
                f"epsilon needs the sample covariance, got covariance={self.covariance!r}: the"
                " amount of shrinkage would be read from the rows. Use covariance='empirical'."
            )
        names, matrix = numbers_of(frame)
        bounds = tuple(self._ranges(frame).values())
        if len(matrix) < 2:
            raise ModelError(f"at least 2 rows are needed, got {len(matrix)}.")
        return privately_fitted(names, matrix, bounds, epsilon=epsilon, confidence=confidence)


def fitted_model(
    moments: Moments,
    *,
    covariance: str,
    bounds: Bounds,
    confidence: float | None,
    provenance: str,
) -> Gaussian | SampledGaussian:
    """Return the law, or with a confidence the set of laws, that fits the moments."""
    size = len(moments.names)
    shrinks = covariance != "empirical" and confidence is None
    need = 3 if shrinks else size + 2
    if moments.rows < need:
        remedy = "" if shrinks else " Collect more rows, or use covariance='ledoit-wolf'."
        raise ModelError(f"{size} columns need at least {need} rows, got {moments.rows}.{remedy}")
    method = "ledoit-wolf" if covariance == "auto" else covariance
    matrix = _SHRINKERS[method](moments) if shrinks else moments.covariance
    ranges = checked_bounds(bounds, size)
    try:
        center = Gaussian(
            mean=moments.mean,
            covariance=matrix,
            bounds=ranges,
            names=moments.names,
            provenance=provenance,
        )
    except ModelError:  # its message holds an eigenvalue of rows that may be secret
        raise ModelError(
            "the covariance of the columns is not positive definite: some column is (nearly) a"
            " combination of others. Leave it out, or use covariance='ledoit-wolf'."
        ) from None
    if confidence is None:
        return center
    return SampledGaussian(center=center, rows=moments.rows, confidence=confidence)


def privately_fitted(
    names: tuple[Hashable, ...],
    matrix: FloatArray,
    bounds: tuple[tuple[float, float], ...],
    *,
    epsilon: float,
    confidence: float,
) -> LoewnerBall:
    """Return the ball of laws learned under ε-DP from the rows, with this confidence."""
    found = private_moments(matrix, bounds, epsilon=epsilon)
    radius = ball_radius(found, confidence=confidence)
    lows, highs = np.array(bounds).T
    half = highs / 2 - lows / 2
    center = Gaussian(
        mean=np.clip(found.mean * half + (lows / 2 + highs / 2), lows, highs),
        covariance=found.covariance * np.outer(half, half),
        bounds=bounds,
        names=names,
        provenance="dp",
    ).learned_with(epsilon)
    return LoewnerBall(center=center, radius=radius)


def _in_words(found: Normality) -> str:
    return (
        "the rows are plainly not Gaussian"
        f" (most skewed column: {found.skewest}; least normal tails: {found.heaviest})."
        " The leakage reported is exact for a Gaussian with this covariance; for the true law it is"
        " an approximation, and the privacy guarantee is not proven. Transform the columns, or"
        " discretise them and use a JointTable."
    )


def _ledoit_wolf(moments: Moments) -> FloatArray:
    """Shrink towards a multiple of the identity (Ledoit and Wolf, J. Multivar. Anal. 88, 2004).

    With S the covariance of p standardised columns z and μ = tr S/p, the weight of μ·I is
    min(β, δ)/δ for δ = |S − μI|² and β = (Σ_k |z_k|⁴/N − |S|²)/N: only sums over rows.
    """
    sample = _standardised_covariance(moments)
    level = float(np.trace(sample)) / len(sample)
    spread = float(np.sum((sample - level * np.eye(len(sample))) ** 2))
    error = (moments.shape.lengths / moments.rows - float(np.sum(sample**2))) / moments.rows
    shrinks = error > 0 and spread > 0
    return _towards_identity(moments, sample, min(error, spread) / spread if shrinks else 0.0)


def _oas(moments: Moments) -> FloatArray:
    """Shrink by the oracle approximation (Chen, Wiesel, Eldar, Hero, IEEE TSP 58, 2010)."""
    sample = _standardised_covariance(moments)
    size = len(sample)
    mean_square, level = float(np.mean(sample**2)), float(np.trace(sample)) / size
    spread = (moments.rows + 1) * (mean_square - level**2 / size)
    weight = 1.0 if spread == 0 else min((mean_square + level**2) / spread, 1.0)
    return _towards_identity(moments, sample, weight)


def _standardised_covariance(moments: Moments) -> FloatArray:
    return moments.correlation * ((moments.rows - 1) / moments.rows)


def _towards_identity(moments: Moments, sample: FloatArray, weight: float) -> FloatArray:
    target = np.eye(len(sample)) * (np.trace(sample) / len(sample))
    return _rescaled(moments, (1 - weight) * sample + weight * target)


def _graphical_lasso(moments: Moments) -> FloatArray:
    from sklearn.covariance import GraphicalLassoCV
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        if moments.private:
            warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            fitted = GraphicalLassoCV(assume_centered=True).fit(moments.standardised())
        except (ConvergenceWarning, FloatingPointError, np.linalg.LinAlgError) as error:
            if moments.private:  # an error would say something about a row
                return _ledoit_wolf(moments)
            raise ModelError(
                "the graphical lasso did not converge; use covariance='ledoit-wolf'."
            ) from error
    return _rescaled(moments, fitted.covariance_)


def _rescaled(moments: Moments, matrix: FloatArray) -> FloatArray:
    """Undo the divisor N, and the units."""
    return moments.in_units(np.asarray(matrix) * (moments.rows / (moments.rows - 1)))


_SHRINKERS: dict[str, Callable[[Moments], FloatArray]] = {
    "ledoit-wolf": _ledoit_wolf,
    "oas": _oas,
    "graphical-lasso": _graphical_lasso,
}
