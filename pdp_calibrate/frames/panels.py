"""Panels with gaps: a value that is not there is a value of its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from pdp_calibrate.arrays import plain
from pdp_calibrate.errors import FrameError
from pdp_calibrate.frames.open import asks_the_engine, chosen, collected, in_memory, is_missing
from pdp_calibrate.frames.order import GROUP, ORDER, VALUE, Steps, series_in

_ROW = "__row_number"


@asks_the_engine
def with_absences(
    frame: Any,
    value: Hashable,
    *,
    groups: Hashable | None,
    order_by: Hashable,
    absent: Hashable,
    time_format: str | None = None,
    every: str | float | None = None,
) -> pd.DataFrame:
    """Return the panel with a row for every step from each series' first row to its last.

    Missing values, and steps without a row, hold `absent`. Times become the number of the step in
    the series, from 0. First and last times are public, as the lengths of series are.

    Parameters
    ----------
    frame
        A long frame in memory.
    value, groups, order_by, time_format, every
        As for estimators of series. Without `every` there may be missing values, but no gaps.
    absent
        The value of what is not there.
    """
    table = in_memory(frame)
    if table is None:
        raise FrameError("missing= reads every series in order: collect the frame first.")
    lazy, (held,), schema = chosen(frame, [value])
    cells = collected(lazy.select(is_missing(held, schema[held]).alias("gap"), held))
    values = [
        absent if gap else plain(one)
        for gap, one in zip(cells["gap"].to_list(), cells[held].to_list(), strict=True)
    ]
    kept = [name for name in (groups, order_by) if name is not None]
    numbered = table.select(*map(str, kept)).with_row_index(_ROW).to_native()
    ordered, _, _, times = series_in(
        numbered, _ROW, by=groups, order_by=order_by, time_format=time_format
    )
    steps = Steps(times, every=every)
    found = collected(steps.on(ordered).select(GROUP, ORDER, VALUE, "__time__", *Steps.COLUMNS))
    steps.check({name: found[name].to_list() for name in Steps.COLUMNS})
    rows = pd.DataFrame(
        {
            "group": found[GROUP].to_list(),
            "time": found["__time__"].to_numpy(),
            "row": found[VALUE].to_numpy().astype(np.int64),
        }
    ).sort_values(["group", "time"], kind="stable", ignore_index=True)
    begins = rows["group"] != rows["group"].shift()
    if every is None:
        places = rows.groupby(begins.cumsum()).cumcount().to_numpy()
    else:
        since = rows["time"] - rows["time"].where(begins).ffill()
        places = np.rint(since.to_numpy(dtype=np.float64) / steps.length).astype(np.int64)
    last = np.append(np.flatnonzero(begins.to_numpy())[1:] - 1, len(rows) - 1)
    sizes = places[last] + 1
    starts = np.cumsum(sizes) - sizes
    series = begins.cumsum().to_numpy() - 1
    filled = [absent] * int(sizes.sum())
    for place, row in zip((starts[series] + places).tolist(), rows["row"].tolist(), strict=True):
        filled[place] = values[row]
    out: dict[Hashable, Any] = {}
    if groups is not None:
        out[groups] = np.repeat(rows["group"].to_numpy()[begins.to_numpy()], sizes)
    out[order_by] = np.arange(len(filled)) - np.repeat(starts, sizes)
    out[value] = pd.Series(filled, dtype=object)
    return pd.DataFrame(out)
