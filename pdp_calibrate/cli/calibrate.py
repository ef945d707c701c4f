"""``pdp-calibrate calibrate``: the smallest scale that keeps ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

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
from pdp_calibrate.cli.output import (
    check_outputs,
    in_words,
    law_of,
    number,
    show_result,
    total_in_words,
    within,
    write_report,
)
from pdp_calibrate.core.row_query import RowQuery

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration

Certificate = Annotated[
    bool,
    typer.Option("--certificate", help="Write what `check` needs to prove a large one."),
]


@command(
    'pdp-calibrate calibrate people.csv -q "mean(income)" -e 1 --groups household \\',
    "    --bounds income=0:100000 --correlation 0:0.4 --assume gaussian -o calibration.json",
    'pdp-calibrate calibrate survey.csv -q "count(mother,child=1)" --kind table',
    'pdp-calibrate calibrate model.json -q "sum(mother)" -q "sum(child)" -e 0.5',
    'pdp-calibrate calibrate home.json -q "sum()" -e 1 --noise gaussian --delta 1e-6',
)
def calibrate(
    *,
    table: TableOptions,
    options: CalibrationOptions,
    learning: LearningOptions,
    query: Queries,
    rows: Rows = None,
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
    from pdp_calibrate.jobs.run import calibrate_task

    kept = [table.get("file"), table.get("database"), options.get("model")]
    check_outputs(output, force=force, reports=[report], kept=kept)
    job = job_for(query, options, learning)
    task = task_for(job, table, rows)
    found = calibrate_task(job, task)
    if certificate:
        from pdp_calibrate.calibration.certificate import certified

        found = certified(found)
    show_result(found, facts(found, query), output=output, force=force, json=json)
    if report is not None:
        about = checked_layout(**task.columns)
        write_report(found, report, quiet=json, document=document_of(table), layout=about)


def facts(found: AnyCalibration, texts: list[str]) -> list[tuple[str, str]]:
    """Say what was found, in names and values."""
    promise = ("leakage", f"{in_words(found.leakage, found.model)} (ε = {total_in_words(found)})")
    others = {"plain DP": found.baselines["dp"], "group DP": found.baselines["group"]}
    law = "whole-number Laplace" if found.is_integer else "Laplace"
    if found.noise == "gaussian":
        law = "Gaussian, rounded to whole numbers" if found.is_integer else "Gaussian"
        promise = (
            promise[0],
            f"{promise[1]}, beside δ = {found.total_delta:g}, μ = {found.mu:.4g}",
        )
    query = found.queries[0]
    behind = " of the sum behind it" if isinstance(query, RowQuery) and query.is_ratio else ""
    noises = [
        ("scale", f"{number(found.scales[0])} ({law})"),
        ("noise", f"±{within(found.half_widths()[0])}{behind} in 95 % of releases"),
    ]
    if len(found.queries) > 1:
        each = zip(texts, found.scales, found.half_widths(), strict=True)
        noises = [
            (text, f"scale {number(scale)}, ±{within(wide)} in 95 %") for text, scale, wide in each
        ]
    return [
        *noises,
        promise,
        *law_of(found.model),
        *((f"scale of {name}", number(scale)) for name, scale in others.items() if scale),
    ]
