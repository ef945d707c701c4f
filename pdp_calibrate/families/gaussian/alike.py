"""Gaussian groups and series: one number describes how the tuples are correlated."""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pdp_calibrate.arrays import FloatArray, checked_positive
from pdp_calibrate.core.model import (
    FOR_EVER,
    Domain,
    Model,
    checked_bounds,
    checked_size,
)
from pdp_calibrate.core.schema_parts import NUMBER, POSITIVE, RANGE, anything_of, nullable
from pdp_calibrate.core.tuning import WRITTEN_TUPLES
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.families.gaussian.model import Gaussian

STEPS_COVERED = 2.0**20
"""How many answers about a series without an end have their rounding covered by a scale.

About two years of minutes.
"""

_NOISE_FOR_EVER = {"gaussian_noise_engine": "pdp_calibrate.families.stream.noise:StreamNoiseEngine"}

_CONCENTRATED = 2.0**-20  # standard deviation, in widths of the range, that stands in for 0


class _Homogeneous(Model):
    """Equal variances, one public range, members called 0 … n−1 by default.

    Without a stated variance it is a set Θ: any means, and any variance that all tuples share.
    """

    correlation: float | tuple[float, float]
    bounds: tuple[float, float]
    variance: float | None
    defined_by = ("correlation", "bounds", "variance")
    is_continuous = is_gaussian = exact_knowledge_is_worst = True
    engine = "pdp_calibrate.families.gaussian.alike_search:AlikeEngine"
    gaussian_noise_engine = "pdp_calibrate.families.gaussian.alike_noise:AlikeNoiseEngine"
    composer = "pdp_calibrate.families.gaussian.composed:ShiftComposer"

    @abc.abstractmethod
    def matrix(self, correlation: float) -> FloatArray:
        """Return the correlation matrix that follows from this one number."""

    def in_words(self) -> str:
        """Describe the dependence that the model allows, and what it leaves open."""
        kind = super().in_words()
        if self.variance is not None:
            return kind
        return f"{kind}; any means, one unknown variance common to all"

    def pearson_matrix(self) -> FloatArray:
        """Return the correlations of all pairs: the largest that the range allows."""
        return self.matrix(self.ends[1])

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw with the strongest correlation; with almost no variance if none is stated.

        Where the worst member of the set has other means, the witness already holds that member.
        See `Model.draws`.
        """
        low, high = self.ends
        if self.variance is None:
            member = self.concentrated(high)
        else:
            strongest = high if abs(high) >= abs(low) else low
            member = Gaussian(
                covariance=self.matrix(strongest) * self.variance,
                bounds=self.bounds,
                names=self.names,
            )
        if member is None:
            raise UnsupportedQueryError(
                "the model is too large to be audited: its law is a matrix."
            )
        return member.draws(number, given=given, target=target, rng=rng)

    def _settle_alike(
        self,
        correlation: float | tuple[float, float],
        bounds: tuple[float, float],
        variance: float | None,
        names: Iterable[Hashable] | None,
        size: int,
        provenance: str,
        **others: object,
    ) -> None:
        """Check and set what groups and series share."""
        self._settle_numbered(
            names,
            size,
            provenance,
            correlation=correlation,
            bounds=checked_bounds(bounds, 1)[0],
            variance=None if variance is None else checked_positive(variance, "variance"),
            **others,
        )

    def concentrated(self, correlation: float, *, still: Sequence[int] = ()) -> Gaussian | None:
        """Return a member of the set with almost no variance, None if there are too many tuples.

        All means lie in the middle of the range, except for the tuples that should stay `still` at
        its upper end whatever the others do: their means lie above it. Leakages of clamped answers
        tend to their supremum over Θ as the variance tends to 0.
        """
        low, high = self.bounds
        return self.written_out(correlation, (high - low) * _CONCENTRATED, still=still)

    def written_out(
        self, correlation: float, deviation: float, *, still: Sequence[int] = ()
    ) -> Gaussian | None:
        """Return a member of the set with this standard deviation, as a covariance matrix."""
        low, high = self.bounds
        size = len(self.names)
        if size > WRITTEN_TUPLES:
            return None
        mean = np.full(size, low / 2 + high / 2)
        mean[list(still)] = high + (high - low)
        try:
            return Gaussian(
                covariance=self.matrix(correlation) * deviation**2,
                bounds=self.bounds,
                mean=mean,
                names=self.names,
                provenance=self.provenance,
            )
        except (ModelError, OverflowError):  # correlations close to 1 make it singular
            return None

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The ends of the public range, for every tuple."""
        return (self.bounds,) * len(self.names)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest correlation."""
        return self.correlation if isinstance(self.correlation, tuple) else (self.correlation,) * 2

    @property
    def moves_one_way(self) -> bool:
        """True where no correlation is negative."""
        return self.ends[0] >= 0

    @property
    def covers_subsets(self) -> bool:
        """True for groups, and for series whose correlation is not negative.

        If some members of a group are left out, the others move as before and add up to less. With
        a negative correlation all others together move against a secret by at most as much as the
        secret itself moves.
        """
        return not self.runs_along_time or self.moves_one_way

    @property
    def covers_parts(self) -> bool:
        """True where no negative correlation is larger in size than the largest positive one.

        A clamped value moves by at most its coefficient times the move of the secret, and these
        moves add up to the bound; a positive correlation bounds a negative one of the same size.
        """
        return sum(self.ends) >= 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.names)} tuples, {self.provenance})"


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class GaussianGroup(_Homogeneous):
    """Jointly Gaussian members of a group, every pair with the same correlation.

    Parameters
    ----------
    size
        Number of members m.
    correlation
        The common correlation ρ, or a range (lo, hi): then the guarantee holds for every *common*
        correlation in it, which does not cover every matrix with entries in that range. Above
        −1/(m−1) and below 1.
    bounds
        The public range of each value.
    variance
        The common variance. By default neither it nor the means are stated: the guarantee holds for
        any means and any variance that all members share. Only clamped answers depend on it.
    names
        One name per member, 0 … m−1 by default.
    provenance
        Where the numbers come from.

    Examples
    --------
    >>> GaussianGroup(size=4, correlation=(0, 0.4), bounds=(0, 100_000))
    GaussianGroup(4 tuples, assumed)
    """

    dependence = "jointly Gaussian values, one common correlation for every pair"
    json_fields: ClassVar = {
        "correlation": RANGE, "bounds": RANGE, "variance": nullable(POSITIVE),
    }  # fmt: skip

    correlation: tuple[float, float]
    """The range of the common correlation."""
    bounds: tuple[float, float]
    """The public range of each value."""
    variance: float | None
    """The common variance; None if any."""

    def __init__(
        self,
        *,
        size: int,
        correlation: float | tuple[float, float],
        bounds: tuple[float, float],
        variance: float | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        members = checked_size(size, "size")
        low, high = checked_range(correlation)
        least = -1 / (members - 1) if members > 1 else -math.inf
        if not least < low <= high < 1:
            where = f"above {least:.4g} and below 1" if members > 1 else "below 1"
            raise ModelError(
                f"the correlation in a group of {members} must lie {where}, got {correlation!r}."
            )
        self._settle_alike((low, high), bounds, variance, names, members, provenance)

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.names)

    def matrix(self, correlation: float) -> FloatArray:
        """Return the same correlation for every pair."""
        return np.where(np.eye(len(self.names), dtype=np.bool_), 1.0, correlation)


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class GaussianSeries(_Homogeneous):
    """A stationary Gaussian series in which each value depends on the one before (AR(1)).

    Parameters
    ----------
    length
        Number of points in time T. None for a series without an end: `names` then names the one
        record of a step, and releases are made step by step in a ledger.
    correlation
        The correlation φ of neighbours, between −1 and 1; at distance d it is φ^d. Or a range
        (lo, hi): then the guarantee holds for every φ in it, the same throughout the series.
    bounds, variance, provenance
        As for `GaussianGroup`.
    names
        One name per point, 0 … T−1 by default.

    Examples
    --------
    >>> GaussianSeries(length=48, correlation=0.9, bounds=(0, 10))
    GaussianSeries(48 tuples, assumed)
    >>> GaussianSeries(length=48, correlation=(0, 0.9), bounds=(0, 10)).correlation
    (0.0, 0.9)
    """

    dependence = "a Gaussian series in which each value depends on the one before"
    json_fields: ClassVar = {
        "correlation": anything_of(NUMBER, RANGE),
        "bounds": RANGE,
        "variance": nullable(POSITIVE),
    }
    runs_along_time = True

    correlation: float | tuple[float, float]
    """The correlation of neighbours, or its range."""
    bounds: tuple[float, float]
    """The public range of each value."""
    variance: float | None
    """The common variance; None if any."""

    def __init__(
        self,
        *,
        length: int | None,
        correlation: float | tuple[float, float],
        bounds: tuple[float, float],
        variance: float | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        points = 1 if length is None else checked_size(length, "length")
        low, high = checked_range(correlation)
        if not -1 < low <= high < 1:
            got = low if low == high else (low, high)
            raise ModelError(f"correlation must lie between -1 and 1, got {got}.")
        phi = low if low == high else (low, high)
        endless = {} if length is not None else FOR_EVER | _NOISE_FOR_EVER
        self._settle_alike(phi, bounds, variance, names, points, provenance, **endless)

    @property
    def strength(self) -> float:
        """The largest size of the correlation of neighbours."""
        return max(map(abs, self.ends))

    @property
    def lasting(self) -> float:
        """The number of steps whose rounding a scale covers; a ledger counts every one."""
        return STEPS_COVERED

    def beginning(self, number: int) -> GaussianSeries:
        """Return the series of the first points alone."""
        return GaussianSeries(
            length=number,
            correlation=self.correlation,
            bounds=self.bounds,
            variance=self.variance,
            names=self.names[:number],
            provenance=self.provenance,
        )

    def content(self) -> tuple[object, ...]:
        """Return what defines it, including that it has no end."""
        return (*super().content(), *(("endless",) if self.is_endless else ()))

    def parameters(self) -> dict[str, Any]:
        """Return what defines it, ready for JSON; with a `length` only where it has no end."""
        return super().parameters() | ({"length": None} if self.is_endless else {})

    def __repr__(self) -> str:
        return (
            f"GaussianSeries(for ever, {self.provenance})"
            if self.is_endless
            else super().__repr__()
        )

    def matrix(self, correlation: float) -> FloatArray:
        """Return correlations that fall with the distance, φ^d."""
        places = np.arange(len(self.names))
        return np.asarray(correlation ** np.abs(places[:, np.newaxis] - places))


def checked_range(correlation: float | tuple[float, float]) -> tuple[float, float]:
    """Return the ends of a range of correlations; one number is both of them."""
    try:
        ends = (correlation, correlation) if not hasattr(correlation, "__len__") else correlation
        low, high = (float(end) for end in ends)  # type: ignore[union-attr]
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError("correlation must be a number, or a range (lo, hi).") from error
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ModelError("correlation must be finite.")
    if low > high:
        raise ModelError(
            f"a range of correlations must begin at its lower end, got {(low, high)}:"
            f" write {(high, low)}."
        )
    return low, high
