"""Groups of similar people, learned from a long frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pdp_calibrate.arrays import checked_positive
from pdp_calibrate.core.composite import ModelSet
from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.exchangeable.model import BinaryGroup
from pdp_calibrate.families.exchangeable.rate_fits import (
    NoisySums,
    agreement_limits,
    beta_limits,
    free_mixture,
    noisy_limits,
    noisy_rate_sums,
    shape_of,
)
from pdp_calibrate.families.exchangeable.rates import RateGroup
from pdp_calibrate.families.gaussian.alike import GaussianGroup
from pdp_calibrate.frames.columns import GROUPS
from pdp_calibrate.frames.counts import group_totals, refuse_repeated, role_patterns
from pdp_calibrate.frames.open import check_roles, in_memory
from pdp_calibrate.frames.products import share_at_ends
from pdp_calibrate.frames.recoded import as_yes_or_no, within_reach
from pdp_calibrate.learning.base import (
    CONFIDENCE,
    FitTest,
    LongFrameEstimator,
    Source,
    checked_limit,
    confidence_for,
)
from pdp_calibrate.learning.gaussianity import UNTESTED, Powers, warn_of_groups
from pdp_calibrate.learning.intraclass import (
    Intraclass,
    intraclass,
    intraclass_by_role,
    order_matters,
)
from pdp_calibrate.learning.private_groups import refuse_larger
from pdp_calibrate.learning.private_sums import (
    brought_into_memory,
    codes_of,
    numbers_of,
    units_of,
)
from pdp_calibrate.learning.signs import (
    AT_AN_END,
    LARGEST,
    checked_lowest,
    lowest_note,
    sign_shares,
)

_ORDER = 0.01  # the p-value below which the order of rows in a group is said to matter

_ONE_MEAN = "All members of a group have the same mean: no role= tells them apart."


def smoothed_groups(
    totals: Mapping[tuple[int, int], float], *, smoothing: float, provenance: str
) -> dict[int, BinaryGroup]:
    """Turn counts of groups by (size, ones) into one model per size.

    The law of the number of ones is (count + smoothing) / total, separately for each size; a
    number never seen is rare, not impossible, so smoothing must be positive.
    """
    groups: dict[int, BinaryGroup] = {}
    for size in sorted({size for size, _ in totals}):
        seen = np.array([totals.get((size, ones), 0) for ones in range(size + 1)], dtype=float)
        law = seen + smoothing
        groups[size] = BinaryGroup(count_probabilities=law / law.sum(), provenance=provenance)
    return groups


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
        probability, over the rows and with `epsilon` over the noise too, if groups are Gaussian;
        sizes may differ. None gives the estimate, a point; not with `epsilon`.
    lowest
        For ``gaussian``, the smallest correlation that is assumed possible where only an upper
        limit can be learned: of private rows, and of public ones with many values at an end of the
        range. None assumes nothing, which clamped answers may pay for.
    person
        A column that names the person; nobody may then be in two groups.
    role
        A column with the role of each member (mother, child; left eye, right eye). For ``binary``,
        the fit then tests whether members are exchangeable whatever their role. For ``gaussian``,
        values are centred by role, among groups that hold the same roles: a difference between
        roles says nothing about how alike members are. Without it, public rows whose order in the
        group matters are refused.
    smoothing
        For ``binary`` with ``confidence=None``, added to every count, so that no unseen number of
        ones counts as impossible.
    epsilon
        Learn under ε-differential privacy for substituting one whole group; which rows belong to
        which group, and so the sizes, are public. ``binary``: discrete Laplace noise of scale
        3/(2ε) on the sum of the shares of ones, and on that of the shares of pairs that differ.
        ``gaussian``: groups are compared in pairs, and noise goes on the sum of the shares of pairs
        of members of whom one differs upwards and the other downwards. Values beyond the bounds
        count as their ends.
    max_group_size
        The public limit on the size of a group; larger ones raise.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not. Of private
        rows none is refused for what it holds: for ``binary``, numbers above one half count as one
        and everything else, missing values too, as zero; for ``gaussian``, a value that is missing,
        not finite or more than a million widths of the bounds away counts as their middle, which
        nothing covers. Groups, persons and roles are public.
    by
        Another name for `groups`.

    Attributes
    ----------
    model_ : ModelSet of RateGroup, BinaryGroup, GaussianGroup or Blocks
        The law of one group; with several groups, a block for each size with its count. For zeros
        and ones all sizes share one law of a group's rate, so a size seen once costs nothing: beta
        laws at their upper limits, and the free mixture that fits best. With ``confidence=None``
        each size is learned separately, as a `BinaryGroup`.
    correlation_ : float
        For ``gaussian``, the estimated correlation.
    intraclass_ : Intraclass or None
        For ``gaussian``, the analysis of variance behind the correlation; None where it was learned
        from signs.
    exchangeability_test_ : FitTest or None
        A small p-value says that roles differ: use a `TableEstimator` with a column per role.
        None with `epsilon`, because it would read the rows again.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"home": [1, 1, 2, 2, 3, 3], "ill": [0, 0, 1, 1, 0, 1]})
    >>> estimator = GroupEstimator(groups="home", value="ill", kind="binary", source="public")
    >>> estimator.fit(frame).model_
    Blocks(3 × ModelSet(15 models, public))
    """

    groups: str | None = None
    value: str = "income"
    kind: Literal["gaussian", "binary"] = "gaussian"
    bounds: tuple[float, float] | None = None
    confidence: float | None = CONFIDENCE
    lowest: float | None = 0.0
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
        if self.kind not in _FITS:
            raise ModelError(f"kind must be one of {tuple(_FITS)}, got {self.kind!r}.")
        check_roles(self.value, groups=self._unit)
        if self.person is not None:
            refuse_repeated(frame, self.person, self._unit)
        return _FITS[self.kind](self, frame, epsilon)

    def _fit_binary(self, frame: Any, epsilon: float | None) -> Model:
        sure = confidence_for(self.confidence, epsilon=epsilon)
        checked_positive(self.smoothing, "smoothing")
        if not self._may_test:
            frame = as_yes_or_no(frame, self.value)
        totals = group_totals(frame, self._unit, self.value)
        sizes: Counter[int] = Counter()
        for (size, _), number in totals.items():
            sizes[size] += number
        refuse_larger(sizes, self._largest(needed=False))
        self.exchangeability_test_ = (
            None
            if self.role is None or epsilon is not None
            else exchangeability_test(frame, self._unit, self.value, self.role)
        )
        if sure is not None:
            noisy = None if epsilon is None else noisy_rate_sums(totals, epsilon)
            make = self._rates(totals, noisy, sure)
            coverage = self._coverage(sure, notes=(_ONE_LAW,))
            return self._model_of(make, sizes, epsilon, coverage=coverage)
        groups = smoothed_groups(totals, smoothing=self.smoothing, provenance=self._provenance)
        upper = self._rates(totals, None, float(CONFIDENCE)) if self._may_test else None
        coverage = self._coverage(None)
        return self._model_of(groups.__getitem__, sizes, epsilon, coverage=coverage, upper=upper)

    def _rates(
        self, totals: Counter[tuple[int, int]], noisy: NoisySums | None, confidence: float
    ) -> Callable[[int], Model]:
        """Return the set of a size: laws of the rate that all groups share, whatever their size."""
        laws: list[dict[str, Any]] = []
        if noisy is None:
            rates, weights = free_mixture(totals)
            limits = [*beta_limits(totals, confidence), *agreement_limits(totals)]
            laws = [{"rates": rates, "weights": weights}]
        else:
            limits = noisy_limits(noisy, confidence)
        laws += [{"beta": shape_of(mean, rho)} for mean, rho in limits]

        def of_size(size: int) -> Model:
            members = [RateGroup(size=size, provenance=self._provenance, **law) for law in laws]
            return ModelSet(models=members)

        return of_size

    def _fit_gaussian(self, frame: Any, epsilon: float | None) -> Model:
        what = "a Gaussian group"
        bounds = self._checked_bounds(frame, self.bounds, what=what, instead=GROUPS)
        sure = confidence_for(self.confidence, epsilon=epsilon)
        checked_lowest(self.lowest)
        self.exchangeability_test_ = self.intraclass_ = None
        if not self._may_test:
            frame = within_reach(frame, {self.value: bounds})
        if self._may_test:
            by_moments = share_at_ends(frame, self.value, bounds) <= AT_AN_END
        else:
            by_moments = epsilon is None and sure is None  # a point: nothing about it is claimed
        if not by_moments:
            if self._may_test:
                warn_of_groups(
                    frame,
                    self.value,
                    correlation=0.0,
                    sizes=Counter({1: 1}),
                    stacklevel=3,
                    powers=UNTESTED,
                )
            return self._by_signs(frame, bounds, sure)
        found = self._analysed(frame)
        self.intraclass_, self.correlation_ = found, found.correlation
        refuse_larger(found.sizes, self._largest(needed=False))
        notes = () if self.role is not None else (_ONE_MEAN,)
        if self._may_test:
            warn_of_groups(
                frame,
                self.value,
                correlation=found.correlation,
                sizes=found.sizes,
                stacklevel=3,
                powers=None if found.centred is None else Powers.of(found.centred),
            )
        limits = None
        if sure is not None or self._may_test:
            limits = found.limits(CONFIDENCE if sure is None else sure)
        return self._gaussian(found.sizes, limits, bounds, sure, notes, variance=found.variance)

    def _analysed(self, frame: Any) -> Intraclass:
        """Return the analysis of variance, by role where there are roles; refuse hidden ones."""
        if self.role is None and not (self._may_test and in_memory(frame) is not None):
            return intraclass(frame, value=self.value, by=self._unit, refuse=self._may_test)
        if self._may_test:
            frame = brought_into_memory(frame, [self.value, self._unit, self.role])
        units = units_of(frame, by=self._unit)
        values = numbers_of(frame, [self.value])[1][units.order, 0]
        values = values - values.mean()
        if self.role is not None:
            roles = codes_of(frame, self.role)[units.order]
            return intraclass_by_role(
                values, units.numbers, roles, self.value, refuse=self._may_test
            )
        found = intraclass(frame, value=self.value, by=self._unit)
        if order_matters(values, units.numbers) < _ORDER:
            raise ModelError(
                f"the first, second, … rows of a {self._unit} differ in their means of"
                f" {self.value}, so that members are not alike as they stand, and a common mean"
                " would hide their correlation. Name the column that tells them apart with role=;"
                " for values along time use GaussianSeriesEstimator."
            )
        return found

    def _by_signs(self, frame: Any, bounds: tuple[float, float], sure: float | None) -> Model:
        """Learn an upper limit from signs of differences between groups."""
        if self._may_test:
            frame = brought_into_memory(frame, [self.value, self._unit, self.role])
        units = units_of(frame, by=self._unit)
        sizes = Counter(units.sizes.tolist())
        refuse_larger(sizes, self._largest(needed=False))
        values = np.clip(numbers_of(frame, [self.value])[1][units.order, 0], *bounds)
        numbers, places = units.numbers, units.places
        if self.role is not None:
            roles = codes_of(frame, self.role)[units.order]
            order = np.lexsort((places, roles, numbers))
            numbers, roles, values = numbers[order], roles[order], values[order]
            # The first, second, … holder of a role is a position of its own.
            other = (np.diff(numbers, prepend=-1) != 0) | (np.diff(roles, prepend=-1) != 0)
            begins, rows = np.flatnonzero(other), len(numbers)
            again = np.arange(rows) - np.repeat(begins, np.diff(begins, append=rows))
            places = roles * (int(again.max()) + 1) + again
        shares = sign_shares(values, numbers, places, along=False, epsilon=self.epsilon)
        self.correlation_ = shares.correlation
        low = -1.0 if self.lowest is None else self.lowest
        limits = low, max(shares.limit(CONFIDENCE if sure is None else sure), low)
        return self._gaussian(sizes, limits, bounds, sure, (lowest_note(self.lowest),))

    def _gaussian(
        self,
        sizes: Counter[int],
        limits: tuple[float, float] | None,
        bounds: tuple[float, float],
        sure: float | None,
        notes: tuple[str, ...],
        *,
        variance: float | None = None,
    ) -> Model:
        """Return the set between the limits, or a point that knows this set."""

        def between(size: int) -> GaussianGroup:
            return self._group_of(size, limits or (0.0, 0.0), bounds, None)

        def point(size: int) -> GaussianGroup:
            return self._group_of(size, (self.correlation_,) * 2, bounds, variance)

        coverage = self._coverage(sure, notes=notes)
        if sure is not None:
            return self._model_of(between, sizes, self.epsilon, coverage=coverage)
        upper = None if limits is None else between
        return self._model_of(point, sizes, self.epsilon, coverage=coverage, upper=upper)

    def _group_of(
        self,
        size: int,
        limits: tuple[float, float],
        bounds: tuple[float, float],
        variance: float | None,
    ) -> GaussianGroup:
        """Return a group of one size.

        A correlation at or below −1/(m−1) is impossible among m members: it is cut just above.
        """
        least = -(1 - 1e-6) / (size - 1) if size > 1 else -1.0
        low, high = (min(max(end, least), LARGEST) for end in limits)
        return GaussianGroup(
            size=size,
            correlation=(low, high),
            bounds=bounds,
            variance=variance if variance and variance > 0 else None,
            provenance=self._provenance,
        )

    def _largest(self, *, needed: bool) -> int | None:
        if self.max_group_size is None and not needed:
            return None
        return checked_limit(self.max_group_size, "max_group_size", "a group")


_ONE_LAW = (
    "The rate of ones of a group is assumed to be drawn from one law for groups of all sizes, near"
    " a beta law or a mixture of rates; the limit is asymptotic, and where groups are polarised it"
    " may be short by a few per cent."
)


_FITS: dict[str, Callable[[GroupEstimator, Any, float | None], Model]] = {
    "binary": GroupEstimator._fit_binary,  # noqa: SLF001 - the class's own branches
    "gaussian": GroupEstimator._fit_gaussian,  # noqa: SLF001
}
"""How each kind is learned; a further kind is one more line."""
