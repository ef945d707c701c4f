"""Bounds on all known sets below a node, and the data that a compiled search works on.

A node has decided about some tuples (see `sphere.py`). Answers that are not clamped move by β·δ
with the target, clamped ones by a sum of capped coefficients (see `clamped.py`): two kinds of
nodes, searched the same way. Small problems need no compiler: numpy judges their nodes in batches,
and computes up to rounding what the compiled search of large problems computes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.tuning import UNCOMPILED_WORK
from pdp_calibrate.core.workers import load_kernels
from pdp_calibrate.families.gaussian.instance import Instance
from pdp_calibrate.families.gaussian.sphere import (
    sphere_bound,
    widened,
)

Places = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

_Three = tuple[FloatArray, FloatArray, FloatArray]

KERNELS = "pdp_calibrate.families.gaussian.kernels"
_AT_ONCE = 8  # nodes that any search visits
_LINE = 8  # floats of a cache line
NEAR = 1 + 1e-4  # nodes this close to the best value are bounded a second time, more carefully


class Batch(NamedTuple):
    """Nodes to be judged together."""

    owners: Places
    """Which attack each node belongs to."""
    states: States
    """OPEN, KNOWN or UNKNOWN, one row per node; the target's own entry is ignored."""
    known: Places
    """How many tuples are decided known."""
    opened: Places
    """How many tuples are open."""


class Verdicts(NamedTuple):
    """Bounds on leakages, one row per node."""

    largest: FloatArray
    """What the largest known set below the node leaks, rounded."""
    upper: FloatArray
    """An upper bound on that."""
    smallest: FloatArray
    """What the smallest known set leaks, rounded; 0 where it is not computed."""
    bound: FloatArray
    """No known set below the node leaks more."""
    if_known: FloatArray
    """The same for each open tuple, once it is known."""
    if_unknown: FloatArray
    """The same, once it is unknown."""
    order: FloatArray
    """The open tuple with the smallest number is decided next."""

    @classmethod
    def of(
        cls,
        *,
        largest: FloatArray,
        upper: FloatArray,
        smallest: FloatArray,
        bound: FloatArray,
        if_known: FloatArray,
        if_unknown: FloatArray,
    ) -> Verdicts:
        """Decide next the tuple whose children have the smallest bounds.

        The smaller of the two counts little: the larger one has to be closed too.
        """
        order = np.maximum(if_known, if_unknown) + 0.2 * np.minimum(if_known, if_unknown)
        return cls(largest, upper, smallest, bound, if_known, if_unknown, order)


CLOSED, BEST = range(2)
"""Places in `Frontier.reached`."""
OPENED, VISITED, OWNER, ASIDE = range(4)
"""Places in `Frontier.counts`."""


class Frontier(NamedTuple):
    """The open nodes of a compiled search, and what it knows; all arrays change in place."""

    keys: FloatArray
    """A heap of bounds, the largest first."""
    slots: Places
    """Where each node of the heap is stored; behind them, the free places."""
    owners: Places
    """By slot: the node's attack; −1 − attack once it was bounded more carefully."""
    states: States
    """By slot: what the node has decided."""
    reached: FloatArray
    """The largest bound ever closed, and the best value found."""
    counts: Places
    """The numbers of open and of visited nodes, the attack that attains the best value, and the
    number of nodes set aside."""
    best_state: States
    """Which tuples the adversary of the best value knows."""
    aside_keys: FloatArray
    """The bounds of nodes that tie with the best value, to be bounded more carefully."""
    aside_owners: Places
    """Their attacks."""
    aside_states: States
    """Their decisions."""


class Block(NamedTuple):
    """One block as compiled searches read it; see `Instance`."""

    covariance: FloatArray
    precision: FloatArray
    factors: FloatArray
    multipliers: FloatArray
    widest: FloatArray
    fewest: int
    most: int
    tau: float


class Answers(NamedTuple):
    """What is attacked."""

    functions: FloatArray
    """Weights of all tuples, one row per pattern of signs."""
    products: FloatArray
    """Their covariances with all tuples."""
    totals: FloatArray
    """Their variances."""
    targets: Places
    """The target of each attack."""
    which: Places
    """The function it uses."""


class Space(NamedTuple):
    """Scratch memory of compiled searches; nothing is kept from one node to the next."""

    work: FloatArray
    inverse: FloatArray
    lines: FloatArray
    after: FloatArray
    order: FloatArray
    ends: FloatArray
    chosen: Places
    state: States

    @classmethod
    def of(cls, size: int) -> Space:
        """Return work space for this many tuples."""
        return cls(
            work=_aligned(size, size),
            inverse=_aligned(size, size),
            lines=_aligned(7, size),
            after=np.empty((3, size)),
            order=np.empty(size),
            ends=np.empty(4),
            chosen=np.empty(size, dtype=np.int64),
            state=np.empty(size, dtype=np.uint8),
        )


def _aligned(rows: int, columns: int) -> FloatArray:
    """Return room for a matrix from the beginning of a cache line on.

    Where numpy begins differs from process to process, and inner loops took up to half as long
    again where their vectors lay across two lines.
    """
    room = np.empty(rows * columns + _LINE)
    first = -(room.ctypes.data // room.itemsize) % _LINE
    return room[first : first + rows * columns].reshape(rows, columns)


Search = Callable[[Frontier, float, float, int], None]
"""Takes the frontier, the incumbent, the tolerance and the number of nodes to expand."""


class Nodes(Protocol):
    """One kind of nodes."""

    targets: Places
    """The target of each attack."""
    keys: FloatArray
    """For each attack, a bound on the leakage of every known set."""

    def steady(self, batch: Batch) -> FloatArray:
        """Bound it again, more carefully, where a node ties with the best value."""

    def is_compiled(self, visited: int) -> bool:
        """Whether a search that has visited this many nodes goes on compiled."""

    def search_after(self, visited: int) -> Search | None:
        """Return the search of single nodes to go on with; None if they are judged in batches."""


class SizedNodes:
    """What all kinds share: one block, and whether its search is worth compiling."""

    def __init__(self, instance: Instance, precision: FloatArray, *, tau: float) -> None:
        self.instance, self.precision, self.tau = instance, precision, tau
        self.widest = _widest(instance.multipliers)

    @property
    def arguments(self) -> tuple[str, Answers] | None:
        """The kernel of these nodes, and what is attacked; None if they are judged in batches."""
        return None

    def search_after(self, visited: int) -> Search | None:
        """See `Nodes`.

        One source runs both ways, with the same bits: interpreted while few nodes are visited, and
        compiled from then on. The number of nodes decides, so that nothing depends on the machine.
        """
        if self.arguments is None:
            return None
        name, answers = self.arguments
        kernel = getattr(load_kernels(KERNELS, compiled=self.is_compiled(visited)), name)
        return functools.partial(kernel, self.block, answers, self._space)

    def is_compiled(self, visited: int) -> bool:
        """Whether a search that has visited this many nodes goes on compiled."""
        return (visited + _AT_ONCE) * self.instance.size**3 > UNCOMPILED_WORK

    @functools.cached_property
    def _space(self) -> Space:
        return Space.of(self.instance.size)

    @functools.cached_property
    def block(self) -> Block:
        """The block as compiled code reads it."""
        instance = self.instance
        return Block(
            covariance=np.ascontiguousarray(instance.covariance),
            precision=np.ascontiguousarray(self.precision),
            factors=instance.factors,
            multipliers=instance.multipliers,
            widest=self.widest,
            fewest=instance.fewest,
            most=instance.most,
            tau=self.tau,
        )


class LinearNodes(SizedNodes):
    """Nodes of an answer that is not clamped: an attack is a target and a pattern of signs."""

    def __init__(self, instance: Instance, precision: FloatArray, *, tau: float) -> None:
        super().__init__(instance, precision, tau=tau)
        self.functions = instance.functions
        self.products = self.functions @ instance.covariance
        self.totals = np.einsum("mj,mj->m", self.functions, self.products)
        self.total = float(self.totals.max())  # one scale of rounding errors for all functions
        self.peak = 0.0 if len(self.totals) == 1 else self.total
        roots = self._roots()
        rows, columns = np.unravel_index(np.argsort(-roots, axis=None), roots.shape)
        self.keys = roots[rows, columns]
        self.targets = np.array(instance.targets, dtype=np.int64)[rows]
        self.which = columns.astype(np.int64)
        self.answers = Answers(self.functions, self.products, self.totals, self.targets, self.which)

    def _roots(self) -> FloatArray:
        """Bound the leakage of every known set at once, per target and sign pattern: O(n²)."""
        targets = list(self.instance.targets)
        variances = np.diagonal(self.instance.covariance)[targets, np.newaxis]
        floors = 1 / np.diagonal(self.precision)[targets, np.newaxis]
        crosses = self.products.T[targets]
        bounds = widened(
            sphere_bound(
                variances, crosses, self.totals, floors, self.functions.T[targets], 0.0,
                self.total, self.tau,
            ),
            variances, crosses, self.totals, floors, self.total, self.tau,
            float(self.instance.multipliers.max()),
        )  # fmt: skip
        return np.asarray(self.instance.factors[targets, np.newaxis] * bounds)

    @functools.cached_property
    def arguments(self) -> tuple[str, Answers]:
        """The kernel of these nodes, and what is attacked."""
        return "linear_search", self.answers

    def steady(self, batch: Batch) -> FloatArray:
        """Return the sphere bound from one factorisation, for nodes that tie with the best value.

        All moments come from one perturbed covariance, so their errors cannot turn a vanishing
        Δq − s² into a square root of τ: the margin is linear in τ. Costs O(n³).
        """
        targets = self.targets[batch.owners]
        bound = steady_bound(
            self.instance.covariance,
            self.functions[self.which[batch.owners]],
            targets,
            batch,
            tau=self.tau,
            peak=self.peak,
            multiplier=self.widest[batch.known, batch.known + batch.opened],
        )
        return np.asarray(self.instance.factors[targets] * bound)


class ClampedNodes(SizedNodes):
    """Nodes of a clamped answer: an attack is a target."""

    def __init__(self, instance: Instance, precision: FloatArray, *, tau: float) -> None:
        super().__init__(instance, precision, tau=tau)
        self.targets = np.array(instance.targets, dtype=np.int64)
        # Before any decision the group bound holds: every tuple moves over its whole range.
        together = float(np.abs(instance.coordinates[0]) @ instance.factors) * (1 + 1e-12)
        self.keys = np.full(len(self.targets), together)

    def steady(self, batch: Batch) -> FloatArray:
        """Return infinity: ties are not bounded again."""
        return np.full(len(batch.owners), np.inf)

    @functools.cached_property
    def arguments(self) -> tuple[str, Answers]:
        """The kernel of these nodes, and what is attacked."""
        weights = np.ascontiguousarray(self.instance.coordinates[:1])
        nothing = np.zeros(1)
        which = np.zeros_like(self.targets)
        return "clamped_search", Answers(weights, weights, nothing, self.targets, which)


def steady_bound(
    covariance: FloatArray,
    functions: FloatArray,
    targets: Places,
    batch: Batch,
    *,
    tau: float,
    peak: float,
    multiplier: FloatArray | float = 0.0,
) -> FloatArray:
    """Bound |β(K)| of one function per node from one factorisation; see `LinearNodes.steady`."""
    # One Cholesky factor in the order known, open, target, unknown.
    rank = np.array([1, 0, 3])[batch.states]
    here = np.arange(len(targets))
    rank[here, targets] = 2
    order = np.argsort(rank, axis=1, kind="stable")
    factor = np.linalg.cholesky(covariance[order[:, :, np.newaxis], order[:, np.newaxis, :]])
    weights = np.take_along_axis(functions, order, axis=1)
    answer = np.einsum("brc,br->bc", factor, weights)
    mine = batch.known + batch.opened
    row = factor[here, mine]
    places = np.arange(len(covariance))
    is_open = (places >= batch.known[:, np.newaxis]) & (places < mine[:, np.newaxis])
    is_left = places >= batch.known[:, np.newaxis]
    diameter = np.sum(row**2, axis=1, where=is_open)
    moved = np.sum(row * answer, axis=1, where=is_open)
    ratio = np.divide(moved, diameter, out=np.zeros_like(moved), where=diameter > 0)
    off = answer - ratio[:, np.newaxis] * row
    twist = diameter * np.sum(off**2, axis=1, where=is_open)
    spread = np.sum(answer**2, axis=1, where=is_left)
    floor, end = row[here, mine] ** 2, row[here, mine] * answer[here, mine]
    variance = floor + diameter
    middle = abs(end * (floor + diameter / 2) + moved * floor / 2)
    half = (end * diameter - moved * floor) / 2
    bound = (middle + np.sqrt(half * half + twist * floor * variance / 4)) / (floor * variance)
    # Var(f | x_i, A), as a sum of squares of what x_i leaves of f
    kept = answer - ((end + moved) / variance)[:, np.newaxis] * row
    left = np.sum(kept**2, axis=1, where=is_left)
    share = multiplier * np.sqrt(left / floor) * (1 + 2 * tau)
    margin = 3 * tau * (1 + multiplier) * np.sqrt(np.maximum(spread, peak) / floor)
    return np.asarray((bound + share) * (1 + 4 * tau) + margin)


_TARGET = 3


def without_targets(states: States, targets: Places) -> States:
    """Return the decisions with the targets marked as no decision at all."""
    copied = states.copy()
    copied[np.arange(len(targets)), targets] = _TARGET
    return copied


def eliminated(
    matrix: FloatArray,
    right: FloatArray,
    corner: FloatArray,
    chosen: npt.NDArray[np.bool_],
    targets: Places,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Eliminate the chosen tuples of each node from a positive definite matrix and right sides.

    `right` has one row per answer, for all nodes or per node, `corner` their products. Returns what
    remains of the target's row, of the diagonal, of the right sides and of the corner.
    """
    number, size = chosen.shape
    answers = right.shape[-2]
    rest = np.empty((number, size + answers, size + answers))
    rest[:, :size, :size] = matrix
    rest[:, size:, :size] = right
    rest[:, :size, size:] = np.swapaxes(right, -1, -2)
    rest[:, size:, size:] = corner
    for place in range(size):
        nodes = np.flatnonzero(chosen[:, place])
        if len(nodes):  # one column of each Cholesky factor, subtracted from what remains
            part = rest[nodes]
            column = part[:, :, place] / np.sqrt(part[:, place, place])[:, np.newaxis]
            rest[nodes] = part - column[:, :, np.newaxis] * column[:, np.newaxis, :]
    return (
        rest[np.arange(number), targets, :size],
        np.einsum("bkk->bk", rest)[:, :size],
        rest[:, size:, :size],
        rest[:, size:, size:],
    )


def _widest(multipliers: FloatArray) -> FloatArray:
    """Return the largest multiplier between any two numbers of known tuples."""
    table = np.zeros((len(multipliers), len(multipliers)))
    for first in range(len(multipliers)):
        table[first, first:] = np.maximum.accumulate(multipliers[first:])
    return table
