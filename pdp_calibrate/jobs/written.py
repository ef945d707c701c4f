"""A job written as a command, as Python, and as a plan.

Every form is read back by its own parser before it is returned, so that what is written means what
was asked; a name that a form cannot hold is refused.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pdp_calibrate.errors import PdpError
from pdp_calibrate.jobs import forms
from pdp_calibrate.jobs.forms import Form
from pdp_calibrate.jobs.grammar import Question, parse_query
from pdp_calibrate.jobs.job import Learning, Option, Options, declared

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WORD = re.compile(r"[^\W\d][\w.]*")


def question_text(
    kind: str, columns: Sequence[str] = (), values: Sequence[Hashable] | None = None
) -> str:
    """Write a question as commands and plans take it.

    Examples
    --------
    >>> question_text("mean", ["net income"]), question_text("count", ["sick"], [True])
    ("mean('net income')", 'count(sick=true)')
    """
    inside = ", ".join(map(_name, columns))
    if values is not None:
        inside += f"={values_text(values)}"
    text = f"{kind}({inside})"
    found = parse_query(text)
    wanted = (kind, tuple(columns) or None, None if values is None else tuple(values))
    if (found.kind, found.columns, found.values) != wanted:
        raise PdpError(f"a question about {', '.join(columns)} cannot be written as text.")
    return text


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) else "'" + name.replace("'", "''") + "'"


def values_text(values: Sequence[Hashable]) -> str:
    """Write values as questions and domains take them."""
    return ",".join(_value(one) for one in values)


def _value(value: Hashable) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    plain = _WORD.fullmatch(text) and text.lower() not in ("true", "false")
    return text if plain else "'" + text.replace("'", "''") + "'"


def command_line(
    command: str,
    file: str,
    questions: Sequence[str],
    options: Mapping[str, Any],
    learning: Mapping[str, Any] | None = None,
) -> str:
    """Write a job as a command of ``pdp-calibrate``.

    Examples
    --------
    >>> command_line("calibrate", "p.csv", ["sum(x)"], {"groups": "h", "bounds": {"x": (0, 1)}})
    "pdp-calibrate calibrate p.csv -q 'sum(x)' --groups h --bounds x=0:1"
    """
    parts = ["pdp-calibrate", command, f"./{file}" if file.startswith("-") else file]
    for question in questions:
        parts += ["-q", question]
    for what, said in ((Options, options), (Learning, learning or {})):
        known = declared(what)
        for name, value in said.items():
            if value is not None and value is not False:
                parts += _flags(name, known[name], value)
    return " ".join(map(shlex.quote, parts))


def _flag(flag: str, value: str) -> list[str]:
    """Return an option and its value, which may begin with a dash."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def _flags(name: str, option: Option, value: Any) -> list[str]:
    flag = option.flags[0] if option.flags else f"--{name.replace('_', '-')}"
    form = option.form
    if form.kind is bool:
        return [flag]
    if not form.repeated:
        return _flag(flag, _checked(name, form, _single(form, value), value))
    pairs = value.items() if isinstance(value, Mapping) else [(None, value)]
    return [
        part
        for column, one in pairs
        for part in _flag(flag, _checked(name, form, _pair(form, column, one), (column, one)))
    ]


def _single(form: Form, value: Any) -> str:
    if form is forms.NAMES:
        return ",".join([value] if isinstance(value, str) else map(str, value))
    if form in (forms.SPAN, forms.BELIEF) and isinstance(value, tuple | list):
        return ":".join(map(repr, value))
    return str(value)


def _pair(form: Form, column: Any, value: Any) -> str:
    if form is forms.RANGES:
        text = ":".join(repr(end) for end in value)
    else:
        several = isinstance(value, Sequence) and not isinstance(value, str)
        text = values_text(value if several else [value])
    return text if column is None else f"{column}={text}"


def _checked(name: str, form: Form, text: str, meant: Any) -> str:
    """Return the text if it is read as what was meant."""
    if form.from_text is None or form is forms.ADVERSARIES:
        return text
    found = None
    with contextlib.suppress(PdpError):  # it is read as something else, or not at all
        found = form.from_text(text)
    if _comparable(found) != _comparable(meant):
        raise PdpError(
            f"{name} cannot be written on a command line here: a name in it has a character"
            " that separates names. Use Python or a plan, or rename the column."
        )
    return text


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        found = tuple(_comparable(one) for one in value)
        return found[0] if len(found) == 1 and isinstance(found[0], tuple) else found
    return value


def python_call(method: str, first: str, options: Mapping[str, Any]) -> str:
    """Write a call of a method of a frame.

    Examples
    --------
    >>> print(python_call("people.pdp.sum", "'income'", {"bounds": {"income": (0, 9)}}))
    people.pdp.sum(
        'income',
        bounds={'income': (0, 9)},
    )
    """
    lines = [first, *(f"{name}={value!r}" for name, value in options.items())]
    return "\n".join([f"{method}(", *(f"    {line}," for line in lines), ")"])


def toml_text(contents: Mapping[str, Any]) -> str:
    """Write the contents of a plan as TOML.

    Examples
    --------
    >>> print(toml_text({"data": {"file": "p.csv"}, "queries": [{"query": "sum(x)"}]}))
    [data]
    file = "p.csv"
    <BLANKLINE>
    [[queries]]
    query = "sum(x)"
    <BLANKLINE>
    """
    lines: list[str] = []
    for name, section in contents.items():
        several = isinstance(section, list)
        for one in section if several else [section]:
            lines.append(f"[[{name}]]" if several else f"[{name}]")
            lines += [f"{_key(key)} = {_toml(value)}" for key, value in one.items()]
            lines.append("")
    text = "\n".join(lines)
    if tomllib.loads(text) != json.loads(json.dumps(contents)):
        raise PdpError("these answers cannot be written as a plan.")
    return text


def _key(name: Any) -> str:
    text = str(name)
    return text if _BARE.fullmatch(text) else _toml(text)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    text = json.dumps(str(value), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # which TOML wants escaped, and JSON does not


def first_column(question: Question) -> Hashable | None:
    """Return the first column that a question names."""
    return None if question.columns is None else question.columns[0]
