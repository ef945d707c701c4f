"""Where the rows come from: a CSV file, parquet files, or a DuckDB query.

A query only reads: one SELECT, no COPY anywhere in it, and no extension is installed or loaded.
Messages name files, options and columns, never a cell. The header of a file is not shown either:
in a file without one it would be the first record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from pdp_calibrate.errors import MissingLibraryError, SourceError

_SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}


_OTHER_SEPARATORS = (";", "\t", "|", ",")


# Raised before any row is read, so the message can only speak of the query and of column names.
_ABOUT_THE_QUERY = ("ParserException", "BinderException", "CatalogException")


_LOCKED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # else a query could name variables of this program
    "lock_configuration": "true",
}


_READING_NODES = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")


_READING_FUNCTIONS = (
    "generate_series", "glob", "json_each", "json_tree", "parquet_scan", "range", "repeat",
    "repeat_row", "unnest",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where to find a table of rows."""

    file: Path | None = None
    """A CSV or TSV file, a parquet file, or a folder of parquet files."""
    delimiter: str | None = None
    """What separates the columns of a text file; by its ending if not given."""
    sql: str | None = None
    """Instead of a file, one SELECT for DuckDB; it may read files itself, and write none."""
    database: Path | None = None
    """The DuckDB database that the query is for."""

    def __post_init__(self) -> None:
        if (self.file is None) == (self.sql is None):
            raise SourceError("data come from either a file or an SQL query, and not both.")
        if self.database is not None and self.sql is None:
            raise SourceError("a database needs an SQL query: which rows?")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise SourceError(f"a delimiter is one character, got {self.delimiter!r}.")

    def read(self) -> Any:
        """Return the rows: a pandas frame for a text file, otherwise a DuckDB relation."""
        return self._found(rows=None)

    def header(self) -> Any:
        """Return the columns without reading a row; a DuckDB relation reads none either."""
        return self._found(rows=0)

    def _found(self, *, rows: int | None) -> Any:
        if self.sql is not None:
            return _from_sql(self.sql, self.database)
        path = self.file or Path()
        if not path.exists():
            raise SourceError(f"there is no file {path}.")
        if path.is_dir():
            return _from_parquet(sorted(path.rglob("*.parquet")), path)
        if path.suffix.lower() in (".parquet", ".pq"):
            return _from_parquet([path], path)
        ending = next((e for e in reversed(path.suffixes) if e.lower() in _SEPARATORS), None)
        if ending is None and self.delimiter is None:
            raise SourceError(
                f"{path} has an unknown ending; .csv, .tsv and .parquet are read, and any text file"
                " whose delimiter is given."
            )
        return _from_text(path, self.delimiter or _SEPARATORS[(ending or "").lower()], rows=rows)


def _from_text(path: Path, separator: str, *, rows: int | None) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path, sep=separator, low_memory=False, nrows=rows)
    except pd.errors.EmptyDataError as error:
        raise SourceError(f"{path} is empty.") from error
    except pd.errors.ParserError as error:
        raise SourceError(
            f"{path} is not a table separated by {separator!r}: its lines have different numbers of"
            " columns. Is the delimiter right?"
        ) from error
    except (OSError, UnicodeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read as text: {_reason(error)}.") from error
    if len(frame.columns) == 1:
        header = str(frame.columns[0])
        found = next((one for one in _OTHER_SEPARATORS if one in header), None)
        if found is not None:
            raise SourceError(
                f"{path} has one column when separated by {separator!r}, but its first line"
                f" contains {found!r}: give that as the delimiter."
            )
    if rows is None and frame.empty:
        raise SourceError(f"{path} has a header and no rows.")
    return frame


def _from_parquet(files: list[Path], place: Path) -> Any:
    if not files:
        raise SourceError(f"the folder {place} holds no .parquet files.")
    duckdb = _duckdb("parquet files")
    try:
        connection = duckdb.connect(config=_LOCKED)
        return connection.read_parquet([str(file) for file in files], union_by_name=True)
    except duckdb.Error as error:
        raise SourceError(f"{place} cannot be read as parquet: {_reason(error)}.") from error


def _from_sql(query: str, database: Path | None) -> Any:
    duckdb = _duckdb("SQL queries")
    if database is not None and not database.exists():
        raise SourceError(f"there is no database {database}.")
    try:
        _check_reads_only(query, duckdb)
        connection = (
            duckdb.connect(config=_LOCKED)
            if database is None
            else duckdb.connect(database, read_only=True, config=_LOCKED)
        )
        relation = connection.sql(query)
    except duckdb.Error as error:
        raise SourceError(f"DuckDB refuses the query: {_reason(error)}.") from error
    if relation is None:
        raise SourceError(_ONE_SELECT)
    return relation


_ONE_SELECT = (
    "the SQL query must be a single SELECT (or WITH … SELECT) that only reads: no COPY, INSERT,"
    " CREATE, ATTACH, INSTALL, LOAD, SET or PRAGMA, and no second statement."
)


def _check_reads_only(query: str, duckdb: Any) -> None:
    """Refuse anything but one SELECT, using DuckDB's own parser; nothing is executed.

    The kind of a statement is not enough: WITH x AS (COPY … TO …) SELECT … counts as a SELECT.
    """
    with duckdb.connect(config=_LOCKED) as parser:
        statements = parser.extract_statements(query)
        if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
            raise SourceError(_ONE_SELECT)
        ((tree,),) = parser.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    parsed = json.loads(tree)
    if parsed["error"]:
        raise SourceError(_ONE_SELECT)
    for part in _parts(parsed["statements"]):
        kind = str(part.get("type"))
        if kind.endswith("_NODE") and kind not in _READING_NODES:
            raise SourceError(_ONE_SELECT)
        if kind == "TABLE_FUNCTION":
            called = str(part["function"].get("function_name", ""))
            if not called.startswith(("read_", "parquet_")) and called not in _READING_FUNCTIONS:
                raise SourceError(
                    f"the SQL query calls the table function {called}. Those that read files are"
                    f" allowed (read_csv, read_parquet, …), and {', '.join(_READING_FUNCTIONS)}."
                )


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a parsed query."""
    if isinstance(tree, dict):
        yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(inner, dict | list):
            yield from _parts(inner)


def _duckdb(what: str) -> Any:
    try:
        return import_module("duckdb")
    except ImportError as error:
        reason = f"{what} are read by DuckDB, which is missing"
        raise MissingLibraryError.needed_for(reason, extra="duckdb") from error


def _reason(error: Exception) -> str:
    """Say what kind of error it was: the text of a library's message may quote a cell."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    kind = type(error).__name__
    if kind in _ABOUT_THE_QUERY:
        return str(error).splitlines()[0].rstrip(".")
    return kind
