"""Open a frame of any library, and ask its frame engine for a few numbers."""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import narwhals as nw
import pandas as pd

from pdp_calibrate.arrays import plain
from pdp_calibrate.errors import FrameError, ModelError, PdpError, QueryError

P = ParamSpec("P")


T = TypeVar("T")


def asks_the_engine(function: Callable[P, T]) -> Callable[P, T]:
    """Withhold the message of a frame engine that fails: it may quote records.

    Closed connections, types that differ between partitions and functions that a frame engine lacks
    all end here, as a `FrameError` with the name of the engine's own error.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (PdpError, MemoryError):
            raise
        except BaseException as error:  # every engine has errors of its own
            # A panic of polars is no Exception; interrupts, which are none either, pass through.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            found, other_python = type(error).__name__, _has_other_python(error)
            lacks = isinstance(error, NotImplementedError) or "NotImplemented" in found
        # Raised outside the except clause, so that the engine's error is not chained to this one.
        if other_python:
            raise FrameError(
                "Spark's workers run another version of Python than this program. Set the"
                " environment variable PYSPARK_PYTHON to this one before the session is made:"
                f' os.environ["PYSPARK_PYTHON"] = sys.executable, here {sys.executable}.'
            )
        if lacks:
            raise FrameError(
                f"the engine that holds the frame lacks a function that this needs ({found}): read"
                " the same data with pandas, polars or DuckDB."
            )
        raise FrameError(
            f"the engine that holds the frame could not compute this: {found}. Its message is"
            " withheld, since it may quote records. Check that the connection is open, and that"
            " every partition has the same columns and types."
        )

    return guarded


def check_roles(value: Any, **roles: Hashable | None) -> None:
    """Refuse the column of values as a column that orders or groups rows: those are public."""
    asked = [value] if isinstance(value, Hashable) else list(value)
    for role, column in roles.items():
        if column is not None and column in asked:
            raise ModelError(
                f"{role}= must be another column than that of the values, got {column} for both:"
                " order and groups are public, and values are secret."
            )


def _has_other_python(error: BaseException) -> bool:
    """Whether Spark says that its workers run another Python; nothing else in it is used."""
    words = ""
    with contextlib.suppress(Exception):  # the text may have to be fetched from a dead engine
        words = str(error)
    return "PYTHON_VERSION_MISMATCH" in words or "different version" in words


def column_name(name: Hashable) -> str:
    """Return the column that holds a tuple of this name: frames name their columns by text."""
    return name if isinstance(name, str) else str(name)


def names_of(said: Any, what: str) -> tuple[Hashable, ...]:
    """Return the names of one column or of several; columns themselves are refused.

    Their values would pass for names, and appear in messages.
    """
    if nw.dependencies.is_into_series(said):
        raise QueryError(f"{what} must name columns, got a {type(said).__name__} of values.")
    one = isinstance(said, str) or not isinstance(said, Iterable)
    return (said,) if one else tuple(said)


def opened(frame: Any) -> nw.LazyFrame[Any]:
    """Return any frame as a lazy one."""
    return cast("nw.LazyFrame[Any]", _wrapped(frame).lazy())


def in_memory(frame: Any) -> nw.DataFrame[Any] | None:
    """Return a frame that is in memory, with rows in order; None for one that is not."""
    found = _wrapped(frame)
    return found if isinstance(found, nw.DataFrame) else None


def _wrapped(frame: Any) -> Any:
    """Return a frame of any library, lazy or not, as narwhals holds it."""
    try:
        return nw.from_native(named_by_text(frame))
    except TypeError as error:
        raise ModelError(f"a DataFrame is needed, got {type(frame).__name__}.") from error
    except nw.exceptions.DuplicateError:
        raise ModelError("the columns of the frame must have different names.") from None


def named_by_text(frame: Any) -> Any:
    """Return a pandas frame whose column names are numbers, such as 0, 1, 2, with text names."""
    if not nw.dependencies.is_pandas_like_dataframe(frame):
        return frame
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([column_name(name) for name in frame.columns], axis=1)


def collected(small: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Compute a frame of aggregates."""
    with warnings.catch_warnings():
        # Infinite cells overflow in sums, which are then refused.
        warnings.simplefilter("ignore", RuntimeWarning)
        if small.implementation.is_duckdb():
            return small.collect(backend="pandas")  # the default needs pyarrow
        if small.implementation.is_polars():
            return small.collect(engine="streaming")  # in pieces: files may exceed the memory
        return small.collect()


def one_row(small: nw.LazyFrame[Any]) -> dict[str, Any]:
    """Compute a frame of one row."""
    found = collected(small)
    return {name: plain(found[name].to_list()[0]) for name in found.columns}


@asks_the_engine
def columns_of(frame: Any) -> list[str]:
    """Return the names of the columns."""
    return list(opened(frame).collect_schema().names())


@asks_the_engine
def selected(frame: Any, columns: Sequence[str]) -> Any:
    """Return the frame with these columns alone, as its own library holds it."""
    return nw.from_native(named_by_text(frame)).select(*columns).to_native()


@asks_the_engine
def under_name(frame: Any, column: Hashable, name: Hashable) -> Any:
    """Return one column of a frame under another name, as its own library holds it."""
    chosen(frame, [column])  # refuses one that is not there
    held = nw.from_native(named_by_text(frame))
    return held.select(nw.col(column_name(column)).alias(column_name(name))).to_native()


@asks_the_engine
def rows_in(frame: Any) -> int:
    """Return the number of rows."""
    return int(one_row(opened(frame).select(nw.len().alias("rows")))["rows"])


def described(
    frame: Any, columns: Sequence[Hashable]
) -> tuple[nw.LazyFrame[Any], list[str], Mapping[str, nw.dtypes.DType]]:
    """Return the frame with the names and types of the columns; no row is read or copied.

    Absent ones are refused, and so are names reserved for columns that are added while reading.
    """
    table = opened(frame)
    schema = table.collect_schema()
    names = [column_name(column) for column in columns]
    absent = [name for name in names if name not in schema]
    if absent:
        raise ModelError(f"the frame has no column {', '.join(absent)}.")
    own = [name for name in names if name.startswith("__") and name.endswith("__")]
    if own:
        raise ModelError(
            f"names between two underscores are the library's own, got column {', '.join(own)}:"
            " rename it."
        )
    return table, names, schema


def chosen(
    frame: Any, columns: Sequence[Hashable]
) -> tuple[nw.LazyFrame[Any], list[str], Mapping[str, nw.dtypes.DType]]:
    """Select the columns; return them with their names and types, as `described` checks them.

    Among floats 0.0 and -0.0 become one: engines differ in whether they are one key.
    """
    table, names, schema = described(frame, columns)
    one_zero = {
        name: (nw.col(name) + 0.0).cast(schema[name]) if schema[name].is_float() else nw.col(name)
        for name in names
    }
    return table.select(*(one.alias(name) for name, one in one_zero.items())), names, schema


def is_object(frame: Any, name: str) -> bool:
    """Whether the type of a column allows any Python objects.

    What narwhals calls the type of such a column depends on its cells.
    """
    held = _wrapped(frame).to_native()
    pandas = nw.dependencies.is_pandas_like_dataframe(held)
    if not (pandas or nw.dependencies.is_dask_dataframe(held)):
        return False
    return bool(held[name].dtype == object)


def with_places(frame: Any, places: Mapping[str, Mapping[Hashable, int]]) -> Any:
    """Return a frame with numbers in the cells of object columns: the places of declared labels.

    A cell that equals none of them, or that nothing can be compared with, has place 0; a missing
    one stays missing. Engines would stop at some cells, such as arrays.
    """
    if not places:
        return frame
    held = _wrapped(frame).to_native()
    found = {}
    for name, labels in places.items():
        column, place = held[name], functools.partial(_place, labels)
        dask = nw.dependencies.is_dask_dataframe(held)
        numbers = column.map(place, meta=(name, "int64")) if dask else column.map(place)
        found[name] = numbers.astype("Int64").mask(numbers == _GAP)
    return held.assign(**found)


def _place(labels: Mapping[Hashable, int], cell: Any) -> int:
    with contextlib.suppress(Exception):  # it cannot be hashed or compared
        return _GAP if pd.api.types.is_scalar(cell) and pd.isna(cell) else labels.get(cell, 0)
    return 0


_GAP = -1
"""In the place of a missing cell."""


def refuse_mixed(frame: Any, name: Hashable | None) -> None:
    """Refuse a public column whose entries are of several types: 1 and "1" would be two keys."""
    held = None if name is None else in_memory(frame)
    if held is None or not is_object(frame, column_name(name)):
        return
    kind = pd.api.types.infer_dtype(held[column_name(name)].to_native(), skipna=True)
    if kind.startswith("mixed") and kind != "mixed-integer-float":
        raise ModelError(
            f"column {name} holds entries of several types, such as numbers and text, so that 1 and"
            " '1' would be different groups: convert it to one type."
        )


def is_number(kind: nw.dtypes.DType) -> bool:
    """Whether a column of this type can be added up."""
    return kind.is_numeric() or kind == nw.Boolean


def refuse_words(name: str, kind: nw.dtypes.DType) -> None:
    """Raise unless the column holds numbers."""
    if not is_number(kind):
        raise ModelError(f"column {name} must hold numbers, got {kind_name(kind)}.")


def kind_name(kind: nw.dtypes.DType) -> str:
    """Name a type without its details: those of categories are values of the column."""
    return type(kind).__name__


def is_missing(name: str, kind: nw.dtypes.DType) -> nw.Expr:
    """Return for each row whether the cell is null or, among floats, NaN."""
    empty = nw.col(name).is_null()
    return empty | nw.col(name).is_nan().fill_null(value=True) if kind.is_float() else empty


def how_many(condition: nw.Expr) -> nw.Expr:
    """Count the rows that meet a condition; not every engine adds up booleans."""
    return condition.cast(nw.Int64).sum()


def refuse_missing(name: Hashable, missing: float | None) -> None:
    """Raise if cells of a column are missing, without saying how many."""
    if missing:
        raise ModelError(
            f"column {name} has missing values: say what they mean with missing= (--missing) where"
            " a question takes it, with MarkovChainEstimator(missing='absent') for states along"
            " time, or recode them; dropping rows changes public numbers."
        )


def refuse_empty(rows: float) -> None:
    """Raise if there are no rows."""
    if not rows:
        raise ModelError("the frame must have at least one row, got none.")


def refuse_changed(before: object, after: object) -> None:
    """Raise if a frame has another number of rows than when it was read before."""
    if before != after:
        raise FrameError("the frame changed while it was read: nothing can be said about it.")


def check_complete(
    table: nw.LazyFrame[Any], names: Sequence[str], schema: Mapping[str, nw.dtypes.DType]
) -> int:
    """Refuse an empty frame and missing cells; return the number of rows. One pass."""
    places = {name: f"missing{place}" for place, name in enumerate(dict.fromkeys(names))}
    found = one_row(
        table.select(
            nw.len().alias("rows"),
            *(how_many(is_missing(n, schema[n])).alias(place) for n, place in places.items()),
        )
    )
    refuse_empty(found["rows"])
    for name, place in places.items():
        refuse_missing(name, found[place])
    return int(found["rows"])


def rows_of(frame: Any, columns: Sequence[Hashable]) -> Iterator[tuple[Hashable, ...]]:
    """Yield the rows of the columns, in order: for a release row by row, from memory only."""
    table = in_memory(frame)
    if table is None:
        raise FrameError(
            "one answer per row needs the rows in memory, in their order: collect the frame first."
        )
    wanted, names, schema = chosen(frame, columns)
    check_complete(wanted, names, schema)
    for row in table.select(*names).iter_rows():
        yield tuple(plain(value) for value in row)
