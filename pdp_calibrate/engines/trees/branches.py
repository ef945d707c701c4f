"""Everything that one branch of a tree can look like from its inner end.

Along a branch each tuple is known to hold some value, which cuts off all behind it, or unknown, and
then every way its own branches can look is combined. A look at a branch is the joint probability
of what is known in it and of the sum of what is not, given each value of the tuple it hangs on.

Branches that repeat in a tree (equal kernels, contributions and branches behind) are one object, so
that each is worked out once, and equal branches at one tuple count in any order.

Beyond a horizon nobody looks. There the last tuple, b, is taken as known, whatever it holds, at a
price. Let all outputs together tell at most a about any one tuple, whatever else is known. The law
of x_b given the target averages what outputs say of each x_b, which differs by a factor of at most
e^a; so it tells of the target no more than the contraction of a on the way from b. Prices of
several such tuples add up where they meet, and are contracted from there on together. All that
takes every x_b to be possible whatever else holds, as it is if b hangs on an edge without zeros;
if not, b is exposed and has no price.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.engines.chains.mixing import contracted
from pdp_calibrate.models.base import FloatArray

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Looks:
    """All ways to look at a tuple and its branches."""

    laws: FloatArray
    """Probabilities [look, value of the tuple, sum]."""
    joins: tuple[tuple[Branch, IntArray, IntArray], ...]
    """Each branch in turn: the look so far, and the look at the branch, that make a new look."""

    def prices(self, most: float) -> FloatArray:
        """Return what lies beyond the horizon may add to each look that is not exposed, in nats."""
        return self._added_up(lambda branch: branch.prices(most))

    @functools.cached_property
    def seen(self) -> FloatArray:
        """How many tuples each look is about, the last known ones included."""
        return 1 + self._added_up(lambda branch: branch.seen)

    @functools.cached_property
    def exposed(self) -> npt.NDArray[np.bool_]:
        """Which looks have an exposed tuple at the horizon."""
        return np.asarray(self._added_up(lambda branch: branch.exposed) > 0)

    def _added_up(self, of_branch: Callable[[Branch], FloatArray]) -> FloatArray:
        total = np.zeros(1)
        for branch, before, added in self.joins:
            total = total[before] + of_branch(branch)[added]
        return total


class Edge:
    """A tuple as seen from the neighbour it hangs on, whatever lies behind it.

    Parameters
    ----------
    kernel
        P(tuple | neighbour).
    points
        What each value of the tuple adds to the sum, in steps from zero.
    diameter
        Of the kernel, in Hilbert's metric.
    may_know, may_not
        Whether adversaries may know the tuple, and whether they may not.
    """

    def __init__(
        self,
        kernel: FloatArray,
        points: IntArray,
        diameter: float,
        *,
        may_know: bool,
        may_not: bool,
    ) -> None:
        self.kernel, self.points, self.diameter = kernel, points, diameter
        self.may_know, self.may_not = may_know, may_not
        self.highest = int(points.max())
        self.log_rarest = math.log(float(kernel[kernel > 0].min()))
        self.known: FloatArray = kernel[:, np.any(kernel > 0, axis=0)].T
        """Probabilities of each value [value, value of the neighbour]."""
        self.known_at_target: FloatArray = np.unique(self.known > 0, axis=0).astype(np.float64)
        """The same where the neighbour is the target itself: to know the tuple then tells nothing,
        and its values differ only in the secrets they rule out."""


class Branch:
    """A tuple and all that lies behind it, seen from the neighbour it hangs on.

    Parameters
    ----------
    edge
        The tuple and its neighbour.
    behind
        Further branches, equal ones side by side; None where nobody looks further.
    at_target
        Whether the neighbour is the target itself.
    """

    def __init__(
        self, edge: Edge, behind: tuple[Branch, ...] | None, *, at_target: bool = False
    ) -> None:
        self.kernel, self.points, self.diameter = edge.kernel, edge.points, edge.diameter
        self.may_not = edge.may_not and behind is not None
        self.is_far = edge.may_not and behind is None
        self.known = edge.known_at_target if at_target else edge.known
        if not (edge.may_know or self.is_far):
            self.known = self.known[:0]
        self.behind: tuple[Branch, ...] = behind if behind and edge.may_not else ()
        self.highest: int = edge.highest + sum(branch.highest for branch in self.behind)
        self.log_rarest: float = edge.log_rarest + sum(other.log_rarest for other in self.behind)
        self.highest_price: float = contracted(
            edge.diameter,
            math.inf if self.is_far else sum(other.highest_price for other in self.behind),
        )
        """No price of what lies beyond the horizon is higher, whatever is told of its tuples."""
        self._priced: tuple[float, FloatArray] = (-1.0, np.zeros(0))

    @functools.cached_property
    def count(self) -> int:
        """How many looks there are at most."""
        return len(self.known) + (ways(self.behind) if self.may_not else 0)

    @functools.cached_property
    def numbers(self) -> float:
        """How many probabilities the looks at it, and at what lies behind, have at most."""
        own = float(self.count) * len(self.kernel) * (self.highest + 1)
        return own + sum(branch.numbers for branch in set(self.behind))

    @functools.cached_property
    def inner(self) -> Looks | None:
        """All looks at the tuple itself, where it may be unknown."""
        return combined(self.points, self.behind) if self.may_not else None

    @functools.cached_property
    def laws(self) -> FloatArray:
        """Probabilities [look, value of the neighbour, sum]; looks at the known tuple first."""
        known = self.known[:, :, np.newaxis]
        if self.inner is None:
            return known
        unknown = np.matmul(self.kernel, self.inner.laws)
        known = np.pad(known, ((0, 0), (0, 0), (0, unknown.shape[2] - 1)))
        return np.concatenate([known, unknown])

    @functools.cached_property
    def seen(self) -> FloatArray:
        """How many tuples each look is about."""
        inner = np.zeros(0) if self.inner is None else self.inner.seen
        return np.concatenate([np.ones(len(self.known)), inner])

    @functools.cached_property
    def exposed(self) -> FloatArray:
        """How many exposed tuples each look has at the horizon."""
        inner = np.zeros(0) if self.inner is None else self.inner.exposed
        here = float(self.is_far and math.isinf(self.diameter))
        return np.concatenate([np.full(len(self.known), here), inner])

    def prices(self, most: float) -> FloatArray:
        """Return what lies beyond the horizon may add to each look; `most` is told of any tuple."""
        if self._priced[0] != most:
            inner = np.zeros(0) if self.inner is None else self.inner.prices(most)
            distinct, which = np.unique(inner, return_inverse=True)
            carried = np.array([contracted(self.diameter, float(price)) for price in distinct])
            far = contracted(self.diameter, most) if self.is_far else 0.0
            prices = np.concatenate([np.full(len(self.known), far), carried[which]])
            self._priced = most, prices
        return self._priced[1]


def combined(points: IntArray, branches: Sequence[Branch]) -> Looks:
    """Look at a tuple together with its branches, in all ways; equal branches side by side."""
    laws = np.zeros((1, len(points), int(points.max()) + 1))
    laws[0, np.arange(len(points)), points] = 1.0
    last, joins = np.zeros(1, dtype=np.int64), []
    for place, branch in enumerate(branches):
        is_again = place > 0 and branch is branches[place - 1]
        begins = last if is_again else np.zeros_like(last)
        before = np.repeat(np.arange(len(laws)), len(branch.laws) - begins)
        last = np.concatenate([np.arange(begin, len(branch.laws)) for begin in begins])
        laws = _convolved(laws[before], branch.laws[last])
        possible = np.any(laws > 0, axis=(1, 2))
        laws, last = laws[possible], last[possible]
        joins.append((branch, before[possible], last))
    return Looks(laws, tuple(joins))


def ways(branches: Iterable[Branch]) -> int:
    """Count the ways to look at several branches: multisets of looks where branches are equal."""
    number = 1
    for branch, equal in itertools.groupby(branches):
        times = sum(1 for _ in equal)
        number *= math.comb(branch.count + times - 1, times)
    return number


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Add independent sums, look by look and value by value."""
    longer, shorter = (one, other) if one.shape[2] >= other.shape[2] else (other, one)
    size = longer.shape[2]
    found = np.zeros((*longer.shape[:2], size + shorter.shape[2] - 1))
    for step in range(shorter.shape[2]):
        found[:, :, step : step + size] += longer * shorter[:, :, step : step + 1]
    return found
