"""The δ of Gaussian noise on answers that take finitely many values, certified.

Theorem 21 (docs/theory).

Given what an adversary knows, the answer has a law P under one secret and Q under another. With
Gaussian noise, in units of which everything here is measured, the densities of the release are
mixtures Σ p_s·φ(r − s), and

    δ(ε) = max over sets E of P(E) − e^ε·Q(E) = ∫ h⁺,    h(r) = Σ c_s·φ(r − s),  c = p − e^ε·q,

where h⁺ is h where it is positive, and 0 elsewhere. So δ is a finite sum of normal probabilities
once the roots of h are known, and every set E gives a lower end.

**Roots.** Multiplied by e^{r²/2 − ar}, h is Σ c_s·e^{−s²/2}·e^{(s−a)r}, with the same roots. Its
derivative is, up to a positive factor, Σ c_s·(s − a)·φ(r − s): a function of the same kind. If a
lies between two atoms where c changes its sign, it has one change of sign fewer. Between two roots
of a function lies one of its derivative, so the roots of the derivative separate those sought. The
last function of the sequence has no change of sign, and no root; going back, there is at most one
root between neighbours, and the signs at both say whether there is one. Signs are read from

    L(r) = log Σ_{c_s > 0} c_s·φ(r − s) − log Σ_{c_s < 0} |c_s|·φ(r − s),

whose slope is at most the distance of the extreme atoms: it neither over- nor underflows however
far out r lies, and Newton's method on it takes a few steps, for it is nearly a line. A sign counts
where |L| exceeds a bound on its rounding error. A root stays enclosed in a bracket whose whole
content is charged to the upper end, as is what lies more than `_REACH` deviations from all atoms.

**Cells.** Where c changes its sign often, or two roots nearly meet, the line is cut into cells
instead. In a cell of width w where h has a root, |h| is at most w·D, D the largest slope; so the
smaller of the two areas that h has there, above and below zero, is at most D·w²/4. Cells that may
have a root are cut further until their charge is negligible; L can rule a root out where the area
alone does not.

**Rounding.** The coefficients are rounded up, which raises h everywhere and so its δ; the
probabilities' own relative error is included. Normal probabilities are accurate to
`_TAIL_ERROR` roundings plus two per unit of z², which is charged term by term.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import CHUNK_NUMBERS
from pdp_calibrate.errors import PdpError

LARGEST_EPSILON = 500.0
"""Levels beyond this are not evaluated: e^ε times a probability could overflow."""

_REACH = 37.5  # deviations: the normal law has less than 1e-306 beyond
_BEYOND = 1e-300  # charged for that, and for subnormal numbers
_TAIL_ERROR = 8.0  # roundings of a normal probability near its middle
_MOST_CHANGES = 12  # of sign, beyond which cells are cheaper
_MOST_STEPS = 100
_INSIGNIFICANT = 50.0  # nats below the largest term
_CERTAIN = 40.0  # nats: no rounding error comes near
_ROOT_TWO_PI = math.sqrt(2 * math.pi)

BoolArray = npt.NDArray[np.bool_]


class Deltas(NamedTuple):
    """Certified brackets of δ, one per pair of laws."""

    upper: FloatArray
    """No set of outputs has a larger P(E) − e^ε·Q(E)."""
    lower: FloatArray
    """Some set has at least this."""
    slope: FloatArray
    """Approximately how much δ falls per unit of ε: e^ε·Q(E)."""


def deltas(
    atoms: FloatArray,
    first: FloatArray,
    second: FloatArray,
    epsilon: float,
    *,
    error: float = 0.0,
    enough: FloatArray | None = None,
    deadline: float = math.inf,
) -> Deltas:
    """Bracket δ(ε) for every pair of laws.

    Parameters
    ----------
    atoms
        Where the answers lie, in units of the noise's standard deviation: ascending, distinct.
    first, second
        The laws P and Q, shape (pairs, atoms).
    epsilon
        The level, at least 0 and at most `LARGEST_EPSILON`.
    error
        Bound on the relative error of every probability.
    enough
        Per pair, a δ that is small enough: below it, a coarse upper end will do.
    deadline
        Value of `time.monotonic()` after which the rest is bounded by Σ (p − e^ε·q)⁺.

    Returns
    -------
    Deltas
        The ends enclose the δ of all laws within that error. For laws without it they differ by
        about 1e-13 of P(E), the probability of the outputs that favour the first secret.

    Examples
    --------
    Two atoms, one deviation apart: the δ of 1-GDP.

    >>> found = deltas(np.array([0.0, 1.0]), np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]), 1.0)
    >>> round(float(found.upper[0]), 12), round(float(found.lower[0]), 12)
    (0.126936737507, 0.126936737507)
    """
    _check(atoms, first, epsilon)
    rows = max(1, CHUNK_NUMBERS // (8 * len(atoms)))
    fine = np.full(len(first), -1.0) if enough is None else enough
    if len(first) <= rows:
        return _deltas(atoms, first, second, epsilon, error, fine, deadline)
    chunks = [slice(start, start + rows) for start in range(0, len(first), rows)]
    pieces = [
        _deltas(atoms, first[one], second[one], epsilon, error, fine[one], deadline)
        for one in chunks
    ]
    return Deltas(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def _check(atoms: FloatArray, first: FloatArray, epsilon: float) -> None:
    if not 0 <= epsilon <= LARGEST_EPSILON:
        raise PdpError(f"epsilon must lie between 0 and {LARGEST_EPSILON:g}, got {epsilon}.")
    if not (np.all(np.isfinite(atoms)) and np.all(np.isfinite(first))):
        raise PdpError("atoms and probabilities must be finite: nothing can be certified.")


class _Functions(NamedTuple):
    """Functions Σ c_s·φ(r − s), one per row."""

    logs: FloatArray
    """log |c_s|, −inf for 0."""
    positive: BoolArray
    """Whether c_s > 0."""

    def of(self, rows: npt.NDArray[np.intp] | BoolArray) -> _Functions:
        """Return some of the functions."""
        return _Functions(self.logs[rows], self.positive[rows])


class _Signs(NamedTuple):
    """The signs of several functions, each evaluated at one point."""

    ratio: FloatArray
    """L: the logarithm of the positive terms over the negative ones."""
    slope: FloatArray
    """Its derivative."""
    error: FloatArray
    """Bound on its rounding error."""
    size: FloatArray
    """The logarithm of the sum of the absolute values of all terms."""

    @property
    def certain(self) -> BoolArray:
        """Whether the sign is beyond rounding."""
        return np.asarray(np.abs(self.ratio) > np.minimum(self.error, _CERTAIN))


def _deltas(
    atoms: FloatArray,
    first: FloatArray,
    second: FloatArray,
    epsilon: float,
    error: float,
    enough: FloatArray,
    deadline: float,
) -> Deltas:
    # One product is rounded on the left, two and an exponential on the right; 1 ± the error is
    # rounded too, unless there is none.
    further, level = 2 if error else 0, math.exp(epsilon)
    grown = error + (2 + further) * UNIT_ROUNDOFF
    shrunk = error + (6 + further) * UNIT_ROUNDOFF
    coefficients = first * (1 + grown) - second * (level * (1 - shrunk))
    if time.monotonic() > deadline:
        nothing = np.zeros(len(first))
        return Deltas(np.minimum(_at_most(coefficients), 1.0), nothing, nothing)
    cuts, changes = _sign_changes(atoms, coefficients)
    with np.errstate(divide="ignore"):
        functions = _Functions(np.log(np.abs(coefficients)), coefficients > 0)
    number = len(first)
    masses, blur = np.zeros_like(first), np.zeros_like(first)  # of E around each atom; its error
    charged = np.zeros(number)
    in_cells = changes > _MOST_CHANGES
    coarse = np.full(number, np.nan)
    if np.any(in_cells & (enough > 0)):
        rows = np.flatnonzero(in_cells & (enough > 0))
        bound = _coarsely(atoms, coefficients[rows])
        settled = rows[bound <= enough[rows]]
        coarse[settled] = bound[bound <= enough[rows]]
        in_cells[settled], changes[settled] = False, -1
    for count in np.unique(changes[~in_cells & (changes >= 0)]).tolist():
        rows = np.flatnonzero(changes == count)
        roots, signs, charge, failed = _roots(atoms, functions.of(rows), cuts[rows], count)
        masses[rows], blur[rows] = _masses(atoms, roots, signs)
        charged[rows] = charge
        in_cells[rows[failed]] = True
    for row in np.flatnonzero(in_cells).tolist():
        masses[row], blur[row], charged[row] = _by_cells(atoms, coefficients[row], deadline)
    sizes = np.abs(coefficients)
    upper = (coefficients * masses).sum(axis=1)
    noise = 2 * (len(atoms) + 4) * UNIT_ROUNDOFF
    upper += (sizes * blur).sum(axis=1) + noise * (sizes * masses).sum(axis=1)
    for_first, for_second = (first * masses).sum(axis=1), level * (second * masses).sum(axis=1)
    lower = for_first - for_second - ((first + level * second) * blur).sum(axis=1)
    lower -= (noise + 2 * shrunk) * (for_first + for_second)
    upper = np.where(np.isnan(coarse), upper, coarse)
    if not np.all(np.isfinite(upper)):
        raise PdpError("delta is not a number: nothing can be certified.")
    return Deltas(
        upper=np.clip(upper + charged + _BEYOND, 0.0, 1.0),
        lower=np.clip(lower - _BEYOND, 0.0, 1.0),
        slope=for_second,
    )


def _at_most(coefficients: FloatArray) -> FloatArray:
    """Bound δ by what all positive coefficients add up to, along the last axis."""
    return np.asarray(np.maximum(coefficients, 0.0).sum(axis=-1) * (1 + 1e-9) + _BEYOND)


def _sign_changes(
    atoms: FloatArray, coefficients: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return where between atoms the coefficients change their sign, and how often."""
    number = len(coefficients)
    cuts = np.full((number, _MOST_CHANGES), np.nan)
    signs = np.sign(coefficients)
    # For every atom, the last atom up to and including it whose coefficient is not zero.
    places = np.where(signs != 0, np.arange(len(atoms)), 0)
    last = np.maximum.accumulate(places, axis=1)[:, :-1]
    changed = np.take_along_axis(signs, last, axis=1) * signs[:, 1:] < 0
    order = np.cumsum(changed, axis=1)
    rows, after = np.nonzero(changed & (order <= _MOST_CHANGES))
    cuts[rows, order[rows, after] - 1] = (atoms[last[rows, after]] + atoms[after + 1]) / 2
    changes = changed.sum(axis=1, dtype=np.intp)
    return cuts, np.asarray(changes)


def _read(atoms: FloatArray, functions: _Functions, points: FloatArray) -> _Signs:
    """Read the sign of every function at its point.

    A term has the relative error of its exponent, whose parts are rounded relative to their size.
    Terms far below the largest do not matter for that.
    """
    apart = points[:, np.newaxis] - atoms
    halves = 0.5 * apart * apart
    exponents = functions.logs - halves
    peaks = exponents.max(axis=1)
    with np.errstate(invalid="ignore"):
        terms = np.exp(exponents - peaks[:, np.newaxis])
        counts = terms > math.exp(-_INSIGNIFICANT)
        spent = np.where(counts, np.abs(functions.logs) + 2 * halves, 0.0).max(axis=1)
        above = np.where(functions.positive, terms, 0.0)
        below = terms - above
        over, under = above.sum(axis=1), below.sum(axis=1)
        with np.errstate(divide="ignore"):
            ratio = np.log(over) - np.log(under)
        slope = (above @ atoms) / over - (below @ atoms) / under
    error = 16 * UNIT_ROUNDOFF * (len(atoms) + 8 + spent + np.abs(peaks))
    return _Signs(ratio, slope, error, peaks + np.log(over + under))


def _roots(
    atoms: FloatArray, functions: _Functions, cuts: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Enclose all roots of functions whose coefficients change their sign `count` times.

    Returns the brackets, shape (rows, count, 2), those missing at the right end of the line; the
    sign of each function in between, shape (rows, count + 1); what the brackets may hold; and for
    which rows two roots could not be separated.
    """
    number = len(functions.logs)
    left, right = float(atoms[0]) - _REACH, float(atoms[-1]) + _REACH
    span = float(atoms[-1] - atoms[0])
    brackets = np.empty((number, 0, 2))
    failed = np.zeros(number, dtype=np.bool_)
    # Level k has k of the changes of sign removed. Its factors |s − a| go into the logarithms.
    with np.errstate(divide="ignore"):
        factors = [np.log(np.abs(atoms - cuts[:, k : k + 1])) for k in range(count)]
    before = [atoms < cuts[:, k : k + 1] for k in range(count)]
    signs = np.where(functions.positive.any(axis=1, keepdims=True), 1.0, -1.0)
    charge = np.zeros(number)
    for level in range(count - 1, -1, -1):
        logs, positive = functions.logs, functions.positive
        for k in range(level):
            logs, positive = logs + factors[k], positive ^ before[k]
        here = _Functions(logs, positive)
        gaps = brackets.shape[1] + 1
        starts = np.concatenate([np.full((number, 1), left), brackets[:, :, 1]], axis=1)
        ends = np.concatenate([brackets[:, :, 0], np.full((number, 1), right)], axis=1)
        rows = np.repeat(np.arange(number), gaps)
        at_start = _read(atoms, here.of(rows), starts.ravel())
        at_end = _read(atoms, here.of(rows), ends.ravel())
        failed |= ~(at_start.certain & at_end.certain).reshape(number, gaps).all(axis=1)
        first, last = (np.sign(found.ratio).reshape(number, gaps) for found in (at_start, at_end))
        if gaps > 1:
            # No root hides in a bracket of the level above if L cannot reach 0 across it.
            ratio = np.abs(at_end.ratio).reshape(number, gaps)[:, :-1]
            width = brackets[:, :, 1] - brackets[:, :, 0]
            reach = width * span + at_end.error.reshape(number, gaps)[:, :-1]
            alike = (last[:, :-1] == first[:, 1:]) & (ratio > reach)
            failed |= ~(alike | (brackets[:, :, 0] >= right)).all(axis=1)
        crossing = (first != last) & ~failed[:, np.newaxis]
        found = np.full((number, gaps, 2), right)
        which, gap = np.nonzero(crossing)
        enclosed, lost, held = _enclosed(
            atoms, here.of(which), starts[which, gap], ends[which, gap], first[which, gap]
        )
        found[which, gap] = enclosed
        failed[which[lost]] = True
        if level == 0:
            np.add.at(charge, which, held)
            flips = np.where(crossing, -1.0, 1.0)
            signs = first[:, :1] * np.concatenate(
                [np.ones((number, 1)), np.cumprod(np.sort(flips, axis=1), axis=1)], axis=1
            )
        # Brackets of one row are disjoint, so both ends have the same order; missing ones are last.
        brackets = np.sort(found, axis=1)
    return brackets, signs, charge, failed


def _enclosed(
    atoms: FloatArray, functions: _Functions, low: FloatArray, high: FloatArray, sign: FloatArray
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Enclose the one root of each function between two points where its signs differ.

    Returns the brackets, which of them could not be made narrow, and the most of the function's
    area that they may hold.
    """
    number = len(low)
    brackets = np.stack([low, high], axis=1)
    lost, held = np.zeros(number, dtype=np.bool_), np.zeros(number)
    if not number:
        return brackets, lost, held
    points, slopes, errors = np.array(low + high) / 2, np.ones(number), np.zeros(number)
    lows, highs, active = low.copy(), high.copy(), np.arange(number)
    for step in range(_MOST_STEPS):
        read = _read(atoms, functions.of(active), points[active])
        slopes[active], errors[active] = read.slope, read.error
        ratio, here = read.ratio, points[active]
        ahead = np.sign(ratio) == sign[active]
        lows[active] = np.where(ahead, here, lows[active])
        highs[active] = np.where(ahead, highs[active], here)
        narrow = highs[active] - lows[active] <= 4 * UNIT_ROUNDOFF * (1 + np.abs(here))
        going = (np.abs(ratio) > read.error) & ~narrow
        active, ratio, here = active[going], ratio[going], here[going]
        if not len(active):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            tried = here - ratio / slopes[active]
        middle = (lows[active] + highs[active]) / 2
        inside = (tried > lows[active]) & (tried < highs[active]) & (step % 8 != 7)
        points[active] = np.where(inside, tried, middle)
    span = float(atoms[-1] - atoms[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = 4 * errors / np.abs(slopes)
    radius = np.where(np.isfinite(radius), radius, 1e-12) + 8 * UNIT_ROUNDOFF * (1 + np.abs(points))
    open_rows = np.arange(number)
    for _ in range(10):
        own = functions.of(open_rows)
        start = np.maximum(points[open_rows] - radius[open_rows], low[open_rows])
        end = np.minimum(points[open_rows] + radius[open_rows], high[open_rows])
        before, after = _read(atoms, own, start), _read(atoms, own, end)
        fits = before.certain & (np.sign(before.ratio) == sign[open_rows])
        fits &= after.certain & (np.sign(after.ratio) == -sign[open_rows])
        good = open_rows[fits]
        brackets[good] = np.stack([start, end], axis=1)[fits]
        # |h| is at most the sum of all terms times |L|, and L moves by at most `span` per unit.
        width = end - start
        most = np.abs(before.ratio) + before.error + width * span
        size = np.exp(np.minimum(np.maximum(before.size, after.size), 700.0))
        held[good] = (2 * width * size * np.minimum(most, 1.0) / _ROOT_TWO_PI)[fits]
        open_rows = open_rows[~fits]
        if not len(open_rows):
            break
        radius[open_rows] *= 16
    lost[open_rows] = True
    return brackets, lost, held


def _masses(
    atoms: FloatArray, brackets: FloatArray, signs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the normal probability of E around every atom, and a bound on its error.

    E is where the sign is positive, between the brackets.
    """
    number, count = brackets.shape[:2]
    left = np.full((number, 1), float(atoms[0]) - _REACH)
    right = np.full((number, 1), float(atoms[-1]) + _REACH)
    starts = np.concatenate([left, brackets[:, :, 1]], axis=1)
    ends = np.concatenate([brackets[:, :, 0], right], axis=1)
    masses, blur = np.zeros((number, len(atoms))), np.zeros((number, len(atoms)))
    for gap in range(count + 1):
        rows = np.flatnonzero((signs[:, gap] > 0) & (starts[:, gap] < ends[:, gap]))
        if len(rows):
            mass, error = _between(atoms, starts[rows, gap], ends[rows, gap])
            masses[rows] += mass
            blur[rows] += error
    return masses, blur


def _between(
    atoms: FloatArray, starts: FloatArray, ends: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Φ(end − atom) − Φ(start − atom) and a bound on its error, in the lighter tail."""
    from scipy.special import ndtr  # slow to import

    start, end = starts[:, np.newaxis] - atoms, ends[:, np.newaxis] - atoms
    mirrored = start > 0
    near, far = np.where(mirrored, -start, end), np.where(mirrored, -end, start)
    more, less = ndtr(near), ndtr(far)
    error = UNIT_ROUNDOFF * (
        more * (_TAIL_ERROR + 3 * np.where(near < 0, near * near, 1.0))
        + less * (_TAIL_ERROR + 3 * far * far)
    )
    return np.maximum(more - less, 0.0), error


_NARROW_CELL = 0.05
_NEAR = 13.0  # deviations: the normal law has 1e-38 beyond
_BEYOND_NEAR = 1e-37
_MOST_NUMBERS = 2**26  # in a matrix of cells and atoms
_MOST_CUT = 2**22  # the same, of cells that are cut further


def _coarsely(atoms: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Bound δ from above, all rows at once: cells are the same for all of them."""
    low, high = _first_cells(atoms, _NEAR, _NARROW_CELL)
    if len(low) * len(atoms) > _MOST_NUMBERS:
        return np.ones(len(coefficients))
    mass, error = _between(atoms, low, high)
    sizes, width = np.abs(coefficients), high - low
    slopes, bend = _slopes(atoms, low, high)
    upper = np.zeros(len(coefficients))
    rows = max(1, CHUNK_NUMBERS // len(low))
    for start in range(0, len(coefficients), rows):
        own, large = coefficients[start : start + rows], sizes[start : start + rows]
        area = own @ mass.T
        noise = 2 * (len(atoms) + 4) * UNIT_ROUNDOFF
        doubt = large @ error.T + noise * (large @ mass.T)
        steepest = (
            (np.abs(own @ slopes.T) + 1e-12 * (large @ np.abs(slopes).T))
            + width / 2 * (large @ bend.T)
        ) / _ROOT_TWO_PI
        charge = np.where(
            np.abs(area) - doubt <= steepest * width**2 / 2, steepest * width**2 / 4, 0.0
        )
        upper[start : start + rows] = (np.maximum(area, 0.0) + doubt + charge).sum(axis=1)
    return np.asarray(upper * (1 + 1e-9) + _BEYOND_NEAR * (1 + sizes.sum(axis=1)))


_WIDEST_CELL = 0.25
_FINER = 8  # parts of a cell that is cut
_ROUNDS = 14
_SMALL_CHARGE = 1e-10  # of δ, shared by all cells


def _by_cells(
    atoms: FloatArray, coefficients: FloatArray, deadline: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return the probability of E around every atom, its error, and what E may lack.

    E is the union of the cells where the integral of h is positive. After the deadline no cell is
    cut further; if there was no time at all, E is empty.
    """
    used = coefficients != 0
    atoms_used, sizes = atoms[used], np.abs(coefficients[used])
    functions = _Functions(np.log(sizes)[np.newaxis], coefficients[used][np.newaxis] > 0)
    span = float(atoms_used[-1] - atoms_used[0])
    masses, blur, charged = np.zeros_like(atoms), np.zeros_like(atoms), 0.0
    low, high = _first_cells(atoms_used, _REACH, _WIDEST_CELL)
    if len(low) * len(atoms) > _MOST_NUMBERS or time.monotonic() > deadline:
        return masses, blur, float(_at_most(coefficients))
    found = 0.0
    for turn in range(_ROUNDS):
        mass, error = _between(atoms, low, high)
        area = mass @ coefficients
        doubt = error @ np.abs(coefficients) + 2 * (len(atoms) + 4) * UNIT_ROUNDOFF * (
            mass @ np.abs(coefficients)
        )
        width = high - low
        slope = _steepest(atoms_used, coefficients[used], sizes, low, high)
        # h has a root in the cell only if its integral is at most the slope times w²/2.
        open_cells = np.abs(area) - doubt <= slope * width**2 / 2
        sign = np.where(open_cells, 0.0, np.sign(area))
        # Where e^ε is large, the area of a cell is smaller than its error, but the sign of h may be
        # certain: L moves by at most `span` per unit.
        rows = np.flatnonzero(open_cells)
        read = _read(atoms_used, functions, (low[rows] + high[rows]) / 2)
        settled = np.abs(read.ratio) > read.error + width[rows] * span
        sign[rows[settled]] = np.sign(read.ratio[settled])
        open_cells = sign == 0
        most = np.where(coefficients > 0, mass + error, 0.0) @ np.abs(coefficients)
        charge = np.where(open_cells, np.minimum(slope * width**2 / 4, most), 0.0)
        found = max(found, float(np.maximum(area, 0.0).sum()))
        cut = open_cells & (charge > _SMALL_CHARGE * (found + 1e-7 * _BEYOND) / 64)
        if turn == _ROUNDS - 1 or time.monotonic() > deadline:
            cut = np.zeros_like(cut)
        affordable = _MOST_CUT // (_FINER * len(atoms))
        if np.count_nonzero(cut) > affordable:  # nearly equal laws: h is nearly 0 everywhere
            least = np.partition(charge[cut], -affordable - 1)[-affordable - 1]
            cut &= charge > least
        inside = ((sign > 0) | (open_cells & (area > 0))) & ~cut
        masses += mass[inside].sum(axis=0)
        blur += error[inside].sum(axis=0) + len(low) * UNIT_ROUNDOFF * mass[inside].sum(axis=0)
        outside = open_cells & (area <= 0)
        lacking = np.where(outside, np.minimum(charge + doubt, most), charge)
        charged += float(lacking[~cut].sum())
        if not cut.any():
            break
        edges = np.linspace(low[cut], high[cut], _FINER + 1, axis=1)
        low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    return masses, blur, charged * (1 + 1e-9)


def _first_cells(atoms: FloatArray, reach: float, widest: float) -> tuple[FloatArray, FloatArray]:
    """Cut everything within reach of an atom into cells."""
    apart = np.flatnonzero(np.diff(atoms) > 2 * reach)
    starts = atoms[np.concatenate([[0], apart + 1])] - reach
    ends = atoms[np.concatenate([apart, [len(atoms) - 1]])] + reach
    lows, highs = [], []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        edges = np.linspace(start, end, 1 + math.ceil((end - start) / widest))
        lows.append(edges[:-1])
        highs.append(edges[1:])
    return np.concatenate(lows), np.concatenate(highs)


def _steepest(
    atoms: FloatArray,
    coefficients: FloatArray,
    sizes: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Bound |h'| in every cell, by h' in its middle and a bound on h''."""
    slopes, bend = _slopes(atoms, low, high)
    here = np.abs(slopes @ coefficients) + 1e-12 * (np.abs(slopes) @ sizes)
    return np.asarray((here + (high - low) / 2 * (bend @ sizes)) / _ROOT_TWO_PI * (1 + 1e-9))


def _slopes(atoms: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return √(2π)·φ' around each atom in the middle of each cell, and a bound on √(2π)·|φ''|."""
    apart = ((low + high) / 2)[:, np.newaxis] - atoms
    half = (high - low)[:, np.newaxis] / 2
    slopes = -apart * np.exp(-0.5 * apart * apart)
    nearest = np.maximum(np.abs(apart) - half, 0.0)
    bend = ((np.abs(apart) + half) ** 2 + 1) * np.exp(-0.5 * nearest * nearest)
    return slopes, bend


def epsilon_at(
    atoms: FloatArray,
    first: FloatArray,
    second: FloatArray,
    *,
    above: float,
    below: float,
    start: float = 0.0,
    error: float = 0.0,
    deadline: float = math.inf,
) -> tuple[float, float]:
    """Bracket the ε at which one pair of laws has a given δ.

    Parameters
    ----------
    atoms, first, second, error
        As in `deltas`, with one law each, shape (atoms,).
    above
        The δ that the upper end keeps.
    below
        The δ that the lower end exceeds; at least `above`.
    start
        Where to begin.
    deadline
        Value of `time.monotonic()` after which neither end is looked for: infinite, and 0.

    Returns
    -------
    tuple
        An ε at which δ(ε) ≤ `above`, infinite if that is larger than `LARGEST_EPSILON`, and one at
        which δ(ε) > `below`, or 0.

    Examples
    --------
    >>> laws = np.array([0.0, 0.236704380663]), np.array([0.0, 1.0]), np.array([1.0, 0.0])
    >>> upper, lower = epsilon_at(*laws, above=1e-6, below=1e-6)
    >>> round(upper, 9), round(lower, 9)
    (1.0, 1.0)
    """
    pair = first[np.newaxis], second[np.newaxis]

    def at(epsilon: float) -> tuple[float, float, float]:
        found = deltas(atoms, *pair, epsilon, error=error, deadline=deadline)
        return float(found.upper[0]), float(found.lower[0]), float(found.slope[0])

    if at(0.0)[0] <= above:
        return 0.0, 0.0
    low, high, here, doubt = 0.0, math.inf, min(start, LARGEST_EPSILON), 0.0
    for _ in range(_MOST_STEPS):
        if time.monotonic() > deadline:
            return math.inf, 0.0
        upper, lower, slope = at(here)
        if upper <= above:
            high = here
        elif here >= LARGEST_EPSILON:
            return math.inf, here if lower > below else low
        else:
            low = here
        middle = (upper + lower) / 2
        further = min(2 * low + 1.0, LARGEST_EPSILON) if math.isinf(high) else (low + high) / 2
        if slope > 0 and middle > 0:
            doubt = (upper - lower) / slope
            step = math.log(middle / above) * middle / slope
            if abs(step) <= 4 * UNIT_ROUNDOFF * here + doubt:
                break
            if low < here + step < min(high, LARGEST_EPSILON):
                further = here + step
        if further in (low, high):
            break
        here = further
    return (
        _first_keeping(lambda epsilon: at(epsilon)[0] <= above, here, doubt),
        _last_exceeding(lambda epsilon: at(epsilon)[1] > below, here, doubt),
    )


def _first_keeping(keeps: Callable[[float], bool], near: float, doubt: float) -> float:
    """Return a level slightly above, at which `keeps` holds."""
    step = 2 * doubt + 8 * UNIT_ROUNDOFF * (near + 1e-3)
    while near + step <= LARGEST_EPSILON:
        if keeps(near + step):
            return near + step
        step *= 4
    return math.inf


def _last_exceeding(exceeds: Callable[[float], bool], near: float, doubt: float) -> float:
    """Return a level slightly below, at which `exceeds` holds, or 0."""
    step = 2 * doubt + 8 * UNIT_ROUNDOFF * (near + 1e-3)
    while near - step > 0:
        if exceeds(near - step):
            return near - step
        step *= 4
    return 0.0
