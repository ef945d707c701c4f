"""Sums of squares and products, centred so that large means cost no digits.

Columns are centred at the mean of a few rows before they are squared: one pass over the data. Where
those rows turn out to have been far from typical, as in a sorted frame, the pass is repeated with
the true means.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import narwhals as nw
import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.open import (
    asks_the_engine,
    chosen,
    collected,
    columns_of,
    how_many,
    is_missing,
    one_row,
    refuse_empty,
    refuse_missing,
    refuse_words,
)

_FEW_ROWS = 1024


_ATTEMPTS = 3


_ROUNDING = 16 * 2.0**-53  # a spread below this, beside the mean, is rounding


@dataclass(frozen=True, kw_only=True)
class Products:
    """First and second moments of columns."""

    names: tuple[str, ...]
    """The columns."""
    rows: int
    """N."""
    mean: FloatArray
    """The mean of each column."""
    centred: FloatArray
    """Σ (x_i − mean_i)·(x_j − mean_j) for every two columns."""


@asks_the_engine
def centred_products(frame: Any, *, refuse_constant: bool = True) -> Products:
    """Sum the products of all pairs of columns.

    Raises `ModelError` naming the column for missing, infinite or non-numeric cells and, unless
    `refuse_constant` is False, for a column that does not vary. No cell value appears in a message.
    """
    names = columns_of(frame)
    if not names:
        raise ModelError("the frame must have at least one column, got none.")
    table, _, schema = chosen(frame, names)
    for name in names:
        refuse_words(name, schema[name])
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    sums = [
        nw.len().alias("rows"),
        *(nw.col(f"d{k}").sum() for k in range(len(names))),
        *(nw.col(f"d{k}").count().alias(f"held{k}") for k in range(len(names))),
        *((nw.col(f"d{i}") * nw.col(f"d{j}")).sum().alias(f"{i} {j}") for i, j in pairs),
    ]

    def summed(centre: FloatArray) -> tuple[int, FloatArray, FloatArray]:
        moved = [
            (nw.col(name).cast(nw.Float64) - float(c)).alias(f"d{place}")
            for place, (name, c) in enumerate(zip(names, centre, strict=True))
        ]
        found = one_row(table.select(*moved).select(*sums))
        refuse_empty(found["rows"])
        if found["rows"] < 2:
            raise ModelError("at least 2 rows are needed to see how columns vary, got 1.")
        for place, name in enumerate(names):
            refuse_missing(name, found["rows"] - found[f"held{place}"])
        shift = np.array([found[f"d{k}"] for k in range(len(names))]) / found["rows"]
        products = np.empty((len(names), len(names)))
        for i, j in pairs:
            products[i, j] = products[j, i] = found[f"{i} {j}"]
        refuse_infinite(table, names, np.diagonal(products))
        return found["rows"], shift, products - found["rows"] * np.outer(shift, shift)

    rows, mean, products = well_centred(summed, typical(table, names))
    spread = np.sqrt(np.maximum(np.diagonal(products), 0.0) / rows)
    for name, deviation, level in zip(names, spread, mean, strict=True):
        if refuse_constant and not deviation > _ROUNDING * abs(level):
            raise ModelError(f"column {name} does not vary; leave it out.")
    return Products(names=tuple(names), rows=rows, mean=mean, centred=products)


def well_centred(
    summed: Callable[[FloatArray], tuple[int, FloatArray, FloatArray]], centre: FloatArray
) -> tuple[int, FloatArray, FloatArray]:
    """Sum about a centre, and again about the mean if that lies outside the spread."""
    for _ in range(_ATTEMPTS):
        rows, shift, products = summed(centre)
        centre = centre + shift
        if np.all(rows * shift**2 <= np.diagonal(products)):
            break
    return rows, centre, products


def typical(table: nw.LazyFrame[Any], names: Sequence[str]) -> FloatArray:
    """Return the means of a few rows, whichever the engine returns first."""
    few = table.head(_FEW_ROWS)
    found = one_row(
        few.select(
            nw.col(name).cast(nw.Float64).mean().alias(f"mean{place}")
            for place, name in enumerate(names)
        )
    )
    means = [0.0 if value is None else float(value) for value in found.values()]
    return np.array([mean if math.isfinite(mean) else 0.0 for mean in means])


def refuse_infinite(
    table: nw.LazyFrame[Any],
    columns: Sequence[str],
    squares: FloatArray,
    names: Sequence[Hashable] | None = None,
) -> None:
    """Raise where a sum of squares is not finite, and say why; `names` is how to call the columns.

    Cells are checked only then: a NaN or infinity in any cell makes the sum not finite.
    """
    for column, name, total in zip(columns, names or columns, squares, strict=True):
        if total is None or not np.isfinite(total):
            value = nw.col(column).cast(nw.Float64)
            missing = is_missing(column, nw.Float64())
            found = one_row(
                table.with_columns(value).select(
                    how_many(missing).alias("missing"),
                    how_many(~(missing | value.is_finite())).alias("infinite"),
                )
            )
            refuse_missing(name, found["missing"])
            if found["infinite"]:
                raise ModelError(f"column {name} has infinite cells; it must be finite.")
            raise ModelError(f"column {name} is too large to be squared: change its unit.")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Higher moments of standardised columns z, and of whitened ones w."""

    lengths: float
    """Σ (Σ_j z_j²)² over the rows."""
    cubes: FloatArray
    """Σ z_j³ of each column."""
    fourths: FloatArray
    """Σ z_j⁴ of each column."""
    white_lengths: float | None
    """Σ (Σ_j w_j²)² over the rows; None where nothing was whitened."""
    white_triples: float | None
    """The sum over all i, j, k of (Σ w_i·w_j·w_k)²; None where it was not asked for."""


@asks_the_engine
def shape_of(
    frame: Any,
    *,
    mean: FloatArray,
    deviation: FloatArray,
    whitening: FloatArray | None,
    triples: bool,
) -> Shape:
    """Sum third and fourth powers in one pass; w = whitening·z."""
    names = columns_of(frame)
    table, _, _ = chosen(frame, names)
    places = range(len(names))
    scaled = table.select(
        ((nw.col(name).cast(nw.Float64) - float(mean[k])) / float(deviation[k])).alias(f"z{k}")
        for k, name in enumerate(names)
    )
    # Products throughout: engines take a general, slow power for x².
    sums = {"lengths": _product(_sum_of_squares("z", len(names)), 2)}
    sums |= {f"cube{k}": _product(nw.col(f"z{k}"), 3) for k in places}
    sums |= {f"fourth{k}": _product(nw.col(f"z{k}"), 4) for k in places}
    threes = list(combinations_with_replacement(places, 3)) if triples else []
    if whitening is not None:
        scaled = scaled.with_columns(
            nw.sum_horizontal(*(nw.col(f"z{j}") * float(whitening[k, j]) for j in places)).alias(
                f"w{k}"
            )
            for k in places
        )
        sums["white"] = _product(_sum_of_squares("w", len(names)), 2)
        for i, j, k in threes:
            sums[f"{i} {j} {k}"] = nw.col(f"w{i}") * nw.col(f"w{j}") * nw.col(f"w{k}")
    found = one_row(scaled.select(power.sum().alias(name) for name, power in sums.items()))
    return Shape(
        lengths=found["lengths"],
        cubes=np.array([found[f"cube{k}"] for k in places]),
        fourths=np.array([found[f"fourth{k}"] for k in places]),
        white_lengths=found.get("white"),
        white_triples=math.fsum(
            found[f"{i} {j} {k}"] ** 2 * (1, 3, 6)[len({i, j, k}) - 1] for i, j, k in threes
        )
        if threes
        else None,
    )


def _sum_of_squares(letter: str, columns: int) -> nw.Expr:
    return nw.sum_horizontal(*(_product(nw.col(f"{letter}{k}"), 2) for k in range(columns)))


def _product(factor: nw.Expr, times: int) -> nw.Expr:
    return functools.reduce(operator.mul, [factor] * times)


@dataclass(frozen=True, kw_only=True)
class GroupMoments:
    """Sums of squares of a grouped column."""

    sizes: Counter[int]
    """How many groups there are of each size."""
    between: float
    """Σ n_i·(mean of group i − mean of all)²."""
    within: float
    """Σ (value − mean of its group)²."""

    @property
    def rows(self) -> int:
        """The number of values."""
        return sum(size * number for size, number in self.sizes.items())


@asks_the_engine
def group_moments(frame: Any, *, value: Hashable, by: Hashable) -> GroupMoments:
    """Sum squares between and within groups. One pass."""
    table, (name, group), schema = chosen(frame, [value, by])
    refuse_words(name, schema[name])
    kinds: dict[str, list[float]] = {}

    def summed(centre: FloatArray) -> tuple[int, FloatArray, FloatArray]:
        rows = _sums_by_size(table, name, group, schema, float(centre[0]))
        total, squares = sum(rows["__sum__"]), sum(rows["__squares__"])
        number = sum(s * n for s, n in zip(rows["__size__"], rows["__groups__"], strict=True))
        refuse_empty(number)
        refuse_missing(group, sum(rows["__nobody__"]))
        refuse_missing(name, number - sum(rows["__held__"]))
        refuse_infinite(table, [name], np.array([squares]))
        kinds.update(rows)
        about_mean = squares - total**2 / number
        return int(number), np.array([total / number]), np.array([[about_mean]])

    number, _, spread = well_centred(summed, typical(table, [name]))
    by_group = sum(kinds["__means__"])
    within = sum(kinds["__squares__"]) - by_group
    sizes = zip(kinds["__size__"], kinds["__groups__"], strict=True)
    return GroupMoments(
        sizes=Counter({int(size): int(count) for size, count in sizes}),
        between=by_group - sum(kinds["__sum__"]) ** 2 / number,
        within=within if within > _ROUNDING * float(spread[0, 0]) else 0.0,
    )


def _sums_by_size(
    table: nw.LazyFrame[Any],
    value: str,
    by: str,
    schema: Mapping[str, nw.dtypes.DType],
    centre: float,
) -> dict[str, list[float]]:
    """Add up, for the groups of each size, what an analysis of variance needs."""
    moved = nw.col(value).cast(nw.Float64) - centre
    groups = (
        table.select(
            by,
            moved.alias("__sum__"),
            (moved * moved).alias("__squares__"),
        )
        .group_by(by)
        .agg(
            nw.len().alias("__size__"),
            nw.col("__squares__").count().alias("__held__"),
            nw.col("__sum__").sum(),
            nw.col("__squares__").sum(),
        )
    )
    size, total = nw.col("__size__"), nw.col("__sum__")
    nobody = is_missing(by, schema[by]).cast(nw.Int64) * size
    added = ("__sum__", "__squares__", "__held__", "__means__", "__nobody__")
    kinds = (
        groups.with_columns((total * total / size).alias("__means__"), nobody.alias("__nobody__"))
        .group_by("__size__")
        .agg(nw.len().alias("__groups__"), *(nw.col(one).sum() for one in added))
    )
    found = collected(kinds)
    names = ("__size__", "__groups__", *added)
    return {name: [0.0 if n is None else n for n in found[name].to_list()] for name in names}


@asks_the_engine
def share_at_ends(frame: Any, value: Hashable, bounds: tuple[float, float]) -> float:
    """Return the share of values at an end of their public range, or beyond; of public rows."""
    table, (name,), schema = chosen(frame, [value])
    low, high = bounds
    cell = nw.col(name)
    outside = how_many((cell <= low) | (cell >= high)).alias("outside")
    empty = how_many(is_missing(name, schema[name])).alias("empty")
    found = one_row(table.select(nw.len().alias("rows"), outside, empty))
    refuse_empty(found["rows"])
    refuse_missing(value, found["empty"])
    return float(found["outside"] or 0) / float(found["rows"])
