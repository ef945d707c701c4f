"""Bounds on what several releases leak about one block of correlated tuples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from pdp_calibrate.composition.table_dual import dual_bound, is_affordable
from pdp_calibrate.core.bracket import Bound
from pdp_calibrate.core.composer import Composer, Releases, composer_of
from pdp_calibrate.core.leakage import worst
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.core.table import SMALL_TABLE, JointTable, Writable
from pdp_calibrate.errors import ModelError, UnsupportedQueryError


def releases_bound(releases: Releases, deadline: float) -> Bound:
    """Return the smallest of the bounds that hold for one block; cheap ones first."""
    found = Bound(value=math.inf, method="group")
    cost = releases.problem.contributions.rounding
    composer = composer_of(releases.problem.model)
    for method, bound in _BOUNDS:
        value = bound(composer, releases, deadline)
        if value is not None and method not in ("exact", "shift") and cost:  # those charge it
            value = (value + cost) * ROUND_UP
        if value is not None:
            found = Bound(value=value, method=method).or_better(found)
        if value is not None and method in ("exact", "shift"):
            break  # nothing is smaller
        if releases.threshold is not None and found.value <= releases.threshold:
            break
    if math.isinf(found.value):
        raise UnsupportedQueryError(
            "no sound bound covers these releases together on this model; release the queries as"
            " one list, or use a joint table."
        )
    return found


def _group(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """All tuples that the adversary does not know move at once; no use on unbounded tuples."""
    del deadline
    problem, knowledge = releases.problem, releases.problem.knowledge
    if not composer.is_bounded(problem):
        return None
    budgets = releases.tuple_budgets
    if knowledge.known is not None:
        moving = budgets[[p for p in range(len(budgets)) if p not in knowledge.known]]
    else:
        moving = np.sort(budgets)[::-1][: knowledge.total - knowledge.fewest]
    together = math.fsum(moving)
    if releases.budgets is None:
        whole = problem.contributions.total_range() + len(moving) * releases.dp_epsilon
        together = min(together, whole)
    return together * ROUND_UP


def _exact(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Search the joint answer itself."""
    del composer  # of the family, which may be searched as a table
    problem = releases.separate
    if problem is None:
        return None
    if problem.contributions.coordinates > 1:
        problem = _as_table(problem) or problem
    if not is_searchable(problem):
        return None
    found, _ = worst([problem], 1.0, deadline=deadline)
    return found.upper


def _windows(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Look through windows, where all releases are of one query."""
    if releases.budgets is not None or releases.dp_epsilon:
        return None
    return composer.windows(releases, deadline)


def _dual(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Solve the dual program of a table, or of a family small enough to be written out."""
    if releases.budgets is not None or releases.problem.model.is_continuous:
        return None
    if composer.is_counted_exactly(releases):
        return None
    table = _as_table(releases.problem)
    if table is None or not is_affordable(table):
        return None
    limit = releases.threshold
    return dual_bound(
        table,
        dp_epsilon=releases.dp_epsilon,
        incumbent=0.0 if limit is None else limit,
        enough=math.inf if limit is None else limit,
        deadline=deadline,
    )


_Finds = Callable[[Composer, Releases, float], float | None]


_BOUNDS: tuple[tuple[str, _Finds], ...] = (
    ("group", _group),
    ("birkhoff", lambda composer, *about: composer.forgotten(*about)),
    ("shift", lambda composer, *about: composer.shifted(*about)),
    ("exact", _exact),
    ("windows", _windows),
    ("dual", lambda composer, *about: composer.counted(*about)),
    ("dual", _dual),
)


def _as_table(problem: Problem) -> Problem | None:
    """Return the same problem about a joint table, where there is one of reasonable size.

    None also where a cell would be too rare for a float; other bounds hold there.
    """
    model = problem.model
    if isinstance(model, JointTable):
        return problem
    if not isinstance(model, Writable) or not SMALL_TABLE.admits(list(map(len, model.domains))):
        return None
    try:
        return dataclasses.replace(problem, model=model.to_table())
    except ModelError:
        return None


def is_searchable(problem: Problem) -> bool:
    """Whether an exact search of the joint answer is within reach."""
    return composer_of(problem.model).is_searchable(problem)
