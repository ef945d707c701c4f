"""``pdp-calibrate report``: a page to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AnchorFile, AsJson, Force, TimeLimit
from pdp_calibrate.cli.output import opened_outputs, print_json, write_report
from pdp_calibrate.core.model import header


@command(
    "pdp-calibrate report release.json -o report.html",
    'pdp-calibrate report release.json --title "Mean income 2025" --data "Household survey" \\',
    '    --purpose "yearly statistics" --author "A. Steward" --sign',
)
def report(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A calibration, release or ledger, in JSON.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    ledger: Annotated[
        Path | None, typer.Option(help="Show this ledger's history in the report too.")
    ] = None,
    anchor: AnchorFile = None,
    title: Annotated[str, typer.Option(help="The heading.")] = "Privacy report",
    data: Annotated[str | None, typer.Option(help="What the table is called.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What the answer is published for.")] = None,
    author: Annotated[str | None, typer.Option(help="Who wrote the report.")] = None,
    date: Annotated[str | None, typer.Option(help="Its date; by default today.")] = None,
    sign: Annotated[bool, typer.Option("--sign", help="End with a signature line.")] = False,
    time_limit: TimeLimit = 60.0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write an HTML report for the person who signs: what is promised, to whom, on what it rests.

    One file, no network; never a true answer or a raw record.
    """
    from pdp_calibrate.jobs.load import explainable

    books = [ledger, anchor]
    with opened_outputs(force=force, reports=[output], kept=[file], ledgers=books) as files:
        found = explainable(file, anchor=anchor, time_limit=time_limit)
        book = None if ledger is None else pdp.Ledger.open(ledger, anchor=anchor)
        document = {
            "title": title, "data": data, "purpose": purpose,
            "author": author, "date": date, "sign": sign,
        }  # fmt: skip
        write_report(found, output, files=files, ledger=book, quiet=json, document=document)
        if json:
            print_json(header("Report") | {"path": str(output)})
