"""The records of a CSV file, counted while they are read: all have as many fields as the header.

pandas takes a surplus field of the first line for a row name, which shifts every column, and fills
short lines up with missing cells. Quotes mean here what they mean to pandas and to Python's `csv`:
one at the beginning of a field quotes it, one inside is text.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

_AT_ONCE = 1 << 18  # bytes


_TOGETHER = 1000  # records, of those that are read one by one


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


_QUOTE, _CARRIAGE_RETURN, _NEWLINE = b'"\r\n'


_END_OF_LINE = re.compile(rb"\r\n|\r|\n")


_ROW_NAMES = (
    ". If every line begins with a name of the row that the header leaves out, as R writes them,"
    " say so with --index (index_col = true in a plan)"
)


class CheckedLines(io.RawIOBase):
    """The bytes of a file with a header; they end before the first record that does not fit it.

    Parameters
    ----------
    file
        The file, opened in binary.
    separator
        What separates the fields: one ASCII character.
    row_names
        Whether every record begins with a name of the row. The header leaves it out, or empty.
    """

    def __init__(self, file: BinaryIO, separator: str, *, row_names: bool) -> None:
        self.problem = ""
        """Which line does not fit, and why; empty if all do."""
        self.records = 0
        """How many records were read after the header; blank lines are none."""
        self._file, self._separator = file, separator
        self._spaces = b" \t\r\n".replace(separator.encode(), b"")
        self._waiting = file.read(_AT_ONCE).removeprefix(_BYTE_ORDER_MARK)
        self.header = self._header()
        """The names of the columns, as they are written."""
        self.leaves_out = row_names and self.header[:1] != [""]
        """Whether the header leaves the names of rows out."""
        self._fields = len(self.header) + self.leaves_out
        self._line = 1 + len(_END_OF_LINE.findall(self.start))
        self._pieces = self._checked()
        self._left = memoryview(b"")

    def _header(self) -> list[str]:
        """Split off the first record that is not blank, and return its fields."""
        while True:
            end, header = 0, list[str]()
            for record, fields in self._records(self._waiting.splitlines(keepends=True)):
                end += len(record)
                if not self._is_blank(record):
                    header = fields
                    break
            more = b"" if end < len(self._waiting) else self._file.read(_AT_ONCE)
            if not more:  # a record that does not reach the end of what was read is complete
                self.start, self._waiting = self._waiting[:end], self._waiting[end:]
                return header
            self._waiting += more

    def readable(self) -> bool:
        """Return True, as streams say that they can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with bytes that were checked."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        number = min(len(self._left), len(buffer))
        buffer[:number], self._left = self._left[:number], self._left[number:]
        return number

    def _checked(self) -> Iterator[bytes]:
        """Yield pieces of whole records that fit, until one does not."""
        yield self.start
        while more := self._file.read(_AT_ONCE):
            self._waiting += more
            found = _fitting(self._waiting, self._separator, self._fields)
            if found is None:
                break
            end, records = found
            piece, self._waiting = self._waiting[:end], self._waiting[end:]
            self._line += len(_END_OF_LINE.findall(piece)) if b"\r" in piece else piece.count(b"\n")
            self.records += records
            yield piece
        yield from self._one_by_one()

    def _one_by_one(self) -> Iterator[bytes]:
        """Do the same for the rest of the file, with the reader of records that knows all rules."""
        fitting: list[bytes] = []
        try:
            for record, fields in self._records(self._lines()):
                if not self._is_blank(record):
                    if len(fields) != self._fields:
                        self.problem = self._misfit(len(fields))
                        break
                    self.records += 1
                fitting.append(record)
                self._line += len(_END_OF_LINE.findall(record))
                if len(fitting) == _TOGETHER:
                    yield b"".join(fitting)
                    fitting.clear()
        except csv.Error:
            most = f"{csv.field_size_limit():,}"
            self.problem = (
                f"line {self._line} has a quote that is not closed, or over {most} characters"
            )
        yield b"".join(fitting)

    def _lines(self) -> Iterator[bytes]:
        while True:
            *lines, self._waiting = self._waiting.splitlines(keepends=True) or [b""]
            yield from lines
            more = self._file.read(_AT_ONCE)
            if not more:
                yield self._waiting
                return
            self._waiting += more

    def _records(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, list[str]]]:
        """Yield every record, as it is written and as its fields."""
        read: list[bytes] = []

        def noted() -> Iterator[str]:
            for line in lines:
                read.append(line)
                yield line.decode(errors="surrogateescape")

        for fields in csv.reader(noted(), delimiter=self._separator):
            yield b"".join(read), fields
            read.clear()

    def _is_blank(self, record: bytes) -> bool:
        """Whether pandas skips a record."""
        return not record.strip(self._spaces)

    def _misfit(self, fields: int) -> str:
        columns = f"{len(self.header)} column{'' if len(self.header) == 1 else 's'}"
        beside = " beside the name of the row" if self.leaves_out else ""
        words = (
            f"line {self._line} has {fields} field{'' if fields == 1 else 's'}, and the header"
            f" names {columns}{beside}"
        )
        if fields < self._fields:
            return f"{words}; a missing cell still needs its delimiter"
        words += "; no line may end with a delimiter, and one inside a field (1,000) needs quotes"
        first = not self.records and not self.leaves_out
        return words + (_ROW_NAMES if first and fields == self._fields + 1 else "")


def _fitting(block: bytes, separator: str, fields: int) -> tuple[int, int] | None:
    """Return how many bytes are whole records, and how many records these are.

    None if a record may have another number of fields, be blank, or have quotes inside a field.
    """
    cells, mark = np.frombuffer(block, np.uint8), ord(separator)
    ends, marks = cells == _NEWLINE, cells == mark
    if b"\r" in block:
        ends |= cells == _CARRIAGE_RETURN
    if b'"' in block:
        unquoted = _outside_quotes(cells, cells == _QUOTE, ends | marks)
        if unquoted is None:
            return _fitting_by_reader(block, separator, fields)
        ends &= unquoted
        marks &= unquoted
    stops = np.flatnonzero(ends)
    if block.endswith(b"\r"):  # of which a newline may be the rest
        stops = stops[stops < len(block) - 1]
    if not len(stops):
        return 0, 0
    starts = np.concatenate(([0], stops[:-1] + 1))
    held = np.diff(np.searchsorted(np.flatnonzero(marks), stops), prepend=0) + 1
    empty = stops == starts
    if not np.all(empty | (held == fields)):
        return None
    if fields == 1 and np.isin(cells[starts], (ord(" "), ord("\t"))).any():
        return None
    return int(stops[-1]) + 1, int(np.count_nonzero(~empty))


def _fitting_by_reader(block: bytes, separator: str, fields: int) -> tuple[int, int] | None:
    """Do the same where quotes stand inside fields, several times slower."""
    end = block.rfind(b"\n") + 1
    text = io.StringIO(block[:end].decode(errors="surrogateescape"), newline="")
    try:  # strict: a quote that is open at the end is an error
        held = Counter(map(len, csv.reader(text, delimiter=separator, strict=True)))
    except csv.Error:
        return None
    fine = fields > 1 and set(held) <= {0, fields}
    return (end, held[fields]) if fine and end else None


def _outside_quotes(
    cells: npt.NDArray[np.uint8], quotes: npt.NDArray[np.bool_], ends: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_] | None:
    """Return which bytes are outside quotes; None where a quote is not at an end of its field.

    Two quotes in a row, which stand for one, end a quoted part and begin another.
    """
    places = np.flatnonzero(quotes)
    may_stand_by = ends | quotes
    before, after = places[::2] - 1, places[1::2] + 1
    fine = (before < 0) | may_stand_by[before]
    if not (fine.all() and may_stand_by[after[after < len(cells)]].all()):
        return None
    outside: npt.NDArray[np.bool_] = ~np.logical_xor.accumulate(quotes)
    return outside
