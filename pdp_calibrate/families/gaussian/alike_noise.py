"""Gaussian noise on Gaussian groups and series: closed forms over all known sets.

Group of m members, correlation ρ, variance τ². With k known, γ = ρ/(1 + kρ), A the sum of the
unknown weights and Q that of their squares,

    β = a_i + γA,    s² = τ²(1 − ρ)(Q + γA²),    μ = M|β|/√(σ² + s²),

so all that matters is how many members of each weight are unknown. In a range of correlations with
all weights equal an end is worst for every k: β grows with ρ and β²M²/μ² − s² is convex in β. With
other weights the range is cut into pieces; in each, |β| is largest at an end, as γ grows with ρ,
and s² is at least τ²(1 − ρ_hi)(Q + γ_lo·A²).

Series (AR(1)). Given the target, its past and its future are independent; and given the nearest
known point on each side, so is whatever lies beyond it. Adversaries who may know anything know all
that lies beyond: that keeps β and lowers s². So each side is a list, over the distance of its known
point, of coefficients and conditional covariances, which add up over the two sides. With the point
at distance b known, F_b = Σ_{d<b} a_d x_d and everything conditional on x_i:

    m_{b+1} = m_b + a_b φ^b,  c_{b+1} = φ(c_b + a_b p_b),  p_{b+1} = φ²p_b + 1 − φ²,
    v_{b+1} = v_b + a_b c_b' + c_b a_b' + a_b a_b' p_b,
    β_b = m_b − c_b φ^b/p_b,  V_b = v_b − c_b c_b'/p_b.

Where the variance is not stated, the data's own variance does not count as noise: s² = 0. Nor does
it where a series has a range of correlations: each answer shifts by the most that the range allows.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge, Witness
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import (
    COUNTED_MEMBERS,
    COUNTED_PIECES,
    MATRIX_MEMBERS,
    SERIES_WINDOWS,
)
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.families.gaussian.gaussian_noise import (
    GaussianNoiseEngine,
    Shifts,
    noise_in,
)
from pdp_calibrate.families.gaussian.gaussian_noise_search import MERGED, merged_rows
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.units import Units


class AlikeNoiseEngine(Engine):
    """Searches groups and series at any scale σ of Gaussian noise; it brackets μ.

    Parameters
    ----------
    problem
        Model, answers and adversaries.
    kept
        The part of the data's own variance that counts; all of a stated variance by default.
    """

    def __init__(self, problem: Problem, *, kept: float | None = None) -> None:
        contributions, model = problem.contributions, problem.model
        if contributions.weights is None:
            raise UnsupportedQueryError("a Gaussian model answers Sum, Mean and Linear.")
        if not isinstance(model, GaussianGroup | GaussianSeries):
            raise TypeError(f"this engine searches Gaussian groups and series, got {model!r}.")
        self._problem = problem
        self._clamped = Shifts(problem) if contributions.clamped else None
        if self._clamped is not None:
            return
        answers = np.column_stack(contributions.weights)
        self._units = Units.of(answers, np.array(1.0))
        merged = merged_rows(self._units.weights(answers))
        self._search: _GroupSearch | _SeriesSearch | None = None
        self._bounds: list[GaussianNoiseEngine] = []
        stated = model.variance
        variance = 1.0 if stated is None else stated
        if kept is None:
            kept = float(stated is not None and problem.measure.data_counts)
        merely_merged = merged.changed <= MERGED  # an error that closed forms allow in each weight
        low, high = model.bounds
        about = _About(kept * variance, high - low, problem.knowledge)
        if isinstance(model, GaussianSeries):
            one_law = model.ends[0] == model.ends[1]
            if len(model.names) <= SERIES_WINDOWS and merely_merged and one_law:
                self._search = _SeriesSearch(merged.rows, model.ends[0], about)
        elif len(merged.rows) == 1 and merely_merged and _kinds(merged.rows[0]) <= COUNTED_MEMBERS:
            self._search = _GroupSearch(merged.rows[0], model.correlation, about)
        if isinstance(self._search, _SeriesSearch) and problem.knowledge.known is not None:
            self._search = None
        if self._search is None:
            self._bounds = _written_out(problem, model, variance, kept)
            self._shifts = None if self._bounds else Shifts(problem)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bracket the largest μ at one scale; see `core.problem.Engine`."""
        if self._clamped is not None:
            # Unstated variances may be arbitrarily small: then values sit at their means.
            attained = self._problem.model.variance is None  # type: ignore[attr-defined]
            return self._clamped.search(scale, deadline=limits.deadline, attained=attained)
        if self._search is not None:
            noise = noise_in(self._units, scale)
            if isinstance(self._search, _SeriesSearch):
                return self._named(*self._search.worst(noise, limits.deadline))
            return self._named(*self._search.worst(noise))
        if self._shifts is not None:
            # Too large to search: if the data's own noise is ignored, the squared shifts add up.
            return self._shifts.search(scale, deadline=limits.deadline)
        best: Bracket | None = None
        for engine in self._bounds:
            found = engine.search(scale, limits.above(best.upper) if best else limits)
            best = found if best is None else best.or_worse(found)
        if best is None:
            raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
        return best

    def _named(self, found: Bracket, data_share: float) -> Bracket:
        """Add the witness: who the adversary is, and the data's share of the variance."""
        problem, target = self._problem, found.target
        names, domains = problem.names, problem.model.domains
        hidden = {target, *found.unknown}
        witness = Witness(
            target=names[target],
            known={
                names[k]: sum(domains[k]) / 2  # type: ignore[arg-type]  # ends are floats
                for k in range(len(names))
                if k not in hidden
            },
            secrets=(domains[target][0], domains[target][1]),
            output=-math.inf,
            model=problem.model,
            index=problem.index,
            data_share=data_share,
        )
        lower = 0.0 if problem.hidden_noise else min(found.lower, found.upper)
        return dataclasses.replace(found, lower=lower, witness=witness)


def _written_out(
    problem: Problem, model: GaussianGroup | GaussianSeries, variance: float, kept: float
) -> list[GaussianNoiseEngine]:
    """Return engines that search the covariance matrix; for a range, one for each end.

    Every coefficient is linear in γ, which grows with ρ, so Σ_m β_m² is convex in γ and largest at
    an end of the range; there the data's own noise is ignored. Empty if the matrix is too large,
    and for a series with a range, whose coefficients have no such form.
    """
    size, ends = len(model.names), list(dict.fromkeys(model.ends))
    along = isinstance(model, GaussianSeries)
    if size > (SERIES_WINDOWS if along else MATRIX_MEMBERS) or (along and len(ends) > 1):
        return []
    kept = kept if len(ends) == 1 else 0.0
    return [
        GaussianNoiseEngine(
            dataclasses.replace(
                problem,
                model=Gaussian(
                    covariance=variance * model.matrix(correlation),
                    bounds=model.bounds,
                    names=model.names,
                    provenance=model.provenance,
                ),
            ),
            kept=kept,
        )
        for correlation in ends
    ]


def _kinds(weights: FloatArray) -> int:
    _, counts = np.unique(weights, return_counts=True)
    return math.prod(int(count) + 1 for count in counts)


class _About(NamedTuple):
    """What all tuples have in common."""

    variance: float
    """The part of their variance that counts as noise."""
    width: float
    """The width of their public range."""
    knowledge: Knowledge
    """What adversaries may know."""


class _GroupSearch:
    """Tries every number of unknown members of each weight, for one answer."""

    def __init__(
        self, weights: FloatArray, correlation: tuple[float, float], about: _About
    ) -> None:
        self._weights, self._correlation = weights, correlation
        self._variance, self._width, self._knowledge = about
        values, kinds = np.unique(weights, return_inverse=True)
        self._values, self._kinds = values, kinds.reshape(-1)
        self._counts = np.bincount(self._kinds, minlength=len(values))

    def worst(self, noise: float) -> tuple[Bracket, float]:
        """Bracket the largest μ at a variance of the noise, and return the data's share of it."""
        low, high = self._correlation
        alike = len(self._values) == 1
        ends = dict.fromkeys((low, high))
        grid = np.linspace(low, high, COUNTED_PIECES + 1)
        pieces = (
            [(rho, rho) for rho in ends]
            if alike or low == high
            else list(itertools.pairwise(grid.tolist()))
        )
        upper, best = 0.0, (-1.0, 0, np.zeros(len(self._values)), 0.0)
        for kind in sorted({int(self._kinds[target]) for target in self._knowledge.targets}):
            numbers = self._numbers(kind)
            for piece in pieces:
                upper = max(upper, float(self._values_of(kind, numbers, piece, noise)[0].max()))
            for rho in ends:
                _, lowers, shares = self._values_of(kind, numbers, (rho, rho), noise)
                place = int(lowers.argmax())
                if lowers[place] > best[0]:
                    best = float(lowers[place]), kind, numbers[place], float(shares[place])
        lower, kind, numbers_unknown, share = best
        target = next(t for t in self._knowledge.targets if self._kinds[t] == kind)
        unknown: list[int] = []
        named = self._knowledge.known or ()
        for other, number in enumerate(numbers_unknown.astype(int)):
            members = [k for k in np.flatnonzero(self._kinds == other).tolist() if k != target]
            unknown += [k for k in members if k not in named][:number]
        found = Bracket(
            upper=upper,
            lower=max(lower, 0.0),
            witness=None,
            target=target,
            unknown=tuple(sorted(unknown)),
            everywhere=upper,
        )
        return found, share

    def _numbers(self, kind: int) -> FloatArray:
        """List how many members of each weight may be unknown, one row per choice."""
        named = self._knowledge.known
        if named is not None:
            (target,) = self._knowledge.targets
            hidden = [k for k in range(len(self._weights)) if k != target and k not in named]
            found = np.bincount(self._kinds[hidden], minlength=len(self._values))
            return np.asarray(found[np.newaxis], dtype=np.float64)
        counts = self._counts.copy()
        counts[kind] -= 1
        axes = np.meshgrid(*(np.arange(count + 1) for count in counts), indexing="ij")
        numbers = np.stack([axis.reshape(-1) for axis in axes], axis=1).astype(np.float64)
        known = len(self._weights) - 1 - numbers.sum(axis=1)
        admitted = (known >= self._knowledge.fewest) & (known <= self._knowledge.most)
        return np.asarray(numbers[admitted])

    def _values_of(
        self, kind: int, numbers: FloatArray, piece: tuple[float, float], noise: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return upper ends of μ over a piece of the range, lower ends at its start, and shares."""
        first, last = piece
        own, size = float(self._values[kind]), len(self._weights)
        known = size - 1 - numbers.sum(axis=1)
        hidden = numbers.sum(axis=1) > 0
        sums, squares = numbers @ self._values, numbers @ self._values**2
        sizes = numbers @ np.abs(self._values)
        gammas = [np.where(hidden, rho / (1 + known * rho), 0.0) for rho in piece]
        # One rounding per member, and the cancellation in 1 + kρ where ρ is negative.
        unit = 8 * UNIT_ROUNDOFF * (size + 8)
        slopes = [own + gamma * sums for gamma in gammas]
        errors = [
            unit
            * (abs(own) + np.abs(gamma) * sizes * (1 + 1 / np.where(hidden, 1 + known * rho, 1)))
            for gamma, rho in zip(gammas, piece, strict=True)
        ]
        highest = np.maximum(np.abs(slopes[0]) + errors[0], np.abs(slopes[1]) + errors[1])
        spread = squares + gammas[0] * sums**2
        around = unit * (
            squares
            + np.abs(gammas[0]) * sizes**2 * (1 + 1 / np.where(hidden, 1 + known * first, 1))
        )
        least = self._variance * (1 - last) * np.maximum(spread - around, 0.0)
        most = self._variance * (1 - first) * (spread + around)
        uppers = self._width * highest / np.sqrt(noise + least) * (1 + 16 * UNIT_ROUNDOFF)
        lowers = self._width * np.maximum(np.abs(slopes[0]) - errors[0], 0.0)
        lowers = lowers / np.sqrt(noise + most) * (1 - 16 * UNIT_ROUNDOFF)
        return uppers, lowers, most / (noise + most)


class _SeriesSearch:
    """Tries every window of unknown points around each target."""

    def __init__(self, rows: FloatArray, phi: float, about: _About) -> None:
        self._rows = rows
        self._variance, self._width, self._knowledge = about
        self._right = _Sides.of(rows, phi)
        self._left = _Sides.of(rows[:, ::-1], phi)

    def worst(self, noise: float, deadline: float) -> tuple[Bracket, float]:
        """Bracket the largest μ at a variance of the noise, and return the data's share of it."""
        size = self._rows.shape[1]
        upper, lower, share = 0.0, 0.0, 0.0
        target, unknown = self._knowledge.knowing_least
        for place, attacked in enumerate(self._knowledge.targets):
            if time.monotonic() > deadline:
                rest = list(self._knowledge.targets[place:])
                upper = max(upper, float(self._coarsely(noise)[rest].max()))
                break
            values, uppers, shares = self._windows(attacked, noise)
            upper = max(upper, float(uppers.max()))
            # Unknown points beyond the window's ends would add further noise to the answer: only
            # an adversary who knows all of them attains the value.
            lowers = np.where(
                self._beyond(attacked) <= self._knowledge.most, 2 * values - uppers, -1
            )
            a, b = map(int, np.unravel_index(int(lowers.argmax()), lowers.shape))
            if lowers[a, b] > lower:
                lower, share, target = float(lowers[a, b]), float(shares[a, b]), attacked
                first, last = target - a + 1 if a else 0, target + b - 1 if b else size - 1
                unknown = tuple(p for p in range(first, last + 1) if p != target)
        found = Bracket(
            upper=upper, lower=lower, witness=None, target=target, unknown=unknown,
            everywhere=upper,
        )  # fmt: skip
        return found, share

    def _coarsely(self, noise: float) -> FloatArray:
        """Bound μ about every target whatever is known; the data's own noise is not counted."""
        here = np.linalg.norm(self._rows, axis=0)
        longest = here * (1 + 16 * UNIT_ROUNDOFF * self._rows.shape[0])
        for side in (self._left.longest[::-1], self._right.longest):
            longest = longest + side
        return np.asarray(self._width / math.sqrt(noise) * longest * (1 + 1e-12))

    def _windows(self, target: int, noise: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return μ, its upper end and the data's share, by the distances a and b of known points.

        −1 where no admitted adversary knows both ends of the window and nothing inside it.
        """
        size, answers = self._rows.shape[1], len(self._rows)
        mirrored = size - 1 - target
        here = np.s_[mirrored, : target + 1, np.newaxis], np.s_[target, np.newaxis, : size - target]
        slope = self._left.slopes[here[0]] + self._right.slopes[here[1]] + self._rows[:, target]
        spread = self._variance * (self._left.spreads[here[0]] + self._right.spreads[here[1]])
        error = self._left.errors[here[0]] + self._right.errors[here[1]]
        error = error + 8 * UNIT_ROUNDOFF * float(np.abs(self._rows[:, target]).sum())
        off = self._variance * (self._left.off[here[0]] + self._right.off[here[1]])
        if answers == 1:
            gain, condition = slope[..., 0] ** 2 / (spread[..., 0, 0] + noise), 1.0
        else:
            condition = 1 + np.trace(spread, axis1=-2, axis2=-1) / noise
        # The metric errs by at most `off` in any direction, a solution by its condition number.
        # Where that could be much, the data's own noise is not counted at all.
        loose = 2 * off / noise + 16 * answers**2 * UNIT_ROUNDOFF * condition
        if answers > 1:
            is_loose = (loose >= 1e-3)[..., np.newaxis, np.newaxis]
            metric = np.where(is_loose, np.eye(answers), spread + noise * np.eye(answers))
            solved = np.linalg.solve(metric, slope[..., np.newaxis])[..., 0]
            gain = np.maximum((solved * slope).sum(axis=-1), 0.0)
            gain[loose >= 1e-3] = 0.0
        values = self._width * np.sqrt(gain)
        alone = self._width / math.sqrt(noise) * np.linalg.norm(slope, axis=-1)
        uppers = np.where(loose < 1e-3, values * (1 + loose), alone * ROUND_UP)
        uppers += self._width / math.sqrt(noise) * math.sqrt(answers) * error * (1 + 1e-3)
        shares = 1 - (values / np.where(alone == 0, 1.0, alone)) ** 2
        admitted = self._admitted(target)
        return (
            np.where(admitted, values, -1.0),
            np.where(admitted, uppers * (1 + 32 * UNIT_ROUNDOFF), -1.0),
            np.maximum(shares, 0.0),
        )

    def _admitted(self, target: int) -> FloatArray:
        """Return for which distances an admitted adversary knows the ends and nothing between."""
        a, b = np.arange(target + 1)[:, np.newaxis], np.arange(self._rows.shape[1] - target)
        ends = np.minimum(a, 1) + np.minimum(b, 1)
        enough = self._beyond(target) >= self._knowledge.fewest
        return np.asarray((ends <= self._knowledge.most) & enough)

    def _beyond(self, target: int) -> FloatArray:
        """Count the points at and beyond the known ends, by their distances."""
        size = self._rows.shape[1]
        a, b = np.arange(target + 1)[:, np.newaxis], np.arange(size - target)
        return np.where(a > 0, target - a + 1, 0) + np.where(b > 0, size - target - b, 0)


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """What unknown points to the right of each target contribute, by distance of the known point.

    The first axis is the target, the second the distance b; 0 means that no point is known.
    """

    slopes: FloatArray
    """β_b, per answer."""
    spreads: FloatArray
    """V_b, answers × answers."""
    errors: FloatArray
    """Rounding error of any β_b."""
    off: FloatArray
    """Rounding error of V_b in any direction."""

    @property
    def longest(self) -> FloatArray:
        """An upper end of |β_b| about each target, whatever the distance b."""
        lengths = np.linalg.norm(self.slopes, axis=-1)
        errors = math.sqrt(self.slopes.shape[-1]) * self.errors
        return np.asarray((lengths + errors).max(axis=1))

    @classmethod
    def of(cls, rows: FloatArray, phi: float) -> _Sides:
        """Run the recursion for all targets at once."""
        answers, size = rows.shape
        shape = (size, size + 1)
        slopes, spreads = np.zeros((*shape, answers)), np.zeros((*shape, answers, answers))
        errors, off = np.zeros(shape), np.zeros(shape)
        mean, cross = np.zeros((size, answers)), np.zeros((size, answers))
        inner = np.zeros((size, answers, answers))
        # The same recursion on absolute values bounds the rounding error.
        mean_size, cross_size, inner_size = np.zeros(size), np.zeros(size), np.zeros(size)
        own, power = 0.0, 1.0  # p_b and φ^b at b = 0
        left = (1 - abs(phi)) * (1 + abs(phi))
        for b in range(1, size + 1):
            own, power = phi * phi * own + left, power * phi
            # Targets that have a point at this distance; for the others the sums are complete.
            there = np.arange(size) + b < size
            unit = 8 * UNIT_ROUNDOFF * (b + 8)
            slopes[:, b] = mean - cross * power / own
            spreads[:, b] = inner - cross[:, :, np.newaxis] * cross[:, np.newaxis] / own
            errors[:, b] = unit * (mean_size + cross_size * abs(power) / own)
            off[:, b] = unit * (inner_size + cross_size**2 / own)
            weight = np.zeros((size, answers))
            weight[there] = rows[:, b:].T
            largest = np.abs(weight).sum(axis=1)
            products = weight[:, :, np.newaxis] * cross[:, np.newaxis]
            inner = inner + products + np.swapaxes(products, 1, 2)
            inner = inner + weight[:, :, np.newaxis] * weight[:, np.newaxis] * own
            inner_size = inner_size + 2 * largest * cross_size + largest**2 * own
            mean = mean + weight * power
            mean_size = mean_size + largest * abs(power)
            cross = phi * (cross + weight * own)
            cross_size = abs(phi) * (cross_size + largest * own)
        slopes[:, 0], spreads[:, 0] = mean, inner
        errors[:, 0] = 8 * UNIT_ROUNDOFF * (size + 8) * mean_size
        off[:, 0] = 8 * UNIT_ROUNDOFF * (size + 8) * inner_size
        return cls(slopes=slopes, spreads=spreads, errors=errors, off=off)
