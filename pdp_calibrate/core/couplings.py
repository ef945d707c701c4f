"""How far an answer must move to turn its law under one secret into its law under another.

Theorem 21 (docs/theory).

If a coupling of both laws moves the answer by at most Δ, the release with Gaussian noise σ is a
mixture of pairs of normal laws at most Δ apart, and hockey-stick divergences are jointly convex: it
is Δ/σ-GDP. On a line the least Δ is W∞, the largest distance of equal quantiles. It holds at every
δ, and needs no search over outputs; often it is just how far the answer can move at all.

W∞ jumps where levels of both laws meet: rounding then decides whether a trace of mass has to move
further. So mass η may be left out: the coupling is a mixture of one that moves by at most Δ and,
with weight η, of an arbitrary one, so δ is at most that of Δ/σ-GDP plus η. For a question about one
δ, η is charged to it; a claim for every δ leaves nothing out, and where rounding cannot decide
between levels, the one that gives the larger bound is taken.

**Random moves.** A coupling that moves the answer by a random distance d mixes pairs of normal laws
d apart, and δ is at most the mean of theirs, E[δ_{d/σ}(ε)]: long moves may be arbitrarily long if
they are rare. That is a claim about one δ; for every δ only the longest move counts.

The moves of different queries do **not** add up: each query may have a coupling that moves nothing
while no single coupling does so for both. One coupling must move all answers together, and the
length of its moves is measured in L2.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF, lengths
from pdp_calibrate.core.tuning import FEW_ROWS, MANY_ANSWERS

if TYPE_CHECKING:
    from pdp_calibrate.core.problem import Bracket, Problem

_EQUAL = 1e-12  # levels closer than this, relatively, are compared so that the bound is larger
_HALF = 0.5 + 1e-9  # a little more, so that no level is left out
_MOST_HALVINGS = 60


def furthest_quantiles(
    atoms: FloatArray, first: FloatArray, second: FloatArray, *, error: float = 0.0
) -> FloatArray:
    """Bound W∞ of every pair of laws on a line from above.

    Parameters
    ----------
    atoms
        Where the answers lie, ascending.
    first, second
        The laws, shape (pairs, atoms).
    error
        Bound on the relative error of every probability.

    Examples
    --------
    >>> first, second = np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 0.6, 0.4]])
    >>> furthest_quantiles(np.array([0.0, 1.0, 2.0]), first, second).round(9)
    array([1.])
    """
    equal = max(_EQUAL, 4 * (error + len(atoms) * UNIT_ROUNDOFF))
    found: list[FloatArray] = []
    for side in (slice(None), slice(None, None, -1)):
        with np.errstate(divide="ignore"):
            levels = [np.log(np.cumsum(law[:, side], axis=1)) for law in (first, second)]
        held = first[:, side] > 0, second[:, side] > 0
        found += _shifts_below_half(atoms[side], levels, held, equal)
    return np.asarray(np.max(found, axis=0) * (1 + 4 * UNIT_ROUNDOFF))


def are_within(
    atoms: FloatArray,
    first: FloatArray,
    second: FloatArray,
    distance: float,
    *,
    error: float = 0.0,
) -> npt.NDArray[np.bool_]:
    """Return for which pairs of laws `furthest_quantiles` is certainly at most a distance.

    That holds where no level of one distribution function is above the other's, shifted by the
    distance. It needs no sorting; where rounding could decide, the answer is no.

    Examples
    --------
    >>> first, second = np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 0.6, 0.4]])
    >>> [are_within(np.arange(3.0), first, second, d).tolist() for d in (0.0, 1.0)]
    [[False], [True]]
    """
    equal = max(_EQUAL, 4 * (error + len(atoms) * UNIT_ROUNDOFF))
    found = np.ones(len(first), dtype=np.bool_)
    for places, step in ((atoms, 1), (-atoms[::-1], -1)):
        levels = [np.cumsum(law[:, ::step], axis=1) for law in (first, second)]
        further = np.searchsorted(places, places + distance, side="right") - 1
        for here, there in (levels, levels[::-1]):
            most = np.minimum(here, _HALF) * (1 + 4 * equal)
            found &= (most <= there[:, further]).all(axis=1)
    return found


def quantile_shifts(
    atoms: FloatArray, first: FloatArray, second: FloatArray, *, error: float
) -> tuple[FloatArray, FloatArray]:
    """Bound how far quantiles of the second law lie above those of the first, and below.

    Parameters
    ----------
    atoms
        Where the answers lie, ascending.
    first, second
        Logarithms of the laws, shape (pairs, atoms): they may be as small as any float.
    error
        Bound on the error of every logarithm.

    Returns
    -------
    tuple
        The largest shift upwards of every pair, and the largest downwards; either may be negative.

    Examples
    --------
    >>> laws = np.log([[0.5, 0.5, 1e-300]]), np.log([[1e-300, 0.5, 0.5]])
    >>> up, down = quantile_shifts(np.arange(3.0), *laws, error=0.0)
    >>> float(up[0]), float(down[0]) <= 0
    (2.0, True)
    """
    held = first > -np.inf, second > -np.inf
    deepest = max(
        float(np.abs(law[own]).max()) for law, own in zip((first, second), held, strict=True)
    )
    equal = max(_EQUAL, 8 * (error + len(atoms) * (1 + deepest) * UNIT_ROUNDOFF))
    low = [np.logaddexp.accumulate(law, axis=1) for law in (first, second)]
    high = [np.logaddexp.accumulate(law[:, ::-1], axis=1) for law in (first, second)]
    up, down = _shifts_below_half(atoms, low, held, equal)
    backwards = held[0][:, ::-1], held[1][:, ::-1]
    rise, fall = _shifts_below_half(atoms[::-1], high, backwards, equal)
    return np.maximum(up, rise), np.maximum(down, fall)


def _shifts_below_half(
    atoms: FloatArray,
    levels: Sequence[FloatArray],
    held: Sequence[npt.NDArray[np.bool_]],
    equal: float,
) -> tuple[FloatArray, FloatArray]:
    """Compare the quantiles up to one half, for which sums from this end are relatively accurate.

    `levels` are logarithms of these sums for both laws, `held` marks where a law has an atom.
    """
    ends, after = levels
    starts = np.concatenate([np.full((len(ends), 1), -np.inf), ends[:, :-1]], axis=1)
    counts = held[0] & (starts < math.log(_HALF))
    lowest = held[1].argmax(axis=1)[:, np.newaxis]
    highest = len(atoms) - 1 - held[1][:, ::-1].argmax(axis=1)[:, np.newaxis]
    # The quantiles of the second law between both levels of an atom, from the first to the last.
    before, until = starts - 2 * equal, np.minimum(ends, math.log(_HALF)) + 2 * equal
    low = np.clip(_number_below(after, before, equal_too=True), lowest, highest)
    high = np.clip(_number_below(after, until, equal_too=False), lowest, highest)
    reached = np.stack([atoms[low], atoms[high]]) - atoms
    up = np.where(counts, reached.max(axis=0), -np.inf).max(axis=1)
    down = np.where(counts, -reached.min(axis=0), -np.inf).max(axis=1)
    return up, down


def moves_but_for(
    atoms: FloatArray,
    first: FloatArray,
    second: FloatArray,
    left_out: float,
    *,
    error: float = 0.0,
) -> FloatArray:
    """Bound how far a coupling of every pair of laws moves all but a share of the mass.

    Parameters
    ----------
    atoms, first, second, error
        As in `furthest_quantiles`.
    left_out
        The probability with which a coupling may move further. Errors of the probabilities and of
        their sums are charged to it; where it is too small for them, nothing is left out.

    Examples
    --------
    >>> first, second = np.array([[0.3, 0.7, 0.0]]), np.array([[0.0, 0.3, 0.7]])
    >>> atoms = np.array([0.0, 1.0, 2.0])
    >>> furthest_quantiles(atoms, first, second).round(9)
    array([2.])
    >>> moves_but_for(atoms, first, second, 1e-12).round(9)
    array([1.])
    """
    size = len(atoms)
    # Both laws that the sums belong to are this close to the true ones, in total variation: a sum
    # is rounded once per atom, by at most one unit, and ends that close to 1.
    slack = left_out - 4 * (error + (2 * size + 4) * UNIT_ROUNDOFF)
    if slack <= 0:
        return furthest_quantiles(atoms, first, second, error=error)
    inner = [np.minimum(np.cumsum(law, axis=1)[:, :-1], 1.0) for law in (first, second)]
    levels = np.concatenate(inner, axis=1)
    order = np.argsort(levels, axis=1, kind="stable")
    levels = np.take_along_axis(levels, order, axis=1)
    masses = np.diff(levels, axis=1, prepend=0.0, append=1.0)
    passed = np.cumsum(order < size - 1, axis=1)
    here = np.pad(passed, ((0, 0), (1, 0)))
    there = np.arange(2 * size - 1) - here
    moves = np.abs(atoms[here] - atoms[there])
    furthest = np.argsort(-moves, axis=1, kind="stable")
    beyond = np.cumsum(np.take_along_axis(masses, furthest, axis=1), axis=1)
    kept = (beyond > slack).argmax(axis=1)[:, np.newaxis]
    found = np.take_along_axis(np.take_along_axis(moves, furthest, axis=1), kept, axis=1)
    return np.asarray(found[:, 0] * (1 + 4 * UNIT_ROUNDOFF))


def _number_below(
    values: FloatArray, levels: FloatArray, *, equal_too: bool
) -> npt.NDArray[np.intp]:
    """Count, row by row, the values below every level; both ascend."""
    size = values.shape[1]
    if len(values) <= FEW_ROWS:
        side: Literal["left", "right"] = "right" if equal_too else "left"
        rows = [np.searchsorted(*row, side=side) for row in zip(values, levels, strict=True)]
        return np.stack(rows)
    both = [values, levels] if equal_too else [levels, values]
    order = np.argsort(np.concatenate(both, axis=1), axis=1, kind="stable")
    is_value = order < size if equal_too else order >= size
    counts = np.cumsum(is_value, axis=1)
    return np.asarray(counts[~is_value].reshape(levels.shape), dtype=np.intp)


class RandomMove(NamedTuple):
    """How far a coupling moves the answer, and how likely."""

    moves: FloatArray
    """Distances, ascending; no move is longer than the last."""
    reached: FloatArray
    """For each of them a bound on the probability of moving further than the one before it."""


def epsilon_of_moves(random: RandomMove, scale: float, delta: float) -> float:
    """Return an ε at which a coupling with random moves keeps δ, rounded up.

    There, the mean over moves of the δ of normal laws that far apart is at most δ.

    Examples
    --------
    >>> always = RandomMove(np.array([1.0]), np.array([1.0]))
    >>> rarely = RandomMove(np.array([1.0, 50.0]), np.array([1.0, 1e-9]))
    >>> [round(epsilon_of_moves(one, 4.2247, 1e-6), 3) for one in (always, rarely)]
    [1.0, 1.0]
    """
    mus = random.moves / scale * (1 + 2 * UNIT_ROUNDOFF)

    def mean(epsilon: float) -> float:
        apart = gaussian_dp.deltas_above(mus, epsilon)
        apart = np.maximum.accumulate(apart)
        steps = np.diff(apart, prepend=0.0)
        return float(steps @ random.reached) * (1 + 4 * len(steps) * UNIT_ROUNDOFF)

    low, high = 0.0, gaussian_dp.epsilon_of(float(mus[-1]), delta)
    if not math.isfinite(high) or mean(0.0) <= delta:
        return high if not math.isfinite(high) else 0.0
    for _ in range(_MOST_HALVINGS):
        if high - low <= 1e-12 * high:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if mean(middle) <= delta else (middle, high)
    return high


def one_number(contributions: Contributions) -> tuple[Contributions, float] | None:
    """Return the one number that all coordinates of an answer are multiples of, and its error.

    Multiples c_m of one number f, each with noise of deviation 1, together reveal what f·√(Σ c_m²)
    with such noise reveals: the weighted mean is sufficient. So repeats of one query are a single
    release with σ^{−2} = Σ σ_m^{−2}. None if the coordinates are not multiples of one number.
    """
    if contributions.coordinates == 1:
        return contributions, 0.0
    table = contributions.table
    arrays, shifted, joined, row = _moves_from_first(contributions)
    base = int(np.abs(row).argmax())
    if row[base] == 0:
        return _first_coordinate(contributions), 0.0
    factors = row / row[base]
    off = np.abs(joined - joined[:, base : base + 1] * factors).max()
    if off > 16 * UNIT_ROUNDOFF * float(np.abs(joined).max()):
        return None
    length = float(np.linalg.norm(factors))
    # Every tuple may be off by as much, in every coordinate, and in the norm's own rounding.
    error = len(arrays) * (2 * math.sqrt(contributions.coordinates) * off) + (
        8 * (contributions.coordinates + 4) * UNIT_ROUNDOFF
    ) * length * sum(float(np.abs(array).max()) for array in shifted)
    if table is not None:
        answers = (table[..., base] - table[..., base].min()) * length
        return Contributions.tabulated(answers), error
    made = {id(array): array[:, base] * length for array in shifted}
    return Contributions.additive([made[id(array)] for array in shifted]), error


def _moves_from_first(
    contributions: Contributions,
) -> tuple[Sequence[FloatArray], list[FloatArray], FloatArray, FloatArray]:
    """Return what tuples add, the same from their first value on, all of it, and the furthest."""
    table = contributions.table
    arrays = contributions.values if table is None else (table.reshape(-1, table.shape[-1]),)
    shifted = [array - array[:1] for array in arrays]
    joined = np.concatenate(list({id(a): a for a in shifted}.values()))
    return arrays, shifted, joined, joined[np.abs(joined).max(axis=1).argmax()]


def output_side(found: Bracket, problem: Problem) -> Bracket:
    """Place the output of a witness far out in every coordinate, where it reveals most.

    Where all coordinates are multiples of the number of `one_number`, each lies on the side towards
    which it moves as that number rises.
    """
    contributions, witness = problem.contributions, found.witness
    if witness is None or contributions.coordinates == 1 or isinstance(witness.output, tuple):
        return found
    *_, row = _moves_from_first(contributions)
    sides = np.sign(row * row[np.abs(row).argmax()]).tolist()
    output = tuple(side * witness.output if side else 0.0 for side in sides)
    return dataclasses.replace(found, witness=dataclasses.replace(witness, output=output))


def _first_coordinate(contributions: Contributions) -> Contributions:
    if contributions.table is not None:
        return Contributions.tabulated(contributions.table[..., 0])
    return Contributions.additive([array[:, 0] for array in contributions.values])


def joint_range(contributions: Contributions) -> float:
    """Return how far all answers together can move in L2 at all, rounded up."""
    table = contributions.table
    if table is not None:
        return _diameter(table.reshape(-1, table.shape[-1]))
    size = math.prod(map(float, contributions.sizes))
    if size <= MANY_ANSWERS:
        return _diameter(contributions.in_every_cell().reshape(-1, contributions.coordinates))
    spread = np.sum([np.ptp(array, axis=0) for array in contributions.values], axis=0)
    by_tuple = math.fsum(_diameter(array) for array in contributions.values)
    return min(by_tuple, float(lengths(spread))) * (
        1 + 4 * (len(contributions.values) + len(spread)) * UNIT_ROUNDOFF
    )


def tuple_moves(contributions: Contributions) -> tuple[FloatArray, list[tuple[int, int]]]:
    """Return how far each tuple alone can move all answers in L2, and between which values."""
    moves, secrets = [], []
    if contributions.table is None:
        for array in contributions.values:
            move, pair = _furthest(array[np.newaxis])
            moves.append(move)
            secrets.append(pair)
    else:
        for axis in range(len(contributions.sizes)):
            lines = np.moveaxis(contributions.table, axis, -2)
            move, pair = _furthest(lines.reshape(-1, *lines.shape[-2:]))
            moves.append(move)
            secrets.append(pair)
    return np.array(moves), secrets


def _furthest(lines: FloatArray) -> tuple[float, tuple[int, int]]:
    """Return the largest L2 distance of two points of a line, and which; (lines, points, d)."""
    best, pair = 0.0, (0, 1)
    for a, b in itertools.combinations(range(lines.shape[1]), 2):
        move = float(lengths(lines[:, a] - lines[:, b]).max())
        if move > best:
            best, pair = move, (a, b)
    return best, pair


def _diameter(points: FloatArray) -> float:
    """Return the largest L2 distance of two points, rounded up."""
    distinct = np.unique(points, axis=0)
    if len(distinct) > MANY_ANSWERS:
        widest = float(lengths(np.ptp(distinct, axis=0)))
    else:
        widest = max(float(lengths(distinct - point).max()) for point in distinct)
    return float(widest * (1 + 4 * (points.shape[1] + 4) * UNIT_ROUNDOFF))
