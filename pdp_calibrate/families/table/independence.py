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
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.families.table.setting import Setting
from pdp_calibrate.families.table.tree_search import pair_tables

_FACTORS = 1e-13  # largest relative error at which a table counts as a product


_SMALLEST = 1e-290  # products below this may have lost digits to underflow


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """A table as a product of smaller ones."""

    groups: tuple[tuple[int, ...], ...]
    """Positions of the tuples of each group."""
    error: float
    """Bound on the change of any log-ratio by treating the table as a product."""


def independent_groups(setting: Setting) -> Split | None:
    """Return the independent groups; None if there is one only, or if splitting is not sound.

    The rest of the groups must be knowable, and a query that is not additive does not split.
    """
    knowledge, size = setting.knowledge, len(setting.sizes)
    if setting.table is not None or knowledge.known is not None or setting.counts_strongest:
        return None
    if size < 2 or knowledge.most < size - 1:
        return None
    linked = np.eye(size, dtype=np.bool_)
    for (first, second), pair in pair_tables(setting).items():
        product = np.outer(pair.sum(axis=1), pair.sum(axis=0))
        linked[first, second] = bool(np.any(np.abs(pair - product) > _FACTORS * product))
    number, labels = connected_components(linked, directed=False)
    if number == 1:
        return None
    groups = tuple(tuple(map(int, np.flatnonzero(labels == label))) for label in range(number))
    # Pairwise independence is not independence: compare the whole product, cell by cell. What is
    # possible in each group must be possible together, and no product so small that it underflows.
    product, possible = np.ones(()), np.ones((), dtype=np.bool_)
    for group in groups:
        law = marginal(setting.probabilities, group)
        product = np.multiply.outer(product, law)
        possible = np.logical_and.outer(possible, law > 0)
    order = [place for group in groups for place in group]
    cells = setting.probabilities.transpose(order)
    if np.any((cells > 0) != possible) or np.any(product[possible] < _SMALLEST):
        return None
    apart = np.abs(cells - product)
    if np.any(apart > _FACTORS * product):
        return None
    with np.errstate(invalid="ignore"):
        relative = float(np.nanmax(apart / product))
    return Split(groups=groups, error=5 * (relative + 4 * size * UNIT_ROUNDOFF))


def marginal(probabilities: FloatArray, group: tuple[int, ...]) -> FloatArray:
    """Sum over all tuples outside the group."""
    others = tuple(place for place in range(probabilities.ndim) if place not in group)
    return np.asarray(probabilities.sum(axis=others))


def group_problem(problem: Problem, setting: Setting, group: tuple[int, ...]) -> Problem:
    """Return the problem of one group alone, everyone outside being known."""
    cells = marginal(setting.probabilities, group)
    knowledge = problem.knowledge
    targets = tuple(k for k, place in enumerate(group) if place in knowledge.targets)
    outside = len(setting.sizes) - len(group)
    return dataclasses.replace(
        problem,
        model=JointTable(
            probabilities=cells / cells.sum(),
            domains=[problem.model.domains[place] for place in group],
        ),
        contributions=problem.contributions.select(group),
        knowledge=Knowledge(
            total=len(group),
            targets=targets,
            fewest=max(0, knowledge.fewest - outside),
            most=len(group) - 1,
        ),
        names=tuple(problem.names[place] for place in group),
    )


def put_back(
    found: Bracket, problem: Problem, setting: Setting, group: tuple[int, ...], error: float
) -> Bracket:
    """Translate what was found in one group back to the whole table."""
    witness = found.witness
    if witness is not None:
        likely = np.unravel_index(int(np.argmax(setting.probabilities)), setting.sizes)
        outside = [place for place in range(len(setting.sizes)) if place not in group]
        known = {
            problem.names[place]: problem.model.domains[place][likely[place]] for place in outside
        }
        added = sum(problem.contributions.values[place][likely[place]] for place in outside)
        output = np.atleast_1d(witness.output) + added
        witness = dataclasses.replace(
            witness,
            known=witness.known | known,
            output=float(output[0]) if len(output) == 1 else tuple(map(float, output)),
            model=problem.model,
        )
    return Bracket(
        upper=found.upper + error,
        lower=max(0.0, found.lower - error),
        witness=witness,
        target=group[found.target],
        unknown=tuple(group[place] for place in found.unknown),
    )
