"""The table conditioned on what an adversary knows, for all values of it at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.table import JointTable


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
