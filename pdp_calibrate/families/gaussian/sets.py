"""Sets Θ of Gaussian models around an estimate.

Theorem 11 (docs/theory).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from pdp_calibrate.arrays import FloatArray, check_number, checked_share
from pdp_calibrate.core.composite import Around
from pdp_calibrate.core.schema_parts import COUNT, NUMBER, ref
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.model import Gaussian


class _AroundGaussian(Around):
    """All Gaussians near a central one."""

    is_continuous = True
    engine = "pdp_calibrate.families.gaussian.search:GaussianEngine"
    gaussian_noise_engine = "pdp_calibrate.families.gaussian.gaussian_noise:GaussianNoiseEngine"
    composer = "pdp_calibrate.families.gaussian.composed:ShiftComposer"

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlations of the central Gaussian."""
        return self.center.pearson_matrix()

    def normal_marginals(self) -> tuple[FloatArray, FloatArray] | None:
        """Return those of the central Gaussian."""
        return self.center.normal_marginals()


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class LoewnerBall(_AroundGaussian):
    """All Gaussians with (1−τ)·Σ̂ ⪯ Σ ⪯ (1+τ)·Σ̂: every variance within a factor 1 ± τ.

    Parameters
    ----------
    center
        The Gaussian with covariance Σ̂. A confidence ball is valid only around a sample
        covariance, not around a shrunk one.
    radius
        τ, at least 0 and below 1.
    provenance
        The centre's by default.

    Examples
    --------
    >>> pair = Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    >>> LoewnerBall(center=pair, radius=0.1)
    LoewnerBall(Gaussian(x1, x2; assumed))
    """

    defined_by = ("center", "radius")
    dependence = "jointly Gaussian entries, every variance within the stated factor"
    json_fields: ClassVar = {"center": ref("Gaussian"), "radius": NUMBER}
    exact_knowledge_is_worst = True

    center: Gaussian
    """The central Gaussian."""
    radius: float
    """How far every variance may be off, as a fraction of it."""

    def __init__(self, *, center: Gaussian, radius: float, provenance: str | None = None) -> None:
        _check_center(center)
        check_number(radius, "radius")
        if not 0 <= radius < 1:
            raise ModelError(f"radius must be at least 0 and below 1, got {radius}.")
        self._settle_around(center, provenance, radius=float(radius))

    @staticmethod
    def radius_for(*, rows: int, tuples: int, confidence: float) -> float:
        """Return a τ whose ball around a sample covariance leaks at least as much as the truth.

        With δ = (√n + √(2 ln(2/β)))/√(N−1) < 1, where N is the number of Gaussian rows, n of
        tuples and 1−β the confidence, the ball of radius 2δ/(1+δ²) around the sample covariance
        contains a multiple c·Σ of the true covariance with probability at least 1−β. It need not
        contain Σ itself, but coefficients, and so leakages, do not change with c. The bands of
        `SampledGaussian` are tighter; use this where a ball has to be stated.

        >>> round(LoewnerBall.radius_for(rows=1000, tuples=5, confidence=0.95), 3)
        0.306
        """
        _check_sample(rows, confidence)
        failure = 1 - confidence
        spread = (math.sqrt(tuples) + math.sqrt(2 * math.log(2 / failure))) / math.sqrt(rows - 1)
        if spread >= 1:
            need = math.ceil((math.sqrt(tuples) + math.sqrt(2 * math.log(2 / failure))) ** 2) + 2
            raise ModelError(
                f"a ball for {tuples} tuples at this confidence needs at least {need} rows,"
                f" got {rows}."
            )
        return 2 * spread / (1 + spread**2)

    def __repr__(self) -> str:
        return f"LoewnerBall({self.center!r})"


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class SampledGaussian(_AroundGaussian):
    """Every Gaussian that a sample does not rule out, by t-bands on regression coefficients.

    The leakage of an adversary is a regression coefficient. In a sample of Gaussian rows the error
    of its estimate, over its standard error, is a Student t variable; bands that hold for all
    targets and known sets together contain the truth with the stated confidence. The guarantee then
    fails with probability at most 1 − confidence over the sample, for the query asked (a list of
    queries asked together counts as one); it assumes that the rows are independent and Gaussian.

    Parameters
    ----------
    center
        The Gaussian with the **sample** covariance (divisor N−1) of the rows.
    rows
        N, the number of rows it was estimated from; more than the number of tuples plus one.
    confidence
        Probability with which the bands hold, 0.95 by default.
    provenance
        The centre's by default.

    Examples
    --------
    >>> pair = Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    >>> SampledGaussian(center=pair, rows=200)
    SampledGaussian(Gaussian(x1, x2; assumed), 0.95 confidence)
    """

    defined_by = ("center", "rows", "confidence")
    dependence = "jointly Gaussian entries that the sample does not rule out"
    json_fields: ClassVar = {"center": ref("Gaussian"), "rows": COUNT, "confidence": NUMBER}

    center: Gaussian
    """The Gaussian with the sample covariance."""
    rows: int
    """How many rows it was estimated from."""
    confidence: float
    """Probability that the bands hold."""

    def __init__(
        self,
        *,
        center: Gaussian,
        rows: int,
        confidence: float = 0.95,
        provenance: str | None = None,
    ) -> None:
        _check_center(center)
        _check_sample(rows, confidence)
        need = len(center.names) + 2  # the largest regression needs one degree of freedom
        if rows < need:
            raise ModelError(
                f"bands for {len(center.names)} tuples need at least {need} rows, got {rows}."
            )
        self._settle_around(center, provenance, rows=int(rows), confidence=float(confidence))

    @property
    def certainty(self) -> str:
        """How sure the promise is over the sample, for independent Gaussian rows."""
        return (
            "The error of the sample is covered: over the rows seen, the promise fails with"
            f" probability at most {1 - self.confidence:.2g}, for one query and independent"
            " Gaussian rows."
        )

    def __repr__(self) -> str:
        return f"SampledGaussian({self.center!r}, {self.confidence:.4g} confidence)"


def _check_center(center: object) -> None:
    if not isinstance(center, Gaussian):
        raise ModelError(f"center must be a Gaussian, got {type(center).__name__}.")


def _check_sample(rows: int, confidence: float) -> None:
    if not hasattr(rows, "__index__") or int(rows) < 2:
        raise ModelError(f"rows must be a whole number of at least 2, got {rows!r}.")
    checked_share(confidence, "confidence")
