"""``pdp-calibrate explain``: a calibration in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AnchorFile, AsJson, TimeLimit
from pdp_calibrate.cli.output import print_json, say
from pdp_calibrate.core.model import header


@command(
    "pdp-calibrate explain release.json",
)
def explain(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A calibration, release or ledger, in JSON.")
    ],
    anchor: AnchorFile = None,
    time_limit: TimeLimit = 60.0,
    json: AsJson = False,
) -> None:
    """Say in plain words what was calibrated, against whom, and at what cost."""
    from pdp_calibrate.jobs.load import explainable

    words = pdp.explain(explainable(file, anchor=anchor, time_limit=time_limit))
    if json:
        print_json(header("Explanation") | {"text": words})
    else:
        say(words)
