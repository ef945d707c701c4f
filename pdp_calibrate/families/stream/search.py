"""The engine for models without an end: closed forms for upper ends, long stretches for lower ends.

The memory of a model (`memory.py`) adds up the leakage over steps. The lower end for a chain uses
extreme outputs, r → ±∞ at every step: there a state of contribution g has the weight e^{±g/λ}, and
beliefs about one record from either side are powers of one matrix. Once a longer stretch of steps
no longer changes them, it represents all time.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol, cast, runtime_checkable

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import (
    Bracket,
    Composer,
    Engine,
    Limits,
    Problem,
)
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP
from pdp_calibrate.core.tuning import STREAM_STRETCH
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.stream.memory import Contracting, Memory, Shifting


@runtime_checkable
class Forgetting(Protocol):
    """A chain, or a set of chains."""

    diameter: float
    """The largest Hilbert diameter of a step."""


@runtime_checkable
class Correlated(Protocol):
    """A Gaussian series."""

    ends: tuple[float, float]
    """The smallest and the largest φ of neighbours."""
    strength: float
    """The largest |φ|."""
    bounds: tuple[float, float]
    """The public range of a record."""
    variance: float | None
    """The variance of a record; None if any."""


def memory_of(model: Model) -> Memory:
    """Return how the steps of a model without an end pass leakage on under Laplace noise."""
    if isinstance(model, Forgetting):
        return Contracting(model.diameter)
    return Shifting(cast("Correlated", model).strength)


def is_attained(problem: Problem) -> bool:
    """Whether some adversary attains the closed form of a series.

    For clamped values with a stated variance it is only a bound: some values do not move as far. A
    variance that is not stated may be arbitrarily small.
    """
    return not problem.contributions.clamped or getattr(problem.model, "variance", None) is None


class StreamEngine(Engine):
    """Bounds the leakage about the record of any step, from one answer or one at every step."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.memory = memory_of(problem.model)
        # Rounding may have changed the contributions; this is their exact range.
        self._range = float(problem.contributions.exact_ranges()[0])

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bound all adversaries at once; see `core.problem.Engine`."""
        budget = self._range / scale * ROUND_UP
        every_step = self.problem.contributions.every_step
        upper = self.memory.for_ever(budget) if every_step else budget
        found = dataclasses.replace(self.problem.nobody(), upper=upper)
        if upper <= limits.incumbent:
            return found
        return found.with_lower(self._lower_end(scale))

    def _lower_end(self, scale: float) -> Bracket:
        """Return an adversary who learns nearly as much."""
        problem = self.problem
        contributions = problem.contributions
        added = contributions.in_every_cell()
        if len(added) < 2:
            return problem.nobody()
        leak, (one, other) = _own_step(added / scale)
        if (
            contributions.every_step
            and contributions.coordinates == 1
            and (isinstance(self.memory, Shifting) or not contributions.rounding)
        ):
            if isinstance(self.memory, Shifting):
                if is_attained(problem):
                    leak = max(0.0, leak - contributions.rounding / scale)
                    leak = leak * (1 + self.memory.factor) / (1 - self.memory.factor)
            else:
                kernel = _kernel(problem.model, added[:, 0])
                stretched, pair = _leak_at_extremes(kernel, added[:, 0] / scale)
                if stretched > leak:
                    leak, (one, other) = stretched, pair
        if contributions.table is not None:
            return problem.nobody()  # a witness needs contributions by value
        return dataclasses.replace(
            problem.nobody(),
            lower=leak * ROUND_DOWN * (1 - 1e-10),
            witness=problem.witness_at(0, {}, (one, other), _towards(contributions, one, other)),
        )


class StreamComposer(Composer):
    """Bounds budgets that are spent step by step."""

    def for_ever(self, model: Model, dp_epsilon: float) -> float:
        """Bound the leakage about any step if every step has this budget."""
        return _chain_memory(model).for_ever(dp_epsilon)

    def budget_for_ever(self, model: Model, epsilon: float) -> float | None:
        """Invert the closed form."""
        budget = _chain_memory(model).budget(epsilon)
        if budget <= 0:
            raise UnsupportedQueryError(
                "the chain forgets too slowly: no budget above 0 keeps this epsilon for ever."
            )
        return budget


def _chain_memory(model: Model) -> Contracting:
    """Return the memory of a chain; raise for Gaussian series, where black boxes have no bound."""
    memory = memory_of(model)
    if not isinstance(memory, Contracting):
        raise UnsupportedQueryError(
            "only the plain-DP budget of an outside mechanism is known, and that bounds nothing"
            " about a Gaussian series: any small change of a record may use all of it, at every"
            " step. Use MixingChain on values sorted into classes, or release sums and means"
            " through a ledger."
        )
    return memory


def _own_step(likelihood: FloatArray) -> tuple[float, tuple[int, int]]:
    """Return the largest L1 distance of two contributions, in units of the noise, and the pair."""
    apart = np.abs(likelihood[:, np.newaxis, :] - likelihood[np.newaxis, :, :]).sum(axis=2)
    one, other = divmod(int(apart.argmax()), len(apart))
    if one == other:
        one, other = 0, 1
    first, second = likelihood[one].sum(), likelihood[other].sum()
    return float(apart.max()), (one, other) if first >= second else (other, one)


def _kernel(model: Model, added: FloatArray) -> FloatArray:
    """Return the chain itself, or a member of the set that stays with its extreme values."""
    known = getattr(model, "kernel", None)
    if known is not None:
        return np.asarray(known, dtype=np.float64)
    tilt = math.exp(min(cast("Forgetting", model).diameter, 100.0) / 2)
    kernel = np.zeros((len(added), len(added)))
    top, bottom = int(added.argmax()), int(added.argmin())
    kernel[:, [top, bottom]] = 1 / 2
    kernel[top, [top, bottom]] = tilt / (1 + tilt), 1 / (1 + tilt)
    kernel[bottom, [bottom, top]] = tilt / (1 + tilt), 1 / (1 + tilt)
    return kernel  # in the limit where the states between are as rare as possible


def _leak_at_extremes(kernel: FloatArray, gains: FloatArray) -> tuple[float, tuple[int, int]]:
    """Return what extreme outputs at every step leak about the record in the middle.

    The adversary knows no record: the chain runs in its stationary law before and after.
    """
    reached = kernel.max(axis=0) > 0
    kernel, own = kernel[np.ix_(reached, reached)], gains[reached]
    places = np.flatnonzero(reached)
    if len(places) < 2:
        return 0.0, (0, 1)
    before = _reversed(kernel)
    best, pair = 0.0, (0, 1)
    for sign in (1.0, -1.0):
        weights = sign * own
        logs = weights + _message(kernel, weights) + _message(before, weights)
        one, other = int(logs.argmax()), int(logs.argmin())
        if logs[one] - logs[other] > best:
            best, pair = float(logs[one] - logs[other]), (int(places[one]), int(places[other]))
    return best, pair


def _message(kernel: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the log-likelihood of each state from all steps on one side, up to a constant."""
    message = np.zeros(len(kernel))
    for _ in range(STREAM_STRETCH):
        after = weights + message
        peak = after.max()
        following = np.log(kernel @ np.exp(after - peak))
        following -= following.max()
        if np.array_equal(following, message):
            break
        message = following
    return message


def _reversed(kernel: FloatArray) -> FloatArray:
    """Return the time-reversed chain, started in its stationary law."""
    law = np.full(len(kernel), 1 / len(kernel)) @ np.linalg.matrix_power(kernel, 2**12)
    backwards = kernel.T * law
    return np.asarray(backwards / backwards.sum(axis=1, keepdims=True))


def _towards(contributions: Contributions, one: int, other: int) -> float:
    """Return the extreme output that favours the first secret."""
    values = contributions.values[0]
    return math.inf if values[one].sum() >= values[other].sum() else -math.inf
