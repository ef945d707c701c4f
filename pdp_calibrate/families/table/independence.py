"""Columns that are independent of each other are searched apart.

If x_U is independent of x_i given x_K, not knowing it only blurs the answer: for an additive query
the worst adversary knows every other independent group, so the table leaks what its worst group
leaks alone. A table that factors only up to a relative error δ, p = Π p_g·(1 ± δ), has every sum of
cells right to the factor 1 ± δ; a log-ratio of densities holds four such sums.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.sparse.csgraph import connected_components

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.families.table.prepared import PreparedTable

_FACTORS = 1e-13  # largest relative error at which a table counts as a product


_SMALLEST = 1e-290  # products below this may have lost digits to underflow


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Tuples that are independent of all others, as a problem of their own."""

    positions: tuple[int, ...]
    """Where they stand in the whole table."""
    problem: Problem
    """The problem of these tuples alone, everyone outside being known."""
    whole: Problem
    """The problem they were taken from."""
    outside: dict[int, int]
    """Position of a tuple outside → position of the value it is known to have."""
    added: FloatArray | int
    """What the tuples outside add to the answer."""
    error: float
    """Bound on the change of any log-ratio by treating the table as a product."""

    @classmethod
    def of(cls, prepared: PreparedTable, positions: tuple[int, ...], error: float) -> Group:
        """Cut these tuples out of a table that is a product up to the error."""
        whole, knowledge = prepared.problem, prepared.knowledge
        cells = marginal(prepared.probabilities, positions)
        places = range(len(prepared.sizes))
        outside = {p: prepared.likeliest[p] for p in places if p not in positions}
        problem = dataclasses.replace(
            whole,
            model=JointTable(
                probabilities=cells / cells.sum(),
                domains=[whole.model.domains[place] for place in positions],
            ),
            contributions=whole.contributions.select(positions),
            knowledge=Knowledge(
                total=len(positions),
                targets=tuple(k for k, p in enumerate(positions) if p in knowledge.targets),
                fewest=max(0, knowledge.fewest - len(outside)),
                most=len(positions) - 1,
            ),
            names=tuple(whole.names[place] for place in positions),
        )
        return cls(
            positions=positions,
            problem=problem,
            whole=whole,
            outside=outside,
            added=sum(whole.contributions.values[place][v] for place, v in outside.items()),
            error=error,
        )

    def put_back(self, found: Bracket) -> Bracket:
        """Translate what was found in the group back to the whole table."""
        witness = found.witness
        if witness is not None:
            names, domains = self.whole.names, self.whole.model.domains
            known = {names[place]: domains[place][v] for place, v in self.outside.items()}
            output = np.atleast_1d(witness.output) + self.added
            witness = dataclasses.replace(
                witness,
                known=witness.known | known,
                output=float(output[0]) if len(output) == 1 else tuple(map(float, output)),
                model=self.whole.model,
            )
        return Bracket(
            upper=found.upper + self.error,
            lower=max(0.0, found.lower - self.error),
            witness=witness,
            target=self.positions[found.target],
            unknown=tuple(self.positions[place] for place in found.unknown),
        )


def independent_groups(prepared: PreparedTable) -> list[Group]:
    """Return the independent groups somebody attacks; none if splitting is needless or not sound.

    The rest of the groups must be knowable, and a query that is not additive does not split.
    """
    knowledge, size = prepared.knowledge, len(prepared.sizes)
    if prepared.table is not None or knowledge.known is not None or prepared.counts_strongest:
        return []
    if size < 2 or knowledge.most < size - 1:
        return []
    linked = np.eye(size, dtype=np.bool_)
    for (first, second), pair in pair_tables(prepared.probabilities).items():
        product = np.outer(pair.sum(axis=1), pair.sum(axis=0))
        linked[first, second] = bool(np.any(np.abs(pair - product) > _FACTORS * product))
    number, labels = connected_components(linked, directed=False)
    if number == 1:
        return []
    groups = tuple(tuple(map(int, np.flatnonzero(labels == label))) for label in range(number))
    # Pairwise independence is not independence: compare the whole product, cell by cell. What is
    # possible in each group must be possible together, and no product so small that it underflows.
    product, possible = np.ones(()), np.ones((), dtype=np.bool_)
    for group in groups:
        law = marginal(prepared.probabilities, group)
        product = np.multiply.outer(product, law)
        possible = np.logical_and.outer(possible, law > 0)
    order = [place for group in groups for place in group]
    cells = prepared.probabilities.transpose(order)
    if np.any((cells > 0) != possible) or np.any(product[possible] < _SMALLEST):
        return []
    apart = np.abs(cells - product)
    if np.any(apart > _FACTORS * product):
        return []
    with np.errstate(invalid="ignore"):
        relative = float(np.nanmax(apart / product))
    error = 5 * (relative + 4 * size * UNIT_ROUNDOFF)
    found = [Group.of(prepared, group, error) for group in groups]
    return [group for group in found if group.problem.knowledge.targets]


def marginal(probabilities: FloatArray, group: tuple[int, ...]) -> FloatArray:
    """Sum over all tuples outside the group."""
    others = tuple(place for place in range(probabilities.ndim) if place not in group)
    return np.asarray(probabilities.sum(axis=others))


def pair_tables(probabilities: FloatArray) -> dict[tuple[int, int], FloatArray]:
    """Return the joint law of every pair of tuples."""
    pairs: dict[tuple[int, int], FloatArray] = {}
    _add_pairs(probabilities, list(range(probabilities.ndim)), pairs)
    return pairs


def _add_pairs(
    table: FloatArray, places: list[int], pairs: dict[tuple[int, int], FloatArray]
) -> None:
    """Halve the tuples: pairs across come from one matrix product, pairs within by recursion."""
    if len(places) < 2:
        return
    middle = len(places) // 2
    left, right = places[:middle], places[middle:]
    rows = int(np.prod(table.shape[:middle]))
    matrix = table.reshape(rows, -1)
    left_marks, right_marks = _indicators(table.shape[:middle]), _indicators(table.shape[middle:])
    crossed = left_marks.T @ (matrix @ right_marks)
    start = 0
    for i, place in enumerate(left):
        stop = start + table.shape[i]
        other_start = 0
        for j, other in enumerate(right):
            other_stop = other_start + table.shape[middle + j]
            block = crossed[start:stop, other_start:other_stop]
            pairs[place, other], pairs[other, place] = block, block.T
            other_start = other_stop
        start = stop
    _add_pairs(matrix.sum(axis=1).reshape(table.shape[:middle]), left, pairs)
    _add_pairs(matrix.sum(axis=0).reshape(table.shape[middle:]), right, pairs)


def _indicators(shape: tuple[int, ...]) -> FloatArray:
    """One column per (tuple, value), one row per cell: 1 where the cell has the value."""
    places = np.indices(shape).reshape(len(shape), -1)
    return np.concatenate(
        [
            place[:, np.newaxis] == np.arange(size)
            for place, size in zip(places, shape, strict=True)
        ],
        axis=1,
    ).astype(np.float64)
