"""The worst adversary of a Markov tree.

Above: Birkhoff's bound (`contraction`) or the regions around a target (`regions`), whichever is
lower. Below: plain DP and the limits r → ±∞ (`limits`).
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from pdp_calibrate.engines.additive import ROUND_UP, as_one, nobody, plain_dp, search_table
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.engines.trees.contraction import tree_bounds
from pdp_calibrate.engines.trees.limits import attained
from pdp_calibrate.engines.trees.regions import region_bounds
from pdp_calibrate.models import JointTable, MarkovTree
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.table import LOG_SMALLEST, MAXIMAL_CELLS, MAXIMAL_TUPLES


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of a tree; see `engines.tables.search`.

    Exact where the joint table has at most 2²² cells, within the time allowed. Beyond, a bracket:
    Birkhoff's bound or regions above, plain DP and the limits r → ±∞ below.
    """
    tree, contributions = problem.model, problem.contributions
    if not isinstance(tree, MarkovTree):
        raise TypeError(f"this engine searches Markov trees, got {tree!r}.")
    joint = _table(tree) if _fits_a_table(tree) or contributions.table is not None else None
    if contributions.table is not None and joint is not None:
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    bounds = tree_bounds(tree, contributions.tuple_ranges() / scale, problem.knowledge)
    best = _plain(problem, tree, scale)
    if best is not None and best.value >= bounds[list(problem.knowledge.targets)].max():
        return best
    if joint is None:
        return _between(problem, tree, scale, bounds, best, incumbent, deadline)
    return _in_table(problem, joint, scale, bounds, best, incumbent, deadline)


def _between(
    problem: Problem,
    tree: MarkovTree,
    scale: float,
    bounds: FloatArray,
    best: Found | None,
    incumbent: float,
    deadline: float,
) -> Found:
    """Return the best bound there is, and the best limit below it."""
    contributions, targets = problem.contributions, problem.knowledge.targets
    enough = incumbent if best is None else max(incumbent, best.value)
    if contributions.coordinates == 1:
        bounds = region_bounds(problem, bounds, scale, enough=enough, deadline=deadline)
    elif (together := as_one(contributions, scale)) is not None:
        once, rounding = together
        repeated = dataclasses.replace(problem, contributions=once)
        regions = region_bounds(repeated, bounds, 1.0, enough=enough, deadline=deadline)
        bounds = np.minimum(bounds, (regions + rounding) * ROUND_UP)
    target = max(targets, key=lambda position: bounds[position])
    bound = _bound(problem, bounds, target)
    if contributions.coordinates > 1:
        return bound
    found = attained(problem, tree, scale)
    found = found if best is None else best.with_lower(found)
    return bound.with_lower(found)


def _in_table(
    problem: Problem,
    joint: JointTable,
    scale: float,
    bounds: FloatArray,
    best: Found | None,
    incumbent: float,
    deadline: float,
) -> Found:
    """Search the joint table, about those targets only that could be worse than what is known."""
    knowledge = problem.knowledge
    enough = incumbent if best is None else max(incumbent, best.value)
    open_targets = tuple(t for t in knowledge.targets if bounds[t] > enough)
    closed = [t for t in knowledge.targets if bounds[t] <= enough]
    found = best
    if closed:
        covered = _bound(problem, bounds, max(closed, key=lambda position: bounds[position]))
        found = covered if found is None else found.or_worse(covered)
    if open_targets:
        some = dataclasses.replace(
            problem, knowledge=dataclasses.replace(knowledge, targets=open_targets)
        )
        searched = search_table(some, joint, scale, incumbent=enough, deadline=deadline)
        highest = _bound(problem, bounds, max(open_targets, key=lambda t: bounds[t]))
        searched = searched if searched.value <= highest.value else highest.with_lower(searched)
        found = searched if found is None else found.or_worse(searched)
    return nobody(problem) if found is None else found


def _bound(problem: Problem, bounds: FloatArray, target: int) -> Found:
    """Return the bound about one target, as if everyone were unknown who may be."""
    known = problem.knowledge.known or frozenset()
    places = range(len(problem.names))
    return Found(
        value=float(bounds[target]),
        lower=0.0,
        witness=None,
        target=target,
        unknown=tuple(p for p in places if p != target and p not in known),
    )


def _plain(problem: Problem, tree: MarkovTree, scale: float) -> Found | None:
    """Return what those who know everyone else learn, where there are any."""
    knowledge = problem.knowledge
    if not knowledge.admits_strongest or problem.hidden_noise:
        return None
    if problem.contributions.coordinates > 1:
        return None
    ranges = problem.contributions.tuple_ranges()
    widest = max(knowledge.targets, key=lambda position: ranges[position])
    return plain_dp(problem, widest, scale, _likely_course(tree))


@functools.lru_cache(maxsize=2)
def _table(tree: MarkovTree) -> JointTable:
    return tree.to_table()


def _fits_a_table(tree: MarkovTree) -> bool:
    cells = math.prod(len(domain) for domain in tree.domains[:MAXIMAL_TUPLES])
    small = len(tree.names) <= MAXIMAL_TUPLES and cells <= MAXIMAL_CELLS
    return small and tree.log_rarest() > LOG_SMALLEST


def _likely_course(tree: MarkovTree) -> dict[int, int]:
    """Return possible values of all tuples, by position."""
    course: dict[int, int] = {}
    for place in tree.order:
        parent, kernel = tree.parents[place], tree.kernels[place]
        course[place] = int((kernel if parent is None else kernel[course[parent]]).argmax())
    return course
