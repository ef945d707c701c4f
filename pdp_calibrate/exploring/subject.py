"""What a page is about: rows, a model, a plan, or typed columns; never a secret value."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError, PdpError, PlanError, QueryError
from pdp_calibrate.exploring.schema import (
    MOST_COLUMNS,
    Column,
    StandIn,
    as_json,
    columns_from,
    whole_in,
)
from pdp_calibrate.frames.files import Source
from pdp_calibrate.frames.open import columns_of, rows_in
from pdp_calibrate.jobs.advise import EXAMPLE_SIZE, type_of
from pdp_calibrate.jobs.grammar import parse_query
from pdp_calibrate.jobs.model import read_model
from pdp_calibrate.jobs.plan import Plan, read_plan
from pdp_calibrate.jobs.written import values_text


@dataclass(frozen=True, kw_only=True)
class Asking:
    """One question, as it is typed."""

    kind: str = "mean"
    """Sum, mean, count or histogram."""
    column: str = ""
    """The column; empty for all columns of a wide table."""
    values: str = ""
    """Which values are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """Rows, a model, or typed columns; and the initial state of the form."""

    title: str
    """Its title on the page."""
    frame: Any = field(default=None, repr=False)
    """The rows; None for a model alone, and before columns are typed."""
    model: Model | None = None
    """The model; None for rows."""
    file: str = ""
    """The name of the file in exported code."""
    folder: Path = field(default_factory=Path)
    """The folder of the file, where a release may write its ledger."""
    columns: tuple[Column, ...] = ()
    """The columns and their types, or the names of the model."""
    rows: int = 1
    """How many rows there are."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """The initial answers of the form."""
    plan: Plan | None = None
    """The plan that the answers come from; they must express all of it."""
    typed: bool = False
    """Whether the columns are typed on the page, and there is no file."""
    stand_in: StandIn | None = None
    """The placeholder rows, if the columns are typed."""

    def about(self, answers: Mapping[str, str]) -> Subject:
        """Return what the answers are about: placeholder rows where columns are typed.

        The kinds, ranges and possible values of a file's columns may be typed, not their names.
        """
        if self.frame is None and not self.typed:
            return self
        columns = columns_from(answers["schema"])
        if not self.typed:
            if [one.name for one in columns] != [one.name for one in self.columns]:
                raise QueryError("the columns are those of the file: their names are fixed.")
            return dataclasses.replace(self, columns=columns)
        stand_in = StandIn(
            columns=columns,
            people=whole_in(answers["people"] or "1000", "the number of people"),
            groups=answers["groups"],
            order_by=answers["order_by"],
            size=whole_in(answers["max_group_size"] or str(EXAMPLE_SIZE), "members of a group"),
        )
        return dataclasses.replace(
            self, frame=stand_in.frame(), columns=columns, rows=stand_in.people, stand_in=stand_in
        )


def open_subject(path: Path) -> Subject:
    """Open rows, a model (.json) or a plan (.toml)."""
    if path.suffix == ".json":
        return _of_model(path)
    if path.suffix == ".toml":
        return _of_plan(path)
    return of_rows(path)


def of_rows(path: Path, answers: Mapping[str, str] | None = None) -> Subject:
    """Open a file with rows."""
    frame = Source(file=path).read()
    columns = tuple(Column(name=str(one), kind=type_of(frame, one)) for one in columns_of(frame))
    if len(columns) > MOST_COLUMNS:
        raise PdpError(f"{path} has {len(columns):,} columns; the page lists {MOST_COLUMNS:,}.")
    rows = rows_in(frame)
    first = _first_answers(columns) if answers is None else answers
    return Subject(
        title=f"{path.name}: {rows:,} rows, {len(columns)} columns",
        frame=frame,
        file=path.name,
        folder=path.parent,
        columns=columns,
        rows=rows,
        answers={**first, "schema": as_json(columns)},
    )


_EXAMPLE = (
    Column(name="household", kind="whole number"),
    Column(name="income", kind="number", low="0", high="100000"),
    Column(name="sick", kind="yes/no"),
    Column(name="city", kind="text", values="Bergen, Oslo, Voss"),
)


def of_nothing() -> Subject:
    """Start without a file: the columns are typed, beginning with four of an example."""
    return Subject(
        title="Type the columns of your table; no file is open",
        file="people.csv",
        typed=True,
        columns=_EXAMPLE,
        answers={
            "schema": as_json(_EXAMPLE), "people": "1000", "groups": "household",
            "max_group_size": str(EXAMPLE_SIZE), "kind": "mean", "column": "income",
            "alike": "correlation",
        },
    )  # fmt: skip


def _first_answers(columns: Sequence[Column]) -> dict[str, str]:
    """Return a question that the columns allow, to start the form with."""
    numbers = [one.name for one in columns if one.kind == "number"]
    if numbers:
        return {"kind": "mean", "column": numbers[0], "alike": "unknown"}
    switches = [one.name for one in columns if one.kind == "yes/no"]
    if switches:
        return {"kind": "count", "column": switches[0], "values": "true", "alike": "unknown"}
    return {"kind": "mean", "column": columns[0].name, "alike": "unknown"}


_MOST_NAMES = 200  # how many names of a model are listed to choose from


def _of_model(path: Path) -> Subject:
    model = read_model(path)
    if model.provenance == "private":
        raise ModelError(
            f"{path} is a model learned from private rows, which is not shown. Learn it from public"
            " rows or under differential privacy."
        )
    kind = "sum" if model.is_continuous else "histogram"
    return Subject(
        title=f"{path.name}: {type(model).__name__} of {len(model.names):,} entries",
        model=model,
        file=path.name,
        folder=path.parent,
        columns=tuple(Column(name=str(name)) for name in model.names[:_MOST_NAMES]),
        answers={"kind": kind, "column": "", "alike": "given"},
    )


_KNOWN = {
    "data": {"file", "groups", "order_by", "max_group_size", "independent"},
    "model": {"bounds", "domains", "correlation", "assume", "persistence", "kind", "public",
              "epsilon", "confidence"},
    "budget": {"epsilon", "ledger"},
    "queries": {"query", "name", "epsilon", "belief", "by", "missing", "count"},
    "output": {"releases", "report"},
}  # fmt: skip


def _of_plan(path: Path) -> Subject:
    """Open the rows of a plan, with its answers; refuse what the form cannot express."""
    plan = read_plan(path)
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    if len(found["queries"]) > 1:
        raise PlanError(
            f"{path} has several queries, each with its own ε; the page has one ε: keep one of"
            " them, or ask for a list under one ε."
        )
    (query,) = found["queries"]
    for section, known in _KNOWN.items():
        said = query if section == "queries" else found.get(section, {})
        for key in said:
            if key not in known:
                raise PlanError(f"{path}: the page has no field for {section}.{key}.")
    if plan.source.file is None:
        raise PlanError(f"{path}: the page reads rows from a file: give data.file.")
    subject = of_rows(plan.source.file, _answers_of(found, query))
    columns = _said_of_columns(subject.columns, found.get("model", {}))
    answers = {**subject.answers, "schema": as_json(columns)}
    return dataclasses.replace(subject, plan=plan, columns=columns, answers=answers)


def _answers_of(found: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, str]:
    data, model, budget = (found.get(name, {}) for name in ("data", "model", "budget"))
    said = query["query"]
    questions = [parse_query(text) for text in ([said] if isinstance(said, str) else said)]
    if any(one.kind == "linear" or len(one.columns or ()) > 1 for one in questions):
        raise PdpError("the page asks about one column, or about all columns of a wide table.")
    first, *others = [
        Asking(
            kind=one.kind,
            column=str(one.columns[0]) if one.columns else "",
            values="" if one.values is None else values_text(tuple(one.values)),
        )
        for one in questions
    ]
    stated = model.get("correlation", 0.3)
    before, after = _belief(query.get("belief"))
    answers: dict[str, Any] = {
        "kind": first.kind,
        "column": first.column,
        "values": first.values,
        "also": as_json(others),
        "groups": data.get("groups", ""),
        "order_by": data.get("order_by", ""),
        "max_group_size": data.get("max_group_size", ""),
        "by": query.get("by", [""])[0],
        "alike": _alike(data, model),
        "correlation": stated[1] if isinstance(stated, list) else stated,
        "persistence": model.get("persistence", 0.9),
        "learning": model.get("epsilon", 0.5),
        "confidence": model.get("confidence", ""),
        "strength": "belief" if "belief" in query else "epsilon",
        "epsilon": query.get("epsilon", 1.0),
        "before": before,
        "after": after,
        "missing": "zero" if query.get("missing") == "zero" else "",
        "count": str(query.get("count", "")),
        "budget": budget["epsilon"],
        "ledger": budget.get("ledger", ""),
    }
    return {name: str(value) for name, value in answers.items() if value != ""}


def _said_of_columns(columns: Sequence[Column], model: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns with the ranges and possible values that a plan states."""
    found = []
    for column in columns:
        bounds = _of_column(model.get("bounds"), column.name)
        domain = _of_column(model.get("domains"), column.name)
        more: dict[str, str] = {}
        if bounds is not None:
            more |= {"low": repr(bounds[0]), "high": repr(bounds[1])}
            more |= {} if column.is_number else {"kind": "number"}
        if domain is not None:
            more |= {"values": values_text(tuple(domain))}
            more |= {"kind": "text"} if column.kind in ("number", "time") else {}
        found.append(dataclasses.replace(column, **more))
    return tuple(found)


def _alike(data: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    if data.get("independent"):
        return "independent"
    for name in ("correlation", "persistence"):
        if name in model:
            return name
    if "kind" in model:
        return "public" if model.get("public") else "dp"
    return "unknown"


def _of_column(said: Any, column: str) -> Any:
    return said.get(column) if isinstance(said, Mapping) else said


def _belief(said: Any) -> tuple[str, str]:
    """Return the belief of a plan in per cent, as the form shows it."""
    from pdp_calibrate.jobs.forms import BELIEF

    if said is None or BELIEF.from_plan is None:
        return "1", "3"
    before, after = BELIEF.from_plan(said)
    return f"{100 * before:.12g}", f"{100 * after:.12g}"
