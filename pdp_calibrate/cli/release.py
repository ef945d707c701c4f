"""``pdp-calibrate release``: a noisy answer about the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.ledger import step_in
from pdp_calibrate.cli.options import (
    AsJson,
    Force,
    LearningOptions,
    Out,
    ReleaseOptions,
    Report,
    TableOptions,
    document_of,
    is_model,
    job_for,
    source_of,
    with_rest,
)
from pdp_calibrate.cli.output import (
    Delivery,
    opened_outputs,
    release_facts,
    show_result,
    write_report,
)

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease


@command(
    'pdp-calibrate release people.csv -q "mean(income)" -e 1 --groups household \\',
    "    --bounds income=0:100000 --correlation 0:0.4 --assume gaussian -o release.json",
    'pdp-calibrate release people.csv -q "mean(income)" -e 0.5 --groups household \\',
    "    --ledger budget.json",
    'pdp-calibrate release people.csv -q "sum(income)" --rest --groups household \\',
    "    --ledger budget.json",
)
def release(
    *,
    table: TableOptions,
    options: ReleaseOptions,
    learning: LearningOptions,
    query: Annotated[
        list[str], typer.Option("--query", "-q", help="As in `calibrate`: mean(income), …")
    ] = [],  # noqa: B006 - typer copies it
    rest: Annotated[
        bool,
        typer.Option(
            "--rest",
            help="Instead of --epsilon, with --ledger and one query: as much as still fits.",
        ),
    ] = False,
    calibration: Annotated[
        Path | None,
        typer.Option(help="Instead of a query, a calibration from `calibrate -o`."),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(help="With --calibration and a row per value: the column of values."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(help="With --calibration for a model without an end: which step it is about."),
    ] = None,
    output: Out = None,
    report: Report = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Calibrate and release: print a noisy answer about the rows.

    A second release about the same people leaks more, and not simply the sum: with --ledger one
    budget holds for all of them, and what would exceed it is refused (exit code 3). A ledger is
    about one column of a table with a row per value; `people` keeps one budget for all of them.
    """
    from pdp_calibrate.jobs.run import ledger_of, run

    if is_model(table):
        raise pdp.PdpError("a release needs rows, not a model: name a data file.")
    if bool(query) == (calibration is not None):
        raise pdp.PdpError("a release needs either a --query or a --calibration.")
    if query and step is not None:
        raise pdp.PdpError("--step goes with a --calibration for a model without an end.")
    if rest and "ledger" not in options:
        raise pdp.PdpError("--rest takes a --ledger, one --query and no --epsilon.")
    options = with_rest(options, query) if rest else options
    with opened_outputs(
        output,
        force=force,
        reports=[report],
        kept=[table.get("file"), table.get("database"), options.get("model"), calibration],
        ledgers=[options.get("ledger"), options.get("anchor")],
    ) as files:
        job = job_for(query, options, learning)
        ledger = ledger_of(job)
        found: AnyRelease
        if calibration is None:
            job = job_for(query, {**options, "ledger": ledger, "anchor": None}, learning)
            found = run(job, source_of(table).read())
        else:
            found = _stored(calibration, options.get("time_limit")).release(
                source_of(table).read(),
                value=value,
                groups=options.get("groups"),
                order_by=options.get("order_by"),
                time_format=options.get("time_format"),
                ledger=ledger,
                step=step if ledger is None else step_in(ledger, step),
            )

        def budget() -> str:
            if ledger is None:
                return ""
            return f"Budget: {ledger.spent:.4g} of {ledger.epsilon:.4g} spent."

        def charged() -> str:
            return budget() or f"It leaked up to ε = {found.calibration.total_epsilon:.4g}."

        with Delivery(found.to_dict, charged) as delivery:
            show_result(
                found,
                lambda: release_facts(found, query or ["answer"]),
                files=files,
                output=output,
                json=json,
                note=budget,
                delivery=delivery,
            )
            said = document_of(table)
            write_report(found, report, files=files, ledger=ledger, quiet=json, document=said)


def _stored(path: Path, time_limit: float | None) -> AnyCalibration:
    from pdp_calibrate.jobs.load import load

    found = load(path) if time_limit is None else load(path, time_limit=time_limit)
    if not isinstance(found, pdp.Calibration):
        raise pdp.PdpError(f"{path} describes a {type(found).__name__}, not a calibration.")
    clamps = all(getattr(query.at_a_step, "clamp", True) for query in found.queries)
    if found.model.is_continuous and not clamps:
        raise pdp.PdpError(
            f"{path} was calibrated without clamping; the command line always clamps. Calibrate"
            " again, or release from Python."
        )
    return found
