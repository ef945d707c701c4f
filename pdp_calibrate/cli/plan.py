"""``pdp-calibrate plan``: run a plan file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson
from pdp_calibrate.cli.output import (
    law_of,
    number,
    print_json,
    print_table,
    say,
    write_json,
    write_report,
)

if TYPE_CHECKING:
    from pdp_calibrate.models import Model


@command(
    "[data]",
    'file = "people.csv"',
    'groups = "household"',
    "[model]",
    "bounds = {income = [0, 100000]}",
    "correlation = [0, 0.4]",
    'assume = "gaussian"',
    "[budget]",
    "epsilon = 2.0",
    'ledger = "budget.json"',
    "[[queries]]",
    'query = "mean(income)"',
    "epsilon = 0.5",
    "[output]",
    'releases = "releases.json"',
    'report = "report.html"',
)
def plan(
    *,
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan, in TOML.")],
    check: Annotated[
        bool,
        typer.Option("--check", help="Read and calibrate everything; release and write nothing."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Run a plan: data, model, queries and budget in one file, without questions.

    All queries fit the budget together, or nothing is released (exit code 3). Files that the plan
    names are looked for beside it.
    """
    from pdp_calibrate.plan import check_plan, read_plan, run_plan

    planned = read_plan(file)
    if check:
        found = check_plan(planned)
        if json:
            print_json([one.to_dict() for one in found])
        else:
            print_table(
                ["answer", "scale", "95 % of noise", "ε"],
                (
                    (
                        query.name,
                        number(one.scale),
                        f"±{number(one.accuracy())}",
                        f"{one.epsilon:.4g}",
                    )
                    for query, one in zip(planned.queries, found, strict=True)
                ),
            )
            _say_law(found[0].model)
        return
    outcome = run_plan(planned)
    if json:
        print_json(outcome.to_dict())
    else:
        print_table(
            ["answer", "value", "95 % of noise"],
            (
                (
                    one.name,
                    number(one.release.value),
                    f"±{number(one.release.calibration.accuracy())}",
                )
                for one in outcome.releases
            ),
        )
        _say_law(outcome.ledger.model)
        say(f"Budget: {outcome.ledger.spent:.4g} of {outcome.ledger.epsilon:.4g} spent.")
        if not outcome.remembered:
            say(
                "Nothing remembers this run: the plan names no ledger in [budget], so the next run"
                " has the whole budget again, and what both release leaks more together."
            )
    if planned.releases is not None:
        write_json(planned.releases, outcome.to_dict(), quiet=json)
    if planned.report is not None:
        only = outcome.releases[0].release if len(outcome.releases) == 1 else None
        write_report(only or outcome.ledger, planned.report, ledger=outcome.ledger, quiet=json)


def _say_law(model: Model) -> None:
    for name, law in law_of(model):
        say(f"{name.capitalize()} {law}.")
