"""Gaussian groups and series: the worst of all 2^n adversaries in closed form, at any size.

For jointly Gaussian tuples adversary A(i, K) learns (M/λ)·|β|, where β is the coefficient of x_i
when the answer is regressed on x_i and x_K (paper, Thm 6): a_i plus, for every unknown u, a_u times
the coefficient of x_i in the regression of x_u. Here those have closed forms, so the worst K is
found by sorting weights (`group_slopes`) or along windows (`series_slopes`).

Clamped values move with the target by no more than those coefficients, which are at most 1 here,
so (M/λ)·(|a_i| + Σ_u |a_u|·|coefficient of u|) bounds their leakage: the same search with every
sign made positive.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator

import numpy as np

from pdp_calibrate.adversaries import Witness
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.engines.slopes import Slope, group_slope, series_slope
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.models import GaussianGroup, GaussianSeries
from pdp_calibrate.models.base import FloatArray

_MOST_ANSWERS = 12  # released together: each pattern of signs is one search


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = np.inf
) -> Found:
    """Find the worst adversary; quick at any size, so incumbent and deadline change nothing."""
    del incumbent, deadline
    contributions = problem.contributions
    if contributions.weights is None:
        raise UnsupportedQueryError("a Gaussian model answers Sum, Mean and Linear.")
    model = problem.model
    if not isinstance(model, GaussianGroup | GaussianSeries):
        raise TypeError(f"this engine searches Gaussian groups and series, got {model!r}.")
    low, high = model.bounds
    weights = np.stack(contributions.weights) / scale
    best: Found | None = None
    for combined in _combined(weights, clamped=contributions.clamped):
        for slope in _slopes(problem, model, combined):
            found = _found(problem, slope, high - low)
            best = found if best is None else best.or_worse(found)
    if best is None:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    return best


def _combined(weights: FloatArray, *, clamped: bool) -> Iterator[FloatArray]:
    """Yield single answers whose worst |β| is that of all answers together.

    Σ_m |β_m| is the largest |β| of Σ_m ±f_m over all signs; clamped parts simply add up.
    """
    width = weights.shape[1]
    if clamped or width == 1:
        yield np.abs(weights).sum(axis=1) if clamped else weights[:, 0]
        return
    if width > _MOST_ANSWERS:
        raise UnsupportedQueryError(f"at most {_MOST_ANSWERS} answers together, got {width}.")
    for signs in itertools.product([1.0], *[[1.0, -1.0]] * (width - 1)):
        yield weights @ np.array(signs)


def _slopes(
    problem: Problem, model: GaussianGroup | GaussianSeries, weights: FloatArray
) -> list[Slope]:
    knowledge, clamped = problem.knowledge, problem.contributions.clamped
    if isinstance(model, GaussianSeries):
        phi = abs(model.correlation) if clamped else model.correlation
        return [series_slope(weights, phi, knowledge)]
    # A coefficient ρ/(1+kρ) grows with ρ, so every |β| is largest at an end of the range.
    return [
        group_slope(weights, rho, knowledge, positive=clamped)
        for rho in dict.fromkeys(model.correlation)
    ]


def _found(problem: Problem, slope: Slope, width: float) -> Found:
    leak = width * abs(slope.value)
    margin = width * slope.error + 4 * UNIT_ROUNDOFF * leak
    names, domains = problem.names, problem.model.domains
    secrets = domains[slope.target] if slope.value >= 0 else domains[slope.target][::-1]
    unknown = set(slope.unknown)
    known: dict[Hashable, Hashable] = {
        names[position]: sum(domains[position]) / 2  # type: ignore[arg-type]  # ends are floats
        for position in range(len(names))
        if position != slope.target and position not in unknown
    }
    # Clamped, only the leakage to those who know everyone else is attained for sure.
    attained = not problem.contributions.clamped or not unknown
    return Found(
        value=leak + margin,
        lower=max(0.0, leak - margin) if attained else 0.0,
        witness=Witness(
            target=names[slope.target],
            known=known,
            secrets=(secrets[0], secrets[1]),
            output=-np.inf,
            model=problem.model,
            index=problem.index,
        ),
        target=slope.target,
        unknown=slope.unknown,
    )
