"""The one question: how much the worst adversary learns from a release."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np

from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.bracket import Bracket, Leakage
from pdp_calibrate.core.checks import check_number, checked_positive
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, warn_if_private
from pdp_calibrate.core.problem import Problem, split
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import PdpError, QueryError, UnsupportedQueryError


def leakage(
    model: Model,
    query: Query | Sequence[Query],
    *,
    scale: float | Sequence[float] = 1.0,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> Leakage:
    """Return the leakage of one release of the query with Laplace noise of this scale.

    Parameters
    ----------
    model
        The distribution θ of the tuples, or a set Θ of them.
    query
        What is released; a list is released together.
    scale
        The Laplace scale λ, for a list one for each query.
    adversaries
        Who may attack; everyone by default.
    rows
        Number of independent rows that one answer is about; a mean divides by it.
    time_limit
        Seconds after which the search stops with a wider, still certified bracket.

    Returns
    -------
    Leakage
        `value` is never below the supremum, over adversaries A(i, K), over Θ, over every x_K of
        positive probability, every pair of secrets and every output r, of
        log p(r | x_i, x_K) / p(r | x_i', x_K), of weight·value/divisor as exact numbers: where
        rounding them to floats could change it, the bracket is that much wider. It speaks of this
        one release: two releases of the same data leak together, and not simply the sum.

    Warns
    -----
    PrivacyLeakWarning
        If the model was learned from private rows, on which the leakage then depends.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> leak = pdp.leakage(table, pdp.Sum(), scale=1.0)
    >>> round(leak.value, 6), leak.witness.known
    (1.185376, {})
    """
    warn_if_private(model, "leakage")
    everyone = Adversaries.all() if adversaries is None else adversaries
    deadline = deadline_after(time_limit)
    if isinstance(query, Query):
        single = checked_scale(scale)
        problems = split(model, lower(query, model, rows=rows), everyone)
        found, _ = worst(problems, single, deadline=deadline)
        return as_leakage(found, single)
    queries = checked_queries(query)
    scales = checked_scales(scale, len(queries))
    parts = [lower(one, model, rows=rows) for one in queries]
    found, _ = worst(
        split(model, Contributions.joined(parts, scales), everyone), 1.0, deadline=deadline
    )
    return as_joint_leakage(found, parts, scales)


def worst(
    problems: Sequence[Problem],
    scale: float,
    *,
    incumbent: float = 0.0,
    enough: float = math.inf,
    deadline: float,
) -> tuple[Bracket, Problem]:
    """Search all problems, each with the worst found so far as its incumbent.

    Both ends are about exact contributions: what rounding them to floats may change is charged.
    Searches that can stop early do so once somebody is found to leak more than `enough`.
    """
    best: tuple[Bracket, Problem] | None = None
    lower_end: Bracket | None = None
    for problem in problems:
        cost = problem.contributions.rounding / scale
        threshold = max(0.0, (max(incumbent, best[0].upper) if best else incumbent) - cost)
        found = problem.engine.bracket(scale, incumbent=threshold, enough=enough, deadline=deadline)
        if problem.contributions.real:  # a mean's rounded weight: relative, and not on intervals
            cost += 2 * UNIT_ROUNDOFF * found.upper if cost else 0.0
        found = found.at_most(problem.group_bound(scale)).widened(cost)
        if best is None or found.upper > best[0].upper:
            best = found, problem
        if lower_end is None or found.lower > lower_end.lower:
            lower_end = found
    if best is None or lower_end is None:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    found, problem = best
    return found.with_lower(lower_end), problem


def as_leakage(found: Bracket, scale: float) -> Leakage:
    """Wrap what a search about one query found."""
    return Leakage(value=found.upper, lower=found.lower, scale=scale, witness=found.witness)


def as_joint_leakage(
    found: Bracket, parts: Sequence[Contributions], scales: Sequence[float]
) -> Leakage:
    """Wrap what a search in units of the scales found; the output goes back to its own units."""
    witness = found.witness
    if witness is not None and isinstance(witness.output, tuple):
        units = [s for part, s in zip(parts, scales, strict=True) for _ in range(part.coordinates)]
        back = tuple(unit * output for unit, output in zip(units, witness.output, strict=True))
        witness = dataclasses.replace(witness, output=back)
    return Leakage(value=found.upper, lower=found.lower, scale=tuple(scales), witness=witness)


def checked_scale(scale: object) -> float:
    """Return the scale, or raise unless it is a positive finite number."""
    return checked_positive(scale, "scale", error=PdpError)


def checked_scales(scale: object, number: int) -> list[float]:
    """Return one scale per query; a single number stands for all of them."""
    found = list(scale) if isinstance(scale, Sequence | np.ndarray) else [scale] * number
    if len(found) != number:
        raise PdpError(f"scale must be one number per query ({number}), got {len(found)}.")
    return [checked_scale(one) for one in found]


def checked_queries(queries: object) -> list[Query]:
    """Return a list of queries, or raise unless it is one."""
    if isinstance(queries, Sequence) and queries and all(isinstance(q, Query) for q in queries):
        return list(queries)
    raise QueryError("a query such as Sum(), or a list of queries, is needed.")


def deadline_after(time_limit: float | None) -> float:
    """Turn a duration in seconds into a value of `time.monotonic()`."""
    if time_limit is None:
        return float("inf")
    if not time_limit >= 0:
        raise PdpError(f"time_limit must be zero or more seconds, got {time_limit}.")
    check_number(time_limit, "time_limit", error=PdpError)
    return time.monotonic() + time_limit
