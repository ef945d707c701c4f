"""Whether values can be called Gaussian: by the type of their column, or by a test of the rows.

A correlation says how much values leak about each other only together with their law. What it costs
is worked out for jointly Gaussian values; yes/no values of the same correlation can leak more.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw

from pdp_calibrate.errors import ModelError, ModelFitWarning
from pdp_calibrate.estimators.gaussian import normality
from pdp_calibrate.estimators.moments import moments_of
from pdp_calibrate.estimators.statistics.frames import (
    asks_the_engine,
    chosen,
    how_many,
    kind_name,
    one_row,
)

GROUPS = (
    "for yes/no values learn groups with GroupEstimator(kind='binary') (on the command line,"
    " --kind groups without --bounds), for other discrete ones put the members into columns and"
    " use a table; or leave the correlation out and allow any dependence (pdp.Unknown)"
)
SERIES = (
    "for states along time use a chain (MarkovChainEstimator, --kind chain); or leave the"
    " correlation out and allow any dependence (pdp.Unknown)"
)
COLUMNS = "use a table (TableEstimator), or allow any dependence (pdp.Unknown)"
_FEWEST_ROWS = 50
"""Independent rows, or as many correlated ones as tell as much, below which nothing is tested."""


@asks_the_engine
def kind_of(frame: Any, column: Hashable) -> nw.dtypes.DType:
    """Return the type of a column; no row is looked at."""
    _, (name,), schema = chosen(frame, [column])
    return schema[name]


def refuse_discrete(column: Hashable, kind: nw.dtypes.DType, *, instead: str) -> None:
    """Raise for a column whose type says that its values are not Gaussian: booleans, text."""
    if not kind.is_numeric():
        raise ModelError(
            f"column {column} must hold numbers that can be jointly Gaussian, got"
            f" {kind_name(kind)}: on discrete values noise for the same correlation can leak more"
            f" than promised. Instead, {instead}."
        )


def check_assumed(
    frame: Any,
    column: Hashable,
    *,
    domain: Sequence[Hashable] | str | None,
    assume: str | None,
    instead: str,
) -> None:
    """Refuse a correlation for a column that is discrete, and ask where its type does not tell.

    Parameters
    ----------
    frame, column
        Whose type decides; no row is looked at, so the error tells nothing about them.
    domain
        The values that the column is stated to have: then it is discrete.
    assume
        ``gaussian`` where so much was said; whole numbers need it, floats do not.
    instead
        What to do otherwise.
    """
    kind = kind_of(frame, column)
    refuse_discrete(column, kind, instead=instead)
    if domain is not None:
        raise ModelError(
            f"a correlation is about jointly Gaussian values, and column {column} has a stated"
            f" domain, so it is discrete: noise for the same correlation can leak more than"
            f" promised. Instead, {instead}."
        )
    if not kind.is_float() and assume != "gaussian":
        raise ModelError(
            f"a correlation is about jointly Gaussian values, and column {column} holds"
            f" {kind_name(kind)}: if they are measurements such as incomes or heights, say"
            " assume='gaussian' (--assume gaussian on the command line). If they are codes,"
            f" {instead}."
        )


def refuse_discrete_columns(frame: Any, columns: Sequence[Hashable]) -> None:
    """Raise for columns that a Gaussian model is about and whose type says otherwise."""
    for column in columns:
        refuse_discrete(column, kind_of(frame, column), instead=COLUMNS)


def warn_of_groups(
    frame: Any, value: str, *, correlation: float, sizes: Counter[int], stacklevel: int
) -> None:
    """Warn where values of a long frame are plainly not Gaussian, given how alike groups are."""
    rows = sum(size * number for size, number in sizes.items())
    others = sum(size**2 * number for size, number in sizes.items()) / rows - 1
    repeats = 1 + others * abs(correlation) ** 3, 1 + others * correlation**4
    _warn(_doubt(frame, value, repeats), instead="kind='binary'", stacklevel=stacklevel)


def warn_of_series(frame: Any, value: str, *, correlation: float, stacklevel: int) -> None:
    """Warn where values along time are plainly not Gaussian, given how alike neighbours are."""
    cubed, fourth = abs(correlation) ** 3, correlation**4
    repeats = (1 + cubed) / (1 - cubed), (1 + fourth) / (1 - fourth)
    _warn(_doubt(frame, value, repeats), instead="MarkovChainEstimator", stacklevel=stacklevel)


@asks_the_engine
def _doubt(frame: Any, value: str, repeats: tuple[float, float]) -> str | None:
    """Say why the values are plainly not Gaussian: two of them only, or their shape; else None.

    For a Gaussian sequence with correlations ρ_ij the variances of skewness and kurtosis grow by
    the factors Σ ρ_ij³/N and Σ ρ_ij⁴/N (Lomnicki, Metrika 4, 1961), which are the `repeats`.
    """
    table, (name,), _ = chosen(frame, [value])
    cell = nw.col(name)
    ends = one_row(table.select(cell.min().alias("low"), cell.max().alias("high")))
    at_ends = how_many((cell == ends["low"]) | (cell == ends["high"])).alias("at_ends")
    found = one_row(table.select(nw.len().alias("rows"), at_ends))
    if found["rows"] > 3 and found["at_ends"] == found["rows"]:
        return f"column {value} holds two values only, so it is not Gaussian"
    if found["rows"] / max(repeats) < _FEWEST_ROWS:
        return None
    tested = normality(moments_of(table.to_native()), repeats=repeats)
    if tested is None or not tested.is_plainly_wrong:
        return None
    return f"the values of column {value} are plainly not Gaussian"


def _warn(doubt: str | None, *, instead: str, stacklevel: int) -> None:
    if doubt is not None:
        warnings.warn(
            f"{doubt}. The leakage reported is that of Gaussian values with this correlation; for"
            " the true law the privacy guarantee is not proven. For two values, or codes, use"
            f" {instead}; else transform the values, or allow any dependence (pdp.Unknown).",
            ModelFitWarning,
            stacklevel=stacklevel + 3,
        )
