"""What the type of a column says without reading a cell: its possible values, whether it is real.

Columns that cannot hold Gaussian values are refused where a model assumes them. A correlation
determines how much values leak about each other only together with their law. Its cost is computed
for jointly Gaussian values; yes/no values with the same correlation can leak more.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw

from pdp_calibrate.arrays import plain
from pdp_calibrate.errors import ModelError, QueryError
from pdp_calibrate.frames.counts import contingency
from pdp_calibrate.frames.open import asks_the_engine, chosen, described, kind_name


@asks_the_engine
def declared_values(
    frame: Any, column: Hashable, stated: Sequence[Hashable] | str | None, *, option: str
) -> Sequence[Hashable]:
    """Return the values that a column can hold, from what is stated or from its type.

    Booleans, polars Enums and DuckDB ENUMs declare their values. The categories of pandas, polars
    and Arrow come from the data: they count only where ``stated`` is ``"dtype"``, which says that
    they are public. Whether this raises depends on the type of the column, never on its cells.

    Parameters
    ----------
    frame
        Any frame.
    column
        The column of values.
    stated
        The values, ``"dtype"``, or None if nothing is stated.
    option
        The name of the option that states them, for messages.
    """
    if stated is not None and not isinstance(stated, str):
        return stated
    if stated not in (None, "dtype"):
        raise QueryError(f'{option} must be a list of values or "dtype", got {stated!r}.')
    _, (name,), schema = chosen(frame, [column])
    kind, listed = schema[name], values_of_type(frame, column)
    if listed is not None:
        return listed
    if not isinstance(kind, nw.Enum | nw.Categorical):
        elsewhere = " (--domain, or domains in a plan)" if option == "domains" else ""
        raise QueryError(
            f"state which values are possible in column {name} with {option}=[...]{elsewhere}:"
            f" those that occur are secret, and the type {kind_name(kind)} does not list them."
        )
    if stated is None:
        raise QueryError(
            f"the categories of column {name} come from the data: state which values are possible"
            f' with {option}=[...], or with {option}="dtype" that the categories are public.'
        )
    return _categories(frame, name, kind, option=option)


@asks_the_engine
def values_of_type(frame: Any, column: Hashable) -> Sequence[Hashable] | None:
    """Return the values that the type of a column declares; None where it declares none."""
    table, (name,), schema = described(frame, [column])
    kind = schema[name]
    if kind == nw.Boolean:
        return [False, True]
    return list(kind.categories) if isinstance(kind, nw.Enum) and _is_declared(table) else None


def _is_declared(table: nw.LazyFrame[Any]) -> bool:
    """Whether an Enum was declared as a type: pandas' ordered categories are not."""
    if table.implementation.is_duckdb():
        # DuckDB makes an ENUM of every categorical column of a pandas frame.
        return "pandas_scan" not in str(table.to_native().explain()).lower()
    return bool(table.implementation.is_polars())


def _categories(frame: Any, name: str, kind: nw.dtypes.DType, *, option: str) -> Sequence[Hashable]:
    """Return the categories of a column that are stated to be public."""
    if isinstance(kind, nw.Enum):
        return [plain(value) for value in kind.categories]
    table = nw.from_native(frame)
    held = table.to_native()
    found: list[Any] | None = None
    if table.implementation.is_polars():
        # Its categories are shared by all columns of the process: these are the column's own.
        found = sorted((value for (value,) in contingency(frame, [name])), key=repr)
    elif table.implementation.is_dask():
        found = held[name].cat.categories.tolist() if held[name].cat.known else None
    elif isinstance(table, nw.DataFrame):
        column = held[name].array if table.implementation.is_pandas() else held[name]
        if hasattr(column, "categories"):
            found = column.categories.tolist()
        else:  # of Arrow, or a pandas column that Arrow holds
            arrow = column.__arrow_array__() if table.implementation.is_pandas() else column
            found = [value for chunk in arrow.chunks for value in chunk.dictionary.to_pylist()]
    if found is None:
        raise QueryError(
            f"the categories of column {name} are not known before its cells are read: list them"
            f" with {option}=[...]."
        )
    return list(dict.fromkeys(plain(value) for value in found))


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


@asks_the_engine
def kind_of(frame: Any, column: Hashable) -> nw.dtypes.DType:
    """Return the type of a column, without reading a row."""
    _, (name,), schema = described(frame, [column])
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
    """Refuse a correlation for a discrete column, and ask where its type does not decide.

    Parameters
    ----------
    frame, column
        Whose type decides; no row is read, so the error reveals nothing about the rows.
    domain
        The values that the column is stated to have: then it is discrete.
    assume
        ``gaussian`` if that was stated; whole numbers need it, floats do not.
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
    """Raise for columns of a Gaussian model whose type is discrete."""
    for column in columns:
        refuse_discrete(column, kind_of(frame, column), instead=COLUMNS)
