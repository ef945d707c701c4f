"""Gaussian noise on Gaussian tuples: the worst adversary, certified.

x ~ N(m, Σ), answers r = Bx + N(0, σ²). Given (x_i, x_K) the answers are normal with mean shifted by
b·x_i and covariance V + σ²: b are the coefficients of x_i in the regressions of the answers on
(x_i, x_K), V = Cov(Bx | x_i, x_K). Secrets at most M_i apart shift one normal law, so adversary
A(i,K) is exactly μ-GDP with

    μ(i,K)² = M_i²·bᵀ(V + σ²)⁻¹b = M_i²·( 1/Var(x_i | x_K, r) − 1/Var(x_i | x_K) ).

What is unknown is noise as well, so knowing nothing need not be worst. Releases compose by this
formula, all of them as rows of B: their own μ² must not be added, for one answer may tell what
blurs the other. Engines return brackets of μ.

V rests on the variance of the model, which Laplace noise never uses. Only so much of it counts as
the model promises: κ·V with κ = 1 for a stated covariance; κ = 1 − τ for a Loewner ball (and for
one from N rows, where 1/(1+δ)² ≥ 1 − τ); κ = 0 for the bands of a sample and for a variance that is
not stated. An uncertain covariance adds at most m·√(t/(κt + σ²))/√Var(x_i|x_K), t = trace V, to
√gain: as for Laplace noise, seen in the metric of the noise.

Clamped answers are not linear. The coupling of `clamped` moves every answer by at most Δ_m at once,
so μ² ≤ Σ_m (Δ_m/σ)² (hockey-stick divergences are jointly convex); each Δ_m is bounded by the
engine for Laplace noise.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.family import Engine, engine_of
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.families.gaussian.blocks import components
from pdp_calibrate.families.gaussian.branch_and_bound import explored
from pdp_calibrate.families.gaussian.instance import Instance, checked_tau, precision_of, search_tau
from pdp_calibrate.families.gaussian.regression import center_of, multipliers_of
from pdp_calibrate.families.gaussian.sets import LoewnerBall, SampledGaussian
from pdp_calibrate.families.gaussian.sign_certificate import certified_upper
from pdp_calibrate.families.gaussian.units import Units

_SMALLEST_RATIO, _LARGEST_RATIO = 1e-140, 1e140  # of the scale to the weights: squares stay finite


MERGED = 16 * UNIT_ROUNDOFF
"""How exact BᵀB is where answers were merely merged, see `Rows`."""


_LEAST_VARIANCE = 1e-30  # of the noise, relative to the weights: less is no noise at all


_CLIMBED = 12  # targets from which a local search starts


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Answers with independent noise of one variance; only BᵀB counts."""

    rows: FloatArray
    """B, one row per answer that is no multiple of another, at most one per tuple."""
    changed: float
    """e: the entries of BᵀB are right to within e·‖B_j‖·‖B_k‖, columns of B."""


def merged_rows(weights: FloatArray) -> Rows:
    """Replace answers that are multiples of each other by one, and too many by their QR factor.

    Answers a·u and b·u with equal noise tell as much as √(a² + b²)·u, rounded up. They need be
    multiples only up to rounding, and the factor is rounded: both change BᵀB a little.
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
    """Return one answer that tells as much as several multiples of it."""
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
class Part:
    """Tuples that are searched together, rescaled to near-unit variances."""

    positions: list[int]
    """Where they are in the problem."""
    instance: Instance
    """Covariance, answers, factors and admitted sizes."""
    known: tuple[int, ...] | None
    """Whom a named adversary knows, as positions in the part."""
    kept: float
    """κ."""
    changed: float
    """How exact the answers are, see `Rows`."""

    @functools.cached_property
    def precision(self) -> FloatArray:
        """The inverse of the covariance."""
        return precision_of(self.instance)

    @functools.cached_property
    def _tau(self) -> float:
        return search_tau(self.instance, self.precision)

    def tau(self, noise: float) -> float:
        """Relative error of conditional moments, of whitened ones too where there are several.

        κV + z has a correlation matrix whose smallest eigenvalue is at least z/(z + max Var f).
        """
        answers = len(self.instance.coordinates)
        if answers == 1:
            return self._tau
        largest = float(np.diagonal(self.totals).max())
        steps = 8 * answers * (answers + 2) * UNIT_ROUNDOFF
        return checked_tau(self._tau + steps * (1 + self.kept * largest / noise))

    @functools.cached_property
    def products(self) -> FloatArray:
        """Cov(f, x), one row per answer."""
        return np.asarray(self.instance.coordinates @ self.instance.covariance)

    @functools.cached_property
    def totals(self) -> FloatArray:
        """Cov(f)."""
        return np.asarray(self.products @ self.instance.coordinates.T)

    def charged(self, value: float, noise: float) -> float:
        """Add what inexact answers may add to a μ.

        BᵀB + E with |E| ≤ κ'·Ω changes a precision by a factor 1 + κ' at most, so μ² grows by
        κ'·(μ² + max_i M_i²·Ω_ii), κ' = e·‖B‖²·trace(H)/z.
        """
        if self.changed == 0:
            return value
        size = float((self.instance.coordinates**2).sum() * np.trace(self.instance.covariance))
        rate = self.changed * size / noise * 2
        widest = float((self.instance.factors**2 * np.diagonal(self.precision)).max())
        return math.sqrt(value**2 * (1 + rate) + 2 * rate * widest) * ROUND_UP


def evaluated(part: Part, target: int, known: Sequence[int], noise: float) -> Evaluated:
    """Evaluate one adversary, with its rounding error.

    One Cholesky factor in the order K, i, U gives everything without cancellation: with y = Lᵀa for
    each answer, b = y_i/L_ii and V are the products of what the answers have on U.
    """
    instance = part.instance
    unknown = [k for k in range(instance.size) if k != target and k not in set(known)]
    rows = instance.coordinates
    multiplier = float(instance.multipliers[len(known)])
    if not unknown:
        # Knowing everyone else, the answers move by their own weights whatever the covariance is.
        slope, own, deviation, tau = rows[:, target], np.zeros((len(rows), 0)), 1.0, 0.0
        multiplier = 0.0
    else:
        order = [*known, target, *unknown]
        factor = np.linalg.cholesky(instance.covariance[np.ix_(order, order)])
        place = len(known)
        answers = rows[:, order[place:]] @ factor[place:, place:]
        deviation = float(factor[place, place])
        slope, own = answers[:, 0] / deviation, answers[:, 1:]
        tau = part.tau(noise)
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


class GaussianNoiseEngine:
    """Searches Gaussian tuples, or a set of Gaussians, at any scale σ of Gaussian noise.

    Brackets are of μ. Independent tuples outside the problem that stay unknown blur the answer
    further; they are dropped, which is the sound direction.

    Parameters
    ----------
    problem
        Model, answers and adversaries.
    kept
        The part κ of the data's own variance that counts; what the model promises by default.
    """

    def __init__(self, problem: Problem, *, kept: float | None = None) -> None:
        contributions = problem.contributions
        if contributions.weights is None:
            raise UnsupportedQueryError("a continuous model answers Sum, Mean and Linear only.")
        self._problem = problem
        self._clamped = one_by_one(problem) if contributions.clamped else None
        if self._clamped is not None:
            return
        answers = np.column_stack(contributions.weights)  # one row per coordinate
        center = center_of(problem.model)
        self._units = Units.of(answers, np.sqrt(np.diagonal(center.covariance)))
        merged = merged_rows(self._units.weights(answers))
        self._parts = parts_of(problem, merged, kept_of(problem) if kept is None else kept)
        if not self._parts:
            raise PdpError("no adversary of the set attacks a tuple of this model.")
        self._seen: list[tuple[int, int, tuple[int, ...]]] = []

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Bracket the largest μ at one scale; see `core.family.Engine`."""
        del enough
        if self._clamped is not None:
            return coupled_bracket(self._clamped, scale, deadline=deadline)
        noise = noise_in(self._units, scale)
        best: Bracket | None = None
        for place, part in enumerate(self._parts):
            threshold = max(incumbent, best.upper) if best else incumbent
            starts = [(target, known) for where, target, known in self._seen if where == place]
            target, known, upper = _worst(
                part, noise, incumbent=threshold, deadline=deadline, starts=starts
            )
            if (place, target, known) not in self._seen:
                self._seen.append((place, target, known))
            found = self._found(part, target, known, noise, upper)
            best = found if best is None else best.or_worse(found)
        if best is None:
            raise PdpError("no adversary of the set attacks a tuple of this model.")
        return best

    def variance_needed(self, mu: float, *, deadline: float = math.inf) -> tuple[float, Bracket]:
        """Return a σ² at which nobody exceeds μ, and the bracket there: max of β²M²/μ² − s².

        It is the smallest one to 1e-9 where searches can finish. For one answer; 0 if no noise is
        needed, because what the adversaries do not know hides the target well enough.
        """
        if self._clamped is not None or len(self._parts[0].instance.coordinates) != 1:
            raise UnsupportedQueryError(
                "the variance needed has a closed form for one answer only."
            )
        least = 4.0**self._units.exponent * _LEAST_VARIANCE
        everyone = range(self._problem.knowledge.total)
        extremes = [
            self._needed(target, tuple(k for k in everyone if k != target and k not in known), mu)
            for target in self._problem.knowledge.targets
            for known in self._extremes(target)
        ]
        variance = max(least, *extremes)
        found = self.bracket(_root_up(variance), incumbent=mu, deadline=deadline)
        slack = 1e-12
        solved: set[tuple[int, tuple[int, ...]]] = set()
        while found.upper > mu:
            who = found.target, found.unknown
            needed = self._needed(*who, mu) * (1 + 1e-12)
            if who in solved or needed <= variance:
                # What stands against this variance is a bound or rounding, not an adversary.
                needed = variance * (found.upper / mu) ** 2 * (1 + slack)
                slack *= 2
            solved.add(who)
            variance = needed
            found = self.bracket(_root_up(variance), incumbent=mu, deadline=deadline)
        return (0.0 if variance == least else _root_up(variance) ** 2 * ROUND_UP), found

    def _extremes(self, target: int) -> list[set[int]]:
        knowledge = self._problem.knowledge
        if knowledge.known is not None:
            return [set(knowledge.known)]
        others = [k for k in range(knowledge.total) if k != target]
        return [set(others[: knowledge.fewest]), set(others[: knowledge.most])]

    def _needed(self, target: int, unknown: tuple[int, ...], mu: float) -> float:
        """Return β²M²/μ² − s² for one adversary."""
        for part in self._parts:
            if target in part.positions:
                places = {position: place for place, position in enumerate(part.positions)}
                hidden = {places[u] for u in unknown if u in places}
                own = places[target]
                known = [k for k in range(part.instance.size) if k != own and k not in hidden]
                slope, spread = _moments(part, own, known)
                factor = float(part.instance.factors[own])
                value = (slope * factor / mu) ** 2 - part.kept * spread
                return value * 4.0**self._units.exponent
        raise PdpError("the target is not a tuple of this model.")

    def _found(
        self, part: Part, target: int, known: tuple[int, ...], noise: float, upper: float
    ) -> Bracket:
        problem = self._problem
        one = evaluated(part, target, known, noise)
        factor = float(part.instance.factors[target])
        attained = one.lower * factor * (1 - 16 * UNIT_ROUNDOFF)
        lower = max(0.0, 2 * attained - part.charged(attained, noise))
        place = part.positions[target]
        inside = {part.positions[k] for k in known}
        outside = [k for k in range(problem.knowledge.total) if k not in set(part.positions)]
        if problem.knowledge.known is not None:
            inside = set(problem.knowledge.known)
        else:
            inside.update(outside)  # independent of the target: knowing them only takes noise away
        center = center_of(problem.model)
        witness = Witness(
            target=problem.names[place],
            known={problem.names[k]: float(center.mean[k]) for k in sorted(inside)},
            secrets=center.bounds[place],
            output=-math.inf if one.signs[0] > 0 else math.inf,
            model=center,
            index=problem.index,
            data_share=one.data_share,
        )
        return Bracket(
            upper=upper,
            lower=min(lower, upper) if not problem.hidden_noise else 0.0,
            witness=witness,
            target=place,
            unknown=tuple(
                k for k in range(problem.knowledge.total) if k != place and k not in inside
            ),
        )


def parts_of(problem: Problem, merged: Rows, kept: float) -> list[Part]:
    """Return the tuples that are searched together.

    For adversaries who may know anything, independent tuples are searched apart: those who know
    the rest learn most. For others all are one part, as what they leave unknown blurs the answer.
    """
    knowledge = problem.knowledge
    everyone = list(range(len(problem.model.names)))
    free = knowledge.fewest == 0 and knowledge.admits_strongest and knowledge.known is None
    places = components(problem.model) if free else [everyone]
    found = []
    for positions in places:
        where = {position: place for place, position in enumerate(positions)}
        targets = tuple(where[target] for target in knowledge.targets if target in where)
        if not targets:
            continue
        named = knowledge.known
        known = None if named is None else tuple(where[k] for k in sorted(named) if k in where)
        size = len(positions)
        instance = _rescaled(problem, merged.rows, positions)
        found.append(
            Part(
                positions=positions,
                instance=dataclasses.replace(
                    instance,
                    targets=targets,
                    fewest=max(0, min(knowledge.fewest, size - 1)) if known is None else len(known),
                    most=min(knowledge.most, size - 1) if known is None else len(known),
                ),
                known=known,
                kept=kept,
                changed=merged.changed,
            )
        )
    return found


def kept_of(problem: Problem) -> float:
    """Return κ, the part of the data's own variance that the model promises."""
    model = problem.model
    if isinstance(model, SampledGaussian):
        return 0.0
    return (1 - model.radius) * (1 - 4 * UNIT_ROUNDOFF) if isinstance(model, LoewnerBall) else 1.0


def _rescaled(problem: Problem, rows: FloatArray, positions: list[int]) -> Instance:
    """Rescale tuples by powers of two, which is exact, until their variances lie in [1, 4)."""
    center = center_of(problem.model)
    covariance = center.covariance[np.ix_(positions, positions)]
    exponents = np.frexp(np.sqrt(np.diagonal(covariance)))[1] - 1
    with np.errstate(over="ignore"):
        factors = np.ldexp(center.widths[positions] * (1 + 8 * UNIT_ROUNDOFF), -exponents)
    if not np.all(np.isfinite(factors)):
        raise PdpError("the ranges are too wide for their variances in floating point.")
    multipliers = multipliers_of(problem.model, functions=len(rows))
    return Instance(
        covariance=np.ldexp(np.ldexp(covariance, -exponents), -exponents[:, np.newaxis]),
        coordinates=np.ldexp(rows[:, positions], exponents),
        factors=factors,
        multipliers=multipliers[: len(positions)].copy(),
        targets=(),
        fewest=0,
        most=len(positions) - 1,
    )


def _root_up(variance: float) -> float:
    return math.sqrt(variance) * ROUND_UP


def noise_in(units: Units, scale: float) -> float:
    """Return the variance of the noise in units of the weights."""
    ratio = math.ldexp(scale, -units.exponent) if abs(units.exponent) < 2000 else 0.0
    if not _SMALLEST_RATIO < ratio < _LARGEST_RATIO:
        raise PdpError(
            f"scale {scale:.3g} is too far from the size of the answers to certify a leakage."
            " Measure the values in another unit."
        )
    return ratio * ratio * (1 - 2 * UNIT_ROUNDOFF)


def _worst(
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
        # Nobody known has the largest coefficient; without the data's noise that bounds everyone.
        cap = (certified_upper(instance, part.precision) or math.inf) / math.sqrt(noise) * ROUND_UP
        if cap <= incumbent:
            return instance.targets[0], (), cap
    target, known, upper = _searched(
        part, noise, incumbent=incumbent, deadline=deadline, starts=starts
    )
    return target, known, part.charged(min(upper, cap), noise)


def _searched(
    part: Part,
    noise: float,
    *,
    incumbent: float,
    deadline: float,
    starts: list[tuple[int, tuple[int, ...]]],
) -> tuple[int, tuple[int, ...], float]:
    """Climb from both ends for the most promising targets, then branch and bound."""
    from pdp_calibrate.families.gaussian import gaussian_noise_kernels as kernels

    instance, precision = part.instance, part.precision
    tau = part.tau(noise)
    total = float(np.trace(part.totals))
    widest = float(instance.multipliers.max())
    none = np.zeros_like(part.totals)
    targets = np.array(instance.targets, dtype=np.int64)
    keys = np.array(
        [
            instance.factors[t]
            * kernels.node_bound(
                instance.covariance[t, t], part.products[:, t].copy(), part.totals,
                1 / precision[t, t], instance.coordinates[:, t].copy(), none,
                total, tau, widest, part.kept, noise,
            )
            for t in targets
        ]
    )  # fmt: skip
    order = np.argsort(-keys)
    keys, targets = keys[order], targets[order]
    start = _climbed(
        part, noise, keys=keys, targets=targets, incumbent=incumbent, deadline=deadline,
        starts=starts,
    )  # fmt: skip
    found = explored(
        kernels.advance_noisy,
        instance,
        (
            instance.covariance,
            precision,
            instance.coordinates,
            part.products,
            part.totals,
            targets,
            instance.factors,
            np.array([noise, part.kept]),
        ),
        keys=keys,
        targets=targets,
        tau=tau,
        incumbent=incumbent,
        deadline=deadline,
        start=start,
    )
    return found.target, found.known, found.upper


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
    """Let adversaries know one tuple more or less while that leaks more; return the best found."""
    from pdp_calibrate.families.gaussian.kernels import KNOWN, UNKNOWN

    instance = part.instance
    tries = [(t, set(known)) for t, known in starts]
    for target in targets[:_CLIMBED].tolist():
        others = [k for k in range(instance.size) if k != target]
        tries += [(target, set(others[: instance.fewest])), (target, set(others[: instance.most]))]
    best, owner, chosen = -1.0, int(targets[0]), set[int]()
    bounds = dict(zip(targets.tolist(), keys.tolist(), strict=True))
    for target, known in tries:
        if bounds[target] <= max(best, incumbent) or time.monotonic() > deadline:
            continue
        value = _climb(part, target, known, noise)
        if value * instance.factors[target] > best:
            best, owner, chosen = value * float(instance.factors[target]), target, known
    if best < 0:
        owner = int(targets[0])
        chosen = {k for k in range(instance.size) if k != owner}
        while len(chosen) > instance.fewest:
            chosen.pop()
    # A climb loses digits on its way; a value too large would close nodes that beat the true one.
    sure = evaluated(part, owner, sorted(chosen), noise).lower * float(instance.factors[owner])
    state = np.full(instance.size, UNKNOWN, dtype=np.uint8)
    state[sorted(chosen)] = KNOWN
    return sure, int(np.flatnonzero(targets == owner)[0]), state


def _climb(part: Part, target: int, known: set[int], noise: float) -> float:
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
            value = _value(part, target, known, noise)
        flip = int(values.argmax())
        if values[flip] <= value * (1 + 1e-12):
            break
        known ^= {flip}
        value = float(values[flip])
    return value


def _value(part: Part, target: int, known: set[int], noise: float) -> float:
    return evaluated(part, target, sorted(known), noise).lower


def _flipped(part: Part, target: int, known: set[int], noise: float) -> FloatArray:
    """Return √gain after each single flip: one more known, or one known less."""
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
        # Without U: the precision of the rest and the coefficients of the answers in it.
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
    return np.nan_to_num(values, nan=-1.0)


def _root_gains(slope: FloatArray, spread: FloatArray, kept: float, noise: float) -> FloatArray:
    """Return √(bᵀ(κV + z)⁻¹b) for many known sets: answers first, sets last."""
    if len(slope) == 1:
        return np.asarray(np.abs(slope[0]) / np.sqrt(np.maximum(kept * spread[0, 0], 0) + noise))
    metric = kept * np.moveaxis(spread, -1, 0) + noise * np.eye(len(slope))
    solved = np.linalg.solve(metric, slope.T[..., np.newaxis])[..., 0]
    return np.sqrt(np.maximum((solved * slope.T).sum(axis=1), 0.0))


def _moments(part: Part, target: int, known: Sequence[int]) -> tuple[float, float]:
    """Return coefficient and conditional variance of one answer."""
    instance = part.instance
    unknown = [k for k in range(instance.size) if k != target and k not in set(known)]
    order = [*known, target, *unknown]
    factor = np.linalg.cholesky(instance.covariance[np.ix_(order, order)])
    place = len(known)
    answer = instance.coordinates[0, order[place:]] @ factor[place:, place:]
    return float(answer[0] / factor[place, place]), float(answer[1:] @ answer[1:])


def one_by_one(problem: Problem) -> list[Engine]:
    """Return one engine for Laplace noise per answer: at scale σ each bounds its shift over σ."""
    contributions = problem.contributions
    return [
        engine_of(dataclasses.replace(problem, contributions=_coordinate(contributions, place)))
        for place in range(contributions.coordinates)
    ]


def _coordinate(contributions: Contributions, place: int) -> Contributions:
    weights = contributions.weights
    return dataclasses.replace(
        contributions,
        values=tuple(array[:, [place]] for array in contributions.values),
        weights=weights and tuple(array[[place]] for array in weights),
    )


def coupled_bracket(engines: Sequence[Engine], scale: float, *, deadline: float) -> Bracket:
    """Bound μ where all answers are shifted at once: in squares."""
    found = [engine.bracket(scale, deadline=deadline) for engine in engines]
    worst = max(found, key=lambda one: one.upper)
    if len(found) == 1:
        return worst
    upper = math.hypot(*(one.upper for one in found)) * (1 + 2 * len(found) * UNIT_ROUNDOFF)
    return dataclasses.replace(worst, upper=upper, lower=max(one.lower for one in found))
