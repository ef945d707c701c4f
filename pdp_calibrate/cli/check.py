"""``pdp-calibrate check``: decide about a file with the stand-alone checker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson
from pdp_calibrate.cli.output import print_json, say
from pdp_calibrate.core.model import header


@command(
    "pdp-calibrate check release.json",
    "pdp-calibrate check budget.json                      all that a ledger has released, together",
    "python check.py release.json                         the same, with the file alone",
)
def check(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A calibration, a release or a ledger, in JSON.")
    ],
    json: AsJson = False,
) -> None:
    """Decide whether noise keeps its epsilon, in exact arithmetic and without the engines.

    Exit codes: 0 proved, 1 not so, 2 cannot be decided.
    """
    from pdp_calibrate.check import PROVED, UNDECIDED, check_file

    code, answer = check_file(file)
    if json:
        proved = None if code == UNDECIDED else code == PROVED
        print_json(header("Check") | {"proved": proved, "text": answer})
    else:
        say(answer)
    raise typer.Exit(code)
