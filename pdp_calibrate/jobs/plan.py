"""From a TOML file to a checked plan."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.errors import PdpError, PlanError
from pdp_calibrate.frames.files import Source
from pdp_calibrate.jobs.grammar import Asked, parse_query
from pdp_calibrate.jobs.plan_schema import PLAN, first_problem
from pdp_calibrate.jobs.settings import ModelSettings, adversaries_from

_OF_ESTIMATORS = ("smoothing", "confidence", "covariance", "structure")


@dataclass(frozen=True, kw_only=True)
class PlannedQuery:
    """One answer of a plan."""

    name: str
    """What it is called."""
    text: str
    """The query as written."""
    asked: Asked
    """The query as read."""
    epsilon: float
    """What it may leak alone."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything needed to release answers without a question."""

    source: Source
    """Where the rows are."""
    settings: ModelSettings
    """How they are correlated."""
    queries: tuple[PlannedQuery, ...]
    """What is asked."""
    epsilon: float
    """What everything together may leak."""
    ledger: Path | None = None
    """A file that keeps the budget between runs."""
    anchor: Path | None = None
    """A second file, elsewhere, that must agree with the ledger."""
    draw: str | None = None
    """The draw of the data; the ledger's latest by default."""
    adversaries: Adversaries
    """Who may attack."""
    time_limit: float | None = None
    """Seconds for each search."""
    releases: Path | None = None
    """Where to write the answers."""
    report: Path | None = None
    """Where to write an HTML report."""


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan; files that it names are looked for beside it, and written nowhere else.

    Raises
    ------
    PlanError
        With the place in the plan, in one line.
    """
    place = Path(path)
    try:
        described = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlanError(f"there is no file {place}.") from error
    except OSError as error:
        raise PlanError(f"{place} cannot be read: {error.strerror}.") from error
    except RecursionError as error:
        raise PlanError(f"{place} is not TOML: brackets in too many brackets.") from error
    except ValueError as error:  # TOML's own, and bytes that are no text
        raise PlanError(f"{place} is not TOML: {str(error).splitlines()[0]}.") from error
    problem = first_problem(described, PLAN)
    if problem:
        raise PlanError(f"{place}: {problem}.")
    try:
        return plan_from(described, folder=place.parent)
    except PdpError as error:
        raise PlanError(f"{place}: {error}") from error


def plan_from(described: Mapping[str, Any], *, folder: Path) -> Plan:
    """Build a plan from the contents of its file; names of files count from the folder."""
    data, budget = described["data"], described["budget"]
    model, output = described.get("model", {}), described.get("output", {})

    if "anchor" in budget and "ledger" not in budget:
        raise PlanError("budget.anchor is for the ledger that budget.ledger names.")

    def located(section: Mapping[str, Any], key: str) -> Path | None:
        return folder / section[key] if key in section else None

    def written(section: Mapping[str, Any], key: str) -> Path | None:
        """Return a file that the plan writes: inside its own folder, links followed."""
        path = located(section, key)
        if path is not None and not path.resolve().is_relative_to(folder.resolve()):
            raise PlanError(
                f"output.{key} = {section[key]!r} lies outside the folder of the plan: a plan"
                " writes beside itself only. Give another place on the command line."
            )
        return path

    ledger = located(budget, "ledger")
    if ledger is not None and not ledger.exists():
        inside = ledger.resolve().is_relative_to(folder.resolve())
        if not inside:
            raise PlanError(
                f"budget.ledger = {budget['ledger']!r} lies outside the folder of the plan and"
                " does not exist: create it first with `pdp-calibrate ledger create`."
            )

    return Plan(
        source=Source(
            file=located(data, "file"),
            delimiter=data.get("delimiter"),
            sql=data.get("sql"),
            database=located(data, "database"),
        ),
        settings=ModelSettings(
            file=located(model, "file"),
            kind=model.get("kind"),
            public=model.get("public", False),
            epsilon=model.get("epsilon"),
            columns=tuple(model["columns"]) if "columns" in model else None,
            value=model.get("value"),
            groups=data.get("groups"),
            order_by=data.get("order_by"),
            time_format=data.get("time_format"),
            bounds=_bounds(model.get("bounds", {})),
            correlation=_correlation(model.get("correlation")),
            assume=model.get("assume"),
            domains={name: tuple(values) for name, values in model.get("domains", {}).items()},
            options=model.get("options", {})
            | {key: model[key] for key in _OF_ESTIMATORS if key in model},
        ),
        queries=tuple(
            PlannedQuery(
                name=one.get("name", one["query"]),
                text=one["query"],
                asked=parse_query(one["query"]),
                epsilon=float(one["epsilon"]),
            )
            for one in described["queries"]
        ),
        epsilon=float(budget["epsilon"]),
        ledger=ledger,
        anchor=located(budget, "anchor"),
        draw=budget.get("draw"),
        adversaries=adversaries_from(budget.get("adversaries", "all")),
        time_limit=budget.get("time_limit"),
        releases=written(output, "releases"),
        report=written(output, "report"),
    )


def _bounds(found: Any) -> dict[str | None, tuple[float, float]]:
    if isinstance(found, list):
        return {None: (found[0], found[1])}
    return {name: (low, high) for name, (low, high) in found.items()}


def _correlation(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found
