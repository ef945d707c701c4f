"""What a function returned, as numbers and as a kind: anything an attacker can see is an event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.auditing.events import Category, Score, column
from pdp_calibrate.core.workers import progress
from pdp_calibrate.errors import PdpError

Mechanism = Callable[[dict[Hashable, Any]], Any]
"""Takes one database {name: value} and returns a number, or several."""


_MOST_KINDS = 50  # of each sort, the most frequent ones; all others are one


_LONGEST = 80  # characters of a text that are told apart


_NAMES = {"b": "yes or no", "i": "whole", "u": "whole", "f": "real", "c": "complex"}


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One output of a function."""

    kind: str
    """What sort of thing it is: how many numbers and of which type, a text, an exception."""
    text: str = ""
    """Its words, where it is not made of numbers."""
    numbers: tuple[float, ...] = ()
    """Its numbers, or their real parts."""
    imaginary: tuple[float, ...] = ()
    """Their imaginary parts, where they are complex."""
    failed: bool = False
    """Whether the function raised instead of returning."""


def observed(
    mechanism: Mechanism, databases: Iterable[dict[Hashable, Any]], number: int
) -> list[Observation]:
    """Run a function on each of `number` databases, and describe what comes back or is raised."""
    seen = []
    every = max(1, number // 100)  # the bar moves by one percent at a time
    with progress("running the mechanism", total=number) as show:
        for database in databases:
            seen.append(_observed(mechanism, database))
            if len(seen) % every == 0:
                show(len(seen))
    return seen


def _observed(mechanism: Mechanism, database: dict[Hashable, Any]) -> Observation:
    try:
        found = mechanism(database)
    except Exception as error:  # noqa: BLE001 - whatever it raises, an attacker may see it
        kind = f"an exception, {type(error).__name__}"
        return Observation(kind=kind, text=f"{kind}: {str(error)[:_LONGEST]}", failed=True)
    try:
        shape, array = np.shape(found), np.ravel(np.asarray(found))
        if array.dtype.kind not in _NAMES:
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return Observation(kind=f"a {type(found).__name__}", text=repr(found)[:_LONGEST])
    many = "one number" if not shape else f"numbers of shape {shape}"
    kind = f"{many} ({_NAMES[array.dtype.kind]})"
    for name, odd in (("NaN", np.isnan(array)), ("infinite", np.isinf(array))):
        if odd.any():
            kind += f", {name} at {', '.join(str(place + 1) for place in np.flatnonzero(odd)[:9])}"
    whole = array.dtype.kind == "c"
    return Observation(
        kind=kind,
        numbers=tuple(map(float, array.real)),
        imaginary=tuple(map(float, array.imag)) if whole else (),
    )


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How observations become rows of numbers: fixed on some of them, used on others."""

    width: int
    """Most numbers in one observation."""
    complex: bool
    """Whether imaginary parts have columns too."""
    kinds: tuple[str, ...]
    """Kinds that are told apart."""
    texts: tuple[str, ...]
    """Texts that are told apart."""

    @classmethod
    def of(cls, seen: Sequence[Observation]) -> Encoding:
        """Fix the encoding on these observations."""
        if all(one.failed for one in seen):
            raise PdpError(
                f"the function raised on every database: {seen[0].text}. There is nothing to audit."
            )
        return cls(
            width=max(len(one.numbers) for one in seen),
            complex=any(one.imaginary for one in seen),
            kinds=_most_frequent(one.kind for one in seen),
            texts=_most_frequent(one.text for one in seen),
        )

    def rows(self, seen: Sequence[Observation]) -> FloatArray:
        """Return a row for each: its numbers, their imaginary parts, its kind and its text."""
        parts = 2 if self.complex else 1
        found = np.full((len(seen), parts * self.width + 2), np.nan)
        kinds = {kind: code for code, kind in enumerate(self.kinds)}
        texts = {text: code for code, text in enumerate(self.texts)}
        for row, one in zip(found, seen, strict=True):
            number = min(len(one.numbers), self.width)
            row[:number] = one.numbers[:number]
            if self.complex:
                imaginary = one.imaginary or (0.0,) * number
                row[self.width : self.width + number] = imaginary[:number]
            row[-2:] = kinds.get(one.kind, -1), texts.get(one.text, -1)
        return found

    def number_scores(self) -> list[tuple[str, Score]]:
        """Return each number of an observation."""
        found = [(f"output {place + 1}", column(place)) for place in range(self.width)]
        if self.complex:
            found += [
                (f"the imaginary part of output {place + 1}", column(self.width + place))
                for place in range(self.width)
            ]
        return found

    def category_scores(self) -> list[tuple[str, Score]]:
        """Return whether an observation is of a kind, or has a text, for each that was seen."""
        return [
            (f"the output is {label or 'made of numbers'}", Category(place=place, code=code))
            for place, labels in ((-2, self.kinds), (-1, self.texts))
            if len(labels) > 1
            for code, label in enumerate(labels)
        ]


def _most_frequent(labels: Iterable[str]) -> tuple[str, ...]:
    return tuple(label for label, _ in Counter(labels).most_common(_MOST_KINDS))
