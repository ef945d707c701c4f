"""Options that commands share, and what they mean."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.jobs.job import (
    FITTING,
    LEARNING,
    LEDGER,
    MODEL,
    PYTHON,
    QUERY,
    ROWS,
    SEARCH,
    Group,
    Job,
    Learning,
    Option,
    Options,
    Table,
    declared,
)
from pdp_calibrate.jobs.signature import ASKED, TABLE

if TYPE_CHECKING:
    from pdp_calibrate.frames.files import Source
    from pdp_calibrate.jobs.run import Task


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to stdout.")]
Out = Annotated[Path | None, typer.Option("--output", "-o", help="Write the result, as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist already.")]
TimeLimit = Annotated[
    float, typer.Option(help="Seconds in which the file's claim must be proved again.")
]
Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML report too.")]
AnchorFile = Annotated[
    Path | None,
    typer.Option("--anchor", help="The second file, elsewhere, that must agree with the ledger."),
]
BudgetDelta = Annotated[
    float | None, typer.Option("--delta", help="The δ that goes with it, for Gaussian noise.")
]
BudgetNoise = Annotated[
    str,
    typer.Option("--noise", help="The default noise of releases: laplace or gaussian."),
]
Rows = Annotated[
    int | None,
    typer.Option(help="With a model and no rows: how many rows an answer will be about."),
]
Queries = Annotated[
    list[str],
    typer.Option(
        "--query",
        "-q",
        help="sum(a,b)  mean(income)  count(status=1,2)  histogram(city)  linear(2*a-b); names"
        " with other characters in quotes, no name for all. Several are released together.",
    ),
]
Said = Mapping[str, Any]
"""The values of a group of options, as Python objects."""
TableOptions = Annotated[Said, Table, (ROWS,)]
ModelOptions = Annotated[Said, Options, (ROWS, MODEL)]
SearchOptions = Annotated[Said, Options, (ROWS, MODEL, SEARCH)]
CalibrationOptions = Annotated[Said, Options, (ROWS, MODEL, QUERY, SEARCH)]
ReleaseOptions = Annotated[Said, Options, (ROWS, MODEL, QUERY, SEARCH, LEDGER)]
LearningOptions = Annotated[Said, Learning, (LEARNING,)]
FittingOptions = Annotated[Said, Learning, (LEARNING, FITTING)]
Adversaries = Annotated[Said, Options, (SEARCH,)]
PeopleOptions = Annotated[Said, Options, TABLE]
QuestionOptions = Annotated[Said, Options, ASKED]


def parameters_of(what: type, chosen: Sequence[Group | str]) -> list[inspect.Parameter]:
    """Return the options of the command line for what is declared: of groups, or by their names."""
    return [
        inspect.Parameter(
            _called(name, option),
            inspect.Parameter.KEYWORD_ONLY,
            default=[] if option.form.repeated else False if option.form.kind is bool else None,
            annotation=_annotation(name, option),
        )
        for name, option in declared(what).items()
        if option.group in chosen or name in chosen
    ]


def _called(name: str, option: Option) -> str:
    """Return the name of an option on the command line, as Python writes it.

    There, options about a model and about rows share one namespace.
    """
    return option.flags[0].strip("-").replace("-", "_") if option.flags else name


def _annotation(name: str, option: Option) -> Any:
    form, flag = option.form, f"--{name.replace('_', '-')}"
    kind: Any = list[str] if form.repeated else bool if form.kind is bool else form.kind | None
    words = f"{option.words} {option.written}".rstrip()
    if name == "file":
        return Annotated[kind, typer.Argument(metavar="FILE", help=words)]
    return Annotated[
        kind,
        typer.Option(
            *(option.flags or (flag,)),
            help=words,
            rich_help_panel=option.group.title,
            show_default=False,
        ),
    ]


def said(what: type, given: Said) -> dict[str, Any]:
    """Return the options given on the command line as Python objects; others are absent."""
    found: dict[str, Any] = {}
    names = {
        _called(name, option): name
        for name, option in declared(what).items()
        if option.group is not PYTHON
    }
    for called, value in given.items():
        if value is None or value is False or value == []:
            continue
        name = names[called]
        read: Any = declared(what)[name].form.from_text or (lambda text: text)
        found[name] = _by_name(called, map(read, value)) if isinstance(value, list) else read(value)
    return found


def _by_name(called: str, pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return what was given by column; refuse a column that is given twice."""
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name in found:
            column = "all columns" if name is None else name
            raise pdp.PdpError(f"--{called.replace('_', '-')} is given twice for {column}.")
        found[name] = value
    return found


def job_for(queries: Sequence[str], options: Said, learning: Said) -> Job:
    """Return what is asked, with what was said about it."""
    from pdp_calibrate.jobs.grammar import parse_query

    return Job(
        questions=tuple(parse_query(text) for text in queries),
        options=Options(**options),  # type: ignore[typeddict-item]
        learning=Learning(**learning),  # type: ignore[typeddict-item]
    )


def with_rest(options: Said, queries: Sequence[str]) -> Said:
    """Return what was said with --rest: as much as still fits, for one query."""
    if len(queries) != 1 or {"epsilon", "belief"} & set(options):
        raise pdp.PdpError("--rest takes one --query and no --epsilon.")
    return {**options, "epsilon": None}


def source_of(table: Said) -> Source:
    """Return where to read rows from."""
    from pdp_calibrate.frames.files import Source

    if "file" not in table and "sql" not in table:
        raise pdp.PdpError("name a FILE with rows, or give --sql.")
    return Source(**table)


def document_of(table: Said) -> dict[str, Any]:
    """Return what a report may say about the table: the name of its file, without its folder."""
    return {"data": table["file"].name} if "file" in table and not is_model(table) else {}


def is_model(table: Said) -> bool:
    """Whether the file is a model and not rows."""
    return "file" in table and table["file"].suffix == ".json"


def task_for(job: Job, table: Said, rows: int | None) -> Task:
    """Settle what a job means about the rows, or about a model without rows."""
    from pdp_calibrate.jobs.model import read_model
    from pdp_calibrate.jobs.run import model_of, task_of

    if is_model(table):
        return task_of(job, None, read_model(table["file"]), rows=rows)
    if rows is not None:
        raise pdp.PdpError("--rows is for a model without data; here the rows are counted.")
    frame = source_of(table).read()
    return task_of(job, frame, model_of(job, frame))
