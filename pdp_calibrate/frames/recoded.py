"""Cells of private rows, made to fit a rule that is public: no cell is refused for what it holds.

An error about a cell of a secret row says something about that row. So where rows are private,
every cell counts as something, by a rule that is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from pdp_calibrate.frames.open import (
    asks_the_engine,
    column_name,
    described,
    is_missing,
    is_number,
    named_by_text,
)

Range = tuple[float, float]

_REACH = 1e6  # widths of the bounds beyond which a cell is no measurement; its square is finite


@asks_the_engine
def within_reach(frame: Any, bounds: Mapping[str, Range]) -> Any:
    """Return the frame with real numbers for cells that are missing, infinite or out of reach.

    Such a cell counts as the middle of the bounds of its column, and so does one more than a
    million widths away from it. Columns whose type is not one of numbers are left as they are.
    """
    _, _, schema = described(frame, list(bounds))
    cells = []
    for name, (low, high) in bounds.items():
        if is_number(schema[column_name(name)]):
            middle, reach = low / 2 + high / 2, (high / 2 - low / 2) * _REACH
            cell = nw.col(column_name(name)).cast(nw.Float64)
            held = (cell >= middle - reach) & (cell <= middle + reach)  # false for NaN
            held = held.fill_null(value=False)
            cells.append(nw.when(held).then(cell).otherwise(nw.lit(middle)).alias(str(name)))
    return nw.from_native(named_by_text(frame)).with_columns(*cells).to_native()


@asks_the_engine
def as_yes_or_no(frame: Any, name: str) -> Any:
    """Return the frame with 1 for cells above one half in a column, and 0 for all others.

    Missing cells count as 0. A column whose type is not one of numbers is left as it is.
    """
    _, (held,), schema = described(frame, [name])
    if not is_number(schema[held]):
        return frame
    cell = nw.col(held).cast(nw.Float64)
    above = (cell > 0.5) & ~is_missing(held, schema[held])
    one = nw.when(above.fill_null(value=False)).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    return nw.from_native(named_by_text(frame)).with_columns(one.alias(held)).to_native()
