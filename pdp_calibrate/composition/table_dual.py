"""The Lipschitz bound of a joint table: every adversary, every value known, every two secrets.

Theorem 13 (docs/theory).

Costs of several releases add up, chosen adaptively or not: |f − f'|/λ for each answer with Laplace
noise, ε₀ per tuple that differs for any ε₀-DP mechanism. For a black box alone the bound is exact,
because a likelihood that attains it belongs to an ε₀-DP mechanism with two outputs.

A recursion bounds each adversary first; the dual program is then solved in falling order of these
bounds, until the rest cannot be worse or the limit on programs is reached. Answers along a line,
such as one sum released repeatedly, need no program at all.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.composition.recursive_bound import Case, peeled_bounds
from pdp_calibrate.core.line_program import line_bounds
from pdp_calibrate.core.lipschitz import lipschitz_bound, spread_bounds
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF, rounded_up
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.core.tuning import DUAL_LAWS, DUAL_PROGRAM, DUAL_PROGRAMS
from pdp_calibrate.core.workers import best_first
from pdp_calibrate.families.table.setting import Varying, conditional_laws

_Pair = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class _View:
    """What adversaries with one target and one unknown set see, for all values they may know."""

    laws: FloatArray
    """P(cell | x_K, x_i), shape (values of x_K, values of x_i, cells)."""
    possible: npt.NDArray[np.bool_]
    """Whether x_i occurs together with x_K."""
    answers: FloatArray
    """In units of the scales, shape (values of x_K or 1, values of x_i, cells, coordinates)."""
    changes: FloatArray | None
    """ε₀ times the number of unknown tuples that differ, between two cells; None without ε₀."""
    dp_epsilon: float
    """ε₀."""
    additions: int
    """Bound on the rounded operations behind each number."""

    def pairs(self) -> Iterator[_Pair]:
        """Yield each value of x_K with two secrets that can occur together with it."""
        for event, possible in enumerate(self.possible):
            secrets = np.flatnonzero(possible).tolist()
            yield from ((event, one, other) for one in secrets for other in secrets if one != other)

    def costs(self, pair: _Pair) -> FloatArray:
        """Return the cost between the cells of two secrets, in nats, rounded up."""
        event, one, other = pair
        answers = self.answers[event % len(self.answers)]
        total = np.abs(answers[one][:, np.newaxis] - answers[other]).sum(axis=-1)
        if self.changes is not None:
            total = total + self.changes + self.dp_epsilon
        return np.asarray(rounded_up(total, 7))


def is_affordable(problem: Problem) -> bool:
    """Whether all adversaries of a joint table can be tried one by one."""
    if not isinstance(problem.model, JointTable):
        return False
    return _work(problem.model, one_set=problem.knowledge.known is not None) <= DUAL_LAWS


def _work(table: JointTable, *, one_set: bool = False) -> float:
    """Count the numbers in the conditional laws of all unknown sets of each target, or of one."""
    varying = sum(len(domain) > 1 for domain in table.domains)
    sets = 1.0 if one_set else 2.0 ** max(0, varying - 1)
    return float(table.probabilities.size) * sets * varying


def dual_bound(
    problem: Problem,
    *,
    dp_epsilon: float = 0.0,
    incumbent: float = 0.0,
    enough: float = math.inf,
    deadline: float = math.inf,
) -> float:
    """Bound the leakage of Laplace answers and any ε₀-DP mechanism together.

    Parameters
    ----------
    problem
        A joint table; contributions in units of the scales.
    dp_epsilon
        ε₀: the plain-DP budget (substitution) of whatever else was released; 0 for nothing.
    incumbent
        Adversaries who cannot learn more than this need not be distinguished.
    enough
        A bound above this may be returned as soon as it is found.
    deadline
        Value of `time.monotonic()` after which the closed form is used for the rest.
    """
    varying = Varying.of(problem)
    if varying is None:
        return 0.0
    problem = varying.problem
    views = _Views(problem, dp_epsilon)
    cases = [(float(views.closed(case).max(initial=0.0)), case) for case in views.cases]
    best, used = _strongest(problem, dp_epsilon), 0

    def judge(_bound: float, case: Case) -> Bracket:
        nonlocal best, used
        found, more = _worst_pair(views, case, max(best, incumbent), enough, deadline)
        best, used = max(best, found), used + more
        return _above(problem, found)

    return best_first(
        cases,
        judge,
        start=_above(problem, best),
        unjudged=lambda bound, _: _above(problem, bound),
        cutoff=lambda found: max(found.upper, incumbent),
        is_over=lambda: best > enough or used >= DUAL_PROGRAMS or time.monotonic() > deadline,
    ).upper


def _above(problem: Problem, bound: float) -> Bracket:
    """Return a bracket with this upper end and nothing else."""
    return dataclasses.replace(problem.nobody(), upper=bound)


class _Views:
    """All adversaries of a table except those who know everyone else, with a bound on each."""

    def __init__(self, problem: Problem, dp_epsilon: float) -> None:
        self.problem, self.dp_epsilon = problem, dp_epsilon
        knowledge = problem.knowledge
        self.cases: list[Case] = [
            (target, unknown)
            for target in knowledge.targets
            for unknown in knowledge.unknown_sets(target)
            if unknown or knowledge.incomplete
        ]
        self.peeled: dict[Case, FloatArray] | None = None
        everyone = tuple(range(1, len(problem.model.names)))
        whole = _view(problem, 0, everyone, dp_epsilon) if everyone else None
        self.on_line = whole is not None and _line_of(whole) is not None
        table = problem.model
        if self.on_line or not isinstance(table, JointTable):
            return
        if _work(table) <= DUAL_LAWS:
            answers = problem.contributions.in_every_cell()
            self.peeled = peeled_bounds(table.probabilities, answers, dp_epsilon)

    def view(self, case: Case) -> _View:
        """Condition the table on what the adversary knows."""
        return _view(self.problem, *case, self.dp_epsilon)

    def closed(self, case: Case) -> FloatArray:
        """Bound each pair of the case, in the order of the view's pairs."""
        if self.peeled is None:
            view = self.view(case)
            return _closed_form(view, list(view.pairs()))
        bounds = self.peeled[case]
        bounds = bounds.reshape(-1, *bounds.shape[-2:])
        pairs = np.array(list(self.view(case).pairs()), dtype=np.intp)  # there may be none
        return np.asarray(bounds[tuple(pairs.reshape(-1, 3).T)])


def _strongest(problem: Problem, dp_epsilon: float) -> float:
    """Bound who knows everyone else: x_i moves the likelihood by LS_i and ε₀, whatever θ is."""
    knowledge = problem.knowledge
    if not knowledge.admits_strongest:
        return 0.0
    ranges = problem.contributions.tuple_ranges()[list(knowledge.targets)]
    return rounded_up(float(ranges.max()) + dp_epsilon, 7)


def _worst_pair(
    views: _Views, case: Case, threshold: float, enough: float, deadline: float
) -> tuple[float, int]:
    """Return a bound on all pairs of one case, and the size of the programs it took."""
    view = views.view(case)
    pairs = list(view.pairs())
    if views.on_line:
        return float(_along_line(view, pairs).max(initial=0.0)), 0
    best, used = 0.0, 0

    def judge(bound: float, pair: _Pair) -> Bracket:
        nonlocal best, used
        costs = view.costs(pair)
        used += costs.size
        best = max(best, _solved(view, pair, costs, bound))
        return _above(views.problem, best)

    found = best_first(
        zip(views.closed(case).tolist(), pairs, strict=True),
        judge,
        start=_above(views.problem, 0.0),
        unjudged=lambda bound, _: _above(views.problem, bound),
        cutoff=lambda found: max(found.upper, threshold),
        is_over=lambda: best > enough or used > DUAL_PROGRAMS or time.monotonic() > deadline,
    )
    return found.upper, used


def _solved(view: _View, pair: _Pair, costs: FloatArray, closed: float) -> float:
    """Solve the program of one pair; the laws' own rounding is charged."""
    if costs.size > DUAL_PROGRAM:
        return closed
    event, one, other = pair
    value = lipschitz_bound(view.laws[event, one], view.laws[event, other], costs, ceiling=closed)
    return min(closed, value + 8 * view.additions * UNIT_ROUNDOFF)


def _closed_form(view: _View, pairs: list[_Pair]) -> FloatArray:
    """Bound each pair by the move of the target alone, then of the unknown tuples alone.

    g(x_i, u) ≤ e^{c₀}·g(x_i', u) with c₀ the largest cost of changing x_i; as a function of u the
    right side varies by no more than all unknown tuples can move it.
    """
    if not pairs:
        return np.zeros(0)
    events, ones, others = np.array(pairs).T
    places = events % len(view.answers)
    spreads = np.ptp(view.answers, axis=2).sum(axis=-1)
    own = np.abs(view.answers[places, ones] - view.answers[places, others]).sum(axis=-1).max(axis=1)
    wide = spreads[places, others]
    if view.changes is not None:
        own, wide = own + view.dp_epsilon, wide + view.changes.max()
    moved = spread_bounds(
        view.laws[events, ones], view.laws[events, others], wide, additions=view.additions
    )
    return np.asarray(rounded_up(own + moved, 7))


def _line_of(view: _View) -> tuple[npt.NDArray[np.intp], FloatArray] | None:
    """Return the rank of each answer on a line and the steps of that line, if there is one."""
    if view.changes is not None or len(view.answers) > 1:
        return None
    points = view.answers[0].reshape(-1, view.answers.shape[-1])
    signs = np.sign((points - points.mean(axis=0)).T @ (points @ np.ones(points.shape[-1])))
    distinct, inverse = np.unique(points, axis=0, return_inverse=True)
    order = np.argsort(distinct @ signs, kind="stable")
    jumps = np.diff(distinct[order], axis=0)
    if np.any(jumps * signs < 0) or np.any((signs == 0) & (np.ptp(points, axis=0) > 0)):
        return None
    rank = np.empty(len(distinct), dtype=np.intp)
    rank[order] = np.arange(len(distinct))
    steps = rounded_up(np.abs(jumps).sum(axis=1), 7)
    return rank[inverse.ravel()].reshape(view.answers.shape[1:3]), np.asarray(steps)


def _along_line(view: _View, pairs: list[_Pair]) -> FloatArray:
    """Bound each pair exactly, the answers moving along a line."""
    line = _line_of(view)
    if line is None or not pairs:
        return _closed_form(view, pairs)
    ranks, steps = line
    events, ones, others = np.array(pairs).T
    first, second = np.zeros((2, len(pairs), len(steps) + 1))
    rows = np.arange(len(pairs))[:, np.newaxis]
    np.add.at(first, (rows, ranks[ones]), view.laws[events, ones])
    np.add.at(second, (rows, ranks[others]), view.laws[events, others])
    return line_bounds(first, second, steps, additions=2 * view.additions)


def _view(problem: Problem, target: int, unknown: tuple[int, ...], dp_epsilon: float) -> _View:
    """Condition the table; cells with equal answers are merged unless ε₀ distinguishes them."""
    if dp_epsilon == 0:
        events = conditional_laws(problem, target, unknown)
        return _View(
            laws=events.laws,
            possible=events.possible,
            answers=events.atoms,
            changes=None,
            dp_epsilon=0.0,
            additions=events.additions + 2 * len(problem.model.names),
        )
    if not isinstance(problem.model, JointTable):
        raise TypeError(f"the dual bound is about joint tables, got {problem.model!r}.")
    table, axes = problem.model, range(len(problem.model.names))
    known = tuple(axis for axis in axes if axis != target and axis not in unknown)
    order = (*known, target, *unknown)
    sizes = [len(table.domains[axis]) for axis in unknown]
    cells = math.prod(sizes)
    masses = table.probabilities.transpose(order).reshape(-1, len(table.domains[target]), cells)
    totals = masses.sum(axis=-1)
    possible = totals > 0
    laws = masses / np.where(possible, totals, 1.0)[..., np.newaxis]
    answers = problem.contributions.in_every_cell()
    answers = answers.transpose(*order, len(axes)).reshape(*masses.shape, -1)
    indices = np.indices(sizes).reshape(len(sizes), cells)
    differ = (indices[:, :, np.newaxis] != indices[:, np.newaxis]).sum(axis=0)
    return _View(
        laws=laws,
        possible=possible,
        answers=answers if np.any(answers) else answers[:1],
        changes=dp_epsilon * differ,
        dp_epsilon=dp_epsilon,
        additions=2 * cells + 4 * len(axes),
    )
