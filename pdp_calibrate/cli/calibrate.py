"""``pdp-calibrate calibrate``: the smallest scale that keeps ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import (
    AsJson,
    Epsilon,
    Force,
    ModelOptions,
    Out,
    Prepared,
    Queries,
    Report,
    RowOptions,
    SearchOptions,
    prepare,
)
from pdp_calibrate.cli.output import (
    check_outputs,
    in_words,
    law_of,
    number,
    print_facts,
    print_json,
    say,
    total_in_words,
    write_json,
    write_report,
)

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration


@command(
    'pdp-calibrate calibrate people.csv -q "mean(income)" -e 1 --groups household \\',
    "    --bounds income=0:100000 --correlation 0:0.4 --assume gaussian -o calibration.json",
    'pdp-calibrate calibrate survey.csv -q "count(mother,child=1)" --kind table',
    'pdp-calibrate calibrate model.json -q "sum(mother)" -q "sum(child)" -e 0.5',
)
def calibrate(
    *,
    rows: RowOptions,
    model: ModelOptions,
    search: SearchOptions,
    query: Queries,
    epsilon: Epsilon = 1.0,
    output: Out = None,
    report: Report = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Find the smallest Laplace scale at which nobody learns more than ε.

    FILE holds the rows an answer will be about, or a model. Nothing is released.
    """
    kept = [rows.file, rows.database, model.model]
    check_outputs(output, force=force, reports=[report], kept=kept)
    about = prepare(rows, model, query, number=search.rows)
    found = calibrated(about, epsilon, search)
    if output is not None:
        write_json(output, found.to_dict(), force=force)
    if json:
        print_json(found.to_dict())
    else:
        print_facts(facts(found, query))
    if output is not None:
        say(f"Written to {output}.", quiet=json)
    if report is not None:
        write_report(found, report, quiet=json)


def calibrated(
    about: Prepared,
    epsilon: float,
    search: SearchOptions,
    *,
    adversaries: pdp.Adversaries | None = None,
) -> AnyCalibration:
    """Calibrate one query, or several together."""
    options: dict[str, Any] = {
        "epsilon": epsilon,
        "adversaries": search.chosen or adversaries,
        "rows": about.rows,
        "time_limit": search.time_limit,
    }
    return pdp.calibrate(about.model, about.query, **options)


def facts(found: AnyCalibration, texts: list[str]) -> list[tuple[str, str]]:
    """Say what was found, in names and values."""
    promise = ("leakage", f"{in_words(found.leakage, found.model)} (ε = {total_in_words(found)})")
    others = {"plain DP": found.baselines["dp"], "group DP": found.baselines["group"]}
    law = "whole-number Laplace" if found.is_integer else "Laplace"
    noises = [
        ("scale", f"{number(found.scales[0])} ({law})"),
        ("noise", f"±{number(found.half_widths()[0])} in 95 % of releases"),
    ]
    if len(found.queries) > 1:
        each = zip(texts, found.scales, found.half_widths(), strict=True)
        noises = [
            (text, f"scale {number(scale)}, ±{number(wide)} in 95 %") for text, scale, wide in each
        ]
    return [
        *noises,
        promise,
        *law_of(found.model),
        *((f"scale of {name}", number(scale)) for name, scale in others.items() if scale),
    ]
