"""What is known about all known sets below a node: judged in batches, by numpy or compiled code.

A node has decided about some tuples (see `sphere.py`). Answers that are not clamped move by β·δ
with the target, clamped ones by a sum of capped coefficients (see `clamped.py`): two kinds of
nodes, searched alike. Small problems need no compiler; what numpy computes for them is what the
compiled code computes for large ones, to rounding.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.families.gaussian.instance import Instance
from pdp_calibrate.families.gaussian.sphere import (
    KNOWN,
    OPEN,
    UNKNOWN,
    leaf_upper,
    leaf_value,
    sphere_bound,
    widened,
)

Places = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

_Three = tuple[FloatArray, FloatArray, FloatArray]

LARGEST_UNCOMPILED = 24  # tuples; a node with more is judged faster by compiled code
UNCOMPILED_WORK = 1e8  # nodes × tuples³: about a second, less than compiling takes


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
    """What the smallest known set leaks, rounded; 0 where it is not told."""
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


class Nodes(Protocol):
    """One kind of nodes."""

    targets: Places
    """Whom each attack attacks."""
    keys: FloatArray
    """No known set leaks more to each attack."""

    def judge(self, batch: Batch) -> Verdicts:
        """Bound what the known sets below each node leak."""

    def steady(self, batch: Batch) -> FloatArray:
        """Bound it once more, with more care, where a node ties with the best value."""


class SizedNodes:
    """What all kinds share: one block, and which of the two codes judges its nodes."""

    def __init__(self, instance: Instance, precision: FloatArray, *, tau: float) -> None:
        self.instance, self.precision, self.tau = instance, precision, tau
        self.widest = _widest(instance.multipliers)
        self._work = 0.0

    def needs_compiler(self, batch: Batch) -> bool:
        """Say whether compiled code pays, with all nodes judged so far."""
        size = self.instance.size
        self._work += len(batch.owners) * size**3
        return size > LARGEST_UNCOMPILED or self._work > UNCOMPILED_WORK


class LinearNodes(SizedNodes):
    """Nodes of an answer that is not clamped: an attack is a target and a pattern of signs."""

    def __init__(self, instance: Instance, precision: FloatArray, *, tau: float) -> None:
        super().__init__(instance, precision, tau=tau)
        self.functions = instance.functions()
        self.products = self.functions @ instance.covariance
        self.totals = np.einsum("mj,mj->m", self.functions, self.products)
        self.total = float(self.totals.max())  # one scale of rounding errors for all functions
        self.peak = 0.0 if len(self.totals) == 1 else self.total
        roots = self._roots()
        rows, columns = np.unravel_index(np.argsort(-roots, axis=None), roots.shape)
        self.keys = roots[rows, columns]
        self.targets = np.array(instance.targets, dtype=np.int64)[rows]
        self.which = columns.astype(np.int64)

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

    def judge(self, batch: Batch) -> Verdicts:
        """See `Nodes`."""
        targets = self.targets[batch.owners]
        found = self._compiled if self.needs_compiler(batch) else self._vectorised
        ends, if_known, if_unknown = found(batch, targets, self.which[batch.owners])
        factors = self.instance.factors[targets]
        largest, upper, smallest, bound = ends.T * factors
        return Verdicts.of(
            largest=largest,
            upper=upper,
            smallest=smallest,
            bound=bound,
            if_known=if_known * factors[:, np.newaxis],
            if_unknown=if_unknown * factors[:, np.newaxis],
        )

    def _compiled(
        self, batch: Batch, targets: Places, which: Places
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        from pdp_calibrate.families.gaussian.kernels import linear_nodes

        shape = batch.states.shape
        ends, if_known, if_unknown = np.empty((shape[0], 4)), np.zeros(shape), np.zeros(shape)
        linear_nodes(
            self.instance.covariance, self.precision, self.functions, self.products, self.totals,
            targets, which, batch.states, batch.known, batch.opened, self.widest,
            self.instance.multipliers, self.tau, ends, if_known, if_unknown,
            np.empty((shape[1], shape[1])), np.empty((6, shape[1])),
        )  # fmt: skip
        return ends, if_known, if_unknown

    @np.errstate(divide="ignore", invalid="ignore")  # tuples that are not open are left out below
    def _vectorised(
        self, batch: Batch, targets: Places, which: Places
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        instance, tau, total = self.instance, self.tau, self.total
        states = without_targets(batch.states, targets)
        line_a, diagonal_a, columns_a, spreads = eliminated(
            instance.covariance,
            self.products[which, np.newaxis],
            self.totals[which, np.newaxis, np.newaxis],
            states == KNOWN,
            targets,
        )
        line_b, diagonal_b, columns_b, left = eliminated(
            self.precision,
            self.functions[which, np.newaxis],
            np.zeros((1, 1)),
            states == UNKNOWN,
            targets,
        )
        column_a, column_b, spread = columns_a[:, 0], columns_b[:, 0], spreads[:, 0, 0]
        here = np.arange(len(targets)), targets
        variance, cross = diagonal_a[here], column_a[here]
        floor, slope, rest = 1 / diagonal_b[here], column_b[here], -left[:, 0, 0]
        now, later = batch.known, batch.known + batch.opened

        def bound(top: _Three, bottom: _Three, multiplier: FloatArray) -> FloatArray:
            sphere = sphere_bound(*top, *bottom, total, tau)
            return np.asarray(widened(sphere, *top, bottom[0], total, tau, multiplier))

        largest = leaf_value(floor, slope, rest, instance.multipliers[later])
        upper = leaf_upper(
            largest, floor, rest, tau, instance.multipliers[later], instance.size, self.peak
        )
        smallest = np.where(instance.multipliers[now] == 0, abs(cross / variance), 0.0)
        top, bottom = (variance, cross, spread), (floor, slope, rest)
        everyone = bound(top, bottom, self.widest[now, later])
        # What one more decision does: known, it changes the moments given A; unknown, the others.
        tops: _Three = (variance[:, np.newaxis], cross[:, np.newaxis], spread[:, np.newaxis])
        bottoms: _Three = (floor[:, np.newaxis], slope[:, np.newaxis], rest[:, np.newaxis])
        part = line_a / diagonal_a
        if_known = bound(
            (
                tops[0] - part * line_a,
                tops[1] - part * column_a,
                tops[2] - column_a**2 / diagonal_a,
            ),
            bottoms,
            self.widest[np.minimum(now + 1, later), later][:, np.newaxis],
        )
        part = line_b / diagonal_b
        if_unknown = bound(
            tops,
            (
                1 / (1 / bottoms[0] - part * line_b),
                bottoms[1] - part * column_b,
                bottoms[2] + column_b**2 / diagonal_b,
            ),
            self.widest[now, np.maximum(later - 1, now)][:, np.newaxis],
        )
        is_open = states == OPEN
        return (
            np.stack([largest, upper, smallest, everyone], axis=1),
            np.where(is_open, if_known, 0.0),
            np.where(is_open, if_unknown, 0.0),
        )

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
        # Before anything is decided the group bound holds: everyone moves over the whole range.
        together = float(np.abs(instance.coordinates[0]) @ instance.factors) * (1 + 1e-12)
        self.keys = np.full(len(self.targets), together)

    def judge(self, batch: Batch) -> Verdicts:
        """See `Nodes`."""
        targets = self.targets[batch.owners]
        found = self._compiled if self.needs_compiler(batch) else self._vectorised
        ends, terms = found(batch, targets)
        largest, upper, smallest, bound = ends.T * self.instance.factors[targets]
        rounding = 1 + 4 * self.instance.size * UNIT_ROUNDOFF
        bound = bound * rounding
        after = np.broadcast_to(bound[:, np.newaxis], terms.shape)
        # The tuple that adds most to the bound is decided next.
        return Verdicts(largest, upper * rounding, smallest, bound, after, after, -terms)

    def steady(self, batch: Batch) -> FloatArray:
        """Return nothing better: ties are not bounded again."""
        return np.full(len(batch.owners), np.inf)

    def _compiled(self, batch: Batch, targets: Places) -> tuple[FloatArray, FloatArray]:
        from pdp_calibrate.families.gaussian.kernels import clamped_nodes

        instance = self.instance
        shape = batch.states.shape
        ends, terms = np.empty((shape[0], 4)), np.zeros(shape)
        clamped_nodes(
            instance.covariance, self.precision, instance.coordinates[0], instance.factors,
            targets, batch.states, batch.known, batch.opened, self.widest, instance.multipliers,
            self.tau, ends, terms, *np.empty((2, shape[1], shape[1])), np.empty((7, shape[1])),
            np.empty(shape[1], dtype=np.int64),
        )  # fmt: skip
        return ends, terms

    @np.errstate(divide="ignore", invalid="ignore")  # tuples that are known are left out below
    def _vectorised(self, batch: Batch, targets: Places) -> tuple[FloatArray, FloatArray]:
        instance, tau = self.instance, self.tau
        states = without_targets(batch.states, targets)
        nothing = np.empty((0, instance.size)), np.empty((0, 0))
        line_a, diagonal_a, _, _ = eliminated(
            instance.covariance, *nothing, states == KNOWN, targets
        )
        line_b, diagonal_b, _, _ = eliminated(self.precision, *nothing, states == UNKNOWN, targets)
        is_unknown = states == UNKNOWN
        slopes, rests = _unknown_regressions(self.precision, is_unknown, targets)
        here = np.arange(len(targets)), targets
        variance, floor = diagonal_a[here][:, np.newaxis], 1 / diagonal_b[here][:, np.newaxis]
        now, later = batch.known, batch.known + batch.opened
        part = line_b / diagonal_b
        slope = np.where(is_unknown, slopes, -part)
        rest = np.where(is_unknown, rests, 1 / diagonal_b)
        lowest = np.where(is_unknown, floor, 1 / (1 / floor - part * line_b))

        caps = instance.factors / instance.factors[targets][:, np.newaxis] * (1 + 1e-14)
        weights = np.abs(instance.coordinates[0])
        multiplier = instance.multipliers[later][:, np.newaxis]
        value = leaf_value(floor, slope, rest, multiplier)
        most = leaf_upper(value, floor, rest, tau, multiplier, instance.size, 0.0)
        totals = np.diagonal(instance.covariance)
        reach = widened(
            sphere_bound(variance, line_a, diagonal_a, lowest, slope, rest, totals, tau),
            variance, line_a, diagonal_a, lowest, totals, tau,
            self.widest[now, later][:, np.newaxis],
        )  # fmt: skip
        is_open = states == OPEN
        is_left = is_open | is_unknown

        def added(moves: FloatArray, who: npt.NDArray[np.bool_]) -> FloatArray:
            terms = np.where(who, weights * np.minimum(caps, moves), 0.0)
            return np.asarray(weights[targets] + terms.sum(axis=1))

        smallest = added(abs(line_a) / variance, is_left)
        ends = np.stack(
            [
                added(value, is_unknown),
                added(most, is_unknown),
                np.where(instance.multipliers[now] == 0, smallest, 0.0),
                added(reach, is_left),
            ],
            axis=1,
        )
        return ends, np.where(is_open, weights * np.minimum(caps, reach), 0.0)


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


def _unknown_regressions(
    precision: FloatArray, unknown: npt.NDArray[np.bool_], targets: Places
) -> tuple[FloatArray, FloatArray]:
    """Regress each unknown tuple on everyone decided or open: slope of x_i, variance left.

    With U the unknown tuples these are −Ω_UU⁻¹Ω_Ui and the diagonal of Ω_UU⁻¹. The others are given
    the rows of an identity matrix, which change nothing.
    """
    size = len(precision)
    both = unknown[:, :, np.newaxis] & unknown[:, np.newaxis, :]
    factor = np.linalg.cholesky(np.where(both, precision, np.eye(size)))
    # Two triangular solves, not a product with the inverse: their error is that of a nearby Ω.
    halfway = np.empty((len(targets), size, size + 1))
    halfway[:, :, :size] = np.eye(size)
    halfway[:, :, size] = np.where(unknown, -precision[targets], 0.0)
    for row in range(size):
        before = np.einsum("bk,bkc->bc", factor[:, row, :row], halfway[:, :row])
        halfway[:, row] = (halfway[:, row] - before) / factor[:, row, row, np.newaxis]
    slopes = halfway[:, :, size].copy()
    for row in range(size - 1, -1, -1):
        after = np.einsum("bk,bk->b", factor[:, row + 1 :, row], slopes[:, row + 1 :])
        slopes[:, row] = (slopes[:, row] - after) / factor[:, row, row]
    return slopes, np.sum(halfway[:, :, :size] ** 2, axis=1)


def _widest(multipliers: FloatArray) -> FloatArray:
    """Return the largest multiplier between any two numbers of known tuples."""
    table = np.zeros((len(multipliers), len(multipliers)))
    for first in range(len(multipliers)):
        table[first, first:] = np.maximum.accumulate(multipliers[first:])
    return table
