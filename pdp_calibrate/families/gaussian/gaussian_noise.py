"""Gaussian noise on Gaussian tuples: the worst adversary, certified.

Theorem 20 (docs/theory).

x ~ N(m, Σ), answers r = Bx + N(0, σ²). Given (x_i, x_K) the answers are normal with mean shifted by
b·x_i and covariance V + σ²: b are the coefficients of x_i in the regressions of the answers on
(x_i, x_K), V = Cov(Bx | x_i, x_K). Secrets at most M_i apart shift one normal law, so adversary
A(i,K) is exactly μ-GDP with

    μ(i,K)² = M_i²·bᵀ(V + σ²)⁻¹b = M_i²·( 1/Var(x_i | x_K, r) − 1/Var(x_i | x_K) ).

Unknown tuples act as noise as well, so knowing nothing need not be worst. Releases compose by this
formula, with all of them as rows of B: their own μ² must not be added, because one answer may
reveal what acts as noise in another. Engines bracket μ.

V depends on the variance of the model, which Laplace noise never uses. Only the part that the
model promises counts, κ·V, with κ = 1 for a stated covariance; κ = 1 − τ for a Loewner ball (also
one from N rows, where 1/(1+δ)² ≥ 1 − τ); κ = 0 for the bands of a sample and for a variance that is
not stated. An uncertain covariance adds at most m·√(t/(κt + σ²))/√Var(x_i|x_K), t = trace V, to
√gain: the same as for Laplace noise, in the metric of the noise.

Clamped answers are not linear. The coupling of `clamped` moves all answers together, each by at
most Δ_m, so μ² ≤ Σ_m (Δ_m/σ)² (hockey-stick divergences are jointly convex); each Δ_m is bounded by
the engine for Laplace noise.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.couplings import tuple_moves
from pdp_calibrate.core.problem import LAPLACE, Bracket, Engine, Limits, Problem, engine_of
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import NOISY_STARTS
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.families.gaussian.blocks import components
from pdp_calibrate.families.gaussian.gaussian_noise_search import (
    Part,
    Rows,
    evaluated,
    merged_rows,
    worst_of,
)
from pdp_calibrate.families.gaussian.instance import Instance
from pdp_calibrate.families.gaussian.regression import center_of, multipliers_of
from pdp_calibrate.families.gaussian.sets import LoewnerBall, SampledGaussian
from pdp_calibrate.families.gaussian.units import Units

_SMALLEST_RATIO, _LARGEST_RATIO = 1e-140, 1e140  # of the scale to the weights: squares stay finite


class GaussianNoiseEngine(Engine):
    """Searches Gaussian tuples, or a set of Gaussians, at any scale σ of Gaussian noise.

    It brackets μ. Independent tuples outside the problem that stay unknown would add further noise
    to the answer; ignoring them is the sound direction.

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
        self._clamped = Shifts(problem) if contributions.clamped else None
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

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bracket the largest μ at one scale; see `core.problem.Engine`."""
        if self._clamped is not None:
            return self._clamped.search(scale, deadline=limits.deadline)
        noise = noise_in(self._units, scale)
        best: Bracket | None = None
        for place, part in enumerate(self._parts):
            threshold = max(limits.incumbent, best.upper) if best else limits.incumbent
            starts = [(target, known) for where, target, known in self._seen if where == place]
            target, known, upper = worst_of(
                part, noise, incumbent=threshold, deadline=limits.deadline, starts=starts
            )
            found = self._found(part, target, known, noise, upper)
            # Below an incumbent the worst adversary is not searched for; those seen at other scales
            # may give a better lower end.
            for other in starts:
                found = found.with_lower(self._found(part, *other, noise, upper))
            best = found if best is None else best.or_worse(found)
            self._remember(place, target, known)
        if best is None:
            raise PdpError("no adversary of the set attacks a tuple of this model.")
        return best

    def _remember(self, place: int, target: int, known: tuple[int, ...]) -> None:
        who = place, target, known
        self._seen = [*(other for other in self._seen if other != who), who][-NOISY_STARTS:]

    def _found(
        self, part: Part, target: int, known: tuple[int, ...], noise: float, upper: float
    ) -> Bracket:
        problem = self._problem
        one = evaluated(part, target, known, noise)
        factor = float(part.instance.factors[target])
        attained = one.lower * factor * (1 - 16 * UNIT_ROUNDOFF)
        lower = part.attained(attained, noise)
        place = part.positions[target]
        inside = {part.positions[k] for k in known}
        outside = [k for k in range(problem.knowledge.total) if k not in set(part.positions)]
        if problem.knowledge.known is not None:
            inside = set(problem.knowledge.known)
        else:
            inside.update(outside)  # independent of the target: knowing them only removes noise
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
            everywhere=upper,
        )


def parts_of(problem: Problem, merged: Rows, kept: float) -> list[Part]:
    """Return the tuples that are searched together.

    For adversaries who may know anything, independent tuples are searched separately: those who
    know the rest learn most. Otherwise all tuples are one part, as unknown ones act as noise.
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
    if isinstance(model, SampledGaussian) or not problem.measure.data_counts:
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
    return Instance(
        covariance=np.ldexp(np.ldexp(covariance, -exponents), -exponents[:, np.newaxis]),
        coordinates=np.ldexp(rows[:, positions], exponents),
        factors=factors,
        multipliers=multipliers_of(problem)[: len(positions)].copy(),
        targets=(),
        fewest=0,
        most=len(positions) - 1,
    )


def noise_in(units: Units, scale: float) -> float:
    """Return the variance of the noise in units of the weights."""
    ratio = math.ldexp(scale, -units.exponent) if abs(units.exponent) < 2000 else 0.0
    if not _SMALLEST_RATIO < ratio < _LARGEST_RATIO:
        raise PdpError(
            f"scale {scale:.3g} is too far from the size of the answers to certify a leakage."
            " Measure the values in another unit."
        )
    return ratio * ratio * (1 - 2 * UNIT_ROUNDOFF)


class Shifts:
    """Bounds μ by the root of the summed squares of how far each answer is shifted, over σ.

    The lower end is that of an adversary who knows everyone else, where one is admitted: then only
    the target moves, by its whole width in every answer at once, and no data acts as noise. That is
    μ itself, whatever the model and its variance.

    Parameters
    ----------
    problem
        Model, answers and adversaries.
    """

    def __init__(self, problem: Problem) -> None:
        self._shifts = _one_by_one(problem)
        knowledge = problem.knowledge
        self._strongest: list[list[Engine]] = []
        if knowledge.admits_strongest and not problem.hidden_noise:
            moves, _ = tuple_moves(problem.contributions)
            target = max(knowledge.targets, key=lambda place: float(moves[place]))
            only = dataclasses.replace(knowledge, fewest=knowledge.most, targets=(target,))
            self._strongest = [_one_by_one(dataclasses.replace(problem, knowledge=only))]

    def search(self, scale: float, *, deadline: float, attained: bool = False) -> Bracket:
        """Bracket μ at one scale.

        Parameters
        ----------
        scale, deadline
            As for every engine.
        attained
            Whether the lower end for Laplace noise comes, in the limit, from a pure shift of the
            answer: then it holds for Gaussian noise too.
        """
        found = [engine.bracket(scale, deadline=deadline) for engine in self._shifts]
        worst = max(found, key=lambda one: one.upper)
        upper = worst.upper
        if len(found) > 1:
            upper = math.hypot(*(one.upper for one in found)) * (1 + 2 * len(found) * UNIT_ROUNDOFF)
        lower = max(one.lower for one in found) if attained else 0.0
        bracket = dataclasses.replace(worst, upper=upper, everywhere=upper, lower=lower)
        for engines in self._strongest:
            ends = [engine.bracket(scale, deadline=deadline) for engine in engines]
            together = math.hypot(*(one.lower for one in ends)) * (1 - 4 * UNIT_ROUNDOFF)
            one = dataclasses.replace(ends[0], lower=min(together, upper))
            bracket = bracket.with_lower(one)
        return bracket


def _one_by_one(problem: Problem) -> list[Engine]:
    """Return one engine for Laplace noise per answer: at scale σ each bounds its shift over σ."""
    contributions, asked = problem.contributions, problem.measure
    measure = dataclasses.replace(
        LAPLACE, more_follows=asked.more_follows, side_by_side=asked.side_by_side
    )
    return [
        engine_of(
            dataclasses.replace(
                problem, contributions=_coordinate(contributions, place), measure=measure
            )
        )
        for place in range(contributions.coordinates)
    ]


def _coordinate(contributions: Contributions, place: int) -> Contributions:
    weights = contributions.weights
    return dataclasses.replace(
        contributions,
        values=tuple(array[:, [place]] for array in contributions.values),
        weights=weights and tuple(array[[place]] for array in weights),
    )
