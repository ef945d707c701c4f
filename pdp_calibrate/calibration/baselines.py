"""What other methods would use: plain DP, group DP and the Wasserstein mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.couplings import joint_range, tuple_moves
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.core.tuning import WASSERSTEIN_LAWS
from pdp_calibrate.families.table.setting import Events, conditional_laws


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far the answer moves when one tuple changes and all others stay."""

    local: dict[Hashable, float]
    """LS_i of each tuple, over the full product of domains."""

    @property
    def overall(self) -> float:
        """GS, the largest of them."""
        return max(self.local.values())


def sensitivity(model: Model, query: Query, *, rows: int = 1) -> Sensitivity:
    """Return how far the answer moves when one tuple changes and all others stay.

    Examples
    --------
    >>> from pdp_calibrate import JointTable, Sum
    >>> table = JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[[0, 1], [0, 5]])
    >>> sensitivity(table, Sum()).local
    {'x1': 1.0, 'x2': 5.0}
    """
    ranges = lower(query, model, rows=rows).tuple_ranges()
    return Sensitivity(local=dict(zip(model.names, map(float, ranges), strict=True)))


def scales(problems: Sequence[Problem], epsilon: float) -> dict[str, float | None]:
    """Return the Laplace scale of each method for the same ε, None where it is out of reach.

    ``dp`` protects against changes of one tuple (GS/ε), ``group`` against changes of all
    correlated tuples together, ``wasserstein`` (Song, Wang and Chaudhuri 2017) against moving the
    law of the answer from one secret to another, for the adversaries of the problems. For a model
    without an end, no noise protects all steps together.
    """
    plain = max(float(problem.contributions.tuple_ranges().max()) for problem in problems)
    endless = any(problem.model.is_endless for problem in problems)
    group = max(problem.contributions.total_range() for problem in problems)
    distances = [_wasserstein(problem) for problem in problems]
    known = [distance for distance in distances if distance is not None]
    wasserstein = max(known) / epsilon if len(known) == len(distances) else None
    return {
        "dp": plain / epsilon,
        "group": None if endless else group / epsilon,
        "wasserstein": wasserstein,
    }


def gaussian_scales(problems: Sequence[Problem], mu: float) -> dict[str, float | None]:
    """Return the standard deviation of Gaussian noise that each method needs for the same μ.

    What matters is how far the answers move in L2 when one tuple changes (``dp``) or all of them
    together (``group``), or how far a coupling of their laws must move them (``wasserstein``). For
    a model without an end, no noise protects all steps together.
    """
    endless = any(problem.model.is_endless for problem in problems)
    plain = max(float(tuple_moves(problem.contributions)[0].max()) for problem in problems)
    group = max(joint_range(problem.contributions) for problem in problems)
    return {"dp": plain / mu, "group": None if endless else group / mu, "wasserstein": None}


def _wasserstein(problem: Problem) -> float | None:
    """Return the largest W∞ between the laws of the answer under two secrets; LS_i if all is known.

    Quantiles give it for one number only: None for a histogram or several answers.
    """
    if not isinstance(problem.model, JointTable) or problem.contributions.coordinates > 1:
        return None
    ranges = problem.contributions.tuple_ranges()
    laws = problem.model.probabilities.size * 2 ** (len(ranges) - 1) * len(ranges)
    if laws > WASSERSTEIN_LAWS:
        return None
    largest = 0.0
    for target in problem.knowledge.targets:
        for unknown in problem.knowledge.unknown_sets(target):
            if unknown or problem.hidden_noise:
                largest = max(
                    largest, _largest_distance(conditional_laws(problem, target, unknown))
                )
            else:
                largest = max(largest, float(ranges[target]))
    return largest


def _largest_distance(events: Events) -> float:
    largest = 0.0
    for event, possible in enumerate(events.possible):
        laws = events.laws[event]
        atoms = events.atoms[event % len(events.atoms), :, :, 0]
        for one, other in combinations(np.flatnonzero(possible), 2):
            distance = quantile_distance(atoms[one], laws[one], atoms[other], laws[other])
            largest = max(largest, distance)
    return largest


def quantile_distance(
    atoms: FloatArray, law: FloatArray, other_atoms: FloatArray, other_law: FloatArray
) -> float:
    """Return W∞ of two laws on the line: their largest difference of quantiles.

    W∞ jumps where two levels of the distribution functions meet, so levels closer than the
    rounding of their sums count as one. They are summed from both ends, where they may be as small
    as any float; in between, the mass of one law must move at least to the other's nearest atom.
    """
    one, other = atoms[law > 0], other_atoms[other_law > 0]
    apart = np.abs(one[:, np.newaxis] - other)
    furthest = max(float(apart.min(axis=1).max()), float(apart.min(axis=0).max()))
    for sign in (1, -1):
        distance = _from_one_end(sign * atoms, law, sign * other_atoms, other_law)
        furthest = max(furthest, distance)
    return furthest


def _from_one_end(
    atoms: FloatArray, law: FloatArray, other_atoms: FloatArray, other_law: FloatArray
) -> float:
    """Return the largest difference of quantiles, their levels summed from the smallest atom."""
    order, other_order = np.argsort(atoms), np.argsort(other_atoms)
    levels, other_levels = np.cumsum(law[order]), np.cumsum(other_law[other_order])
    steps = np.sort(np.concatenate([[0.0], levels[:-1], other_levels[:-1], [1.0]]))
    rounding = 8 * UNIT_ROUNDOFF * (len(levels) + len(other_levels))
    apart = np.diff(steps) > rounding * steps[1:]
    between = ((steps[1:] + steps[:-1]) / 2)[apart]
    here = atoms[order][np.searchsorted(levels[:-1], between)]
    there = other_atoms[other_order][np.searchsorted(other_levels[:-1], between)]
    return float(np.abs(here - there).max())


def spreads_groups(queries: Sequence[Query], noise: Noise) -> bool:
    """Whether public columns spread the rows of a group over several answers.

    What group privacy needs then depends on how many rows of a group are in each, which is not
    known here. With Laplace noise the parts of one breakdown make no difference: in L1 all changes
    add up, wherever they are.
    """
    asked = [one for one in (query.at_a_step for query in queries) if isinstance(one, RowQuery)]
    conditions = {
        frozenset(column for column in one.where if column.name in one.public) for one in asked
    }
    parts = noise == "gaussian" and any(
        column.name in one.public and len(labels) > 1
        for one in asked
        for column, labels in zip(one.by, one.labels, strict=True)
    )
    return parts or len(conditions) > 1
