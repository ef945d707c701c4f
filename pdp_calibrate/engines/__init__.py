"""The one question: how much the worst adversary learns from a release."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.engines.problem import Problem, split
from pdp_calibrate.engines.result import Found, Leakage
from pdp_calibrate.errors import ModelError, PdpError, UnsupportedQueryError
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.queries import Query, lower

# Family of models → module whose `search` answers for it, imported when first asked: compiled code
# is slow to load, and `import pdp_calibrate` shall not wait for it.
_ENGINES = {"JointTable": "pdp_calibrate.engines.tables"}


class Engine(Protocol):
    """What every engine offers."""

    def __call__(
        self,
        problem: Problem,
        scale: float | FloatArray,
        *,
        incumbent: float = 0.0,
        deadline: float = float("inf"),
    ) -> Found:
        """Search one problem; prune whoever cannot leak more than `incumbent`."""


def engine_for(model: Model) -> Engine:
    """Return the search function for this family of models."""
    for family in type(model).__mro__:
        if family.__name__ in _ENGINES:
            return cast("Engine", import_module(_ENGINES[family.__name__]).search)
    raise ModelError(f"there is no engine for {type(model).__name__}.")


def leakage(
    model: Model,
    query: Query,
    *,
    scale: float = 1.0,
    adversaries: Adversaries | None = None,
    time_limit: float | None = None,
) -> Leakage:
    """Return the leakage of one release of the query with Laplace noise of this scale.

    Parameters
    ----------
    model
        The distribution θ of the tuples, or a set Θ of them.
    query
        What is released.
    scale
        The Laplace scale λ.
    adversaries
        Who may attack; everyone by default.
    time_limit
        Seconds after which the search stops with a wider, still certified bracket.

    Returns
    -------
    Leakage
        `value` is never below the supremum, over adversaries A(i, K), over Θ, over every x_K of
        positive probability, every pair of secrets and every output r, of
        log p(r | x_i, x_K) / p(r | x_i', x_K). It speaks of this one release: two releases of the
        same data leak together, and not simply the sum.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> leak = pdp.leakage(table, pdp.Sum(), scale=1.0)
    >>> round(leak.value, 6), leak.witness.known
    (1.185376, {})
    """
    checked_scale(scale)
    everyone = Adversaries.all() if adversaries is None else adversaries
    problems = split(model, lower(query, model), everyone)
    found, _ = worst(problems, float(scale), deadline=deadline_after(time_limit))
    return as_leakage(found, float(scale))


def worst(
    problems: Sequence[Problem], scale: float, *, incumbent: float = 0.0, deadline: float
) -> tuple[Found, Problem]:
    """Search all problems, each with the worst found so far as its incumbent."""
    best: tuple[Found, Problem] | None = None
    lower_end: Found | None = None
    for problem in problems:
        engine = engine_for(problem.model)
        threshold = max(incumbent, best[0].value) if best else incumbent
        found = engine(problem, scale, incumbent=threshold, deadline=deadline)
        if best is None or found.value > best[0].value:
            best = found, problem
        if lower_end is None or found.lower > lower_end.lower:
            lower_end = found
    if best is None or lower_end is None:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    found, problem = best
    return found.with_lower(lower_end), problem


def as_leakage(found: Found, scale: float) -> Leakage:
    """Wrap what a search found."""
    return Leakage(value=found.value, lower=found.lower, scale=scale, witness=found.witness)


def checked_scale(scale: float) -> None:
    """Raise unless the scale is a positive finite number."""
    if not 0 < scale < float("inf"):
        raise PdpError(f"scale must be positive and finite, got {scale}.")


def deadline_after(time_limit: float | None) -> float:
    """Turn a duration in seconds into a value of `time.monotonic()`."""
    if time_limit is None:
        return float("inf")
    if not time_limit >= 0:
        raise PdpError(f"time_limit must be zero or more seconds, got {time_limit}.")
    return time.monotonic() + time_limit


__all__ = [
    "Leakage",
    "as_leakage",
    "checked_scale",
    "deadline_after",
    "engine_for",
    "leakage",
    "worst",
]
