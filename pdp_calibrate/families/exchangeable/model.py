"""Exchangeable groups: members are interchangeable, and differ by name only.

The law of such a group is the law of how many members hold each value; given those counts, every
assignment of values to members is equally likely.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import (
    LOG_SMALLEST,
    MAXIMAL_CELLS,
    SHORT_TABLE,
    Domain,
    Model,
    checked_domain,
    checked_laws,
    checked_size,
)
from pdp_calibrate.core.schema_parts import NAMES, VECTOR
from pdp_calibrate.core.table import (
    JointTable,
    refuse_too_many_cells,
    refuse_underflow,
    written_out,
)
from pdp_calibrate.errors import ModelError

Counts = tuple[int, ...]
"""How many members hold each category."""


class _Exchangeable(Model):
    """What groups have in common: one domain for all members, names that are positions."""

    count_probabilities: FloatArray

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.names)

    def _expanded(self, law: FloatArray) -> JointTable:
        """Divide the law of the counts, in the order of `compositions`, among their cells."""
        size, domain = self.size, self.domains[0]
        refuse_too_many_cells([len(domain)] * size)
        ways = [math.exp(log_ways(counts)) for counts in compositions(size, len(domain))]
        per_cell = law / np.array(ways)
        refuse_underflow(underflows=bool(np.any(per_cell[law > 0] < math.exp(LOG_SMALLEST))))
        codes = np.zeros([len(domain)] * size, dtype=np.int64)
        radix = (size + 1) ** np.arange(len(domain) - 1, -1, -1, dtype=np.int64)
        for axis in range(size):
            codes += radix.reshape([-1 if other == axis else 1 for other in range(size)])
        listed = np.array(list(compositions(size, len(domain))), dtype=np.int64) @ radix
        cells = per_cell[np.searchsorted(listed, codes)]
        return written_out(self, cells / math.fsum(cells.ravel()))


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class BinaryGroup(_Exchangeable):
    """Exchangeable members with a yes/no value (0 or 1).

    Parameters
    ----------
    count_probabilities
        The probability of 0, 1, …, m ones among the m members.
    names, provenance
        One name per member, 0 … m−1 by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> BinaryGroup(count_probabilities=[0.5, 0.1, 0.1, 0.3])
    BinaryGroup(3 members, assumed)
    """

    defined_by: ClassVar[tuple[str, ...]] = ("count_probabilities",)
    dependence = "interchangeable yes/no members of a group"
    json_fields: ClassVar = {"count_probabilities": VECTOR}
    engine = "pdp_calibrate.families.exchangeable.search:GroupEngine"
    gaussian_noise_engine = "pdp_calibrate.families.exchangeable.gaussian_noise:GroupNoiseEngine"
    composer = "pdp_calibrate.families.exchangeable.composed:BinaryComposer"

    count_probabilities: FloatArray
    """P(c members hold 1) for c = 0 … m, read-only."""

    def __init__(
        self,
        *,
        count_probabilities: npt.ArrayLike,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        law = checked_laws(count_probabilities, "count_probabilities")
        if law.ndim != 1 or len(law) < 2:
            raise ModelError(
                "count_probabilities must be a list of m + 1 numbers for m ≥ 1 members,"
                f" got shape {law.shape}."
            )
        self._settle_numbered(names, len(law) - 1, provenance, count_probabilities=law)

    @property
    def log_law(self) -> FloatArray:
        """The log-probability of 0, 1, …, m ones; −inf where it is impossible."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.count_probabilities))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """0 and 1, once per member."""
        return ((0, 1),) * self.size

    def to_table(self) -> JointTable:
        """Expand the group into a joint table, if that has at most 2²⁴ cells."""
        # Compositions are listed as (zeros, ones) with zeros ascending.
        return self._expanded(self.count_probabilities[::-1])

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlation that all pairs share, from the first two moments of the count."""
        size, ones = self.size, np.arange(self.size + 1)
        share = float(self.count_probabilities @ ones) / size
        both = float(self.count_probabilities @ (ones * (ones - 1))) / max(size * (size - 1), 1)
        variance = share * (1 - share)
        if variance <= 0:
            return None
        common = (both - share * share) / variance
        return np.where(np.eye(size, dtype=np.bool_), 1.0, common)

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw how many of the others hold 1, then who; see `Model.draws`."""
        size = self.size
        if SHORT_TABLE.admits([2] * size):
            return self.to_table().draws(number, given=given, target=target, rng=rng)
        fixed = self._places(given)
        drawn = np.empty((number, size))
        unknown = [axis for axis in range(size) if axis not in fixed]
        for axis, place in fixed.items():
            drawn[:, axis] = place
        ones = sum(fixed.values())
        counts = np.arange(len(unknown) + 1)
        # The other members are exchangeable again: given their count, all ways are equally likely.
        logs = self.log_law[ones + counts] - log_binomials(size)[ones + counts]
        logs += log_binomials(len(unknown))
        masses = np.exp(logs - logs.max())
        found = rng.choice(counts, size=number, p=masses / masses.sum())
        ranks = rng.random((number, len(unknown))).argsort(axis=1)
        drawn[:, unknown] = ranks < found[:, np.newaxis]
        return drawn

    def __repr__(self) -> str:
        return f"BinaryGroup({self.size} members, {self.provenance})"


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class CategoryGroup(_Exchangeable):
    """Exchangeable members with one of several values.

    Parameters
    ----------
    size
        The number m of members.
    categories
        The values they can take; numbers if a sum is to be released.
    count_probabilities
        ``{counts: probability}``, the counts saying how many members hold each category; counts
        left out are impossible. Or one probability per composition, in the order of
        `compositions`.
    names, provenance
        One name per member, 0 … m−1 by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> CategoryGroup(
    ...     size=2, categories=[0, 1, 5], count_probabilities={(2, 0, 0): 0.6, (0, 1, 1): 0.4}
    ... )
    CategoryGroup(2 members, 3 categories, assumed)
    """

    defined_by = ("categories", "count_probabilities")
    dependence = "interchangeable members of a group, each in one category"
    json_fields: ClassVar = {"categories": NAMES, "count_probabilities": VECTOR}
    engine = "pdp_calibrate.families.exchangeable.search:GroupEngine"
    gaussian_noise_engine = "pdp_calibrate.families.exchangeable.gaussian_noise:GroupNoiseEngine"

    categories: Domain
    """The values that every member can take."""
    count_probabilities: FloatArray
    """One probability per composition of the size, in the order of `compositions`."""

    def __init__(
        self,
        *,
        size: int,
        categories: Iterable[Hashable],
        count_probabilities: Mapping[Counts, float] | npt.ArrayLike,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        members = checked_size(size, "size")
        values = checked_domain(categories, "the categories")
        number = math.comb(members + len(values) - 1, members)
        if number > MAXIMAL_CELLS:
            raise ModelError(
                f"a group may have at most 2^22 = {MAXIMAL_CELLS} counts, got {number}."
                " Merge rare categories."
            )
        given = count_probabilities
        listed = _in_order(given, members, len(values)) if isinstance(given, Mapping) else given
        law = checked_laws(listed, "count_probabilities")
        if law.shape != (number,):
            raise ModelError(
                f"count_probabilities must have one entry per composition ({number}),"
                f" got shape {law.shape}."
            )
        self._settle_numbered(
            names, members, provenance, categories=values, count_probabilities=law
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The categories, once per member."""
        return (self.categories,) * self.size

    def to_table(self) -> JointTable:
        """Expand the group into a joint table, if that has at most 2²⁴ cells."""
        return self._expanded(self.count_probabilities)

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw from the group as a joint table; see `Model.draws`."""
        return self.to_table().draws(number, given=given, target=target, rng=rng)

    def __repr__(self) -> str:
        number = len(self.categories)
        return f"CategoryGroup({self.size} members, {number} categories, {self.provenance})"


def compositions(size: int, categories: int) -> Iterator[Counts]:
    """Yield every way to divide `size` members among the categories, in lexicographic order.

    Examples
    --------
    >>> list(compositions(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    for bars in itertools.combinations(range(size + categories - 1), categories - 1):
        ends = (-1, *bars, size + categories - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))


def log_ways(counts: Counts) -> float:
    """Return the log of the number of ways to assign these numbers of members to the categories."""
    ways, left = 1, sum(counts)
    for count in counts:
        ways *= math.comb(left, count)
        left -= count
    return math.log(ways)


def log_binomials(size: int) -> FloatArray:
    """Return log C(size, count) for every count."""
    steps = np.log(np.arange(1, size + 1))
    factorials = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(factorials[-1] - factorials - factorials[::-1])


def _in_order(given: Mapping[Counts, float], size: int, categories: int) -> list[float]:
    law = {tuple(counts): float(probability) for counts, probability in given.items()}
    listed = list(compositions(size, categories))
    if set(law) - set(listed):
        raise ModelError(
            f"every key of count_probabilities must be {categories} counts that sum to {size}."
        )
    return [law.get(counts, 0.0) for counts in listed]
