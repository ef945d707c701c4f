"""The engine for all chains that forget fast enough: Birkhoff's contraction, one pass.

A step of Hilbert diameter D turns two beliefs at log-distance a into beliefs at log-distance at
most L(a) = 4·artanh(tanh(D/4)·tanh(a/4)), whatever the step is otherwise, forwards or backwards. If
tuple j alone moves the likelihood of the output by ε_j, all tuples on one side of the target add at
most L(ε + L(ε' + …)). So one pass bounds every chain of the set, every start and every adversary;
known tuples cut the chain. One member, which alternates least, gives the lower end.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.contraction import birkhoff_bounds
from pdp_calibrate.core.model import Model, model_named
from pdp_calibrate.core.plain_dp import nobody, plain_dp
from pdp_calibrate.core.problem import Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.network.mixing_chain import MixingChain

_LONGEST_SEARCHED = 24  # tuples of a member that is searched for the lower end


class MixingEngine(Engine):
    """Bounds all chains of the set at once; one member gives the lower end.

    Parameters
    ----------
    problem
        The set, what the tuples add, and who attacks them.
    lender
        An engine for the same set and answers, whose member is taken over.
    """

    def __init__(self, problem: Problem, *, lender: MixingEngine | None = None) -> None:
        model, contributions = problem.model, problem.contributions
        if not isinstance(model, MixingChain):
            raise TypeError(f"this engine bounds sets of Markov chains, got {model!r}.")
        if contributions.table is not None:
            raise UnsupportedQueryError(
                "Custom has no bound on a set of chains; ask Sum, Mean, Linear, Count or Histogram."
            )
        self.problem, self.model, self._lender = problem, model, lender

    def against(self, problem: Problem) -> MixingEngine:
        """Return an engine for the same set and answers; see `core.problem.Sharing`."""
        return MixingEngine(problem, lender=self)

    @functools.cached_property
    def member(self) -> Problem:
        """The same problem about one chain of the set."""
        if self._lender is not None:
            return self._lender.member.against(self.problem.knowledge)
        chain = _member(self.model, self.problem.contributions.values)
        return dataclasses.replace(self.problem, model=chain)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bound the worst adversary of the worst chain; see `core.problem.Engine`."""
        problem, model, contributions = self.problem, self.model, self.problem.contributions
        value, target, unknown = _upper_end(problem, model, contributions.tuple_ranges() / scale)
        found = dataclasses.replace(nobody(problem), upper=value, target=target, unknown=unknown)
        if contributions.coordinates > 1:
            return found
        knowledge = problem.knowledge
        if knowledge.admits_strongest and not problem.hidden_noise:
            attacked = max(knowledge.targets, key=lambda p: contributions.tuple_ranges()[p])
            others = dict.fromkeys(range(model.length), 0)
            found = found.with_lower(plain_dp(problem, attacked, scale, others))
        if not unknown or value <= limits.incumbent or model.length > _LONGEST_SEARCHED:
            return found
        return found.with_lower(self.member.engine.bracket(scale, deadline=limits.deadline))


def _upper_end(
    problem: Problem, model: MixingChain, budgets: FloatArray
) -> tuple[float, int, tuple[int, ...]]:
    """Return the bound, and the adversary it is about."""
    knowledge, positions = problem.knowledge, range(model.length)
    if knowledge.fewest == model.length - 1:
        target = max(knowledge.targets, key=lambda p: budgets[p])
        return float(budgets[target]) * ROUND_UP, target, ()
    if knowledge.known is None:
        bounds = birkhoff_bounds(budgets, model.diameter)
        target = max(knowledge.targets, key=lambda p: bounds[p])
        return float(bounds[target]), target, tuple(p for p in positions if p != target)
    (target,) = knowledge.targets
    low = max((p for p in knowledge.known if p < target), default=-1)
    high = min((p for p in knowledge.known if p > target), default=model.length)
    bounds = birkhoff_bounds(budgets[low + 1 : high], model.diameter)
    unknown = tuple(p for p in positions if p != target and p not in knowledge.known)
    return float(bounds[target - low - 1]), target, unknown


def _member(model: MixingChain, values: tuple[FloatArray, ...]) -> Model:
    """Return a chain of the set that likes to stay with the largest, or the smallest, value."""
    spread = max(values, key=lambda part: float(np.ptp(part)))[:, 0]
    top, bottom = int(spread.argmax()), int(spread.argmin())
    weights = np.zeros((len(spread), len(spread)))
    tilt = min(model.diameter * (1 - 1e-12) / 4, 100.0)  # four such weights: a cross-ratio of e^D
    for row, sign in ((top, 1.0), (bottom, -1.0)):
        weights[row, top], weights[row, bottom] = sign * tilt, -sign * tilt
    kernel = np.exp(weights)
    kernel /= kernel.sum(axis=1, keepdims=True)
    chain: Any = model_named("MarkovChain")
    member: Model = chain(
        transition=kernel,
        length=model.length,
        states=model.states,
        names=model.names,
        provenance=model.provenance,
    )
    return member.marked_like(model)
