"""``pdp-calibrate plan``: run a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson, Force
from pdp_calibrate.cli.output import (
    Delivery,
    law_of,
    number,
    opened_outputs,
    print_json,
    print_table,
    say,
    within,
    write_report,
)
from pdp_calibrate.core.model import header

if TYPE_CHECKING:
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.jobs.plan import Plan
    from pdp_calibrate.jobs.run import Outcome, PlannedCheck


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
        typer.Option(
            "--check",
            help="Check and calibrate as far as no secret value is needed; release nothing.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the answers here; anywhere you like."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write an HTML report here.")
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Run a plan: data, model, queries and budget in one file, without questions.

    All queries fit the budget together, or nothing is released (exit code 3). Files that the plan
    names are read from its folder; it writes only into its own folder, except for an anchor that it
    names, and never overwrites a file. A check learns nothing from the rows: where the model has to
    be learned from them, the scale is known only when the plan is run.
    """
    from pdp_calibrate.jobs.plan import read_plan
    from pdp_calibrate.jobs.run import check_plan, run_plan

    planned = read_plan(file)
    releases, page = output or planned.releases, report or planned.report
    with opened_outputs(
        releases,
        force=force or check,
        reports=[page],
        kept=[file, planned.source.file, planned.source.database, planned.model_file],
        ledgers=[planned.ledger, planned.anchor],
        dry=check,
    ) as files:
        if check:
            _print_check(check_plan(planned), json=json)
            say(_DEFAULT_CONFIDENCE, quiet=json or _names_confidence(planned))
            return
        outcome = run_plan(planned)
        with Delivery(outcome.to_dict, lambda: _budget(outcome)) as delivery:
            files.json(releases, outcome.to_dict())
            if releases is not None:
                delivery.arrived(f"is in {releases}")
            _print_outcome(outcome, json=json)
            say(_DEFAULT_CONFIDENCE, quiet=json or _names_confidence(planned))
            delivery.arrived("was printed")
            if releases is not None:
                say(f"Written to {releases}.", quiet=json)
            about: Any = outcome.ledger
            if isinstance(outcome.ledger, pdp.Ledger) and len(outcome.releases) == 1:
                about = outcome.releases[0].release
            book = None if about is outcome.ledger else outcome.ledger
            write_report(about, page, files=files, ledger=book, quiet=json)


def _print_check(found: Sequence[PlannedCheck], *, json: bool) -> None:
    if json:
        print_json(header("PlanCheck") | {"answers": [one.to_dict() for one in found]})
        return
    print_table(["answer", "scale", "95 % of noise", "ε"], map(_checked, found))
    if found[0].calibration is not None:
        _say_model(found[0].calibration.model)
    if any(one.calibration is None for one in found):
        say(
            "The model is learned from the rows when the plan is run, and the scale is known only"
            " then."
        )


def _print_outcome(outcome: Outcome, *, json: bool) -> None:
    if json:
        print_json(outcome.to_dict())
        return
    print_table(
        ["answer", "value", "95 % of noise"],
        (
            (
                one.job.name,
                number(one.release.value),
                ", ".join(f"±{within(wide)}" for wide in one.release.half_widths()),
            )
            for one in outcome.releases
        ),
    )
    if isinstance(outcome.ledger, pdp.Ledger):
        _say_model(outcome.ledger.model)
    say(_budget(outcome))
    if not outcome.remembered:
        say(
            "Nothing remembers this run: the plan names no ledger in [budget], so the next run has"
            " the whole budget again, although both runs together leak more than one."
        )


_DEFAULT_CONFIDENCE = (
    "The plan names no model.confidence. The default is 0.95 where a band is known; elsewhere the"
    ' error is open. 0.2 learned points, as confidence = "none" does from public rows.'
)


def _names_confidence(planned: Plan) -> bool:
    """Whether a plan says how much of the error of learning is covered, or learns nothing."""
    job = planned.jobs[0]
    said = job.learning
    return not job.learns or "confidence" in said or "confidence" in said.get("options", {})


def _budget(outcome: Outcome) -> str:
    return f"Budget: {outcome.ledger.spent:.4g} of {outcome.ledger.epsilon:.4g} spent."


def _checked(one: PlannedCheck) -> tuple[str, str, str, str]:
    found, epsilon = one.calibration, f"{one.job.epsilon:.4g}"
    if found is None:
        return one.job.name, "when run", "when run", epsilon
    noise = ", ".join(found.half_widths_in_words())
    return one.job.name, number(found.scale), noise, epsilon


def _say_model(model: Model) -> None:
    from pdp_calibrate.show.words import learned

    for name, law in law_of(model):
        say(f"{name.capitalize()} {law}.")
    how = learned(model)
    say(f"The model was {how}.", quiet=how is None)
