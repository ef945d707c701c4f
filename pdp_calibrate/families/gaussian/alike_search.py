"""Gaussian groups and series: the worst of all 2^n adversaries in closed form, at any size.

Theorem 24 (docs/theory).

For jointly Gaussian tuples adversary A(i, K) learns (M/λ)·|β|, where β is the coefficient of x_i
when the answer is regressed on x_i and x_K (paper, Thm 6): a_i plus, for every unknown u, a_u·c_u
with c_u the coefficient of x_i in the regression of x_u. Here those have closed forms, so the worst
K is found by sorting weights (`group_slope`) or along windows (`series_slope`).

Clamped values. Couple the unknown tuples under two secrets: x_u moves by c_u·M, and its clamped
value moves in the same direction by between 0 and that much (|c_u| ≤ 1 here). So the answer moves
by at most M·max over signs t of ( t·a_i + Σ_u max(t·a_u·c_u, 0) ), whatever the law. If means are
free and the common variance is not stated, this is attained: let the variance tend to 0, with the
mean of each u in the middle of its range if it should move and far outside if it should not. With a
stated variance the lower end is what the same adversary learns in the tails, by quadrature: see
`clamped_tails`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.linalg import solve_banded

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge, Witness
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import SIGNED_ANSWERS
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.families.gaussian.clamped_tails import group_tail, series_tail
from pdp_calibrate.families.gaussian.units import Units

_FEW_STEPS = 64  # of a recursion, up to which Python is faster than a call of LAPACK


@dataclass(frozen=True, kw_only=True)
class Slope:
    """The coefficient of the worst adversary found."""

    value: float
    """How far the answer moves in direction `sign` with x_i, never negative for the worst one."""
    error: float
    """The value of no admitted adversary exceeds `value` by more than this."""
    target: int
    """The tuple attacked."""
    unknown: tuple[int, ...]
    """The tuples not known."""
    sign: float
    """Whether the answer rises (1) or falls (−1) with x_i."""
    correlation: float
    """The correlation under which it does."""
    attained: bool = True
    """Whether that adversary learns as much; otherwise it is a bound over a range."""


def group_slope(
    weights: FloatArray,
    rho: float,
    knowledge: Knowledge,
    *,
    clamped: bool = False,
    attained: float = -math.inf,
) -> Slope | None:
    """Find the largest |a_i + ρ/(1+kρ)·Σ_{u unknown} a_u| over targets i and known sets of size k.

    Given k, the target and a sign, the sum over the unknown members is largest when the k that add
    least are known. In a clamped answer, members that would lower it add nothing instead. None if
    certainly no value exceeds what is `attained` elsewhere.
    """
    size = len(weights)
    sizes = np.arange(knowledge.fewest, knowledge.most + 1, dtype=np.float64)
    shrunk = 1 + sizes * rho
    # With nobody unknown there is nothing to add. As 1+kρ > 0, coefficients have the sign of ρ.
    slopes = abs(rho) / shrunk
    if knowledge.most == size - 1:
        slopes[-1] = 0.0
    total = float(np.abs(weights).sum())
    error = 8 * UNIT_ROUNDOFF * (size + 4) * total * float((1 + slopes / shrunk).max())
    with_others, steepest = np.sign(rho) * weights, slopes.max()
    best: Slope | None = None
    for sign in (1.0, -1.0):
        own, others = sign * weights, sign * with_others
        rising = np.maximum(others, 0.0)
        together = own.max() + steepest * rising.sum()  # if all moved in the same direction
        if together + error <= attained or (best is not None and together <= best.value):
            continue
        others = rising if clamped else others
        value, target, unknown = _largest_in_group(own, others, slopes, knowledge)
        if best is None or value > best.value:
            best = Slope(
                value=value, error=error, target=target, unknown=unknown, sign=sign, correlation=rho
            )
    return best


def _largest_in_group(
    own: FloatArray, others: FloatArray, slopes: FloatArray, knowledge: Knowledge
) -> tuple[float, int, tuple[int, ...]]:
    """Return the largest own_i + slope_k·Σ_{u unknown} others_u, its target, who is unknown."""
    size = len(own)
    if knowledge.known is not None:
        (target,) = knowledge.targets
        unknown = tuple(p for p in range(size) if p != target and p not in knowledge.known)
        return float(own[target] + slopes[0] * others[list(unknown)].sum()), target, unknown
    order = others.argsort(kind="stable")
    by_size = order.tolist()
    sums = np.zeros(size + 1)
    others[order].cumsum(out=sums[1:])
    first = np.arange(knowledge.fewest, knowledge.most + 1) + 1  # where the unknown ones begin
    best = -math.inf, 0, 0
    for target in _distinct(own, knowledge.targets):
        # Where the target is among those added, the next one takes its place.
        among = first <= by_size.index(target)
        added = sums[-1] - sums[first - among] - among * others[target]
        values = own[target] + slopes * added
        k = int(values.argmax())
        best = max(best, (float(values[k]), target, k), key=itemgetter(0))
    value, target, k = best
    by_size.remove(target)
    return value, target, tuple(sorted(by_size[knowledge.fewest + k :]))


def _distinct(weights: FloatArray, targets: tuple[int, ...]) -> list[int]:
    """Return one target for each weight: members of equal weight are equally exposed."""
    numbers = weights.tolist()
    return list({numbers[target]: target for target in reversed(targets)}.values())


def series_slope(
    weights: FloatArray, phi: float, knowledge: Knowledge, *, clamped: bool = False
) -> Slope:
    """Find the largest |β| in a stationary series with neighbour correlation φ.

    Only the nearest known point on each side matters. With the right one at distance b, the point
    at distance d < b has coefficient (φ^d − φ^{2b−d})/(1 − φ^{2b}); with nobody known to the right
    it is φ^d. The left side is the mirror image, and the two sides add up. All coefficients have
    the signs of φ^d, so the search uses |φ| and flips the signs of weights at odd distances; in a
    clamped answer, weights that would lower the sum add nothing instead.
    """
    size, strength = len(weights), abs(phi)
    alternating = weights if phi >= 0 else weights * (-1.0) ** np.arange(size)
    upper = 0.0
    best = Slope(value=-math.inf, error=0.0, target=0, unknown=(), sign=1.0, correlation=phi)
    for target, sign in itertools.product(_exposed(weights, phi, knowledge), (1.0, -1.0)):
        own = sign * float(weights[target])
        others = sign * alternating * (-1.0 if phi < 0 and target % 2 else 1.0)
        others = np.maximum(others, 0.0) if clamped else others
        a, b = _named_window(target, knowledge)
        lefts, left_errors = _side_sums(others[::-1], strength, size - 1 - target, longest=a)
        rights, right_errors = _side_sums(others, strength, target, longest=b)
        if knowledge.known is None:
            a, b = _best_window(lefts + left_errors, rights + right_errors, target, size, knowledge)
        value = own + float(lefts[a] + rights[b])
        limit = value + float(left_errors[a] + right_errors[b])
        upper = max(upper, limit + 8 * UNIT_ROUNDOFF * (abs(own) + abs(limit)))
        if value > best.value:
            unknown = _unknown(target, a, b, size, knowledge)
            best = dataclasses.replace(best, value=value, target=target, unknown=unknown, sign=sign)
    return dataclasses.replace(best, error=max(0.0, upper - best.value))


def _series_slopes(
    weights: FloatArray, ends: tuple[float, float], knowledge: Knowledge, *, clamped: bool
) -> list[Slope]:
    """Return slopes of which one bounds, and one attains, the worst φ between the ends.

    Theorem 32 (docs/theory): on each side of 0 the sizes of all coefficients grow with |φ|, so what
    moves in one direction is worst at an end, and so is everything where no weight and no
    coefficient is negative. Otherwise the terms of one direction at an end bound the sum, which
    adds terms of both. Of equal weights a negative φ moves the sum by no more than the secret does.
    """
    low, high = ends
    if low == high:
        return [series_slope(weights, low, knowledge, clamped=clamped)]
    worst = [end for end, is_worst in ((low, low < 0), (high, high > 0)) if is_worst]
    if clamped:
        return [series_slope(weights, end, knowledge, clamped=True) for end in worst]
    one_way = bool(np.all(weights >= 0) or np.all(weights <= 0))
    alike = bool(np.all(weights == weights[0]))
    found = [series_slope(weights, end, knowledge) for end in (low, high)]  # attained
    for end in worst:
        if end > 0 and one_way:
            continue  # what the upper end attains
        if end < 0 and alike:
            bound = dataclasses.replace(found[0], value=abs(float(weights[0])), error=0.0)
        else:
            bound = series_slope(weights, end, knowledge, clamped=True)
        found.append(dataclasses.replace(bound, attained=False))
    return found


def _exposed(weights: FloatArray, phi: float, knowledge: Knowledge) -> Sequence[int]:
    """Return the targets that may be worst: all of them, or one that provably is.

    With φ ≥ 0 and equal weights every unknown point adds to the sum, and knowing a point lowers it:
    at distance d < b its coefficient is at most φ^d, beyond b it is 0. So an adversary who may know
    nobody learns most by knowing nobody: Σ_t φ^|t−i|. That is two geometric sums of i and n−1−i
    terms, each concave in its length, so it is largest for the target nearest to the middle. An
    adversary who must know all others learns the weight alone, the same for every target.
    """
    alike = bool(np.all(weights == weights[0]))
    decided = knowledge.known is None and knowledge.fewest in (0, len(weights) - 1)
    if phi < 0 or not alike or not decided or not knowledge.targets:
        return knowledge.targets
    middle = len(weights) - 1
    return [min(knowledge.targets, key=lambda target: abs(2 * target - middle))]


def _named_window(target: int, knowledge: Knowledge) -> tuple[int, int]:
    """Return the distances to the nearest points that a named adversary knows, 0 for none."""
    known = knowledge.known or ()
    before = max((p for p in known if p < target), default=target)
    after = min((p for p in known if p > target), default=target)
    return target - before, after - target


def _side_sums(
    weights: FloatArray, phi: float, target: int, *, longest: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return what unknown points to the right add to the target's coefficient, and error bounds.

    One number for every distance b of the known point; index 0 means that none is known. With
    a_d the weight at distance d, the sum is n_b/u_b where n and u start at 0 and 1 and

        n_{b+1} = φ²·n_b + Σ_{d≤b} a_d φ^d,    u_{b+1} = φ²·u_b + 1,

    which subtracts nothing, so that no digits are lost even where φ is close to ±1. Distances at
    which φ^b is too small to matter in floating point are left out: there the sum is that of index
    0, whose error covers the difference.
    """
    after = weights[target + 1 :]
    fading = int(np.ceil(-45 / np.log(abs(phi)))) if phi else 1
    reach = max(min(len(after), fading), longest)
    if not reach:
        return np.zeros(1), np.zeros(1)
    powers = phi ** np.arange(reach + 1)
    terms = after[:reach] * powers[1:]
    added = np.ones((3, reach))  # what n, the sizes of its terms and u grow by
    terms.cumsum(out=added[0])
    np.abs(terms).cumsum(out=added[1])
    grown = np.zeros((3, reach))
    grown[:, 1:] = _filtered(added[:, :-1], phi**2)
    shares = powers[:-1] ** 2 + grown[2]  # u starts at 1
    # A sum of n terms errs by up to n roundings of its size; both recursions add three per step.
    unit = 8 * UNIT_ROUNDOFF * (reach + 8)
    largest = np.abs(weights).max(initial=0.0) / (1 - abs(phi))
    truncated = 4 * largest * abs(phi) ** reach if reach < len(after) else 0.0
    sums, errors = np.empty(reach + 1), np.empty(reach + 1)
    sums[0], errors[0] = added[0, -1], unit * added[1, -1] + truncated
    sums[1:], errors[1:] = grown[0] / shares, unit * grown[1] / shares
    return sums, errors


def _filtered(added: FloatArray, factor: float) -> FloatArray:
    """Return y with y_{b+1} = factor·y_b + x_{b+1}, starting from 0, along each row of x."""
    if added.shape[1] <= _FEW_STEPS:
        rows = [itertools.accumulate(row, lambda y, x: factor * y + x) for row in added.tolist()]
        return np.array([list(row) for row in rows])
    bands = np.ones((2, added.shape[1]))
    bands[1] = -factor
    return np.asarray(solve_banded((1, 0), bands, added.T).T)


def _best_window(
    left: FloatArray, right: FloatArray, target: int, size: int, knowledge: Knowledge
) -> tuple[int, int]:
    """Choose distances a, b (0: nobody known on that side) with the largest left[a] + right[b].

    An adversary who knows the ends may also know anything beyond them, so a window admits any
    number of known points, from its ends alone to everything outside it.
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
    """List the unknown points of a window; beyond its ends as many are known as is allowed."""
    if knowledge.known is not None:
        return tuple(p for p in range(size) if p != target and p not in knowledge.known)
    known = [target - step for step in range(a, target + 1)] if a else []
    known += range(target + b, size) if b else []
    known.sort(key=lambda point: abs(point - target - (b if point > target else -a)))
    chosen = set(known[: knowledge.most])
    return tuple(point for point in range(size) if point != target and point not in chosen)


class AlikeEngine(Engine):
    """Searches groups and series, once for all scales; fast at any size."""

    searches_below = True

    def __init__(self, problem: Problem) -> None:
        contributions = problem.contributions
        if contributions.weights is None:
            raise UnsupportedQueryError("a Gaussian model answers Sum, Mean and Linear.")
        model = problem.model
        if not isinstance(model, GaussianGroup | GaussianSeries):
            raise TypeError(f"this engine searches Gaussian groups and series, got {model!r}.")
        low, high = model.bounds
        answers = np.array(contributions.weights)
        self._units = Units.of(answers, np.array(high - low))
        clamped = contributions.clamped
        best: Bracket | None = None
        self._model, self._tail = model, None
        combined, together = _combined(self._units.weights(answers), model, clamped=clamped)
        for weights in combined:
            for slope in _slopes(problem, model, weights):
                # A clamped answer moves as far as that only if means and variance are free.
                attained = together and slope.attained and (not clamped or model.variance is None)
                found = _found(problem, model, slope, weights, attained=attained)
                if (
                    clamped
                    and model.variance is not None
                    and (best is None or found.upper > best.upper)
                ):
                    self._tail = slope, weights, found
                best = found if best is None else best.or_worse(found)
            if best is not None and clamped and model.variance is not None:
                best = best.with_lower(_strongest(problem, model, weights) or best)
        if best is None:
            raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
        self._unit = best

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Return the worst adversary at one scale; see `core.problem.Engine`."""
        found = self._units.at(scale, self._unit)
        if self._tail is None or limits.upper_only or found.upper <= limits.incumbent:
            return found
        slope, weights, attacked = self._tail
        low, high = self._model.bounds
        width = self._units.weight(high - low, scale)
        learned = _in_the_tails(self._model, slope, weights * width)
        return found.with_lower(dataclasses.replace(attacked, lower=learned))


def _combined(
    weights: FloatArray, model: GaussianGroup | GaussianSeries, *, clamped: bool
) -> tuple[list[FloatArray], bool]:
    """Return single answers whose worst movement is that of all answers together.

    Σ_m |β_m| is the largest |β| of Σ_m ±f_m over all signs. For very many clamped answers the sums
    of absolute weights bound all sign patterns: then what is found need not be attained.
    """
    width = weights.shape[1]
    if clamped and width > 1 and np.all(weights >= 0) and model.ends[0] >= 0:
        return [weights.sum(axis=1)], True  # no other pattern moves the answers as far
    if clamped and width > SIGNED_ANSWERS:
        return [np.abs(weights).sum(axis=1)], False
    if width > SIGNED_ANSWERS:
        raise UnsupportedQueryError(f"at most {SIGNED_ANSWERS} answers together, got {width}.")
    patterns = itertools.product([1.0], *[[1.0, -1.0]] * (width - 1))
    return [weights @ np.array(signs) for signs in patterns], True


def _slopes(
    problem: Problem, model: GaussianGroup | GaussianSeries, weights: FloatArray
) -> list[Slope]:
    knowledge, clamped = problem.knowledge, problem.contributions.clamped
    if isinstance(model, GaussianSeries):
        return _series_slopes(weights, model.ends, knowledge, clamped=clamped)
    # A coefficient ρ/(1+kρ) grows with ρ, so every movement is largest at an end of the range.
    low, high = model.correlation
    at_high = group_slope(weights, high, knowledge, clamped=clamped)
    at_low = None
    if low < high:
        # Of a clamped answer the smaller movement may be the one that is known to be attained.
        attained = -math.inf if clamped or at_high is None else at_high.value - at_high.error
        at_low = group_slope(weights, low, knowledge, clamped=clamped, attained=attained)
    return [slope for slope in (at_low, at_high) if slope is not None]


def _found(
    problem: Problem,
    model: GaussianGroup | GaussianSeries,
    slope: Slope,
    weights: FloatArray,
    *,
    attained: bool,
) -> Bracket:
    low, high = model.bounds
    leak = (high - low) * slope.value
    margin = (high - low) * slope.error + 4 * UNIT_ROUNDOFF * abs(leak)
    unknown = set(slope.unknown)
    attacked: Model = model
    if problem.contributions.clamped and model.variance is None:
        # Tuples that would move the answer the other way are held still.
        still = [u for u in slope.unknown if slope.sign * weights[u] * _sign(model, slope, u) < 0]
        attacked = model.concentrated(slope.correlation, still=still) or model
    elif problem.contributions.clamped and model.variance is not None:
        deviation = math.sqrt(model.variance)
        attacked = model.written_out(slope.correlation, deviation) or model
    return Bracket(
        upper=leak + margin,
        lower=max(0.0, leak - margin) if attained or (slope.attained and not unknown) else 0.0,
        witness=Witness(
            target=problem.names[slope.target],
            known={
                name: low / 2 + high / 2
                for position, name in enumerate(problem.names)
                if position != slope.target and position not in unknown
            },
            secrets=(low, high) if slope.sign > 0 else (high, low),
            output=-np.inf,
            model=attacked,
            index=problem.index,
        ),
        target=slope.target,
        unknown=slope.unknown,
    )


def _strongest(
    problem: Problem, model: GaussianGroup | GaussianSeries, weights: FloatArray
) -> Bracket | None:
    """Return what an adversary who knows all others learns, if such an adversary is admitted."""
    knowledge = problem.knowledge
    if not knowledge.admits_strongest or problem.hidden_noise:
        return None
    target = max(knowledge.targets, key=lambda place: abs(float(weights[place])))
    slope = Slope(
        value=abs(float(weights[target])),
        error=0.0,
        target=target,
        unknown=(),
        sign=-1.0 if weights[target] < 0 else 1.0,
        correlation=model.ends[0],
    )
    return _found(problem, model, slope, weights, attained=True)


def _in_the_tails(
    model: GaussianGroup | GaussianSeries, slope: Slope, weights: FloatArray
) -> float:
    """Return a lower bound on what an adversary learns from a clamped answer, 0 if none is known.

    The weights are in units of the width of the range over λ.
    """
    unknown, (low, high) = list(slope.unknown), model.bounds
    moving = slope.sign * weights
    if not unknown or slope.correlation < 0 or moving[[slope.target, *unknown]].min() < 0:
        return 0.0
    own, deviation = float(moving[slope.target]), math.sqrt(model.variance or 0.0) / (high - low)
    if isinstance(model, GaussianGroup):
        known = len(weights) - 1 - len(unknown)
        return group_tail(own, moving[unknown], slope.correlation, known=known, deviation=deviation)
    if len(unknown) < len(weights) - 1:
        return 0.0
    left, right = moving[: slope.target][::-1], moving[slope.target + 1 :]
    return series_tail(own, left, right, slope.correlation, deviation=deviation)


def _sign(model: GaussianGroup | GaussianSeries, slope: Slope, unknown: int) -> float:
    """Return the direction in which an unknown tuple moves with the target."""
    apart = abs(unknown - slope.target) if isinstance(model, GaussianSeries) else 1
    return -1.0 if slope.correlation < 0 and apart % 2 else 1.0
