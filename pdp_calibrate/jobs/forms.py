"""How values are written where they are not Python objects: as text, and in TOML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pdp_calibrate.core import schema_parts as parts
from pdp_calibrate.errors import PdpError
from pdp_calibrate.jobs.grammar import parse_values

if TYPE_CHECKING:
    from pdp_calibrate.core.adversary import Adversaries

Range = tuple[float, float]


DRAW = "draw"
"""Instead of a seed: draw one, once."""

NONE = "none"
"""In text and in TOML, what Python writes as None."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a value is written where it is not a Python object."""

    schema: parts.Schema
    """Its JSON Schema in plans."""
    kind: type = str
    """The type that the command line reads."""
    from_text: Callable[[str], Any] | None = None
    """Converts the text of the command line; None where it is the value already."""
    from_plan: Callable[[Any], Any] | None = None
    """Converts what TOML holds; None where it is the value already."""
    repeated: bool = False
    """Whether the command line takes it several times: `from_text` returns items of a mapping."""


def adversaries_from(text: str) -> Adversaries:
    """Read who may attack.

    Examples
    --------
    >>> adversaries_from("weakest")
    Adversaries.weakest()
    >>> adversaries_from("knowing:1:3"), adversaries_from("knowing::2")
    (Adversaries.knowing(at_least=1, at_most=3), Adversaries.knowing(at_least=0, at_most=2))
    >>> adversaries_from("exactly:child:mother,father")
    Adversaries.exactly('child', known=['mother', 'father'])
    """
    from pdp_calibrate.core.adversary import Adversaries

    name, *rest = text.split(":")
    if name in ("all", "weakest", "strongest") and not rest:
        return cast("Adversaries", getattr(Adversaries, name)())
    if name == "knowing" and len(rest) == 2:
        least, most = rest
        if all(limit.isdigit() or not limit for limit in rest):
            return Adversaries.knowing(
                at_least=int(least or 0), at_most=int(most) if most else None
            )
    if name == "exactly" and rest and len(rest) <= 2:
        return Adversaries.exactly(rest[0], known=rest[1].split(",") if rest[1:] else ())
    raise PdpError(
        "adversaries are all, weakest, strongest, knowing:AT_LEAST:AT_MOST or"
        f" exactly:TARGET:NAME,NAME; got {text!r}."
    )


def _path(text: str) -> Path:
    if "\0" in text:
        raise PdpError("the name of a file has no NUL character in it.")
    return Path(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PdpError(f"a number or a range LO:HI is needed, got {text!r}.") from None


def _range(text: str) -> Range:
    low, _, high = text.partition(":")
    return _number(low), _number(high)


def _number_or_range(text: str) -> float | Range:
    return _range(text) if ":" in text else _number(text)


def _confidence(text: str) -> float | str:
    """Read a probability, in per cent or as a number, or the word for none.

    Examples
    --------
    >>> _confidence(".9"), _confidence("90%"), _confidence("none")
    (0.9, 0.9, 'none')
    """
    if text.strip().lower() == NONE:
        return NONE
    try:
        return _share(text)
    except PdpError:
        raise PdpError(
            f"a confidence is a probability such as .95, or none; got {text!r}."
        ) from None


def _belief(text: str) -> Range:
    """Read a belief before and after, in per cent or as probabilities.

    Examples
    --------
    >>> _belief("1%:3%"), _belief("0.5:0.9")
    ((0.01, 0.03), (0.5, 0.9))
    """
    before, colon, after = text.partition(":")
    if not colon:
        raise PdpError(f"a belief is written BEFORE:AFTER, such as 1%:3%, got {text!r}.")
    return _share(before), _share(after)


def _share(text: str) -> float:
    number = text.strip()
    try:
        return float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise PdpError(f"a belief is a probability, such as 1% or 0.01, got {text!r}.") from None


def _named_range(text: str) -> tuple[str | None, Range]:
    name, equals, numbers = text.rpartition("=")
    return (name if equals else None), _range(numbers)


def _named_values(text: str, *, rule: str = "a domain is written COLUMN=VALUE,VALUE") -> Any:
    name, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise PdpError(f"{rule}; got {text!r}.")
    return name, parse_values(values)


def _condition(text: str) -> tuple[str, Any]:
    name, equals, values = text.partition("=")
    compares = name.rstrip().endswith(("<", ">", "!")) or values.startswith("=")
    if compares or (not equals and any(sign in text for sign in "<>")):
        raise PdpError(
            f"comparisons such as {text!r} are not supported yet: a condition is written"
            " COLUMN=VALUE,VALUE. Put what you mean into a column of its own, such as a yes/no."
        )
    name, found = _named_values(text, rule="a condition is written COLUMN=VALUE,VALUE")
    return name, list(found)


def _named_value(text: str) -> tuple[str, Any]:
    name, values = _named_values(text, rule="an option is written NAME=VALUE")
    return name, values[0] if len(values) == 1 else values


def _rule_for_missing(text: str) -> tuple[str | None, Any]:
    name, equals, rule = text.rpartition("=")
    return (name if equals else None), parse_values(rule)[0]


def _step(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _seed(text: str) -> int | str:
    if text == DRAW:
        return text
    try:
        return int(text)
    except ValueError:
        raise PdpError(f"a seed is a whole number or {DRAW}, got {text!r}.") from None


def _edges(text: str) -> tuple[tuple[str, ...], ...]:
    """Read pairs of columns.

    Examples
    --------
    >>> _edges("mother:child,father:child")
    (('mother', 'child'), ('father', 'child'))
    """
    pairs = tuple(tuple(pair.split(":")) for pair in text.split(","))
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise PdpError(f"edges are written ONE:OTHER,ONE:OTHER; got {text!r}.")
    return pairs


def _as_tuples(found: Any) -> Any:
    """Return what TOML holds with tuples for its lists."""
    if isinstance(found, dict):
        return {name: _as_tuples(value) for name, value in found.items()}
    return tuple(found) if isinstance(found, list) else found


def _by_column(schema: parts.Schema) -> parts.Schema:
    return {"type": "object", "additionalProperties": schema}


TEXT = Form(schema=parts.TEXT)
POSITIVE = Form(schema=parts.POSITIVE, kind=float)
COUNT = Form(schema={"type": "integer", "minimum": 1}, kind=int)
SWITCH = Form(schema={"type": "boolean"}, kind=bool)
FILE = Form(schema=parts.TEXT, kind=Path, from_plan=_path)
NAMES = Form(
    schema=parts.items(parts.TEXT),
    from_text=lambda text: tuple(text.split(",")),
    from_plan=_as_tuples,
)
EDGES = Form(
    schema=parts.items(parts.items(parts.TEXT)),
    from_text=_edges,
    from_plan=lambda found: tuple(tuple(pair) for pair in found),
)
SPAN = Form(
    schema=parts.anything_of(parts.NUMBER, parts.RANGE),
    from_text=_number_or_range,
    from_plan=_as_tuples,
)
BELIEF = Form(
    schema=parts.anything_of(parts.TEXT, parts.RANGE),
    from_text=_belief,
    from_plan=lambda found: _belief(found) if isinstance(found, str) else _as_tuples(found),
)
CONFIDENCE = Form(
    schema=parts.anything_of(
        parts.NUMBER | {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, parts.one_of(NONE)
    ),
    from_text=_confidence,
)
RANGES = Form(
    schema=parts.anything_of(parts.RANGE, _by_column(parts.RANGE)),
    from_text=_named_range,
    from_plan=_as_tuples,
    repeated=True,
)
DOMAINS = Form(
    schema=_by_column(parts.items(parts.CELL)),
    from_text=_named_values,
    from_plan=_as_tuples,
    repeated=True,
)
CONDITIONS = Form(
    schema=_by_column(parts.anything_of(parts.CELL, parts.items(parts.CELL))),
    from_text=_condition,
    repeated=True,
)
MISSING = Form(
    schema=parts.anything_of(parts.CELL, _by_column(parts.CELL)),
    from_text=_rule_for_missing,
    repeated=True,
)
STEP = Form(schema=parts.anything_of(parts.TEXT, parts.POSITIVE), from_text=_step)
SEED = Form(
    schema=parts.anything_of({"type": "integer", "minimum": 0}, parts.one_of(DRAW)),
    from_text=_seed,
)
PAIRS = Form(schema=_by_column(parts.CELL), from_text=_named_value, repeated=True)
ADVERSARIES = Form(schema=parts.TEXT, from_text=adversaries_from, from_plan=adversaries_from)


def word(*words: str) -> Form:
    """Return how one of a few words is written."""
    return Form(schema=parts.one_of(*words))
