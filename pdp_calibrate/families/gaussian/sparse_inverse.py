"""The inverse of a sparse matrix of Gaussian precisions, bounded from both sides.

Ω is scaled by powers of two, which changes no digit, until its diagonal lies in [1, 4). Its
comparison matrix Ω̃ has −|Ω_kl| beside the same diagonal. Where Ω̃ is positive definite, so is Ω,
|Ω⁻¹| ≤ Ω̃⁻¹ entry by entry, and the same holds on every subset of the tuples (Ostrowski; Horn and
Johnson, Topics in Matrix Analysis, Thm 2.5.4): one sparse elimination, rounded outwards, bounds
what every adversary learns.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csc_array, diags_array, triu

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import SPARSE_STEPS
from pdp_calibrate.errors import ModelError

LEAST_COUPLING = 1e-200
"""The smallest coupling, relative to the roots of both diagonal entries; smaller ones would
underflow."""

_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """A symmetric matrix with a diagonal in [1, 4): entries of the given one over 2^(e_k + e_l)."""

    matrix: csc_array
    """The scaled matrix, rows in order."""
    exponents: npt.NDArray[np.int32]
    """e, one per tuple."""

    @classmethod
    def of(cls, precision: csc_array) -> Scaled:
        """Scale a matrix with a positive diagonal; this is exact."""
        exponents = np.frexp(np.sqrt(precision.diagonal()))[1] - 1
        found = precision.tocoo()
        entries = np.ldexp(np.ldexp(found.data, -exponents[found.row]), -exponents[found.col])
        if np.any((np.abs(entries) < LEAST_COUPLING) & (found.data != 0)):
            raise ModelError(
                f"couplings must be 0 or at least {LEAST_COUPLING:g} times the diagonal entries."
                " Leave out the smaller ones."
            )
        matrix = csc_array((entries, (found.row, found.col)), shape=precision.shape)
        matrix.sort_indices()
        return cls(matrix=matrix, exponents=exponents)

    def without(self, known: npt.NDArray[np.bool_]) -> Scaled:
        """Remove the known tuples: what remains is the precision of the others given them."""
        kept = np.flatnonzero(~known)
        matrix = csc_array(self.matrix[kept][:, kept])
        matrix.sort_indices()
        return Scaled(matrix=matrix, exponents=self.exponents[kept])

    @property
    def size(self) -> int:
        """Number of tuples."""
        return len(self.exponents)

    @functools.cached_property
    def elimination(self) -> Elimination:
        """The order in which tuples are eliminated, and the fill-in it causes."""
        return Elimination.of(self.matrix)

    @functools.cached_property
    def comparison(self) -> csc_array:
        """Ω̃: the diagonal of Ω, and −|Ω_kl| off the diagonal."""
        found = self.matrix.tocoo()
        entries = np.where(found.row == found.col, found.data, -np.abs(found.data))
        return csc_array((entries, (found.row, found.col)), shape=found.shape)

    @functools.cached_property
    def is_dominant(self) -> bool:
        """Whether Ω is strictly diagonally dominant, which makes Ω̃ and Ω positive definite.

        Rows are compared in the units of the matrix as it was given.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            units = np.ldexp(1.0, self.exponents)
            own = self.matrix.diagonal() * units
            rest = (diags_array(self.matrix.diagonal()) - self.comparison) @ units
            longest = int(np.diff(self.matrix.indptr).max())
            return bool(np.all(rest * (1 + 4 * (longest + 2) * UNIT_ROUNDOFF) < own))

    @functools.cached_property
    def inverse(self) -> BoundedInverse | None:
        """Bounds on Ω̃⁻¹; None where Ω̃ is not positive definite, or too close to singular."""
        factors = [self.elimination.factor(self.comparison, towards) for towards in (1, -1)]
        if not all(np.all(factor.pivots > 0) for factor in factors):
            return None
        return BoundedInverse(smaller=factors[0], larger=factors[1])

    @functools.cached_property
    def is_definite(self) -> bool:
        """Whether Ω is certainly positive definite.

        It is if the elimination of Ω̃ succeeds. Otherwise Ω − c·I is eliminated in plain rounding:
        if all pivots are positive, its smallest eigenvalue is at least −γ·trace(Ω), γ the rounding
        of one row (Rump, Verification of positive definiteness, BIT 46, 2006).
        """
        if self.is_dominant:
            return True
        factor = self.elimination.factor(self.comparison, -1)
        if np.all(factor.pivots > 0):
            return True
        longest = self.elimination.longest_row
        margin = 8 * (longest + 4) * UNIT_ROUNDOFF * float(self.matrix.diagonal().sum())
        shifted = csc_array(self.matrix - margin * diags_array(np.ones(self.size), format="csc"))
        return bool(np.all(self.elimination.factor(shifted, 0).pivots > 0))

    def column(self, target: int) -> tuple[FloatArray, FloatArray] | None:
        """Return Ω⁻¹·e_i and a bound on the error of each entry; None where Ω̃ bounds nothing.

        The residual r of a computed column has a small rounding error, and |Ω⁻¹r| ≤ Ω̃⁻¹|r|.
        """
        from scipy.sparse.linalg import splu

        if self.inverse is None:
            return None
        unit = np.zeros(self.size)
        unit[target] = 1.0
        found = np.asarray(splu(self.matrix, permc_spec="MMD_AT_PLUS_A").solve(unit))
        residual = np.abs(unit - self.matrix @ found)
        sizes = unit + abs(self.matrix) @ np.abs(found)
        steps = 4 * (np.diff(self.matrix.indptr) + 4) * UNIT_ROUNDOFF
        return found, self.inverse.at_most(residual * (1 + 4 * UNIT_ROUNDOFF) + steps * sizes)


@dataclass(frozen=True, kw_only=True)
class Factor:
    """L and D of a matrix L·D·Lᵀ on one side of Ω̃."""

    order: _Places
    """Which tuple is eliminated when."""
    below: _Places
    """Where the columns of L begin."""
    rows: _Places
    """The rows of its entries."""
    entries: FloatArray
    """Its entries below the diagonal."""
    pivots: FloatArray
    """D; all positive if the elimination succeeded."""

    def times(self, vector: FloatArray, towards: int) -> FloatArray:
        """Return the inverse times a vector that is not negative, rounded to one side."""
        from pdp_calibrate.families.gaussian.sparse_kernels import solved

        found = np.empty(len(vector))
        found[self.order] = solved(
            self.below, self.rows, self.entries, self.pivots, vector[self.order], towards
        )
        return found

    def diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse, rounded down."""
        from pdp_calibrate.families.gaussian.sparse_kernels import least_diagonal

        found = np.empty(len(self.pivots))
        found[self.order] = least_diagonal(self.below, self.rows, self.entries, self.pivots)
        return found


@dataclass(frozen=True, kw_only=True)
class Elimination:
    """An order of elimination with little fill-in, and the structure of the factors."""

    order: _Places
    """Which tuple is eliminated when."""
    parents: _Places
    """For every column, the first row below the diagonal in which L has an entry."""
    below: _Places
    """Where the columns of L begin."""
    longest_row: int
    """The largest number of entries of L in one row."""

    @classmethod
    def of(cls, matrix: csc_array) -> Elimination:
        """Choose the order by minimum degree; refuse what would take too long."""
        from pdp_calibrate.families.gaussian.sparse_kernels import tree_of

        order = _minimum_degree(matrix)
        upper = triu(matrix[order][:, order], format="csc")
        parents, counts, longest = tree_of(
            upper.indptr.astype(np.int64), upper.indices.astype(np.int64)
        )
        steps = float((counts.astype(np.float64) ** 2).sum())
        if steps > SPARSE_STEPS:
            raise ModelError(
                f"the network of {len(order):,} tuples is too dense: its elimination takes"
                f" {steps:.1g} steps, at most {SPARSE_STEPS:.1g} are allowed. Leave out weak"
                " couplings, or cut it into independent blocks."
            )
        below = np.concatenate([[0], np.cumsum(counts)])
        return cls(order=order, parents=parents, below=below, longest_row=int(longest))

    def factor(self, matrix: csc_array, towards: int) -> Factor:
        """Eliminate a matrix of this structure, rounded to one side."""
        from pdp_calibrate.families.gaussian.sparse_kernels import factored

        upper = triu(matrix[self.order][:, self.order], format="csc")
        upper.sort_indices()
        rows, entries, pivots = factored(
            upper.indptr.astype(np.int64),
            upper.indices.astype(np.int64),
            upper.data,
            self.parents,
            self.below,
            towards,
        )
        return Factor(order=self.order, below=self.below, rows=rows, entries=entries, pivots=pivots)


def _minimum_degree(matrix: csc_array) -> _Places:
    """Return an order of elimination with little fill-in.

    SuperLU finds it; the rest of its (incomplete) factorisation is thrown away.
    """
    from scipy.sparse.linalg import spilu

    found = matrix.tocoo()
    entries = np.where(found.row == found.col, 2.0 * matrix.shape[0], -1.0)
    pattern = csc_array(coo_array((entries, (found.row, found.col)), shape=matrix.shape))
    incomplete = spilu(
        pattern,
        drop_tol=0.9,
        fill_factor=1,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(incomplete.perm_c).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class BoundedInverse:
    """Ω̃⁻¹ between two inverses."""

    smaller: Factor
    """Of a matrix above Ω̃: its inverse is below."""
    larger: Factor
    """Of a matrix below Ω̃: its inverse is above."""

    def at_most(self, vector: FloatArray) -> FloatArray:
        """Return Ω̃⁻¹ times a vector that is not negative, rounded up."""
        return self.larger.times(vector, 1)

    def at_least(self, vector: FloatArray) -> FloatArray:
        """Return Ω̃⁻¹ times a vector that is not negative, rounded down."""
        return self.smaller.times(vector, -1)

    @functools.cached_property
    def least_diagonal(self) -> FloatArray:
        """The diagonal of Ω̃⁻¹, rounded down."""
        return self.smaller.diagonal()
