"""Answers of many coordinates about Gaussian tuples, part by part.

Bounds that use what is special about a family: chains forget, exchangeable groups count.

Bounds on what several releases leak about one block of correlated tuples.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.composition.spending import ROUND_UP
from pdp_calibrate.composition.table_dual import dual_bound, is_affordable
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.bracket import Bound
from pdp_calibrate.core.contraction import birkhoff_bounds, diameters
from pdp_calibrate.core.leakage import worst
from pdp_calibrate.core.line_program import line_bounds
from pdp_calibrate.core.mixtures import UNIT_ROUNDOFF
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.chain.search import repeated_bound
from pdp_calibrate.families.exchangeable.model import BinaryGroup
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.network.contraction import tree_bounds
from pdp_calibrate.families.network.mixing_chain import MixingChain
from pdp_calibrate.families.network.regions import Regions
from pdp_calibrate.families.network.tree import MarkovTree
from pdp_calibrate.families.table.sets import ConditionalBall, SampledTable

_MOST_DIRECTIONS = 12  # answers that a Gaussian engine weighs together


def few_directions(leaf: Problem) -> list[Problem]:
    """Split an answer of many coordinates; a shift's costs may be bounded part by part."""
    contributions = leaf.contributions
    weights = contributions.weights
    if weights is None or contributions.coordinates <= _MOST_DIRECTIONS:
        return [leaf]
    columns = np.column_stack(weights)  # coordinates × tuples
    groups = _parallel(columns)
    chunks = [groups[k : k + _MOST_DIRECTIONS] for k in range(0, len(groups), _MOST_DIRECTIONS)]
    if len(chunks) > 1 and type(leaf.model).__name__ == "SampledGaussian":
        raise UnsupportedQueryError("bands of a sample hold for one list of queries at a time.")
    return [_of_coordinates(leaf, [chunk for group in some for chunk in group]) for some in chunks]


def _parallel(columns: FloatArray) -> list[list[int]]:
    """Group coordinates whose weights are multiples of each other."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for place, row in enumerate(columns):
        peak = row[int(np.abs(row).argmax())]
        key = tuple((row / peak).round(12)) if peak else ()
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def _of_coordinates(leaf: Problem, chosen: Sequence[int]) -> Problem:
    contributions = leaf.contributions
    weights = contributions.weights
    return dataclasses.replace(
        leaf,
        contributions=dataclasses.replace(
            contributions,
            values=tuple(array[:, list(chosen)] for array in contributions.values),
            weights=weights and tuple(array[list(chosen)] for array in weights),
        ),
    )


LARGEST_GROUP = 200  # members; beyond this the mixtures are too many


def chain_bound(
    chain: MarkovChain | MixingChain, budgets: FloatArray, knowledge: Knowledge
) -> float:
    """Bound any releases about a chain by the plain-DP budget spent on each of its tuples.

    A step of the chain shrinks what a likelihood says about its end, by Birkhoff's theorem. One
    pass along the chain bounds every adversary, whatever is known of whom.
    """
    if isinstance(chain, MixingChain):
        diameter = chain.diameter
    else:
        diameter = float(diameters(chain.kernel, 1)[0][1])
    return float(birkhoff_bounds(budgets, diameter)[list(knowledge.targets)].max())


def group_of_two_values(
    group: BinaryGroup, step: float, knowledge: Knowledge, *, by_count: bool
) -> float | None:
    """Bound releases about an exchangeable yes/no group; None for a group too large.

    Exchangeable laws do not tell members apart, and the average of a likelihood over all orders of
    the unknown members changes by no more than it does itself: so it is enough to look at
    likelihoods of the number of ones, along a line. Given x_i = v and t ones among k known members,
    P(s more ones) ∝ W(v+t+s)/C(m, v+t+s)·C(m−1−k, s).

    Parameters
    ----------
    group
        The law of the count.
    step
        How far one member alone can move the likelihood, in nats.
    knowledge
        The adversaries.
    by_count
        Whether the likelihood depends on the number of all ones alone.
    """
    size = group.size
    if size > LARGEST_GROUP:
        return None
    with np.errstate(divide="ignore"):
        log_masses = np.log(group.count_probabilities)
    log_masses = log_masses - [math.log(math.comb(size, ones)) for ones in range(size + 1)]
    worst = step if knowledge.most == size - 1 else 0.0
    for known in range(knowledge.fewest, min(knowledge.most, size - 2) + 1):
        worst = max(worst, _with_known(log_masses, size, known, step, by_count=by_count))
    return worst * (1 + 16 * UNIT_ROUNDOFF)


def _with_known(
    log_masses: FloatArray, size: int, known: int, step: float, *, by_count: bool
) -> float:
    """Bound adversaries who know so many members, whatever these hold."""
    unknown = size - 1 - known
    ways = np.array([math.log(math.comb(unknown, ones)) for ones in range(unknown + 1)])
    ones = np.arange(known + 1)[:, np.newaxis] + np.arange(unknown + 1)
    laws = []
    for value in (0, 1):
        logs = log_masses[ones + value] + ways
        peak = logs.max(axis=1, keepdims=True)
        masses = np.exp(logs - np.where(np.isfinite(peak), peak, 0.0))
        laws.append(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))
    possible = (laws[0].sum(axis=1) > 0.5) & (laws[1].sum(axis=1) > 0.5)
    if not possible.any():
        return 0.0
    none, one = laws[0][possible], laws[1][possible]
    own = step
    if by_count:  # x_i itself moves along the same line
        none, one, own = np.pad(none, ((0, 0), (0, 1))), np.pad(one, ((0, 0), (1, 0))), 0.0
    steps = np.full(none.shape[1] - 1, step)
    # Logarithms of up to some hundreds are right to as many roundings.
    additions = 2000 + 4 * size
    both = [line_bounds(*pair, steps, additions=additions) for pair in ((none, one), (one, none))]
    return own + float(np.max(both))


_LARGEST_GRID = 2**22  # answers times outputs of a joint search


_LARGEST_SEARCH = 2e9  # … times everything an adversary may know


_WRITTEN_OUT = 2**10  # cells of a family that is looked at as a table


_TABLES = (JointTable, ConditionalBall, SampledTable)


_SHIFTS = ("Gaussian", "LoewnerBall", "SampledGaussian", "GaussianGroup", "GaussianSeries")
"""Families in which the unknown tuples move with the target by a fixed shift."""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One block, and what was released about it."""

    problem: Problem
    """Contributions in units of the noise, repeated queries as one; nothing if too many."""
    separate: Problem | None
    """The same with every release for itself, where a search may be tried."""
    budgets: FloatArray | None
    """Per tuple, where the contributions are too many; else they follow from these."""
    dp_epsilon: float
    """The plain-DP budget of whatever else was released."""
    threshold: float | None = None
    """If given, only whether the bound exceeds this matters."""

    @property
    def tuple_budgets(self) -> FloatArray:
        """How far each tuple alone can move the likelihood."""
        ranges = self.budgets
        if ranges is None:
            ranges = self.problem.contributions.tuple_ranges()
        return np.asarray((ranges + self.dp_epsilon) * ROUND_UP)


def leaf_bound(leaf: Leaf, deadline: float) -> Bound:
    """Return the smallest of the bounds that hold for one block; cheap ones first."""
    found = Bound(value=math.inf, method="group")
    cost = leaf.problem.contributions.rounding
    for method, bound in _BOUNDS:
        value = bound(leaf, deadline)
        if value is not None and method not in ("exact", "shift") and cost:  # those charge it
            value = (value + cost) * ROUND_UP
        if value is not None:
            found = Bound(value=value, method=method).or_better(found)
        if value is not None and method in ("exact", "shift"):
            break  # nothing is smaller
        if leaf.threshold is not None and found.value <= leaf.threshold:
            break
    if math.isinf(found.value):
        raise UnsupportedQueryError(
            "no sound bound covers these releases together on this model; release the queries as"
            " one list, or use a joint table."
        )
    return found


def _exact(leaf: Leaf, deadline: float) -> float | None:
    """Search the joint answer itself."""
    problem = leaf.separate
    if problem is not None and problem.contributions.coordinates > 1:
        problem = _as_table(problem) or problem
    if problem is None or _moves_by_shift(problem) or not is_searchable(problem):
        return None
    found, _ = worst([problem], 1.0, deadline=deadline)
    return found.upper


def _shift(leaf: Leaf, deadline: float) -> float | None:
    """Gaussian tuples: under another secret everyone unknown is shifted by a fixed amount.

    Then the answers' costs are those of the exact leakage, and every tuple moved costs ε₀.
    """
    if leaf.budgets is not None or not _moves_by_shift(leaf.problem):
        return None
    total = _moved_tuples(leaf.problem) * leaf.dp_epsilon
    for part in few_directions(leaf.problem):
        found, _ = worst([part], 1.0, deadline=deadline)
        total = total * ROUND_UP + found.upper
    return total


def _dual(leaf: Leaf, deadline: float) -> float | None:
    """Solve the dual program of a table, or of a family small enough to be written out."""
    if leaf.budgets is not None or leaf.problem.model.is_continuous:
        return None
    if isinstance(leaf.problem.model, BinaryGroup) and _is_alike(leaf):
        only_one = leaf.dp_epsilon == 0 or not leaf.problem.contributions.total_range()
        if only_one and len(leaf.problem.model.names) <= LARGEST_GROUP:
            return None  # counting ones is the same program
    table = _as_table(leaf.problem)
    if table is None or not is_affordable(table):
        return None
    limit = leaf.threshold
    return dual_bound(
        table,
        dp_epsilon=leaf.dp_epsilon,
        incumbent=0.0 if limit is None else limit,
        enough=math.inf if limit is None else limit,
        deadline=deadline,
    )


def _group(leaf: Leaf, deadline: float) -> float | None:
    """All tuples that the adversary does not know move at once; no use on unbounded tuples."""
    del deadline
    problem, knowledge = leaf.problem, leaf.problem.knowledge
    unbounded = not isinstance(problem.model, JointTable) and problem.model.is_continuous
    if (
        unbounded
        and type(problem.model).__name__ != "Unknown"
        and not problem.contributions.clamped
    ):
        return None
    budgets = leaf.tuple_budgets
    if knowledge.known is not None:
        moving = budgets[[p for p in range(len(budgets)) if p not in knowledge.known]]
    else:
        moving = np.sort(budgets)[::-1][: knowledge.total - knowledge.fewest]
    together = math.fsum(moving)
    if leaf.budgets is None:
        whole = problem.contributions.total_range() + len(moving) * leaf.dp_epsilon
        together = min(together, whole)
    return together * ROUND_UP


def _forgetful(leaf: Leaf, deadline: float) -> float | None:
    """Let a chain or a tree forget what other tuples told."""
    del deadline
    model, knowledge = leaf.problem.model, leaf.problem.knowledge
    if isinstance(model, MarkovTree):
        bounds = tree_bounds(model, leaf.tuple_budgets, knowledge)
        return float(bounds[list(knowledge.targets)].max())
    if not isinstance(model, MarkovChain | MixingChain):
        return None
    return chain_bound(model, leaf.tuple_budgets, knowledge)


def _windows(leaf: Leaf, deadline: float) -> float | None:
    """Look through the windows of a chain or a tree, where all releases are of one query."""
    if leaf.budgets is not None or leaf.dp_epsilon:
        return None
    problem, enough = leaf.problem, 0.0 if leaf.threshold is None else leaf.threshold
    if not isinstance(problem.model, MarkovTree):
        return repeated_bound(problem, incumbent=enough, deadline=deadline)
    if problem.contributions.table is not None or problem.contributions.coordinates > 1:
        return None
    bounds = tree_bounds(problem.model, leaf.tuple_budgets, problem.knowledge)
    bounds = Regions(problem).bounds(bounds, 1.0, enough=enough, deadline=deadline)
    return float(bounds[list(problem.knowledge.targets)].max())


def _counts(leaf: Leaf, deadline: float) -> float | None:
    """Look only at how many members of an exchangeable group hold 1."""
    del deadline
    problem = leaf.problem
    if not isinstance(problem.model, BinaryGroup):
        return None
    return group_of_two_values(
        problem.model,
        float(leaf.tuple_budgets.max()),
        problem.knowledge,
        by_count=leaf.dp_epsilon == 0 and _is_alike(leaf),
    )


def _is_alike(leaf: Leaf) -> bool:
    """Whether every tuple adds the same to the answers."""
    values = leaf.problem.contributions.values
    same = bool(values) and all(np.array_equal(one, values[0]) for one in values)
    return same and leaf.budgets is None


_BOUNDS: tuple[tuple[str, Callable[[Leaf, float], float | None]], ...] = (
    ("group", _group),
    ("birkhoff", _forgetful),
    ("shift", _shift),
    ("exact", _exact),
    ("windows", _windows),
    ("dual", _counts),
    ("dual", _dual),
)


def _as_table(leaf: Problem) -> Problem | None:
    """Return the same problem about a joint table, where there is one of reasonable size.

    None also where a cell would be too rare for a float; other bounds hold there.
    """
    if isinstance(leaf.model, JointTable):
        return leaf
    written = getattr(leaf.model, "to_table", None)
    cells = math.prod(len(domain) for domain in leaf.model.domains[:16])
    if written is None or len(leaf.model.names) > 10 or cells > _WRITTEN_OUT:
        return None
    try:
        return dataclasses.replace(leaf, model=written())
    except ModelError:
        return None


def _moved_tuples(leaf: Problem) -> int:
    """Return how many tuples can differ between two databases of one adversary."""
    if isinstance(leaf.model, Gaussian) and leaf.knowledge.known is None:
        number, labels = connected_components(leaf.model.covariance != 0, directed=False)
        largest = int(np.bincount(labels, minlength=number).max())
        return min(largest, leaf.knowledge.total - leaf.knowledge.fewest)
    return leaf.knowledge.total - leaf.knowledge.fewest


def _moves_by_shift(leaf: Problem) -> bool:
    return type(leaf.model).__name__ in _SHIFTS


def is_searchable(leaf: Problem) -> bool:
    """Whether an exact search of the joint answer is within reach."""
    if isinstance(leaf.model, MixingChain):
        return False  # what there is of it is Birkhoff's bound, taken anyway
    if leaf.contributions.coordinates == 1 or not isinstance(leaf.model, _TABLES):
        return leaf.contributions.coordinates == 1 or type(leaf.model).__name__ == "Unknown"
    sizes = tuple(len(domain) for domain in leaf.model.domains if len(domain) > 1)
    if math.prod(sizes) > 2**12:
        return False
    answers = leaf.contributions.in_every_cell().reshape(-1, leaf.contributions.coordinates)
    levels = [len(np.unique(column)) for column in answers.T]
    distinct = len(np.unique(answers, axis=0))
    outputs = math.prod(float(number) for number in levels)
    leaves = sum(math.prod(size + 1.0 for size in sizes) / (size + 1) * size for size in sizes)
    return outputs * distinct <= _LARGEST_GRID and outputs * leaves <= _LARGEST_SEARCH
