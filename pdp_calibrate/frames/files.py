"""Where the rows come from: a CSV file, parquet files, or a DuckDB query.

A query only reads: one SELECT, no COPY anywhere in it, and no extension is installed or loaded.
Messages name files, options and columns, never a cell. The header of a file is not shown either:
in a file without one it would be the first record.
"""

from __future__ import annotations

import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd
from pandas.io.common import get_handle  # type: ignore[import-not-found]

from pdp_calibrate.errors import MissingLibraryError, SourceError
from pdp_calibrate.frames.lines import CheckedLines

_SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}


_NAMES_OF_ROWS = "names of rows that are no column (index_col, --index) are for text files."


# What damaged compressed files raise.
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


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
    index_col: bool = False
    """Whether the lines of a text file begin with names of rows, which are no column."""
    sql: str | None = None
    """Instead of a file, one SELECT for DuckDB; it may read files itself, and write none."""
    database: Path | None = None
    """The DuckDB database that the query is for."""

    def __post_init__(self) -> None:
        if (self.file is None) == (self.sql is None):
            raise SourceError("data come from either a file or an SQL query, and not both.")
        if self.database is not None and self.sql is None:
            raise SourceError("a database needs an SQL query: which rows?")
        if self.index_col and self.sql is not None:
            raise SourceError(_NAMES_OF_ROWS)
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
            raise SourceError(
                f"a delimiter is one ASCII character, no quote and no newline, got {mark!r}."
            )

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
        if path.is_dir() or path.suffix.lower() in (".parquet", ".pq"):
            if self.index_col:
                raise SourceError(_NAMES_OF_ROWS)
            files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
            return _from_parquet(files, path)
        ending = next((e for e in reversed(path.suffixes) if e.lower() in _SEPARATORS), None)
        if ending is None and self.delimiter is None:
            raise SourceError(
                f"{path} has an unknown ending; .csv, .tsv and .parquet are read, and any text file"
                " whose delimiter is given."
            )
        separator = self.delimiter or _SEPARATORS[(ending or "").lower()]
        return _from_text(path, separator, row_names=self.index_col, rows=rows)


def _from_text(path: Path, separator: str, *, row_names: bool, rows: int | None) -> pd.DataFrame:
    """Read a text file whose lines fit its header; only the header if `rows` is 0."""
    try:
        with get_handle(path, "rb", compression="infer", is_text=False) as opened:
            lines = CheckedLines(cast("BinaryIO", opened.handle), separator, row_names=row_names)
            _check_header(lines.header, path, separator)
            frame = _parsed(lines, path, separator, rows=rows)
    except SourceError:
        raise
    except (OSError, UnicodeError, ValueError, *_DAMAGED) as error:
        raise SourceError(f"{path} cannot be read as text: {_reason(error)}.") from error
    if lines.leaves_out:
        frame = frame.reset_index(drop=True)
    elif row_names:
        frame = frame.iloc[:, 1:]
    if rows is None and frame.empty:
        raise SourceError(f"{path} has a header and no rows.")
    return frame


def _check_header(header: list[str], path: Path, separator: str) -> None:
    """Refuse a header that names no columns, or two alike; names are not shown."""
    if not header:
        raise SourceError(f"{path} is empty.")
    if len(header) == 1:
        found = next((one for one in _OTHER_SEPARATORS if one in header[0]), None)
        if found is not None and found != separator:
            raise SourceError(
                f"{path} has one column when separated by {separator!r}, but its first line"
                f" contains {found!r}: give that as the delimiter."
            )
    first: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        if name and first.setdefault(name, place) != place:
            raise SourceError(
                f"columns {first[name]} and {place} of {path} have the same name: rename one."
            )


def _parsed(lines: CheckedLines, path: Path, separator: str, *, rows: int | None) -> pd.DataFrame:
    problem = ""
    try:
        read: Any = io.BytesIO(lines.start) if rows == 0 else io.BufferedReader(lines)
        frame = pd.read_csv(read, sep=separator, low_memory=False)
    except pd.errors.ParserError:
        problem = "a quote is not closed"
    if rows != 0 and not problem and not lines.problem and len(frame) != lines.records:
        problem = "its quotes can be read in several ways"
    problem = lines.problem or problem
    if problem:
        raise SourceError(f"{path} is not a table separated by {separator!r}: {problem}.")
    return frame


def _from_parquet(files: list[Path], place: Path) -> Any:
    if not files:
        raise SourceError(f"the folder {place} holds no .parquet files.")
    duckdb = _duckdb("parquet files")
    try:
        connection = duckdb.connect(config=_LOCKED)
        names = [str(file) for file in files]
        relation = connection.read_parquet(names, union_by_name=True)
        query = "select distinct name from parquet_schema(?)"
        written = {name for (name,) in connection.execute(query, [names]).fetchall()}
    except duckdb.Error as error:
        raise SourceError(f"{place} cannot be read as parquet: {_reason(error)}.") from error
    if not written.issuperset(relation.columns):  # DuckDB has renamed one
        raise SourceError(f"two columns of {place} have the same name, but for case: rename one.")
    return relation


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
