"""Groups of similar people, learned from a long frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pdp_calibrate.arrays import checked_positive
from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.exchangeable.model import BinaryGroup
from pdp_calibrate.families.gaussian.alike import GaussianGroup
from pdp_calibrate.frames.columns import GROUPS
from pdp_calibrate.frames.counts import group_totals, refuse_repeated, role_patterns
from pdp_calibrate.frames.open import check_roles
from pdp_calibrate.learning.base import (
    FitTest,
    LongFrameEstimator,
    Source,
    checked_confidence,
    checked_limit,
)
from pdp_calibrate.learning.gaussianity import warn_of_groups
from pdp_calibrate.learning.intraclass import Intraclass, intraclass
from pdp_calibrate.learning.private_groups import (
    private_groups,
    private_intraclass,
    private_totals,
    refuse_larger,
)


def smoothed_groups(
    totals: Mapping[tuple[int, int], float], *, smoothing: float, provenance: str
) -> tuple[dict[int, BinaryGroup], dict[int, int]]:
    """Turn counts of groups by (size, ones) into one model per size and the number of groups.

    The law of the number of ones is (count + smoothing) / total, separately for each size; a
    number never seen is rare, not impossible, so smoothing must be positive.
    """
    checked_positive(smoothing, "smoothing")
    sizes = sorted({size for size, _ in totals})
    groups: dict[int, BinaryGroup] = {}
    numbers: dict[int, int] = {}
    for size in sizes:
        seen = np.array([totals.get((size, ones), 0) for ones in range(size + 1)], dtype=float)
        law = seen + smoothing
        groups[size] = BinaryGroup(count_probabilities=law / law.sum(), provenance=provenance)
        numbers[size] = round(float(seen.sum()))
    return groups, numbers


def exchangeability_test(frame: Any, by: str, value: str, role: str) -> FitTest:
    """Test whether ones are equally likely in all roles, given how many there are in each group.

    The generalised Cochran-Mantel-Haenszel test, one stratum per group; Cochran's Q where every
    role occurs once in every group. With n members of each role among m members of whom L hold a
    one, the ones of a role have mean n·L/m and covariance L(m−L)/(m²(m−1))·(m·diag(n) − n·nᵀ).
    """
    _, patterns, ones = role_patterns(frame, by, value, role)
    cells, number = np.array(list(patterns), dtype=float), np.array(list(patterns.values()))
    held, members, found = cells[:, 0], cells[:, 1:], np.array(ones, dtype=float)
    size = members.sum(axis=1)
    difference = found - (number * held / size) @ members
    spread = number * held * (size - held) / np.maximum(size**2 * (size - 1), 1)
    covariance = np.diag((spread * size) @ members) - members.T @ (spread[:, np.newaxis] * members)
    spreads, axes = np.linalg.eigh(covariance)
    free = spreads > 1e-9 * max(float(spreads.max()), 1e-300)  # totals per group are given
    statistic = float(np.sum((axes.T @ difference)[free] ** 2 / spreads[free]))
    return FitTest(statistic=statistic, degrees=int(free.sum()))


@dataclass(kw_only=True, eq=False, repr=False)
class GroupEstimator(LongFrameEstimator):
    """Learn how alike the members of a group are, from a long frame with one row per person.

    Parameters
    ----------
    groups
        The column that names the group: household, class, patient. ``household`` by default.
    value
        The column that queries are about.
    kind
        ``binary``: zeros and ones, members exchangeable. ``gaussian``: real values, jointly
        Gaussian with one common correlation, estimated by analysis of variance. Columns of
        booleans or text are refused for it, and a warning says when rows are plainly not Gaussian
        (with `epsilon` rows are not tested).
    bounds
        For ``gaussian``, the public range of the values.
    confidence
        For ``gaussian``, make the correlation a range that holds the true one with this
        probability over the rows, if groups are Gaussian; sizes may differ.
    person
        A column that names the person; nobody may then be in two groups.
    role
        A column with the role of each member (mother, child; left eye, right eye). If given, the
        fit tests whether members are exchangeable whatever their role.
    smoothing
        For ``binary``, added to every count, so that no unseen number of ones counts as
        impossible.
    epsilon
        Learn under ε-differential privacy for substituting one whole group; which rows belong to
        which group, and so the sizes, are public. ``binary``: discrete Laplace noise of scale 2/ε
        on the number of groups with each size and number of ones. ``gaussian``: values are
        clipped to their bounds, and noise goes on the sums of squares; with `confidence` the range
        holds the noise too, and values outside the bounds raise instead of being clipped.
    max_group_size
        The public limit on the size of a group, larger ones raise; needed for ``gaussian`` with
        `epsilon`, where the noise grows with it.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not.
    by
        Another name for `groups`.

    Attributes
    ----------
    model_ : BinaryGroup, GaussianGroup or Blocks
        The law of one group; with several groups, a block for each size with its count. For zeros
        and ones each size is learned separately, so a rare size adds little beyond the smoothing.
    intraclass_ : Intraclass
        For ``gaussian``, the analysis of variance behind the correlation.
    exchangeability_test_ : FitTest or None
        A small p-value says that roles differ: use a `TableEstimator` with a column per role.
        None with `epsilon`, because it would read the rows again.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"home": [1, 1, 2, 2, 3, 3], "ill": [0, 0, 1, 1, 0, 1]})
    >>> estimator = GroupEstimator(groups="home", value="ill", kind="binary", source="public")
    >>> estimator.fit(frame).model_
    Blocks(3 × BinaryGroup(2 members, public))
    """

    groups: str | None = None
    value: str = "income"
    kind: Literal["gaussian", "binary"] = "gaussian"
    bounds: tuple[float, float] | None = None
    confidence: float | None = None
    person: str | None = None
    role: str | None = None
    smoothing: float = 0.5
    epsilon: float | None = None
    max_group_size: int | None = None
    source: Source = "private"
    by: str | None = None

    @property
    def _unit(self) -> str:
        return super()._unit or "household"

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Learn from all groups of a long frame."""
        checked_confidence(self.confidence)
        if self.kind not in _FITS:
            raise ModelError(f"kind must be one of {tuple(_FITS)}, got {self.kind!r}.")
        check_roles(self.value, groups=self._unit)
        if self.person is not None:
            refuse_repeated(frame, self.person, self._unit)
        return _FITS[self.kind](self, frame, epsilon)

    def _fit_binary(self, frame: Any, epsilon: float | None) -> Model:
        if self.confidence is not None:
            raise ModelError(
                "confidence is for kind='gaussian'; for zeros and ones put the members into columns"
                " and use TableEstimator(domains=..., confidence=...)."
            )
        totals: Counter[tuple[int, int]] = group_totals(frame, self._unit, self.value)
        refuse_larger({size: 1 for size, _ in totals}, self._largest(needed=False))
        groups, sizes = smoothed_groups(
            totals if epsilon is None else private_totals(totals, epsilon=epsilon),
            smoothing=self.smoothing,
            provenance=self._provenance,
        )
        self.exchangeability_test_ = (
            None
            if self.role is None or epsilon is not None
            else exchangeability_test(frame, self._unit, self.value, self.role)
        )
        return self._model_of(groups.__getitem__, sizes, epsilon)

    def _fit_gaussian(self, frame: Any, epsilon: float | None) -> Model:
        what = "a Gaussian group"
        bounds = self._checked_bounds(frame, self.bounds, what=what, instead=GROUPS)
        largest = self._largest(needed=epsilon is not None)
        self.exchangeability_test_ = None
        interval = None
        if epsilon is None:
            found = intraclass(frame, value=self.value, by=self._unit)
            refuse_larger(found.sizes, largest)
            warn_of_groups(
                frame,
                self.value,
                correlation=found.correlation,
                sizes=found.sizes,
                stacklevel=3,
            )
            if self.confidence is not None:
                interval = found.interval(self.confidence)
        else:
            noisy = private_groups(
                frame,
                value=self.value,
                by=self._unit,
                bounds=bounds,
                largest=largest or 1,
                epsilon=epsilon,
                confidence=self.confidence,
            )
            found = private_intraclass(noisy, bounds=bounds, value=self.value)
            if self.confidence is not None:
                interval = noisy.interval(self.confidence)
        self.intraclass_ = found
        groups = gaussian_groups(
            found,
            bounds=bounds,
            interval=interval,
            provenance=self._provenance,
        )
        return self._model_of(groups.__getitem__, found.sizes, epsilon)

    def _largest(self, *, needed: bool) -> int | None:
        if self.max_group_size is None and not needed:
            return None
        return checked_limit(self.max_group_size, "max_group_size", "a group")


_FITS: dict[str, Callable[[GroupEstimator, Any, float | None], Model]] = {
    "binary": GroupEstimator._fit_binary,  # noqa: SLF001 - the class's own branches
    "gaussian": GroupEstimator._fit_gaussian,  # noqa: SLF001
}
"""How each kind is learned; a further kind is one more line."""


def gaussian_groups(
    found: Intraclass,
    *,
    bounds: tuple[float, float],
    interval: tuple[float, float] | None,
    provenance: str,
) -> dict[int, GaussianGroup]:
    """Return a group for every size, with the estimated correlation or an interval for it.

    A correlation at or below −1/(m−1) is impossible among m members: the range is cut just above.
    """
    low, high = (found.correlation,) * 2 if interval is None else interval
    high = min(high, 1 - 1e-9)  # rounding must not turn "nearly equal" into "equal"
    low = min(low, high)
    groups = {}
    for size in sorted(found.sizes):
        least = -(1 - 1e-6) / (size - 1) if size > 1 else -1.0
        groups[size] = GaussianGroup(
            size=size,
            correlation=(max(low, least), max(high, least)),
            bounds=bounds,
            variance=found.variance,
            provenance=provenance,
        )
    return groups
