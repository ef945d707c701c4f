"""``pdp-calibrate``: the command line. One file per command, no mathematics.

Commands import what they need when they run, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.advise import advise
from pdp_calibrate.cli.audit import audit
from pdp_calibrate.cli.calibrate import calibrate
from pdp_calibrate.cli.check import check
from pdp_calibrate.cli.command import help_text
from pdp_calibrate.cli.demo import demo
from pdp_calibrate.cli.explain import explain
from pdp_calibrate.cli.explore import explore
from pdp_calibrate.cli.fit import fit
from pdp_calibrate.cli.leakage import leakage
from pdp_calibrate.cli.ledger import ledger_app
from pdp_calibrate.cli.people import people_app
from pdp_calibrate.cli.plan import plan
from pdp_calibrate.cli.refresh import refresh
from pdp_calibrate.cli.registry import registry
from pdp_calibrate.cli.release import release
from pdp_calibrate.cli.report import report
from pdp_calibrate.cli.schema import schema

app = typer.Typer(
    name="pdp-calibrate",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


for _one in (
    demo, advise, explore, fit, leakage, calibrate, release, audit, check, explain, report, plan,
    refresh, registry, schema,
):  # fmt: skip
    app.command()(_one)


app.add_typer(ledger_app, name="ledger")
app.add_typer(people_app, name="people")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if wanted:
        typer.echo(f"pdp-calibrate {pdp.__version__}")
        raise typer.Exit


@app.callback(
    help=help_text(
        "Calibrate differential-privacy noise for correlated data.\n\n"
        "Exit codes: 0 fine, 1 a claim is false (audit, check), 2 bad input, 3 the budget would be"
        " exceeded, 4 an answer was released and could not be written where it was to go (it is"
        " printed, and charged).",
        "pdp-calibrate demo                                   see it work",
        'pdp-calibrate release people.csv -q "mean(income)" -e 1 --groups household \\',
        "    --bounds income=0:100000 --correlation 0:0.4 --assume gaussian   a private mean",
        "pdp-calibrate release --help                         every option",
    )
)
def _main(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line."""
    app()
