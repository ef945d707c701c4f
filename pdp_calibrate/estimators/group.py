"""Groups of people who are alike, learned from a long frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.intraclass import gaussian_groups, intraclass
from pdp_calibrate.estimators.markov import FitTest, checked_source
from pdp_calibrate.estimators.statistics import group_totals, refuse_repeated, role_patterns
from pdp_calibrate.models import BinaryGroup, Blocks, Model


def smoothed_groups(
    totals: Mapping[tuple[int, int], int], *, smoothing: float, provenance: str
) -> tuple[list[BinaryGroup], list[int]]:
    """Turn counts of groups by (size, ones) into a group for every size, and how many there are.

    The law of the number of ones is (count + smoothing) / total, separately for each size; a
    number never seen is rare, not impossible, so smoothing must be positive.
    """
    if not 0 < smoothing < float("inf"):
        raise ModelError(f"smoothing must be positive and finite, got {smoothing}.")
    sizes = sorted({size for size, _ in totals})
    groups, numbers = [], []
    for size in sizes:
        seen = np.array([totals.get((size, ones), 0) for ones in range(size + 1)], dtype=float)
        law = seen + smoothing
        groups.append(BinaryGroup(count_probabilities=law / law.sum(), provenance=provenance))
        numbers.append(int(seen.sum()))
    return groups, numbers


def exchangeability_test(frame: Any, by: str, value: str, role: str) -> FitTest:
    """Test whether ones fall on all roles alike, given how many there are in each group.

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


class GroupEstimator(BaseEstimator):
    """Learn how alike the members of a group are, from a long frame with one row per person.

    Parameters
    ----------
    by
        The column that names the group: household, class, patient.
    value
        The column that is asked about.
    kind
        ``binary``: zeros and ones, members exchangeable. ``gaussian``: real values with one common
        correlation, estimated by analysis of variance.
    bounds
        For ``gaussian``, the public range of the values.
    confidence
        For ``gaussian``, make the correlation a range that holds the true one with this
        probability over the rows: exactly for Gaussian groups of one size, about so otherwise.
    person
        A column that names the person; nobody may then be in two groups.
    role
        A column that says which part a member plays (mother, child; left eye, right eye): whether
        members are alike whatever their role is then tested.
    smoothing
        For ``binary``, added to every count, so that no unseen number of ones counts as
        impossible.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not.

    Attributes
    ----------
    model_ : BinaryGroup, GaussianGroup or Blocks
        The law of one group; with several sizes, a block for each size with its count. Each size
        is learned by itself, so a size that is rare says little beyond the smoothing.
    intraclass_ : Intraclass
        For ``gaussian``, the analysis of variance behind the correlation.
    exchangeability_test_ : FitTest or None
        A small p-value says that roles differ: use a `TableEstimator` with a column per role.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"home": [1, 1, 2, 2, 3, 3], "ill": [0, 0, 1, 1, 0, 1]})
    >>> GroupEstimator(by="home", value="ill", kind="binary", source="public").fit(frame).model_
    BinaryGroup(2 members, public)
    """

    def __init__(
        self,
        *,
        by: str = "household",
        value: str = "income",
        kind: Literal["gaussian", "binary"] = "gaussian",
        bounds: tuple[float, float] | None = None,
        confidence: float | None = None,
        person: str | None = None,
        role: str | None = None,
        smoothing: float = 0.5,
        source: Literal["private", "public"] = "private",
    ) -> None:
        self.by = by
        self.value = value
        self.kind = kind
        self.bounds = bounds
        self.confidence = confidence
        self.person = person
        self.role = role
        self.smoothing = smoothing
        self.source = source

    def fit(self, frame: Any, y: None = None) -> GroupEstimator:
        """Learn from all groups of a long frame."""
        del y
        checked_source(self.source)
        if self.kind not in _FITS:
            raise ModelError(f"kind must be one of {tuple(_FITS)}, got {self.kind!r}.")
        if self.person is not None:
            refuse_repeated(frame, self.person, self.by)
        self.model_ = _FITS[self.kind](self, frame)
        return self

    def _fit_binary(self, frame: Any) -> Model:
        totals: Counter[tuple[int, int]] = group_totals(frame, self.by, self.value)
        groups, numbers = smoothed_groups(totals, smoothing=self.smoothing, provenance=self.source)
        self.exchangeability_test_ = (
            None
            if self.role is None
            else exchangeability_test(frame, self.by, self.value, self.role)
        )
        return groups[0] if len(groups) == 1 else Blocks(models=groups, counts=numbers)

    def _fit_gaussian(self, frame: Any) -> Model:
        if self.bounds is None:
            raise ModelError("a Gaussian group needs the public range of its values: bounds=.")
        found = intraclass(frame, value=self.value, by=self.by)
        self.intraclass_ = found
        self.exchangeability_test_ = None
        groups = gaussian_groups(
            found, bounds=self.bounds, confidence=self.confidence, provenance=self.source
        )
        numbers = [found.sizes[size] for size in sorted(found.sizes)]
        return groups[0] if len(groups) == 1 else Blocks(models=groups, counts=numbers)


_FITS: dict[str, Callable[[GroupEstimator, Any], Model]] = {
    "binary": GroupEstimator._fit_binary,  # noqa: SLF001 - the class's own branches
    "gaussian": GroupEstimator._fit_gaussian,  # noqa: SLF001
}
"""How each kind is learned; a further kind is one more line."""
