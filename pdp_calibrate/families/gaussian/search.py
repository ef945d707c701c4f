"""The worst adversary of Gaussian tuples: certified, exact where the search can finish."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.tuning import CLOSED, NEARLY_CLOSED, SEARCHED_TUPLES, SINGLE_REGRESSIONS
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.families.gaussian.blocks import Block, blocks_of
from pdp_calibrate.families.gaussian.clamped import bracket_clamped
from pdp_calibrate.families.gaussian.instance import Instance, Worst, merged
from pdp_calibrate.families.gaussian.regression import (
    Regression,
    center_of,
    found_from,
    nobody_known,
    regression,
)
from pdp_calibrate.families.gaussian.sign_certificate import certified_upper
from pdp_calibrate.families.gaussian.units import Remembered, Units


class GaussianEngine(Engine):
    """Searches Gaussian tuples, or a set of Gaussians, once for all scales.

    Unknown independent tuples outside the problem add noise to the answer but do not change its
    tails, where a Gaussian model leaks most: they can be ignored.
    """

    def __init__(self, problem: Problem) -> None:
        contributions = problem.contributions
        if contributions.weights is None:
            raise UnsupportedQueryError("a continuous model answers Sum, Mean and Linear only.")
        answers = np.column_stack(contributions.weights)  # one row per coordinate
        deviations = np.sqrt(np.diagonal(center_of(problem.model).covariance))
        self._units = Units.of(answers, deviations)
        weights = merged(self._units.weights(answers))
        if contributions.clamped:  # bounds of clamped answers add up over coordinates
            weights = np.abs(weights).sum(axis=0, keepdims=True)
        self._problem, self._weights = problem, weights
        self._blocks = blocks_of(problem, weights)
        if not self._blocks:
            raise PdpError("no adversary of the set attacks a tuple of this model.")
        self._unit = Remembered(search=self._searched)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        threshold = self._units.threshold(limits.incumbent, scale)
        return self._units.at(scale, self._unit.bracket(threshold, limits.deadline))

    def _searched(self, incumbent: float, deadline: float) -> Bracket:
        best: Bracket | None = None
        search = bracket_clamped if self._problem.contributions.clamped else _bracket
        for block in self._blocks:
            threshold = max(incumbent, best.upper) if best else incumbent
            found = search(
                self._problem, self._weights, block, incumbent=threshold, deadline=deadline
            )
            best = found if best is None else best.or_worse(found)
        if best is None:
            raise PdpError("no adversary of the set attacks a tuple of this model.")
        return best


@dataclass(frozen=True, kw_only=True)
class _Worst(Worst):
    """The worst adversary found in one block, with its own leakage."""

    regression: Regression
    """The leakage of this adversary."""


def _bracket(
    problem: Problem, weights: FloatArray, block: Block, *, incumbent: float, deadline: float
) -> Bracket:
    """Search one block of an answer that is not clamped."""
    worst = _worst_of(block, incumbent=incumbent, deadline=deadline)
    return found_from(
        problem,
        weights,
        block.positions,
        worst.target,
        worst.known,
        worst.regression,
        upper=worst.upper,
    )


def _worst_of(block: Block, *, incumbent: float, deadline: float) -> _Worst:
    instance = block.instance
    if block.known is not None:
        return _named(block, instance.targets[0], block.known)
    if not instance.coordinates.any():
        return _silent(instance)
    if instance.fewest == instance.size - 1:
        return _strongest(block)
    if instance.most == 0:
        return _weakest(block)
    cap = np.inf
    if instance.fewest == 0 and instance.is_certain:
        cap = certified_upper(instance, block.precision) or np.inf
        weakest = _weakest(block) if cap < np.inf else None
        enough = CLOSED if instance.size <= SEARCHED_TUPLES else NEARLY_CLOSED
        if weakest and cap <= max(weakest.regression.lower * enough, incumbent):
            return _Worst(upper=cap, target=weakest.target, known=(), regression=weakest.regression)
    return _searched(block, cap=cap, incumbent=incumbent, deadline=deadline)


def _searched(block: Block, *, cap: float, incumbent: float, deadline: float) -> _Worst:
    from pdp_calibrate.families.gaussian.branch_and_bound import branch_and_bound

    tau = block.search_tau
    bracket = branch_and_bound(
        block.instance, block.precision, tau=tau, incumbent=incumbent, deadline=deadline
    )
    evaluated = regression(block.instance, bracket.target, bracket.known, tau=tau)
    found = _Worst(
        upper=min(bracket.upper, cap),
        target=bracket.target,
        known=bracket.known,
        regression=evaluated,
    )
    if block.instance.most < block.instance.size - 1:
        return found
    # Among ties, the adversary who knows everyone else attains the value to the last digits.
    if _most_alone(block.instance)[0] <= evaluated.lower:
        return found
    strongest = _strongest(block)
    if strongest.regression.lower <= evaluated.lower:
        return found
    return dataclasses.replace(strongest, upper=found.upper)


def _named(block: Block, target: int, known: tuple[int, ...]) -> _Worst:
    everyone = len(known) == block.instance.size - 1
    found = regression(block.instance, target, known, tau=0.0 if everyone else block.tau)
    return _Worst(upper=found.value, target=target, known=known, regression=found)


def _silent(instance: Instance) -> _Worst:
    """Return leakage 0: no tuple of the block enters the answer."""
    target = instance.targets[0]
    others = [k for k in range(instance.size) if k != target]
    nothing = Regression(value=0.0, lower=0.0, signs=instance.signs[0])
    known = tuple(others[: instance.fewest])
    return _Worst(upper=0.0, target=target, known=known, regression=nothing)


def _strongest(block: Block) -> _Worst:
    """Evaluate who knows everyone else: plain DP, |a_i|·M_i/λ."""
    instance = block.instance
    _, target = _most_alone(instance)
    return _named(block, target, tuple(k for k in range(instance.size) if k != target))


def _most_alone(instance: Instance) -> tuple[float, int]:
    """Return the largest |a_i|·M_i, rounded, and its target."""
    leaks = (np.abs(instance.coordinates).sum(axis=0) * instance.factors).tolist()
    target = max(instance.targets, key=leaks.__getitem__)
    return leaks[target], target


def _weakest(block: Block) -> _Worst:
    """Evaluate who knows nobody, for all targets at once."""
    instance = block.instance
    if not instance.is_certain and instance.size <= SINGLE_REGRESSIONS:
        worst = [regression(instance, target, (), tau=block.tau) for target in instance.targets]
        place = int(np.argmax([found.value for found in worst]))
        return _Worst(
            upper=worst[place].value,
            target=instance.targets[place],
            known=(),
            regression=worst[place],
        )
    values, errors = nobody_known(instance)
    target = max(instance.targets, key=lambda place: float(values[place]))
    upper = float((values + errors)[list(instance.targets)].max())
    evaluated = regression(instance, target, (), tau=0.0)
    lower = max(0.0, float(values[target] - errors[target]))
    found = Regression(value=upper, lower=lower, signs=evaluated.signs)
    return _Worst(upper=upper, target=target, known=(), regression=found)
