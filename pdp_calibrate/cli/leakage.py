"""``pdp-calibrate leakage``: what noise of a given scale leaks, and to whom."""

from __future__ import annotations

from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import (
    AsJson,
    LearningOptions,
    Queries,
    Rows,
    SearchOptions,
    TableOptions,
    job_for,
    task_for,
)
from pdp_calibrate.cli.output import described_leakage, in_words, law_of, print_facts, print_json
from pdp_calibrate.core.model import header
from pdp_calibrate.core.noise import checked_noise


@command(
    'pdp-calibrate leakage model.json -q "sum()" --scale 1',
    'pdp-calibrate leakage people.csv -q "sum(income)" --scale 100000 --groups household \\',
    "    --bounds income=0:100000 --correlation 0:0.4 --assume gaussian",
    'pdp-calibrate leakage model.json -q "sum()" --scale 40 --noise gaussian --delta 1e-6',
)
def leakage(
    *,
    table: TableOptions,
    options: SearchOptions,
    learning: LearningOptions,
    query: Queries,
    scale: Annotated[
        float, typer.Option(help="The scale of every answer: λ of Laplace noise, σ of Gaussian.")
    ],
    rows: Rows = None,
    noise: Annotated[str, typer.Option(help="laplace or gaussian.")] = "laplace",
    delta: Annotated[
        float | None,
        typer.Option(help="With Gaussian noise, say the ε of (ε, δ); without it, μ."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure what noise of a given scale leaks to the worst adversary."""
    from pdp_calibrate.show.words import learned

    task = task_for(job_for(query, options, learning), table, rows)
    found = pdp.leakage(
        task.model,
        task.query,
        scale=scale,
        adversaries=options.get("adversaries"),
        rows=task.rows,
        time_limit=options.get("time_limit"),
        noise=checked_noise(noise),
        delta=delta,
    )
    if json:
        print_json(
            {
                **header("Leakage"),
                "scale": found.scale,
                "leakage": described_leakage(found, task.model),
            }
            | dict(law_of(task.model))
        )
    else:
        how = learned(task.model)
        print_facts(
            [
                ("scale", f"{scale:.6g}"),
                ("leakage", in_words(found, task.model)),
                *law_of(task.model),
                *([] if how is None else [("the model", how)]),
            ]
        )
