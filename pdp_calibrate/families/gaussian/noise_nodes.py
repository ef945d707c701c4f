"""How precisely answers with Gaussian noise reveal a tuple: bounds for all known sets of a node.

The answers f_m = Σ_j B_mj·x_j get independent noise of variance z. A node attacks x_i; the tuples
in A are known, those in U unknown, those in R open. With b(K) the coefficients of x_i in the
regressions of the answers on (x_i, x_K) and V(K) = Cov(f | x_i, x_K), the value of a known set is
√gain(K), where

    gain(K) = bᵀ(κV + z)⁻¹b        (κ = 1: 1/Var(x_i | x_K, r) − 1/Var(x_i | x_K)),

and κ ≤ 1 is the part of the data's own variance that may be counted. Two bounds hold for every K
between A and A ∪ R; the smaller one counts.

Precision: gain(K) ≤ gain(A ∪ R) + (1/Var(x_i|A∪R) − 1/Var(x_i|A))/κ, because conditioning on more
never lowers a precision. (Dividing V and z by κ turns any κ into 1.)

Spheres: V(K) ⪰ V(A ∪ R). With WᵀW = (κV(A∪R) + z)⁻¹ the gain is at most Σ_m t_m², t_m the sphere
bound on the coefficient of the m-th row of W·B. Any rotation of W will do: its first row is chosen
along the coefficients, so that the others add little.

Rounding. Moments given A and given A ∪ R are those of covariances within 1 ± τ of the true one. For
any direction u, uᵀb moves by at most 2τ·√(uᵀVu/Var(x_i|x_K)), so √gain moves by at most
2τ·√(t/(κt + z))/√Var(x_i|x_K) with t = trace V, and by a factor 1 + τ through V itself.

Arrays of moments end with one axis per answer; the leading axes are nodes, or nodes × tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import LARGEST_UNCOMPILED
from pdp_calibrate.core.workers import load_kernels
from pdp_calibrate.families.gaussian.instance import Instance
from pdp_calibrate.families.gaussian.nodes import (
    Batch,
    Places,
    SizedNodes,
    Verdicts,
    eliminated,
    steady_bound,
    without_targets,
)
from pdp_calibrate.families.gaussian.sphere import KNOWN, OPEN, UNKNOWN, sphere_bound

KERNELS = "pdp_calibrate.families.gaussian.noise_kernels"


class Moments(NamedTuple):
    """Second moments of the target and the answers, given A or given A ∪ R."""

    variance: FloatArray
    """Var(x_i | ·)."""
    cross: FloatArray
    """Given A Cov(f, x_i | A), given A ∪ R the coefficients b(A ∪ R)."""
    spread: FloatArray
    """Given A Cov(f | A), given A ∪ R the matrix V(A ∪ R)."""

    def for_each_tuple(self) -> Moments:
        """Return the same with an axis for tuples behind the nodes."""
        return Moments(*(part[:, np.newaxis] for part in self))


class NoisyNodes(SizedNodes):
    """Nodes of answers with Gaussian noise: an attack is a target, values are √gain·factor."""

    def __init__(
        self, instance: Instance, precision: FloatArray, *, tau: float, noise: float, kept: float
    ) -> None:
        super().__init__(instance, precision, tau=tau)
        self._noise, self._kept, self._work = noise, kept, 0.0
        self._rows = instance.coordinates
        self._products = self._rows @ instance.covariance
        self._totals = self._products @ self._rows.T
        self._total = float(np.trace(self._totals))
        targets = np.array(instance.targets, dtype=np.int64)
        roots = self._bound(
            Moments(np.diagonal(instance.covariance)[targets], self._products.T[targets],
                    self._totals[np.newaxis]),
            Moments(1 / np.diagonal(precision)[targets], self._rows.T[targets],
                    np.zeros_like(self._totals)[np.newaxis]),
            np.full(len(targets), instance.multipliers.max()),
        ) * instance.factors[targets]  # fmt: skip
        order = np.argsort(-roots)
        self.keys, self.targets = roots[order], targets[order]

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")  # of tuples that are not open
    def judge(self, batch: Batch) -> Verdicts:
        """See `Nodes`."""
        targets = self.targets[batch.owners]
        states = without_targets(batch.states, targets)
        size = self.instance.size
        self._work += len(batch.owners) * size**3
        compiled = size > LARGEST_UNCOMPILED or self._work > 1e8
        line_a, diagonal_a, columns_a, spread = _moments(
            (self.instance.covariance, self._products, self._totals), states == KNOWN, targets,
            compiled=compiled,
        )  # fmt: skip
        line_b, diagonal_b, columns_b, left = _moments(
            (self.precision, self._rows, np.zeros_like(self._totals)), states == UNKNOWN, targets,
            compiled=compiled,
        )  # fmt: skip
        here = np.arange(len(targets))
        top = Moments(diagonal_a[here, targets], columns_a[here, :, targets], spread)
        bottom = Moments(1 / diagonal_b[here, targets], columns_b[here, :, targets], -left)
        now, later = batch.known, batch.known + batch.opened
        multipliers = self.instance.multipliers
        largest, upper = self._leaf(bottom, multipliers[later])
        smallest = self._root_gain(
            top.cross / top.variance[:, np.newaxis],
            top.spread - _squares(top.cross) / top.variance[:, np.newaxis, np.newaxis],
        )
        bound = self._bound(top, bottom, self.widest[now, later])

        # One more decision: a known tuple changes the moments given A, an unknown one the others.
        tops, bottoms = top.for_each_tuple(), bottom.for_each_tuple()
        own = np.swapaxes(columns_a, 1, 2)
        part = line_a / diagonal_a
        if_known = self._bound(
            Moments(
                tops.variance - part * line_a,
                tops.cross - part[..., np.newaxis] * own,
                tops.spread - _squares(own) / diagonal_a[..., np.newaxis, np.newaxis],
            ),
            bottoms,
            self.widest[np.minimum(now + 1, later), later][:, np.newaxis],
        )
        own = np.swapaxes(columns_b, 1, 2)
        part = line_b / diagonal_b
        if_unknown = self._bound(
            tops,
            Moments(
                1 / (1 / bottoms.variance - part * line_b),
                bottoms.cross - part[..., np.newaxis] * own,
                bottoms.spread + _squares(own) / diagonal_b[..., np.newaxis, np.newaxis],
            ),
            self.widest[now, np.maximum(later - 1, now)][:, np.newaxis],
        )
        factors = self.instance.factors[targets]
        is_open = states == OPEN
        if_known = np.where(is_open, if_known * factors[:, np.newaxis], 0.0)
        if_unknown = np.where(is_open, if_unknown * factors[:, np.newaxis], 0.0)
        return Verdicts.of(
            largest=largest * factors,
            upper=upper * factors,
            smallest=np.where(multipliers[now] == 0, smallest * factors, 0.0),
            bound=bound * factors,
            if_known=if_known,
            if_unknown=if_unknown,
        )

    def steady(self, batch: Batch) -> FloatArray:
        """Return the sphere bounds from one factorisation, for nodes that tie with the best value.

        Only where the covariance is certain: otherwise its share would have to be bounded too.
        """
        targets = self.targets[batch.owners]
        if not self.instance.is_certain:
            return np.full(len(targets), np.inf)
        states = without_targets(batch.states, targets)
        _, _, columns, left = eliminated(
            self.precision, self._rows, np.zeros_like(self._totals), states == UNKNOWN, targets
        )
        lower = self._noise_factor(-left)
        # Per node: whitened answers, rotated so that the first points along the coefficients.
        white = np.swapaxes(_solved(lower[:, np.newaxis], self._rows.T), 1, 2)
        peak = 0.0
        if len(self._rows) > 1:
            peak = self._total / self._noise
            h = _mirror(_solved(lower, columns[np.arange(len(targets)), :, targets]))
            white = white - 2 * h[:, :, np.newaxis] * np.einsum("bm,bmk->bk", h, white)[:, None]
        spheres = sum(
            steady_bound(
                self.instance.covariance, white[:, m], targets, batch, tau=self.tau, peak=peak
            )
            ** 2
            for m in range(len(self._rows))
        )
        return np.asarray(np.sqrt(spheres) * (1 + 4 * self.tau) * self.instance.factors[targets])

    def _bound(self, top: Moments, bottom: Moments, multiplier: FloatArray) -> FloatArray:
        """Bound √gain for every K between A and A ∪ R."""
        tau, total = self.tau, self._total
        variance, floor = top.variance, bottom.variance
        lower = self._noise_factor(bottom.spread)
        b = _solved(lower, bottom.cross)
        full = _length(b)
        if b.shape[-1] == 1:
            # One answer: the sphere bound, then the noise.
            sphere = sphere_bound(
                variance, top.cross[..., 0], top.spread[..., 0, 0],
                floor, bottom.cross[..., 0], bottom.spread[..., 0, 0], total, tau,
            )  # fmt: skip
            spheres = (sphere / lower[..., 0, 0]) ** 2
            around = self._reach(bottom.spread[..., 0, 0])
        else:
            c = _solved(lower, top.cross)
            h = _mirror(b + c / variance[..., np.newaxis])
            own_s = _mirrored_diagonal(_whitened(lower, top.spread), h)
            own_v = _mirrored_diagonal(_whitened(lower, bottom.spread), h)
            b = b - 2 * h * np.sum(h * b, axis=-1, keepdims=True)
            c = c - 2 * h * np.sum(h * c, axis=-1, keepdims=True)
            sizes = sphere_bound(
                variance[..., np.newaxis], c, own_s, floor[..., np.newaxis], b, own_v,
                total / self._noise, tau,
            )  # fmt: skip
            spheres = np.sum(sizes**2, axis=-1)
            around = self._reach(np.asarray(total))
        found = spheres * (1 + 4 * tau)
        if self._kept > 0:
            full = full * (1 + 2 * tau) + 2 * tau * around / np.sqrt(floor)
            gained = ((1 + 2 * tau) / floor - (1 - 2 * tau) / variance) / self._kept
            found = np.minimum(found, (full**2 + gained) * (1 + 8 * UNIT_ROUNDOFF))
        found = np.sqrt(found) * (1 + 2 * tau)
        if self.instance.is_certain:
            return np.asarray(found)
        # What an uncertain covariance adds: Var(f | x_i, ·) is largest at A.
        left = np.trace(top.spread, axis1=-2, axis2=-1)
        left = left - np.sum(top.cross**2, axis=-1) / variance
        reach = self._reach(np.maximum(left, 0.0) + 4 * tau * total)
        return np.asarray(found + multiplier * reach / np.sqrt(floor) * (1 + 2 * tau))

    def _leaf(self, moments: Moments, multiplier: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value of one known set and an upper bound on it, from its regression."""
        deviation = np.sqrt(moments.variance)
        around = self._reach(np.trace(moments.spread, axis1=-2, axis2=-1)) / deviation
        value = self._root_gain(moments.cross, moments.spread) + multiplier * around
        one = len(self._rows) == 1
        widest = around if one else self._reach(np.asarray(self._total)) / deviation
        margin = 2 * self.tau * (1 + multiplier) * widest
        rounding = 8 * self.instance.size * UNIT_ROUNDOFF + 2 * self.tau
        return value, value + margin + rounding * value

    def _reach(self, spread: FloatArray) -> FloatArray:
        """Bound √(uᵀVu / uᵀ(κV + z)u) over all directions u by the trace of V."""
        return np.asarray(np.sqrt(spread / (self._kept * spread + self._noise)))

    def _root_gain(self, slope: FloatArray, spread: FloatArray) -> FloatArray:
        return _length(_solved(self._noise_factor(spread), slope))

    def _noise_factor(self, spread: FloatArray) -> FloatArray:
        """Return the Cholesky factor of κV + z, which is at least z."""
        answers = spread.shape[-1]
        metric = self._kept * spread + self._noise * np.eye(answers)
        lower = np.zeros_like(metric)
        for r in range(answers):
            for c in range(r):
                inner = np.sum(lower[..., r, :c] * lower[..., c, :c], axis=-1)
                lower[..., r, c] = (metric[..., r, c] - inner) / lower[..., c, c]
            left = metric[..., r, r] - np.sum(lower[..., r, :r] ** 2, axis=-1)
            lower[..., r, r] = np.sqrt(np.maximum(left, 0.5 * self._noise))
        return lower


def _moments(
    bordered: tuple[FloatArray, FloatArray, FloatArray],
    chosen: npt.NDArray[np.bool_],
    targets: Places,
    *,
    compiled: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return `eliminated` of a matrix, right sides and their corner; compiled where faster."""
    if not compiled:
        return eliminated(*bordered, chosen, targets)
    eliminate = load_kernels(KERNELS).eliminate
    (number, size), answers = chosen.shape, len(bordered[1])
    line, diagonal = np.empty((2, number, size))
    columns, left = np.empty((number, answers, size)), np.empty((number, answers, answers))
    eliminate(
        *bordered, chosen, targets, line, diagonal, columns, left,
        np.empty((size, size)), np.empty(answers),
    )  # fmt: skip
    return line, diagonal, columns, left


def _squares(vectors: FloatArray) -> FloatArray:
    """Return v·vᵀ."""
    return vectors[..., :, np.newaxis] * vectors[..., np.newaxis, :]


def _length(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.sum(vectors * vectors, axis=-1)))


def _solved(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return L⁻¹·v."""
    shape = np.broadcast_shapes(lower.shape[:-1], right.shape)
    found = np.empty(shape)
    for r in range(shape[-1]):
        before = np.sum(lower[..., r, :r] * found[..., :r], axis=-1)
        found[..., r] = (right[..., r] - before) / lower[..., r, r]
    return found


def _whitened(lower: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return L⁻¹·M·L⁻ᵀ for a symmetric matrix M."""
    half = _solved(lower[..., np.newaxis, :, :], matrix)
    return _solved(lower[..., np.newaxis, :, :], np.swapaxes(half, -1, -2))


def _mirror(direction: FloatArray) -> FloatArray:
    """Return h such that the reflection v − 2h·<h,v> turns `direction` into the first axis."""
    length = _length(direction)
    found = direction.copy()
    found[..., 0] += np.where(direction[..., 0] >= 0, length, -length)
    size = _length(found)[..., np.newaxis]
    return np.divide(found, size, out=np.zeros_like(found), where=size > 0)


def _mirrored_diagonal(matrix: FloatArray, h: FloatArray) -> FloatArray:
    """Return the diagonal of a symmetric matrix after the reflection h."""
    image = np.sum(matrix * h[..., np.newaxis, :], axis=-1)
    along = np.sum(h * image, axis=-1, keepdims=True)
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    return np.asarray(diagonal - 4 * h * image + 4 * h * h * along)
