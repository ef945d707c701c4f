"""The worst adversary of one block, by local search and best-first branch and bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.workers import progress as showing
from pdp_calibrate.families.gaussian.instance import Instance
from pdp_calibrate.families.gaussian.regression import regression

TOLERANCE = 2e-10  # bounds this close to the best value are closed: still exact to 1e-9


VISITED_AT_MOST = 2_000_000  # without a deadline the search ends here, with a certified bracket


_CLIMBS = 64


_CLIMBING_WORK = 5e8


_MEMORY = 2**29  # bytes for open nodes


@dataclass(frozen=True, kw_only=True)
class BlockSearch:
    """What a search of one block knows when it ends."""

    upper: float
    """No admitted adversary leaks more."""
    best: float
    """Rounded leakage of the adversary below; evaluate it anew before use."""
    target: int
    """The tuple attacked by the worst adversary found."""
    known: tuple[int, ...]
    """What this adversary knows."""
    visited: int
    """Number of nodes expanded."""


@dataclass(kw_only=True)
class _Heap:
    """Open nodes; `slots` beyond the open ones are free."""

    keys: FloatArray
    slots: npt.NDArray[np.int64]
    states: npt.NDArray[np.uint8]
    owners: npt.NDArray[np.int64]

    @classmethod
    def of(cls, capacity: int, size: int) -> _Heap:
        return cls(
            keys=np.zeros(capacity),
            slots=np.arange(capacity),
            states=np.zeros((capacity, size), dtype=np.uint8),
            owners=np.zeros(capacity, dtype=np.int64),
        )

    def doubled(self) -> _Heap:
        capacity, size = self.states.shape
        more = _Heap.of(2 * capacity, size)
        more.keys[:capacity] = self.keys
        more.slots[:capacity] = self.slots
        more.states[:capacity] = self.states
        more.owners[:capacity] = self.owners
        return more


def root_bounds(instance: Instance, precision: FloatArray, *, tau: float) -> FloatArray:
    """Bound the leakage of every known set at once, per target and sign pattern: O(n²)."""
    from pdp_calibrate.families.gaussian.kernels import sphere_bound, widened

    functions = instance.functions()
    products = functions @ instance.covariance
    totals = np.einsum("mj,mj->m", functions, products)
    widest = float(instance.multipliers.max())
    peak = float(totals.max())
    bounds = np.zeros((len(instance.targets), len(functions)))
    for row, target in enumerate(instance.targets):
        variance = instance.covariance[target, target]
        floor = 1 / precision[target, target]
        for which, weights in enumerate(functions):
            cross, total = products[which, target], totals[which]
            bound = sphere_bound(variance, cross, total, floor, weights[target], 0.0, peak, tau)
            bounds[row, which] = instance.factors[target] * widened(
                bound, variance, cross, total, floor, peak, tau, widest
            )
    return bounds


def branch_and_bound(
    instance: Instance, precision: FloatArray, *, tau: float, incumbent: float, deadline: float
) -> BlockSearch:
    """Search all targets and sign patterns of one block against one best value.

    Adversaries who cannot leak more than `incumbent` are not told apart. At the deadline (a value
    of `time.monotonic()`), or when memory or patience end, the bracket stays certified: its upper
    end is the largest bound among all nodes closed or still open.
    """
    from pdp_calibrate.families.gaussian import kernels as frontier

    functions = instance.functions()
    products = functions @ instance.covariance
    totals = np.einsum("mj,mj->m", functions, products)
    roots = root_bounds(instance, precision, tau=tau)
    rows, columns = np.unravel_index(np.argsort(-roots, axis=None), roots.shape)
    keys = roots[rows, columns]
    attacks = np.column_stack([np.array(instance.targets)[rows], columns]).astype(np.int64)

    start = _climbed(instance, functions, products, totals, attacks, keys, tau, incumbent, deadline)
    return explored(
        frontier.advance,
        instance,
        (
            instance.covariance,
            precision,
            functions,
            products,
            totals,
            attacks,
            instance.factors,
        ),
        keys=keys,
        targets=attacks[:, 0],
        tau=tau,
        incumbent=incumbent,
        deadline=deadline,
        start=start,
    )


def _climbed(
    instance: Instance,
    functions: FloatArray,
    products: FloatArray,
    totals: FloatArray,
    attacks: npt.NDArray[np.int64],
    keys: FloatArray,
    tau: float,
    incumbent: float,
    deadline: float,
) -> tuple[float, int, npt.NDArray[np.uint8]]:
    """Climb from both ends for the most promising attacks; return value, attack and state."""
    from pdp_calibrate.families.gaussian.kernels import KNOWN, climb

    best, owner = 0.0, 0
    best_state = _any_state(instance, int(attacks[0, 0]))
    state = np.zeros(instance.size, dtype=np.uint8)
    climbs = max(1, min(_CLIMBS, int(_CLIMBING_WORK / instance.size**3)))
    for place in range(min(climbs, len(keys))):
        if keys[place] <= max(best, incumbent) or time.monotonic() > deadline:
            break
        target, which = attacks[place]
        for start in (0, 1):
            value = instance.factors[target] * climb(
                instance.covariance, functions[which], products[which], totals[which], target,
                instance.multipliers, instance.fewest, instance.most, start, state,
            )  # fmt: skip
            if value > best:
                best, owner, best_state = value, place, state.copy()
    known = np.flatnonzero(best_state == KNOWN).tolist()
    # A climb loses digits on its way; a value too large would close nodes that beat the true one.
    evaluated = regression(instance, int(attacks[owner, 0]), known, tau=tau)
    return min(float(best), evaluated.value), owner, best_state


def explored(
    advance: Callable[..., int],
    instance: Instance,
    arrays: tuple[npt.NDArray[Any], ...],
    *,
    keys: FloatArray,
    targets: npt.NDArray[np.int64],
    tau: float,
    incumbent: float,
    deadline: float,
    start: tuple[float, int, npt.NDArray[np.uint8]] | None = None,
) -> BlockSearch:
    """Run a compiled best-first search from one root per key, sorted downwards.

    Memory, patience and the deadline are watched here, between batches of nodes.
    """
    from pdp_calibrate.families.gaussian import kernels as frontier
    from pdp_calibrate.families.gaussian.kernels import KNOWN

    best, owner, best_state = start or (0.0, 0, _any_state(instance, int(targets[0])))
    heap = _Heap.of(max(1024, 2 * len(keys)), instance.size)
    heap.keys[: len(keys)] = keys  # sorted downwards: already a heap
    heap.owners[: len(keys)] = np.arange(len(keys))
    progress = np.array([0.0, max(best, 0.0), float(len(keys)), 0.0, float(owner)])
    widest = _widest(instance.multipliers)
    budget = max(8, int(2e7 / instance.size**3))
    code = frontier.PAUSED
    with showing("searching adversaries") as show:
        while code != frontier.DONE and time.monotonic() <= deadline:
            if code == frontier.FULL:
                if 2 * heap.states.nbytes > _MEMORY:
                    break
                heap = heap.doubled()
            if progress[frontier.VISITED] > VISITED_AT_MOST:
                break
            code = advance(
                *arrays, widest, instance.multipliers, instance.fewest, instance.most, tau,
                incumbent, TOLERANCE, heap.keys, heap.slots, heap.states, heap.owners, progress,
                best_state, budget,
            )  # fmt: skip
            show(int(progress[frontier.VISITED]))
    upper = progress[frontier.CLOSED]
    if code != frontier.DONE:
        upper = max(upper, heap.keys[0])
    target = int(targets[int(progress[-1])])
    known = np.flatnonzero(best_state == KNOWN)
    return BlockSearch(
        upper=float(upper),
        best=float(progress[frontier.BEST]),
        target=target,
        known=tuple(int(k) for k in known if k != target),
        visited=int(progress[frontier.VISITED]),
    )


def _any_state(instance: Instance, target: int) -> npt.NDArray[np.uint8]:
    """Return the state of some admitted known set."""
    state = np.full(instance.size, 2, dtype=np.uint8)
    state[[k for k in range(instance.size) if k != target][: instance.fewest]] = 1
    return state


def _widest(multipliers: FloatArray) -> FloatArray:
    """Return the largest multiplier between any two numbers of known tuples."""
    table = np.zeros((len(multipliers), len(multipliers)))
    for first in range(len(multipliers)):
        table[first, first:] = np.maximum.accumulate(multipliers[first:])
    return table
