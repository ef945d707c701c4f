"""``pdp-calibrate calibrate``: the smallest scale that keeps ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import (
    AsJson,
    CalibrationOptions,
    Force,
    LearningOptions,
    Out,
    Queries,
    Report,
    Rows,
    TableOptions,
    document_of,
    job_for,
    task_for,
)
from pdp_calibrate.cli.output import calibration_facts, opened_outputs, show_result, write_report

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration

HalfWidth = Annotated[
    float | None,
    typer.Option(
        help="Instead of --epsilon, for one query: the answer is off by at most this in 95 % of"
        " releases. Shows the ε that it costs.",
    ),
]
AllowLarge = Annotated[
    bool,
    typer.Option(
        "--allow-large-epsilon",
        help="With --half-width: accept an ε above 20, which protects nobody.",
    ),
]
Certificate = Annotated[
    bool,
    typer.Option("--certificate", help="Write what `check` needs to prove a large one."),
]


@command(
    'pdp-calibrate calibrate people.csv -q "mean(income)" -e 1 --groups household \\',
    "    --bounds income=0:100000 --correlation 0:0.4 --assume gaussian -o calibration.json",
    'pdp-calibrate calibrate survey.csv -q "count(mother,child=1)" -e 1 --kind table',
    'pdp-calibrate calibrate model.json -q "sum(mother)" -q "sum(child)" -e 0.5',
    'pdp-calibrate calibrate home.json -q "sum()" -e 1 --noise gaussian --delta 1e-6',
    'pdp-calibrate calibrate people.csv -q "mean(income)" --half-width 250 --groups household \\',
    "    --bounds income=0:100000 --missing zero --count 19000",
)
def calibrate(
    *,
    table: TableOptions,
    options: CalibrationOptions,
    learning: LearningOptions,
    query: Queries,
    rows: Rows = None,
    half_width: HalfWidth = None,
    allow_large_epsilon: AllowLarge = False,
    output: Out = None,
    report: Report = None,
    certificate: Certificate = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Find the smallest scale of noise at which nobody learns more than ε.

    FILE holds the rows an answer will be about, or a model. Nothing is released.
    """
    from pdp_calibrate.calibration.release import checked_layout
    from pdp_calibrate.jobs.run import calibrate_task, calibrate_task_to_accuracy

    if half_width is None and allow_large_epsilon:
        raise pdp.PdpError("--allow-large-epsilon goes with --half-width: leave it out.")
    if half_width is not None and {"epsilon", "belief", "mu", "rho"} & set(options):
        raise pdp.PdpError("--half-width says how much may leak: give no --epsilon beside it.")
    kept = [table.get("file"), table.get("database"), options.get("model")]
    with opened_outputs(output, force=force, reports=[report], kept=kept) as files:
        job = job_for(query, options, learning)
        if half_width is None:
            job.check_strength()
        task = task_for(job, table, rows)
        found: AnyCalibration = (
            calibrate_task(job, task)
            if half_width is None
            else calibrate_task_to_accuracy(
                job, task, half_width, allow_large_epsilon=allow_large_epsilon
            )
        )
        if certificate:
            from pdp_calibrate.calibration.certificate import certified

            found = certified(found)
        show_result(
            found, lambda: calibration_facts(found, query), files=files, output=output, json=json
        )
        about = checked_layout(**task.columns)
        said = document_of(table)
        write_report(found, report, files=files, quiet=json, document=said, layout=about)
