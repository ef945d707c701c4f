"""How strongly the tuples of a network are coupled, pair by pair.

The coupling D_kl of two tuples is the largest |log cross-ratio| of the law in (x_k, x_l),

    |log π(v,w)π(v',w') / (π(v,w')π(v',w))|,

over all their values and those of all other tuples: 0 where they are independent given the rest. In
a product of factors it is at most the sum of their couplings in each factor that contains both.

**Zeros.** Let every zero of a factor be filled with a number η > 0. Leakages between secrets that
were possible before tend to the true ones as η → 0, so bounds for the filled law stay bounds in the
limit. A cross-ratio in which zeros do not cancel grows without limit: D is infinite. Where every
cross-ratio of two tuples has as many zeros above as below, η cancels, and D is finite. Cells with
zeros on both sides must not be skipped: else tuples with support {000, 111} would have no coupling.
Values that no factor allows are left out first.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contraction import birkhoff_bounds, contracted
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF

Scope = tuple[int, ...]
BoolArray = npt.NDArray[np.bool_]

_SUM = 1 + 4 * UNIT_ROUNDOFF  # covers two additions
_SMALLEST = 1e-280  # products below this may have lost digits to underflow


class Couplings:
    """Which tuples are coupled, and how strongly at most.

    Parameters
    ----------
    size
        The number of tuples.
    strengths
        D of every two coupled tuples (k, l) with k < l; all others are independent given the rest.
    """

    def __init__(self, size: int, strengths: Mapping[tuple[int, int], float]) -> None:
        self.size = size
        self.strengths = {pair: found for pair, found in strengths.items() if found > 0}

    @functools.cached_property
    def neighbours(self) -> tuple[dict[int, float], ...]:
        """For every tuple those it is coupled with, and how strongly."""
        found: tuple[dict[int, float], ...] = tuple({} for _ in range(self.size))
        for (first, second), strength in self.strengths.items():
            found[first][second] = found[second][first] = strength
        return found

    def distances(self, target: int) -> dict[int, int]:
        """Return how many couplings each tuple of the same component is away, nearest first."""
        found = {target: 0}
        reached = [target]
        for place in reached:  # grows while it is read
            for other in self.neighbours[place]:
                if other not in found:
                    found[other] = found[place] + 1
                    reached.append(other)
        return found

    @functools.cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The tuples, in groups with no coupling between them; each begins with its first tuple."""
        seen: set[int] = set()
        found = []
        for place in range(self.size):
            if place not in seen:
                together = tuple(self.distances(place))
                seen.update(together)
                found.append(together)
        return tuple(found)

    @functools.cached_property
    def is_forest(self) -> bool:
        """Whether there is at most one path between any two tuples."""
        return len(self.strengths) == self.size - len(self.components)

    def without(self, known: Collection[int]) -> Couplings:
        """Return the couplings between the others, once some tuples are known."""
        if not known:
            return self
        cut = frozenset(known)
        kept = {pair: strength for pair, strength in self.strengths.items() if not cut & set(pair)}
        return Couplings(self.size, kept)

    def merged_bounds(self, budgets: FloatArray) -> FloatArray:
        """Bound the leakage about every tuple as if all others of its component were one tuple.

        That one is coupled with it by Σ_j D_ij and has the budget Σ_j ε_j. The bound never exceeds
        the sum of all budgets of the component.
        """
        found = np.array(budgets, dtype=np.float64)
        for together in self.components:
            total = math.fsum(budgets[list(together)])
            for place in together if len(together) > 1 else ():
                coupled = math.fsum(self.neighbours[place].values()) * ROUND_UP
                others = (total - float(budgets[place])) + 4 * UNIT_ROUNDOFF * total
                found[place] = (found[place] + contracted(coupled, others)) * _SUM
        return found

    def forest_bounds(self, budgets: FloatArray) -> FloatArray:
        """Bound the leakage about every tuple of a forest, in linear time.

        A neighbour k of tuple i, with all tuples behind k, adds at most D_ik ⊗ a_k to the leakage
        about x_i, where a_k = ε_k + Σ D_kl ⊗ a_l over the neighbours l behind k. Two passes give
        the sum at every tuple: one towards the first tuple of a component, one away from it.
        """
        totals = np.array(budgets, dtype=np.float64)
        upwards = np.zeros(len(totals))
        parents: dict[int, tuple[int, float]] = {}
        order: list[int] = []
        for together in self.components:
            for place in together:
                order.append(place)
                for other, strength in self.neighbours[place].items():
                    if parents.get(place, (-1,))[0] != other:
                        parents[other] = place, strength
        for place in reversed(order):
            if place in parents:
                parent, strength = parents[place]
                upwards[place] = contracted(strength, float(totals[place]))
                totals[parent] = (totals[parent] + upwards[place]) * _SUM
        for place in order:
            if place in parents:
                parent, strength = parents[place]
                total = float(totals[parent])
                # A difference of sums of up to n terms is off by as many roundings of the sum.
                others = total - upwards[place] + 8 * UNIT_ROUNDOFF * total
                totals[place] = (totals[place] + contracted(strength, others)) * _SUM
        return totals


class EvenPath(Couplings):
    """Tuples in a row, each coupled with the next equally strongly.

    Parameters
    ----------
    size
        The number of tuples.
    strength
        D of every two that follow each other.
    """

    def __init__(self, size: int, strength: float, known: Collection[int] = ()) -> None:
        self.size, self.strength, self._known = size, strength, frozenset(known)

    @functools.cached_property
    def strengths(self) -> dict[tuple[int, int], float]:  # type: ignore[override]
        """D of every two coupled tuples."""
        pairs = zip(range(self.size - 1), range(1, self.size), strict=True)
        return {pair: self.strength for pair in pairs if not self._known & set(pair)}

    is_forest = True

    def without(self, known: Collection[int]) -> EvenPath:
        """Return the couplings between the others, once some tuples are known."""
        return EvenPath(self.size, self.strength, known) if known else self

    def forest_bounds(self, budgets: FloatArray) -> FloatArray:
        """Bound the leakage about every tuple, in one pass from each end."""
        found = np.array(budgets, dtype=np.float64)
        start = 0
        for end in (*sorted(self._known), self.size):
            if end > start:
                found[start:end] = birkhoff_bounds(budgets[start:end], self.strength)
            start = end + 1
        return found


def coupled(
    sizes: Sequence[int], scopes: Sequence[Scope], factors: Sequence[FloatArray]
) -> Couplings:
    """Return the couplings of a product of factors, rounded up."""
    possible = possible_values(sizes, scopes, factors)
    strengths: dict[tuple[int, int], float] = {}
    worked_out: dict[object, list[float]] = {}
    for scope, product, pieces in absorbed(scopes, factors):
        cells = product[np.ix_(*(possible[place] for place in scope))]
        vary = [axis for axis, place in enumerate(scope) if cells.shape[axis] > 1]
        key = cells.shape, cells.tobytes()
        if key not in worked_out:  # many factors of a large network are equal
            worked_out[key] = [
                pair_strength(cells, *axes) for axes in itertools.combinations(vary, 2)
            ]
        for axes, strength in zip(itertools.combinations(vary, 2), worked_out[key], strict=True):
            first, second = sorted((scope[axes[0]], scope[axes[1]]))
            rounding = 16 * UNIT_ROUNDOFF * pieces if strength else 0.0  # of products and quotients
            total = strengths.get((first, second), 0.0) + strength + rounding
            strengths[first, second] = total * _SUM
    return Couplings(len(sizes), strengths)


def pair_strength(factor: FloatArray, first: int, second: int) -> float:
    """Return the largest |log cross-ratio| of a factor in two of its axes, rounded up.

    Examples
    --------
    >>> round(pair_strength(np.array([[0.4, 0.1], [0.1, 0.4]]), 0, 1), 6)  # log 16
    2.772589
    >>> pair_strength(np.array([[1.0, 0.0], [1.0, 1.0]]), 0, 1)
    inf
    """
    zeros = (factor == 0).astype(np.float64)
    if zeros.any() and _largest_cross_difference(zeros, first, second) > 0:
        return math.inf
    logs = np.log(np.where(zeros > 0, factor.max(), factor))
    apart = _largest_cross_difference(logs, first, second)
    # Each logarithm has a relative error of one or two units; four of them are added up.
    return apart + 16 * UNIT_ROUNDOFF * float(np.abs(logs).max())


def _largest_cross_difference(logs: FloatArray, first: int, second: int) -> float:
    """Return the largest logs[v,w] + logs[v',w'] − logs[v,w'] − logs[v',w]."""
    moved = np.moveaxis(logs, (first, second), (0, 1))
    rows, columns = moved.shape[:2]
    moved = moved.reshape(rows, columns, -1)
    largest = 0.0
    for one in range(rows):  # a row at a time: differences of all at once may be too many
        apart = moved[one + 1 :] - moved[one]
        if apart.size:
            largest = max(largest, float((apart.max(axis=1) - apart.min(axis=1)).max()))
    return largest


class Product(NamedTuple):
    """Factors about the same tuples, multiplied."""

    scope: Scope
    """The tuples that it is about."""
    cells: FloatArray
    """Its values, up to a common factor."""
    pieces: int
    """How many factors it is made of."""


def absorbed(scopes: Sequence[Scope], factors: Sequence[FloatArray]) -> list[Product]:
    """Multiply every factor of several tuples into another that is about all of these, if any is.

    Cross-ratios of the product are at most the sums of those of the single factors. Each factor is
    divided by its largest entry first, so that products do not overflow; where a product might
    underflow, the factors stay separate.
    """
    found: list[Product] = []
    holding: dict[int, list[int]] = {}
    several = [place for place, scope in enumerate(scopes) if len(scope) > 1]
    for place in sorted(several, key=lambda k: -len(scopes[k])):
        scope, cells = scopes[place], factors[place] / factors[place].max()
        for where in holding.get(scope[0], ()):
            outer = found[where]
            if not set(scope) <= set(outer.scope):
                continue
            spread = _spread(scope, cells, outer.scope)
            together = outer.cells * spread
            if not np.any((together < _SMALLEST) & (outer.cells > 0) & (spread > 0)):
                found[where] = Product(outer.scope, together, outer.pieces + 1)
                break
        else:
            for member in scope:
                holding.setdefault(member, []).append(len(found))
            found.append(Product(scope, cells, 1))
    return found


def _spread(scope: Scope, factor: FloatArray, outer: Scope) -> FloatArray:
    """Arrange the axes of a factor as those of a larger scope; the others have one entry."""
    axes = sorted(range(len(scope)), key=lambda axis: outer.index(scope[axis]))
    shape = [factor.shape[scope.index(place)] if place in scope else 1 for place in outer]
    return factor.transpose(axes).reshape(shape)


def possible_values(
    sizes: Sequence[int], scopes: Sequence[Scope], factors: Sequence[FloatArray]
) -> list[npt.NDArray[np.intp]]:
    """Return the values of each tuple that no single factor rules out, given the others' values."""
    possible = [np.ones(size, dtype=np.bool_) for size in sizes]
    with_zeros = [k for k, factor in enumerate(factors) if scopes[k] and np.any(factor == 0)]
    waiting = list(with_zeros)
    holding: dict[int, list[int]] = {}
    for number in with_zeros:
        for place in scopes[number]:
            holding.setdefault(place, []).append(number)
    while waiting:
        number = waiting.pop()
        scope, allowed = scopes[number], factors[number] > 0
        for axis, place in enumerate(scope):
            allowed = allowed & _along(possible[place], axis, len(scope))
        for axis, place in enumerate(scope):
            others = tuple(other for other in range(len(scope)) if other != axis)
            left = allowed.any(axis=others)
            if np.any(possible[place] & ~left):
                possible[place] = possible[place] & left
                waiting += [other for other in holding[place] if other not in waiting]
    return [np.flatnonzero(one) for one in possible]


def _along(values: BoolArray, axis: int, axes: int) -> BoolArray:
    return values.reshape([-1 if other == axis else 1 for other in range(axes)])
