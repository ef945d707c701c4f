"""``pdp-calibrate ledger``: one budget for all releases about the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import (
    Adversaries,
    AnchorFile,
    AsJson,
    BudgetDelta,
    BudgetNoise,
    Force,
    Out,
)
from pdp_calibrate.cli.output import (
    Delivery,
    opened_outputs,
    print_json,
    print_status,
    print_table,
    say,
)
from pdp_calibrate.core.model import header
from pdp_calibrate.core.noise import checked_noise

ledger_app = typer.Typer(
    help="Keep one budget for all releases about the same people: create, show, history, charge,"
    " draw, certify. Use it with `release --ledger`.",
    no_args_is_help=True,
)


Step = Annotated[
    str | None,
    typer.Option(help="For a model without an end: which step, a number or a date."),
]


def step_in(book: pdp.Ledger, step: str | None) -> object:
    """Return a step as the ledger names it: a number where steps have no length."""
    whole = step is not None and book.every is None and step.lstrip("-").isdecimal()
    return int(step or 0) if whole else step


Book = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]


@ledger_app.command()
@command(
    "pdp-calibrate ledger create budget.json --model model.json --epsilon 2",
    "pdp-calibrate ledger create budget.json --model model.json --epsilon 2 \\",
    "    --anchor /mnt/other/budget.anchor",
    "pdp-calibrate ledger create budget.json --model model.json --epsilon 1 --delta 1e-6 \\",
    "    --noise gaussian",
)
def create(
    *,
    ledger: Book,
    search: Adversaries,
    model: Annotated[Path, typer.Option(help="The model of the people, in JSON, from `fit`.")],
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="What everything together may leak.")
    ] = None,
    delta: BudgetDelta = None,
    noise: BudgetNoise = "laplace",
    pure: Annotated[
        float | None,
        typer.Option(
            help="With --delta, the part of ε for Laplace noise and outside mechanisms; without it"
            " the ledger is for Gaussian noise alone."
        ),
    ] = None,
    repeats: Annotated[
        float | None,
        typer.Option(
            help="With Gaussian noise on tables, groups and chains: the share of δ for asking the"
            " first query again and no other, which is counted exactly; half of it by default."
        ),
    ] = None,
    mu: Annotated[
        float | None, typer.Option(help="Instead of --epsilon: the μ of Gaussian DP.")
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Instead of --epsilon: the ρ of zCDP.")] = None,
    draw: Annotated[str, typer.Option(help="The name of this draw of the data.")] = "first",
    learned_elsewhere: Annotated[
        bool,
        typer.Option(
            "--learned-elsewhere",
            help="The model was learned from other, independent data: its ε is not spent here.",
        ),
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            help="For a model without an end: the length of a step (D, W, M, 30D); steps are then"
            " dates."
        ),
    ] = None,
    promise: Annotated[
        float | None,
        typer.Option(help="For a model without an end: what every future step may still spend."),
    ] = None,
    anchor: AnchorFile = None,
    json: AsJson = False,
) -> None:
    """Start a ledger.

    A model learned under differential privacy spends its ε first. One ledger is about one table of
    people and, with a row per value, one column of it. With --anchor a second file, for example on
    another disk, must agree with it from then on: an old copy of the ledger, or one started over,
    is refused. Without it neither can be detected.
    """
    from pdp_calibrate.jobs.model import read_model

    if epsilon is None and mu is None and rho is None:
        raise pdp.PdpError("a ledger needs a budget: --epsilon, or --mu or --rho.")
    book = pdp.Ledger(
        read_model(model),
        epsilon=epsilon,
        delta=delta,
        noise=checked_noise(noise),
        pure=pure,
        repeats=repeats,
        mu=mu,
        rho=rho,
        path=ledger,
        adversaries=search.get("adversaries"),
        time_limit=search.get("time_limit"),
        draw=draw,
        learned_here=not learned_elsewhere,
        anchor=anchor,
        every=every,
        promise=promise,
    )
    _print_status(book, json=json)


@ledger_app.command()
@command(
    "pdp-calibrate ledger show budget.json",
)
def show(*, ledger: Book, anchor: AnchorFile = None, json: AsJson = False) -> None:
    """Show what is spent and what is left."""
    _print_status(pdp.Ledger.open(ledger, anchor=anchor), json=json)


@ledger_app.command()
@command(
    "pdp-calibrate ledger history budget.json",
)
def history(*, ledger: Book, anchor: AnchorFile = None, json: AsJson = False) -> None:
    """List everything that was released; no answers."""
    entries = pdp.Ledger.open(ledger, anchor=anchor).history
    if json:
        print_json(header("LedgerHistory") | {"entries": [entry.to_dict() for entry in entries]})
        return
    print_table(
        ["when (UTC)", "draw", "what", "ε alone", "spent"],
        (
            (
                entry.at[:19],
                entry.draw,
                _what(entry),
                _alone(entry),
                f"{entry.spent:.4g}",
            )
            for entry in entries
        ),
    )


@ledger_app.command()
@command(
    'pdp-calibrate ledger charge budget.json 0.1 --note "table 3, other tool"',
)
def charge(
    *,
    ledger: Book,
    dp_epsilon: Annotated[
        float | None, typer.Argument(help="Its plain-DP budget, a pure ε.")
    ] = None,
    mu: Annotated[
        float | None, typer.Option(help="Instead of ε: the μ of Gaussian DP that it keeps.")
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Instead of ε: the ρ of zCDP that it keeps.")
    ] = None,
    note: Annotated[str, typer.Option(help="A note to store with it.")] = "",
    neighbours: Annotated[
        str, typer.Option(help="What its budget counts: substitution, or add-remove.")
    ] = "substitution",
    step: Step = None,
    anchor: AnchorFile = None,
    json: AsJson = False,
) -> None:
    """Account for an outside mechanism by its plain-DP budget, before it is run."""
    book = pdp.Ledger.open(ledger, anchor=anchor)
    where = step_in(book, step)
    spent = book.charge(dp_epsilon, mu=mu, rho=rho, neighbours=neighbours, note=note, step=where)
    budget = f"Budget: {spent:.4g} of {book.epsilon:.4g} spent."
    with Delivery(lambda: {"spent": spent}, lambda: budget, what="charge was recorded"):
        _print_status(book, json=json)


@ledger_app.command()
@command(
    "pdp-calibrate ledger draw budget.json 2026-11",
)
def draw(
    *,
    ledger: Book,
    name: Annotated[str, typer.Argument(help="Its name, such as 2026-11.")],
    anchor: AnchorFile = None,
    json: AsJson = False,
) -> None:
    """Switch to a new, independent draw of the data, with its own budget."""
    book = pdp.Ledger.open(ledger, anchor=anchor)
    book.new_draw(name)
    _print_status(book, json=json)


@ledger_app.command()
@command(
    "pdp-calibrate ledger certify budget.json -o proof.json",
    "pdp-calibrate check proof.json",
)
def certify(
    *,
    ledger: Book,
    output: Out = None,
    anchor: AnchorFile = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write a copy of the ledger with what `check` needs to prove a large one.

    Most ledgers are checked as they are. The copy cannot be opened as a ledger.
    """
    with opened_outputs(output, force=force, ledgers=[ledger], kept=[anchor]) as files:
        proof = pdp.Ledger.open(ledger, anchor=anchor).certified()
        files.json(output, proof)
        if output is not None:
            say(f"Written to {output}.", quiet=json)
        if json or output is None:
            print_json(proof)


def _alone(entry: pdp.Entry) -> str:
    """Return what one entry costs by itself."""
    if entry.rho is not None:
        return f"ρ = {entry.rho:.4g}"
    if entry.epsilon is None and entry.mu is not None:
        return f"μ = {entry.mu:.4g}"
    beside = "" if entry.delta is None else f", δ {entry.delta:g}"
    return f"{entry.epsilon or entry.dp_epsilon or 0:.4g}{beside}"


def _what(entry: pdp.Entry) -> str:
    """Name the queries and, where it is known, the one column that they are about."""
    from pdp_calibrate.show.explain import of_column

    about = ", ".join(type(query).__name__ for query in entry.queries) or entry.kind
    when = "" if entry.step is None else f" at {entry.step}"
    return about + of_column(entry) + when


def _print_status(book: pdp.Ledger, *, json: bool) -> None:
    status: dict[str, Any] = {
        "epsilon": book.epsilon,
        **({"delta": book.delta} if book.delta else {}),
        **({} if book.mu is None else {"mu": book.mu}),
        **({"repeats": book.repeats} if book.repeats else {}),
        "spent": book.spent,
        "remaining": book.remaining,
        "draw": book.draw,
        "entries": len(book.history),
    }
    if book.model.is_endless:
        status |= {"every": book.every, "promise": book.promise, "still_gains": book.still_gains()}
    if json:
        print_json(header("LedgerStatus") | status)
    else:
        print_status(status)
