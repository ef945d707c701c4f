"""The one question: how much the worst adversary learns from a release."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pdp_calibrate.arrays import checked_scale, checked_scales, deadline_after
from pdp_calibrate.core.adversary import EVERYONE, Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, warn_if_private
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.problem import Bracket, Leakage, Measure, Unit, split, worst
from pdp_calibrate.core.query import Query, checked_queries, lower
from pdp_calibrate.core.workers import one_bar


def leakage(
    model: Model,
    query: Query | Sequence[Query],
    *,
    scale: float | Sequence[float] = 1.0,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
    noise: Noise = "laplace",
    delta: float | None = None,
    unit: Unit | None = None,
) -> Leakage:
    """Return the leakage of one release of the query with noise of this scale.

    Parameters
    ----------
    model
        The distribution θ of the tuples, or a set Θ of them.
    query
        What is released; a list is released together.
    scale
        The Laplace scale λ, or the standard deviation σ of Gaussian noise; for a list one for each
        query.
    adversaries
        Who may attack; everyone by default.
    rows
        Number of independent rows that one answer is about; a mean divides by it.
    time_limit
        Seconds after which the search stops with a wider, still certified bracket.
    noise
        ``"laplace"``, or ``"gaussian"`` for models of Gaussian values.
    delta
        For Gaussian noise: the leakage is the ε of (ε, δ) at this δ.
    unit
        For Gaussian noise without a δ: ``"mu"`` by default, or ``"rho"`` for zCDP.

    Returns
    -------
    Leakage
        `value` is never below the supremum, over adversaries A(i, K), over Θ, over every x_K of
        positive probability, every pair of secrets and every output r, of
        log p(r | x_i, x_K) / p(r | x_i', x_K), of weight·value/divisor as exact numbers: where
        rounding them to floats could change it, the bracket is that much wider. It is about this
        one release: two releases of the same data leak together, and not simply the sum.

        With Gaussian noise, telling any two secrets apart is never easier than telling N(0,1) from
        N(μ,1) by one draw, μ = `mu`; what the adversary does not know acts as noise too, as far as
        the model states its variance.

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
    >>> home = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
    >>> leak = pdp.leakage(home, pdp.Sum(), scale=37.1239, noise="gaussian", delta=1e-6)
    >>> round(leak.value, 5), round(leak.mu, 5), round(leak.epsilon(1e-9), 4)
    (1.0, 0.2367, 1.3177)
    """
    measure = Measure.of(noise, unit=unit, delta=delta)
    warn_if_private(model, "leakage")
    everyone = EVERYONE if adversaries is None else adversaries
    deadline = deadline_after(time_limit)
    with one_bar("comparing adversaries"):
        if isinstance(query, Query):
            single = checked_scale(scale)
            problems = split(model, lower(query, model, rows=rows), everyone, measure=measure)
            found, _ = worst(problems, single, deadline=deadline)
            return measure.leakage(found, single, found.witness)
        queries = checked_queries(query)
        scales = checked_scales(scale, len(queries))
        parts = [lower(one, model, rows=rows) for one in queries]
        joined = Contributions.joined(parts, scales)
        found, _ = worst(split(model, joined, everyone, measure=measure), 1.0, deadline=deadline)
        return as_joint_leakage(found, parts, scales, measure)


def as_joint_leakage(
    found: Bracket, parts: Sequence[Contributions], scales: Sequence[float], measure: Measure
) -> Leakage:
    """Wrap the result of a search in units of the scales; the output returns to its own units."""
    witness = found.witness
    if witness is not None and isinstance(witness.output, tuple):
        units = [
            s for part, s in zip(parts, scales, strict=True) for _ in range(part.apart.coordinates)
        ]
        back = tuple(unit * output for unit, output in zip(units, witness.output, strict=True))
        witness = dataclasses.replace(witness, output=back)
    return measure.leakage(found, tuple(scales), witness)
