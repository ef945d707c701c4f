"""The worst adversary of Gaussian tuples: certified, exact where the search can finish."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.errors import PdpError, UnsupportedQueryError
from pdp_calibrate.families.gaussian.instance import (
    Instance,
    checked_tau,
    merged,
    precision_of,
    rescaled,
    search_tau,
    tau_of,
)
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.regression import (
    Regression,
    center_of,
    found_from,
    multipliers_of,
    nobody_known,
    regression,
)
from pdp_calibrate.families.gaussian.sign_certificate import certified_upper

_ONE_BY_ONE = 200  # so many regressions are made for their smaller rounding error


_EXACT = 1 + 5e-10  # a bracket narrower than this needs no search


_NEARLY_EXACT = 1 + 1e-6  # and one narrower than this needs none where none could finish


_SEARCHED = 60


@dataclass(frozen=True, kw_only=True)
class Worst:
    """The worst adversary found in one block."""

    upper: float
    """No admitted adversary of the block leaks more."""
    target: int
    """The tuple attacked, as a position in the block."""
    known: tuple[int, ...]
    """The tuples known, as positions in the block."""
    regression: Regression
    """The leakage of this adversary."""


def search(
    problem: Problem,
    scale: float | FloatArray,
    *,
    incumbent: float = 0.0,
    deadline: float = np.inf,
) -> Bracket:
    """Find the worst adversary of Gaussian tuples, or of a set of Gaussians.

    Parameters
    ----------
    problem
        Model, contributions and adversaries. Unknown independent tuples outside the problem blur
        the answer but not its tails, where a Gaussian model leaks most: they change nothing.
    scale
        The Laplace scale λ, or one per coordinate of the answer.
    incumbent
        Adversaries who cannot leak more than this need not be told apart.
    deadline
        Value of `time.monotonic()` after which the bracket found so far is returned.
    """
    weights = weights_over_scale(problem, scale)
    if problem.contributions.clamped:
        from pdp_calibrate.families.gaussian.clamped import search_clamped

        return search_clamped(problem, weights, incumbent=incumbent, deadline=deadline)
    best: Bracket | None = None
    for block in blocks_of(problem):
        instance = instance_of(problem, weights, block)
        if instance is None:
            continue
        threshold = max(incumbent, best.upper) if best else incumbent
        worst = worst_of(problem, instance, block, incumbent=threshold, deadline=deadline)
        found = found_from(
            problem,
            weights,
            block,
            worst.target,
            worst.known,
            worst.regression,
            upper=worst.upper,
        )
        best = found if best is None else best.or_worse(found)
    if best is None:
        raise PdpError("no adversary of the set attacks a tuple of this model.")
    return best


def weights_over_scale(problem: Problem, scale: float | FloatArray) -> FloatArray:
    """Return a_j/λ, one row per coordinate of the answer, parallel ones added up."""
    if problem.contributions.weights is None:
        raise UnsupportedQueryError("a continuous model answers Sum, Mean and Linear only.")
    weights = np.column_stack(problem.contributions.weights)
    with np.errstate(over="ignore"):
        relative = weights / np.reshape(scale, (-1, 1))
    if not np.all(np.isfinite(relative)):
        raise PdpError("scale is too small for these weights: their ratio overflows.")
    return merged(relative)


def blocks_of(problem: Problem) -> list[list[int]]:
    """Return the connected components of the covariance; a set of covariances is one block.

    Independent tuples say nothing about each other: given x_K, the coefficient of x_i depends on
    its own block alone.
    """
    size = len(problem.model.names)
    if not isinstance(problem.model, Gaussian):
        return [list(range(size))]
    number, labels = connected_components(problem.model.covariance != 0, directed=False)
    return [np.flatnonzero(labels == label).tolist() for label in range(number)]


def instance_of(
    problem: Problem, weights: FloatArray, block: list[int], *, functions: int | None = None
) -> Instance | None:
    """Rescale one block; None if no target lies in it.

    `functions` linear functions are bounded together: by default the sign patterns of the answer.
    """
    knowledge = problem.knowledge
    places = {position: place for place, position in enumerate(block)}
    targets = tuple(places[target] for target in knowledge.targets if target in places)
    rest = knowledge.total - len(block)
    fewest, most = max(0, knowledge.fewest - rest), min(len(block) - 1, knowledge.most)
    if knowledge.known is not None:
        fewest = most = len(knowledge.known.intersection(block))
    if not targets:
        return None
    center = center_of(problem.model)
    covariance, coordinates, factors = rescaled(
        center.covariance[np.ix_(block, block)], weights[:, block], center.widths[block]
    )
    number = functions or 2 ** (len(weights) - 1)
    return Instance(
        covariance=covariance,
        coordinates=coordinates,
        factors=factors,
        multipliers=multipliers_of(problem.model, functions=number)[: len(block)],
        targets=targets,
        fewest=fewest,
        most=most,
    )


def worst_of(
    problem: Problem, instance: Instance, block: list[int], *, incumbent: float, deadline: float
) -> Worst:
    """Find the worst adversary of one block."""
    if problem.knowledge.known is not None:
        known = tuple(k for k, position in enumerate(block) if position in problem.knowledge.known)
        return _named(instance, instance.targets[0], known)
    if not instance.coordinates.any():
        return _silent(instance)
    if instance.fewest == instance.size - 1:
        return _strongest(instance)
    if instance.most == 0:
        return _weakest(instance)
    cap = np.inf
    precision = precision_of(instance)
    if instance.fewest == 0 and instance.is_certain:
        cap = certified_upper(instance, precision) or np.inf
        weakest = _weakest(instance) if cap < np.inf else None
        enough = _EXACT if instance.size <= _SEARCHED else _NEARLY_EXACT
        if weakest and cap <= max(weakest.regression.lower * enough, incumbent):
            return Worst(upper=cap, target=weakest.target, known=(), regression=weakest.regression)
    return _searched(instance, precision, cap=cap, incumbent=incumbent, deadline=deadline)


def _searched(
    instance: Instance, precision: FloatArray, *, cap: float, incumbent: float, deadline: float
) -> Worst:
    from pdp_calibrate.families.gaussian.branch_and_bound import branch_and_bound

    tau = search_tau(instance, precision)
    bracket = branch_and_bound(instance, precision, tau=tau, incumbent=incumbent, deadline=deadline)
    evaluated = regression(instance, bracket.target, bracket.known, tau=tau)
    return Worst(
        upper=min(bracket.upper, cap),
        target=bracket.target,
        known=bracket.known,
        regression=evaluated,
    )


def _named(instance: Instance, target: int, known: tuple[int, ...]) -> Worst:
    everyone = len(known) == instance.size - 1
    tau = 0.0 if everyone else _tau(instance)
    found = regression(instance, target, known, tau=tau)
    return Worst(upper=found.value, target=target, known=known, regression=found)


def _silent(instance: Instance) -> Worst:
    """No tuple of the block enters the answer, so nobody in it leaks."""
    target = instance.targets[0]
    others = [k for k in range(instance.size) if k != target]
    nothing = Regression(value=0.0, lower=0.0, signs=instance.signs()[0])
    known = tuple(others[: instance.fewest])
    return Worst(upper=0.0, target=target, known=known, regression=nothing)


def _strongest(instance: Instance) -> Worst:
    """Knowing everyone else: plain DP, |a_i|·M_i/λ."""
    leaks = np.abs(instance.coordinates).sum(axis=0) * instance.factors
    target = max(instance.targets, key=lambda place: float(leaks[place]))
    return _named(instance, target, tuple(k for k in range(instance.size) if k != target))


def _weakest(instance: Instance) -> Worst:
    """Knowing nobody, for all targets at once."""
    if not instance.is_certain and instance.size <= _ONE_BY_ONE:
        tau = _tau(instance)
        worst = [regression(instance, target, (), tau=tau) for target in instance.targets]
        place = int(np.argmax([found.value for found in worst]))
        return Worst(
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
    return Worst(upper=upper, target=target, known=(), regression=found)


def _tau(instance: Instance) -> float:
    return checked_tau(tau_of(instance.covariance, len(instance.coordinates)))


class GaussianEngine:
    """Searches one problem at many scales."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Find the worst adversary at one scale; see `core.family.Engine`."""
        del enough
        return search(self.problem, scale, incumbent=incumbent, deadline=deadline)
