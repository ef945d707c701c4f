"""The engine for models without an end: closed forms above, a stretch of the stream below.

The leakage of every step is added up by its memory (`memory.py`). The lower end of a chain uses
outputs far out, r → ±∞ at every step: there a state of contribution g weighs e^{±g/λ}, and beliefs
about one record from either side are powers of one matrix. Further steps can only be more of the
same, so a stretch that no longer changes them stands for all time.
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

    correlation: float
    """φ, of neighbours."""
    bounds: tuple[float, float]
    """The public range of a record."""
    variance: float | None
    """Of a record; None if any."""


def memory_of(model: Model) -> Memory:
    """Return how the steps of a model without an end pass on what Laplace noise lets through."""
    if isinstance(model, Forgetting):
        return Contracting(model.diameter)
    return Shifting(abs(cast("Correlated", model).correlation))


def is_attained(problem: Problem) -> bool:
    """Whether some adversary attains the closed form of a series.

    Of clamped values with a stated variance it is a bound only: some do not move as far. Where the
    variance may be anything, it may be next to nothing.
    """
    return not problem.contributions.clamped or getattr(problem.model, "variance", None) is None


class StreamEngine(Engine):
    """Bounds the leakage about the record of any step, by one step or by all of them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.memory = memory_of(problem.model)
        # Where rounding the contributions may have changed them, this is the exact range.
        self._range = float(problem.contributions.exact_ranges()[0])

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bound everyone at once; see `core.problem.Engine`."""
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
        told, (one, other) = _own_step(added / scale)
        if (
            contributions.every_step
            and contributions.coordinates == 1
            and (isinstance(self.memory, Shifting) or not contributions.rounding)
        ):
            if isinstance(self.memory, Shifting):
                if is_attained(problem):
                    told = max(0.0, told - contributions.rounding / scale)
                    told = told * (1 + self.memory.factor) / (1 - self.memory.factor)
            else:
                kernel = _kernel(problem.model, added[:, 0])
                stretched, pair = _told_by_extremes(kernel, added[:, 0] / scale)
                if stretched > told:
                    told, (one, other) = stretched, pair
        if contributions.table is not None:
            return problem.nobody()  # a witness needs contributions by value
        return dataclasses.replace(
            problem.nobody(),
            lower=told * ROUND_DOWN * (1 - 1e-10),
            witness=problem.witness_at(0, {}, (one, other), _towards(contributions, one, other)),
        )


class StreamComposer(Composer):
    """Bounds budgets that are spent step by step."""

    def for_ever(self, model: Model, dp_epsilon: float) -> float:
        """Bound what this budget at every step tells about any."""
        return _chain_memory(model).for_ever(dp_epsilon)

    def budget_for_ever(self, model: Model, epsilon: float) -> float | None:
        """Invert the closed form."""
        budget = _chain_memory(model).budget(epsilon)
        if budget <= 0:
            raise UnsupportedQueryError(
                "the chain forgets so slowly that no budget above 0 keeps this epsilon for ever."
            )
        return budget


def _chain_memory(model: Model) -> Contracting:
    """Return the memory of a chain; outside mechanisms about Gaussian records have no bound."""
    memory = memory_of(model)
    if not isinstance(memory, Contracting):
        raise UnsupportedQueryError(
            "of an outside mechanism only its plain-DP budget is known, which bounds nothing about"
            " a Gaussian series: any small move of a record may use all of it, at every step. Use"
            " MixingChain on values in classes, or release sums and means through a ledger."
        )
    return memory


def _own_step(likelihood: FloatArray) -> tuple[float, tuple[int, int]]:
    """Return the largest L1 distance of two contributions, in units of the noise, and of whom."""
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
    return kernel  # in the limit where the states between are as rare as can be


def _told_by_extremes(kernel: FloatArray, gains: FloatArray) -> tuple[float, tuple[int, int]]:
    """Return what outputs far out at every step tell about the record in the middle.

    The adversary knows nobody: the chain runs in its stationary law before and after.
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
    """Return the logarithm of what all steps of one side say about a state, up to a constant."""
    told = np.zeros(len(kernel))
    for _ in range(STREAM_STRETCH):
        after = weights + told
        peak = after.max()
        following = np.log(kernel @ np.exp(after - peak))
        following -= following.max()
        if np.array_equal(following, told):
            break
        told = following
    return told


def _reversed(kernel: FloatArray) -> FloatArray:
    """Return the chain seen backwards from its stationary law."""
    law = np.full(len(kernel), 1 / len(kernel)) @ np.linalg.matrix_power(kernel, 2**12)
    backwards = kernel.T * law
    return np.asarray(backwards / backwards.sum(axis=1, keepdims=True))


def _towards(contributions: Contributions, one: int, other: int) -> float:
    """Return the end of the line that speaks for the first secret."""
    values = contributions.values[0]
    return math.inf if values[one].sum() >= values[other].sum() else -math.inf
