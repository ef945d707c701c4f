"""Jointly Gaussian tuples with public ranges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, frozen_array, read_only
from pdp_calibrate.core.model import (
    Bounds,
    Domain,
    Model,
    checked_bounds,
    checked_names,
)
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.schema_parts import MATRIX, RANGE, VECTOR, items
from pdp_calibrate.errors import ModelError, printable

_ASYMMETRY = 1e-9  # relative to the standard deviations; the rounding of a computed covariance


def bounds_for(
    bounds: Bounds | Mapping[Hashable, tuple[float, float]] | None, names: tuple[Hashable, ...]
) -> Bounds:
    """Bring bounds that are given by name into the order of the names."""
    if bounds is None:
        raise ModelError(
            "bounds must be given: the public range of each column, not the range of the data."
        )
    if not isinstance(bounds, Mapping):
        return bounds
    absent = [str(name) for name in names if name not in bounds]
    unknown = [str(name) for name in bounds if name not in names]
    if absent or unknown:
        raise ModelError(
            f"bounds must name every column once; missing: {absent}, unknown: {unknown}."
        )
    return [bounds[name] for name in names]


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class GaussianTuples(Model):
    """Jointly Gaussian tuples with public ranges, however their dependence is given."""

    is_continuous = is_gaussian = True
    exact_knowledge_is_worst = True

    mean: FloatArray
    """One mean per tuple, read-only."""
    bounds: tuple[tuple[float, float], ...]
    """The public range of each tuple."""

    def _settle_matrix(
        self,
        size: int,
        bounds: Bounds | Mapping[Hashable, tuple[float, float]],
        mean: npt.ArrayLike | None,
        names: Iterable[Hashable] | None,
        provenance: str,
        **matrix: object,
    ) -> None:
        """Check and set all fields apart from the matrix that describes the correlations."""
        found = checked_names(names, size)
        ranges = checked_bounds(bounds_for(bounds, found), size)
        mean = checked_mean(mean, ranges)
        self._settle(mean=mean, bounds=ranges, names=found, provenance=provenance, **matrix)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The two ends of each public range."""
        return self.bounds

    @property
    def widths(self) -> FloatArray:
        """M_j, the largest distance of two secret values of tuple j."""
        ends = np.array(self.bounds)
        return np.asarray(ends[:, 1] - ends[:, 0])


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class Gaussian(GaussianTuples):
    """Continuous tuples with a multivariate normal law θ.

    The leakage of a linear query depends on the covariance and on the widths of the ranges. The
    mean shifts every answer by the same amount and cancels: it only determines the known values
    that a witness shows.

    Parameters
    ----------
    covariance
        Symmetric positive definite matrix, one row per tuple.
    bounds
        Public range of each tuple, ``(lo, hi)`` for all or a list with one pair per tuple. Two
        secret values differ by at most the width hi − lo.
    mean
        One mean per tuple; the middle of each range by default.
    names, provenance
        One name per tuple, x1 … xn by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 10), names=["father", "son"])
    Gaussian(father, son; assumed)
    """

    defined_by = ("mean", "covariance", "bounds")
    dependence = "jointly Gaussian entries with the covariance given"
    json_fields: ClassVar = {"mean": VECTOR, "covariance": MATRIX, "bounds": items(RANGE)}
    engine = "pdp_calibrate.families.gaussian.search:GaussianEngine"
    gaussian_noise_engine = "pdp_calibrate.families.gaussian.gaussian_noise:GaussianNoiseEngine"
    composer = "pdp_calibrate.families.gaussian.composed:ShiftComposer"

    covariance: FloatArray
    """The covariance matrix, exactly symmetric, read-only."""

    def __init__(
        self,
        *,
        covariance: npt.ArrayLike,
        bounds: Bounds | Mapping[Hashable, tuple[float, float]],
        mean: npt.ArrayLike | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        matrix = checked_covariance(covariance)
        self._settle_matrix(len(matrix), bounds, mean, names, provenance, covariance=matrix)

    @classmethod
    def from_correlation(
        cls,
        correlation: npt.ArrayLike,
        *,
        std: npt.ArrayLike = 1.0,
        bounds: Bounds | Mapping[Hashable, tuple[float, float]],
        mean: npt.ArrayLike | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> Gaussian:
        """Build the model from a Pearson matrix, such as a published one.

        Parameters
        ----------
        correlation
            Symmetric matrix with ones on its diagonal.
        std
            Standard deviation of each tuple, or one for all.
        bounds, mean, names, provenance
            As for the class.

        Examples
        --------
        >>> model = Gaussian.from_correlation([[1, 0.5], [0.5, 1]], std=[2, 3], bounds=(0, 10))
        >>> model.covariance.tolist()
        [[4.0, 3.0], [3.0, 9.0]]
        """
        matrix = frozen_array(correlation, "correlation")
        _check_square(matrix, "correlation")
        if np.any(np.abs(np.diagonal(matrix) - 1) > _ASYMMETRY):
            raise ModelError("correlation must have ones on its diagonal.")
        if np.any(np.abs(matrix) > 1 + _ASYMMETRY):
            raise ModelError(f"a correlation must lie in [-1, 1], got {np.abs(matrix).max()}.")
        deviations = np.atleast_1d(frozen_array(std, "std"))
        if deviations.shape not in {(1,), (len(matrix),)} or np.any(deviations <= 0):
            raise ModelError(f"std must be positive, one for all or one per tuple ({len(matrix)}).")
        spread = np.broadcast_to(deviations, len(matrix))
        covariance = matrix * np.outer(spread, spread)
        return cls(
            covariance=covariance, bounds=bounds, mean=mean, names=names, provenance=provenance
        )

    def with_covariance(self, covariance: FloatArray, *, provenance: str) -> Gaussian:
        """Return the same tuples with another covariance, which is checked."""
        fields = {"mean": self.mean, "bounds": self.bounds, "names": self.names}
        other = object.__new__(Gaussian)
        other._settle(covariance=checked_covariance(covariance), provenance=provenance, **fields)
        return other

    def pearson_matrix(self) -> FloatArray:
        """Return the correlations of all pairs."""
        spread = np.sqrt(np.diagonal(self.covariance))
        return np.asarray(self.covariance / np.outer(spread, spread))

    def normal_marginals(self) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations."""
        return self.mean, np.sqrt(np.diagonal(self.covariance))

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw the unknown tuples around their regression on the others; see `Model.draws`."""
        del target
        size, known = len(self.names), sorted(given)
        unknown = [axis for axis in range(size) if axis not in given]
        held = np.array([given[axis] for axis in known], dtype=np.float64)
        drawn = np.empty((number, size))
        drawn[:, known] = held
        if unknown:
            within, between = (
                self.covariance[np.ix_(known, others)] for others in (known, unknown)
            )
            gain = np.linalg.solve(within, between).T
            mean = self.mean[unknown] + gain @ (held - self.mean[known])
            root = np.linalg.cholesky(self.covariance[np.ix_(unknown, unknown)] - gain @ between)
            drawn[:, unknown] = mean + rng.standard_normal((number, len(unknown))) @ root.T
        return drawn

    def __repr__(self) -> str:
        return f"Gaussian({printable(_listed(self.names))}; {self.provenance})"


def checked_mean(mean: npt.ArrayLike | None, ranges: Sequence[tuple[float, float]]) -> FloatArray:
    """Return one mean per tuple, the middle of its public range by default, or raise."""
    middle = [low / 2 + high / 2 for low, high in ranges]
    found = frozen_array(middle if mean is None else mean, "mean")
    if found.shape != (len(ranges),):
        raise ModelError(f"mean must be one number per tuple ({len(ranges)}), got {found.shape}.")
    return found


def checked_covariance(covariance: npt.ArrayLike) -> FloatArray:
    """Return a read-only, exactly symmetric, positive definite matrix, or raise."""
    matrix = frozen_array(covariance, "covariance")
    _check_square(matrix, "covariance")
    variances = matrix.diagonal()
    if not variances.min() > 0:
        raise ModelError(
            f"covariance must have positive variances, got {variances.min()} on its diagonal."
            " Leave out a tuple that does not vary."
        )
    deviations = np.sqrt(variances)
    correlation = matrix / deviations / deviations[:, np.newaxis]
    if not (matrix == matrix.T).all():
        if np.any(np.abs(correlation - correlation.T) > _ASYMMETRY):
            raise ModelError("covariance must be symmetric: entry (i, j) equal to entry (j, i).")
        matrix = read_only(matrix / 2 + matrix.T / 2)
        correlation = correlation / 2 + correlation.T / 2
    smallest = float(np.linalg.eigvalsh(correlation)[0])  # of its lower triangle
    if smallest <= 2 * len(matrix) ** 2 * UNIT_ROUNDOFF:
        raise ModelError(
            "covariance must be positive definite, but the smallest eigenvalue of its correlation"
            f" matrix is {smallest:.2g}: some tuple is (nearly) a combination of others. Shrink the"
            " matrix towards its diagonal, for example (1 - s)*C + s*diag(C) with s = 0.05, or"
            " leave out the redundant tuple."
        )
    return matrix


def _check_square(matrix: FloatArray, what: str) -> None:
    if matrix.ndim != 2 or not matrix.size or matrix.shape[0] != matrix.shape[1]:
        raise ModelError(f"{what} must be a square matrix, got shape {matrix.shape}.")


def _listed(names: Sequence[Hashable]) -> str:
    shown = ", ".join(map(str, names[:6]))
    return shown if len(names) <= 6 else f"{shown}, … {len(names)} in all"
