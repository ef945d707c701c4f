"""BIF files, in which the classic Bayesian networks are published (Interchange Format 0.15).

A file names variables with their values, and for each variable a table of its law given its
parents. Tables of published networks are rounded to a few digits; their rows are normalised here.
"""

from __future__ import annotations

import gzip
import math
import os
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import product
from pathlib import Path

import numpy as np

from pdp_calibrate.errors import ModelError, SourceError
from pdp_calibrate.families.network.network import Network

_ROUNDED = 1e-3  # how far the probabilities of a row may be from 1 together

_COMMENTS = re.compile(r"/\*.*?\*/|(?:(?<=\s)|^)//[^\n]*", re.DOTALL | re.MULTILINE)

_TOKENS = re.compile(r'"([^"]*)"|([{}()\[\]|;])|([^\s{}()\[\]|;,"]+)')

_Table = dict[tuple[str, ...], list[float]]


def read_bif(
    path: str | os.PathLike[str],
    *,
    values: Mapping[str, Hashable] | None = None,
    provenance: str = "assumed",
) -> Network:
    """Read a Bayesian network from a BIF file, or one compressed with gzip (``.bif.gz``).

    Parameters
    ----------
    path
        The file.
    values
        What labels of the file stand for, such as ``{"yes": 1, "no": 0}``, so that they can be
        added up. Others stay text, which can be counted.
    provenance
        ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> text = '''
    ... variable smoke { type discrete [ 2 ] { yes, no }; }
    ... variable cough { type discrete [ 2 ] { yes, no }; }
    ... probability ( smoke ) { table 0.5, 0.5; }
    ... probability ( cough | smoke ) { (yes) 0.6, 0.4; (no) 0.3, 0.7; }
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "cough.bif"
    ...     _ = file.write_text(text)
    ...     read_bif(file, values={"yes": 1, "no": 0})
    Network(2 tuples, 1 couplings, assumed)
    """
    found = parsed(_text_of(Path(path)))
    held: Mapping[str, Hashable] = {} if values is None else values
    factors = []
    for child, (parents, table) in found.tables.items():
        scope = (*parents, child)
        shape = [len(found.domains[variable]) for variable in scope]
        factors.append((scope, np.array(list(table.values())).reshape(shape)))
    return Network(
        factors=factors,
        domains={
            variable: [held.get(label, label) for label in labels]
            for variable, labels in found.domains.items()
        },
        provenance=provenance,
    )


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a BIF file says."""

    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The labels of every variable."""
    tables: dict[str, tuple[tuple[str, ...], _Table]] = field(default_factory=dict)
    """Its parents, and its law for all their labels, those of the last parent changing fastest."""


def parsed(text: str) -> Parsed:
    """Read the variables and tables of a BIF file, and check that they are complete."""
    found = Parsed()
    tokens = _Tokens(text)
    for word in tokens:
        if word == "network":
            tokens.until("{")
            tokens.skip_block()
        elif word == "variable":
            name, labels = _variable(tokens)
            if name in found.domains:
                raise ModelError(f"the BIF file describes {name} twice.")
            found.domains[name] = labels
        elif word == "probability":
            name, parents, table = _probability(tokens, found.domains)
            if name in found.tables:
                raise ModelError(f"the BIF file has two tables for {name}.")
            found.tables[name] = parents, table
        else:
            raise ModelError(f"a BIF file holds network, variable and probability, got {word!r}.")
    for name in found.domains:
        if name not in found.tables:
            raise ModelError(f"the BIF file has no table for {name}.")
    if not found.domains:
        raise ModelError("the BIF file describes no variable.")
    try:
        TopologicalSorter({name: parents for name, (parents, _) in found.tables.items()}).prepare()
    except CycleError:
        raise ModelError("the parents in the BIF file lead round in a circle.") from None
    return found


class _Tokens:
    """The words and signs of a file, one after the other; commas are only separators."""

    def __init__(self, text: str) -> None:
        self._left: Iterator[re.Match[str]] = _TOKENS.finditer(_COMMENTS.sub(" ", text))

    def __iter__(self) -> Iterator[str]:
        for match in self._left:
            yield next(part for part in match.groups() if part is not None)

    def next(self) -> str:
        """Return the next word or sign; a file must not end here."""
        for token in self:
            return token
        raise ModelError("the BIF file ends too early.")

    def expect(self, wanted: str) -> None:
        """Go past one word or sign."""
        found = self.next()
        if found != wanted:
            raise ModelError(f"the BIF file should have {wanted!r} where it has {found!r}.")

    def until(self, end: str) -> list[str]:
        """Return everything before a sign, and go past it."""
        found = []
        while (token := self.next()) != end:
            found.append(token)
        return found

    def skip_block(self) -> None:
        """Go past the end of a block that has begun."""
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.next(), 0)


def _variable(tokens: _Tokens) -> tuple[str, tuple[str, ...]]:
    """Read ``NAME { type discrete [ n ] { a, b }; property …; }``."""
    name = tokens.next()
    tokens.expect("{")
    labels: tuple[str, ...] | None = None
    while (word := tokens.next()) != "}":
        if word == "property":
            tokens.until(";")
            continue
        if word != "type" or labels is not None:
            raise ModelError(f"{name} in the BIF file should have one type, got {word!r}.")
        tokens.expect("discrete")
        tokens.expect("[")
        number = tokens.until("]")
        tokens.expect("{")
        labels = tuple(tokens.until("}"))
        tokens.expect(";")
        if number != [str(len(labels))] or len(set(labels)) < len(labels):
            raise ModelError(
                f"{name} in the BIF file should have {' '.join(number)} different values,"
                f" got {len(set(labels))}."
            )
    if not labels:
        raise ModelError(f"{name} in the BIF file has no values.")
    return name, labels


def _probability(
    tokens: _Tokens, domains: Mapping[str, tuple[str, ...]]
) -> tuple[str, tuple[str, ...], _Table]:
    """Read ``( X | Y, Z ) { (y, z) p, …; default p, …; table p, …; }``."""
    tokens.expect("(")
    header = tokens.until(")")
    name, *rest = header or [""]
    if (rest and rest[0] != "|") or rest == ["|"]:
        raise ModelError("tables in a BIF file are headed ( child | parent, … ).")
    parents = tuple(rest[1:])
    for variable in (name, *parents):
        if variable not in domains:
            raise ModelError(f"the BIF file has a table about {variable!r}, but no such variable.")
    if len({name, *parents}) <= len(parents):
        raise ModelError(f"the parents of {name} in the BIF file must differ.")
    keys = list(product(*(domains[parent] for parent in parents)))
    size = len(domains[name])
    table: _Table = {}
    default: list[float] | None = None
    tokens.expect("{")
    while (word := tokens.next()) != "}":
        if word == "property":
            tokens.until(";")
        elif word == "table":
            numbers = _numbers(tokens, name, size * len(keys))
            # The child's value changes slowest, the last parent's fastest.
            table |= {key: numbers[place :: len(keys)] for place, key in enumerate(keys)}
        elif word == "default":
            default = _numbers(tokens, name, size)
        elif word == "(":
            key = tuple(tokens.until(")"))
            if key not in keys or key in table:
                raise ModelError(f"{name} in the BIF file has a row for {key}, unknown or twice.")
            table[key] = _numbers(tokens, name, size)
        else:
            raise ModelError(f"the table of {name} in the BIF file has an unknown entry {word!r}.")
    if default is not None:
        table = dict.fromkeys(keys, default) | table
    if len(table) < len(keys):
        raise ModelError(
            f"{name} in the BIF file lacks the rows of {len(keys) - len(table)} cases."
        )
    return name, parents, {key: _normalised(table[key], name) for key in keys}


def _numbers(tokens: _Tokens, name: str, size: int) -> list[float]:
    words = tokens.until(";")
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        raise ModelError(f"the table of {name} in the BIF file holds no number.") from None
    if len(numbers) != size:
        raise ModelError(
            f"a row of {name} in the BIF file should have {size} numbers, got {len(numbers)}."
        )
    return numbers


def _normalised(row: list[float], name: str) -> list[float]:
    """Divide a rounded law by its sum."""
    total = math.fsum(row)
    if not all(0 <= entry <= 1 for entry in row) or not abs(total - 1) <= _ROUNDED:
        raise ModelError(
            f"a row of {name} in the BIF file must be a law, got a sum of {total:.6g}."
        )
    return row if total == 1 else [entry / total for entry in row]


def _text_of(path: Path) -> str:
    try:
        held = path.read_bytes()
        return (gzip.decompress(held) if path.suffix == ".gz" else held).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{path} cannot be read as a BIF file: {type(error).__name__}."
        ) from error
