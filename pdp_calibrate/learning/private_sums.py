"""Learning under differential privacy: whole numbers, their noise, and the repair of noisy counts.

**The promise.** An estimator with ``epsilon=`` is ε-DP (pure) for *substituting one unit*: a row of
a wide frame, a whole household, a whole series. The number of units, their sizes, the domains and
bounds are public, so neighbouring frames agree on them. The unit is the whole correlated draw:
budgets for single people would add up inside it.

**The mechanism.** Every statistic is a vector of whole numbers, summed over units.
If replacing one unit changes the vector by at most Δ in L1, discrete Laplace noise of scale Δ/ε on
each entry is exactly ε-DP: P(z)/P'(z) = Π e^{(|z_k−s'_k|−|z_k−s_k|)ε/Δ} ≤ e^{‖s−s'‖₁ε/Δ} ≤ e^ε.
Nothing is rounded after the sum, so floating point cannot break the bound. Everything else
(projections, smoothing, trees, eigenvalues) uses the noisy numbers only: it is post-processing.

Real values become whole numbers unit by unit: x is clipped to its public range, mapped to [−1, 1]
and rounded to a multiple of 1/R. That is part of the statistic, whose Δ is proved for any whole
numbers from −R to R.

The columns behind private sums are read into memory; only noisy sums leave this module.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, plain
from pdp_calibrate.core import noise
from pdp_calibrate.core.model import Domain
from pdp_calibrate.errors import FrameError, ModelError
from pdp_calibrate.frames.open import (
    check_complete,
    chosen,
    collected,
    columns_of,
    in_memory,
    kind_name,
)
from pdp_calibrate.frames.order import with_times

_LARGEST_BITS = 20


_USABLE_BITS = 60  # of a 64-bit number, for sums and noise


@dataclass(frozen=True, kw_only=True)
class Noisy:
    """Sums over units with noise on each."""

    values: IntArray
    """The noisy sums."""
    scale: float
    """The scale of the discrete Laplace noise on each."""

    def widest(self, failure: float) -> float:
        """Return a bound that no noise term exceeds with probability at least 1 − failure."""
        each = failure / max(1, self.values.size)
        return noise.half_width(self.scale, each, integer=True)


def noisy_sums(values: Sequence[int] | IntArray, *, sensitivity: int, epsilon: float) -> Noisy:
    """Add the noise that makes sums ε-DP if one unit moves them by at most `sensitivity` in L1."""
    scale = math.nextafter(sensitivity / epsilon, math.inf)
    noisy = noise.add_laplace_to_integers([int(value) for value in values], scale)
    return Noisy(values=np.array(noisy, dtype=np.int64), scale=scale)


def resolution(units: int, *, sensitivity: float, epsilon: float) -> int:
    """Return R, the number of steps from 0 to 1, such that sums of order R² and noise fit 64 bits.

    Depends on public numbers only. `units` bounds the sums, `sensitivity` is Δ, for values in
    [−1, 1].
    """
    largest = units + 64 * sensitivity / epsilon
    bits = min(_LARGEST_BITS, math.floor((_USABLE_BITS - math.log2(largest)) / 2))
    if bits < 4:
        raise ModelError(
            f"epsilon = {epsilon:.4g} is too small for these public limits: the noise would not"
            " fit into 64 bits."
        )
    return 1 << bits


def whole_steps(values: FloatArray, bounds: Sequence[tuple[float, float]], steps: int) -> IntArray:
    """Clip each column to its range, map it to [−1, 1] and round to multiples of 1/steps."""
    lows, highs = np.array(bounds, dtype=np.float64).T
    middle, half = lows / 2 + highs / 2, highs / 2 - lows / 2
    unit = (values - middle) / half
    np.clip(unit, -1.0, 1.0, out=unit)
    unit *= steps
    return np.asarray(np.rint(unit, out=unit), dtype=np.int64)


def nearest_with_sum(noisy: npt.ArrayLike, total: float) -> FloatArray:
    """Return the non-negative numbers nearest to the noisy ones (least squares) with this sum."""
    counts = np.asarray(noisy, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(counts)
    falling = np.sort(counts, axis=None)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.asarray(np.maximum(counts - shift, 0.0))


IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Units:
    """Rows sorted by the unit they belong to: a group, or a series in its order."""

    numbers: IntArray
    """Which unit each row belongs to: 0, 1, …, ascending."""
    order: IntArray
    """Where each of these rows is in the frame."""
    times: IntArray | None = None
    """The number of its time among all times that occur, ascending; None if rows have no times."""

    @functools.cached_property
    def sizes(self) -> IntArray:
        """How many rows each unit has."""
        return np.bincount(self.numbers)

    @property
    def begins(self) -> IntArray:
        """The first row of each unit, in this order."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def positions(self) -> IntArray:
        """The time of each row, such that neighbours in a series without gaps are one apart."""
        return self.places if self.times is None else self.times

    @property
    def places(self) -> IntArray:
        """The position of each row in its unit, from 0."""
        return np.asarray(np.arange(len(self.numbers)) - self.begins[self.numbers])


def cells_of(
    frame: Any, columns: Sequence[Hashable] | None = None, *, gaps: bool = False
) -> nw.DataFrame[Any]:
    """Return the columns, all by default; refuse absent columns, empty frames, missing cells.

    With `gaps`, cells may be missing.
    """
    table = in_memory(frame)
    if table is None:
        raise FrameError(
            "this way of learning reads the rows of every unit in order, which needs them in"
            " memory: collect the frame first."
        )
    names = columns_of(frame) if columns is None else list(columns)
    if not names:
        raise ModelError("the frame must have at least one column, got none.")
    wanted, found, schema = chosen(frame, names)
    check_complete(wanted, [] if gaps else found, schema)
    return table.select(*found)


def numbers_of(
    frame: Any, columns: Sequence[Hashable] | None = None
) -> tuple[tuple[Hashable, ...], FloatArray]:
    """Return the names of the columns and their cells as floats."""
    table = cells_of(frame, columns)
    arrays = []
    for name in table.columns:
        column = table[name]
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise ModelError(f"column {name} must hold numbers, got {kind_name(column.dtype)}.")
        cells = np.asarray(column.to_numpy(), dtype=np.float64)
        if not np.all(np.isfinite(cells)):
            raise ModelError(f"column {name} has infinite cells; it must be finite.")
        arrays.append(cells)
    return tuple(table.columns), np.column_stack(arrays)


def units_of(
    frame: Any,
    *,
    by: Hashable,
    order_by: Hashable | None = None,
    time_format: str | None = None,
) -> Units:
    """Sort rows by unit and, inside each unit, by time or in the order of the frame."""
    keyed = [cast("str", one) for one in (by, order_by) if one is not None]
    cells = cells_of(frame, keyed).with_row_index("__row__")
    if order_by is not None:
        time = cast("str", order_by)
        timed, _ = with_times(
            cells.lazy(), time, cells.schema[time], called=time, time_format=time_format
        )
        cells = collected(timed)
    numbered = cells.sort(*keyed, "__row__")
    order = numbered["__row__"].to_numpy().astype(np.int64)
    keys = numbered[cast("str", by)]
    times = None
    if order_by is not None:
        _, times = np.unique(numbered[cast("str", order_by)].to_numpy(), return_inverse=True)
    begins = (keys != keys.shift(1)).fill_null(value=True).to_numpy().astype(np.bool_)
    begins[0] = True
    return Units(numbers=np.cumsum(begins) - 1, order=order, times=times)


def brought_into_memory(frame: Any, columns: Sequence[Hashable | None]) -> Any:
    """Return public rows with these columns as a frame in memory, whatever engine holds them."""
    if in_memory(frame) is not None:
        return frame
    table, _, _ = chosen(frame, [column for column in columns if column is not None])
    return collected(table).to_native()


def codes_of(frame: Any, column: Hashable) -> IntArray:
    """Return the values of a public column as numbers from 0, in their order."""
    cells = cells_of(frame, [column])[cast("str", column)].to_list()
    codes = {value: code for code, value in enumerate(sorted(set(cells), key=repr))}
    return np.array([codes[value] for value in cells], dtype=np.int64)


def states_of(frame: Any, value: str, states: Domain) -> IntArray:
    """Return the position of each state in the list of states; −1 for any other value.

    Nothing is refused here: that would depend on a secret row.
    """
    places: Mapping[Hashable, int] = {state: place for place, state in enumerate(states)}
    cells = [plain(one) for one in cells_of(frame, [value], gaps=True)[value].to_list()]
    return np.array([places.get(one, -1) if isinstance(one, Hashable) else -1 for one in cells])
