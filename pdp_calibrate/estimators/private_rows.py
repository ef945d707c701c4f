"""The columns that private sums are made of, read into memory; sums alone leave it, with noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import FrameError, ModelError
from pdp_calibrate.estimators.statistics import columns_of
from pdp_calibrate.estimators.statistics.frames import (
    check_complete,
    chosen,
    collected,
    in_memory,
    kind_name,
)
from pdp_calibrate.estimators.statistics.times import with_times
from pdp_calibrate.models.base import Domain, FloatArray, plain

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Units:
    """Rows sorted by the unit they belong to: a group, or a series in its order."""

    numbers: IntArray
    """Which unit each row belongs to: 0, 1, …, ascending."""
    order: IntArray
    """Where each of them stands in the frame."""

    @property
    def sizes(self) -> IntArray:
        """How many rows each unit has."""
        return np.bincount(self.numbers)

    @property
    def places(self) -> IntArray:
        """The place of each row in its unit, from 0 on."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return np.asarray(np.arange(len(self.numbers)) - starts[self.numbers])


def cells_of(frame: Any, columns: Sequence[Hashable] | None = None) -> nw.DataFrame[Any]:
    """Return the columns, all by default; refuse absent ones, no rows and missing cells."""
    table = in_memory(frame)
    if table is None:
        raise FrameError(
            "learning under differential privacy goes through the rows of every unit in order,"
            " which needs them in memory: collect the frame first."
        )
    names = columns_of(frame) if columns is None else list(columns)
    if not names:
        raise ModelError("the frame must have at least one column, got none.")
    wanted, found, schema = chosen(frame, names)
    check_complete(wanted, found, schema)
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
            raise ModelError(f"column {name} must be finite.")
        arrays.append(cells)
    return tuple(table.columns), np.column_stack(arrays)


def units_of(
    frame: Any,
    *,
    by: Hashable,
    order_by: Hashable | None = None,
    time_format: str | None = None,
) -> Units:
    """Sort rows by unit and, inside it, by time or as they stand."""
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
    begins = (keys != keys.shift(1)).fill_null(value=True).to_numpy().astype(np.bool_)
    begins[0] = True
    return Units(numbers=np.cumsum(begins) - 1, order=order)


def states_of(frame: Any, value: str, states: Domain) -> IntArray:
    """Return the place of each state in the list of states."""
    places: Mapping[Hashable, int] = {state: place for place, state in enumerate(states)}
    try:
        return np.array([places[plain(one)] for one in cells_of(frame, [value])[value].to_list()])
    except (KeyError, TypeError):
        raise ModelError(f"column {value} holds a value outside its stated states.") from None
