"""The one question: how much the worst adversary learns from a release."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pdp_calibrate.arrays import checked_scale, checked_scales, deadline_after
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, warn_if_private
from pdp_calibrate.core.problem import Bracket, Leakage, split, worst
from pdp_calibrate.core.query import Query, checked_queries, lower


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
        return Leakage.at(single, found)
    queries = checked_queries(query)
    scales = checked_scales(scale, len(queries))
    parts = [lower(one, model, rows=rows) for one in queries]
    found, _ = worst(
        split(model, Contributions.joined(parts, scales), everyone), 1.0, deadline=deadline
    )
    return as_joint_leakage(found, parts, scales)


def as_joint_leakage(
    found: Bracket, parts: Sequence[Contributions], scales: Sequence[float]
) -> Leakage:
    """Wrap what a search in units of the scales found; the output goes back to its own units."""
    witness = found.witness
    if witness is not None and isinstance(witness.output, tuple):
        units = [s for part, s in zip(parts, scales, strict=True) for _ in range(part.coordinates)]
        back = tuple(unit * output for unit, output in zip(units, witness.output, strict=True))
        witness = dataclasses.replace(witness, output=back)
    return Leakage.at(tuple(scales), dataclasses.replace(found, witness=witness))
