"""The worst adversary of a Gaussian network: one sparse elimination for all of them.

Theorem 22 (docs/theory).

A(i,K) learns M_i·|β|/λ with β = a_i − Ω_iU·Ω_UU⁻¹·a_U, U the tuples unknown: the coefficient of x_i
in the regression of the answer on x_i and x_K. With the comparison matrix Ω̃ (the diagonal of Ω, and
−|Ω_kl| beside it), where that is positive definite, |Ω_UU⁻¹| ≤ Ω̃_UU⁻¹ entry by entry, which grows
with U. So for every K

    |β| ≤ |a_i| + |Ω_iU|·Ω̃_UU⁻¹·|a_U| ≤ (Ω̃⁻¹|a|)_i / (Ω̃⁻¹)_ii,

all targets at once, and several answers with |a| summed over them. Where signs s exist with
s_j = sign(a_j) and s_k·s_l·Ω_kl ≤ 0, changing the signs of the tuples makes Ω equal to Ω̃ and all
weights positive: then an adversary who knows nobody attains the bound. Given x_K, moving x_i by δ
moves x_u by −(Ω_UU⁻¹Ω_Ui)_u·δ, at most (Ω̃⁻¹)_ui/(Ω̃⁻¹)_ii times δ; so clamped answers, whose
values move by no more, have the same bound, and no value moves by more than its range.

The remaining case, a few tuples with other signs, is searched as a dense Gaussian.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import breadth_first_order, connected_components

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import CAPPED_TARGETS, CLOSED, SEARCHED_TUPLES
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.families.gaussian.blocks import blocks_of
from pdp_calibrate.families.gaussian.composed import ShiftComposer
from pdp_calibrate.families.gaussian.instance import MAXIMAL_COORDINATES, checked_tau, distance
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.network import GaussianNetwork
from pdp_calibrate.families.gaussian.regression import regression
from pdp_calibrate.families.gaussian.sets import LoewnerBall
from pdp_calibrate.families.gaussian.sparse_inverse import Scaled
from pdp_calibrate.families.gaussian.units import Remembered, Units

_LEAST_WEIGHT = 1e-200  # weights below it, the largest being about 1, are rounded up to it
_UP, _DOWN = 1 + 16 * UNIT_ROUNDOFF, 1 - 16 * UNIT_ROUNDOFF


@dataclass(frozen=True, kw_only=True)
class _One:
    """What one adversary learns, in the engine's units."""

    upper: float
    lower: float
    sign: float
    """Of the coefficient of the first answer."""


_NOTHING_KNOWN = _One(upper=math.inf, lower=0.0, sign=1.0)


class NetworkEngine(Engine):
    """Bounds all adversaries of a Gaussian network at once, for all scales."""

    def __init__(self, problem: Problem, *, lender: NetworkEngine | None = None) -> None:
        """Prepare the search; `lender` is an engine for other adversaries, to reuse its work."""
        model, contributions = problem.model, problem.contributions
        if not isinstance(model, GaussianNetwork):
            raise TypeError(f"this engine bounds Gaussian networks, got {model!r}.")
        if contributions.weights is None:
            raise UnsupportedQueryError("a continuous model answers Sum, Mean and Linear only.")
        self.problem, self.model, self._lender = problem, model, lender
        answers = np.column_stack(contributions.weights)  # one row per coordinate
        exponents = self.scaled.exponents
        self._units = Units.of(answers, np.ldexp(1.0, -exponents))
        with np.errstate(over="ignore"):
            self._weights = np.ldexp(answers, -exponents - self._units.exponent)
            self._factors = np.ldexp(model.widths * (1 + 8 * UNIT_ROUNDOFF), exponents)
        total = np.abs(self._weights).sum(axis=0) * (1 + 2 * (len(answers) + 2) * UNIT_ROUNDOFF)
        if not np.all(np.isfinite(total)) or not np.all(np.isfinite(self._factors)):
            raise PdpError("the leakage is too large for a floating-point number; raise the scale.")
        self._factors = np.maximum(self._factors, np.finfo(np.float64).tiny)
        self._total = np.where((answers != 0).any(axis=0), np.maximum(total, _LEAST_WEIGHT), 0.0)
        self._unit = Remembered(search=self._searched)

    def against(self, problem: Problem) -> NetworkEngine:
        """Return an engine for the same network and answers; see `core.problem.Engine`."""
        return NetworkEngine(problem, lender=self)

    @functools.cached_property
    def scaled(self) -> Scaled:
        """The precision, rescaled for floating point, and its inverse once it is needed."""
        return Scaled.of(self.model.precision) if self._lender is None else self._lender.scaled

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        threshold = self._units.threshold(limits.incumbent, scale)
        return self._units.at(scale, self._unit.bracket(threshold, limits.deadline))

    def _searched(self, incumbent: float, deadline: float) -> Bracket:
        knowledge, size = self.problem.knowledge, len(self.model.names)
        if not self._total.any():
            return self._bracket_of(knowledge.targets[0], (), _One(upper=0.0, lower=0.0, sign=1.0))
        if knowledge.known is not None:
            (target,), known = knowledge.targets, tuple(sorted(knowledge.known))
            return self._checked(self._bracket_of(target, known, self._adversary(target, known)))
        if knowledge.fewest == size - 1:
            return self._strongest()
        target = max(knowledge.targets, key=self._uppers.__getitem__)
        known = self._farthest(target, knowledge.fewest)
        one = self._adversary(target, known)
        found = self._bracket_of(
            target, known, dataclasses.replace(one, upper=self._uppers[target])
        )
        if knowledge.most == size - 1:
            found = found.with_lower(self._strongest())
        closed = found.upper <= max(found.lower * CLOSED, incumbent)
        if not closed and self._fits_dense and (knowledge.fewest or self._is_mixed.any()):
            found = self._dense(incumbent, deadline, found)
        return self._checked(found)

    # All adversaries at once

    @functools.cached_property
    def _labels(self) -> npt.NDArray[np.int32]:
        """Which component each tuple is in; components are independent."""
        return np.asarray(connected_components(self.model.precision, directed=False)[1])

    @functools.cached_property
    def _is_mixed(self) -> npt.NDArray[np.bool_]:
        """For each component, whether no signs fit its couplings and weights."""
        return self._coloured(self.scaled, self._weights, self._labels)[0]

    @staticmethod
    def _coloured(
        scaled: Scaled, weights: FloatArray, labels: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Return which components have no fitting signs, and the signs for the first answer."""
        from pdp_calibrate.families.gaussian.sparse_kernels import coloured

        matrix = scaled.matrix
        mixed, first = np.zeros(int(labels.max()) + 1, dtype=np.bool_), np.empty(0)
        for row in weights:
            signs = np.sign(row)
            mixed |= coloured(matrix.indptr, matrix.indices, matrix.data, labels, signs)
            first = first if len(first) else signs
        return mixed, first

    @functools.cached_property
    def _uppers(self) -> FloatArray:
        """The most that anybody learns about each tuple."""
        inverse, clamped = self.scaled.inverse, self.problem.contributions.clamped
        sums = np.bincount(self._labels, self._total * self._factors).astype(np.float64)
        group = sums[self._labels] * (1 + 2 * (len(self._total) + 4) * UNIT_ROUNDOFF)
        if inverse is None:
            return group if clamped else np.full(len(group), math.inf)
        bounds = inverse.at_most(self._total) / inverse.least_diagonal * self._factors * _UP
        if not clamped:
            return np.asarray(bounds)
        bounds = np.minimum(bounds, group)
        best = 0.0
        targets = np.array(self.problem.knowledge.targets)
        for target in targets[np.argsort(-bounds[targets])][:CAPPED_TARGETS]:
            if bounds[target] <= best:
                break
            capped = self._capped(self.scaled, np.arange(len(group)), target)
            bounds[target] = min(bounds[target], capped)
            best = max(best, float(bounds[target]))
        return np.asarray(bounds)

    def _capped(self, scaled: Scaled, kept: npt.NDArray[np.int64], place: int) -> float:
        """Bound a clamped answer with the `kept` tuples unknown: none moves beyond its range."""
        weights, factors = self._total[kept], self._factors[kept]
        if scaled.inverse is None:
            labels = connected_components(scaled.matrix, directed=False)[1]
            moves = np.where(labels == labels[place], factors, 0.0)
        else:
            unit = np.zeros(scaled.size)
            unit[place] = 1.0
            column = scaled.inverse.at_most(unit)
            least = scaled.inverse.at_least(unit)[place]
            moves = np.minimum(factors, column / least * factors[place] * _UP)
            moves[place] = factors[place]
        return float(weights @ moves) * (1 + 2 * (scaled.size + 4) * UNIT_ROUNDOFF)

    # One adversary

    def _strongest(self) -> Bracket:
        """Evaluate who knows everyone else: plain DP, Σ|a_i|·M_i/λ over the answers."""
        leaks = self._total * self._factors
        target = max(self.problem.knowledge.targets, key=leaks.__getitem__)
        others = tuple(k for k in range(len(leaks)) if k != target)
        return self._bracket_of(target, others, self._adversary(target, others))

    def _adversary(self, target: int, known: tuple[int, ...]) -> _One:
        """Evaluate one adversary."""
        hidden = np.ones(len(self.model.names), dtype=np.bool_)
        hidden[list(known)] = False
        kept = np.flatnonzero(hidden)
        place = int(np.searchsorted(kept, target))
        scaled = self.scaled if len(kept) == len(hidden) else self.scaled.without(~hidden)
        weights, factor = self._weights[:, kept], float(self._factors[target])
        if len(kept) == 1:
            own = float(self._total[target]) * factor * _UP
            low = self._lowered(np.abs(weights).sum(), factor)
            return _One(upper=own, lower=low, sign=float(np.sign(weights[0, 0]) or 1.0))
        if self.problem.contributions.clamped:
            upper = self._capped(scaled, kept, place)
            return dataclasses.replace(_NOTHING_KNOWN, upper=upper)
        if scaled.inverse is None:
            return self._dense_one(target, known) if self._fits_dense else _NOTHING_KNOWN
        labels = np.asarray(connected_components(scaled.matrix, directed=False)[1])
        mixed, signs = self._coloured(scaled, weights, labels)
        unit = np.zeros(scaled.size)
        unit[place] = 1.0
        largest = scaled.inverse.at_most(unit)[place]
        least = scaled.inverse.at_least(unit)[place]
        upper = float(scaled.inverse.at_most(self._total[kept])[place] / least) * factor * _UP
        if not mixed[labels[place]]:
            sure = np.abs(weights).sum(axis=0) * _DOWN
            sure[sure < _LEAST_WEIGHT] = 0.0
            slope = float(scaled.inverse.at_least(sure)[place] / largest)
            return _One(upper=upper, lower=self._lowered(slope, factor), sign=float(signs[place]))
        return self._with_signs(scaled, weights, place, factor, upper)

    def _with_signs(
        self, scaled: Scaled, weights: FloatArray, place: int, factor: float, upper: float
    ) -> _One:
        """Evaluate one adversary by a column of Ω⁻¹, which works for any signs."""
        found = scaled.column(place)
        if found is None or not found[0][place] > found[1][place]:
            return dataclasses.replace(_NOTHING_KNOWN, upper=upper)
        column, errors = found
        sums = weights @ column
        steps = 2 * (scaled.size + len(weights) + 4) * UNIT_ROUNDOFF
        slack = float(self._sizes(weights) @ (errors * _UP + steps * np.abs(column))) * (1 + steps)
        value = float(np.abs(sums).sum())
        high = (value + slack) / ((column[place] - errors[place]) * _DOWN)
        low = max(0.0, value - slack) / ((column[place] + errors[place]) * _UP)
        return _One(
            upper=min(upper, high * factor * _UP),
            lower=self._lowered(low, factor),
            sign=float(np.sign(sums[0]) or 1.0),
        )

    @staticmethod
    def _sizes(weights: FloatArray) -> FloatArray:
        return np.asarray(np.abs(weights).sum(axis=0) * _UP)

    @staticmethod
    def _lowered(slope: float, factor: float) -> float:
        """Round a lower end down; 0 where the factor was raised to the smallest normal number."""
        if factor <= np.finfo(np.float64).tiny:
            return 0.0
        return float(slope) * factor * (1 - 64 * UNIT_ROUNDOFF)

    def _farthest(self, target: int, number: int) -> tuple[int, ...]:
        """Return the given number of tuples, those farthest from the target in the graph."""
        if number == 0:
            return ()
        near = breadth_first_order(
            self.model.precision, target, directed=False, return_predecessors=False
        )
        others = np.setdiff1d(np.arange(len(self.model.names)), near)
        ordered = [*others.tolist(), *near[:0:-1].tolist()]
        return tuple(sorted(ordered[:number]))

    # Few tuples of any signs

    @property
    def _fits_dense(self) -> bool:
        few = len(self._weights) <= MAXIMAL_COORDINATES
        return few and len(self.model.names) <= SEARCHED_TUPLES

    @functools.cached_property
    def _ball(self) -> LoewnerBall:
        """The covariance, and how far it is from the inverse of the precision."""
        scaled, model = self.scaled, self.model
        precision = scaled.matrix.toarray()
        inverse = np.linalg.inv(precision)
        inverse = inverse / 2 + inverse.T / 2
        radius = checked_tau(distance(inverse, precision))
        exponents = scaled.exponents
        center = Gaussian(
            covariance=np.ldexp(np.ldexp(inverse, -exponents), -exponents[:, np.newaxis]),
            bounds=model.bounds,
            mean=model.mean,
            names=model.names,
        )
        return LoewnerBall(center=center, radius=radius)

    @functools.cached_property
    def _dense_problem(self) -> Problem:
        return dataclasses.replace(self.problem, model=self._ball)

    def _dense(self, incumbent: float, deadline: float, found: Bracket) -> Bracket:
        """Search all adversaries of a few tuples."""
        unit = math.ldexp(1.0, self._units.exponent)
        searched = self._dense_problem.engine.bracket(unit, incumbent=incumbent, deadline=deadline)
        hidden = {*searched.unknown, searched.target}
        known = tuple(k for k in range(len(self.model.names)) if k not in hidden)
        one = dataclasses.replace(
            self._adversary(searched.target, known), upper=min(searched.upper, found.upper)
        )
        return self._bracket_of(searched.target, known, one).with_lower(found)

    def _dense_one(self, target: int, known: tuple[int, ...]) -> _One:
        """Evaluate one adversary by a dense regression, charging the error of the covariance."""
        problem = dataclasses.replace(self.problem, model=self._ball.center)
        exponents = self.scaled.exponents
        for block in blocks_of(problem, np.ldexp(self._weights, exponents)):
            if target in block.positions:
                place = block.positions.index(target)
                inside = [k for k, p in enumerate(block.positions) if p in known]
                tau = checked_tau(block.tau + 2 * self._ball.radius)
                value = regression(block.instance, place, inside, tau=tau)
                return _One(upper=value.value, lower=value.lower, sign=float(value.signs[0]))
        raise PdpError("no adversary of the set attacks a tuple of this model.")

    # Results

    def _bracket_of(self, target: int, known: tuple[int, ...], one: _One) -> Bracket:
        problem, model = self.problem, self.model
        everyone = set(known)
        hidden = (k for k in range(problem.knowledge.total) if k != target and k not in everyone)
        attained = one.lower > 0 or one.upper == 0
        return Bracket(
            upper=float(one.upper),
            lower=min(one.lower, float(one.upper)),
            witness=Witness(
                target=problem.names[target],
                known={problem.names[k]: float(model.mean[k]) for k in known},
                secrets=model.bounds[target],
                output=-math.inf if one.sign > 0 else math.inf,
                model=model,
                index=problem.index,
            )
            if attained
            else None,
            target=target,
            unknown=tuple(hidden),
        )

    def _checked(self, found: Bracket) -> Bracket:
        """Raise where nothing bounds the answer."""
        if math.isfinite(found.upper):
            return found
        raise UnsupportedQueryError(
            f"nothing bounds this answer on a network of {len(self.model.names):,} tuples: the"
            " signs of couplings and weights do not fit together, and the couplings are so strong"
            f" that the comparison matrix is not positive definite. Up to {SEARCHED_TUPLES} tuples"
            " are searched one by one; beyond that, clamp the values (group privacy), weaken the"
            " couplings, or consider only the strongest adversaries."
        )


class NetworkComposer(ShiftComposer):
    """Composes releases about a Gaussian network: one bound holds for any number of answers."""

    def largest_component(self, model: Model) -> int:
        """Return the size of the largest set of tuples that depend on each other."""
        if not isinstance(model, GaussianNetwork):
            raise TypeError(f"this composer is for Gaussian networks, got {model!r}.")
        labels = connected_components(model.precision, directed=False)[1]
        return int(np.bincount(labels).max())

    def parts(self, problem: Problem) -> list[Problem]:
        """Return the problem itself."""
        return [problem]
