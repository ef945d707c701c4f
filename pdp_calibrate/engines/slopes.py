"""Largest regression coefficients in Gaussian groups and series, over all known sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdp_calibrate.adversaries import Knowledge
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.models.base import FloatArray


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
    right, left = _Side.of(weights, phi), _Side.of(weights[::-1], phi)
    if knowledge.known is not None:
        (target,) = knowledge.targets
        before = max((p for p in knowledge.known if p < target), default=target)
        after = min((p for p in knowledge.known if p > target), default=target)
        a, b = target - before, after - target  # 0: nobody known on that side
        lefts, left_errors = left.sums(size - 1 - target, longest=a)
        rights, right_errors = right.sums(target, longest=b)
        value = float(weights[target] + lefts[a] + rights[b])
        error = float(left_errors[a] + right_errors[b]) + 4 * UNIT_ROUNDOFF * abs(value)
        unknown = tuple(p for p in range(size) if p != target and p not in knowledge.known)
        return Slope(value=value, error=error, target=target, unknown=unknown)
    upper, best = -1.0, (0.0, knowledge.targets[0], 0, 0)
    for target in knowledge.targets:
        lefts, left_errors = left.sums(size - 1 - target)
        rights, right_errors = right.sums(target)
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


@dataclass(frozen=True, kw_only=True)
class _Side:
    """What unknown points to the right of a target add to its coefficient."""

    weights: FloatArray
    phi: float
    filtered: FloatArray
    """H_j = Σ_{t<j} a_t φ^{j−t}, built step by step so that no power is divided by."""

    @classmethod
    def of(cls, weights: FloatArray, phi: float) -> _Side:
        filtered = np.zeros(len(weights) + 1)
        for j, weight in enumerate(weights):
            filtered[j + 1] = phi * (filtered[j] + weight)
        return cls(weights=weights, phi=phi, filtered=filtered)

    def sums(self, target: int, *, longest: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return the sums for every distance b of the known point, and bounds on their errors.

        Index 0 is for nobody known. Distances at which φ^b no longer shows in a float are left
        out: there the sum is that of index 0, whose error covers the difference.
        """
        after = self.weights[target + 1 :]
        fading = int(np.ceil(-45 / np.log(abs(self.phi)))) if self.phi else 1
        reach = max(min(len(after), fading), longest)
        powers = self.phi ** np.arange(1, reach + 1)
        terms = after[:reach] * powers
        partial, sizes = np.cumsum(terms), np.cumsum(np.abs(terms))
        near = np.concatenate([[0.0], partial])[:reach]
        behind = self.weights[target] + self.filtered[target]
        mirrored = self.filtered[target + 1 : target + 1 + reach] - powers * behind
        bridged = (near - powers * mirrored) / (1 - powers**2)
        everyone = partial[-1] if reach else 0.0
        # Each sum of n terms is off by n roundings of its size, the filter's by those of its own.
        largest = np.abs(self.weights).max(initial=0.0) / (1 - abs(self.phi))
        sizes = np.concatenate([[0.0], sizes])
        rounded = sizes[:reach] + 2 * np.abs(powers) * largest
        unit = 8 * UNIT_ROUNDOFF * (reach + 8)
        errors = unit * (np.abs(bridged) + rounded / (1 - powers**2)) / (1 - powers**2)
        bridged[:1] = errors[:1] = 0.0  # nobody stands between neighbours
        truncated = 4 * largest * abs(self.phi) ** reach if reach < len(after) else 0.0
        return (
            np.concatenate([[everyone], bridged]),
            np.concatenate([[unit * sizes[-1] + truncated], errors]),
        )


def _best_window(
    left: FloatArray, right: FloatArray, target: int, size: int, knowledge: Knowledge
) -> tuple[int, int]:
    """Choose distances a, b (0: nobody known on that side) with the largest left[a] + right[b].

    Whoever knows the ends may also know anything beyond them, so a window admits every number of
    known points between its ends' and all outside it.
    """
    if knowledge.most == 0:
        return 0, 0
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
