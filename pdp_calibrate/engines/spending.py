"""What several releases leak together: the smallest of all bounds that are sound.

Leakages of correlated data do not add up, so every release so far counts at once. Sound are

- the exact search of the joint answer, for tables whose grid of outputs is not too large, and for
  Gaussian tuples always (there the leakages of one adversary do add up);
- the dual program, on tables: costs |f − f'|/λ of all answers and ε₀ of all other mechanisms;
- Birkhoff's contraction, on Markov chains: plain-DP budgets per tuple, added up;
- the group bound: all tuples that depend on each other move at once.

**Adaptive releases.** Let queries and scales be chosen from what came out before. On each course r
of outputs the choices are fixed, so the density of r is the product of the Laplace densities of the
queries and scales *on that course*, and its ratio under two secrets is at most the joint leakage of
exactly those. So if no course is continued past the budget, whatever the course, nobody learns more
than the budget. It must not be continued for other reasons that depend on the data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.contributions import Contributions
from pdp_calibrate.engines import worst
from pdp_calibrate.engines.dual import dual_bound, is_affordable
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem, split
from pdp_calibrate.engines.result import Bound
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.models import Blocks, Gaussian, JointTable, Model, ModelSet
from pdp_calibrate.models.base import FloatArray

_ROUND_UP = 1 + 16 * UNIT_ROUNDOFF
_LARGEST_GRID = 2**22  # answers times outputs of a joint search
_LARGEST_SEARCH = 2e9  # … times everything an adversary may know
_SHIFTS = ("Gaussian", "LoewnerBall", "SampledGaussian", "GaussianGroup", "GaussianSeries")
"""Families in which the unknown tuples move with the target by a fixed shift."""
_MOST_SEARCHED = 8  # releases whose joint outputs a search may look through
_LARGEST_JOINED = 200_000  # numbers: tuples times answers
_MOST_DIRECTIONS = 12  # answers that a Gaussian engine weighs together


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Everything released about one draw of the data."""

    parts: tuple[Contributions, ...] = ()
    """The lowered queries; a query released twice is the same object twice."""
    scales: tuple[float, ...] = ()
    """The Laplace scale of each."""
    rounding: float = 0.0
    """What the rounding of the answers before the noise costs, in nats."""
    dp_epsilon: float = 0.0
    """The plain-DP budgets (substitution) of all other mechanisms, added up."""
    budgets: FloatArray | None = None
    """Per tuple, how far it alone can move the likelihood of all answers: Σ_m LS_j(f_m)/λ_m."""

    def plus(
        self, part: Contributions, scale: float, *, ranges: FloatArray, rounding: float
    ) -> Spending:
        """Return the spending after one more answer; `ranges` are its LS_j."""
        added = ranges / scale * _ROUND_UP
        return dataclasses.replace(
            self,
            parts=(*self.parts, part),
            scales=(*self.scales, scale),
            rounding=(self.rounding + 2 * rounding / scale) * (_ROUND_UP if rounding else 1.0),
            budgets=added if self.budgets is None else (self.budgets + added) * _ROUND_UP,
        )

    def plus_mechanism(self, dp_epsilon: float) -> Spending:
        """Return the spending after one more mechanism of this plain-DP budget."""
        total = (self.dp_epsilon + dp_epsilon) * (_ROUND_UP if self.dp_epsilon else 1.0)
        return dataclasses.replace(self, dp_epsilon=total)

    def merged(self) -> Spending:
        """Return the same with repeated queries as one, of the scale at which its costs are equal.

        The costs |f − f'|/λ_m of one query add up, so for every bound that uses only costs it
        counts as if released once with scale 1/Σ 1/λ_m.
        """
        totals: dict[int, list[float]] = {}
        for part, scale in zip(self.parts, self.scales, strict=True):
            totals.setdefault(id(part), []).append(1 / scale)
        if len(totals) == len(self.parts):
            return self
        distinct = {id(part): part for part in self.parts}
        scales = tuple(
            1 / one[0] if len(one) == 1 else 1 / (math.fsum(one) * _ROUND_UP)
            for one in totals.values()
        )
        return dataclasses.replace(self, parts=tuple(distinct.values()), scales=scales)

    def joined(self, model: Model) -> Contributions:
        """Return one answer in units of the noise."""
        if not self.parts:
            return nothing_about(model)
        parts = self.parts
        if not model.is_continuous:  # on discrete tuples clamping does nothing
            parts = tuple(dataclasses.replace(part, clamped=False) for part in parts)
        return Contributions.joined(parts, self.scales)

    def is_small(self, model: Model) -> bool:
        """Whether all answers together can be looked at, rather than their budgets alone."""
        numbers = sum(part.coordinates for part in self.parts) * len(model.names)
        return numbers <= _LARGEST_JOINED


def spent(
    model: Model,
    spending: Spending,
    adversaries: Adversaries,
    *,
    deadline: float = math.inf,
) -> Bound:
    """Return the smallest sound bound on what everything together leaks.

    Parameters
    ----------
    model
        How the tuples are correlated.
    spending
        What was released.
    adversaries
        Against whom.
    deadline
        Value of `time.monotonic()` after which searches stop with what they have.

    Examples
    --------
    >>> from pdp_calibrate import Adversaries, JointTable, Sum
    >>> from pdp_calibrate.queries import lower
    >>> pair = JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2)
    >>> twice = Spending(parts=(lower(Sum(), pair),) * 2, scales=(2.0, 2.0))
    >>> bound = spent(pair, twice, Adversaries.all())
    >>> round(bound.value, 4), bound.method
    (1.1854, 'exact')
    """
    if not spending.parts and spending.dp_epsilon == 0:
        return Bound(value=0.0, method="nothing")
    merged = spending.merged()
    if _mixes_clamping(model, merged):
        return _added(model, spending, adversaries, deadline)
    small = merged.is_small(model)
    joined = merged.joined(model) if small else nothing_about(model)
    leaves = split(model, joined, adversaries, expand=False)
    if not leaves:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    alone = len(spending.parts) <= _MOST_SEARCHED and not spending.dp_epsilon and small
    apart = split(model, spending.joined(model), adversaries, expand=False) if alone else leaves
    budgets = dict(zip(model.names, _budgets(model, spending), strict=True))
    found = Bound(value=0.0, method="nothing")
    for leaf, separate in zip(leaves, apart, strict=True):
        one = _Leaf(
            problem=leaf,
            separate=separate if alone else None,
            budgets=np.array([budgets[name] for name in leaf.names]) if not small else None,
            dp_epsilon=spending.dp_epsilon,
        )
        found = found.or_worse(_leaf_bound(one, deadline))
    if alone and any(leaf.hidden_noise for leaf in leaves) and found.value > 0:
        whole = split(model, spending.joined(model), adversaries)
        if all(_is_searchable(problem) for problem in whole):
            searched, _ = worst(whole, 1.0, deadline=deadline)
            found = found.or_better(Bound(value=searched.value, method="exact"))
    value = found.value + spending.rounding
    if math.isnan(value):
        raise PdpError("the leakage is not a number: nothing can be certified.")
    return Bound(value=value * _ROUND_UP if spending.rounding else value, method=found.method)


@dataclass(frozen=True, kw_only=True)
class _Leaf:
    """One block, and what was released about it."""

    problem: Problem
    """Contributions in units of the noise, repeated queries as one; nothing if too many."""
    separate: Problem | None
    """The same with every release for itself, where a search may be tried."""
    budgets: FloatArray | None
    """Per tuple, where the contributions are too many; else they follow from these."""
    dp_epsilon: float

    @property
    def tuple_budgets(self) -> FloatArray:
        """How far each tuple alone can move the likelihood."""
        ranges = self.budgets
        if ranges is None:
            ranges = self.problem.contributions.tuple_ranges()
        return np.asarray((ranges + self.dp_epsilon) * _ROUND_UP)


def _budgets(model: Model, spending: Spending) -> FloatArray:
    if spending.budgets is not None:
        return spending.budgets
    total = np.zeros(len(model.names))
    for part, scale in zip(spending.parts, spending.scales, strict=True):
        total += part.tuple_ranges() / scale
    return total * _ROUND_UP


def _leaf_bound(leaf: _Leaf, deadline: float) -> Bound:
    """Return the smallest of the bounds that hold for one block; cheap ones first."""
    found = Bound(value=math.inf, method="group")
    for method, bound in _BOUNDS.items():
        value = bound(leaf, deadline)
        if value is not None:
            found = Bound(value=value, method=method).or_better(found)
        if value is not None and method in ("exact", "shift"):
            break  # nothing is smaller
    if math.isinf(found.value):
        raise UnsupportedQueryError(
            "no sound bound covers these releases together on this model; release the queries as"
            " one list, or use a joint table."
        )
    return found


def _exact(leaf: _Leaf, deadline: float) -> float | None:
    """Search the joint answer itself."""
    problem = leaf.separate
    if problem is None or _moves_by_shift(problem) or not _is_searchable(problem):
        return None
    found, _ = worst([problem], 1.0, deadline=deadline)
    return found.value


def _shift(leaf: _Leaf, deadline: float) -> float | None:
    """Gaussian tuples: under another secret everyone unknown is shifted by a fixed amount.

    Then the answers' costs are those of the exact leakage, and every tuple moved costs ε₀.
    """
    if leaf.budgets is not None or not _moves_by_shift(leaf.problem):
        return None
    total = _moved_tuples(leaf.problem) * leaf.dp_epsilon
    for part in _few_directions(leaf.problem):
        found, _ = worst([part], 1.0, deadline=deadline)
        total = total * _ROUND_UP + found.value
    return total


def _dual(leaf: _Leaf, deadline: float) -> float | None:
    """Solve the dual program of a table, or of a family small enough to be written out."""
    if leaf.budgets is not None or leaf.problem.model.is_continuous:
        return None
    table = as_table(leaf.problem)
    if table is None or not is_affordable(table):
        return None
    return dual_bound(table, dp_epsilon=leaf.dp_epsilon, deadline=deadline)


def _group(leaf: _Leaf, deadline: float) -> float | None:
    """All tuples that the adversary does not know move at once; no use on unbounded tuples."""
    del deadline
    problem, knowledge = leaf.problem, leaf.problem.knowledge
    unbounded = not isinstance(problem.model, JointTable) and problem.model.is_continuous
    if unbounded and type(problem.model).__name__ != "Unknown" and not problem.contributions.clamped:
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
    return together * _ROUND_UP


_BOUNDS: dict[str, Callable[[_Leaf, float], float | None]] = {
    "group": _group,
    "shift": _shift,
    "exact": _exact,
    "dual": _dual,
}


def nothing_about(model: Model) -> Contributions:
    """Return the answer to which no tuple adds anything."""
    zeros = [np.zeros(len(domain)) for domain in model.domains]
    weights = [0.0] * len(zeros) if model.is_continuous else None
    return Contributions.additive(zeros, weights=weights, real=model.is_continuous)


def as_table(leaf: Problem) -> Problem | None:
    """Return the same problem about a joint table, where there is one of reasonable size."""
    if isinstance(leaf.model, JointTable):
        return leaf
    written = getattr(leaf.model, "to_table", None)
    cells = math.prod(len(domain) for domain in leaf.model.domains[:16])
    if written is None or len(leaf.model.names) > 10 or cells > 2**10:
        return None
    return dataclasses.replace(leaf, model=written())


def _moved_tuples(leaf: Problem) -> int:
    """Return how many tuples can differ between two databases of one adversary."""
    if isinstance(leaf.model, Gaussian) and leaf.knowledge.known is None:
        from scipy.sparse.csgraph import connected_components

        number, labels = connected_components(leaf.model.covariance != 0, directed=False)
        largest = int(np.bincount(labels, minlength=number).max())
        return min(largest, leaf.knowledge.total - leaf.knowledge.fewest)
    return leaf.knowledge.total - leaf.knowledge.fewest


def _moves_by_shift(leaf: Problem) -> bool:
    return type(leaf.model).__name__ in _SHIFTS


def _is_searchable(leaf: Problem) -> bool:
    """Whether an exact search of the joint answer is within reach."""
    if leaf.contributions.coordinates == 1 or not isinstance(leaf.model, JointTable):
        return leaf.contributions.coordinates == 1 or type(leaf.model).__name__ == "Unknown"
    if leaf.model.probabilities.size > 2**12:
        return False
    answers = leaf.contributions.in_every_cell().reshape(-1, leaf.contributions.coordinates)
    levels = [len(np.unique(column)) for column in answers.T]
    distinct = len(np.unique(answers, axis=0))
    outputs = math.prod(float(number) for number in levels)
    sizes = leaf.model.probabilities.shape
    leaves = sum(math.prod(size + 1.0 for size in sizes) / (size + 1) * size for size in sizes)
    return outputs * distinct <= _LARGEST_GRID and outputs * leaves <= _LARGEST_SEARCH


def _few_directions(leaf: Problem) -> list[Problem]:
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


def _mixes_clamping(model: Model, spending: Spending) -> bool:
    return model.is_continuous and len({part.clamped for part in spending.parts}) > 1


def _added(
    model: Model, spending: Spending, adversaries: Adversaries, deadline: float
) -> Bound:
    """Clamped and unclamped answers about continuous tuples: one coupling, so costs add up."""
    if isinstance(model, Blocks | ModelSet):
        raise UnsupportedQueryError(
            "on Blocks and ModelSet, queries of one ledger must all clamp, or none of them."
        )
    total, method = spending.rounding, "shift"
    for clamped in (False, True):
        kept = [k for k, part in enumerate(spending.parts) if part.clamped == clamped]
        some = Spending(
            parts=tuple(spending.parts[k] for k in kept),
            scales=tuple(spending.scales[k] for k in kept),
            dp_epsilon=0.0 if clamped else spending.dp_epsilon,
        )  # budgets are left out: they follow from the parts
        total += spent(model, some, adversaries, deadline=deadline).value
    return Bound(value=total * _ROUND_UP, method=method)
