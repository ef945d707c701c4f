"""Plans: several jobs about one table over one budget, written in a TOML file."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.schema_parts import (
    POSITIVE,
    TEXT,
    Schema,
    anything_of,
    described,
    items,
    one_of,
)
from pdp_calibrate.errors import PdpError, PlanError, did_you_mean
from pdp_calibrate.frames.files import Source
from pdp_calibrate.jobs.grammar import parse_query
from pdp_calibrate.jobs.job import Job, Learning, Options, Table, declared
from pdp_calibrate.jobs.signature import ASKED, TABLE
from pdp_calibrate.ledger.store import check_path

if TYPE_CHECKING:
    from jsonschema import ValidationError


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything needed to release answers without asking anything."""

    source: Source
    """Where the rows are."""
    jobs: tuple[Job, ...]
    """What is asked, about the same people and so with one model; each job has its own ε, under
    which all of its questions are answered together."""
    epsilon: float
    """What everything together may leak."""
    delta: float | None = None
    """The δ that goes with it, for Gaussian noise."""
    noise: Noise = "laplace"
    """The default noise of queries."""
    pure: float | None = None
    """The part of ε for Laplace noise beside Gaussian noise."""
    ledger: Path | None = None
    """A file that keeps the budget between runs."""
    anchor: Path | None = None
    """A second file, elsewhere, that must agree with the ledger."""
    draw: str | None = None
    """The draw of the data; the ledger's latest by default."""
    releases: Path | None = None
    """Where to write the answers."""
    report: Path | None = None
    """Where to write an HTML report."""
    people: Mapping[str, Any] | None = None
    """What is said about a table of people, where the budget is that of each of its columns."""

    @property
    def model_file(self) -> Path | None:
        """The file of the model, if it has one."""
        said = self.jobs[0].options.get("model")
        return said if isinstance(said, Path) else None


def _table(words: str, required: list[str], fields: dict[str, Schema]) -> Schema:
    return {
        "description": words,
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


def _declared(section: str) -> dict[str, Schema]:
    """Return what jobs may say in a section, by its key there."""
    return {
        option.key or name: described(option.words, option.form.schema)
        for what in (Table, Options, Learning)
        for name, option in declared(what).items()
        if option.group.section == section
    }


_STATED = ("correlation", "assume", "persistence")
"""What a query about people states by itself, not for all."""


PLAN: Schema = _table(
    "Data, model, queries and budget of releases that run without questions (a TOML file).",
    ["data", "budget", "queries"],
    {
        "data": _table(
            "Where the rows are, and how they are laid out.",
            [],
            _declared("data"),
        ),
        "model": _table(
            "How the values are correlated: a file, a kind to learn, or an assumption.",
            [],
            _declared("model"),
        ),
        "budget": _table(
            "What everything together may leak.",
            ["epsilon"],
            {
                "epsilon": POSITIVE,
                "delta": described("The δ that goes with it, for Gaussian noise.", POSITIVE),
                "noise": described("The default noise of queries.", one_of("laplace", "gaussian")),
                "pure": described(
                    "With delta, the part of epsilon for Laplace noise; without it, only Gaussian"
                    " noise is drawn.",
                    POSITIVE,
                ),
                "draw": described(
                    "The draw of the data; a new name has a budget of its own.", TEXT
                ),
                "people": described(
                    "Whether the budget is that of each column of the table, so that queries may be"
                    " about several; then each states its own correlation, or none.",
                    {"type": "boolean"},
                ),
            }
            | _declared("budget"),
        ),
        "queries": items(
            _table(
                "One answer.",
                ["query"],
                {
                    "query": described(
                        "Such as mean(income); a list is answered together, under one ε.",
                        anything_of(TEXT, items(TEXT) | {"minItems": 1}),
                    ),
                    "name": described("What to call it; the query by default.", TEXT),
                }
                | _declared("queries")
                | {name: _declared("model")[name] for name in _STATED},
            )
            | {"anyOf": [{"required": [name]} for name in ("epsilon", "belief", "mu", "rho")]}
        )
        | {"minItems": 1},
        "output": _table(
            "What to write.",
            [],
            {
                "releases": described("A JSON file with the answers.", TEXT),
                "report": described("An HTML report.", TEXT),
            },
        ),
    },
)


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan; files that it names are read from its folder, and written nowhere else.

    Raises
    ------
    PlanError
        With the place in the plan, in one line.
    """
    check_path(path, what="plan", error=PlanError)
    place = Path(path)
    try:
        found = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlanError(f"there is no file {place}.") from error
    except OSError as error:
        raise PlanError(f"{place} cannot be read: {error.strerror}.") from error
    except RecursionError as error:
        raise PlanError(f"{place} is not TOML: brackets in too many brackets.") from error
    except ValueError as error:  # TOML's own, and bytes that are no text
        raise PlanError(f"{place} is not TOML: {str(error).splitlines()[0]}.") from error
    problem = problem_of(found)
    if problem:
        raise PlanError(f"{place}: {problem}")
    try:
        return plan_from(found, folder=place.parent)
    except PdpError as error:
        raise PlanError(f"{place}: {error}") from error


def plan_from(found: Mapping[str, Any], *, folder: Path) -> Plan:
    """Build a plan from the contents of its file; names of files count from the folder."""
    budget, output = found["budget"], found.get("output", {})
    shared = {name: found.get(name, {}) for name in ("data", "model", "budget")}
    learning = _said(Learning, shared, folder)
    jobs = [_said(Options, shared | {"queries": one}, folder) for one in found["queries"]]
    people = None
    if budget.get("people"):
        people, jobs = _of_people(found, jobs, learning)
    elif any(name in one for name in _STATED for one in found["queries"]):
        raise PlanError(
            "a query states its own correlation where the budget is that of each column:"
            " budget.people = true. Otherwise it is for all queries: model.correlation."
        )
    ledger, anchor = jobs[0].get("ledger"), jobs[0].get("anchor")
    if anchor is not None and ledger is None:
        raise PlanError("budget.anchor is for the ledger that budget.ledger names.")
    if ledger is not None and not ledger.exists() and not _inside(ledger, folder):
        raise PlanError(
            f"budget.ledger = {budget['ledger']!r} lies outside the folder of the plan and"
            " does not exist: create it first with `pdp-calibrate ledger create`."
        )
    for key in output:
        if not _inside(folder / output[key], folder):
            raise PlanError(
                f"output.{key} = {output[key]!r} lies outside the folder of the plan: a plan"
                " writes beside itself only. Give another place on the command line."
            )
    return Plan(
        source=Source(**_said(Table, shared, folder)),
        jobs=tuple(
            Job(
                questions=tuple(map(parse_query, _texts(one))),
                options=said | {"ledger": None, "anchor": None},  # the plan opens them, once
                learning=learning,
                name=one.get("name", "; ".join(_texts(one))),
            )
            for one, said in zip(found["queries"], jobs, strict=True)
        ),
        epsilon=float(budget["epsilon"]),
        **{name: budget[name] for name in ("delta", "noise", "pure") if name in budget},
        ledger=ledger,
        anchor=anchor,
        draw=budget.get("draw"),
        people=people,
        **{key: folder / output[key] for key in output},
    )


def _of_people(
    found: Mapping[str, Any], jobs: Sequence[Any], learning: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Return what is said about the table, and about each query with it."""
    known = {*TABLE, *ASKED, "ledger", "anchor"}
    other = sorted({*learning, *(name for one in jobs for name in one if name not in known)})
    other += [name for name in _STATED if name in found.get("model", {})]
    if other or "draw" in found["budget"]:
        raise PlanError(
            "a plan about people (budget.people) has no place for"
            f" {', '.join(other) or 'budget.draw'}: each of its queries states its own"
            " correlation, or none."
        )
    if any(len(_texts(one)) > 1 for one in found["queries"]):
        raise PlanError("a plan about people (budget.people) asks one question at a time.")
    table = {name: value for name, value in jobs[0].items() if name in TABLE}
    stated = [_said(Options, {"model": one}, Path()) for one in found["queries"]]
    asked = [
        one | {n: own[n] for n in _STATED if n in own}
        for one, own in zip(jobs, stated, strict=True)
    ]
    for one in asked:
        if not {"correlation", "persistence"} & set(one):
            one.pop("every", None)  # gaps matter to a series alone
    return table, asked


def _texts(query: Mapping[str, Any]) -> list[str]:
    """Return the questions of one entry, which may be a list."""
    said = query["query"]
    return [said] if isinstance(said, str) else list(said)


def _said(what: type, sections: Mapping[str, Any], folder: Path) -> Any:
    """Return what the sections of a plan say, as Python says it."""
    said = {}
    for name, option in declared(what).items():
        section, key = sections.get(option.group.section, {}), option.key or name
        if key in section:
            read = option.form.from_plan
            value = section[key] if read is None else read(section[key])
            said[name] = folder / value if isinstance(value, Path) else value
    return said


def _inside(path: Path, folder: Path) -> bool:
    """Whether a file lies in the folder, links followed."""
    return path.resolve().is_relative_to(folder.resolve())


_WORDS = {
    "object": "a table", "array": "a list", "string": "text", "number": "a number",
    "integer": "a whole number", "boolean": "true or false", "null": "nothing",
}  # fmt: skip


def problem_of(found: Any) -> str:
    """Return where and how the contents of a plan break its schema; empty if they keep it.

    Examples
    --------
    >>> problem_of({"data": {"group": "home"}, "budget": {"epsilon": 1}, "queries": []})
    'data.group is unknown; did you mean groups?'
    """
    from jsonschema import Draft202012Validator as Standard
    from jsonschema.validators import extend

    finite = Standard.TYPE_CHECKER.redefine(
        "number", lambda kinds, one: kinds.is_type(one, "integer") or _is_finite(one)
    )
    validator = extend(Standard, type_checker=finite)(PLAN)
    errors = map(_innermost, validator.iter_errors(found))
    # A misspelt key first: what it was meant to say is also reported as missing.
    first = min(errors, key=lambda one: one.validator != "additionalProperties", default=None)
    words = "" if first is None else _in_words(first)
    return words if not words or words.endswith("?") else f"{words}."


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)  # TOML has inf and nan


def _innermost(error: ValidationError) -> ValidationError:
    """Return the error in the alternative that was meant: the one that got furthest."""
    while error.context:
        error = max(error.context, key=lambda one: len(one.absolute_path))
    return error


def _in_words(error: ValidationError) -> str:
    """Say what is wrong and where, without the value that was found."""
    place, rule = _place(error.absolute_path), error.validator_value
    inside = f"{place}." if place else ""
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(name for name in error.instance if name not in known)
        hint = did_you_mean(unknown, known) or f"; there is {', '.join(known)}"
        return f"{inside}{unknown} is unknown{hint}"
    if error.validator == "required":
        missing = next(name for name in rule if name not in error.instance)
        return f"{inside}{missing} is missing"
    if error.validator == "enum":
        hint = did_you_mean(str(error.instance), rule)
        return f"{place} must be one of {', '.join(rule)}{hint}"
    if error.validator == "type":
        kinds = [rule] if isinstance(rule, str) else rule
        return f"{place or 'the plan'} must be {' or '.join(_WORDS[kind] for kind in kinds)}"
    if error.validator in ("minItems", "maxItems"):
        least = "" if error.schema.get("minItems") == error.schema.get("maxItems") else "at least "
        return f"{place} must have {least}{rule} {'entry' if rule == 1 else 'entries'}"
    return f"{place} must be {'at least' if error.validator == 'minimum' else 'above'} {rule}"


def _place(path: Any) -> str:
    """Write a path such as queries[1].epsilon, counted from one."""
    written = ""
    for step in path:
        written += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    return written.removeprefix(".")
