"""``pdp-calibrate people``: one table, one unit, one budget for all its columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import (
    AnchorFile,
    AsJson,
    BudgetDelta,
    BudgetNoise,
    Force,
    Out,
    PeopleOptions,
    Queries,
    QuestionOptions,
    Report,
    Said,
    TableOptions,
    source_of,
    with_rest,
)
from pdp_calibrate.cli.output import (
    Delivery,
    answer_in_words,
    opened_outputs,
    print_facts,
    print_json,
    print_status,
    print_table,
    say,
    write_report,
)
from pdp_calibrate.core.model import header
from pdp_calibrate.core.noise import checked_noise

if TYPE_CHECKING:
    from pdp_calibrate.jobs.job import Job
    from pdp_calibrate.jobs.people import PeopleTable
    from pdp_calibrate.ledger.people import PeopleLedger

people_app = typer.Typer(
    help="Release about several columns of the same people, over one budget: create, price,"
    " release, show, history.",
    no_args_is_help=True,
)


Book = Annotated[Path, typer.Argument(metavar="LEDGER", help="The file of the budget.")]


@people_app.command()
@command(
    "pdp-calibrate people create budget.json people.csv --groups household -e 2 \\",
    "    --bounds income=0:100000 --domain city=Oslo,Bergen,Voss --max-group-size 8",
)
def create(
    *,
    ledger: Book,
    table: TableOptions,
    options: PeopleOptions,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="What may be spent on each column.")
    ],
    delta: BudgetDelta = None,
    noise: BudgetNoise = "laplace",
    pure: Annotated[
        float | None, typer.Option(help="With --delta, the part of ε for Laplace noise.")
    ] = None,
    anchor: AnchorFile = None,
    json: AsJson = False,
) -> None:
    """Start a budget for all columns of a table, and declare what is public about it.

    It holds for every column that is not public. With --protect household only
    releases for whole households are allowed, which cover adversaries who know other columns too.
    """
    if ledger.exists():
        raise pdp.LedgerError(f"there is a file {ledger} already.")
    people = pdp.People(
        source_of(table).read(),
        epsilon=epsilon,
        delta=delta,
        noise=checked_noise(noise),
        pure=pure,
        ledger=ledger,
        anchor=anchor,
        **options,
    )
    _print_status(people, json=json)


@people_app.command()
@command(
    'pdp-calibrate people price budget.json people.csv -q "mean(income)" -e 0.5 \\',
    "    --correlation 0:0.4",
)
def price(
    *,
    ledger: Book,
    table: TableOptions,
    options: QuestionOptions,
    query: Queries,
    anchor: AnchorFile = None,
    json: AsJson = False,
) -> None:
    """Show how accurate answers would be, and what each column pays; nothing is released."""
    from pdp_calibrate.people import price_of

    people = _opened_with(table, ledger, anchor)
    found = [price_of(people, job) for job in _jobs(people, query, options)]
    if json:
        print_json([one.to_dict() for one in found] if len(found) > 1 else found[0].to_dict())
        return
    for one in found:
        print_facts(one.facts())


@people_app.command()
@command(
    'pdp-calibrate people release budget.json people.csv -q "mean(income)" -e 0.5 \\',
    "    --correlation 0:0.4",
    'pdp-calibrate people release budget.json people.csv -q "count(sick=true)" \\',
    '    -q "histogram(city)" -e 0.3 --missing zero --report report.html',
)
def release(
    *,
    ledger: Book,
    table: TableOptions,
    options: QuestionOptions,
    query: Queries,
    rest: Annotated[
        bool,
        typer.Option("--rest", help="Instead of --epsilon, for one query: as much as still fits."),
    ] = False,
    output: Out = None,
    report: Report = None,
    force: Force = False,
    anchor: AnchorFile = None,
    json: AsJson = False,
) -> None:
    """Release answers about the table of a budget, each with --epsilon: all of them, or none.

    A stated correlation is for sums and means of one secret column. Everything else is for whole
    households, under any dependence. What would exceed the budget is refused (exit code 3).
    """
    options = with_rest(options, query) if rest else options
    with opened_outputs(
        output,
        force=force,
        reports=[report],
        kept=[table.get("file"), table.get("database")],
        ledgers=[ledger, anchor],
    ) as files:
        people = _opened_with(table, ledger, anchor)
        found = people.release(_jobs(people, query, options))

        def described() -> Any:
            several = [one.to_dict() for one in found]
            return several if len(found) > 1 else several[0]

        def budget() -> str:
            return f"Budget: {people.ledger.spent:.4g} of {people.ledger.epsilon:.4g} spent."

        with Delivery(described, budget) as delivery:
            files.json(output, described())
            if output is not None:
                delivery.arrived(f"is in {output}")
            if json:
                print_json(described())
            else:
                print_facts(
                    (name, answer_in_words(one.value, one.half_widths()[0]))
                    for name, one in zip(query, found, strict=True)
                )
                say(budget())
            delivery.arrived("was printed")
            write_report(people.ledger, report, files=files, quiet=json)


@people_app.command()
@command("pdp-calibrate people show budget.json")
def show(*, ledger: Book, anchor: AnchorFile = None, json: AsJson = False) -> None:
    """Show what is spent on each column, and what is left."""
    _print_status(_opened(ledger, anchor), json=json)


@people_app.command()
@command("pdp-calibrate people history budget.json")
def history(*, ledger: Book, anchor: AnchorFile = None, json: AsJson = False) -> None:
    """List everything that was released; no answers."""
    from pdp_calibrate.show.words import asked

    entries = _opened(ledger, anchor).history
    if json:
        print_json(header("LedgerHistory") | {"entries": [entry.to_dict() for entry in entries]})
        return
    print_table(
        ["when (UTC)", "what", "for", "ε alone", "to others", "spent"],
        (
            (
                one.at[:19],
                asked(one.queries[0]),
                one.column or "whole households",
                f"{one.epsilon:.4g}",
                f"{one.price:.4g}",
                f"{one.spent:.4g}",
            )
            for one in entries
        ),
    )


def _opened(ledger: Path, anchor: Path | None) -> PeopleLedger:
    from pdp_calibrate.ledger.people import PeopleLedger

    return PeopleLedger.open(ledger, anchor=anchor)


def _opened_with(table: Said, ledger: Path, anchor: Path | None) -> PeopleTable:
    from pdp_calibrate.jobs.people import PeopleTable

    return PeopleTable.open(source_of(table).read(), ledger, anchor=anchor)


def _jobs(people: PeopleTable, queries: list[str], options: Said) -> list[Job]:
    """Return the questions; of several, a correlation is for sums, persistence for counts."""
    from pdp_calibrate.jobs.grammar import parse_query

    questions = [parse_query(text) for text in queries]
    if not questions:
        raise pdp.PdpError('name at least one --query, such as -q "mean(income)".')
    values = [one.kind in ("sum", "mean") for one in questions]
    about = {"correlation": True, "assume": True, "persistence": False}
    return [
        people.job(
            question,
            {
                name: value
                for name, value in options.items()
                if about.get(name, of_values) == of_values or about[name] not in values
            },
        )
        for question, of_values in zip(questions, values, strict=True)
    ]


def _print_status(people: pdp.People | PeopleLedger, *, json: bool) -> None:
    by_column = people.spent_by_column
    status: dict[str, Any] = {
        "epsilon": people.epsilon,
        "spent": people.spent,
        "remaining": people.remaining,
        "entries": len(people.history),
    }
    if json:
        print_json(header("PeopleStatus") | status | {"spent_by_column": by_column})
    else:
        print_status(status | {f"spent on {name}": spent for name, spent in by_column.items()})
