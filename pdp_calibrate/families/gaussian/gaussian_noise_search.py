"""The search for the adversary who learns a tuple most precisely from answers with Gaussian noise.

A local search finds a good adversary, and best-first branch and bound proves that nobody is worse;
the bounds are those of `noise_nodes`. What is returned is μ, rounded up.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import NOISY_CLIMBING_WORK, NOISY_CLIMBS
from pdp_calibrate.families.gaussian.blocks import Block
from pdp_calibrate.families.gaussian.branch_and_bound import explored
from pdp_calibrate.families.gaussian.instance import checked_tau
from pdp_calibrate.families.gaussian.noise_nodes import NoisyNodes
from pdp_calibrate.families.gaussian.sign_certificate import certified_upper
from pdp_calibrate.families.gaussian.sphere import KNOWN, UNKNOWN

MERGED = 16 * UNIT_ROUNDOFF
"""e where answers were only merged; see `Rows`."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Answers with independent noise of one variance; only BᵀB counts."""

    rows: FloatArray
    """B, one row per answer that is not a multiple of another, at most one per tuple."""
    changed: float
    """e: exact rows differ from B by at most 2e times the length of each column of B."""


def merged_rows(weights: FloatArray) -> Rows:
    """Replace answers that are multiples of each other by one, and too many by their QR factor.

    Answers a·u and b·u with equal noise are worth one answer √(a² + b²)·u, rounded up. They need to
    be multiples only up to rounding, and the factor is rounded: B is slightly inexact.
    """
    groups: list[list[FloatArray]] = []
    for row in weights:
        peak = np.abs(row).max()
        if peak == 0:
            continue
        for group in groups:
            other = group[0] / np.abs(group[0]).max()
            unit = row / peak if row @ other >= 0 else -row / peak
            if np.all(np.abs(unit - other) <= 4 * UNIT_ROUNDOFF * np.abs(other)):
                group.append(row)
                break
        else:
            groups.append([row])
    if not groups:
        return Rows(rows=np.zeros((1, weights.shape[1])), changed=0.0)
    rows = np.array([_added(group) for group in groups])
    changed = MERGED if any(len(group) > 1 for group in groups) else 0.0
    if len(rows) > rows.shape[1]:
        changed += 16 * len(rows) * rows.shape[1] * UNIT_ROUNDOFF
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    return Rows(rows=rows, changed=changed)


def _added(group: list[FloatArray]) -> FloatArray:
    """Return one answer worth as much as several multiples of it."""
    if len(group) == 1:
        return group[0]
    peaks = np.abs(group).max(axis=1)
    size = math.sqrt(math.fsum((peaks / peaks[0]) ** 2))
    return np.asarray(group[0] * (size * (1 + 16 * UNIT_ROUNDOFF)))


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """One adversary at one scale."""

    upper: float
    """√gain in units of the target's factor, for the worst covariance of the set, rounded up."""
    lower: float
    """The same for the centre, rounded down."""
    data_share: float
    """How much of the noise is the data's own."""
    signs: FloatArray
    """Direction in which the answers move with the target."""


@dataclass(frozen=True, kw_only=True)
class Part(Block):
    """Tuples that are searched together, and how much of their own variance counts as noise."""

    kept: float
    """κ."""
    changed: float
    """e, how inexact the rows are; see `Rows`."""

    def tau_at(self, noise: float) -> float:
        """Relative error of conditional moments, also of whitened ones where there are several.

        κV + z has a correlation matrix whose smallest eigenvalue is at least z/(z + max Var f).
        """
        answers = len(self.instance.coordinates)
        if answers == 1:
            return self.search_tau
        largest = float(np.diagonal(self.totals).max())
        steps = 8 * answers * (answers + 2) * UNIT_ROUNDOFF
        return checked_tau(self.search_tau + steps * (1 + self.kept * largest / noise))

    @functools.cached_property
    def products(self) -> FloatArray:
        """Cov(f, x), one row per answer."""
        return np.asarray(self.instance.coordinates @ self.instance.covariance)

    @functools.cached_property
    def totals(self) -> FloatArray:
        """Cov(f)."""
        return np.asarray(self.products @ self.instance.coordinates.T)

    def charged(self, value: float, noise: float) -> float:
        """Add what inexact answers may add to a μ, rounded up.

        The true rows are B + D, the columns of D at most η = 2e times as long as those of B. For
        every t > 0, (B + D)ᵀ(B + D) ⪯ (1 + t)·BᵀB + (1 + 1/t)·DᵀD, and DᵀD/z ⪯ c·Ω with
        c = η²·‖B‖²·trace(H)/z, because (Σ_j ‖D_j‖·|x_j|)² is at most η²‖B‖²·‖x‖² and
        ‖x‖² ≤ trace(H)·xᵀΩx. So a precision grows by a factor of at most 1 + (1 + 1/t)·c beside
        what t does to the noise, and with t = √c

            μ² ≤ (1 + r)·(1 + t)·μ² + r·max_i M_i²·Ω_ii,    r = c + √c.
        """
        rate, shift = self._inexactness(noise)
        if rate == 0:
            return value
        return math.sqrt(value**2 * (1 + rate) ** 2 + shift) * ROUND_UP

    def attained(self, value: float, noise: float) -> float:
        """Take from a μ what inexact answers may take, rounded down: as `charged`, the other way.

        BᵀB ⪯ (1 + t)·(B + D)ᵀ(B + D) + (1 + 1/t)·DᵀD, so the true μ, charged, is at least this μ.
        """
        rate, shift = self._inexactness(noise)
        if rate == 0:
            return value
        return math.sqrt(max(0.0, value**2 - shift)) / (1 + rate) * ROUND_DOWN

    def _inexactness(self, noise: float) -> tuple[float, float]:
        """Return r, which is at least t as well, and r·max_i M_i²·Ω_ii; both rounded up."""
        if self.changed == 0:
            return 0.0, 0.0
        size = float((self.instance.coordinates**2).sum() * np.trace(self.instance.covariance))
        share = (2 * self.changed) ** 2 * (size / noise)
        rate = (share + math.sqrt(share)) * (1 + 1e-6)
        widest = float((self.instance.factors**2 * np.diagonal(self.precision)).max())
        return rate, rate * widest * (1 + 1e-6)


def evaluated(part: Part, target: int, known: Sequence[int], noise: float) -> Evaluated:
    """Evaluate one adversary, with its rounding error.

    One Cholesky factor in the order K, i, U gives everything without cancellation: with y = Lᵀa for
    each answer, b = y_i/L_ii and V holds the inner products of the answers' parts y_U.
    """
    instance = part.instance
    unknown = [k for k in range(instance.size) if k != target and k not in set(known)]
    rows = instance.coordinates
    multiplier = float(instance.multipliers[len(known)])
    if not unknown:
        # With everyone else known, answers move by the target's weight whatever the covariance is.
        slope, own, deviation, tau = rows[:, target], np.zeros((len(rows), 0)), 1.0, 0.0
        multiplier = 0.0
    else:
        order = [*known, target, *unknown]
        factor = np.linalg.cholesky(instance.covariance[np.ix_(order, order)])
        place = len(known)
        answers = rows[:, order[place:]] @ factor[place:, place:]
        deviation = float(factor[place, place])
        slope, own = answers[:, 0] / deviation, answers[:, 1:]
        tau = part.tau_at(noise)
    spread = own @ own.T
    counted = _root_gain(slope, part.kept * spread, noise)
    centre = counted if part.kept == 1 else _root_gain(slope, spread, noise)
    size = float(np.trace(spread))
    around = math.sqrt(size / (part.kept * size + noise)) / deviation
    widest = around
    if len(rows) > 1 and unknown:
        total = float(np.trace(part.totals))
        widest = math.sqrt(total / (part.kept * total + noise)) / deviation
    rounding = (16 + 8 * instance.size) * UNIT_ROUNDOFF + 2 * tau
    value = counted + multiplier * around
    upper = value + 2 * tau * (1 + multiplier) * widest + rounding * value
    alone = math.sqrt(float(slope @ slope) / noise)
    return Evaluated(
        upper=upper,
        lower=max(0.0, centre * (1 - rounding) - 2 * tau * widest),
        data_share=max(0.0, 1 - (centre / alone) ** 2) if alone else 0.0,
        signs=np.where(slope == 0, 1.0, np.sign(slope)),
    )


def _root_gain(slope: FloatArray, spread: FloatArray, noise: float) -> float:
    if len(slope) == 1:
        return abs(float(slope[0])) / math.sqrt(float(spread[0, 0]) + noise)
    factor = np.linalg.cholesky(spread + noise * np.eye(len(slope)))
    return float(np.linalg.norm(np.linalg.solve(factor, slope)))


def worst_of(
    part: Part,
    noise: float,
    *,
    incumbent: float,
    deadline: float,
    starts: list[tuple[int, tuple[int, ...]]],
) -> tuple[int, tuple[int, ...], float]:
    """Return target and known set of the worst adversary found, and the upper end for all."""
    instance = part.instance
    factors = instance.factors

    def judged(target: int, known: Sequence[int]) -> float:
        upper = evaluated(part, target, known, noise).upper * float(factors[target])
        return part.charged(upper * ROUND_UP, noise)

    if part.known is not None:
        (target,) = instance.targets
        return target, part.known, judged(target, part.known)
    others = {t: tuple(k for k in range(instance.size) if k != t) for t in instance.targets}
    if not instance.coordinates.any():
        target = instance.targets[0]
        return target, others[target][: instance.fewest], 0.0
    if instance.fewest == instance.most and instance.most in (0, instance.size - 1):
        values = {t: judged(t, others[t][: instance.most]) for t in instance.targets}
        target = max(values, key=values.__getitem__)
        return target, others[target][: instance.most], values[target]
    cap = math.inf
    if instance.fewest == 0 and instance.is_certain and len(instance.coordinates) == 1:
        # K = ∅ has the largest coefficient; without the data's own noise that bounds every K.
        cap = (certified_upper(instance, part.precision) or math.inf) / math.sqrt(noise) * ROUND_UP
        cap = part.charged(cap, noise)
        if cap <= incumbent:
            return instance.targets[0], (), cap
    # Climb from both ends for the most promising targets, then branch and bound.
    tau = part.tau_at(noise)
    nodes = NoisyNodes(instance, part.precision, tau=tau, noise=noise, kept=part.kept)
    start = _climbed(
        part, noise, keys=nodes.keys, targets=nodes.targets, incumbent=incumbent,
        deadline=deadline, starts=starts,
    )  # fmt: skip
    found = explored(nodes, instance, incumbent=incumbent, deadline=deadline, start=start)
    return found.target, found.known, min(part.charged(found.upper, noise), cap)


def _climbed(
    part: Part,
    noise: float,
    *,
    keys: FloatArray,
    targets: npt.NDArray[np.int64],
    incumbent: float,
    deadline: float,
    starts: list[tuple[int, tuple[int, ...]]],
) -> tuple[float, int, npt.NDArray[np.uint8]]:
    """Add or remove one known tuple at a time while the leakage grows; return the best found."""
    instance = part.instance
    tries = [(t, set(known)) for t, known in starts]
    climbs = max(1, min(NOISY_CLIMBS, int(NOISY_CLIMBING_WORK / instance.size**4)))
    for target in targets[:climbs].tolist():
        others = [k for k in range(instance.size) if k != target]
        tries += [(target, set(others[: instance.fewest])), (target, set(others[: instance.most]))]
    best, owner, chosen = -1.0, int(targets[0]), set[int]()
    bounds = dict(zip(targets.tolist(), keys.tolist(), strict=True))
    for target, known in tries:
        if bounds[target] <= max(best, incumbent) or time.monotonic() > deadline:
            continue
        value = _climb(part, target, known, noise, deadline=deadline)
        if value * instance.factors[target] > best:
            best, owner, chosen = value * float(instance.factors[target]), target, known
    if best < 0:
        owner = int(targets[0])
        chosen = {k for k in range(instance.size) if k != owner}
        while len(chosen) > instance.fewest:
            chosen.pop()
    # A climb accumulates rounding; too large a value would close nodes that beat the true one.
    sure = evaluated(part, owner, sorted(chosen), noise).lower * float(instance.factors[owner])
    state = np.full(instance.size, UNKNOWN, dtype=np.uint8)
    state[sorted(chosen)] = KNOWN
    return sure, int(np.flatnonzero(targets == owner)[0]), state


def _climb(part: Part, target: int, known: set[int], noise: float, *, deadline: float) -> float:
    """Flip one tuple at a time, in place, while √gain grows; return the last value."""
    instance = part.instance
    size = instance.size
    value = -1.0
    for _ in range(4 * size):
        values = _flipped(part, target, known, noise)
        inside = np.zeros(size, dtype=bool)
        inside[list(known)] = True
        values[inside & (len(known) <= instance.fewest)] = -1.0
        values[~inside & (len(known) >= instance.most)] = -1.0
        values[target] = -1.0
        if value < 0:
            value = evaluated(part, target, sorted(known), noise).lower
        flip = int(values.argmax())
        if values[flip] <= value * (1 + 1e-12) or time.monotonic() > deadline:
            break
        known ^= {flip}
        value = float(values[flip])
    return value


def _flipped(part: Part, target: int, known: set[int], noise: float) -> FloatArray:
    """Return √gain after each single flip: one tuple more known, or one fewer."""
    instance = part.instance
    size, kept = instance.size, part.kept
    rows, products, totals = instance.coordinates, part.products, part.totals
    values = np.full(size, -1.0)
    inside = sorted(known)
    hidden = [k for k in range(size) if k != target and k not in known]
    # Given K: conditional covariances of x_i, every x_k and the answers.
    solved = np.linalg.solve(
        instance.covariance[np.ix_(inside, inside)],
        np.column_stack([instance.covariance[inside], products[:, inside].T]),
    )
    left = instance.covariance - instance.covariance[:, inside] @ solved[:, :size]
    cross = products - products[:, inside] @ solved[:, :size]
    spread = totals - products[:, inside] @ solved[:, size:]
    if hidden:
        part_k = left[target, hidden] / left[hidden, hidden]
        variance = left[target, target] - part_k * left[target, hidden]
        slope = (cross[:, [target]] - part_k * cross[:, hidden]) / variance
        own = cross[:, hidden]
        rest = spread[:, :, np.newaxis] - own[:, np.newaxis] * own / left[hidden, hidden]
        rest = rest - slope[:, np.newaxis] * slope * variance
        values[hidden] = _root_gains(slope, rest, kept, noise)
    if inside:
        # With U eliminated: the precision of the rest, and the answers' coefficients on it.
        there = np.linalg.solve(
            part.precision[np.ix_(hidden, hidden)],
            np.column_stack([part.precision[hidden], rows[:, hidden].T]),
        )
        left = part.precision - part.precision[:, hidden] @ there[:, :size]
        slopes = rows - rows[:, hidden] @ there[:, :size]
        rest = rows[:, hidden] @ there[:, size:]
        part_k = left[target, inside] / left[inside, inside]
        own = slopes[:, inside]
        slope = slopes[:, [target]] - part_k * own
        added = rest[:, :, np.newaxis] + own[:, np.newaxis] * own / left[inside, inside]
        values[inside] = _root_gains(slope, added, kept, noise)
    return np.asarray(np.nan_to_num(values, nan=-1.0))


def _root_gains(slope: FloatArray, spread: FloatArray, kept: float, noise: float) -> FloatArray:
    """Return √(bᵀ(κV + z)⁻¹b) for many known sets: answers first, sets last."""
    if len(slope) == 1:
        return np.asarray(np.abs(slope[0]) / np.sqrt(np.maximum(kept * spread[0, 0], 0) + noise))
    metric = kept * np.moveaxis(spread, -1, 0) + noise * np.eye(len(slope))
    solved = np.linalg.solve(metric, slope.T[..., np.newaxis])[..., 0]
    return np.asarray(np.sqrt(np.maximum((solved * slope.T).sum(axis=1), 0.0)))
