"""A table and a query in units of the noise, what a search over them finds, and conditional laws.

Every search over tables works on a `Setting` and returns an `Outcome`, which gets names and the
user's units later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.contributions import diameter
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, NEAR_ONE, rounding_error
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.families.table.prepared import PreparedTable

LARGEST_EXPONENT = 660.0  # e^±660 is far from overflow and from the subnormal numbers


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is attacked, with answers divided by the scale of their coordinate."""

    prepared: PreparedTable
    """All that no scale changes."""
    scale: float | FloatArray
    """The Laplace scale λ, or one per output coordinate."""
    parts: tuple[FloatArray, ...]
    """`parts[j][v]`: what value v of tuple j adds, from zero, in units of the scale; () if not
    additive."""
    table: FloatArray | None
    """The answer in every cell, from zero, in units of the scale; None if additive."""
    tails_only: bool = False
    """Whether only the limits r → ±∞ count."""

    @property
    def probabilities(self) -> FloatArray:
        """The joint table, one axis per tuple."""
        return self.prepared.probabilities

    @property
    def knowledge(self) -> Knowledge:
        """The adversaries."""
        return self.prepared.knowledge

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        return self.prepared.sizes

    @property
    def coordinates(self) -> int:
        """Number of output coordinates."""
        return self.prepared.coordinates

    @cached_property
    def answers(self) -> FloatArray:
        """The answer in every cell, shape (cells, coordinates), in units of the scale."""
        if self.table is not None:
            return self.table.reshape(-1, self.coordinates)
        sums = np.zeros((1, self.coordinates))
        for part in self.parts:
            sums = (sums[:, np.newaxis] + part).reshape(-1, self.coordinates)
        return sums

    @cached_property
    def furthest(self) -> float:
        """A bound on the distance (L1, in scales) of two answers; the group bound."""
        if self.table is None:
            spread = sum(float(part.max(axis=0).sum()) for part in self.parts)
        else:
            spread = float(self.table.reshape(-1, self.coordinates).max(axis=0).sum())
        return spread * (1 + 2 * (len(self.sizes) + self.coordinates + 2) * UNIT_ROUNDOFF)

    @property
    def is_near_one(self) -> bool:
        """Whether all densities lie so close together that their distance from 1 is kept."""
        return self.furthest <= NEAR_ONE

    @cached_property
    def fits_linear_space(self) -> bool:
        """Whether no mass, kernel or ratio of densities can underflow or overflow."""
        return self.furthest - self.prepared.log_rarest <= LARGEST_EXPONENT

    def rounding_error(self, additions: int) -> float:
        """Bound the error of a log-ratio of two densities computed with this number of additions.

        A density is Σ p·k over a mass Σ p: each sum is right to `additions` roundings, each kernel
        k = e^{−d} to those of d; the rest is said in `core.mixtures`.
        """
        roundings = 2 * additions + len(self.sizes) + self.coordinates + 24
        return rounding_error(
            DEFICITS if self.is_near_one else DENSITIES,
            width=self.furthest,
            operations=roundings,
            distance_operations=roundings,
        )


def setting_of(prepared: PreparedTable, scale: float | FloatArray) -> Setting:
    """Divide the query by the noise."""
    return Setting(
        prepared=prepared,
        scale=scale,
        parts=tuple(part / scale for part in prepared.parts),
        table=None if prepared.table is None else prepared.table / scale,
    )


def group_bound(setting: Setting, moving: tuple[int, ...]) -> float:
    """Bound the leakage by how far these tuples together can move the answer, in scales."""
    if setting.table is not None:
        return setting.furthest
    spread = sum(diameter(setting.parts[place]) for place in moving)
    return spread * (1 + 4 * (len(setting.sizes) + setting.coordinates + 4) * UNIT_ROUNDOFF)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One adversary at work, in positions of the table and units of the noise."""

    target: int
    """The tuple attacked."""
    known: dict[int, int]
    """Position of a known tuple → position of its value."""
    secrets: tuple[int, int]
    """The value that the output speaks for, and the one it speaks against."""
    output: FloatArray
    """Where, measured from the smallest answer of all, in each coordinate."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A certified bracket and the attack that attains its lower end."""

    upper: float
    lower: float
    attack: Attack | None

    def or_worse(self, other: Outcome) -> Outcome:
        """Return the larger upper end together with the larger lower end."""
        better = self.attack is not None and (other.attack is None or self.lower >= other.lower)
        one = self if better else other
        return Outcome(upper=max(self.upper, other.upper), lower=one.lower, attack=one.attack)


NOTHING = Outcome(upper=0.0, lower=0.0, attack=None)


def bracket(log_ratio: float, bound: float, error: float, attack: Attack | None) -> Outcome:
    """Wrap a computed log-ratio, right to `error`, and a computed bound on all others."""
    if attack is None and bound <= 0:
        return NOTHING
    return Outcome(
        upper=math.nextafter(max(log_ratio, bound, 0.0) + error, math.inf),
        lower=0.0 if attack is None else max(0.0, math.nextafter(log_ratio - error, -math.inf)),
        attack=attack,
    )


@dataclass(frozen=True, kw_only=True)
class Events:
    """All that adversaries with one target and one unknown set can know."""

    known: tuple[int, ...]
    """Positions of the known tuples."""
    laws: FloatArray
    """P(atom | x_K, x_i), shape (values of x_K, values of x_i, atoms); rows sum to 1."""
    possible: npt.NDArray[np.bool_]
    """Whether x_i occurs together with x_K; where it does not, the law means nothing."""
    atoms: FloatArray
    """What target and unknown tuples add, shape (values of x_K or 1, values of x_i, atoms, d)."""
    additions: int
    """Bound on the rounded operations behind each law and atom."""


def conditional_laws(problem: Problem, target: int, unknown: tuple[int, ...]) -> Events:
    """Condition the table on (x_i, x_K), for all their values at once."""
    if not isinstance(problem.model, JointTable):
        raise TypeError(f"conditional laws are taken of joint tables, got {problem.model!r}.")
    table, contributions = problem.model, problem.contributions
    axes = range(len(table.names))
    known = tuple(axis for axis in axes if axis != target and axis not in unknown)
    secrets = len(table.domains[target])
    order = (*known, target, *unknown)
    cells = int(np.prod([len(table.domains[axis]) for axis in unknown], dtype=np.int64))
    masses = table.probabilities.transpose(order).reshape(-1, secrets, cells)
    if contributions.table is None:
        own = _from_zero(contributions.values[target])
        added = np.zeros((1, own.shape[-1]))
        for axis in unknown:
            steps = added[:, np.newaxis] + _from_zero(contributions.values[axis])
            added = steps.reshape(-1, own.shape[-1])
        masses, added = _merged(masses, added)
        atoms = own[np.newaxis, :, np.newaxis] + added
    else:
        answers = _from_zero(contributions.table.reshape(-1, contributions.table.shape[-1]))
        answers = answers.reshape(contributions.table.shape)
        atoms = answers.transpose(*order, len(axes)).reshape(*masses.shape, -1)
    totals = masses.sum(axis=-1)
    possible = totals > 0
    laws = np.where(possible[..., np.newaxis], masses, 1.0)
    laws = laws / np.where(possible, totals, masses.shape[-1])[..., np.newaxis]
    additions = 2 * cells + 2 * len(axes)
    return Events(known=known, laws=laws, possible=possible, atoms=atoms, additions=additions)


def _merged(masses: FloatArray, added: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Add up the masses of unknown values that give the same answer."""
    distinct, inverse = np.unique(added, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    starts = np.searchsorted(inverse.ravel()[order], np.arange(len(distinct)))
    return np.add.reduceat(masses[..., order], starts, axis=-1), distinct


def _from_zero(values: FloatArray) -> FloatArray:
    """Shift a tuple's contributions to start at zero, so that sums keep the digits of the range."""
    return np.asarray(values - values.min(axis=0))
