"""How similar the members of a group are: intra-class correlation by analysis of variance.

The exact law of F = MSB/MSW for Gaussian groups of any sizes and any common correlation; with
means by role, see Theorem 33 (docs/theory).

Let groups of n members have variance σ² and correlation ρ between members. Then the sum of squares
within is σ²(1−ρ)·χ² with N − k degrees of freedom, and independent of it the sum of squares between
is a quadratic form in the group means: with b_i = √n_i·mean_i, of variance σ²(1 + (n_i−1)ρ), it is
b·(I − u·uᵀ)·b, u_i = √(n_i/N). Its eigenvalues are 1 + (n−1)ρ, one time fewer than there are
groups of n members, and those of a matrix with a row per size. So P(F ≤ f) is the probability that
a weighted sum of χ² variables is negative, which Imhof's integral gives (Biometrika 48, 1961). It
falls as ρ grows; the points where it equals the tail probabilities are the limits of an exact
interval, for unequal sizes as for equal ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.products import GroupMoments, group_moments
from pdp_calibrate.learning.private_sums import IntArray


@dataclass(frozen=True, kw_only=True)
class Intraclass:
    """The ANOVA estimate of the correlation inside groups of a long frame."""

    correlation: float
    """ρ̂ = (MSB − MSW) / (MSB + (n₀ − 1)·MSW)."""
    ratio: float
    """F = MSB/MSW, mean squares between and within groups."""
    between: int
    """Degrees of freedom between groups, k − 1."""
    within: int
    """Degrees of freedom within groups, N − k."""
    average_size: float
    """n₀ = (N − Σ n_i²/N)/(k − 1), the effective size where sizes differ."""
    variance: float
    """Estimated total variance of a value."""
    sizes: Counter[int]
    """How many groups there are of each size."""
    centred: FloatArray | None = field(default=None, repr=False, compare=False)
    """The values centred by role; None where they were not."""
    by_role: Counter[int] | None = None
    """Degrees of freedom between groups, by size, where values are centred by role; else None."""

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return an interval that holds ρ with this probability, exact for Gaussian groups."""
        if not 0 < confidence < 1:
            raise ModelError(f"confidence must lie between 0 and 1, got {confidence}.")
        return self.limits((1 + confidence) / 2)

    def limits(self, tail: float) -> tuple[float, float]:
        """Return limits of ρ, each of which holds with this probability.

        For groups of one size they are those of F; for unequal sizes the law of the ratio itself
        is inverted (`ratio_probability`), since F with an average size fails up to four times as
        often as it claims. Both limits fail together never, and no more than one of them matters:
        the leakage grows with the size of ρ on each side of 0.
        """
        from scipy.stats import f as fisher

        if len(self.sizes) > 1:
            return self._where_probability_is(tail), self._where_probability_is(1 - tail)
        low = self.ratio / float(fisher.ppf(tail, self.between, self.within))
        high = self.ratio * float(fisher.ppf(tail, self.within, self.between))
        return self._correlation_at(low), self._correlation_at(high)

    def _correlation_at(self, ratio: float) -> float:
        return (ratio - 1) / (ratio + self.average_size - 1)

    def _where_probability_is(self, level: float) -> float:
        """Return the ρ at which a ratio of at most the observed one has this probability."""
        from scipy.optimize import brentq

        def above(correlation: float) -> float:
            return (
                ratio_probability(
                    self.sizes,
                    correlation,
                    self.ratio,
                    by_role=self.by_role,
                    within=self.within,
                )
                - level
            )

        least, most = -(1 - 1e-9) / (max(self.sizes) - 1), 1 - 1e-9
        if above(least) <= 0:
            return least  # even the lowest correlation does not make so small a ratio likely
        return most if above(most) >= 0 else float(brentq(above, least, most, xtol=1e-10))


def intraclass(frame: Any, *, value: Hashable, by: Hashable, refuse: bool = True) -> Intraclass:
    """Estimate the correlation between members of one group.

    Parameters
    ----------
    frame
        A row per member.
    value
        The column of values.
    by
        The column that names the group.
    refuse
        Whether to raise where values do not vary inside groups. Of private rows that would say
        something about them: their correlation is then as large as can be.

    Examples
    --------
    >>> import pandas as pd
    >>> twins = pd.DataFrame({"pair": [1, 1, 2, 2, 3, 3], "height": [1, 2, 5, 6, 9, 9]})
    >>> round(intraclass(twins, value="height", by="pair").correlation, 3)
    0.977
    """
    return intraclass_of(group_moments(frame, value=value, by=by), value, refuse=refuse)


def intraclass_by_role(
    values: FloatArray,
    units: IntArray,
    roles: IntArray,
    name: Hashable,
    *,
    refuse: bool = True,
) -> Intraclass:
    """Estimate the correlation where every role may have a mean of its own.

    Values are centred at the mean of a role, separately for all groups that hold the same roles. Of
    H such groups of m members in R roles, H − 1 degrees of freedom are left between groups and
    H(m − 1) − (R − 1) within them: a role shifts all groups alike.

    Parameters
    ----------
    values
        The values, sorted by group.
    units
        The group of each, 0, 1, …, ascending.
    roles
        The role of each, numbered from 0.
    name
        The column of values.
    refuse
        As for `intraclass`.
    """
    members = np.bincount(units)
    held = np.zeros((len(members), int(roles.max()) + 1), dtype=np.int64)
    np.add.at(held, (units, roles), 1)
    kinds, cohort, numbers = np.unique(held, axis=0, return_inverse=True, return_counts=True)
    cells = cohort.reshape(-1)[units] * held.shape[1] + roles
    means = np.bincount(cells, weights=values) / np.maximum(np.bincount(cells), 1)
    centred = values - means[cells]
    between = float(np.sum(np.bincount(units, weights=centred) ** 2 / members))
    within = max(0.0, float(centred @ centred) - between)
    by_role: Counter[int] = Counter()
    free = 0
    for kind, number in zip(kinds, numbers.tolist(), strict=True):
        size = int(kind.sum())
        by_role[size] += number - 1
        free += number * (size - 1) - (int((kind > 0).sum()) - 1)
    groups = sum(by_role.values())
    if not groups or not free or not any(size > 1 and n for size, n in by_role.items()):
        raise ModelError(
            "no two groups hold the same roles, so that what a role does cannot be told from"
            " correlation: leave role= out, or join roles."
        )
    average = sum(size * number for size, number in by_role.items()) / groups
    correlation, ratio = _correlation(between / groups, within / free, average, name, refuse=refuse)
    return Intraclass(
        correlation=correlation,
        ratio=ratio,
        between=groups,
        within=free,
        average_size=average,
        variance=within / free + max(0.0, (between / groups - within / free) / average),
        sizes=Counter(members.tolist()),
        centred=centred,
        by_role=by_role,
    )


def order_matters(values: FloatArray, units: IntArray) -> float:
    """Return the p-value of a test whether the first, second, … rows of a group differ in mean.

    The F test of a place in the group, separately for groups of each size: exact for Gaussian
    groups whose members are exchangeable, whatever the correlation. 1 if it cannot be tested.
    """
    members = np.bincount(units)
    explained = left = 0.0
    free = rest = 0
    begins = np.cumsum(members) - members
    for size in np.unique(members[members > 1]).tolist():
        rows = begins[members == size][:, np.newaxis] + np.arange(size)
        inside = values[rows] - values[rows].mean(axis=1, keepdims=True)
        means = inside.mean(axis=0)
        if len(rows) < 2:
            continue
        explained += len(rows) * float(means @ means)
        left += float(((inside - means) ** 2).sum())
        free += size - 1
        rest += (len(rows) - 1) * (size - 1)
    if not rest or not left > 0:
        return 1.0
    from scipy.stats import f as fisher

    return float(fisher.sf(explained / free / (left / rest), free, rest))


def _correlation(
    between: float, within: float, average: float, name: Hashable, *, refuse: bool
) -> tuple[float, float]:
    """Return the correlation and the ratio of mean squares; raise where there is none within."""
    if within > 0:
        ratio = between / within
        return (ratio - 1) / (ratio + average - 1), ratio
    if refuse:
        raise ModelError(f"the values of {name} do not vary inside groups; correlation is 1.")
    return 1.0, math.inf


def intraclass_of(
    found: GroupMoments, value: Hashable = "the groups", *, refuse: bool = True
) -> Intraclass:
    """Estimate the correlation from sums of squares."""
    groups, rows = sum(found.sizes.values()), found.rows
    if groups < 2 or rows <= groups:
        raise ModelError(
            "a correlation inside groups needs at least two groups, and one of more than one row."
        )
    between = found.between / (groups - 1)
    within = found.within / (rows - groups)
    squares = math.fsum(size**2 * number for size, number in found.sizes.items())
    average = (rows - squares / rows) / (groups - 1)
    correlation, ratio = _correlation(between, within, average, value, refuse=refuse)
    return Intraclass(
        correlation=correlation,
        ratio=ratio,
        between=groups - 1,
        within=rows - groups,
        average_size=average,
        variance=within + max(0.0, (between - within) / average),
        sizes=found.sizes,
    )


_ACCURATE = 1e-9  # the most that halving the step may change


_NEGLIGIBLE = 36.0  # the integral is cut off where the integrand falls below e^−36


def ratio_probability(
    sizes: Mapping[int, int],
    correlation: float,
    ratio: float,
    *,
    by_role: Mapping[int, int] | None = None,
    within: int | None = None,
) -> float:
    """Return P(MSB/MSW ≤ ratio) for these numbers of groups of each size.

    Where values are centred by role, the degrees of freedom are given: between groups by size, and
    within.

    Examples
    --------
    >>> round(ratio_probability({2: 30, 5: 10}, 0.3, 2.0), 4)
    0.4007
    """
    groups = sum(sizes.values())
    rows = sum(size * number for size, number in sizes.items())
    if by_role is None or within is None:
        weights, degrees = _between(sizes, correlation)
        between, within = groups - 1, rows - groups
    else:
        held = sorted(size for size, number in by_role.items() if number)
        weights = np.array([1 + (size - 1) * correlation for size in held])
        degrees = np.array([by_role[size] for size in held], dtype=np.float64)
        between = sum(by_role.values())
    against = ratio * between / within * (1 - correlation)
    return _negative(np.append(weights, -against), np.append(degrees, within))


def _between(sizes: Mapping[int, int], correlation: float) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of the sum of squares between groups, and how often they occur."""
    distinct = sorted(sizes)
    own = np.array([1 + (size - 1) * correlation for size in distinct])
    members = np.array([size * sizes[size] for size in distinct], dtype=np.float64)
    along = np.sqrt(members / members.sum())
    centred = np.eye(len(distinct)) - np.outer(along, along)
    shared = np.linalg.eigvalsh(centred * own @ centred)[1:]  # the first is zero: the grand mean
    weights = np.concatenate([own, shared])
    degrees = np.concatenate([[sizes[size] - 1 for size in distinct], np.ones(len(shared))])
    return weights, degrees


def _negative(weights: FloatArray, degrees: FloatArray) -> float:
    """Return P(Σ w_j·χ²_{h_j} ≤ 0) by Imhof's integral ∫ sin θ(u) / (u·ρ(u)) du.

    In s = log u the integrand is analytic and vanishes at both ends, so the trapezoidal rule
    converges faster than any power of its step; steps are halved until nothing changes.
    """
    weights = weights / math.sqrt(float(degrees @ weights**2))
    end = 0.0
    while float(degrees @ np.log1p((weights * math.exp(end)) ** 2)) / 4 < _NEGLIGIBLE:
        end += 1.0
    before = math.inf
    for points in 2 ** np.arange(9, 17):
        s, step = np.linspace(-_NEGLIGIBLE, end, points, retstep=True)
        scaled = np.exp(s)[:, np.newaxis] * weights
        angle = np.arctan(scaled) @ degrees / 2
        total = float((np.sin(angle) * np.exp(-np.log1p(scaled**2) @ degrees / 4)).sum() * step)
        if abs(total - before) < _ACCURATE:
            return min(1.0, max(0.0, 0.5 - total / math.pi))
        before = total
    raise ModelError("the law of the correlation inside these groups could not be computed.")
