"""``pdp-calibrate fit``: a model file from rows, or from an assumption about them."""

from __future__ import annotations

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import (
    AsJson,
    FittingOptions,
    Force,
    ModelOptions,
    Out,
    TableOptions,
    job_for,
    source_of,
)
from pdp_calibrate.cli.output import Delivery, law_of, opened_outputs, show_result

_HOW_TO_WRITE = (
    "a model learned from private rows is itself secret, so it is not written to a file. Use"
    " --public if the rows are public, --epsilon to learn under differential privacy, or"
    " --correlation to assume instead of learning; `calibrate` and `release` learn with --kind and"
    " do not write the model."
)


@command(
    "pdp-calibrate fit survey.csv --kind table --columns mother,child --public -o model.json",
    "pdp-calibrate fit people.csv --kind groups --groups household --value income \\",
    "    --bounds 0:100000 --correlation 0:0.4 --assume gaussian -o model.json",
)
def fit(
    *,
    table: TableOptions,
    options: ModelOptions,
    learning: FittingOptions,
    output: Out = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Learn how values are correlated, or assume it, and write the model to a file.

    Private rows need --epsilon: a model learned from them is itself secret.
    """
    from pdp_calibrate.jobs.model import learned_model
    from pdp_calibrate.jobs.run import task_of
    from pdp_calibrate.show import words

    if "model" in options:
        raise pdp.PdpError("fit makes a model: leave --model out.")
    if "kind" not in learning:
        raise pdp.PdpError("say what to learn: --kind table, gaussian, groups, chain or series.")
    job = job_for(["sum()"], options, learning)
    if job.learns_from_secrets and "epsilon" not in learning:
        raise pdp.PdpError(_HOW_TO_WRITE)
    kept = [table.get("file"), table.get("database")]
    with opened_outputs(output, force=force, kept=kept) as files:
        frame = source_of(table).read()
        found = learned_model(job, frame) if job.learns else task_of(job, frame, None).model
        facts = [
            ("model", f"{type(found).__name__}, {found.provenance}"),
            ("tuples", f"{sum(found.copies):,} in {found.instances:,} independent groups"),
            *law_of(found),
            *((("learning", how),) if (how := words.learned(found)) else ()),
        ]
        learned = f"ε = {learning['epsilon']:.4g} was spent." if "epsilon" in learning else ""
        with Delivery(found.to_dict, lambda: learned, what="model was made") as delivery:
            show_result(
                found, lambda: facts, files=files, output=output, json=json, delivery=delivery
            )
