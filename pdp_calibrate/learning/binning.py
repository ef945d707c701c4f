"""Numeric columns cut into bins by public edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import narwhals as nw

from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.open import asks_the_engine, how_many, kind_name, one_row

Edges = tuple[float, ...]


def checked_bins(bins: Mapping[Hashable, Sequence[float]] | None) -> dict[Hashable, Edges]:
    """Return increasing, finite edges per column, or raise."""
    found: dict[Hashable, Edges] = {}
    for name, given in (bins or {}).items():
        try:
            edges = tuple(float(edge) for edge in given)
        except (TypeError, ValueError) as error:
            raise ModelError(f"the bins of {name} must be a list of numbers.") from error
        if len(edges) < 2 or not all(map(math.isfinite, edges)):
            raise ModelError(f"the bins of {name} must be at least two finite edges.")
        if any(low >= high for low, high in itertools.pairwise(edges)):
            raise ModelError(f"the bins of {name} must have increasing edges.")
        found[name] = edges
    return found


def representatives(edges: Edges) -> tuple[float, ...]:
    """Return the value that represents each bin: its middle."""
    return tuple(low / 2 + high / 2 for low, high in itertools.pairwise(edges))


@asks_the_engine
def binned(frame: Any, bins: Mapping[Hashable, Edges], *, refuse: bool = True) -> Any:
    """Replace the values of binned columns by the middle of their bin.

    A bin includes its lower edge and not its upper one, except the last, which includes both.
    Raises, naming the column, for columns that are not numeric and for values outside all bins;
    missing cells stay missing. If not `refuse`, values outside all bins belong to the nearest, and
    missing cells to the first.
    """
    if not bins:
        return frame
    try:
        table: Any = nw.from_native(frame)
    except TypeError as error:
        raise ModelError(f"a DataFrame is needed, got {type(frame).__name__}.") from error
    schema = table.collect_schema()
    for name, edges in bins.items():
        if name not in schema:
            raise ModelError(f"the frame has no column {name}.")
        dtype = schema[cast("str", name)]
        if not dtype.is_numeric():
            raise ModelError(
                f"column {name} must hold numbers to be binned, got {kind_name(dtype)}."
            )
        column = nw.col(cast("str", name))
        missing = column.is_null()
        if dtype.is_float():
            missing = missing | column.is_nan()
        absent: Any = nw.lit(None, nw.Float64)
        if not refuse:
            absent = nw.lit(representatives(edges)[0])
        outside = ((column < edges[0]) | (column > edges[-1])) & ~missing
        if refuse and one_row(table.lazy().select(how_many(outside).alias("outside")))["outside"]:
            raise ModelError(
                f"column {name} has values outside its bins, which range from {edges[0]:g} to"
                f" {edges[-1]:g}; add public edges that cover every possible value."
            )
        middles = representatives(edges)
        chosen: Any = nw.lit(middles[0])
        for low, middle in zip(edges[1:-1], middles[1:], strict=True):
            chosen = nw.when(column >= low).then(nw.lit(middle)).otherwise(chosen)
        table = table.with_columns(
            nw.when(~missing).then(chosen).otherwise(absent).alias(str(name))
        )
    return nw.to_native(table)
