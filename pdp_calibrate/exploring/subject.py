"""What a page is about: rows, a model, or a plan; of rows nothing secret is looked at."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError, PdpError, PlanError
from pdp_calibrate.frames.files import Source
from pdp_calibrate.frames.open import columns_of, rows_in
from pdp_calibrate.jobs.advise import type_of
from pdp_calibrate.jobs.grammar import parse_query
from pdp_calibrate.jobs.model import read_model
from pdp_calibrate.jobs.plan import Plan, read_plan
from pdp_calibrate.jobs.written import values_text


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """Rows or a model, and what the form begins with."""

    title: str
    """What it is called on the page."""
    frame: Any = field(default=None, repr=False)
    """The rows; None for a model alone."""
    model: Model | None = None
    """The model; None for rows."""
    file: str = ""
    """How the file is called in what is handed over."""
    folder: Path = field(default_factory=Path)
    """Where it is, and where a release may write its ledger."""
    columns: dict[str, str] = field(default_factory=dict)
    """The columns and their types, or the names of the model."""
    rows: int = 1
    """How many rows there are."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What the form begins with."""
    plan: Plan | None = None
    """The plan that the answers are from, all of which they must say."""

    def kinds(self, *wanted: str) -> list[str]:
        """Return the columns of these types."""
        return [name for name, kind in self.columns.items() if kind in wanted]


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
    columns = {name: type_of(frame, name) for name in columns_of(frame)}
    rows = rows_in(frame)
    return Subject(
        title=f"{path.name}: {rows:,} rows, {len(columns)} columns",
        frame=frame,
        file=path.name,
        folder=path.parent,
        columns=columns,
        rows=rows,
        answers=answers or _first_answers(columns),
    )


def _first_answers(columns: Mapping[str, str]) -> dict[str, str]:
    """Return a question that the columns allow, for the form to begin with."""
    numbers = [name for name, kind in columns.items() if kind == "number"]
    if numbers:
        return {"kind": "mean", "column": numbers[0], "alike": "unknown"}
    switches = [name for name, kind in columns.items() if kind == "yes/no"]
    if switches:
        return {"kind": "count", "column": switches[0], "values": "true", "alike": "unknown"}
    return {"kind": "mean", "column": next(iter(columns)), "alike": "unknown"}


def _of_model(path: Path) -> Subject:
    model = read_model(path)
    if model.provenance == "private":
        raise ModelError(
            f"{path} is a model learned from private rows: nothing is shown of it. Learn it from"
            " public rows or under differential privacy."
        )
    kind = "sum" if model.is_continuous else "histogram"
    return Subject(
        title=f"{path.name}: {type(model).__name__} of {len(model.names):,} entries",
        model=model,
        file=path.name,
        folder=path.parent,
        columns={str(name): "of the model" for name in model.names[:200]},
        answers={"kind": kind, "column": "", "alike": "given"},
    )


_KNOWN = {
    "data": {"file", "groups", "order_by", "max_group_size", "independent"},
    "model": {"bounds", "domains", "correlation", "assume", "persistence", "kind", "public",
              "epsilon"},
    "budget": {"epsilon", "ledger"},
    "queries": {"query", "name", "epsilon", "belief", "by", "missing"},
    "output": {"releases", "report"},
}  # fmt: skip


def _of_plan(path: Path) -> Subject:
    """Open the rows of a plan, with its answers; what the form has no place for is refused."""
    plan = read_plan(path)
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    if len(found["queries"]) > 1:
        raise PlanError(f"{path} has several queries; the page is about one: leave one of them.")
    (query,) = found["queries"]
    for section, known in _KNOWN.items():
        said = query if section == "queries" else found.get(section, {})
        for key in said:
            if key not in known:
                raise PlanError(f"{path}: the page has no place for {section}.{key}.")
    if plan.source.file is None:
        raise PlanError(f"{path}: the page reads rows from a file: give data.file.")
    subject = of_rows(plan.source.file, _answers_of(found, query))
    return dataclasses.replace(subject, plan=plan)


def _answers_of(found: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, str]:
    data, model, budget = (found.get(name, {}) for name in ("data", "model", "budget"))
    asked = parse_query(query["query"])
    column = str(asked.columns[0]) if asked.columns else ""
    if asked.kind == "linear" or len(asked.columns or ()) > 1:
        raise PdpError("the page asks about one column, or about all of a table of columns.")
    low, high = _of_column(model.get("bounds"), column) or ("", "")
    domain, other = _of_column(model.get("domains"), column), query.get("by", [""])[0]
    parts = _of_column(model.get("domains"), other) if other else None
    stated = model.get("correlation", 0.3)
    before, after = _belief(query.get("belief"))
    answers: dict[str, Any] = {
        "kind": asked.kind,
        "column": column,
        "values": "" if asked.values is None else values_text(tuple(asked.values)),
        "groups": data.get("groups", ""),
        "order_by": data.get("order_by", ""),
        "max_group_size": data.get("max_group_size", ""),
        "low": low,
        "high": high,
        "domain": "" if domain is None else values_text(tuple(domain)),
        "by": other,
        "by_domain": "" if parts is None else values_text(tuple(parts)),
        "alike": _alike(data, model),
        "correlation": stated[1] if isinstance(stated, list) else stated,
        "persistence": model.get("persistence", 0.9),
        "learning": model.get("epsilon", 0.5),
        "strength": "belief" if "belief" in query else "epsilon",
        "epsilon": query.get("epsilon", 1.0),
        "before": before,
        "after": after,
        "missing": "zero" if query.get("missing") == "zero" else "",
        "budget": budget["epsilon"],
        "ledger": budget.get("ledger", ""),
    }
    return {name: str(value) for name, value in answers.items() if value != ""}


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
    """Return a belief of a plan in per cent, as the form shows it."""
    from pdp_calibrate.jobs.forms import BELIEF

    if said is None or BELIEF.from_plan is None:
        return "1", "3"
    before, after = BELIEF.from_plan(said)
    return f"{100 * before:.12g}", f"{100 * after:.12g}"
