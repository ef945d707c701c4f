"""Largest regression coefficients in Gaussian groups and series, over all known sets.

Gaussian groups and series: the worst of all 2^n adversaries in closed form, at any size.

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
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_banded

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge, Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.families.gaussian.units import Units


@dataclass(frozen=True, kw_only=True)
class Slope:
    """The coefficient of the worst adversary found."""

    value: float
    """β, signed."""
    error: float
    """No admitted |β| exceeds |value| by more than this."""
    target: int
    """The tuple attacked."""
    unknown: tuple[int, ...]
    """The tuples not known."""


def group_slope(
    weights: FloatArray, rho: float, knowledge: Knowledge, *, positive: bool = False
) -> Slope:
    """Find the largest |a_i + ρ/(1+kρ)·Σ_{u unknown} a_u| over targets i and known sets of size k.

    Given that k and the target's weight, the sum over the unknown is largest when the k smallest
    weights are known, and smallest when the k largest are. `positive` takes |ρ/(1+kρ)|.
    """
    size = len(weights)
    sizes = np.arange(knowledge.fewest, knowledge.most + 1)
    shrunk = 1 + sizes * rho
    slopes = np.where(sizes < size - 1, rho / shrunk, 0.0)  # nobody unknown, nothing to add
    slopes = np.abs(slopes) if positive else slopes
    total = float(np.abs(weights).sum())
    error = 8 * UNIT_ROUNDOFF * (size + 4) * total * float((1 + np.abs(slopes) / shrunk).max())
    if knowledge.known is not None:
        (target,) = knowledge.targets
        unknown = tuple(p for p in range(size) if p != target and p not in knowledge.known)
        value = weights[target] + slopes[0] * weights[list(unknown)].sum()
        return Slope(value=float(value), error=error, target=target, unknown=unknown)
    order = np.argsort(weights, kind="stable")
    place = np.empty(size, dtype=np.int64)
    place[order] = np.arange(size)
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    unknown_sizes = size - 1 - sizes
    best: tuple[float, int, int, bool] | None = None
    for target in _distinct(weights, knowledge.targets):
        own, at = weights[target], place[target]
        lowest = sums[unknown_sizes + (at < unknown_sizes)] - np.where(at < unknown_sizes, own, 0)
        first = size - unknown_sizes
        highest = sums[-1] - sums[first - (at >= first)] - np.where(at >= first, own, 0)
        for added, is_low in ((lowest, True), (highest, False)):
            values = own + slopes * added
            k = int(np.abs(values).argmax())
            if best is None or abs(values[k]) > abs(best[0]):
                best = float(values[k]), target, int(unknown_sizes[k]), is_low
    if best is None:
        raise ValueError("knowledge names no target.")
    value, target, count, is_low = best
    others = [int(p) for p in order if p != target]
    chosen = others[:count] if is_low else others[len(others) - count :]
    return Slope(value=value, error=error, target=target, unknown=tuple(sorted(chosen)))


def _distinct(weights: FloatArray, targets: tuple[int, ...]) -> list[int]:
    """Members of equal weight are equally exposed: attack one of each."""
    return list({float(weights[target]): target for target in reversed(targets)}.values())


def series_slope(weights: FloatArray, phi: float, knowledge: Knowledge) -> Slope:
    """Find the largest |β| in a stationary series with neighbour correlation φ.

    Only the nearest known point on each side matters. With the right one at distance b, the point
    at distance d < b has coefficient (φ^d − φ^{2b−d})/(1 − φ^{2b}); with nobody known to the right
    it is φ^d. The left side is the mirror image and adds up independently.
    """
    size = len(weights)
    mirrored = weights[::-1]
    if knowledge.known is not None:
        (target,) = knowledge.targets
        before = max((p for p in knowledge.known if p < target), default=target)
        after = min((p for p in knowledge.known if p > target), default=target)
        a, b = target - before, after - target  # 0: nobody known on that side
        lefts, left_errors = _side_sums(mirrored, phi, size - 1 - target, longest=a)
        rights, right_errors = _side_sums(weights, phi, target, longest=b)
        value = float(weights[target] + lefts[a] + rights[b])
        error = float(left_errors[a] + right_errors[b]) + 4 * UNIT_ROUNDOFF * abs(value)
        unknown = tuple(p for p in range(size) if p != target and p not in knowledge.known)
        return Slope(value=value, error=error, target=target, unknown=unknown)
    upper, best = -1.0, (0.0, knowledge.targets[0], 0, 0)
    for target in knowledge.targets:
        lefts, left_errors = _side_sums(mirrored, phi, size - 1 - target)
        rights, right_errors = _side_sums(weights, phi, target)
        for sign in (1.0, -1.0):
            highest_left, highest_right = sign * lefts + left_errors, sign * rights + right_errors
            a, b = _best_window(highest_left, highest_right, target, size, knowledge)
            value = float(weights[target] + lefts[a] + rights[b])
            limit = float(sign * weights[target] + highest_left[a] + highest_right[b])
            upper = max(upper, limit * (1 + 4 * UNIT_ROUNDOFF))
            if abs(value) > abs(best[0]):
                best = value, target, a, b
    value, target, a, b = best
    unknown = _unknown(target, a, b, size, knowledge)
    error = max(0.0, upper - abs(value))
    return Slope(value=value, error=error, target=target, unknown=unknown)


def _side_sums(
    weights: FloatArray, phi: float, target: int, *, longest: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return what unknown points to the right add to the target's coefficient, and error bounds.

    One entry for every distance b of the known point; index 0 is for nobody known. With
    a_d the weight at distance d, the sum is n_b/u_b where n and u start at 0 and 1 and

        n_{b+1} = φ²·n_b + Σ_{d≤b} a_d φ^d,    u_{b+1} = φ²·u_b + 1,

    which subtracts nothing, so that digits last also where φ is nearly ±1. Distances at which φ^b
    no longer shows in a float are left out: there the sum is that of index 0, whose error covers
    the difference.
    """
    after = weights[target + 1 :]
    fading = int(np.ceil(-45 / np.log(abs(phi)))) if phi else 1
    reach = max(min(len(after), fading), longest)
    terms = after[:reach] * phi ** np.arange(1, reach + 1)
    partial, sizes = np.cumsum(terms), np.cumsum(np.abs(terms))
    everyone, size = (partial[-1], sizes[-1]) if reach else (0.0, 0.0)
    added = np.stack([partial, sizes, np.ones(reach)])[:, : max(reach - 1, 0)]
    grown = _filtered(added, phi**2)
    between, between_sizes, shares = np.pad(grown, ((0, 0), (1, 0)))[:, :reach]
    shares = phi ** (2 * np.arange(reach)) + shares  # u starts at 1
    # A sum of n terms is off by n roundings of its size; both recursions add three per step.
    unit = 8 * UNIT_ROUNDOFF * (reach + 8)
    largest = np.abs(weights).max(initial=0.0) / (1 - abs(phi))
    truncated = 4 * largest * abs(phi) ** reach if reach < len(after) else 0.0
    return (
        np.concatenate([[everyone], between / shares]),
        np.concatenate([[unit * size + truncated], unit * between_sizes / shares]),
    )


def _filtered(added: FloatArray, factor: float) -> FloatArray:
    """Return y with y_{b+1} = factor·y_b + x_{b+1}, starting from 0, along each row of x."""
    if not added.shape[1]:
        return added
    bands = np.ones((2, added.shape[1]))
    bands[1] = -factor
    return np.asarray(solve_banded((1, 0), bands, added.T).T)


def _best_window(
    left: FloatArray, right: FloatArray, target: int, size: int, knowledge: Knowledge
) -> tuple[int, int]:
    """Choose distances a, b (0: nobody known on that side) with the largest left[a] + right[b].

    Whoever knows the ends may also know anything beyond them, so a window admits every number of
    known points between its ends' and all outside it.
    """
    if knowledge.most == 0:
        return 0, 0
    if knowledge.fewest == size - 1:  # both neighbours, where there are two
        return min(1, len(left) - 1), min(1, len(right) - 1)
    if knowledge.fewest == 0 and knowledge.most >= 2:
        return int(left.argmax()), int(right.argmax())
    outside_left = np.append(0, target + 1 - np.arange(1, len(left)))
    outside_right = np.append(0, size - target - np.arange(1, len(right)))
    best, choice = -np.inf, (0, 0)
    for a in range(len(left)):
        ends = int(a > 0) + np.minimum(np.arange(len(right)), 1)
        possible = (ends <= knowledge.most) & (outside_left[a] + outside_right >= knowledge.fewest)
        values = np.where(possible, left[a] + right, -np.inf)
        b = int(values.argmax())
        if values[b] > best:
            best, choice = float(values[b]), (a, b)
    return choice


def _unknown(target: int, a: int, b: int, size: int, knowledge: Knowledge) -> tuple[int, ...]:
    """List the unknown points of a window; beyond its ends as many are known as may be."""
    known = [target - step for step in range(a, target + 1)] if a else []
    known += range(target + b, size) if b else []
    known.sort(key=lambda point: abs(point - target - (b if point > target else -a)))
    chosen = set(known[: knowledge.most])
    return tuple(point for point in range(size) if point != target and point not in chosen)


_MOST_ANSWERS = 12  # released together: each pattern of signs is one search


class AlikeEngine:
    """Searches groups and series, once for all scales: quick at any size."""

    def __init__(self, problem: Problem) -> None:
        contributions = problem.contributions
        if contributions.weights is None:
            raise UnsupportedQueryError("a Gaussian model answers Sum, Mean and Linear.")
        model = problem.model
        if not isinstance(model, GaussianGroup | GaussianSeries):
            raise TypeError(f"this engine searches Gaussian groups and series, got {model!r}.")
        low, high = model.bounds
        answers = np.stack(contributions.weights)
        self._units = Units.of(answers, np.array(high - low))
        best: Bracket | None = None
        for combined in _combined(self._units.weights(answers), clamped=contributions.clamped):
            for slope in _slopes(problem, model, combined):
                found = _found(problem, slope, high - low)
                best = found if best is None else best.or_worse(found)
        if best is None:
            raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
        self._unit = best

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Return the worst adversary at one scale; see `core.family.Engine`."""
        del incumbent, enough, deadline
        return self._units.at(scale, self._unit)


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


def _found(problem: Problem, slope: Slope, width: float) -> Bracket:
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
    return Bracket(
        upper=leak + margin,
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
